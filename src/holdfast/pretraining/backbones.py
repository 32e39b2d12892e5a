"""Networks that compute feature maps, described by names, so that each process can build its own."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from holdfast import registry
from holdfast.errors import UserError
from holdfast.models.base import Encoder, Model
from holdfast.models.fingerprint import fingerprint
from holdfast.models.resnet import DEPTHS, published
from holdfast.types import Inputs

SIDE = 224


@dataclass(frozen=True)
class ResNetBackbone:
    """The map after a stage of a ResNet with weights as torchvision publishes them."""

    weights: Path
    depth: int = 101
    stage: int = 3

    def __post_init__(self) -> None:
        """Refuse a depth that no ResNet has."""
        if self.depth not in DEPTHS:
            raise UserError(f"--depth is {self.depth}: give {', '.join(map(str, DEPTHS))}")

    def encoder(self) -> Encoder:
        """The network."""
        return published(self.depth, self.weights, self.stage)

    def name(self) -> str:
        """Its identity: a hash that no other network has."""
        with self.weights.open("rb") as file:
            found = f"resnet{self.depth}/{hashlib.file_digest(file, 'sha256').hexdigest()}"
        return found if self.stage == 3 else f"{found}/{self.stage}"

    def side(self) -> int:
        """The side of the images that it was trained on."""
        return SIDE


@dataclass(frozen=True)
class ModelBackbone:
    """The map of a model that a word names; `weights` is that setting of the model."""

    word: str
    weights: str = ""

    def model(self) -> Model:
        """The settings. Built-in models need weights, since random ones compute nothing useful."""
        entry = registry.find(self.word, "model")
        given = dict(entry.given) | ({"weights": self.weights} if self.weights else {})
        kind = entry.load()
        if unknown := given.keys() - {each.name for each in fields(kind)}:
            raise UserError(f"--model {self.word} has no setting {unknown.pop()}: leave --weights out")
        model: Model = kind(**given)
        if entry.origin == registry.BUILT_IN and not model.source():
            raise UserError(f"--model {self.word} begins with random weights: give --weights, or another model")
        return model

    def encoder(self) -> Encoder:
        """The network."""
        side = self.side()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return self.model().encoder(Inputs(image=(3, side, side)))

    def name(self) -> str:
        """Its identity: a hash of its weights, or of everything that it holds."""
        return f"{self.word.partition(':')[0]}/{self.model().source() or fingerprint(network(self))}"

    def side(self) -> int:
        """The side of the images that it was made for."""
        return self.model().wants().side or SIDE


Backbone = ResNetBackbone | ModelBackbone


@cache
def network(backbone: Backbone) -> Encoder:
    """The network, frozen; built once in each process."""
    return backbone.encoder().requires_grad_(False).eval()


@dataclass(frozen=True)
class GridOf:
    """Images to the feature maps of a network, in any process."""

    backbone: Backbone
    device: str = "cpu"

    def __call__(self, images: Tensor) -> Tensor:
        """The maps of images (rows, 3, height, width) of bytes."""
        return network(self.backbone).to(self.device).grid(images)
