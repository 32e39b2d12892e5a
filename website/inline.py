"""A hook of MkDocs: drawings become part of the page, so that they take the colours of its light or dark mode.

Short words of code at the start of a cell are marked, so that a narrow column does not break them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

DRAWING = re.compile(r'<img alt="([^"]*)" src="([^"]*\.svg)" ?/?>')
SHORT = re.compile(r"<td><code>([^<]{1,24})</code>")


def on_page_content(html: str, page: Any, config: Any, **_: Any) -> str:
    """Replace each SVG picture of a page by its drawing."""

    def drawing(found: re.Match[str]) -> str:
        folder = Path(config["docs_dir"]) / Path(page.file.src_uri).parent
        svg = (folder / found[2]).read_text(encoding="utf-8")
        return re.sub(r"<style>.*?</style>", "", svg.replace("<svg ", f'<svg role="img" aria-label="{found[1]}" ', 1))

    return SHORT.sub(r'<td><code class="short">\1</code>', DRAWING.sub(drawing, html))
