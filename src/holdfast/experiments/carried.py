"""Objects that cannot be found by name, as they travel to a run, possibly in another process."""

from __future__ import annotations

import pickle
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle  # type: ignore[import-untyped]

from holdfast import foreign, settings
from holdfast.errors import UserError
from holdfast.usercode import PREFIX, file_of, load, loaded


@dataclass(frozen=True)
class Carried:
    """A class or an object that a request carries along with its name, because no name finds it again.

    It includes what this process knows about its class, since the class has no module in another process.
    """

    kind: str
    """Its kind: `benchmark`, `algorithm` or `model`."""
    name: str
    value: Any
    """A class, which is instantiated for each run from the run's settings, or an object."""
    origin: str = ""
    """The script that created it; empty for a shell or a notebook."""

    def load(self) -> Any:
        """The class or the object, under the method that a registry entry has for its class."""
        return self.value

    def __str__(self) -> str:
        return f"the {self.kind} {self.name}"

    def __reduce__(self) -> tuple[Callable[..., Carried], tuple[Any, ...]]:
        kind = self.value if isinstance(self.value, type) else type(self.value)
        known = foreign.identity(kind), tuple(foreign.taken(kind)), settings.fields(kind)
        return _arrived, (kind, known, self.kind, self.name, self.value, self.origin)


def _arrived(kind: type, known: tuple[Mapping[str, Any], tuple[type, ...], Mapping[str, Any]], *own: Any) -> Carried:
    code, takes, hints = known
    if code:  # our own classes are the same everywhere
        foreign.receive(kind, code, takes)
        settings.receive(kind, hints)
    return Carried(*own)


def pack(value: Any) -> bytes:
    """Pack a value for another process, with the code of anything defined in a shell or in the running script.

    >>> unpack(pack(lambda: 7))()
    7
    """
    try:
        content = cloudpickle.dumps(value)
    except Exception as error:  # whatever an object's own methods raise
        raise UserError(
            f"an object cannot be sent to another process ({type(error).__name__}: {error}): leave out what cannot be "
            "pickled, such as open files and locks, or run in this process, with jobs=1"
        ) from error
    names = {name.decode() for name in re.findall(rb"%s\w+" % PREFIX.encode(), content)}
    files = {str(file) for name in names if (found := loaded(name)) and (file := file_of(found.module))}
    return pickle.dumps((sys.path, sorted(files), content))


def unpack(packed: bytes) -> Any:
    """Unpack a value that another process packed."""
    path, files, content = pickle.loads(packed)
    sys.path += [each for each in path if each not in sys.path]
    try:
        for file in files:  # each is named after the hash of its content, so other code is not mistaken for it
            load(Path(file))
        return pickle.loads(content)
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"an object of this run cannot be read in another process ({type(error).__name__}: {error}): its code may "
            "have changed since; run again, or with jobs=1"
        ) from error
