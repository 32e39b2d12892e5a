"""The contents of a folder: which datasets, how much of each, and any problems."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.data.images import decode
from holdfast.datasets.base import DataError, Dataset, Problem, Reading
from holdfast.errors import UserError

DECODED = 200
"""The number of pictures decoded per split, spread evenly, unless all are requested."""


@dataclass(frozen=True)
class Finding:
    """The result for one split of one dataset."""

    dataset: str
    folder: str
    split: str
    examples: int
    official: int | None
    problems: tuple[Problem, ...]
    """One for each record that would be skipped, as counted by `--skip-bad`."""
    absent: str = ""
    """Why the split could not be read at all; empty if it could be read."""
    lacks: tuple[str, ...] = ()
    """The official files that were missing, without which it was read."""
    aside: Mapping[str, int] = field(default_factory=dict)
    """The number of records that do not belong to the task, by reason."""

    @property
    def verdict(self) -> str:
        """whole, part, more, read (if no official number is known), bad or absent."""
        if self.absent:
            return "absent"
        if self.problems:
            return "bad"
        if self.official is None:
            return "read"
        if self.examples == self.official:
            return "whole"
        return "part" if self.examples < self.official else "more"


def folders(root: Path) -> Iterator[Path]:
    """The folder itself, and each folder in it: a dataset is in one of these."""
    yield root
    yield from sorted(path for path in root.iterdir() if path.is_dir() and not path.name.startswith("."))


def check(
    root: Path,
    datasets: Mapping[str, Dataset],
    *,
    asked: bool = False,
    every_image: bool = False,
    progress: Callable[[str], None] = lambda line: None,
) -> list[Finding]:
    """Read everything that a folder holds, and report on each split.

    Datasets that were `asked` for by name are read from the folder itself, whether or not it looks like them.
    """
    if not root.is_dir():
        raise UserError(f"the folder {root} does not exist")
    places = [(root, each) for each in datasets.values()] if asked else _places(root, datasets.values())
    found = []
    for folder, dataset in places:
        for split in dataset.splits:
            progress(f"{dataset.name}, {split}")
            found.append(_check_split(dataset, folder, split, every_image))
    return found


def _places(root: Path, datasets: Collection[Dataset]) -> list[tuple[Path, Dataset]]:
    """Each dataset that the folder, or a folder in it, looks like."""
    return [
        (folder, dataset)
        for folder in folders(root)
        for dataset in datasets
        if _present(dataset, folder) and (folder == root or not _present(dataset, root))
    ]


def _check_split(dataset: Dataset, folder: Path, split: str, every_image: bool) -> Finding:
    reading, count = Reading(skip=1_000_000_000), 0
    shown: dict[Path, list[str]] = {}  # never a dataset's stored arrays: they would fill the memory
    official = dataset.counts.get(split)
    shows = dataset.shows(folder)
    if not shows:
        dataset = dataset.without_pictures()
    try:
        for example in dataset.examples(folder, split, reading):
            count += 1
            for image in example.images:
                if isinstance(image, Path):
                    shown.setdefault(image, []).append(example.id)
    except DataError as error:
        if error.missing:
            return Finding(dataset.name, str(folder), split, count, official, (), str(error))
        return Finding(dataset.name, str(folder), split, count, official, (*reading.problems, error.problem))
    broken: dict[str, Problem] = {}
    for path in list(shown)[:: 1 if every_image else max(len(shown) // DECODED, 1)]:
        if what := _decoded(path):
            for number in shown[path]:
                broken.setdefault(number, Problem(str(path), f"example {number}", what))
    problems = (*reading.problems, *broken.values())
    lacks = (*dataset.lacks(folder, split), *(() if shows else ("the pictures",)))
    return Finding(dataset.name, str(folder), split, count, official, problems, lacks=lacks, aside=dict(reading.aside))


def _present(dataset: Dataset, folder: Path) -> bool:
    try:
        return dataset.holds(folder)
    except OSError:  # a folder that cannot be listed holds nothing that can be read
        return False


def _decoded(path: Path) -> str:
    """The problem of a picture, without its name; empty if it has none."""
    try:
        decode(path, None)
    except UserError as error:
        return str(error).removeprefix(str(path)).lstrip(": ")
    return ""
