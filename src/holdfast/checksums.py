"""Checksums of stored files, which detect damage by a disk, a copy or an editor when the files are read.

A JSON file has its checksum as its last field: 64 bits of BLAKE2b over the values in a canonical form, so that its
layout may change. A file of arrays has it in its header, or in a note beside it, over all of its bytes. Such files may
be large, so the checksum covers the CRC-32 of each megabyte, which detects up to three flipped bits and bursts of 32,
and the sum of its words: that takes a quarter of the time of BLAKE2b.

Checksums protect against accidents: whoever can write a file can also write its checksum.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.files import FileError, open_regular, read_bytes

FIELD = "checksum"
LENGTH = 16
"""The digits of a checksum."""
_BLOCK = 1 << 20
_THREADS = 4
_MOST_HEADER = 100_000_000
"""As safetensors itself allows."""


class DamagedError(ValueError):
    """A stored file differs from what was written."""


def of_bytes(content: bytes) -> str:
    """The checksum of some bytes.

    >>> of_bytes(b"") == of_bytes(b"") != of_bytes(b"0")
    True
    """
    return hashlib.blake2b(content, digest_size=LENGTH // 2).hexdigest()


def of_value(value: Any) -> str:
    """The checksum of a JSON value, independent of layout.

    >>> of_value({"a": 1, "b": (2, 3)}) == of_value({"b": [2, 3], "a": 1})
    True
    """
    return _of_plain(json.loads(json.dumps(value)))


def _of_plain(value: Any) -> str:
    """The checksum of a value that was read from JSON."""
    return of_bytes(json.dumps(value, sort_keys=True, separators=(",", ":")).encode())


def of_file(path: Path, blank: int | None = None) -> str:
    """The checksum of a file; `blank` is the range of a checksum within it, which counts as zeros.

    Blocks are read by several threads.
    """
    with open_regular(path) as file:
        number = file.fileno()
        size = os.fstat(number).st_size

        def block(start: int) -> bytes:
            content = os.pread(number, _BLOCK, start)
            if len(content) < min(_BLOCK, size - start):
                raise DamagedError("it became shorter while it was read")
            if blank is not None and start - LENGTH < blank < start + _BLOCK:
                first, last = max(blank - start, 0), min(blank + LENGTH - start, len(content))
                content = content[:first] + b"0" * (last - first) + content[last:]
            words = np.frombuffer(content.ljust(-(-len(content) // 8) * 8, b"\0"), "<u8")
            return zlib.crc32(content).to_bytes(4) + int(words.sum(dtype=np.uint64)).to_bytes(8)

        starts = range(0, size, _BLOCK)
        if len(starts) < 2:
            digests = list(map(block, starts))
        else:
            with ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1)) as threads:
                digests = list(threads.map(block, starts))
    return of_bytes(size.to_bytes(8) + b"".join(digests))


def sealed(value: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON object with its checksum.

    >>> opened(sealed({"score": 0.5}))
    {'score': 0.5}
    """
    assert FIELD not in value
    return {**value, FIELD: of_value(value)}


def opened(value: Any, *, required: bool = False) -> Any:
    """A JSON value without its checksum, which is verified; values from before checksums existed have none.

    >>> opened({"score": 0.9, "checksum": "0123456789abcdef"})
    Traceback (most recent call last):
    holdfast.checksums.DamagedError: its checksum is wrong: it was damaged, or changed by hand
    """
    if not isinstance(value, dict):
        return value
    if FIELD in value:
        bare = {name: part for name, part in value.items() if name != FIELD}
        if value[FIELD] != _of_plain(bare):
            raise DamagedError("its checksum is wrong: it was damaged, or changed by hand")
        return bare
    if required or any(map(_resembles, value)):
        raise DamagedError("its checksum is missing: it was damaged, or changed by hand")
    return value


def _resembles(name: str) -> bool:
    """Whether a name differs from `FIELD` by one or two characters: such damage must not pass for an old file."""
    return len(name) == len(FIELD) and sum(a != b for a, b in zip(name, FIELD, strict=True)) < 3


def read_json(path: Path, *, required: bool = False) -> Any:
    """The value of a JSON file, whose checksum is verified."""
    return opened(json.loads(read_bytes(path)), required=required)


def is_sealed(path: Path) -> bool:
    """Whether a JSON file has a checksum, which is verified."""
    value = json.loads(read_bytes(path))
    opened(value)
    return isinstance(value, dict) and FIELD in value


def of_folder(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """The checksums of some files of a folder."""
    return {name: of_file(folder / name) for name in sorted(names)}


def check_folder(folder: Path, checksums: Mapping[str, str]) -> None:
    """Raise a DamagedError if a file has changed, and an OSError if one is gone."""
    for name, checksum in checksums.items():
        if _of_unchanged(folder / name) != checksum:
            raise DamagedError(f"{name} was damaged, or changed")


_VERIFIED: dict[tuple[int, ...], str] = {}


def _of_unchanged(path: Path) -> str:
    """The checksum of a file, computed once in a process as long as its status shows no writes."""
    state = path.stat()
    key = (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)
    if key not in _VERIFIED:
        _VERIFIED[key] = of_file(path)
    return _VERIFIED[key]


_BEFORE = f'{{"{FIELD}": "'
"""The start of the JSON text under `state` in the header of our safetensors files."""


def room() -> dict[str, str]:
    """The first field of that text: zeros, until `seal_tensors` puts the checksum there."""
    return {FIELD: "0" * LENGTH}


def seal_tensors(path: Path) -> None:
    """Write the checksum of a safetensors file into its header."""
    place = _place(_header(path))
    checksum = of_file(path, place)
    with path.open("r+b") as file:
        file.seek(place)
        file.write(checksum.encode("ascii"))


def check_tensors(path: Path) -> bool:
    """Raise a DamagedError if one of our safetensors files is damaged; return False if it predates checksums."""
    header = _header(path)
    try:
        metadata = json.loads(header[8:])["__metadata__"]
        text = metadata["state"]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise DamagedError("its header is damaged") from None
    if metadata.keys() == {"state"} and isinstance(text, str) and text.startswith('{"dict": '):
        return False
    place = _place(header)
    if header[place : place + LENGTH] != of_file(path, place).encode():
        raise DamagedError("its checksum is wrong: it was damaged")
    return True


def _header(path: Path) -> bytes:
    """The first part of a safetensors file: eight bytes with a length, and JSON of this length."""
    with open_regular(path) as file:
        head = file.read(8)
        length = int.from_bytes(head, "little")
        if length > min(_MOST_HEADER, os.fstat(file.fileno()).st_size):
            raise DamagedError("its header is damaged")
        return head + file.read(length)


def _place(header: bytes) -> int:
    """The position of the checksum in a header: nothing else can look like it, since quotes would be escaped."""
    before = f'"state":{json.dumps(_BEFORE)[:-1]}'.encode()
    if (found := header.find(before)) < 0:
        raise DamagedError("its header is damaged")
    return found + len(before)


def note_of(path: Path) -> Path:
    """The path of the note with the checksum of a file that cannot contain it."""
    return path.with_name(f".{path.name.lstrip('.')}.checksum")


def seal(path: Path) -> None:
    """Write the note with the checksum of a new file."""
    note = note_of(path)
    temporary = note.with_name(f"{note.name}.{os.getpid()}")
    temporary.write_text(of_file(path), encoding="ascii")
    temporary.rename(note)


def is_intact(path: Path) -> bool:
    """Whether a file exists and matches its note."""
    try:
        return read_bytes(note_of(path)).decode("ascii") == of_file(path)
    except (OSError, ValueError, FileError):
        return False
