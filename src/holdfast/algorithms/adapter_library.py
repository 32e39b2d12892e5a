"""Adapter library: adapters and heads for each stage, among which one set is chosen for each example at test time.

Paper: none yet; CLiMB (Srinivasan et al. 2022, section 6) names it as future work: the task is unknown at test time.
Equation: set(x) = argmin_k (f(x) - m_k)' S^-1 (f(x) - m_k), with f the frozen encoder without adapters, m_k the mean of
f over stage k, and S the covariance within stages, shrunk towards its diagonal.
Cost: training as with adapters, and one forward pass over `count` examples after each stage; a test takes two passes.
Memory: a mean for each stage, and one matrix of width x width numbers. The model grows by one set for each stage:
adapters in every block, and a copy of the heads as the stage left them.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import torch
from torch import Tensor, nn

from holdfast.algorithms.adapters import places, refuse_second_set
from holdfast.algorithms.base import Algorithm, Answer
from holdfast.data.order import shuffled
from holdfast.models.adapters import Activation
from holdfast.types import Between, Stage

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner
    from holdfast.models.base import Network

SHRINK = 0.1
"""How far the covariance is shrunk towards its diagonal: with few examples it is not reliable in every direction."""
CHUNK = 256


@dataclass
class AdapterLibrary(Algorithm):
    """A set of adapters for each stage; each example gets the set whose stage it resembles most."""

    version: ClassVar[int] = 1
    keeps: ClassVar[frozenset[str]] = frozenset({"statistics"})
    pretrained: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"blocks", "boundaries"})
    traits = frozenset({"encoder-per-stage", "adds-to-blocks"})

    reduction: Annotated[int, Between(1)] = 16
    """The width of the encoder divided by that of a bottleneck."""
    activation: Activation = "gelu"
    """The nonlinearity inside a bottleneck; silu is also known as swish."""
    count: Annotated[int, Between(2)] = 1024
    """The number of examples that describe a stage."""
    means: list[Tensor] = field(init=False, repr=False, compare=False)
    scatter: Tensor | None = field(init=False, repr=False, compare=False)
    described: int = field(init=False, repr=False, compare=False)
    """The number of examples in the scatter."""
    sets: int = field(init=False, repr=False, compare=False)
    """The number of sets: within a stage, one more than the described stages."""
    _space: tuple[Tensor, Tensor] = field(init=False, repr=False, compare=False)

    def beside(self, algorithms: Sequence[Algorithm]) -> None:
        """Raise a UserError for other algorithms that add to the same blocks."""
        refuse_second_set(self, algorithms)

    def setup(self, learner: Learner) -> None:
        """Freeze the encoder; sets are added at each stage."""
        self.means, self.scatter, self.described, self.sets = [], None, 0, 0
        places(learner, "adapter-library")
        learner.freeze(learner.model.encoder)
        learner.model.active = ""  # no set yet, and none with the name of a head
        learner.model.add_module("library", nn.ModuleDict())

    def begin(self, learner: Learner, stage: Stage) -> None:
        """Add a new set, which is active for every example until the stage ends; earlier ones are frozen."""
        if self.sets:
            last = _name(self.sets - 1)
            learner.freeze(*(block.added[last] for block in learner.model.encoder.blocks()))
        self._add(learner)

    def end(self, learner: Learner, stage: Stage) -> None:
        """Keep the heads, describe the stage, and from then on choose a set for each example."""
        _kept(learner.model, self.sets - 1).load_state_dict(learner.model.heads.state_dict())
        chosen = shuffled(stage.train, seed=learner.seed, stage=len(self.means), epoch=-1)[: self.count]
        learner.model.eval()
        with torch.no_grad():
            parts = [
                seen(learner.model, part.inputs)
                for start in range(0, len(chosen), CHUNK)
                for part in learner.data.fetch(chosen[start : start + CHUNK], learner.device).parts
            ]
        learner.train_mode()
        found = torch.cat(parts)
        centred = found - found.mean(0)
        self.means.append(found.mean(0))
        self.scatter = centred.T @ centred + (0 if self.scatter is None else self.scatter)
        self.described += len(found)
        self._space = self._whitened()

    def route(self, learner: Learner, inputs: Mapping[str, Tensor], head: str, answer: Answer) -> Tensor:
        """The outputs with the set whose stage is nearest; within a stage, with the set that is being trained."""
        if len(self.means) < self.sets or not self.sets:
            return answer(inputs, head)
        return _chosen(learner.model, *self._space, inputs, head)

    def memory_bytes(self, learner: Learner) -> int:
        """The means and the scatter."""
        return sum(mean.nbytes for mean in self.means) + (0 if self.scatter is None else self.scatter.nbytes)

    def state_dict(self) -> dict[str, Any]:
        """The description of the stages; the sets themselves belong to the model."""
        return {"means": list(self.means), "scatter": self.scatter, "described": self.described, "sets": self.sets}

    def load_state_dict(self, learner: Learner, state: dict[str, Any]) -> None:
        """Create the sets again; their weights come with the model's."""
        for _ in range(state["sets"]):
            self._add(learner)
        self.means = [mean.to(learner.device) for mean in state["means"]]
        self.scatter = None if state["scatter"] is None else state["scatter"].to(learner.device)
        self.described = state["described"]
        if self.means:
            self._space = self._whitened()

    def _add(self, learner: Learner) -> None:
        model, name = learner.model, _name(self.sets)
        model.add(name, [block.adapters(self.reduction, self.activation) for block in model.encoder.blocks()])
        library = model.get_submodule("library")
        assert isinstance(library, nn.ModuleDict)
        library[name] = copy.deepcopy(model.heads).requires_grad_(False)
        model.active = name
        self.sets += 1

    def _whitened(self) -> tuple[Tensor, Tensor]:
        """The means of the stages in the whitened space, and the matrix that leads there."""
        assert self.scatter is not None
        covariance = self.scatter / max(self.described - len(self.means), 1)
        diagonal = covariance.diagonal()
        floor = 1e-6 * diagonal.mean() + 1e-12
        covariance = (1 - SHRINK) * covariance + torch.diag(SHRINK * diagonal + floor)
        root = torch.linalg.cholesky(torch.linalg.inv(covariance))
        return torch.stack(self.means) @ root, root


def _name(number: int) -> str:
    return f"library-{number}"


def _kept(model: Network, number: int) -> nn.Module:
    return model.get_submodule(f"library.{_name(number)}")


@contextmanager
def switched(model: Network, name: str) -> Iterator[None]:
    """Switch on one set within the context, and then the stage's set again."""
    before, model.active = model.active, name
    model.switch("")
    try:
        yield
    finally:
        model.active = before


def seen(model: Network, inputs: Mapping[str, Tensor]) -> Tensor:
    """The output of the encoder alone for each example: the mean over its images or choices, in float64."""
    found = model.bare(inputs).to(torch.float64)
    return found if found.ndim == 2 else found.flatten(1, -2).mean(1)


def _chosen(model: Network, means: Tensor, root: Tensor, inputs: Mapping[str, Tensor], head: str) -> Tensor:
    """The outputs of a head, for each example with the set whose stage is nearest in the whitened space."""
    nearest = torch.cdist(seen(model, inputs) @ root, means).argmin(1)
    outputs: Tensor | None = None
    for number in range(len(means)):
        rows = (nearest == number).nonzero().squeeze(1)
        if len(rows) == 0:
            continue
        kept = _kept(model, number).get_submodule(head)
        with switched(model, _name(number)):
            found: Tensor = kept(model.encoder, {name: column[rows] for name, column in inputs.items()})
        outputs = found.new_empty((len(nearest), *found.shape[1:])) if outputs is None else outputs
        outputs[rows] = found
    assert outputs is not None, "a batch has examples"
    return outputs
