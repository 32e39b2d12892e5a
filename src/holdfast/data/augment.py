"""Augmentation of a batch of images, on the device where it is."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from holdfast.types import Batch


def augmented(batch: Batch, kind: str) -> Batch:
    """The batch with its images changed; each image is changed in its own way."""
    parts = tuple(replace(p, inputs={**p.inputs, "image": augment(p.inputs["image"], kind)}) for p in batch.parts)
    return Batch(batch.ids, parts)


def augment(images: Tensor, kind: str) -> Tensor:
    """Images (rows, channels, height, width) in [0, 255], changed at random by torch's generator for the device."""
    rows = len(images)
    mirrored = torch.rand(rows, device=images.device) < 0.5
    return torch.where(mirrored[:, None, None, None], images.flip(-1), images)
