"""The base of every model: an encoder with its layers in order, and a head for each name that a task reads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, ClassVar, Protocol, TypeAlias

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
"""A choice for the `Prefix`es of a network: one for all blocks, or one for each; None selects the whole pool."""


class Encoder(nn.Module, ABC):
    """Maps inputs, columns by name (see `Inputs`), to one vector of `width` numbers for each example.

    If an example has several images or several choices of text, `forward` returns a vector for each:
    (rows, images or choices, width).
    """

    width: int
    compiles: ClassVar[bool] = True
    """Whether compiling it pays off; it does not for an encoder that is a different network in each fit."""
    recordable: ClassVar[bool] = False
    """Whether the forward pass on a GPU may be recorded and replayed without Python: it depends on nothing that
    changes between two steps of a fit, such as a random number that is not a tensor, and waits for nothing. Hooks
    before it are not called then. A subclass does not inherit the declaration."""

    masks_text: ClassVar[bool] = False
    """Whether it ignores the padding of texts, so that a batch's texts may end where the longest of them ends. A
    subclass does not inherit the declaration."""

    @abstractmethod
    def stem(self) -> Sequence[nn.Module]:
        """The modules before the first layer: embeddings."""

    @abstractmethod
    def layers(self) -> Sequence[nn.Module]:
        """The layers from the bottom up."""

    def towers(self) -> Sequence[nn.Module]:
        """Parallel networks within it, such as one for images and one for texts, which get the inputs themselves."""
        return ()

    def blocks(self) -> Sequence[Attachable]:
        """The places for adapters, from the bottom up: our transformer blocks, or what represents an external one."""
        return [module for module in self.modules() if isinstance(module, Attachable)]

    def mixes_rows(self) -> bool:
        """Whether its output for a row in training depends on the other rows: batch normalisation."""
        return any(isinstance(module, _BatchNorm) for module in self.modules())

    def alone(self) -> str:
        """Why several ranks cannot train it together; empty if they can."""
        return ""

    def structure(self) -> Any | None:
        """The description from which a copy becomes the same network, if the network changes from stage to stage;
        otherwise None.

        Numbers, strings, lists and dictionaries, as a checkpoint holds them; `rebuild` takes it.
        """
        return None

    def rebuild(self, structure: Any) -> None:
        """Become the network that `structure` described; the weights come with the model's."""
        raise AssertionError("called only with a structure, and this encoder has none")

    def grid(self, images: Tensor) -> Tensor:
        """The feature map of images, (rows, 3, height, width) of bytes: (rows, channels, cells down, cells across)."""
        raise UserError(f"{type(self).__name__} has no feature map of an image: choose another model")

    def words(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """Vectors for the word pieces, (rows, length, width): for masked phrases."""
        raise UserError(
            f"{type(self).__name__} has no vectors for words, which masked phrases need: choose another model"
        )

    def word_embedding(self) -> nn.Embedding:
        """The table of word pieces, whose weights a masked-phrase head shares."""
        raise UserError(f"{type(self).__name__} has no word pieces, which masked phrases need: choose another model")

    def head(self, asked: Head) -> nn.Module:
        """A new head on this encoder."""
        if asked.kind == "compare":
            raise UserError(
                f"{type(self).__name__} compares no images with texts: choose a dual encoder, such as dual-tiny"
            )
        if asked.kind == "generate":
            raise UserError(
                f"{type(self).__name__} writes no text: choose a language model, such as prefix-lm-tiny, or hf:FOLDER "
                "with a generative one"
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
    """An encoder and its heads. `model(inputs, head)` returns the outputs of one head."""

    def __init__(self, encoder: Encoder, heads: Mapping[str, nn.Module]) -> None:
        super().__init__()
        self.encoder = encoder
        self.heads = nn.ModuleDict(dict(heads))
        self.active: str | None = None
        """The name of the active set of added modules; None for the one with the head's name."""
        self.choose: Callable[[Mapping[str, Tensor], str], Choice] | None = None
        """Chooses prefixes of a pool for each example from its inputs and the head's name, before each pass."""
        self._blocks: list[Attachable] = []
        self.counter: CountsCalls | None = None
        """The counter of the operations of its calls, shared by copies of the network."""

    def forward(self, inputs: Mapping[str, Tensor], head: str) -> Tensor:
        """The outputs of one head, with the additions for that head (adapters) switched on."""
        self.switch(head)
        return self.counted(("head", head), lambda: self.plain(inputs, head), inputs)

    def counted(
        self,
        what: tuple[str, ...],
        run: Callable[[], Tensor],
        inputs: Mapping[str, Tensor],
        plain: Callable[[], Tensor] | None = None,
    ) -> Tensor:
        """The result of a function that calls the network, counted as a call of a kind: see `CountsCalls`."""
        if self.counter is None:
            return run()
        return self.counter.call((id(self), what, self.active, self.training, shapes(inputs)), run, plain)

    def plain(self, inputs: Mapping[str, Tensor], head: str) -> Tensor:
        """The outputs of one head, with the additions that are switched on."""
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
        """The encoder's output, with whatever is switched on, without a head."""
        return self.counted(("features",), lambda: self._features(inputs), inputs)

    def _features(self, inputs: Mapping[str, Tensor]) -> Tensor:
        part = inputs.part.within(self.encoder) if isinstance(inputs, Lent) else None
        if part is not None and isinstance(inputs, Lent):
            with part.given(inputs.columns):
                known: Tensor = self.encoder(inputs)
                return known
        output: Tensor = self.encoder(inputs)
        return output

    def bare(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """The encoder's output without any additions: what `choose` may use."""
        active = [block.active for block in self._blocks]
        for block in self._blocks:
            block.active = ""
        try:
            output: Tensor = self.counted(("bare",), lambda: self.encoder(inputs), inputs)
            return output
        finally:
            for block, name in zip(self._blocks, active, strict=True):
                block.active = name

    @contextmanager
    def _chosen(self, choice: Choice) -> Iterator[None]:
        """Set the choice of the active prefixes for one pass."""
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
        """A model for these inputs alone that passes all of them through the encoder at once, whatever their heads.

        So batch normalisation sees the whole batch, and many heads cost no more than one. None if rows do not affect
        each other, if each head has its own encoder, or if the inputs do not fit into one column.
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
        whole = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
        features = self.counted(("encoder",), lambda: self.encoder(whole), whole)
        given = {id(part): Given(found) for part, found in zip(parts, torch.split(features, sizes), strict=True)}

        def model(inputs: Mapping[str, Tensor], head: str) -> Tensor:
            known = given.get(id(inputs), self.encoder)
            return self.counted(("given", head), lambda: self.heads[head](known, inputs), inputs)

        return model

    @property
    def extended(self) -> bool:
        """Whether anything is added to the encoder."""
        return bool(self._blocks)

    def switch(self, name: str) -> None:
        """Switch on one set of added modules, unless `active` names another."""
        for block in self._blocks:
            block.active = self.active or name

    def add(self, name: str, added: Sequence[nn.ModuleDict]) -> None:
        """Add a set of modules, one for each block, which is switched on for the head of this name."""
        blocks = self.encoder.blocks()
        assert len(added) == len(blocks), "one for each block"
        for block, module in zip(blocks, added, strict=True):
            block.add(name, module)
        self._blocks = list(blocks)

    def remove(self, name: str) -> None:
        """Remove the set of this name: the outputs are then the same as before, to the last bit."""
        for block in self._blocks:
            block.remove(name)
        self._blocks = [block for block in self._blocks if len(block.added)]

    def open_classes(self, classes: Sequence[int] | None) -> None:
        """Open the classes of a stage in growing heads; None for all classes."""
        for module in self.heads.modules():
            if isinstance(module, Linear | CompareHead):
                module.open_classes(classes)


class CountsCalls(Protocol):
    """Counts the operations of a network's calls."""

    def call(self, key: Hashable, run: Callable[[], Tensor], plain: Callable[[], Tensor] | None) -> Tensor:
        """The output of a call, which takes as many operations as any other with the same key.

        The operations of compiled code are those of the `plain` code.
        """

    def paused(self) -> AbstractContextManager[None]:
        """Count nothing within a block."""


def shapes(columns: Mapping[str, Tensor]) -> Hashable:
    """The properties of the inputs on which the operations of a call depend."""
    if isinstance(columns, Lent):  # the inputs themselves would be read only now
        return len(columns.part.sites), *(column.shape for column in columns.columns)
    return tuple([column.shape for column in columns.values()])


class Given:
    """Stands for an encoder whose output is known."""

    active = ""

    def __init__(self, features: Tensor) -> None:
        self.features = features

    def __call__(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """The known output, whatever the inputs."""
        return self.features


class Model(ABC):
    """A model's sizes as settings; `build` creates the network for given inputs and heads."""

    places: ClassVar[frozenset[str]] = frozenset()
    """Settings that state the location of weights, not their content: a run's id has `source` in their place."""

    @abstractmethod
    def encoder(self, inputs: Inputs) -> Encoder:
        """A freshly initialised encoder, or one with the weights that the settings name."""

    def build(self, inputs: Inputs, heads: Mapping[str, Head]) -> Network:
        """The encoder with its heads."""
        encoder = self.encoder(inputs)
        return Network(encoder, {name: encoder.head(asked) for name, asked in heads.items()})

    def bare(self) -> nn.Module | None:
        """The encoder built without data, only to count its parameters; None if `build` itself needs no data."""
        return None

    def wants(self) -> Wants:
        """The inputs that the model prefers."""
        return Wants()

    def front(self) -> nn.Module | None:
        """A frozen network that computes every image's feature map once, before training; None if there is none."""
        return None

    def source(self) -> str:
        """A hash of the weights that it starts from; empty if there are none."""
        return ""

    def uses(self) -> tuple[type, ...]:
        """The classes of the models that it is made of: a run's id covers their versions as well."""
        return ()
