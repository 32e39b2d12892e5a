"""The blocks of a report as plain data, which a page, a terminal or a LaTeX file draws.

A benchmark's own section returns them (`reports/sections.py`); none of them knows how it is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from holdfast import metrics
from holdfast.reports.tables import Grid

MISSING = "–"
POINTS = 50
"""The maximum number of seeds of a row that are drawn as points."""


@dataclass(frozen=True)
class Cell:
    """One cell: its text or number, the half width of its 95 % interval, and the paper's value if there is one."""

    text: str = ""
    number: float | None = None
    interval: float | None = None
    decimals: int = 1
    paper: float | None = None
    paper_interval: float | None = None
    paper_text: str = ""
    """The paper's value as text, if it is more than a number."""
    best: bool = False
    """Whether it is marked: the best of its column, or not distinguishable from it."""
    values: Mapping[int, float] = field(default_factory=dict)
    """Our own values by seed, as printed: they decide marks."""
    chance: float | None = None
    """The score of guessing, if known: values that do not exceed it are never marked."""
    learned: bool = True
    """Whether the score behind this measure is above chance: if not, it is never marked."""
    run: str = ""
    """The run that the cell links to."""
    seeds: tuple[tuple[int, str], ...] = ()
    """The runs behind a row of several seeds, by seed."""
    more: int = 0
    """The number of further seeds, without links."""
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
    """The mean of several runs' values with its 95 % t-interval; no value if one of them has none.

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
    """Rows of cells under column heads; the first cell names the row. Notes belong to the table."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    warning: str = ""
    """A warning that must not be overlooked, above all that synthetic data does not reproduce a paper."""
    marks: str = ""
    """What a marked cell means; empty if none is marked."""

    @staticmethod
    def of(grid: Grid) -> TableBlock:
        """A table block from a table of texts."""
        return TableBlock(grid.title, grid.columns, tuple(tuple(map(Cell, row)) for row in grid.rows), grid.notes)

    @property
    def has_published(self) -> bool:
        """Whether it contains a paper's value."""
        return any(cell.published for row in self.rows for cell in row)


@dataclass(frozen=True)
class Heatmap:
    """Numbers by row and column, coloured by their position between `low` and `high`."""

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
    """One line: its points, and the half width of the band around them."""

    name: str
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    band: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class Curves:
    """Lines over a common axis; `ticks` name the positions 0, 1, 2, ... of an axis without numbers."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    ticks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    from_zero: bool = False
    logarithmic: bool = False
    """Whether the x-axis is logarithmic."""


@dataclass(frozen=True)
class Bars:
    """For each group, one bar for each series, with the half width of its interval."""

    title: str
    y_label: str
    groups: tuple[str, ...]
    series: tuple[Series, ...]
    """`y` has a value for each group, `band` its interval; `x` is not used."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Point:
    """One point of a scatter plot, with the run behind it if it is a single one."""

    name: str
    x: float
    y: float
    hint: str = ""
    x_width: float | None = None
    """The half width of its interval, in each direction."""
    y_width: float | None = None


@dataclass(frozen=True)
class Scatter:
    """Points with two coordinates."""

    title: str
    x_label: str
    y_label: str
    points: tuple[Point, ...]
    logarithmic: bool = False
    notes: tuple[str, ...] = ()
    front: tuple[int, ...] = ()
    """The places of the points on the Pareto front, from left to right."""


@dataclass(frozen=True)
class Distribution:
    """For each row, its values by seed, with their mean and the half width of its interval."""

    title: str
    x_label: str
    rows: tuple[str, ...]
    values: tuple[Mapping[int, float], ...]
    widths: tuple[float | None, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class PictureBlock:
    """A picture as the bytes of its file."""

    title: str
    content: bytes
    kind: str = "png"
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Note:
    """A paragraph; with `problem`, one about something that is wrong."""

    text: str
    problem: bool = False


def spread_of(block: Curves | Bars | Scatter | Distribution | Heatmap, bands: bool = True) -> str:
    """What the intervals of a figure are, as a sentence; empty if it has none, or if its notes say so.

    Without `bands`, those of curves are drawn as lines.

    >>> spread_of(Scatter("score", "cost", "score", (Point("er", 1, 50, y_width=2),)))
    'Lines through points are 95 % t-intervals over the seeds.'
    """
    if any("interval" in note for note in block.notes):
        return ""
    if isinstance(block, Curves | Bars) and any(width is not None for each in block.series for width in each.band):
        drawn = "Lines on bars" if isinstance(block, Bars) else "Bands" if bands else "Lines through points"
        return f"{drawn} are 95 % t-intervals over the seeds."
    if isinstance(block, Scatter) and any(point.x_width or point.y_width for point in block.points):
        return "Lines through points are 95 % t-intervals over the seeds."
    if isinstance(block, Distribution) and any(width is not None for width in block.widths):
        return "Points are seeds; the means have their 95 % t-intervals."
    return ""


Block: TypeAlias = TableBlock | Heatmap | Curves | Bars | Scatter | Distribution | PictureBlock | Note
