"""Additions to a network for each task: adapters, low-rank updates and prefixes, and the places for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from holdfast.models.prefixes import Prefix, Widths

Activation: TypeAlias = Literal["gelu", "relu", "silu"]
ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "gelu": functional.gelu,
    "relu": functional.relu,
    "silu": functional.silu,
}
"""The activations of adapters; silu is also known as swish."""


class Adapter(nn.Module):
    """A bottleneck with its own residual; its second layer starts near zero, so it starts as the identity.

    Houlsby et al. 2019, whose text says "a nonlinearity" and whose code has GELU.
    """

    def __init__(self, width: int, bottleneck: int, activation: Activation = "gelu") -> None:
        super().__init__()
        self.activation = ACTIVATIONS[activation]
        self.down = nn.Linear(width, bottleneck)
        self.up = nn.Linear(bottleneck, width)
        for layer in (self.down, self.up):
            nn.init.normal_(layer.weight, std=1e-3)
            nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Vectors of the same shape."""
        out: Tensor = x + self.up(self.activation(self.down(x)))
        return out


class LowRankAddition(nn.Module, ABC):
    """A low-rank addition to the output of one layer or of several parallel ones: scale x up (down x). It starts at
    zero.
    """

    down: nn.Linear
    rank: int

    @abstractmethod
    def ups(self) -> tuple[Tensor, ...]:
        """The matrices (outputs, rank), one for each layer that has an addition."""

    @abstractmethod
    def product(self) -> Tensor:
        """The addition to the weight of the layer."""

    def directions(self) -> Tensor:
        """The directions of the input that are read for each matrix of `ups`: (matrices, rank, width)."""
        return self.down.weight.view(-1, self.rank, self.down.in_features)


class LowRankUpdate(LowRankAddition):
    """A low-rank addition to the queries and values of an attention: Hu et al. 2021. It starts at zero."""

    def __init__(self, width: int, inner: int, rank: int, scale: float = 1.0) -> None:
        super().__init__()
        self.down = nn.Linear(width, 2 * rank, bias=False)
        self.up_query = nn.Parameter(torch.zeros(inner, rank))
        self.up_value = nn.Parameter(torch.zeros(inner, rank))
        self.rank, self.scale = rank, scale

    def forward(self, x: Tensor) -> Tensor:
        """The additions to queries, keys (zero) and values: (rows, length, 3 x inner)."""
        query, value = self.down(x).split(self.rank, dim=-1)
        query, value = query @ self.up_query.T, value @ self.up_value.T
        return torch.cat([query, torch.zeros_like(query), value], dim=-1) * self.scale

    def ups(self) -> tuple[Tensor, ...]:
        """The matrices of queries and of values."""
        return self.up_query, self.up_value

    def product(self) -> Tensor:
        """The addition to the projection's weight, whose rows are queries, keys and values."""
        query, value = (up @ down for up, down in zip(self.ups(), self.directions(), strict=True))
        return torch.cat([query, torch.zeros_like(query), value]) * self.scale


class Attachable(nn.Module, ABC):
    """A part of a network to which modules can be added: a transformer block of ours, or any repeated module.

    `added` holds sets of modules by name; the one named `active` is switched on. Without sets, or with
    another name, the part's outputs are unchanged, to the last bit.
    """

    added: nn.ModuleDict
    active: str

    @abstractmethod
    def adapted(self) -> Mapping[str, int]:
        """The places for adapters, by the names of the modules in a set, with the width at each."""

    @abstractmethod
    def low_rank(self, rank: int, scale: float) -> nn.ModuleDict:
        """A new set of low-rank updates, by the names of the layers that they update; empty if there are none."""

    @abstractmethod
    def updated(self) -> Mapping[str, nn.Linear]:
        """The layers that low-rank updates add to, by the names of the modules in a set."""

    def updates(self, name: str) -> Mapping[str, LowRankAddition]:
        """The low-rank updates of a set."""
        found = self.added[name]
        assert isinstance(found, nn.ModuleDict)
        return {place: each for place, each in found.items() if isinstance(each, LowRankAddition)}

    def merge(self, name: str) -> None:
        """Merge a set of low-rank updates into the layers' own weights; the updates are then zero."""
        layers = self.updated()
        with torch.no_grad():
            for place, update in self.updates(name).items():
                layers[place].weight += update.product()
                for up in update.ups():
                    up.zero_()

    def adapters(self, reduction: int = 16, activation: Activation = "gelu") -> nn.ModuleDict:
        """A new set of adapters, each narrower by the factor `reduction` than what it adapts."""
        widths = self.adapted().items()
        return nn.ModuleDict({name: Adapter(wide, max(wide // reduction, 1), activation) for name, wide in widths})

    @abstractmethod
    def attends(self) -> Mapping[str, Widths]:
        """The places for prefixes, by the names of the modules in a set, with the widths of keys and values."""

    def prefixes(self, length: int, pool: int = 1) -> nn.ModuleDict:
        """A new set of prefixes, or of pools of them; empty if there is no attention."""
        return nn.ModuleDict({name: Prefix(widths, length, pool) for name, widths in self.attends().items()})

    @abstractmethod
    def weight(self) -> Tensor:
        """A weight of the part itself: additions get its device and type."""

    def add(self, name: str, modules: nn.ModuleDict) -> None:
        """Add a set."""
        self.added[name] = modules.to(self.weight())

    def remove(self, name: str) -> None:
        """Remove a set."""
        del self.added[name]
