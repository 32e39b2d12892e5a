"""Frozen parts of a model, computed once for each example and kept in tables on disk.

The output of a frozen encoder, or of its frozen lower layers, is the same for an example in every epoch, so it is
computed for the first use and then read. A table is a folder with one file for each column, mapped into memory, and a
file with the checksum of each block of examples: zero until the block has been written. Its name covers the weights,
the content of the examples and everything else that determines its values, so that runs share it, whatever their order
of stages. Blocks are aligned, and which tables are used follows from the run's configuration alone: a resumed run reads
what the uninterrupted one did, to the last bit.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from holdfast.data.table import Around
from holdfast.errors import in_bytes
from holdfast.models.frozen_part import PROBE, FrozenPart, Lent, RowLayout, UnsuitableError, candidates, find
from holdfast.types import Array, Ids, Part

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner

VERSION = 2
BLOCK = 64
"""The number of examples that are computed and checked together."""
MARKS = "blocks"
logger = logging.getLogger("holdfast")


@dataclass(frozen=True)
class Keep:
    """Where tables are kept, and what their values depend on beside weights and examples."""

    key: str
    """A hash of the versions of the model and of the decoders of its inputs, and of the numeric precision."""
    folder: Callable[[str, str, int], Path | None]
    """The folder for a table of this name, title and size in bytes; None if it does not fit."""
    settings: str = ""
    """A hash of the model's settings and of all else that may affect the output of a part that is not a tower."""


class Once:
    """The tables of a learner."""

    def __init__(self, learner: Learner, keep: Keep) -> None:
        self._learner, self._keep = learner, keep
        self._parts: dict[tuple[object, ...], FrozenPart | UnsuitableError] = {}
        self._tables: dict[str, _KeptTable | None] = {}
        self._costs: dict[FrozenPart, float] = {}
        self._charged: dict[str, set[int]] = {}
        """By the name of a table: the blocks that this run has needed, as if no other run had computed them."""
        self._expected: dict[int, Array] = {}
        """By a table's number: which of its examples the run will pass through."""
        self.noted: dict[str, None] = {}
        """What was computed once, and why other frozen modules were not: for the run's record."""

    @contextmanager
    def lending(self, asked: Sequence[tuple[Ids, int]], augment: str, check: Callable[[], None]) -> Iterator[None]:
        """Within a block, batches come with their recorded outputs.

        `asked` lists examples, and how often each will be passed through the model. `check` runs between blocks of
        examples.
        """
        learner = self._learner
        before, learner.around = learner.around, self._around(asked, augment, check)
        try:
            yield
        finally:
            learner.around = before

    def _around(self, asked: Sequence[tuple[Ids, int]], augment: str, check: Callable[[], None]) -> dict[int, Around]:
        model = self._learner.model
        if model.extended or model.encoder.structure() is not None:
            return {}
        if next(candidates(model.encoder), None) is None:
            return {}
        if augment != "none":
            self.refused(f"images are augmented (train.augment={augment})")
            return {}
        found: dict[int, Around] = {}
        weights: dict[tuple[int, ...], str] = {}
        for index, (rows, uses) in sorted(self._uses(asked).items()):
            blocks = np.unique(rows // BLOCK)
            size, needed = len(self._learner.data.tables[index]), self._needed(index, rows, blocks)
            if size < PROBE or needed > uses:
                continue
            part = self._part(index)
            if isinstance(part, UnsuitableError) or part.hooked():
                if needed < uses:
                    self.refused(str(part) if isinstance(part, UnsuitableError) else "a hook is attached to them")
                continue
            if needed == uses and not (part.whole or part.towers):
                continue
            which = tuple(map(id, part.sites))
            if which not in weights:
                weights[which] = f"{_hash(part.weights())} {part.structure()}"
            table = self._table(index, part, weights[which], len(blocks))
            (refused,) = self._learner.ranks.most(float(table is None))
            if table is not None and not refused:
                lender = _Lender(self, table)
                if not self._learner.counter.off:
                    self._charge(table, blocks)
                lender.fill(blocks, check)
                self.noted[f"{part.title} computed once"] = None
                found[index] = lender
        return found

    def _charge(self, table: _KeptTable, blocks: Array) -> None:
        """Count the operations of computing blocks, once in a run, even if an earlier run computed them."""
        learner, part = self._learner, table.part
        charged = self._charged.setdefault(table.name, set())
        fresh = set(blocks.tolist()) - charged
        if not fresh or not learner.ranks.first:
            return
        if part not in self._costs:
            first = int(learner.data.offsets[table.index])
            (probe,) = learner.data.fetch(np.arange(first, first + PROBE), learner.device).parts
            run = self._run(probe)
            with learner.evaluating(), torch.no_grad():
                operations = learner.counter.measured(lambda: part.columns(lambda: run(probe.inputs), PROBE))
            self._costs[part] = operations / PROBE
        charged |= fresh
        rows = sum(min(BLOCK, table.rows - block * BLOCK) for block in fresh)
        learner.counter.add(round(self._costs[part] * rows))

    def state_dict(self) -> dict[str, Array]:
        """The blocks that were counted, by the name of their table."""
        return {name: np.array(sorted(blocks)) for name, blocks in self._charged.items()}

    def load_state_dict(self, state: Mapping[str, Array]) -> None:
        """Restore the blocks that were counted."""
        self._charged = {name: set(blocks.tolist()) for name, blocks in state.items()}

    def expect(self, ids: Iterable[Ids]) -> None:
        """State which examples the whole run passes through, so that filling a block early does not count as waste."""
        for index, rows in self._learner.data.by_table(np.unique(np.concatenate([*ids]))).items():
            self._expected[index] = np.zeros(len(self._learner.data.tables[index]), bool)
            self._expected[index][rows] = True

    def _needed(self, index: int, rows: Ids, blocks: Array) -> int:
        """The number of examples to compute: these rows, and those in their blocks that this run will never use."""
        needed = np.zeros(len(self._learner.data.tables[index]), bool)
        for block in blocks.tolist():
            needed[block * BLOCK : (block + 1) * BLOCK] = True
        if index in self._expected:
            needed &= ~self._expected[index]
        needed[rows] = True
        return int(needed.sum())

    def _uses(self, asked: Sequence[tuple[Ids, int]]) -> dict[int, tuple[Ids, int]]:
        """By a table's number: the rows that will pass through the model, and the number of passes of single rows."""
        rows: dict[int, list[Ids]] = {}
        uses: dict[int, int] = {}
        for ids, times in asked:
            for index, own in self._learner.data.by_table(ids).items():
                rows.setdefault(index, []).append(own)
                uses[index] = uses.get(index, 0) + times * len(own)
        return {index: (np.concatenate(own), uses[index]) for index, own in rows.items()}

    def _part(self, index: int) -> FrozenPart | UnsuitableError:
        """The frozen part for the task of a table; the search is repeated if other modules are frozen."""
        learner = self._learner
        modules = list(learner.model.encoder.modules())
        learns = (parameter.requires_grad for parameter in learner.model.encoder.parameters())
        key = (index, *((id(module), module.training) for module in modules), *learns)
        if key not in self._parts:
            first = int(learner.data.offsets[index])
            (part,) = learner.data.fetch(np.arange(first, first + PROBE), learner.device).parts
            modes = learner.train_mode, learner.model.eval
            was_training = learner.model.training
            try:
                with learner.counter.paused():
                    found = find(learner.model.encoder, self._run(part), part.inputs, modes)
            except UnsuitableError as error:
                self._parts[key] = error
            else:
                self._parts[key] = found
            learner.train_mode() if was_training else learner.model.eval()
        return self._parts[key]

    def _run(self, part: Part) -> Callable[[Mapping[str, Tensor]], Tensor]:
        learner = self._learner

        def run(inputs: Mapping[str, Tensor]) -> Tensor:
            kind = learner.device.type
            with nullcontext() if learner.autocast is None else torch.autocast(kind, learner.autocast):
                return learner.tasks[part.task].forward(learner.model, replace(part, inputs=inputs))

        return run

    def _table(self, index: int, part: FrozenPart, weights: str, blocks: int) -> _KeptTable | None:
        learner = self._learner
        modules = {id(module): name for name, module in learner.model.encoder.named_modules()}
        calls = [(modules[id(call.module)], call.method, call.layouts) for call in part.calls]
        kind = (learner.autocast, learner.device.type, torch.get_num_threads(), torch.__version__)
        beside = "" if part.towers else self._keep.settings
        text = repr((VERSION, self._keep.key, beside, learner.data.inputs_fingerprint(index), calls, weights, kind))
        name = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        if name not in self._tables:
            self._tables[name] = None
            needed = blocks * BLOCK * sum(_bytes(layout) for layout in part.layouts)
            task = learner.data.tables[index].task
            try:
                folder = self._keep.folder(name, f"{part.title} over {task}", needed)
                if folder is None:
                    self.refused(f"their outputs take {in_bytes(needed)}, which do not fit in the cache")
                else:
                    self._tables[name] = _KeptTable(name, folder, part, index, len(learner.data.tables[index]))
            except OSError as error:
                self.refused(f"their outputs cannot be kept ({error.strerror or error})")
        found = self._tables[name]
        if found is not None:
            found.part = part
        return found

    def compute(self, table: _KeptTable, block: int) -> list[Tensor]:
        """The output of the frozen part for a block of examples."""
        learner = self._learner
        first = int(learner.data.offsets[table.index])
        ids = np.arange(first + block * BLOCK, first + min((block + 1) * BLOCK, table.rows))
        (part,) = learner.data.fetch(ids, learner.device).parts
        if learner.data.reads_ahead and ids[-1] + 1 < first + table.rows:
            learner.data.prefetch(np.arange(ids[-1] + 1, min(ids[-1] + 1 + BLOCK, first + table.rows)))
        run = self._run(part)
        with learner.evaluating(), learner.counter.paused(), torch.no_grad():
            return [each.cpu() for each in table.part.columns(lambda: run(part.inputs), len(ids))]

    def refused(self, why: str) -> None:
        """Record, and log once, why frozen layers are computed in every pass."""
        text = f"frozen layers computed in every pass: {why}"
        if text not in self.noted:
            self.noted[text] = None
            logger.warning(text)

    @property
    def learner(self) -> Learner:
        """The learner that the tables belong to."""
        return self._learner


class _Lender:
    """Lends the rows of one table to the batches of one fit, or of one round of scores."""

    def __init__(self, once: Once, table: _KeptTable) -> None:
        self._once, self._table = once, table
        self.whole = table.part.whole

    def __call__(self, rows: Tensor, read: Callable[[], dict[str, Tensor]]) -> Mapping[str, Tensor]:
        """The inputs of some rows, with their recorded outputs."""
        blocks = rows.numpy() // BLOCK
        if not self._table.intact[blocks].all() and not self._fill(np.unique(blocks)):
            return read()
        device = self._once.learner.device
        columns = [column.index_select(0, rows).to(device, non_blocking=True) for column in self._table.columns]
        return Lent(self._table.part, columns, read)

    def fill(self, blocks: Array, check: Callable[[], None]) -> None:
        """Compute missing blocks; each rank computes its share."""
        ranks = self._once.learner.ranks
        for block in blocks[ranks.rank :: ranks.size]:
            check()
            if not self._fill([block]):
                break
        ranks.wait()

    def _fill(self, blocks: Sequence[int] | Array) -> bool:
        """Make sure that these blocks are present and intact; False if they cannot be written."""
        for block in map(int, blocks):
            if not self._table.has(block):
                try:
                    self._table.write(block, self._once.compute(self._table, block))
                except OSError as error:
                    self._once.refused(f"their outputs cannot be kept ({error.strerror or error})")
                    return False
                except UnsuitableError as error:
                    self._once.refused(str(error))
                    return False
        return True


class _KeptTable:
    """One row for each example with the outputs of a frozen part, and a checksum for each block."""

    def __init__(self, name: str, folder: Path, part: FrozenPart, index: int, rows: int) -> None:
        self.name, self.part, self.index, self.rows = name, part, index, rows
        folder.mkdir(parents=True, exist_ok=True)
        self._bytes = [_bytes(layout) for layout in part.layouts]
        self._files = [_opened(folder / str(number), size * rows) for number, size in enumerate(self._bytes)]
        count = -(-rows // BLOCK)
        self._marks = _opened(folder / MARKS, 8 * count)
        self.intact = np.zeros(count, bool)
        """Which blocks were computed or checked by this process."""
        self.columns = []
        for number, layout in enumerate(part.layouts):
            size = rows * prod(layout.row)
            column = torch.from_file(str(folder / str(number)), shared=True, size=size, dtype=layout.dtype)
            self.columns.append(column.view(rows, *layout.row))

    def has(self, block: int) -> bool:
        """Whether a block is present and intact."""
        if not self.intact[block]:
            mark = os.pread(self._marks, 8, 8 * block)
            self.intact[block] = any(mark) and mark == self._checksum(block, self._read(block))
        return bool(self.intact[block])

    def write(self, block: int, columns: Sequence[Tensor]) -> None:
        """Write a block, and then its checksum. Processes that write it at the same time write the same bytes."""
        parts = [_as_bytes(column) for column in columns]
        for number, content in enumerate(parts):
            _written(self._files[number], content, self._bytes[number] * block * BLOCK)
        _written(self._marks, self._checksum(block, parts), 8 * block)
        self.intact[block] = True

    def _read(self, block: int) -> list[bytes]:
        length = min(BLOCK, self.rows - block * BLOCK)
        return [
            os.pread(file, size * length, size * block * BLOCK)
            for file, size in zip(self._files, self._bytes, strict=True)
        ]

    def _checksum(self, block: int, parts: Sequence[Any]) -> bytes:
        found = zlib.crc32(block.to_bytes(8))
        for content in parts:
            found = zlib.crc32(content, found)
        return b"sum:" + found.to_bytes(4)

    def __del__(self) -> None:
        for file in [*getattr(self, "_files", ()), getattr(self, "_marks", None)]:
            if file is not None:
                os.close(file)


def _opened(path: Path, size: int) -> int:
    """A file of this size, for reading and writing; the space is not taken until something is written."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    fcntl.flock(file, fcntl.LOCK_EX)  # two processes may open it for the first time at once
    try:
        if os.fstat(file).st_size != size:
            os.ftruncate(file, 0)
            os.ftruncate(file, size)
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)
    return file


def _written(file: int, content: Any, start: int) -> None:
    view = memoryview(content)
    while len(view):
        done = os.pwrite(file, view, start)  # unlike an assignment to a mapped page, it fails if the disk is full
        view, start = view[done:], start + done


def _bytes(layout: RowLayout) -> int:
    return prod(layout.row) * layout.dtype.itemsize


def _as_bytes(column: Tensor) -> memoryview:
    return column.contiguous().view(-1).view(torch.uint8).numpy().data


def _hash(tensors: Mapping[str, Tensor]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for name, value in sorted(tensors.items()):
        digest.update(f"{name}/{value.dtype}/{tuple(value.shape)};".encode())
        if value.numel():
            digest.update(_as_bytes(value.detach().cpu()))
    return digest.hexdigest()
