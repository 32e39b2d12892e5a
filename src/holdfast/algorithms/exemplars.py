"""Exemplars: the kept examples of each class whose mean feature is nearest to the class's mean, best first.

Paper: Rebuffi et al. 2017, "iCaRL: Incremental Classifier and Representation Learning", algorithms 4 and 5 (herding).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from holdfast.algorithms.rows import grouping, on_all_ranks
from holdfast.types import Ids

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner

CHUNK = 256


def herded(features: Tensor, count: int) -> list[int]:
    """The rows of `features` in the order of herding: each next row brings the mean of the chosen ones nearest to the
    mean of all.

    >>> herded(torch.tensor([[0.0], [4.0], [3.0], [1.0], [7.0]]), 2)
    [2, 1]
    """
    mean, total = features.mean(0), torch.zeros_like(features[0])
    left = torch.ones(len(features), dtype=torch.bool, device=features.device)
    chosen: list[int] = []
    for number in range(1, min(count, len(features)) + 1):
        distances = (mean - (total + features) / number).square().sum(1)
        best = int(distances.masked_fill(~left, torch.inf).argmin())
        left[best] = False
        total = total + features[best]
        chosen.append(best)
    return chosen


@torch.no_grad()
def features_of(learner: Learner, ids: Ids) -> Tensor:
    """The encoder's features of examples, of length 1, in evaluation mode, in float64 and on every rank."""
    found: Tensor | None = None
    learner.model.eval()
    for start in range(0, len(ids), CHUNK):
        batch = learner.fetch(ids[start : start + CHUNK], augment=False)
        rows = tuple(learner.model.features(part.inputs).flatten(1).double() for part in batch.parts)
        places = {int(each): place for place, each in enumerate(batch.ids)}
        for own, values in on_all_ranks(learner, batch, rows):
            found = values.new_empty((len(ids), values.shape[1])) if found is None else found
            found[[start + places[int(each)] for each in own]] = functional.normalize(values, dim=-1)
    learner.train_mode()
    assert found is not None, "asked for no examples"
    return found


class Exemplars:
    """For each class seen so far, its kept examples; the capacity is shared out among the classes."""

    def __init__(self, learner: Learner, capacity: int, name: str) -> None:
        self.capacity, self.group = capacity, grouping(learner, "class", name)
        self.by_class: dict[int, Ids] = {}

    @property
    def ids(self) -> Ids:
        """All of them."""
        return np.concatenate([np.empty(0, np.int64), *self.by_class.values()])

    def update(self, learner: Learner, ids: Ids) -> None:
        """Choose exemplars of the new classes among these examples, and drop the last ones of the others."""
        groups = self.group(ids)
        new = {int(each): ids[groups == each] for each in np.unique(groups) if int(each) not in self.by_class}
        room = max(self.capacity // max(len(self.by_class) + len(new), 1), 1)
        self.by_class = {each: kept[:room] for each, kept in self.by_class.items()}
        for each, own in new.items():
            self.by_class[each] = own[herded(features_of(learner, own), room)]

    @property
    def nbytes(self) -> int:
        """The bytes of the numbers of the examples."""
        return int(self.ids.nbytes)

    def state_dict(self) -> dict[str, Any]:
        """The examples by class."""
        return {"ids": self.ids, "classes": [[each, len(kept)] for each, kept in self.by_class.items()]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the examples."""
        ends = np.cumsum([count for _, count in state["classes"]])[:-1]
        kept = np.split(np.asarray(state["ids"], np.int64), ends) if state["classes"] else []
        self.by_class = {int(each): ids for (each, _), ids in zip(state["classes"], kept, strict=True)}
