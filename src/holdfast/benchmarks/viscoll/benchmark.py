"""The benchmarks `viscoll:coco`, `viscoll:flickr` and `viscoll:flickr8k`: their settings, and how they are assembled.

The model sees a picture's regions and a caption in which one phrase is hidden, and fills it in. Each phrase is seen
once, in one stage without boundaries, in which the topics shift. Tasks determine the order of the stream and the names
of the detailed scores; no column of the data contains them.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np

from holdfast.benchmarks.base import Benchmark, Measure, Setup
from holdfast.benchmarks.source import check_splits
from holdfast.benchmarks.viscoll import paper, protocol, tasks
from holdfast.benchmarks.viscoll.build import OFFICIAL, SOURCES, Built, Name, build, captioned
from holdfast.benchmarks.viscoll.extract import Grammar
from holdfast.benchmarks.viscoll.features import check_features, read_regions
from holdfast.benchmarks.viscoll.phrases import SPLITS, MaskedSpan, load_phrases
from holdfast.benchmarks.viscoll.released import build_released
from holdfast.data.shifting import INTERVAL, Order, arranged, density, learned_by
from holdfast.data.table import Column, Data
from holdfast.data.text import Tokenizer, bert_vocabulary, train
from holdfast.datasets import phrase_streams
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
from holdfast.world.whole import MARK

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner

PIECES = 8000
"""The size of a vocabulary of word pieces that is trained on the captions."""
BATCHES = {"tiny": 8, "small": 8, "large": paper.BATCH, "paper": paper.BATCH}
"""Except at the paper's scale, a stream has few phrases, and a small model learns faster in smaller steps."""
RATES = {"tiny": 2e-3, "small": 1e-3, "large": 3e-4, "paper": paper.RATE}
"""The paper's rate at its scale; a small model learns faster at a higher one."""
MEMORY = {"tiny": 64, "small": 200, "large": 500, "paper": paper.MEMORY[0]}
"""The default number of examples in a memory."""
INTERVALS = 640
"""The number of intervals of a stream, except at the paper's scale: the same as for COCO-shift."""
BINS, DRAWN = 40, 8
"""A record contains the density of the stream over this many stretches, for this many of the most frequent tasks."""
EVALUATIONS = 10
"""How often a stream is interrupted for an evaluation; at the paper's scale, every 2,000 steps."""


@dataclass(frozen=True)
class Viscoll(Benchmark):
    """The common part of all: phrases in a stream."""

    version: ClassVar[int] = 3
    default_model: ClassVar[str] = "vlbert-tiny"
    measures: ClassVar[Mapping[str, Measure]] = protocol.MEASURES
    places: ClassVar[frozenset[str]] = Benchmark.places | {"vocabulary", "synonyms"}
    dataset: ClassVar[Name]

    scale: Literal["tiny", "small", "large", "paper"] = "small"
    """How much data, and how large the pictures: from tiny (seconds) to paper (the official sizes)."""
    setting: Literal["images", "text-only"] = "images"
    """images: with pictures. text-only: every picture is one region of zeros, in training and in tests."""
    order: Order = "random"
    """The order in which tasks arrive: random, or by their number of phrases. For no order at all: --algorithm
    joint."""
    data: str = ""
    """The folder of the official files; empty: synthetic data at this scale."""
    skip_bad: Annotated[int, Between(0)] = 0
    """How many bad records may be skipped; they are listed. With more than that, the run is refused."""
    features: str = ""
    """The folder of region features; empty: the folder `region_features` in that of the data, or features that are
    computed from synthetic pictures."""
    vocabulary: str = ""
    """A file of word pieces, one a line; empty: at the paper's scale those of BERT, otherwise word pieces are trained
    on the captions."""
    stream: Literal["built", "released"] = "built"
    """built: phrases and their order are made from captions. released: those that the authors published, from a copy of
    their repository in the folder of the data; `order`, if not random, arranges them anew."""
    tagger: str = "gruut"
    """The part-of-speech tagger: gruut or, if you have installed it, spacy or stanza."""
    boxes: Annotated[int, Between(1)] = paper.BOXES
    """Use at most N regions of a picture: by default 100, as in the released files; bottom-up features also have 36."""
    stream_seed: Annotated[int, Between(0)] = 0
    """The stream's own seed; as in the paper, runs with other seeds learn from the same stream."""
    interval: Annotated[int, Between(1)] | None = None
    """The number of phrases in one interval of the stream; by default the paper's 1,000, or the same fraction of a
    smaller stream."""
    fidelity: Literal["paper", "released"] = "paper"
    """paper: as the paper describes it. released: a task's Gaussian has a deviation of at least 3,000, as in the
    released code."""
    every: Annotated[int, Between(1)] | None = None
    """The number of steps between evaluations; by default there are ten evaluations."""
    seed: int = 0
    """The seed of the run, which `--seed` sets."""

    def model(self, algorithm: str = "finetune") -> str:
        """The paper's own model at its scale, and a small one otherwise."""
        return "vlbert" if self.scale == "paper" else self.default_model

    def preset(self, model: str, algorithm: str) -> Mapping[str, Any]:
        """A memory for this scale, balanced by words, with the paper's number of candidates per batch."""
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
        """Its captions and pictures, and the features if they come from files."""
        phrases = "phrase_streams" if self.stream == "released" else SOURCES[self.dataset]
        return (phrases, *(["region_features"] if self._features() else []))

    def check(self, wants: Wants) -> None:
        """Refuse a model that sees something else, and files that are not there."""
        if wants.sees != "regions":
            raise UserError("viscoll provides regions of pictures: choose a model that takes them, such as vlbert-tiny")
        if self.data and self.stream == "built":
            check_splits(
                captioned(self.dataset, data=self.data, skip_bad=self.skip_bad), *OFFICIAL[self.dataset].values()
            )
            if self.setting != "text-only":
                check_features(self.dataset, self.data, self._features())

    def setup(self, wants: Wants) -> Setup:
        """Read the phrases, hide them in their captions, and arrange them in a stream."""
        if wants.sees != "regions":
            raise UserError("viscoll provides regions of pictures: choose a model that takes them, such as vlbert-tiny")
        built, tokenizer = self._built(wants)
        if built.warning:
            warnings.warn(built.warning, stacklevel=2)
        phrases, problems = load_phrases(built.file), built.problems
        pieces = tasks.Pieces(tokenizer or self._words(phrases, wants))
        phrases = [phrase for phrase in phrases if tasks.fits(phrase, pieces, paper.LENGTH)]
        if self.setting == "text-only" and not self._features():
            return self.laid_out(phrases, pieces, tasks.no_regions(len(phrases)), problems)
        regions = read_regions(
            self.dataset,
            data=self.data,
            scale=self.scale,
            features=self._features(),
            boxes=self.boxes,
            skip_bad=self.skip_bad,
            images={phrase.image for phrase in phrases} if self.stream == "released" else None,
        )
        seen = regions.has([phrase.image for phrase in phrases])
        phrases = [phrase for phrase, there in zip(phrases, seen, strict=True) if there]
        if self.setting == "text-only":  # the same phrases as with pictures
            return self.laid_out(phrases, pieces, tasks.no_regions(len(phrases)), problems)
        return self.laid_out(phrases, pieces, regions.columns([phrase.image for phrase in phrases]), problems)

    def building(self) -> dict[str, Any]:
        """The settings with which its phrases are built."""
        return {name: getattr(self, name) for name in ("data", "scale", "tagger", "skip_bad")}

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
                raise UserError(f"there are no phrases for {split}: provide the complete data")
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
            finish=TasksOverTime(phrases, pieces.tokenizer),
        )

    def arranged(self, about: Sequence[str]) -> Ids:
        """The positions of training phrases, each about one task, in the order of the stream."""
        if self.stream == "released" and self.order == "random":
            return np.arange(len(about))
        _, numbers = np.unique(np.array(about, np.str_), return_inverse=True)
        interval = self.interval or (INTERVAL if self.scale == "paper" else max(len(about) // INTERVALS, 1))
        least = float(paper.LEAST) if self.fidelity == "released" else 0.0
        return arranged(numbers, self.order, seed=self.stream_seed, interval=interval, least=least)

    def _built(self, wants: Wants) -> tuple[Built, Tokenizer | None]:
        """The phrases, and the word pieces that they go by, if any."""
        if self.stream == "built":
            return build(self.dataset, **self.building()), None
        if not self.data or f"{self.dataset}_test" not in phrase_streams.DATASET.splits:
            raise UserError(
                "benchmark.stream=released is for viscoll:coco and viscoll:flickr with --data DIR, where DIR or "
                "DIR/phrase_streams is a copy of the repository INK-USC/VisCOLL"
            )
        words = self._words((), wants)
        own = build_released(self.dataset, data=self.data, tokenizer=words, tagger=self.tagger, skip_bad=self.skip_bad)
        return own, words

    def _features(self) -> str:
        """The folder of region features; synthetic ones are used only if they are requested."""
        beside = Path(self.data) / "region_features"
        found = self.data and beside.is_dir() and not (beside / MARK).is_file()
        return self.features or (str(beside) if found else "")

    def _every(self, steps: int) -> int:
        return paper.EVERY if self.scale == "paper" else max(round(steps / EVALUATIONS), 1)

    def _words(self, phrases: Sequence[MaskedSpan], wants: Wants) -> Tokenizer:
        if place := self.vocabulary or wants.vocabulary:
            return Tokenizer.load(Path(place))
        if self.scale == "paper" or self.stream == "released":
            return Tokenizer.load(bert_vocabulary())
        captions = {phrase.caption for phrase in phrases if phrase.split == "train"}
        return train((" ".join(caption) for caption in captions), PIECES)


@dataclass(frozen=True)
class TasksOverTime:
    """The final scores of a run on its stream: when each task was learned, and how dense the most frequent were."""

    phrases: Sequence[MaskedSpan]
    words: Tokenizer
    """The word pieces that predictions are numbers of."""

    def of(self, rows: Ids) -> tuple[list[str], Ids]:
        """The names of the tasks that some rows are about, and the number of each row's task among them."""
        names, numbers = np.unique(np.array([self.phrases[row].task for row in rows], np.str_), return_inverse=True)
        return names.tolist(), numbers

    def __call__(self, learner: Learner, learned: Stream, step: int) -> list[tuple[Score, Array]]:
        """The scores; empty if the stream has no order or was seen more than once."""
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
class Chunked(Viscoll):
    """The common part of those whose phrases are chunks of captions, about COCO's categories."""

    grammar: Grammar = "printed"
    """printed: the chunks of the paper and its code, which end before a verb such as "sits" (VBZ). meant: with it."""
    synonyms: str = ""
    """A file of words for COCO's categories, a line for each category; empty: the list that comes with Holdfast."""

    def building(self) -> dict[str, Any]:
        """The settings with which its phrases are built."""
        words = {"synonyms_file": Path(self.synonyms)} if self.synonyms else {}
        return super().building() | {"grammar": self.grammar} | words


@dataclass(frozen=True)
class CocoShift(Chunked):
    """Phrases of COCO's captions about its 80 categories, and 24 compositions that are held out."""

    dataset: ClassVar[Name] = "coco"


@dataclass(frozen=True)
class FlickrShift(Viscoll):
    """The annotated phrases of Flickr30k Entities, about its thousand most frequent nouns."""

    dataset: ClassVar[Name] = "flickr"


@dataclass(frozen=True)
class Flickr8kShift(Chunked):
    """Phrases of the captions of Flickr8k's photographs about COCO's categories, with COCO-shift's held-out pairs."""

    dataset: ClassVar[Name] = "flickr8k"
