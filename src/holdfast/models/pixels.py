"""How a folder in Hugging Face's format prepares images: size and normalisation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from holdfast.errors import UserError
from holdfast.models import weights


class PreparedPixels(nn.Module):
    """Images of bytes as a model of the library takes them."""

    mean: Tensor
    scale: Tensor

    def __init__(self, folder: Path, side: int | None) -> None:
        super().__init__()
        found = processor_of(folder)
        self.side = side
        """The side to which images are resized; None to leave them as they are."""
        factor = 255 * found.get("rescale_factor", 1 / 255) if found.get("do_rescale", True) else 255.0
        plain = not found.get("do_normalize", True)
        mean = torch.tensor([0.0] * 3 if plain else found.get("image_mean", [0.5] * 3))
        deviation = torch.tensor([1.0] * 3 if plain else found.get("image_std", [0.5] * 3))
        self.register_buffer("mean", (mean / factor).view(-1, 1, 1), persistent=False)
        self.register_buffer("scale", (factor / deviation).view(-1, 1, 1), persistent=False)

    def forward(self, image: Tensor) -> Tensor:
        """Resize and normalise pixels in [0, 1] as the processor does."""
        image = image.expand(-1, len(self.mean), -1, -1)
        if self.side is not None and image.shape[-2:] != (self.side, self.side):
            image = functional.interpolate(image, (self.side, self.side), mode="bicubic", antialias=True).clamp(0, 1)
        return (image - self.mean) * self.scale


def side_of(folder: Path, config: Mapping[str, Any]) -> int | None:
    """The side of a model's images; None for a model without images."""
    own, found = config.get("vision_config") or config, processor_of(folder)
    sizes = [found.get("crop_size"), found.get("size"), own.get("image_size")]
    if "num_attention_heads" in own and not str(own.get("model_type")).startswith("dino"):
        sizes.reverse()  # its positions are for images of one size
    size = next((each for each in sizes if each is not None), None)
    if isinstance(size, Mapping):
        size = size.get("height") or size.get("shortest_edge")
    if isinstance(size, list):
        size = size[0]
    return size if isinstance(size, int) else None


def processor_of(folder: Path) -> Mapping[str, Any]:
    """How images are prepared, according to the folder."""
    for name in (weights.PROCESSOR, "processor_config.json"):
        if (folder / name).is_file():
            found = weights.read_json(folder / name)
            inner = found.get("image_processor", found)
            if isinstance(inner, Mapping) and ("image_mean" in inner or "size" in inner):
                for key in ("image_mean", "image_std"):
                    value = inner.get(key, [])
                    if not isinstance(value, list) or not all(isinstance(each, int | float) for each in value):
                        raise UserError(f"{folder / name}: its {key} is {value!r:.40}, not a list of numbers")
                return inner
    return {}
