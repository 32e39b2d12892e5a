"""The phrases that VisCOLL's authors released, as this benchmark uses them.

The captions of COCO-shift are cut into the word pieces of BERT's vocabulary, because that is what the released masks
count: each piece is a word here, as in the authors' code, and the phrases are exactly theirs. Those of Flickr-shift are
words. Only phrases that are scored have atoms and, if they name a held-out pair, that pair. The released
compositional test set contains all phrases of the held-out images.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from holdfast.benchmarks.source import Source, open_source, place_of
from holdfast.benchmarks.viscoll.build import Built, keep, kept, of_world, statistics
from holdfast.benchmarks.viscoll.compositions import compositions_of
from holdfast.benchmarks.viscoll.extract import PhraseExtractor
from holdfast.benchmarks.viscoll.phrases import SPLITS, MaskedSpan
from holdfast.benchmarks.viscoll.synonyms import our_synonyms
from holdfast.benchmarks.viscoll.tagger import open_tagger
from holdfast.data.text import Tokenizer
from holdfast.datasets.base import DataError, Reading
from holdfast.progress import progress_bar
from holdfast.types import Example

VERSION = 1
_BATCH = 500
_LONGEST = 512
"""The maximum number of word pieces of a caption that is read."""
_VOCABULARY = "the masks of COCO-shift count the word pieces of bert-base-uncased: give its vocab.txt"


def open_released(data: str, skip_bad: int = 0) -> Source:
    """The folder of the released streams: `data`, or `data/phrase_streams`."""
    return open_source("phrase_streams", data=data, skip_bad=skip_bad)


def build_released(dataset: str, *, data: str, tokenizer: Tokenizer, tagger: str = "gruut", skip_bad: int = 0) -> Built:
    """Read the released phrases of `coco` or `flickr`, or find them in the cache.

    Training phrases are in the released order. Splits whose files are missing have no phrases.
    """
    source = open_released(data, skip_bad)
    version = open_tagger(tagger).version
    settings = dataset, tagger, version, tokenizer.fingerprint, skip_bad
    file = place_of("viscoll", "released phrases", [source], *settings, modules=[__name__]).with_suffix(".npz")
    if (found := kept(file)) is not None:
        return found
    reading = Reading(skip=skip_bad)
    extractor = PhraseExtractor(open_tagger(tagger), our_synonyms(), compositions_of(our_synonyms()))
    with progress_bar(f"the released phrases of {dataset}"):
        phrases = [each for split in SPLITS for each in _split(source, dataset, split, tokenizer, reading)]
        scored = [row for row, each in enumerate(phrases) if each.split != "train"]
        for at in range(0, len(scored), _BATCH):
            rows = scored[at : at + _BATCH]
            for row, each in zip(rows, extractor.spans([phrases[row] for row in rows]), strict=True):
                phrases[row] = each
    held_out = len({each.image for each in phrases if each.split == "novel"})
    problems = tuple(str(problem) for problem in reading.problems)
    name, sizes = f"{tagger} {version}", statistics(phrases)
    built = Built(file, dataset, str(source.folder), of_world(source), name, sizes, held_out, problems)
    keep(phrases, built)
    return built


def _split(source: Source, dataset: str, split: str, tokenizer: Tokenizer, reading: Reading) -> Iterator[MaskedSpan]:
    name = f"{dataset}_{split}"
    if name not in source.dataset.splits:
        return
    try:
        found = source.examples(name, reading)
        while examples := list(islice(found, _BATCH)):
            captions = _words(examples, tokenizer)
            for example, words in zip(examples, captions, strict=True):
                first, stop = example.extra["first"], example.extra["last"] + 1
                if stop > len(words):
                    place = f"phrase {example.id.rpartition('-')[2]}"
                    reading.bad(source.folder, f"{name}, {place}", "its mask lies beyond its caption", _VOCABULARY)
                    continue
                yield MaskedSpan(
                    example.extra["image_id"], words, (first, stop), example.extra["task"], (), (), (), split
                )
    except DataError as error:
        if not error.missing:
            raise


def _words(examples: Sequence[Example], tokenizer: Tokenizer) -> list[tuple[str, ...]]:
    """The words of Flickr-shift's captions, and the word pieces of COCO-shift's."""
    if "tokens" in examples[0].extra:
        return [tuple(word.lower() for word in example.extra["tokens"]) for example in examples]
    numbers, lengths = tokenizer.encode([example.text for example in examples], _LONGEST)
    names = tokenizer.vocabulary
    return [
        tuple(names[number] for number in row[1 : length - 1])
        for row, length in zip(numbers.tolist(), lengths.tolist(), strict=True)
    ]
