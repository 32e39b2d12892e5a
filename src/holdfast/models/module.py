"""Any `nn.Module` as a model: its columns by name, its width by a trial, its layers by repetition.

A class, or a function without arguments, is called for each run, under its seed; arguments with defaults are settings.
An instance is copied with its weights, whose hash is part of a run's id. A module may state more with these methods:

| method | what it returns |
|---|---|
| `wants()` | a `Wants`, or a dictionary of its fields: the side of its images, its word pieces, what it sees |
| `layers()` | its layers from the bottom up, for frozen-bottom, adapters, low-rank updates and prefixes |
| `grid(image)` | the feature map of images, (rows, channels, height, width), from pixels as `forward` takes them |
| `words(...)` | one vector for each word piece, (rows, length, width), from columns as `forward` takes them |
| `classifier(width, asked)` | the classifier of a `Head`, in place of a linear one |
| `word_embedding()` | the `nn.Embedding` of its word pieces, whose weights a masked-phrase head shares |
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from holdfast.errors import UserError
from holdfast.models import columns, places
from holdfast.models.adapters import Attachable
from holdfast.models.base import Encoder, Model
from holdfast.models.fingerprint import fingerprint, installed
from holdfast.models.normalise import SharesBatch, share_batches
from holdfast.settings import shown
from holdfast.types import Head, Inputs, Wants

K = TypeVar("K", bound=Model)
SCALARS = (bool, int, float, str)
"""The types of arguments that are settings."""


def of(thing: Any) -> Model:
    """The `Model` for a `Model`, an `nn.Module`, its class, or a function that builds one.

    >>> of(nn.Flatten).build(Inputs((1, 2, 2)), {}).encoder.width
    4
    """
    found = thing if isinstance(thing, Model) else kind_of(thing)()
    assert isinstance(found, Model)
    return found


def kind_of(thing: Any) -> type[Model]:
    """The class of `of(thing)`, whose fields are settings."""
    if isinstance(thing, type) and issubclass(thing, Model):
        kind: type[Model] = thing
        return kind
    if isinstance(thing, nn.Module):
        return _given(thing)
    if callable(thing) and (not isinstance(thing, type) or issubclass(thing, nn.Module)):
        builder: Callable[..., nn.Module] = thing
        return _built(builder)
    raise UserError(
        f"model is {shown(thing)}: give 'vilt-tiny' or another name, an nn.Module, its class, a function without "
        "arguments that builds one, or a Model"
    )


def wrapped(thing: Any) -> type[Model] | None:
    """`kind_of` an external module, its class, or a function that may build one; None for anything else.

    >>> wrapped(nn.Flatten).__name__, wrapped(nn.Flatten()).__name__, wrapped(Wrapped), wrapped(3)
    ('Flatten', 'Flatten', None, None)
    """
    of_torch = isinstance(thing, nn.Module) or (isinstance(thing, type) and issubclass(thing, nn.Module))
    own = of_torch or inspect.isfunction(thing) or isinstance(thing, functools.partial)
    return kind_of(thing) if own else None


class Wrapped(Model):
    """An external module as a model."""

    version: ClassVar[int] = 1
    made: ClassVar[Any]
    """The class, function or instance that was given."""

    @abstractmethod
    def module(self) -> nn.Module:
        """A new module for the run."""

    def encoder(self, inputs: Inputs) -> Encoder:
        """The module as an encoder."""
        module = self.module()
        return module if isinstance(module, Encoder) else WrappedEncoder(module, inputs)

    def bare(self) -> nn.Module:
        """The module itself."""
        return self.module()

    def wants(self) -> Wants:
        """The module's own `wants()`, or no preferences."""
        return _wants(self)


class BuiltAnew(Wrapped):
    """A class or a function that is called for each run; its arguments with defaults are the settings."""

    def module(self) -> nn.Module:
        """The module that it builds."""
        assert dataclasses.is_dataclass(self)
        module = self.made(**{each.name: getattr(self, each.name) for each in dataclasses.fields(self)})
        if not isinstance(module, nn.Module):
            raise UserError(f"{type(self).__name__} builds an object of {type(module).__name__}, not an nn.Module")
        return module


class Copied(Wrapped):
    """An instance: each run starts with a copy of it."""

    places: ClassVar[frozenset[str]] = frozenset({"weights"})
    weights: str

    def module(self) -> nn.Module:
        """The copy."""
        module: nn.Module = copy.deepcopy(self.made)
        return module

    def source(self) -> str:
        """The hash of its weights and everything else that it holds."""
        return self.weights


@functools.cache
def _built(thing: Callable[..., nn.Module]) -> type[BuiltAnew]:
    given = inspect.signature(thing).parameters.values()
    several = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    if needed := [each.name for each in given if each.default is each.empty and each.kind not in several]:
        raise UserError(
            f"{_named(thing).__name__} takes {', '.join(needed)}, and a model is built without arguments: give them "
            "defaults, or write a function without arguments that builds it"
        )
    settings = [(each.name, type(each.default), each.default) for each in given if type(each.default) in SCALARS]
    settings = [each for each in settings if not hasattr(BuiltAnew, each[0])]
    return _kind(BuiltAnew, _named(thing), staticmethod(thing), settings)


def _given(module: nn.Module) -> type[Copied]:
    kept = copy.deepcopy(module)  # the hash is of these weights, even if the module is changed later
    return _kind(Copied, type(module), kept, [("weights", str, fingerprint(kept))])


def _kind(base: type[K], named: Any, made: Any, settings: Sequence[tuple[str, type, Any]]) -> type[K]:
    """A class of settings for the user's code; in a run's id, the user's code represents it."""
    own = not installed(named.__module__)
    about = {"made": made, "code": named, "__doc__": named.__doc__, "__module__": named.__module__ if own else __name__}
    found: type[K] = dataclasses.make_dataclass(named.__name__, settings, bases=(base,), frozen=True, namespace=about)
    return found


def _named(thing: Any) -> Any:
    """The class or function behind a callable."""
    while isinstance(thing, functools.partial):
        thing = thing.func
    return thing if hasattr(thing, "__name__") else type(thing)


@functools.cache
def _wants(model: Wrapped) -> Wants:
    given = isinstance(model.made, nn.Module | type)
    if given and not _says(model.made, "wants"):
        return Wants()
    with torch.random.fork_rng(devices=[]):
        module = model.module()
    said = _says(module, "wants")
    return Wants() if said is None else _as_wants(type(module).__name__, said())


def _as_wants(name: str, found: Any) -> Wants:
    """The result of a module's `wants()`, as `Wants`."""
    if isinstance(found, Wants):
        return found
    known = {each.name for each in dataclasses.fields(Wants)}
    if not isinstance(found, Mapping) or found.keys() - known:
        raise UserError(f"{name}.wants() is {found!r}: return a dictionary of {', '.join(sorted(known))}")
    return Wants(**found)


def _says(module: Any, name: str) -> Callable[..., Any] | None:
    """One of the optional methods of a module; a child module of that name does not count."""
    kind = module if isinstance(module, type) else type(module)
    return getattr(module, name) if inspect.isfunction(getattr(kind, name, None)) else None


class WrappedEncoder(Encoder):
    """An external module as an encoder: see the top of this file."""

    like: Tensor

    def __init__(self, module: nn.Module, inputs: Inputs) -> None:
        super().__init__()
        self.module, self.name = module, type(module).__name__
        weight = next((each for each in module.parameters() if each.is_floating_point()), torch.zeros(0))
        self.register_buffer("like", torch.zeros((), dtype=weight.dtype), persistent=False)
        batch = columns.trial(inputs)
        self._asked = columns.Signature(module, batch)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self._try(batch)
        share_batches(module)
        self.moves = self._moved(batch)
        """The buffers that a pass in training changes, except those of batch normalisation."""

    def _try(self, batch: Mapping[str, Tensor]) -> None:
        """Pass a small batch through to determine the width, the layers, and the modules before these."""
        module = self.module.eval()
        said = _says(module, "layers")
        layers = list(places.repeated(module) if said is None else said())
        if not all(isinstance(each, nn.Module) and any(each is own for own in module.modules()) for each in layers):
            raise UserError(
                f"{self.name}.layers() lists an object that is not a module within it: list the layers themselves"
            )
        state = torch.get_rng_state()
        try:
            with torch.enable_grad(), places.watching(module, layers) as seen:
                found = self._features(batch)
        except UserError:
            raise
        except Exception as error:
            shapes = ", ".join(f"{name} {tuple(column.shape)}" for name, column in batch.items())
            raise UserError(
                f"{self.name} cannot take a batch of {shapes}: {type(error).__name__}: {error}. {self._advice(batch)}"
            ) from error
        self.draws = not torch.equal(state, torch.get_rng_state())
        self.width = found.shape[-1]
        if not found.requires_grad and any(each.requires_grad for each in module.parameters()):
            raise UserError(f"no gradient flows through the output of {self.name}: leave out no_grad() and detach()")
        self._layers = tuple(layers if said is not None else (each for each in seen.order if each in layers))
        stem, loose = places.before(module, self._layers, seen)
        self._stem, self.loose = tuple(stem), places.Loose(loose)
        outputs = ((each, seen.outputs.get(each)) for each in self._layers)
        whole = [each for each, output in outputs if output is not None and output.ndim > 1]
        self.places = nn.ModuleList(places.HookedLayer(each, seen) for each in whole)

    def _advice(self, batch: Mapping[str, Tensor]) -> str:
        """The advice for a batch that the module cannot take."""
        said = _says(self.module, "wants")
        side = None if said is None else _as_wants(self.name, said()).side
        if side is None or "image" not in batch or batch["image"].shape[-1] == side:
            return "Images come as numbers from 0 to 1; wants() can say how large they should be"
        return f"This benchmark does not follow wants() in the size of images: try --set benchmark.side={side}"

    def _moved(self, batch: Mapping[str, Tensor]) -> list[str]:
        """Pass the batch through in training mode, and restore the state."""
        norms = {id(each) for norm in self.module.modules() if isinstance(norm, _BatchNorm) for each in norm.buffers()}
        kept = {name: (each, each.clone()) for name, each in self.module.named_buffers()}
        self.module.train()
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(0)
            self(batch)
        moved = [name for name, (now, then) in kept.items() if id(now) not in norms and not torch.equal(now, then)]
        with torch.no_grad():
            for now, then in kept.values():
                now.copy_(then)
        return moved

    def stem(self) -> Sequence[nn.Module]:
        """The modules that are called before the first layer."""
        return [*self._stem, self.loose]

    def layers(self) -> Sequence[nn.Module]:
        """The layers that the module lists, or its repeated blocks in the order of their calls."""
        return self._layers

    def blocks(self) -> Sequence[Attachable]:
        """The layers that return a tensor."""
        return [each for each in self.places if isinstance(each, Attachable)]

    def alone(self) -> str:
        """Why ranks cannot share it: its own batch normalisation, or buffers that depend on one rank's rows."""
        for name, module in self.module.named_modules():
            if isinstance(module, _BatchNorm) and not isinstance(module, SharesBatch):
                return f"{self.name} has {name}, a {type(module).__name__}, which normalises over the rows of one rank"
        return f"{self.name} updates {self.moves[0]} from the rows of one rank" if self.moves else ""

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """(rows, width), or (rows, images or choices, width)."""
        given, several = columns.flat(inputs)
        if self.draws and not self.training:  # so that scores do not depend on when they are computed
            devices = [] if self.like.device.type == "cpu" else [self.like.device]
            with torch.random.fork_rng(devices=devices):
                torch.manual_seed(0)
                found = self._features(given)
        else:
            found = self._features(given)
        if found.shape[-1] != self.width:
            raise UserError(
                f"{self.name} returns {found.shape[-1]} numbers per row{' in training' * self.training}, and returned "
                f"{self.width} in the trial: the number must be the same for each batch"
            )
        return found.view(-1, several, self.width) if several else found

    def _features(self, given: Mapping[str, Tensor]) -> Tensor:
        output = self._asked.call(self.module, given, self.like.dtype)
        return columns.features(output, given, self.name)

    def grid(self, images: Tensor) -> Tensor:
        """The result of the module's own `grid`, or its output if that is a map."""
        said, given = _says(self.module, "grid"), {"image": images}
        asked = columns.Signature(self.module, given, "forward" if said is None else "grid")
        found = asked.call(self.module if said is None else said, given, self.like.dtype)
        if not isinstance(found, Tensor) or found.ndim != 4:
            raise UserError(f"{self.name} has no feature map of an image: define a method grid(image)")
        return found

    def words(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """The result of the module's own `words`."""
        if (said := _says(self.module, "words")) is None:
            raise UserError(f"{self.name} has no vectors for words: define a method words(...)")
        found: Tensor = columns.Signature(self.module, inputs, "words").call(said, inputs, self.like.dtype)
        return found

    def classifier(self, width: int, asked: Head) -> nn.Module:
        """The module's own `classifier`, if it returns one; otherwise a linear one."""
        said = _says(self.module, "classifier")
        found: nn.Module | None = None if said is None else said(width, asked)
        return super().classifier(width, asked) if found is None else found

    def word_embedding(self) -> nn.Embedding:
        """The module's own `word_embedding`."""
        said = _says(self.module, "word_embedding")
        found = None if said is None else said()
        if not isinstance(found, nn.Embedding):
            raise UserError(
                f"{self.name} has no embedding of word pieces: define word_embedding(), which returns an nn.Embedding"
            )
        return found
