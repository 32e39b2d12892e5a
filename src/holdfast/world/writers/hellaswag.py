"""HellaSwag: JSON lines with a context and four endings, from captions of films and from instructions.

Kept from the original: the label is a whole number and absent in test; instructions have an empty `ctx_b` and marks
such as `[header]`; some rows have no `ctx_a` and `ctx_b` at all; `ind` has gaps. No context occurs in two splits.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.world.language import story_ending
from holdfast.world.writers.json_files import write_json_lines
from holdfast.world.writers.scales import Amount, Splits, at_scale

VERSION = 1
MISTAKEN = 0.06
"""How often a wrong ending is labelled as the right one: nobody is right on all of the real set, either."""
COUNTS: dict[str, dict[str, int]] = {
    "tiny": {"train": 200, "val": 80, "test": 40},
    "small": {"train": 10_000, "val": 600, "test": 300},
    "large": {"train": 20_000, "val": 3_000, "test": 3_000},
    "paper": {"train": 39_905, "val": 10_042, "test": 10_003},
}


def amount(scale: str) -> Amount:
    """The amount of data written at a scale.

    >>> amount("paper").records
    59950
    """
    return Amount(sum(at_scale(COUNTS, scale).values()))


def write(folder: Path, scale: str, seed: int) -> None:
    """Write `hellaswag_train.jsonl`, `hellaswag_val.jsonl` and `hellaswag_test.jsonl`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Path(folder), "tiny", seed=0)
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['hellaswag_test.jsonl', 'hellaswag_train.jsonl', 'hellaswag_val.jsonl']
    """
    counts, splits = at_scale(COUNTS, scale), Splits()
    for number, split in enumerate(("train", "val", "test")):
        random = np.random.default_rng([seed, 7, number])
        write_json_lines(folder / f"hellaswag_{split}.jsonl", _records(split, counts[split], random, splits))


def _records(split: str, count: int, random: np.random.Generator, splits: Splits) -> Iterator[dict[str, Any]]:
    ind = int(random.integers(5))
    for index, place in enumerate(random.permutation(np.arange(count) % 4)):
        context, endings, label, activity = splits.draw(split, partial(story_ending, random), itemgetter(0))
        if random.random() < MISTAKEN:
            label = int((label + 1 + random.integers(3)) % 4)
        # The right ending is equally often in each position.
        right = endings.pop(label)
        endings.insert(int(place), right)
        before, _, subject = context.rpartition(". ")
        record: dict[str, Any] = {"ind": ind, "activity_label": activity}
        instructions = index % 3 == 2
        if instructions:
            context = f"[header] {activity} [title] How it is done. [step] {before}."
            endings = [f"{subject[0].upper()}{subject[1:]} {ending}" for ending in endings]
            record |= {"ctx_a": context, "ctx_b": "", "ctx": context}
        elif index % 10 == 4:
            record |= {"ctx": context}
        else:
            record |= {"ctx_a": f"{before}.", "ctx_b": subject, "ctx": context}
        record |= {"split": split, "split_type": "zeroshot" if split != "train" and index % 2 else "indomain"}
        if split != "test":
            record["label"] = int(place)
        record["endings"] = endings
        record["source_id"] = f"wikihow~{ind}" if instructions else f"activitynet~v_{ind:011d}"
        yield record
        ind += int(random.integers(1, 6))
