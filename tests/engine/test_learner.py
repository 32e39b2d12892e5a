import numpy as np
import pytest
import torch

from holdfast.engine.learner import Learner
from holdfast.types import Training
from smallest import make_learner, prepared


def rates(training, steps):
    learner = make_learner(prepared())
    learner.restart(training, steps)
    found = []
    for step in range(steps):
        learner.step(step)
        found.append(learner.optimiser.rate)
    return found


def test_the_linear_schedule_is_that_of_the_papers():
    """Warm-up over 10 % of the steps, then linear to 0: compared with torch's own LambdaLR."""
    parameter = torch.nn.Parameter(torch.zeros(()))
    optimiser = torch.optim.SGD([parameter], lr=0.5)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda s: s / 10 if s < 10 else (100 - s) / 90)
    expected = []
    for _ in range(100):
        expected.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        schedule.step()
    assert rates(Training(learning_rate=0.5, schedule="linear", warmup=0.1), 100) == pytest.approx(expected)


def test_the_cosine_schedule_is_torchs():
    optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(()))], lr=0.5)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=50)
    expected = []
    for _ in range(50):
        expected.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        schedule.step()
    assert rates(Training(learning_rate=0.5, schedule="cosine"), 50) == pytest.approx(expected)


def test_a_schedule_may_end_above_zero_as_torchs():
    optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(()))], lr=0.5)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=50, eta_min=0.02)
    expected = []
    for _ in range(50):
        expected.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        schedule.step()
    assert rates(Training(learning_rate=0.5, schedule="cosine", lowest_rate=0.02), 50) == pytest.approx(expected)
    linear = rates(Training(learning_rate=0.5, schedule="linear", lowest_rate=0.1), 50)
    assert linear == pytest.approx(np.linspace(0.5, 0.1, 51)[:-1])
    assert rates(Training(learning_rate=0.5, schedule="cosine", lowest_rate=2.0), 9) == [0.5] * 9, "never above"


def test_the_rate_is_halved_after_each_fifth():
    optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(()))], lr=0.5)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimiser, [20, 40, 60, 80], gamma=0.5)
    expected = []
    for _ in range(100):
        expected.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        schedule.step()
    assert rates(Training(learning_rate=0.5, schedule="halving"), 100) == expected


@pytest.mark.parametrize("optimiser", ["adamw", "adam", "sgd"])
def test_matrices_decay_and_vectors_do_not(optimiser):
    learner = make_learner(prepared())
    learner.restart(Training(optimiser=optimiser, weight_decay=0.1, momentum=0.9), 1)
    decays = {id(p): group.decay for group in learner.optimiser.groups for p in group.parameters}
    for parameter in learner.trainable().values():
        assert decays[id(parameter)] == (0.1 if parameter.ndim > 1 else 0.0)


def test_frozen_modules_stay_in_evaluation_mode_and_get_no_gradient():
    learner = make_learner(prepared())
    learner.freeze(learner.model.encoder)
    learner.train_mode()
    assert not learner.model.encoder.training
    assert learner.model.heads.training
    learner.restart(Training(), 1)
    batch = learner.fetch(np.arange(4))
    learner.backward(learner.loss(batch, learner.outputs(batch)), batch)
    assert {name for name, p in learner.model.named_parameters() if p.grad is not None} == set(learner.trainable())
    assert set(learner.trainable()) == {"heads.patterns.classifier.weight", "heads.patterns.classifier.bias"}


def test_bfloat16_computes_in_it_and_keeps_weights_and_losses_in_float32():
    ready = prepared()
    learner = make_learner(ready)
    learner = Learner(learner.model.float(), learner.data, learner.tasks, autocast=torch.bfloat16)
    batch = learner.fetch(np.arange(8))
    (output,) = learner.outputs(batch)
    assert output.dtype == torch.float32
    assert torch.equal(output, output.bfloat16().float()), "values have bfloat16's precision"
    assert learner.model.heads["patterns"].classifier.weight.dtype == torch.float32


def test_evaluation_mode_for_a_moment_ends_where_it_began():
    learner = make_learner(prepared())
    learner.freeze(learner.model.encoder)
    learner.restart(Training(), 1)
    modes = {name: module.training for name, module in learner.model.named_modules()}
    with learner.evaluating():
        assert not any(module.training for module in learner.model.modules())
    assert {name: module.training for name, module in learner.model.named_modules()} == modes
    assert set(modes.values()) == {True, False}
