"""The part of a forward pass that no longer changes: found in an encoder, recorded once, and then reused.

Below the lowest trainable layer, an encoder's output for an example is the same in every epoch. `find` looks for as
large a part as possible: the whole encoder, else its towers, else its lowest layers. It inspects no code: it proves on
a few examples, in training and in evaluation mode, that a pass with recorded values equals a plain pass. An encoder
with dropout below, or with a path around the recorded point, fails that proof and is computed in full.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from weakref import ReferenceType, ref

import torch
from torch import Tensor, nn

from holdfast.models.fingerprint import attributes

if TYPE_CHECKING:
    from holdfast.models.base import Encoder

PROBE = 7
"""The number of examples in the proof. It is prime, so that sizes which depend on it can be recognised."""
PICKED = (5, 1, 2)
"""The examples passed through again in the proof, in this order: rows must not depend on their neighbours."""
METHODS = ("forward", "words")
"""The methods by which a head calls an encoder."""
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4}
"""The largest difference from a plain pass, relative to the largest output; 0.02 for shorter types."""

Run = Callable[[Mapping[str, Tensor]], Tensor]
"""A pass through the encoder and a head."""


class UnsuitableError(Exception):
    """A part cannot be recorded."""


class _ReachedError(BaseException):
    """Ends a pass at the last recorded call, since the rest is not needed."""


@dataclass(frozen=True)
class RowLayout:
    """The sizes of a tensor, and how many slices of its first dimension belong to each row (None: it has no rows)."""

    each: int | None
    sizes: tuple[int, ...]
    dtype: torch.dtype

    @property
    def row(self) -> tuple[int, ...]:
        """The sizes of one row, as it is stored."""
        assert self.each is not None
        return (self.each, *self.sizes)

    def empty(self, rows: int, like: Tensor) -> Tensor:
        """A tensor of zeros with these sizes."""
        first = () if self.each is None else (rows * self.each,)
        return torch.zeros((*first, *self.sizes), dtype=self.dtype, device=like.device)


@dataclass(frozen=True)
class Call:
    """One call in a pass: the module, the method, and the layout of its output."""

    module: nn.Module
    method: str
    kind: type
    layouts: tuple[RowLayout | None, ...]

    def output(self, tensors: Sequence[Tensor | None]) -> Any:
        """These tensors in the form of the call's output: one tensor, a tuple or a list."""
        return tensors[0] if self.kind is Tensor else self.kind(tensors)


class FrozenPart:
    """The modules whose outputs are recorded, and those below them, which need not be computed then."""

    def __init__(self, encoder: Encoder, sites: Sequence[nn.Module], below: Sequence[nn.Module] = ()) -> None:
        self.encoder, self.sites, self.below = encoder, tuple(sites), tuple(below)
        self.calls: tuple[Call, ...] = ()
        """The calls of the sites in a pass, in order."""
        self.skipped: Mapping[nn.Module, tuple[Call, ...]] = {}
        """The calls of the modules below, whose outputs are not used."""
        self._copies: dict[int, tuple[ReferenceType[Encoder], list[tuple[int, int]], FrozenPart | None]] = {}
        """The results of `within` for copies of the encoder, with the weights that they hold for."""

    @property
    def whole(self) -> bool:
        """Whether it is the whole encoder."""
        return self.sites == (self.encoder,)

    @property
    def towers(self) -> bool:
        """Whether it consists of towers of the encoder, whose outputs depend on the inputs alone."""
        return not self.whole and set(self.sites) <= set(self.encoder.towers())

    @property
    def title(self) -> str:
        """A description of the part."""
        if self.whole:
            return "the encoder"
        layers = list(self.encoder.layers())
        if self.sites[0] in layers:
            return f"{layers.index(self.sites[0]) + 1} of {len(layers)} layers"
        return " and ".join(name for name, module in self.encoder.named_modules() if module in self.sites)

    def within(self, encoder: Encoder) -> FrozenPart | None:
        """The same part of another encoder, if that is a copy with the same weights there, such as a teacher."""
        if encoder is self.encoder:
            return self
        versions = [(id(each), each._version) for each in chain(encoder.parameters(), encoder.buffers())]
        known = self._copies.get(id(encoder))
        if known is None or known[0]() is not encoder or known[1] != versions:
            self._copies[id(encoder)] = known = (ref(encoder), versions, self._copied(encoder))
        return known[2]

    def _copied(self, encoder: Encoder) -> FrozenPart | None:
        modules = dict(encoder.named_modules())
        names = {module: name for name, module in self.encoder.named_modules()}
        if type(encoder) is not type(self.encoder) or any(
            names[each] not in modules for each in (*self.sites, *self.below)
        ):
            return None

        def moved(calls: Sequence[Call]) -> tuple[Call, ...]:
            return tuple(replace(call, module=modules[names[call.module]]) for call in calls)

        theirs = dict(chain(encoder.named_parameters(), encoder.named_buffers()))
        found = FrozenPart(encoder, *([modules[names[each]] for each in some] for some in (self.sites, self.below)))
        for name, weight in self.weights().items():
            other = theirs.get(name.removeprefix("."))
            if other is None or other.requires_grad or other.shape != weight.shape or not torch.equal(other, weight):
                return None
        found.calls = moved(self.calls)
        found.skipped = {modules[names[each]]: moved(calls) for each, calls in self.skipped.items()}
        return found

    @property
    def layouts(self) -> list[RowLayout]:
        """The layout of each recorded column."""
        return [layout for call in self.calls for layout in call.layouts if layout is not None]

    def modules(self) -> dict[str, nn.Module]:
        """All modules on which the recorded values may depend, by name."""
        if self.towers:
            inner = {each for site in self.sites for each in site.modules()}
            return {name: module for name, module in self.encoder.named_modules() if module in inner}
        layers = list(self.encoder.layers())
        above = set[nn.Module]()
        if self.sites[0] in layers:
            above = {each for layer in layers[layers.index(self.sites[0]) + 1 :] for each in layer.modules()}
        return {name: module for name, module in self.encoder.named_modules() if module not in above}

    def weights(self) -> dict[str, Tensor]:
        """All tensors on which the recorded values may depend, by name."""
        found: dict[str, Tensor] = {}
        for name, module in self.modules().items():
            own = [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]
            found |= {f"{name}.{each}": value for each, value in own if not value.requires_grad}
        return found

    def structure(self) -> str:
        """A hash of these modules apart from their weights, with the versions of the packages that define them."""
        modules = self.modules().values()
        packages = {type(module).__module__.partition(".")[0] for module in modules}
        versions = {name: str(getattr(sys.modules.get(name), "__version__", "")) for name in sorted(packages)}
        return f"{attributes(modules)} {versions}"

    def hooked(self) -> bool:
        """Whether hooks observe or change these modules, which recorded values would bypass."""
        return any(
            module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module)
            for module in self.modules().values()
        )

    def columns(self, run: Callable[[], Any], rows: int) -> list[Tensor]:
        """The outputs of the sites in a pass over some rows: one tensor per column, one row per example."""
        calls, tensors = self._recorded(run, rows, len(self.calls))
        if [(c.module, c.method, c.layouts) for c in calls] != [(c.module, c.method, c.layouts) for c in self.calls]:
            raise UnsuitableError("its passes are not all alike")
        return tensors

    @contextmanager
    def given(self, columns: Sequence[Tensor]) -> Iterator[None]:
        """A context manager in which a pass uses the recorded values instead of computing the sites."""
        rows, left, pending = len(columns[0]), iter(columns), iter(self.calls)
        skipped = {module: iter(calls) for module, calls in self.skipped.items()}
        zeros: dict[RowLayout, Tensor] = {}

        def recorded(module: nn.Module, method: str, *args: Any, **named: Any) -> Any:
            call = next(pending, None)
            if call is None or (call.module, call.method) != (module, method):
                raise UnsuitableError("its passes are not all alike")
            return call.output([None if each is None else next(left).flatten(0, 1) for each in call.layouts])

        def passed_over(module: nn.Module, *args: Any, **named: Any) -> Any:
            call = next(skipped[module], None)
            if call is None:
                raise UnsuitableError("its passes are not all alike")
            for layout in call.layouts:
                if layout is not None and layout not in zeros:
                    zeros[layout] = layout.empty(rows, columns[0])
            return call.output([None if layout is None else zeros[layout] for layout in call.layouts])

        stubs = {(module, method): partial(recorded, module, method) for module, method in self._asked()}
        stubs |= {(module, "forward"): partial(passed_over, module) for module in skipped}
        with _replaced(stubs):
            yield
        if next(pending, None) is not None:
            raise UnsuitableError("its passes are not all alike")

    def prove(self, run: Run, inputs: Mapping[str, Tensor], modes: Sequence[Callable[[], object]]) -> None:
        """Record a pass; raises `UnsuitableError` unless passes with the recorded values equal plain ones in each mode.

        The last mode is the one in which values are recorded.
        """
        few = {name: column[list(PICKED)] for name, column in inputs.items()}
        modes[-1]()
        with torch.no_grad():
            self.calls, columns = self._recorded(lambda: run(inputs), PROBE, below=True)
        if not self.calls or not columns:
            raise UnsuitableError("the head does not use it")
        picked = [column[list(PICKED)] for column in columns]
        for mode in modes:
            mode()
            torch.manual_seed(0)
            with torch.enable_grad():
                _, now = self._recorded(lambda: run(few), len(PICKED), len(self.calls))
            if any(each.requires_grad for each in now):
                raise UnsuitableError("a module below them learns")
            torch.manual_seed(0)
            with torch.no_grad():
                plain = run(few)
            torch.manual_seed(0)
            with torch.no_grad():
                lent = run(Lent(self, picked, lambda: few))
            if not all(map(_close, [*now, lent], [*picked, plain])):
                raise UnsuitableError("their outputs for an example vary")

    def _asked(self) -> list[tuple[nn.Module, str]]:
        return [(site, method) for site in self.sites for method in METHODS if hasattr(type(site), method)]

    def _recorded(
        self, run: Callable[[], Any], rows: int, count: int | None = None, below: bool = False
    ) -> tuple[tuple[Call, ...], list[Tensor]]:
        """The calls of the sites in a pass, which ends after `count` of them, and the columns that they returned."""
        calls: list[Call] = []
        tensors: list[Tensor] = []
        under: dict[nn.Module, list[Call] | None] = {}
        within = False

        def recording(module: nn.Module, method: str, original: Callable[..., Any], *args: Any, **named: Any) -> Any:
            nonlocal within
            if within:
                return original(*args, **named)
            within = True
            try:
                output = original(*args, **named)
            finally:
                within = False
            call, found = _call(module, method, output, rows)
            if any(layout is not None and layout.each is None for layout in call.layouts):
                raise UnsuitableError("its outputs do not belong to single examples")
            calls.append(call)
            tensors.extend(each.view(rows, -1, *each.shape[1:]) for each in found)
            if len(calls) == count:
                raise _ReachedError
            return output

        def noting(module: nn.Module, original: Callable[..., Any], *args: Any, **named: Any) -> Any:
            output = original(*args, **named)
            known = under.setdefault(module, [])
            try:
                call, found = _call(module, "forward", output, rows)
            except UnsuitableError:
                found = []
            if known is None or not found or not all(each.is_floating_point() for each in found):
                under[module] = None
            else:
                known.append(call)
            return output

        stubs = {(site, name): partial(recording, site, name, getattr(site, name)) for site, name in self._asked()}
        if below:
            stubs |= {(module, "forward"): partial(noting, module, module.forward) for module in self.below}
        with _replaced(stubs), suppress(_ReachedError):
            run()
        if below:
            self.skipped = {module: tuple(known) for module, known in under.items() if known}
        return tuple(calls), tensors


class Lent(Mapping[str, Tensor]):
    """The inputs of some rows, read on demand, with the recorded outputs of an encoder's frozen part."""

    def __init__(
        self,
        part: FrozenPart,
        columns: Sequence[Tensor],
        read: Callable[[], Mapping[str, Tensor]],
        beside: Mapping[str, Tensor] = MappingProxyType({}),
    ) -> None:
        self.part, self.columns, self._read, self._beside = part, columns, read, beside
        self._inputs: Mapping[str, Tensor] | None = None

    def __or__(self, beside: Mapping[str, Tensor]) -> Lent:
        """The same rows, with further inputs that are not columns and can be accessed without reading the rows."""
        return Lent(self.part, self.columns, self._own, {**self._beside, **beside})

    def _own(self) -> Mapping[str, Tensor]:
        if self._inputs is None:
            self._inputs = self._read()
        return self._inputs

    def __getitem__(self, name: str) -> Tensor:
        return self._beside[name] if name in self._beside else self._own()[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._own(), **self._beside})

    def __len__(self) -> int:
        return len({**self._own(), **self._beside})


def find(encoder: Encoder, run: Run, inputs: Mapping[str, Tensor], modes: Sequence[Callable[[], object]]) -> FrozenPart:
    """The largest part of an encoder that can be recorded; raises `UnsuitableError`. `inputs` has `PROBE` examples."""
    kept = {name: buffer.clone() for name, buffer in encoder.named_buffers()}
    devices = {weight.device for weight in encoder.parameters() if weight.is_cuda}
    why = UnsuitableError("nothing is frozen")
    try:
        with torch.random.fork_rng(devices):
            for part in candidates(encoder):
                try:
                    part.prove(run, inputs, modes)
                except UnsuitableError as error:
                    why = error
                else:
                    return part
    finally:
        with torch.no_grad():
            for name, buffer in encoder.named_buffers():
                buffer.copy_(kept[name])
    raise why


def candidates(encoder: Encoder) -> Iterator[FrozenPart]:
    """The candidate parts of an encoder, judging by which weights learn; the largest come first."""
    if frozen(encoder):
        yield FrozenPart(encoder, [encoder])
    if towers := [tower for tower in encoder.towers() if frozen(tower)]:
        yield FrozenPart(encoder, towers)
    if frozen(encoder):
        return
    layers = list(encoder.layers())
    lowest = next((index for index, layer in enumerate(layers) if not frozen(layer)), len(layers))
    for count in range(lowest, 0, -1):
        below = [*encoder.stem(), *layers[: count - 1]]
        yield FrozenPart(encoder, [layers[count - 1]], below)


def frozen(module: nn.Module) -> bool:
    """Whether a module has weights, all of them frozen."""
    learns = [parameter.requires_grad for parameter in module.parameters()]
    return bool(learns) and not any(learns)


@contextmanager
def _replaced(stubs: Mapping[tuple[nn.Module, str], Callable[..., Any]]) -> Iterator[None]:
    """Replace methods of modules within a block."""
    before = {(module, name): vars(module).get(name) for module, name in stubs}
    for (module, name), stub in stubs.items():
        vars(module)[name] = stub
    try:
        yield
    finally:
        for (module, name), own in before.items():
            if own is None:
                del vars(module)[name]
            else:
                vars(module)[name] = own


def _call(module: nn.Module, method: str, output: Any, rows: int) -> tuple[Call, list[Tensor]]:
    """The layout of a call's output, and its tensors."""
    kind: type = Tensor if isinstance(output, Tensor) else type(output)
    each = [output] if kind is Tensor else list(output) if kind in (tuple, list) else [output]
    if not all(value is None or isinstance(value, Tensor) for value in each):
        raise UnsuitableError("its outputs are not tensors")
    return Call(module, method, kind, tuple(_layout(value, rows) for value in each)), [t for t in each if t is not None]


def _layout(value: Tensor | None, rows: int) -> RowLayout | None:
    if value is None:
        return None
    if value.ndim and len(value) and len(value) % rows == 0:
        return RowLayout(len(value) // rows, tuple(value.shape[1:]), value.dtype)
    return RowLayout(None, tuple(value.shape), value.dtype)


def _close(found: Tensor, expected: Tensor) -> bool:
    tolerance = TOLERANCE.get(expected.dtype, 0.02)
    finite = expected[expected.isfinite()]
    largest = float(finite.abs().max()) if finite.numel() else 0.0
    return found.shape == expected.shape and torch.allclose(found, expected, tolerance, tolerance * largest, True)
