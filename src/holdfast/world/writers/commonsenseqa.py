"""CommonsenseQA, the random split: JSON lines with five choices; `answerKey` is absent in test.

No question occurs in two splits. Now and then the key is wrong: in the official dataset, too, people disagree with the
key on one question in nine.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.world.language import commonsense_question
from holdfast.world.writers.json_files import write_json_lines
from holdfast.world.writers.scales import Amount, Splits, at_scale

VERSION = 1
COUNTS: dict[str, dict[str, int]] = {
    "tiny": {"train": 200, "dev": 80, "test": 40},
    "small": {"train": 8_000, "dev": 400, "test": 200},
    "large": {"train": 9_741, "dev": 1_221, "test": 1_140},
    "paper": {"train": 9_741, "dev": 1_221, "test": 1_140},
}
FILES = {
    "train": "train_rand_split.jsonl",
    "dev": "dev_rand_split.jsonl",
    "test": "test_rand_split_no_answers.jsonl",
}
WRONG = 0.08
"""The share of questions with a wrong key."""


def amount(scale: str) -> Amount:
    """The amount of data written at a scale.

    >>> amount("paper").records
    12102
    """
    return Amount(sum(at_scale(COUNTS, scale).values()))


def write(folder: Path, scale: str, seed: int) -> None:
    """Write the three files of the random split.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Path(folder), "tiny", seed=0)
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['dev_rand_split.jsonl', 'test_rand_split_no_answers.jsonl', 'train_rand_split.jsonl']
    """
    counts, splits = at_scale(COUNTS, scale), Splits()
    for number, (split, name) in enumerate(FILES.items()):
        random = np.random.default_rng([seed, 8, number])
        write_json_lines(folder / name, _records(split, counts[split], random, splits))


def _records(split: str, count: int, random: np.random.Generator, splits: Splits) -> Iterator[dict[str, Any]]:
    for place in random.permutation(np.arange(count) % 5):
        concept, question, choices, label = splits.draw(split, partial(commonsense_question, random), itemgetter(1))
        # Each letter is the right one equally often.
        choices = list(choices)
        if random.random() < WRONG:
            label = (label + int(random.integers(1, len(choices)))) % len(choices)
        choices.insert(int(place), choices.pop(label))
        record: dict[str, Any] = {} if split == "test" else {"answerKey": "ABCDE"[place]}
        record["id"] = random.bytes(16).hex()
        listed = [{"label": letter, "text": text} for letter, text in zip("ABCDE", choices, strict=True)]
        record["question"] = {"question_concept": concept, "choices": listed, "stem": question}
        yield record
