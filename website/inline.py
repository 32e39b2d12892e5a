"""A hook of MkDocs: drawings become part of the page, so that they take the colours of its light or dark mode.

Short words of code are marked, so that a line does not break within `--data`, and cells of tables by what they hold:
on a phone, values stay on one line, and long texts get a column that is wide enough to read.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

DRAWING = re.compile(r'<img alt="([^"]*)" src="([^"]*\.svg)" ?/?>')
SHORT = re.compile(r"<code>([^<]{1,24})</code>")
OPTION = re.compile(r"(?<=[ >])--?[a-z][\w-]*(?=[^<]*</code>)")
CELL = re.compile(r"<td>(.*?)</td>", re.DOTALL)
VALUE = re.compile(r"[-–\d.,±*%/ ]+")
LONG = 60


def on_page_content(html: str, page: Any, config: Any, **_: Any) -> str:
    """Replace each SVG picture of a page by its drawing, and mark code and cells."""

    def drawing(found: re.Match[str]) -> str:
        folder = Path(config["docs_dir"]) / Path(page.file.src_uri).parent
        svg = (folder / found[2]).read_text(encoding="utf-8")
        return re.sub(r"<style>.*?</style>", "", svg.replace("<svg ", f'<svg role="img" aria-label="{found[1]}" ', 1))

    html = SHORT.sub(r'<code class="short">\1</code>', DRAWING.sub(drawing, html))
    return CELL.sub(_cell, OPTION.sub(r'<span class="short">\g<0></span>', html))


def _cell(found: re.Match[str]) -> str:
    """A cell with the class of what it holds.

    >>> _cell(CELL.search("<td>20.2 ±6.8</td>")), _cell(CELL.search("<td>a <b>c</b></td>"))
    ('<td class="value">20.2 ±6.8</td>', '<td>a <b>c</b></td>')
    """
    if VALUE.fullmatch(found[1]):
        return f'<td class="value">{found[1]}</td>'
    if len(re.sub(r"<[^>]*>", "", found[1])) > LONG and "<math" not in found[1]:
        return f'<td class="long">{found[1]}</td>'
    return found[0]
