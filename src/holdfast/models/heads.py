"""Heads: from an encoder's output to a task's outputs. A head calls the encoder itself, for examples or for words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from holdfast.models import decoding

if TYPE_CHECKING:
    from holdfast.models.base import Encoder
    from holdfast.models.decoder import Decoder
    from holdfast.models.dual import DualEncoder

CLOSED = -1e4
"""The logit of a class that has not appeared yet: its probability is 0 and, unlike -inf, 0 times it is 0."""


class Linear(nn.Linear):
    """A linear layer over classes; a growing one assigns no probability to classes that have not appeared yet.

    >>> layer = Linear(2, 3, growing=True)
    >>> layer.open_classes([0, 2])
    >>> layer(torch.zeros(1, 2)).softmax(-1)[0, 1].item()
    0.0
    """

    def __init__(self, width: int, outputs: int, growing: bool = False) -> None:
        super().__init__(width, outputs)
        self.register_buffer("closed", torch.ones(outputs, dtype=torch.bool) if growing else None)
        self.closed: Tensor | None

    def open_classes(self, classes: Sequence[int] | None) -> None:
        """Open the classes of a stage."""
        if self.closed is not None:
            self.closed[slice(None) if classes is None else torch.as_tensor(classes)] = False

    def forward(self, x: Tensor) -> Tensor:
        """The logits."""
        logits = super().forward(x)
        return logits if self.closed is None else logits.masked_fill(self.closed, CLOSED)


class HiddenLayerClassifier(nn.Sequential):
    """CLiMB's classifier: a hidden layer of twice the encoder's width, layer norm and GELU."""

    def __init__(self, width: int, outputs: int, hidden: int, growing: bool = False) -> None:
        super().__init__(
            nn.Linear(width, hidden), nn.LayerNorm(hidden), nn.GELU(), Linear(hidden, outputs, growing=growing)
        )


class ClassifyHead(nn.Module):
    """A classifier over the example's vector, or its images' vectors side by side."""

    version: ClassVar[int] = 1

    def __init__(self, classifier: nn.Module) -> None:
        super().__init__()
        self.classifier = classifier

    def forward(self, encoder: Encoder, inputs: Mapping[str, Tensor]) -> Tensor:
        """Logits (rows, outputs)."""
        logits: Tensor = self.classifier(encoder(inputs).flatten(1))
        return logits


class ChooseHead(nn.Module):
    """Scores each choice of text with one number."""

    version: ClassVar[int] = 1

    def __init__(self, width: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.score = nn.Linear(width, 1)

    def forward(self, encoder: Encoder, inputs: Mapping[str, Tensor]) -> Tensor:
        """Logits (rows, choices)."""
        logits: Tensor = self.score(self.dropout(encoder(inputs))).squeeze(-1)
        return logits


class PhraseHead(nn.Module):
    """Predicts masked words through BERT's transform and the vocabulary; the last layer shares the word embedding.

    Only the masked positions, a few of each text, are computed.
    """

    version: ClassVar[int] = 1

    def __init__(self, embedding: nn.Embedding) -> None:
        super().__init__()
        outputs, width = embedding.weight.shape
        self.transform = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, encoder: Encoder, inputs: Mapping[str, Tensor]) -> Tensor:
        """Logits (rows, masked positions, vocabulary); those of a position -1 are meaningless."""
        states = encoder.words(inputs)
        places = inputs["masked"].clamp(min=0).long()
        chosen = states.gather(1, places.unsqueeze(-1).expand(-1, -1, states.shape[-1]))
        hidden = self.norm(functional.gelu(self.transform(chosen)))
        return functional.linear(hidden, encoder.word_embedding().weight, self.bias)


class CompareHead(nn.Module):
    """Images compared with texts by a dual encoder: with the prompts of classes, or each with its own texts.

    `prompts` (classes, templates, length) are the classes' word pieces, and `prompts_length` their lengths. Without
    them, an example's image and texts are given as vectors whose products are the comparisons.
    """

    version: ClassVar[int] = 1

    def __init__(self, outputs: int, growing: bool = False) -> None:
        super().__init__()
        self.register_buffer("closed", torch.ones(outputs, dtype=torch.bool) if growing else None)
        self.closed: Tensor | None

    def open_classes(self, classes: Sequence[int] | None) -> None:
        """Open the classes of a stage."""
        if self.closed is not None:
            self.closed[slice(None) if classes is None else torch.as_tensor(classes)] = False

    def forward(self, encoder: DualEncoder, inputs: Mapping[str, Tensor]) -> Tensor:
        """Logits (rows, classes), or vectors (rows, 1 + texts, shared + 1): the image's, then those of its texts."""
        images = encoder.images(inputs)
        factor, prompts = encoder.scale.exp(), inputs["prompts"]
        if len(prompts):
            classes = encoder.classes(prompts, inputs["prompts_length"])
            logits = factor * images @ classes.T + encoder.bias
            return logits if self.closed is None else logits.masked_fill(self.closed, CLOSED)
        texts = encoder.texts(inputs)
        texts = texts if texts.ndim == 3 else texts.unsqueeze(1)
        images = torch.cat([factor * images, encoder.bias.expand(len(images), 1)], 1).unsqueeze(1)
        return torch.cat([images, torch.cat([texts, texts.new_ones(*texts.shape[:2], 1)], 2)], 1)


class GenerateHead(nn.Module):
    """The model's own output layer: it has no weights, so that all tasks share one output.

    With the column `answer`, it gives the logits of an answer's tokens (rows, length, vocabulary). Without, it gives
    the tokens of an answer (rows, `longest`), padded with -1, and NaN in rows whose logits are not finite: of the
    likeliest of the `choices`, or written one after another, with `beams` beams. Each row of the column `write` has
    these two numbers.
    """

    version: ClassVar[int] = 1

    def forward(self, encoder: Decoder, inputs: Mapping[str, Tensor]) -> Tensor:
        """Logits of an answer, or the tokens of one."""
        if "answer" in inputs:
            return encoder.forced(inputs, inputs["answer"])
        longest, beams = inputs["write"][0].tolist()
        if "choices" in inputs:
            return decoding.likeliest(encoder, inputs, longest)
        return decoding.written(encoder, inputs, longest, beams)
