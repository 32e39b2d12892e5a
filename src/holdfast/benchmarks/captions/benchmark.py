"""The benchmark `captions`: its settings, and how its parts are assembled.

One model with an image and a language part writes captions of pictures from one domain after another. Its prompt is the
same in all of them. An answer is compared with all captions of its picture.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from holdfast.benchmarks.base import Benchmark, Measure, Setup
from holdfast.benchmarks.captions import protocol, stream
from holdfast.benchmarks.exchanges import Exchanges, Split, Writing, laid_out, parted, some, with_pictures
from holdfast.benchmarks.source import Source, open_source
from holdfast.benchmarks.writing import Exchange
from holdfast.datasets.base import DataError, Reading
from holdfast.errors import UserError
from holdfast.types import Between, Example, Score, Training, Wants


@dataclass(frozen=True)
class Captions(Benchmark):
    """Captions of pictures from one domain after another."""

    version: ClassVar[int] = 1
    default_model: ClassVar[str] = "prefix-lm-tiny"
    measures: ClassVar[Mapping[str, Measure]] = protocol.MEASURES

    scale: Literal["tiny", "small", "large", "paper"] = "small"
    """The amount of synthetic data, the size of its pictures, and the length of training."""
    order: str = "coco:animal>coco:food>coco:vehicle>flickr8k"
    """The domains with `>` between them: flickr8k, coco, or a group of COCO's things, as in coco:animal."""
    prompt: str = "Describe the picture."
    """The prompt, the same for every picture."""
    each: Annotated[int, Between(1)] = 5
    """Learn from at most N captions of each training picture."""
    most: Annotated[int, Between(2)] | None = None
    """Learn from a fixed part of each domain, at most N pictures; none: all."""
    most_tested: Annotated[int, Between(1)] | None = None
    """Test on a fixed part of each domain, at most N pictures; none: all."""
    length: Annotated[int, Between(8)] = 64
    """The maximum number of tokens of a prompt."""
    longest: Annotated[int, Between(2)] = 40
    """The maximum number of tokens of a caption, including its end."""
    beams: Annotated[int, Between(1)] = 1
    """The number of beams in the search for a caption; 1: take the likeliest token each time."""
    data: str = ""
    """The folder that contains a folder for each dataset, by its name; empty: synthetic data at this scale."""
    skip_bad: Annotated[int, Between(0)] = 0
    """How many bad records of a split may be skipped; they are listed. With more, the run is refused."""
    seed: int = 0
    """The seed of the run, which `--seed` sets."""

    def __post_init__(self) -> None:
        stream.domains_of(self.order)  # report a mistake before any data is read

    def reads(self) -> Collection[str]:
        """The datasets of the domains."""
        return tuple(dict.fromkeys(name.partition(":")[0] for name in stream.domains_of(self.order)))

    def setup(self, wants: Wants) -> Setup:
        """Read the datasets, and make each domain a stage."""
        order, side = stream.domains_of(self.order), wants.side or protocol.SIDES[self.scale]
        stages: dict[str, Exchanges] = {}
        problems: list[str] = []
        for dataset in self.reads():
            skip = max(self.skip_bad, 0 if self.data else 1)  # the synthetic COCO has a box without a size
            source = open_source(dataset, data=self.data, scale=self.scale, skip_bad=skip)
            official, found = self._splits(source, problems)
            for name in sorted(name for name in order if name.partition(":")[0] == dataset):
                stages[name] = self._stage(source, official, found, name, side, problems)
        training = Training(
            protocol.EPOCHS[self.scale], batch_size=32, learning_rate=protocol.RATES[self.scale], schedule="cosine"
        )
        how = Writing(self.longest, self.length, self.beams)
        return laid_out(
            "captions", order, stages, wants, training, how, image=(3, side, side), problems=tuple(problems)
        )

    @staticmethod
    def summary(scores: Sequence[Score]) -> dict[str, float]:
        """The measures of a run."""
        return protocol.summary(scores)

    def _splits(self, source: Source, problems: list[str]) -> tuple[tuple[str, str], dict[str, list[Example]]]:
        """The official splits for training and test, and their examples."""
        for official in stream.SPLITS[source.dataset.name]:
            found: dict[str, list[Example]] = {}
            for split in official:
                reading = Reading(skip=source.skip_bad)
                try:
                    found[split] = list(source.examples(split, reading))
                except DataError as error:
                    if error.missing and official != stream.SPLITS[source.dataset.name][-1]:
                        break
                    raise
                problems += map(str, reading.problems)
            else:
                return official, found
        raise AssertionError("the last splits raise an error")

    def _stage(
        self,
        source: Source,
        official: tuple[str, str],
        found: Mapping[str, Sequence[Example]],
        name: str,
        side: int,
        problems: list[str],
    ) -> Exchanges:
        train, test = ([each for each in found[split] if stream.belongs(each, name)] for split in official)
        if len(train) < 10 or not test:
            raise UserError(
                f"the domain {name} has {len(train)} training and {len(test)} test pictures: choose another, or more "
                "data"
            )
        learned, held = parted(train)
        learned, held, tested = (
            some(part, most)
            for part, most in ((learned, self.most), (held, self.most_tested), (test, self.most_tested))
        )
        taught = [each for each in learned for _ in each.extra["captions"][: self.each]]
        parts, columns, bad = with_pictures(
            source, official[0], {"train": taught, "validation": held}, side, stream.__name__
        )
        shown, shown_columns, more = with_pictures(source, official[1], {"test": tested}, side, stream.__name__)
        problems += [*bad, *more]
        splits: dict[Split, list[Exchange]] = {
            split: [self._exchange(each) for each in own] for split, own in {**parts, **shown}.items()
        }
        seen: dict[str, int] = {}
        for row, example in enumerate(parts["train"]):
            number = seen[example.id] = seen.get(example.id, -1) + 1
            splits["train"][row] = self._exchange(example, number)
        return Exchanges(name, splits, 0.0, "cider", {**columns, **shown_columns}, tuple(protocol.FURTHER))

    def _exchange(self, example: Example, number: int = 0) -> Exchange:
        captions = tuple(example.extra["captions"])
        return Exchange(self.prompt, captions[number], captions)
