"""Compiles calls of a model whose shape is frequent; all other calls run uncompiled."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from holdfast.engine.stepper import Call, How, Stepper
from holdfast.models.base import Network
from holdfast.types import Batch

if TYPE_CHECKING:
    from holdfast.algorithms.base import Algorithm
    from holdfast.engine.learner import Learner

OFTEN = {True: 3, False: 20}
"""How many calls of a shape precede its compilation, with and without gradients: it does not pay for a last batch."""
_MOST = 64
"""The maximum number of combinations of shape, head and mode that are compiled."""


class Calling:
    """How the models of one learner are called at the moment.

    `graphs`, the default: with CUDA graphs of their own, once a shape is frequent. `whole`: compiled immediately and
    without graphs, because the whole pass is being recorded as one. `as it is`: uncompiled and uncounted, because the
    pass will soon be recorded.
    """

    how: How = "graphs"

    @contextmanager
    def within(self, how: How) -> Iterator[None]:
        """Call models in this way within a block."""
        before, self.how = self.how, how
        try:
            yield
        finally:
            self.how = before


class CompiledStepper(Stepper):
    """Plain passes through a model whose frequent shapes are compiled."""

    def __init__(self, learner: Learner) -> None:
        self._learner, self._mode = learner, Calling()
        self.call = self._compiled = Compiled(learner.model, self._mode)

    @property
    def learns(self) -> bool:  # type: ignore[override]
        """Whether compiled calls own graphs that include gradients."""
        return self._compiled.learns

    def other(self, model: Network) -> Call:
        """A compiled teacher: it is called as often as its student, so it is compiled as soon."""
        return Compiled(model, self._mode, often=OFTEN[True])

    def gradients(self, batch: Batch, algorithms: Sequence[Algorithm]) -> Tensor:
        """One forward and one backward pass."""
        return self._learner.single_pass(batch, algorithms)

    @contextmanager
    def calling(self, how: How) -> Iterator[None]:
        """Call this model, and the others beside it, in one way within a block."""
        with self._mode.within(how):
            yield

    def step_done(self) -> None:
        """Let the next step reuse the memory of this step's graphs."""
        self._compiled.step_done()

    def model_changed(self, parameters: Iterable[nn.Parameter]) -> None:
        """Nothing to reset: compiled code has its own guards."""


class Compiled:
    """A model with the interface of the original. Frequent shapes run compiled, on a GPU as CUDA graphs.

    Compiling takes from seconds to a minute for each shape. If it fails, forward or backward, the model runs uncompiled
    from then on, and a single warning is logged. Results are equal up to rounding: do not compile if the last bit
    matters, as for exact resuming. A network of modules runs uncompiled, because each path through it would be compiled
    separately.
    """

    def __init__(self, model: Network, mode: Calling | None = None, often: int | None = None) -> None:
        for name in ("recompile_limit", "cache_size_limit"):  # the new and the old name
            if hasattr(torch._dynamo.config, name):
                setattr(torch._dynamo.config, name, _MOST)
        self.model, self.mode = model, mode or Calling()
        self._often = OFTEN if often is None else dict.fromkeys(OFTEN, often)
        self._graphs = any(parameter.is_cuda for parameter in model.parameters())
        self._seen: Counter[tuple[object, ...]] = Counter()
        self._run: Callable[..., Tensor] | None = None
        self.learns = False
        """Whether it owns graphs with gradients: what they keep of a pass would interfere with other recordings."""
        if model.encoder.compiles:
            self._run = torch.compile(model.plain, mode="reduce-overhead", dynamic=False)
            self._bare: Callable[..., Tensor] = torch.compile(model.plain, dynamic=False)

    def __call__(self, inputs: Mapping[str, Tensor], head: str) -> Tensor:
        """The outputs of a head: see `Network.forward`."""
        if self.mode.how == "whole" and self._run is not None:
            self.model.switch(head)
            return self._counted(lambda: self._bare(dict(inputs), head), inputs, head)
        model, learns = self.model, torch.is_grad_enabled()
        if self.mode.how != "graphs" or self._run is None or "write" in inputs:
            return self._plain(inputs, head)  # an answer is written in a loop, whose steps differ in shape
        shapes = (column.shape for column in inputs.values())
        key = (head, model.active, model.training, learns, torch.is_inference_mode_enabled(), *shapes)
        self._seen[key] += 1
        if self._seen[key] < self._often[learns]:
            return self._plain(inputs, head)
        if torch.is_inference_mode_enabled():  # otherwise, each batch of an evaluation would have a graph of its own
            self.step_done()
        model.switch(head)
        compiled = self._run
        self.learns = self.learns or learns
        try:
            if self._seen[key] == self._often[learns]:
                self._try(inputs, head)
            # The next replay of the graph overwrites its outputs, and the caller may keep them: return a copy.
            return self._counted(lambda: compiled(dict(inputs), head).clone(), inputs, head)
        except Exception as error:
            warnings.warn(f"continuing without compiling: {type(error).__name__}: {error}"[:500], stacklevel=2)
            self._run = None
            return self._plain(inputs, head)  # if the model itself is at fault, this raises as well

    def _counted(self, run: Callable[[], Tensor], inputs: Mapping[str, Tensor], head: str) -> Tensor:
        model = self.model
        return model.counted(("head", head), run, inputs, lambda: model.plain(inputs, head))

    def _plain(self, inputs: Mapping[str, Tensor], head: str) -> Tensor:
        output: Tensor = self.model(inputs, head)
        return output

    def _try(self, inputs: Mapping[str, Tensor], head: str) -> None:
        """Compile forward and backward now, where a failure can be caught, without drawing random numbers."""
        assert self._run is not None
        devices = {column.device.index for column in inputs.values() if column.is_cuda}
        uncounted = nullcontext() if self.model.counter is None else self.model.counter.paused()
        with torch.random.fork_rng(sorted(index or 0 for index in devices)), uncounted:
            output = self._run(dict(inputs), head)
            if output.requires_grad:
                learning = [p for p in self.model.parameters() if p.requires_grad]
                torch.autograd.grad(output.sum(), learning, allow_unused=True)

    def step_done(self) -> None:
        """Let the next step reuse the memory of this step's graphs."""
        if self._graphs:
            torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call]
