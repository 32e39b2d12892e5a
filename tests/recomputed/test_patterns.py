"""The measures of `patterns`, and the tables that every benchmark has, from the score log and the predictions alone."""

import json
from itertools import combinations

import numpy as np
import pytest

from cli.inside import inside
from recomputed.raw import (
    check_row,
    check_summary,
    csv_tables,
    holm,
    markdown_tables,
    mean_and_interval,
    p_value,
    page_tables,
    rounds_to,
    runs,
    same,
)

STAGES, CLASSES, PER_CLASS = 3, 2, 40
ALGORITHMS = ("finetune", "replay", "ewc")
SETTINGS = (f"benchmark.stages={STAGES}", "benchmark.noise=0.2", "train.epochs=3", "train.learning_rate=0.01")
MEASURES = {
    "final acc.": "final_accuracy",
    "learning acc.": "learning_accuracy",
    "forgetting": "forgetting",
    "BWT": "backward_transfer",
}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    out = tmp_path_factory.mktemp("patterns")
    words = [word for setting in SETTINGS for word in ("--set", setting)]
    asked = ["-a", ",".join(ALGORITHMS), "--seeds", 3, "--scale", "tiny", "--predictions", "-j", 1, *words]
    done = inside("run", "patterns", *asked, "--out", out, cwd=out)
    assert done.returncode == 0, done.stderr
    return out


def measured(run):
    """The field's measures from the matrix R[i][j], the score on task j after stage i (both from 0)."""
    names = [f"stage-{number + 1}" for number in range(STAGES)]
    r = [[run.score(stage, name) for name in names] for stage in range(1, STAGES + 1)]
    last, earlier = STAGES - 1, range(STAGES - 1)
    return {
        # Lopez-Paz and Ranzato (2017): ACC and BWT. Chaudhry et al. (2018): forgetting from the best so far.
        "final_accuracy": sum(r[last]) / STAGES,
        "learning_accuracy": sum(r[j][j] for j in range(STAGES)) / STAGES,
        "forgetting": sum(max(r[i][j] for i in earlier) - r[last][j] for j in earlier) / (STAGES - 1),
        "backward_transfer": sum(r[last][j] - r[j][j] for j in earlier) / (STAGES - 1),
    }


def by_row(store):
    found = {}
    for run in sorted(runs(store), key=lambda run: run.seed):
        found.setdefault(run.algorithm, []).append(run)
    assert {name: [run.seed for run in group] for name, group in found.items()} == {a: [0, 1, 2] for a in ALGORITHMS}
    return found


def test_each_score_is_the_share_of_right_predictions(store):
    """The pictures of a stage come class by class, forty of each for the test and twenty for validation."""
    seen = 0
    for run in runs(store):
        for line, predictions in run.predictions():
            stage = int(line["name"].removeprefix("stage-")) - 1
            count = PER_CLASS if line["split"] == "test" else PER_CLASS // 2
            right = np.repeat(np.arange(CLASSES * stage, CLASSES * (stage + 1)), count)
            assert line["count"] == len(right) == len(predictions)
            assert same(line["score"], np.count_nonzero(predictions == right) / len(right))
            seen += 1
    assert seen == len(ALGORITHMS) * 3 * (STAGES + 1) * STAGES * 2


def test_the_measures_of_each_record(store):
    for run in runs(store):
        check_summary(run, measured(run))


def test_the_comparison_of_all_algorithms(store):
    (table,) = json.loads(inside("compare", store, "--json", cwd=store).stdout)
    (printed,) = markdown_tables(inside("compare", store, "--format", "markdown", cwd=store).stdout).values()
    (rows,) = csv_tables(inside("compare", store, "--format", "csv", cwd=store).stdout).values()
    found = by_row(store)
    assert len(table["rows"]) == len(printed) == len(rows) == len(found)
    for name, group in found.items():
        values = {title: [100 * measured(run)[key] for run in group] for title, key in MEASURES.items()}
        expected = {title: mean_and_interval(each) for title, each in values.items()}
        check_row(table, name, expected, printed)
        (row,) = [row for row in rows if row["algorithm"] == name]
        for title, (mean, half) in expected.items():
            assert same(float(row[title]), mean)
            assert same(float(row[f"{title} interval"]), half)


def test_the_tables_of_the_page(store):
    """What the report adds: costs, and which differences are more than chance."""
    inside("report", store, "--out", store / "report", cwd=store)
    tables = page_tables((store / "report" / "index.html").read_text())
    found = by_row(store)

    (costs,) = [table for table in tables if table[0][0] == "algorithm" and "steps" in table[0]]
    steps, per_stage = -(-CLASSES * PER_CLASS // 32) * 3 * STAGES, CLASSES * PER_CLASS * 3 * STAGES
    row = dict(zip(costs[0], next(row for row in costs if row[0] == "finetune"), strict=True))
    assert row["steps"] == str(steps)
    assert row["forward passes"] == row["backward passes"] == str(per_stage)
    assert row["memory, bytes"] == "0"

    tested = [table for table in tables if table[0][:2] == ["pair", "difference"]]
    assert len(tested) == len(MEASURES)
    for table, key in zip(tested, MEASURES.values(), strict=True):
        differences = {
            f"{a} − {b}": [100 * (measured(x)[key] - measured(y)[key]) for x, y in zip(found[a], found[b], strict=True)]
            for a, b in combinations(found, 2)
        }
        varying = {pair: values for pair, values in differences.items() if max(values) - min(values) > 1e-9}
        plain = {pair: p_value(values) for pair, values in varying.items()}
        corrected = holm(plain)
        assert len(table) - 1 == len(differences)
        for pair, difference, p, after, below, seeds, _ in table[1:]:
            turned = " − ".join(reversed(pair.split(" − ")))
            own, sign = (pair, 1) if pair in differences else (turned, -1)
            mean, half = mean_and_interval(differences[own])
            shown, _, width = difference.partition(" ±")
            assert rounds_to(shown, sign * mean, 1), (key, pair)
            assert rounds_to(width, half, 1), (key, pair)
            assert seeds == "3"
            if own in varying:
                for text, value in ((p, plain[own]), (after, corrected[own])):
                    assert text == "< 0.001" if value < 0.001 else rounds_to(text, value, 3), (key, pair, text, value)
                assert below == ("yes" if corrected[own] < 0.05 else "no")
