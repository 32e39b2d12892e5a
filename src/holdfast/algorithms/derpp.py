"""DER++: kept examples are learned again by their targets, and by the logits that they had when they were kept.

Paper: Buzzega et al. 2020, "Dark Experience for General Continual Learning: a Strong, Simple Baseline".
Equation: L = loss(B_new) + alpha * mean over B_1 of |z - h(x)|^2 + beta * loss(B_2), where B_1 and B_2 are drawn from
memory one after the other, and z are the stored logits. B_1 and B_2 go through the model together. The memory is a
reservoir of all that is seen, in every epoch: z are the logits of the step at which the example took its place, and an
example that took two has both.
Units: `beta` is the paper's, Mammoth's and Avalanche's. `alpha` is the paper's, of a sum over the logits; Mammoth
(derpp) and Avalanche (DER) take the mean over all C classes: with fidelity=paper, alpha = theirs / C; with
fidelity=released, alpha = theirs. Where a head grows, C counts the classes that were open. Avalanche stores logits at
the end of a stage, and draws one batch for both terms.
Cost: forward and backward passes over (new + 2 size) examples a step; on several ranks, logits of new examples are
gathered. Memory: `capacity` examples, and a row of logits for each, as wide as the widest output so far.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from holdfast.algorithms.base import Algorithm, refuse_accumulation
from holdfast.algorithms.rows import on_all_ranks, own_places, weighted
from holdfast.data.order import mix
from holdfast.data.table import sent
from holdfast.errors import UserError
from holdfast.memory import Reservoir, refuse_small
from holdfast.models.heads import CLOSED
from holdfast.types import Batch, Between, Ids, Part, Stream

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner

LARGEST = 2 << 30
"""The most bytes of logits."""


@dataclass
class DarkReplay(Algorithm):
    """Kept examples with their targets and the logits of their time."""

    version: ClassVar[int] = 1
    strengths: ClassVar[tuple[str, ...]] = ("alpha", "beta")

    capacity: Annotated[int, Between(1)] = 200
    size: Annotated[int, Between(1)] | None = None
    """How many kept examples are in each of the two batches; None: as many as are new."""
    alpha: Annotated[float, Between(0)] = 0.1
    """The weight of the logits."""
    beta: Annotated[float, Between(0)] = 0.5
    """The weight of the targets; 0 is DER."""
    fidelity: Literal["paper", "released"] = "paper"
    """released: the mean of the squared differences over the logits, as in the authors' code, in place of their sum."""
    memory: Reservoir = field(init=False, repr=False, compare=False)
    logits: Tensor = field(init=False, repr=False, compare=False)
    """A row for each place of the memory.

    NaN: a unit that was not there, a class that was not open, or a place of a phrase that hides no word."""

    def uses(self) -> tuple[type, ...]:
        """Its memory."""
        return (Reservoir,)

    def check(self, stream: Stream) -> None:
        """Refuse a memory that cannot fill one batch, and pieces: kept examples are drawn once for the whole batch."""
        refuse_small("derpp", self.capacity, self.size, stream)
        refuse_accumulation("derpp", stream)

    def setup(self, learner: Learner) -> None:
        """An empty memory; refuse one whose logits would be too large."""
        bytes_ = self.capacity * (row := _row_bytes(learner))
        if bytes_ > LARGEST:
            raise UserError(
                f"derpp.capacity is {self.capacity}, whose logits would take {bytes_:,} bytes on the device, {row:,} "
                f"for each example, and {LARGEST:,} are the most: set it to {LARGEST // row} or less"
            )
        self.memory, self.logits = Reservoir(self.capacity, mix(learner.seed, 0xDE2)), torch.empty(0)
        self._new: list[tuple[Ids, Tensor]] = []

    def loss(self, learner: Learner, batch: Batch, outputs: tuple[Tensor, ...]) -> Tensor | None:
        """The distance from stored logits, and the loss of other kept examples."""
        self._new = on_all_ranks(learner, batch, _meant(learner, batch, outputs))
        if len(self.memory) == 0:
            return None
        size = self.size or len(batch.ids)
        dark = self.memory.draw(size)
        return self._again(learner, dark, self.memory.draw(size) if self.beta else dark[:0])

    def after(self, learner: Learner, batch: Batch) -> None:
        """Offer the new examples to the memory, and store the logits of those that it took."""
        self._store(self.memory.offer(batch.ids))

    def memory_bytes(self, learner: Learner) -> int:
        """The kept examples, their ids and their logits."""
        return learner.data.example_bytes(self.memory.ids) + self.memory.nbytes + self.logits.nbytes

    def state_dict(self) -> dict[str, Any]:
        """The memory and the logits."""
        return {"memory": self.memory.state_dict(), "logits": self.logits}

    def load_state_dict(self, learner: Learner, state: dict[str, Any]) -> None:
        """The memory and the logits."""
        self.memory.load_state_dict(state["memory"])
        self.logits = state["logits"].to(learner.device)

    def _again(self, learner: Learner, dark: Ids, plain: Ids) -> Tensor:
        """Both terms, for the examples at these places of the memory, in one pass."""
        places = np.concatenate([dark, plain])
        ids = self.memory.ids[places]
        batch = learner.fetch(ids)
        outputs = learner.outputs(batch)
        learner.examples_backward += len(ids)
        distances, losses = [], []
        for part, output, own in zip(batch.parts, outputs, own_places(learner, ids), strict=True):
            count = int(np.searchsorted(own, len(dark)))  # rows are in the order of the ids: dark ones come first
            first, rest = _rows(part, slice(count)), _rows(part, slice(count, None))
            distances.append(weighted(self._distances(output[:count], places[own[:count]]), first))
            if self.beta:
                losses.append(weighted(learner.tasks[part.task].losses(output[count:], rest), rest))
        loss = self.alpha * learner.share(torch.cat(distances), len(dark))
        return loss + self.beta * learner.share(torch.cat(losses), len(plain)) if self.beta else loss

    def _distances(self, outputs: Tensor, places: Ids) -> Tensor:
        """The squared distance of each output from the logits stored at its place."""
        now = outputs.flatten(1)
        then = self.logits[sent(torch.from_numpy(places), now.device)][:, : now.shape[1]]
        stored = ~then.isnan()
        squares = torch.where(stored, now - then.nan_to_num(), 0).square().sum(-1)
        return squares / stored.sum(-1).clamp(min=1) if self.fidelity == "released" else squares

    def _store(self, taken: Ids) -> None:
        """Keep the logits of the new examples that the memory took at these places."""
        if not len(taken):
            return
        new = [(ids, rows.flatten(1)) for ids, rows in self._new]
        self._widen(max(rows.shape[1] for _, rows in new), like=new[0][1])
        wanted, width = self.memory.ids[taken], self.logits.shape[1]
        stored = np.zeros(len(taken), dtype=np.bool_)
        for ids, rows in new:
            order = np.argsort(ids)
            source = order[np.searchsorted(ids, wanted, sorter=order).clip(max=len(ids) - 1)]
            here = ids[source] == wanted
            stored |= here
            to, source_ = sent(torch.from_numpy(np.stack([taken[here], source[here]])), rows.device)
            found = rows[source_]
            found = found.masked_fill(found <= CLOSED / 2, torch.nan)
            self.logits[to] = functional.pad(found, (0, width - found.shape[1]), value=torch.nan)
        if not stored.all():  # another algorithm has taken them out of the batch
            self.logits[torch.from_numpy(taken[~stored]).to(self.logits.device)] = torch.nan

    def _widen(self, width: int, like: Tensor) -> None:
        """Make the rows of logits as wide as the widest output so far."""
        if self.logits.ndim == 1 or self.logits.shape[1] < width:
            wider = like.new_full((self.capacity, width), torch.nan)
            if self.logits.ndim == 2:
                wider[:, : self.logits.shape[1]] = self.logits
            self.logits = wider


def _rows(part: Part, some: slice) -> Part:
    weights = None if part.weights is None else part.weights[some]
    return Part(part.task, {name: column[some] for name, column in part.inputs.items()}, part.targets[some], weights)


def _meant(learner: Learner, batch: Batch, outputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The outputs, NaN where they mean nothing: at the places of a phrase that hide no word."""
    return tuple(
        output.detach().masked_fill((part.targets < 0).unsqueeze(-1), torch.nan)
        if learner.tasks[part.task].reads.kind == "phrase"
        else output
        for part, output in zip(batch.parts, outputs, strict=True)
    )


def _row_bytes(learner: Learner) -> int:
    """The bytes of one example's logits, for the task that has the most."""
    widths = [1]
    for table in learner.data.tables:
        task = learner.tasks[table.task]
        widths.append(task.outputs * (table.targets.shape[1] if task.reads.kind == "phrase" else 1))
    size = 4 if learner.autocast is not None else next(learner.model.parameters()).element_size()
    return max(widths) * size
