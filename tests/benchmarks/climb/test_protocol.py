"""CLiMB's measures, against the paper's own tables and examples worked by hand."""

import math
from dataclasses import replace

import pytest

from holdfast.benchmarks.climb import protocol
from holdfast.papers import table
from holdfast.types import Score

ORDER = ("vqav2", "nlvr2", "snli-ve", "vcr")


def log(rows, names=ORDER, before=None):
    """A score log whose matrix is these rows."""
    rows = [before or [0.0] * len(names), *rows]
    return [
        Score(stage, 10 * stage, name, "test", 100, value)
        for stage, row in enumerate(rows)
        for name, value in zip(names, row, strict=True)
    ]


def direct(**scores):
    named = {name.replace("_", "-"): score for name, score in scores.items()}
    return {f"direct/{name}": log([[score]], (name,)) for name, score in named.items()}


@pytest.mark.parametrize("algorithm", ["seqft", "frozen-encoder", "er", "ewc", "adapters"])
def test_the_papers_knowledge_transfer_from_its_scores(algorithm):
    published = table("climb", 3)
    score = {name: published.value("score", algorithm=algorithm, task=name) / 100 for name in ORDER}
    alone = {name: published.value("score", algorithm="direct", task=name) / 100 for name in ORDER}
    rows = [[score[name] if column == stage else 0 for column, name in enumerate(ORDER)] for stage in range(4)]
    found = protocol.transfers(log(rows), {f"direct/{n}": log([[s]], (n,)) for n, s in alone.items()})
    for name in ORDER:
        printed = published.value("transfer", algorithm=algorithm, task=name)
        assert found[name] == pytest.approx(printed, abs=0.75), "printed from unrounded scores"
    together = protocol.relative(log(rows), {f"direct/{n}": log([[s]], (n,)) for n, s in alone.items()})
    gained, there = sum(score.values()) - sum(alone.values()), sum(alone.values()) - (0 + 1 / 2 + 1 / 3 + 1 / 4)
    assert together["knowledge_transfer"] == pytest.approx(100 * gained / there)


def test_forgetting_by_hand():
    rows = [[0.6, 0.5], [0.3, 0.75]]
    scores = log(rows, ("vqav2", "nlvr2"))
    assert protocol.forgettings(scores) == {("vqav2", "nlvr2"): pytest.approx(50)}
    found = protocol.summary(scores)
    assert found["forgetting_transfer"] == pytest.approx(50)
    assert found["backward_transfer"] == pytest.approx(-0.3)
    assert found["final_accuracy"] == pytest.approx((0.3 + 0.75) / 2)
    assert (found["vqav2"], found["nlvr2"]) == (0.3, 0.75)


def test_forgetting_is_of_all_earlier_tasks_after_the_last():
    rows = [[0.8, 0.5, 0.3], [0.4, 1.0, 0.3], [0.6, 0.75, 0.9]]
    found = protocol.forgettings(log(rows, ("vqav2", "nlvr2", "snli-ve")))
    assert found == {
        ("vqav2", "nlvr2"): pytest.approx(50),
        ("vqav2", "snli-ve"): pytest.approx(25),
        ("nlvr2", "snli-ve"): pytest.approx(50),  # from chance at 0.5
    }
    assert protocol.summary(log(rows, ("vqav2", "nlvr2", "snli-ve")))["forgetting_transfer"] == pytest.approx(
        100 * (1.3 - 0.85) / 1.3
    )


def test_nothing_lost_is_exactly_zero():
    rows = [[0.6, 0.5], [0.6, 0.75]]
    assert protocol.summary(log(rows, ("vqav2", "nlvr2")))["forgetting_transfer"] == 0


def test_forward_transfer_counts_from_the_model_before_training():
    scores = log([[0.6, 0.55], [0.3, 0.75]], ("vqav2", "nlvr2"), before=[0.0, 0.45])
    assert protocol.summary(scores)["forward_transfer"] == pytest.approx(0.1)


def test_intransigence_against_the_joint_run():
    scores = log([[0.6, 0.5], [0.3, 0.75]], ("vqav2", "nlvr2"))
    joint = log([[0.5, 0.85]], ("vqav2", "nlvr2"))
    found = protocol.relative(scores, {"joint": joint, **direct(vqav2=0.6, nlvr2=0.7)})
    assert found["intransigence"] == pytest.approx(0.85 - 0.75)
    assert found["knowledge_transfer"] == pytest.approx(100 * 0.05 / (0.6 + 0.2))


def test_the_joint_run_has_transfer_and_no_forgetting():
    joint = log([[0.5, 0.85]], ("vqav2", "nlvr2"))
    alone = protocol.summary(joint)
    assert alone["forgetting_transfer"].reason == "needs one stage for each task, but there are 1 for 2"
    found = protocol.transfers(joint, direct(vqav2=0.4, nlvr2=0.75))
    assert found == {"vqav2": pytest.approx(25), "nlvr2": pytest.approx(40)}


def test_what_is_missing_is_told():
    scores = log([[0.6, 0.5], [0.3, 0.75]], ("vqav2", "nlvr2"))
    found = protocol.relative(scores, direct(vqav2=0.6))
    assert math.isnan(found["knowledge_transfer"])
    assert "direct/nlvr2" in found["knowledge_transfer"].reason
    below = protocol.relative(scores, direct(vqav2=0.0, nlvr2=0.5))
    assert "not clearly above chance" in below["knowledge_transfer"].reason
    alone = protocol.summary(log([[0.6]], ("vqav2",)))
    assert "two tasks" in alone["forgetting_transfer"].reason
    assert "is the direct run itself" in alone["knowledge_transfer"].reason
    assert "--no-needs" not in alone["knowledge_transfer"].reason
    assert "run it without --no-needs" in protocol.summary(scores)["knowledge_transfer"].reason
    assert "intransigence" not in found
    assert "intransigence" not in protocol.summary(scores), "a column only where it was asked for"


def test_every_measure_has_a_title():
    scores = log([[0.6] * 4] * 4)
    assert set(protocol.summary(scores)) <= set(protocol.MEASURES)
    assert set(protocol.relative(scores, {})) <= set(protocol.MEASURES)


def test_a_share_of_a_baseline_near_chance_is_left_undefined():
    width = 1.96 * math.sqrt(0.58 * 0.42 / 100)
    assert 0.58 - width < 0.5, "over 100 examples, its interval reaches chance"
    scores = log([[0.6, 0.5], [0.3, 0.75]], ("vqav2", "nlvr2"))
    found = protocol.transfers(scores, direct(vqav2=0.6, nlvr2=0.58))
    assert found["vqav2"] == 0
    assert found["nlvr2"].reason == "the baseline (0.58 ±0.10) is not clearly above chance (0.50)"
    scores = log([[0.58, 0.1], [0.52, 0.75]], ("nlvr2", "vqav2"))
    assert protocol.forgettings(scores)["nlvr2", "vqav2"].reason == found["nlvr2"].reason
    assert protocol.summary(scores)["forgetting_transfer"].reason == f"no task counts: nlvr2: {found['nlvr2'].reason}"
    many = [replace(score, count=1000) for score in scores]
    assert protocol.forgettings(many)["nlvr2", "vqav2"] == pytest.approx(100 * 0.06 / 0.08)
