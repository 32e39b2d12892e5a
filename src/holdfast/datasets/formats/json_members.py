"""Large JSON objects that hold records by id, one record at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.datasets.base import DataError, Problem
from holdfast.datasets.formats.json_stream import _Scanner


def stream_members(path: Path) -> Iterator[tuple[str, Any]]:
    """The members of a file that is one JSON object, in the order of the file, also those of the same name.

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
