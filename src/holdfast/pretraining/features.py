"""A feature map of every image, computed once.

Beside the files that `data/features.py` reads, OUT.json records how many maps are done, and a hash of their inputs.
OUT.npy appears when all are done. A call that was interrupted continues where it stopped.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from holdfast import checksums
from holdfast.data.features import Features, open_features
from holdfast.data.images import decode
from holdfast.data.prepared import open_prepared
from holdfast.data.table import Shared
from holdfast.errors import UserError, in_bytes

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp")


def compute_features(
    network: Callable[[Tensor], Tensor],
    images: Path,
    out: Path,
    *,
    name: str = "",
    side: int = 224,
    batch: int = 32,
    device: str | torch.device = "cpu",
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Features:
    """Compute the feature map of every image of a folder, or of a prepared table, with a network.

    The network takes uint8 images (rows, 3, height, width) on the device; `name` identifies it, so that no file mixes
    two networks. Files are resized to `side`; a table's images are used at their own size.
    """
    if out.suffix != ".npy":
        raise UserError(f"features are saved as .npy: name the file {out.with_suffix('.npy').name}, not {out.name}")
    source = _TableImages(images) if (images / "index.json").exists() else _Folder(images, side)
    note, partial = out.with_suffix(".json"), out.with_name(f".{out.name}.writing")
    before = _read_note(note)
    seen = hashlib.blake2b(name.encode(), digest_size=16)
    done = min(int(before.get("done", 0)), len(source))
    for row in range(done):
        seen.update(source.state(row))
    same = before.get("source") == seen.hexdigest()
    if out.exists():
        if same and done == len(source):
            return open_features(out)
        raise UserError(f"{out} holds features of other images or of another network: change --out, or delete it")
    maps = _open_partial(partial, len(source)) if same and done else None
    if maps is None:
        done, seen = 0, hashlib.blake2b(name.encode(), digest_size=16)
    while done < len(source):
        rows = range(done, min(done + batch, len(source)))
        with torch.inference_mode():
            found = network(source.pixels(rows).to(device)).to("cpu", torch.float16).numpy()
        if maps is None:
            maps = _new_partial(partial, (len(source), *found.shape[1:]))
        maps[rows.start : rows.stop] = found
        maps.flush()
        for row in rows:
            seen.update(source.state(row))
        done = rows.stop
        _write_note(note, {"done": done, "images": len(source), "source": seen.hexdigest()})
        progress(done, len(source))
    ids = out.with_suffix(".id.npy")
    np.save(ids, np.array(source.ids, np.str_))
    files = {out.name: checksums.of_file(partial), ids.name: checksums.of_file(ids)}
    _write_note(note, {"done": done, "images": len(source), "source": seen.hexdigest(), "files": files})
    partial.rename(out)
    return open_features(out)


class _Folder:
    """The image files under a folder."""

    def __init__(self, folder: Path, side: int) -> None:
        self.side = side
        self.paths = sorted(_image_files(folder))
        if not self.paths:
            raise UserError(f"{folder} contains no images ({', '.join(SUFFIXES)}): specify the folder of the images")
        self.ids = [path.relative_to(folder).as_posix() for path in self.paths]

    def __len__(self) -> int:
        return len(self.paths)

    def state(self, row: int) -> bytes:
        state = self.paths[row].stat()
        return f"{self.ids[row]}/{state.st_size}/{state.st_mtime_ns}/{self.side};".encode("utf-8", "surrogateescape")

    def pixels(self, rows: range) -> Tensor:
        pixels = np.stack([decode(self.paths[row], self.side) for row in rows])
        return torch.from_numpy(np.ascontiguousarray(pixels.transpose(0, 3, 1, 2)))


class _TableImages:
    """The distinct images of a prepared table."""

    def __init__(self, folder: Path) -> None:
        prepared = open_prepared(folder)
        column = prepared.table.inputs.get("image")
        if isinstance(column, Shared):
            index = column.index.reshape(len(column), -1).numpy()
            first = np.full(len(column.values), -1)
            shown = np.repeat(np.arange(len(index)), index.shape[1])
            first[index.flatten()[::-1]] = shown[::-1]  # of several examples, the first remains, as it is written last
            self.values, self.ids = column.values, ["" if row < 0 else str(prepared.ids[row]) for row in first]
        elif isinstance(column, Tensor):
            self.values, self.ids = column, [str(name) for name in prepared.ids]
        else:
            raise UserError(f"{folder} has no decoded images: specify the folder of the images instead")
        self.fingerprint = prepared.fingerprint

    def __len__(self) -> int:
        return len(self.values)

    def state(self, row: int) -> bytes:
        return f"{row}/{self.fingerprint};".encode()

    def pixels(self, rows: range) -> Tensor:
        return self.values[rows.start : rows.stop]


def _image_files(folder: Path) -> Iterator[Path]:
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}: specify the folder of the images")
    for here, _, names in os.walk(folder):
        yield from (Path(here, name) for name in names if name.lower().endswith(SUFFIXES))


def _open_partial(path: Path, rows: int) -> np.memmap[Any, np.dtype[np.float16]] | None:
    try:
        found = np.lib.format.open_memmap(path, "r+")
    except (OSError, ValueError):
        return None
    return found if len(found) == rows and found.dtype == np.float16 else None


def _new_partial(path: Path, shape: tuple[int, ...]) -> np.memmap[Any, np.dtype[np.float16]]:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    need, free = 2 * int(np.prod(shape)), shutil.disk_usage(path.parent).free
    if need > free:  # writing to a mapped file on a full disk would kill the process without a message
        raise UserError(f"the features need {in_bytes(need)}, but {path.parent} has only {in_bytes(free)} free")
    return np.lib.format.open_memmap(path, "w+", np.float16, shape)


def _read_note(path: Path) -> dict[str, Any]:
    try:
        note = checksums.read_json(path)
    except (OSError, ValueError):
        return {}
    return note if isinstance(note, dict) else {}


def _write_note(path: Path, note: dict[str, Any]) -> None:
    temporary = path.with_name(f".{path.name}.writing")
    temporary.write_text(json.dumps(checksums.sealed(note)) + "\n", encoding="utf-8")
    temporary.rename(path)
