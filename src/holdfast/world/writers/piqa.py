"""PIQA: goals with two solutions in JSON lines, and labels in a separate file, aligned by line.

Both variants of the release are written: the owner's (`valid`) at the top, and the mirror's (`dev`, with an `id` in
each row) in `physicaliqa-train-dev`. Kept from the original: goals that repeat or are a single word, and stray spaces.
No goal occurs in two splits.
"""

from __future__ import annotations

from functools import partial
from operator import itemgetter
from pathlib import Path

import numpy as np

from holdfast.world.language import physical_question
from holdfast.world.writers.json_files import write_json_lines
from holdfast.world.writers.scales import Amount, Splits, at_scale

VERSION = 1
MISTAKEN = 0.05
"""How often the wrong solution is labelled as the right one: nobody is right on all of the real set, either."""
COUNTS: dict[str, dict[str, int]] = {
    "tiny": {"train": 200, "valid": 80, "tests": 40},
    "small": {"train": 12_000, "valid": 400, "tests": 200},
    "large": {"train": 16_113, "valid": 1_838, "tests": 3_084},
    "paper": {"train": 16_113, "valid": 1_838, "tests": 3_084},
}


def amount(scale: str) -> Amount:
    """The amount of data written at a scale.

    >>> amount("paper").records
    21035
    """
    return Amount(sum(at_scale(COUNTS, scale).values()))


def write(folder: Path, scale: str, seed: int) -> None:
    """Write `train`, `valid` and `tests`, with labels for the first two, and the mirror's copy of both.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Path(folder), "tiny", seed=0)
    ...     sorted(path.name for path in (Path(folder) / "physicaliqa-train-dev").iterdir())
    ['dev-labels.lst', 'dev.jsonl', 'train-labels.lst', 'train.jsonl']
    """
    counts, splits = at_scale(COUNTS, scale), Splits()
    mirror = folder / "physicaliqa-train-dev"
    mirror.mkdir(parents=True, exist_ok=True)
    for number, split in enumerate(("train", "valid", "tests")):
        random = np.random.default_rng([seed, 9, number])
        rows: list[dict[str, str]] = []
        labels = random.permutation(np.arange(counts[split]) % 2)
        for index, place in enumerate(labels):
            goal, solutions, label = splits.draw(split, partial(physical_question, random), itemgetter(0))
            if random.random() < MISTAKEN:
                label = 1 - label
            right, wrong = solutions[label], solutions[1 - label]
            first, second = (right, wrong) if place == 0 else (wrong, right)
            if index % 25 == 3:
                # Both the mirror and the original have one-word goals, and trailing spaces.
                goal, first, second = goal.rstrip(" ?.,").split()[-1], f"{goal} {first} ", f"{goal} {second} "
            elif index % 25 == 4:
                goal = f" {goal.upper()}"
            rows.append({"goal": goal, "sol1": first, "sol2": second})
        write_json_lines(folder / f"{split}.jsonl", rows)
        if split == "tests":
            continue
        lines = "".join(f"{label}\n" for label in labels).encode()
        (folder / f"{split}-labels.lst").write_bytes(lines)
        other = "dev" if split == "valid" else split
        write_json_lines(mirror / f"{other}.jsonl", ({"id": random.bytes(16).hex(), **row} for row in rows))
        (mirror / f"{other}-labels.lst").write_bytes(lines)
