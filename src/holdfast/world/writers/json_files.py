"""Ways to write JSON to disk: whole values, lines, and objects with one list that is too long for memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def write_json(path: Path, value: object) -> None:
    r"""Write a value as one line of JSON without a final newline, like the official downloads.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_json(Path(folder) / "data" / "pairs.json", [["1", None]])
    ...     (Path(folder) / "data" / "pairs.json").read_text()
    '[["1", null]]'
    """
    data = json.dumps(value).encode()
    try:
        path.write_bytes(data)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def write_json_lines(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    r"""Write one JSON object per line, each ended by a line feed, in UTF-8 with letters unescaped.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_json_lines(Path(folder) / "train.jsonl", [{"a": 1}, {"a": 2}])
    ...     (Path(folder) / "train.jsonl").read_bytes()
    b'{"a": 1}\n{"a": 2}\n'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    encode = json.JSONEncoder(ensure_ascii=False).encode
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for record in records:
            file.write(encode(record) + "\n")


@contextmanager
def list_file(
    path: Path, head: Mapping[str, Any], name: str, tail: Mapping[str, Any] | None = None
) -> Iterator[Callable[[object], None]]:
    """Write a JSON object with the values of `head`, a list `name` that takes records, and the values of `tail`.

    The list is written record by record: a paper's million questions would not fit into the memory of a small machine.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with list_file(Path(folder) / "a.json", {"year": 2014}, "images", {"end": True}) as add:
    ...         add({"id": 9})
    ...         add({"id": 25})
    ...     (Path(folder) / "a.json").read_text()
    '{"year": 2014, "images": [{"id": 9}, {"id": 25}], "end": true}'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write("{" + "".join(f"{json.dumps(key)}: {json.dumps(value)}, " for key, value in head.items()))
        file.write(f"{json.dumps(name)}: [")
        separator = ""

        def add(record: object) -> None:
            nonlocal separator
            file.write(separator + json.dumps(record))
            separator = ", "

        yield add
        file.write("]" + "".join(f", {json.dumps(key)}: {json.dumps(value)}" for key, value in (tail or {}).items()))
        file.write("}")
