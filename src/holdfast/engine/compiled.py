"""Calls of a model that run compiled, for the shapes that come often; as they are for all others."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from holdfast.models.base import Model

OFTEN = 3
"""A shape is compiled when it has come so often: a last batch that is smaller does not pay for its compilation."""
_MOST = 64
"""How many shapes, heads and modes are compiled at most."""


class Compiled:
    """A model that is called like itself. Training steps of frequent shapes run compiled, on a GPU as CUDA graphs.

    Compiling takes from seconds to a minute, once for each shape; where it fails, the model runs as it is, and one
    warning says so. Evaluation is not compiled: its batches come in many shapes.
    """

    def __init__(self, model: Model) -> None:
        for name in ("recompile_limit", "cache_size_limit"):  # one name in old versions, the other in new ones
            if hasattr(torch._dynamo.config, name):
                setattr(torch._dynamo.config, name, _MOST)
        self.model = model
        self._seen: Counter[tuple[object, ...]] = Counter()
        self._run: Callable[..., Tensor] | None = torch.compile(model.plain, mode="reduce-overhead", dynamic=False)

    def __call__(self, inputs: Mapping[str, Tensor], head: str) -> Tensor:
        """The outputs of a head: see `Model.forward`."""
        if self._run is None or not (self.model.training and torch.is_grad_enabled()):
            return self.model(inputs, head)  # type: ignore[no-any-return]
        key = (head, *(column.shape for column in inputs.values()))
        self._seen[key] += 1
        if self._seen[key] < OFTEN:
            return self.model(inputs, head)  # type: ignore[no-any-return]
        self.model.switch(head)
        try:
            # The next replay of the graph writes over its outputs, and someone may keep them: they get a copy.
            return self._run(dict(inputs), head).clone()
        except Exception as error:
            if self._seen[key] > OFTEN:
                raise  # it did compile: the error is the model's own
            warnings.warn(f"goes on without compiling: {type(error).__name__}: {error}"[:500], stacklevel=2)
            self._run = None
            return self.model(inputs, head)  # type: ignore[no-any-return]

    @staticmethod
    def step_done() -> None:
        """Nothing of this step is needed any more: the next one may reuse the memory of its graphs."""
        torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call]
