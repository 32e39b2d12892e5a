"""Dual encoders: a tower for images and a tower for texts, whose projected vectors are compared by their cosine.

Papers: Radford et al. 2021 (CLIP); Zhai et al. 2023 (SigLIP: a bias beside the temperature). A tower is one of our
encoders or one in Hugging Face's format. `model.weights` is a folder that `holdfast pretrain dual` wrote, or a
published CLIP or SigLIP: its towers are then those of `transformers`, and the logits are those of its CLIPModel.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from pathlib import Path
from typing import Annotated, Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from holdfast.errors import UserError, nearest
from holdfast.models import huggingface, weights
from holdfast.models.base import Encoder, Model
from holdfast.models.bert import Bert, TinyBert, check_vocabulary
from holdfast.models.efficientnet import EfficientNetLite0
from holdfast.models.heads import CompareHead
from holdfast.models.module import WrappedEncoder
from holdfast.models.resnet import ResNet18, TinyResNet18
from holdfast.models.vit import TinyVit, Vit
from holdfast.types import Between, Head, Inputs, Wants

KIND = "holdfast-dual"
"""The `model_type` in a configuration of ours."""
PUBLISHED = ("clip", "siglip")
SEES: Mapping[str, type[Model]] = {
    "vit": Vit,
    "vit-tiny": TinyVit,
    "resnet18": ResNet18,
    "resnet18-tiny": TinyResNet18,
    "efficientnet-lite0": EfficientNetLite0,
    "hf": huggingface.HuggingFace,
}
READS: Mapping[str, type[Model]] = {"bert": Bert, "bert-tiny": TinyBert, "hf": huggingface.HuggingFace}
TOWERS = ("image", "text")


class DualEncoder(Encoder):
    """Two towers with a projection each, a temperature and a bias. Vectors of examples are normalised."""

    compiles = False

    def __init__(self, image: Encoder, text: Encoder, width: int, inputs: Inputs, scale: float, bias: float) -> None:
        super().__init__()
        self.image, self.text = image, text
        if not width and image.width != text.width:
            raise UserError(
                f"the towers give {image.width} and {text.width} numbers, which cannot be compared without "
                "projections: set model.width to a number above 0"
            )
        self.shared = width or image.width
        """The width of the vectors that are compared."""
        self.image_projection = _projection(image.width, width)
        self.text_projection = _projection(text.width, width)
        self.scale = nn.Parameter(torch.tensor(scale))
        """The logarithm of the factor on cosines, which is minus the logarithm of the temperature."""
        self.bias = nn.Parameter(torch.tensor(bias))
        self.width = self.shared * ((inputs.image is not None) + bool(inputs.text))
        self._evaluates = False
        self._known: tuple[Tensor, list[tuple[int, int]], Tensor] | None = None
        """Prompts, the versions of the weights that read them, and the vectors that these computed."""

    def stem(self) -> Sequence[nn.Module]:
        """The stems of both towers."""
        return [*self.image.stem(), *self.text.stem()]

    def layers(self) -> Sequence[nn.Module]:
        """The layers of both towers, alternating from the bottom up."""
        turns = zip_longest(self.text.layers(), self.image.layers())
        return [layer for layer in chain.from_iterable(turns) if layer is not None]

    def towers(self) -> Sequence[nn.Module]:
        """The networks below the projections."""
        return [self.image, self.text]

    def alone(self) -> str:
        """The reason: pairs are compared within a batch."""
        return "a dual encoder compares the images and texts of a whole batch, and a rank has only its share"

    def head(self, asked: Head) -> nn.Module:
        """A head that compares, or any other head on the concatenated vectors."""
        if asked.kind == "compare":
            return CompareHead(asked.outputs, asked.growing)
        return super().head(asked)

    def images(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """The vectors of images, of length 1: (rows, shared)."""
        return functional.normalize(self.image_projection(self.image(inputs)), dim=-1)

    def texts(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """The vectors of texts, of length 1: (rows, [texts,] shared)."""
        return functional.normalize(self.text_projection(self.text(inputs)), dim=-1)

    def classes(self, text: Tensor, text_length: Tensor) -> Tensor:
        """A vector for each class from its prompts (classes, templates, length): the mean over them, of length 1."""
        each = functional.normalize(self.text_projection(self._read(text, text_length)), dim=-1)
        return functional.normalize(each.mean(1), dim=-1)

    def train(self, mode: bool = True) -> DualEncoder:
        """Switch to training or evaluation mode. In evaluation mode, a tower that learns does not change between two
        calls.

        The versions of its weights alone would not show that: fused optimisers do not raise them.
        """
        self._evaluates, self._known = not mode, None
        return super().train(mode)

    def _read(self, text: Tensor, text_length: Tensor) -> Tensor:
        """The output of the text tower for prompts, kept as long as it cannot change."""
        tower = self.text
        learns = any(weight.requires_grad for weight in tower.parameters())
        if tower.training or (learns and (torch.is_grad_enabled() or not self._evaluates)):
            return self._prompted(text, text_length)
        versions = [(id(each), each._version) for each in tower.parameters()]
        if self._known is None or self._known[0] is not text or self._known[1] != versions:
            with torch.inference_mode(False), torch.no_grad():
                self._known = text, versions, self._prompted(text, text_length)
        return self._known[2]

    def _prompted(self, text: Tensor, text_length: Tensor) -> Tensor:
        # The class's own method: prompts are not rows of a batch, so recorded values (`FrozenPart`) cannot replace it.
        forward: Callable[..., Tensor] = type(self.text).forward
        device = self.scale.device
        return forward(self.text, {"text": text.to(device), "text_length": text_length.to(device)})

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """The concatenated vectors of an example's image and text, or the one that it has: (rows, [choices,] width)."""
        found = ([self.images(inputs)] if "image" in inputs else []) + (
            [self.texts(inputs)] if "text" in inputs else []
        )
        most = max(each.ndim for each in found)
        count = next((each.shape[1] for each in found if each.ndim == 3), 1)
        spread = [each.unsqueeze(1).expand(-1, count, -1) if each.ndim < most else each for each in found]
        return torch.cat(spread, -1)

    def words(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """The vectors for words of the text tower."""
        return self.text.words(inputs)

    def word_embedding(self) -> nn.Embedding:
        """The table of the text tower."""
        return self.text.word_embedding()

    def grid(self, images: Tensor) -> Tensor:
        """The feature map of the image tower."""
        return self.image.grid(images)


def _projection(width: int, shared: int) -> nn.Module:
    return nn.Linear(width, shared, bias=False) if shared else nn.Identity()


@dataclass(frozen=True)
class Dual(Model):
    """An image tower and a text tower that meet in one space, with random projections or published weights."""

    version: ClassVar[int] = 1
    places: ClassVar[frozenset[str]] = frozenset({"image", "text", "weights"})
    usual: ClassVar[tuple[str, str]] = ("vit", "bert")
    """The towers if neither the user nor the weights name any."""

    image: str = ""
    """The image tower: vit, vit-tiny, resnet18, resnet18-tiny, efficientnet-lite0 or hf, with the location of its
    weights, as in efficientnet-lite0:package or hf:FOLDER. Default: the tower of `weights`, otherwise vit (dual-tiny:
    vit-tiny)."""
    text: str = ""
    """The text tower: bert, bert-tiny or hf, with the location of its weights, as in bert:FOLDER. Default: the tower of
    `weights`, otherwise bert (dual-tiny: bert-tiny)."""
    width: Annotated[int, Between(0)] = 512
    """The width of the shared space; 0: no projections, for towers of the same width."""
    temperature: Annotated[float, Between(1e-3)] = 0.07
    """The initial temperature, by which cosines are divided; it is learned."""
    bias: float = 0.0
    """The initial bias, which is added to each comparison; it is learned, and matters only for SigLIP's loss."""
    learn_temperature: bool = False
    """Whether the temperature and the bias from `weights` continue to learn; without weights, they always learn."""
    weights: str = ""
    """A folder from `holdfast pretrain dual`, or a published CLIP or SigLIP; empty: random projections."""

    def encoder(self, inputs: Inputs) -> Encoder:
        """The towers and the projections that join them.

        >>> small = Dual(image="vit-tiny", text="bert-tiny", width=8)
        >>> small.encoder(Inputs((3, 32, 32), text=6, vocabulary=30)).width
        16
        """
        if inputs.images > 1:
            raise UserError("a dual encoder sees one image of an example, but this benchmark has several")
        encoder = self._encoder(inputs)
        if self.weights and not self.learn_temperature:
            encoder.scale.requires_grad_(False)
            encoder.bias.requires_grad_(False)
        return encoder

    def _encoder(self, inputs: Inputs) -> DualEncoder:
        folder = self._folder()
        if folder is not None and self._published(folder):
            return _of_library(folder, inputs)
        config = {} if folder is None else _config(folder)
        seen, read = replace(inputs, text=0, vocabulary=0), replace(inputs, image=None, images=1)
        side, pieces = config.get("side", self.wants().side or 32), config.get("pieces", 30)
        image, text = self._towers(folder)
        encoder = DualEncoder(
            image.encoder(seen if inputs.image else Inputs(image=(3, side, side))),
            text.encoder(read if inputs.text else Inputs(text=8, vocabulary=pieces)),
            config.get("width", self.width),
            inputs,
            -math.log(self.temperature),
            self.bias,
        )
        if folder is not None:
            _load(encoder, folder, config, inputs)
        return encoder

    def wants(self) -> Wants:
        """The image tower's side, and the text tower's word pieces and length."""
        folder = self._folder()
        if folder is not None and self._published(folder):
            return huggingface.HuggingFace(str(folder)).wants()
        image, text = (tower.wants() for tower in self._towers(folder))
        own = None if folder is None else weights.vocabulary_file(folder)
        side = image.side if folder is None else _config(folder).get("side", image.side)
        return Wants(side=side, vocabulary=own or text.vocabulary, length=text.length)

    def source(self) -> str:
        """The names of the towers, and a hash of all weights."""
        folder = self._folder()
        if folder is not None and self._published(folder):
            return weights.digest(folder, *huggingface.READ)
        words = self._words(folder)
        known = [
            f"{word.partition(':')[0]}:{tower.source()}"
            for word, tower in zip(words, self._towers(folder), strict=True)
        ]
        known += [] if folder is None else [weights.digest(folder)]
        return hashlib.blake2b(" ".join(known).encode(), digest_size=8).hexdigest()

    def uses(self) -> tuple[type, ...]:
        """The classes of its towers."""
        folder = self._folder()
        if folder is not None and self._published(folder):
            return (huggingface.HuggingFace,)
        return tuple(type(tower) for tower in self._towers(folder))

    def _folder(self) -> Path | None:
        return weights.locate(self.weights, "model.weights", download=False) if self.weights else None

    def _published(self, folder: Path) -> str:
        """The kind of a published dual encoder; empty: it is one of ours."""
        kind = str(weights.read_json(folder / "config.json").get("model_type"))
        if kind == KIND:
            return ""
        if kind not in PUBLISHED:
            raise UserError(
                f"{folder} holds a model of type {kind!r}: give a CLIP, a SigLIP or a folder that `holdfast pretrain "
                "dual` wrote; a single tower belongs to model.image or model.text"
            )
        for name in TOWERS:
            if getattr(self, name):
                raise UserError(f"{folder} has towers of its own: leave out model.{name}")
        return kind

    def _words(self, folder: Path | None) -> tuple[str, str]:
        config = {} if folder is None else _config(folder)
        return self.image or config.get("image", self.usual[0]), self.text or config.get("text", self.usual[1])

    def _towers(self, folder: Path | None) -> tuple[Model, Model]:
        image, text = self._words(folder)
        return _tower(image, SEES, "model.image"), _tower(text, READS, "model.text")


@dataclass(frozen=True)
class TinyDual(Dual):
    """Towers for two CPU cores, aligned on the synthetic world; with `model.weights=""`, from scratch."""

    usual: ClassVar[tuple[str, str]] = ("vit-tiny", "bert-tiny")

    width: Annotated[int, Between(0)] = 64
    weights: str = "holdfast/dual-tiny"


def _tower(word: str, known: Mapping[str, type[Model]], setting: str) -> Model:
    """The model of a tower, from a word such as `vit-tiny` or `hf:FOLDER`."""
    name, _, place = word.partition(":")
    if name not in known:
        raise UserError(f"{setting} is {word!r}, which names no tower: {nearest(name, known)}")
    made: Any = known[name]
    found: Model = made(weights=place) if place or name.endswith("bert-tiny") else made()
    return found


def _config(folder: Path) -> dict[str, Any]:
    config = weights.read_json(folder / "config.json")
    kinds = {"image": str, "text": str, "width": int, "side": int, "pieces": int, "sources": dict, "holds": list}
    for name, kind in kinds.items():
        if not isinstance(config.get(name), kind):
            raise UserError(f"{folder}/config.json has no {name}: give a folder that `holdfast pretrain dual` wrote")
    return config


def _load(encoder: DualEncoder, folder: Path, config: Mapping[str, Any], inputs: Inputs) -> None:
    """Load the weights of a folder into an encoder; a tower that the folder does not contain must be the one that was
    aligned.
    """
    if inputs.text:
        check_vocabulary(inputs.vocabulary, config["pieces"], folder)
    for name in TOWERS:
        if name not in config["holds"] and config["sources"].get(name) != state_hash(getattr(encoder, name)):
            raise UserError(
                f"the projections in {folder} belong to another {name} tower, {config[name]}: set model.{name} to that "
                "one, with the same weights"
            )
    state = weights.read_state(folder)
    own = {name: each for name, each in encoder.state_dict().items() if _held(name, config["holds"])}
    wrong = sorted(own.keys() ^ state.keys()) or [name for name in own if own[name].shape != state[name].shape]
    if wrong:
        raise UserError(f"{folder} does not fit these towers: its {wrong[0]} is missing, or another")
    with torch.no_grad():
        encoder.load_state_dict(state, strict=False)


def _held(name: str, holds: Sequence[str]) -> bool:
    tower = name.partition(".")[0]
    return tower not in TOWERS or tower in holds


def state_hash(module: nn.Module) -> str:
    """A hash of a module's weights."""
    digest = hashlib.blake2b(digest_size=8)
    for name, value in sorted(module.state_dict().items()):
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def save(encoder: DualEncoder, folder: Path, words: Sequence[str], inputs: Inputs, holds: Sequence[str]) -> None:
    """Write a dual encoder; towers that are not in `holds` are named with a hash of their weights alone."""
    assert inputs.image is not None
    assert inputs.vocabulary
    config = {
        "model_type": KIND,
        **dict(zip(TOWERS, words, strict=True)),
        "width": encoder.shared if isinstance(encoder.image_projection, nn.Linear) else 0,
        "side": inputs.image[1],
        "pieces": inputs.vocabulary,
        "sources": {name: state_hash(getattr(encoder, name)) for name in TOWERS if name not in holds},
        "holds": list(holds),
    }
    state = {name: each.contiguous() for name, each in encoder.state_dict().items() if _held(name, holds)}
    weights.write(folder, state, config)


def _of_library(folder: Path, inputs: Inputs) -> DualEncoder:
    """A published dual encoder: its towers as modules of `transformers`, its projections and temperature as ours."""
    side = huggingface.HuggingFace(str(folder)).wants().side or 224
    seen = replace(inputs, image=inputs.image or (3, side, side), text=0, vocabulary=0)
    read = Inputs(text=inputs.text or 8, vocabulary=inputs.vocabulary)
    with torch.random.fork_rng(devices=[]):
        whole = huggingface.loaded(folder)[0]
        image = WrappedEncoder(huggingface.ImageModule(whole.vision_model, folder, seen, True), seen)
        text = WrappedEncoder(huggingface.TextModule(whole.text_model, folder, read, True), read)
    state = whole.state_dict()
    projected = "visual_projection.weight" in state
    width = len(state["visual_projection.weight"]) if projected else 0
    bias = float(state["logit_bias"]) if "logit_bias" in state else 0.0
    encoder = DualEncoder(image, text, width, inputs, float(state["logit_scale"]), bias)
    if projected:
        with torch.no_grad():
            for own, theirs in ((encoder.image_projection, "visual"), (encoder.text_projection, "text")):
                assert isinstance(own, nn.Linear)
                own.weight.copy_(state[f"{theirs}_projection.weight"])
    return encoder
