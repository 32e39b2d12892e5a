"""Calls of a model that run compiled, for the shapes that come often; as they are for all others."""

from __future__ import annotations

import gc
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import ClassVar, Literal

import torch
from torch import Tensor

from holdfast.models.base import Model

How = Literal["graphs", "whole", "as it is"]
OFTEN = {True: 3, False: 20}
"""A shape is compiled once it has come so often, with gradients or without: a last batch does not pay for that."""
_MOST = 64
"""How many shapes, heads and modes are compiled at most."""
_LIVING: weakref.WeakSet[Compiled] = weakref.WeakSet()
"""Those that are in use."""


class Compiled:
    """A model that is called like itself. Frequent shapes run compiled, on a GPU as CUDA graphs.

    Compiling takes from seconds to a minute, once for each shape; where it fails, forward or backward, the model runs
    as it is from then on, and one warning says so. What comes of it is equal but for rounding: whoever needs the last
    bit, as for resuming exactly, does not compile. A network of modules runs as it is: each path through it would be
    compiled anew.
    """

    how: ClassVar[How] = "graphs"
    """See `calls`."""

    def __init__(self, model: Model, often: int | None = None) -> None:
        for name in ("recompile_limit", "cache_size_limit"):  # one name in old versions, the other in new ones
            if hasattr(torch._dynamo.config, name):
                setattr(torch._dynamo.config, name, _MOST)
        gc.collect()  # a learner and its model know each other, and are gone only then
        if not _LIVING:  # of a run that is over, graphs would keep their memory, and be looked through in each step
            torch._dynamo.reset()
        _LIVING.add(self)
        self.model, self._often = model, OFTEN if often is None else dict.fromkeys(OFTEN, often)
        self._graphs = any(parameter.is_cuda for parameter in model.parameters())
        self._seen: Counter[tuple[object, ...]] = Counter()
        self._run: Callable[..., Tensor] | None = None
        self.learns = False
        """Whether it has graphs of its own that learn: what they keep of a pass is in the way of recording others."""
        if model.encoder.compiles:
            self._run = torch.compile(model.plain, mode="reduce-overhead", dynamic=False)
            self._bare: Callable[..., Tensor] = torch.compile(model.plain, dynamic=False)

    def __call__(self, inputs: Mapping[str, Tensor], head: str) -> Tensor:
        """The outputs of a head: see `Model.forward`."""
        if Compiled.how == "whole" and self._run is not None:
            self.model.switch(head)
            return self._bare(dict(inputs), head)
        model, learns = self.model, torch.is_grad_enabled()
        if Compiled.how != "graphs" or self._run is None or (model.route is not None and not model.training):
            return self._plain(inputs, head)
        shapes = (column.shape for column in inputs.values())
        key = (head, model.active, model.training, learns, torch.is_inference_mode_enabled(), *shapes)
        self._seen[key] += 1
        if self._seen[key] < self._often[learns]:
            return self._plain(inputs, head)
        if torch.is_inference_mode_enabled():  # a score's batch: without this, each would have a graph of its own
            self.step_done()
        model.switch(head)
        self.learns = self.learns or learns
        try:
            if self._seen[key] == self._often[learns]:
                self._try(inputs, head)
            # The next replay of the graph writes over its outputs, and someone may keep them: they get a copy.
            return self._run(dict(inputs), head).clone()
        except Exception as error:
            warnings.warn(f"goes on without compiling: {type(error).__name__}: {error}"[:500], stacklevel=2)
            self._run = None
            return self._plain(inputs, head)  # where the fault is the model's own, it raises here as well

    @classmethod
    @contextmanager
    def calls(cls, how: How) -> Iterator[None]:
        """How models are called within: with graphs of their own, once a shape has come often, which is the default.

        `whole`: compiled at once and without graphs, since all of it is being recorded as one; `as it is`, and not
        counted, since it will be recorded soon.
        """
        before, cls.how = cls.how, how
        try:
            yield
        finally:
            cls.how = before

    def _plain(self, inputs: Mapping[str, Tensor], head: str) -> Tensor:
        output: Tensor = self.model(inputs, head)
        return output

    def _try(self, inputs: Mapping[str, Tensor], head: str) -> None:
        """Compile forward and backward now, where a failure can be caught, and draw no random number for it."""
        assert self._run is not None
        devices = {column.device.index for column in inputs.values() if column.is_cuda}
        with torch.random.fork_rng(sorted(index or 0 for index in devices)):
            output = self._run(dict(inputs), head)
            if output.requires_grad:
                learning = [p for p in self.model.parameters() if p.requires_grad]
                torch.autograd.grad(output.sum(), learning, allow_unused=True)

    def step_done(self) -> None:
        """Nothing of this step is needed any more: the next one may reuse the memory of its graphs."""
        if self._graphs:
            torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call]
