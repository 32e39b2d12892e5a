"""Examples whose answers are written, as columns: prompts and answers as tokens, and references to compare with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from holdfast.benchmarks.cache import digest, place
from holdfast.benchmarks.vocabulary import kept_pieces
from holdfast.data import prepared, text
from holdfast.data.language import FolderLanguage, Language, WordPieces, filled, shortened
from holdfast.data.text import Tokenizer
from holdfast.errors import UserError
from holdfast.tasks import References
from holdfast.types import Inputs, Wants

PAD = -1
"""The padding after the end of an answer."""


@dataclass(frozen=True)
class Exchange:
    """A prompt, and its right answers."""

    asked: str
    answer: str
    """The text that the model learns."""
    references: tuple[str, ...] = ()
    """The texts with which the model's answer is compared; empty: only the answer."""
    choices: tuple[str, ...] = ()
    """The texts from which the likeliest is taken as the model's answer; empty: the model writes one."""


@dataclass(frozen=True)
class TextColumns:
    """Exchanges as columns, one row for each."""

    columns: dict[str, Tensor]
    targets: Tensor
    references: References
    language: Language
    longest: int

    def inputs(self, image: tuple[int, int, int] | None = None) -> Inputs:
        """The form in which a model receives them."""
        length = self.columns["text"].shape[1]
        return Inputs(image, text=length, vocabulary=self.language.size, answer=self.longest, end=self.language.end)


def language_for(wants: Wants, title: str, texts: Iterable[str], source: Path | None = None) -> Language:
    """The model's own language, or word pieces of these texts: the prompts and answers of the training data.

    `source` is the file or folder that they come from: when it changes, the cached pieces become useless.
    """
    if wants.speaks is not None:
        return FolderLanguage(wants.speaks, wants.template, wants.image_text)
    if wants.vocabulary is not None:
        return WordPieces(Tokenizer.load(wants.vocabulary))
    learned = sorted(set(texts))
    name = digest("words to write", learned)
    files = {} if source is None else {str(source.absolute()): prepared.files_fingerprint(source)}
    file = place("tables", name, f"{title}: word pieces", [text.__name__], files).with_suffix(".json")
    return WordPieces(kept_pieces(file, f"reading the words of {title}", lambda: iter(learned))[0])


def write(
    tongue: Language,
    exchanges: Sequence[Exchange],
    *,
    title: str,
    longest: int,
    length: int | None = None,
    images: bool = False,
) -> TextColumns:
    """The columns of exchanges, whose answers have up to `longest` tokens, the end included.

    Prompts of more than `length` tokens lose some in their middle, but no template and no image. With `images`, each
    exchange has one, which is a column of the benchmark's own.
    """
    if not exchanges:
        raise UserError(f"{title} has no examples")
    prompts = tongue.prompts([each.asked for each in exchanges], images)
    if length is not None:
        prompts = [shortened(prompt, length, tongue.image, title) for prompt in prompts]
    columns = {
        "text": torch.from_numpy(filled(prompts, tongue.pad)),
        "text_length": torch.tensor([len(prompt) for prompt in prompts], dtype=torch.int32),
    }
    more, targets, references = answer_columns(tongue, exchanges, title=title, longest=longest)
    return TextColumns(columns | more, targets, references, tongue, longest)


def answer_columns(
    tongue: Language, exchanges: Sequence[Exchange], *, title: str, longest: int
) -> tuple[dict[str, Tensor], Tensor, References]:
    """The columns of answers, the targets, and the references to which the targets point."""
    several = list(dict.fromkeys(each.answer for each in exchanges))
    tokens = dict(zip(several, tongue.answers(several), strict=True))
    for answer, own in tokens.items():
        refuse_long(answer, own, longest, title)
    columns = {"answer": torch.from_numpy(filled([tokens[each.answer] for each in exchanges], PAD))}
    if any(each.choices for each in exchanges):
        columns["choices"] = _choices(tongue, exchanges, longest, title)
    numbers: dict[tuple[str, ...], int] = {}
    targets = []
    for each in exchanges:  # word pieces may lose spaces, so a choice might not equal itself as text
        answer = tongue.text(tokens[each.answer][:-1]) if each.choices else each.answer
        targets.append(numbers.setdefault(each.references or (answer,), len(numbers)))
    return columns, torch.tensor(targets), References(list(numbers))


def _choices(tongue: Language, exchanges: Sequence[Exchange], longest: int, title: str) -> Tensor:
    """The tokens of the choices: (rows, choices, length)."""
    several = list(dict.fromkeys(choice for each in exchanges for choice in each.choices))
    tokens = dict(zip(several, tongue.answers(several), strict=True))
    for choice, own in tokens.items():
        refuse_long(choice, own, longest, title)
    most = max(len(each.choices) for each in exchanges)
    places = np.full((len(exchanges), most, max(map(len, tokens.values()))), PAD, np.int32)
    for row, exchange in enumerate(exchanges):
        if not exchange.choices:
            raise UserError(
                f"{title}: {exchange.asked[:40]!r} has no choices, but others have: give all of them choices"
            )
        for number, choice in enumerate(exchange.choices):
            places[row, number, : len(tokens[choice])] = tokens[choice]
    return torch.from_numpy(places)


def refuse_long(answer: str, tokens: Sequence[int], longest: int, title: str) -> None:
    """Raise a UserError for an answer of more tokens than `longest`."""
    if len(tokens) > longest:
        raise UserError(
            f"{title}: the answer {answer[:60]!r} takes {len(tokens)} tokens with its end, and at most {longest} are "
            f"written: set benchmark.longest={len(tokens)} or more"
        )
