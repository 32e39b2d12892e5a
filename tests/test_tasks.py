import pytest
import torch

from holdfast.tasks import Classify
from holdfast.types import Part, Task

TASKS = [(Classify("colours", "colours", 4, 0.25), torch.tensor([0, 3, 1, 1, 2]))]


@pytest.mark.parametrize(("task", "targets"), TASKS, ids=lambda v: type(v).__name__)
def test_the_fused_loss_is_the_mean_of_the_losses(task, targets):
    output = torch.randn(len(targets), task.outputs, dtype=torch.float64)
    part = Part(task.name, {}, targets)
    assert task.losses(output, part).shape == (len(targets),)
    assert torch.allclose(task.loss(output, part), task.losses(output, part).mean(), rtol=0, atol=1e-14)
    assert torch.allclose(task.loss(output, part), Task.loss(task, output, part), rtol=0, atol=1e-14)


def test_classification_against_its_closed_form():
    task = TASKS[0][0]
    output, part = torch.zeros(2, 4), Part("colours", {}, torch.tensor([1, 2]))
    assert task.losses(output, part).tolist() == pytest.approx([torch.log(torch.tensor(4.0)).item()] * 2)
    assert task.predictions(torch.eye(4)).tolist() == [0, 1, 2, 3]
