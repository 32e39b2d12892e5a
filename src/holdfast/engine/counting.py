"""Floating-point operations of training: each kind of pass is measured once and added up whenever it is repeated.

Counted are the operations that PyTorch's `FlopCounterMode` counts (matrix products, convolutions, attention), and some
that it misses: recurrent layers, attention on a CPU, factorisations of matrices. Watching every operation would slow
each step down, so only the first call of a kind (a model, a head, the shapes of its inputs, what is trainable) runs
under a meter; later calls add the same number. Operations of a backward pass follow from those of the forward pass and
are added when gradients arrive at the output. Parts that the output does not depend on, such as the last layer of an
image encoder whose second-to-last layer is used, have no backward pass.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch._compile import _disable_dynamo
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode

from holdfast.engine.operations import backward_of, forward_of

if TYPE_CHECKING:
    from holdfast.engine.ranks import Ranks

NOTHING = nullcontext()
MOST_FOLLOWED = 20_000
"""How much of a graph is followed: PyTorch frees by recursion what Python has visited of it, and sixty thousand steps
in a row end the process."""


class _Meter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Watches every operation: those of forward passes, and what their backward passes will take."""

    def __init__(self, whole: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.whole = whole
        """Whether operations of backward passes are counted as they happen, and not derived from forward ones."""
        self.forward = self.backward = 0
        self.steps: dict[int, int] = {}
        """The operations of each step of the backward pass, by the number that autograd assigns to it."""
        self.idle = False

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # True imports the compiler at the first operation, which takes a second: see `_UNCOMPILED`

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if torch.is_inference_mode_enabled() and not self.idle and forward_of(func) is None:  # in larger units
            with self:
                if (found := func.decompose(*args, **kwargs)) is not NotImplemented:
                    return found
        output = func(*args, **kwargs)
        formula = None if self.idle else forward_of(func)
        if formula is not None and (self.whole or torch._C._current_autograd_node() is None):
            self.forward += (count := formula(args, output))
            if not self.whole and torch.is_grad_enabled():
                self.backward += (later := backward_of(func, args, output, count))
                step = torch._C._autograd._get_sequence_nr() - 1  # autograd numbers a step before its operation starts
                self.steps[step] = self.steps.get(step, 0) + later
        return output

    def behind(self, output: Tensor) -> int:
        """The operations of the backward pass of an output, without those on which it does not depend.

        A very large graph is not followed to its end, and all its operations count.
        """
        first, total, seen = min(self.steps, default=0), 0, set[int]()
        open_steps = [output.grad_fn]
        while open_steps:
            if (step := open_steps.pop()) is None or (number := step._sequence_nr()) in seen or number < first:
                continue
            if len(seen) == MOST_FOLLOWED:
                return self.backward
            seen.add(number)
            total += self.steps.get(number, 0)
            open_steps += [each for each, _ in step.next_functions]
        return total


_UNCOMPILED = _disable_dynamo(_Meter.__torch_dispatch__)
"""The same, which the compiler leaves alone."""


class Counter:
    """Counts the operations of one learner's training; evaluations are not counted."""

    def __init__(self) -> None:
        self.flops = 0
        """The operations of all ranks, as of the last `gather`."""
        self._new = 0
        """This rank's operations since then."""
        self._calls: dict[Hashable, tuple[int, int]] = {}
        self._steps: dict[Hashable, int] = {}
        """The operations of a step apart from calls of models. A checkpoint keeps them, as they may depend on
        values."""
        self._restored: dict[str, int] = {}
        self._meter: _Meter | None = None
        self._inside = False
        """Whether an outer call or a meter already counts whatever models compute."""

    def __deepcopy__(self, memo: object) -> Counter:
        return self  # copies of a model, such as teachers, count where the model counts

    @property
    def off(self) -> bool:
        """Whether nothing is counted now."""
        return self._inside

    def add(self, flops: int) -> None:
        """Add operations that were counted elsewhere."""
        self._new += flops

    @property
    def total(self) -> int:
        """All operations so far."""
        return self.flops + self._new

    def gather(self, ranks: Ranks) -> None:
        """Add what the ranks counted: called by all of them at the same point."""
        if ranks.size > 1:
            own = torch.tensor([float(self._new)], dtype=torch.float64)
            ranks.sum([own])
            self._new = round(own.item())
        self.flops, self._new = self.flops + self._new, 0

    def forget(self) -> None:
        """Measure each kind of call again: the computation of models may have changed."""
        self._calls.clear()

    def call(self, key: Hashable, run: Callable[[], Tensor], plain: Callable[[], Tensor] | None = None) -> Tensor:
        """The output of a model's call, whose operations are counted; later, those of its backward pass as well.

        If its code is compiled, it is measured by the `plain` code.
        """
        if self._inside:
            return run()
        learns = torch.is_grad_enabled()
        known = self._calls.get(key := (key, learns))
        if known is None:
            with self._metered(whole=False) as meter:
                output = (plain or run)()
            known = self._calls[key] = meter.forward, meter.behind(output)
        else:
            self._inside = True
            try:
                if self._meter is None:
                    output = run()
                else:
                    with self._without_meter():
                        output = run()
            finally:
                self._inside = False
        self._new += known[0]
        if known[1] and learns and output.requires_grad:
            backward = known[1]

            def arrived(gradient: Tensor) -> None:
                if not self._inside:
                    self._new += backward

            output.register_hook(arrived)  # type: ignore[no-untyped-call]
        return output

    def hook(self, *key: object) -> AbstractContextManager[object]:
        """Count the operations of a part of a step apart from calls of models, measured once for each key, or each time
        without one.

        Operations on the way to a loss are counted with those of their backward pass.
        """
        if self._inside:
            return NOTHING
        known = self._steps.get(key) if key else None
        if known is None:
            return self._hooked(key)
        self._new += known
        return NOTHING if self._meter is None else self._without_meter()

    @contextmanager
    def _hooked(self, key: tuple[object, ...]) -> Iterator[None]:
        """Measure the operations of a block apart from calls of models, unless a checkpoint has them, and add them."""
        known = self._restored.pop(repr(key), None) if key else None
        if known is None:
            with self._metered(whole=False, inside=False) as meter:
                yield
            known = meter.forward + meter.backward
        else:
            with self._without_meter():
                yield
        if key:
            self._steps[key] = known
        self._new += known

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Count every operation of a block as it happens, forward and backward, such as those of `torch.func`."""
        if self._inside:
            yield
            return
        with self._metered(whole=True) as meter:
            yield
        self._new += meter.forward

    def measured(self, run: Callable[[], object]) -> int:
        """The operations of a function, which are not added."""
        with self._metered(whole=True) as meter:
            run()
        return meter.forward

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Count nothing within a block."""
        before, self._inside = self._inside, True
        try:
            with self._without_meter():
                yield
        finally:
            self._inside = before

    @contextmanager
    def aside(self) -> Iterator[Callable[[], int]]:
        """Take back what a block counts; the function that is yielded returns the amount."""
        before = self._new
        found = 0
        try:
            with self._without_meter():
                yield lambda: found
        finally:
            found, self._new = self._new - before, before

    @contextmanager
    def _metered(self, whole: bool, inside: bool = True) -> Iterator[_Meter]:
        if "torch._dynamo" in sys.modules:  # something may have been compiled
            _Meter.__torch_dispatch__ = _UNCOMPILED  # type: ignore[method-assign]
        meter, outer, before = _Meter(whole), self._meter, self._inside
        with self._without_meter():
            self._meter, self._inside = meter, inside
            try:
                with meter:
                    yield meter
            finally:
                self._meter, self._inside = outer, before

    @contextmanager
    def _without_meter(self) -> Iterator[None]:
        """Suspend the current meter: a mode that does nothing would still slow down every operation."""
        meter = self._meter
        if meter is None:
            yield
            return
        on_top, idle = _get_current_dispatch_mode() is meter, meter.idle
        meter.idle = True
        if on_top:
            meter.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        self._meter = None
        try:
            yield
        finally:
            self._meter, meter.idle = meter, idle
            if on_top:
                meter.__enter__()  # type: ignore[no-untyped-call]

    def state_dict(self) -> dict[str, Any]:
        """The counts so far, and the measurements of the parts of a step."""
        return {"flops": self.total, "steps": {repr(key): count for key, count in self._steps.items()} | self._restored}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a saved state."""
        self.flops, self._new = state["flops"], 0
        self._steps, self._restored = {}, dict(state["steps"])
