"""The compositional splits of COCO 2014 by Nikolaus et al.: images are held out by word pairs in their captions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from holdfast.datasets.base import DataError, Dataset, Problem, Reading, first_file, get, read_json
from holdfast.datasets.formats.image_files import COCO_BESIDE, ImageFiles, coco_names, coco_roots
from holdfast.types import Example

VERSION = 1
_PAIRS = (
    *("black_cat", "big_bird", "red_bus", "small_plane", "eat_man", "lie_woman"),
    *("brown_dog", "small_cat", "white_truck", "big_plane", "ride_woman", "fly_bird"),
    *("white_horse", "big_cat", "blue_bus", "small_table", "hold_child", "stand_bird"),
    *("black_bird", "small_dog", "white_boat", "big_truck", "eat_horse", "stand_child"),
)
_COUNTS = {
    "1": (79_836, 2_947, 1_354),
    "2": (79_858, 2_925, 1_342),
    "3": (79_940, 2_843, 1_455),
    "4": (79_627, 3_156, 1_503),
    "full_data": (82_783, 40_504, 40_775),
    "karpathy": (82_783, 5_000, 5_000),
}
_SPLITS = {f"{part}_{name}": (part, name) for name in _COUNTS for part in ("train", "val", "test")}
_FOLDERS = ("train2014", "val2014", "test2014", "train2017", "val2017", "test2017", "unlabeled2017")
_DATA = ("adjective_noun_occurrence_data", "verb_noun_occurrence_data")


def _files(name: str) -> list[str]:
    file = f"dataset_splits_{name}.json"
    return [f"data/dataset_splits/{file}", f"dataset_splits/{file}", file]


def _read(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
    """One example per image of a list; the split `test_3` is the test part of `dataset_splits_3.json`.

    The target is the tuple of the held-out pairs that some caption of the image contains, as indices among the 24 pairs
    in the order of the four lists, if the occurrence files of all the list's pairs exist, else None. The lists consist
    of COCO's numbers alone: if there is no folder of COCO images at all, the examples have no images.
    """
    part, name = _SPLITS[split]
    file = first_file(folder, _files(name), "copy data/dataset_splits of the compositional splits there")
    lists = read_json(file)
    if not isinstance(lists, dict):
        raise DataError(Problem(str(file), "", "it is not a JSON object", "download it again"))
    pairs = _pairs(lists, file, reading)
    occurrences = _occurrences(folder, pairs, reading)
    files = ImageFiles(*coco_roots(folder))
    pictured = files.any_folder(_FOLDERS)
    seen: set[str] = set()
    for number, image_id in enumerate(_list(lists, f"{part}_images_split", file), 1):
        try:
            if not isinstance(image_id, str) or not (image_id.isascii() and image_id.isdigit() and len(image_id) < 13):
                raise ValueError(f"{image_id!r:.40} is not the number of an image, as text")
            if image_id in seen:
                raise ValueError(f"image {image_id} occurred before")
            seen.add(image_id)
        except ValueError as error:
            reading.bad(file, f"{part} image {number}", str(error))
            continue
        image = files.find(coco_names(int(image_id), _FOLDERS)) if pictured else None
        if pictured and image is None:
            remedy = f"unpack train2014.zip and val2014.zip of COCO in {folder}"
            reading.bad(file, f"image {image_id}", "its file is missing", remedy)
            continue
        extra: dict[str, Any] = {"heldout_pairs": pairs}
        target = None
        if occurrences is not None:
            found = {pair: counts[image_id] for pair, counts in occurrences.items() if counts.get(image_id)}
            target = tuple(sorted(_PAIRS.index(pair) for pair in found))
            extra["pair_occurrences"] = found
        yield Example(image_id, target, () if image is None else (image,), "", (), extra)


def _list(lists: Mapping[str, Any], name: str, file: Path) -> list[Any]:
    try:
        return get(lists, name, list)
    except ValueError as error:
        raise DataError(Problem(str(file), "", str(error), "download it again")) from None


def _pairs(lists: Mapping[str, Any], file: Path, reading: Reading) -> tuple[str, ...]:
    """The held-out pairs of a list, which is null if the split is not about pairs."""
    if "heldout_pairs" in lists and lists["heldout_pairs"] is None:
        return ()
    found = []
    for pair in _list(lists, "heldout_pairs", file):
        if isinstance(pair, str) and pair in _PAIRS:
            found.append(pair)
        else:
            reading.bad(file, "heldout_pairs", f"{pair!r:.40} is not one of the {len(_PAIRS)} pairs")
    return tuple(found)


def _occurrences(folder: Path, pairs: tuple[str, ...], reading: Reading) -> dict[str, dict[str, int]] | None:
    """The number of captions of each image with each pair; None if there are no pairs or no such files."""
    if not pairs:
        return None
    found = {}
    for pair in pairs:
        names = [f"{pair}.json", f"{pair}_val2014.json"]
        paths = [folder / place / name for place in ("data/occurrences", "occurrences") for name in names]
        if (file := next((path for path in paths if path.is_file()), None)) is None:
            return None
        found[pair] = _counts(file, reading)
    return found


def _counts(file: Path, reading: Reading) -> dict[str, int]:
    content = read_json(file)
    data = next((content[key] for key in _DATA if key in content), None) if isinstance(content, dict) else None
    if not isinstance(data, dict):
        raise DataError(Problem(str(file), "", f"it has no object {_DATA[0]!r}", "download it again"))
    counts = {}
    for image_id, record in data.items():
        try:
            if not isinstance(record, dict):
                raise ValueError(f"{record!r:.40} is not a JSON object")
            if (count := get(record, "pair_occurrences", int)) < 0:
                raise ValueError(f"its pair_occurrences {count} is not a count")
        except ValueError as error:
            reading.bad(file, f"image {image_id}", str(error))
            continue
        counts[image_id] = count
    return counts


def _present(folder: Path) -> bool:
    return any((folder / file).is_file() for name in _COUNTS for file in _files(name))


DATASET = Dataset(
    name="nikolaus",
    splits=tuple(_SPLITS),
    read=_read,
    present=_present,
    beside=COCO_BESIDE,
    counts={
        f"{part}_{name}": count
        for name, counts in _COUNTS.items()
        for part, count in zip(("train", "val", "test"), counts, strict=True)
    },
)
