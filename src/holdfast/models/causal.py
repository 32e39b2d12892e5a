"""Causal language models over vectors: ours, made of transformer blocks, and those of Hugging Face."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from holdfast.models import library
from holdfast.models.decoder import Cache
from holdfast.models.transformer import KeyValues, TransformerBlock, initialise


class Causal(nn.Module, ABC):
    """A stack of layers from vectors to the logits of the tokens that follow."""

    width: int
    vocabulary: int
    context: int | None
    """The maximum number of positions of a sequence; None if unlimited."""

    @abstractmethod
    def embedding(self) -> nn.Embedding:
        """The table of tokens."""

    @abstractmethod
    def layers(self) -> Sequence[nn.Module]:
        """The layers from the bottom up."""

    @abstractmethod
    def stem(self) -> Sequence[nn.Module]:
        """The modules before the first layer."""

    @abstractmethod
    def cache(self, rows: int, length: int) -> Cache:
        """An empty cache for up to `length` positions."""

    @abstractmethod
    def states(self, x: Tensor, present: Tensor, cache: Cache | None = None) -> Tensor:
        """The last states (rows, positions, width) of vectors; `present` (rows, all positions so far) marks padding."""

    @abstractmethod
    def read(self, x: Tensor, present: Tensor, keep: int, cache: Cache | None = None) -> Tensor:
        """The logits after each of the last `keep` positions: (rows, keep, vocabulary)."""


def positions(present: Tensor, last: int) -> Tensor:
    """The position numbers of the last places, not counting padding.

    >>> positions(torch.tensor([[False, True, True]]), 3).tolist()
    [[0, 0, 1]]
    """
    return (present.long().cumsum(1) - 1).clamp(min=0)[:, present.shape[1] - last :]


class BlockCache:
    """The keys and values of each of our blocks."""

    def __init__(self, blocks: int, length: int) -> None:
        self.blocks, self.before = [KeyValues(length) for _ in range(blocks)], 0

    def select(self, rows: Tensor) -> None:
        """Keep these rows, in this order."""
        for each in self.blocks:
            each.select(rows)


class CausalBlocks(Causal):
    """Our transformer blocks, pre-norm, with learned positions; the output layer shares the table of tokens."""

    def __init__(
        self,
        vocabulary: int,
        context: int,
        width: int,
        depth: int,
        heads: int,
        hidden: int,
        dropout: float = 0.0,
        checkpointing: bool = False,
    ) -> None:
        super().__init__()
        self.width, self.vocabulary, self.context, self.checkpointing = width, vocabulary, context, checkpointing
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.dropout = nn.Dropout(dropout)
        self.stack = nn.ModuleList(
            TransformerBlock(
                width, heads, hidden, dropout=dropout, attention_dropout=dropout, feed_dropout=dropout, epsilon=1e-5
            )
            for _ in range(depth)
        )
        self.norm = nn.LayerNorm(width)
        initialise(self, width)

    def embedding(self) -> nn.Embedding:
        """The table of tokens."""
        return self.tokens

    def layers(self) -> Sequence[nn.Module]:
        """The blocks."""
        return list(self.stack)

    def stem(self) -> Sequence[nn.Module]:
        """The tables of tokens and of positions."""
        return [self.tokens, self.places]

    def cache(self, rows: int, length: int) -> Cache:
        """A cache with keys and values for each block."""
        return BlockCache(len(self.stack), length)

    def states(self, x: Tensor, present: Tensor, cache: Cache | None = None) -> Tensor:
        """The normalised states of the last block."""
        new, total = x.shape[1], present.shape[1]
        x = self.dropout(x + self.places(positions(present, new)))
        place = torch.arange(total, device=x.device)
        own = place[total - new :, None]
        # A position that is padding sees itself, so that no attention is empty.
        mask = ((place <= own) & present[:, None, None, :]) | (place == own)
        for number, block in enumerate(self.stack):
            past = cache.blocks[number] if isinstance(cache, BlockCache) else None
            if self.checkpointing and self.training and torch.is_grad_enabled():
                x = checkpoint(block, x, mask, use_reentrant=False)
            else:
                x = block(x, mask, past=past)
        out: Tensor = self.norm(x)
        return out

    def read(self, x: Tensor, present: Tensor, keep: int, cache: Cache | None = None) -> Tensor:
        """The products of the last states with the table of tokens."""
        return functional.linear(self.states(x, present, cache)[:, -keep:], self.tokens.weight)


class LibraryCache:
    """A cache of `transformers`."""

    def __init__(self, held: Any) -> None:
        self.held, self.before = held, 0

    def select(self, rows: Tensor) -> None:
        """Keep these rows, in this order."""
        self.held.reorder_cache(rows)


def library_cache(model: Any) -> LibraryCache:
    """An empty cache for a model of `transformers`."""
    return LibraryCache(library.found().DynamicCache(config=model.config))


def taken(model: Any) -> frozenset[str]:
    """The names of the arguments of a model of `transformers`."""
    return frozenset(inspect.signature(model.forward).parameters)


def given(takes: frozenset[str], present: Tensor, new: int, keep: int | None, cache: Cache | None) -> dict[str, Any]:
    """The arguments of a model of `transformers` other than its tokens or vectors."""
    own: dict[str, Any] = {"attention_mask": present.long(), "use_cache": cache is not None, "return_dict": True}
    if isinstance(cache, LibraryCache):
        own["past_key_values"] = cache.held
    if "position_ids" in takes:
        own["position_ids"] = positions(present, new)
    if keep is not None and "logits_to_keep" in takes:
        own["logits_to_keep"] = keep
    return own


class LibraryCausal(Causal):
    """A causal language model of `transformers`."""

    def __init__(self, model: Any, layers: Sequence[nn.Module], checkpointing: bool = False) -> None:
        super().__init__()
        self.model, self.takes = model, taken(model)
        self.vocabulary, self.context = model.get_output_embeddings().weight.shape[0], context_of(model.config)
        self.width = model.get_input_embeddings().weight.shape[1]
        vars(self)["_layers"] = tuple(layers)  # already registered in the model
        if checkpointing:
            model.gradient_checkpointing_enable({"use_reentrant": False})

    def embedding(self) -> nn.Embedding:
        """The model's own table."""
        found: nn.Embedding = self.model.get_input_embeddings()
        return found

    def layers(self) -> Sequence[nn.Module]:
        """Its repeated blocks."""
        return list(vars(self)["_layers"])

    def stem(self) -> Sequence[nn.Module]:
        """The table of tokens."""
        return [self.embedding()]

    def cache(self, rows: int, length: int) -> Cache:
        """The library's own cache, which grows."""
        return library_cache(self.model)

    def states(self, x: Tensor, present: Tensor, cache: Cache | None = None) -> Tensor:
        """The last states of the model below its output layer."""
        base = self.model.base_model
        found: Tensor = base(inputs_embeds=x, **given(taken(base), present, x.shape[1], None, cache))[
            "last_hidden_state"
        ]
        return found

    def read(self, x: Tensor, present: Tensor, keep: int, cache: Cache | None = None) -> Tensor:
        """The logits of the model itself."""
        logits: Tensor = self.model(inputs_embeds=x, **given(self.takes, present, x.shape[1], keep, cache))["logits"]
        return logits[:, -keep:]


def context_of(config: Any) -> int | None:
    """The maximum number of positions of a model of `transformers`."""
    own = getattr(config, "text_config", None) or config
    found = getattr(own, "max_position_embeddings", None)
    return found if isinstance(found, int) else None
