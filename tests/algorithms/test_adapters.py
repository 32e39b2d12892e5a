"""Adapters and low-rank additions for each head: what stays, what learns, and which set answers."""

from dataclasses import dataclass, field

import numpy as np
import pytest
import torch

from holdfast.algorithms.base import Algorithm
from holdfast.errors import UserError
from holdfast.types import Training
from smallest import make_learner, prepared, trained

TASKS = {"benchmark__setting": "task", "train__weight_decay": 0.1}


@dataclass
class Answers(Algorithm):
    """What the model answers at the end of each stage on the first stage's test data, and its weights then."""

    ids: np.ndarray
    seen: list = field(default_factory=list)
    weights: list = field(default_factory=list)

    def end(self, learner, stage):
        self.seen.append(answers(learner, self.ids))
        self.weights.append({name: value.clone() for name, value in learner.model.state_dict().items()})


def answers(learner, ids):
    """The outputs for these examples, of one task, as an evaluation takes them."""
    learner.model.eval()
    with torch.no_grad():
        (found,) = learner.forward(learner.data.fetch(ids, learner.device))
    learner.train_mode()
    return found


def first_test(ready):
    return next(chosen.ids for chosen in ready.setup.protocol.evaluations if chosen.split == "test")


def begun(name, **settings):
    """The learner of a run as it is before the first step."""
    ready = prepared(name, **(TASKS | settings))
    learner = make_learner(ready)
    learner.draw_at(-1)
    for algorithm in ready.algorithms:
        algorithm.setup(learner)
    learner.restart(Training(), 1)
    return ready, learner


def disturb(learner):
    """Every number of every set drawn at random, so that each set answers in its own way."""
    draw = torch.Generator().manual_seed(5)
    for name, parameter in learner.model.named_parameters():
        if ".added." in name:
            parameter.data = torch.randn(parameter.shape, generator=draw, dtype=parameter.dtype)


@pytest.mark.parametrize("name", ["adapters", "lora", "adapters+replay"])
def test_earlier_tasks_are_answered_the_same_to_the_last_bit(name):
    ready = prepared(name, benchmark__stages=3, **TASKS)
    kept = Answers(first_test(ready))
    learner, _ = trained(ready, [*ready.algorithms, kept])
    first, second, third = kept.seen
    if "replay" in name:  # the first task's set goes on learning, from kept examples
        assert not torch.equal(first, third)
    else:
        assert torch.equal(first, second)
        assert torch.equal(first, third)
    before, after = kept.weights[0], learner.model.state_dict()
    moved = {key for key, value in before.items() if not torch.equal(value, after[key])}
    assert any(".added.stage-3." in key for key in moved), "the last set learned"
    own = [key for key in before if key.startswith("encoder.") and ".added." not in key]
    assert own
    assert not moved & set(own), "the encoder did not"


@pytest.mark.parametrize(("name", "near"), [("adapters", 1e-4), ("lora", 0.0)])
def test_it_starts_as_the_model_without(name, near):
    ready, learner = begun(name)
    plain = make_learner(ready)
    ids = first_test(ready)
    gap = (answers(learner, ids) - answers(plain, ids)).abs().max()
    assert gap <= near
    disturb(learner)
    assert (answers(learner, ids) - answers(plain, ids)).abs().max() > 0.1


@pytest.mark.parametrize("reduction", [2, 8, 64])
def test_what_learns_is_the_heads_and_the_sets(reduction):
    """In each of two blocks two bottlenecks: a matrix and a bias down, a matrix and a bias up."""
    _, learner = begun("adapters", adapters__reduction=reduction, model__width=16)
    narrow = max(16 // reduction, 1)
    each = 2 * 2 * (16 * narrow + narrow + narrow * 16 + 16)
    sets = {name: p.numel() for name, p in learner.trainable().items() if ".added." in name}
    heads = {name for name, _ in learner.model.named_parameters() if name.startswith("heads.")}
    assert learner.trainable().keys() == sets.keys() | heads
    for head in learner.model.heads:
        assert sum(count for name, count in sets.items() if f".added.{head}." in name) == each


def test_in_one_batch_each_head_has_its_own_set():
    ready, learner = begun("adapters")
    disturb(learner)
    first, second = (stage.train[:5] for stage in ready.setup.stream.stages)
    both = learner.fetch(np.concatenate([second, first]))
    learner.model.eval()
    outputs = learner.forward(both)
    for part, output in zip(both.parts, outputs, strict=True):
        learner.model.active = part.task
        assert torch.equal(learner.model(part.inputs, part.task), output)
        other = next(head for head in learner.model.heads if head != part.task)
        learner.model.active = other
        assert not torch.allclose(learner.model(part.inputs, part.task), output)
        learner.model.active = None
    learner.train_mode()
    for ids, task in ((first, "stage-1"), (second, "stage-2")):
        batch = learner.fetch(ids)
        learner.backward(learner.loss(batch, learner.outputs(batch)), batch)
        reached = {name for name, p in learner.trainable().items() if p.grad is not None}
        assert reached == {n for n in learner.trainable() if f".added.{task}." in n or n.startswith(f"heads.{task}.")}


@pytest.mark.parametrize("pair", ["adapters+lora", "lora+adapters", "adapters+adapter-library", "adapter-library+lora"])
def test_two_that_add_to_the_same_blocks_are_refused_by_name(pair):
    one, other = pair.split("+")
    with pytest.raises(
        UserError, match=f"{one} needs the transformer blocks to itself, and {other} adds .*: leave one of the two out"
    ):
        trained(prepared(pair))


@pytest.mark.parametrize("name", ["adapters", "lora", "adapter-library"])
def test_a_model_without_blocks_is_refused(name):
    with pytest.raises(UserError, match=f"^{name} adds to transformer blocks, but this model has none: choose"):
        trained(prepared(), prepared(name).algorithms)
