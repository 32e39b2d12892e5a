"""The benchmark `clvqa`: its settings, and how its parts are assembled.

The model reads a question, sees a picture and answers; it never learns which task a question belongs to. A training
stage contains the questions of one task; after each stage both tasks are scored. A single task (`--order wh`) is the
paper's independent model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from holdfast.benchmarks.base import Benchmark, Measure, Need, Setup
from holdfast.benchmarks.clvqa import protocol, tasks, words
from holdfast.benchmarks.clvqa.stream import SETTINGS, balanced, halves, task_order
from holdfast.benchmarks.source import Source, check_splits, open_source
from holdfast.benchmarks.splits import PreparedSplit, prepare_split
from holdfast.benchmarks.vocabulary import at_most, word_pieces
from holdfast.data.features import Features, open_features
from holdfast.data.language import Language, PromptPieces
from holdfast.data.table import Data
from holdfast.data.text import Tokenizer
from holdfast.errors import UserError
from holdfast.types import (
    Between,
    EvaluationSet,
    Example,
    Inputs,
    Protocol,
    Score,
    Stage,
    Stream,
    Training,
    Wants,
)

SIDES = {"tiny": 32, "small": 64, "large": 96, "paper": 224}
EPOCHS = {"tiny": 2, "small": 12, "large": 20, "paper": 100}
"""The maximum number of epochs."""
PATIENCE = {"tiny": 3, "small": 6, "large": 3, "paper": 3}
"""The paper's patience, except at small, where scores on yes/no-questions stagnate for some epochs before rising."""
WARMUP = {"tiny": 0.0, "small": 0.25, "large": 0.0, "paper": 0.0}
"""A small model that starts its second task at the full rate loses its vision along with the old answers."""
RATES = {"tiny": 3e-3, "small": 3e-3, "large": 1e-3, "paper": 5e-4}
"""The paper's rate at its scale; a small model learns faster at a higher one."""
PAPER: dict[str, dict[str, Any]] = {
    "rehearsal": {"rehearsal.count": 10_000},
    "ewc": {"ewc.strength": 100.0, "ewc.half": True},
}
"""The settings that the paper's search chose for both orders; EWC has the 1/2 of its equation."""


@dataclass(frozen=True)
class Clvqa(Benchmark):
    """Wh- and yes/no-questions on CLEVR, one after the other, with one output layer for all answers."""

    version: ClassVar[int] = 2
    default_model: ClassVar[str] = "san-tiny"
    measures: ClassVar[Mapping[str, Measure]] = protocol.MEASURES

    scale: Literal["tiny", "small", "large", "paper"] = "small"
    """How much data, and how large the pictures: from tiny (seconds) to paper (the official sizes)."""
    setting: Literal["two", "types", "text"] = "two"
    """two: Wh- and yes/no-questions. types: all five types of CLEVR's questions, each a stage. text: two, with answers
    in words by a model that writes."""
    order: str = ""
    """Tasks with `>` between them, as in yn>wh; empty: wh>yn, or all types. A single task is learned on its own."""
    data: str = ""
    """The folder of the official files; empty: synthetic data at this scale."""
    skip_bad: Annotated[int, Between(0)] = 0
    """How many bad records may be skipped; they are listed. With more than that, the run is refused."""
    features: str = ""
    """The feature maps of all pictures, as `holdfast features` writes them, for a model that sees a grid."""
    seed: int = 0
    """The seed of the run, which `--seed` sets."""

    def __post_init__(self) -> None:
        # Mistakes are reported before any data is read; the default is the same run as its explicit name.
        object.__setattr__(self, "order", ">".join(task_order(self.order, self.setting)))

    def model(self, algorithm: str = "finetune") -> str:
        """The paper's own model at its scale, and a small one otherwise; one that writes, if answers are texts."""
        if self.setting == "text":
            return "prefix-lm" if self.scale == "paper" else "prefix-lm-tiny"
        return "san" if self.scale == "paper" else self.default_model

    def preset(self, model: str, algorithm: str) -> Mapping[str, Any]:
        """The paper's choices, at its scale."""
        return PAPER.get(algorithm, {}) if self.scale == "paper" else {}

    def needs(self, title: str) -> Mapping[str, Need]:
        """The cumulative run, for intransigence; a task learned alone needs none."""
        alone = len(task_order(self.order, self.setting)) == 1
        return {} if alone else {protocol.REFERENCE: Need({"algorithm": "cumulative"}, stage=2)}

    def reads(self) -> tuple[str, ...]:
        """The underlying dataset."""
        return ("clevr",)

    def check(self, wants: Wants) -> None:
        """Refuse a model that sees something else, and files that are not there."""
        if wants.sees == "regions":
            raise UserError("clvqa has pictures but no regions: choose a model that takes pictures, such as san-tiny")
        if self.features and wants.sees == "grid":
            open_features(Path(self.features))
        if self.data:
            check_splits(open_source("clevr", data=self.data, skip_bad=self.skip_bad), "train", "val")

    def setup(self, wants: Wants) -> Setup:
        """Read the questions, and arrange them in stages."""
        train, val, inputs, language = self._read(wants)
        found = self._laid_out(train, val, inputs)
        return found if language is None else words.with_answers(found, language)

    def functions(self, wants: Wants) -> dict[str, list[str]]:
        """The last function of the program of each question in each test set, in the sets' own order."""
        train, val, inputs, _ = self._read(wants)
        tests = [each for each in self._laid_out(train, val, inputs).protocol.evaluations if each.split == "test"]
        asked = val.notes["function"]
        return {each.name: [tasks.FUNCTIONS[n] for n in asked[each.ids - len(train.ids)]] for each in tests}

    @staticmethod
    def summary(scores: Sequence[Score]) -> dict[str, float]:
        """The measures of a run."""
        return protocol.summary(scores)

    @staticmethod
    def relative(scores: Sequence[Score], others: Mapping[str, Sequence[Score]]) -> dict[str, float]:
        """The measures that need the cumulative run."""
        together = others.get(protocol.REFERENCE)
        return {} if together is None else protocol.relative(scores, together)

    def _read(self, wants: Wants) -> tuple[PreparedSplit, PreparedSplit, Inputs, Language | None]:
        if wants.sees == "regions":
            raise UserError("clvqa has pictures but no regions: choose a model that takes pictures, such as san-tiny")
        maps = open_features(Path(self.features)) if self.features and wants.sees == "grid" else None
        source = open_source("clevr", data=self.data, scale=self.scale, skip_bad=self.skip_bad)
        side = wants.side or SIDES[self.scale]
        pieces: Tokenizer | PromptPieces
        language = words.language_of(source, wants, lambda: self._texts(source)) if self.setting == "text" else None
        if language is None:
            pieces, longest = word_pieces(source, lambda: self._texts(source), wants.vocabulary, self.setting)
            known = len(pieces.vocabulary)
            longest = at_most(longest, wants)
        else:
            pieces, known = PromptPieces(language, maps is None, "clvqa"), language.size
            longest = pieces.length(words.MOST)
        train, val = (
            prepare_split(
                source,
                tasks.TASK.name,
                split,
                target=tasks.answer_numbers,
                notes={"function": tasks.function_numbers, "picture": tasks.image_numbers},
                module=tasks.__name__,
                keep=self._asked,
                kept=self.setting,
                pictures=maps is None,
                image_size=side if maps is None else None,
                tokenizer=pieces,
                length=longest,
            )
            for split in ("train", "val")
        )
        grid = None
        if maps is not None:
            train, val = (_with_maps(each, name, maps) for each, name in ((train, "train"), (val, "val")))
            channels, down, across = maps.values.shape[1:]
            grid = channels, down, across
        inputs = Inputs(
            image=(3, side, side) if maps is None else None,
            text=longest,
            vocabulary=known,
            grid=grid,
        )
        return train, val, inputs, language

    def _laid_out(self, train: PreparedSplit, val: PreparedSplit, inputs: Inputs) -> Setup:
        data = Data([train.table, val.table])
        names, first = SETTINGS[self.setting], len(train.table)
        order = task_order(self.order, self.setting)
        rows = balanced({name: tasks.of_task(train.notes["function"], name) for name in names}, train.ids, self.seed)
        parts = dict(zip(("validation", "test"), halves(val.notes["picture"]), strict=True))
        sets = {
            (split, name): EvaluationSet(name, tasks.TASK.name, split, first + part[tasks.of_task(found, name)])  # type: ignore[arg-type]
            for split, part in parts.items()
            for found in [val.notes["function"][part]]
            for name in dict.fromkeys([*order, *names])
        }
        for (split, name), each in sets.items():
            if not len(each.ids) or not len(rows[name]):
                raise UserError(
                    f"the data has no questions of the task {name!r} for {split}: provide the whole of CLEVR"
                )
        training = Training(
            EPOCHS[self.scale],
            batch_size=64,
            optimiser="adam",
            learning_rate=RATES[self.scale],
            patience=PATIENCE[self.scale],
            warmup=WARMUP[self.scale],
        )
        stages = tuple(Stage(name, rows[name], training, (sets["validation", name],)) for name in order)
        answers = {name: data.targets(rows[name]).numpy() for name in order}
        chance = tasks.random_scores(answers, {n: data.targets(sets["test", n].ids).numpy() for n in names})
        return Setup(
            data,
            {tasks.TASK.name: tasks.TASK},
            Stream(stages),
            Protocol(tuple(sets.values())),
            inputs,
            chance=chance,
            problems=(*train.problems, *val.problems),
        )

    def _asked(self, example: Example) -> bool:
        function = example.extra["program"][-1]["function"]
        return any(function in tasks.KINDS[name] for name in SETTINGS[self.setting])

    def _texts(self, source: Source) -> Iterator[str]:
        return (e.text for split in ("train", "val") for e in source.examples(split) if self._asked(e))


def _with_maps(split: PreparedSplit, name: str, maps: Features) -> PreparedSplit:
    """The feature map of each question's picture, by the official name of its file."""
    folder = f"{name}/" if "/" in str(maps.ids[0]) else ""
    files = [f"{folder}CLEVR_{name}_{number:06d}.png" for number in split.notes["picture"]]
    return replace(split, table=replace(split.table, inputs={**split.table.inputs, "grid": maps.column(files)}))
