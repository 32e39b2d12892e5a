"""The base of every language model: an encoder that also predicts the continuation of a text.

Prompts are padded on the left and answers on the right, so that in a batch all prompts end in one column and all
answers begin in the next. The logits of a batch's answers are then one slice, and cached keys and values have no gaps.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Protocol

import torch
from torch import Tensor, nn

from holdfast.models.base import Encoder
from holdfast.models.decoding import left_padded
from holdfast.models.heads import GenerateHead
from holdfast.types import Head


class Cache(Protocol):
    """The keys and values of all positions so far."""

    before: int
    """How many of them precede the prompt's tokens: those of images."""

    def select(self, rows: Tensor) -> None:
        """Keep these rows, in this order; a row may be kept several times."""


class Decoder(Encoder):
    """A causal language model. Its vector of an example is the state of the last token of the text."""

    masks_text = True
    end: int
    """The token that ends an answer."""

    @abstractmethod
    def cache(self, rows: int, length: int) -> Cache:
        """An empty cache for up to `length` tokens."""

    @abstractmethod
    def states(self, tokens: Tensor, present: Tensor, inputs: Mapping[str, Tensor]) -> Tensor:
        """The last states of the tokens of prompts: (rows, tokens, width)."""

    @abstractmethod
    def continued(
        self, tokens: Tensor, present: Tensor, keep: int, cache: Cache | None, inputs: Mapping[str, Tensor] | None
    ) -> Tensor:
        """The logits after each of the last `keep` of some tokens (rows, tokens): (rows, keep, vocabulary).

        `present` (rows, all tokens so far) says which are not padding. `inputs` holds a prompt's other inputs, such as
        images; None after the prompt.
        """

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """The state of each text's last token: (rows, width)."""
        tokens, present = left_padded(inputs["text"], inputs["text_length"], self.end)
        return self.states(tokens, present, inputs)[:, -1]

    def forced(self, inputs: Mapping[str, Tensor], answer: Tensor) -> Tensor:
        """The logits of the tokens of an answer (rows, length, vocabulary), each given those before it."""
        tokens, present = left_padded(inputs["text"], inputs["text_length"], self.end)
        before = answer[:, :-1].long()
        tokens, present = (
            torch.cat([tokens, before.where(before >= 0, self.end)], 1),
            torch.cat([present, before >= 0], 1),
        )
        return self.continued(tokens, present, answer.shape[1], None, inputs)

    def opened(self, inputs: Mapping[str, Tensor], room: int) -> tuple[Tensor, Past]:
        """The logits of the first token of an answer (rows, vocabulary), and the state from which to continue."""
        tokens, present = left_padded(inputs["text"], inputs["text_length"], self.end)
        cache = self.cache(len(tokens), tokens.shape[1] + room)
        return self.continued(tokens, present, 1, cache, inputs)[:, -1], Past(self, present, cache)

    def head(self, asked: Head) -> nn.Module:
        """A new head; one that generates is the model's own output layer."""
        return GenerateHead() if asked.kind == "generate" else super().head(asked)


class Past:
    """The tokens that a language model has read and written so far, as cached keys and values."""

    def __init__(self, model: Decoder, present: Tensor, cache: Cache) -> None:
        self.model, self.present, self.cache = model, present, cache

    def following(self, tokens: Tensor) -> Tensor:
        """The logits after each of some more tokens: (rows, tokens, vocabulary)."""
        self.present = torch.cat([self.present, torch.ones_like(tokens, dtype=torch.bool)], 1)
        return self.model.continued(tokens, self.present, tokens.shape[1], self.cache, None)

    def select(self, rows: Tensor) -> None:
        """Keep these rows, in this order; a row may be kept several times."""
        self.present = self.present[rows]
        self.cache.select(rows)
