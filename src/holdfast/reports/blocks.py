"""What a report is made of, as plain data: a page, a terminal or a LaTeX file draws it.

A benchmark's own section gives these (`reports/sections.py`); none of them knows how it is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from holdfast import metrics
from holdfast.reports.tables import Grid

MISSING = "–"


@dataclass(frozen=True)
class Cell:
    """One cell: its text or number, the half width of its 95 % interval, and the paper's value where it has one."""

    text: str = ""
    number: float | None = None
    interval: float | None = None
    decimals: int = 1
    paper: float | None = None
    paper_interval: float | None = None
    paper_text: str = ""
    """The paper's value in words, where it is more than a number."""
    best: bool = False
    """Whether it is marked: the best of its column, or not distinguishable from it."""
    values: Mapping[int, float] = field(default_factory=dict)
    """Our own values by seed, as printed: what a mark is decided by."""
    chance: float | None = None
    """What guessing scores, where that is known: what does not exceed it is never marked."""
    learned: bool = True
    """Whether the score that this measure relies on is above chance: if it is not, it is never marked."""
    run: str = ""
    """The run that a click leads to."""
    seeds: tuple[tuple[int, str], ...] = ()
    """The runs behind a row of several, by their seeds."""
    hint: str = ""

    @property
    def plain(self) -> str:
        """Our own value as text, without the paper's.

        >>> Cell(number=64.731, interval=0.78).plain
        '64.7 ±0.8'
        """
        if self.text or self.number is None:
            return self.text or MISSING
        width = "" if self.interval is None else f" ±{self.interval:.{self.decimals}f}"
        return f"{self.number:.{self.decimals}f}{width}"

    @property
    def published(self) -> str:
        """The paper's value as text.

        >>> Cell(paper=64.73, paper_interval=0.78, decimals=2).published
        '64.73 ±0.78'
        """
        if self.paper is None or self.paper_text:
            return self.paper_text
        width = "" if self.paper_interval is None else f" ±{self.paper_interval:.{self.decimals}f}"
        return f"{self.paper:.{self.decimals}f}{width}"


def mean_cell(values: Sequence[float | None], factor: float = 1.0, decimals: int = 1, **rest: object) -> Cell:
    """The mean of several runs' values with its 95 % t-interval; no value where one of them has none.

    >>> mean_cell([0.1, 0.2, 0.3], factor=100).plain
    '20.0 ±24.8'
    >>> mean_cell([0.1, None]).plain
    '–'
    """
    numbers = [value * factor for value in values if value is not None]
    if not numbers or len(numbers) < len(values):
        return Cell(decimals=decimals, **rest)  # type: ignore[arg-type]
    found = metrics.summary(numbers)
    width = found.half_width if found.count > 1 else None
    return Cell(number=found.mean, interval=width, decimals=decimals, **rest)  # type: ignore[arg-type]


@dataclass(frozen=True)
class TableBlock:
    """Rows of cells under column heads; a cell of the first column names its row. Notes must be read with it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    warning: str = ""
    """What must never be overlooked: above all that world data is no reproduction."""
    marks: str = ""
    """What a marked cell means; empty where none is marked."""

    @staticmethod
    def of(grid: Grid) -> TableBlock:
        """The same from a table of texts."""
        return TableBlock(grid.title, grid.columns, tuple(tuple(map(Cell, row)) for row in grid.rows), grid.notes)

    @property
    def has_published(self) -> bool:
        """Whether a paper's value stands in it."""
        return any(cell.published for row in self.rows for cell in row)


@dataclass(frozen=True)
class Heatmap:
    """Numbers by row and column, drawn by their place between `low` and `high`."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    low: float = 0.0
    high: float = 100.0
    decimals: int = 1
    corner: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Series:
    """One line: points, and the half width of a band around them."""

    name: str
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    band: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class Curves:
    """Lines over a common axis; `ticks` name the places 0, 1, 2, ... of the axis where they are no numbers."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    ticks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    from_zero: bool = False
    logarithmic: bool = False
    """Whether equal steps of the x-axis are equal ratios."""


@dataclass(frozen=True)
class Bars:
    """For each group one bar of each series, with the half width of its interval."""

    title: str
    y_label: str
    groups: tuple[str, ...]
    series: tuple[Series, ...]
    """`y` has a value for each group, `band` its interval; `x` is not read."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Point:
    """One point of a scatter plot, with the run behind it where it is one."""

    name: str
    x: float
    y: float
    hint: str = ""


@dataclass(frozen=True)
class Scatter:
    """Points by two numbers."""

    title: str
    x_label: str
    y_label: str
    points: tuple[Point, ...]
    logarithmic: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class PictureBlock:
    """A picture as a file's bytes."""

    title: str
    content: bytes
    kind: str = "png"
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Note:
    """A paragraph; `problem` where something is wrong."""

    text: str
    problem: bool = False


Block: TypeAlias = TableBlock | Heatmap | Curves | Bars | Scatter | PictureBlock | Note
