"""The benchmark `text:cl`: its settings, and how its parts are assembled.

One language model learns one classification after another, each as an instruction that it answers with a label in
words. Only the words of the prompt say which task an example belongs to. The authors' files have no validation
data of their own (`dev` is `test`), so a part of the training data is held out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from holdfast.benchmarks.base import Benchmark, Measure, Setup
from holdfast.benchmarks.exchanges import Exchanges, Writing, laid_out, majority, parted, some
from holdfast.benchmarks.source import Source, check_splits, open_source
from holdfast.benchmarks.text import protocol, stream
from holdfast.benchmarks.writing import Exchange
from holdfast.datasets.base import Reading
from holdfast.types import Between, Example, Training, Wants

DATASET = "cl_benchmark"


@dataclass(frozen=True)
class TextCl(Benchmark):
    """Text classifications one after another, answered in words, without heads."""

    version: ClassVar[int] = 1
    default_model: ClassVar[str] = "prefix-lm-tiny"
    measures: ClassVar[Mapping[str, Measure]] = protocol.MEASURES

    scale: Literal["tiny", "small", "large", "paper"] = "small"
    """The amount of synthetic data, and the length of training."""
    order: str = "1"
    """The tasks in their order: 1 to 6, as in the paper, or names with `>` between them, as in agnews>amazon."""
    answers: Literal["written", "chosen"] = "written"
    """written: the model writes its answer. chosen: the likeliest of the task's labels counts as its answer."""
    layout: Literal["paper", "brief"] = "paper"
    """How a prompt is worded: as in the paper, or without question and names and with the labels after the text, where
    they remain if a long prompt is cut."""
    most: Annotated[int, Between(2)] | None = None
    """Learn from a fixed part of each task, at most N examples; none: all."""
    most_tested: Annotated[int, Between(1)] | None = None
    """Test on a fixed part of each task, at most N examples; none: all."""
    length: Annotated[int, Between(8)] = 512
    """The maximum number of tokens of a prompt; longer ones lose words in their middle."""
    longest: Annotated[int, Between(2)] = 16
    """The maximum number of tokens of an answer, including its end."""
    beams: Annotated[int, Between(1)] = 1
    """The number of beams in the search for an answer; 1: take the likeliest token each time."""
    data: str = ""
    """The folder of the authors' files; empty: synthetic data at this scale."""
    skip_bad: Annotated[int, Between(0)] = 0
    """How many bad records of a split may be skipped; they are listed. With more than that, the run is refused."""
    seed: int = 0
    """The seed of the run, which `--seed` sets."""

    def __post_init__(self) -> None:
        stream.tasks_of(self.order)  # report a mistake before any data is read

    def reads(self) -> Collection[str]:
        """The dataset."""
        return (DATASET,)

    def check(self, wants: Wants) -> None:
        """Check that the files of the tasks are there."""
        if self.data:
            names = stream.tasks_of(self.order)
            check_splits(self._source(), *(f"{name}_{split}" for name in names for split in ("train", "test")))

    def setup(self, wants: Wants) -> Setup:
        """Read the tasks, and make each a stage."""
        source, order = self._source(), stream.tasks_of(self.order)
        problems: list[str] = []
        stages = {name: self._stage(source, name, problems) for name in sorted(order)}
        training = Training(
            protocol.EPOCHS[self.scale],
            batch_size=protocol.BATCHES[self.scale],
            learning_rate=protocol.RATES[self.scale],
        )
        how = Writing(self.longest, self.length, self.beams)
        return laid_out("text:cl", order, stages, wants, training, how, source=source.folder, problems=tuple(problems))

    def _source(self) -> Source:
        return open_source(DATASET, data=self.data, scale=self.scale, skip_bad=self.skip_bad)

    def _stage(self, source: Source, name: str, problems: list[str]) -> Exchanges:
        found: dict[str, list[Example]] = {}
        for split in ("train", "test"):
            reading = Reading(skip=self.skip_bad)
            found[split] = list(source.examples(f"{name}_{split}", reading))
            problems += map(str, reading.problems)
        learned, held = parted(found["train"])
        learned, held = some(learned, self.most), some(held, self.most_tested)
        tested = some(found["test"], self.most_tested)
        chance = majority([str(each.target) for each in learned], [str(each.target) for each in tested])
        splits = {"train": learned, "validation": held, "test": tested}
        return Exchanges(name, {split: [self._exchange(each) for each in own] for split, own in splits.items()}, chance)  # type: ignore[misc]

    def _exchange(self, example: Example) -> Exchange:
        choices = example.choices if self.answers == "chosen" else ()
        return Exchange(stream.prompt(example, self.layout), str(example.target), choices=choices)
