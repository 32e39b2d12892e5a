"""CL_Benchmark as O-LoRA's authors publish it: fifteen text classifications, and the question of each kind.

As in the original, the files `dev` and `test` are the same, MNLI's have sentences whose annotators did not agree, and
COPA has no question of its own. No sentence of train is in test.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from holdfast.world.classified import Random, graded, on_topic, pair_of_sentences, two_endings, two_questions, two_uses
from holdfast.world.writers.json_files import write_json
from holdfast.world.writers.scales import Amount, Splits, at_scale

VERSION = 1
COUNTS: dict[str, dict[str, int]] = {
    "tiny": {"train": 40, "test": 20},
    "small": {"train": 400, "test": 100},
    "large": {"train": 2_000, "test": 1_000},
    "paper": {"train": 5_000, "test": 7_600},
}
_GRADES = ("very negative", "negative", "neutral", "positive", "very positive")
_TOPICS = {
    "agnews": ("World", "Sports", "Business", "Science or Technology"),
    "dbpedia": (
        *("Company", "Educational Institution", "Artist", "Athlete", "Office Holder", "Mean of Transportation"),
        *("Building", "Natural Place", "Village", "Animal", "Plant", "Album", "Film", "Written Work"),
    ),
    "yahoo": (
        *("Society & Culture", "Science & Mathematics", "Health", "Education & Reference", "Computers & Internet"),
        *("Sports", "Business & Finance", "Entertainment & Music", "Family & Relationships"),
        "Politics & Government",
    ),
}
_TRUTH = ("True", "False")
LABELS: dict[tuple[str, str], tuple[str, ...]] = {
    **{("SC", name): _GRADES for name in ("amazon", "yelp")},
    **{("SC", name): ("Good", "Bad") for name in ("IMDB", "SST-2")},
    **{("TC", name): labels for name, labels in _TOPICS.items()},
    **{("NLI", name): ("entailment", "contradiction", "neutral") for name in ("MNLI", "CB")},
    ("NLI", "RTE"): ("contradiction", "entailment"),
    ("COPA", "COPA"): ("A", "B"),
    **{(name, name): _TRUTH for name in ("QQP", "BoolQA", "MultiRC", "WiC")},
}
"""The labels of each task, by its two folders."""
_ASKED = {
    "SC": "How does the writer of this text feel? Answer with one of the options.\n",
    "TC": "What is this text about? Answer with one of the options.\n",
    "NLI": 'How does "sentence 2" relate to "sentence 1"? Answer with one of the options.\n',
    "QQP": 'Do the "first sentence" and the "second sentence" ask the same? Answer with one of the options.\n',
    "BoolQA": "Is the answer to the question, by the passage, true or false? Answer with one of the options.\n",
    "MultiRC": "Is this answer to the question, by the paragraph, true or false? Answer with one of the options.\n",
    "WiC": "Does the word have the same sense in both sentences? Answer with one of the options.\n",
}
_UNDECIDED = 30  # one of every thirty sentences of MNLI


def amount(scale: str) -> Amount:
    """The amount of data written at a scale: the test data twice.

    >>> amount("tiny").records
    1200
    """
    counts = at_scale(COUNTS, scale)
    return Amount(len(LABELS) * (counts["train"] + 2 * counts["test"]))


def write(folder: Path, scale: str, seed: int) -> None:
    """Write `CL_Benchmark`, a folder for each task, and `configs/instruction_config.json`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Path(folder), "tiny", seed=0)
    ...     sorted(path.name for path in (Path(folder) / "CL_Benchmark" / "TC" / "agnews").iterdir())
    ['dev.json', 'labels.json', 'test.json', 'train.json']
    """
    counts = at_scale(COUNTS, scale)
    for task, ((kind, name), labels) in enumerate(LABELS.items()):
        place, splits = folder / "CL_Benchmark" / kind / name, Splits()
        for split in ("test", "train"):
            random = np.random.default_rng([seed, 36, task, split == "train"])
            order = random.permutation(np.arange(counts[split]) % len(labels))
            make: Callable[[str], str] = partial(_sentence, random, kind, name)
            records = [
                {"label": label, "sentence": splits.draw(split, partial(make, label))}
                for label in (labels[int(number)] for number in order)
            ]
            if split == "test":
                if name == "MNLI":
                    records = [
                        {**each, "label": "-"} if row % _UNDECIDED == 7 else each for row, each in enumerate(records)
                    ]
                write_json(place / "dev.json", records)
            write_json(place / f"{split}.json", records)
        write_json(place / "labels.json", labels)
    asked = {
        kind: [{"instruction_type": "zero-shot", "instruction": instruction}] for kind, instruction in _ASKED.items()
    }
    write_json(folder / "configs" / "instruction_config.json", asked)


def _sentence(random: Random, kind: str, name: str, label: str) -> str:
    """A text of this label, laid out as the task's texts are."""
    match kind:
        case "SC":
            words = graded(random, label)
            return words if name in ("IMDB", "SST-2") else f"Text: {words}\n"
        case "TC":
            return f"Text: {on_topic(random, label)}\n"
        case "NLI":
            return "sentence 1: {}\nsentence 2: {}".format(*pair_of_sentences(random, label))
        case "QQP":
            return "first sentence: {}\nsecond sentence: {}".format(*two_questions(random, label == "True"))
        case "WiC":
            return "word: {}\n{}\n{}".format(*two_uses(random, label == "True"))
        case "COPA":
            start, endings = two_endings(random, right=int(label == "B"))
            return f'Which sentence follows "{start}"? Choose one between A and B.\nA: {endings[0]}\nB: {endings[1]}'
    passage, claim = pair_of_sentences(random, "entailment" if label == "True" else "contradiction")
    asked = f"{claim[:-1].lower()}"
    if kind == "BoolQA":
        return f"question: is it so that {asked}\npassage: {passage}"
    return f"paragraph: {passage}\nquestion: What is said there?\ncandidate answer: {claim}"
