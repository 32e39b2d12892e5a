"""The hooks of methods that do not learn by gradients: `observe`, `route`, and `learn` without a fit."""

from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from holdfast.algorithms.base import Algorithm
from holdfast.engine.checkpoint import Checkpoints
from holdfast.errors import Stopped, UserError
from smallest import StopAt, prepared, trained


@dataclass
class Sums(Algorithm):
    """Sums what the encoder gives for each class; never takes a step."""

    sums: torch.Tensor = field(init=False, repr=False)
    counts: torch.Tensor = field(init=False, repr=False)
    stop: StopAt | None = None
    """Asked to stop after the first batch of a stage."""

    def setup(self, learner):
        self.sums, self.counts = torch.zeros(8, learner.model.encoder.width, dtype=torch.float64), torch.zeros(8)

    def learn(self, learner, stage, fit):
        pass

    def observe(self, learner, stage, batches):
        sums, counts = torch.zeros_like(self.sums), torch.zeros_like(self.counts)
        assert not learner.model.training
        for batch in batches:
            for part in batch.parts:
                sums.index_add_(0, part.targets, learner.model.features(part.inputs).double())
                counts.index_add_(0, part.targets, torch.ones(len(part.targets)))
            if self.stop is not None:
                self.stop.stopping = True
        self.sums, self.counts = self.sums + sums, self.counts + counts

    def route(self, learner, inputs, head, answer):
        if not self.counts.any():
            return answer(inputs, head)
        means = self.sums / self.counts.clamp(min=1)[:, None]
        near = -torch.cdist(learner.model.features(inputs), means).masked_fill(self.counts == 0, 1e4)
        return near.to(next(learner.model.parameters()).dtype)

    def state_dict(self):
        return {"sums": self.sums, "counts": self.counts}

    def load_state_dict(self, learner, state):
        self.sums, self.counts = state["sums"], state["counts"]


@dataclass
class Twice(Sums):
    """Named apart, for a run with two of them."""


def test_each_example_is_seen_once_and_nothing_is_trained():
    ready, sums = prepared(), Sums()
    learner, log = trained(ready, [sums])
    assert (learner.examples_backward, learner.optimiser.rate > 0) == (0, True)
    (part,) = learner.fetch(np.concatenate([stage.train for stage in ready.setup.stream.stages])).parts
    assert torch.equal(sums.counts, torch.bincount(part.targets, minlength=8).float())
    of_class = torch.nn.functional.one_hot(part.targets, 8).double()
    assert_close(sums.sums, of_class.T @ learner.model.features(part.inputs).double())
    for evaluation in ready.setup.protocol.evaluations:
        (part,) = learner.fetch(evaluation.ids).parts
        means = (sums.sums / sums.counts[:, None])[sums.counts > 0]
        near = torch.cdist(learner.model.features(part.inputs), means).argmin(1)
        last = next(s.score for s in reversed(log.scores) if (s.name, s.split) == (evaluation.name, evaluation.split))
        assert last == (near == part.targets).double().mean().item()


def test_an_interrupted_pass_begins_again_and_training_does_not(tmp_path):
    """The second of two passes over the first stage is interrupted: neither the fit nor the first pass is repeated."""

    @dataclass
    class Fits(Sums):
        learn = Algorithm.learn

    plain = trained(prepared(), [Fits(), Twice()])
    watch = StopAt(10**6)
    interrupted = [Fits(), Twice(stop=watch)]
    with pytest.raises(Stopped):
        trained(prepared(), interrupted, checkpoints=Checkpoints(tmp_path), watch=watch)
    again = [Fits(), Twice()]
    learner, log = trained(prepared(), again, checkpoints=Checkpoints(tmp_path))
    assert log.scores[-1] == plain[1].scores[-1]
    assert learner.examples_backward == plain[0].examples_backward
    assert torch.equal(again[0].sums, again[1].sums)


@dataclass
class Named(Algorithm):
    """Notes that it was asked, and passes on."""

    name: str = ""
    asked: list[str] = field(default_factory=list)

    def route(self, learner, inputs, head, answer):
        self.asked.append(self.name)
        return answer(inputs, head)


def test_routes_nest_the_first_outermost_and_only_in_evaluation():
    asked = []
    learner, _ = trained(prepared(), [Named("outer", asked), Named("inner", asked)])
    assert asked[:2] == ["outer", "inner"]
    assert asked[::2] == ["outer"] * (len(asked) // 2)
    before = len(asked)
    learner.train_mode()
    learner.outputs(learner.fetch(learner.data.ids(0)[:4]))
    assert len(asked) == before


def test_a_pattern_of_a_rate_that_matches_nothing_is_refused_before_training():
    with pytest.raises(UserError, match=r"train.rates has 'encodr.\*', which matches no parameter: there are encoder."):
        trained(prepared(train__rates="encodr.*=0.1"))
    learner, _ = trained(prepared(train__rates="encoder.*=0"))
    still, _ = trained(prepared("frozen-encoder"))
    for name, value in learner.model.encoder.state_dict().items():
        assert torch.equal(value, still.model.encoder.state_dict()[name]), name
