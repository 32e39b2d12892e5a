"""ZSCL and WiSE-FT: what is averaged, what is distilled, and from which data."""

import copy
from unittest import mock

import numpy as np
import pytest
import torch

from holdfast.algorithms.base import Algorithm
from holdfast.algorithms.wise_ft import WiseFT
from holdfast.algorithms.zscl import Zscl
from holdfast.experiments.request import Request
from holdfast.tasks import softmax_divergence
from smallest import prepare, prepared, trained


class Notes(Algorithm):
    """Keeps the weights at each stage's beginning and end, and after each step."""

    def __init__(self):
        self.steps, self.starts, self.ends = [], [], []

    def begin(self, learner, stage):
        self.starts.append(copy.deepcopy(learner.model.state_dict()))
        self.steps.append([])

    def after(self, learner, batch):
        self.steps[-1].append(copy.deepcopy(learner.model.state_dict()))

    def end(self, learner, stage):
        self.ends.append(copy.deepcopy(learner.model.state_dict()))


def assert_same(found, expected):
    for name, value in found.items():
        torch.testing.assert_close(value, expected[name], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("towards", ["stage", "start"])
def test_the_weights_lie_between_old_and_new_ones(towards):
    before, after = Notes(), Notes()
    trained(prepared(), [before, WiseFT(share=0.3, towards=towards), after])
    for stage in range(2):
        old = before.starts[0 if towards == "start" else stage]
        expected = {name: 0.3 * value + 0.7 * old[name] for name, value in before.ends[stage].items()}
        assert_same(after.ends[stage], expected)


@pytest.mark.filterwarnings("ignore:zscl")
def test_a_stage_ends_with_the_average_of_its_weights():
    notes, after = Notes(), Notes()
    trained(prepared(), [notes, Zscl(strength=0, consolidation=0, every=2), after])
    for stage in range(2):
        joined = [notes.starts[stage], *notes.steps[stage][1::2]]
        expected = {name: sum(each[name] for each in joined) / len(joined) for name in joined[0]}
        assert_same(after.ends[stage], expected)


def test_a_stage_that_is_too_short_for_an_average_keeps_its_weights(caplog):
    notes, after = Notes(), Notes()
    trained(prepared(), [notes, Zscl(strength=0, consolidation=0), after])
    assert_same(after.ends[1], notes.steps[1][-1])
    assert "has no task 'reference'" in caplog.text


@pytest.mark.filterwarnings("ignore:zscl")
def test_a_stage_may_be_just_long_enough_for_an_average():
    plain, notes, after = Notes(), Notes(), Notes()
    trained(prepared(), [plain])
    trained(prepared(), [notes, Zscl(strength=0, consolidation=0, every=len(plain.steps[0])), after])
    expected = {name: (value + notes.steps[0][-1][name]) / 2 for name, value in notes.starts[0].items()}
    assert_same(after.ends[0], expected)


@pytest.mark.filterwarnings("ignore:zscl")
def test_without_a_reference_the_first_model_teaches_on_the_stages_data():
    algorithm = Zscl(strength=0.5, temperature=3.0, consolidation=0.0)
    learner, _ = trained(prepared(), [algorithm])
    batch = learner.fetch(np.arange(9))
    outputs = learner.outputs(batch)
    taught = algorithm._first(batch.parts[0].inputs, "patterns")
    expected = 2 * 0.5 * 9 * softmax_divergence(taught, outputs[0], 3.0).mean()
    torch.testing.assert_close(algorithm.loss(learner, batch, outputs), expected)
    assert expected > 0


@pytest.mark.filterwarnings("ignore:zscl")
def test_the_gradient_pulls_to_the_beginning_of_the_stage():
    algorithm = Zscl(strength=0, consolidation=0.25)
    learner, _ = trained(prepared(), [algorithm])
    for weight in learner.parameters.values():
        weight.grad = torch.zeros_like(weight)
    algorithm.grads(learner, None)
    for name, weight in learner.parameters.items():
        penalty = 0.25 * (weight - algorithm._start[name]).square().sum()
        (expected,) = torch.autograd.grad(penalty, weight)
        torch.testing.assert_close(weight.grad, expected)


def test_on_captions_only_the_images_move_away_from_the_first_model(tiny_cache):
    with mock.patch.dict("os.environ", HOLDFAST_CACHE=str(tiny_cache)):
        ready = prepare(Request("mtil", "zscl", scale="tiny", settings={"train.epochs": 1, "benchmark.order": "mnist"}))
        algorithm = Zscl(temperature=1.5, size=8)
        learner, _ = trained(ready, [algorithm])
        taken = []
        fetch = learner.fetch
        with mock.patch.object(learner, "fetch", lambda ids, **named: taken.append(ids) or fetch(ids, **named)):
            found = algorithm.loss(learner, None, ())
    (ids,) = taken
    first, last = ready.setup.data.offsets[2:4]
    assert len(ids) == 8
    assert ((ids >= first) & (ids < last)).all(), "the reference"
    (part,) = fetch(ids, augment=False).parts
    task = learner.tasks["reference"]
    old, new = (task.forward(model.eval(), part) for model in (algorithm._first, learner.model))
    total = 0
    for text in range(1, old.shape[1]):
        taught, now = old[:, 0] @ old[:, text].T, new[:, 0] @ old[:, text].T
        total += softmax_divergence(taught, now, 1.5).mean() + softmax_divergence(taught.T, now.T, 1.5).mean()
    torch.testing.assert_close(found, 1.5**2 * total / (old.shape[1] - 1), rtol=1e-4, atol=1e-5)


def test_the_reference_is_the_task_that_is_named():
    algorithm = Zscl(reference="patterns", size=7)
    learner, _ = trained(prepared(), [algorithm])
    taken = [algorithm._next(learner.seed) for _ in range(2)]
    assert all(len(np.unique(ids)) == 7 for ids in taken)
    assert not set(taken[0]) & set(taken[1])
    (rows, times), *_ = algorithm.passes(learner, None)
    assert len(rows) == len(learner.data)
    assert times > 1


def test_the_reference_is_seen_whole_before_any_of_it_is_seen_again():
    zscl = Zscl(size=2)
    zscl._reference, zscl._used = np.arange(10, 16), 0
    first, second = (np.concatenate([zscl._next(seed=3) for _ in range(3)]) for _ in range(2))
    assert sorted(first) == sorted(second) == list(range(10, 16))
    assert list(first) != list(second)
