"""The vision transformer (Dosovitskiy et al. 2021), at the size that CFST trains from scratch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from holdfast.models import weights
from holdfast.models.base import Encoder, Model
from holdfast.models.resnet import Normalise, check_images
from holdfast.models.transformer import TransformerBlock
from holdfast.types import Between, Inputs, Wants

NAMES = weights.Names(
    "vit.",
    {
        "patches.whole": ("embeddings.cls_token",),
        "patches.position": ("embeddings.position_embeddings",),
        "patches.projection": ("embeddings.patch_embeddings.projection",),
        "block.{}.attention.projection": tuple(
            f"encoder.layer.{{}}.attention.attention.{part}" for part in ("query", "key", "value")
        ),
        "block.{}.attention.output": ("encoder.layer.{}.attention.output.dense",),
        "block.{}.attention_norm": ("encoder.layer.{}.layernorm_before",),
        "block.{}.feed_forward.inner": ("encoder.layer.{}.intermediate.dense",),
        "block.{}.feed_forward.output": ("encoder.layer.{}.output.dense",),
        "block.{}.feed_forward_norm": ("encoder.layer.{}.layernorm_after",),
        "norm": ("layernorm",),
    },
)
"""The names of our weights in `transformers`' ViTModel."""

SIZES = {
    "width": ("hidden_size", 768),
    "depth": ("num_hidden_layers", 12),
    "heads": ("num_attention_heads", 12),
    "head_width": ("head_width", 64),
    "hidden": ("intermediate_size", 3072),
    "patch": ("patch_size", 16),
}
"""The names of our settings in its configuration, and the values if they are missing there, except a head's width."""


class Patches(nn.Module):
    """Maps images to the vectors of their patches, preceded by a vector for the whole image."""

    def __init__(self, height: int, width: int, patch: int, size: int, dropout: float) -> None:
        super().__init__()
        self.normalise = Normalise()
        self.projection = nn.Conv2d(3, size, patch, patch)
        # At the scale of the patches to which they are added: from scratch, with BERT's 0.02, positions are learned
        # some hundred steps later.
        self.whole = nn.Parameter(torch.randn(1, 1, size))
        self.position = nn.Parameter(torch.randn(1, 1 + (height // patch) * (width // patch), size))
        self.dropout = nn.Dropout(dropout)

    def forward(self, images: Tensor) -> Tensor:
        """Map images (rows, 3, height, width) to (rows, 1 + patches, size); a remainder smaller than a patch is
        dropped.
        """
        cells = self.projection(self.normalise(images)).flatten(2).transpose(1, 2)
        whole = (self.whole + self.position[:, :1]).expand(len(cells), -1, -1)
        out: Tensor = self.dropout(torch.cat([whole, cells + self.position[:, 1:]], dim=1))
        return out


def block(recipe: Vit, epsilon: float = 1e-12) -> TransformerBlock:
    """One layer of the model's sizes."""
    return TransformerBlock(
        recipe.width,
        recipe.heads,
        recipe.hidden,
        dropout=recipe.dropout,
        attention_dropout=recipe.dropout,
        feed_dropout=recipe.dropout,
        epsilon=epsilon,
        inner=recipe.heads * recipe.head_width,
    )


class VitEncoder(Encoder):
    """Pre-norm blocks over patches; the image's vector is the normalised class token."""

    recordable = True

    def __init__(self, recipe: Vit, height: int, width: int, epsilon: float = 1e-12) -> None:
        super().__init__()
        self.width = recipe.width
        self.patches = Patches(height, width, recipe.patch, recipe.width, recipe.dropout)
        self.block = nn.ModuleList(block(recipe, epsilon) for _ in range(recipe.depth))
        self.norm = nn.LayerNorm(recipe.width, eps=epsilon)

    def stem(self) -> Sequence[nn.Module]:
        """The embedding of patches."""
        return [self.patches]

    def layers(self) -> Sequence[nn.Module]:
        """The blocks."""
        return list(self.block)

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """A vector for each image: (rows, width), or (rows, images, width)."""
        images = inputs["image"]
        out: Tensor = self.norm(self._states(images.flatten(0, -4))[:, 0]).view(*images.shape[:-3], self.width)
        return out

    def grid(self, images: Tensor) -> Tensor:
        """The normalised vectors of the patches at their positions: (rows, width, patches down, patches across)."""
        down = images.shape[-2] // self.patches.projection.stride[0]
        cells: Tensor = self.norm(self._states(images)[:, 1:])
        return cells.transpose(1, 2).reshape(len(cells), self.width, down, -1)

    def _states(self, images: Tensor) -> Tensor:
        x: Tensor = self.patches(images)
        for block in self.block:
            x = block(x)
        return x


@dataclass(frozen=True)
class Vit(Model):
    """ViT, 9 layers of 384 with 16 heads of 64, over patches of 16x16; or of the size of published weights."""

    version: ClassVar[int] = 1
    places: ClassVar[frozenset[str]] = frozenset({"weights"})

    patch: Annotated[int, Between(1)] = 16
    """The side of an image patch in pixels."""
    width: Annotated[int, Between(1)] = 384
    """The width of the hidden states."""
    depth: Annotated[int, Between(1)] = 9
    """The number of transformer blocks."""
    heads: Annotated[int, Between(1)] = 16
    """The number of attention heads in each block."""
    head_width: Annotated[int, Between(1)] = 64
    """The width of each head; heads need not share the model's width (CFST's are 1024 wide together)."""
    hidden: Annotated[int, Between(1)] = 1536
    """The width of the hidden layer in each feed-forward network."""
    dropout: Annotated[float, Between(0, 1)] = 0.1
    """The probability with which activations are dropped in training."""
    weights: str = ""
    """A folder with a ViT in the published format, or its name on the hub, such as google/vit-base-patch16-224."""

    def encoder(self, inputs: Inputs) -> Encoder:
        """A transformer for images of this size.

        >>> TinyVit().encoder(Inputs((3, 32, 48))).patches.position.shape
        torch.Size([1, 25, 64])
        """
        folder = weights.locate(self.weights, "weights") if self.weights else None
        config = _config(folder) if folder else {}
        recipe = weights.agreed(self, config, SIZES, folder) if folder else self
        height, width = check_images(f"a ViT of patches of {recipe.patch} pixels", inputs, recipe.patch)
        encoder = VitEncoder(recipe, height, width, config.get("layer_norm_eps", 1e-12))
        if folder:
            _load(encoder, folder, height // recipe.patch, width // recipe.patch)
        return encoder

    def wants(self) -> Wants:
        """Images of 14x14 patches, or of the weights' own side."""
        side = _config(weights.locate(self.weights, "weights"))["image_size"] if self.weights else None
        return Wants(side=side or 14 * self.patch)

    def source(self) -> str:
        """A hash of the weights that it starts from."""
        if not self.weights:
            return ""
        return weights.digest(weights.locate(self.weights, "weights"), weights.PROCESSOR)


def _config(folder: Path) -> dict[str, Any]:
    """The published configuration, with the width of a head and the side of images."""
    config = {"image_size": 224, **weights.read_config(folder, "vit")}
    width, heads = (config.get(key, default) for key, default in (SIZES["width"], SIZES["heads"]))
    return {**config, "head_width": width // heads if isinstance(width, int) and isinstance(heads, int) else None}


def _load(encoder: VitEncoder, folder: Path, high: int, wide: int) -> None:
    """Load published weights into an encoder, with positions interpolated to its own grid of patches."""
    state = weights.encoder_state(weights.read_state(folder), NAMES)
    state = {name: weight for name, weight in state.items() if not name.startswith("pooler.")}
    (table,) = NAMES.theirs("patches.position")
    if table in state and state[table].ndim == 3:
        state[table] = _stretched(state[table], high, wide)
    weights.load(encoder, state, NAMES, folder)
    path = folder / weights.PROCESSOR
    found = weights.read_json(path) if path.is_file() else {}
    encoder.patches.normalise = Normalise(*(found.get(key, [0.5] * 3) for key in ("image_mean", "image_std")))


def _stretched(positions: Tensor, high: int, wide: int) -> Tensor:
    """Positions (1, 1 + cells, width) on another grid, interpolated as in `transformers`."""
    side = round((positions.shape[1] - 1) ** 0.5)
    if (side, side) == (high, wide) or side * side != positions.shape[1] - 1:
        return positions
    cells = positions[:, 1:].reshape(1, side, side, -1).permute(0, 3, 1, 2)
    cells = functional.interpolate(cells, (high, wide), mode="bicubic", align_corners=False)
    return torch.cat([positions[:, :1], cells.permute(0, 2, 3, 1).flatten(1, 2)], 1)


@dataclass(frozen=True)
class TinyVit(Vit):
    """ViT, 3 layers of 64 with 4 heads over patches of 8x8, for a CPU."""

    patch: Annotated[int, Between(1)] = 8
    width: Annotated[int, Between(1)] = 64
    depth: Annotated[int, Between(1)] = 3
    heads: Annotated[int, Between(1)] = 4
    head_width: Annotated[int, Between(1)] = 16
    hidden: Annotated[int, Between(1)] = 128
    dropout: Annotated[float, Between(0, 1)] = 0.0

    def wants(self) -> Wants:
        """Images of 4x4 patches, or of the weights' own side."""
        return super().wants() if self.weights else Wants(side=4 * self.patch)
