"""What is to be built: which things belong to which set, and which picture shows which of them in which position.

The paper does not say in what proportions things are split, and names no picture. This implementation splits whole
source pictures, so that no thing and no picture is in two of train, val, test and few-shot; the proportions hold for
each concept. Things with the attribute reserved for `sub` are in none of these sets, whatever picture they are in.
Few-shot tests take unseen concepts from pictures that no other set uses.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from holdfast.benchmarks.cfst.combinations import (
    COBJ_UNSEEN,
    Combination,
    Combinations,
    drawn,
    listed,
    most_frequent,
)
from holdfast.benchmarks.cfst.compose import QUALITY, SIDE, Composite, Crop, Picture, Piece, around
from holdfast.benchmarks.cfst.sources import SOURCES, SourceThing, read_things
from holdfast.datasets.base import Reading
from holdfast.errors import UserError

SMALLEST = 30
CONTINUAL = ("train", "val", "test")
SHARES = {"train": 0.65, "val": 0.05, "test": 0.10, "fewshot": 0.20}
_VERSION = 1
"""Change this number to get different pictures from the same plan."""


@dataclass(frozen=True)
class ArchiveLayout:
    """The location of things in a published archive, for each split; the field of a record that has the combination."""

    root: str
    field: str
    folders: Mapping[str, str]
    files: Mapping[str, str]


_FEWSHOT = {"sys": "sys", "pro": "pro", "sub": "sub", "non": "non_novel", "noc": "non_comp"}
_FOLDERS = {split: f"continual/{split}" for split in CONTINUAL}
_CGQA = ArchiveLayout(
    "CGQA/GQA_100",
    "comb",
    _FOLDERS | {mode: f"fewshot/{name}" for mode, name in _FEWSHOT.items()},
    {split: f"{folder}/{split}.json" for split, folder in _FOLDERS.items()}
    | {mode: f"fewshot/{name}/{name}_fewshot.json" for mode, name in _FEWSHOT.items()},
)
LAYOUTS = {
    "cgqa": _CGQA,
    "cobj": ArchiveLayout(
        "COBJ/annotations",
        "label",
        _FOLDERS | {mode: f"fewshot/{mode}" for mode in _FEWSHOT},
        {split: f"O365_continual_{split}_crop.json" for split in CONTINUAL}
        | {mode: f"O365_{mode}_fewshot_crop.json" for mode in _FEWSHOT},
    ),
    "cpin": replace(_CGQA, root=""),  # like CGQA, but in the folder itself, where CGQA's reader finds it too
}
GRIDS = {"cgqa": 2, "cpin": 3}


@dataclass(frozen=True)
class SplitPlan:
    """The pictures of one split, by combination, and their records; and why some are missing."""

    split: str
    folder: str
    file: str
    wanted: int
    listed: tuple[Combination, ...]
    pictures: Mapping[Combination, Sequence[Picture]]
    records: Sequence[Mapping[str, Any]]
    reasons: Mapping[Combination, str]


@dataclass(frozen=True)
class BuildPlan:
    """Everything that is to be built. Two plans with the same fingerprint give the same files, byte for byte."""

    root: str
    combinations: Combinations
    parts: tuple[SplitPlan, ...]
    fingerprint: str


def make_plan(
    name: str, source: Path, per_combination: tuple[int, int, int], seed: int, smallest: int, skip_bad: int
) -> BuildPlan:
    """Read the official files and decide everything."""
    pictures = read_things(name, source, Reading(skip=skip_bad))
    counts = dict(zip((*CONTINUAL, "fewshot"), (*per_combination, per_combination[2]), strict=True))
    if name == "cobj":
        combinations, parts = _crops(pictures, smallest, counts, seed)
    else:
        known = {*listed("cgqa").concepts, *listed("cgqa").unseen} if name == "cgqa" else None
        things = [
            thing
            for each in pictures
            for thing in each
            if min(thing.box[2:]) >= smallest and (known is None or thing.concept in known)
        ]
        combinations = listed("cgqa") if name == "cgqa" else _drawn(things, seed)
        parts = _composites(combinations, split_things(things, combinations, seed), counts, seed)
    if not any(part.pictures for part in parts if part.split == "train"):
        raise UserError(
            f"{source} has too few things of {smallest} pixels or more: no training combination of {name} can be built"
            f" from this {SOURCES[name]}"
        )
    combinations = _present(combinations, parts)
    content = [_VERSION, SIDE, QUALITY, name, [[part.split, part.wanted, part.records] for part in parts]]
    fingerprint = hashlib.blake2b(json.dumps(content).encode(), digest_size=16).hexdigest()
    return BuildPlan(LAYOUTS[name].root, combinations, parts, fingerprint)


def _drawn(things: Sequence[SourceThing], seed: int) -> Combinations:
    """CPIN's combinations of concepts that each set has: if a set lacks some, draw again without them."""
    counts = _in_pictures(things)
    while True:
        combinations = drawn(counts)
        sets = split_things(things, combinations, seed)
        lacking = {concept for concept in combinations.concepts if not all(sets[name].get(concept) for name in SHARES)}
        if not lacking:
            return combinations
        counts = {concept: count for concept, count in counts.items() if concept not in lacking}


def _in_pictures(things: Iterable[SourceThing]) -> dict[str, int]:
    """The number of pictures that show each concept, for concepts shown in enough pictures to have one in each set."""
    counts = Counter(concept for _, concept in {(thing.picture, thing.concept) for thing in things})
    return {concept: count for concept, count in counts.items() if count >= len(SHARES)}


def _present(combinations: Combinations, parts: Iterable[SplitPlan]) -> Combinations:
    """The combinations of which there are pictures; `sub` shares the list of `sys`, so that of either is kept."""
    there = {part.split: set(part.pictures) for part in parts}
    there["sys"] |= there.get("sub", set())
    tasks = (tuple(each for each in task if each in there["train"]) for task in combinations.tasks)
    sys, pro, noc = (tuple(each for each in combinations.of(m) if each in there[m]) for m in ("sys", "pro", "noc"))
    return replace(combinations, tasks=tuple(filter(None, tasks)), sys=sys, pro=pro, noc=noc)


# --- CGQA and CPIN: things on a grid ---


def split_things(
    things: Iterable[SourceThing], combinations: Combinations, seed: int
) -> dict[str, dict[str, list[SourceThing]]]:
    """The things of each concept in each set: train, val, test, fewshot, and attr, which is for `sub`."""
    concepts, unseen = set(combinations.concepts), set(combinations.unseen)
    known: list[SourceThing] = []
    sets: dict[str, dict[str, list[SourceThing]]] = {name: defaultdict(list) for name in (*SHARES, "attr")}
    novel: list[SourceThing] = []
    for thing in things:
        if thing.concept in unseen:
            novel.append(thing)
        elif thing.concept in concepts:
            kept = combinations.attributes.get(thing.concept)
            if kept is not None and kept in thing.attributes:
                sets["attr"][thing.concept].append(thing)
            else:
                known.append(thing)
    shown: dict[str, Counter[str]] = defaultdict(Counter)
    for thing in known:
        shown[thing.picture][thing.concept] += 1
    owners = spread(shown, seed)
    for thing in known:
        sets[owners[thing.picture]][thing.concept].append(thing)
    for thing in novel:
        if owners.get(thing.picture, "fewshot") == "fewshot":
            sets["fewshot"][thing.concept].append(thing)
    return sets


def spread(shown: Mapping[str, Mapping[str, int]], seed: int) -> dict[str, str]:
    """Assign each picture to a set, so that each concept is split proportionally; `shown` counts a picture's concepts.

    A picture goes to the set that has the smallest part of its share of the picture's rarest concept, and pictures with
    rare concepts go first: even four pictures of a concept are then distributed one to each set.

    >>> sorted(spread({"1": {"hat": 1}, "2": {"hat": 2}, "3": {"hat": 1}, "4": {"hat": 1}}, seed=0).values())
    ['fewshot', 'test', 'train', 'val']
    """
    totals: Counter[str] = Counter()
    for concepts in shown.values():
        totals.update(concepts)
    have = {name: Counter[str]() for name in SHARES}
    order = sorted(shown)
    Random(f"{seed}/sets").shuffle(order)
    rarest = {picture: sorted(shown[picture], key=lambda concept: (totals[concept], concept)) for picture in order}
    owners: dict[str, str] = {}
    for picture in sorted(order, key=lambda each: totals[rarest[each][0]]):
        owner = min(SHARES, key=lambda name: [have[name][concept] / SHARES[name] for concept in rarest[picture]])
        owners[picture] = owner
        have[owner].update(shown[picture])
    return owners


def _composites(
    combinations: Combinations,
    sets: Mapping[str, Mapping[str, list[SourceThing]]],
    counts: Mapping[str, int],
    seed: int,
) -> tuple[SplitPlan, ...]:
    layout, grid = LAYOUTS[combinations.name], GRIDS[combinations.name]
    parts: list[SplitPlan] = []
    trained: set[str] = set()
    for split in (*CONTINUAL, *combinations.modes):
        pool = split if split in CONTINUAL else "attr" if split == "sub" else "fewshot"
        wanted = counts.get(split, counts["fewshot"])
        asked = combinations.trained if split in CONTINUAL else combinations.of(split)
        pictures: dict[Combination, list[Picture]] = {}
        records: list[dict[str, Any]] = []
        reasons: dict[Combination, str] = {}
        for combination in asked:
            if lacking := _lacking(combination, split, pool, sets, trained):
                reasons[combination] = "; ".join(lacking)
                continue
            pools = [sets[pool][concept] for concept in combination]
            random = Random(f"{seed}/{split}/{'/'.join(combination)}")
            chosen = _different(pools, wanted, random)
            if len(chosen) < wanted:
                numbers = zip(map(len, pools), combination, strict=True)
                reasons[combination] = f"{pool} has only " + ", ".join(f"{n} x {concept}" for n, concept in numbers)
            pictures[combination] = []
            for things in chosen:
                name = f"{layout.folders[split]}/{len(records)}"
                positions = tuple(random.sample(range(1, grid * grid + 1), len(things)))
                pieces = tuple(Piece(thing.file, thing.box) for thing in things)
                pictures[combination].append(Composite(name, pieces, positions, grid))
                objects = [_object(thing) for thing in things]
                records.append({"newImageName": name, "comb": combination, "objects": objects, "position": positions})
        if split == "train":
            trained = {concept for combination in pictures for concept in combination}
        place = layout.folders[split], layout.files[split]
        parts.append(SplitPlan(split, *place, wanted, asked, pictures, records, reasons))
    return tuple(parts)


def _lacking(
    combination: Combination,
    split: str,
    pool: str,
    sets: Mapping[str, Mapping[str, list[SourceThing]]],
    trained: set[str],
) -> list[str]:
    """The reasons why a split can have no picture of a combination; empty if it can.

    A class is either trained, validated and tested, or left out of all three. Combinations in compositional tests
    consist of concepts that were learned in other combinations.
    """
    needed = (*CONTINUAL, "fewshot") if split == "non" else CONTINUAL if split in CONTINUAL else (pool,)
    found = [f"no {each} in {name}" for name in needed for each in combination if not sets[name].get(each)]
    if split in ("sys", "pro", "sub"):
        found += [f"{each} is in no training combination" for each in combination if each not in trained]
    return found


def _different(pools: Sequence[Sequence[SourceThing]], count: int, random: Random) -> list[tuple[SourceThing, ...]]:
    """`count` different choices of one thing from each pool, or all choices if there are fewer.

    >>> sorted(_different(["ab", "c"], 5, Random(0))), len(_different([range(5000)] * 9, 100, Random(0)))
    ([('a', 'c'), ('b', 'c')], 100)
    """
    chosen: dict[tuple[int, ...], None] = {}
    while len(chosen) < min(count, math.prod(map(len, pools))):
        chosen.setdefault(tuple(random.randrange(len(pool)) for pool in pools))
    return [tuple(pool[index] for pool, index in zip(pools, each, strict=True)) for each in chosen]


def _object(thing: SourceThing) -> dict[str, Any]:
    return {
        "imageName": thing.picture,
        "objName": thing.concept,
        "attributes": thing.attributes,
        "boundingBox": thing.box,
    }


# --- COBJ: parts of pictures ---


def _crops(
    pictures: Iterable[Sequence[SourceThing]], smallest: int, counts: Mapping[str, int], seed: int
) -> tuple[Combinations, tuple[SplitPlan, ...]]:
    concepts = set(listed("cobj").concepts)
    seen: dict[Combination, list[list[SourceThing]]] = defaultdict(list)
    others: list[list[SourceThing]] = []
    for everything in pictures:
        things = [thing for thing in everything if min(thing.box[2:]) >= smallest]
        if label := _label(things, concepts):
            seen[label].append([thing for thing in things if thing.concept in concepts])
        elif not _label(everything, concepts):  # not even a small one
            others.append(things)
    frequent = Counter(concept for things in others for concept in {thing.concept for thing in things})
    pool = sorted(frequent, key=lambda concept: (-frequent[concept], concept))[:COBJ_UNSEEN]
    unseen: dict[Combination, list[list[SourceThing]]] = defaultdict(list)
    for things in others:
        unseen[_label(things, pool)].append([thing for thing in things if thing.concept in pool])
    enough = [each for each in listed("cobj").trained if len(seen.get(each, ())) >= len(counts)]
    trained = {concept for each in enough for concept in each}  # tested concepts were learned in other combinations
    combinations = most_frequent(
        Counter({label: len(found) for label, found in seen.items() if trained.issuperset(label)}),
        Counter({label: len(found) for label, found in unseen.items()}),
        pool,
    )
    return combinations, _cut_parts(combinations, {**seen, **unseen}, counts, seed)


def _label(things: Iterable[SourceThing], concepts: Iterable[str]) -> Combination:
    allowed = set(concepts)
    return tuple(sorted({thing.concept for thing in things if thing.concept in allowed}))


def _cut_parts(
    combinations: Combinations,
    shown: Mapping[Combination, Sequence[Sequence[SourceThing]]],
    counts: Mapping[str, int],
    seed: int,
) -> tuple[SplitPlan, ...]:
    layout = LAYOUTS["cobj"]
    shares = {combination: _shares(len(shown.get(combination, ())), counts) for combination in combinations.trained}
    parts = []
    for split in (*CONTINUAL, *combinations.modes):
        wanted = counts.get(split, counts["fewshot"])
        asked = combinations.trained if split in CONTINUAL else combinations.of(split)
        pictures: dict[Combination, list[Picture]] = {}
        records: list[dict[str, Any]] = []
        reasons: dict[Combination, str] = {}
        for combination in asked:
            found = sorted(shown.get(combination, ()), key=lambda things: things[0].picture)
            Random(f"{seed}/{'/'.join(combination)}").shuffle(found)
            first, count = (0, min(wanted, len(found)))
            if combination in shares:
                first, count = shares[combination]["fewshot" if split == "non" else split]
            if count < wanted:
                reasons[combination] = f"the source has {len(found)} pictures of it"
            if not count:
                continue
            pictures[combination] = []
            for things in found[first : first + count]:
                box = around([thing.box for thing in things])
                name = things[0].picture
                pictures[combination].append(Crop(f"{layout.folders[split]}/{name}", Piece(things[0].file, box)))
                boxes = [[thing.concept, *thing.box] for thing in things]
                records.append(
                    {"imageId": name, "label": combination, "imageName": name, "crop": box, "boundingBox": boxes}
                )
        place = layout.folders[split], layout.files[split]
        parts.append(SplitPlan(split, *place, wanted, asked, pictures, records, reasons))
    return tuple(parts)


def _shares(there: int, counts: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """For each set, the start and number of its pictures of a combination: empty if not every set gets one.

    >>> _shares(1250, {"train": 1000, "val": 50, "test": 100, "fewshot": 100})
    {'val': (0, 50), 'test': (50, 100), 'fewshot': (150, 100), 'train': (250, 1000)}
    >>> _shares(25, {"train": 1000, "val": 50, "test": 100, "fewshot": 100})
    {'val': (0, 1), 'test': (1, 2), 'fewshot': (3, 2), 'train': (5, 20)}
    """
    part = min(1.0, there / sum(counts.values()))
    found, first = {}, 0
    for name in ("val", "test", "fewshot"):
        number = max(1, round(counts[name] * part)) if there >= len(counts) else 0
        found[name] = first, number
        first += number
    found["train"] = first, min(counts["train"], there - first) if first else 0
    return found
