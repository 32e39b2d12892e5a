"""DER++: kept examples are learned again by their targets, and by the logits that they had when they were new.

Paper: Buzzega et al. 2020, "Dark Experience for General Continual Learning: a Strong, Simple Baseline".
Equation: L = loss(B_new) + alpha * mean over B_1 of |z - h(x)|^2 + beta * loss(B_2), where B_1 and B_2 are drawn from
memory one after the other, and z are the stored logits.
Cost: forward and backward passes over (new + 2 size) examples a step; on several ranks, logits of new examples are
gathered. Memory: `capacity` examples, and a row of logits for each, as wide as the widest output so far.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import torch
from torch import Tensor

from holdfast.algorithms.base import Algorithm
from holdfast.algorithms.rows import on_all_ranks, own_places, weighted
from holdfast.data.order import mix
from holdfast.memory import Reservoir, refuse_small
from holdfast.models.heads import CLOSED
from holdfast.types import Batch, Between, Ids, Stream

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner


@dataclass
class DarkReplay(Algorithm):
    """Kept examples with their targets and the logits of their time."""

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
    """A row for each place of the memory. NaN: a unit that was not there, or a class that was not open."""

    def check(self, stream: Stream) -> None:
        """Refuse a memory that cannot fill one batch."""
        refuse_small("derpp", self.capacity, self.size, stream)

    def setup(self, learner: Learner) -> None:
        """An empty memory."""
        self.memory, self.logits = Reservoir(self.capacity, mix(learner.seed, 0xDE2)), torch.empty(0)
        self._new: list[tuple[Ids, Tensor]] = []

    def loss(self, learner: Learner, batch: Batch, outputs: tuple[Tensor, ...]) -> Tensor | None:
        """The distance from stored logits, and the loss of other kept examples."""
        if learner.epoch == 0:
            self._new = on_all_ranks(learner, batch, outputs)
        if len(self.memory) == 0:
            return None
        size = self.size or len(batch.ids)
        loss = self.alpha * self._distance(learner, self.memory.draw(size))
        if self.beta:
            kept = learner.fetch(self.memory.sample(size))
            learner.examples_backward += len(kept.ids)
            loss = loss + self.beta * learner.loss(kept, learner.outputs(kept))
        return loss

    def after(self, learner: Learner, batch: Batch) -> None:
        """Offer the new examples to the memory, each once, and store the logits of those that it took."""
        if learner.epoch == 0:
            before = self.memory.ids.copy()
            self.memory.add(batch.ids)
            taken = self.memory.ids != np.pad(before, (0, len(self.memory) - len(before)), constant_values=-1)
            self._store(np.flatnonzero(taken))

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

    def _distance(self, learner: Learner, places: Ids) -> Tensor:
        """Give this rank's share of the mean squared distance from the logits stored at these places."""
        ids = self.memory.ids[places]
        batch = learner.fetch(ids)
        outputs = learner.outputs(batch)
        learner.examples_backward += len(ids)
        rows = []
        for part, output, own in zip(batch.parts, outputs, own_places(learner, ids), strict=True):
            now = output.flatten(1)
            then = self.logits[torch.from_numpy(places[own]).to(now.device)][:, : now.shape[1]]
            stored = ~then.isnan()
            squares = torch.where(stored, now - then.nan_to_num(), 0).square().sum(-1)
            if self.fidelity == "released":
                squares = squares / stored.sum(-1).clamp(min=1)
            rows.append(weighted(squares, part))
        return learner.share(torch.cat(rows), len(ids))

    def _store(self, taken: Ids) -> None:
        """Keep the logits of the new examples that the memory took at these places."""
        if not len(taken):
            return
        new = [(ids, rows.flatten(1)) for ids, rows in self._new]
        self._widen(max(rows.shape[1] for _, rows in new), like=new[0][1])
        self.logits[torch.from_numpy(taken).to(self.logits.device)] = torch.nan
        for ids, rows in new:
            row_of = {example: row for row, example in enumerate(ids.tolist())}
            pairs = [(p, row_of[i]) for p, i in zip(taken, self.memory.ids[taken].tolist(), strict=True) if i in row_of]
            if pairs:
                to, source = torch.tensor(pairs, device=rows.device).unbind(1)
                self.logits[to, : rows.shape[1]] = rows[source].masked_fill(rows[source] <= CLOSED / 2, torch.nan)

    def _widen(self, width: int, like: Tensor) -> None:
        """Make the rows of logits as wide as the widest output so far."""
        if self.logits.ndim == 1 or self.logits.shape[1] < width:
            wider = like.new_full((self.capacity, width), torch.nan)
            if self.logits.ndim == 2:
                wider[:, : self.logits.shape[1]] = self.logits
            self.logits = wider
