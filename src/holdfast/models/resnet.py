"""Residual networks (He et al. 2016): ResNet-18 as in CFST and for CIFAR, and deeper ones for features.

The modules have the names of torchvision's published weights, so that these load unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import torch
from torch import Tensor, nn

from holdfast.errors import UserError
from holdfast.models.base import Encoder, Model
from holdfast.models.normalise import BatchNorm
from holdfast.types import Between, Inputs, Wants

MEAN = (0.485, 0.456, 0.406)
DEVIATION = (0.229, 0.224, 0.225)
DEPTHS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3)}
"""How many blocks each stage has; from 50 on they are bottlenecks."""


@dataclass(frozen=True)
class Start:
    """The layers before the first stage: a convolution and, for large images, pooling."""

    kernel: int
    stride: int
    padding: int
    pool: bool = False


STARTS = {"imagenet": Start(7, 2, 3, pool=True), "medium": Start(5, 2, 1), "cifar": Start(3, 1, 1)}


class Normalise(nn.Module):
    """Normalises pixels in [0, 255] by ImageNet's mean and deviation."""

    mean: Tensor
    scale: Tensor

    def __init__(self, means: Sequence[float] = MEAN, deviations: Sequence[float] = DEVIATION) -> None:
        super().__init__()
        # On the CPU, also if the model is only measured: see `experiments/size.py`.
        mean, deviation = (torch.tensor(values, device="cpu").view(3, 1, 1) for values in (means, deviations))
        self.register_buffer("mean", 255 * mean, persistent=False)
        self.register_buffer("scale", 1 / (255 * deviation), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """Normalise, in the type of the model's weights; a grey image becomes three equal channels."""
        return (images.to(self.mean.dtype) - self.mean) * self.scale


class Basic(nn.Module):
    """Two 3x3 convolutions and a shortcut."""

    expansion = 1

    def __init__(self, before: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, channels, 3, stride, 1, bias=False)
        self.bn1 = BatchNorm(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = BatchNorm(channels)
        self.downsample = _shortcut(before, channels, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Map a feature map to a feature map."""
        found = self.bn1(self.conv1(x)).relu()
        found = self.bn2(self.conv2(found))
        out: Tensor = (found + self.downsample(x)).relu()
        return out


class Bottleneck(nn.Module):
    """A 3x3 convolution between two 1x1 ones, the last with four times the channels, and a shortcut."""

    expansion = 4

    def __init__(self, before: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, channels, 1, bias=False)
        self.bn1 = BatchNorm(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, stride, 1, bias=False)
        self.bn2 = BatchNorm(channels)
        self.conv3 = nn.Conv2d(channels, 4 * channels, 1, bias=False)
        self.bn3 = BatchNorm(4 * channels)
        self.downsample = _shortcut(before, 4 * channels, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Map a feature map to a feature map."""
        found = self.bn1(self.conv1(x)).relu()
        found = self.bn2(self.conv2(found)).relu()
        found = self.bn3(self.conv3(found))
        out: Tensor = (found + self.downsample(x)).relu()
        return out


def _shortcut(before: int, after: int, stride: int) -> nn.Module:
    if before == after and stride == 1:
        return nn.Identity()
    return nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), BatchNorm(after))


class ResNetEncoder(Encoder):
    """Residual stages over pixels; the mean of the last feature map is the image's vector."""

    recordable = True

    def __init__(self, depth: int = 18, start: Start = STARTS["imagenet"], channels: int = 64, stages: int = 4) -> None:
        super().__init__()
        kind = Basic if depth < 50 else Bottleneck
        self.normalise = Normalise()
        self.conv1 = nn.Conv2d(3, channels, start.kernel, start.stride, start.padding, bias=False)
        self.bn1 = BatchNorm(channels)
        self.maxpool = nn.MaxPool2d(3, 2, 1) if start.pool else nn.Identity()
        before = channels
        self.stages: list[str] = []
        for stage, blocks in enumerate(DEPTHS[depth][:stages]):
            layer = nn.Sequential()
            for block in range(blocks):
                layer.append(kind(before, channels << stage, 2 if stage and not block else 1))
                before = (channels << stage) * kind.expansion
            self.stages.append(f"layer{stage + 1}")
            self.add_module(self.stages[-1], layer)
        self.width = before
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def stem(self) -> Sequence[nn.Module]:
        """The first convolution."""
        return [self.conv1, self.bn1]

    def layers(self) -> Sequence[nn.Module]:
        """The residual blocks, from the first stage on."""
        return [block for stage in self.stages for block in self.get_submodule(stage).children()]

    def grid(self, images: Tensor) -> Tensor:
        """The last feature map of images (rows, 3, height, width): (rows, width, cells down, cells across)."""
        x = self.maxpool(self.bn1(self.conv1(self.normalise(images))).relu())
        for stage in self.stages:
            x = self.get_submodule(stage)(x)
        out: Tensor = x
        return out

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """A vector for each image: (rows, width), or (rows, images, width)."""
        images = inputs["image"]
        return self.grid(images.flatten(0, -4)).mean((-2, -1)).view(*images.shape[:-3], self.width)


@dataclass(frozen=True)
class ResNet18(Model):
    """ResNet-18, whose first layers suit images of medium size (128x128 pixels), CIFAR's (32x32) or ImageNet's
    (224x224).
    """

    version: ClassVar[int] = 1

    start: Literal["medium", "cifar", "imagenet"] = "medium"
    """The first convolution: cifar for images of 32 pixels, medium for 128, imagenet for 224."""
    channels: Annotated[int, Between(1)] = 64
    """The channels of the first stage; each further stage doubles them. A slim network has 20."""

    def encoder(self, inputs: Inputs) -> Encoder:
        """A network for images.

        >>> ResNet18(channels=20).encoder(Inputs((3, 32, 32))).width
        160
        """
        check_images("a ResNet", inputs)
        return ResNetEncoder(18, STARTS[self.start], self.channels)

    def wants(self) -> Wants:
        """Images of the size for which the first layers are made."""
        return Wants(side={"medium": 128, "cifar": 32, "imagenet": 224}[self.start])


@dataclass(frozen=True)
class TinyResNet18(ResNet18):
    """ResNet-18 with a quarter of the channels, for a CPU."""

    channels: Annotated[int, Between(1)] = 16

    def wants(self) -> Wants:
        """Small images."""
        return Wants(side=32)


def check_images(name: str, inputs: Inputs, least: int = 1) -> tuple[int, int]:
    """The height and width of a benchmark's images; raises a UserError if it has none, or too small ones."""
    if inputs.image is None:
        raise UserError(f"{name} needs images, but this benchmark has none: choose another model")
    channels, height, width = inputs.image
    if channels not in (1, 3):
        raise UserError(f"{name} needs images of 3 channels or 1, but these have {channels}: choose another model")
    if min(height, width) < least:
        raise UserError(f"{name} needs images of at least {least} x {least} pixels, but these have {height} x {width}")
    return height, width


def published(depth: int, weights: Path, stages: int = 3) -> ResNetEncoder:
    """A frozen network up to a stage, with published weights of torchvision from a file, for features."""
    state = read_weights(weights)
    later = ("fc.", *(f"layer{stage}." for stage in range(stages + 1, 5)))
    state = {name: tensor for name, tensor in state.items() if not name.startswith(later)}
    with torch.device("meta"):
        encoder = ResNetEncoder(depth, stages=stages)
    own = encoder.state_dict()
    for name in own.keys() - state.keys():
        if name.endswith("num_batches_tracked"):  # files from before PyTorch 0.4.1 have none
            state[name] = torch.zeros((), dtype=torch.int64)
    if missing := sorted(own.keys() - state.keys()):
        raise UserError(f"{weights} lacks {missing[0]}, which a ResNet-{depth} has: give the weights of that network")
    if unexpected := sorted(state.keys() - own.keys()):
        raise UserError(
            f"{weights} has {unexpected[0]}, which a ResNet-{depth} does not have: give that network's weights"
        )
    for name, tensor in state.items():
        if tensor.shape != own[name].shape:
            found, needed = tuple(tensor.shape), tuple(own[name].shape)
            raise UserError(f"{weights}: {name} is {found}, and a ResNet-{depth} needs {needed}: give its weights")
    encoder.load_state_dict(state, assign=True)
    encoder.normalise = Normalise()  # files do not contain its buffers
    return encoder.requires_grad_(False).eval()


def read_weights(path: Path) -> dict[str, Tensor]:
    """The weights by name in a state dict or safetensors file; nothing in it is executed."""
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            return load_file(path)
        state = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise UserError(f"the file {path} does not exist: give the file of the weights") from None
    except Exception as error:  # readers fail in many ways on files of other kinds
        reason = str(error).splitlines()[0][:100] if str(error) else type(error).__name__
        raise UserError(f"{path} is not a file of weights ({reason}): give a state dict or safetensors") from None
    if not isinstance(state, Mapping) or not all(isinstance(value, Tensor) for value in state.values()):
        raise UserError(f"{path} holds no weights by name: give a state dict, as torchvision publishes it")
    return dict(state)
