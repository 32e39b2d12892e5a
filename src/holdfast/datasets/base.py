"""What readers share: how files are opened, and how what is wrong with them is told."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from holdfast.errors import UserError
from holdfast.types import Example

T = TypeVar("T")


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a dataset: in which file, at which record, what, and what to do."""

    file: str
    record: str
    what: str
    remedy: str = ""

    def __str__(self) -> str:
        place = f"{self.file}, {self.record}" if self.record else self.file
        return f"{place}: {self.what}" + (f": {self.remedy}" if self.remedy else "")


class DataError(UserError):
    """A dataset cannot be read as it is."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem

    @property
    def missing(self) -> bool:
        """Whether a file or folder is simply not there: this folder does not have that split."""
        return not self.problem.record and self.problem.what.startswith("there is no such")


@dataclass
class Reading:
    """One reading of a dataset: how many bad records may be dropped (`--skip-bad N`), and which ones were.

    A reader calls `bad` for a record that it cannot use and goes on to the next: up to `skip` of them are dropped and
    kept in `problems`; one more raises. What concerns a whole file (it is missing, it is cut in half) always raises.

    >>> reading = Reading(skip=1)
    >>> reading.bad("train.json", "question 7", "its image is missing", "unpack train2014.zip beside it")
    >>> len(reading.problems)
    1
    >>> reading.bad("train.json", "question 8", "its image is missing")
    Traceback (most recent call last):
    holdfast.datasets.base.DataError: train.json, question 8: its image is missing
    """

    skip: int = 0
    problems: list[Problem] = field(default_factory=list)

    def bad(self, file: Path | str, record: str, what: str, remedy: str = "") -> None:
        """Drop a record, or refuse the dataset where too many are bad."""
        problem = Problem(str(file), record, what, remedy)
        if len(self.problems) >= self.skip:
            raise DataError(problem)
        self.problems.append(problem)


@dataclass(frozen=True)
class Dataset:
    """A reader and what is known about its official download.

    `read(folder, split, reading)` yields Examples. `present(folder)` says whether the folder holds this dataset (by its
    file names, quickly). `counts` are the official numbers of examples of each split.
    """

    name: str
    splits: tuple[str, ...]
    read: Callable[[Path, str, Reading], Iterator[Example]]
    present: Callable[[Path], bool]
    counts: Mapping[str, int]

    def examples(self, folder: Path | str, split: str, reading: Reading | None = None) -> Iterator[Example]:
        """The examples of a split, in the order of the files."""
        if split not in self.splits:
            raise UserError(f"{self.name} has no split {split!r}: there are {', '.join(self.splits)}")
        return self._once(Path(folder), split, reading or Reading())

    def _once(self, folder: Path, split: str, reading: Reading) -> Iterator[Example]:
        """Each example, and a word where an id comes again."""
        seen: set[str] = set()
        for example in self.read(folder, split, reading):
            if example.id in seen:
                reading.bad(folder, f"{self.name}, {split}, {example.id}", "its id stands twice")
                continue
            seen.add(example.id)
            yield example


def first_file(folder: Path, names: Iterable[str], remedy: str) -> Path:
    """The first of several names that is there (official downloads are unpacked in more than one way)."""
    tried = list(names)
    for name in tried:
        if (folder / name).is_file():
            return folder / name
    raise DataError(Problem(str(folder / tried[0]), "", "there is no such file", remedy))


def read_text(path: Path) -> str:
    """A UTF-8 file as text, with any line ends; a sentence where it is not text."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            Problem(str(path), f"byte {error.start}", "it is not UTF-8 text", "download it again")
        ) from None
    except OSError as error:
        raise DataError(Problem(str(path), "", (error.strerror or "it cannot be read").lower())) from None


def read_json(path: Path) -> Any:
    """A JSON file, or a sentence that says where it breaks off."""
    try:
        return json.loads(read_text(path))
    except (ValueError, RecursionError) as error:  # ValueError also for a number of thousands of digits
        where = f"line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise DataError(Problem(str(path), where, f"it is not whole JSON ({error})", "download it again")) from None


def read_json_lines(path: Path, reading: Reading) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSON-lines file with their line numbers; a line that is no object is a bad record."""
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            reading.bad(path, f"line {number}", f"it is not JSON ({error})", "download the file again")
            continue
        if not isinstance(value, dict):
            reading.bad(path, f"line {number}", "it is no JSON object")
            continue
        yield number, value


def get(record: Mapping[str, Any], name: str, kind: type[T] | tuple[type[T], ...]) -> T:
    """A field of a record that has the right type; ValueError, in words for `Reading.bad`, where it has not.

    >>> get({"question_id": 3}, "question_id", int)
    3
    >>> get({}, "question_id", int)
    Traceback (most recent call last):
    ValueError: it has no 'question_id'
    """
    if name not in record:
        raise ValueError(f"it has no {name!r}")
    value = record[name]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        raise ValueError(f"its {name!r} is {reprlib.repr(value)}, not {' or '.join(k.__name__ for k in kinds)}")
    return value
