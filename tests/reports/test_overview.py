"""What is said of any benchmark, against the numbers of its records worked out by hand."""

import numpy as np
import pytest
from scipy import stats

from holdfast import metrics
from holdfast.benchmarks.base import score_matrix
from holdfast.experiments.store import Record
from holdfast.reports import overview
from holdfast.reports.groups import experiments
from reports.stores import record


def scored(matrix, algorithm="finetune", seed=0, **rest):
    """A record with this score matrix; what is NaN was not scored."""
    value = record(algorithm=algorithm, seed=seed, stages=len(matrix), **rest)
    value["scores"] = [
        {"stage": i + 1, "step": 10 * (i + 1), "name": f"t{j}", "split": "test", "count": 5, "score": score}
        for i, row in enumerate(matrix)
        for j, score in enumerate(row)
        if score == score
    ]
    return Record.from_json(value, "test")


def of(records):
    (found,) = experiments(records)
    return found


def test_comparison_has_means_intervals_and_the_best_that_is_no_bound():
    finals = {"finetune": [0.2, 0.3, 0.1], "replay": [0.6, 0.7, 0.5], "joint": [0.9, 0.9, 0.8]}
    records = [
        Record.from_json(
            record(algorithm=name, seed=seed, summary={"final_accuracy": value, "forgetting": 1 - value}), ""
        )
        for name, values in finals.items()
        for seed, value in enumerate(values)
    ]
    table = overview.comparison(of(records))
    assert table.columns == ("algorithm", "final acc. ↑", "forgetting ↓")
    cells = {row[0].text: row[1:] for row in table.rows}
    for name, values in finals.items():
        low, high = stats.t.interval(0.95, 2, loc=np.mean(values), scale=stats.sem(values))
        assert cells[name][0].number == pytest.approx(100 * np.mean(values))
        assert cells[name][0].interval == pytest.approx(100 * (high - low) / 2)
    assert {name: [cell.best for cell in row] for name, row in cells.items()} == {
        "finetune": [False, False], "replay": [True, True], "joint": [False, False]
    }  # fmt: skip
    assert any("bound" in note for note in table.notes)
    assert table.warning == ""  # patterns has no paper


def test_a_measure_that_one_seed_lacks_is_not_averaged_over_the_others():
    values = [record(seed=0), record(seed=1)]
    values[1]["summary"]["forgetting"] = None
    values[1]["reasons"]["forgetting"] = "one task alone"
    table = overview.comparison(of([Record.from_json(value, "") for value in values]))
    assert table.rows[0][3].number is None
    assert "finetune: no forgetting: one task alone." in table.notes


def test_every_table_of_a_papers_benchmark_on_world_data_says_so():
    world = Record.from_json(record(benchmark="clvqa", summary={"wh": 0.5}), "")
    given = Record.from_json(record(benchmark="clvqa", summary={"wh": 0.5}, given=" --data clevr"), "")
    assert "not reproduce" in overview.comparison(of([world])).warning
    other = Record.from_json(record(benchmark="mtil", summary={"last": 0.5}), "")
    assert "not reproduce" in overview.comparison(of([other])).warning  # the papers that use it have other names
    assert overview.comparison(of([given])).warning == ""


def test_curves_follow_the_matrix():
    nan = float("nan")
    matrix = [[0.8, 0.1, nan], [0.4, 0.6, 0.2], [0.5, 0.2, 0.9]]
    known, lost, ahead = overview.over_stages(of([scored(matrix)]))
    assert known.series[0].y == pytest.approx((80, 50, 100 * (0.5 + 0.2 + 0.9) / 3))
    assert lost.series[0].y[0] is None
    assert lost.series[0].y[1:] == pytest.approx((40, 100 * (0.3 + 0.4) / 2))
    assert ahead.series[0].y[:2] == pytest.approx((10, 20))
    assert ahead.series[0].y[2] is None
    assert lost.series[0].y[2] == pytest.approx(100 * metrics.forgetting(matrix))


def test_two_seeds_have_no_band_and_three_have():
    matrix = [[0.8, 0.1], [0.4, 0.6]]
    two = overview.over_stages(of([scored(matrix, seed=s) for s in range(2)]))[0]
    three = overview.over_stages(of([scored(np.array(matrix) + 0.01 * s, seed=s) for s in range(3)]))[0]
    assert two.series[0].band == ()
    assert three.series[0].band[0] == pytest.approx(100 * metrics.t_interval([0.8, 0.81, 0.82]))


def test_heat_map_is_the_mean_matrix_without_tests_taken_once():
    nan = float("nan")
    first, second = [[0.2, 0.0, nan], [0.4, 0.6, 0.7]], [[0.4, 0.0, nan], [0.0, 0.8, 0.9]]
    found = overview.heatmap([scored(first), scored(second, seed=1)], "replay")
    assert found.columns == ("t0", "t1")
    assert np.allclose(found.values, [[30, 0], [20, 70]])
    assert (found.low, found.high) == (0, 100)
    other = overview.heatmap([scored([[3.2, 1.5], [2.0, 1.0]])], "nats")  # no share: drawn between its own ends
    assert (other.low, other.high) == (1.0, 3.2)


def test_cost_and_significance():
    records = [Record.from_json(record(algorithm=a, seed=s), "") for a in ("finetune", "replay") for s in range(3)]
    found = of(records)
    table = {row[0].text: row for row in overview.cost_table(found).rows}
    assert table["replay"][2].number == pytest.approx(2.5)
    assert table["replay"][5].text == "32,064"
    assert [plot.x_label for plot in overview.cost_plots(found)] == ["bytes kept by the algorithm"]
    blocks = overview.significance(found)
    values = {a: [r.summary["final_accuracy"] for r in records if r.algorithm == a] for a in ("finetune", "replay")}
    p = stats.ttest_rel(values["finetune"], values["replay"]).pvalue
    assert blocks[0].rows[0][2].number == pytest.approx(p)
    one = overview.significance(of([r for r in records if r.config["seed"] == 0]))
    assert "3 seeds in common" in one[0].text


def test_a_benchmark_that_this_version_does_not_know_is_shown_as_plain_numbers():
    found = of([Record.from_json(record(benchmark="unheard:of", summary={"score": 1.25}), "")])
    table = overview.comparison(found)
    assert table.columns == ("algorithm", "score")
    assert table.rows[0][1].plain == "1.250"


def test_the_matrix_of_a_record_is_what_the_pages_draw(real_store):
    import holdfast

    run = holdfast.load(real_store)[0]
    names, _, matrix = score_matrix(run.scores)
    found = overview.heatmap([run.record], "")
    assert found.columns == tuple(names)
    assert np.allclose(np.array(found.values), 100 * matrix)
