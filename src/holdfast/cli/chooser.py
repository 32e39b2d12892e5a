"""`holdfast list algorithms --facts`: facts by which to choose among the algorithms."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from holdfast import registry
from holdfast.algorithms.base import Algorithm
from holdfast.algorithms.facts import FACTS, documented, facts, paper
from holdfast.cli.explain import definitions, width
from holdfast.cli.screen import print_json
from holdfast.errors import UserError, nearest
from holdfast.metrics.statistics import summary


def list_by_facts(with_: str, without: str, as_json: bool) -> None:
    """Print the algorithms that have all of some facts, and none of others."""
    wanted, unwanted = _words(with_), _words(without)
    chosen = {name: own for name, own in all_facts().items() if wanted <= own and not unwanted & own}
    if as_json:
        print_json({name: sorted(own) for name, own in chosen.items()})
        return
    lines = [(name, [", ".join(word for word in FACTS if word in own)]) for name, own in chosen.items()]
    typer.echo(definitions(lines, width()) if lines else "No algorithm has all of these facts.")
    typer.echo(f"\nFacts\n\n{definitions([(word, [meaning]) for word, meaning in FACTS.items()], width())}")


def _words(given: str) -> frozenset[str]:
    words = frozenset(filter(None, (word.strip() for word in given.split(","))))
    for word in sorted(words - FACTS.keys()):
        raise UserError(f"unknown fact {word!r} about algorithms: {nearest(word, FACTS)}")
    return words


def all_facts() -> dict[str, frozenset[str]]:
    """The facts about each algorithm, built-in or from an installed package."""
    found = {}
    for name, entry in registry.entries("algorithm").items():
        if name in registry.TRANSFORMS:
            continue
        kind = entry.load()
        found[name] = facts(kind)
    return found


def page() -> str:
    """The table of docs/algorithms.md."""
    lines = ["| algorithm | paper | needs | keeps | cost |", "|---|---|---|---|---|"]
    for name, entry in registry.ALGORITHMS.items():
        kind: type[Algorithm] = entry.load()
        own = facts(kind)
        needs = [word for word in ("boundaries", "transformer", "modular", "task-id", "pretrained") if word in own]
        keeps = documented(kind, "Memory") or "nothing."
        cells = (f"`{name}`", paper(kind), ", ".join(needs), keeps, documented(kind, "Cost"))
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines) + "\n"


def measured(path: Path) -> str:
    """The table of runs on real data in docs/algorithms.md, from the values in docs/measured.json."""
    lines = ["| algorithm | where | measure | result | runs |", "|---|---|---|---|---|"]
    for row in sorted(json.loads(path.read_text(encoding="utf-8")), key=lambda row: _place(row["algorithm"])):
        found = summary(row["values"])
        result = f"{found.mean:.1f}" + (f" ±{found.half_width:.1f}" if len(row["values"]) > 1 else "")
        lines.append(f"| `{row['algorithm']}` | {row['where']} | {row['measure']} | {result} | {len(row['values'])} |")
    return "\n".join(lines) + "\n"


def _place(algorithm: str) -> tuple[int, str]:
    """The position of an algorithm in the page's other table; for a combination, that of its last part."""
    return list(registry.ALGORITHMS).index(algorithm.rpartition("+")[2]), algorithm
