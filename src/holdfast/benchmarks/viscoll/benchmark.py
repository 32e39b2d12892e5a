"""The benchmarks `viscoll:coco` and `viscoll:flickr`: settings, and how their parts are put together.

The model sees a picture's regions and a caption in which one phrase is hidden, and fills it in. Phrases come by once,
in one stage without boundaries, in which what they are about shifts. Tasks decide the order of the stream and by which
names the scores are told; no column of the data knows of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np

from holdfast.benchmarks.base import Benchmark, Measure, Setup
from holdfast.benchmarks.viscoll import paper, protocol, tasks
from holdfast.benchmarks.viscoll.build import SOURCES, build
from holdfast.benchmarks.viscoll.features import read_regions
from holdfast.benchmarks.viscoll.phrases import SPLITS, MaskedSpan, load_phrases
from holdfast.benchmarks.viscoll.stream import INTERVAL, Order, arranged, density, learned_by
from holdfast.data.table import Column, Data
from holdfast.data.text import Tokenizer, train
from holdfast.errors import UserError
from holdfast.types import (
    Array,
    Between,
    EvaluationSet,
    Ids,
    Protocol,
    Score,
    Stage,
    Stream,
    Training,
    Wants,
)

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner

PIECES = 8000
"""The size of a vocabulary of word pieces that is trained on the captions."""
BATCHES = {"tiny": 8, "small": 8, "large": paper.BATCH, "paper": paper.BATCH}
"""Away from the paper's scale a stream has few phrases, and a small model learns the faster in smaller steps."""
RATES = {"tiny": 2e-3, "small": 1e-3, "large": 3e-4, "paper": paper.RATE}
"""The paper's at its scale; a small model learns the faster at a higher one."""
MEMORY = {"tiny": 64, "small": 200, "large": 500, "paper": paper.MEMORY[0]}
"""How many examples a memory holds where a user does not say."""
INTERVALS = 640
"""How many intervals a stream has away from the paper's scale: as many as COCO-shift."""
BINS, DRAWN = 40, 8
"""A record tells the density of the stream over so many stretches, for so many of the most frequent tasks."""
EVALUATIONS = 10
"""How often a stream is interrupted for an evaluation; at the paper's scale, each 2,000 steps."""


@dataclass(frozen=True)
class Viscoll(Benchmark):
    """What COCO-shift and Flickr-shift have in common: phrases in a stream."""

    version: ClassVar[int] = 1
    default_model: ClassVar[str] = "vlbert-tiny"
    measures: ClassVar[Mapping[str, Measure]] = protocol.MEASURES
    places: ClassVar[frozenset[str]] = Benchmark.places | {"vocabulary"}
    dataset: ClassVar[Literal["coco", "flickr"]]

    scale: Literal["tiny", "small", "large", "paper"] = "small"
    setting: Literal["images", "text-only"] = "images"
    """text-only: every picture is one region of zeros, in training and in tests."""
    order: Order = "random"
    """The order in which tasks arrive: random, or by their number of phrases. Without order: --algorithm joint."""
    data: str = ""
    """The folder of the official files; without it, the world's at this scale."""
    skip_bad: Annotated[int, Between(0)] = 0
    features: str = ""
    """The region features, where they are not computed from the pictures."""
    vocabulary: str = ""
    """A file of word pieces, one a line; without it, pieces are trained on the captions."""
    tagger: str = "gruut"
    """What tells nouns, verbs and adjectives apart."""
    boxes: Annotated[int, Between(1)] = paper.BOXES
    """The most regions of a picture."""
    stream_seed: Annotated[int, Between(0)] = 0
    """The stream's own seed: as in the paper, runs of several seeds learn from one stream."""
    interval: Annotated[int, Between(1)] | None = None
    """The phrases of one interval of the stream; by default the paper's 1,000, elsewhere as long a part of it."""
    fidelity: Literal["paper", "released"] = "paper"
    """released: a task's Gaussian has a deviation of at least 3,000, as in the released code."""
    every: Annotated[int, Between(1)] | None = None
    """The steps from one evaluation to the next; by default ten evaluations."""
    seed: int = 0

    def model(self, algorithm: str = "finetune") -> str:
        """The paper's own at its scale, a small one elsewhere."""
        return "vlbert" if self.scale == "paper" else self.default_model

    def preset(self, model: str, algorithm: str) -> Mapping[str, Any]:
        """A memory of this scale, balanced by words, and as many candidates to a batch as in the paper."""
        asked = paper.CANDIDATES[self.dataset] * BATCHES[self.scale] // paper.BATCH
        own: dict[str, dict[str, Any]] = {
            "replay": {"by": "word"},
            "agem": {"size": asked},
            "mir": {"candidates": asked},
        }
        names = [name for name in algorithm.split("+") if name in own]
        return {
            f"{name}.{setting}": value
            for name in names
            for setting, value in {"capacity": MEMORY[self.scale], **own[name]}.items()
        }

    def reads(self) -> tuple[str, ...]:
        """Its captions and pictures, and features where they come from files."""
        return (SOURCES[self.dataset], *(["region_features"] if self.features else []))

    def setup(self, wants: Wants) -> Setup:
        """Read the phrases, hide them in their captions, and lay them out in a stream."""
        if wants.sees != "regions":
            raise UserError("viscoll shows regions of pictures: choose a model that sees them, such as vlbert-tiny")
        built = build(self.dataset, data=self.data, scale=self.scale, tagger=self.tagger, skip_bad=self.skip_bad)
        phrases = load_phrases(built.file)
        pieces = tasks.Pieces(self._words(phrases, wants))
        phrases = [phrase for phrase in phrases if tasks.fits(phrase, pieces, paper.LENGTH)]
        if self.setting == "text-only":
            return self.laid_out(phrases, pieces, tasks.no_regions(len(phrases)), built.problems)
        regions = read_regions(
            self.dataset,
            data=self.data,
            scale=self.scale,
            features=self.features,
            boxes=self.boxes,
            skip_bad=self.skip_bad,
        )
        seen = regions.has([phrase.image for phrase in phrases])
        phrases = [phrase for phrase, there in zip(phrases, seen, strict=True) if there]
        return self.laid_out(phrases, pieces, regions.columns([phrase.image for phrase in phrases]), built.problems)

    @staticmethod
    def summary(scores: Sequence[Score]) -> dict[str, float]:
        """The measures of a run."""
        return protocol.summary(scores)

    def laid_out(
        self,
        phrases: Sequence[MaskedSpan],
        pieces: tasks.Pieces,
        regions: Mapping[str, Column],
        problems: tuple[str, ...] = (),
    ) -> Setup:
        """One table of all phrases; the stream and the evaluation sets are numbers of its rows."""
        rows = {split: np.array([r for r, p in enumerate(phrases) if p.split == split], np.int64) for split in SPLITS}
        for split in ("train", "validation", "test"):
            if not len(rows[split]):
                raise UserError(f"there are no phrases for {split}: give the whole of the data")
        hidden, kind = tasks.masked(phrases, pieces, paper.LENGTH), tasks.task(pieces.tokenizer)
        train = rows["train"][self.arranged([phrases[row].task for row in rows["train"]])]
        data = Data([hidden.table(regions)])

        def evaluated(split: Literal["validation", "test", "novel"]) -> EvaluationSet:
            own, novel = [phrases[row] for row in rows[split]], split == "novel"
            parts = (protocol.novel_parts if novel else protocol.regular_parts)(own, hidden.words[rows[split]])
            name = protocol.NOVEL if novel else protocol.REGULAR
            asked = protocol.details(*parts, bleu=not novel)
            return EvaluationSet(name, kind.name, "validation" if split == "validation" else "test", rows[split], asked)

        sets = [evaluated("validation"), evaluated("test"), *([evaluated("novel")] if len(rows["novel"]) else [])]
        training = Training(batch_size=BATCHES[self.scale], learning_rate=RATES[self.scale], shuffle=False)
        return Setup(
            data,
            {kind.name: kind},
            Stream((Stage("stream", train, training),), boundaries=False),
            Protocol(tuple(sets), every=self.every or self._every(-(-len(train) // training.batch_size))),
            tasks.inputs(data.tables[0], pieces.tokenizer),
            problems=problems,
            finish=TasksOverTime(phrases),
        )

    def arranged(self, about: Sequence[str]) -> Ids:
        """The places of training phrases, of which each is about one task, in the order of the stream."""
        _, numbers = np.unique(np.array(about, np.str_), return_inverse=True)
        interval = self.interval or (INTERVAL if self.scale == "paper" else max(len(about) // INTERVALS, 1))
        least = float(paper.LEAST) if self.fidelity == "released" else 0.0
        return arranged(numbers, self.order, seed=self.stream_seed, interval=interval, least=least)

    def _every(self, steps: int) -> int:
        return paper.EVERY if self.scale == "paper" else max(round(steps / EVALUATIONS), 1)

    def _words(self, phrases: Sequence[MaskedSpan], wants: Wants) -> Tokenizer:
        if place := self.vocabulary or wants.vocabulary:
            return Tokenizer.load(Path(place))
        captions = {phrase.caption for phrase in phrases if phrase.split == "train"}
        return train((" ".join(caption) for caption in captions), PIECES)


@dataclass(frozen=True)
class TasksOverTime:
    """What a run tells at its end: when each task was learned, and how likely the most frequent ones were over time."""

    phrases: Sequence[MaskedSpan]

    def of(self, rows: Ids) -> tuple[list[str], Ids]:
        """The names of the tasks that some rows are about, and the number of each row's task among them."""
        names, numbers = np.unique(np.array([self.phrases[row].task for row in rows], np.str_), return_inverse=True)
        return names.tolist(), numbers

    def __call__(self, learner: Learner, learned: Stream, step: int) -> list[tuple[Score, Array]]:
        """The scores; none where the stream has no order or did not come by once."""
        (stage,) = learned.stages
        if stage.training.shuffle or stage.training.epochs > 1:
            return []
        names, numbers = self.of(stage.train)
        steps = -(-learned_by(numbers, paper.SEEN) // stage.training.batch_size)
        counts = np.bincount(numbers)
        found = [
            Score(1, step, protocol.LEARNED + name, split, int(count), float(at))
            for split in ("validation", "test")
            for name, count, at in zip(names, counts, steps, strict=True)
        ]
        bins = min(BINS, len(numbers))
        ends = [max(step * (number + 1) // bins, 1) for number in range(bins)]
        shares = density(numbers, bins, len(names))
        for task in np.argsort(-counts, kind="stable")[:DRAWN]:
            found += [
                Score(1, end, protocol.DENSITY + names[task], "test", int(counts[task]), share)
                for end, share in zip(ends, shares[task].tolist(), strict=True)
            ]
        return [(score, np.empty(0)) for score in found]


@dataclass(frozen=True)
class CocoShift(Viscoll):
    """Phrases of COCO's captions about its 80 categories, and 24 compositions that are held out."""

    dataset: ClassVar[Literal["coco", "flickr"]] = "coco"


@dataclass(frozen=True)
class FlickrShift(Viscoll):
    """The annotated phrases of Flickr30k Entities, about its thousand most frequent nouns."""

    dataset: ClassVar[Literal["coco", "flickr"]] = "flickr"
