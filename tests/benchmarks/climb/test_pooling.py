"""Measures pooled over tasks: only over what was learned, by every run of a table; against a count by hand."""

import copy
import json
import math
import pickle
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from holdfast.benchmarks.climb import protocol, transfer
from holdfast.benchmarks.climb.benchmark import Climb
from holdfast.engine.files import write_json
from holdfast.errors import UserError
from holdfast.experiments.runner import complete
from holdfast.experiments.store import Record, Store
from holdfast.experiments.tune import _values
from holdfast.metrics.pooling import Partial, Share, pool
from holdfast.reports import overview
from holdfast.reports.groups import experiments
from holdfast.reports.pooled import OLD
from holdfast.reports.tables import comparison
from holdfast.types import Score

CHANCE = {"vqav2": 0.0, "nlvr2": 1 / 2, "snli-ve": 1 / 3, "vcr": 1 / 4}
ORDER = tuple(CHANCE)
COST = dict.fromkeys(("steps", "seconds", "examples_forward", "examples_backward", "memory_bytes", "parameters"), 1)


def log(matrix, count=500, names=ORDER):
    return [
        Score(stage, stage, name, "test", count, float(score))
        for stage, row in enumerate(matrix, 1)
        for name, score in zip(names, row, strict=True)
    ]


def direct(scores, count=500):
    return {f"direct/{name}": log([[score]], count, (name,)) for name, score in zip(ORDER, scores, strict=True)}


def clear(score, task, count=500):
    """Whether the interval of a score lies above chance, written out."""
    return score - 1.96 * math.sqrt(score * (1 - score) / count) > CHANCE[task]


def record(name, matrix, alone=None, seed=0, algorithm="finetune", **more):
    own = {"name": "climb", "order": ">".join(ORDER), "scale": "tiny", "seed": seed}
    config = {"benchmark": own, "model": {"name": "vilt"}, "transforms": [], "training": [{}], "seed": seed}
    config["algorithms"] = [] if algorithm == "finetune" else [{"name": algorithm}]
    scores, others = tuple(log(matrix)), direct(alone) if alone is not None else {}
    measures = Climb.summary(scores) | (Climb.relative(scores, others) if others else {})
    shares = {n: {t: vars(s) for t, s in own.items()} for n, own in Climb.shares(scores, others).items()}
    summary = {n: None if v != v else float(v) for n, v in measures.items()}
    reasons = {n: v.reason for n, v in measures.items() if hasattr(v, "reason")}
    return replace(Record(name, config, {"command": ""}, summary, reasons, scores, COST, shares=shares), **more)


def by_hand(matrix, alone, kept):
    """T_F and T_UK over some tasks, from the scores alone."""
    lost = there = gained = base = 0.0
    for place, task in enumerate(ORDER):
        if task in kept["T_F"]:
            lost += matrix[place][place] - matrix[-1][place]
            there += matrix[place][place] - CHANCE[task]
        if task in kept["T_UK"]:
            gained += matrix[place][place] - alone[place]
            base += alone[place] - CHANCE[task]
    return 100 * lost / there if there else None, 100 * gained / base if base else None


def learned(matrix, alone):
    return {
        "T_F": {task for place, task in enumerate(ORDER[:-1]) if clear(matrix[place][place], task)},
        "T_UK": {task for place, task in enumerate(ORDER) if clear(alone[place], task)},
    }


def near(value, expected):
    return (value is None) if expected is None else value == pytest.approx(expected)


ISSUE = [[0.60, 0.50, 0.33, 0.25], [0.55, 0.483, 0.33, 0.25], [0.50, 0.55, 0.60, 0.25], [0.48, 0.583, 0.55, 0.48]]


def test_a_task_that_was_not_learned_does_not_hide_what_the_others_lost():
    found = protocol.summary(log(ISSUE))["forgetting_transfer"]
    assert found == pytest.approx(100 * (0.12 + 0.05) / (0.60 + 0.60 - 1 / 3))  # 19.6 %
    assert found.reason == "without nlvr2: the baseline (0.48 ±0.04) is not clearly above chance (0.50)"
    before = 100 * (0.12 - 0.10 + 0.05) / (0.60 + (0.483 - 0.5) + 0.60 - 1 / 3)
    assert before < found / 2, "pooled with it, most of the loss was gone"


@pytest.mark.parametrize("seed", range(20))
def test_pooled_measures_are_those_counted_by_hand(seed):
    random = np.random.default_rng(seed)
    floor = np.array(list(CHANCE.values()))
    rows = {}
    for name in ("finetune", "er", "ewc")[: 1 + seed % 3]:
        for number in range(1 + seed % 2):
            matrix = np.clip(floor + random.choice([0.01, 0.05, 0.3], (4, 4)) + random.normal(0, 0.02, (4, 4)), 0, 1)
            alone = np.clip(floor + random.choice([0.02, 0.3], 4) + random.normal(0, 0.02, 4), 0, 1)
            rows.setdefault(name, []).append((record(f"{name}{number}", matrix, alone, number, name), matrix, alone))
    runs = [run for own in rows.values() for run in own]
    for one, matrix, alone in runs:
        expected = by_hand(matrix, alone, learned(matrix, alone))
        assert near(one.summary["forgetting_transfer"], expected[0])
        assert near(one.summary["knowledge_transfer"], expected[1])
        for measure, tasks in (("forgetting_transfer", ORDER[:-1]), ("knowledge_transfer", ORDER)):
            short = {"forgetting_transfer": "T_F", "knowledge_transfer": "T_UK"}[measure]
            for task in tasks:
                named = task in one.reasons.get(measure, "")
                assert named == (task not in learned(matrix, alone)[short])
    kept = {m: set.intersection(*(learned(matrix, alone)[m] for _, matrix, alone in runs)) for m in ("T_F", "T_UK")}
    (experiment,) = experiments([one for one, _, _ in runs])
    table = comparison([one for one, _, _ in runs])
    for name, own in rows.items():
        shown = dict(zip(table.columns, next(row for row in table.rows if row[0] == name), strict=True))
        for place, (measure, title) in enumerate((("forgetting_transfer", "T_F ↓"), ("knowledge_transfer", "T_UK ↑"))):
            expected = [by_hand(matrix, alone, kept)[place] for _, matrix, alone in own]
            assert all(
                near(r.summary[measure], value) for r, value in zip(experiment.rows[name], expected, strict=True)
            )
            mean = "–" if None in expected else f"{np.mean(expected):.1f}"
            assert shown[title].partition(" ±")[0] == mean
    for measure, tasks in (("T_F", ORDER[:-1]), ("T_UK", ORDER)):
        for under in (table.notes, overview.comparison(experiment).notes):
            told = {task for task in tasks if any(n.startswith(f"{measure} leaves {task} out: ") for n in under)}
            assert told == set(tasks) - kept[measure]


def test_the_note_names_who_did_not_learn_a_task():
    alone, good = [0.6, 0.7, 0.6, 0.5], [[0.6] * 4, [0.6, 0.7, 0.6, 0.6], [0.6] * 4, [0.5] * 4]
    runs = [
        record("a", good, alone),
        record("b", good, alone, 1),
        record("c", ISSUE, alone, 0, "er"),
        record("d", good, alone, 1, "er"),
    ]
    notes = comparison(runs).notes
    assert (
        "T_F leaves nlvr2 out: the score right after its stage is not clearly above chance with er (1 of 2 seeds)."
        in (notes)
    )
    assert not any(note.startswith("T_UK leaves") for note in notes)


def test_where_every_task_is_left_out_there_is_a_dash_with_its_reason():
    first = [[0.6, 0.5, 1 / 3, 0.25], [0.5] * 4, [0.5, 0.5, 1 / 3, 0.25], [0.4] * 4]
    second = [[0.0, 0.6, 0.6, 0.25], [0.0, 0.6, 0.6, 0.25], [0.1, 0.6, 0.6, 0.25], [0.1, 0.6, 0.6, 0.25]]
    table = comparison([record("a", first), record("b", second, algorithm="er")])
    column = table.columns.index("T_F ↓")
    assert [row[column] for row in table.rows] == ["–", "–"]
    (told,) = (note for note in table.notes if note.startswith("finetune: no T_F: "))
    assert "no task counts: vqav2: left out of another run of this comparison; nlvr2: the baseline" in told


def test_a_record_of_an_earlier_version_says_so_or_is_counted_again_from_its_scores():
    old = replace(record("a", ISSUE, [0.6, 0.7, 0.6, 0.5]), shares={}, reasons={})
    old = replace(old, summary={**old.summary, "forgetting_transfer": 7.0})
    (experiment,) = experiments([old])
    ((shown,),) = experiment.rows.values()
    assert shown.summary["forgetting_transfer"] == pytest.approx(100 * 0.17 / (1.2 - 1 / 3))
    assert shown.summary["knowledge_transfer"] is None
    assert shown.reasons["knowledge_transfer"] == OLD
    assert f"finetune: no T_UK: {OLD}." in overview.comparison(experiment).notes


def test_a_completed_record_keeps_its_shares(tmp_path):
    store = Store(tmp_path)
    one = record("a" * 12, ISSUE)
    others = {}
    for number, (name, scores) in enumerate(direct([0.6, 0.52, 0.6, 0.5]).items()):
        other = replace(record(f"{number:012x}", ISSUE), scores=tuple(scores))
        others[name] = other.id
        store.folder(other.id).path.mkdir(parents=True)
        write_json(store.folder(other.id).path / "record.json", other.to_json())
    store.folder(one.id).path.mkdir(parents=True)
    done = complete(one, Climb(), others, store)
    read = store.folder(one.id).record()
    assert read == done
    assert set(read.shares) == {"forgetting_transfer", "knowledge_transfer"}
    assert read.shares["knowledge_transfer"]["nlvr2"]["doubt"]
    assert read.reasons["knowledge_transfer"].startswith("without nlvr2: ")
    for share in ({"change": "0.1"}, {"change": 0.1, "base": 0.0, "doubt": ""}, [0.1, 0.2, ""]):
        broken = json.loads(json.dumps(read.to_json()))
        broken["shares"]["knowledge_transfer"]["nlvr2"] = share
        with pytest.raises(UserError, match="shares"):
            Record.from_json(broken, "here")


def test_low_shot_transfer_leaves_out_what_the_pretrained_encoder_did_not_learn():
    random = np.random.default_rng(0)
    tasks = {"imdb": 0.5, "sst-2": 0.5, "piqa": 0.5, "hellaswag": 0.25}
    direct = {"imdb": 0.7, "sst-2": 0.52, "piqa": 0.62, "hellaswag": 0.26}

    def few(task, score):
        return [Score(1, 1, task, "test", 400, score), Score(1, 1, "guessing", "test", 400, tasks[task])]

    scores = {(stage, task, n): random.uniform(0.3, 0.8) for stage in (1, 2, 3) for task in tasks for n in range(3)}
    others = {f"lowshot/{s}/{t}/16/{n}": few(t, score) for (s, t, n), score in scores.items()}
    others |= {f"lowshot/0/{t}/16/{n}": few(t, direct[t] + 0.01 * (n - 1)) for t in tasks for n in range(3)}
    change = sum(
        np.mean([scores[stage, task, n] for n in range(3)]) - direct[task]
        for stage in (1, 2, 3)
        for task in ("imdb", "piqa")
    )
    found = transfer.measures(others)["low_shot_language"]
    assert found == pytest.approx(100 * change / (3 * (0.2 + 0.12)))
    assert found.reason.startswith("without sst-2 16: ")
    assert "; hellaswag 16: " in found.reason


def test_points_of_a_grid_are_compared_by_the_same_tasks():
    good = [[0.6] * 4, [0.6, 0.7, 0.6, 0.6], [0.5, 0.6, 0.6, 0.5], [0.5, 0.6, 0.6, 0.5]]
    logs = {"a": (log(ISSUE), {}), "b": (log(good), {})}
    nodes = {run: SimpleNamespace(benchmark=Climb()) for run in logs}
    found = _values(SimpleNamespace(configs=nodes), logs, "forgetting_transfer")
    assert found["a"] == pytest.approx(100 * 0.17 / (1.2 - 1 / 3))
    assert found["b"] == pytest.approx(100 * 0.1 / (1.2 - 1 / 3)), "without NLVR2, which only this one learned"
    assert _values(SimpleNamespace(configs=nodes), logs, "nlvr2") == {"a": 0.583, "b": 0.6}


def test_tasks_that_are_clear_one_by_one_are_clear_together():
    random = np.random.default_rng(0)
    for _ in range(1000):
        tasks = random.choice(ORDER, 3)
        scores, counts = random.uniform(0, 1, 3), random.integers(20, 2000, 3)
        if all(protocol.unclear([s], [n], CHANCE[t]) is None for s, n, t in zip(scores, counts, tasks, strict=True)):
            assert protocol.unclear(scores, counts, sum(CHANCE[t] for t in tasks)) is None


def test_a_task_that_was_not_scored_is_no_number():
    holes = [[0.6, 0.5], [math.nan, 0.7]]
    found = protocol.summary(log(holes, names=("vqav2", "nlvr2")))["forgetting_transfer"]
    assert math.isnan(found)
    assert found.reason == "no task counts: vqav2: it was not scored"


def test_a_number_that_leaves_something_out_is_copied_whole():
    found = pool({"a": Share(0.1, 0.5), "b": Share(0.1, 0.0, "at chance")})
    for same in (copy.copy(found), copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert isinstance(same, Partial)
        assert (same, same.reason) == (20.0, "without b: at chance")
    assert json.dumps(found) == "20.0"
