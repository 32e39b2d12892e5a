"""What the conformance suite runs: every registered algorithm and stream transform, alone and with a second one.

Pairs are many: so that the suite stays affordable as algorithms are added, CI runs each algorithm with one partner, in
turn, and `make slow` all pairs. A case is an algorithm with the settings in which it differs from the smallest run.
"""

from pathlib import Path
from typing import Any

import pytest

from holdfast import registry

NAMES = sorted([*registry.PLAIN, *registry.ALGORITHMS, *registry.TRANSFORMS])
PARTNERS = ("frozen-bottom", "replay")
ALL_PAIRS = [
    tuple(f"{name}+{other}" for other in PARTNERS if name != other)
    for name in sorted([*registry.ALGORITHMS, *registry.TRANSFORMS])
]
PAIRS = [pairs[number % len(pairs)] for number, pairs in enumerate(ALL_PAIRS)] + ["mntdp+lwf", "adapter-library+ewc"]
"""Each algorithm with one partner, and those in which one looks at a model that the other changes as stages come."""
OTHER_PAIRS = [pair for pairs in ALL_PAIRS for pair in pairs if pair not in PAIRS]
REDRAW = f"{Path(__file__).with_name('redraw.py')}:Redraw"
"""An algorithm that draws random numbers wherever it may: they must be the same on every rank."""

Case = tuple[str, dict[str, Any]]
TWO_HEADS = {"benchmark__setting": "task"}
LAST_BATCH_OF_ONE = {"train__batch_size": 79}
"""Of 80 examples in a stage, one is left for the last batch: fewer than the ranks."""
IN_PIECES = {"train__accumulate": 5, "train__batch_size": 39}
"""Pieces of eight and seven, and two pieces of one example each: fewer than the ranks."""
RESNET = {"model": "resnet18-tiny", "model__channels": 2, "train__epochs": 1, "train__augment": "none"}
RESNET |= {"replay__capacity": 30, "replay__size": 5, **LAST_BATCH_OF_ONE}
"""A network whose rows are normalised together: over several heads, and over the ranks."""

CASES: list[Case] = [(name, {}) for name in [*NAMES, REDRAW]]
CASES += [(name, TWO_HEADS | LAST_BATCH_OF_ONE) for name in [*NAMES, REDRAW]]
CASES += [(name, TWO_HEADS if number % 2 else {}) for number, name in enumerate(PAIRS)]
CASES += [(name, TWO_HEADS | IN_PIECES) for name in ("finetune", "replay", "ewc", "lwf", "agem", "mir")]
CASES += [("er", RESNET), ("er", RESNET | TWO_HEADS)]
OTHER_CASES: list[Case] = [(name, settings) for name in OTHER_PAIRS for settings in ({}, TWO_HEADS)]
OTHER_CASES += [(name, {} if number % 2 else TWO_HEADS) for number, name in enumerate(PAIRS)]


def or_slow(usual: list[Any], others: list[Any]) -> list[Any]:
    """The parameters of a test: those of CI, and those that only `make slow` runs."""
    several = [each if isinstance(each, tuple) else (each,) for each in others]
    return [*usual, *(pytest.param(*each, marks=pytest.mark.slow) for each in several)]
