"""iNaturalist 2019: one species for each image.

The target is the rank of the category id (official ids are 0 to 1009, so it is the id). Annotations are joined by
`image_id`. The names in the competition's files are obfuscated: if the released `categories.json` is beside them,
`extra["name"]` is the real name.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from holdfast.datasets.base import DataError, Dataset, Problem, Reading, first_file, get
from holdfast.datasets.formats.arrays import Record, by_id, collect
from holdfast.datasets.formats.image_files import ImageFiles
from holdfast.datasets.formats.json_members import stream_objects
from holdfast.types import Example

VERSION = 1
_SPLITS = ("train", "val", "test")


def _files(split: str) -> list[str]:
    return [f"{split}2019.json", f"annotations/{split}2019.json"]


def _present(folder: Path) -> bool:
    return any((folder / name).is_file() for split in _SPLITS for name in _files(split))


def _real_names(folder: Path, reading: Reading) -> dict[int, str]:
    path = folder / "categories.json"
    if not path.is_file():
        return {}
    records = stream_objects(path, reading, "category")
    return by_id(path, reading, ((f"category at position {position}", record) for position, record in records), "name")


def _species(
    path: Path, reading: Reading, annotations: list[tuple[str, Record]], images: dict[int, str], known: set[int]
) -> dict[int, int]:
    """The category of each image."""
    found: dict[int, int] = {}
    for place, record in annotations:
        try:
            image, category = get(record, "image_id", int), get(record, "category_id", int)
            if image not in images:
                raise ValueError(f"its image {image} is not in the list of images")
            if category not in known:
                raise ValueError(f"its category {category} is not in the list of categories")
            if image in found:
                raise ValueError(f"its image {image} was annotated before")
        except ValueError as error:
            reading.bad(path, place, str(error), "download the file again")
            continue
        found[image] = category
    return found


def _read(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
    path = first_file(folder, _files(split), f"unpack {split}2019.json.tar.gz there")
    names = ("images",) if split == "test" else ("images", "annotations", "categories")
    arrays = collect(path, reading, *names)
    images = by_id(path, reading, arrays["images"], "file_name")
    labelled = split != "test"
    categories = by_id(path, reading, arrays["categories"], "name") if labelled else {}
    if labelled and not categories:
        raise DataError(Problem(str(path), "", "it has no categories", "download it again"))
    real = _real_names(folder, reading) if labelled else {}
    species = _species(path, reading, arrays["annotations"], images, set(categories)) if labelled else {}
    rank = {number: position for position, number in enumerate(sorted(categories))}
    pictures = ImageFiles(folder)
    for number, name in images.items():
        image = pictures.find([name, f"images/{name}"])
        if image is None:
            reading.bad(path, f"image {number}", f"its image {name:.100} is missing", "unpack the images there")
        elif not labelled:
            yield Example(str(number), None, (image,))
        elif number not in species:
            reading.bad(path, f"image {number}", "it has no annotation", "download the file again")
        else:
            category = species[number]
            named = real.get(category, categories[category])
            yield Example(str(number), rank[category], (image,), extra={"category_id": category, "name": named})


DATASET = Dataset(
    name="inaturalist2019",
    splits=_SPLITS,
    read=_read,
    present=_present,
    counts={"train": 265_213, "val": 3_030, "test": 35_350},
)
