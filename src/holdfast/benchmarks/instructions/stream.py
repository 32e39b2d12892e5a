"""The order of tasks, and which are captions or boxes."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.errors import UserError, nearest

VERSION = 1
BOXES = ("Grounding",)
"""Tasks that are answered by the corners of a box."""


def tasks_of(order: str, known: Sequence[str]) -> tuple[str, ...]:
    """The tasks of an order, which are names with `>` between them; empty: the authors' order.

    >>> tasks_of("", ("GQA", "VizWiz")), tasks_of("VizWiz>GQA", ("GQA", "VizWiz"))
    (('GQA', 'VizWiz'), ('VizWiz', 'GQA'))
    """
    names = tuple(name.strip() for name in order.split(">")) if order else tuple(known)
    for name in names:
        if name not in known:
            raise UserError(f"benchmark.order is {order!r}, with the unknown task {name!r}: {nearest(name, known)}")
    if len(set(names)) < len(names):
        raise UserError(f"benchmark.order is {order!r}: name each task once")
    return names
