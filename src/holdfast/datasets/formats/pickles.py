"""Pickles of plain values: lists, dictionaries, tuples, texts and numbers, read without executing anything."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from holdfast.datasets.base import DataError, Problem, open_file


class _PlainUnpickler(pickle._Unpickler):
    """Finds no classes at all. Python's version is used because the one in C trusts sizes declared in a file."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it asks for {module}.{name}, but may only contain lists, texts and numbers")


def load_plain(path: Path, remedy: str) -> Any:
    """The value in a pickle; a DataError if it is damaged, or if it asks for anything to be imported.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "phrases.pkl"
    >>> _ = path.write_bytes(pickle.dumps([{"mask": (3, 5)}]))
    >>> load_plain(path, "download it again")
    [{'mask': (3, 5)}]
    """
    with open_file(path) as file:
        try:
            return _PlainUnpickler(file).load()
        except Exception as error:  # a broken pickle can fail in any way
            what = f"it is not a pickle of plain values ({error!s:.100})"
            raise DataError(Problem(str(path), "", what, remedy)) from None
