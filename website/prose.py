"""Docstrings of Holdfast as Markdown: items that begin with a word and a colon, tables, and examples."""

from __future__ import annotations

import inspect
import re

ITEM = re.compile(r"[A-Z]\w+( \w+)?: ")


def markdown(text: str) -> str:
    """A docstring as Markdown; examples become blocks, and `Paper: ...` a list item.

    >>> print(markdown("One line.\\n\\nPaper: A\\net al.\\nCost: b."))
    One line.
    <BLANKLINE>
    - **Paper:** A et al.
    - **Cost:** b.
    """
    first, *blocks = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join([first, *map(_block, blocks)]).replace("```\n\n```pycon\n>>>", "\n>>>")


def _block(block: str) -> str:
    lines = block.splitlines() or [""]
    if lines[0].startswith(">>>"):
        return f"```pycon\n{block}\n```"
    if lines[0].startswith(("    ", "```")):
        return block
    if lines[0].lstrip().startswith("|"):
        return "\n".join(line.strip() for line in lines)
    if not ITEM.match(lines[0]):
        return block
    items: list[str] = []
    for line in lines:
        if ITEM.match(line):
            word, _, rest = line.partition(": ")
            items.append(f"- **{word}:** {rest}")
        else:
            items[-1] += f" {line.strip()}"
    return "\n".join(items)


def cell(text: str) -> str:
    """Text for a cell of a table."""
    return " ".join(text.replace("|", "\\|").split())


def table(heads: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown.

    >>> print(table(["a", "b"], [["1", "x | y"]]))
    | a | b |
    |---|---|
    | 1 | x \\| y |
    """
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    return "\n".join([*lines, *(f"| {' | '.join(map(cell, row))} |" for row in rows)])
