"""Retrieval: how often a right answer to a query is among its K nearest items.

Source: Karpathy and Fei-Fei 2015, as used since: an image's texts all belong to it, and a text has one image.
Equation: R@K = share of queries whose best right answer has fewer than K wrong ones at least as near. Ties count
against the query, so that vectors that are all alike find nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.errors import UserError

AT = (1, 5, 10)
_ROWS = 512
"""The images that are compared with all texts at once."""


def recalls(images: ArrayLike, texts: ArrayLike, at: Sequence[int] = AT) -> Mapping[str, float]:
    """R@K of both directions, for vectors of images (images, width) and of their texts (images, texts, width).

    >>> recalls(np.eye(3), np.eye(3)[:, None], at=[1])
    {'text R@1': 1.0, 'image R@1': 1.0}
    """
    by_image, by_text = ranks(images, texts)
    found = {f"text R@{k}": float((by_image < k).mean()) for k in at}
    return found | {f"image R@{k}": float((by_text < k).mean()) for k in at}


def ranks(images: ArrayLike, texts: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each image, how many texts of others are as near as its nearest; for each text, how many other images are."""
    seen, read = (np.asarray(each) for each in (images, texts))
    if seen.ndim != 2 or read.ndim != 3 or len(seen) != len(read) or seen.shape[1] != read.shape[2] or not len(seen):
        raise UserError(
            f"images of shape {seen.shape} and texts of shape {read.shape}: give (images, width) and (images, texts, "
            "width), at least one"
        )
    count, each = read.shape[:2]
    flat = read.reshape(count * each, -1)
    own = np.einsum("iw,itw->it", seen, read)
    by_image, by_text = np.zeros(count, np.int64), np.zeros(count * each, np.int64)
    for start, rows, near in _compared(seen, flat):
        places = np.arange(start, start + rows)
        mine = np.arange(count * each) // each == places[:, None]
        own[places] = near[mine].reshape(rows, each)  # the same sums, so that ties are ties
    best = own.max(1)
    for start, rows, near in _compared(seen, flat):
        places = np.arange(start, start + rows)
        others = np.arange(count * each) // each != places[:, None]
        by_image[places] = ((near >= best[places, None]) & others).sum(1)
        by_text += ((near >= own.reshape(-1)) & others).sum(0)
    return by_image, by_text


def _compared(images: NDArray[Any], texts: NDArray[Any]) -> Iterator[tuple[int, int, NDArray[Any]]]:
    for start in range(0, len(images), _ROWS):
        some = images[start : start + _ROWS]
        yield start, len(some), some @ texts.T
