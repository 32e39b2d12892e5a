"""The paper's tables and figures from records: what the printed scores give must be what the paper prints."""

import json
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from holdfast import metrics
from holdfast.benchmarks.climb import commands as climb
from holdfast.benchmarks.climb import paper
from holdfast.benchmarks.climb.figures import forgetting, later
from holdfast.benchmarks.climb.runs import UNSEEN, RunsAtScale
from holdfast.benchmarks.climb.tables import BUILDERS, DOUBTFUL, SAME, SMALLER, WORLD, ScoreCell, filled, sheet
from holdfast.engine.files import write_json
from holdfast.errors import UserError
from holdfast.experiments.store import Record
from holdfast.papers import table
from holdfast.types import Score

ORDER = paper.ORDERS[0]
TASKS = ORDER.split(">")
COST = {"steps": 9, "seconds": 1.0, "memory_bytes": 0, "examples_forward": 9, "examples_backward": 9}
COST |= {"trained": 13, "parameters": 100}
OURS = {"seqft": [], "er": [{"name": "replay"}]}


def record(
    benchmark, name, scores, *, algorithm="seqft", model="vilt", start="", seed=0, command="", others=(), **chance
):
    """A record with what the tables read of it."""
    kinds = OURS.get(algorithm, [{"name": algorithm}])
    config = {"benchmark": benchmark | {"scale": "paper"}, "model": {"name": model}, "algorithms": kinds}
    config |= {"transforms": [], "training": [{"epochs": 1}], "seed": seed, "data": name}
    config |= {"start": start} if start else {}
    environment = {"command": command or "holdfast run climb --data official"}
    return Record(name, config, environment, {}, {}, tuple(scores), COST, chance, others=dict(others))


def upstream(name, matrix, *, order=ORDER, k=None, **rest):
    """A run whose score on each task after each stage is given, in percent."""
    scores = [
        Score(stage, stage, task, "test", 100, value / 100)
        for stage, row in enumerate(matrix, 1)
        for task, value in row.items()
    ]
    found = record({"name": "climb", "order": order}, name, scores, **rest)
    if k is not None:
        found.config["algorithms"] = [{"name": "frozen-bottom", "k": k}]
    return found


def few(name, task, shots, score, chance, *, sample=0, image="mean", reallocate=True, **rest):
    """A low-shot run with its score, in percent."""
    own = {"name": "climb:lowshot", "task": task, "shots": shots, "sample": sample}
    scores = [Score(1, 9, task, "test", 100, score / 100), Score(1, 9, "guessing", "test", 100, chance)]
    return record(own | {"image": image, "reallocate": reallocate}, name, scores, **rest, score=chance)


def published_run(algorithm):
    """The paper's own upstream run, from the scores of Table 8 and, for the last task, of Table 3."""
    printed = table("climb", 8).select(algorithm=algorithm)
    found = {(row["task"], row["after"]): row["score"] for row in printed}
    found["vcr", "vcr"] = table("climb", 3).value("score", algorithm=algorithm, task="vcr")
    rows = [{task: found.get((task, after), 0.0) for task in TASKS} for after in TASKS]
    return upstream(f"run-{algorithm}", rows, algorithm=algorithm)


@pytest.fixture
def direct():
    """Direct fine-tuning with the scores that the paper prints."""
    printed = {row["task"]: row["score"] for row in table("climb", 3).select(algorithm="direct")}
    return [upstream(f"direct-{task}", [{task: score}], order=task) for task, score in printed.items()]


def row_of(found, title):
    (row,) = (row for row in found.rows if row.title == title)
    return row


@pytest.mark.parametrize("algorithm", ["seqft", "er", "adapters"])
def test_the_papers_scores_give_the_papers_transfers(direct, algorithm):
    found = sheet("3", RunsAtScale([*direct, published_run(algorithm)]))
    row = row_of(found, algorithm)
    for ours, theirs in list(_pairs(row))[:4]:
        assert ours.score == pytest.approx(theirs.score)
        assert ours.change == pytest.approx(theirs.change, abs=0.1)  # the printed scores are rounded
    assert [cell.score for cell in row_of(found, "direct").ours[:4]] == pytest.approx([67.7, 73.07, 76.31, 61.31])
    assert found.notes == ()


def test_the_papers_scores_give_the_papers_forgetting(direct):
    found = sheet("8", RunsAtScale([published_run("er"), *direct]))
    assert found.columns == ("vqav2", "nlvr2", "snli-ve")
    cells = [cell for after in ("nlvr2", "snli-ve", "vcr") for cell in _pairs(row_of(found, f"er: after {after}"))]
    assert len(cells) == 9
    known = [(ours, theirs) for ours, theirs in cells if ours != ScoreCell()]
    assert len(known) == 6
    for ours, theirs in known:
        assert (ours.score, ours.change) == pytest.approx((theirs.score, theirs.change), abs=0.05)
    assert row_of(found, "seqft: after vcr").ours == (ScoreCell(), ScoreCell(), ScoreCell()), "it was not run"


def _pairs(row):
    return zip(row.ours, row.paper, strict=True)


def test_orders_are_told_apart(direct):
    second = paper.ORDERS[1].split(">")
    printed = table("climb", "9a").select(order=paper.ORDERS[1])
    scores = {row["task"]: row["score"] for row in printed}
    rows = [{task: scores[task] for task in second} for _ in second]
    runs = RunsAtScale([*direct, upstream("other", rows, order=paper.ORDERS[1])])
    found = sheet("9a", runs)
    assert row_of(found, paper.ORDERS[0]).ours == (ScoreCell(),) * 4
    assert row_of(found, paper.ORDERS[1]).ours[2].change == pytest.approx(-0.1, abs=0.1)
    lost = sheet("9b", runs)
    first = row_of(lost, f"{paper.ORDERS[1]}: after vcr")
    assert first.ours[TASKS.index("snli-ve")].change == pytest.approx(0, abs=1e-9), "its score stayed the same"
    assert first.ours[TASKS.index("nlvr2")] == ScoreCell(), "nlvr2 comes last in this order"


def test_low_shot_transfer_to_later_tasks(direct):
    source = table("climb", 10)
    base = {row["task"]: row["score"] for row in source.select(algorithm="direct", data="low-shot")}
    chance = {"nlvr2": 0.5, "snli-ve": 1 / 3, "vcr": 0.25}
    runs = [few(f"base-{task}", task, "2048", score, chance[task]) for task, score in base.items()]
    for row in source.select(algorithm="er", after="vqav2"):
        task = row["task"]
        runs.append(few(f"er-{task}", task, "2048", row["score"], chance[task], start="run-er@1"))
    found = row_of(sheet("10", RunsAtScale([*direct, published_run("er"), *runs])), "er: after vqav2")
    for ours, theirs in _pairs(found):
        assert (ours.score, ours.change) == pytest.approx((theirs.score, theirs.change), abs=0.1)


def test_a_share_of_a_baseline_near_chance_is_a_dash_with_a_footnote(direct):
    near = upstream("direct-nlvr2", [{"nlvr2": 55.0}], order="nlvr2")
    runs = RunsAtScale([near, *(run for run in direct if run.id != "direct-nlvr2"), published_run("er")])
    found = sheet("3", runs)
    assert str(row_of(found, "er").ours[1]) == "–* [73.2]"
    assert row_of(found, "er").ours[2].change is not None, "the others have their share"
    assert DOUBTFUL in found.notes
    few_shot = [few("base", "vcr", "5%", 30, 0.25), few("after", "vcr", "5%", 40, 0.25, start="run-er@1")]
    found = sheet("10", RunsAtScale([published_run("er"), *few_shot]))
    assert str(row_of(found, "er: after vqav2").ours[2]) == "–* [40.0]"
    (panel,) = (
        panel for panel in later(RunsAtScale([published_run("er"), *few_shot])) if panel.title == "Low-shot VCR"
    )
    assert panel.doubtful == ["er"]
    assert not panel.drawn


def test_the_share_that_is_trained_stands_beside_the_papers(direct):
    found = sheet("3", RunsAtScale([*direct, published_run("adapters")]))
    assert found.columns[-1] == "trained"
    assert (row_of(found, "adapters").ours[-1], row_of(found, "adapters").paper[-1]) == (
        ScoreCell(13.0),
        ScoreCell(13.02),
    )
    assert row_of(found, "er").ours[-1] == ScoreCell()


def test_each_mean_over_seeds_has_its_interval(direct):
    """Transfer and forgetting, too: t(1) = 12.706 times half the difference of two values."""
    scores = ([70.0, 74.0, 76.0, 61.0], [68.0, 72.0, 76.0, 63.0])
    runs = [
        upstream(f"er{seed}", [dict(zip(TASKS, own, strict=True))] * 3 + [dict.fromkeys(TASKS, 60.0)], seed=seed)
        for seed, own in enumerate(scores)
    ]
    directs = [
        replace(run, id=f"{run.id}-{seed}", config=run.config | {"seed": seed}) for run in direct for seed in range(2)
    ]
    found = RunsAtScale([*runs, *directs])
    cell = row_of(sheet("3", found), "seqft").ours[0]
    changes = [100 * (own[0] - 67.7) / 67.7 for own in scores]
    assert cell.change == pytest.approx(sum(changes) / 2)
    assert cell.change_spread == pytest.approx(12.7062 * abs(changes[0] - changes[1]) / 2, rel=1e-4)
    assert str(cell) == f"{cell.change:.1f} ±{cell.change_spread:.1f} [69.0 ±12.7]"
    lost = row_of(sheet("8", found), "seqft: after vcr").ours[0]
    dropped = [100 * (own[0] - 60) / own[0] for own in scores]
    assert lost.change_spread == pytest.approx(12.7062 * abs(dropped[0] - dropped[1]) / 2, rel=1e-4)


def test_low_shot_transfer_has_the_interval_of_a_ratio_over_pairs_of_runs():
    random, chance = np.random.default_rng(0), 0.25
    for _ in range(3):
        base, after = random.normal(60, 3, 40), random.normal(65, 3, 40)
        after += 0.8 * (base - 60)
        runs = [few(f"d{n}", "vcr", "5%", score, chance, sample=n) for n, score in enumerate(base)]
        runs += [few(f"a{n}", "vcr", "5%", score, chance, sample=n, start="run@1") for n, score in enumerate(after)]
        up = upstream("run", [dict.fromkeys(TASKS, 70.0)] * 4, algorithm="er")
        cell = row_of(sheet("10", RunsAtScale([up, *runs])), "er: after vqav2").ours[2]
        draws = random.integers(40, size=(4000, 40))  # the bootstrap of pairs knows nothing of the formula
        ratios = 100 * (after[draws].mean(1) - base[draws].mean(1)) / (base[draws].mean(1) - 25)
        assert cell.change_spread == pytest.approx(2.02 * ratios.std(), rel=0.08)
        assert str(cell).startswith(f"{cell.change:.1f} ±{cell.change_spread:.1f} [")
    alone = RunsAtScale([up, *runs[:1], *runs[40:41]])
    assert row_of(sheet("10", alone), "er: after vqav2").ours[2].change_spread is None


def test_a_frozen_bottom_is_named_by_how_much_is_frozen(direct):
    rows = [dict.fromkeys(TASKS, 70.0)] * 4
    found = RunsAtScale([*direct, *(upstream(f"run{k}", rows, algorithm="frozen-bottom", k=k) for k in (9, 2))])
    table = sheet("3", found)
    assert row_of(table, "frozen-bottom-9").paper[0].score == 67.3
    assert row_of(table, "frozen-bottom-9").ours[0].score == row_of(table, "frozen-bottom-2").ours[0].score == 70
    assert row_of(table, "frozen-bottom-2").paper[0] == ScoreCell(), "the paper has no such row"


def test_an_encoder_that_stays_is_named(direct):
    runs = RunsAtScale([published_run("adapters"), few("a", "coco", "5%", 70, 0)])
    assert SAME.format("adapters") in sheet("11", runs).notes
    assert SAME.format("adapters") not in sheet("8", runs).notes


def test_what_the_paper_prints_once_for_the_first_task_stands_in_each_row(direct):
    found = sheet("11", RunsAtScale([*direct, few("b", "coco", "5%", 71, 0)]))
    once = row_of(found, "single-task: after vqav2").paper
    assert row_of(found, "er: after vqav2").paper == once
    assert row_of(found, "frozen-bottom-9: after vqav2").paper != once


def test_language_tasks_are_the_mean_of_their_samples():
    runs = [few(f"a{n}", "sst-2", "16", score, 0.5, sample=n) for n, score in enumerate((50, 60, 70))]
    runs += [few("v", "sst-2", "16", 80, 0.5, model="vault-tiny")]
    found = sheet("7", RunsAtScale(runs))
    place = found.columns.index("sst-2 16")
    assert str(row_of(found, "vilt").ours[place]) == "60.0 ±24.8"  # t(2) 4.303 x 10 / sqrt(3)
    assert str(row_of(found, "vilt").paper[place]) == "57.8 ±3.6"
    assert row_of(found, "vault").ours[place] == ScoreCell(80.0)


def test_shots_stand_beside_the_same_ones_of_the_paper():
    found = sheet("12", RunsAtScale([few("a", "imdb", "8", 61, 0.5), few("b", "imdb", "32", 62, 0.5)]))
    assert found.columns[:3] == ("imdb 8 (not in the paper)", "imdb 16 (only in the paper)", "imdb 32")
    assert row_of(found, "direct").ours[:3] == (ScoreCell(61.0), ScoreCell(), ScoreCell(62.0))
    assert row_of(found, "direct").paper[:3] == (ScoreCell(), ScoreCell(55.9), ScoreCell(57.8))
    shown = [few(word, "imdb", shots, 51, 0.5) for word, shots in (("a", "16"), ("b", "32"), ("c", "64"))]
    assert sheet("5", RunsAtScale(shown)).columns == (
        "imdb 16",
        "imdb 32",
        "imdb 64 (not in the paper)",
        "imdb 128 (only in the paper)",
    )


def test_table_5_tells_images_and_places_apart():
    runs = [few("a", "imdb", "16", 51, 0.5, image="none", reallocate=False), few("b", "imdb", "16", 56, 0.5)]
    found = sheet("5", RunsAtScale(runs))
    assert found.columns == ("imdb 16", "imdb 32", "imdb 128")
    assert row_of(found, "40 word pieces, none image").ours[0].score == pytest.approx(51)
    assert row_of(found, "160 word pieces, average image").ours[0].score == pytest.approx(56)
    assert row_of(found, "40 word pieces, average image").ours[0] == ScoreCell()


def test_single_tasks_and_stages_find_their_low_shot_runs(direct):
    runs = [few("a", "coco", "5%", 70, 0, start="direct-nlvr2@1"), few("b", "coco", "5%", 71, 0, start="run-er@3")]
    found = sheet("11", RunsAtScale([*direct, published_run("er"), *runs]))
    place = found.columns.index("coco 5%")
    assert row_of(found, "single-task: after nlvr2").ours[place].score == pytest.approx(70)
    assert row_of(found, "er: after snli-ve").ours[place].score == pytest.approx(71)
    assert row_of(found, "er: after vcr").ours[place] == ScoreCell()


def test_settings_are_not_mixed():
    one = [few(f"a{n}", "imdb", "16", 60, 0.5, sample=n) for n in range(2)]
    other = few("b", "imdb", "16", 90, 0.5)
    other.config["training"].append({"epochs": 99})
    found = sheet("7", RunsAtScale([other, *one]))
    assert row_of(found, "vilt").ours[0].score == pytest.approx(60)
    assert any("2 settings were run; the one of run a0" in note for note in found.notes)


def test_transfer_is_taken_against_the_direct_runs_that_the_record_names(direct):
    shorter = {task: upstream(f"short-{task}", [{task: 40.0 + 20 * (task != "vqav2")}], order=task) for task in TASKS}
    for each in shorter.values():
        each.config["training"].append({"epochs": 99})
    rows = [dict.fromkeys(TASKS, 70.0)] * 4
    named = upstream("named", rows, algorithm="er", others={f"direct/{task}": f"short-{task}" for task in TASKS})
    unnamed = upstream("unnamed", rows, algorithm="ewc")
    missing = upstream("missing", rows, others={"direct/vqav2": "not here"})
    found = sheet("3", RunsAtScale([*direct, *shorter.values(), named, unnamed, missing]))
    assert row_of(found, "direct").ours[0].score == pytest.approx(67.7), "of two settings, the first"
    assert UNSEEN in found.notes
    assert row_of(found, "er").ours[0] == ScoreCell(70.0, change=pytest.approx(100 * (70 - 40) / 40))
    assert row_of(found, "ewc").ours[0] == ScoreCell(70.0, change=pytest.approx(100 * (70 - 67.7) / 67.7))
    assert row_of(found, "seqft").ours[0] == ScoreCell(70.0), "no other stands in for the one that it names"


def test_low_shot_transfer_is_taken_between_the_runs_that_the_record_names():
    runs = [few("base", "vcr", "5%", 80, 0.25), few("other-base", "vcr", "5%", 50, 0.25)]
    runs += [
        few("after", "vcr", "5%", 90, 0.25, start="run@1"),
        few("other-after", "vcr", "5%", 60, 0.25, start="run@1"),
    ]
    for each in runs[1::2]:
        each.config["training"].append({"epochs": 99})
    rows = [dict.fromkeys(TASKS, 70.0)] * 4
    names = {"lowshot/0/vcr/5%/0": "other-base", "lowshot/1/vcr/5%/0": "other-after"}
    for others, score, change in (({}, 90, 10 / 55), (names, 60, 10 / 25)):
        found = RunsAtScale([upstream("run", rows, algorithm="er", others=others), *runs])
        cell = row_of(sheet("10", found), "er: after vqav2").ours[TASKS[1:].index("vcr")]
        assert cell == ScoreCell(score, change=pytest.approx(100 * change))
        (panel,) = (panel for panel in later(found) if panel.title == "Low-shot VCR")
        assert panel.lines[0].values[0] == pytest.approx(100 * change)


def test_an_encoder_that_stays_has_no_low_shot_runs_of_its_own_though_it_names_some():
    rows = [dict.fromkeys(TASKS, 70.0)] * 4
    same = upstream("run", rows, algorithm="adapters", others={"lowshot/1/vcr/5%/0": "base"})
    found = sheet("10", RunsAtScale([same, few("base", "vcr", "5%", 80, 0.25)]))
    assert row_of(found, "direct, low-shot").ours[2] == ScoreCell(80.0)
    assert not any(row.ours != (ScoreCell(),) * 3 for row in found.rows if row.title.startswith("adapters"))
    assert SAME.format("adapters") in found.notes


def test_runs_of_the_first_stages_alone_are_left_out(direct):
    rows = [dict.fromkeys(TASKS, 10.0)] * 2
    short = [upstream(f"short-{seed}", rows, algorithm="er", seed=seed) for seed in range(2)]
    for each in short:
        each.config["stages"] = 2
    found = sheet("3", RunsAtScale([*short, *direct, published_run("er")]))
    assert row_of(found, "er").ours[0].score == pytest.approx(row_of(found, "er").paper[0].score)
    assert found.notes == ()
    with pytest.raises(UserError, match=r"only their first stages: `holdfast run climb` learns all"):
        RunsAtScale(short)


def test_of_runs_with_one_seed_on_other_data_the_latest_is_shown():
    old, new = few("old", "imdb", "16", 60, 0.5), few("new", "imdb", "16", 90, 0.5)
    old.environment["started"], new.environment["started"] = "2026-01-01", "2026-01-02"
    found = sheet("7", RunsAtScale([new, old]))
    assert row_of(found, "vilt").ours[0] == ScoreCell(90.0)
    assert any("the latest is shown" in note for note in found.notes)


def test_the_worlds_data_is_marked():
    small = few("a", "imdb", "16", 60, 0.5)
    small.config["benchmark"]["scale"] = "small"
    assert SMALLER in sheet("7", RunsAtScale([small])).notes
    world = few("a", "imdb", "16", 60, 0.5, command="holdfast run climb:lowshot")
    assert WORLD in sheet("7", RunsAtScale([world])).notes
    small.environment["world"] = True
    assert WORLD in sheet("7", RunsAtScale([small])).notes, "a folder of the world is the world's"


def test_no_table_of_nothing_and_none_that_is_not_there():
    with pytest.raises(UserError, match="there are no runs of climb"):
        RunsAtScale([SimpleNamespace(config={"benchmark": {"name": "clvqa"}})])
    runs = RunsAtScale([few("a", "imdb", "16", 60, 0.5)])
    with pytest.raises(UserError, match="unknown table '4'"):
        sheet("4", runs)
    with pytest.raises(UserError, match="at the scale 'tiny': there are paper"):
        RunsAtScale([few("a", "imdb", "16", 60, 0.5)], "tiny")
    assert [number for number in BUILDERS if filled(sheet(number, runs))] == ["5", "7", "12"]


def test_figures_show_the_interval_of_three_runs_and_none_of_two(direct):
    after = dict(zip(("a", "b", "c"), (60.0, 50.0, 40.0), strict=True))  # of VQAv2, learned at 70
    runs = []
    for seed, (name, score) in enumerate(after.items()):
        rows = [dict.fromkeys(TASKS, 70.0) | {"vqav2": 70.0 if stage == 0 else score} for stage in range(4)]
        runs.append(upstream(f"run-{name}", rows, algorithm="er", seed=seed))
        runs[-1].config["data"] = "official"
    lost = [100 * (70 - score) / 70 for score in after.values()]
    (line,) = (each for each in forgetting("vilt")(RunsAtScale(runs))[0].lines if not each.printed)
    assert line.values == pytest.approx([np.mean(lost)] * 3)
    assert line.band == pytest.approx([metrics.t_interval(lost)] * 3)
    (line,) = (each for each in forgetting("vilt")(RunsAtScale(runs[:2]))[0].lines if not each.printed)
    assert line.band == (None,) * 3

    few_shot = [few(f"direct-{n}", "vcr", "5%", 80 + n, 0.25, sample=n) for n in range(3)]
    few_shot += [few(f"after-{n}", "vcr", "5%", 70 + 2 * n, 0.25, sample=n, start="run-a@1") for n in range(3)]
    found = RunsAtScale([runs[0], *few_shot])
    (panel,) = (panel for panel in later(found) if panel.title == "Low-shot VCR")
    (line,) = (each for each in panel.lines if not each.printed)
    assert line.band[0] == row_of(sheet("10", found), "er: after vqav2").ours[2].change_spread > 0


def test_commands_print_and_draw(tmp_path, direct):
    runs = [few("b0", "coco", "5%", 70, 0), few("b1", "coco", "5%", 63, 0, start="run-er@2")]
    runs += [few(f"l{n}", "sst-2", "16", 60 + n, 0.5, sample=n) for n in range(3)]
    runs += [few(f"s{n}", "sst-2", "16", 65 + n, 0.5, sample=n, start="run-er@1") for n in range(3)]
    for each in [*direct, published_run("er"), published_run("seqft"), *runs]:
        folder = tmp_path / "store" / each.id
        folder.mkdir(parents=True)
        write_json(folder / "config.json", each.config)
        write_json(folder / "record.json", each.to_json())
    app, call = typer.Typer(), CliRunner().invoke
    climb.register(app)
    printed = call(app, ["climb", "tables", str(tmp_path / "store"), "--table", "3", "--json"])
    assert printed.exit_code == 0
    (found,) = json.loads(printed.stdout)
    assert found["rows"][1]["title"] == "seqft"
    shown = call(app, ["climb", "tables", str(tmp_path / "store")])
    assert "Table 8" in shown.stdout
    assert "Table 13" not in shown.stdout, "nothing of UNITER was run"
    drawn = call(app, ["climb", "figures", str(tmp_path / "store"), "--out", str(tmp_path / "pictures")])
    assert drawn.exit_code == 0
    names = sorted(path.name for path in (tmp_path / "pictures").iterdir())
    assert names == ["figure-3a.png", "figure-3b.png", "figure-5.png", "figure-6.png"]
    assert (tmp_path / "pictures/figure-3a.png").read_bytes().startswith(b"\x89PNG")


def test_tables_need_no_torch():
    code = "import sys; from holdfast.benchmarks.climb import figures, tables; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
