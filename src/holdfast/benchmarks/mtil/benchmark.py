"""The benchmark `mtil`: its settings, and how its parts are assembled.

A stage is a dataset, whose classes are known by their names in prompts. After each stage all datasets are scored, those
of later stages without having been learned, and so is retrieval on captions that no stage teaches. Which examples of a
dataset are learned and tested depends on no order and no seed, so all runs share the tables of frozen towers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from holdfast.benchmarks.base import Benchmark, Measure, Setup
from holdfast.benchmarks.mtil import protocol, stream
from holdfast.benchmarks.mtil.protocol import RETRIEVAL
from holdfast.benchmarks.source import Source, open_source
from holdfast.benchmarks.splits import PreparedSplit, prepare_split
from holdfast.benchmarks.synthetic import worlds
from holdfast.benchmarks.vocabulary import at_most, word_pieces
from holdfast.data import prepared
from holdfast.data.table import Data, Table
from holdfast.data.text import Tokenizer
from holdfast.datasets.formats.captions import as_choices
from holdfast.errors import UserError
from holdfast.tasks.pairs import Prompted, Prompts, Retrieve, details, filled
from holdfast.types import (
    Array,
    Between,
    EvaluationSet,
    Example,
    Inputs,
    Protocol,
    Score,
    Stage,
    Stream,
    Task,
    Training,
    Wants,
)

CAPTIONS = "flickr8k"
REFERENCE = "reference"
"""The captions that algorithms may use beside a stage's own data, as ZSCL does."""
HEAD = "compare"
SIDES = {"tiny": 32, "small": 32, "large": 64, "paper": 224}
EPOCHS = {"tiny": 2, "small": 5, "large": 5, "paper": 10}
RATES = {"tiny": 1e-3, "small": 1e-3, "large": 1e-3, "paper": 1e-5}


@dataclass(frozen=True)
class Mtil(Benchmark):
    """Datasets from many domains one after another, each learned by the names of its classes."""

    version: ClassVar[int] = 1
    default_model: ClassVar[str] = "dual-tiny"
    measures: ClassVar[Mapping[str, Measure]] = protocol.MEASURES
    places: ClassVar[frozenset[str]] = Benchmark.places | {"templates"}

    scale: Literal["tiny", "small", "large", "paper"] = "small"
    """The amount of synthetic data, and the size of its pictures."""
    order: str = "I"
    """The datasets in their order: I or II, as in the paper, or names with `>` between them, as in mnist>dtd."""
    shuffled: bool = False
    """Whether the datasets come in an order drawn by the run's seed: several seeds are several orders."""
    shots: Annotated[int, Between(1)] | None = None
    """Learn N examples of each class, drawn by the run's seed; none: all of them."""
    candidates: Literal["own", "seen", "all"] = "own"
    """Which classes compete: those of the example's own dataset (own), of all stages so far (seen), or of all datasets
    (all)."""
    templates: str = ""
    """A JSON file with the templates of prompts for each dataset; empty: one template each, as published models use."""
    most: Annotated[int, Between(2)] | None = None
    """Learn from a fixed part of each dataset, with at most N examples of each class; none: all."""
    most_tested: Annotated[int, Between(1)] | None = None
    """Test on a fixed part of each dataset, with at most N examples of each class; none: all."""
    captions: bool = True
    """Whether captions (Flickr8k) are read: held-out ones to measure how much retrieval is retained, others as a
    reference for algorithms."""
    data: str = ""
    """The folder that contains a folder for each dataset, by its name; empty: synthetic data at this scale."""
    skip_bad: Annotated[int, Between(0)] = 0
    """How many bad records of a dataset may be skipped; they are listed. With more than that, the run is refused."""
    seed: int = 0
    """The seed of the run, which `--seed` sets."""

    def __post_init__(self) -> None:
        stream.datasets_of(self.order)  # report a mistake before any data is read

    def reads(self) -> tuple[str, ...]:
        """The datasets of the order, and that of the captions."""
        return (*self.names, *([CAPTIONS] if self.captions else []))

    @property
    def names(self) -> tuple[str, ...]:
        """The datasets in their alphabetical order, in which their examples and classes are numbered."""
        return tuple(sorted(stream.datasets_of(self.order)))

    def setup(self, wants: Wants) -> Setup:
        """Read the datasets, and make each a stage."""
        if not self.data:
            worlds(self.reads(), self.scale)
        sources = {
            name: open_source(name, data=self.data, scale=self.scale, skip_bad=self.skip_bad) for name in self.reads()
        }
        if self.captions:
            sources[CAPTIONS] = replace(sources[CAPTIONS], dataset=as_choices(sources[CAPTIONS].dataset))
        classes = {name: _classes(sources[name]) for name in self.names}
        texts = self._prompts(classes)
        words, length = self._pieces(sources, texts, wants)
        side = wants.side or SIDES[self.scale]
        splits = {
            (name, split): self._labelled(sources[name], split, side)
            for name in self.names
            for split in ("train", "test")
        }
        prompts = Prompts(*_encoded(words, [text for name in self.names for text in texts[name]], length))
        counts = [len(classes[name]) for name in self.names]
        first = dict(zip(self.names, np.cumsum([0, *counts]).tolist(), strict=False))
        tasks: dict[str, Task] = {
            name: self._task(name, prompts, first[name], len(classes[name])) for name in self.names
        }
        tables = [_shifted(each.table, first[name]) for (name, _), each in splits.items()]
        found = list(splits.values())
        if self.captions:
            for task, split in ((REFERENCE, "train"), (RETRIEVAL, "test")):
                found.append(self._captions(sources[CAPTIONS], task, split, side, words, length))
                tables.append(found[-1].table)
                chance = float(np.mean([min(1.0, k / len(found[-1].ids)) for k in (1, 5, 10)]))
                tasks[task] = Retrieve(task, HEAD, len(prompts), chance, growing=self.candidates == "seen")
        data = Data(tables, prompts.fingerprint())
        return self._laid_out(
            data, tasks, splits, Inputs((3, side, side), text=length, vocabulary=len(words.vocabulary)), found, first
        )

    def _laid_out(
        self,
        data: Data,
        tasks: Mapping[str, Task],
        splits: Mapping[tuple[str, str], PreparedSplit],
        inputs: Inputs,
        found: Sequence[PreparedSplit],
        first: Mapping[str, int],
    ) -> Setup:
        ids = {key: data.ids(place) for place, key in enumerate(splits)}
        training = Training(EPOCHS[self.scale], learning_rate=RATES[self.scale], weight_decay=0.01, schedule="cosine")
        stages, sets = [], []
        order = stream.datasets_of(self.order)
        if self.shuffled:
            order = tuple(np.random.default_rng([self.seed, 0x04DE]).permutation(order).tolist())
        for name in order:
            train = splits[name, "train"]
            rows, held = stream.learned(train.ids, np.asarray(train.table.targets), self.shots, self.seed)
            own = ids[name, "train"]
            held_out = (EvaluationSet(name, name, "validation", own[held]),) if len(held) else ()
            task = tasks[name]
            assert isinstance(task, Prompted)
            stages.append(Stage(name, own[rows], training, held_out, tuple(range(task.first, task.first + task.count))))
            sets += [*held_out, EvaluationSet(name, name, "test", ids[name, "test"])]
        if self.captions:
            last = data.ids(len(found) - 1)
            sets.append(EvaluationSet(RETRIEVAL, RETRIEVAL, "test", last, details(RETRIEVAL)))
        return Setup(
            data,
            tasks,
            Stream(tuple(stages)),
            Protocol(tuple(sets), initial=True),
            inputs,
            chance={each.name: tasks[each.task].chance for each in sets},
            problems=tuple(problem for each in found for problem in each.problems),
        )

    @staticmethod
    def summary(scores: Sequence[Score]) -> dict[str, float]:
        """The measures of a run."""
        return protocol.summary(scores)

    def _task(self, name: str, prompts: Prompts, first: int, count: int) -> Prompted:
        compete = count if self.candidates == "own" else len(prompts)
        return Prompted(name, HEAD, len(prompts), 1 / compete, prompts, first, count, self.candidates)

    def _prompts(self, classes: Mapping[str, Sequence[str]]) -> dict[str, list[list[str]]]:
        """The prompts of all classes, the same number for each: with fewer templates, prompts are repeated, which keeps
        their mean.
        """
        path = Path(self.templates) if self.templates else Path(__file__).with_name("templates.json")
        try:
            given: Any = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UserError(
                f"benchmark.templates: {path} cannot be read as JSON ({error}): give another file"
            ) from None
        texts = {}
        for name, known in classes.items():
            own = given.get(name) if isinstance(given, dict) else None
            if not isinstance(own, list) or not all(isinstance(each, str) for each in own):
                raise UserError(f'{path} has no list of templates for {name}: add one, such as ["a photo of a {{}}."]')
            texts[name] = filled(known, own, f"{path.name}, {name}")
        count = math.lcm(*(len(known[0]) for known in texts.values()))
        return {name: [each * (count // len(each)) for each in known] for name, known in texts.items()}

    def _pieces(
        self, sources: Mapping[str, Source], texts: Mapping[str, list[list[str]]], wants: Wants
    ) -> tuple[Tokenizer, int]:
        prompts = [text for name in self.names for own in texts[name] for text in own]

        def all_texts() -> Iterator[str]:
            yield from prompts
            if self.captions:
                for split in ("train", "test"):
                    yield from (text for each in sources[CAPTIONS].examples(split) for text in each.choices)

        kept = f"prompts {stream.share(repr(prompts))}"
        words, longest = word_pieces(list(sources.values())[-1], all_texts, wants.vocabulary, kept)
        return words, at_most(longest, wants)

    def _labelled(self, source: Source, split: str, side: int) -> PreparedSplit:
        name = source.dataset.name
        official = stream.SPLITS[name][split]
        most = self.most if split == "train" else self.most_tested
        part = _Selection(source, name, official, split, most)
        kept = f"mtil {split}, at most {most}, {stream.TESTED}"
        return prepare_split(
            source,
            name,
            official,
            target=prepared.class_numbers,
            notes={},
            module=stream.__name__,
            keep=part.has,
            kept=kept,
            image_size=side,
        )

    def _captions(
        self, source: Source, task: str, split: str, side: int, words: Tokenizer, length: int
    ) -> PreparedSplit:
        return prepare_split(
            source,
            task,
            split,
            target=_nothing,
            notes={},
            module=stream.__name__,
            image_size=side,
            tokenizer=words,
            length=length,
        )


@dataclass(frozen=True)
class _Selection:
    """The examples that belong to a split; the dataset is read for this at most once."""

    source: Source
    dataset: str
    official: str
    split: str
    most: int | None

    @cached_property
    def _ids(self) -> frozenset[str]:
        rows = (
            (each.id, int(each.target)) for each in self.source.examples(self.official) if isinstance(each.target, int)
        )
        return stream.chosen(rows, self.dataset, self.split, self.most)

    def has(self, example: Example) -> bool:
        return example.id in self._ids


def _nothing(examples: Sequence[Example]) -> Array:
    """The target of a pair is its own number."""
    return np.zeros(len(examples), np.int64)


def _classes(source: Source) -> Sequence[str]:
    known: Callable[[Path], Sequence[str]] | None = source.dataset.classes
    assert known is not None, "each dataset of the benchmark names its classes"
    return known(source.folder)


def _encoded(words: Tokenizer, prompts: Sequence[Sequence[str]], length: int) -> tuple[Array, Array]:
    numbers, lengths = words.encode([text for own in prompts for text in own], length)
    shape = (len(prompts), len(prompts[0]))
    return numbers.reshape(*shape, length), lengths.reshape(shape)


def _shifted(table: Table, first: int) -> Table:
    """The table with its classes numbered among those of all datasets."""
    return replace(table, targets=table.targets + first)
