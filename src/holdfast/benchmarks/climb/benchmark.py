"""The benchmark `climb`: its settings, and how its parts are assembled.

Each task is a stage with its own head. A single task (`--order vqav2`) with plain fine-tuning is the paper's direct
fine-tuning, the baseline of the other runs' knowledge transfer: it is run once, and shared by all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

from holdfast.benchmarks.base import Benchmark, Measure, Need, Setup
from holdfast.benchmarks.climb import paper, protocol, transfer
from holdfast.benchmarks.climb import words as written
from holdfast.benchmarks.climb.paper import KNOWN, TASKS
from holdfast.benchmarks.climb.regions import region_inputs, sight, with_regions
from holdfast.benchmarks.climb.stream import PARTS, chosen, layouts, task_order
from holdfast.benchmarks.climb.tasks import Part, Place, check_files, read, task_of, vocabulary_file
from holdfast.benchmarks.splits import PreparedSplit
from holdfast.benchmarks.synthetic import worlds
from holdfast.benchmarks.vocabulary import at_most
from holdfast.data.language import PromptPieces
from holdfast.data.table import Data
from holdfast.data.text import Tokenizer
from holdfast.errors import UserError
from holdfast.metrics.pooling import Shares
from holdfast.tasks import Generate
from holdfast.types import Between, Inputs, Protocol, Score, Stream, Task, Wants

SIDES = {"tiny": 32, "small": 64, "large": 96, "paper": paper.SIDE}
"""The side of the images, if the model does not specify it."""


@dataclass(frozen=True)
class _Read:
    """The splits of every task that was read, and their form as model inputs."""

    splits: Mapping[str, list[PreparedSplit]]
    inputs: Inputs
    regions: bool
    tasks: Mapping[str, Task]


def _said(task: Task) -> str:
    """A hash of the right answers, if they are texts."""
    return task.references.fingerprint() if isinstance(task, Generate) else ""


@dataclass(frozen=True)
class Climb(Benchmark):
    """VQAv2, NLVR2, SNLI-VE and VCR, one after another, each with its own head."""

    version: ClassVar[int] = 2
    default_model: ClassVar[str] = "vilt-tiny"
    measures: ClassVar[Mapping[str, Measure]] = protocol.MEASURES
    places: ClassVar[frozenset[str]] = Benchmark.places | {"downstream", "transfer_to", "single_task", "joint"}

    scale: Literal["tiny", "small", "large", "paper"] = "small"
    """How much data, and how large the pictures: from tiny (seconds) to paper (the official sizes)."""
    setting: Literal["heads", "text"] = "heads"
    """heads: each task has an output layer of its own. text: answers in words, by a model that writes; all tasks share
    its output."""
    order: str = ""
    """Tasks with `>` between them, or 1, 2 or 3 for the paper's orders; empty: the first of these. A single task is
    learned on its own. Beyond the paper's four tasks there is vcr-qar: VCR's question and answer, with four reasons."""
    train: Annotated[int, Between(8)] | None = None
    """Use at most N training examples of each task; by default all, but at tiny and small few enough for minutes."""
    scored: Annotated[int, Between(8)] | None = None
    """Use at most N examples of each validation and test set; the default follows `train`."""
    data: str = ""
    """The folder that holds a folder of official files for each dataset; empty: synthetic data at this scale."""
    skip_bad: Annotated[int, Between(0)] = 0
    """How many bad records may be skipped; they are listed. With more than that, the run is refused."""
    features: str = ""
    """The folder of region features, for a model that sees regions; empty: those in `data`, if there are any, or else
    the cells of a grid."""
    downstream: bool = False
    """Whether low-shot runs follow from the weights after each stage; `--downstream` sets it."""
    transfer_to: Literal["all", "multimodal", "language", "vision"] = "all"
    """With downstream=true: the tasks that low-shot runs learn."""
    single_task: bool = False
    """With downstream=true: whether low-shot runs also follow the direct runs, as in the paper's single-task rows."""
    joint: bool = False
    """Whether the joint run, the baseline of intransigence, is run as well."""
    seed: int = 0
    """The seed of the run, which `--seed` sets."""

    def __post_init__(self) -> None:
        # An order is one run, however it is written; mistakes are reported before any data is read.
        object.__setattr__(self, "order", ">".join(task_order(self.order)))
        if self.setting == "text" and self.downstream:
            raise UserError("low-shot runs have an output layer for each task: leave out downstream, or setting=text")

    def model(self, algorithm: str = "finetune") -> str:
        """The paper's own model at its scale, and a small one otherwise; one that writes, if answers are texts."""
        if self.setting == "text":
            return "prefix-lm" if self.scale == "paper" else "prefix-lm-tiny"
        return "vilt" if self.scale == "paper" else self.default_model

    def preset(self, model: str, algorithm: str) -> Mapping[str, Any]:
        """The paper's settings of an algorithm, rescaled if data and model are small."""
        return paper.preset(model, algorithm, self.scale)

    def needs(self, title: str) -> Mapping[str, Need]:
        """The direct run of each task; with `joint` the joint run, with `downstream` the low-shot ones."""
        names = task_order(self.order)
        if title == "finetune" and len(names) == 1:
            return self._transfer(title) if self.downstream and self.single_task else {}
        found = {
            protocol.DIRECT + name: Need({"algorithm": "finetune", "order": name}, stage=stage)
            for stage, name in enumerate(names, 1)
        }
        if self.joint and len(names) > 1:
            found[protocol.JOINT] = Need({"algorithm": "joint"}, stage=2)
        return found | (self._transfer(title) if self.downstream else {})

    def first(self, stages: int) -> tuple[str, ...]:
        """The tasks of the first stages."""
        return task_order(self.order)[:stages]

    def reads(self) -> tuple[str, ...]:
        """The dataset of each task, and the features if they come from files."""
        features = ["region_features"] if self.features else []
        return (*dict.fromkeys(KNOWN[name].dataset for name in task_order(self.order)), *features)

    def joined(self, others: Sequence[Benchmark]) -> Climb:
        """The benchmark with the tasks of all runs that differ from this one only in their order and needs."""
        alike = [other for other in others if isinstance(other, Climb) and other._alone() == self._alone()]
        names = {name for other in alike for name in task_order(other.order)}
        return replace(self, order=">".join(name for name in KNOWN if name in names)) if names else self

    def check(self, wants: Wants) -> None:
        """Refuse a model that sees something else, and files that are not there."""
        self._sight(wants)
        for name in task_order(self.order):
            check_files(name, Place(self.data, self.scale, self.skip_bad))

    def setup(self, wants: Wants) -> Setup:
        """Read the tasks, and arrange them in stages."""
        place, names = Place(self.data, self.scale, self.skip_bad), task_order(self.order)
        features = self._sight(wants)
        if not self.data:
            worlds(
                list(dict.fromkeys(KNOWN[name].dataset for name in (names if wants.vocabulary else TASKS))), self.scale
            )
        side = wants.side or SIDES[self.scale]
        writes = self.setting == "text"
        words = vocabulary_file(wants, place, written.ALL_LABELS if writes else ())
        fit = {"pictures": False} if features else paper.fit(side, self.scale)
        language = written.language_of(wants, Tokenizer.load(words)) if writes else None
        prompts = None if language is None else PromptPieces(language, True, "climb")
        splits: dict[str, list[PreparedSplit]] = {
            name: [
                read(
                    name,
                    part,
                    place,
                    vocabulary=words,
                    length=at_most(paper.TEXT, wants),
                    fit=fit,
                    keep=chosen(name, part, place, self._limit(name, part)),
                    kept=str(self._limit(name, part)),
                    prompts=prompts,
                )
                for part in PARTS
            ]
            for name in names
        }
        inputs = Inputs(
            image=None if features else paper.shape(fit),
            padded="longest" in fit,
            text=at_most(paper.TEXT, wants),
            vocabulary=len(Tokenizer.load(words).vocabulary),
        )
        if wants.sees == "regions":
            splits = {name: with_regions(name, own, place, features) for name, own in splits.items()}
        found: dict[str, Task] = {}
        if language is None or prompts is None:
            found = {name: task_of(name, place) for name in names}
        else:
            for name in names:
                splits[name], found[name] = written.with_answers(name, splits[name], place, language)
            answer = max(each.longest for each in found.values() if isinstance(each, Generate))
            inputs = replace(inputs, answer=answer, end=language.end, vocabulary=language.size)
            inputs = replace(inputs, text=prompts.length(paper.TEXT))
        return self._laid_out(_Read(splits, inputs, wants.sees == "regions", found))

    def narrow(self, setup: Setup) -> Setup:
        """Reduce the setup to the tasks of this benchmark's own order."""
        whole = setup.whole
        assert isinstance(whole, _Read)
        return self._laid_out(whole)

    def _laid_out(self, whole: _Read) -> Setup:
        names = task_order(self.order)
        own = [whole.splits[name] for name in names]
        splits = [split for task in own for split in task]
        inputs = replace(whole.inputs, images=max(KNOWN[name].images for name in names))
        if whole.regions:
            inputs = region_inputs(inputs, splits)
        found = layouts(names, [[len(split.table) for split in task] for task in own])
        sets = [each.evaluation(part) for part in ("validation", "test") for each in found]
        return Setup(
            Data([split.table for split in splits], " ".join(_said(whole.tasks[name]) for name in names).strip()),
            {name: whole.tasks[name] for name in names},
            Stream(tuple(each.stage(paper.training(each.name, self.scale)) for each in found)),
            Protocol(tuple(sets), initial=True),
            inputs,
            chance={name: KNOWN[name].chance for name in names},
            problems=tuple(problem for split in splits for problem in split.problems),
            whole=whole,
            keep_stages=True,
        )

    def _sight(self, wants: Wants) -> str:
        """The folder of region features, or empty; refuses a model that cannot be given what it sees."""
        if wants.sees == "grid":
            raise UserError("climb has pictures but no feature maps: choose a model such as vilt-tiny or uniter-tiny")
        return sight(task_order(self.order), wants, self.scale, self.features, self.data)

    def _alone(self) -> Climb:
        """The benchmark without the settings in which other runs of a plan may differ on the same data."""
        return replace(self, order="", downstream=False, transfer_to="all", single_task=False, joint=False)

    @staticmethod
    def summary(scores: Sequence[Score]) -> dict[str, float]:
        """The measures of a run."""
        return protocol.summary(scores)

    @staticmethod
    def relative(scores: Sequence[Score], others: Mapping[str, Sequence[Score]]) -> dict[str, float]:
        """The measures that need other runs."""
        return protocol.relative(scores, others) | transfer.measures(others)

    @staticmethod
    def shares(scores: Sequence[Score], others: Mapping[str, Sequence[Score]]) -> Mapping[str, Shares]:
        """The contribution of each task to forgetting and to the transfers."""
        return protocol.shares(scores, others) | transfer.shares(others)

    def _transfer(self, title: str) -> dict[str, Need]:
        return transfer.needs(task_order(self.order), self.scale, title, self.features, self.transfer_to)

    def _limit(self, name: str, part: Part) -> int | None:
        own = self.train if part == "train" else self.scored
        budget = paper.BUDGETS.get(self.scale, {}).get(KNOWN[name].model)
        return getattr(budget, part, None) if own is None else own
