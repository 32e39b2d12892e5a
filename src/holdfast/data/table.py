"""Columnar tables: fetching a batch takes a few array gathers, whatever the number of examples."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from holdfast.data.lazy import ImageFileColumn
from holdfast.errors import UserError
from holdfast.types import Batch, Example, Ids, Part

_HASHED = 1 << 26
"""The bytes that are hashed in one call."""


@dataclass(frozen=True)
class Shared:
    """A column whose rows share values, as questions share an image: row r holds `values[index[r]]`.

    A two-dimensional index gives each row several values.

    >>> Shared(torch.tensor([10, 20]), torch.tensor([1, 1, 0])).rows(torch.tensor([0, 2])).tolist()
    [20, 10]
    """

    values: Tensor
    index: Tensor

    def __len__(self) -> int:
        return len(self.index)

    def rows(self, rows: Tensor) -> Tensor:
        """The values of some rows."""
        return self.at(self.index.index_select(0, rows))

    def at(self, index: Tensor) -> Tensor:
        """The values at some indices: one, or several, per row."""
        if index.ndim == 1:
            return self.values.index_select(0, index)
        found = self.values.index_select(0, index.flatten())
        return found.reshape(*index.shape, *self.values.shape[1:])

    def to(self, device: torch.device) -> Shared:
        """The same column on a device."""
        return Shared(self.values.to(device), self.index.to(device))


Column: TypeAlias = Tensor | Shared | ImageFileColumn
Around: TypeAlias = Callable[[Tensor, Callable[[], dict[str, Tensor]]], Mapping[str, Tensor]]
"""Maps the numbers of rows, and a function that reads their inputs, to the inputs of a part."""
NONE_AROUND: Mapping[int, Around] = {}


@dataclass(frozen=True)
class Table:
    """The examples of one task and split: one tensor per column, one row per example."""

    task: str
    inputs: Mapping[str, Column]
    targets: Tensor

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def row_bytes(self) -> int:
        """The bytes of one example, as stored in this table."""
        return sum(_row_bytes(column) for column in (*self.inputs.values(), self.targets)) if len(self) else 0

    @property
    def nbytes(self) -> int:
        """The bytes of all columns; values that rows share count once."""
        columns = (*self.inputs.values(), self.targets)
        return sum(c.values.nbytes + c.index.nbytes if isinstance(c, Shared) else c.nbytes for c in columns)

    def to(self, device: torch.device) -> Table:
        """The same table with its columns on a device; image files stay on disk."""
        inputs = {name: c if isinstance(c, ImageFileColumn) else c.to(device) for name, c in self.inputs.items()}
        moved: dict[int, Tensor] = {}  # columns that share an index keep sharing it
        for name, column in self.inputs.items():
            if isinstance(column, Shared) and isinstance(there := inputs[name], Shared):
                inputs[name] = Shared(there.values, moved.setdefault(id(column.index), there.index))
        return Table(self.task, inputs, self.targets.to(device))


def table(task: str, examples: Sequence[Example]) -> Table:
    """Prepare examples that each have one image, an array, of the same size; channels come first in the table.

    >>> rows = table("colours", [Example("a", 3, (np.zeros((2, 2, 1), np.uint8),))])
    >>> len(rows), rows.inputs["image"].shape, rows.row_bytes
    (1, torch.Size([1, 1, 2, 2]), 12)
    """
    arrays = [np.asarray(image, dtype=np.uint8) for example in examples for image in example.images]
    shapes = {array.shape for array in arrays}
    if len(shapes) != 1 or any(len(example.images) != 1 for example in examples):
        raise UserError(f"task {task!r}: each example needs one image, all of one size; found sizes {sorted(shapes)}")
    columns = {"image": torch.from_numpy(np.ascontiguousarray(np.stack(arrays).transpose(0, 3, 1, 2)))}
    return Table(task, columns, torch.tensor([example.target for example in examples]))


def some_rows(column: Column, rows: Ids) -> Column:
    """A column of some of the rows, with only the values that these rows use.

    >>> found = some_rows(Shared(torch.tensor([10, 20, 30]), torch.tensor([2, 0, 2])), np.array([0, 2]))
    >>> found.values.tolist(), found.index.tolist()
    ([30], [0, 0])
    """
    if isinstance(column, ImageFileColumn):
        return replace(column, index=rows if column.index is None else column.index[rows])
    places = torch.from_numpy(rows)
    if isinstance(column, Shared):
        shown, index = torch.unique(column.index[places], return_inverse=True)
        return Shared(column.values[shown], index)
    return column[places]


class Data:
    """Several tables under one numbering: example `offset + row` is a row of the table that begins at `offset`.

    `arrangement` represents anything other than settings that determines which examples are learned when, such as file
    names.
    """

    def __init__(self, tables: Sequence[Table], arrangement: str = "") -> None:
        self.tables, self.arrangement = tuple(tables), arrangement
        self.offsets = np.concatenate([[0], np.cumsum([len(t) for t in self.tables])]).astype(np.int64)
        self._inner = self.offsets[1:-1]
        self._inputs_hashes: dict[int, str] = {}
        self._row_bytes = np.array([t.row_bytes for t in self.tables], dtype=np.int64)
        self.reads_ahead = any(isinstance(c, ImageFileColumn) for t in self.tables for c in t.inputs.values())

    def __len__(self) -> int:
        return int(self.offsets[-1])

    @property
    def nbytes(self) -> int:
        """The bytes of all tables."""
        return sum(t.nbytes for t in self.tables)

    def ids(self, index: int) -> Ids:
        """The ids of one table's examples."""
        return np.arange(self.offsets[index], self.offsets[index + 1], dtype=np.int64)

    def example_bytes(self, ids: Ids) -> int:
        """The number of bytes these examples take, as counted for a memory that keeps them."""
        return int(self._row_bytes[np.searchsorted(self._inner, ids, side="right")].sum())

    def targets(self, ids: Ids) -> Tensor:
        """The targets of examples, in the order of the ids, on the CPU; the targets must all have the same shape."""
        which = np.searchsorted(self._inner, ids, side="right")
        out: Tensor | None = None
        for index in np.unique(which):
            places = torch.from_numpy(np.flatnonzero(which == index))
            rows = self._rows(int(index), ids[which == index])
            found = self.tables[index].targets[rows].cpu()
            out = found.new_empty((len(ids), *found.shape[1:])) if out is None else out
            out[places] = found
        assert out is not None, "targets of no examples"
        return out

    def to(self, device: torch.device) -> Data:
        """The same data with all tables on a device."""
        return Data([t.to(device) for t in self.tables], self.arrangement)

    def fetch(
        self,
        ids: Ids,
        device: torch.device,
        rank: int = 0,
        size: int = 1,
        around: Mapping[int, Around] = NONE_AROUND,
        trim: bool = False,
    ) -> Batch:
        """Gather this rank's tensors for a batch: one part for each table that it touches.

        Each rank has at least one row of each part, with weight 0 if it has no row of its own, so that every rank runs
        the same graph, and a gradient is unused on all ranks or on none. `around` has, by a table's number, a function
        that supplies a part's inputs in place of reading them. With `trim`, the texts of a part end where the longest
        of them ends.
        """
        part = partial(self._part, device=device, rank=rank, size=size, trim=trim)
        if len(self._inner) == 0:
            return Batch(ids, (part(0, ids, around=around.get(0)),))
        which = np.searchsorted(self._inner, ids, side="right")
        first = int(which[0])
        if (which == first).all():
            return Batch(ids, (part(first, ids, around=around.get(first)),))
        touched = np.unique(which)
        return Batch(ids, tuple(part(int(i), ids[which == i], around=around.get(int(i))) for i in touched))

    def prefetch(self, ids: Ids, rank: int = 0, size: int = 1, known: Collection[int] = ()) -> None:
        """Start to decode this rank's images of a batch that will be fetched soon; the result does not change.

        The images of the tables in `known` will not be needed.
        """
        which = np.searchsorted(self._inner, ids, side="right")
        for index in set(np.unique(which).tolist()).difference(known):
            rows = ids[which == index][rank::size] - self.offsets[index]
            for column in self.tables[index].inputs.values():
                if isinstance(column, ImageFileColumn):
                    column.prefetch(rows)

    def _rows(self, index: int, ids: Ids) -> Tensor:
        return torch.from_numpy(ids - self.offsets[index] if index else ids)

    def by_table(self, ids: Ids) -> dict[int, Ids]:
        """The rows of examples, by the number of the table that they are in."""
        which = np.searchsorted(self._inner, ids, side="right")
        return {int(index): ids[which == index] - self.offsets[index] for index in np.unique(which)}

    def _part(
        self, index: int, ids: Ids, device: torch.device, rank: int, size: int, around: Around | None, trim: bool
    ) -> Part:
        source, weights = self.tables[index], None
        if size > 1:
            own = ids[rank::size]
            if len(own) == 0:
                own, weights = ids[:1], torch.zeros(1, device=device)
            ids = own
        rows = here = self._rows(index, ids)
        if source.targets.is_cuda:
            rows = sent(rows, device)
        read = partial(_inputs, source, rows, here, device)
        # The recorded outputs in `around` have the length of the longest text of the data.
        inputs = (trimmed(read()) if trim else read()) if around is None else around(here, read)
        return Part(source.task, inputs, _gather(source.targets, rows, device), weights)

    def fingerprint(self) -> str:
        """A hash of every value of every table, and of their arrangement: equal hashes mean equal data and equal runs.

        >>> small = table("colours", [Example("a", 3, (np.zeros((2, 2, 1), np.uint8),))])
        >>> Data([small]).fingerprint() == Data([small]).fingerprint()
        True
        """
        digest = hashlib.blake2b(self.arrangement.encode(), digest_size=16)
        for source in self.tables:
            _hash_columns(digest, source.task, [*sorted(source.inputs.items()), ("target", source.targets)])
        return digest.hexdigest()

    def inputs_fingerprint(self, index: int) -> str:
        """A hash of the inputs of one table's examples, independent of their targets and places in a stream."""
        if index not in self._inputs_hashes:
            digest = hashlib.blake2b(digest_size=16)
            _hash_columns(digest, "", sorted(self.tables[index].inputs.items()))
            self._inputs_hashes[index] = digest.hexdigest()
        return self._inputs_hashes[index]


def _hash_columns(digest: hashlib.blake2b, task: str, columns: Iterable[tuple[str, Column]]) -> None:
    for name, column in columns:
        for tensor in _contents(column):
            digest.update(f"{task}/{name}/{tensor.dtype}/{tuple(tensor.shape)};".encode())
            content = np.ascontiguousarray(tensor.cpu().numpy()).reshape(-1).view(np.uint8).data
            for start in range(0, len(content), _HASHED):  # a call that takes a minute cannot be interrupted
                digest.update(content[start : start + _HASHED])


def _inputs(source: Table, rows: Tensor, here: Tensor, device: torch.device) -> dict[str, Tensor]:
    """The columns of some rows on a device; `here` are the rows' numbers on the CPU."""
    inputs, found = {}, dict[int, Tensor]()  # columns that share an index look it up once
    for name, column in source.inputs.items():
        if isinstance(column, Shared):
            if (shown := found.get(id(column.index))) is None:
                shown = found[id(column.index)] = column.index.index_select(0, rows)
            inputs[name] = column.at(shown).to(device, non_blocking=True)
        else:
            inputs[name] = _gather(column, here if isinstance(column, ImageFileColumn) else rows, device)
    return inputs


def trimmed(inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """The inputs of a part without the padding that all its texts share.

    >>> inputs = {"text": torch.tensor([[7, 8, 0, 0], [9, 0, 0, 0]]), "text_length": torch.tensor([2, 1])}
    >>> trimmed(inputs)["text"].tolist()
    [[7, 8], [9, 0]]
    """
    if "text_length" not in inputs:
        return inputs
    longest = max(int(inputs["text_length"].max()), 1)
    found = {**inputs, "text": inputs["text"][..., :longest].contiguous()}
    if "answer" in inputs:
        longest = max(int((inputs["answer"] >= 0).sum(1).max()), 1)
        found["answer"] = inputs["answer"][:, :longest].contiguous()
    return found


def _contents(column: Column) -> Sequence[Tensor]:
    if isinstance(column, ImageFileColumn):
        return [torch.from_numpy(np.array(array)) for array in column.contents()]
    return (column.values, column.index) if isinstance(column, Shared) else (column,)


def _row_bytes(column: Column) -> int:
    """The bytes of a row on its own: a memory that keeps it also keeps its image, even if others share it."""
    if isinstance(column, ImageFileColumn):
        return column.row_bytes
    if isinstance(column, Shared):
        return column.index[0].numel() * column.values[0].numel() * column.values.element_size()
    return column[0].numel() * column.element_size()


def sent(rows: Tensor, device: torch.device) -> Tensor:
    """Numbers on a device. From pageable memory, a copy would first wait for a GPU to finish its work."""
    return rows.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else rows


def _gather(column: Tensor | ImageFileColumn, rows: Tensor, device: torch.device) -> Tensor:
    """Rows of a column on the device that needs them, using whichever call is faster there."""
    if isinstance(column, ImageFileColumn):
        return torch.from_numpy(column.rows(rows.numpy())).to(device, non_blocking=True)
    if column.is_cuda:
        return column[rows]
    return column.index_select(0, rows).to(device, non_blocking=True)
