"""Heads: a classifier that grows by the stages' classes, and heads over choices, images and hidden words."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from holdfast.algorithms.base import Algorithm
from holdfast.engine.checkpoint import Checkpoints
from holdfast.errors import Stopped
from holdfast.models.base import Encoder
from holdfast.models.heads import CLOSED, ChooseHead, ClassifyHead, HiddenLayerClassifier, Linear, PhraseHead
from holdfast.types import Head
from smallest import StopAt, make_learner, prepared, trained

CLASSES = [(2, 3), (0, 1), (4, 5)]
"""What the three stages bring, in an order of their own."""


def growing(**settings):
    """A class-incremental stream over one head that knows only the classes that came."""
    ready = prepared(benchmark__stages=3, benchmark__order="2>1>3", train__weight_decay=0.1, **settings)
    setup = ready.setup
    stages = [replace(stage, classes=classes) for stage, classes in zip(setup.stream.stages, CLASSES, strict=True)]
    tasks = {name: replace(task, growing=True) for name, task in setup.tasks.items()}
    return replace(ready, setup=replace(setup, stream=replace(setup.stream, stages=tuple(stages)), tasks=tasks))


class Openings(Algorithm):
    """At the end of each stage, the chance of each class on its data, and the classifier's weights."""

    def __init__(self):
        self.seen = []

    def end(self, learner, stage):
        classifier = learner.model.heads["patterns"].classifier
        with torch.no_grad():
            (output,) = learner.forward(learner.data.fetch(stage.train, learner.device))
        self.seen.append((output.softmax(-1), classifier.weight.clone(), classifier.bias.clone()))


def test_classes_are_opened_by_stages_and_the_closed_ones_are_out_of_the_game():
    openings, ready = Openings(), growing()
    learner, _ = trained(ready, [openings])
    known: set[int] = set()
    start = make_learner(ready).model.heads["patterns"].classifier
    for stage, (chances, weight, bias) in enumerate(openings.seen):
        known |= set(CLASSES[stage])
        closed = sorted(set(range(6)) - known)
        assert (chances[:, sorted(known)] > 0).all()
        assert (chances[:, closed] == 0).all()
        assert torch.equal(bias[closed], start.bias[closed]), "no gradient, and biases do not decay"
        steps = 6 * (stage + 1)
        torch.testing.assert_close(weight[closed], start.weight[closed] * (1 - 3e-3 * 0.1) ** steps)
    assert not learner.model.heads["patterns"].classifier.closed.any()


def test_a_closed_class_gets_no_gradient_and_takes_no_part():
    torch.manual_seed(0)
    layer = Linear(3, 4, growing=True).double()
    layer.open_classes([1, 2])
    x, targets = torch.randn(5, 3, dtype=torch.float64), torch.tensor([1, 2, 2, 1, 1])
    loss = nn.functional.cross_entropy(layer(x), targets)
    alone = nn.functional.cross_entropy(x @ layer.weight[[1, 2]].T + layer.bias[[1, 2]], targets - 1)
    torch.testing.assert_close(loss, alone)
    loss.backward()
    assert (layer.weight.grad[[0, 3]] == 0).all()
    assert (layer.weight.grad[[1, 2]] != 0).all()
    assert layer(x)[:, 0].tolist() == [CLOSED] * 5
    layer.open_classes(None)
    torch.testing.assert_close(layer(x), x @ layer.weight.T + layer.bias)


@pytest.mark.parametrize("stop", [2, 8, 14])
def test_what_is_open_is_kept_over_a_resumption(stop, tmp_path):
    openings, later = Openings(), Openings()
    trained(growing(), [openings])
    with pytest.raises(Stopped):
        trained(growing(), [Openings()], checkpoints=Checkpoints(tmp_path), watch=StopAt(stop))
    trained(growing(), [later], checkpoints=Checkpoints(tmp_path))
    for one, other in zip(openings.seen[::-1], later.seen[::-1], strict=False):
        assert all(torch.equal(*pair) for pair in zip(one, other, strict=True))


class Given(Encoder):
    """The inputs are the vectors, of examples or of words."""

    width = 3

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(7, 3)

    def stem(self):
        return []

    def layers(self):
        return []

    def forward(self, inputs):
        return inputs["x"]

    def words(self, inputs):
        return inputs["x"]

    def word_embedding(self):
        return self.table


@pytest.fixture
def encoder():
    torch.manual_seed(1)
    return Given().double()


def test_two_images_stand_side_by_side(encoder):
    head = encoder.head(Head("classify", 4, images=2)).double()
    x = torch.randn(5, 2, 3, dtype=torch.float64)
    weight, bias = head.classifier.weight, head.classifier.bias
    expected = x[:, 0] @ weight[:, :3].T + x[:, 1] @ weight[:, 3:].T + bias
    torch.testing.assert_close(head(encoder, {"x": x}), expected)


def test_each_choice_is_scored_alone_whatever_their_number(encoder):
    head = ChooseHead(3).double().eval()
    x = torch.randn(5, 4, 3, dtype=torch.float64)
    found = head(encoder, {"x": x})
    assert found.shape == (5, 4)
    for choice in range(4):
        torch.testing.assert_close(head(encoder, {"x": x[:, choice : choice + 1]})[:, 0], found[:, choice])


def test_hidden_words_share_the_word_embedding_and_others_do_not_matter(encoder):
    head = PhraseHead(encoder.word_embedding()).double()
    nn.init.normal_(head.bias)
    x, masked = torch.randn(2, 6, 3, dtype=torch.float64), torch.tensor([[4, 0], [5, -1]])
    found = head(encoder, {"x": x, "masked": masked})
    for row, place in [(0, 0), (0, 1), (1, 0)]:
        state = head.transform(x[row, masked[row, place]])
        state = nn.functional.layer_norm(nn.functional.gelu(state), (3,), head.norm.weight, head.norm.bias, 1e-12)
        torch.testing.assert_close(found[row, place], encoder.table.weight @ state + head.bias)
    assert not any(parameter is encoder.table.weight for parameter in head.parameters()), "it is the encoder's"


def test_the_classifier_of_climb_has_a_hidden_layer_and_can_grow(encoder):
    head = ClassifyHead(HiddenLayerClassifier(3, 5, hidden=6, growing=True).double())
    first, norm, _, last = head.classifier
    last.open_classes([0, 4])
    x = torch.randn(2, 3, dtype=torch.float64)
    hidden = nn.functional.gelu(nn.functional.layer_norm(first(x), (6,), norm.weight, norm.bias))
    found = head(encoder, {"x": x})
    torch.testing.assert_close(found[:, [0, 4]], (hidden @ last.weight.T + last.bias)[:, [0, 4]])
    assert (found.softmax(-1)[:, 1:4] == 0).all()
