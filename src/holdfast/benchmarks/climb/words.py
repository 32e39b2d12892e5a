"""The setting `text`: answers in words, written by a model, with one output for all tasks.

| task    | the answer that is learned       | right answers       | score     | answered by              |
|---------|----------------------------------|---------------------|-----------|--------------------------|
| vqav2   | the most frequent of ten people's | those of ten people | VQA score | writing                  |
| nlvr2   | true, false                      | the same            | accuracy  | writing                  |
| snli-ve | yes, no, maybe                   | the same            | accuracy  | writing                  |
| vcr     | the right one of four            | the same            | accuracy  | the likeliest of the four |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from holdfast.benchmarks.climb.paper import KNOWN
from holdfast.benchmarks.climb.stream import PARTS
from holdfast.benchmarks.climb.tasks import Place, official
from holdfast.benchmarks.splits import PreparedSplit
from holdfast.benchmarks.writing import Exchange, answer_columns
from holdfast.data.language import FolderLanguage, Language, WordPieces
from holdfast.data.text import Tokenizer
from holdfast.metrics import normalise_answer
from holdfast.tasks import Generate
from holdfast.types import Example, Task, Wants

LABELS = {"nlvr2": ("false", "true"), "snli-ve": ("yes", "no", "maybe")}
"""The words for the numbers of classes."""
ALL_LABELS = tuple(word for words in LABELS.values() for word in words)
WORDS = 20
"""The maximum number of words of an answer of VCR: the rest is cut, in answers and choices alike."""


def language_of(wants: Wants, pieces: Tokenizer) -> Language:
    """The model's own language, or these word pieces."""
    return FolderLanguage(wants.speaks, wants.template, wants.image_text) if wants.speaks else WordPieces(pieces)


def exchange(name: str, example: Example) -> Exchange:
    """The answer of an example in words.

    >>> exchange("nlvr2", Example("a", 1)).answer
    'true'
    >>> people = ["Red", "red", "blue"] + ["teal."] * 7
    >>> exchange("vqav2", Example("a", extra={"answers": people})).answer
    'teal'
    """
    if name == "vqav2":
        people = tuple(map(str, example.extra["answers"]))
        ((most, _),) = Counter(map(normalise_answer, people)).most_common(1)
        return Exchange(example.text, most or people[0], references=people)
    assert isinstance(example.target, int), "only VQAv2 has other targets"
    if name in LABELS:
        return Exchange(example.text, LABELS[name][example.target])
    choices = tuple(" ".join(choice.split()[:WORDS]) for choice in example.choices)
    return Exchange(example.text, choices[example.target], choices=choices)


def with_answers(
    name: str, splits: list[PreparedSplit], place: Place, language: Language
) -> tuple[list[PreparedSplit], Task]:
    """A task's splits with the columns of answers, and the task."""
    rows = [_exchanges(name, official(name, part), split, place) for part, split in zip(PARTS, splits, strict=True)]
    whole = [each for own in rows for each in own]
    longest = max(map(len, language.answers(sorted({t for each in whole for t in (each.answer, *each.choices)}))))
    columns, targets, references = answer_columns(language, whole, title=name, longest=longest)
    found, start = [], 0
    for split in splits:
        here = slice(start, start + len(split.table))
        start += len(split.table)
        inputs = {**split.table.inputs, **{column: values[here] for column, values in columns.items()}}
        found.append(replace(split, table=replace(split.table, inputs=inputs, targets=targets[here])))
    scorer = "vqa" if name == "vqav2" else "exact"
    chance = KNOWN[name].chance
    return found, Generate(name, "text", language.size, chance, language, references, scorer, longest)


def _exchanges(name: str, official_split: str, split: PreparedSplit, place: Place) -> Iterator[Exchange]:
    """The exchanges of a split's rows."""
    own = set(split.ids.tolist())
    found: Mapping[str, Exchange] = {
        example.id: exchange(name, example)
        for example in place.source(name).examples(official_split)
        if example.id in own
    }
    return (found[number] for number in split.ids.tolist())
