"""Large JSON files, one record at a time: the annotations of VQAv2 or COCO as whole objects would take gigabytes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.datasets.base import DataError, Problem, text_blocks


def stream_arrays(path: Path, *names: str) -> Iterator[tuple[str, int, Any]]:
    """The elements of some arrays of a JSON object, in the order of the file: (array, number, element).

    The other values are skipped. A file that breaks off, or does not have all the arrays, raises a DataError.

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
            scanner.skip()
            continue
        missing.discard(name)
        if scanner.peek() != "[":
            raise DataError(Problem(str(path), "", f"its {name!r} is not a list", "download it again"))
        scanner.take("[")
        for number, _ in enumerate(scanner.members("]"), 1):
            scanner.place = (name, number)
            yield name, number, scanner.value()
        scanner.place = None
    scanner.end()
    for name in sorted(missing):
        raise DataError(Problem(str(path), "", f"it has no {name!r}", "is it the right file?"))


class _Scanner:
    """A position in a JSON text, always at a token and never at white space. Only a part of the file is in memory."""

    _SPACE = re.compile(r"[ \t\n\r]*")

    def __init__(self, path: Path) -> None:
        self._path = path
        self._blocks = text_blocks(path)
        self._text = ""
        self._dropped = 0
        self._position = 0
        self._decode = json.JSONDecoder().raw_decode
        self.place: tuple[str, int] | None = None
        self._go(0)

    def members(self, close: str) -> Iterator[None]:
        """Stop at each member of an object or array in turn, up to its closing token."""
        if self.peek() == close:
            self.take(close)
            return
        while True:
            yield
            if self.take(close + ",") == close:
                return

    def key(self) -> str:
        """Consume a key and its colon."""
        name = self.value()
        if not isinstance(name, str):
            raise self._broken("a key is not a string")
        self.take(":")
        return name

    def value(self) -> Any:
        """Consume a whole value."""
        while True:
            try:
                found, position = self._decode(self._text, self._position)
            except (ValueError, RecursionError) as error:  # a plain ValueError if a number has thousands of digits
                if not self._cut(error) or not self._more():
                    raise self._broken(self._words(error)) from None
                continue
            # A number may continue beyond the part in memory, and "1.5e+" parses as 1.5 with three characters left
            # over.
            if position < len(self._text) - 3 or not self._more():
                self._go(position)
                return found

    def skip(self) -> None:
        """Skip a value, and a list one element at a time."""
        if self.peek() != "[":
            self.value()
            return
        self.take("[")
        for _ in self.members("]"):
            self.value()

    def peek(self) -> str:
        """The next token; empty at the end."""
        return self._text[self._position : self._position + 1]

    def take(self, marks: str) -> str:
        """Consume one of several tokens."""
        found = self.peek()
        if not found:
            raise self._broken("it breaks off")
        if found not in marks:
            raise self._broken(f"there is {found!r} where {' or '.join(marks)} was expected")
        self._go(self._position + 1)
        return found

    def end(self) -> None:
        """Check that nothing follows."""
        if self.peek():
            raise self._broken("something follows its end")

    def _go(self, position: int) -> None:
        self._position = self._after_space(position)
        while self._position == len(self._text) and self._more():
            self._position = self._after_space(0)

    def _after_space(self, position: int) -> int:
        match = self._SPACE.match(self._text, position)
        assert match is not None
        return match.end()

    def _more(self) -> bool:
        """Drop what was consumed, and read as much again as is left, so that a long value is not retried too often."""
        parts = [self._text[self._position :]]
        wanted = max(len(parts[0]), 1)
        while wanted > 0 and (block := next(self._blocks, None)) is not None:
            parts.append(block)
            wanted -= len(block)
        if len(parts) == 1:
            return False
        self._dropped += self._position
        self._text, self._position = "".join(parts), 0
        return True

    def _cut(self, error: ValueError | RecursionError) -> bool:
        """Whether a value may be wrong only because the part of the file in memory ends inside it."""
        if not isinstance(error, json.JSONDecodeError):
            return False
        # An error in a word, number or escape is reported at its beginning, up to this far from where it was cut.
        return error.pos > len(self._text) - 16 or error.msg.startswith("Unterminated string")

    def _words(self, error: ValueError | RecursionError) -> str:
        if not isinstance(error, json.JSONDecodeError):
            return str(error)
        return f"{error.msg} at character {self._dropped + error.pos}"

    def _broken(self, what: str) -> DataError:
        place = f"{self.place[0]} {self.place[1]}" if self.place else ""
        return DataError(Problem(str(self._path), place, f"it is not valid JSON ({what})", "download it again"))
