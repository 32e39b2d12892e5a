"""Regions for models that take boxes: a detector's output, from files, or the cells of a grid over each picture.

A grid needs no detector, and at the size of the synthetic pictures its cells are about as large as the things in them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from holdfast.benchmarks.climb.paper import KNOWN
from holdfast.benchmarks.climb.stream import PARTS
from holdfast.benchmarks.climb.tasks import Place, listing, official, picture_names
from holdfast.benchmarks.source import features_within, open_source, place_of
from holdfast.benchmarks.splits import PreparedSplit
from holdfast.data import regions
from holdfast.data.images import header_size
from holdfast.data.table import Column, Shared
from holdfast.datasets.region_features import check_any, read_rows
from holdfast.errors import UserError
from holdfast.progress import progress_bar
from holdfast.types import Array, Inputs, Wants

VERSION = 1
FILES = {
    "vqav2": (
        ("train2014_obj36", "val2014_obj36"),
        ("trainval_36",),
        ("coco_train", "coco_val"),
        ("trainval",),
        ("uniter_coco_train2014", "uniter_coco_val2014"),
        ("coco_regions",),
        ("regions",),
    ),
    "nlvr2": (
        ("nlvr2_train_obj36", "nlvr2_valid_obj36", "nlvr2_test_obj36"),
        ("uniter_nlvr2_train", "uniter_nlvr2_dev", "uniter_nlvr2_test"),
        ("nlvr2_regions",),
        ("regions",),
    ),
    "snli-ve": (
        ("flickr_train", "flickr_val", "flickr_test"),
        ("uniter_flickr30k",),
        ("flickr_regions",),
        ("regions",),
    ),
    "vcr": (("uniter_vcr_train", "uniter_vcr_val"), ("vcr_regions",), ("regions",)),
}
"""The splits of `region_features` that together have all pictures of a task; the first existing ones are read. NLVR2
has only LXMERT's, so these come first: a model should see the output of a single detector."""
CELLS, PIXELS = 4, 8
"""The number of cells along each side of a picture, and of pixels along each side of a cell."""
WIDTH = 3 * PIXELS * PIXELS
UNITER_STILL = re.compile(r"(train|val|test)-\d+")
_CHUNK = 1024


def sight(names: Collection[str], wants: Wants, scale: str, features: str, data: str) -> str:
    """The folder of region features for a model that sees regions; empty: there is none, and it sees a grid.

    Raises a UserError if a model cannot be given its inputs, before any data is read.
    """
    if wants.sees == "regions":
        features = features_within(features, data)
    if features and wants.sees != "regions":
        raise UserError(
            "benchmark.features is for models that take regions: leave it out, or choose another, such as uniter-tiny"
        )
    if wants.sees == "regions" and not features and scale == "paper":
        raise UserError(
            "at the scale 'paper' pictures stay in files, and no regions are cut from them: specify the folder of "
            "their region features (--set benchmark.features=DIR, or a folder in --data), or choose the scale 'large'"
        )
    if features:
        source = open_source("region_features", data=features)
        for name in names:
            check_any(source.folder, FILES[KNOWN[name].model], of=KNOWN[name].model)
    return features


def with_regions(name: str, splits: Sequence[PreparedSplit], place: Place, features: str) -> list[PreparedSplit]:
    """The parts of a task with regions instead of pictures: from the files in the folder `features`, or from a grid."""
    return _with_features(name, splits, place, features) if features else [with_grid(split) for split in splits]


def region_inputs(inputs: Inputs, splits: Sequence[PreparedSplit]) -> Inputs:
    """The inputs with the regions of these splits instead of pictures."""
    shapes = {split.table.task: _regions(split).values.shape[1:] for split in splits}
    (first, (_, width)), *others = shapes.items()
    for name, (_, found) in others:
        if found != width:
            raise UserError(
                f"the features of {first} are {width} wide, those of {name} {found}: use the files of one detector, or "
                "learn the two in separate runs"
            )
    return replace(inputs, image=None, padded=False, regions=(max(boxes for boxes, _ in shapes.values()), width))


def with_grid(split: PreparedSplit) -> PreparedSplit:
    """The same examples with the cells of a grid instead of pictures."""
    inputs = dict(split.table.inputs)
    column = inputs.pop("image")
    if isinstance(column, Shared):
        values, index = column.values, column.index
    else:
        assert isinstance(column, Tensor), "a grid is cut from decoded pictures"
        values, index = column, torch.arange(len(column))
    found: dict[str, Column] = {"regions": Shared(cells(values), index)}
    for name, value in (("boxes", boxes()), ("region_count", torch.tensor(CELLS * CELLS))):
        found[name] = Shared(value.unsqueeze(0), torch.zeros_like(index))
    return replace(split, table=replace(split.table, inputs=inputs | found))


def cells(pixels: Tensor) -> Tensor:
    """Cut pictures (n, 3, height, width) of bytes into the cells of grids, (n, cells, width) from -1 to 1, row by row.

    >>> corner = torch.zeros(1, 3, 32, 32, dtype=torch.uint8)
    >>> corner[:, :, :8, 8:16] = 255
    >>> cells(corner)[0].mean(-1).tolist()[:3]
    [-1.0, 1.0, -1.0]
    """
    side = CELLS * PIXELS
    found = []
    for start in range(0, len(pixels), _CHUNK):
        chunk = pixels[start : start + _CHUNK].float()
        small = functional.interpolate(chunk, size=(side, side), mode="area") / 127.5 - 1
        cut = small.unfold(2, PIXELS, PIXELS).unfold(3, PIXELS, PIXELS)  # n, 3, down, across, pixels, pixels
        found.append(cut.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2).half())
    return torch.cat(found)


def boxes() -> Tensor:
    """The corners of the cells as shares of the sides.

    >>> boxes()[1].tolist()
    [0.25, 0.0, 0.5, 0.25]
    """
    at = torch.arange(CELLS) / CELLS
    top, left = torch.meshgrid(at, at, indexing="ij")
    return torch.stack([left, top, left + 1 / CELLS, top + 1 / CELLS], dim=-1).flatten(0, 1)


def _with_features(name: str, splits: Sequence[PreparedSplit], place: Place, features: str) -> list[PreparedSplit]:
    """Map only each part's own stretch of the features, which are stored in the order of the parts."""
    images = KNOWN[name].images
    name = KNOWN[name].model
    files, source = open_source("region_features", data=features), place.source(name)
    lists = [listing(name, part, place) for part in PARTS]
    shown = {example: names for each in lists for example, names in zip(each.ids, each.pictures, strict=True)}
    pictures = [[shown[example] for example in split.ids.tolist()] for split in splits]
    wanted = dict.fromkeys(picture for part in pictures for names in part for picture in names)
    where = place_of(
        "regions", f"regions of {name}", [source, files], list(wanted), modules=[__name__, regions.__name__]
    )
    with progress_bar(f"regions of {name}"):
        known_as = _ids_of_stills(place) if name == "vcr" else None
        rows = read_rows(files.folder, FILES[name], wanted, _sides(name, place), of=name, known_as=known_as)
        found = regions.open_or_write(where, rows, order=wanted)
    made = []
    for split, part in zip(splits, pictures, strict=True):
        own = found.stretch(picture for names in part for picture in names)
        columns = own.columns(part if images > 1 else [only for (only,) in part])
        made.append(replace(split, table=replace(split.table, inputs={**split.table.inputs, **columns})))
    return made


def _sides(name: str, place: Place) -> Callable[[str], tuple[int, int]]:
    """A function from a picture's name to its width and height; the pictures are looked up on the first call."""

    @cache
    def pictures() -> dict[str, Path | Array]:
        splits = dict.fromkeys(official(name, part) for part in PARTS)
        examples = (example for split in splits for example in place.source(name).examples(split))
        return {key: image for e in examples for key, image in zip(picture_names(name, e), e.images, strict=True)}

    def sides(picture: str) -> tuple[int, int]:
        image = pictures()[picture]
        return header_size(image, None) if isinstance(image, Path) else (image.shape[1], image.shape[0])

    return sides


def _ids_of_stills(place: Place) -> Callable[[str], str]:
    """A function from the name of a still's file, without its ending, to the still's id in VCR; ids stay the same."""

    @cache
    def ids() -> dict[str, str]:
        splits = dict.fromkeys(official("vcr", part) for part in PARTS)
        examples = (example for split in splits for example in place.source("vcr").examples(split))
        stills = ((image, picture_names("vcr", each)[0]) for each in examples for image in each.images)
        return {image.stem: name for image, name in stills if isinstance(image, Path)}

    def known_as(name: str) -> str:
        return name if UNITER_STILL.fullmatch(name) else ids().get(name, name)

    return known_as


def _regions(split: PreparedSplit) -> Shared:
    column = split.table.inputs["regions"]
    assert isinstance(column, Shared)
    return column
