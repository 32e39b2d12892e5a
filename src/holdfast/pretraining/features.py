"""A feature map of every image, or a feature of each of its boxes, computed once.

Beside the files that `data/features.py` reads, OUT.json records how many images are done, and a hash of their inputs.
OUT appears when all are done. An interrupted call continues where it stopped. The result does not depend on
the number of processes: each image of a batch is computed with the same others, by one thread.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from holdfast import checksums
from holdfast.data.features import SUFFIXES, Shapes, files_of, make_arrays, map_arrays
from holdfast.data.regions import grid_cells
from holdfast.data.threads import reuse_memory, threads
from holdfast.errors import UserError, in_bytes
from holdfast.pretraining.boxes import BoxFile
from holdfast.pretraining.shown import ShownImages, open_images
from holdfast.processes import working

Network: TypeAlias = Callable[[Tensor], Tensor]
Made: TypeAlias = dict[str, NDArray[Any]]
FEW = 2
"""Up to this number of parts for each process, one process computes all: starting others takes seconds."""
SAMPLES = 7
"""A box's feature is the mean of 7 x 7 points, between the cells of the map."""


@dataclass(frozen=True)
class Kept:
    """The part of a feature map that is kept: the map itself, or the features of boxes."""

    kind: Literal["grid", "regions"] = "grid"
    cells: int = 0
    """Pool the map to this many cells a side; 0: leave it as it is."""
    boxes: BoxFile | None = None
    """With `regions`, the boxes of each image; None: the cells of the map."""

    def name(self) -> str:
        """An identifier that distinguishes it from all others; empty for the unchanged map."""
        boxes = self.boxes.fingerprint if self.boxes else ""
        return f"/{self.kind}/{self.cells}/{boxes}" if self != Kept() else ""

    def only(self, names: NDArray[np.str_]) -> Kept:
        """The same, with the boxes of only some images."""
        return replace(self, boxes=self.boxes.only(names.tolist())) if self.boxes else self

    def shapes(self, images: int, made: Made, longest: int) -> Shapes:
        """The arrays for this many images, from those of some of them."""
        if self.kind == "grid":
            return {"features": ((images, *made["features"].shape[1:]), "<f2")}
        most = self.boxes.most if self.boxes else made["bbox_features"].shape[1]
        return {
            "bbox_features": ((images, most, made["bbox_features"].shape[2]), "<f2"),
            "bboxes": ((images, most, 4), "<f4"),
            "num_boxes": ((images,), "<i8"),
            "sizes": ((images, 2), "<i8"),
            "ids": ((images,), f"S{longest}"),
        }


def compute_features(
    network: Network,
    images: Path,
    out: Path,
    *,
    name: str = "",
    side: int = 224,
    batch: int = 32,
    device: str | torch.device = "cpu",
    kept: Kept | None = None,
    workers: int = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[int, ...]:
    """Compute the features of every image of a folder, or of a prepared table, with a network; return their shape.

    The network takes uint8 images (rows, 3, height, width) on the device, and returns their feature maps; `name`
    identifies it, so that no file mixes two networks. Files are resized to `side`; a table's images are used at their
    own size. With several `workers`, processes decode images and, on the CPU, compute: the network is then pickled.
    """
    if out.suffix not in SUFFIXES:
        raise UserError(
            f"features are saved as {' or '.join(SUFFIXES)}: "
            f"name the file {out.with_suffix('.npy').name}, not {out.name}"
        )
    source = open_images(images, side)
    kept = kept or Kept()
    if kept.boxes:
        kept.boxes.check(source.ids)
    store = _FeatureFile(out, len(source), hashlib.blake2b((name + kept.name()).encode(), digest_size=16), source.state)
    if store.finished():
        return _shape(out)
    parts = [range(start, min(start + batch, len(source))) for start in range(store.open(), len(source), batch)]
    for rows, made in zip(parts, _computed(network, source, parts, str(device), kept, workers), strict=True):
        if not store.arrays:
            encoded = np.char.encode(source.ids, "utf-8", "surrogateescape")
            store.create(kept.shapes(len(source), made, encoded.dtype.itemsize), encoded)
        store.write(rows, made)
        progress(rows.stop, len(source))
    store.finish(source.ids)
    return _shape(out)


def _computed(
    network: Network, source: Any, parts: list[range], device: str, kept: Kept, workers: int
) -> Iterator[Made]:
    """The results for each part, in order; a few parts, each of some megabytes, are computed ahead."""
    if workers == 1 or len(parts) <= FEW * workers:
        for rows in parts:
            yield _made(network, source.shown(rows), device, kept)
        return
    on_cpu = device == "cpu"
    waiting: deque[Future[Any]] = deque()
    with working(workers, "a process that computes features died: give it more memory, or use --jobs 1") as pool:
        for part in [*parts, *[None] * (2 * workers)]:
            if part is not None and on_cpu:
                only = kept.only(source.ids[part.start : part.stop])
                waiting.append(pool.submit(_shown_and_made, network, source.part(part), only))
            elif part is not None:
                waiting.append(pool.submit(_shown, source.part(part)))
            if waiting and (part is None or len(waiting) > 2 * workers):
                found = waiting.popleft().result()
                yield found if on_cpu else _made(network, found, device, kept)


def _shown(part: Any) -> ShownImages:
    found: ShownImages = part()
    return found


def _shown_and_made(network: Network, part: Any, kept: Kept) -> Made:
    reuse_memory()
    return _made(network, part(), "cpu", kept)


def _made(network: Network, shown: ShownImages, device: str, kept: Kept) -> Made:
    """The arrays of some images."""
    with threads(1), torch.inference_mode():
        maps = network(torch.from_numpy(shown.pixels).to(device))
        if kept.cells:
            maps = functional.adaptive_avg_pool2d(maps, kept.cells)
        if kept.kind == "grid":
            return {"features": maps.to("cpu", torch.float16).numpy()}
        shares = [grid_cells(*maps.shape[-2:])] * len(maps)
        if kept.boxes:
            shares = [kept.boxes.shares(name, size) for name, size in zip(shown.ids, shown.sizes, strict=True)]
            rows = [pooled(each, torch.from_numpy(box)) for each, box in zip(maps, shares, strict=True)]
        else:
            rows = list(maps.flatten(2).transpose(1, 2))
        most = kept.boxes.most if kept.boxes else len(shares[0])
        made: Made = {
            "bbox_features": np.zeros((len(maps), most, maps.shape[1]), "<f2"),
            "bboxes": np.zeros((len(maps), most, 4), "<f4"),
            "num_boxes": np.array([len(each) for each in shares]),
            "sizes": np.array(shown.sizes),
        }
        for row, (found, box, size) in enumerate(zip(rows, shares, shown.sizes, strict=True)):
            made["bbox_features"][row, : len(box)] = found.to("cpu", torch.float16).numpy()
            made["bboxes"][row, : len(box)] = box * np.array([*size, *size], np.float32)
        return made


def pooled(found: Tensor, boxes: Tensor) -> Tensor:
    """The mean of a map (channels, down, across) within each box (boxes, 4), corners as shares: (boxes, channels).

    >>> left_to_right = torch.arange(4.0).expand(1, 4, 4)
    >>> pooled(left_to_right, torch.tensor([[0.25, 0.0, 0.75, 1.0], [0.5, 0.5, 0.75, 0.75]])).round(decimals=3).tolist()
    [[1.5], [2.0]]
    """
    boxes = boxes.to(found)
    at = (torch.arange(SAMPLES, device=found.device, dtype=found.dtype) + 0.5) / SAMPLES
    start, sides = boxes[:, None, :2], (boxes[:, 2:] - boxes[:, :2])[:, None]
    x, y = (2 * (start + sides * at[:, None]) - 1).unbind(2)  # (boxes, samples) each, from -1 to 1
    where = torch.stack([x[:, None, :].expand(-1, SAMPLES, -1), y[:, :, None].expand(-1, -1, SAMPLES)], 3)
    seen = functional.grid_sample(found[None], where.flatten(1, 2)[None], padding_mode="border", align_corners=False)
    return seen[0].mean(2).T


class _FeatureFile:
    """The arrays of a file that is being written, and the note of the progress."""

    def __init__(self, out: Path, images: int, name: Any, state: Callable[[int], bytes]) -> None:
        self.out, self.images, self.seen, self.state = out, images, name, state
        self.note, self.partial = out.with_suffix(".json"), out.with_name(f".{out.stem}.writing{out.suffix}")
        self.arrays: dict[str, NDArray[Any]] = {}
        before = _read_note(self.note)
        self.done = min(int(before.get("done", 0)), images)
        self.names: list[str] = before.get("arrays", ["features"])
        self._fresh = name.copy()
        for row in range(self.done):
            self.seen.update(state(row))
        self.same = before.get("source") == self.seen.hexdigest()

    def finished(self) -> bool:
        """Whether everything is already done; a UserError if the file holds something else."""
        if not self.out.exists():
            return False
        if self.same and self.done == self.images:
            return True
        raise UserError(f"{self.out} holds features of other images or of another network: change --out, or delete it")

    def open(self) -> int:
        """Open the arrays that an earlier call left, and return how many images are done."""
        if self.same and self.done:
            try:
                self.arrays = self._opened()
            except (OSError, ValueError):
                self.arrays = {}
        if not self.arrays:
            self.done, self.seen = 0, self._fresh
        return self.done

    def create(self, shapes: Shapes, ids: NDArray[np.bytes_]) -> None:
        """Make room for all images."""
        shapes = dict(shapes)
        if self.out.suffix == ".h5":
            shapes["ids"] = ((self.images,), f"S{ids.dtype.itemsize}")
        else:
            shapes.pop("ids", None)
        self.out.parent.mkdir(parents=True, exist_ok=True)
        self.names = list(shapes)
        for path in set(files_of(self.partial, self.names).values()):
            path.unlink(missing_ok=True)
        need = sum(int(np.prod(shape)) * np.dtype(kind).itemsize for shape, kind in shapes.values())
        free = shutil.disk_usage(self.out.parent).free
        if need > free:  # writing to a mapped file on a full disk would kill the process without a message
            raise UserError(f"the features need {in_bytes(need)}, but {self.out.parent} has only {in_bytes(free)} free")
        self.arrays = make_arrays(self.partial, shapes)
        if "ids" in self.arrays:
            self.arrays["ids"][:] = ids

    def write(self, rows: range, made: Mapping[str, NDArray[Any]]) -> None:
        """Write some rows, and note that they are done."""
        for name, found in made.items():
            self.arrays[name][rows.start : rows.stop] = found
        for array in self.arrays.values():
            array.flush()  # type: ignore[attr-defined]
        for row in rows:
            self.seen.update(self.state(row))
        self.done = rows.stop
        self._write_note()

    def finish(self, ids: NDArray[np.str_]) -> None:
        """Rename all files to their final names."""
        final = files_of(self.out, self.names)
        written = {final[name]: path for name, path in files_of(self.partial, self.names).items()}
        sums = {path.name: checksums.of_file(at if at.exists() else path) for path, at in written.items()}
        if self.out.suffix != ".h5":
            beside = self.out.with_suffix(".id.npy")
            np.save(beside, ids)
            sums[beside.name] = checksums.of_file(beside)
        self._write_note(files=sums)
        for path, at in reversed(written.items()):  # the main file last
            if at.exists():
                at.rename(path)

    def _opened(self) -> dict[str, NDArray[Any]]:
        if self.out.suffix == ".h5":
            return map_arrays(self.partial, "r+")
        files, final = files_of(self.partial, self.names), files_of(self.out, self.names)
        at = {name: path if path.exists() else final[name] for name, path in files.items()}
        arrays: dict[str, NDArray[Any]] = {name: np.lib.format.open_memmap(path, "r+") for name, path in at.items()}
        return arrays if all(len(array) == self.images for array in arrays.values()) else {}

    def _write_note(self, **more: Any) -> None:
        note = {"done": self.done, "images": self.images, "source": self.seen.hexdigest(), "arrays": self.names}
        temporary = self.note.with_name(f".{self.note.name}.writing")
        temporary.write_text(json.dumps(checksums.sealed(note | more)) + "\n", encoding="utf-8")
        temporary.rename(self.note)


def _shape(path: Path) -> tuple[int, ...]:
    """The shape of the main array of a file."""
    if path.suffix == ".h5":
        arrays = map_arrays(path, "r")
        return next(arrays[name].shape for name in ("features", "bbox_features") if name in arrays)
    found: tuple[int, ...] = np.load(path, mmap_mode="r").shape
    return found


def _read_note(path: Path) -> dict[str, Any]:
    try:
        note = checksums.read_json(path)
    except (OSError, ValueError):
        return {}
    return note if isinstance(note, dict) else {}
