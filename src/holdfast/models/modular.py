"""Modular networks: each layer has parallel modules, and a path says which of them are on.

With `parts=branches`, modules share a part of each layer (RPSnet): residual branches around a shortcut,
feed-forward networks after one attention; active modules are summed. With `parts=stages`, a module is a whole stage
of a ResNet or a whole block of a ViT (MNTDP), and one is active. With one module per layer, both are the plain network.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import torch
from torch import Tensor, nn

from holdfast.errors import UserError
from holdfast.models.base import Encoder, Model, Network
from holdfast.models.normalise import BatchNorm
from holdfast.models.resnet import DEPTHS, STARTS, Basic, Normalise, ResNet18, check_images
from holdfast.models.transformer import Attention, FeedForward
from holdfast.models.vit import Patches, Vit, block
from holdfast.types import Between, Head, Inputs

ModulePath: TypeAlias = tuple[tuple[int, ...], ...]
"""The active modules of each layer."""
Parts: TypeAlias = Literal["branches", "stages"]


class Layer(nn.Module):
    """Parallel modules of one kind, to which more can be added, with shared modules before, beside and after them."""

    def __init__(
        self,
        make: Callable[[], nn.Module],
        before: nn.Module | None = None,
        beside: nn.Module | None = None,
        after: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.make = make
        self.choices = nn.ModuleList([make()])
        self.before, self.beside, self.after = before, beside, after

    def fresh(self) -> nn.Module:
        """A new module with the device and type of the others."""
        like = next(self.choices.parameters())
        made = self.make().to(like.device, like.dtype)
        return made.to(memory_format=torch.channels_last) if like.is_cuda else made  # type: ignore[call-overload]

    def grow(self, count: int) -> None:
        """Add modules until there are at least `count`."""
        while len(self.choices) < count:
            self.choices.append(self.fresh())

    def forward(self, x: Tensor, on: Sequence[int]) -> Tensor:
        """The sum of the active modules and the shared one beside them."""
        if self.before is not None:
            x = self.before(x)
        total = self.choices[on[0]](x)
        for index in on[1:]:
            total = total + self.choices[index](x)
        if self.beside is not None:
            total = total + self.beside(x)
        out: Tensor = total if self.after is None else self.after(total)
        return out


class ModularEncoder(Encoder):
    """Layers of parallel modules between a stem and an end; `path` is active, or the entry of `paths` for a head."""

    compiles = False
    recordable = True

    def __init__(self, width: int, stem: nn.Module, layers: Sequence[Layer], end: nn.Module, parts: Parts) -> None:
        super().__init__()
        self.width, self.parts = width, parts
        self.start, self.layer, self.end = stem, nn.ModuleList(layers), end
        self.path: ModulePath = ((0,),) * len(layers)
        self.paths: dict[str, ModulePath] = {}
        self.active = ""
        """The name of the calling head."""

    def structure(self) -> dict[str, Any]:
        """The number of modules in each layer, and which are active: numbers and lists, as in a state."""
        return {
            "modules": [len(layer.choices) for layer in self.layers()],
            "path": as_lists(self.path),
            "paths": {head: as_lists(path) for head, path in self.paths.items()},
        }

    def rebuild(self, structure: Mapping[str, Any]) -> None:
        """Restore the number of modules and the active ones; their weights come with the model's."""
        for layer, count in zip(self.layers(), structure["modules"], strict=True):
            layer.grow(count)
            del layer.choices[count:]
        self.path = as_path(structure["path"])
        self.paths = {head: as_path(path) for head, path in structure["paths"].items()}

    def mixes_rows(self) -> bool:
        """Whether the layers share batches, if all heads use one path."""
        return not self.paths and super().mixes_rows()

    def stem(self) -> Sequence[nn.Module]:
        """The modules before the first layer."""
        return [self.start]

    def layers(self) -> Sequence[Layer]:
        """The layers from the bottom up."""
        return [layer for layer in self.layer if isinstance(layer, Layer)]

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """A vector for each image: (rows, width), or (rows, images, width)."""
        images = inputs["image"]
        x = self.start(images.flatten(0, -4))
        for layer, on in zip(self.layer, self.paths.get(self.active, self.path), strict=True):
            x = layer(x, on)
        out: Tensor = self.end(x).view(*images.shape[:-3], self.width)
        return out


def as_path(saved: Sequence[Sequence[int]]) -> ModulePath:
    """A path from lists of lists."""
    return tuple(tuple(on) for on in saved)


def as_lists(path: ModulePath) -> list[list[int]]:
    """A path as a list of lists, for a state."""
    return [list(on) for on in path]


def modular(encoder: Encoder, name: str, parts: Parts) -> ModularEncoder:
    """The encoder; raises a UserError unless it is modular and of these parts."""
    if not isinstance(encoder, ModularEncoder):
        raise UserError(f"{name} needs a modular network, such as modular-resnet18 or modular-vit: choose one")
    if encoder.parts != parts:
        raise UserError(f"{name} needs a modular network of {parts}: set model.parts={parts}")
    return encoder


def build(encoder: Encoder, heads: Mapping[str, Head]) -> Network:
    """The network; each head tells the encoder its name before it calls it."""
    model = Network(encoder, {name: encoder.head(asked) for name, asked in heads.items()})
    for name, head in model.heads.items():
        head.register_forward_pre_hook(partial(_ask, name))
    return model


def _ask(name: str, head: nn.Module, inputs: tuple[Encoder, Mapping[str, Tensor]]) -> None:
    inputs[0].active = name  # type: ignore[assignment]


# Residual networks


def _convolution(channels: int, kernel: int, stride: int, padding: int) -> nn.Module:
    convolution = nn.Conv2d(3, channels, kernel, stride, padding, bias=False)
    return _initialised(nn.Sequential(convolution, BatchNorm(channels), nn.ReLU()))


def _branch(before: int, channels: int, stride: int) -> nn.Module:
    block = Basic(before, channels, stride)
    return _initialised(nn.Sequential(block.conv1, block.bn1, nn.ReLU(), block.conv2, block.bn2))


def _stage(before: int, channels: int, stride: int, blocks: int) -> nn.Module:
    first = Basic(before, channels, stride)
    return _initialised(nn.Sequential(first, *(Basic(channels, channels, 1) for _ in range(blocks - 1))))


def _initialised(module: nn.Module) -> nn.Module:
    for part in module.modules():
        if isinstance(part, nn.Conv2d):
            nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")
    return module


class _Mean(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.mean((-2, -1))


@dataclass(frozen=True)
class ModularResNet18(ResNet18):
    """A modular ResNet-18: 9 layers of branches (the first convolution, 8 residual branches), or 5 stages."""

    version: ClassVar[int] = 1

    parts: Parts = "branches"
    """What a module is: branches, one of several side by side in each layer (rpsnet), or stages, a whole stage or block
    (mntdp)."""

    def encoder(self, inputs: Inputs) -> Encoder:
        """A network for images, with one module per layer.

        >>> len(ModularResNet18(channels=4).encoder(Inputs((3, 32, 32))).layers())
        9
        """
        check_images("a ResNet", inputs)
        start, channels = STARTS[self.start], self.channels
        pool = nn.MaxPool2d(3, 2, 1) if start.pool else None
        layers = [Layer(partial(_convolution, channels, start.kernel, start.stride, start.padding), after=pool)]
        before = channels
        for stage, blocks in enumerate(DEPTHS[18]):
            after, stride = channels << stage, 2 if stage else 1
            if self.parts == "stages":
                layers.append(Layer(partial(_stage, before, after, stride, blocks)))
            else:
                for block in range(blocks):
                    shape = (before, after, stride) if block == 0 else (after, after, 1)
                    shortcut = _initialised(Basic(*shape).downsample)
                    layers.append(Layer(partial(_branch, *shape), beside=shortcut, after=nn.ReLU()))
            before = after
        return ModularEncoder(before, Normalise(), layers, _Mean(), self.parts)

    def build(self, inputs: Inputs, heads: Mapping[str, Head]) -> Network:
        """The network with its heads."""
        return build(self.encoder(inputs), heads)


# Vision transformers


class _Attending(nn.Module):
    """The first half of a block."""

    def __init__(self, recipe: Vit) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(recipe.width, eps=1e-12)
        inner = recipe.heads * recipe.head_width
        self.attention = Attention(recipe.width, recipe.heads, inner, recipe.dropout)
        self.dropout = nn.Dropout(recipe.dropout)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = x + self.dropout(self.attention(self.norm(x)))
        return out


def _feeding(recipe: Vit) -> nn.Module:
    feed = FeedForward(recipe.width, recipe.hidden, recipe.dropout)
    return nn.Sequential(nn.LayerNorm(recipe.width, eps=1e-12), feed, nn.Dropout(recipe.dropout))


class _Whole(nn.Module):
    """The class token, normalised."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width, eps=1e-12)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.norm(x[:, 0])
        return out


@dataclass(frozen=True)
class ModularVit(Vit):
    """A modular ViT: feed-forward networks that share a layer's attention, or whole blocks."""

    version: ClassVar[int] = 1

    parts: Parts = "branches"
    """What a module is: branches, one of several side by side in each layer (rpsnet), or stages, a whole stage or block
    (mntdp)."""

    def encoder(self, inputs: Inputs) -> Encoder:
        """A transformer for images of this size, with one module per layer.

        >>> small = ModularVit(patch=8, width=8, depth=2, heads=2, head_width=4, hidden=8)
        >>> len(small.encoder(Inputs((3, 16, 16))).layers())
        2
        """
        if self.weights:
            raise UserError("a modular ViT starts from scratch: leave out model.weights, or choose vit")
        height, width = check_images(f"a ViT of patches of {self.patch} pixels", inputs, self.patch)
        stem = Patches(height, width, self.patch, self.width, self.dropout)
        if self.parts == "stages":
            layers = [Layer(partial(block, self)) for _ in range(self.depth)]
        else:
            layers = [Layer(partial(_feeding, self), _Attending(self), nn.Identity()) for _ in range(self.depth)]
        return ModularEncoder(self.width, stem, layers, _Whole(self.width), self.parts)

    def build(self, inputs: Inputs, heads: Mapping[str, Head]) -> Network:
        """The network with its heads."""
        return build(self.encoder(inputs), heads)


# The smallest


class _Pixels(nn.Module):
    def __init__(self, pixels: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Linear(pixels, width)

    def forward(self, images: Tensor) -> Tensor:
        pixels = images.flatten(1).to(self.embedding.weight.dtype)
        out: Tensor = self.embedding(pixels.mul(1 / 127.5).sub(1)).relu()
        return out


def _connected(width: int) -> nn.Module:
    return nn.Sequential(nn.Linear(width, width), nn.ReLU())


@dataclass(frozen=True)
class ModularPerceptron(Model):
    """Modular fully connected layers over pixels: the smallest network with paths."""

    version: ClassVar[int] = 1

    width: Annotated[int, Between(1)] = 128
    """The width of each layer."""
    depth: Annotated[int, Between(1)] = 2
    """The number of modular layers."""
    parts: Parts = "branches"
    """What a module is: branches, one of several side by side in each layer (rpsnet), or stages, a whole stage or block
    (mntdp)."""

    def encoder(self, inputs: Inputs) -> Encoder:
        """A perceptron for images of this size, with one module per layer."""
        if inputs.image is None:
            raise UserError("a perceptron needs images, but this benchmark has none: choose another model")
        channels, height, width = inputs.image
        beside = nn.Identity if self.parts == "branches" else lambda: None
        layers = [Layer(partial(_connected, self.width), beside=beside()) for _ in range(self.depth)]
        stem = _Pixels(channels * height * width, self.width)
        return ModularEncoder(self.width, stem, layers, nn.Identity(), self.parts)

    def build(self, inputs: Inputs, heads: Mapping[str, Head]) -> Network:
        """The network with its heads."""
        return build(self.encoder(inputs), heads)
