"""Region features: of each image, what is in each of its boxes, kept once for all phrases that share the image.

They are read, from the official HDF5 files or from bottom-up and LXMERT's TSV files (`datasets/region_features.py`), or
computed from the annotated boxes of the world's pictures by a small network (`extractor.py`). The first region of the
computed ones is the whole image; files keep the order that they have.

```
CACHE/viscoll/<hash>/regions.npy   (images, boxes, width) float16, zeros where an image has fewer boxes
                     boxes.npy     (images, boxes, 4) float32: corners, as shares of the image's sides
                     count.npy     (images,) how many boxes there are
                     id.npy        (images,) the images' ids
```
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from holdfast import registry
from holdfast.benchmarks.source import Source, cache_folder, code_hash, progress_bar
from holdfast.benchmarks.viscoll.build import OFFICIAL, captioned
from holdfast.benchmarks.viscoll.extractor import WEIGHTS, crops, trained_extractor
from holdfast.data.images import decode
from holdfast.data.table import Shared
from holdfast.datasets.base import DataError, Dataset, Reading
from holdfast.errors import UserError
from holdfast.types import Example

BOXES = 36
FILES = {
    "coco": (
        ("coco_train", "coco_val"),
        ("trainval_36",),
        ("train2014_obj36", "val2014_obj36"),
        ("trainval",),
    ),
    "flickr": (("flickr_train", "flickr_val", "flickr_test"),),
}
"""The splits of `region_features` that together have all images of a dataset; the first that are there are read."""
_BATCH = 256
_Row = tuple[str, NDArray[Any], NDArray[np.float32]]
"""An image's id, its features (boxes, width) and its boxes (boxes, 4)."""


@dataclass(frozen=True)
class Regions:
    """The regions of images, mapped into memory."""

    values: Tensor
    boxes: Tensor
    counts: Tensor
    ids: NDArray[np.str_]

    @property
    def shape(self) -> tuple[int, int]:
        """The most boxes of an image, and the width of a feature, as `types.Inputs` has them."""
        return self.values.shape[1], self.values.shape[2]

    def has(self, ids: Sequence[str]) -> NDArray[np.bool_]:
        """Which images have regions: the official files lack a few."""
        return np.isin(np.asarray(ids, np.str_), self.ids)

    def columns(self, ids: Sequence[str]) -> dict[str, Shared]:
        """The columns of a table with one image a row; the features themselves are not copied.

        >>> values, boxes, counts = torch.tensor([[[0.0]], [[1.0]]]), torch.zeros(2, 1, 4), torch.ones(2)
        >>> regions = Regions(values, boxes, counts, np.array(["7", "9"]))
        >>> regions.columns(["9", "9", "7"])["regions"].rows(torch.arange(3)).flatten().tolist()
        [1.0, 1.0, 0.0]
        """
        rows = {name: row for row, name in enumerate(self.ids.tolist())}
        try:
            index = torch.tensor([rows[name] for name in ids])
        except KeyError as error:
            raise UserError(
                f"there are no features of the image {error.args[0]!r}: give the files of all images"
            ) from None
        named = {"regions": self.values, "boxes": self.boxes, "region_count": self.counts}
        return {name: Shared(values, index) for name, values in named.items()}


def read_regions(
    dataset: str,
    *,
    data: str = "",
    scale: str = "tiny",
    features: str = "",
    boxes: int = BOXES,
    skip_bad: int = 0,
) -> Regions:
    """The regions of all images of `coco` or `flickr`, from the cache where they are there.

    `features` is the folder of the official region features; without it they are computed, which is possible for the
    world's pictures alone. `data` and `scale` are those of the captions; an image has at most so many `boxes`.
    """
    source = captioned(dataset, data=data, scale=scale, skip_bad=skip_bad)
    if features:
        files = _files(Path(features))
        key = source.fingerprint("read", dataset, boxes, files.fingerprint(), code_hash(__name__))
        return _kept(key, _read(files, source, dataset, boxes))
    if data:
        raise UserError(
            "the small extractor knows only the world's pictures: for photographs, give the folder of their region "
            "features (--set features=DIR)"
        )
    key = source.fingerprint(
        "computed", dataset, boxes, hashlib.sha256(WEIGHTS.read_bytes()).hexdigest(), code_hash(__name__)
    )
    return _kept(key, _compute(source, dataset, boxes))


def annotated_boxes(source: Source, dataset: str) -> Iterator[tuple[Example, NDArray[np.float32]]]:
    """Each image, as an example that shows it, with the corners of its annotated boxes as shares of its sides."""
    for split in OFFICIAL[dataset].values():
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
    """The captions of an image stand together: one example of each, with all boxes that they name."""
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


def _compute(source: Source, dataset: str, most: int) -> Iterator[_Row]:
    """Whole image first, then its boxes."""
    network = trained_extractor()
    ids: list[str] = []
    shown: list[NDArray[np.uint8]] = []
    where: list[NDArray[np.float32]] = []

    def rows() -> Iterator[_Row]:
        with torch.inference_mode():
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


def _files(folder: Path) -> Source:
    reader: Dataset = registry.DATASETS["region_features"].load()
    for place in (folder, folder / "region_features"):
        if place.is_dir() and reader.present(place):
            return Source(reader, place)
    raise UserError(f"{folder} holds no region features: give the folder of the HDF5 or TSV files")


def _read(files: Source, source: Source, dataset: str, most: int) -> Iterator[_Row]:
    """The regions of the files, for the images that the captions are about."""
    sides = {_image_id(e): (e.extra["width"], e.extra["height"]) for e, _ in annotated_boxes(source, dataset)}
    for splits in FILES[dataset]:
        seen: set[str] = set()
        try:
            for split in splits:
                for example in files.examples(split):
                    name = _plain_id(example.id)
                    if name in sides and name not in seen:
                        seen.add(name)
                        width, height = sides[name]
                        boxes = example.extra["boxes"][:most] / np.array([width, height] * 2, np.float32)
                        yield name, example.extra["features"][:most], boxes.clip(0, 1)
        except DataError as error:
            if error.missing and not seen:
                continue
            raise
        return
    wanted = " and ".join(FILES[dataset][0])
    raise UserError(f"{files.folder} has no features of the images of {dataset}: give the files of {wanted}")


def _plain_id(name: str) -> str:
    """LXMERT's files name an image as its file is named.

    >>> _plain_id("COCO_val2014_000000000042"), _plain_id("42")
    ('42', '42')
    """
    return str(int(name.rpartition("_")[2])) if name.startswith("COCO_") else name


def _kept(key: str, rows: Iterator[_Row]) -> Regions:
    """Open what the cache has, or write the rows there first: whole, or not at all."""
    folder = cache_folder() / "viscoll" / key
    if not folder.is_dir():
        part = folder.with_name(f".{key}.{os.getpid()}")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        try:
            with progress_bar("region features"):
                _write(part, rows)
            part.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process was quicker
                raise
        finally:
            shutil.rmtree(part, ignore_errors=True)
    values, boxes, counts = (
        torch.from_numpy(np.load(folder / f"{name}.npy", mmap_mode="c")) for name in ("regions", "boxes", "count")
    )
    ids: NDArray[np.str_] = np.load(folder / "id.npy")
    return Regions(values, boxes, counts, ids)


def _write(folder: Path, rows: Iterator[_Row]) -> None:
    """One row after the other, as long as each is; then, once the longest is known, as arrays."""
    ids: list[str] = []
    counts: list[int] = []
    width = 0
    with (folder / "values").open("wb") as values, (folder / "corners").open("wb") as corners:
        for name, found, boxes in rows:
            ids.append(name)
            counts.append(len(boxes))
            width = found.shape[1]
            values.write(np.ascontiguousarray(found, np.float16).data)
            corners.write(np.ascontiguousarray(boxes, np.float32).data)
    if not ids:
        raise UserError("there are no regions at all: the files of features are of other images than the captions")
    np.save(folder / "id.npy", np.array(ids, np.str_))
    np.save(folder / "count.npy", np.array(counts, np.int64))
    for source, name, kind, columns in (("values", "regions", np.float16, width), ("corners", "boxes", np.float32, 4)):
        flat = np.memmap(folder / source, kind, "r").reshape(-1, columns)
        array = np.lib.format.open_memmap(folder / f"{name}.npy", "w+", kind, (len(ids), max(counts), columns))
        start = 0
        for row, count in enumerate(counts):
            array[row, :count] = flat[start : start + count]
            start += count
        array.flush()
        (folder / source).unlink()
