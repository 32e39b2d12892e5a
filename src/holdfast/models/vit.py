"""The vision transformer (Dosovitskiy et al. 2021), at the size that CFST trains from scratch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor, nn

from holdfast.models.base import Encoder, Model
from holdfast.models.resnet import Normalise, check_images
from holdfast.models.transformer import TransformerBlock
from holdfast.types import Between, Inputs, Wants


class Patches(nn.Module):
    """Images to the vectors of their patches, after a vector that stands for the whole image."""

    def __init__(self, height: int, width: int, patch: int, size: int, dropout: float) -> None:
        super().__init__()
        self.normalise = Normalise()
        self.projection = nn.Conv2d(3, size, patch, patch)
        # As large as what they are added to: from scratch, positions of BERT's 0.02 are found some hundred steps later.
        self.whole = nn.Parameter(torch.randn(1, 1, size))
        self.position = nn.Parameter(torch.randn(1, 1 + (height // patch) * (width // patch), size))
        self.dropout = nn.Dropout(dropout)

    def forward(self, images: Tensor) -> Tensor:
        """Images (rows, 3, height, width) to (rows, 1 + patches, size); a rest that fills no patch is left out."""
        cells = self.projection(self.normalise(images)).flatten(2).transpose(1, 2)
        whole = (self.whole + self.position[:, :1]).expand(len(cells), -1, -1)
        out: Tensor = self.dropout(torch.cat([whole, cells + self.position[:, 1:]], dim=1))
        return out


def block(recipe: Vit) -> TransformerBlock:
    """One layer of the recipe's sizes."""
    return TransformerBlock(
        recipe.width,
        recipe.heads,
        recipe.hidden,
        dropout=recipe.dropout,
        attention_dropout=recipe.dropout,
        feed_dropout=recipe.dropout,
        inner=recipe.heads * recipe.head_width,
    )


class VitEncoder(Encoder):
    """Patches through pre-norm blocks; the image's vector is that of the class token, normalised."""

    recordable = True

    def __init__(self, recipe: Vit, height: int, width: int) -> None:
        super().__init__()
        self.width = recipe.width
        self.patches = Patches(height, width, recipe.patch, recipe.width, recipe.dropout)
        self.block = nn.ModuleList(block(recipe) for _ in range(recipe.depth))
        self.norm = nn.LayerNorm(recipe.width, eps=1e-12)

    def stem(self) -> Sequence[nn.Module]:
        """The embedding of patches."""
        return [self.patches]

    def layers(self) -> Sequence[nn.Module]:
        """The blocks."""
        return list(self.block)

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """A vector for each image: (rows, width), or (rows, images, width)."""
        images = inputs["image"]
        x = self.patches(images.flatten(0, -4))
        for block in self.block:
            x = block(x)
        out: Tensor = self.norm(x[:, 0]).view(*images.shape[:-3], self.width)
        return out


@dataclass(frozen=True)
class Vit(Model):
    """ViT, 9 layers of 384 with 16 heads of 64, over patches of 16x16."""

    version: ClassVar[int] = 1

    patch: Annotated[int, Between(1)] = 16
    width: Annotated[int, Between(1)] = 384
    depth: Annotated[int, Between(1)] = 9
    heads: Annotated[int, Between(1)] = 16
    head_width: Annotated[int, Between(1)] = 64
    """Heads need not share the width among them: CFST's are 1024 together."""
    hidden: Annotated[int, Between(1)] = 1536
    dropout: Annotated[float, Between(0, 1)] = 0.1

    def encoder(self, inputs: Inputs) -> Encoder:
        """A transformer for images of this size.

        >>> TinyVit().encoder(Inputs((3, 32, 48))).patches.position.shape
        torch.Size([1, 25, 64])
        """
        height, width = check_images(f"a ViT of patches of {self.patch} pixels", inputs, self.patch)
        return VitEncoder(self, height, width)

    def wants(self) -> Wants:
        """Images of 14x14 patches."""
        return Wants(side=14 * self.patch)


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
        """Images of 4x4 patches."""
        return Wants(side=4 * self.patch)
