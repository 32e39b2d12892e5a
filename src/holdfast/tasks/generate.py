"""Text in, text out: the answer of an example is written by a language model, token after token."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeAlias

from torch import Tensor
from torch.nn import functional

from holdfast import metrics
from holdfast.errors import UserError, nearest
from holdfast.tasks.distillation import softmax_divergence
from holdfast.types import Array, Head, Part, Task

Scorer: TypeAlias = Callable[[Sequence[str], Sequence[Sequence[str]]], float]
"""Maps answers, and the references of each, to a score."""


class Speaks(Protocol):
    """Turns tokens into text; a `Language` of `holdfast.data`."""

    def texts(self, tokens: Array) -> list[str]:
        """The texts of rows of tokens, which are padded with negative numbers."""


class References:
    """The texts with which answers are compared, several for an example; a target is a number in this list.

    >>> References([["a dog", "one dog"], ["a cat"]])[1]
    ('a cat',)
    """

    def __init__(self, texts: Sequence[Sequence[str]]) -> None:
        self._texts = tuple(map(tuple, texts))
        digest = hashlib.blake2b(repr(self._texts).encode(), digest_size=16)
        self._hash = digest.hexdigest()

    def fingerprint(self) -> str:
        """A hash of all texts."""
        return self._hash

    def __getitem__(self, number: int) -> tuple[str, ...]:
        return self._texts[number]

    def __len__(self) -> int:
        return len(self._texts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, References) and self._hash == other._hash

    def __hash__(self) -> int:
        return hash(self._hash)

    def __repr__(self) -> str:
        return f"References({len(self)} examples, {self._hash[:8]})"

    def __deepcopy__(self, memo: object) -> References:
        return self  # never changed


@dataclass(frozen=True)
class Generate(Task):
    """A text is answered by a text. A target is the number of the example's references.

    The columns are `text` with `text_length`, the prompt, and `answer`, the tokens to learn. With a column
    `choices`, the likeliest of them is the answer; without, the answer is written. `outputs` is the number of tokens.
    All tasks of a run may name the same head: it has no weights.
    """

    version: ClassVar[int] = 1

    name: str
    head: str
    outputs: int
    chance: float
    language: Speaks
    references: References
    scorer: str | Scorer = "exact"
    """How answers are compared with references: exact, vqa, bleu, rouge-l, cider, or a function of both."""
    longest: int = 16
    """The maximum number of tokens of an answer, including its end."""
    beams: int = 1
    """The number of beams; 1: each token is the likeliest."""

    @property
    def reads(self) -> Head:
        """The language model's own output."""
        return Head("generate", self.outputs)

    def forward(self, model: Callable[[Mapping[str, Tensor], str], Tensor], part: Part) -> Tensor:
        """The logits of the tokens of each answer, given those before: (rows, length, vocabulary)."""
        return model(part.inputs, self.head)

    def answers(self, model: Callable[[Mapping[str, Tensor], str], Tensor], part: Part) -> Tensor:
        """The tokens of the model's own answers, (rows, `longest`), padded with -1."""
        asked = {name: column for name, column in part.inputs.items() if name != "answer"}
        text = part.inputs["text"]
        return model({**asked, "write": text.new_tensor([self.longest, self.beams]).expand(len(text), 2)}, self.head)

    def losses(self, output: Tensor, part: Part) -> Tensor:
        """Cross-entropy: the mean over the tokens of each answer."""
        answer = part.inputs["answer"].long()
        flat = functional.cross_entropy(
            output.flatten(0, 1), answer.flatten(), ignore_index=-1, reduction="none"
        ).view_as(answer)
        return flat.sum(1) / (answer >= 0).sum(1)

    def divergence(self, taught: Tensor, output: Tensor, part: Part, temperature: float, units: Tensor) -> Tensor:
        """The KL divergence of each token's softmax, averaged over the tokens of each answer."""
        there = part.inputs["answer"] >= 0
        return (softmax_divergence(taught, output, temperature) * there).sum(-1) / there.sum(-1)

    def predictions(self, output: Tensor, part: Part) -> Tensor:
        """The tokens of each answer, padded with -1."""
        return output.nan_to_num(-1).long()

    def score(self, predictions: Array, targets: Array) -> float:
        """The score of the answers as texts."""
        return float(scorer(self.scorer)(self.texts(predictions), self.right(targets)))

    def texts(self, predictions: Array) -> list[str]:
        """The answers as texts."""
        return self.language.texts(predictions)

    def right(self, targets: Array) -> list[tuple[str, ...]]:
        """The references of some targets."""
        return [self.references[int(target)] for target in targets]


def scorer(word: str | Scorer) -> Scorer:
    """The function that a word names.

    >>> scorer("exact")(["Yes."], [["yes"]])
    1.0
    """
    if callable(word):
        return word
    if word not in metrics.SCORERS:
        raise UserError(f"unknown score {word!r}: {nearest(word, metrics.SCORERS)}")
    return metrics.SCORERS[word]
