"""The tasks: what each one is, where its examples come from, and how they become a table.

| task    | train         | validation           | test  | question                           | score     |
|---------|---------------|----------------------|-------|------------------------------------|-----------|
| vqav2   | train, cut    | a tenth of its train | val   | one of the frequent answers        | VQA score |
| nlvr2   | train         | dev                  | test1 | is it true of two pictures?        | accuracy  |
| snli-ve | train         | dev                  | test  | does it follow from the picture?   | accuracy  |
| vcr     | train, cut    | a tenth of its train | val   | which of four answers              | accuracy  |
| vcr-qar | as of vcr     | as of vcr            | val   | which of four reasons for the answer | accuracy |

The official test splits of VQAv2 and VCR have no labels. The paper reports on their val, so that is the test split,
and validation data is split off train by whole pictures (for VCR, by whole films).
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from holdfast.benchmarks.climb import paper
from holdfast.benchmarks.climb.paper import KNOWN, TASKS
from holdfast.benchmarks.source import Source, check_splits, open_source, place_of, within
from holdfast.benchmarks.splits import PreparedSplit, prepare_split
from holdfast.benchmarks.vocabulary import PIECES, word_pieces
from holdfast.checksums import is_intact, seal
from holdfast.data import text
from holdfast.data.images import LINE_WIDTH, Drawing
from holdfast.data.language import PromptPieces
from holdfast.data.prepared import class_numbers
from holdfast.data.sampling import answer_vocabulary, cut, soft_answers
from holdfast.data.text import SEPARATOR, neutral_text
from holdfast.data.text import train as train_pieces
from holdfast.datasets.base import Reading
from holdfast.metrics import normalise_answer
from holdfast.tasks import Choose, Classify, SoftLabel
from holdfast.types import Array, Example, Task, Wants

VERSION = 3
T = TypeVar("T")
Part = Literal["train", "validation", "test"]

ANNOTATORS = 10
LINE_SHARE = 50
"""The maximum width of the line around a box, as a part of the picture's side: a still of VCR gets the paper's seven
pixels, but on a synthetic one, 72 pixels high, these would hide the content of the box."""
VALIDATION_SHARE, VALIDATION_MOST = 0.1, 10_000
"""The part of a train split that is used for validation: a tenth, up to this number of examples."""


@dataclass(frozen=True)
class Place:
    """The location of the tasks' files: official ones in a folder, or synthetic ones at a scale.

    It caches what it finds there, so it must not outlive a single reading.
    """

    data: str = ""
    scale: str = "tiny"
    skip_bad: int = 0
    _found: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def source(self, name: str) -> Source:
        """The files of a task."""
        return self.once(("source", name), lambda: _source(name, self))

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """The result of `make`, computed once for each key."""
        if key not in self._found:
            self._found[key] = make()
        found: T = self._found[key]
        return found


@dataclass(frozen=True)
class Listing:
    """The examples of a part by id, with the right answer and the picture or film that each is about."""

    ids: tuple[str, ...]
    labels: tuple[str, ...]
    groups: tuple[str, ...]
    pictures: tuple[Sequence[str], ...]
    """The names of the pictures in files of region features."""


@dataclass(frozen=True)
class NamedBoxes:
    """A function that draws the boxes named by VCR's question or answers, known by its code, not its address."""

    def __call__(self, example: Example) -> Drawing:
        """The boxes that are drawn into the picture of an example."""
        extra = example.extra
        named = (token for tokens in (extra["question"], *extra["answer_choices"]) for token in tokens)
        numbers = {number for token in named if not isinstance(token, str) for number in token}
        line = max(1, min(LINE_WIDTH, min(extra["width"], extra["height"]) // LINE_SHARE))
        return Drawing.of(extra["boxes"], extra["objects"], numbers, line)


def task_of(name: str, place: Place) -> Task:
    """The task of this name, with its own head."""
    facts = KNOWN[name]
    if name == "vqav2":
        count = len(answers(place))
        prior = 0.0 if place.scale == "paper" else math.log(count)  # the paper has none, but a hundred times the steps
        return SoftLabel(name, head=name, outputs=count, chance=facts.chance, prior=prior)
    if facts.model == "vcr":
        return Choose(name, head=name, outputs=facts.outputs, chance=facts.chance)
    return Classify(name, head=name, outputs=facts.outputs, chance=facts.chance, images=facts.images)


def read(
    name: str,
    part: Part,
    place: Place,
    *,
    vocabulary: Path,
    length: int = paper.TEXT,
    fit: dict[str, Any],
    keep: Collection[str] | None = None,
    kept: str = "",
    prompts: PromptPieces | None = None,
) -> PreparedSplit:
    """A part of a task as a table, or only those examples whose ids are in `keep` (`kept` describes them in a word).

    `fit` says how images are fitted into it: `image_size`, or `shorter` and `longest` and optionally `decode`; with
    `pictures` set to False, there are none. With `prompts`, texts are prompts, and answers are not part of it.
    """
    source, split = place.source(name), official(name, part)
    own = frozenset(listing(name, part, place).ids if keep is None else keep)
    if prompts is not None:
        fit = fit | ({"drawing": NamedBoxes()} if KNOWN[name].model == "vcr" else {})
        return prepare_split(
            _changed(source, lambda example: replace(example, choices=())),
            name,
            split,
            target=no_numbers,
            notes={},
            module=__name__,
            keep=lambda example: example.id in own,
            kept=f"{part}/{kept}/prompts",
            tokenizer=prompts,
            length=prompts.length(length),
            **{key: value for key, value in fit.items() if key != "decode" or KNOWN[name].model != "vcr"},
        )
    words, longest = word_pieces(source, lambda: _texts(source, split), vocabulary, f"{split}, {name}")
    target: Callable[[Sequence[Example]], Array] = class_numbers
    if name == "vqav2":
        found = answers(place)
        target, kept = soft_targets(found), f"{kept}/{_digest(found)}"
    asks_vcr = KNOWN[name].model == "vcr"
    if asks_vcr:
        fit = {key: value for key, value in fit.items() if key != "decode"} | {"drawing": NamedBoxes()}
    return prepare_split(
        source,
        name,
        split,
        target=target,
        notes={},
        module=__name__,
        keep=lambda example: example.id in own,
        kept=f"{part}/{kept}",
        tokenizer=words,
        length=min(longest, length),
        joined=asks_vcr,  # in CLiMB's code question and answer are one text, with [SEP] between them
        **fit,
    )


def no_numbers(examples: Sequence[Example]) -> Array:
    """A zero for each example: its answers are texts."""
    return np.zeros(len(examples), np.int64)


def check_files(name: str, place: Place) -> None:
    """Raise a UserError if official files of a task, or one of its splits, are missing."""
    if place.data:
        facts = KNOWN[name]
        check_splits(place.source(name), *dict.fromkeys(("train", facts.validation or "train", facts.test)))


def official(name: str, part: Part) -> str:
    """The official split that a part is, or is split off.

    >>> official("nlvr2", "validation"), official("vcr", "validation"), official("vcr", "test")
    ('dev', 'train', 'val')
    """
    facts = KNOWN[name]
    return {"train": "train", "validation": facts.validation or "train", "test": facts.test}[part]


def listing(name: str, part: Part, place: Place) -> Listing:
    """The examples of a part."""
    found = _listing(name, official(name, part), place)
    if KNOWN[name].validation or part == "test":
        return found
    rest, held = cut(found.ids, share=VALIDATION_SHARE, count=VALIDATION_MOST, groups=found.groups)
    rows = held if part == "validation" else rest

    def of(column: Sequence[T]) -> tuple[T, ...]:
        return tuple(column[row] for row in rows)

    return Listing(of(found.ids), of(found.labels), of(found.groups), of(found.pictures))


def answers(place: Place) -> tuple[str, ...]:
    """The answers of VQAv2 that can be chosen: those that occur often enough in train and val together."""

    def find() -> tuple[str, ...]:
        given = (label for split in ("train", "val") for label in _listing("vqav2", split, place).labels)
        return answer_vocabulary(given, normalise_answer, paper.LEAST_ANSWERS)

    return place.once("answers", find)


def soft_targets(vocabulary: Sequence[str]) -> Callable[[Sequence[Example]], Array]:
    """A function that turns ten people's answers to each question into targets: the answers' numbers, and their scores.

    >>> people = {"answers": ("red",) * 3 + ("Teal",) * 6 + ("blue",)}
    >>> soft_targets(["blue", "red"])([Example("q", extra=people)])[0, 0, :3].tolist()
    [1.0, 0.0, -1.0]
    """
    places = {answer: number for number, answer in enumerate(vocabulary)}

    def targets(examples: Sequence[Example]) -> Array:
        scores = soft_answers([example.extra["answers"] for example in examples], places, normalise_answer)
        most = min(ANNOTATORS, scores.shape[1])
        best = np.argsort(-scores, axis=1, kind="stable")[:, :most]
        found = np.full((len(examples), 2, ANNOTATORS), -1, np.float32)
        found[:, 1] = 0
        found[:, 1, :most] = np.take_along_axis(scores, best, 1)
        found[:, 0, :most] = np.where(found[:, 1, :most] > 0, best, -1)
        return found

    return targets


def picture_names(name: str, example: Example) -> tuple[str, ...]:
    """The names of the pictures of an example in files of region features.

    >>> picture_names("nlvr2", Example("dev-12-3-0")), picture_names("vqav2", Example("42001", extra={"image_id": 42}))
    (('dev-12-3-img0', 'dev-12-3-img1'), ('42',))
    """
    if name == "nlvr2":
        pair, _, _ = example.id.rpartition("-")
        return f"{pair}-img0", f"{pair}-img1"
    key = {"vqav2": "image_id", "snli-ve": "Flickr30K_ID", "vcr": "img_id"}[KNOWN[name].model]
    return (str(example.extra.get(key, example.id)),)


def vocabulary_file(wants: Wants, place: Place, answers: Sequence[str] = ()) -> Path:
    """The model's word pieces, or else pieces of the training text of all four tasks, whichever of them are learned.

    With `answers`, also of these, and of the answers of VQAv2.
    """
    if wants.vocabulary is not None:
        return wants.vocabulary
    sources = [place.source(name) for name in TASKS]
    modules = [__name__, text.__name__]
    what = "word pieces and answers" if answers else "word pieces"
    path = place_of("tables", what, sources, PIECES, modules=modules).with_suffix(".txt")
    if not is_intact(path):
        texts: Iterator[str] = (text for source in sources for text in _texts(source, "train"))
        if answers:
            texts = chain(texts, answers, _listing("vqav2", "train", place).labels)
        _publish(path, train_pieces(texts, PIECES).save)
    return path


def _texts(source: Source, split: str) -> Iterator[str]:
    """Each text at the length that a model reads: a question precedes each of its answers."""
    for example in source.examples(split):
        if example.choices:
            before = example.text.replace(SEPARATOR, ".")  # a point represents each separator: it is one piece as well
            yield from (f"{before} . {choice}" for choice in example.choices)
        else:
            yield example.text


def _listing(name: str, split: str, place: Place) -> Listing:
    """All examples of an official split; reading them takes a while, so the list is cached."""
    source = place.source(name)

    def find() -> Listing:
        what = f"list of {split}" if name in TASKS else f"list of {split}, {name}"  # its labels are others
        path = place_of("tables", what, [source], modules=[__name__]).with_suffix(".json")
        if not is_intact(path):
            rows = [(e.id, str(e.target), _group(e), picture_names(name, e)) for e in source.examples(split)]
            _publish(path, lambda file: file.write_text(json.dumps(list(zip(*rows, strict=True))), encoding="utf-8"))
        return Listing(*map(tuple, json.loads(path.read_text(encoding="utf-8"))))

    return place.once(("listing", name, split), find)


def _publish(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file whole or not at all, even if another process writes the same one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    write(partial)
    partial.rename(path)
    seal(path)


def _digest(words: Sequence[str]) -> str:
    return hashlib.blake2b("\n".join(words).encode(), digest_size=16).hexdigest()


def _group(example: Example) -> str:
    """The unit that must not be in two parts: a film, a picture."""
    for key in ("movie", "image_id", "img_id"):
        if key in example.extra:
            return str(example.extra[key])
    (first, *_) = example.images
    return first.name if isinstance(first, Path) else example.id


def _source(name: str, place: Place) -> Source:
    dataset = KNOWN[name].dataset
    source = open_source(
        dataset, data=within(dataset, place.data) or place.data, scale=place.scale, skip_bad=place.skip_bad
    )
    change = {"vcr": _with_names, "vcr-qar": _with_reasons}.get(name)
    if change is None:
        return source
    return _changed(source, change)


def _changed(source: Source, change: Callable[[Example], Example]) -> Source:
    """A source whose examples are changed."""
    official_read = source.dataset.read

    def changed(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
        return map(change, official_read(folder, split, reading))

    return replace(source, dataset=replace(source.dataset, read=changed))


def _with_names(example: Example) -> Example:
    """A question of VCR in which persons have the neutral names for their numbers."""
    extra = example.extra
    choices = tuple(neutral_text(tokens, extra["objects"]) for tokens in extra["answer_choices"])
    return replace(example, text=neutral_text(extra["question"], extra["objects"]), choices=choices)


def _with_reasons(example: Example) -> Example:
    """A question of VCR with its right answer, and the four reasons to choose from; only their boxes are drawn."""
    extra = example.extra
    answer = extra["answer_choices"][extra["answer_label"]]
    text = f" {SEPARATOR} ".join(neutral_text(tokens, extra["objects"]) for tokens in (extra["question"], answer))
    choices = tuple(neutral_text(tokens, extra["objects"]) for tokens in extra["rationale_choices"])
    shown = {**extra, "question": (*extra["question"], *answer), "answer_choices": extra["rationale_choices"]}
    return replace(example, target=extra["rationale_label"], text=text, choices=choices, extra=shown)
