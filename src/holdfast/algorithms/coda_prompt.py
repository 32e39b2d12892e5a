"""CODA-Prompt: each example's prompt is a weighted sum of all components so far; each stage trains new components.

Paper: Smith et al. 2023, "CODA-Prompt: COntinual Decomposed Attention-based Prompting for Rehearsal-Free Continual
Learning". Prompts are keys and values before those of attention in the lowest `layers` blocks.
Equation: a_m = cos(q * A_m, K_m), with q the frozen encoder's output without prompts and * element by element; the
prompt is the sum of a_m P_m. The loss gets strength x the sum of |B B' - I|^2 for B = K, A and P of each layer. Each
stage trains pool / stages components of its own; earlier ones are fixed, and later ones are unused. All components are
drawn orthogonal at once, where the paper draws those of each stage anew.
Units: `strength` is the paper's lambda, 0.1, for the sum of squares; the released code has a millionth of their mean.
Cost: two forward passes and one backward pass, in which no gradient of the encoder's weights is computed.
Memory: none beside the model, which grows by 2 x pool x (length + 1) x width numbers for each layer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from holdfast.algorithms.adapters import refuse_second_set
from holdfast.algorithms.base import Algorithm
from holdfast.algorithms.prompts import SET, add_prefixes, parameter, query
from holdfast.errors import UserError
from holdfast.models.prefixes import Prefix
from holdfast.types import Batch, Between, Stage, Stream

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner
    from holdfast.models.base import Network

KEYS, ATTENTION = "prompt_keys", "prompt_attention"


@dataclass
class Opened:
    """The components of the current stage; those before them are fixed, and those after them are not used."""

    first: int = 0
    last: int = 0

    def of(self, components: Tensor) -> Tensor:
        """The components so far, (..., pool, width); those of earlier stages are frozen."""
        return torch.cat([components[..., : self.first, :].detach(), components[..., self.first : self.last, :]], -2)

    def distance(self, components: Tensor) -> Tensor:
        """The sum of |B B' - I|^2 without the products among earlier components, which are constant."""
        products = components[..., self.first : self.last, :] @ self.of(components).mT
        targets = torch.eye(self.last, dtype=products.dtype, device=products.device)[self.first :]
        squares = (products - targets).square().flatten(0, -2).sum(0)
        return squares.sum() + squares[: self.first].sum()  # B B' contains each product with an earlier component twice


@dataclass
class CodaPrompt(Algorithm):
    """Prompts that are sums of components, weighted by attention to each example; the encoder is frozen."""

    version: ClassVar[int] = 1
    needs: ClassVar[frozenset[str]] = frozenset({"blocks", "boundaries"})
    pretrained: ClassVar[bool] = True
    traits = frozenset({"adds-to-blocks"})
    strengths: ClassVar[tuple[str, ...]] = ("strength",)

    pool: Annotated[int, Between(1)] = 100
    """The number of components, over all stages."""
    length: Annotated[int, Between(1)] = 4
    """The number of keys, and of values, in a prompt."""
    layers: Annotated[int, Between(1)] = 5
    """The number of blocks that have prompts, counted from the bottom."""
    strength: Annotated[float, Between(0)] = 0.1
    """The weight of the penalty on components that are not orthogonal."""
    stages: int = field(init=False, repr=False, compare=False)
    begun: int = field(init=False, repr=False, compare=False)
    _opened: Opened = field(default_factory=Opened, init=False, repr=False, compare=False)

    def check(self, stream: Stream) -> None:
        """Raise a UserError if a stage would have no component, or if fixed ones would decay."""
        self.stages = len(stream.stages)
        if self.pool < self.stages:
            raise UserError(
                f"{self} trains new components in each stage, and {self}.pool is {self.pool} for {self.stages} stages: "
                f"set {self}.pool={self.stages} or more"
            )
        if any(stage.training.weight_decay for stage in stream.stages):
            raise UserError(f"{self} fixes the components of past stages, which would decay: set train.weight_decay=0")

    def beside(self, algorithms: Sequence[Algorithm]) -> None:
        """Raise a UserError for other algorithms that add to the same blocks."""
        refuse_second_set(self, algorithms)

    def setup(self, learner: Learner) -> None:
        """Freeze the encoder, and add all components."""
        model, pools = learner.model, add_prefixes(learner, str(self), self.layers, self.length, self.pool)
        for each in (prefix for own in pools for prefix in own):
            sizes = [each.key[0].numel(), each.value[0].numel()]
            drawn = nn.init.orthogonal_(torch.empty(self.pool, sum(sizes)))
            with torch.no_grad():
                for part, own in zip((each.key, each.value), torch.split(drawn, sizes, 1), strict=True):
                    part.copy_(own.view_as(part))
        for name in (KEYS, ATTENTION):
            layers = [nn.init.orthogonal_(torch.empty(self.pool, model.encoder.width)) for own in pools if own]
            model.register_parameter(name, parameter(learner, torch.stack(layers)))
        model.choose = partial(_choose, model, [bool(own) for own in pools], self._opened)
        self._open(learner, 0)

    def begin(self, learner: Learner, stage: Stage) -> None:
        """Freeze the components so far, and enable those of this stage."""
        self._open(learner, self.begun + 1)

    def loss(self, learner: Learner, batch: Batch, outputs: tuple[Tensor, ...]) -> Tensor:
        """The penalty on keys, attention vectors and prompts that are not orthogonal."""
        learner.examples_forward += len(batch.ids)
        found = torch.cat([learner.model.get_parameter(name) for name in (KEYS, ATTENTION)])
        pools = [torch.cat([each.key.flatten(1), each.value.flatten(1)], 1) for each in _prefixes(learner)]
        groups = [found, torch.stack(pools)] if len({each.shape for each in pools}) == 1 else [found, *pools]
        return self.strength * torch.stack([self._opened.distance(each) for each in groups]).sum()

    def _open(self, learner: Learner, begun: int) -> None:
        self.begun, share = begun, self.pool // self.stages
        self._opened.first, self._opened.last = max(begun - 1, 0) * share, max(begun, 1) * share
        for each in _prefixes(learner):
            each.fixed = self._opened.first

    def state_dict(self) -> dict[str, Any]:
        """The number of stages that have begun; the model saves the components."""
        return {"begun": self.begun}

    def load_state_dict(self, learner: Learner, state: dict[str, Any]) -> None:
        """Enable the components of the stage."""
        self._open(learner, state["begun"])


def _prefixes(learner: Learner) -> list[Prefix]:
    sets = (block.added[SET] for block in learner.model.encoder.blocks())
    return [each for own in sets for each in own.modules() if isinstance(each, Prefix)]


def _choose(model: Network, having: Sequence[bool], opened: Opened, inputs: Mapping[str, Tensor], head: str) -> Any:
    """The weights of the components for each block, (examples, pool)."""
    whole = model.get_parameter(KEYS)
    keys, attention = functional.normalize(opened.of(whole), dim=-1), opened.of(model.get_parameter(ATTENTION))
    q = query(model, inputs).to(keys)
    lengths = torch.einsum("ed,lmd->lem", q.square(), attention.square()).clamp(min=1e-24).sqrt()
    weights = torch.einsum("ed,lmd->lem", q, attention * keys) / lengths
    each = iter(functional.pad(weights, (0, whole.shape[1] - opened.last)))
    return [next(each) if own else None for own in having]
