"""A hash of a module in memory: its weights, its structure, and everything else that it holds."""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

TORCHS = frozenset(vars(nn.Module())) - {"_parameters", "_buffers", "_modules"}
"""The attributes of every module, such as hooks and the training mode."""
INSTALLED = ("site-packages", "dist-packages")


def installed(module: str) -> bool:
    """Whether a module of this name is installed or part of Python: a run's id does not cover its code.

    >>> installed("torch.nn"), installed("json")
    (True, True)
    """
    if module.partition(".")[0] in sys.stdlib_module_names or module not in sys.modules:
        return module != "__main__"
    file = getattr(sys.modules[module], "__file__", None)
    return file is not None and bool(set(INSTALLED) & set(Path(file).parts))


def fingerprint(module: nn.Module) -> str:
    """A hash that is the same wherever the same module is created with the same weights.

    It covers the class of each submodule, with its file, and every attribute: tensors by their
    values, numbers, texts and their containers by content, functions by name, and other objects by
    their attributes.

    >>> fingerprint(nn.Dropout(0.1)) == fingerprint(nn.Dropout(0.1)) != fingerprint(nn.Dropout(0.2))
    True
    """
    digest = hashlib.blake2b(digest_size=8)
    _Feeder(digest).feed(module)
    return digest.hexdigest()


def attributes(modules: Iterable[nn.Module]) -> str:
    """A hash of modules apart from their registered weights: the class of each, and its other attributes.

    >>> one, other = nn.Linear(2, 2), nn.Linear(2, 2)
    >>> attributes([one]) == attributes([other]) != attributes([nn.ReLU()])
    True
    >>> other.scale = torch.ones(1)
    >>> attributes([one]) == attributes([other])
    False
    """
    digest = hashlib.blake2b(digest_size=8)
    feeder = _Feeder(digest, whole=False)
    for module in modules:
        feeder.module(module)
    return digest.hexdigest()


class _Feeder:
    def __init__(self, digest: Any, whole: bool = True) -> None:
        self._digest, self._whole = digest, whole
        self._seen: dict[int, tuple[int, Any]] = {}

    def feed(self, value: Any) -> None:
        """Feed a value, or a reference if it occurred before."""
        if isinstance(value, bool | int | float | complex | str | bytes | None):
            self._say(type(value).__name__, repr(value))
            return
        if isinstance(value, nn.Module) and not self._whole:  # another object refers to it
            self._code(type(value))
            return
        if id(value) in self._seen:
            self._say("again", str(self._seen[id(value)][0]))
            return
        self._seen[id(value)] = len(self._seen), value
        if isinstance(value, Tensor):
            self._tensor(value)
        elif isinstance(value, np.ndarray):
            self._say(str(value.dtype), str(value.shape))
            self._digest.update(np.ascontiguousarray(value).tobytes())
        elif isinstance(value, Mapping):
            self._say("mapping", str(len(value)))
            for key, each in value.items():
                self.feed(key)
                self.feed(each)
        elif isinstance(value, list | tuple):
            self._say("sequence", str(len(value)))
            for each in value:
                self.feed(each)
        elif isinstance(value, set | frozenset):
            self._say("set", *sorted(map(repr, value)))
        elif isinstance(value, functools.partial):
            self.feed([value.func, value.args, value.keywords])
        elif isinstance(value, type | FunctionType) or (callable(value) and not hasattr(value, "__dict__")):
            self._code(value)
        elif isinstance(value, torch.dtype | torch.device):
            self._say(str(value))
        else:
            self._code(type(value))
            own = getattr(value, "__dict__", {})
            self.feed(
                {name: own[name] for name in sorted(own) if not isinstance(value, nn.Module) or name not in TORCHS}
            )

    def module(self, module: nn.Module) -> None:
        """Feed a module without its registered weights and modules."""
        self._code(type(module))
        own = vars(module)
        self.feed({name: own[name] for name in sorted(own.keys() - TORCHS - {"_parameters", "_buffers", "_modules"})})

    def _tensor(self, value: Tensor) -> None:
        self._say("tensor", str(value.dtype), str(tuple(value.shape)), str(value.requires_grad))
        if not value.is_meta and not torch.nn.parameter.is_lazy(value):
            found = value.detach().cpu().contiguous().flatten()
            self._digest.update(found.view(torch.uint8).numpy().tobytes() if found.numel() else b"")

    def _code(self, value: Any) -> None:
        """A class or function: its name, and the file that it is in, if it is the user's."""
        module = str(getattr(value, "__module__", ""))
        self._say(module, str(getattr(value, "__qualname__", repr(type(value)))))
        file = getattr(sys.modules.get(module), "__file__", None)
        if file is not None and not installed(module):
            self._digest.update(Path(file).read_bytes())
        elif isinstance(value, FunctionType) and not installed(module):
            self._say(value.__code__.co_code.hex(), repr(value.__code__.co_consts))

    def _say(self, *words: str) -> None:
        self._digest.update("\0".join(words).encode("utf-8", "surrogatepass") + b"\0\0")
