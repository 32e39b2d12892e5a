"""The common part of all readers: how files are opened, and how problems with them are reported."""

from __future__ import annotations

import codecs
import json
import reprlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from holdfast.errors import UserError, printable
from holdfast.files import FileError, bounds, open_regular, within
from holdfast.types import Example

T = TypeVar("T")

_BLOCK = 1 << 20
_LONGEST_LINE = 1 << 25


@dataclass(frozen=True)
class Problem:
    """A problem with a dataset: the file, the record, what is wrong, and what to do."""

    file: str
    record: str
    what: str
    remedy: str = ""

    def __str__(self) -> str:
        place = f"{self.file}, {self.record}" if self.record else self.file
        return printable(f"{place}: {self.what}" + (f": {self.remedy}" if self.remedy else ""))


class DataError(UserError):
    """A dataset cannot be read in its current state."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem

    @property
    def missing(self) -> bool:
        """Whether a file or folder simply does not exist: this folder does not have that split."""
        return not self.problem.record and self.problem.what.startswith("no such")


@dataclass
class Reading:
    """One reading of a dataset: how many bad records may be skipped (`--skip-bad N`), and which ones were.

    A reader calls `bad` for a record that it cannot use and continues with the next: up to `skip` of them are skipped
    and kept in `problems`; one more raises. A problem with a whole file (it is missing or truncated) always raises. A
    complete record that does not belong to the task is not bad: it is counted in `aside`, by reason.

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
    aside: Counter[str] = field(default_factory=Counter)

    def bad(self, file: Path | str, record: str, what: str, remedy: str = "") -> None:
        """Skip a record, or raise an error if too many are bad."""
        problem = Problem(str(file), record, what, remedy)
        if len(self.problems) >= self.skip:
            raise DataError(problem)
        self.problems.append(problem)


@dataclass(frozen=True)
class Dataset:
    """A reader, and the facts about its official download.

    `read(folder, split, reading)` yields Examples. `present(folder)` says whether the folder holds this dataset (by its
    file names, quickly); without it, `holdfast data check` looks for the dataset only where it is named (`--as`).
    `counts` are the official numbers of examples of each split. `lacks(folder, split)` names missing files without
    which the split can still be read.
    """

    name: str
    splits: tuple[str, ...]
    read: Callable[[Path, str, Reading], Iterator[Example]]
    present: Callable[[Path], bool] = lambda folder: False
    counts: Mapping[str, int] = field(default_factory=dict)
    lacks: Callable[[Path, str], Sequence[str]] = lambda folder, split: ()
    classes: Callable[[Path], Sequence[str]] | None = None
    """The names of the classes by their numbers, for prompts; None: the files have none, or targets are not classes."""
    beside: tuple[str, ...] = ()
    """Folders beside its own that may contain its pictures."""
    annotations: Callable[[Path, str, Reading], Iterator[Example]] | None = None
    """Reads the same examples without their pictures, which some benchmarks do not need."""
    pictured: Callable[[Path], bool] = lambda folder: True
    """Whether a folder has any of its pictures; called only by benchmarks that do not need them."""

    def examples(self, folder: Path | str, split: str, reading: Reading | None = None) -> Iterator[Example]:
        """The examples of a split, in the order of the files."""
        if split not in self.splits:
            raise UserError(f"{self.name} has no split {split!r}: there are {', '.join(self.splits)}")
        return self._once(Path(folder), split, reading or Reading())

    def holds(self, folder: Path) -> bool:
        """Whether a folder holds this dataset, without looking at anything outside it."""
        with within(bounds(folder, *self.beside)):
            return self.present(folder)

    def without_pictures(self) -> Dataset:
        """The same dataset, read without its pictures."""
        assert self.annotations is not None
        return replace(self, read=self.annotations)

    def shows(self, folder: Path) -> bool:
        """Whether a folder has pictures of this dataset, or must have them."""
        if self.annotations is None:
            return True
        with within(bounds(folder, *self.beside)):
            return self.pictured(folder)

    def _bounded(self, folder: Path, split: str, reading: Reading) -> Iterator[Example]:
        """Yield what the reader yields, but prevent it and its examples from leaving the folder."""
        limits = bounds(folder, *self.beside)
        with within(limits):
            examples = iter(self.read(folder, split, reading))
        while True:
            with within(limits):
                if (example := next(examples, None)) is None:
                    return
            try:
                for image in example.images:
                    if isinstance(image, Path):
                        limits.check(image)
            except FileError as error:
                reading.bad(error.path, f"example {example.id}", error.what, error.remedy)
                continue
            yield example

    def _once(self, folder: Path, split: str, reading: Reading) -> Iterator[Example]:
        """Yield each example; raise an error if an id occurs twice, if there is none, or if a file cannot be opened."""
        seen: set[str] = set()
        try:
            for example in self._bounded(folder, split, reading):
                if example.id in seen:
                    reading.bad(folder, f"{self.name}, {split}, {example.id}", "its id occurs twice")
                    continue
                seen.add(example.id)
                yield example
        except FileError as error:
            raise refused(error) from None
        except OSError as error:
            raise cannot_open(error.filename or folder, error) from None
        if not seen:
            what = "none of its records can be used" if reading.problems else "it has no examples"
            raise DataError(Problem(str(folder), f"{self.name}, {split}", what, "download its files again"))


def first_file(folder: Path, names: Iterable[str], remedy: str) -> Path:
    """The first of several names that exists (official downloads are unpacked in more than one way)."""
    tried = list(names)
    for name in tried:
        if (folder / name).is_file():
            return folder / name
    raise DataError(Problem(str(folder / tried[0]), "", "no such file", remedy))


def cannot_open(path: Path | str, error: OSError) -> DataError:
    """The error for a file that exists but cannot be opened: downloading it again would not help.

    >>> print(cannot_open("train.json", PermissionError(13, "Permission denied")))
    train.json: it cannot be opened (permission denied): ask for the right to read it
    """
    why = (error.strerror or type(error).__name__).lower()
    remedy = "ask for the right to read it" if isinstance(error, PermissionError) else ""
    return DataError(Problem(str(path), "", f"it cannot be opened ({why})", remedy))


def refused(error: FileError) -> DataError:
    """The error for a file that exists but is not opened, since it may be a trap."""
    return DataError(Problem(error.path, "", error.what, error.remedy))


def open_file(path: Path) -> BinaryIO:
    """Open a regular file for its bytes; if that fails, raise an error that says why."""
    try:
        return open_regular(path)
    except FileError as error:
        raise refused(error) from None
    except OSError as error:
        raise cannot_open(path, error) from None


def text_blocks(path: Path) -> Iterator[str]:
    """A UTF-8 file as text, about a million characters at a time; raises an error if it is not text."""
    decoder, count = codecs.getincrementaldecoder("utf-8-sig")(), 0
    with open_file(path) as file:
        block = b"start"
        while block:
            block = file.read(_BLOCK)
            count += len(block)
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:  # its object includes the last bytes of the previous block
                place = f"byte {count - len(error.object) + error.start}"
                raise DataError(Problem(str(path), place, "it is not UTF-8 text", "download it again")) from None
            if text:
                yield text


def read_text(path: Path) -> str:
    """A UTF-8 file as text, with any line endings; raises an error if it is not text."""
    return "".join(text_blocks(path))


def read_lines(path: Path) -> Iterator[tuple[int, bytes | None]]:
    """The lines of a file with their numbers, one at a time; None for a line that is far too long for any record."""
    number = 0
    with open_file(path) as file:
        while line := file.readline(_LONGEST_LINE):
            number += 1
            whole = len(line) < _LONGEST_LINE or line.endswith(b"\n")
            yield number, line if whole else None
            while not whole and (rest := file.readline(_LONGEST_LINE)):
                whole = rest.endswith(b"\n")


def read_json(path: Path) -> Any:
    """Load a JSON file; if it is not valid, the error says where."""
    try:
        return json.loads(read_text(path))
    except (ValueError, RecursionError) as error:  # ValueError also for a number of thousands of digits
        where = f"line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise DataError(Problem(str(path), where, f"it is not valid JSON ({error})", "download it again")) from None


def read_json_lines(path: Path, reading: Reading) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSON-lines file with their line numbers; a line that is not an object is a bad record."""
    empty = True
    for number, line in read_lines(path):
        if line is not None and not line.strip():
            continue
        empty = False
        try:
            value = _json_object(line, number)
        except ValueError as error:
            reading.bad(path, f"line {number}", str(error), "download the file again")
            continue
        yield number, value
    if empty:
        raise DataError(Problem(str(path), "", "it has no records", "download it again"))


def _json_object(line: bytes | None, number: int) -> dict[str, Any]:
    if line is None:
        raise ValueError("it is far too long")
    try:
        value = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8 text") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not JSON ({error})") from None
    if not isinstance(value, dict):
        raise ValueError("it is not a JSON object")
    return value


def get(record: Mapping[str, Any], name: str, kind: type[T] | tuple[type[T], ...]) -> T:
    """A field of a record, checked for its type; otherwise a ValueError with a message for `Reading.bad`.

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
