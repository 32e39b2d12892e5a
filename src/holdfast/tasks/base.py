"""The common part of the kinds of task."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torch import Tensor

from holdfast.types import Part, Task


class OfHead(Task):
    """A task whose output is the output of its head."""

    def forward(self, model: Callable[[Mapping[str, Tensor], str], Tensor], part: Part) -> Tensor:
        """The outputs of the task's head."""
        return model(part.inputs, self.head)
