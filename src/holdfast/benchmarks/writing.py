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
from holdfast.data.language import FolderLanguage, Language, WordPieces
from holdfast.data.text import Tokenizer
from holdfast.errors import UserError
from holdfast.tasks import References
from holdfast.types import Array, Inputs, Wants

PAD = -1
"""What follows the end of an answer."""


@dataclass(frozen=True)
class Exchange:
    """What a model is asked, and what is right."""

    asked: str
    answer: str
    """The text that it learns."""
    references: tuple[str, ...] = ()
    """The texts with which its answers are compared; empty: the answer alone."""
    choices: tuple[str, ...] = ()
    """The texts among which the likeliest is its answer; empty: it writes one."""


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

    `source` is the file or folder that they come from: when it changes, what the cache keeps of it is of no more use.
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
    answers = tongue.answers([each.answer for each in exchanges])
    for exchange, answer in zip(exchanges, answers, strict=True):
        refuse_long(exchange.answer, answer, longest, title)
    columns = {
        "text": torch.from_numpy(filled(prompts, tongue.pad)),
        "text_length": torch.tensor([len(prompt) for prompt in prompts], dtype=torch.int32),
        "answer": torch.from_numpy(filled(answers, PAD)),
    }
    if any(each.choices for each in exchanges):
        columns["choices"] = _choices(tongue, exchanges, longest, title)
    numbers: dict[tuple[str, ...], int] = {}
    targets = [numbers.setdefault(each.references or (each.answer,), len(numbers)) for each in exchanges]
    return TextColumns(columns, torch.tensor(targets), References(list(numbers)), tongue, longest)


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
                f"{title}: {exchange.asked[:40]!r} has no choices, and others have: give all of them choices"
            )
        for number, choice in enumerate(exchange.choices):
            places[row, number, : len(tokens[choice])] = tokens[choice]
    return torch.from_numpy(places)


def filled(rows: Sequence[Sequence[int]], padding: int) -> Array:
    """Rows of tokens as one array.

    >>> filled([[1, 2], [3]], 0).tolist()
    [[1, 2], [3, 0]]
    """
    found = np.full((len(rows), max(map(len, rows))), padding, np.int32)
    for number, row in enumerate(rows):
        found[number, : len(row)] = row
    return found


def shortened(prompt: list[int], length: int, image: int | None, title: str) -> list[int]:
    """A prompt without the middle of what comes after its image.

    >>> shortened([1, 2, 3, 4, 5, 6], 4, None, "here")
    [1, 2, 5, 6]
    >>> shortened([9, 9, 9, 1, 2, 3, 4], 5, 9, "here")
    [9, 9, 9, 1, 4]
    """
    if len(prompt) <= length:
        return prompt
    start = len(prompt) - prompt[::-1].index(image) if image in prompt else 0
    half = (length - start) // 2
    if half < 1:
        raise UserError(f"{title}: a prompt of {length} tokens has no room for words: set benchmark.length higher")
    return prompt[: length - half] + prompt[len(prompt) - half :]


def refuse_long(answer: str, tokens: Sequence[int], longest: int, title: str) -> None:
    """Raise a UserError for an answer of more tokens than `longest`."""
    if len(tokens) > longest:
        raise UserError(
            f"{title}: the answer {answer[:60]!r} takes {len(tokens)} tokens with its end, and at most {longest} are "
            f"written: set benchmark.longest={len(tokens)} or more"
        )
