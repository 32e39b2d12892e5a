"""Logits stored beside the places of a memory: as old as the offer by which an example took its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from holdfast.data.table import sent
from holdfast.errors import UserError
from holdfast.models.heads import CLOSED
from holdfast.types import Batch, Ids

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner

LARGEST = 2 << 30
"""The maximum number of bytes of logits."""


class StoredLogits:
    """A row of logits for each place, as wide as the widest output so far.

    NaN marks a unit that did not exist, a class that was not open, or a place of a phrase that hides no word.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity, self.rows = capacity, torch.empty(0)

    def squares(self, outputs: Tensor, places: Ids) -> tuple[Tensor, Tensor]:
        """The squared distance of each output from the logits at its place, and the number of logits in the sum."""
        now = outputs.flatten(1)
        then = self.rows[sent(torch.from_numpy(places), now.device)][:, : now.shape[1]]
        stored = ~then.isnan()
        return torch.where(stored, now - then.nan_to_num(), 0).square().sum(-1), stored.sum(-1)

    def store(self, places: Ids, wanted: Ids, new: Sequence[tuple[Ids, Tensor]]) -> None:
        """Store the logits of the examples `wanted` at these places, found among the new ones: ids and their rows."""
        if not len(places):
            return
        new = [(ids, rows.flatten(1)) for ids, rows in new]
        self._widen(max(rows.shape[1] for _, rows in new), like=new[0][1])
        stored, width = np.zeros(len(places), dtype=np.bool_), self.rows.shape[1]
        for ids, rows in new:
            order = np.argsort(ids)
            source = order[np.searchsorted(ids, wanted, sorter=order).clip(max=len(ids) - 1)]
            here = ids[source] == wanted
            stored |= here
            to, source_ = sent(torch.from_numpy(np.stack([places[here], source[here]])), rows.device)
            found = rows[source_]
            found = found.masked_fill(found <= CLOSED / 2, torch.nan)
            self.rows[to] = functional.pad(found, (0, width - found.shape[1]), value=torch.nan)
        if not stored.all():  # another algorithm has removed them from the batch
            self.rows[torch.from_numpy(places[~stored]).to(self.rows.device)] = torch.nan

    def _widen(self, width: int, like: Tensor) -> None:
        """Make the rows as wide as the widest output so far."""
        if self.rows.ndim == 1 or self.rows.shape[1] < width:
            wider = like.new_full((self.capacity, width), torch.nan)
            if self.rows.ndim == 2:
                wider[:, : self.rows.shape[1]] = self.rows
            self.rows = wider


def meaning(learner: Learner, batch: Batch, outputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The outputs, with NaN where they have no meaning: at the places of a phrase that hide no word."""
    return tuple(
        output.detach().masked_fill((part.targets < 0).unsqueeze(-1), torch.nan)
        if learner.tasks[part.task].reads.kind == "phrase"
        else output
        for part, output in zip(batch.parts, outputs, strict=True)
    )


def refuse_large(learner: Learner, name: str, capacity: int) -> None:
    """Raise a UserError, before training, if a memory's logits would be too large."""
    widths = [1]
    for table in learner.data.tables:
        task = learner.tasks[table.task]
        widths.append(task.outputs * (table.targets.shape[1] if task.reads.kind == "phrase" else 1))
    row = max(widths) * (4 if learner.autocast is not None else next(learner.model.parameters()).element_size())
    if (bytes_ := capacity * row) > LARGEST:
        raise UserError(
            f"{name}.capacity is {capacity}, whose logits would take {bytes_:,} bytes on the device, {row:,} "
            f"for each example; the maximum is {LARGEST:,}: set it to {LARGEST // row} or less"
        )
