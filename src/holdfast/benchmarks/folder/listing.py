"""The contents of a folder: classes, perhaps within domains, perhaps within splits."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.benchmarks.own.listing import Listed, refuse_beyond, split_of
from holdfast.datasets.base import Problem, cannot_open
from holdfast.errors import UserError
from holdfast.files import Bounds, FileError, bounds, refuse_outside, within

_ENDINGS = "jpg jpeg jpe jfif png bmp gif webp tif tiff ppm pgm pbm pnm jp2 tga avif"
ENDINGS = frozenset(f".{ending}" for ending in _ENDINGS.split())
"""The endings of pictures' names; a file without an ending is opened to see whether it is one."""
_UNSEEN = re.compile(r"\..*|thumbs\.db|desktop\.ini|__macosx", re.IGNORECASE)
"""Files that file managers leave behind."""


@dataclass(frozen=True)
class _Item:
    name: str
    path: Path
    folder: bool


@dataclass(frozen=True)
class _ClassFolder:
    """A folder of pictures."""

    split: str
    domain: str
    name: str
    path: Path


def list_folder(root: Path, by_domain: bool, skip: int) -> Listed:
    """The pictures of class/picture, or domain/class/picture, perhaps below train, val and test."""
    if not root.is_dir():
        what = "it is a file" if root.exists() else "no such folder"
        raise UserError(f"{root}: {what}: give the folder that holds a folder for each class")
    limits = bounds(root)
    with within(limits):
        return _listed(root, by_domain, skip, limits)


def _listed(root: Path, by_domain: bool, skip: int, limits: Bounds) -> Listed:
    problems: list[Problem] = []
    ids, targets, domains, splits, images = (list[str](), list[str](), list[str](), list[str](), list[Path]())
    for each in _classes(root, by_domain, problems):
        found = [entry for entry in _entries(each.path) if _is_picture(entry, problems, limits)]
        if not found:
            problems.append(Problem(str(each.path), "", "it has no pictures", "put some there, or remove the folder"))
        for entry in found:
            ids.append("/".join(part for part in (each.split, each.domain, each.name, entry.name) if part))
            targets.append(each.name)
            domains.append(each.domain)
            splits.append(split_of(each.split) or "")
            images.append(entry.path)
    told = refuse_beyond(skip, problems)
    if not ids:
        raise UserError(f"{root} holds no pictures")
    _refuse_twins(root, targets)
    return Listed(ids, targets, images, None, domains if by_domain else None, splits if splits[0] else None, None, told)


def _classes(root: Path, by_domain: bool, problems: list[Problem]) -> Iterator[_ClassFolder]:
    layout = "domain/class/picture" if by_domain else "class/picture"
    top = _folders(root, problems, f"pictures belong into folders: {layout}")
    splits = [entry.name for entry in top if split_of(entry.name)]
    with_splits = bool(splits) and len(splits) == len(top)
    if len(splits) > 1 and not with_splits:
        other = next(entry.name for entry in top if entry.name not in splits)
        raise UserError(f"{root} holds the splits {' and '.join(splits)}, and {other!r} beside them: move it elsewhere")
    for split in top if with_splits else [_Item("", root, True)]:
        inner = _folders(split.path, problems, f"pictures belong into folders: {layout}") if with_splits else top
        for outer in inner:
            if not by_domain:
                _refuse_deeper(outer, root)
                yield _ClassFolder(split.name, "", outer.name, outer.path)
                continue
            remedy = "benchmark.by=domain reads domain/class/picture; without it, class/picture is read"
            for own in _folders(outer.path, problems, remedy):
                yield _ClassFolder(split.name, outer.name, own.name, own.path)


def _folders(path: Path, problems: list[Problem], remedy: str) -> list[_Item]:
    """The folders in a folder; a picture beside them is a problem, but any other file (such as a README) is not."""
    found = _entries(path)
    pictures = [each for each in found if not each.folder and Path(each.name).suffix.lower() in ENDINGS]
    if pictures:
        more = f" and {len(pictures) - 1} other pictures lie" if len(pictures) > 1 else " lies"
        raise UserError(f"{pictures[0].path}{more} beside the folders, and belong to no class: {remedy}")
    return [each for each in found if each.folder]


def _refuse_deeper(outer: _Item, root: Path) -> None:
    """Raise a UserError for a class that holds only folders: the user has domains."""
    entries = _entries(outer.path)
    if entries and all(entry.folder for entry in entries):
        raise UserError(
            f"{outer.path} holds folders and no pictures: if {root} is laid out as domain/class/picture, set "
            "benchmark.by=domain"
        )


def _is_picture(entry: _Item, problems: list[Problem], limits: Bounds) -> bool:
    try:
        limits.check(entry.path)
    except FileError as error:
        problems.append(Problem(error.path, "", error.what, error.remedy))
        return False
    if entry.folder:
        problems.append(Problem(str(entry.path), "", "it is a folder within a class", "move its pictures up"))
    elif (ending := Path(entry.name).suffix.lower()) and ending not in ENDINGS:
        problems.append(Problem(str(entry.path), "", f"a {ending} file is not a picture", "move it elsewhere"))
    else:
        return True
    return False


def _entries(folder: Path) -> list[_Item]:
    refuse_outside(folder)
    try:
        with os.scandir(folder) as found:
            entries = [_Item(each.name, folder / each.name, each.is_dir()) for each in found]
    except OSError as error:
        raise cannot_open(folder, error) from None
    return sorted((each for each in entries if not _UNSEEN.fullmatch(each.name)), key=lambda each: each.name)


def _refuse_twins(root: Path, targets: Sequence[str]) -> None:
    """Raise a UserError for classes whose names differ only in letter case, spaces or dashes: they must be one."""
    plain: dict[str, str] = {}
    for name in dict.fromkeys(targets):
        twin = plain.setdefault(re.sub(r"[\s_-]+", " ", name).strip().casefold(), name)
        if twin != name:
            raise UserError(f"{root} has the classes {twin!r} and {name!r}: if they are one, give them one name")
