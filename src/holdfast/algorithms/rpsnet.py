"""RPSnet: every few stages a new random path of modules, the best of several, is added to the earlier paths.

Papers: Rajasegaran et al. 2019, "Random Path Selection for Continual Learning"; CFST with 9 layers of 8 modules, over
ResNet-18 and ViT, a new path every 2 stages, the best of 8 by validation data, 1000 kept examples and T = 2.
Equation: a layer's output is its shared part plus the sum of the modules of all paths so far, including this one. The
first path is module 0 of every layer; later ones are random. Kept examples are part of each later stage's training
data, as in both papers' code. The loss is extended by strength * phi * KL(softmax(teacher(x) / T) || softmax(model(x) /
T)), where the teacher is the model of the last stage, over all classes so far (`lwf.on=all`), and phi is 1 until
`every` stages are learned, and then growth * (stages learned - every).
Units: `strength` is 1 in the paper; `growth` is its gamma, 2.5 in the authors' code. Neither Avalanche nor Mammoth has
RPSnet.
The parts that layers share, the heads and this path's modules are trained; the modules of earlier paths are frozen.
Cost: `candidates` fits for a stage that begins a path (except the first), otherwise one; each costs as much as
rehearsal and LwF together: epochs that include the kept examples, and the teacher's forward pass; over time, more
modules are active. Memory: `capacity` examples, a copy of the model and, while a path is being chosen, two more.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import torch
from torch import Tensor

from holdfast.algorithms.base import Algorithm, Fit
from holdfast.algorithms.importance import copies
from holdfast.algorithms.lwf import LwF
from holdfast.algorithms.rehearsal import joined
from holdfast.algorithms.search import Search, refuse_without_validation
from holdfast.data.order import mix
from holdfast.memory import ExperienceBalanced
from holdfast.models.modular import ModularEncoder, ModulePath, as_lists, as_path, modular
from holdfast.types import Batch, Between, Stage, Stream

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner


@dataclass
class RpsNet(Algorithm):
    """Random paths through a modular network, with rehearsal and distillation."""

    version: ClassVar[int] = 1
    keeps: ClassVar[frozenset[str]] = frozenset({"examples", "weights"})
    needs: ClassVar[frozenset[str]] = frozenset({"boundaries", "modular"})
    traits = frozenset({"several-fits"})
    strengths: ClassVar[tuple[str, ...]] = ("strength", "growth")
    recordable: ClassVar[bool] = True

    modules: Annotated[int, Between(1)] = 8
    """How many modules each layer has."""
    every: Annotated[int, Between(1)] = 2
    """Choose a new path every N stages."""
    candidates: Annotated[int, Between(1)] = 8
    """How many random paths are tried for each new one."""
    capacity: Annotated[int, Between(1)] = 1000
    """How many past examples the memory holds."""
    temperature: Annotated[float, Between(1e-3)] = 2.0
    """The temperature of distillation."""
    strength: Annotated[float, Between(0)] = 1.0
    """The weight of distillation."""
    growth: Annotated[float, Between(0)] = 2.5
    """How much that weight grows with every stage after those of the first path; CFST uses 10."""
    stages: int = field(init=False, repr=False, compare=False)
    """How many stages have begun."""
    chosen: list[ModulePath] = field(init=False, repr=False, compare=False)
    """The paths so far: one module for each layer."""
    search: Search | None = field(init=False, repr=False, compare=False)
    memory: ExperienceBalanced = field(init=False, repr=False, compare=False)
    teacher: LwF = field(init=False, repr=False, compare=False)

    def uses(self) -> tuple[type, ...]:
        """Its memory, and the teacher."""
        return (ExperienceBalanced, LwF)

    def check(self, stream: Stream) -> None:
        """Raise a UserError if a stage has no validation data to choose by."""
        refuse_without_validation("rpsnet", stream)

    def setup(self, learner: Learner) -> None:
        """Create all modules of all layers."""
        for layer in modular(learner.model.encoder, "rpsnet", "branches").layers():
            layer.grow(self.modules)
        self.stages, self.chosen, self.search = 0, [], None
        self.memory = ExperienceBalanced(self.capacity, mix(learner.seed, 0x5EED))
        self.teacher = LwF(temperature=self.temperature, on="all")
        self.teacher.setup(learner)

    def begin(self, learner: Learner, stage: Stage) -> None:
        """If a path is due, freeze the last one and draw new ones; the first is module 0 of every layer."""
        self.teacher.begin(learner, stage)
        layers = _encoder(learner).layers()
        if not self.chosen:
            self.chosen.append(as_path([[0]] * len(layers)))
            self._switch(learner, None)
        elif self.stages % self.every == 0:
            for layer, (index,) in zip(layers, self.chosen[-1], strict=True):
                learner.freeze(layer.choices[index])
            drawn = torch.randint(self.modules, (self.candidates, len(layers))).tolist()
            paths = [as_path([[index] for index in path]) for path in drawn]
            self.search = Search(paths, copies(learner.model.state_dict()))
        self.stages += 1
        self._weigh()

    def stage(self, learner: Learner, stage: Stage) -> Stage:
        """Add kept examples to the stage's own."""
        return joined(stage, self.memory.ids)

    def learn(self, learner: Learner, stage: Stage, fit: Fit) -> None:
        """Fit each new path from the same weights, and continue with the best; or fit the existing path."""
        if self.search is None:
            fit()
            return
        self.chosen.append(self.search.run(learner, stage, fit, partial(self._switch, learner)))
        self._switch(learner, None)
        self.search = None

    def loss(self, learner: Learner, batch: Batch, outputs: tuple[Tensor, ...]) -> Tensor | None:
        """The divergence from the model of the last stage."""
        return self.teacher.loss(learner, batch, outputs)

    def end(self, learner: Learner, stage: Stage) -> None:
        """Keep examples, and a copy of the model as the teacher of the next stage."""
        self.memory.add(stage.train)
        self.teacher.end(learner, stage)

    def memory_bytes(self, learner: Learner) -> int:
        """The size of the kept examples, the teacher, and the weights of a search."""
        kept = learner.data.example_bytes(self.memory.ids) + self.memory.nbytes
        return kept + self.teacher.memory_bytes(learner) + (0 if self.search is None else self.search.nbytes)

    def state_dict(self) -> dict[str, Any]:
        """The paths, the search, the memory and the teacher."""
        return {
            "stages": self.stages,
            "chosen": [as_lists(path) for path in self.chosen],
            "search": None if self.search is None else self.search.state_dict(),
            "memory": self.memory.state_dict(),
            "teacher": self.teacher.state_dict(),
        }

    def load_state_dict(self, learner: Learner, state: dict[str, Any]) -> None:
        """Restore a saved state."""
        self.stages = state["stages"]
        self.chosen = [as_path(path) for path in state["chosen"]]
        self.search = None if state["search"] is None else Search.from_state(state["search"])
        self._switch(learner, None if self.search is None else self.search.path)
        self.memory.load_state_dict(state["memory"])
        self.teacher.load_state_dict(learner, state["teacher"])
        self._weigh()

    def _weigh(self) -> None:
        """The weight of distillation in this stage."""
        after = self.stages - 1 - self.every
        self.teacher.strength = self.strength * (self.growth * after if after > 0 else 1.0)

    def _switch(self, learner: Learner, new: ModulePath | None) -> None:
        """Switch on all paths so far, and a new one."""
        encoder = _encoder(learner)
        paths = [*self.chosen, *([] if new is None else [new])]
        encoder.path = tuple(
            tuple(sorted({path[layer][0] for path in paths})) for layer in range(len(encoder.layers()))
        )


def _encoder(learner: Learner) -> ModularEncoder:
    return modular(learner.model.encoder, "rpsnet", "branches")
