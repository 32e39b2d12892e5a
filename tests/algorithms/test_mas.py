"""MAS: the importance against a closed form and one gradient at a time, and the penalty against algebra."""

import numpy as np
import pytest
import torch
from torch import nn

from holdfast.algorithms.mas import MAS
from holdfast.data.table import Data, Table
from holdfast.engine.learner import Learner
from holdfast.models.base import Network
from holdfast.models.perceptron import Perceptron
from holdfast.tasks import Classify, MaskedPhrase
from holdfast.types import Batch, Head, Inputs, Stage, Training
from smallest import prepared, trained

ROWS = 6
IDS = np.arange(ROWS)
STAGE = Stage("s", IDS, Training())


def learner_of() -> Learner:
    torch.manual_seed(0)
    model = Perceptron(width=5, depth=1).build(Inputs((1, 2, 2)), {"h": Head("classify", 3)}).double()
    images = torch.randint(256, (ROWS, 1, 2, 2), dtype=torch.uint8)
    return Learner(
        model,
        Data([Table("t", {"image": images}, torch.zeros(ROWS, dtype=torch.long))]),
        {"t": Classify("t", "h", 3, 1 / 3)},
    )


def after_one_stage(learner) -> MAS:
    algorithm = MAS()
    algorithm.setup(learner)
    algorithm.end(learner, STAGE)
    return algorithm


def test_importance_is_the_mean_size_of_each_examples_gradient():
    learner = learner_of()
    found = after_one_stage(learner).penalty.weights
    expected = {name: torch.zeros_like(p) for name, p in learner.trainable().items()}
    for row in range(ROWS):
        (output,) = learner.forward(learner.fetch(IDS[row : row + 1]))
        grads = torch.autograd.grad(output.square().sum(), list(learner.trainable().values()))
        for total, grad in zip(expected.values(), grads, strict=True):
            total += grad.abs() / ROWS
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value)
    assert learner.examples_forward == 2 * ROWS
    assert learner.examples_backward == ROWS


def test_importance_of_a_linear_layer_is_its_closed_form():
    """With f = W x + b, the gradient of ||f||^2 is 2 f x^T, and 2 f for the bias."""
    learner = learner_of()
    found = after_one_stage(learner).penalty.weights
    batch = learner.fetch(IDS)
    x = learner.model.encoder(batch.parts[0].inputs).detach()
    f = learner.forward(batch)[0].detach()
    torch.testing.assert_close(found["heads.h.classifier.bias"], (2 * f).abs().mean(0))
    torch.testing.assert_close(found["heads.h.classifier.weight"], 2 * f.abs().T @ x.abs() / ROWS)


def test_importance_adds_up_over_stages_and_the_last_weights_hold():
    learner = learner_of()
    algorithm = after_one_stage(learner)
    first = algorithm.penalty
    with torch.no_grad():
        for parameter in learner.model.parameters():
            parameter += 0.1
    algorithm.end(learner, STAGE)
    alone = after_one_stage(learner).penalty
    for name, parameter in learner.trainable().items():
        torch.testing.assert_close(algorithm.penalty.weights[name], first.weights[name] + alone.weights[name])
        assert torch.equal(algorithm.penalty.anchors[name], parameter)
    assert algorithm.memory_bytes(learner) == 2 * sum(p.nbytes for p in learner.trainable().values())


def test_the_gradient_is_that_of_the_penalty():
    learner = learner_of()
    algorithm = after_one_stage(learner)
    algorithm.strength = 0.7
    parameters = learner.trainable()
    with torch.no_grad():
        for parameter in parameters.values():
            parameter += torch.randn_like(parameter)
    held = algorithm.penalty
    penalty = 0.7 * sum((held.weights[n] * (p - held.anchors[n]) ** 2).sum() for n, p in parameters.items())
    expected = torch.autograd.grad(penalty, list(parameters.values()))
    for parameter in parameters.values():
        parameter.grad = torch.zeros_like(parameter)
    algorithm.grads(learner, Batch(IDS))
    for parameter, gradient in zip(parameters.values(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)


class Places(nn.Module):
    """The same logits at each of two places."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64))

    def forward(self, encoder, inputs):
        return self.bias.expand(len(inputs["text"]), 2, 3)


def test_a_place_without_a_word_does_not_count():
    targets = torch.tensor([[0, 1], [2, -100]])
    table = Table("t", {"text": torch.zeros(2, 4)}, targets)
    body = Perceptron(width=2, depth=0).encoder(Inputs((1, 1, 1)))
    learner = Learner(Network(body, {"h": Places()}), Data([table]), {"t": MaskedPhrase("t", "h", 3, 0.0)})
    algorithm = MAS()
    algorithm.setup(learner)
    algorithm.end(learner, Stage("s", np.arange(2), Training()))
    # Two places and one place, of slope 2 |f| each: on average 1.5 x 2 |f|.
    assert algorithm.penalty.weights["heads.h.bias"].tolist() == [3.0, 6.0, 9.0]


def test_beside_an_adapter_library_it_is_the_importance_of_what_is_trained():
    weights = []
    for pair in ("mas+adapter-library", "adapter-library+mas"):
        ready = prepared(pair)
        trained(ready)
        held = next(a for a in ready.algorithms if isinstance(a, MAS)).penalty
        weights.append(held.weights["heads.patterns.classifier.weight"])
    assert weights[0].max() > 0
    assert torch.equal(*weights)


@pytest.mark.parametrize("most", [1, ROWS - 1])
def test_the_importance_is_of_at_most_so_many_examples(most):
    learner = learner_of()
    algorithm = MAS(most=most)
    algorithm.setup(learner)
    algorithm.end(learner, STAGE)
    assert learner.examples_backward == most
