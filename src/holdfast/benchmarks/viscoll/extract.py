"""From captions to phrases: tags, chunks or annotated spans, tasks, atoms, held-out pairs.

Does not import torch, so that a worker process starts quickly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

from holdfast.benchmarks.viscoll.chunks import PRINTED, VERBS, Chunk, find_chunks
from holdfast.benchmarks.viscoll.compositions import Composition, compositions_of
from holdfast.benchmarks.viscoll.phrases import MaskedSpan
from holdfast.benchmarks.viscoll.synonyms import Synonyms, read_synonyms
from holdfast.benchmarks.viscoll.tagger import Tagger, lemma, open_tagger

Grammar: TypeAlias = Literal["meant", "printed"]
"""The chunk grammar as the paper intends it, or as it is printed (see chunks.py)."""
SILENT = frozenset({"be"})
"""Verbs without a meaning of their own."""

_QUANTITIES = frozenset({"couple", "crowd", "family", "pair", "group"})
"""Nouns that count what follows "of": "a couple of zebras" shows zebras and, unlike "a couple", no person."""
_COLOUR = "orange"
"""The one category that is also a colour: "a child in orange" shows none, "an orange" and "oranges" do."""


@dataclass(frozen=True, slots=True)
class CaptionWords:
    """A caption as words, with its image and split; if phrases are annotated, also their words [start, stop)."""

    image: str
    split: str
    words: tuple[str, ...]
    spans: tuple[tuple[int, int], ...] | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """The phrases of a caption, and the held-out pairs that it mentions, within its phrases or beside them."""

    image: str
    phrases: tuple[MaskedSpan, ...]
    pairs: frozenset[str]


@dataclass(frozen=True)
class PhraseExtractor:
    """Turns captions into phrases."""

    tagger: Tagger
    synonyms: Synonyms
    held_out: tuple[Composition, ...]
    verbs: frozenset[str] = VERBS
    """The tags that may follow the nouns of a chunk."""

    def __call__(self, captions: Sequence[CaptionWords]) -> list[Found]:
        """The phrases of each caption."""
        tagged = self.tagger.tag([caption.words for caption in captions])
        return [self._found(caption, tags) for caption, tags in zip(captions, tagged, strict=True)]

    def spans(self, phrases: Sequence[MaskedSpan]) -> list[MaskedSpan]:
        """The same phrases with their atoms and tags and, if they are novel, their held-out pair.

        The words of their captions may be word pieces, which are tagged as parts of their words.
        """
        words = [_joined(phrase.caption) for phrase in phrases]
        tagged = self.tagger.tag([each for each, _ in words])
        return [
            self._with_atoms(phrase, [tags[place] for place in places])
            for phrase, tags, (_, places) in zip(phrases, tagged, words, strict=True)
        ]

    def _with_atoms(self, phrase: MaskedSpan, tags: Sequence[str]) -> MaskedSpan:
        lemmas = [lemma(word, tag) for word, tag in zip(phrase.caption, tags, strict=True)]
        start, stop = phrase.span
        things = self.synonyms.things(lemmas, start, start, stop)
        nouns = tuple(each.noun for each in things if any(t.startswith("N") for t in tags[each.start : each.stop]))
        verbs, adjectives = (_of(letter, tags, lemmas, range(start, stop)) for letter in "VJ")
        pairs = [each.name for each in self.held_out if each.within(nouns, verbs, adjectives)]
        pair = pairs[0] if pairs and phrase.split == "novel" else ""
        own = tuple(tags[start:stop])
        return replace(phrase, nouns=nouns, verbs=verbs, adjectives=adjectives, pair=pair, tags=own)

    def _found(self, caption: CaptionWords, tags: Sequence[str]) -> Found:
        lemmas = [lemma(word, tag) for word, tag in zip(caption.words, tags, strict=True)]
        if caption.spans is not None:
            annotated = (_annotated(caption, tags, lemmas, *span) for span in caption.spans)
            return Found(caption.image, tuple(each for each in annotated if each), frozenset())
        phrases, pairs = [], set[str]()
        for chunk in find_chunks(tags, self.verbs):
            said = self._said(tags, lemmas, chunk)
            if said is not None:
                phrase, beside = self._chunked(caption, tags, chunk, said)
                phrases.append(phrase)
                pairs.update(beside)
        return Found(caption.image, tuple(phrases), frozenset(pairs))

    def _said(self, tags: Sequence[str], lemmas: Sequence[str], chunk: Chunk) -> _Said | None:
        first = chunk.start + (tags[chunk.start] == "DT")
        things = self.synonyms.things(lemmas, first, chunk.nouns, chunk.verbs)
        if things[-1].noun in _QUANTITIES and lemmas[chunk.stop : chunk.stop + 1] == ["of"]:
            things[-1] = replace(things[-1], category="")
        categories = [thing.category for thing in things if thing.category]
        if not categories or (
            things[-1].noun == _COLOUR and chunk.verbs - chunk.start == 1 and tags[chunk.nouns] == "NN"
        ):
            return None
        before, after = range(chunk.start, things[0].start), range(chunk.verbs, chunk.stop)
        return _Said(
            categories[-1],
            tuple(thing.noun for thing in things),
            _of("V", tags, lemmas, (*before, *after)),
            _of("J", tags, lemmas, before),
            _of("V", tags, lemmas, chunk.beside),
            _of("J", tags, lemmas, chunk.beside),
        )

    def _chunked(
        self, caption: CaptionWords, tags: Sequence[str], chunk: Chunk, said: _Said
    ) -> tuple[MaskedSpan, list[str]]:
        # Taggers mistake verbs for nouns ("a bird flies over") and vice versa: anything that may be a noun counts.
        verbs, adjectives = (*said.verbs, *said.nouns), (*said.adjectives, *said.nouns)
        within = [each.name for each in self.held_out if each.within(said.nouns, verbs, adjectives)]
        verbs, adjectives = (*verbs, *said.more_verbs), (*adjectives, *said.more_adjectives)
        beside = [each.name for each in self.held_out if each.within(said.nouns, verbs, adjectives)]
        phrase = MaskedSpan(
            caption.image,
            caption.words,
            (chunk.start, chunk.stop),
            said.task,
            said.nouns,
            said.verbs,
            said.adjectives,
            caption.split,
            within[0] if within else "",
            tuple(tags[chunk.start : chunk.stop]),
        )
        return phrase, beside


@dataclass(frozen=True, slots=True)
class _Said:
    """The nouns that a chunk names, with its verbs and adjectives; `more` are words beside the chunk."""

    task: str
    nouns: tuple[str, ...]
    verbs: tuple[str, ...]
    adjectives: tuple[str, ...]
    more_verbs: tuple[str, ...]
    more_adjectives: tuple[str, ...]


def extract(captions: Sequence[CaptionWords], tagger: str, synonyms: Path, grammar: Grammar) -> list[Found]:
    """Extract phrases as a plain function of plain values, for another process."""
    return extractor(tagger, synonyms, grammar)(captions)


@cache
def extractor(tagger: str, synonyms: Path, grammar: Grammar = "printed") -> PhraseExtractor:
    """An extractor by the name of its tagger and the file of its synonyms.

    >>> from holdfast.benchmarks.viscoll.synonyms import FILE
    >>> words = ("a", "small", "black", "cat", "sitting", "on", "two", "books")
    >>> found = extractor("gruut", FILE)([CaptionWords("7", "train", words)])[0]
    >>> [(each.words, each.task, each.verbs) for each in found.phrases]
    [(('a', 'small', 'black', 'cat', 'sitting'), 'cat', ('sit',)), (('books',), 'book', ())]
    >>> sorted(found.pairs)
    ['black cat', 'small cat']
    """
    table = read_synonyms(synonyms)
    return PhraseExtractor(
        open_tagger(tagger), table, compositions_of(table), PRINTED if grammar == "printed" else VERBS
    )


def _joined(pieces: Sequence[str]) -> tuple[list[str], list[int]]:
    """The words of a caption in pieces, and the number of each piece's word.

    >>> _joined(["a", "snow", "##board", "##er"])
    (['a', 'snowboarder'], [0, 1, 1, 1])
    """
    words: list[str] = []
    places = []
    for piece in pieces:
        if piece.startswith("##") and words:
            words[-1] += piece.removeprefix("##")
        else:
            words.append(piece)
        places.append(len(words) - 1)
    return words, places


def _annotated(
    caption: CaptionWords, tags: Sequence[str], lemmas: Sequence[str], start: int, stop: int
) -> MaskedSpan | None:
    """An annotated phrase, whose task is its last noun; None if it has none."""
    places = range(start, stop)
    nouns = _of("N", tags, lemmas, places)
    if not nouns:
        return None
    verbs, adjectives = _of("V", tags, lemmas, places), _of("J", tags, lemmas, places)
    own = tuple(tags[start:stop])
    return MaskedSpan(
        caption.image, caption.words, (start, stop), nouns[-1], nouns, verbs, adjectives, caption.split, "", own
    )


def _of(letter: str, tags: Sequence[str], lemmas: Sequence[str], places: Iterable[int]) -> tuple[str, ...]:
    return tuple(lemmas[i] for i in places if tags[i].startswith(letter) and lemmas[i] not in SILENT)
