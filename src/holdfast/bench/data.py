"""The cost of a batch from a prepared table, compared with PyTorch's own loader over the same examples, in one run."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from holdfast.data.images import decode
from holdfast.data.order import shuffled
from holdfast.data.prepared import PreparedTable, prepare
from holdfast.data.table import Data, Shared
from holdfast.data.text import Tokenizer, train
from holdfast.types import Example

LIMIT_RATIO = 5.0
LENGTH = 40
CPU = torch.device("cpu")
_WORDS = (
    "what",
    "colour",
    "is",
    "the",
    "red",
    "blue",
    "cup",
    "dog",
    "on",
    "table",
    "left",
    "of",
    "are",
    "there",
    "two",
)


@dataclass(frozen=True)
class Batches:
    """Milliseconds per batch: PyTorch's loader in one process, this library, and the speed-up.

    `files`: the loader decodes each example's JPEG and tokenises its text, as loaders usually do. `rows`: the loader
    takes each example from the same mapped table, so that only the per-example Python overhead is compared; the larger
    the images, the more both merely copy memory, so this form has no target.
    """

    case: str
    loader_ms: float
    ours_ms: float
    ratio: float
    limit_ratio: float | None


def batches(examples: int = 1024, batch: int = 64, size: int = 64, repeats: int = 5) -> list[Batches]:
    """Measure one shuffled pass over image questions with each loader; the ratio is the median over interleaved
    repeats.

    >>> files, rows = batches(examples=64, batch=16, size=16, repeats=1)
    >>> files.case, files.ratio > LIMIT_RATIO, rows.case, rows.limit_ratio
    ('files', True, 'rows', None)
    """
    with tempfile.TemporaryDirectory() as folder:
        rows = _questions(Path(folder), examples)
        tokenizer = train((row.text for row in rows), 100)
        prepared = prepare(
            "questions", rows, Path(folder) / "table", image_size=size, tokenizer=tokenizer, length=LENGTH
        )
        data = Data([prepared.table])

        def ours() -> Iterator[Tensor]:
            order = shuffled(np.arange(examples), seed=0, stage=0, epoch=0)
            for start in range(0, examples, batch):
                yield data.fetch(order[start : start + batch], CPU).parts[0].inputs["image"]

        cases: dict[str, Dataset[_Item]] = {"files": _Files(rows, tokenizer, size), "rows": _PreparedDataset(prepared)}
        return [_compare(case, dataset, ours, batch, repeats) for case, dataset in cases.items()]


_Item = tuple[Tensor, Tensor, Tensor, Tensor]


class _Files(Dataset[_Item]):
    def __init__(self, examples: list[Example], tokenizer: Tokenizer, size: int) -> None:
        self.examples, self.tokenizer, self.size = examples, tokenizer, size

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, row: int) -> _Item:
        example = self.examples[row]
        pixels = np.ascontiguousarray(decode(example.images[0], self.size).transpose(2, 0, 1))
        text, length = self.tokenizer.encode([example.text], LENGTH)
        assert isinstance(example.target, int)
        return (
            torch.from_numpy(pixels),
            torch.from_numpy(text[0]),
            torch.tensor(length[0]),
            torch.tensor(example.target),
        )


class _PreparedDataset(Dataset[_Item]):
    def __init__(self, prepared: PreparedTable) -> None:
        table = prepared.table
        image, text, length = (table.inputs[name] for name in ("image", "text", "text_length"))
        assert isinstance(image, Shared)
        assert isinstance(text, Tensor)
        assert isinstance(length, Tensor)
        self.image, self.text, self.length, self.targets = image, text, length, table.targets

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, row: int) -> _Item:
        pixels = self.image.values[self.image.index[row]]
        return pixels, self.text[row], self.length[row], self.targets[row]


def _compare(
    case: str, dataset: Dataset[_Item], ours: Callable[[], Iterator[Tensor]], batch: int, repeats: int
) -> Batches:
    limit = LIMIT_RATIO if case == "files" else None
    loader = DataLoader(dataset, batch_size=batch, shuffle=True)
    times: list[tuple[float, float]] = []
    for _ in range(repeats + 1):  # the first round is a warm-up
        times.append((_milliseconds(image for image, *_ in loader), _milliseconds(ours())))
    loader_ms, ours_ms = (statistics.median(pair[i] for pair in times[1:]) for i in (0, 1))
    return Batches(case, loader_ms, ours_ms, statistics.median(a / b for a, b in times[1:]), limit)


def _milliseconds(passing: Iterator[Tensor]) -> float:
    count, start = 0, time.perf_counter()
    for image in passing:
        assert image.dtype == torch.uint8
        count += 1
    return 1000 * (time.perf_counter() - start) / count


def _questions(folder: Path, count: int) -> list[Example]:
    """Questions about JPEGs of COCO's usual size, four per image."""
    rng = np.random.default_rng(0)
    paths = []
    for number in range(-(-count // 4)):
        coarse = Image.fromarray(rng.integers(0, 256, (6, 8, 3), np.uint8))
        path = folder / f"{number:012d}.jpg"
        coarse.resize((640, 480), Image.Resampling.BICUBIC).save(path, "JPEG")
        paths.append(path)
    return [
        Example(str(i), int(rng.integers(10)), (paths[i // 4],), " ".join(rng.choice(_WORDS, 8))) for i in range(count)
    ]
