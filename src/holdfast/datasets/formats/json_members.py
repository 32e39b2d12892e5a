"""Large JSON files that are one object of records by id, or one list of them, one record at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.datasets.base import DataError, Problem, Reading
from holdfast.datasets.formats.json_stream import _Scanner


def stream_members(path: Path) -> Iterator[tuple[str, Any]]:
    """The members of a file that is one JSON object, in the order of the file, including repeated names.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "val_sceneGraphs.json"
    >>> _ = path.write_text('{"2407890": {"width": 640}, "1": {"width": 320}}')
    >>> list(stream_members(path))
    [('2407890', {'width': 640}), ('1', {'width': 320})]
    """
    scanner = _Scanner(path)
    scanner.take("{")
    name = None
    for _ in scanner.members("}"):
        name = scanner.key()
        yield name, scanner.value()
    scanner.end()
    if name is None:
        raise DataError(Problem(str(path), "", "it has no records", "download it again"))


def stream_objects(path: Path, reading: Reading, what: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The JSON objects of a file that is one list, with their positions; a non-object is a bad record.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "categories.json"
    >>> _ = path.write_text('[{"id": 1}, {"id": 2}]')
    >>> list(stream_objects(path, Reading(), "category"))
    [(0, {'id': 1}), (1, {'id': 2})]
    """
    scanner = _Scanner(path)
    if scanner.peek() not in ("[", ""):
        raise DataError(Problem(str(path), "", f"it is not a list with a record for each {what}", "download it again"))
    scanner.take("[")
    for position, _ in enumerate(scanner.members("]")):
        record = scanner.value()
        if isinstance(record, dict):
            yield position, record
        else:
            reading.bad(path, f"{what} at position {position}", "it is not a JSON object")
    scanner.end()
