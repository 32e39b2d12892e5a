"""COCO-shift and Flickr-shift from the official files of COCO and of Flickr30k Entities, or from synthetic ones.

COCO-shift: the test images are those of val2017; one in 24 of train2017 is for validation, and the rest for training.
Every image with a caption that mentions one of the 24 held-out pairs is removed from all three; so is every image in
the lists of Nikolaus et al., if they are beside official files. The phrases with such a pair in the removed test images
form the compositional test set; synthetic data is small, so there the phrases of all removed images are used.

Flickr-shift: the official splits; the annotated phrases whose last noun is one of the most frequent in the training
images.

Flickr8k-shift: the official splits of Flickr8k's photographs, and otherwise as COCO-shift. Its test set is small, so
the phrases of all images with such a pair are in the compositional test set.

The result is kept in the cache, under a hash of the data, the tagger, the tables and the code.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from holdfast import registry
from holdfast.benchmarks.source import Source, open_source, place_of
from holdfast.benchmarks.viscoll import compositions, synonyms
from holdfast.benchmarks.viscoll.extract import CaptionWords, Found, Grammar, extract
from holdfast.benchmarks.viscoll.phrases import SPLITS, MaskedSpan, save_phrases
from holdfast.benchmarks.viscoll.tagger import open_tagger, split_words
from holdfast.checksums import is_intact, seal
from holdfast.datasets import coco, flickr8k, flickr30k_entities
from holdfast.datasets.base import Dataset, Reading
from holdfast.errors import UserError
from holdfast.processes import working
from holdfast.progress import progress_bar
from holdfast.world.whole import MARK

VERSION = 2
SOURCES = {"coco": "coco", "flickr": "flickr30k_entities", "flickr8k": "flickr8k"}
"""The dataset from which each one is built."""
ANNOTATIONS = {
    "coco": coco.ANNOTATIONS,
    "flickr": flickr30k_entities.ANNOTATIONS,
    "flickr8k": flickr8k.ANNOTATIONS,
}
"""The same without its pictures: phrases come from captions, and regions of photographs from feature files."""
OFFICIAL = {
    "coco": {"train": "train2017", "test": "val2017"},
    "flickr": {"train": "train", "validation": "val", "test": "test"},
    "flickr8k": {"train": "train", "validation": "dev", "test": "test"},
}
"""The source split of each of our splits; COCO-shift takes its validation images from its training images."""
Name: TypeAlias = Literal["coco", "flickr", "flickr8k"]
NO_LISTS = (
    "the lists of Nikolaus et al. are not beside the data, so images are held out by their captions alone, which finds "
    "96 % of the published ones: put dataset_splits_1.json to dataset_splits_4.json into a folder nikolaus beside them"
)
TASKS = 1000
"""How many of the most frequent nouns are tasks of Flickr-shift."""
VALIDATION, VALIDATION_SEED = 0.042, 0
"""The share of the training images that is used for validation: 5,000 of 118,287."""
BATCH = 500
"""The number of captions that a process is given at a time."""
MANY = 40_000
"""The minimum number of captions that justifies starting further processes."""


@dataclass(frozen=True)
class Statistics:
    """The statistics of a dataset in VisCOLL's Table 1, under the names of `papers/viscoll/table_01.json`."""

    training_instances: int
    validation_instances: int
    regular_test_instances: int
    compositional_test_instances: int
    mean_instances_per_task: float
    median_instances_per_task: float
    mean_masked_length: float
    tasks: int


@dataclass(frozen=True)
class Built:
    """The outcome of a build: the file of the phrases, its source and tagger, and its statistics."""

    file: Path
    dataset: str
    source: str
    world: bool
    tagger: str
    statistics: Statistics
    held_out_images: int
    problems: tuple[str, ...]
    warning: str = ""


def build(
    dataset: Name,
    *,
    data: str = "",
    scale: str = "tiny",
    tagger: str = "gruut",
    synonyms_file: Path = synonyms.FILE,
    grammar: Grammar = "printed",
    skip_bad: int = 0,
    workers: int | None = None,
) -> Built:
    """Build one of the datasets, or find it in the cache.

    `data` is the folder of the official files; without it, synthetic data at a scale is used.
    """
    if dataset not in SOURCES:
        raise UserError(f"unknown VisCOLL dataset {dataset!r}: there are {' and '.join(SOURCES)}")
    source = captioned(dataset, data=data, scale=scale, skip_bad=skip_bad)
    world = of_world(source)
    lists = _lists(data) if dataset == "coco" and not world else None
    version = open_tagger(tagger).version
    file = _place(source, lists, dataset, world, tagger, version, synonyms_file, grammar).with_suffix(".npz")
    if (found := kept(file)) is not None:
        return found
    reading = Reading(skip=skip_bad)
    captions = _captions(source, dataset, reading)
    with progress_bar(f"tagging the captions of {source.dataset.name}"):
        extracted = list(_extracted(captions, (tagger, synonyms_file, grammar), workers or os.cpu_count() or 1))
    if not extracted:
        raise UserError(f"{source.folder} has no captions: unpack the files of COCO's captions there")
    phrases, images = (_flickr(extracted), 0) if dataset == "flickr" else _held_out(extracted, dataset, lists, world)
    built = Built(
        file,
        dataset,
        str(source.folder),
        world,
        f"{tagger} {version}",
        statistics(phrases),
        images,
        tuple(str(problem) for problem in reading.problems),
        NO_LISTS if dataset == "coco" and not world and lists is None else "",
    )
    keep(phrases, built)
    return built


def captioned(dataset: str, *, data: str = "", scale: str = "tiny", skip_bad: int = 0) -> Source:
    """The captions and boxes of a dataset: the official ones, without looking at the pictures, or synthetic ones."""
    source = open_source(SOURCES[dataset], data=data, scale=scale, skip_bad=skip_bad)
    return source if of_world(source) else replace(source, dataset=ANNOTATIONS[dataset])


def of_world(source: Source) -> bool:
    """Whether files are synthetic, wherever they are: in the cache, or in a folder that the user specified."""
    return (source.folder / MARK).is_file()


def statistics(phrases: Iterable[MaskedSpan]) -> Statistics:
    """The sizes of a dataset.

    As the paper's figures for Flickr-shift show, a task's instances are those of all splits together.
    """
    splits: Counter[str] = Counter()
    tasks: Counter[str] = Counter()
    words = count = 0
    for each in phrases:
        splits[each.split] += 1
        tasks[each.task] += 1
        words += each.span[1] - each.span[0]
        count += 1
    if not count:
        raise UserError("the captions contain no phrase at all: provide captions in English")
    sizes = np.array(list(tasks.values()))
    train, validation, test, novel = (splits[name] for name in SPLITS)
    means = float(sizes.mean()), float(np.median(sizes)), words / count
    return Statistics(train, validation, test, novel, *means, len(tasks))


def _captions(source: Source, dataset: str, reading: Reading) -> Iterator[CaptionWords]:
    for split, official in OFFICIAL[dataset].items():
        for example in source.examples(official, reading):
            if dataset != "flickr":
                for text in example.extra["captions"]:
                    yield CaptionWords(example.id, split, split_words(text))
            else:
                words = tuple(word.lower() for word in example.extra["tokens"])
                spans = tuple((phrase["start"], phrase["stop"]) for phrase in example.extra["phrases"])
                yield CaptionWords(example.extra["image_id"], split, words, spans)


def _extracted(captions: Iterator[CaptionWords], settings: tuple[str, Path, Grammar], workers: int) -> Iterator[Found]:
    """The phrases of all captions in order, extracted by several processes if there are many."""
    first = list(islice(captions, MANY))
    if workers <= 1 or len(first) < MANY:
        for batch in _batches(captions, first):
            yield from extract(batch, *settings)
        return
    died = "a process that tags captions died: give it more memory, or use a single worker"
    with working(workers, died) as pool:
        waiting: deque[Future[list[Found]]] = deque()
        for batch in _batches(captions, first):
            waiting.append(pool.submit(extract, batch, *settings))
            # Only a few batches wait at each process, never all: the captions of COCO are some hundred megabytes.
            if len(waiting) > 4 * workers:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()


def _batches(captions: Iterator[CaptionWords], first: list[CaptionWords]) -> Iterator[list[CaptionWords]]:
    for at in range(0, len(first), BATCH):
        yield first[at : at + BATCH]
    while batch := list(islice(captions, BATCH)):
        yield batch


def _held_out(found: list[Found], dataset: str, lists: Source | None, world: bool) -> tuple[list[MaskedSpan], int]:
    """The phrases with their splits, and the number of images that were held out."""
    splits = {each.image: phrase.split for each in found for phrase in each.phrases}
    held = {each.image for each in found if each.pairs}
    held |= _listed(lists) & splits.keys() if lists is not None else set()
    validation = _validation(splits) if dataset == "coco" else set[str]()
    all_novel = world or dataset != "coco"
    phrases = []
    for each in found:
        for phrase in each.phrases:
            if each.image in held:
                if phrase.pair and (all_novel or phrase.split == "test"):
                    phrases.append(replace(phrase, split="novel"))
            elif each.image in validation:
                phrases.append(replace(phrase, split="validation"))
            else:
                phrases.append(phrase)
    return phrases, len(held)


def _validation(splits: dict[str, str]) -> set[str]:
    train = sorted(image for image, split in splits.items() if split == "train")
    chosen = np.random.default_rng(VALIDATION_SEED).choice(len(train), round(VALIDATION * len(train)), replace=False)
    return {train[i] for i in chosen.tolist()}


def _flickr(found: list[Found]) -> list[MaskedSpan]:
    """The phrases of the most frequent tasks; ties are broken alphabetically."""
    counts = Counter(phrase.task for each in found for phrase in each.phrases if phrase.split == "train")
    tasks = set(sorted(counts, key=lambda task: (-counts[task], task))[:TASKS])
    return [phrase for each in found for phrase in each.phrases if phrase.task in tasks]


def _lists(data: str) -> Source | None:
    """The lists of Nikolaus et al., if they are beside the data."""
    dataset: Dataset = registry.DATASETS["nikolaus"].load()
    if not data:
        return None
    for folder in (Path(data), Path(data) / "nikolaus", Path(data).parent / "nikolaus"):
        if folder.is_dir() and dataset.holds(folder):
            return Source(dataset, folder)
    return None


def _listed(lists: Source) -> set[str]:
    """The images that the four lists hold out for validation and test."""
    splits = [f"{part}_{number}" for number in range(1, 5) for part in ("val", "test")]
    return {example.id for split in splits for example in lists.examples(split)}


def _place(source: Source, lists: Source | None, *settings: object) -> Path:
    files = [path for path in (synonyms.FILE, compositions.FILE, *settings) if isinstance(path, Path)]
    contents = [hashlib.blake2b(path.read_bytes(), digest_size=8).hexdigest() for path in files if path.is_file()]
    plain = [each for each in settings if not isinstance(each, Path)]
    sources = [source] if lists is None else [source, lists]
    return place_of("viscoll", "phrases", sources, source.skip_bad, contents, plain, modules=[__name__])


def keep(phrases: list[MaskedSpan], built: Built) -> None:
    """Write phrases and the information about them."""
    note = built.file.with_suffix(".json")
    save_phrases(built.file, phrases)
    temporary = note.with_name(f".{note.name}.{os.getpid()}")
    temporary.write_text(json.dumps(asdict(built) | {"file": ""}, indent=1), encoding="utf-8")
    temporary.rename(note)
    seal(built.file)
    seal(note)


def kept(file: Path) -> Built | None:
    """The result that `keep` wrote; None if it is missing or damaged."""
    note = file.with_suffix(".json")
    if not (is_intact(file) and is_intact(note)):
        return None
    found = json.loads(note.read_text(encoding="utf-8"))
    sizes = Statistics(**found.pop("statistics"))
    return Built(**found | {"file": file, "statistics": sizes, "problems": tuple(found["problems"])})
