"""Image files for a reader: each folder is listed once, so that many records cost no stat calls."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from holdfast.files import FileError, refuse_outside


class ImageFiles:
    """The files under some root folders, found by relative name.

    >>> import tempfile
    >>> root = Path(tempfile.mkdtemp())
    >>> (root / "val2014").mkdir()
    >>> _ = (root / "val2014" / "9.jpg").write_bytes(b"")
    >>> ImageFiles(root).find(["9.jpg", "val2014/9.jpg"]) == root / "val2014" / "9.jpg"
    True
    >>> ImageFiles(root).find(["../9.jpg"]) is None
    True
    """

    def __init__(self, *roots: Path) -> None:
        self._roots = roots
        self._listings: dict[tuple[Path, str], frozenset[str]] = {}

    def find(self, names: Iterable[str]) -> Path | None:
        """The first of several relative names that exists, or None."""
        for name in names:
            folder, _, file = name.rpartition("/")
            for root in self._roots:
                if file in self._listing(root, folder):
                    return root / folder / file
        return None

    def need(self, name: str, folders: Iterable[str] = ("",), remedy: str = "") -> Path:
        """The file of this name in the first of these folders that has it; ValueError if none has it.

        >>> ImageFiles(Path("nowhere")).need("9.jpg", ["val2014/"], "unpack val2014.zip")
        Traceback (most recent call last):
        ValueError: its image 9.jpg is missing: unpack val2014.zip
        """
        if (found := self.find(folder + name for folder in folders)) is None:
            raise ValueError(f"its image {name:.100} is missing" + (f": {remedy}" if remedy else ""))
        return found

    def any_folder(self, names: Iterable[str]) -> bool:
        """Whether one of these folders exists and is not empty."""
        return any(self._listing(root, name) for name in names for root in self._roots)

    def _listing(self, root: Path, folder: str) -> frozenset[str]:
        if (listing := self._listings.get((root, folder))) is None:
            try:
                # A name in a dataset file must not lead out of the dataset's folder.
                outside = folder.startswith("/") or ".." in PurePosixPath(folder).parts
                if not outside:
                    refuse_outside(root / folder)
                entries = () if outside else os.scandir(root / folder)
                listing = frozenset(entry.name for entry in entries if not entry.is_dir(follow_symlinks=False))
            except (PermissionError, FileError):  # its pictures may exist, so none of them is reported as missing
                raise
            except (OSError, ValueError):
                listing = frozenset()
            self._listings[root, folder] = listing
        return listing


COCO_BESIDE = ("coco", "ms-coco")
"""The folders beside a dataset's own that may have COCO's images."""


def coco_roots(folder: Path) -> tuple[Path, ...]:
    """The possible locations of COCO's image folders: the dataset's folder, those beside it, and their `images`."""
    places = (folder, *(folder.parent / name for name in COCO_BESIDE))
    return tuple(root for place in places for root in (place, place / "images"))


def coco_names(number: int, folders: Iterable[str]) -> Iterator[str]:
    """The possible names of the COCO image with this number: numbers are the same in all of COCO's folders.

    >>> list(coco_names(9, ["train2014", "val2017"]))
    ['train2014/COCO_train2014_000000000009.jpg', 'train2014/000000000009.jpg', 'val2017/000000000009.jpg',
     '000000000009.jpg']

    The last is for all images in one folder, without those of a split.
    """
    for folder in folders:
        if not folder.endswith("2017"):
            yield f"{folder}/COCO_{folder}_{number:012d}.jpg"
        yield f"{folder}/{number:012d}.jpg"
    yield f"{number:012d}.jpg"
