"""Examples that a program has in memory: arrays, or any sequence of pairs of an input and its class."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from holdfast.benchmarks.own.benchmark import OwnData
from holdfast.benchmarks.own.listing import Listed, Picture
from holdfast.data.prepared import file_state
from holdfast.errors import UserError, nearest
from holdfast.types import Array


class Held:
    """Examples in memory. They are never changed, so a copy is the same object; two are equal if their content is."""

    def __init__(self, listing: Listed) -> None:
        self.listing = listing

    @cached_property
    def _hash(self) -> str:
        known = self.listing
        columns = (known.ids, known.targets, known.values, known.splits, known.groups)
        return hashlib.blake2b(repr(columns).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()

    def fingerprint(self) -> str:
        """A hash of everything that was passed."""
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held) and self._hash == other._hash

    def __hash__(self) -> int:
        return hash(self._hash)

    def __repr__(self) -> str:
        return f"Held({len(self.listing)} examples, {self._hash})"

    def __copy__(self) -> Held:
        return self

    def __deepcopy__(self, memo: object) -> Held:
        return self


@dataclass(frozen=True)
class InMemory(OwnData):
    """Examples passed by a program: see `holdfast.streams`."""

    places: ClassVar[frozenset[str]] = OwnData.places | {"held"}

    held: Held = field(kw_only=True)
    """The examples; in a run's id, the data's fingerprint stands for them."""

    @property
    def title(self) -> str:
        """A general name, since data in memory has none."""
        return "the data in memory"

    @property
    def sees(self) -> Literal["image", "text", "both"]:
        """The kinds of input of the examples."""
        known = self.held.listing
        return "text" if known.images is None else "image" if known.texts is None else "both"

    def listing(self) -> Listed:
        """The examples."""
        return self.held.listing


@dataclass
class Gathered:
    """Collects examples, one after another or many at once."""

    images: list[Picture] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)
    splits: list[str] = field(default_factory=list)

    def add(self, seen: Any, target: Any, value: Any, split: str, where: str) -> None:
        """Add one example; messages call it `where`."""
        image, text = seen if isinstance(seen, tuple) and len(seen) == 2 else (None, seen)
        if image is None and not isinstance(text, str):
            image, text = seen, None
        if image is not None:
            self.images.append(picture_of(image, where))
        if text is not None:
            if not isinstance(text, str):
                raise UserError(f"{where}: the text is an object of the class {type(text).__name__}: give a string")
            self.texts.append(text)
        self.targets.append(class_name(target, where))
        self.splits.append(split)
        if value is not None:
            self.values.append(class_name(value, where))

    def held(self) -> Held:
        """The examples in memory, each with an id that depends on its content."""
        count, texts = len(self.targets), self.texts or None
        if not count:
            raise UserError("there are no examples: the data is empty")
        for name, column in (("picture", self.images), ("text", self.texts), ("value", self.values)):
            if column and len(column) != count:
                raise UserError(f"{len(column)} of {count} examples have a {name}: give all of them one, or none")
        shown = [_content(image) for image in self.images] or self.texts
        seen, ids = Counter[str](), list[str]()
        for row, content in enumerate(shown):
            parts = (content, texts[row] if texts else "", self.targets[row], *self.values[row : row + 1])
            name = hashlib.blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
            seen[name] += 1
            ids.append(f"{name}-{seen[name]}" if seen[name] > 1 else name)
        images: Sequence[Picture] | None = self.images or None
        if images and len({image.shape if isinstance(image, np.ndarray) else None for image in images}) == 1:
            images = images if isinstance(images[0], Path) else np.stack(images)  # type: ignore[arg-type, assignment]
        elif images and len({isinstance(image, Path) for image in images}) == 2:
            raise UserError("some pictures are files and some are arrays: give one kind")
        splits = self.splits if set(self.splits) != {"train"} else None
        return Held(Listed(ids, self.targets, images, texts, self.values or None, splits, shown))


def picture_of(value: Any, where: str = "x") -> Picture:
    """A picture as (height, width, channels) of uint8, or its file.

    >>> picture_of(np.ones((3, 8, 6), np.float32)).shape, picture_of(Path("cat.jpg"))
    ((8, 6, 3), PosixPath('cat.jpg'))
    """
    if isinstance(value, Path):
        return value
    if hasattr(value, "convert"):  # Pillow's
        return np.asarray(value.convert("RGB"))
    array = pixels_of(value, where)
    if array.ndim == 2:
        array = array[:, :, None]
    if array.ndim == 3 and array.shape[2] not in (1, 3, 4) and array.shape[0] in (1, 3, 4):
        array = array.transpose(1, 2, 0)
    if array.ndim != 3 or array.shape[2] not in (1, 3, 4):
        raise UserError(f"{where}: a picture has height, width and 1 or 3 channels, and this has shape {array.shape}")
    return array[:, :, :3]


def pixels_of(value: Any, where: str) -> Array:
    """Pixels as uint8, from whole numbers up to 255 or fractions up to 1.

    >>> pixels_of([[0.0, 0.5, 1.0]], "x").tolist()
    [[0, 128, 255]]
    """
    array: Array = np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
    if array.dtype == np.uint8:
        return array
    if array.dtype == object or array.dtype.kind not in "biuf":
        raise UserError(f"{where} holds no pictures: give an array of numbers, Pillow images, or paths (pathlib.Path)")
    low, high = (float(array.min()), float(array.max())) if array.size else (0.0, 0.0)
    fractions = array.dtype.kind == "f" and high <= 1
    if low < 0 or high > 255 or not np.isfinite([low, high]).all():
        raise UserError(
            f"{where} has values from {low:g} to {high:g}: give pixels from 0 to 255, or from 0 to 1. Models normalise "
            "pixels themselves, so leave that out"
        )
    found: Array = np.rint(array * 255 if fractions else array).astype(np.uint8)
    return found


def class_name(value: Any, where: str) -> str:
    """The name of a class, or of a stage's value, from a number or text.

    >>> class_name(np.int64(7), "y"), class_name("cat", "y"), class_name(2.0, "y")
    ('7', 'cat', '2')
    """
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        value = value.item()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Real) and float(value).is_integer():
        return str(int(float(value)) if isinstance(value, float) else value)
    if isinstance(value, str) and value.strip():
        return value.strip()
    if isinstance(value, Real) or value is None or isinstance(value, str):
        raise UserError(f"{where}: {value!r} is not a class: give a whole number or a name")
    raise UserError(f"{where}: an object of the class {type(value).__name__} is not a class: give a number or a name")


def gather_arrays(into: Gathered, x: Any, y: Any, by: Any, split: str, where: str) -> None:
    """Add arrays: pictures (examples, height, width[, channels]) or texts, or a tuple of both, and a class for each."""
    both = isinstance(x, tuple) and len(x) == 2 and not isinstance(x[0], str)
    images, texts = (_plain(x[0]), _plain(x[1])) if both else (_plain(x), None)
    if isinstance(images, Sequence | np.ndarray) and len(images) and isinstance(images[0], str):
        images, texts = None, images
    y, by = _plain(y), _plain(by)
    count = len(texts) if texts is not None else len(images)
    for name, column in (("y", y), ("by", by), ("the pictures", images)):
        if column is not None and len(column) != count:
            raise UserError(f"{where} has {count} examples and {name} {len(column)}: give one for each")
    if images is not None and (not isinstance(images, Sequence) or hasattr(images, "detach")):
        images = pixels_of(images, where)  # all at once: whether these are fractions is one question
        if images.ndim not in (3, 4):
            raise UserError(f"{where} has shape {images.shape}: give pictures, as (examples, height, width, channels)")
    for row in range(count):
        value = None if by is None else by[row]
        text = None if texts is None else str(texts[row])
        seen = text if images is None else images[row] if text is None else (images[row], text)
        into.add(seen, y[row], value, split, f"{where}, example {row}")


def gather_pairs(
    into: Gathered,
    items: Iterable[Any],
    names: Mapping[str, str],
    by: str | Callable[[Any], Any] | None,
    split: str,
) -> None:
    """Add pairs of an input and its class, or rows with these columns."""
    if not hasattr(items, "__getitem__"):
        if not hasattr(items, "__iter__"):
            raise UserError(f"an object of the class {type(items).__name__} is not a sequence of (input, target) pairs")
        items = list(items)
    for row in range(len(items)):  # type: ignore[arg-type]
        item, where = items[row], f"{split} example {row}"
        if isinstance(item, Mapping):
            parts = {kind: _field(item, name, kind, where) for kind, name in names.items() if name}
            seen: Any = tuple(parts[kind] for kind in ("image", "text") if kind in parts)
            if not seen:
                raise UserError(f"{where}: say image= or text=, the names of columns: it has {', '.join(item)}")
            seen, target = seen if len(seen) == 2 else seen[0], parts["target"]
        elif isinstance(item, Sequence) and len(item) >= 2 and not isinstance(item, str):
            seen, target = item[0], item[1]
        else:
            kind = type(item).__name__
            raise UserError(f"{where} is not a pair of an input and a target, but an object of the class {kind}")
        value = None if by is None else _field(item, by, "by", where) if isinstance(by, str) else by(item)
        into.add(seen, target, value, split, where)


def _plain(column: Any) -> Any:
    """A column of pandas as an array."""
    return column.to_numpy() if hasattr(column, "to_numpy") else column


def _field(item: Any, name: str, kind: str, where: str) -> Any:
    if not isinstance(item, Mapping):
        raise UserError(f"{where} is a pair, without columns: give a function for {kind}")
    if name not in item:
        raise UserError(f"{where} has no column {name!r} ({kind}): {nearest(name, item)}")
    return item[name]


def _content(image: Picture) -> str:
    if isinstance(image, Path):
        return file_state(image)
    digest = hashlib.blake2b(repr(image.shape).encode(), digest_size=16)
    digest.update(np.ascontiguousarray(image).data)
    return digest.hexdigest()
