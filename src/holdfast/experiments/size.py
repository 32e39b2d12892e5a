"""The size of a run before any of it is built, from a model on torch's meta device, which allocates nothing."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.overrides import TorchFunctionMode

from holdfast.benchmarks.base import Setup
from holdfast.errors import UserError, in_bytes
from holdfast.experiments.config import Config
from holdfast.models.base import Model
from holdfast.models.huggingface import HuggingFace
from holdfast.types import Head, Inputs, Training

MOST_TENSORS = 50_000
"""No trainable model has as many weight tensors: one with a thousand layers has 16,000."""
LEAST = tuple(
    Inputs(image=(channels, side, side), text=4, vocabulary=words, regions=(1, 8), grid=(8, 4, 4))
    for words in (30, 30_522)
    for channels, side in ((1, 12), (3, 32), (3, 64), (3, 224))
)
"""Data smaller than any benchmark's, in the forms that our models take; with BERT's weights, only BERT's words."""


@dataclass(frozen=True)
class RunSize:
    """The resources of a run: memory without a batch's activations, and disk while it trains."""

    parameters: int
    memory: int
    """Weights, gradients and the optimiser's moments, if everything is trained."""
    disk: int
    """Two checkpoints and the final weights."""


@dataclass
class _Count:
    tensors: int = 0
    parameters: int = 0
    refused: bool = False


@contextmanager
def bounded(most: int, what: str) -> Iterator[_Count]:
    """Count the parameters that modules register; raise a UserError for more tensors or bytes than allowed."""
    count = _Count()

    def registered(module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        if isinstance(parameter, nn.Parameter):
            count.tensors += 1
            count.parameters += parameter.numel()
            count.refused = count.tensors > MOST_TENSORS or count.parameters * parameter.element_size() > most
            if count.tensors > MOST_TENSORS:
                raise UserError(f"{what} has more than {MOST_TENSORS:,} weight tensors: give it fewer layers")
            if count.refused:
                raise UserError(
                    f"{what} has at least {count.parameters:,} parameters, and there is memory for {in_bytes(most)} "
                    "of them: make it smaller"
                )

    handle = register_module_parameter_registration_hook(registered)
    try:
        yield count
    finally:
        handle.remove()


def estimate(config: Config, setup: Setup, parameters: int | None = None) -> RunSize | None:
    """The size of a run; None for an external model, unless its number of parameters is given."""
    if parameters is None and (parameters := _parameters(config.recipe, setup.inputs, _heads(setup))) is None:
        return None
    own = 8 if config.request.precision == "float64" else 4
    moments = max(_moments(stage.training) for stage in setup.stream.stages)
    state = parameters * own * (1 + moments)
    return RunSize(parameters, state + parameters * own, 2 * state + parameters * own)


def _heads(setup: Setup) -> tuple[tuple[str, Head], ...]:
    return tuple(sorted({task.head: task.reads for task in setup.tasks.values()}.items()))


def parameters_outside(config: Config, setup: Setup) -> int | None:
    """The number of parameters of an external model, which is built once more for this purpose, without values.

    Heads are not counted if the encoder must see data before they are built. None for a built-in model, and for a model
    that cannot be built in this way.
    """
    model = config.recipe
    if _is_ours(model):
        return None
    with bounded(free_memory(), f"the model {config.model!r}") as count, _unbuilt():
        try:
            built = model.bare()
            if built is None:
                built = model.build(setup.inputs, dict(_heads(setup)))
        except Exception:  # building it for real raises a better error
            if count.refused:
                raise
            return None
    return sum(parameter.numel() for parameter in built.parameters())


def refuse_too_large(config: Config, setup: Setup, device: torch.device, built: nn.Module | None = None) -> None:
    """Refuse a run whose weights, gradients and moments do not fit into memory; if the model is built, only what is
    still missing counts.
    """
    parameters: int | None
    if built is not None:
        parameters = sum(parameter.numel() for parameter in built.parameters())
    else:  # its configuration says how large it is, before any weights are read
        parameters = parameters_outside(config, setup) if isinstance(config.recipe, HuggingFace) else None
    size = estimate(config, setup, parameters)
    free = free_memory() if device.type == "cpu" else torch.cuda.mem_get_info(device)[1]
    if built is not None and device.type == "cpu":
        free += sum(parameter.nbytes for parameter in built.parameters())
    if size is not None and size.memory > free:
        raise UserError(
            f"the model {config.model!r} has {size.parameters:,} parameters: with gradients and moments they take "
            f"{in_bytes(size.memory)}, and there are {in_bytes(free)} of memory: make it smaller"
        )


@lru_cache
def refuse_unbuildable(model: Model) -> None:
    """Raise a UserError, before any data is read, for a model that is too large whatever data it sees."""
    if not _is_ours(model):
        return
    for inputs in LEAST:
        with bounded(free_memory(), f"the model {type(model).__name__}") as count, _unbuilt():
            try:
                model.encoder(inputs)
            except Exception:  # it does not take such data: its size is known once the real data is
                if count.refused:
                    raise
            else:
                return


@lru_cache
def _parameters(model: Model, inputs: Inputs, heads: tuple[tuple[str, Head], ...]) -> int | None:
    if not _is_ours(model):
        return None
    with bounded(free_memory(), f"the model {type(model).__name__}") as count, _unbuilt():
        try:
            built = model.build(inputs, dict(heads))
        except UserError:  # the model does not suit the data or its tasks
            raise
        except Exception:  # building it for real raises a better error
            if count.refused:
                raise
            return None
    return sum(parameter.numel() for parameter in built.parameters())


def free_memory() -> int:
    """The bytes of memory that this process may still allocate, on the machine or in its container."""
    found = re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(encoding="ascii"))
    free = int(found[1]) * 1024 if found else 1 << 62
    with suppress(OSError, ValueError):  # without a limit, its file says "max"
        group = Path("/sys/fs/cgroup")
        used = int((group / "memory.current").read_text(encoding="ascii"))
        free = min(free, int((group / "memory.max").read_text(encoding="ascii")) - used)
    return max(free, 0)


class _Undrawn(TorchFunctionMode):
    """Leaves weights without numbers: on the meta device, drawing imports `torch._dynamo`, which takes a second."""

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: Sequence[Any] = (), named: Any = None
    ) -> Any:
        named = named or {}
        if function is torch.Tensor.normal_ or getattr(function, "__module__", "") == nn.init.__name__:
            return args[0] if args else named["tensor"]
        if function is torch.randn:
            return torch.empty(*args, **named)
        return function(*args, **named)


@contextmanager
def _unbuilt() -> Iterator[None]:
    """Build modules without their values, leaving the random state as it was."""
    with (
        torch.random.fork_rng(devices=[]),
        torch.device("meta"),
        _Undrawn(),
        warnings.catch_warnings(action="ignore"),
    ):
        yield


def _is_ours(model: Model) -> bool:
    module = type(model).__module__
    return module.startswith("holdfast.models.") and module.rpartition(".")[2] not in ("module", "huggingface")


def _moments(training: Training) -> int:
    return 2 if training.optimiser != "sgd" else int(training.momentum > 0)
