"""The loop against loops written out by hand, and against itself interrupted."""

import math
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch
from torch.nn import functional

from holdfast.algorithms.base import Algorithm
from holdfast.algorithms.replay import Replay
from holdfast.data.order import shuffled
from holdfast.engine.checkpoint import Checkpoints
from holdfast.engine.evaluate import evaluate
from holdfast.errors import Stopped, UserError
from smallest import Scores, StopAt, make_learner, prepared, trained


def weights(learner):
    return learner.model.state_dict()


def same(a, b):
    return all(torch.equal(a[name], b[name]) for name in a) and a.keys() == b.keys()


def by_hand(ready, transform=lambda ids: ids, steps=None):
    """Plain PyTorch: the loop that everyone writes."""
    learner = make_learner(ready)
    model, data = learner.model, learner.data.tables[0]
    for index, stage in enumerate(ready.setup.stream.stages):
        optimiser = torch.optim.AdamW(model.parameters(), lr=stage.training.learning_rate, weight_decay=0.0)
        for epoch in range(stage.training.epochs):
            ids = shuffled(stage.train, seed=0, stage=index, epoch=epoch)
            for start in range(0, len(ids), stage.training.batch_size):
                rows = torch.from_numpy(transform(ids[start : start + stage.training.batch_size]))
                optimiser.zero_grad()
                output = model({"image": data.inputs["image"][rows]}, "patterns")
                functional.cross_entropy(output, data.targets[rows]).backward()
                optimiser.step()
    return model.state_dict()


def test_fine_tuning_is_the_loop_that_everyone_writes():
    ready = prepared()
    learner, _ = trained(ready)
    expected = by_hand(ready)
    assert all(torch.allclose(weights(learner)[n], expected[n], rtol=0, atol=1e-12) for n in expected)


def test_replay_is_a_batch_of_new_and_kept_examples():
    """Written out with the memory's own rule, on one epoch so that each example is offered once."""
    ready = prepared("replay", train__epochs=1, replay__capacity=40)
    learner, _ = trained(ready)
    reference = Replay(capacity=40)
    reference.setup(learner)
    learner.epoch = 0

    def with_memory(new):
        kept = reference.kept.sample(len(new)) if len(reference.kept) else new[:0]
        reference.kept.add(new)
        return np.concatenate([new, kept])

    expected = by_hand(ready, with_memory)
    assert all(torch.allclose(weights(learner)[n], expected[n], rtol=0, atol=1e-12) for n in expected)
    assert learner.examples_backward > sum(len(s.train) for s in ready.setup.stream.stages)


def test_scores_are_those_of_the_weights_after_each_stage():
    ready = prepared()
    learner, log = trained(ready)
    test = [e for e in ready.setup.protocol.evaluations if e.split == "test"]
    assert [(s.stage, s.step, s.name) for s in log.scores if s.split == "test"] == [
        (stage, step, e.name) for stage, step in [(0, 0), (1, 6), (2, 12)] for e in test
    ]
    table = learner.data.tables[2]
    for evaluation in test:
        rows = torch.from_numpy(evaluation.ids - learner.data.offsets[2])
        answers = learner.model({"image": table.inputs["image"][rows]}, "patterns").argmax(1)
        share = (answers == table.targets[rows]).double().mean().item()
        (last,) = (s.score for s in log.scores if s.stage == 2 and s.name == evaluation.name and s.split == "test")
        assert last == pytest.approx(share, abs=1e-12)
        assert evaluate(learner, evaluation).score == last


@pytest.mark.parametrize("stop", [1, 4, 6, 7, 11])
@pytest.mark.parametrize("patience", [None, 1])
def test_a_stopped_run_goes_on_to_the_same_weights_and_scores(tmp_path, stop, patience):
    ready = prepared("replay", train__patience=patience, train__schedule="cosine", train__warmup=0.2)
    whole, expected = trained(ready)
    log = Scores()
    with pytest.raises(Stopped):
        trained(ready, checkpoints=Checkpoints(tmp_path), watch=StopAt(stop), log=log)
    log.add([(expected.scores[0], np.zeros(0))])  # a score that was written after the last checkpoint
    again, log = trained(
        prepared("replay", **{"train__patience": patience, "train__schedule": "cosine", "train__warmup": 0.2}),
        checkpoints=Checkpoints(tmp_path),
        log=log,
    )
    assert same(weights(whole), weights(again))
    assert log.scores == expected.scores
    assert whole.examples_forward == again.examples_forward


@dataclass
class BestOf(Algorithm):
    """Fits a stage several times from perturbed weights and keeps the best: a procedure of several fits."""

    tries: int = 3
    done: int = 0
    best: float = math.inf
    start: dict = field(default_factory=dict)
    kept: dict = field(default_factory=dict)

    def learn(self, learner, stage, fit):
        def perturb():
            if self.done == 0:
                self.start = {n: v.clone() for n, v in learner.model.state_dict().items()}
            learner.model.load_state_dict(self.start)
            generator = torch.Generator().manual_seed(self.done)
            with torch.no_grad():
                for parameter in learner.trainable().values():
                    parameter += 1e-2 * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)

        while self.done < self.tries:
            fit(perturb)
            loss = -sum(evaluate(learner, v).score for v in stage.validation)
            if loss < self.best:
                self.best, self.kept = loss, {n: v.clone() for n, v in learner.model.state_dict().items()}
            self.done += 1
        learner.model.load_state_dict(self.kept)
        self.done, self.best = 0, math.inf

    def state_dict(self):
        return {"done": self.done, "best": self.best, "start": self.start, "kept": self.kept}

    def load_state_dict(self, learner, state):
        self.done, self.best, self.start, self.kept = (state[k] for k in ("done", "best", "start", "kept"))


@pytest.mark.parametrize("stop", [1, 6, 8, 14, 20, 35])
def test_a_procedure_of_several_fits_resumes_inside_any_of_them(tmp_path, stop):
    ready = prepared()
    whole, expected = trained(ready, [BestOf()])
    with pytest.raises(Stopped):
        trained(ready, [BestOf()], Checkpoints(tmp_path), StopAt(stop))
    again, log = trained(ready, [BestOf()], Checkpoints(tmp_path))
    assert same(weights(whole), weights(again))
    assert log.scores[-1] == expected.scores[-1]


def test_procedures_nest_with_the_first_outermost():
    calls = []

    @dataclass
    class Twice(Algorithm):
        name: str

        def learn(self, learner, stage, fit):
            for turn in range(2):
                fit(lambda turn=turn: calls.append(f"{self.name}{turn}"))

    trained(prepared(benchmark__stages=1), [Twice("a"), Twice("b")])
    assert calls == ["a0", "b0", "b1", "a1", "b0", "b1"]


def test_hooks_combine_as_the_design_says():
    seen = []

    @dataclass
    class Spy(Algorithm):
        name: str

        def setup(self, learner):
            seen.append(f"setup {self.name}")

        def begin(self, learner, stage):
            seen.append(f"begin {self.name} {stage.name}")

        def end(self, learner, stage):
            seen.append(f"end {self.name} {stage.name}")

        def batch(self, learner, batch):
            return replace(batch, ids=np.append(batch.ids, batch.ids[-1:]))  # chain: each adds one row

        def loss(self, learner, batch, outputs):
            assert len(outputs[0]) == len(batch.ids)
            return sum((p**2).sum() for p in learner.trainable().values())  # sum

        def grads(self, learner, batch):
            for p in learner.trainable().values():
                p.grad.mul_(0.5)  # chain: a quarter in all

        def after(self, learner, batch):
            seen.append(len(batch.ids))

    ready = prepared(benchmark__stages=1, train__epochs=1, train__batch_size=80, train__optimiser="sgd")
    learner, _ = trained(ready, [Spy("a"), Spy("b")])
    assert seen == [
        "setup a",
        "setup b",
        "begin a stage-1",
        "begin b stage-1",
        80,
        80,
        "end a stage-1",
        "end b stage-1",
    ]
    first = make_learner(ready)
    ids = shuffled(ready.setup.stream.stages[0].train, seed=0, stage=0, epoch=0)
    batch = first.fetch(np.append(ids, [ids[-1], ids[-1]]))
    loss = first.losses(batch, first.outputs(batch)).mean()
    for _ in range(2):
        loss = loss + sum((p**2).sum() for p in first.trainable().values())
    names, parameters = zip(*first.trainable().items(), strict=True)
    for name, parameter, grad in zip(names, parameters, torch.autograd.grad(loss, parameters), strict=True):
        assert torch.allclose(weights(learner)[name], parameter - 3e-3 * 0.25 * grad, atol=1e-14)


def test_begin_and_end_are_silent_without_boundaries_and_a_need_for_them_is_refused():
    @dataclass
    class Loud(Algorithm):
        def begin(self, learner, stage):
            raise AssertionError

        end = begin

    trained(prepared(benchmark__boundaries=False), [Loud()])

    @dataclass
    class Needy(Algorithm):
        needs = frozenset({"boundaries"})

    with pytest.raises(UserError, match="Needy needs to know where one stage ends"):
        trained(prepared(benchmark__boundaries=False), [Needy()])


def test_the_best_epoch_by_validation_is_kept_and_patience_ends_a_stage():
    ready = prepared(benchmark__stages=1, train__epochs=30, train__patience=2, train__learning_rate=0.05)
    (stage,) = ready.setup.stream.stages
    scores = []

    @dataclass
    class Peek(Algorithm):
        steps: int = 0

        def after(self, learner, batch):
            self.steps += 1
            if self.steps % 3 == 0:
                scores.append(evaluate(learner, stage.validation[0]).score)

    learner, _ = trained(ready, [Peek()])
    assert len(scores) < 30
    best = int(np.argmax(scores))
    assert len(scores) == best + 3, "two epochs without a better one"
    assert evaluate(learner, stage.validation[0]).score == scores[best]


def test_a_step_draws_the_same_random_numbers_whatever_came_before():
    drawn = []

    @dataclass
    class Draw(Algorithm):
        skip: int

        def after(self, learner, batch):
            drawn.append(torch.rand(1).item())
            torch.rand(self.skip)

    trained(prepared(), [Draw(0)])
    trained(prepared(), [Draw(7)])
    half = len(drawn) // 2
    assert drawn[:half] == drawn[half:]
    assert len(set(drawn[:half])) == half


def test_evaluation_within_a_stage_does_not_change_the_training(tmp_path):
    ready = prepared("replay")
    whole, _ = trained(ready)
    often = replace(ready, setup=replace(ready.setup, protocol=replace(ready.setup.protocol, every=2)))
    again, log = trained(often)
    assert same(weights(whole), weights(again))
    assert {s.step for s in log.scores} == {0, 2, 4, 6, 8, 10, 12}
