"""Large JSON files, one record at a time: the annotations of VQAv2 or COCO as whole objects would take gigabytes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.datasets.base import DataError, Problem, read_text


def stream_arrays(path: Path, *names: str) -> Iterator[tuple[str, int, Any]]:
    """The elements of some arrays of a JSON object, in the order of the file: (array, number, element).

    The other values are passed over. A file that breaks off, or has not all the arrays, is a DataError.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "questions.json"
    >>> _ = path.write_text('{"info": {}, "questions": [{"question_id": 3}, {"question_id": 4}]}')
    >>> list(stream_arrays(path, "questions"))
    [('questions', 1, {'question_id': 3}), ('questions', 2, {'question_id': 4})]
    """
    scanner = _Scanner(path)
    missing = set(names)
    scanner.take("{")
    for _ in scanner.members("}"):
        name = scanner.key()
        if name not in names:
            scanner.value()
            continue
        missing.discard(name)
        if scanner.peek() != "[":
            raise DataError(Problem(str(path), "", f"its {name!r} is no list", "download it again"))
        scanner.take("[")
        for number, _ in enumerate(scanner.members("]"), 1):
            scanner.place = (name, number)
            yield name, number, scanner.value()
        scanner.place = None
    scanner.end()
    for name in sorted(missing):
        raise DataError(Problem(str(path), "", f"it has no {name!r}", "is it the right file?"))


class _Scanner:
    """A position in a JSON text, always at a mark and never at white space."""

    _SPACE = re.compile(r"[ \t\n\r]*")

    def __init__(self, path: Path) -> None:
        self._path = path
        self._text = read_text(path)
        self._decode = json.JSONDecoder().raw_decode
        self._position = 0
        self.place: tuple[str, int] | None = None
        self._go(0)

    def members(self, close: str) -> Iterator[None]:
        """Stand at each member of an object or array in turn, up to its closing mark."""
        if self.peek() == close:
            self.take(close)
            return
        while True:
            yield
            if self.take(close + ",") == close:
                return

    def key(self) -> str:
        """Take a key and its colon."""
        name = self.value()
        if not isinstance(name, str):
            raise self._broken("a key is no string")
        self.take(":")
        return name

    def value(self) -> Any:
        """Take a whole value."""
        try:
            found, position = self._decode(self._text, self._position)
        except (ValueError, RecursionError) as error:  # a plain ValueError where a number has thousands of digits
            raise self._broken(str(error)) from None
        self._go(position)
        return found

    def peek(self) -> str:
        """The mark that comes next; empty at the end."""
        return self._text[self._position : self._position + 1]

    def take(self, marks: str) -> str:
        """Take one of some marks."""
        found = self.peek()
        if not found:
            raise self._broken("it breaks off")
        if found not in marks:
            raise self._broken(f"there is {found!r} where {' or '.join(marks)} should stand")
        self._go(self._position + 1)
        return found

    def end(self) -> None:
        """Nothing may follow."""
        if self.peek():
            raise self._broken("something follows its end")

    def _go(self, position: int) -> None:
        match = self._SPACE.match(self._text, position)
        assert match is not None
        self._position = match.end()

    def _broken(self, what: str) -> DataError:
        place = f"{self.place[0]} {self.place[1]}" if self.place else ""
        return DataError(Problem(str(self._path), place, f"it is not whole JSON ({what})", "download it again"))
