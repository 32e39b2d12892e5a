"""Blocks as HTML, through the templates beside this file."""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from holdfast.reports import svg
from holdfast.reports.blocks import (
    MISSING,
    POINTS,
    Bars,
    Block,
    Curves,
    Distribution,
    Heatmap,
    Note,
    PictureBlock,
    Scatter,
    TableBlock,
    spread_of,
)

TEMPLATES = Path(__file__).parent / "templates"
KINDS = {"png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "svg": "image/svg+xml"}


@functools.cache
def environment() -> Environment:
    """The templates with the functions that they call; all text is escaped."""
    found = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {
        "number": lambda value, places: f"{value:.{places}f}",
        "page_name": page_name,
        "text_columns": _text_columns,
        "parted": _parted,
        "heat": _heat,
        "draw": _draw,
        "legend": _legend,
        "spread": _spread,
        "numbers": _numbers,
        "kind": lambda block: type(block).__name__,
        "data_uri": lambda picture: data_uri(picture),
        "runs_of_figures": _runs_of_figures,
    }
    return found


def render(template: str, **values: Any) -> str:
    """A page."""
    return environment().get_template(template).render(policy=policy(), **values)


@functools.cache
def policy() -> str:
    """The content security policy of a page: it may show itself and run our script, but nothing that a record might
    contain.
    """
    script = base64.b64encode(hashlib.sha256(asset("report.js").encode()).digest()).decode()
    own = "'self' file:"
    return "; ".join(
        [
            "default-src 'none'",
            "img-src data:",
            f"style-src {own} 'unsafe-inline'",
            f"script-src {own} 'sha256-{script}'",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


@functools.cache
def asset(name: str) -> Markup:
    """A style sheet or script, to be included in a page."""
    text = (TEMPLATES / name).read_text(encoding="utf-8")
    assert "</s" not in text, "it would close the element that contains it"
    return Markup(text)


def page_name(run: str) -> str:
    """The file of a run's page, whatever its folder is called.

    >>> page_name("005547eb6d71")
    '005547eb6d71.html'
    >>> page_name("my run #2")
    'my-run-2-5dcf24.html'
    """
    plain = "-".join(re.findall(r"[A-Za-z0-9_.]+", run))
    return (
        f"{plain}.html" if plain == run else f"{plain}-{hashlib.blake2b(run.encode(), digest_size=3).hexdigest()}.html"
    )


def data_uri(picture: PictureBlock) -> str:
    """A picture embedded in the page."""
    return f"data:{KINDS[picture.kind]};base64,{base64.b64encode(picture.content).decode()}"


def _text_columns(table: TableBlock) -> list[bool]:
    """The columns of text, which are not right-aligned."""
    columns = zip(*table.rows, strict=True)
    found = [
        all(cell.number is None and not cell.published for cell in column) and any(cell.text for cell in column)
        for column in columns
    ]
    return found or [True] * len(table.columns)


def _heat(value: float | None, block: Heatmap) -> Markup:
    if value is None:
        return Markup('<td class="none">') + MISSING + Markup("</td>")
    share = 100 * (value - block.low) / ((block.high - block.low) or 1)
    share = min(max(share, 0), 100)
    high = ' class="hi"' if share > 55 else ""
    return Markup(f'<td style="--v:{share:.0f}"{high}>{value:.{block.decimals}f}</td>')


Figure: TypeAlias = Curves | Bars | Scatter | Distribution


def _draw(block: Figure) -> Markup:
    if isinstance(block, Curves):
        return svg.curves(block)
    if isinstance(block, Distribution):
        return svg.distribution(block)
    return svg.bars(block) if isinstance(block, Bars) else svg.scatter(block)


def _legend(block: Figure) -> Markup:
    if isinstance(block, Distribution):  # its rows have their names
        return Markup()
    return svg.legend([each.name for each in (block.points if isinstance(block, Scatter) else block.series)])


def _spread(block: Figure) -> str:
    """What the intervals of a figure are, and whether some are wider than the picture."""
    told = spread_of(block)
    return told.replace(".", "; some are wider than the picture.") if told and svg.is_cut(block) else told


def _numbers(block: Figure) -> tuple[list[str], list[list[str]]]:
    """The data of a figure as a table, for readers who cannot see it and for files."""
    if isinstance(block, Scatter):
        rows = [[p.name, _told(p.x, p.x_width), _told(p.y, p.y_width)] for p in block.points]
        return ["", block.x_label, block.y_label], rows
    if isinstance(block, Distribution):
        seeds = sorted({seed for row in block.values for seed in list(row)[:POINTS]})
        rows = [
            [name, *(_told(row.get(seed), None) for seed in seeds), _told(sum(row.values()) / len(row), width)]
            for name, row, width in zip(block.rows, block.values, block.widths, strict=True)
        ]
        return ["", *(f"seed {seed}" for seed in seeds), "mean"], rows
    if isinstance(block, Bars):
        return ["", *block.groups], [[s.name, *map(_told, s.y, s.band or [None] * len(s.y))] for s in block.series]
    places = sorted({x for s in block.series for x in s.x})
    heads = [block.ticks[int(x)] if block.ticks and int(x) < len(block.ticks) else svg.short(x) for x in places]
    rows = []
    for series in block.series:
        known = dict(zip(series.x, map(_told, series.y, series.band or [None] * len(series.y)), strict=True))
        rows.append([series.name, *(known.get(x, MISSING) for x in places)])
    return [block.x_label, *heads], rows


def _parted(table: TableBlock) -> list[TableBlock]:
    """A paper's table as its rows with a run of ours and those without, which are folded; others in one part."""
    absent = [all(cell.number is None for cell in row[1:]) for row in table.rows]
    if not table.has_published or all(absent) or not any(absent):
        return [table]
    rows = [
        tuple(row for row, gone in zip(table.rows, absent, strict=True) if gone is which) for which in (False, True)
    ]
    return [replace(table, rows=rows[0]), TableBlock(table.title, table.columns, rows[1])]


def _told(value: float | None, width: float | None) -> str:
    if value is None:
        return MISSING
    number = f"{value:.4g}" if abs(value) < 10_000 else f"{value:.0f}"
    return number + (f" ±{width:.2g}" if width else "")


def _runs_of_figures(blocks: Sequence[Block]) -> list[tuple[bool, list[Block]]]:
    """Blocks in order, with consecutive figures grouped: they are shown side by side if there is room."""
    found: list[tuple[bool, list[Block]]] = []
    for block in blocks:
        wide = isinstance(block, TableBlock | Note)
        if not found or found[-1][0] != wide:
            found.append((wide, []))
        found[-1][1].append(block)
    return found
