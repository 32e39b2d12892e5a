"""Where a benchmark's data comes from: the official files, or the world's; what is made of them goes into the cache."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass, replace
from functools import cached_property
from io import StringIO
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from torch import Tensor

from holdfast import registry
from holdfast.benchmarks.cache import digest, place, version_of, write_json
from holdfast.data import decoding, prepared, text
from holdfast.data.decoding import working
from holdfast.data.prepared import PreparedTable, Values, files_fingerprint, prepare
from holdfast.data.table import Column, Table
from holdfast.data.text import Tokenizer, train
from holdfast.datasets.base import Dataset, Reading
from holdfast.errors import UserError
from holdfast.types import Example
from holdfast.world.estimate import estimate
from holdfast.world.whole import is_written, write_whole

PIECES = 8000
"""The size of a vocabulary of word pieces that is trained on a benchmark's own text."""


@dataclass(frozen=True)
class PreparedSplit:
    """One split, prepared: its table, the ids of its rows, further columns that no model sees, and what was dropped."""

    table: Table
    ids: NDArray[np.str_]
    notes: Mapping[str, NDArray[np.int64]]
    problems: tuple[str, ...]


@dataclass(frozen=True)
class Source:
    """The files of one dataset, and how many of its records may be bad."""

    dataset: Dataset
    folder: Path
    skip_bad: int = 0

    def examples(self, split: str, reading: Reading | None = None) -> Iterator[Example]:
        """The examples of a split, as its reader gives them."""
        return self.dataset.examples(self.folder, split, reading or Reading(skip=self.skip_bad))

    @cached_property
    def _files(self) -> str:
        """A hash of the files: looked at once, since there may be a hundred thousand of them."""
        return files_fingerprint(self.folder)

    @property
    def reader(self) -> str:
        """The module that reads the files."""
        return _module(registry.DATASETS[self.dataset.name])

    def tokenizer(
        self, texts: Callable[[], Iterator[str]], vocabulary: Path | None = None, kept: str = "all"
    ) -> tuple[Tokenizer, int]:
        """Word pieces, those of a file or trained on the texts, and the length of the longest text in them.

        `kept` says in a word which texts these are.
        """
        words = "" if vocabulary is None else Tokenizer.load(vocabulary).fingerprint
        file = place_of("tables", "words", [self], PIECES, words, kept, modules=[text.__name__]).with_suffix(".json")
        if not file.exists():
            with progress_bar(f"reading the words of {self.dataset.name}"):
                found = list(texts())
                pieces = Tokenizer.load(vocabulary) if vocabulary else train(found, PIECES)
                longest = max(int(pieces.encode(found[at : at + 10_000], 512)[1].max()) for at in _starts(found))
                write_json(file, {"vocabulary": pieces.vocabulary, "longest": longest})
        known = json.loads(file.read_text(encoding="utf-8"))
        return Tokenizer(tuple(known["vocabulary"])), known["longest"]

    def split(
        self,
        task: str,
        split: str,
        *,
        target: Values,
        notes: Mapping[str, Values],
        module: str,
        keep: Callable[[Example], bool] = lambda example: True,
        kept: str = "all",
        pictures: bool = True,
        **settings: Any,
    ) -> PreparedSplit:
        """A split as a table (see `data.prepared.prepare` for the settings), from the cache where it is there.

        `notes` become arrays beside the table; `kept` says in a word which examples `keep` keeps. Functions are known
        by the VERSION of the `module` that gives them: a table in the cache is opened without reading the dataset.
        """
        words = {name: value.fingerprint if isinstance(value, Tokenizer) else value for name, value in settings.items()}
        folder = place_of(
            "tables",
            f"{task}, {split}",
            [self],
            kept,
            pictures,
            sorted(notes),
            sorted(words.items()),
            modules=[prepared.__name__, decoding.__name__, text.__name__, module],
        )
        dropped = folder.with_name(f"{folder.name}.dropped.json")

        def rows() -> Iterator[Example]:
            reading = Reading(skip=self.skip_bad)
            for example in self.examples(split, reading):
                if keep(example):
                    yield example if pictures else replace(example, images=())
            # Before the table is there: whoever finds the table finds what it lacks.
            write_json(dropped, [str(problem) for problem in reading.problems])

        with progress_bar(f"preparing {self.dataset.name}, {split}") as progress:
            found: PreparedTable = prepare(
                task,
                rows(),
                folder,
                target=target,
                columns=notes,
                source=folder.name,
                skip=self.skip_bad,
                workers=os.cpu_count() or 1,
                progress=progress,
                **settings,
            )
        problems = (*json.loads(dropped.read_text(encoding="utf-8")), *found.problems)
        if len(problems) > self.skip_bad:
            others = f" ({self.skip_bad} others may be left out)" if self.skip_bad else ""
            raise UserError(problems[self.skip_bad] + others)
        inputs = {name: column for name, column in found.table.inputs.items() if name not in notes}
        values = {name: _array(found.table.inputs[name]) for name in notes}
        return PreparedSplit(replace(found.table, inputs=inputs), found.ids, values, problems)


def place_of(kind: str, what: str, sources: Sequence[Source], *settings: object, modules: Sequence[str] = ()) -> Path:
    """Where the cache keeps what `modules` make of some sources with these settings."""
    modules = sorted({*modules, *(source.reader for source in sources)})
    read = [(source.dataset.name, source._files) for source in sources]
    name = digest(what, read, [(module, version_of(module)) for module in modules], settings)
    title = f"{', '.join(dict.fromkeys(source.dataset.name for source in sources))}: {what}"
    return place(kind, name, title, modules, {str(source.folder.absolute()): source._files for source in sources})


def open_source(name: str, *, data: str = "", scale: str = "tiny", skip_bad: int = 0) -> Source:
    """A dataset's official files in the folder `data`, or, without one, the world's at a scale."""
    dataset: Dataset = registry.DATASETS[name].load()
    if not data:
        return Source(dataset, world(name, scale), skip_bad)
    for folder in (Path(data), Path(data) / name):
        if folder.is_dir() and dataset.present(folder):
            return Source(dataset, folder, skip_bad)
    raise UserError(f"{data} holds no {name}: `holdfast data check {data}` says what it holds")


def world(name: str, scale: str, seed: int = 0) -> Path:
    """The folder of the world's dataset at a scale; it is written first where it is not there.

    Of two processes that want the same, one writes and the other waits.
    """
    folder = _world_folder(name, scale, seed)
    if is_written(folder, scale, seed):
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    seconds = estimate(name, scale).seconds
    with (
        progress_bar(f"writing the world's {name} at {scale}, once (about {seconds:.0f} s)"),
        folder.with_name(f".{folder.name}.lock").open("w") as lock,
    ):
        fcntl.flock(lock, fcntl.LOCK_EX)  # it ends with the process, however that ends
        if not is_written(folder, scale, seed):
            write_whole(registry.WRITERS[name].load(), folder, scale, seed)
    return folder


def worlds(names: Sequence[str], scale: str) -> None:
    """Write those of the world's datasets that are not there yet, as many at once as there are cores."""
    missing = [name for name in names if not is_written(_world_folder(name, scale, 0), scale, 0)]
    missing.sort(key=lambda name: -estimate(name, scale).seconds)  # the longest first, so that none is left for the end
    processes = min(len(missing), os.cpu_count() or 1)
    if processes < 2:
        return
    seconds = sum(estimate(name, scale).seconds for name in missing) / processes
    with (
        progress_bar(f"writing the world's {', '.join(missing)} at {scale}, once (about {seconds:.0f} s)"),
        working(processes, "a process that writes the world's data ended early: call it again") as pool,
    ):
        list(pool.map(_write_quietly, missing, repeat(scale)))


def _write_quietly(name: str, scale: str) -> None:
    with redirect_stderr(StringIO()):  # the bar is another's
        world(name, scale)


def _world_folder(name: str, scale: str, seed: int) -> Path:
    module = _module(registry.WRITERS[name])
    where = f"{name}-{scale}-{seed}-v{version_of(module)}"
    return place("world", where, f"{name} at {scale}, seed {seed}", [module], {})


def _module(entry: registry.Entry) -> str:
    return entry.place.partition(":")[0]


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on standard error, where that is a terminal; it moves where it is told how far things are."""
    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(bar_width=24), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _array(column: Column) -> NDArray[np.int64]:
    assert isinstance(column, Tensor)
    return np.asarray(column.numpy(), np.int64)


def _starts(texts: list[str]) -> range:
    return range(0, len(texts), 10_000)
