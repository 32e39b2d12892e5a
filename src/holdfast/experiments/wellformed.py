"""Checks that a record is one that a run could have written: records may come from anybody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.benchmarks.base import Measure
from holdfast.metrics.anytime import SPENT

MOST_STAGES = 10**5
"""Scores after more stages than this are rejected: tables have a row for each stage."""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_id(value: Any) -> bool:
    """Whether it can name a folder of a store, and nothing outside it."""
    return isinstance(value, str) and 0 < len(value) <= 200 and value.strip(".") != "" and not {"/", "\0"} & {*value}


def _of(right: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Check for a mapping from names to valid values."""
    return lambda value: isinstance(value, dict) and all(map(right, value.values()))


def _is_cost(value: Any) -> bool:
    names = ("steps", "seconds", "examples_forward", "examples_backward", "memory_bytes", "parameters")
    return value == {} or (_of(_is_number)(value) and all(name in value for name in names))  # imported: not known


def _is_score(value: Any) -> bool:
    kinds = {"stage": int, "step": int, "count": int, "name": str, "split": str, "score": int | float}
    right = isinstance(value, dict) and all(isinstance(value.get(name), kind) for name, kind in kinds.items())
    return right and 0 <= value["stage"] <= MOST_STAGES and _is_number(value["score"])


def _is_spent(value: Any) -> bool:
    return isinstance(value, list) and len(value) == len(SPENT) and all(_is_number(n) and n >= 0 for n in value)


def _is_share(value: Any) -> bool:
    if not isinstance(value, dict) or len(value) != 3:
        return False
    numbers = _is_number(value.get("change")) and _is_number(value.get("base"))
    return numbers and _is_text(value.get("doubt")) and (value["base"] > 0 or value["doubt"] != "")


def _is_measure(value: Any) -> bool:
    try:
        return isinstance(Measure.from_json(value), Measure)
    except TypeError:
        return False


def is_config(value: Any) -> bool:
    """Whether it has the entries of every run's configuration, of the right types."""
    if not isinstance(value, dict) or not value.get("training"):
        return False
    kinds = {"benchmark": dict, "model": dict, "algorithms": list, "transforms": list, "training": list, "seed": int}
    return (
        all(isinstance(value.get(name), kind) for name, kind in kinds.items())
        and all(isinstance(part, dict) for part in [*value["algorithms"], *value["training"]])
        and all(
            isinstance(part.get("name"), str) for part in [value["benchmark"], value["model"], *value["algorithms"]]
        )
        and all(isinstance(word, str) for word in value["transforms"])
        and _of(_is_version)(value.get("parts", {}))
    )


def _is_version(value: Any) -> bool:
    return isinstance(value, int | str)


_PARTS: dict[str, Callable[[Any], bool]] = {
    "id": _is_id,
    "config": is_config,
    "environment": lambda value: isinstance(value, dict) and isinstance(value.get("command", ""), str),
    "summary": _of(lambda value: value is None or _is_number(value)),
    "reasons": _of(_is_text),
    "scores": lambda value: isinstance(value, list) and all(map(_is_score, value)),
    "cost": _is_cost,
    "chance": _of(_is_number),
    "dropped": lambda value: isinstance(value, int),
    "problems": lambda value: isinstance(value, list) and all(map(_is_text, value)),
    "others": _of(_is_text),
    "shares": _of(_of(_is_share)),
    "tuning": lambda value: isinstance(value, dict),
    "measures": _of(_is_measure),
    "spent": lambda value: isinstance(value, list) and all(map(_is_spent, value)),
}
"""The check for each field of a record."""
_LATER = ("chance", "dropped", "problems", "others", "shares", "tuning", "measures", "spent")
"""Fields that the first records do not have."""


def wrong_part(value: dict[str, Any]) -> str:
    """The first field of a record that is wrong; empty if all are right."""
    good = (name in _LATER if name not in value else right(value[name]) for name, right in _PARTS.items())
    return next((name for name, right in zip(_PARTS, good, strict=True) if not right), "")
