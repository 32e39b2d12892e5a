"""SI: the path integral against the fall of a loss that can be written down, and the penalty against algebra."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn

from holdfast.algorithms.si import SI
from holdfast.data.table import Data, Table
from holdfast.engine.learner import Learner
from holdfast.engine.loop import train
from holdfast.engine.watch import NoLog
from holdfast.errors import UserError
from holdfast.models.base import Encoder, Network
from holdfast.types import Batch, Protocol, Stage, Stream, Task, Training
from smallest import prepared, trained

CURVATURE = torch.tensor([1.0, 3.0, 0.0], dtype=torch.float64)


class Theta(Encoder):
    width = 3

    def __init__(self):
        super().__init__()
        self.theta = nn.Parameter(torch.tensor([0.5, -1.0, 2.0]))

    def stem(self):
        return []

    def layers(self):
        return []

    def forward(self, inputs):
        raise AssertionError


class Itself(nn.Module):
    """A head that gives the encoder's weights."""

    def forward(self, encoder, inputs):
        return encoder.theta


@dataclass(frozen=True)
class Bowl(Task):
    """Half the sum of h (theta - target)^2; the third weight does not matter to it."""

    name: str = "bowl"
    head: str = "h"
    outputs: int = 3
    chance: float = 0.0

    def forward(self, model, part):
        return model(part.inputs, self.head).expand(len(part.targets), -1)

    def losses(self, output, part):
        return 0.5 * (CURVATURE * (output - part.targets) ** 2).sum(-1)

    def predictions(self, output, part):
        raise AssertionError

    def score(self, predictions, targets):
        raise AssertionError


GOALS = torch.tensor([[1.0, 1.0, 0.0], [-2.0, 0.5, 0.0], [3.0, -1.0, 0.0]], dtype=torch.float64)


def run(stages: int, algorithms, **training) -> Learner:
    """One example a stage, so that a stage's loss is a bowl around one goal."""
    learner = Learner(Network(Theta(), {"h": Itself()}).double(), Data([Table("bowl", {}, GOALS)]), {"bowl": Bowl()})
    settings = Training(**({"epochs": 50, "optimiser": "sgd", "learning_rate": 0.02} | training))
    plan = tuple(Stage(str(k), np.array([k]), settings) for k in range(stages))
    train(learner, Stream(plan), algorithms, Protocol(()), log=NoLog())
    return learner


def test_the_falls_are_those_of_the_loss():
    """Gradient descent shrinks a gap by 1 - rate h a step, so the falls are a geometric series.

    With a rate that tends to 0 the sum is half h (gap)^2: the fall of the loss along each weight.
    """
    rate, steps, damping = 0.02, 60, 0.5
    algorithm = SI(damping=damping)
    learner = run(1, [algorithm], epochs=steps, learning_rate=rate)
    start = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64)
    left = (1 - rate * CURVATURE) ** (2 * steps)
    fall = CURVATURE * (GOALS[0] - start) ** 2 * (1 - left) / (2 - rate * CURVATURE)
    moved = learner.model.encoder.theta.detach() - start
    torch.testing.assert_close(algorithm.penalty.weights["encoder.theta"], fall / (moved**2 + damping))


def test_each_step_counts_its_gradient_without_the_penalty_times_its_movement():
    """Two stages of a few steps by hand: gradient descent with the penalty, the path without it."""
    rate, strength, damping = 0.05, 2.0, 0.1
    algorithm = SI(strength=strength, damping=damping)
    learner = run(2, [algorithm], epochs=7, learning_rate=rate)
    theta, importance = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64), torch.zeros(3, dtype=torch.float64)
    for goal in GOALS[:2]:
        anchor, fall = theta.clone(), torch.zeros(3, dtype=torch.float64)
        for _ in range(7):
            gradient = CURVATURE * (theta - goal)
            moved = -rate * (gradient + 2 * strength * importance * (theta - anchor))
            fall -= gradient * moved
            theta = theta + moved
        assert (fall >= 0).all()
        importance = importance + fall / ((theta - anchor) ** 2 + damping)
    torch.testing.assert_close(learner.model.encoder.theta.detach(), theta)
    torch.testing.assert_close(algorithm.penalty.weights["encoder.theta"], importance)


@pytest.mark.parametrize("strength", [0.0, 0.4])
def test_on_a_quadratic_loss_it_ends_in_the_minimum_that_algebra_gives(strength):
    first = SI()
    before = run(1, [first], epochs=200, learning_rate=0.1).model.encoder.theta.detach()
    held = 2 * strength * first.penalty.weights["encoder.theta"]
    after = run(2, [SI(strength=strength)], epochs=200, learning_rate=0.1).model.encoder.theta.detach()
    expected = (CURVATURE * GOALS[1] + held * before) / (CURVATURE + held).clamp(min=1e-300)
    expected[2] = 2.0  # nothing moves it
    torch.testing.assert_close(after, expected, rtol=1e-6, atol=1e-6)


def test_a_movement_that_raised_the_loss_weighs_nothing():
    """Momentum, or a projection, may carry a weight against its gradient: its fall is negative."""
    learner, algorithm = run(0, []), SI(damping=0.01)
    theta = learner.model.encoder.theta
    algorithm.setup(learner)
    algorithm.begin(learner, Stage("s", np.array([0]), Training()))
    theta.grad = torch.tensor([1.0, -1.0, 1.0], dtype=torch.float64)
    algorithm.grads(learner, Batch(np.array([0])))
    with torch.no_grad():
        theta += 0.1
    algorithm.after(learner, Batch(np.array([0])))
    algorithm.end(learner, Stage("s", np.array([0]), Training()))
    expected = torch.tensor([0.0, 0.1 / (0.1**2 + 0.01), 0.0], dtype=torch.float64)
    torch.testing.assert_close(algorithm.penalty.weights["encoder.theta"], expected)


def test_a_second_step_for_a_batch_and_a_search_over_paths_are_refused():
    for names, settings, words in (
        ("si+replay", {"replay__mode": "separate"}, r"set replay\.mode=joint"),
        ("replay+si", {"replay__mode": "separate"}, r"set replay\.mode=joint"),
        ("mir+si", {"mir__fidelity": "released"}, r"set mir\.fidelity=paper"),
        ("si+mntdp", {}, "fits a stage several times"),
        ("rpsnet+si", {}, "fits a stage several times"),
    ):
        with pytest.raises(UserError, match=words):
            trained(prepared(names, **settings))


def test_the_first_stage_is_fine_tuning_and_bytes_are_counted():
    algorithm = SI(strength=50.0)
    learner = run(1, [algorithm])
    assert torch.equal(learner.model.encoder.theta, run(1, []).model.encoder.theta)
    assert algorithm.memory_bytes(learner) == 2 * learner.model.encoder.theta.nbytes
    algorithm.begin(learner, Stage("next", np.array([1]), Training()))
    assert algorithm.memory_bytes(learner) == 3 * learner.model.encoder.theta.nbytes
