"""A batch that is computed in pieces: the same steps as the whole batch, for every algorithm that allows it."""

import numpy as np
import pytest
import torch

from conformance.cases import NAMES
from holdfast.algorithms.fisher import batched
from holdfast.data.table import Data, Table
from holdfast.engine.checkpoint import Checkpoints
from holdfast.engine.learner import Learner
from holdfast.engine.loop import train
from holdfast.engine.watch import NoLog
from holdfast.errors import Stopped, UserError
from holdfast.models.dual import Dual
from holdfast.tasks import Retrieve
from holdfast.types import Inputs, Protocol, Stage, Stream, Training
from smallest import StopAt, make_learner, prepared, trained

WHOLE_BATCH = {"er-ace", "derpp"}
"""Their losses are no means over examples, each for itself."""
UNEVEN = {"train__batch_size": 30, "train__optimiser": "sgd", "train__momentum": 0.9}
"""Batches of 30, 30 and 20, with replay of twice as many: none falls into seven equal pieces."""


def same(one, other):
    weights = other.model.state_dict()
    for name, value in one.model.state_dict().items():
        assert value.dtype in (torch.float64, torch.int64, torch.bool)
        assert torch.allclose(value, weights[name], rtol=0, atol=1e-10), name


@pytest.mark.parametrize(
    ("name", "settings"),
    [(name, {}) for name in NAMES if name not in WHOLE_BATCH]
    + [
        ("replay", {"replay__mode": "separate"}),
        ("replay", {"benchmark__setting": "task"}),
        ("lwf", {"benchmark__setting": "task", "lwf__on": "old-heads"}),
        ("mir", {"mir__fidelity": "released"}),
        ("mir+ewc", {}),
        ("ewc+replay", {}),
        ("ewc", {"ewc__fisher": "batched"}),
    ],
)
def test_pieces_give_the_weights_scores_and_passes_of_the_whole_batch(name, settings):
    whole, expected = trained(prepared(name, **UNEVEN, **settings))
    pieces, log = trained(prepared(name, **UNEVEN, **settings, train__accumulate=7))
    same(whole, pieces)
    assert log.scores == expected.scores
    assert (pieces.examples_forward, pieces.examples_backward) == (whole.examples_forward, whole.examples_backward)


@pytest.mark.parametrize(
    ("name", "own"), [("er-ace", {}), ("derpp", {}), ("replay", {"replay__memory": "balanced-forget"})]
)
def test_a_loss_over_the_whole_batch_is_refused_in_pieces(name, own):
    with pytest.raises(UserError, match=r"needs each batch as a whole.*set train.accumulate=1"):
        trained(prepared(name, train__accumulate=2, **own))


def test_contrastive_training_is_refused_in_pieces():
    """A piece would be compared with fewer others, and nothing would say so."""
    texts = {"text": torch.randint(5, 30, (8, 5, 6)), "text_length": torch.full((8, 5), 6)}
    data = Data([Table("captions", {"image": torch.zeros(8, 3, 32, 32), **texts}, torch.zeros(8))])
    task = Retrieve("captions", "compare", 0, 0.1)
    recipe = Dual(image="vit-tiny", text="bert-tiny", width=8)
    model = recipe.build(Inputs((3, 32, 32), text=6, vocabulary=30), {task.head: task.reads})
    stream = Stream((Stage("one", data.ids(0), Training(accumulate=2)),))
    with pytest.raises(UserError, match="the task 'captions' compares each example with all others of its batch"):
        train(Learner(model, data, {task.name: task}), stream, [], Protocol(()), log=NoLog())
    ready = prepared("zscl", zscl__reference="patterns", train__accumulate=2)
    with pytest.raises(UserError, match=r"zscl needs each batch as a whole.*set train.accumulate=1"):
        trained(ready)


def test_a_run_takes_each_batch_in_as_many_pieces_as_it_is_told(monkeypatch):
    sizes, backward = [], Learner.backward

    def note(self, loss, batch, **where):
        sizes.append(len(batch.ids))
        backward(self, loss, batch, **where)

    monkeypatch.setattr(Learner, "backward", note)
    trained(prepared("agem", train__accumulate=4, train__epochs=1, train__batch_size=40))
    assert sizes == [10] * (4 * 2 + 4 * 2 * 2), "two steps a stage; in the second, each with one on kept examples"


def test_batch_normalisation_is_refused_where_it_learns():
    learner = make_learner(prepared())
    learner.model.encoder.add_module("norm", torch.nn.BatchNorm2d(3))
    with pytest.raises(UserError, match=r"this model's encoder.norm normalises over the whole of it"):
        learner.refuse_pieces([])
    learner.freeze(learner.model.encoder)
    learner.refuse_pieces([])


def test_the_loss_and_the_gradient_are_means_over_the_batch_and_not_means_of_means():
    """7 examples in 3 pieces, of 3, 2 and 2: against the mean of the losses of single examples."""
    learner, ids = make_learner(prepared()), np.arange(7)
    learner.restart(Training(accumulate=3), 1)
    sizes, forward = [], learner.forward
    learner.forward = lambda batch: sizes.append(len(batch.ids)) or forward(batch)
    loss = learner.gradients(ids)
    assert sizes == [3, 2, 2]
    found = {name: p.grad.clone() for name, p in learner.parameters.items()}
    one_by_one = [learner.losses(batch := learner.fetch(ids[i : i + 1]), forward(batch)).squeeze() for i in range(7)]
    mean = torch.stack(one_by_one).mean()
    assert loss.item() == pytest.approx(mean.item(), abs=1e-14)
    expected = torch.autograd.grad(mean, list(learner.parameters.values()))
    for (name, gradient), other in zip(found.items(), expected, strict=True):
        assert torch.allclose(gradient, other, rtol=0, atol=1e-14), name


@pytest.mark.parametrize("running", [False, True])
def test_the_batched_fisher_comes_in_pieces_and_is_that_of_whole_batches(running):
    """Two batches of 8 and one of 4, in three pieces each, of pictures as they are, whatever training does to them."""
    found, sizes = {}, []
    for pieces, augment in ((1, "none"), (3, "flip")):
        learner = make_learner(prepared())
        learner.restart(Training(accumulate=pieces, augment=augment), 1)
        forward, sizes = learner.forward, []
        learner.forward = lambda batch, forward=forward, sizes=sizes: sizes.append(len(batch.ids)) or forward(batch)
        found[pieces] = batched(learner, np.arange(20), learner.parameters, size=8, running=running)
        assert (learner.examples_forward, learner.examples_backward) == (20, 20)
    assert sizes == [3, 3, 2, 3, 3, 2, 2, 1, 1]
    for name, value in found[1].items():
        assert value.dtype == torch.float64
        assert value.max() > 1e-6
        assert torch.allclose(found[3][name], value, rtol=0, atol=1e-10), name


def test_more_pieces_than_examples_are_as_many_as_examples():
    learner = make_learner(prepared())
    learner.restart(Training(accumulate=64), 1)
    learner.gradients(np.arange(3))
    assert learner.examples_backward == 3


def test_what_an_algorithm_adds_is_counted_once():
    """A penalty on the weights, which does not depend on the examples: not once for each piece."""
    learner = make_learner(prepared())
    weight = learner.model.heads["patterns"].classifier.weight

    class Penalty:
        def loss(self, learner, batch, outputs):
            return weight.square().sum()

    learner.restart(Training(accumulate=4), 1)
    learner.gradients(np.arange(10))
    plain = weight.grad.clone()
    learner.gradients(np.arange(10), [Penalty()])
    assert torch.allclose(weight.grad - plain, 2 * weight, rtol=0, atol=1e-12)


def test_a_run_in_pieces_resumes_exactly_and_has_an_id_of_its_own(tmp_path):
    ready = prepared("replay", train__accumulate=3)
    whole, expected = trained(ready)
    with pytest.raises(Stopped):
        trained(prepared("replay", train__accumulate=3), checkpoints=Checkpoints(tmp_path), watch=StopAt(4))
    again, log = trained(prepared("replay", train__accumulate=3), checkpoints=Checkpoints(tmp_path))
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, again.model.state_dict()[name]), name
    assert log.scores[-1] == expected.scores[-1]
    plain = prepared("replay").config
    assert plain.id != ready.config.id
    assert "accumulate" not in plain.training[0], "runs without it keep the ids that they always had"
    assert ready.config.training[0]["accumulate"] == 3
