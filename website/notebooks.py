"""Tutorials that are kept as scripts of cells (`# %%`), executed, and shown as pages and notebooks."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import sys
import tempfile
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Cell:
    """A cell of a tutorial."""

    text: str
    code: bool


def cells(script: str) -> Iterator[Cell]:
    """The cells of a script in the percent format, which Jupytext and editors read.

    >>> list(cells("# %% [markdown]\\n# # Title\\n\\n# %%\\n1 + 1\\n"))
    [Cell(text='# Title', code=False), Cell(text='1 + 1', code=True)]
    """
    for part in script.split("# %%")[1:]:
        head, _, body = part.partition("\n")
        if "[markdown]" in head:
            lines = (line.removeprefix("#").removeprefix(" ") for line in body.strip().splitlines())
            yield Cell("\n".join(lines), code=False)
        else:
            yield Cell(body.strip(), code=True)


def executed(script: Path) -> str:
    """The script as a page: every cell with what it printed, and the value of its last line.

    It is executed in an empty folder, so that a tutorial shows what a reader gets who starts with nothing.
    """
    module = types.ModuleType(f"tutorial_{script.stem}")  # where classes of the tutorial are looked up
    sys.modules[module.__name__], names = module, vars(module)
    text, found = [], list(cells(script.read_text(encoding="utf-8")))
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for each in found:
            if not each.code:
                text.append(each.text)
                continue
            text.append(f"```python\n{each.text}\n```")
            if output := _output(each.text, names, script.name).replace(folder, "."):
                text.append(f'```text title="Output"\n{output}\n```')
    return "\n\n".join(text) + "\n"


def _output(code: str, names: dict[str, Any], name: str) -> str:
    """What a cell prints, and the representation of the expression it ends with, as a notebook shows it."""
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    os.environ["COLUMNS"] = "88"
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, name, "exec"), names)
        if last is not None and (value := eval(compile(ast.Expression(last.value), name, "eval"), names)) is not None:
            print(value if type(value).__str__ is not object.__str__ else repr(value))
    return "\n".join(line.rstrip() for line in printed.getvalue().splitlines()).strip("\n")


def notebook(script: str) -> str:
    """The same as a Jupyter notebook, without outputs."""
    found = []
    for number, each in enumerate(cells(script)):
        cell = {"id": f"cell-{number}", "metadata": {}, "source": each.text.splitlines(keepends=True)}
        kind = {"cell_type": "code", "execution_count": None, "outputs": []} if each.code else {"cell_type": "markdown"}
        found.append(kind | cell)
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return json.dumps({"cells": found, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}, indent=1)
