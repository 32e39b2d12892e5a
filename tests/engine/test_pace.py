"""Budgets: a run ends within them, evenly along the stream, and a stopped run goes on as if it had not been."""

from dataclasses import replace

import pytest
import torch

from holdfast.engine.checkpoint import Checkpoints
from holdfast.engine.loop import train
from holdfast.errors import Stopped, UserError
from holdfast.experiments.request import budget_of
from holdfast.types import Budget
from smallest import Scores, StopAt, make_learner, prepared


def run(budget, algorithm="finetune", folder=None, watch=None, log=None, **settings):
    ready, log = prepared(algorithm, **settings), log or Scores()
    learner, setup = make_learner(ready), ready.setup
    checkpoints = None if folder is None else Checkpoints(folder)
    at = train(
        learner, setup.stream, ready.algorithms, setup.protocol,
        log=log, checkpoints=checkpoints, watch=watch, budget=budget,
    )  # fmt: skip
    return learner, at, log


def test_a_budget_that_suffices_changes_nothing():
    plain, expected, _ = run(None)
    found, at, _ = run(Budget(flops=expected.spent[-1][2]))
    assert all(torch.equal(a, b) for a, b in zip(plain.model.parameters(), found.model.parameters(), strict=True))
    assert (at.skipped, at.spent) == (0, expected.spent)


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_every_algorithm_spends_the_same_and_sees_all_of_the_stream(share):
    """Replay pays for its extra passes: it takes fewer steps, of which each stage has its part."""
    plain = run(None)[0].counter.flops
    longest = plain * 64 / 320
    """A step of 32 new and 32 kept examples; there are 320 examples in two epochs of two stages."""
    skipped = {}
    for algorithm in ("finetune", "er"):
        learner, at, _ = run(Budget(flops=share * plain), algorithm)
        assert share * plain - longest < learner.counter.flops < share * plain + longest
        assert at.total == 12
        _, first, second = (spent for _, _, spent, *_ in at.spent)
        assert abs(first - (second - first)) <= longest
        skipped[algorithm] = at.skipped
    assert 0 < skipped["finetune"] < skipped["er"]


def test_a_budget_of_passes_counts_examples():
    learner, at, _ = run(Budget(passes=100))
    assert 100 - 64 < learner.examples_forward + learner.examples_backward <= 100
    assert at.skipped > 0


def test_a_budget_of_bytes_ends_training_once_more_is_kept():
    _, at, _ = run(Budget(bytes=1e4), "er", replay__capacity=400)
    assert 0 < at.skipped < at.total
    assert run(Budget(bytes=1e9), "er", replay__capacity=400)[1].skipped == 0


@pytest.mark.parametrize("stop", [1, 2, 3])
@pytest.mark.parametrize("algorithm", ["er", "mir+ewc"])
def test_a_stopped_run_spends_its_budget_as_if_it_had_not_been(tmp_path, stop, algorithm):
    budget = Budget(flops=0.8 * run(None)[0].counter.flops)
    whole, expected, scores = run(budget, algorithm)
    log = Scores()
    with pytest.raises(Stopped):
        run(budget, algorithm, tmp_path, StopAt(stop), log)
    again, at, log = run(budget, algorithm, tmp_path, log=log)
    assert replace(at, seconds=0.0) == replace(expected, seconds=0.0)
    assert log.scores == scores.scores
    assert again.counter.flops == whole.counter.flops
    assert all(torch.equal(a, b) for a, b in zip(whole.model.parameters(), again.model.parameters(), strict=True))


def test_a_stage_that_is_fitted_several_times_cannot_be_paced():
    with pytest.raises(UserError, match="several times and keeps one of the results, so a budget cannot be spread"):
        run(Budget(flops=1e9), "rpsnet")


@pytest.mark.parametrize("text", ["flops", "flops=1,flops=2", "flops=0", "time=3", "flops=many"])
def test_a_budget_that_cannot_be_read_is_refused(text):
    with pytest.raises(UserError, match="budget"):
        budget_of(text)
