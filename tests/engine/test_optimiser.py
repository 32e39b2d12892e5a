import copy
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from holdfast.engine.optimiser import Optimiser
from holdfast.errors import UserError
from holdfast.types import Training

TRAININGS = {
    "adamw": Training(optimiser="adamw", learning_rate=0.01, weight_decay=0.1, betas=(0.8, 0.95), epsilon=1e-6),
    "adam": Training(optimiser="adam", learning_rate=0.01, weight_decay=0.1),
    "momentum": Training(optimiser="sgd", learning_rate=0.1, momentum=0.9, weight_decay=0.1),
    "sgd": Training(optimiser="sgd", learning_rate=0.1),
}


def torchs(training: Training, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    decays = {True: training.weight_decay, False: 0.0}
    groups = [
        {"params": [p for p in parameters if (p.ndim > 1) is matrix], "weight_decay": decay}
        for matrix, decay in decays.items()
    ]
    if training.optimiser == "sgd":
        # torch's own fused step fails where a parameter has its first gradient later than others.
        return torch.optim.SGD(
            groups, lr=training.learning_rate, momentum=training.momentum, fused=not training.momentum
        )
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[training.optimiser]
    return kind(groups, lr=training.learning_rate, betas=training.betas, eps=training.epsilon, fused=True)


def parameters() -> list[nn.Parameter]:
    torch.manual_seed(0)
    shapes, kinds = [(3, 4), (4,), (2, 2, 2), (5,), (3, 3)], [torch.float32] * 4 + [torch.float64]
    return [nn.Parameter(torch.randn(shape, dtype=kind)) for shape, kind in zip(shapes, kinds, strict=True)]


def named(parameters: list[nn.Parameter]) -> dict[str, nn.Parameter]:
    return {str(number): parameter for number, parameter in enumerate(parameters)}


def give_gradients(all_parameters: list[nn.Parameter], step: int) -> None:
    """Gradients of the step; in each, another parameter goes without, the second until the third step."""
    draw = torch.Generator().manual_seed(step)
    for index, parameter in enumerate(all_parameters):
        gradient = torch.randn(parameter.shape, generator=draw, dtype=parameter.dtype)
        without = index == step % 5 or (index == 1 and step < 3)
        parameter.grad = None if without else gradient


@pytest.mark.parametrize("name", TRAININGS)
def test_steps_are_torchs_to_the_bit(name):
    """Against another kernel than torch's fused one, to rounding."""
    tolerance = {"rtol": 1e-6, "atol": 1e-7} if name == "momentum" else {"rtol": 0, "atol": 0}
    own, other = parameters(), parameters()
    optimiser, reference = Optimiser(TRAININGS[name], named(own)), torchs(TRAININGS[name], other)
    for step in range(12):
        give_gradients(own, step)
        give_gradients(other, step)
        rate = 0.1 / (1 + step)
        optimiser.rate = rate
        for group in reference.param_groups:
            group["lr"] = rate
        optimiser.step()
        reference.step()
        for one, two in zip(own, other, strict=True):
            assert_close(one, two, **tolerance)
    for one, two in zip(own, other, strict=True):
        state = optimiser.state(one)
        assert state is not None
        for key, value in state.items():
            assert_close(value, reference.state[two][key], **tolerance)


@pytest.mark.parametrize("name", TRAININGS)
def test_a_virtual_step_is_the_real_one_and_leaves_no_trace(name):
    own = parameters()
    optimiser = Optimiser(TRAININGS[name], named(own))
    for step in range(6):
        give_gradients(own, step)
        before = copy.deepcopy([(p.detach(), optimiser.state(p)) for p in own])
        with optimiser.virtual_step():
            virtual = [p.detach().clone() for p in own]
        for (weight, state), parameter in zip(before, own, strict=True):
            now = optimiser.state(parameter)
            assert torch.equal(weight, parameter)
            assert (state is None) == (now is None)
            assert state is None or now is None or all(torch.equal(state[key], now[key]) for key in state)
        optimiser.step()
        assert all(torch.equal(one, two) for one, two in zip(virtual, own, strict=True))


@pytest.mark.parametrize("name", TRAININGS)
def test_parameters_have_rates_of_their_own(name):
    """Each group is torch's with that learning rate; the first pattern that matches counts."""
    training = replace(TRAININGS[name], rates=("1=0.5", "[12]=0.25", "3=0"))
    rates = [training.learning_rate, 0.5, 0.25, 0.0, training.learning_rate]
    own, other = parameters(), parameters()
    optimiser = Optimiser(training, named(own))
    alone = [torchs(replace(training, learning_rate=rate), [p]) for rate, p in zip(rates, other, strict=True)]
    for step in range(4):
        give_gradients(own, step)
        give_gradients(other, step)
        optimiser.step()
        for each in alone:
            each.step()
    for one, two in zip(own, other, strict=True):
        assert_close(one, two, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("word", ["encoder.*", "=0.1", "encoder.*=fast", "encoder.*=-1", "encoder.*=inf"])
def test_a_malformed_rate_is_refused(word):
    with pytest.raises(UserError, match="write PATTERN=RATE"):
        Optimiser(Training(rates=(word,)), {})


def test_saved_moments_take_the_order_of_the_parameters_numbers():
    parameter = nn.Parameter(torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last))
    optimiser = Optimiser(TRAININGS["adamw"], named([parameter]))
    moments = {"step": torch.tensor(3.0), "exp_avg": torch.randn(2, 3, 4, 4), "exp_avg_sq": torch.rand(2, 3, 4, 4)}
    optimiser.load(parameter, moments)
    found = optimiser.state(parameter)
    assert found is not None
    assert all(torch.equal(found[key], value) for key, value in moments.items())
    assert found["exp_avg"].stride() == found["exp_avg_sq"].stride() == parameter.stride()


def test_nothing_to_move_is_no_mistake():
    optimiser = Optimiser(Training(), {})
    optimiser.step()
    with optimiser.virtual_step():
        pass
