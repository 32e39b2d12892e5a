"""Region features of images, in VisCOLL's HDF5, in bottom-up and LXMERT TSV files, and in UNITER's image databases.

An Example is an image by its id, without picture or target: `extra["features"]` (n, width) and `extra["boxes"]` (n, 4),
both float32. A split is a file (`trainval` is several). No file is ever loaded whole. In HDF5 files a row belongs to
the image named by the map beside it (`coco_train_map.json`), or to `row-N` if there is no map. Features in HDF5 are of
any width, those in TSV files 2048 wide.

`holdfast features --kind regions` writes `regions.h5` or `regions.npy`, or one such file for each dataset, as in
`coco_regions.h5`. They name their images by file; the name without folder and suffix is the id.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable, Container, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.data.features import check, files_of, map_arrays
from holdfast.data.regions import BOXES, ImageRegions
from holdfast.datasets.base import DataError, Dataset, Problem, Reading, first_file, open_file, read_json, read_lines
from holdfast.datasets.formats import uniter
from holdfast.errors import UserError
from holdfast.files import load_array, open_hdf5, own_array
from holdfast.types import Example

VERSION = 1
_MOST_WIDTH = 65_536
_MOST_BOXES = 1_000
_MOST_IMAGES = 10_000_000
_BLOCK = 3_200
_HDF5 = tuple(f"{source}_{split}" for source in ("coco", "flickr") for split in ("train", "val", "test"))
_TSV = {
    **{
        f"{name}_36": [f"{folder}{name}_resnet101_faster_rcnn_genome_36.tsv" for folder in (f"{name}_36/", "")]
        for name in ("trainval", "test2014", "test2015")
    },
    **{f"{name}_obj36": [f"mscoco_imgfeat/{name}_obj36.tsv", f"{name}_obj36.tsv"] for name in ("train2014", "val2014")},
    "test2015_obj36": ["mscoco_imgfeat/test2015_obj36.tsv", "test2015_obj36.tsv"],
    **{f"nlvr2_{name}_obj36": [f"nlvr2_imgfeat/{name}_obj36.tsv"] for name in ("train", "valid", "test")},
    **{
        f"{name}_obj36": [f"vg_gqa_imgfeat/{name}_obj36.tsv", f"{name}_obj36.tsv"] for name in ("vg_gqa", "gqa_testdev")
    },
}

_OWN = ("regions", "coco_regions", "flickr_regions", "nlvr2_regions", "vcr_regions")
"""Files of `holdfast features`: for all datasets, or for one."""
_UNITER = {
    f"uniter_{dataset}{part}": f"{dataset}{part}"
    for dataset, parts in {
        "coco": ("_train2014", "_val2014"),
        "flickr30k": ("",),
        "nlvr2": ("_train", "_dev", "_test"),
        "vcr": ("_train", "_val", "_test"),
    }.items()
    for part in parts
}
"""The image databases of UNITER by the names of their folders, in `img_db/` or beside each other."""
_ARRAYS = ("bbox_features", "bboxes", "num_boxes", "sizes")


def _files(split: str) -> list[str]:
    if split in _OWN:
        return [f"{split}{suffix}" for suffix in (".h5", ".npy")]
    if split in _HDF5:
        return [f"faster_rcnn_{split}.h5"]
    return _TSV.get(split, [f"{split}/{split}_resnet101_faster_rcnn_genome.tsv"])


def _adaptive(folder: Path) -> list[Path]:
    """Bottom-up features of 10 to 100 boxes come in several files."""
    return sorted(path for path in (folder / "trainval").glob("*.tsv*") if path.is_file())


def _present(folder: Path) -> bool:
    if any(_database(folder, name) for name in _UNITER.values()):
        return True
    named = any((folder / name).is_file() for split in (*_OWN, *_HDF5, *_TSV) for name in _files(split))
    return named or bool(_adaptive(folder))


def _database(folder: Path, name: str) -> Path | None:
    places = (uniter.database(folder / place / name) for place in ("img_db", "") if (folder / place / name).is_dir())
    return next(filter(None, places), None)


def _uniter(folder: Path, name: str, reading: Reading) -> Iterator[Example]:
    """The images of a database; in VCR the boxes of its objects, which have a database of their own, come first."""
    if (place := _database(folder, name)) is None:
        where = str(folder / "img_db" / name)
        raise DataError(Problem(where, "", "no such folder", "unpack UNITER's image database there"))
    given = _database(folder, name.replace("vcr_", "vcr_gt_")) if name.startswith("vcr_") else None
    for image, (features, boxes) in uniter.read(place, given, reading):
        # Corners are shares of the sides already.
        yield Example(image, extra={"features": features, "boxes": boxes, "image_w": 1, "image_h": 1})


def _payload(cell: bytes, kind: str, count: int, columns: int, name: str) -> NDArray[Any]:
    try:
        content = binascii.a2b_base64(cell, strict_mode=True)
    except binascii.Error:
        raise ValueError(f"its {name} are not base64") from None
    expected = count * columns * np.dtype(kind).itemsize
    if len(content) != expected:
        raise ValueError(f"its {name} have {len(content)} bytes, not {expected} for {count} boxes of width {columns}")
    return np.frombuffer(content, kind).reshape(count, columns)


def _count(cell: bytes, name: str, most: int) -> int:
    if not cell.isdigit() or len(cell) > 9 or not 1 <= int(cell) <= most:
        raise ValueError(f"its {name} is {cell[:20]!r}, not a number from 1 to {most}")
    return int(cell)


def _checked(features: NDArray[Any], boxes: NDArray[Any]) -> dict[str, Any]:
    if not np.isfinite(features).all() or not np.isfinite(boxes).all():
        raise ValueError("its features or boxes have a number that is not finite")
    if (boxes[:, 2:] <= boxes[:, :2]).any():
        raise ValueError("one of its boxes has no size")
    return {"features": np.asarray(features, np.float32), "boxes": np.asarray(boxes, np.float32)}


def _row(line: bytes) -> Example:
    """A line of six columns (bottom-up) or of ten (LXMERT, which has the height before the width)."""
    cells = line.rstrip(b"\r\n").split(b"\t")
    if len(cells) == 6:
        name, width, height, number, corners, content = cells
        more: list[bytes] = []
    elif len(cells) == 10:
        name, height, width, *more, number, corners, content = cells
    else:
        raise ValueError(f"it has {len(cells)} columns, neither 6 nor 10")
    if not name or not name.isascii() or len(name) > 200:
        raise ValueError("it has no image id")
    count = _count(number, "num_boxes", _MOST_BOXES)
    sides = {"image_w": _count(width, "image_w", 10**8), "image_h": _count(height, "image_h", 10**8)}
    boxes = _payload(corners, "<f4", count, 4, "boxes")
    extra = {**_checked(_payload(content, "<f4", count, 2048, "features"), boxes), **sides}
    kinds = (("objects_id", "<i8"), ("objects_conf", "<f4"), ("attrs_id", "<i8"), ("attrs_conf", "<f4"))
    for cell, (field, kind) in zip(more, kinds, strict=False):
        extra[field] = _payload(cell, kind, count, 1, field)[:, 0]
    return Example(name.decode("ascii"), extra=extra)


def _tsv(path: Path, reading: Reading) -> Iterator[Example]:
    for number, line in read_lines(path):
        try:
            if line is None:
                raise ValueError("it is far too long")
            example = _row(line)
        except ValueError as error:
            reading.bad(path, f"line {number}", str(error), "download the file again")
            continue
        yield example


def _arrays(path: Path, file: Any) -> tuple[Any, Any, Any]:
    """The three arrays of a VisCOLL file, after checking that their shapes agree; their contents are not read yet."""

    def broken(what: str) -> DataError:
        return DataError(Problem(str(path), "", what, "make or download the features again"))

    arrays = []
    for name in _ARRAYS[:3]:
        if (array := file.get(name) if isinstance(file, dict) else own_array(file, name)) is None:
            raise broken(f"it has no array {name!r} of its own")
        arrays.append(array)
    features, boxes, numbers = arrays
    if len(features.shape) != 3 or features.dtype.kind != "f" or boxes.dtype.kind not in "fiu":
        raise broken(f"its bbox_features have the shape {features.shape}, not (images, boxes, width)")
    images, most, width = features.shape
    if not 1 <= width <= _MOST_WIDTH:
        raise broken(f"its features are {width} wide, not 1 to {_MOST_WIDTH}")
    if images > _MOST_IMAGES or most > _MOST_BOXES or boxes.shape != (images, most, 4):
        raise broken(f"its bbox_features {features.shape} and bboxes {boxes.shape} do not match")
    if numbers.dtype.kind not in "iuf" or numbers.shape not in ((images,), (images, 1)):
        raise broken(f"its num_boxes have the shape {numbers.shape}, not one for each of {images} images")
    return features, boxes, numbers


def _row_names(path: Path, split: str, images: int, reading: Reading) -> dict[int, str]:
    """The image id of each row, from the map beside the file."""
    source = path.parent / f"{split}_map.json"
    if not source.is_file():
        return {row: f"row-{row}" for row in range(images)}
    mapping = read_json(source)
    if not isinstance(mapping, dict):
        raise DataError(Problem(str(source), "", "it is not a map from rows to images", "download it again"))
    found: dict[int, str] = {}
    for key, value in mapping.items():
        good = key.isascii() and key.isdigit() and len(key) < 9 and int(key) < images and int(key) not in found
        if good and isinstance(value, int | str) and not isinstance(value, bool):
            found[int(key)] = str(value)
        else:
            reading.bad(
                source, f"row {key:.40}", "it is not a row of the features with an image id", "download it again"
            )
    return found


def _hdf5(path: Path, split: str, reading: Reading) -> Iterator[Example]:
    open_file(path).close()  # otherwise h5py's error for a file without read permission would look like damage
    try:
        with open_hdf5(path) as file:
            features, boxes, numbers = _arrays(path, file)
            images, most, _ = features.shape
            names = _row_names(path, split, images, reading)
            step = max(_BLOCK // max(most, 1), 1)
            for start in range(0, images, step):
                part = slice(start, min(start + step, images))
                block = features[part], boxes[part], numbers[part].reshape(-1)
                yield from _block(path, start, *block, names, reading)
    except DataError:
        raise
    except Exception as error:  # a broken HDF5 file can fail in any way, at any point
        what = f"it is not a complete HDF5 file ({type(error).__name__}: {error!s:.80})"
        raise DataError(Problem(str(path), "", what, "make or download the features again")) from None


def _own(path: Path, reading: Reading) -> Iterator[Example]:
    """The output of `holdfast features`, memory-mapped and checked against its checksums."""
    open_file(path).close()
    try:
        check(path)
        if path.suffix == ".h5":
            arrays = map_arrays(path, "r")
            ids = np.char.decode(arrays["ids"], "utf-8", "surrogateescape")
        else:
            arrays = {name: load_array(at, "r") for name, at in files_of(path, _ARRAYS).items()}
            ids = load_array(path.with_suffix(".id.npy"))
        features, boxes, numbers = _arrays(path, arrays)
        images, most, _ = features.shape
        sizes = arrays["sizes"]
        if ids.shape != (images,) or ids.dtype.kind != "U" or sizes.shape != (images, 2) or sizes.dtype.kind != "i":
            raise ValueError("its ids and sizes do not match its features")
    except (OSError, KeyError, ValueError) as error:
        what = f"it is not complete ({type(error).__name__}: {error!s:.80})"
        raise DataError(Problem(str(path), "", what, "compute it again with `holdfast features`")) from None
    names = {row: PurePosixPath(name).stem for row, name in enumerate(ids.tolist())}
    step = max(_BLOCK // max(most, 1), 1)
    for start in range(0, images, step):
        part = slice(start, start + step)
        yield from _block(path, start, features[part], boxes[part], numbers[part], names, reading, sizes[part])


def _block(
    path: Path,
    start: int,
    features: NDArray[Any],
    boxes: NDArray[Any],
    numbers: NDArray[Any],
    names: dict[int, str],
    reading: Reading,
    sizes: NDArray[Any] | None = None,
) -> Iterator[Example]:
    for offset, number in enumerate(numbers.tolist()):
        row = start + offset
        try:
            if row not in names:
                raise ValueError("the map names no image for it")
            if not 1 <= number <= features.shape[1] or number != int(number):
                raise ValueError(f"its num_boxes is {number}, not a number from 1 to {features.shape[1]}")
            extra = _checked(features[offset, : int(number)], boxes[offset, : int(number)])
        except ValueError as error:
            reading.bad(path, f"row {row}", str(error), "make or download the features again")
            continue
        if sizes is not None:
            extra |= dict(zip(("image_w", "image_h"), sizes[offset].tolist(), strict=True))
        yield Example(names[row], extra=extra)


def _read(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
    if split in _UNITER:
        yield from _uniter(folder, _UNITER[split], reading)
        return
    several = _adaptive(folder) if split == "trainval" else []
    for path in several:
        yield from _tsv(path, reading)
    if several:
        return
    path = first_file(folder, _files(split), "make or download the features there")
    if split in _OWN:
        yield from _own(path, reading)
        return
    yield from _hdf5(path, split, reading) if split in _HDF5 else _tsv(path, reading)


DATASET = Dataset(
    name="region_features",
    splits=(*_HDF5, *_TSV, "trainval", *_UNITER, *_OWN),
    read=_read,
    present=_present,
    counts={
        "coco_train": 117_266,
        "coco_val": 4_952,
        "train2014_obj36": 82_783,
        "val2014_obj36": 40_504,
        "nlvr2_train_obj36": 103_170,
        "nlvr2_valid_obj36": 8_102,
        "nlvr2_test_obj36": 8_082,
        "vg_gqa_obj36": 148_854,
    },
)


def read_rows(
    folder: Path,
    alternatives: Sequence[Sequence[str]],
    wanted: Container[str],
    sides: Callable[[str], tuple[int, int]] | None,
    *,
    of: str,
    most: int = BOXES,
    known_as: Callable[[str], str] | None = None,
) -> Iterator[ImageRegions]:
    """The regions of the wanted images, at most `most` boxes of each.

    Each alternative lists the splits that together have all images `of` a dataset; the first existing one is read.
    `sides` returns the width and height of an image; it is not called for files that contain them. None: an
    image ends where its boxes do. `known_as` turns
    the name of an image in a file into the one that is wanted.
    """
    known_as = known_as or plain_id
    missing: list[str] = []
    for splits in alternatives:
        seen: set[str] = set()
        try:
            for split in splits:
                for example in DATASET.examples(folder, split, Reading()):
                    name = known_as(example.id)
                    if name in wanted and name not in seen:
                        seen.add(name)
                        extra = example.extra
                        if split in _OWN and len(extra["boxes"]) > most:
                            raise UserError(
                                f"{folder}: {split} has {len(extra['boxes'])} boxes of an image, and this benchmark "
                                f"takes {most}: compute them with fewer cells (holdfast features --cells 6), or set "
                                "benchmark.boxes where there is such a setting"
                            )
                        if "image_w" in extra:
                            width, height = extra["image_w"], extra["image_h"]
                        else:
                            width, height = sides(name) if sides else extra["boxes"][:, 2:].max(0)
                        boxes = extra["boxes"][:most] / np.array([width, height] * 2, np.float32)
                        yield name, extra["features"][:most], boxes.clip(0, 1)
        except DataError as error:
            if error.missing and not seen:
                missing.append(str(Path(error.problem.file).relative_to(folder)))
                continue
            raise
        return
    raise UserError(f"{folder} has no features of the images of {of}: add {' or '.join(missing)}")


def check_any(folder: Path, alternatives: Sequence[Sequence[str]], *, of: str) -> None:
    """Raise a UserError if no features of the images of a dataset exist, judging by file names alone."""
    if not any(all(_there(folder, split) for split in splits) for splits in alternatives):
        files = ", ".join(_where(split) for split in alternatives[0])
        raise UserError(f"{folder} has no features of the images of {of}: add {files}, or those of another detector")


def _there(folder: Path, split: str) -> bool:
    if split in _UNITER:
        return _database(folder, _UNITER[split]) is not None
    if split == "trainval" and _adaptive(folder):
        return True
    return any((folder / name).is_file() for name in _files(split))


def _where(split: str) -> str:
    return f"img_db/{_UNITER[split]}" if split in _UNITER else _files(split)[0]


def plain_id(name: str) -> str:
    """The id of a COCO image as its number: LXMERT's files use the file name instead.

    >>> plain_id("COCO_val2014_000000000042"), plain_id("42"), plain_id("dev-0-0-img1")
    ('42', '42', 'dev-0-0-img1')
    """
    return str(int(name.rpartition("_")[2])) if name.startswith("COCO_") else name
