import copy
from dataclasses import dataclass, replace
from inspect import isabstract

import numpy as np
import pytest
import torch
from torch.nn import functional

from holdfast import tasks
from holdfast.algorithms.lwf import LwF
from holdfast.errors import UserError
from holdfast.metrics import vqa_accuracy
from holdfast.tasks import Choose, Classify, MaskedPhrase, MultiLabel, SoftLabel
from holdfast.tasks.pairs import details, filled
from holdfast.types import Part, Task
from smallest import prepared, trained

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


# Kinds of task


def test_every_kind_is_final_and_says_how_it_is_distilled():
    kinds = [kind for kind in vars(tasks).values() if isinstance(kind, type) and not isabstract(kind)]
    kinds = [kind for kind in kinds if issubclass(kind, Task)]
    assert len(kinds) == 8
    for kind in kinds:
        assert all(isabstract(base) for base in kind.__bases__)
        assert kind.divergence is not Task.divergence
        assert "version" in vars(kind)


@dataclass(frozen=True)
class Near(Task):
    """A user's kind: the output should be 1 for the right class, and 0 for others."""

    name: str = "patterns"
    head: str = "patterns"
    outputs: int = 4
    chance: float = 0.25

    def forward(self, model, part):
        return model(part.inputs, self.head)

    def losses(self, output, part):
        return (output - functional.one_hot(part.targets, self.outputs)).square().sum(-1)

    def predictions(self, output, part):
        return output.argmax(-1)

    def score(self, predictions, targets):
        return float((predictions == targets).mean())


@dataclass(frozen=True)
class Taught(Near):
    """The same, which can be distilled."""

    def divergence(self, taught, output, part, temperature, units):
        return ((taught - output) / temperature).square().sum(-1)


def of_kind(task):
    ready = prepared()
    return replace(ready, setup=replace(ready.setup, tasks={"patterns": task}))


def test_a_users_kind_of_task_is_distilled_by_its_own_divergence():
    ready, algorithm = of_kind(Taught()), LwF(strength=0.7, temperature=3.0)
    learner, _ = trained(ready, [algorithm])
    (part,) = (batch := learner.fetch(ready.setup.stream.stages[1].train[:9])).parts
    teacher = copy.deepcopy(learner.model)
    with torch.no_grad():
        for parameter in learner.model.parameters():
            parameter.add_(0.1)
    outputs = learner.outputs(batch)
    gap = outputs[0] - teacher(part.inputs, "patterns")
    torch.testing.assert_close(algorithm.loss(learner, batch, outputs), 0.7 * gap.square().sum() / 9 / 9)


def test_a_kind_without_a_divergence_is_refused_before_training():
    with pytest.raises(UserError, match=r"task 'patterns' cannot be distilled: Near does not define divergence\(.*Add"):
        trained(of_kind(Near()), [LwF()])
    with pytest.raises(UserError, match="task 'patterns' cannot be distilled"):
        Near().divergence(None, None, None, 1.0, None)


# Images and texts compared

PROMPTS = tasks.Prompts(np.ones((4, 1, 3), np.int32), np.full((4, 1), 3, np.int32))


def test_prompts_are_filled_and_bad_ones_refused():
    assert filled(["cat"], ["a {}.", "the {}!"], "pets") == [["a cat.", "the cat!"]]
    with pytest.raises(UserError, match="pets: class 1 has no name"):
        filled(["cat", " "], ["a {}."], "pets")
    with pytest.raises(UserError, match="the template 'a cat' must have exactly one slot"):
        filled(["cat"], ["a cat"], "pets")
    with pytest.raises(UserError, match="pets has no templates"):
        filled(["cat"], [], "pets")


def test_candidates_decide_which_classes_compete():
    logits, part = torch.tensor([[9.0, 1.0, 3.0, 0.0]]), Part("own", {}, torch.tensor([1]))
    own = tasks.Prompted("own", "head", 4, 0.5, PROMPTS, 1, 2)
    every = replace(own, candidates="all")
    assert own.predictions(logits, part).tolist() == [2]
    assert every.predictions(logits, part).tolist() == [0]
    assert own.losses(logits, part).item() == pytest.approx(-logits[0, 1:3].log_softmax(-1)[0].item())
    assert every.losses(logits, part).item() == pytest.approx(-logits[0].log_softmax(-1)[1].item())
    assert replace(own, candidates="seen").reads.growing
    assert own.units(part.targets).tolist() == [1, 2]
    taught = logits + torch.tensor([[0.0, 0.0, 0.0, 5.0]])
    assert own.divergence(taught, logits, part, 2.0, torch.tensor([1, 2])).item() == pytest.approx(0, abs=1e-6)


def paired(rows=3, texts=2, width=4):
    draw = torch.Generator().manual_seed(4)
    return torch.randn(rows, 1 + texts, width, generator=draw, dtype=torch.float64)


@pytest.mark.parametrize("pairing", ["softmax", "sigmoid"])
def test_the_contrastive_losses_are_those_of_the_papers(pairing):
    output, total = paired(), torch.zeros(3, dtype=torch.float64)
    for text in range(2):
        logits = output[:, 0] @ output[:, 1 + text].T
        for row in range(3):
            if pairing == "softmax":
                by_image, by_text = logits[row].log_softmax(0)[row], logits[:, row].log_softmax(0)[row]
                total[row] -= (by_image + by_text) / 2 / 2
            else:
                signs = torch.tensor([1.0 if row == other else -1.0 for other in range(3)])
                total[row] -= (signs * logits[row]).sigmoid().log().sum() / 2
    task = tasks.Retrieve("pairs", "head", 0, 0.0, pairing=pairing)
    found = task.losses(output, Part("pairs", {}, torch.arange(3)))
    torch.testing.assert_close(found, total)


def test_retrieval_is_distilled_in_both_directions():
    task, part, output, taught = (
        tasks.Retrieve("pairs", "head", 0, 0.0),
        Part("pairs", {}, torch.arange(3)),
        paired(),
        paired() * 2,
    )
    rows = torch.zeros(3, dtype=torch.float64)
    for text in range(2):
        for way in (lambda logits: logits, lambda logits: logits.T):
            old, new = (way(each[:, 0] @ each[:, 1 + text].T) / 1.5 for each in (taught, output))
            rows += (old.softmax(-1) * (old.log_softmax(-1) - new.log_softmax(-1))).sum(-1) / 4
    torch.testing.assert_close(task.divergence(taught, output, part, 1.5, torch.arange(0)), rows)
    assert task.divergence(output, output, part, 1.5, torch.arange(0)).abs().max() < 1e-9
    found = details("set")(output.numpy(), np.arange(3))
    assert found["set/text R@10"] == (3, 1.0)
    assert found["set/image R@10"] == (6, 1.0)
    assert task.score(output.numpy(), np.arange(3)) == pytest.approx(np.mean([value for _, value in found.values()]))
