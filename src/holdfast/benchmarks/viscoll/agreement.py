"""How many of the phrases that VisCOLL's authors released are found in their captions, exactly as they are."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from holdfast.benchmarks.viscoll.extract import CaptionWords, Grammar, PhraseExtractor, extractor
from holdfast.benchmarks.viscoll.released import open_released
from holdfast.benchmarks.viscoll.tagger import split_words
from holdfast.benchmarks.viscoll.tasks import Pieces
from holdfast.data.text import Tokenizer
from holdfast.datasets.base import DataError
from holdfast.types import Example

SETS = ("validation", "test", "novel")
_BATCH = 2_000


def agreement(
    data: str, tokenizer: Tokenizer, tagger: str, synonyms: Path, grammar: Grammar
) -> dict[str, tuple[int, int]]:
    """For each existing set of COCO-shift, how many phrases are found with the same words, and of how many."""
    source, find, pieces = open_released(data), extractor(tagger, synonyms, grammar), Pieces(tokenizer)
    found: dict[str, tuple[int, int]] = {}
    for name in SETS:
        same = total = 0
        try:
            examples = source.examples(f"coco_{name}")
            while batch := list(islice(examples, _BATCH)):
                ours = _spans(batch, find, pieces)
                same += sum((e.extra["first"], e.extra["last"]) in ours[e.text] for e in batch)
                total += len(batch)
        except DataError as error:
            if not error.missing:
                raise
            continue
        found[name] = same, total
    return found


def _spans(examples: list[Example], find: PhraseExtractor, pieces: Pieces) -> dict[str, set[tuple[int, int]]]:
    """The first and last word pieces of our phrases in each caption."""
    captions = [CaptionWords(text, "test", split_words(text)) for text in dict.fromkeys(e.text for e in examples)]
    found = {}
    for caption, each in zip(captions, find(captions), strict=True):
        starts = [0]
        for word in caption.words:
            starts.append(starts[-1] + len(pieces[word]))
        found[caption.image] = {(starts[p.span[0]], starts[p.span[1]] - 1) for p in each.phrases}
    return found
