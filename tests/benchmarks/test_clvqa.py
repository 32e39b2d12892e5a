"""Wh- and yes/no-questions: what is learned from which questions, and which measures follow."""

import json
import math
import shutil
from dataclasses import replace

import numpy as np
import pytest

from cli.inside import inside
from holdfast import run
from holdfast.benchmarks.clvqa import analysis, protocol, report, tasks
from holdfast.benchmarks.clvqa.benchmark import Clvqa
from holdfast.benchmarks.clvqa.stream import balanced, halves
from holdfast.errors import UserError
from holdfast.experiments.config import resolve
from holdfast.experiments.plan import graph
from holdfast.experiments.planfile import read_plan, read_searches
from holdfast.experiments.request import Request
from holdfast.experiments.schedule import finish
from holdfast.experiments.store import Record, Store
from holdfast.experiments.tune import tune
from holdfast.papers import table
from holdfast.reports.tables import comparison
from holdfast.types import Score, Wants
from holdfast.world.whole import MARK
from smallest import prepare
from smallest import run as make

WANTS = Wants(side=16)
QUICK = {"train.epochs": 1}


def questions(folder, split):
    """The official file, by the id of each question."""
    path = folder / f"CLEVR_v1.0/questions/CLEVR_{split}_questions.json"
    return {str(q["question_index"]): q for q in json.loads(path.read_text())["questions"]}


def log(*rows, names=("wh", "yn")):
    """A score log whose matrix is these rows."""
    return [
        Score(stage, 10 * stage, name, "test", 100, value)
        for stage, row in enumerate(rows, 1)
        for name, value in zip(names, row, strict=True)
    ]


def test_the_answers_are_clevrs_28_and_the_papers_categories():
    assert len(tasks.ANSWERS) == len(set(tasks.ANSWERS)) == 28
    published = {row["predicted"] for row in table("clvqa", 1)}
    assert published == set(tasks.CATEGORIES) - {"count"}
    assert {row["question_type"] for row in table("clvqa", 1)} == {*tasks.KINDS["wh"], *tasks.KINDS["yn"]}


def test_a_stage_holds_the_questions_of_its_task(tiny_clevr):
    setup = Clvqa(scale="tiny").setup(WANTS)
    official = questions(tiny_clevr, "train")
    counts = {}
    for stage, prefixes in zip(setup.stream.stages, ("query_", "equal_"), strict=True):
        targets = setup.data.targets(stage.train).tolist()
        words = [tasks.ANSWERS[number] for number in targets]
        asked = [q for q in official.values() if q["program"][-1]["function"].startswith(prefixes)]
        asked = [q for q in asked if q["program"][-1]["function"] != "equal_integer"]
        assert set(words) <= {q["answer"] for q in asked}
        counts[stage.name] = len(asked)
    assert [len(stage.train) for stage in setup.stream.stages] == [min(counts.values())] * 2
    assert counts["wh"] > counts["yn"], "the larger one was cut"
    assert set(setup.stream.stages[0].train).isdisjoint(setup.stream.stages[1].train)


def test_one_output_layer_and_nothing_tells_the_task(tiny_clevr):
    setup = Clvqa(scale="tiny").setup(WANTS)
    (task,) = setup.tasks.values()
    assert (task.head, task.outputs) == ("answers", 28)
    assert {name for t in setup.data.tables for name in t.inputs} == {"image", "text", "text_length"}
    assert {t.task for t in setup.data.tables} == {e.task for e in setup.protocol.evaluations} == {task.name}


def test_no_picture_is_in_both_halves_of_val(tiny_clevr):
    setup = Clvqa(scale="tiny").setup(WANTS)
    column = setup.data.tables[1].inputs["image"]
    first = len(setup.data.tables[0])
    shown = {"validation": set(), "test": set()}
    for each in setup.protocol.evaluations:
        shown[each.split] |= set(column.index[each.ids - first].tolist())
    assert shown["validation"]
    assert shown["test"]
    assert shown["validation"].isdisjoint(shown["test"])
    again = Clvqa(scale="tiny", seed=5).setup(WANTS)
    for one, other in zip(setup.protocol.evaluations, again.protocol.evaluations, strict=True):
        assert one.ids.tolist() == other.ids.tolist(), "whatever the run's seed"


def test_halves_and_balance_by_hand():
    images = np.repeat([3, 1, 4, 5], [2, 1, 3, 1])
    first, second = halves(images)
    assert sorted([*first, *second]) == list(range(7))
    assert {len(set(images[part])) for part in (first, second)} == {2}
    rows = {"wh": np.arange(5), "yn": np.arange(5, 8)}
    names = np.array([f"q{n}" for n in range(8)])
    found = balanced(rows, names, seed=1)
    assert found["yn"].tolist() == [5, 6, 7]
    assert len(set(found["wh"])) == 3
    assert any(balanced(rows, names, seed=s)["wh"].tolist() != found["wh"].tolist() for s in range(2, 6))


def test_orders(tiny_clevr):
    both = Clvqa(scale="tiny").setup(WANTS)
    turned = Clvqa(scale="tiny", order="yn>wh").setup(WANTS)
    alone = Clvqa(scale="tiny", order="wh").setup(WANTS)
    assert Clvqa(order="wh>yn") == Clvqa(), "one run, by its name or not"
    assert [stage.name for stage in turned.stream.stages] == ["yn", "wh"]
    assert [e.name for e in turned.protocol.evaluations] == ["yn", "wh"] * 2
    assert alone.stream.stages[0].train.tolist() == both.stream.stages[0].train.tolist(), "the same questions alone"
    assert [e.name for e in alone.protocol.evaluations] == ["wh", "yn"] * 2, "scored on both"
    types = Clvqa(scale="tiny", setting="types").setup(WANTS)
    assert [stage.name for stage in types.stream.stages] == ["wh", "yn", "count", "exist", "compare_integer"]
    assert len({len(stage.train) for stage in types.stream.stages}) == 1
    for order, sentence in {"wh>count": "unknown task 'count'", "wh>wh": "each task may occur only once"}.items():
        with pytest.raises(UserError, match=sentence):
            Clvqa(order=order)


def test_guessing_scores_what_the_paper_prints(tiny_clevr):
    shares = np.repeat(np.arange(15), [3] * 8 + [8] * 3 + [12] * 4)  # each type a quarter, its answers alike
    found = tasks.random_scores({"wh": shares, "yn": np.repeat([15, 16], 48)}, {"wh": shares, "yn": np.array([15, 16])})
    assert found["wh"] == pytest.approx((1 / 8 + 1 / 3 + 1 / 2 + 1 / 2) / 16 / 2)
    assert found["yn"] == 0.25
    published = {row["task"]: row["accuracy"] for row in table("clvqa", "main").select(method="random", setup="wh-yn")}
    assert abs(found["wh"] - published["wh"]) < 0.01
    assert found["yn"] == published["yn"]
    setup = Clvqa(scale="tiny").setup(WANTS)
    assert setup.chance["yn"] == pytest.approx(0.25, abs=0.02)
    for order, other in (("wh", "yn"), ("yn", "wh")):
        alone = Clvqa(scale="tiny", order=order).setup(WANTS)
        assert alone.chance == {order: pytest.approx(2 * setup.chance[order]), other: 0}
        printed = table("clvqa", "main").value("accuracy", method="random", setup=order, task=order)
        assert alone.chance[order] == pytest.approx(printed, abs=0.025)


def test_the_measures_of_a_worked_example():
    naive, together = log((0.8, 0.0), (0.0, 0.6)), log((0.8, 0.0), (0.75, 0.7))
    found = protocol.summary(naive)
    assert (found["wh"], found["yn"]) == (0.0, 0.6)
    assert found["mean_accuracy"] == pytest.approx(1.4 / 3)
    assert found["backward_transfer"] == pytest.approx(-0.8), "the cited one: the supplement's factor 2 gives -1.6"
    assert found["remembering"] == pytest.approx(0.2)
    assert "cumulative" in found["intransigence"].reason
    more = protocol.relative(naive, together)
    assert more["intransigence"] == pytest.approx(0.1)
    assert more["cl_score"] == pytest.approx((1.4 / 3 + 0.2 + (1 - 1.1 / 2)) / 3)
    assert protocol.relative(together, together)["intransigence"] == 0


def test_what_one_task_alone_cannot_say_is_undefined():
    found = protocol.summary(log((0.8, 0.1)))
    assert (found["wh"], found["yn"]) == (0.8, 0.1)
    assert math.isnan(found["remembering"])
    assert found["cl_score"].reason == "needs one stage for each task, but there are 1 for 2"
    assert protocol.relative(log((0.8, 0.1)), log((0.8, 0.0), (0.75, 0.7))) == {}
    assert set(found) == set(protocol.MEASURES)


def test_a_moved_folder_is_the_same_run_and_other_data_is_not(tiny_clevr, tmp_path):
    moved = shutil.copytree(tiny_clevr, tmp_path / "elsewhere")
    ids = [prepare(Request("clvqa", scale="tiny", data=data)).config.id for data in (None, str(moved))]
    assert ids[0] == ids[1]
    path = moved / "CLEVR_v1.0/questions/CLEVR_val_questions.json"
    path.write_text(path.read_text().replace("Are there", "Is there"))
    path.write_text(path.read_text().replace("What is the color", "Which is the color"))
    assert prepare(Request("clvqa", scale="tiny", data=str(moved))).config.id != ids[0]


def test_the_worlds_data_is_known_wherever_it_lies(tiny_clevr, tmp_path):
    moved = shutil.copytree(tiny_clevr, tmp_path / "all" / "clevr")
    (moved / MARK).write_text("{}")
    asked = [Request("clvqa", scale="tiny", data=data) for data in (None, str(moved), str(moved.parent))]
    assert [resolve(each).synthetic for each in asked] == [True, True, True]
    (moved / MARK).unlink()
    assert not resolve(asked[1]).synthetic


def test_intransigence_comes_with_the_cumulative_run_in_any_order(tmp_path):
    plan = graph([Request("clvqa", word, scale="tiny", settings=QUICK) for word in ("naive", "cumulative")])
    alone, cumulative = plan.asked()
    assert plan.needs[alone.id] == {"cumulative": cumulative.id}
    store = Store(tmp_path)
    naive = make(prepare(alone.request), store)
    assert naive.summary["intransigence"] is None
    before = finish(plan, alone.id, store)
    assert before.summary["intransigence"] is None
    assert before.reasons["intransigence"] == "the run 'cumulative' is missing"
    together = make(prepare(cumulative.request), store)
    after, own = (finish(plan, run, store) for run in plan.wanted)
    last = [{s.name: s.score for s in r.scores if s.split == "test" and s.stage == 2} for r in (naive, together)]
    assert after.summary["intransigence"] == pytest.approx(last[1]["yn"] - last[0]["yn"])
    assert own.summary["intransigence"] == 0
    assert store.folder(naive.id).record() == after, "and stays"
    other = replace(alone.request, seed=1)
    make(prepare(other), store)
    later = graph([other])
    assert finish(later, later.wanted[0], store).summary["intransigence"] is None, "of the same seed only"


def test_a_run_of_the_first_stage_needs_no_cumulative_run():
    def needed(stages):
        asked = Request("clvqa", scale="tiny", stages=stages)
        plan = graph([asked], read=False)
        return list(plan.needs[plan.wanted[0]])

    assert needed(1) == []
    assert needed(2) == needed(None) == ["cumulative"]


def test_one_task_alone_needs_no_other_run():
    assert len(graph([Request("clvqa", scale="tiny", order="wh")]).configs) == 1


def test_what_was_dropped_is_in_the_record(tiny_clevr, tmp_path):
    broken = shutil.copytree(tiny_clevr, tmp_path / "clevr")
    path = broken / "CLEVR_v1.0/questions/CLEVR_train_questions.json"
    content = json.loads(path.read_text())
    content["questions"][2]["answer"] = "mauve"
    path.write_text(json.dumps(content))
    asked = {"scale": "tiny", "data": str(broken), "settings": QUICK}
    with pytest.raises(UserError, match="question 2: its answer 'mauve'"):
        run("clvqa", out=tmp_path / "runs", **asked)
    record = run("clvqa", out=tmp_path / "runs", needs=False, skip_bad=3, **asked)
    assert record.dropped == 1
    assert "'mauve' is not one of CLEVR's" in record.problems[0]
    assert Store(tmp_path / "runs").folder(record.id).record().dropped == 1


def test_refusals():
    with pytest.raises(UserError, match="patterns draws its own data: leave out --data"):
        prepare(Request("patterns", data="somewhere"))
    with pytest.raises(UserError, match="no regions"):
        prepare(Request("clvqa", model="uniter-tiny", scale="tiny"))
    with pytest.raises(UserError, match="unknown task 'wx': there are wh, yn"):
        prepare(Request("clvqa", order="wx"))


def test_feature_maps_in_place_of_pictures(tiny_clevr, tmp_path):
    names = [
        f"{split}/CLEVR_{split}_{n:06d}.png" for split, count in (("train", 40), ("val", 20)) for n in range(count)
    ]
    maps = np.random.default_rng(0).standard_normal((60, 5, 3, 4)).astype(np.float16)
    np.save(tmp_path / "maps.npy", maps)
    np.save(tmp_path / "maps.id.npy", np.array(names))
    settings = {"benchmark.features": str(tmp_path / "maps.npy"), "model.recurrent": 8, "model.attention": 8}
    ready = prepare(Request("clvqa", model="san", scale="tiny", settings=settings | {"model.hidden": 8}))
    assert ready.setup.inputs.grid == (5, 3, 4)
    assert ready.setup.inputs.image is None
    official = list(questions(tiny_clevr, "train").values())
    asked = [q for q in official if q["program"][-1]["function"] in tasks.FUNCTIONS[:8]]
    batch = ready.setup.data.fetch(np.array([0, 30]), "cpu")
    for row, number in enumerate((0, 30)):
        assert np.array_equal(batch.parts[0].inputs["grid"][row].numpy(), maps[asked[number]["image_index"]])


def test_the_papers_layout_beside_ours(tmp_path, capsys):
    from holdfast.benchmarks.clvqa.commands import confusion

    record = run("clvqa", "naive", scale="tiny", out=tmp_path, predictions=True, settings=QUICK)
    assert Store(tmp_path).folder(record.others["cumulative"]).status() == "done", "called from Python, it is made too"
    assert {"intransigence", "cl_score"} <= {name for name, value in record.summary.items() if value is not None}
    confusion(record.id, out=tmp_path, data="", as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert found["paper"]["query_size"]["yes_no"] == 6666
    kept = np.load(next((tmp_path / record.id / "predictions").glob("002-*-test-yn.npy")))
    yes_no = sum(tasks.ANSWERS[number] in ("yes", "no") for number in kept)
    equal = [row for name, row in found["ours"].items() if name.startswith("equal_")]
    assert sum(row["yes_no"] for row in equal) == yes_no
    assert sum(sum(row.values()) for row in equal) == len(kept)


def test_every_table_of_the_paper_is_found():
    runs = [("finetune", o) for o in ("wh", "yn")] + [
        (a, o) for a in ("finetune", "cumulative", "rehearsal", "ewc") for o in ("wh>yn", "yn>wh")
    ]
    titles = [analysis.published(*each).title for each in runs]
    assert sorted(titles) == sorted(f"table {n} of the paper" for n in range(1, 11))
    assert analysis.published("lwf", "wh>yn") is None


def test_guessing_has_a_row_of_its_own():
    score = Score(1, 9, "wh", "test", 4, 0.5)
    config = {"benchmark": {"name": "clvqa"}, "algorithms": [], "transforms": [], "seed": 0, "model": {}}
    record = Record("a" * 12, config, {}, {"wh": 0.5, "yn": None}, {}, (score,), {}, chance={"wh": 0.046, "yn": 0.25})
    rows = {row[0]: row[1:3] for row in comparison([record]).rows}
    assert rows["guessing"] == ("4.6", "25.0")
    assert rows["finetune"] == ("50.0", "–")


def test_the_penultimate_layer_is_drawn_and_the_world_is_no_reproduction(tmp_path, capsys):
    from PIL import Image

    from holdfast.benchmarks.clvqa.commands import confusion, tsne

    record = run("clvqa", "naive", scale="tiny", out=tmp_path, needs=False, settings=QUICK)
    assert record.reasons["intransigence"] == "the run 'cumulative' is missing"
    tsne(record.id, out=tmp_path, data="", picture=tmp_path / "layer.png", count=50)
    told = capsys.readouterr().out
    with Image.open(tmp_path / "layer.png") as picture:
        colours = {colour for _, colour in picture.convert("RGB").getcolors(1 << 24)}
    assert int(told.split()[0]) <= 50
    assert len({c for c in colours if max(c) - min(c) > 60}) >= 8, "a colour for each kind of question"
    confusion(record.id, out=tmp_path, data="", as_json=False)
    assert "does not reproduce it" in capsys.readouterr().out


def test_settings_are_chosen_by_the_cl_score_which_needs_the_cumulative_run(tmp_path):
    store = Store(tmp_path)

    def carry_out(plan):
        return {name: make(prepare(node.request), store) for name, node in plan.configs.items()}

    asked = Request("clvqa", "ewc", scale="tiny", settings=QUICK)
    (trial,) = tune(asked, [{"ewc.strength": "10"}], "cl_score", [0], carry_out, list(protocol.MEASURES))
    together = make(prepare(Request("clvqa", "cumulative", scale="tiny", settings=QUICK)), store)
    expected = protocol.relative(trial.records[0].scores, together.scores, "validation")["cl_score"]
    assert trial.values == (pytest.approx(expected),)
    assert len(list(store.runs())) == 2


def test_the_papers_choices_are_presets_at_its_scale():
    rehearsal, ewc = (resolve(Request("clvqa", name, scale="paper")).algorithms[0] for name in ("rehearsal", "ewc"))
    assert rehearsal.count == 10_000
    assert (ewc.strength, ewc.half) == (100.0, True)
    assert resolve(Request("clvqa", "rehearsal")).algorithms[0].count == 1000


def test_the_plan_searches_as_the_supplement_says():
    requests = read_plan("clvqa", "paper")
    grid = {
        name: sorted({request.settings[key] for request in requests if key in request.settings})
        for name, key in (("rehearsal", "rehearsal.count"), ("ewc", "ewc.strength"))
    }
    assert grid == {"rehearsal": [100, 1000, 10000], "ewc": [100, 1000, 10000]}
    searches = read_searches("clvqa", "paper", data="CLEVR")
    assert [search.by for search in searches] == ["cl_score", "cl_score"]
    groups = [group for search in searches for group in search.groups()]
    assert len(groups) == 4, "a method in an order"
    assert all(len(group) == 3 and all(len(runs) == 3 for _, runs in group) for group in groups)
    assert {run.text() for group in groups for _, runs in group for run in runs} <= {
        replace(request, data="CLEVR").text() for request in requests
    }
    assert read_searches("clvqa") == [], "on synthetic data, each method has one setting"


@pytest.mark.thorough
def test_a_plan_chooses_on_validation_data_and_the_report_shows_what_was_chosen(tmp_path):
    file = tmp_path / "plan.toml"
    quick = "\n".join(f'"{name}" = {value}' for name, value in QUICK.items())
    file.write_text(
        '[[experiment]]\nbenchmark = "clvqa"\nscale = "tiny"\nalgorithm = "rehearsal"\nchoose = "cl_score"\n'
        f'[experiment.set]\n{quick}\n"rehearsal.count" = [2, 40]\n'
    )
    out = inside("plan", file, "--out", tmp_path / "runs", "--jobs", 1, cwd=tmp_path)
    assert out.returncode == 0, out.stderr
    assert "by CL score on validation data" in out.stderr
    done = [run.record() for run in Store(tmp_path / "runs").runs()]
    by_count = {r.config["algorithms"][0]["count"]: r for r in done if r.algorithm == "rehearsal"}
    (together,) = (r for r in done if r.algorithm == "cumulative")
    scores = {
        count: protocol.relative(r.scores, together.scores, "validation")["cl_score"] for count, r in by_count.items()
    }
    chosen = max(scores, key=lambda count: scores[count])
    assert {count: bool(r.tuning) for count, r in by_count.items()} == {c: c == chosen for c in by_count}
    table, _ = report.section(done)
    rows = {row[0].text: row for row in table.rows}
    assert rows["rehearsal"][1].number == pytest.approx(100 * by_count[chosen].summary["wh"])
    assert any(f"count {chosen}, the best of 2" in note for note in table.notes)


def test_a_plan_that_chooses_by_an_unknown_measure_is_refused_before_it_runs(tmp_path):
    file = tmp_path / "plan.toml"
    table = 'benchmark = "clvqa"\nalgorithm = "rehearsal"\nchoose = "clscore"\nset = { "rehearsal.count" = [2, 4] }\n'
    file.write_text(f"[[experiment]]\n{table}")
    out = inside("plan", file, "--out", tmp_path / "runs", cwd=tmp_path)
    assert out.returncode == 2
    assert "'clscore' to choose by: did you mean cl_score" in out.stderr
    assert not (tmp_path / "runs").exists()
