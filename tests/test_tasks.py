import numpy as np
import pytest
import torch
from torch.nn import functional

from holdfast.metrics import vqa_accuracy
from holdfast.tasks import Choose, Classify, MaskedPhrase, MultiLabel, SoftLabel
from holdfast.types import Part, Task

ANSWERS = torch.tensor([[[0, 3, -1], [1.0, 0.3, 0.0]], [[2, -1, -1], [0.6, 0.0, 0.0]]], dtype=torch.float64)
TASKS = [
    (Classify("colours", "colours", 4, 0.25), torch.tensor([0, 3, 1, 1, 2]), (5, 4)),
    (Choose("endings", "endings", 4, 0.25), torch.tensor([0, 3]), (2, 4)),
    (SoftLabel("answers", "answers", 4, 0.1), ANSWERS, (2, 4)),
    (MultiLabel("things", "things", 4, 0.1), torch.tensor([[0, 1, 1, 0], [0, 0, 0, 0]]), (2, 4)),
    (MaskedPhrase("words", "words", 7, 0.0), torch.tensor([[6, 0, 2], [1, -100, -100]]), (2, 3, 7)),
]


@pytest.mark.parametrize(("task", "targets", "shape"), TASKS, ids=lambda v: type(v).__name__)
def test_the_fused_loss_is_the_mean_of_the_losses(task, targets, shape):
    output = torch.randn(shape, dtype=torch.float64)
    part = Part(task.name, {}, targets)
    assert task.losses(output, part).shape == (len(targets),)
    assert torch.allclose(task.loss(output, part), task.losses(output, part).mean(), rtol=0, atol=1e-14)
    assert torch.allclose(task.loss(output, part), Task.loss(task, output, part), rtol=0, atol=1e-14)
    assert len(task.predictions(output, part)) == len(targets)


def test_classification_against_its_closed_form():
    task = TASKS[0][0]
    output, part = torch.zeros(2, 4), Part("colours", {}, torch.tensor([1, 2]))
    assert task.losses(output, part).tolist() == pytest.approx([torch.log(torch.tensor(4.0)).item()] * 2)
    assert task.predictions(torch.eye(4), part).tolist() == [0, 1, 2, 3]


def test_soft_labels_against_dense_ones():
    task, output = TASKS[2][0], torch.randn(2, 4, dtype=torch.float64)
    dense = torch.tensor([[1.0, 0, 0, 0.3], [0, 0, 0.6, 0]], dtype=torch.float64)
    mean = functional.binary_cross_entropy_with_logits(output, dense)
    assert task.loss(output, Part("answers", {}, ANSWERS)).item() == pytest.approx(4 * mean.item(), rel=1e-12)
    chosen = output.argmax(-1).numpy()
    assert task.score(chosen, ANSWERS.numpy()) == pytest.approx(vqa_accuracy(chosen, dense.numpy()))


def test_a_phrase_counts_once_however_many_words_it_has():
    task, targets = TASKS[4][0], TASKS[4][1]
    logits = torch.randn(2, 3, 7, dtype=torch.float64)
    part = Part("words", {}, targets)
    logs = logits.log_softmax(-1)
    by_hand = [-(logs[0, 0, 6] + logs[0, 1, 0] + logs[0, 2, 2]) / 3, -logs[1, 0, 1]]
    assert task.losses(logits, part).tolist() == pytest.approx([float(x) for x in by_hand])
    predictions = task.predictions(logits, part)
    assert predictions.shape == (2, 6)
    assert predictions[1, :3].tolist() == pytest.approx([-float(logs[1, 0, 1]), 0, 0], rel=1e-6)
    assert predictions[0, 3:].tolist() == logits[0].argmax(-1).tolist()
    assert task.score(predictions.numpy(), targets.numpy()) == pytest.approx(-float(sum(by_hand)) / 2, rel=1e-6)


def test_several_labels_are_scored_by_the_counts_of_all_classes_together():
    task = TASKS[3][0]
    predictions = np.array([[0, 1, 0, 1], [0, 0, 0, 0]], bool)
    assert task.score(predictions, TASKS[3][1].numpy()) == pytest.approx(2 * 1 / (2 * 1 + 1 + 1))
