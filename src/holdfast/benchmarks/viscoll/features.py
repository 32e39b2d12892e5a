"""The regions that phrases are about: read from feature files, or computed.

`datasets/region_features.py` reads the official files. For synthetic pictures, a small network
(`models/region_network.py`) computes the content of each annotated box; the first region is the whole image.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from holdfast.benchmarks.source import Source, open_source, place_of
from holdfast.benchmarks.viscoll.build import OFFICIAL, captioned, of_world
from holdfast.data import regions
from holdfast.data.images import decode
from holdfast.data.regions import BOXES, ImageRegions, Regions, grid_cells
from holdfast.data.threads import threads
from holdfast.datasets.base import Reading
from holdfast.datasets.region_features import check_any, read_rows
from holdfast.errors import UserError
from holdfast.models.region_network import WEIGHTS, crops, trained_region_network
from holdfast.progress import progress_bar
from holdfast.types import Example

VERSION = 1
FILES = {
    "coco": (
        ("coco_train", "coco_val"),
        ("trainval_36",),
        ("train2014_obj36", "val2014_obj36"),
        ("trainval",),
        ("coco_regions",),
        ("regions",),
    ),
    "flickr": (("flickr_train", "flickr_val", "flickr_test"), ("flickr_regions",), ("regions",)),
    "flickr8k": (("regions",),),
}
"""The splits of `region_features` that together have all images of a dataset; the first existing ones are read."""
CELLS = 3
"""The number of cells in a row of the grid that takes the place of boxes."""
_BATCH = 256
_NO_FEATURES = (
    "the small extractor knows only synthetic pictures: for photographs, specify the folder of their region features "
    "(--set benchmark.features=DIR, or a folder in --data)"
)


def read_regions(
    dataset: str,
    *,
    data: str = "",
    scale: str = "tiny",
    features: str = "",
    boxes: int = BOXES,
    skip_bad: int = 0,
    images: Collection[str] | None = None,
) -> Regions:
    """The regions of all images of `coco` or `flickr`, from the cache if they are there.

    `features` is the folder of the official region features; without it they are computed, which is possible only for
    synthetic pictures. `data` and `scale` are those of the captions; an image has at most `boxes` boxes. With
    `images`, only theirs are read, and no captions.
    """
    made_by = [__name__, regions.__name__]
    if images is not None:
        if not features:
            raise UserError("released phrases need the region features of their images (--set benchmark.features=DIR)")
        files, wanted = open_source("region_features", data=features), sorted(images)
        where = place_of("regions", f"regions of the released {dataset}", [files], boxes, wanted, modules=made_by)
        return _open(where, dataset, read_rows(files.folder, FILES[dataset], set(wanted), None, of=dataset, most=boxes))
    source = captioned(dataset, data=data, scale=scale, skip_bad=skip_bad)
    if features:
        files = open_source("region_features", data=features)
        where = place_of("regions", f"regions of {dataset}", [source, files], boxes, modules=made_by)
        return _open(where, dataset, _read(files, source, dataset, boxes))
    if not of_world(source):
        raise UserError(_NO_FEATURES)
    weights = hashlib.sha256(WEIGHTS.read_bytes()).hexdigest()
    where = place_of("regions", f"computed regions of {dataset}", [source], boxes, weights, modules=made_by)
    return _open(where, dataset, _compute(source, dataset, boxes))


def check_features(dataset: str, data: str, features: str) -> None:
    """Raise a UserError if there are no region features of the photographs of `coco` or `flickr`."""
    if of_world(captioned(dataset, data=data)):
        return
    if not features:
        raise UserError(_NO_FEATURES)
    check_any(open_source("region_features", data=features).folder, FILES[dataset], of=dataset)


def _open(folder: Path, dataset: str, rows: Iterator[ImageRegions]) -> Regions:
    with progress_bar(f"regions of {dataset}"):
        return regions.open_or_write(folder, rows)


def annotated_boxes(source: Source, dataset: str) -> Iterator[tuple[Example, NDArray[np.float32]]]:
    """Each image, as an example that shows it, with the corners of its annotated boxes as shares of its sides.

    Flickr8k has no boxes: an image has the cells of a grid instead.
    """
    for split in OFFICIAL[dataset].values():
        if dataset == "flickr8k":
            for example in source.examples(split, Reading(skip=source.skip_bad)):
                yield example, grid_cells(CELLS, CELLS)
            continue
        if dataset == "coco":
            for example in source.examples(split, Reading(skip=source.skip_bad)):
                corners = np.array(example.extra["boxes"], np.float32).reshape(-1, 4)
                corners[:, 2:] += corners[:, :2]
                yield example, _shares(corners, example)
            continue
        for example, boxes in _by_image(source.examples(split, Reading(skip=source.skip_bad))):
            corners = np.array(list(boxes), np.float32).reshape(-1, 4)
            corners[:, 2:] += 1  # the last pixel is within the box
            yield example, _shares(corners, example)


def _by_image(examples: Iterable[Example]) -> Iterator[tuple[Example, dict[tuple[float, ...], None]]]:
    """One example per image, with all boxes that its captions name; the captions of an image are adjacent."""
    shown: Example | None = None
    boxes: dict[tuple[float, ...], None] = {}
    for example in examples:
        if shown is None or example.extra["image_id"] != shown.extra["image_id"]:
            if shown is not None:
                yield shown, boxes
            shown, boxes = example, {}
        boxes |= dict.fromkeys(box for phrase in example.extra["phrases"] for box in phrase["boxes"])
    if shown is not None:
        yield shown, boxes


def _shares(corners: NDArray[np.float32], example: Example) -> NDArray[np.float32]:
    width, height = example.extra["width"], example.extra["height"]
    shares: NDArray[np.float32] = (corners / np.array([width, height, width, height], np.float32)).clip(0, 1)
    return shares[(shares[:, 2:] > shares[:, :2]).all(1)]


def _image_id(example: Example) -> str:
    return str(example.extra.get("image_id", example.id))


def _compute(source: Source, dataset: str, most: int) -> Iterator[ImageRegions]:
    """Compute the whole image first, then its boxes."""
    network = trained_region_network()
    ids: list[str] = []
    shown: list[NDArray[np.uint8]] = []
    where: list[NDArray[np.float32]] = []

    def rows() -> Iterator[ImageRegions]:
        with threads(1), torch.inference_mode():  # so that the stored result is the same for all runs
            found = network(torch.from_numpy(np.concatenate(shown)), torch.from_numpy(np.concatenate(where))).numpy()
        parts = np.split(found, np.cumsum([len(each) for each in where])[:-1])
        yield from zip(ids, parts, where, strict=True)

    for example, boxes in annotated_boxes(source, dataset):
        corners = np.concatenate([np.array([[0, 0, 1, 1]], np.float32), boxes])[:most]
        path = example.images[0]
        ids.append(_image_id(example))
        shown.append(crops(Image.fromarray(decode(path, None)), corners))
        where.append(corners)
        if len(ids) == _BATCH:
            yield from rows()
            ids, shown, where = [], [], []
    if ids:
        yield from rows()


def _read(files: Source, source: Source, dataset: str, most: int) -> Iterator[ImageRegions]:
    """Read the regions of the files, for the images that the captions are about."""
    sides = {
        _image_id(e): (e.extra.get("width", 1), e.extra.get("height", 1)) for e, _ in annotated_boxes(source, dataset)
    }
    yield from read_rows(files.folder, FILES[dataset], sides, sides.__getitem__, of=dataset, most=most)
