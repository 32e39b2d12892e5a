"""MNTDP: a path of modules for each head, with new modules on top of the best old ones; chosen modules stay fixed.

Papers: Veniat et al. 2021, "Efficient Continual Learning with Modular Networks and Task-Driven Priors"; CFST over the
5 stages of ResNet-18 and the blocks of ViT, with 5 nearest neighbours.
Equation: find the past path on whose features a vote of the nearest training examples answers the validation data best;
then, for k = 0, 1, ..., fit that path with its deepest k modules replaced by new ones, and keep the fit that scores
best on the validation data; ties go to the fewest new modules.
Cost: one fit of the first stage; for each further stage, a fit for each number of new modules (one more than layers),
and one forward pass over its data for each past path. Memory: two copies of the model during a search; the model grows
by the new modules.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from holdfast.algorithms.base import Algorithm, Fit
from holdfast.algorithms.importance import copies
from holdfast.algorithms.rows import grouping, refuse_without_classes
from holdfast.algorithms.search import Search, refuse_without_validation
from holdfast.models.modular import ModularEncoder, ModulePath, as_lists, as_path, modular
from holdfast.types import Between, Ids, Stage, Stream

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner


@dataclass
class Mntdp(Algorithm):
    """Paths of frozen modules, grown from the top down. A head that is learned again gets its new path.

    A layer whose new module was not chosen keeps it until the next stage, which reinitialises it.
    """

    version: ClassVar[int] = 1
    needs: ClassVar[frozenset[str]] = frozenset({"boundaries", "modular"})
    traits = frozenset({"several-fits", "encoder-per-head"})

    neighbours: Annotated[int, Between(1)] = 5
    """How many nearest examples vote."""
    chosen: list[ModulePath] = field(init=False, repr=False, compare=False)
    """The path of each stage so far."""
    heads: list[str] = field(init=False, repr=False, compare=False)
    """The heads of the stage that is being learned."""
    search: Search | None = field(init=False, repr=False, compare=False)
    encoder: ModularEncoder = field(init=False, repr=False, compare=False)

    def check(self, stream: Stream) -> None:
        """Raise a UserError if a stage has no validation data to choose by."""
        refuse_without_validation("mntdp", stream)

    def setup(self, learner: Learner) -> None:
        """Start without paths."""
        self.encoder = modular(learner.model.encoder, "mntdp", "stages")
        refuse_without_classes(learner, "mntdp")
        self.chosen, self.heads, self.search = [], [], None

    def begin(self, learner: Learner, stage: Stage) -> None:
        """Find the best past path, and initialise a new module for each layer."""
        tables = np.unique(np.searchsorted(learner.data.offsets[1:-1], stage.train, side="right"))
        self.heads = sorted({learner.tasks[learner.data.tables[index].task].head for index in tables})
        if not self.chosen:
            self.search = Search([self.encoder.path], copies(learner.model.state_dict()))
            return
        best = nearest_path(learner, stage, list(dict.fromkeys(self.chosen)), self.neighbours)
        new = []
        for index, layer in enumerate(self.encoder.layers()):
            used = 1 + max(path[index][0] for path in self.chosen)
            if len(layer.choices) > used:
                layer.choices[used] = layer.fresh()
            layer.grow(used + 1)
            new.append((used,))
        depth = len(new)
        paths: list[ModulePath] = [(*best[: depth - k], *new[depth - k :]) for k in range(depth + 1)]
        self.search = Search(paths, copies(learner.model.state_dict()))

    def learn(self, learner: Learner, stage: Stage, fit: Fit) -> None:
        """Fit each path from the same weights, and continue with the best."""
        assert self.search is not None, "set by begin"
        self.chosen.append(self.search.run(learner, stage, fit, partial(self._switch, learner)))
        self._switch(learner, self.chosen[-1])
        self.search = None

    def end(self, learner: Learner, stage: Stage) -> None:
        """Freeze the chosen modules, and whatever all paths share."""
        layers, path = self.encoder.layers(), self.chosen[-1]
        for index, layer in enumerate(layers):
            if all(past[index] != path[index] for past in self.chosen[:-1]):
                learner.freeze(layer.choices[path[index][0]])
        if len(self.chosen) == 1:
            learner.freeze(self.encoder.start, self.encoder.end)

    def memory_bytes(self, learner: Learner) -> int:
        """The size of the weights kept during a search."""
        return 0 if self.search is None else self.search.nbytes

    def state_dict(self) -> dict[str, Any]:
        """The paths, which head uses which, the number of modules, and the search."""
        return {
            "chosen": [as_lists(path) for path in self.chosen],
            "heads": self.heads,
            "structure": self.encoder.structure(),
            "search": None if self.search is None else self.search.state_dict(),
        }

    def load_state_dict(self, learner: Learner, state: dict[str, Any]) -> None:
        """Restore a saved state, with the same number of modules."""
        self.chosen = [as_path(path) for path in state["chosen"]]
        self.heads = state["heads"]
        self.search = None if state["search"] is None else Search.from_state(state["search"])
        self.encoder.rebuild(state["structure"])

    def _switch(self, learner: Learner, path: ModulePath) -> None:
        """Switch this stage's heads, and those without a path of their own, to this path."""
        self.encoder.path = path
        self.encoder.paths |= dict.fromkeys(self.heads, path)


def nearest_path(learner: Learner, stage: Stage, paths: list[ModulePath], neighbours: int) -> ModulePath:
    """The path whose features best support a vote of the nearest training examples; ties go to the earliest."""
    encoder = modular(learner.model.encoder, "mntdp", "stages")
    validation = np.concatenate([chosen.ids for chosen in stage.validation])
    classes = grouping(learner, "class", "mntdp")
    known, asked = (torch.from_numpy(classes(ids)).to(learner.device) for ids in (stage.train, validation))
    before, scores = encoder.path, []
    learner.model.eval()
    encoder.active = ""  # no head: use the path that is switched on
    for path in paths:
        encoder.path = path
        train, queries = _features(learner, stage.train), _features(learner, validation)
        scores.append((vote(train, known, queries, neighbours) == asked).double().mean())
    learner.train_mode()
    encoder.path = before
    return paths[int(torch.stack(scores).argmax())]


def vote(train: Tensor, classes: Tensor, queries: Tensor, neighbours: int) -> Tensor:
    """The most frequent class among each query's nearest training examples; ties go to the smallest class.

    >>> train, classes = torch.tensor([[0.0], [1.0], [5.0]]), torch.tensor([4, 4, 7])
    >>> vote(train, classes, torch.tensor([[0.4], [6.0]]), neighbours=1).tolist()
    [4, 7]
    """
    answers = []
    for some in torch.split(queries, 1024):
        nearest = torch.cdist(some, train).topk(min(neighbours, len(train)), largest=False).indices
        answers.append(torch.nn.functional.one_hot(classes[nearest]).sum(1).argmax(-1))
    return torch.cat(answers)


def _features(learner: Learner, ids: Ids) -> Tensor:
    """The encoder's vectors of examples, in the order of their ids."""
    found = []
    for start in range(0, len(ids), 256):
        some = ids[start : start + 256]
        order = np.argsort(some, kind="stable")  # the parts of sorted ids are, one after another, in the same order
        batch = learner.data.fetch(some[order], learner.device)
        learner.examples_forward += len(some)
        with torch.no_grad():
            rows = torch.cat([learner.model.encoder(part.inputs).flatten(1) for part in batch.parts])
        found.append(rows[torch.from_numpy(np.argsort(order)).to(rows.device)])
    return torch.cat(found)
