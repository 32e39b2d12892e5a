"""What can be added to a transformer's blocks for each task: bottleneck adapters, and low-rank updates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from holdfast.models.transformer import TransformerBlock

Activation: TypeAlias = Literal["gelu", "relu", "silu"]
ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "gelu": functional.gelu,
    "relu": functional.relu,
    "silu": functional.silu,
}
"""What an adapter may apply within; silu is also known as swish."""


class Adapter(nn.Module):
    """A bottleneck with a residual of its own; its second layer starts near zero, so it starts as the identity.

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
        """The same shape."""
        out: Tensor = x + self.up(self.activation(self.down(x)))
        return out


class LowRankUpdate(nn.Module):
    """A low-rank addition to the queries and values of an attention: Hu et al. 2021. It starts at zero."""

    def __init__(self, width: int, inner: int, rank: int, scale: float = 1.0) -> None:
        super().__init__()
        self.down = nn.Linear(width, 2 * rank, bias=False)
        self.up_query = nn.Parameter(torch.zeros(inner, rank))
        self.up_value = nn.Parameter(torch.zeros(inner, rank))
        self.rank, self.scale = rank, scale

    def forward(self, x: Tensor) -> Tensor:
        """What is added to queries, keys (nothing) and values: (rows, length, 3 x inner)."""
        query, value = self.down(x).split(self.rank, dim=-1)
        query, value = query @ self.up_query.T, value @ self.up_value.T
        return torch.cat([query, torch.zeros_like(query), value], dim=-1) * self.scale


def adapters(block: TransformerBlock, reduction: int = 16, activation: Activation = "gelu") -> nn.ModuleDict:
    """Two adapters for a block: after attention, and after the feed-forward network."""
    width = block.attention.output.out_features
    bottleneck = max(width // reduction, 1)
    return nn.ModuleDict({place: Adapter(width, bottleneck, activation) for place in ("attention", "feed_forward")})


def low_rank(block: TransformerBlock, rank: int = 8, scale: float = 1.0) -> nn.ModuleDict:
    """A low-rank update for a block's attention."""
    width, inner = block.attention.projection.in_features, block.attention.inner
    return nn.ModuleDict({"projection": LowRankUpdate(width, inner, rank, scale)})
