"""The source of a benchmark's data: official files, or synthetic ones."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from holdfast import registry
from holdfast.benchmarks.cache import digest, place, version_of
from holdfast.benchmarks.synthetic import world
from holdfast.data.prepared import files_fingerprint
from holdfast.datasets.base import Dataset, Reading
from holdfast.errors import UserError
from holdfast.files import Bounds
from holdfast.types import Example


@dataclass(frozen=True)
class Source:
    """The files of one dataset, and how many of its records may be bad."""

    dataset: Dataset
    folder: Path
    skip_bad: int = 0

    def examples(self, split: str, reading: Reading | None = None) -> Iterator[Example]:
        """The examples of a split, as its reader yields them."""
        return self.dataset.examples(self.folder, split, reading or Reading(skip=self.skip_bad))

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the files, computed once: there may be a hundred thousand of them."""
        return files_fingerprint(self.folder)

    @property
    def reader(self) -> str:
        """The module that reads the files."""
        return registry.DATASETS[self.dataset.name].module


def place_of(kind: str, what: str, sources: Sequence[Source], *settings: object, modules: Sequence[str] = ()) -> Path:
    """The place in the cache for the results of `modules` on some sources with these settings."""
    modules = sorted({*modules, *(source.reader for source in sources)})
    read = [(source.dataset.name, source.fingerprint) for source in sources]
    name = digest(what, read, [(module, version_of(module)) for module in modules], settings)
    title = f"{', '.join(dict.fromkeys(source.dataset.name for source in sources))}: {what}"
    return place(kind, name, title, modules, {str(source.folder.absolute()): source.fingerprint for source in sources})


_CHECKED: set[tuple[str, str, str]] = set()


def check_splits(source: Source, *splits: str) -> None:
    """Raise a UserError for a split that does not exist, or of which nothing can be read; each is checked once."""
    for split in splits:
        key = source.dataset.name, str(source.folder), split
        if key not in _CHECKED:
            if next(source.examples(split), None) is None:
                raise UserError(f"{source.folder}: the split {split} of {source.dataset.name} has no examples")
            _CHECKED.add(key)


def within(name: str, data: str) -> str:
    """The location of a dataset in a folder of several, whatever its own folder is called; empty if it is missing."""
    if not data or not Path(data).is_dir():
        return ""
    dataset: Dataset = registry.DATASETS[name].load()
    inner = sorted(path for path in Path(data).iterdir() if path.is_dir())
    places = (Path(data) / name, Path(data), *inner)
    return str(next((folder for folder in places if folder.is_dir() and dataset.holds(folder)), ""))


def features_within(features: str, data: str) -> str:
    """The folder of region features: the one that is given, or one among the official files in `data`."""
    return features or within("region_features", data)


def open_source(name: str, *, data: str = "", scale: str = "tiny", skip_bad: int = 0) -> Source:
    """A dataset's official files in the folder `data` or in `data/NAME`; without a folder, synthetic ones."""
    dataset: Dataset = registry.DATASETS[name].load()
    if not data:
        return Source(dataset, world(name, scale), skip_bad)
    limits = Bounds(Path(data))
    for folder in (Path(data), Path(data) / name):
        if folder.is_dir() and dataset.holds(folder):
            if folder != Path(data):
                limits.check(folder)
            return Source(dataset, folder, skip_bad)
    raise UserError(f"{data} contains no {name}: `holdfast data check {shlex.quote(data)}` lists what it contains")
