"""What the conformance suite runs: every registered algorithm and stream transform, alone and with a second one."""

from pathlib import Path

from holdfast import registry

NAMES = sorted([*registry.PLAIN, *registry.ALGORITHMS, *registry.TRANSFORMS])
PAIRS = sorted(
    f"{name}+{other}"
    for name in [*registry.ALGORITHMS, *registry.TRANSFORMS]
    for other in ("frozen-bottom", "replay")
    if name != other
)
PAIRS += ["mntdp+lwf", "adapter-library+ewc"]
"""Beside these, those in which one looks at a model that the other changes as stages come."""
LAST_BATCH_OF_ONE = {"train__batch_size": 79}
"""Of 80 examples in a stage, one is left for the last batch: fewer than the ranks."""
TWO_HEADS = {"benchmark__setting": "task"}
REDRAW = f"{Path(__file__).with_name('redraw.py')}:Redraw"
CASES = [(name, settings) for name in [*NAMES, *PAIRS, REDRAW] for settings in ({}, TWO_HEADS)]
CASES += [(name, LAST_BATCH_OF_ONE) for name in [*NAMES, REDRAW]]
IN_PIECES = {"train__accumulate": 5, "train__batch_size": 39}
"""Pieces of eight and seven, and two pieces of one example each: fewer than the ranks."""
CASES += [(name, {**IN_PIECES, **TWO_HEADS}) for name in ("finetune", "replay", "ewc", "lwf", "agem", "mir")]
