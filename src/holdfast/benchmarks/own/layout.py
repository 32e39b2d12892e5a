"""Which examples are learned when, and which are kept for tests, as functions of names, never of the order of files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.benchmarks.own.listing import Listed
from holdfast.data.sampling import cut
from holdfast.errors import UserError, nearest
from holdfast.types import Ids

STAGES = 5
"""The default number of stages of classes, if there are enough classes."""
MOST_STAGES = 100
"""With more different values than this, each does not make a stage: they may be times, for example."""


@dataclass(frozen=True)
class Layout:
    """The examples that are used, with the stage, the split and the class of each."""

    listing: Listed
    classes: tuple[str, ...]
    stages: tuple[str, ...]
    stage: Ids
    split: NDArray[np.str_]
    target: Ids

    def rows(self, stage: int, split: str) -> Ids:
        """The examples of one stage and split."""
        return np.flatnonzero((self.stage == stage) & (self.split == split))

    def take(self, rows: Ids) -> Layout:
        """The same layout with only some of the examples."""
        columns = (self.stage[rows], self.split[rows], self.target[rows])
        return Layout(self.listing.take(rows), self.classes, self.stages, *columns)


def lay_out(
    listing: Listed,
    *,
    stages: int | None = None,
    order: str = "sorted",
    most: int | None = None,
    test: float = 0.2,
    validation: float = 0.1,
    seed: int = 0,
) -> Layout:
    """Assign examples to stages, and cut the splits that the data lacks.

    >>> pets = Listed([f"{n}.jpg" for n in range(40)], ["cat", "dog", "cow", "hen"] * 10)
    >>> layout = lay_out(pets, stages=2)
    >>> layout.stages, [len(layout.rows(0, split)) for split in ("train", "validation", "test")]
    (('stage-1', 'stage-2'), [14, 2, 4])
    """
    listing = _most_frequent(listing, most)
    by_class = listing.values is None
    values = listing.targets if listing.values is None else listing.values
    ordered = _ordered(values, order, seed, "class" if by_class else "value")
    counts = Counter(values)
    if by_class:
        dealt = _deal_evenly(ordered, stages)
        names = [f"stage-{number}" for number in range(1, len(dealt) + 1)]
    else:
        dealt = _deal_by_size(ordered, counts, stages)
        names = _names(dealt)
    stage_of = {value: number for number, own in enumerate(dealt) for value in own}
    kept = np.array([row for row, value in enumerate(values) if value in stage_of], np.int64)
    listing = listing.take(kept)
    stage = np.array([stage_of[values[row]] for row in kept], np.int64)
    classes = tuple(in_order(set(listing.targets)))
    if len(classes) < 2:
        only = f"only one class, {classes[0]!r}" if classes else "no class"
        raise UserError(f"the data has {only}: there is nothing to tell apart. It needs at least two classes")
    numbers = {name: number for number, name in enumerate(classes)}
    target = np.array([numbers[name] for name in listing.targets], np.int64)
    split = np.array(_splits(listing, stage, test, validation), np.str_)
    layout = Layout(listing, classes, tuple(names), stage, split, target)
    _check(layout)
    return layout


def in_order(names: Iterable[str]) -> list[str]:
    """Names as a person sorts them: numbers by their size, also within names.

    >>> in_order({"10", "9", "-1.5"}), in_order({"class10", "class9"})
    (['-1.5', '9', '10'], ['class9', 'class10'])
    """
    names = list(names)
    try:
        return sorted(names, key=lambda name: (float(name), name))
    except ValueError:
        return sorted(names, key=lambda name: ([_part(part) for part in re.split(r"(\d+)", name)], name))


def _part(part: str) -> tuple[int, str]:
    return (int(part), "") if part.isdecimal() and len(part) < 19 else (-1, part.casefold())


def _ordered(values: Sequence[str], order: str, seed: int, what: str) -> list[str]:
    names = in_order(set(values))
    if order == "sorted":
        return names
    if found := re.fullmatch(r"random(?:-(\d+))?", order):
        random = np.random.default_rng([int(found[1]) if found[1] else seed, 0])
        return [names[place] for place in random.permutation(len(names))]
    listed = [name.strip() for name in order.split(">")]
    for name in listed:
        if name not in names:
            raise UserError(
                f"benchmark.order names {name!r}, which is no {what} of the data: {nearest(name, names[:50])}. "
                "Give sorted, random, random-N, or names with '>' between them"
            )
    if len(set(listed)) < len(listed):
        twice = Counter(listed).most_common(1)[0][0]
        raise UserError(f"benchmark.order names {twice!r} twice: give each {what} once")
    return listed


def _most_frequent(listing: Listed, most: int | None) -> Listed:
    """The examples of the classes with the most training examples; ties go by name."""
    if most is None:
        return listing
    splits = listing.splits or ["train"] * len(listing)
    counts = Counter(target for target, split in zip(listing.targets, splits, strict=True) if split == "train")
    chosen = {name for name, _ in sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:most]}
    return listing.take(np.array([row for row, name in enumerate(listing.targets) if name in chosen], np.int64))


def _deal_evenly(classes: Sequence[str], stages: int | None) -> list[list[str]]:
    """Classes divided evenly among stages; if they do not divide evenly, the first stages have one more."""
    count = max(min(STAGES, len(classes) // 2), min(2, len(classes))) if stages is None else stages
    if count > len(classes):
        raise UserError(f"{len(classes)} classes cannot be divided among {count} stages: set benchmark.stages")
    return [list(map(str, part)) for part in np.array_split(np.array(classes, object), count)]


def _deal_by_size(values: Sequence[str], counts: Mapping[str, int], stages: int | None) -> list[list[str]]:
    """Each value as a stage or, with fewer stages, neighbouring values together, with about equally many examples in
    each.
    """
    if stages is None:
        if len(values) > MOST_STAGES:
            raise UserError(
                f"there are {len(values):,} different values, and each would be a stage: set benchmark.stages, and "
                "neighbours share one"
            )
        return [[value] for value in values]
    if stages > len(values):
        raise UserError(f"{len(values)} different values cannot make {stages} stages: set benchmark.stages")
    total, dealt, reached, start = sum(counts[value] for value in values), list[list[str]](), 0, 0
    for number in range(1, stages + 1):
        stop, last = start + 1, len(values) - (stages - number)  # leave at least one value for each later stage
        reached += counts[values[start]]
        # Add a value if that brings the stage closer to its planned end.
        while stop < last and reached + counts[values[stop]] / 2 <= total * number / stages:
            reached += counts[values[stop]]
            stop += 1
        if number == stages:
            stop = len(values)
        dealt.append(list(values[start:stop]))
        start = stop
    return dealt


def _names(dealt: Sequence[Sequence[str]]) -> list[str]:
    """A name for each stage, from the values that it has. A `/` would make it a detail of another."""
    plain = [own[0] if len(own) == 1 else f"{own[0]} to {own[-1]}" for own in dealt]
    plain = [name.replace("/", "-").strip() or "empty" for name in plain]
    return [name if plain.count(name) == 1 else f"{name} ({number})" for number, name in enumerate(plain, 1)]


def _splits(listing: Listed, stage: Ids, test: float, validation: float) -> list[str]:
    if listing.splits is None:
        if test + validation >= 1:
            raise UserError(
                f"benchmark.test={test:g} and benchmark.validation={validation:g} leave nothing to train on: their sum "
                "must be below 1"
            )
        splits = _cut(listing, stage, ["train"] * len(listing), "test", test)
        return _cut(listing, stage, splits, "validation", validation / (1 - test))
    splits, given = list(listing.splits), set(listing.splits)
    if "train" not in given:
        raise UserError(f"the data has {' and '.join(sorted(given))} examples, and none to train on")
    if "test" not in given and "validation" in given:  # like ImageNet's val, which is the split that everyone reports
        splits, given = ["test" if split == "validation" else split for split in splits], {"train", "test"}
    if "test" not in given:
        return _splits(Listed(listing.ids, listing.targets, groups=listing.groups), stage, test, validation)
    return splits if "validation" in given else _cut(listing, stage, splits, "validation", validation)


def _cut(listing: Listed, stage: Ids, splits: list[str], name: str, share: float) -> list[str]:
    """The splits after moving a share of the training groups to another split, the same share of each class and stage.
    A group counts as the rarest kind of its examples.
    """
    groups = listing.ids if listing.groups is None else listing.groups
    kinds = list(zip(stage.tolist(), listing.targets, strict=True))
    counts = Counter(kinds)
    rarest: dict[str, tuple[int, int, str]] = {}
    for row, group in enumerate(groups):
        if splits[row] == "train":
            kind = counts[kinds[row]], *kinds[row]
            rarest[group] = min(rarest.get(group, kind), kind)
    names = sorted(rarest)
    chosen = {names[place] for place in cut(names, [rarest[group] for group in names], share=share)[1]}
    return [name if old == "train" and group in chosen else old for old, group in zip(splits, groups, strict=True)]


def _check(layout: Layout) -> None:
    """Raise a UserError if a class cannot be learned, or if a stage cannot be trained on or tested."""
    for number, name in enumerate(layout.stages):
        for split in ("train", "test"):
            if not len(layout.rows(number, split)):
                rows = np.flatnonzero(layout.stage == number)
                groups = layout.listing.groups or layout.listing.ids
                apart = len({groups[row] for row in rows.tolist()})
                same = f" in {apart} groups, which are not split" if apart < len(rows) else ""
                what = "examples to train on" if split == "train" else "test examples"
                raise UserError(
                    f"stage {name!r} has no {what} ({len(rows)} examples{same}; a class needs three for one to be "
                    "cut for tests): give more examples of its classes, fewer stages, or benchmark.most=N for the N "
                    "most frequent classes"
                )
    learned = set(layout.target[layout.split == "train"].tolist())
    if unlearned := [name for number, name in enumerate(layout.classes) if number not in learned]:
        more = f" and {len(unlearned) - 1} others have" if len(unlearned) > 1 else " has"
        raise UserError(
            f"class {unlearned[0]!r}{more} no examples to train on, only in other splits: remove these, add training "
            "examples, or set benchmark.most=N to keep the N most frequent classes"
        )
