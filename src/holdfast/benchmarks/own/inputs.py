"""Pictures and texts as columns: decoded once into the cache, decoded by workers from files, or held in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from holdfast.benchmarks.cache import cache_folder, digest, place
from holdfast.benchmarks.own.listing import Listed, Picture
from holdfast.benchmarks.vocabulary import at_most, kept_pieces
from holdfast.data import decoding, prepared, text
from holdfast.data.images import decode
from holdfast.data.prepared import file_state, files_fingerprint, prepare
from holdfast.data.table import Column
from holdfast.data.text import Tokenizer
from holdfast.errors import UserError
from holdfast.progress import progress_bar
from holdfast.types import Array, Example, Ids, Inputs, Wants

SIDE = 64
"""The side of a picture if neither the model nor the user specifies it."""
LENGTH = 128
"""The maximum number of word pieces of a text, unless the user specifies it; shorter texts need fewer."""
IN_CACHE = 1 << 30
"""Pictures are decoded once if all of them together take at most this number of bytes."""


@dataclass(frozen=True)
class Ready:
    """The columns of those examples whose pictures can be decoded."""

    columns: dict[str, Column]
    rows: Ids
    """The rows of these examples."""
    inputs: Inputs
    problems: tuple[str, ...] = ()


def make_ready(
    listing: Listed,
    train: Ids,
    wants: Wants,
    *,
    title: str,
    source: Path | None = None,
    side: int | None = None,
    length: int | None = None,
    skip: int = 0,
) -> Ready:
    """The examples as a model sees them. If the model has no vocabulary, one is made from the words of `train`.

    `source` is the file or folder that they come from: when it changes, the cached tables become useless.
    """
    if wants.sees == "regions":
        raise UserError(f"{title} has no regions of pictures: choose a model that sees pictures or reads text")
    pieces, places = None, 0
    if listing.texts is not None:
        pieces, places = _pieces(listing.texts, train, wants, title, source, at_most(length or LENGTH, wants))
    known = len(pieces.vocabulary) if pieces else 0
    images = listing.images
    if images is None or not isinstance(images[0], Path):
        columns: dict[str, Column] = {}
        if pieces is not None:
            numbers, lengths = pieces.encode(list(listing.texts or ()), places)
            columns |= {"text": torch.from_numpy(numbers), "text_length": torch.from_numpy(lengths)}
        shape = None
        if images is not None:
            pixels = _in_memory(images, side, wants.side)
            columns["image"], shape = torch.from_numpy(pixels), pixels.shape[1:]
        return Ready(columns, np.arange(len(listing)), Inputs(image=shape, text=places, vocabulary=known))
    side = side or wants.side or SIDE
    columns, rows, problems = _from_files(listing, pieces, places, side, title, source, skip)
    return Ready(columns, rows, Inputs(image=(3, side, side), text=places, vocabulary=known), problems)


def _from_files(
    listing: Listed,
    pieces: Tokenizer | None,
    length: int,
    side: int,
    title: str,
    source: Path | None,
    skip: int,
) -> tuple[dict[str, Column], Ids, tuple[str, ...]]:
    files = [image for image in listing.images or () if isinstance(image, Path)]
    states = {file: file_state(file.absolute()) for file in dict.fromkeys(files)}
    stays = len(states) * 3 * side * side > IN_CACHE
    words = [] if pieces is None else [pieces.fingerprint, length, list(listing.texts or ())]
    name = digest("own", list(listing.ids), [states[file] for file in files], words, side, stays)
    modules = [each.__name__ for each in (prepared, decoding, text)]
    folder = _place(name, f"{title}: pictures at {side} x {side}", modules, source)

    def examples() -> Iterator[Example]:
        texts = listing.texts or [""] * len(files)
        for number, (file, said) in enumerate(zip(files, texts, strict=True)):
            yield Example(listing.ids[number], 0, (file,), said)

    with progress_bar(f"reading the pictures of {title}") as progress:
        found = prepare(
            "own",
            examples(),
            folder,
            image_size=side,
            tokenizer=pieces,
            length=None if pieces is None else length,
            source=name,
            skip=skip,
            decode=not stays,
            workers=os.cpu_count() or 1,
            progress=progress,
        )
    if not found.problems:
        return dict(found.table.inputs), np.arange(len(files)), ()
    kept = set(found.ids.tolist())
    rows = np.array([row for row, name in enumerate(listing.ids) if name in kept], np.int64)
    return dict(found.table.inputs), rows, found.problems


def _place(name: str, title: str, modules: Sequence[str], source: Path | None) -> Path:
    """Its place in the cache; the source is inspected once, for the note beside it."""
    known = source is None or (cache_folder() / "tables" / name).exists()
    files = {} if source is None or known else {str(source.absolute()): files_fingerprint(source)}
    return place("tables", name, title, modules, files)


def _in_memory(images: Sequence[Picture], side: int | None, wanted: int | None) -> Array:
    """Pictures as (rows, channels, height, width), resized only if `side` is set or their sizes differ."""
    if isinstance(images, np.ndarray) and (side is None or images.shape[1:3] == (side, side)):
        return np.ascontiguousarray(images.transpose(0, 3, 1, 2))
    size = side or wanted or SIDE
    pixels = np.empty((len(images), 3, size, size), np.uint8)
    for row, image in enumerate(images):
        pixels[row] = decode(image, size).transpose(2, 0, 1)
    return pixels


def _pieces(
    texts: Sequence[str], train: Ids, wants: Wants, title: str, source: Path | None, most: int
) -> tuple[Tokenizer, int]:
    """The tokenizer, and the maximum number of word pieces of a text."""
    learned = sorted({texts[row] for row in train})
    words = "" if wants.vocabulary is None else Tokenizer.load(wants.vocabulary).fingerprint
    name = digest("own words", learned, words)
    file = _place(name, f"{title}: word pieces", [text.__name__], source).with_suffix(".json")
    found, longest = kept_pieces(file, f"reading the words of {title}", lambda: iter(learned), wants.vocabulary)
    return found, min(longest, most)
