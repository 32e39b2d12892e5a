"""What every model is: an encoder with its layers in order, and one head for each name that a task reads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from holdfast.errors import UserError
from holdfast.models.adapters import Attachable
from holdfast.models.frozen_part import Lent
from holdfast.models.heads import ChooseHead, ClassifyHead, CompareHead, Linear, PhraseHead
from holdfast.models.prefixes import Prefix
from holdfast.types import Head, Inputs, Wants

Choice: TypeAlias = Tensor | Sequence[Tensor | None] | None
"""The choice of `Prefix` for the blocks of a network: one for all of them, or one for each; None is all of a pool."""


class Encoder(nn.Module, ABC):
    """Inputs, columns by name (see `Inputs`), to one vector of `width` numbers an example.

    Where an example has several images or several choices of text, `forward` gives a vector for each:
    (rows, images or choices, width).
    """

    width: int
    compiles: ClassVar[bool] = True
    """Whether it pays to compile it: not where it is another network in each fit."""
    recordable: ClassVar[bool] = False
    """Whether the forward pass, on a GPU, may be recorded and made again without Python: it asks for nothing there that
    changes between two steps of a fit, such as a random number that is no tensor, and waits for nothing. Hooks
    before it are not called then. Each class says so for itself."""

    masks_text: ClassVar[bool] = False
    """Whether it ignores the padding of texts, so that a batch's texts may end where the longest of them ends. Each
    class says so for itself."""

    @abstractmethod
    def stem(self) -> Sequence[nn.Module]:
        """What comes before the first layer: embeddings."""

    @abstractmethod
    def layers(self) -> Sequence[nn.Module]:
        """The layers from the bottom up."""

    def towers(self) -> Sequence[nn.Module]:
        """Networks within it that see an example side by side, such as one for images and one for texts."""
        return ()

    def blocks(self) -> Sequence[Attachable]:
        """The places for adapters, from the bottom up: transformer blocks of ours, or what stands for a foreign one."""
        return [module for module in self.modules() if isinstance(module, Attachable)]

    def mixes_rows(self) -> bool:
        """Whether what it gives for a row in training depends on the other rows: batch normalisation."""
        return any(isinstance(module, _BatchNorm) for module in self.modules())

    def alone(self) -> str:
        """Why several ranks cannot train it together; empty: they can."""
        return ""

    def structure(self) -> Any | None:
        """What a copy needs to become the same network, where it changes from stage to stage; None: it never does.

        Numbers, strings, lists and dictionaries, as a checkpoint holds them; `rebuild` takes it.
        """
        return None

    def rebuild(self, structure: Any) -> None:
        """Become the network that `structure` described; the weights come with the model's."""
        raise AssertionError("called only with a structure, and this encoder has none")

    def grid(self, images: Tensor) -> Tensor:
        """The feature map of images, (rows, 3, height, width) of bytes: (rows, channels, cells down, cells across)."""
        raise UserError(f"{type(self).__name__} gives no feature map of an image: choose another model")

    def words(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """One vector for each word piece, (rows, length, width): for masked phrases."""
        raise UserError(f"{type(self).__name__} gives no vector for each word, which a masked phrase needs")

    def word_embedding(self) -> nn.Embedding:
        """The table of word pieces, whose weights a masked-phrase head shares."""
        raise UserError(f"{type(self).__name__} has no word pieces, which a masked phrase needs")

    def head(self, asked: Head) -> nn.Module:
        """A new head on this encoder."""
        if asked.kind == "compare":
            raise UserError(
                f"{type(self).__name__} compares no images with texts: choose a dual encoder, such as dual-tiny"
            )
        if asked.kind == "choose":
            return ChooseHead(self.width)
        if asked.kind == "phrase":
            return PhraseHead(self.word_embedding())
        return ClassifyHead(self.classifier(self.width * asked.images, asked))

    def classifier(self, width: int, asked: Head) -> nn.Module:
        """The kind of classifier that the papers put on this encoder: here a linear one."""
        return Linear(width, asked.outputs, asked.growing)


class Network(nn.Module):
    """An encoder and its heads. `model(inputs, head)` gives the outputs of one head."""

    def __init__(self, encoder: Encoder, heads: Mapping[str, nn.Module]) -> None:
        super().__init__()
        self.encoder = encoder
        self.heads = nn.ModuleDict(dict(heads))
        self.active: str | None = None
        """Which set of added modules is on; None: the one that is named as the head is."""
        self.choose: Callable[[Mapping[str, Tensor], str], Choice] | None = None
        """Which prefixes of a pool each example has, by its inputs and the head's name: before each pass."""
        self._blocks: list[Attachable] = []

    def forward(self, inputs: Mapping[str, Tensor], head: str) -> Tensor:
        """The outputs of one head; what was added to the encoder for that head (adapters) is switched on."""
        self.switch(head)
        return self.plain(inputs, head)

    def plain(self, inputs: Mapping[str, Tensor], head: str) -> Tensor:
        """The outputs of one head, with whatever is switched on."""
        part = inputs.part.within(self.encoder) if isinstance(inputs, Lent) else None
        if part is not None and isinstance(inputs, Lent):
            with part.given(inputs.columns):
                known: Tensor = self.heads[head](self.encoder, inputs)
                return known
        if self.choose is None:
            output: Tensor = self.heads[head](self.encoder, inputs)
            return output
        with self._chosen(self.choose(inputs, head)):
            output = self.heads[head](self.encoder, inputs)
            return output

    def features(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """What the encoder gives, with whatever is switched on, without a head."""
        part = inputs.part.within(self.encoder) if isinstance(inputs, Lent) else None
        if part is not None and isinstance(inputs, Lent):
            with part.given(inputs.columns):
                known: Tensor = self.encoder(inputs)
                return known
        output: Tensor = self.encoder(inputs)
        return output

    def bare(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """What the encoder gives without anything that was added to it: what `choose` may ask."""
        active = [block.active for block in self._blocks]
        for block in self._blocks:
            block.active = ""
        try:
            output: Tensor = self.encoder(inputs)
            return output
        finally:
            for block, name in zip(self._blocks, active, strict=True):
                block.active = name

    @contextmanager
    def _chosen(self, choice: Choice) -> Iterator[None]:
        """Give a choice to the prefixes that are switched on, for one pass."""
        each = [choice] * len(self._blocks) if choice is None or isinstance(choice, Tensor) else choice
        assert len(each) == len(self._blocks), "one for all blocks, or one for each"
        given = [
            (module, own)
            for block, own in zip(self._blocks, each, strict=True)
            if block.active in block.added
            for module in block.added[block.active].modules()
            if isinstance(module, Prefix)
        ]
        for module, own in given:
            module.choice = own
        try:
            yield
        finally:
            for module, _ in given:
                module.choice = None

    def together(self, parts: Sequence[Mapping[str, Tensor]]) -> Callable[[Mapping[str, Tensor], str], Tensor] | None:
        """The model for these inputs alone, with one pass of the encoder over all of them, whatever their heads.

        So batch normalisation sees the whole batch, and many heads cost no more than one. None where rows do not matter
        to each other, where each head has an encoder of its own, or where the inputs cannot stand in one column.
        """
        comparing = any(isinstance(head, CompareHead) for head in self.heads.values())
        if not self.encoder.mixes_rows() or self._blocks or comparing:
            return None
        if any(isinstance(part, Lent) and part.part.whole for part in parts):
            return None
        columns = [{name: (column.shape[1:], column.dtype) for name, column in part.items()} for part in parts]
        if any(other != columns[0] for other in columns):
            return None
        sizes = [len(next(iter(part.values()))) for part in parts]
        features = self.encoder({name: torch.cat([part[name] for part in parts]) for name in parts[0]}).split(sizes)
        given = {id(part): Given(found) for part, found in zip(parts, features, strict=True)}

        def model(inputs: Mapping[str, Tensor], head: str) -> Tensor:
            output: Tensor = self.heads[head](given.get(id(inputs), self.encoder), inputs)
            return output

        return model

    @property
    def extended(self) -> bool:
        """Whether anything is added to the encoder."""
        return bool(self._blocks)

    def switch(self, name: str) -> None:
        """Switch one set of added modules on, unless another is set to be active."""
        for block in self._blocks:
            block.active = self.active or name

    def add(self, name: str, added: Sequence[nn.ModuleDict]) -> None:
        """Add a set of modules, one for each block, that is switched on for the head of this name."""
        blocks = self.encoder.blocks()
        assert len(added) == len(blocks), "one for each block"
        for block, module in zip(blocks, added, strict=True):
            block.add(name, module)
        self._blocks = list(blocks)

    def remove(self, name: str) -> None:
        """Take the set of this name away: what is left computes what it computed before, to the last bit."""
        for block in self._blocks:
            block.remove(name)
        self._blocks = [block for block in self._blocks if len(block.added)]

    def open_classes(self, classes: Sequence[int] | None) -> None:
        """Tell growing heads which classes a stage brings; None is all."""
        for module in self.heads.modules():
            if isinstance(module, Linear | CompareHead):
                module.open_classes(classes)


class Given:
    """Stands for an encoder whose answer is known."""

    active = ""

    def __init__(self, features: Tensor) -> None:
        self.features = features

    def __call__(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """The answer, whatever is asked."""
        return self.features


class Model(ABC):
    """A model's sizes, as settings; `build` makes the model for given inputs and heads."""

    places: ClassVar[frozenset[str]] = frozenset()
    """Settings that say where weights lie, not what they are: in a run's id, `source` stands for them."""

    @abstractmethod
    def encoder(self, inputs: Inputs) -> Encoder:
        """A freshly initialised encoder, or one with the weights that the recipe names."""

    def build(self, inputs: Inputs, heads: Mapping[str, Head]) -> Network:
        """The whole model."""
        encoder = self.encoder(inputs)
        return Network(encoder, {name: encoder.head(asked) for name, asked in heads.items()})

    def bare(self) -> nn.Module | None:
        """The encoder without a look at data, for its size alone; None: `build` makes it without such a look."""
        return None

    def wants(self) -> Wants:
        """What the model would like to be given."""
        return Wants()

    def front(self) -> nn.Module | None:
        """A frozen network that sees every picture once, before training, and gives its feature map; None: no such."""
        return None

    def source(self) -> str:
        """A hash of the weights that it starts from; empty where it starts from none."""
        return ""
