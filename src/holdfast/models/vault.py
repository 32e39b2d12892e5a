"""VAuLT: a ViLT whose words come from a frozen BERT.

Paper: Chochlakis et al. 2022; in CLiMB (Srinivasan et al. 2022), supplement B.3. BERT's last hidden states take the
place of ViLT's word embeddings; ViLT adds its own positions, segment and norm to them, as it does to words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor, nn

from holdfast.errors import UserError
from holdfast.models import weights
from holdfast.models.adapters import Attachable
from holdfast.models.base import Encoder
from holdfast.models.bert import Bert, BertEncoder, TinyBert
from holdfast.models.transformer import TransformerBlock
from holdfast.models.vilt import Vilt, ViltEncoder
from holdfast.types import Between, Head, Inputs, Wants


class VaultEncoder(Encoder):
    """A frozen BERT, and a ViLT without a table of words.

    BERT has no gradients and no dropout. If its width differs from ViLT's (MiniLM has 384), a linear map without a
    bias between them is trained; if the widths agree there is none, as in the paper: a map that starts at
    random would undo what both have learned.
    """

    recordable = True
    masks_text = True

    def __init__(self, bert: BertEncoder, vilt: ViltEncoder) -> None:
        super().__init__()
        self.bert, self.vilt, self.width = bert, vilt, vilt.width
        self.map = nn.Linear(bert.width, vilt.width, bias=False) if bert.width != vilt.width else None
        if self.map is not None:
            nn.init.normal_(self.map.weight, std=bert.width**-0.5)  # preserves the size of BERT's vectors
        self.bert.requires_grad_(False).eval()

    def train(self, mode: bool = True) -> VaultEncoder:
        """Set training mode for everything but BERT."""
        super().train(mode)
        self.bert.eval()
        return self

    def stem(self) -> Sequence[nn.Module]:
        """BERT, the map, and ViLT's embeddings."""
        return [self.bert, *([] if self.map is None else [self.map]), *self.vilt.stem()]

    def layers(self) -> Sequence[TransformerBlock]:
        """ViLT's blocks."""
        return self.vilt.layers()

    def blocks(self) -> Sequence[Attachable]:
        """ViLT's blocks; the frozen ones take no additions."""
        return self.vilt.blocks()

    def classifier(self, width: int, asked: Head) -> nn.Module:
        """ViLT's."""
        return self.vilt.classifier(width, asked)

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """(rows, width), or (rows, images or choices, width)."""
        with torch.no_grad():
            text = self.bert.words(inputs)
        return self.vilt.pooled(inputs, text if self.map is None else self.map(text))


@dataclass(frozen=True)
class Vault(Vilt):
    """VAuLT at the paper's size."""

    version: ClassVar[int] = 1
    places: ClassVar[frozenset[str]] = frozenset({"weights", "bert"})

    bert: str = "bert-base-uncased"
    """A folder with a BERT in the published format, or its name on the hub; empty: random weights, for tests only."""

    def encoder(self, inputs: Inputs) -> Encoder:
        """A VAuLT for these images and texts."""
        if not inputs.text:
            raise UserError("VAuLT reads text with its images, but this benchmark has none: choose another model")
        vilt = self.image_side(inputs, reads_words=False)
        return VaultEncoder(self._bert(vilt).text_side(inputs, pooled=False), vilt)

    def _bert(self, vilt: ViltEncoder) -> Bert:
        if self.bert:
            return Bert(weights=str(weights.locate(self.bert, "bert")))
        return TinyBert(width=vilt.width, heads=vilt.recipe.heads, hidden=vilt.recipe.hidden, depth=vilt.recipe.depth)

    def wants(self) -> Wants:
        """Images of ViLT's side, and BERT's word pieces."""
        wants = super().wants()
        if not self.bert:
            return wants
        return Wants(side=wants.side, vocabulary=weights.vocabulary_file(weights.locate(self.bert, "bert")))

    def source(self) -> str:
        """The hashes of the weights of both."""
        return "-".join(part for part in (super().source(), weights.source(self.bert, "bert")) if part)


@dataclass(frozen=True)
class TinyVault(Vault):
    """VAuLT for two CPU cores: a small BERT trained on texts of the synthetic world, and the small ViLT."""

    width: Annotated[int, Between(1)] = 64
    depth: Annotated[int, Between(1)] = 3
    heads: Annotated[int, Between(1)] = 4
    hidden: Annotated[int, Between(1)] = 256
    patch: Annotated[int, Between(1)] = 16
    side: Annotated[int, Between(1)] = 64
    weights: str = "holdfast/vilt-tiny"
    bert: str = "holdfast/bert-tiny"
