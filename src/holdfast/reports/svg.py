"""Curves, bars and points as SVG: text in, text out, coloured by the page's style sheet in light and in dark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from holdfast.reports.blocks import POINTS, Bars, Curves, Distribution, Scatter

WIDTH, HEIGHT = 420, 250
LEFT, RIGHT, TOP, BOTTOM = 46, 10, 10, 40
ROW = 24
"""The height of a row of a distribution."""
NAME = 22
"""The maximum number of letters of a row's name."""
COLOURS = 8
"""The number of colours; further series reuse them with another dash and marker."""


@dataclass(frozen=True)
class Axis:
    """Maps numbers to positions on the page, and has the round numbers to print beside it."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """The position of a number."""
        low, high, value = (math.log10(v) if self.logarithmic else v for v in (self.low, self.high, value))
        return self.start + (value - low) / ((high - low) or 1) * (self.end - self.start)

    def ticks(self) -> list[float]:
        """About five round numbers."""
        return decades(self.low, self.high) if self.logarithmic else round_numbers(self.low, self.high)


def round_numbers(low: float, high: float, about: int = 5) -> list[float]:
    """About `count` multiples of 1, 2 or 5 times a power of ten, from low to high.

    >>> round_numbers(0, 97)
    [0.0, 20.0, 40.0, 60.0, 80.0]
    >>> round_numbers(-0.3, 0.1)
    [-0.3, -0.2, -0.1, 0.0, 0.1]
    """
    if not high > low:
        return [low]
    rough = (high - low) / about
    power = 10 ** math.floor(math.log10(rough))
    step = min((power * m for m in (1, 2, 5, 10)), key=lambda s: abs(math.log(s / rough)))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(number * step, 12) + 0.0 for number in range(first, last + 1)]


def decades(low: float, high: float) -> list[float]:
    """Powers of ten from low to high, with values in between if these are few.

    >>> decades(20, 3000)
    [20, 50, 100, 200, 500, 1000, 2000]
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for parts in ((1, 2, 5), (1,)):
        found = [part * 10**p for p in powers for part in parts if low <= part * 10**p <= high]
        if len(found) <= 8:
            break
    return found or [low]


def short(value: float) -> str:
    """A number as an axis shows it.

    >>> short(1500000), short(20000), short(0.25), short(-4)
    ('1.5M', '20k', '0.25', '-4')
    """
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if letter == 'k' else size):g}{letter}"
    return f"{value:g}"


def height_axis(block: Curves) -> Axis:
    """The vertical axis of curves."""
    points = [(s, i) for s in block.series for i, y in enumerate(s.y) if y is not None]
    spread = [(s.y[i], (s.band[i] if s.band else None) or 0.0) for s, i in points]
    ys = [y + sign * width for y, width in spread if y is not None for sign in (-1, 1)]
    means = [y for y, _ in spread if y is not None]
    low, high = min(means, default=0.0), max(means, default=1.0)
    # A band of two or three seeds may be wider than all values: it is clipped, and does not widen the axis.
    room = max(high - low, 1e-9)
    low, high = max(min(ys, default=low), low - room), min(max(ys, default=high), high + room)
    if "%" in block.y_label and means and min(means) >= 0 and max(means) <= 100:
        low, high = max(low, 0.0), min(high, 100.0)
    low = min(low, 0.0) if block.from_zero else low
    return _vertical(low, high, within=(0.0, 100.0) if "%" in block.y_label else None)


def is_cut(block: object) -> bool:
    """Whether an interval of curves or points is wider than the picture, which cuts it off."""
    if isinstance(block, Curves):
        axis = height_axis(block)
        ends = [(axis, y, w) for s in block.series for y, w in zip(s.y, s.band, strict=False)]
    elif isinstance(block, Scatter) and block.points:
        across, vertical = _both_axes(block)
        ends = [(across, p.x, p.x_width) for p in block.points]
        ends += [(vertical, p.y, p.y_width) for p in block.points]
    else:
        return False
    return any(y is not None and w and not own.low <= y - w <= y + w <= own.high for own, y, w in ends)


def curves(block: Curves) -> Markup:
    """Lines with their bands."""
    vertical = height_axis(block)
    known = [x for series in block.series for x, y in zip(series.x, series.y, strict=True) if y is not None]
    xs = [0.0, len(block.ticks) - 1.0] if block.ticks else known or [0.0, 1.0]
    logarithmic = block.logarithmic and min(xs) > 0
    across = Axis(min(xs), max(xs) if max(xs) > min(xs) else min(xs) + 1, LEFT + 8, WIDTH - RIGHT - 8, logarithmic)
    labels = list(enumerate(block.ticks)) if block.ticks else [(x, short(x)) for x in across.ticks()]
    kept = labels[:: max(1, -(-len(labels) // 10))]
    parts = [_frame(vertical, [(across.place(x), text) for x, text in kept], block.x_label, block.y_label)]
    for number, series in enumerate(block.series):
        drawn = [
            (across.place(x), y, i) for i, (x, y) in enumerate(zip(series.x, series.y, strict=True)) if y is not None
        ]
        if series.band and len(drawn) > 1:
            up = [(x, vertical.place(min(y + (series.band[i] or 0), vertical.high))) for x, y, i in drawn]
            down = [(x, vertical.place(max(y - (series.band[i] or 0), vertical.low))) for x, y, i in drawn]
            parts.append(f'<path class="band {_look(number)}" d="{_path([*up, *down[::-1]])}Z"/>')
        places = [(x, vertical.place(y)) for x, y, _ in drawn]
        parts.append(f'<path class="line {_look(number)}" d="{_path(places)}"/>')
        for (x, y), (_, value, i) in zip(places, drawn, strict=True):
            at = block.ticks[i] if i < len(block.ticks) else short(series.x[i])
            width = series.band[i] if series.band else None
            told = f"{series.name}, {block.x_label} {at}: {value:.4g}" + (f" ±{width:.2g}" if width else "")
            parts.append(_mark(x, y, number, told, small=len(drawn) > 25))
    return _svg(block.title, parts)


def bars(block: Bars) -> Markup:
    """Groups of bars with their intervals."""
    values = [
        (y, (s.band[i] if s.band else None) or 0.0) for s in block.series for i, y in enumerate(s.y) if y is not None
    ]
    high = max((max(y, min(y + width, 1.6 * abs(y))) for y, width in values), default=1.0)
    low = min((min(y, 0.0) for y, _ in values), default=0.0)
    vertical = _vertical(min(low, 0.0), high, within=(0.0, 100.0) if "%" in block.y_label else None)
    slot = (WIDTH - LEFT - RIGHT) / max(len(block.groups), 1)
    width = min(26.0, slot * 0.86 / max(len(block.series), 1))
    middles = [LEFT + slot * (g + 0.5) for g in range(len(block.groups))]
    parts = [_frame(vertical, list(zip(middles, block.groups, strict=True)), "", block.y_label)]
    zero = vertical.place(0.0)
    for number, series in enumerate(block.series):
        for group, y in enumerate(series.y):
            if y is None:
                continue
            x = middles[group] + width * (number - len(block.series) / 2)
            top = vertical.place(y)
            interval = series.band[group] if series.band else None
            told = f"{series.name}, {block.groups[group]}: {y:.4g}" + (f" ±{interval:.2g}" if interval else "")
            box = f'x="{x + 0.5:.1f}" y="{min(top, zero):.1f}" width="{width - 1:.1f}" height="{abs(zero - top):.1f}"'
            parts.append(f'<rect class="bar {_look(number)}" {box} data-tip="{escape(told)}"/>')
            if interval:
                upper, lower = (vertical.place(_cut(y + sign * interval, vertical)) for sign in (1, -1))
                parts.append(f'<path class="whisker" d="M{x + width / 2:.1f} {upper:.1f}V{lower:.1f}"/>')
    return _svg(block.title, parts)


def scatter(block: Scatter) -> Markup:
    """Named points with their intervals, and the Pareto front as steps."""
    across, vertical = _both_axes(block)
    labels = [(across.place(x), short(x)) for x in across.ticks() if x >= 0 or min(p.x for p in block.points) < 0]
    parts = [_frame(vertical, labels, block.x_label, block.y_label)]
    if block.front:
        parts.append(
            _steps([(across.place(block.points[n].x), vertical.place(block.points[n].y)) for n in block.front])
        )
    for number, point in enumerate(block.points):
        x, y = across.place(point.x), vertical.place(point.y)
        if point.x_width:
            ends = [across.place(_cut(point.x + sign * point.x_width, across)) for sign in (-1, 1)]
            parts.append(f'<path class="whisker {_look(number)}" d="M{ends[0]:.1f} {y:.1f}H{ends[1]:.1f}"/>')
        if point.y_width:
            ends = [vertical.place(_cut(point.y + sign * point.y_width, vertical)) for sign in (-1, 1)]
            parts.append(f'<path class="whisker {_look(number)}" d="M{x:.1f} {ends[0]:.1f}V{ends[1]:.1f}"/>')
        parts.append(_mark(x, y, number, point.hint or f"{point.name}: {point.x:.4g}, {point.y:.4g}", large=True))
    return _svg(block.title, parts)


def _both_axes(block: Scatter) -> tuple[Axis, Axis]:
    xs, ys = [point.x for point in block.points], [point.y for point in block.points]
    vertical = _vertical(*_with_ends(ys, [p.y_width for p in block.points], 0.0))
    if block.logarithmic:
        return Axis(min(xs) * 0.8, max(xs) * 1.25, LEFT, WIDTH - RIGHT, logarithmic=True), vertical
    room = (max(xs) - min(xs)) * 0.06 or 1.0
    return Axis(*_with_ends(xs, [p.x_width for p in block.points], room), LEFT, WIDTH - RIGHT), vertical


def distribution(block: Distribution) -> Markup:
    """A line for each row: its values as dots, their mean, and its interval."""
    values = [value for row in block.values for value in row.values()]
    ends = [
        sum(row.values()) / len(row) + sign * width
        for row, width in zip(block.values, block.widths, strict=True)
        for sign in (-1, 1)
        if width is not None
    ]
    left = LEFT + min(6 * max(map(len, block.rows)), 140)
    room = (max(values) - min(values)) or abs(values[0]) * 0.1 or 1.0
    low, high = max(min([*values, *ends]), min(values) - room), min(max([*values, *ends]), max(values) + room)
    across = Axis(low - 0.04 * room, high + 0.04 * room, left, WIDTH - RIGHT)
    foot = TOP + ROW * len(block.rows)
    parts = []
    for x in across.ticks():
        place = across.place(x)
        parts.append(f'<path class="grid" d="M{place:.1f} {TOP}V{foot}"/>')
        parts.append(f'<text class="tick" x="{place:.1f}" y="{foot + 16}" text-anchor="middle">{short(x)}</text>')
    for number, (name, row, width) in enumerate(zip(block.rows, block.values, block.widths, strict=True)):
        y, mean = TOP + ROW * (number + 0.5), sum(row.values()) / len(row)
        parts.append(
            f'<text class="tick" x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{escape(_clipped(name))}</text>'
        )
        if width is not None:
            low, high = (across.place(_cut(mean + sign * width, across)) for sign in (-1, 1))
            parts.append(f'<path class="whisker {_look(number)}" d="M{low:.1f} {y:.1f}H{high:.1f}"/>')
        told = f"{name}, mean of {len(row)}: {mean:.4g}" + (f" ±{width:.2g}" if width else "")
        box = f'x="{across.place(mean) - 1.5:.1f}" y="{y - 8:.1f}" width="3" height="16"'
        parts.append(f'<rect class="bar {_look(number)}" {box} data-tip="{escape(told)}"/>')
        for seed, value in list(row.items())[:POINTS]:
            where = f'cx="{across.place(value):.1f}" cy="{y:.1f}" r="3.2"'
            parts.append(
                f'<circle class="dot {_look(number)}" {where} data-tip="{escape(name)}, seed {seed}: {value:.4g}"/>'
            )
    middle = (left + WIDTH - RIGHT) / 2
    parts.append(f'<text class="name" x="{middle}" y="{foot + 34}" text-anchor="middle">{escape(block.x_label)}</text>')
    return _svg(block.title, parts, foot + BOTTOM)


def legend(names: Sequence[str]) -> Markup:
    """The legend: names of series with their markers."""
    items = "".join(
        f'<li><svg class="key" viewBox="0 0 22 12" aria-hidden="true"><path class="line {_look(n)}" d="M1 6H21"/>'
        f"{_mark(11, 6, n, '')}</svg>{escape(name)}</li>"
        for n, name in enumerate(names)
    )
    return Markup(f'<ul class="legend">{items}</ul>')


def _vertical(low: float, high: float, within: tuple[float, float] | None = None) -> Axis:
    room = (high - low) * 0.08 or abs(high) * 0.1 or 1.0
    low, high = (low if low == 0 else low - room), high + room
    if within is not None and within[0] <= low + room and high - room <= within[1]:
        low, high = max(low, within[0]), min(high, within[1])
    return Axis(low, high, HEIGHT - BOTTOM, TOP)


def _frame(vertical: Axis, labels: Sequence[tuple[float, str]], x_label: str, y_label: str) -> str:
    parts = []
    for value in vertical.ticks():
        y = vertical.place(value)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text class="tick" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{short(value)}</text>')
    foot = HEIGHT - BOTTOM
    for x, text in labels:
        parts.append(f'<text class="tick" x="{x:.1f}" y="{foot + 16}" text-anchor="middle">{escape(text[:14])}</text>')
    parts.append(f'<path class="axis" d="M{LEFT} {foot}H{WIDTH - RIGHT}"/>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text class="name" x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">{escape(x_label)}</text>')
    centre = (TOP + foot) / 2
    turned = f'transform="rotate(-90 11 {centre})"'
    parts.append(f'<text class="name" x="11" y="{centre}" text-anchor="middle" {turned}>{escape(y_label)}</text>')
    return "".join(parts)


def _mark(x: float, y: float, number: int, told: str, small: bool = False, large: bool = False) -> str:
    r = 2.0 if small else 5.5 if large else 3.2
    kind = (number + number // COLOURS) % 4
    tip = f' data-tip="{escape(told)}"' if told else ""
    look = f'class="mark {_look(number)}"{tip}'
    if kind == 0:
        return f'<circle {look} cx="{x:.1f}" cy="{y:.1f}" r="{r}"/>'
    if kind == 1:
        return f'<rect {look} x="{x - r:.1f}" y="{y - r:.1f}" width="{2 * r}" height="{2 * r}"/>'
    if kind == 2:
        return f'<path {look} d="M{x:.1f} {y - 1.2 * r:.1f}l{1.2 * r:.1f} {2.1 * r:.1f}h{-2.4 * r:.1f}z"/>'
    d = f"{1.3 * r:.1f}"
    return f'<path {look} d="M{x:.1f} {y - 1.3 * r:.1f}l{d} {d} -{d} {d} -{d} -{d}z"/>'


def _look(number: int) -> str:
    return f"c{number % COLOURS}" + (f" d{number // COLOURS % 3}" if number >= COLOURS else "")


def _clipped(name: str) -> str:
    return name if len(name) <= NAME else f"{name[: NAME - 1]}…"


def _with_ends(values: Sequence[float], widths: Sequence[float | None], room: float) -> tuple[float, float]:
    """The range of values with their intervals, which may at most double it: an interval of few seeds is clipped."""
    spread = (max(values) - min(values)) or abs(values[0]) * 0.1 or 1.0
    known = [(value, width) for value, width in zip(values, widths, strict=True) if width is not None]
    low, high = min([*values, *(v - w for v, w in known)]), max([*values, *(v + w for v, w in known)])
    return max(low, min(values) - spread / 2) - room, min(high, max(values) + spread / 2) + room


def _steps(points: Sequence[tuple[float, float]]) -> str:
    drawn = f"M{points[0][0]:.1f} {points[0][1]:.1f}" + "".join(f"H{x:.1f}V{y:.1f}" for x, y in points[1:])
    return f'<path class="front" d="{drawn}"/>'


def _cut(value: float, axis: Axis) -> float:
    return min(max(value, axis.low), axis.high)


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points) if points else ""


def _svg(title: str, parts: Sequence[str], height: int = HEIGHT) -> Markup:
    head = f'<svg class="plot" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">'
    return Markup(head + "".join(parts) + "</svg>")
