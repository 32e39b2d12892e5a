"""The versions of built-in parts with which runs were made, and a note if these differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

SHARED = ("engine", "benchmark", "reader", "tokenizer", "decoding", "task", "head", "model")
"""Parts that all rows of a table share: if their versions differ, so may the results."""
OLDEST = "by holdfast 0.1"
"""The label of runs whose versions are unknown."""
NAMED = 4
"""How many rows of a version are listed by name; the others are counted."""


def shared(config: Mapping[str, Any]) -> dict[str, int | str]:
    """A run's versions of the parts that all rows share."""
    return {part: version for part, version in config.get("parts", {}).items() if part.startswith(SHARED)}


def mixed(runs: Iterable[tuple[str, Mapping[str, Any]]]) -> tuple[str, ...]:
    """A note for a table of these rows and configurations if versions of a part differ.

    >>> mixed([("er", {"parts": {"engine": 1}}), ("ewc", {"parts": {"engine": 2}}), ("lwf", {"parts": {"engine": 2}})])
    ('Made with different versions, which may be why they differ: engine 1 (er); engine 2 (ewc, lwf).',)
    >>> mixed([("er", {"parts": {"engine": 1}}), ("er", {"parts": {"engine": 1, "tokenizer": 1}})])
    ()
    """
    found: dict[str, dict[str, list[str]]] = {}
    for title, config in runs:
        if "parts" not in config:
            found.setdefault("engine", {}).setdefault(OLDEST, []).append(title)
        for part, version in shared(config).items():
            found.setdefault(part, {}).setdefault(f"{part} {version}", []).append(title)
    told = [
        f"{name} ({_few(list(dict.fromkeys(titles)))})"
        for versions in found.values()
        if len(versions) > 1
        for name, titles in sorted(versions.items())
    ]
    return (f"Made with different versions, which may be why they differ: {'; '.join(told)}.",) if told else ()


def _few(titles: list[str]) -> str:
    more = [f"{len(titles) - NAMED} more"] if len(titles) > NAMED else []
    return ", ".join([*titles[:NAMED], *more])
