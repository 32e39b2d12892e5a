"""The content of an object as a hash: a run's id covers the fields of objects that JSON cannot express."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import torch

from holdfast.errors import UserError
from holdfast.foreign import code_of, identity
from holdfast.settings import shown


def content_of(name: str, value: Any) -> str:
    """A hash of everything that a value holds; raises UserError if no hash can cover it.

    >>> content_of("Mine.weights", [torch.zeros(2)]) == content_of("Mine.weights", [torch.zeros(2)])
    True
    >>> content_of("Mine.weights", object())
    Traceback (most recent call last):
    holdfast.errors.UserError: Mine.weights holds an object of the class object, which a run's id cannot cover: ...
    """
    digest = hashlib.blake2b(digest_size=8)
    _feed(digest, name, value)
    return digest.hexdigest()


def _feed(digest: Any, name: str, value: Any) -> None:
    digest.update(f"{type(value).__qualname__}\0".encode())
    if value is None or isinstance(value, bool | int | float | str | bytes | Path | enum.Enum | np.generic):
        digest.update(f"{value!r}\0".encode())
    elif hasattr(value, "fingerprint") and not isinstance(value, type):
        digest.update(f"{value.fingerprint()}\0".encode())
    elif isinstance(value, type):
        digest.update(f"{value.__qualname__} {identity(value)}\0".encode())
    elif isinstance(value, FunctionType):
        digest.update(f"{code_of(value, value.__module__ or '')}\0".encode())
    elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
        digest.update(f"{value.dtype} {value.shape}\0".encode())
        digest.update(np.ascontiguousarray(value).data.cast("B") if value.size else b"")
    elif isinstance(value, torch.Tensor):
        _feed(digest, name, value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
        digest.update(f"{value.dtype} {tuple(value.shape)}\0".encode())
    elif isinstance(value, torch.nn.Module):
        _all(digest, name, [repr(value), type(value), *value.state_dict().items()])
    elif isinstance(value, Mapping):
        _all(digest, name, sorted(value.items(), key=repr))
    elif isinstance(value, list | tuple):
        _all(digest, name, value)
    elif isinstance(value, set | frozenset):
        _all(digest, name, sorted(value, key=repr))
    elif is_dataclass(value):
        _all(digest, name, [type(value), *((each.name, getattr(value, each.name)) for each in fields(value))])
    else:
        raise UserError(
            f"{name} holds {shown(value)}, which a run's id cannot cover: give its class a method fingerprint() that "
            "returns a text that differs whenever the result of a run would differ"
        )


def _all(digest: Any, name: str, values: Iterable[Any]) -> None:
    for each in values:
        _feed(digest, name, each)
    digest.update(b";\0")
