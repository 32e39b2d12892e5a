"""The pictures, and the tasks on them."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from holdfast.tasks import Classify
from holdfast.types import Array, Example

SIDE = 12
VERSION = 1
"""Raised when the pictures change: a different version is a different benchmark."""


@lru_cache(maxsize=6)
def examples(classes: int, per_class: int, noise: float, split: str) -> tuple[Example, ...]:
    """Pictures of each class in turn: a smooth random field, shifted by up to two pixels, faded, with added noise.

    >>> first, *_ = examples(classes=2, per_class=1, noise=0.5, split="test")
    >>> first.id, first.target, first.images[0].shape
    ('test-0-0', 0, (12, 12, 1))
    """
    splits = ("train", "validation", "test")
    grid, found = np.arange(SIDE), []
    for label in range(classes):
        field = _field(np.random.default_rng([VERSION, label]), grid)
        random = np.random.default_rng([VERSION, label, 1 + splits.index(split)])
        for number in range(per_class):
            down, right = random.integers(-2, 3, size=2)
            strength = random.uniform(0.5, 1.0)
            shifted = np.roll(field, (down, right), axis=(0, 1))
            noisy = strength * shifted + noise * random.standard_normal((SIDE, SIDE))
            pixels = np.clip(127.5 + 50 * noisy, 0, 255).astype(np.uint8)
            found.append(Example(f"{split}-{label}-{number}", label, (pixels[..., None],)))
    return tuple(found)


def _field(random: np.random.Generator, grid: Array) -> Array:
    """A sum of a few low waves over the plane, of unit variance."""
    field = np.zeros((SIDE, SIDE))
    for _ in range(4):
        down, right = random.integers(0, 4, size=2)
        phase = random.uniform(0, 2 * np.pi)
        angle = 2 * np.pi * (down * grid[:, None] + right * grid[None, :]) / SIDE + phase
        field += random.standard_normal() * np.cos(angle)
    unit: Array = (field - field.mean()) / field.std()
    return unit


def stage_name(number: int) -> str:
    """The name of a stage and of its evaluation sets; in the task-incremental setting, also of its task and head."""
    return f"stage-{number + 1}"


def shared_task(classes: int) -> Classify:
    """All classes with one head: class-incremental."""
    return Classify("patterns", head="patterns", outputs=classes, chance=1 / classes)


def stage_task(number: int, classes: int) -> Classify:
    """The classes of one stage with their own head: task-incremental."""
    return Classify(stage_name(number), head=stage_name(number), outputs=classes, chance=1 / classes)
