"""`holdfast list KIND NAME`: a part and its settings, explained from its source, in the width of the terminal."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import asdict, is_dataclass

import typer

from holdfast import registry
from holdfast.cli.screen import print_json
from holdfast.settings import Setting, settings_of, written

WIDEST = 100
_OPTIONS = ("scale", "setting", "order", "data", "skip_bad", "seed")
"""Settings of a benchmark that are also options of `holdfast run`."""
_ITEM = re.compile(r"- |\||[A-Z]\w+( \w+)?: ")
"""A line of a docstring that starts a new item: a list item, a table row, `Paper: ...`."""


def about(kind: str, word: str, as_json: bool) -> None:
    """Print all about an algorithm, model, benchmark or dataset; `word` may also be a row of a paper's table."""
    main, row = registry.row(word) if kind == "algorithm" else (word, {})
    entry = registry.find(main, kind)
    settings, text = settings_in(entry), _source(entry)
    owner = entry.name if kind == "algorithm" else kind
    if as_json:
        found = {each.name: asdict(each) for each in settings}
        print_json({"summary": entry.summary, "origin": entry.origin, "about": text, "row": row, "settings": found})
        return
    wide = width()
    given = {key.rpartition(".")[2]: value for key, value in row.items()}
    if row:
        typer.echo(f"{word} is {main} with {', '.join(f'{key}={value}' for key, value in given.items())}.\n")
    if entry.origin != registry.BUILT_IN:
        typer.echo(f"{entry.name}, from {entry.origin}\n")
    typer.echo(reflow(text, wide))
    if settings:
        typer.echo(f"\n{explained(settings, owner, given, word)}")
    for note in _notes(entry, settings):
        typer.echo(f"\n{_wrap(note, wide)}")


def about_training(as_json: bool) -> None:
    """Print the settings of training, which every run has."""
    from holdfast.types import Training

    settings = settings_of(Training)
    if as_json:
        print_json({"settings": {each.name: asdict(each) for each in settings}})
        return
    typer.echo(reflow(Training.__doc__ or "", width()))
    typer.echo(f"\n{explained(settings, 'train')}")
    typer.echo(
        f"\n{_wrap('A benchmark may train with other values; `holdfast show RUN` lists those of a run.', width())}"
    )


def settings_in(entry: registry.Entry) -> tuple[Setting, ...]:
    """The settings of a thing with a name; a dataset and a transform of a stream have none."""
    thing = entry.load()
    return settings_of(thing) if isinstance(thing, type) and is_dataclass(thing) else ()


def explained(settings: Iterable[Setting], owner: str, given: Mapping[str, str] | None = None, row: str = "") -> str:
    """Settings as text: the type and range, default, value in a row of a paper's table, and meaning of each."""
    given = given or {}
    pairs = []
    for each in settings:
        default = "no default: set it" if each.required else f"default {written(each.default)}"
        own = f"; {row} has {given[each.name]}" if each.name in given else ""
        pairs.append((each.name, [f"{each.values} ({default}{own})", each.meaning]))
    return f"Settings (--set {owner}.NAME=VALUE)\n\n{definitions(pairs, width())}"


def width() -> int:
    """The width of text: the terminal's, up to a comfortable line length."""
    return min(shutil.get_terminal_size().columns, WIDEST)


def reflow(text: str, wide: int) -> str:
    """A docstring at another width: paragraphs, lists and tables keep their form.

    >>> print(reflow("One: a b c\\nd e f\\nTwo: g\\n\\n| h | i |\\n|---|---|\\n| j | k |", 12))
    One: a b c d
      e f
    Two: g
    <BLANKLINE>
      h  i
      j  k
    """
    blocks = []
    for block in text.strip().split("\n\n"):
        items: list[str] = []
        for line in block.splitlines():
            if items and not _ITEM.match(line.strip()):
                items[-1] += f" {line.strip()}"
            else:
                items.append(line.strip())
        if items[0].startswith("|"):
            rows = [[cell.strip() for cell in item.strip("|").split("|")] for item in items if "|--" not in item]
            blocks.append(definitions([(first, ["; ".join(rest)]) for first, *rest in rows], wide))
        else:
            hanging = "  " if len(items) > 1 or items[0].startswith("- ") else ""
            blocks.append("\n".join(_wrap(item, wide, hanging if _ITEM.match(item) else "") for item in items))
    return "\n\n".join(blocks)


def definitions(pairs: Iterable[tuple[str, list[str]]], wide: int) -> str:
    """Terms on the left and their explanations on the right."""
    pairs = list(pairs)
    left = max(len(word) for word, _ in pairs) + 4
    lines = []
    for word, paragraphs in pairs:
        texts = "\n".join(_wrap(each, wide - left) for each in paragraphs if each)
        lines.append(f"  {word}".ljust(left) + textwrap.indent(texts, " " * left)[left:])
    return "\n".join(lines)


def _wrap(text: str, wide: int, hanging: str = "") -> str:
    return textwrap.fill(text, wide, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False)


def _source(entry: registry.Entry) -> str:
    """The docstring of its file; for benchmarks and external parts, its own docstring comes first."""
    thing, own = entry.load(), ""
    module = sys.modules.get(thing.__module__ if isinstance(thing, type) else entry.module)
    text = (module.__doc__ or "").strip() if module else ""
    if entry.kind == "benchmark" or entry.origin != registry.BUILT_IN:
        own = (getattr(thing, "__doc__", "") or "").strip()
    if entry.kind == "benchmark" and entry.origin == registry.BUILT_IN:  # whose file is about more than itself
        text = text.partition("\n\n")[2]
    return "\n\n".join(dict.fromkeys(filter(None, (own, text)))) or entry.summary or "It has no docstring."


def _notes(entry: registry.Entry, settings: tuple[Setting, ...]) -> list[str]:
    if entry.kind == "benchmark":
        also = [f"--{each.name.replace('_', '-')}" for each in settings if each.name in _OPTIONS]
        options = f"`holdfast run` also has {' and '.join(filter(None, (', '.join(also[:-1]), *also[-1:])))}. "
        return [f"{options if also else ''}`holdfast list training` explains the settings of training."]
    if entry.kind == "algorithm" and settings:
        return ["A benchmark may set other values for its papers' rows; `holdfast show RUN` lists those of a run."]
    return []
