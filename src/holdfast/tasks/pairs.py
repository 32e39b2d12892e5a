"""Images and texts compared by a dual encoder: classes by their prompts, and images with their own texts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from holdfast import metrics
from holdfast.errors import UserError
from holdfast.tasks.base import OfHead
from holdfast.tasks.distillation import softmax_divergence
from holdfast.types import Array, Head, Part

CLOSED = -1e4
"""The logit of a class that is not a candidate."""
SLOT = "{}"


class Prompts:
    """The word pieces of texts (classes, templates, length) and their lengths; two are equal if their contents are."""

    def __init__(self, text: Array, text_length: Array) -> None:
        self.text, self.text_length = torch.from_numpy(text), torch.from_numpy(text_length)
        digest = hashlib.blake2b(repr(text.shape).encode(), digest_size=8)
        for each in (text, text_length):
            digest.update(np.ascontiguousarray(each).data)
        self._hash = digest.hexdigest()

    def fingerprint(self) -> str:
        """A hash of the word pieces."""
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Prompts) and self._hash == other._hash

    def __hash__(self) -> int:
        return hash(self._hash)

    def __len__(self) -> int:
        return len(self.text)

    def __repr__(self) -> str:
        return f"Prompts({len(self)} classes, {self._hash})"

    def __deepcopy__(self, memo: object) -> Prompts:
        return self  # never changed, and known by its place in memory


NO_PROMPTS = torch.zeros(0, 1, 1, dtype=torch.int32)


def filled(names: Sequence[str], templates: Sequence[str], where: str) -> list[list[str]]:
    """The prompts of each class: every template with the class's name in its slot.

    >>> filled(["cat", "dog"], ["a photo of a {}."], "pets")
    [['a photo of a cat.'], ['a photo of a dog.']]
    """
    if not templates:
        raise UserError(f"{where} has no templates: give at least one, such as 'a photo of a {SLOT}.'")
    for template in templates:
        if template.count(SLOT) != 1:
            raise UserError(
                f"{where}: the template {template!r} must have exactly one slot for a class's name: write one {SLOT}"
            )
    for number, name in enumerate(names):
        if not name.strip():
            raise UserError(f"{where}: class {number} has no name, which its prompts need: add it to the list of names")
    return [[template.replace(SLOT, name) for template in templates] for name in names]


@dataclass(frozen=True)
class Prompted(OfHead):
    """One of the classes whose prompts are nearest to the image, scored by accuracy; a target is a class's number.

    `outputs` is the number of all classes of a run, and `first` and `count` say which of them are the task's own.
    """

    version: ClassVar[int] = 1

    name: str
    head: str
    outputs: int
    chance: float
    prompts: Prompts
    first: int
    count: int
    candidates: Literal["own", "seen", "all"] = "own"
    """Which classes are compared: the task's own, those of all stages so far, or all of the run."""

    @property
    def reads(self) -> Head:
        """A head that compares; it grows if only classes seen so far are candidates."""
        return Head("compare", self.outputs, growing=self.candidates == "seen")

    def forward(self, model: Callable[[Mapping[str, Tensor], str], Tensor], part: Part) -> Tensor:
        """The logits of all classes."""
        given = {"prompts": self.prompts.text, "prompts_length": self.prompts.text_length}
        return model(beside(part.inputs, given), self.head)

    def losses(self, output: Tensor, part: Part) -> Tensor:
        """Cross-entropy over the candidates."""
        output, first = self._candidates(output)
        return functional.cross_entropy(output, part.targets - first, reduction="none")

    def predictions(self, output: Tensor, part: Part) -> Tensor:
        """The nearest candidate."""
        output, first = self._candidates(output)
        return output.argmax(-1) + first

    def score(self, predictions: Array, targets: Array) -> float:
        """The share of right answers."""
        return metrics.accuracy(predictions, targets)

    def units(self, targets: Tensor) -> Tensor:
        """All classes of the task, since each was a candidate."""
        return torch.arange(self.first, self.first + self.count)

    def divergence(self, taught: Tensor, output: Tensor, part: Part, temperature: float, units: Tensor) -> Tensor:
        """The KL divergence between both softmaxes, over these classes alone."""
        if len(units) < output.shape[-1]:
            taught, output = taught.index_select(-1, units), output.index_select(-1, units)
        return softmax_divergence(taught, output, temperature)

    def _candidates(self, output: Tensor) -> tuple[Tensor, int]:
        if self.candidates != "own":
            return output, 0
        return output[:, self.first : self.first + self.count], self.first


@dataclass(frozen=True)
class Retrieve(OfHead):
    """Each image has its own texts: trained contrastively within a batch, scored by the mean recall of both directions.

    Loss, CLIP's (softmax): the mean of -log softmax over the batch's texts for each image, and over its images for each
    text. SigLIP's (sigmoid): -log sigmoid(z x logit) summed over all pairs of a row, with z = 1 for its own text and -1
    for the others. Each of an image's texts counts in turn.
    """

    version: ClassVar[int] = 1
    whole_batch: ClassVar[bool] = True

    name: str
    head: str
    outputs: int
    """The number of classes of the head that it shares with other tasks."""
    chance: float
    growing: bool = False
    """Whether the head that it shares grows."""
    pairing: Literal["softmax", "sigmoid"] = "softmax"

    @property
    def reads(self) -> Head:
        """A head that compares."""
        return Head("compare", self.outputs, growing=self.growing)

    def forward(self, model: Callable[[Mapping[str, Tensor], str], Tensor], part: Part) -> Tensor:
        """The vectors of the image and of its texts, (rows, 1 + texts, width)."""
        return model(beside(part.inputs, {"prompts": NO_PROMPTS}), self.head)

    def losses(self, output: Tensor, part: Part) -> Tensor:
        """The contrastive loss of each row, the mean over its texts."""
        logits = compared(output)
        if self.pairing == "sigmoid":
            signs = 2 * torch.eye(len(output), dtype=output.dtype, device=output.device) - 1
            return -functional.logsigmoid(signs * logits).sum(-1).mean(0)
        right = torch.arange(len(output), device=output.device).expand(len(logits), -1)
        flat = [
            functional.cross_entropy(each.flatten(0, 1), right.flatten(), reduction="none") for each in _ways(logits)
        ]
        return torch.stack(flat).mean(0).view_as(right).mean(0)

    def predictions(self, output: Tensor, part: Part) -> Tensor:
        """The vectors, to be compared when those of the whole set are known."""
        return output

    def score(self, predictions: Array, targets: Array) -> float:
        """The mean of R@1, R@5 and R@10 in both directions."""
        return float(np.mean(list(_recalls(predictions).values())))

    def divergence(self, taught: Tensor, output: Tensor, part: Part, temperature: float, units: Tensor) -> Tensor:
        """The KL divergence of each image's softmax over the batch's texts, and of each text's over its images."""
        pairs = zip(_ways(compared(taught)), _ways(compared(output)), strict=True)
        return torch.stack([softmax_divergence(old, new, temperature).mean(0) for old, new in pairs]).mean(0)


def details(name: str) -> Callable[[Array, Array], Mapping[str, tuple[int, float]]]:
    """The further scores of a retrieval set: R@1, R@5 and R@10 in both directions."""

    def found(predictions: Array, targets: Array) -> Mapping[str, tuple[int, float]]:
        texts = len(predictions) * (predictions.shape[1] - 1)
        rows = {"text": len(predictions), "image": texts}
        return {f"{name}/{way}": (rows[way.split()[0]], each) for way, each in _recalls(predictions).items()}

    return found


def beside(inputs: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """A batch's inputs, extended by tensors that do not have one row for each example."""
    return cast("Any", inputs) | given  # type: ignore[no-any-return]


def compared(output: Tensor) -> Tensor:
    """The logits of all images and texts, (texts of an image, images, images): a matrix for each text of an image."""
    return torch.einsum("iw,jtw->tij", output[:, 0], output[:, 1:])


def _ways(logits: Tensor) -> tuple[Tensor, Tensor]:
    return logits, logits.transpose(-1, -2)


def _recalls(predictions: Array) -> Mapping[str, float]:
    return metrics.recalls(predictions[:, 0], predictions[:, 1:])
