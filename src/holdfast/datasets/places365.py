"""Places365-Standard: scenes, by the official lists or in the easy format of one folder for each class.

The target is the official class number. Train paths start with a slash and contain the category: a line with the label
of a different category is reported as mislabelled. In the easy format `/x/name/sub` is the folder `name-sub`; classes
are numbered by `categories_places365.txt`, or by the sorted folders, but only if all 365 exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from holdfast.datasets.base import DataError, Dataset, Problem, Reading, first_file
from holdfast.datasets.formats.fields import label
from holdfast.datasets.formats.files import first_folder, lines_of, names_in
from holdfast.datasets.formats.image_files import ImageFiles
from holdfast.types import Example

VERSION = 1
_LISTS = {"train": "places365_train_standard.txt", "val": "places365_val.txt", "test": "places365_test.txt"}
_CATEGORIES = "categories_places365.txt"
_CLASSES = 365
_FOLDERS = {
    "train": ("data_256", "data_large", "data_256_standard", "data_large_standard", "train"),
    "val": ("val_256", "val_large", "val"),
    "test": ("test_256", "test_large", "test"),
}


def _lists(folder: Path) -> Path:
    return first_folder(folder, ["filelist_places365-standard"], [_CATEGORIES, *_LISTS.values()])


def _present(folder: Path) -> bool:
    names = (_CATEGORIES, *_LISTS.values())
    easy = any((folder / split / "airfield").is_dir() for split in ("train", "val"))
    return easy or any((_lists(folder) / name).is_file() for name in names)


def _categories(folder: Path) -> dict[str, int]:
    """The class number of each category, such as `/a/airfield`."""
    path = first_file(_lists(folder), [_CATEGORIES], "unpack filelist_places365-standard.tar there")
    found: dict[str, int] = {}
    lines = lines_of(path)
    for number, line in enumerate(lines, 1):
        name, _, text = line.rpartition(" ")
        try:
            found[name] = label(text, len(lines))
        except ValueError as error:
            raise DataError(Problem(str(path), f"line {number}", str(error), "unpack the lists again")) from None
    if not found or len(set(found.values())) != len(lines):
        raise DataError(Problem(str(path), "", "its categories are not numbered from 0 on", "unpack the lists again"))
    return found


def _listed(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
    path = _lists(folder) / _LISTS[split]
    categories = _categories(folder) if split != "test" else {}
    pictures, seen = ImageFiles(folder), set()
    for number, line in enumerate(lines_of(path), 1):
        try:
            name, _, text = (line, "", "") if split == "test" else line.rpartition(" ")
            target = None if split == "test" else label(text, len(categories))
            if not name.strip() or name in seen:
                raise ValueError("it names no new image")
            category = name.rpartition("/")[0]
            if split == "train" and categories.get(category) != target:
                raise ValueError(f"its label {target} is not that of {category or name!r:.60}")
            image = pictures.need(name.lstrip("/"), [f"{place}/" for place in _FOLDERS[split]])
        except ValueError as error:
            reading.bad(path, f"line {number}", str(error), "unpack the images and the lists again")
            continue
        seen.add(name)
        yield Example(
            name.rpartition(".")[0] or name, target, (image,), extra={"category": category} if category else {}
        )


def _easy(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
    names = names_in(folder / split)
    if (_lists(folder) / _CATEGORIES).is_file():
        classes = {"-".join(name.split("/")[2:]): number for name, number in _categories(folder).items()}
    else:
        classes = _sorted_classes(folder)
    for name in names:
        place = folder / split / name
        if name not in classes or not place.is_dir():
            reading.bad(place, "", "its name is not a category", "remove it")
            continue
        if not (files := names_in(place)):
            reading.bad(place, "", "it has no pictures", "unpack its images again, or remove it")
        for file in files:
            if file.lower().endswith((".jpg", ".jpeg", ".png")):
                extra = {"category": name}
                yield Example(f"{name}/{file.rpartition('.')[0]}", classes[name], (place / file,), extra=extra)
            else:
                reading.bad(place / file, "", "its name is not that of a picture", "remove it")


def _sorted_classes(folder: Path) -> dict[str, int]:
    """The class of each folder: if all exist, the sorted joined names are in the official order."""
    places = [folder / split for split in ("train", "val") if (folder / split).is_dir()]
    names = sorted({name for place in places for name in names_in(place) if (place / name).is_dir()})
    if len(names) != _CLASSES:
        what = f"its {len(names)} folders are not the {_CLASSES} classes, so their order does not number them"
        raise DataError(Problem(str(places[0]), "", what, f"put {_CATEGORIES} in {folder}"))
    return {name: number for number, name in enumerate(names)}


def _read(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
    if not (_lists(folder) / _LISTS[split]).is_file() and split != "test" and (folder / split).is_dir():
        yield from _easy(folder, split, reading)
        return
    first_file(_lists(folder), [_LISTS[split]], "unpack filelist_places365-standard.tar there")
    yield from _listed(folder, split, reading)


DATASET = Dataset(
    name="places365",
    splits=("train", "val", "test"),
    read=_read,
    present=_present,
    counts={"train": 1_803_460, "val": 36_500, "test": 328_500},
)
