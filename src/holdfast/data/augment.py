"""Augmentation of a batch of images, on the device that holds it; each image is changed independently.

The random choices are made on the host, from torch's global generator: a seed means the same changes on every device,
and the host knows which images an operation affects without waiting for the device.

RandAugment is Cubuk et al. 2020 with two of fourteen operations, and random erasing is Zhong et al. 2020; CFST uses
both to train its ViT. Colour operations give the same results as Pillow. Geometric operations are combined into one
affine map per image, applied once and after the colours, so that nothing is interpolated twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional

from holdfast.errors import UserError, nearest
from holdfast.types import Batch, Part

VERSION = 1
FILL = (124, 116, 104)
"""ImageNet's mean colour: it fills the area from which an image was moved away or erased."""
STRENGTH = 0.9
"""Magnitude 9 of 10."""
OPERATIONS = 2
ERASED_SHARE = 0.25
ERASED_AREA = (0.02, 1 / 3)
ERASED_ASPECT = (0.3, 1 / 0.3)


def augmented(batch: Batch, kind: str) -> Batch:
    """The batch with its images changed; parts without images are left unchanged."""
    return Batch(batch.ids, tuple(_augmented_part(part, kind) for part in batch.parts))


def _augmented_part(part: Part, kind: str) -> Part:
    if kind == "none" or "image" not in part.inputs:
        return part
    if "image_size" in part.inputs:  # a changed image would no longer lie in its corner
        raise UserError(
            f"task {part.task!r} has padded images, which cannot be augmented: prepare them at one size, "
            "or train with augment=none"
        )
    return replace(part, inputs={**part.inputs, "image": augment(part.inputs["image"], kind)})


def augment(images: Tensor, kind: str) -> Tensor:
    """Change images in [0, 255], uint8 (rows, [images,] channels, height, width), at random.

    `flip` mirrors half of them; `shift` moves them by up to an eighth; `crop` does both; `randaugment` applies two
    random operations to each and erases a rectangle from every fourth.

    >>> images = torch.arange(6, dtype=torch.uint8).view(1, 1, 1, 6).repeat(64, 1, 1, 1)
    >>> sorted({tuple(row) for row in augment(images, "flip").flatten(1).tolist()})
    [(0, 1, 2, 3, 4, 5), (5, 4, 3, 2, 1, 0)]
    """
    if kind not in _KINDS:
        raise UserError(f"unknown augmentation {kind!r}: {nearest(kind, _KINDS)}")
    flat = images.flatten(0, -4)
    return _KINDS[kind](flat).view(images.shape)


def _flip(images: Tensor) -> Tensor:
    mirrored = _there(torch.rand(len(images)) < 0.5, images)
    return torch.where(mirrored[:, None, None, None], images.flip(-1), images)


def _shift(images: Tensor) -> Tensor:
    rows, _, height, width = images.shape
    tall, wide = height // 8, width // 8
    padded = functional.pad(images, (wide, wide, tall, tall))
    down = torch.randint(2 * tall + 1, (rows, 1)) + torch.arange(height)
    right = torch.randint(2 * wide + 1, (rows, 1)) + torch.arange(width)
    row = torch.arange(rows)[:, None, None, None]
    channel = torch.arange(images.shape[1])[None, :, None, None]
    places = (row, channel, down[:, None, :, None], right[:, None, None, :])
    return padded[tuple(_there(place, images) for place in places)]


def _randaugment(images: Tensor) -> Tensor:
    rows, channels, height, width = images.shape
    if channels != 3:
        raise UserError(f"randaugment changes colours, but these images have {channels} channels, not 3: choose `crop`")
    images = images.clone()
    chosen = torch.randint(1 + len(_COLOURS) + len(_PLACES), (OPERATIONS, rows))  # the last one changes nothing
    signs = torch.randint(2, (OPERATIONS, rows)) * 2.0 - 1
    maps = torch.eye(3).repeat(rows, 1, 1)
    for operation, sign in zip(chosen, signs, strict=True):
        for number, change in enumerate(_COLOURS):
            taken = (operation == number).nonzero().squeeze(1)
            if len(taken):
                index = _there(taken, images)
                images[index] = change(images[index], _there(STRENGTH * sign[taken], images))
        for number, move in enumerate(_PLACES, len(_COLOURS)):
            taken = (operation == number).nonzero().squeeze(1)
            maps[taken] = maps[taken] @ move(STRENGTH * sign[taken], height / width)
    moved = (chosen >= len(_COLOURS)).logical_and(chosen < len(_COLOURS) + len(_PLACES)).any(0).nonzero().squeeze(1)
    if len(moved):
        index = _there(moved, images)
        images[index] = transformed(images[index], _there(maps[moved, :2], images))
    return erased(images)


# Colours: images, and a signed strength for each. An operation without a direction ignores the sign.


def autocontrast(images: Tensor, strength: Tensor | None = None) -> Tensor:
    """Stretch each channel over [0, 255]."""
    x = images.to(torch.float64)  # like Pillow's floats: a product that should be whole must not fall below it
    low, high = x.amin((-2, -1), keepdim=True), x.amax((-2, -1), keepdim=True)
    scale = 255 / (high - low).clamp(min=1)
    return torch.where(high > low, (x * scale - low * scale).clamp(0, 255), x).to(torch.uint8)


def equalize(images: Tensor, strength: Tensor | None = None) -> Tensor:
    """Equalise the histogram of each channel."""
    values = images.flatten(-2).flatten(0, 1).long()
    counts = values.new_zeros(len(values), 256).scatter_add_(1, values, torch.ones_like(values))
    last = counts.gather(1, values.amax(1, keepdim=True))
    step = (values.shape[1] - last) // 255
    below = counts.cumsum(1) - counts
    table = torch.where(step > 0, ((step // 2 + below) // step.clamp(min=1)).clamp(max=255), torch.arange(256).to(step))
    return table.gather(1, values).to(torch.uint8).view(images.shape)


def solarize(images: Tensor, strength: Tensor) -> Tensor:
    """Invert bright values: at full strength, all of them."""
    threshold = (256 * (1 - strength.abs())).round()[:, None, None, None]
    return torch.where(images < threshold, images, 255 - images)


def posterize(images: Tensor, strength: Tensor) -> Tensor:
    """Keep the highest bits of each value: at full strength, four of them."""
    lost = (4 * strength.abs()).round().to(torch.uint8)[:, None, None, None]
    return (images >> lost) << lost


def color(images: Tensor, strength: Tensor) -> Tensor:
    """Blend towards grey, or away from it."""
    return _blend(_grey(images), images, strength)


def contrast(images: Tensor, strength: Tensor) -> Tensor:
    """Blend towards the image's mean grey, or away from it."""
    return _blend((_grey(images).mean((-2, -1), keepdim=True) + 0.5).floor(), images, strength)


def brightness(images: Tensor, strength: Tensor) -> Tensor:
    """Blend towards black, or away from it."""
    return _blend(torch.zeros_like(images, dtype=torch.float32), images, strength)


def sharpness(images: Tensor, strength: Tensor) -> Tensor:
    """Blend towards a smoothed image, or away from it; the border is unchanged, because it lacks neighbours."""
    x = images.float()
    if min(x.shape[-2:]) < 3:
        return images
    kernel = x.new_ones(1, 1, 3, 3)
    kernel[..., 1, 1] = 5
    smooth = x.clone()
    inner = functional.conv2d(x.flatten(0, 1).unsqueeze(1), kernel)
    smooth[..., 1:-1, 1:-1] = (inner / 13 + 0.5).floor().view(smooth[..., 1:-1, 1:-1].shape)
    return _blend(smooth, images, strength)


def _grey(images: Tensor) -> Tensor:
    red, green, blue = images.to(torch.int32).unbind(1)
    return ((19595 * red + 38470 * green + 7471 * blue + 32768) >> 16).unsqueeze(1).float()


def _blend(start: Tensor, images: Tensor, strength: Tensor) -> Tensor:
    # Pillow's enhancers: factor 1 is the image itself, and 0 the image without the property.
    factor = 1 + 0.9 * strength[:, None, None, None]
    return (start + factor * (images.float() - start)).clamp(0, 255).to(torch.uint8)


# Geometry: the point from which an output's point is read, as a 3 x 3 map for each strength. Coordinates run from -1 to
# 1 along each side, and `tall` is the height as a share of the width, so that a rotation remains one if the sides
# differ.


def rotate(strength: Tensor, tall: float) -> Tensor:
    """Rotate by up to 30 degrees."""
    angle = torch.deg2rad(30 * strength)
    maps = _identities(strength)
    maps[:, 0, 0] = maps[:, 1, 1] = angle.cos()
    maps[:, 0, 1], maps[:, 1, 0] = -angle.sin() * tall, angle.sin() / tall
    return maps


def shear_x(strength: Tensor, tall: float) -> Tensor:
    """Shift the rows against each other, by up to 0.3 of their distance."""
    maps = _identities(strength)
    maps[:, 0, 1] = 0.3 * strength * tall
    return maps


def shear_y(strength: Tensor, tall: float) -> Tensor:
    """Shift the columns against each other, by up to 0.3 of their distance."""
    maps = _identities(strength)
    maps[:, 1, 0] = 0.3 * strength / tall
    return maps


def translate_x(strength: Tensor, tall: float) -> Tensor:
    """Shift by up to 0.45 of the width."""
    maps = _identities(strength)
    maps[:, 0, 2] = 0.9 * strength  # of half the width
    return maps


def translate_y(strength: Tensor, tall: float) -> Tensor:
    """Shift by up to 0.45 of the height."""
    maps = _identities(strength)
    maps[:, 1, 2] = 0.9 * strength
    return maps


def _identities(strength: Tensor) -> Tensor:
    return torch.eye(3).repeat(len(strength), 1, 1)


def transformed(images: Tensor, maps: Tensor) -> Tensor:
    """Each image read through its own affine map (rows, 2, 3), bilinearly; `FILL` for points outside it."""
    fill = _fill(images).float()
    grid = functional.affine_grid(maps, list(images.shape), align_corners=False)
    moved = functional.grid_sample(images.float() - fill, grid, align_corners=False) + fill
    return moved.round().clamp(0, 255).to(torch.uint8)


def erased(images: Tensor) -> Tensor:
    """Every fourth image with a rectangle of random size, shape and position filled in."""
    rows, _, height, width = images.shape
    area = torch.empty(rows, 1).uniform_(*ERASED_AREA) * height * width
    aspect = torch.empty(rows, 1).uniform_(math.log(ERASED_ASPECT[0]), math.log(ERASED_ASPECT[1])).exp()
    tall = (area * aspect).sqrt().round().clamp(1, height)
    wide = (area / aspect).sqrt().round().clamp(1, width)
    top, left = ((torch.rand(rows, 1) * (room + 1)).floor() for room in (height - tall, width - wide))
    y, x = torch.arange(height), torch.arange(width)
    across = ((y >= top) & (y < top + tall))[:, :, None] & ((x >= left) & (x < left + wide))[:, None, :]
    across &= (torch.rand(rows) < ERASED_SHARE)[:, None, None]
    return torch.where(_there(across, images).unsqueeze(1), _fill(images), images)


def _fill(images: Tensor) -> Tensor:
    return _there(torch.tensor(FILL, dtype=torch.uint8)[:, None, None], images)


def _there(drawn: Tensor, images: Tensor) -> Tensor:
    return drawn.to(images.device, non_blocking=True)  # without waiting for work still queued on the device


_KINDS: dict[str, Callable[[Tensor], Tensor]] = {
    "none": lambda images: images,
    "flip": _flip,
    "shift": _shift,
    "crop": lambda images: _flip(_shift(images)),
    "randaugment": _randaugment,
}
_COLOURS: tuple[Callable[[Tensor, Tensor], Tensor], ...] = (
    *(autocontrast, equalize, solarize, posterize),
    *(color, contrast, brightness, sharpness),
)
_PLACES: tuple[Callable[[Tensor, float], Tensor], ...] = (rotate, shear_x, shear_y, translate_x, translate_y)
