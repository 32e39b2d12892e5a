"""Examples prepared once, as columns on disk: `.npy` files that are mapped into memory, and an index in JSON.

```
FOLDER/index.json         the fingerprint of the source, the columns, what was skipped, checksums of all files
FOLDER/id.npy             the examples' ids
FOLDER/target.npy         the targets
FOLDER/image.npy          each distinct image once, (images, 3, height, width) uint8
FOLDER/image.row.npy      which image, or images, each example shows
FOLDER/image.path.npy ... instead, if images stay files: see data/lazy.py
FOLDER/text.npy ...       word pieces, and other columns of the caller
```

A folder is complete or absent: it is written under another name, synced and renamed. A damaged one is prepared
again.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from holdfast import checksums
from holdfast.data.decoding import ImageFit, StoredImage, fill
from holdfast.data.images import Drawing
from holdfast.data.language import PromptPieces
from holdfast.data.lazy import open_files, survey
from holdfast.data.table import Column, Shared, Table
from holdfast.data.text import Tokenizer
from holdfast.errors import UserError, in_bytes
from holdfast.types import Array, Example

VERSION = 1
"""The version of the layout and its content; a table of another version is prepared again."""
_RESERVED = ("id", "target", "image", "image_size", "text", "text_length", "text_second")
_CHUNK = 1024

Values: TypeAlias = Callable[[Sequence[Example]], Array]
"""A column's values for some examples: one row each, always of the same shape and type."""


@dataclass(frozen=True)
class PreparedTable:
    """A prepared table, the ids of its rows, its source's fingerprint, and what had to be skipped."""

    table: Table
    ids: NDArray[np.str_]
    fingerprint: str
    problems: tuple[str, ...]


def class_numbers(examples: Sequence[Example]) -> Array:
    """The targets of examples that each have one class number.

    >>> class_numbers([Example("a", 3), Example("b", 0)])
    array([3, 0])
    """
    for example in examples:
        if not isinstance(example.target, int):
            raise UserError(f"example {example.id} has the target {example.target!r}, which is not a class number")
    return np.array([example.target for example in examples], np.int64)


def prepare(
    task: str,
    examples: Iterable[Example],
    folder: Path,
    *,
    target: Values = class_numbers,
    image_size: int | None = None,
    shorter: int | None = None,
    longest: int | None = None,
    step: int = 1,
    drawing: Callable[[Example], Drawing | None] | None = None,
    tokenizer: Tokenizer | PromptPieces | None = None,
    length: int | None = None,
    joined: bool = False,
    columns: Mapping[str, Values] | None = None,
    source: str | None = None,
    skip: int = 0,
    decode: bool = True,
    workers: int = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> PreparedTable:
    """Open the prepared table in a folder; prepare it first if it is missing or its source has changed.

    Inputs: `image` (examples, [images,] 3, height, width), with `image_size` if images keep their proportions;
    `text` and `text_length`, of each choice where examples have choices; `text_second`, where the choice begins as a
    segment of its own, unless text and choice are `joined` to one text; and any further `columns`. `source` is the
    caller's hash of the examples and everything that the functions depend on (see `files_fingerprint`); while it and
    the settings stay the same, the examples are not even read. Without it, all input values are compared. At most
    `skip` examples whose images cannot be decoded are skipped and listed in `problems`.

    Images are decoded once, by `workers`. With `decode=False`, which suits sets too large for that, they stay files,
    and `workers` processes (this one, for 0) decode each batch; then a file with an intact header but damaged pixels is
    only reported when a batch needs it.

    >>> import tempfile
    >>> red = Example("a", 1, (np.full((4, 4, 3), 9, np.uint8),))
    >>> prepared = prepare("colours", [red], Path(tempfile.mkdtemp()) / "train", image_size=2)
    >>> prepared.table.inputs["image"].shape, prepared.ids.tolist()
    (torch.Size([1, 3, 2, 2]), ['a'])
    """
    if (tokenizer is None) != (length is None):
        raise UserError("word pieces need both a tokenizer and a length")
    fit = ImageFit(image_size, shorter, longest, step)
    pieces = None if tokenizer is None else tokenizer.fingerprint
    values = dict(columns or {})
    for name in values:
        if not name.isidentifier() or name in _RESERVED:
            raise UserError(f"a column cannot be called {name!r}: use a plain name other than {', '.join(_RESERVED)}")
    settings = [VERSION, task, *fit.numbers(), pieces, length, sorted(values), drawing is not None]
    settings += [word for word, holds in (("files", not decode), ("joined", joined)) if holds]
    known = None if source is None else _hash(settings, [source])
    if known is not None and (found := _open(folder, known, skip, workers)):
        return found
    rows = list(examples)
    if not rows:
        raise UserError(f"task {task!r}: there are no examples to prepare")
    drawings = [None if drawing is None else drawing(row) for row in rows]
    fingerprint = known or _hash(settings, _contents(rows, drawings, [target, *values.values()]))
    if found := _open(folder, fingerprint, skip, workers):
        return found
    with _alone(folder) as partial:
        if found := _open(folder, fingerprint, skip, workers):  # another process prepared it while this one waited
            return found
        kept, problems = _write_images(partial, rows, drawings, fit, skip, decode, workers, progress)
        if tokenizer is not None and length is not None:
            _write_text(partial, kept, tokenizer, length, joined)
        for name, function in [*values.items(), ("target", target)]:
            _write(partial / f"{name}.npy", len(kept), (np.asarray(function(chunk)) for chunk in _chunks(kept)))
        np.save(partial / "id.npy", np.array([row.id for row in kept], np.str_))
        names = sorted({path.name.split(".")[0] for path in partial.glob("*.npy")} - {"id", "target"})
        index = {"version": VERSION, "task": task, "fingerprint": fingerprint, "rows": len(kept), "columns": names}
        index |= {"problems": problems, "files": checksums.of_folder(partial, (p.name for p in partial.glob("*.npy")))}
        text = json.dumps(checksums.sealed(index), indent=1, ensure_ascii=False)
        (partial / "index.json").write_text(text + "\n", encoding="utf-8")
        _publish(partial, folder)
    return open_prepared(folder, workers)


def open_prepared(folder: Path, workers: int = 1) -> PreparedTable:
    """Open a prepared table, whatever its source was; `workers` decode images that stayed files.

    All of its files are verified first, once per process.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp()) / "train"
    >>> prepare("words", [Example("a", 3), Example("b", 1)], folder).fingerprint == open_prepared(folder).fingerprint
    True
    """
    return _read(folder, workers, verified=False)


def _read(folder: Path, workers: int, *, verified: bool) -> PreparedTable:
    """Open a table; with `verified`, raise an error for one that predates checksums."""
    try:
        index = checksums.read_json(folder / "index.json", required=verified)
        checksums.check_folder(folder, index["files"] if verified else index.get("files", {}))
        if index.get("version") != VERSION:
            raise UserError(f"{folder} was prepared by another version of Holdfast: prepare it again")
        ids: NDArray[np.str_] = np.load(folder / "id.npy", mmap_mode="r")
        inputs = {name: _column(folder, name, workers) for name in index["columns"]}
        table = Table(index["task"], inputs, _tensor(folder / "target.npy"))
        if not {len(ids), len(table), *map(len, inputs.values())} == {index["rows"]}:
            raise UserError(f"{folder} is broken: its columns differ in length; prepare it again")
        return PreparedTable(table, ids, index["fingerprint"], tuple(index["problems"]))
    except FileNotFoundError as error:
        raise UserError(f"{folder} holds no prepared table: {Path(error.filename).name} is missing") from None
    except Exception as error:  # without a checksum, a damaged header can fail in any way inside NumPy
        if isinstance(error, UserError):
            raise
        raise UserError(f"{folder} is broken ({error}): prepare it again") from None


def files_fingerprint(folder: Path, *settings: object) -> str:
    """A hash of the names, sizes and times of all files under a folder, and of any settings: a `source` for `prepare`.

    For a file, its own. Times are those of the content and of the status, which nobody can set back: a file that was
    replaced by one of the same size and date is noticed.

    >>> here = Path(__file__).parent
    >>> files_fingerprint(here, "train") == files_fingerprint(here, "train") != files_fingerprint(here, "val")
    True
    """
    digest = hashlib.blake2b(repr(settings).encode(), digest_size=16)
    if folder.is_file():
        digest.update(file_state(folder).encode("utf-8", "surrogateescape"))
        return digest.hexdigest()
    waiting = [str(folder)]
    while waiting:
        with os.scandir(waiting.pop()) as found:
            for entry in sorted(found, key=lambda entry: entry.name):
                if entry.is_dir():
                    waiting.append(entry.path)
                else:
                    state = entry.stat()
                    name = os.path.relpath(entry.path, folder)
                    when = f"{state.st_mtime_ns}/{state.st_ctime_ns}"
                    digest.update(f"{name}/{state.st_size}/{when};".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _open(folder: Path, fingerprint: str, skip: int, workers: int) -> PreparedTable | None:
    """The existing table, if it is intact, has this source, and skips no more than allowed."""
    try:
        found = _read(folder, workers, verified=True)
    except UserError:
        return None
    return found if found.fingerprint == fingerprint and len(found.problems) <= skip else None


def _tensor(path: Path) -> torch.Tensor:
    # Copy on write: PyTorch considers the tensor writable, and nothing can change the file through it.
    return torch.from_numpy(np.load(path, mmap_mode="c"))


def _column(folder: Path, name: str, workers: int) -> Column:
    if name == "image" and (folder / "image.path.npy").exists():
        return open_files(folder, workers)
    values = _tensor(folder / f"{name}.npy")
    rows = folder / "image.row.npy"
    return Shared(values, _tensor(rows)) if name in ("image", "image_size") and rows.exists() else values


def _write_images(
    partial: Path,
    rows: Sequence[Example],
    drawings: Sequence[Drawing | None],
    fit: ImageFit,
    skip: int,
    decode: bool,
    workers: int,
    progress: Callable[[int, int], None],
) -> tuple[Sequence[Example], list[str]]:
    """Write the image table; return the examples with all their images, and what is wrong with the others."""
    counts = {len(row.images) for row in rows}
    if len(counts) > 1:
        raise UserError(f"all examples of a task need the same number of images, but here some have {sorted(counts)}")
    if counts == {0}:
        return rows, []
    pictures, numbers = _distinct(rows, drawings)
    write = _decode_all if decode else survey
    bad = write(partial, pictures, fit, workers, progress)
    lost = [place for place, shown in enumerate(numbers) if not bad.keys().isdisjoint(shown.tolist())]
    problems = [f"example {rows[p].id}: {next(bad[n] for n in numbers[p].tolist() if n in bad)}" for p in lost]
    if len(problems) > skip:
        others = f" (one of {len(problems)} such examples; {skip} may be left out)" if len(problems) > 1 else ""
        others += f"; --skip-bad {len(problems)} skips {'them all' if len(problems) > 1 else 'it'}"
        raise UserError(problems[skip] + others)
    kept = np.delete(numbers, lost, axis=0)
    if len(kept) == 0:
        raise UserError(f"no example is left: {problems[0]}")
    if kept.shape[1] == 1:
        kept = kept[:, 0]
    if not np.array_equal(kept, np.arange(len(pictures))):  # if each row has its own image, no index is needed
        np.save(partial / "image.row.npy", kept)
    dropped = set(lost)
    return [row for place, row in enumerate(rows) if place not in dropped], problems


def _decode_all(
    partial: Path, pictures: Sequence[StoredImage], fit: ImageFit, workers: int, progress: Callable[[int, int], None]
) -> dict[int, str]:
    """Write the decoded images; return the numbers of those that cannot be, and what is wrong with them."""
    shape = (len(pictures), *fit.shape(pictures))
    need, free = int(np.prod(shape)), shutil.disk_usage(partial).free
    if need > free:  # writing to a mapped file on a full disk would kill the process silently
        raise UserError(f"the images take {in_bytes(need)}, but {partial.parent} has {in_bytes(free)} free")
    images, sizes = partial / "image.npy", partial / "image_size.npy"
    np.lib.format.open_memmap(images, "w+", np.uint8, shape).flush()
    np.save(sizes, np.zeros((len(pictures), 2), np.int32))
    bad = fill(images, sizes, pictures, fit, workers, progress)
    if fit.longest is None:
        sizes.unlink()
    return bad


def _distinct(
    rows: Sequence[Example], drawings: Sequence[Drawing | None]
) -> tuple[list[StoredImage], NDArray[np.int64]]:
    """The distinct pairs of file and drawing, in the order of the examples, and those that each example shows."""
    pictures: list[StoredImage] = []
    seen: dict[tuple[Path, Drawing | None], int] = {}
    numbers = np.zeros((len(rows), len(rows[0].images)), np.int64)
    for place, (row, drawing) in enumerate(zip(rows, drawings, strict=True)):
        for which, image in enumerate(row.images):
            number = len(pictures)
            if isinstance(image, Path):
                number = seen.setdefault((image, drawing), number)
            if number == len(pictures):
                pictures.append(StoredImage(image, drawing))
            numbers[place, which] = number
    return pictures, numbers


def _write_text(
    partial: Path, rows: Sequence[Example], tokenizer: Tokenizer | PromptPieces, length: int, joined: bool
) -> None:
    """The text alone, or each choice, preceded by the text if there is one."""
    choices = {len(row.choices) for row in rows}
    if len(choices) > 1:
        raise UserError(f"all examples of a task need the same number of choices, but here some have {sorted(choices)}")
    count = choices.pop()
    paired = count > 0 and any(row.text for row in rows)

    found: list[list[Array]] = []  # the lengths, and where choices begin that are segments of their own

    def numbers() -> Iterator[Array]:
        for chunk in _chunks(rows):
            texts = [row.text for row in chunk for _ in range(max(count, 1))]
            answers = [choice for row in chunk for choice in row.choices]
            if not paired:
                pieces, *more = tokenizer.encode(answers if count else texts, length)
            elif isinstance(tokenizer, PromptPieces):
                raise UserError("a prompt has no choices: give them as answers")
            elif joined:
                pieces, *more = tokenizer.encode_joined(texts, answers, length)
            else:
                pieces, *more = tokenizer.encode_pairs(texts, answers, length)
            shape = (len(chunk), count) if count else (len(chunk),)
            found.append([each.reshape(shape) for each in more])
            yield pieces.reshape(*shape, length)

    _write(partial / "text.npy", len(rows), numbers())
    for name, parts in zip(("text_length", "text_second"), zip(*found, strict=True), strict=False):
        np.save(partial / f"{name}.npy", np.concatenate(parts))


def _chunks(rows: Sequence[Example]) -> Iterator[Sequence[Example]]:
    return (rows[start : start + _CHUNK] for start in range(0, len(rows), _CHUNK))


def _write(path: Path, rows: int, chunks: Iterable[Array]) -> None:
    """Write a column part by part: it may be larger than memory."""
    out: Array | None = None
    start = 0
    for chunk in chunks:
        if out is None:
            shape = (rows, *chunk.shape[1:])
            out = np.lib.format.open_memmap(path, "w+", chunk.dtype, shape)
        if chunk.shape[1:] != out.shape[1:] or chunk.dtype != out.dtype or start + len(chunk) > rows:
            raise UserError(
                f"the column {path.stem!r} changes from {out.dtype} {out.shape[1:]} to {chunk.dtype} {chunk.shape[1:]} "
                f"at row {start}, or has too many rows: each example needs one value of one shape and type"
            )
        out[start : start + len(chunk)] = chunk
        start += len(chunk)
    if start != rows:
        raise UserError(f"the column {path.stem!r} has {start} rows for {rows} examples")


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[Path]:
    """An empty folder to fill while no other process prepares the same table; it is removed unless published."""
    if folder.is_file() or (folder.exists() and any(folder.iterdir()) and not (folder / "index.json").is_file()):
        raise UserError(f"{folder} contains something other than a prepared table: give another folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial, old = _beside(folder, "partial"), _beside(folder, "old")
    with _beside(folder, "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # released when the process ends, however it ends
        for left in (partial, old):  # from a process that was killed
            shutil.rmtree(left, ignore_errors=True)
        partial.mkdir()
        try:
            yield partial
        finally:
            for left in (partial, old):
                shutil.rmtree(left, ignore_errors=True)


def _beside(folder: Path, kind: str) -> Path:
    return folder.with_name(f".{folder.name}.{kind}")


def _publish(partial: Path, folder: Path) -> None:
    for path in [*partial.iterdir(), partial]:
        _sync(path)
    old = _beside(folder, "old")
    if folder.exists():
        folder.rename(old)
    partial.rename(folder)
    _sync(folder.parent)


def _sync(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _hash(settings: Sequence[object], contents: Iterable[str | bytes]) -> str:
    digest = hashlib.blake2b(repr(settings).encode(), digest_size=16)
    for content in contents:
        digest.update(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _contents(
    rows: Sequence[Example], drawings: Sequence[Drawing | None], functions: Sequence[Values]
) -> Iterator[str | bytes]:
    """A hash of everything in a table: texts, drawings, the state of each image file or its pixels, and every value."""
    states: dict[Path, str] = {}
    for row, drawing in zip(rows, drawings, strict=True):
        yield repr((row.id, row.text, row.choices, drawing))
        for image in row.images:
            if isinstance(image, Path):
                if image not in states:
                    states[image] = file_state(image)
                yield states[image]
            else:
                yield f"{image.shape}{image.dtype}"
                yield image.tobytes()
    for function in functions:
        for chunk in _chunks(rows):
            values = np.asarray(function(chunk))
            yield f"{values.shape}{values.dtype}"
            yield values.tobytes()


def file_state(image: Path) -> str:
    """The name, size and times of a file, which change with its content."""
    try:
        state = image.stat()
    except OSError:  # reported when it is decoded, with the example's id
        return f"{image} missing"
    return f"{image}/{state.st_size}/{state.st_mtime_ns}/{state.st_ctime_ns}"
