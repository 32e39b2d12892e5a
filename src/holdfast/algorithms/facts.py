"""Facts by which algorithms can be compared and chosen, read from their declarations and docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any

from holdfast.algorithms.base import KEEPS, Algorithm, overrides

FACTS: Mapping[str, str] = {
    "boundaries": "needs to know where a stage ends",
    "transformer": "adds to the repeated blocks of an encoder, such as a transformer's",
    "modular": "needs a model made of modules",
    "task-id": "gives each head an encoder of its own, so tests must name the task if each task has its own head",
    "pretrained": "relies on a pre-trained encoder",
    "gradients": "learns by gradients",
    **KEEPS,
}
"""The words by which `holdfast list algorithms --with WORD --without WORD` filters."""
_NEEDS = {"boundaries": "boundaries", "blocks": "transformer", "modular": "modular"}


def facts(kind: type[Algorithm] | None) -> frozenset[str]:
    """The words of `FACTS` that hold for an algorithm with its default settings; None is plain fine-tuning.

    >>> from holdfast.algorithms.ewc import EWC
    >>> sorted(facts(EWC))
    ['boundaries', 'gradients', 'weights']
    """
    if kind is None:
        return frozenset({"gradients"})
    algorithm = kind()
    found = {_NEEDS[need] for need in algorithm.needs if need in _NEEDS} | algorithm.keeps
    found |= {"task-id"} if "encoder-per-head" in algorithm.traits else set()
    found |= {"pretrained"} if algorithm.pretrained else set()
    found |= {"gradients"} if not (overrides(algorithm, "observe") and overrides(algorithm, "learn")) else set()
    return frozenset(found)


def documented(kind: type[Any], item: str) -> str:
    """What the docstring of an algorithm's file says about its `Paper`, `Equation`, `Cost` or `Memory`.

    >>> from holdfast.algorithms.si import SI
    >>> documented(SI, "Memory")
    'three numbers for each weight.'
    """
    text = inspect.getdoc(inspect.getmodule(kind)) or ""
    found = re.search(rf"\b{item}s?: (.*?)(?=\n\n|\n[A-Z]\w+: |\. [A-Z]\w+: |\Z)", text, re.DOTALL)
    whole = " ".join(found[1].split()) if found else ""
    return whole if not whole or whole.endswith(".") else f"{whole}."


def paper(kind: type[Any]) -> str:
    """The authors, year and title of its paper.

    >>> from holdfast.algorithms.mas import MAS
    >>> paper(MAS)
    'Aljundi et al. 2018, "Memory Aware Synapses: Learning what (not) to forget"'
    """
    text = documented(kind, "Paper")
    found = re.match(r'.*?\d{4}(, "[^"]*")?', text)
    short = found[0] if found else text
    return f"{short})" if short.count("(") > short.count(")") else short
