"""Blocks of a report as figures for a paper: PDF and SVG at the width of a column, with matplotlib.

Fonts are embedded in PDF as TrueType, and drawn as outlines in SVG. Colours are those of Okabe and Ito, which
colour-blind readers distinguish; lines also differ in their marker, and beyond eight in their dashes. The same blocks
give the same bytes.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from holdfast.errors import missing_extra, printable
from holdfast.reports.blocks import POINTS, Bars, Block, Curves, Distribution, Heatmap, Scatter
from holdfast.reports.svg import short

WIDTHS = {"single": 3.25, "double": 6.75}
"""The widths of one and of two columns, in inches."""
HEIGHTS = {"single": 2.2, "double": 2.9}
KINDS = ("pdf", "svg")
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#e69f00", "#56b4e9", "#777777")
"""Okabe and Ito's palette, with grey in place of yellow, which is hard to see on paper."""
MARKERS, DASHES = "osD^vPXh", ("-", "--", ":", "-.")
STYLE: Any = {
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "font.size": 7.5,
    "axes.labelsize": 7.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.formatter.useoffset": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.3,
    "lines.markersize": 4,
    "pdf.fonttype": 42,  # TrueType: publishers refuse Type 3
    "svg.fonttype": "path",
    "svg.hashsalt": "holdfast",
    "text.parse_math": False,
}
BANDS = 4
"""With more lines than this, intervals are bars beside each other, as bands would hide each other."""
MARKED = 40
"""The maximum number of points of a line that have markers."""
LONGEST = 42
"""The maximum number of letters of a name in a legend."""
Drawn: TypeAlias = Curves | Bars | Scatter | Distribution | Heatmap


def drawable(block: Block) -> bool:
    """Whether a block is a figure."""
    return isinstance(block, Drawn)


def banded(block: Drawn) -> bool:
    """Whether the intervals of curves are bands: those of many lines are bars beside each other."""
    return not isinstance(block, Curves) or len(block.series) <= BANDS or not block.ticks


def draw(block: Drawn, path: Path, columns: str) -> list[Path]:
    """Write a block as PDF and SVG at the width of "single" or "double"; `path` has no ending. Return the files."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise missing_extra("figures need matplotlib", "pictures") from None
    written = []
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **STYLE}):
        figure = Figure(figsize=(WIDTHS[columns], _height(block, columns)), layout="constrained")
        axes = figure.subplots()
        names = _DRAW[type(block)](axes, block)
        if names:
            _legend(figure, axes, names, WIDTHS[columns])
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # laid out once for all kinds
        for kind in KINDS:
            undated = {"CreationDate": None} if kind == "pdf" else {"Date": None}
            written.append(path.with_name(f"{path.name}.{kind}"))
            figure.savefig(written[-1], metadata=undated)
    return written


def _height(block: Drawn, columns: str) -> float:
    if isinstance(block, Heatmap | Distribution):
        return 0.7 + min(0.28 * len(block.rows), 6.0)
    names = len(block.points if isinstance(block, Scatter) else block.series)
    return HEIGHTS[columns] + 0.07 * max(names - 6, 0)


def _curves(axes: Any, block: Curves) -> list[str]:
    several = len(block.series)
    apart = 0.0 if banded(block) else 0.5 / several  # bars instead of bands, side by side
    for number, series in enumerate(block.series):
        look = _look(number)
        y = [math.nan if value is None else value for value in series.y]
        x = [place + apart * (number - (several - 1) / 2) for place in series.x]
        axes.plot(x, y, **look, markersize=0 if len(y) > MARKED else 4, clip_on=False)
        if not series.band:
            continue
        widths = [math.nan if width is None else width for width in series.band]
        if apart:
            axes.errorbar(x, y, widths, fmt="none", ecolor=look["color"], elinewidth=0.6, alpha=0.6)
        else:
            low, high = ([a + sign * b for a, b in zip(y, widths, strict=True)] for sign in (-1, 1))
            axes.fill_between(x, low, high, color=look["color"], alpha=0.15, linewidth=0)
    if block.ticks:
        kept = range(0, len(block.ticks), max(1, -(-len(block.ticks) // 12)))
        axes.set_xticks(list(kept), [printable(block.ticks[place]) for place in kept])
    elif block.logarithmic and all(x > 0 for series in block.series for x in series.x):
        axes.set_xscale("log")
    _limit(axes, block)
    axes.set(xlabel=printable(block.x_label), ylabel=printable(block.y_label))
    return [series.name for series in block.series]


def _limit(axes: Any, block: Curves) -> None:
    """Do not let the band of a few seeds, which may be wider than all values, flatten the lines."""
    means = [y for series in block.series for y in series.y if y is not None]
    if not means:
        return
    room = max(max(means) - min(means), 0.02 * max(map(abs, means)), 1e-9)
    low, high = axes.get_ylim()
    low, high = max(low, min(means) - room), min(high, max(means) + room)
    if "%" in block.y_label and min(means) >= 0 and max(means) <= 100:
        low, high = max(low, -1.0), min(high, 101.0)
    low, high = min(low, min(means) - 0.05 * room), max(high, max(means) + 0.05 * room)
    axes.set_ylim(min(low, 0.0) if block.from_zero else low, high)


def _bars(axes: Any, block: Bars) -> list[str]:
    width = 0.8 / max(len(block.series), 1)
    for number, series in enumerate(block.series):
        places = [group + width * (number + 0.5) - 0.4 for group in range(len(block.groups))]
        known = [(x, y, i) for i, (x, y) in enumerate(zip(places, series.y, strict=True)) if y is not None]
        look = _look(number)
        axes.bar([x for x, *_ in known], [y for _, y, _ in known], width * 0.92, color=look["color"], label="bar")
        spread = [(x, y, series.band[i]) for x, y, i in known if series.band and series.band[i] is not None]
        if spread:
            x, y, widths = zip(*spread, strict=True)
            axes.errorbar(x, y, widths, fmt="none", ecolor="#333333", elinewidth=0.7, capsize=1.5)
    labels = ["\n".join(textwrap.wrap(printable(name), 12)) for name in block.groups]
    axes.set_xticks(range(len(labels)), labels, rotation=90 if len(labels) > 8 else 0)
    axes.grid(axis="x", visible=False)
    axes.set_ylabel(printable(block.y_label))
    return [series.name for series in block.series] if len(block.series) > 1 else []


def _scatter(axes: Any, block: Scatter) -> list[str]:
    if len(block.front) > 1:
        front = [block.points[place] for place in block.front]
        axes.step([p.x for p in front], [p.y for p in front], "--", where="post", color="#777777", linewidth=0.8)
    for number, point in enumerate(block.points):
        widths = (point.x_width, point.y_width)
        if any(widths):
            colour = _look(number)["color"]
            x, y = ([width] if width else None for width in widths)
            axes.errorbar([point.x], [point.y], y, x, fmt="none", ecolor=colour, elinewidth=0.7, alpha=0.6)
        axes.plot([point.x], [point.y], **{**_look(number), "linestyle": "none"}, markersize=5.5, clip_on=False)
    if block.logarithmic and all(point.x > 0 for point in block.points):
        axes.set_xscale("log")
    else:
        axes.xaxis.set_major_formatter(lambda value, _: short(round(value, 9)))
    axes.margins(0.08)
    axes.set(xlabel=printable(block.x_label), ylabel=printable(block.y_label))
    return [point.name for point in block.points]


def _distribution(axes: Any, block: Distribution) -> list[str]:
    """A line for each row: its seeds as points, and their mean with its interval."""
    for number, (values, width) in enumerate(zip(block.values, block.widths, strict=True)):
        place, look = len(block.rows) - 1 - number, _look(number)
        seeds = list(values.values())
        drawn = seeds[:POINTS]
        axes.plot(
            drawn, [place] * len(drawn), color=look["color"], marker="o", markersize=2.5, alpha=0.45, linestyle="none"
        )
        mean = [sum(seeds) / len(seeds)]
        spread = None if width is None else [width]
        axes.errorbar(mean, [place], xerr=spread, fmt=look["marker"], color=look["color"], elinewidth=0.9, capsize=2)
    axes.set_yticks(range(len(block.rows)), [printable(name[:LONGEST]) for name in block.rows[::-1]])
    axes.set_ylim(-0.6, len(block.rows) - 0.4)
    axes.set_xlabel(printable(block.x_label))
    axes.grid(axis="y", visible=False)
    return []


def _heatmap(axes: Any, block: Heatmap) -> list[str]:
    numbers = [[math.nan if value is None else value for value in row] for row in block.values]
    axes.imshow(numbers, cmap="cividis", vmin=block.low, vmax=block.high, aspect="auto")
    middle = (block.low + block.high) / 2
    small = 6 if len(block.columns) <= 12 else 4
    for i, row in enumerate(block.values):
        for j, value in enumerate(row):
            if value is not None:
                colour = "black" if value > middle else "white"
                text = f"{value:.{block.decimals}f}"
                axes.text(j, i, text, ha="center", va="center", color=colour, fontsize=small)
    axes.set_xticks(range(len(block.columns)), [printable(name[:18]) for name in block.columns])
    axes.tick_params(axis="x", rotation=90 if len(block.columns) > 6 else 0)
    axes.set_yticks(range(len(block.rows)), [printable(name[:24]) for name in block.rows])
    axes.set_ylabel(printable(block.corner))
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    return []


_DRAW: Mapping[type, Any] = {
    Curves: _curves,
    Bars: _bars,
    Scatter: _scatter,
    Distribution: _distribution,
    Heatmap: _heatmap,
}


def _look(number: int) -> dict[str, Any]:
    again = number // len(COLOURS)
    return {
        "color": COLOURS[number % len(COLOURS)],
        "marker": MARKERS[(number + again) % len(MARKERS)],
        "linestyle": DASHES[again % len(DASHES)],
        "markeredgecolor": "white",
        "markeredgewidth": 0.4,
    }


def _legend(figure: Any, axes: Any, names: Sequence[str], inches: float) -> None:
    """Names above the plot, in as many columns as fit."""
    bars = [each for each in axes.containers if not hasattr(each, "has_yerr")]  # not the intervals
    handles = bars or [line for line in axes.lines if line.get_marker() != "None"]
    shown = [printable(name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…") for name in names]
    columns = max(1, int(inches * 17 / (max(map(len, shown)) + 5)))
    legend = figure.legend(
        handles, [str(number) for number in range(len(shown))], loc="outside upper left", frameon=False,
        ncols=min(columns, len(shown)), handlelength=1.6, columnspacing=1.0, borderpad=0.1, labelspacing=0.3,
    )  # fmt: skip
    for text, name in zip(legend.get_texts(), shown, strict=True):
        text.set_text(name)  # given as labels, names that begin with an underscore would be left out
