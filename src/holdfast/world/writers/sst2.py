"""SST-2 as GLUE ships it: tab-separated, lower-cased and tokenised.

Kept from the original: the rows of train are mostly parts of sentences and end with a space, some occur twice, quote
characters are plain text, and the labels of test are not given. No sentence occurs in two splits.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import numpy as np

from holdfast.world.language import review
from holdfast.world.writers.scales import Amount, Splits, at_scale

VERSION = 1
COUNTS: dict[str, dict[str, int]] = {
    "tiny": {"train": 300, "dev": 80, "test": 40},
    "small": {"train": 4_000, "dev": 400, "test": 200},
    "large": {"train": 30_000, "dev": 872, "test": 1_821},
    "paper": {"train": 67_349, "dev": 872, "test": 1_821},
}


def amount(scale: str) -> Amount:
    """The amount of data written at a scale.

    >>> amount("paper").records
    70042
    """
    return Amount(sum(at_scale(COUNTS, scale).values()))


def write(folder: Path, scale: str, seed: int) -> None:
    """Write the folder `SST-2` with `train.tsv`, `dev.tsv` and `test.tsv`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Path(folder), "tiny", seed=0)
    ...     sorted(path.name for path in (Path(folder) / "SST-2").iterdir())
    ['dev.tsv', 'test.tsv', 'train.tsv']
    """
    counts, splits = at_scale(COUNTS, scale), Splits()
    root = folder / "SST-2"
    root.mkdir(parents=True, exist_ok=True)
    for number, split in enumerate(("train", "dev", "test")):
        random = np.random.default_rng([seed, 6, number])
        count = counts[split]
        labels = random.permutation(np.arange(count) % 2)
        rows = ["index\tsentence" if split == "test" else "sentence\tlabel"]
        texts: list[str] = []
        for index, label in enumerate(labels):
            length = 1 if split == "train" else int(random.integers(1, 3))
            text = tokenised(splits.draw(split, partial(review, random, bool(label), sentences=length)))
            if split == "train":
                # Parts of a sentence have no full stop; a phrase that was seen before recurs with its label.
                text = text.removesuffix(" .") if random.random() < 0.8 else text
                same = [old for old in range(len(texts)) if labels[old] == label] if index % 50 == 49 else []
                text = texts[same[0]] if same else text + " "
                if index % 40 == 7:
                    text = f'"{text}'
            texts.append(text)
            rows.append(f"{index}\t{text}" if split == "test" else f"{text}\t{label}")
        (root / f"{split}.tsv").write_bytes("".join(f"{row}\n" for row in rows).encode())


def tokenised(text: str) -> str:
    """Lower case, with spaces around punctuation, as in the treebank.

    >>> tokenised("Dull, but I'd see it again.")
    "dull , but i 'd see it again ."
    """
    spaced = re.sub(r"([.,;:!?])", r" \1 ", text.lower().replace("'", " '"))
    return " ".join(spaced.split())
