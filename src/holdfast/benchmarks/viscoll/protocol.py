"""The scores from one pass over the test phrases, and the resulting measures: those of Table 2 and Figure 6.

A score is minus a log-perplexity. In addition to the whole sets, `regular` and `novel`, the log has details by name:

| name                          | content                                                                            |
|-------------------------------|------------------------------------------------------------------------------------|
| `bleu/1`, `bleu/2`            | sentence-level BLEU of the regular phrases, from 0 to 1                            |
| `task/dog`                    | the phrases of one task                                                            |
| `verb seen/ride man`          | the phrases with a composition of held-out words that was not held out             |
| `adjective novel/black cat`   | the phrases with a composition that was                                            |
| `verb seen words/ride man`    | the two words alone of the same compositions; likewise `adjective novel words/...` |
| `word/black dog`              | the verb or the adjective alone within such a phrase (Figure 8)                    |
| `learned/dog`                 | after how many steps 98 % of the task's examples had been seen; logged at the end  |
| `density/dog`                 | the task's share of the stream up to a step, since the one before; logged at the end |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast import metrics
from holdfast.benchmarks.base import Measure
from holdfast.benchmarks.viscoll.compositions import HELD_OUT, SEEN, compositions, held_out
from holdfast.benchmarks.viscoll.phrases import MaskedSpan
from holdfast.benchmarks.viscoll.tagger import lemma
from holdfast.types import Array, Ids, Score

REGULAR, NOVEL = "regular", "novel"
TASK, LEARNED, WORD, DENSITY = "task/", "learned/", "word/", "density/"
KINDS = ("verb", "adjective")
MEASURES = {
    "log_perplexity": Measure("log PPL", higher=False, factor=1, decimals=3),
    "bleu_1": Measure("BLEU-1", higher=True, decimals=2),
    "bleu_2": Measure("BLEU-2", higher=True, decimals=2),
    "forgetting": Measure("forgetting", higher=False, factor=1, decimals=3),
    "forgetting_by_example": Measure("forgetting, by example", higher=False, factor=1, decimals=3),
    "verb_seen": Measure("verbs, seen", higher=False, factor=1, decimals=3),
    "verb_novel": Measure("verbs, novel", higher=False, factor=1, decimals=3),
    "adjective_seen": Measure("adjectives, seen", higher=False, factor=1, decimals=3),
    "adjective_novel": Measure("adjectives, novel", higher=False, factor=1, decimals=3),
    "verb_seen_words": Measure("verbs, seen, two words", higher=False, factor=1, decimals=3),
    "verb_novel_words": Measure("verbs, novel, two words", higher=False, factor=1, decimals=3),
    "adjective_seen_words": Measure("adjectives, seen, two words", higher=False, factor=1, decimals=3),
    "adjective_novel_words": Measure("adjectives, novel, two words", higher=False, factor=1, decimals=3),
    "untrained_tasks": Measure("tasks never trained", higher=False, factor=1, decimals=0),
}


@dataclass(frozen=True)
class Parts:
    """Subsets of a set: entry e says that `rows[e]` belongs to the subset `names[parts[e]]`.

    With `places`, only one hidden piece of the row counts, not the whole phrase, and by its weight if there are any.
    """

    names: tuple[str, ...]
    rows: Ids
    parts: Ids
    places: Ids | None = None
    weights: Array | None = None

    @staticmethod
    def of(
        entries: Iterable[tuple[str, int]], places: Sequence[int] | None = None, weights: Sequence[float] | None = None
    ) -> Parts:
        """The subsets formed by pairs of a name and a row.

        >>> Parts.of([("task/dog", 0), ("task/cat", 1), ("task/dog", 2)]).names
        ('task/cat', 'task/dog')
        """
        listed = list(entries)
        names, parts = np.unique(np.array([name for name, _ in listed], dtype=np.str_), return_inverse=True)
        rows = np.array([row for _, row in listed], np.int64)
        where = None if places is None else np.array(places, np.int64)
        shares = None if weights is None else np.array(weights, np.float64)
        return Parts(tuple(names.tolist()), rows, parts.astype(np.int64), where, shares)

    def means(self, phrases: Array, words: Array) -> dict[str, tuple[int, float]]:
        """For each subset, its size (the sum of its weights) and minus the mean of its losses."""
        values = phrases[self.rows] if self.places is None else words[self.rows, self.places]
        weights = np.ones(len(values)) if self.weights is None else self.weights
        counts = np.bincount(self.parts, weights, minlength=len(self.names))
        sums = np.bincount(self.parts, values * weights, minlength=len(self.names))
        return {n: (round(c), -s / c) for n, c, s in zip(self.names, counts.tolist(), sums.tolist(), strict=True)}


def details(
    *parts: Parts, bleu: bool = False
) -> Callable[[NDArray[np.float32], NDArray[np.int32]], dict[str, tuple[int, float]]]:
    """A function that computes an evaluation set's further scores from the predictions of `MaskedPhrase`."""

    def found(predictions: NDArray[np.float32], targets: NDArray[np.int32]) -> dict[str, tuple[int, float]]:
        losses, said = np.hsplit(predictions.astype(np.float64), 2)
        phrases = losses.sum(1) / (targets >= 0).sum(1)
        scores: dict[str, tuple[int, float]] = {}
        if bleu:
            for n in (1, 2):
                scores[f"bleu/{n}"] = len(targets), float(metrics.aligned_bleu(said, targets, n).mean())
        for each in parts:
            scores |= each.means(phrases, losses)
        return scores

    return found


def regular_parts(phrases: Sequence[MaskedSpan], words: NDArray[np.int32]) -> tuple[Parts, ...]:
    """The subsets of a set of regular phrases: their tasks, and the compositions of held-out words that they contain.

    `words` says to which word of its phrase each hidden piece belongs, padded with -1.
    """
    tasks = Parts.of((TASK + phrase.task, row) for row, phrase in enumerate(phrases))
    seen = [(f"{kind} seen/{name}", row) for row, phrase in enumerate(phrases) for kind, name in compositions(phrase)]
    return tasks, Parts.of(seen), _pair_parts(phrases, words, "seen"), _word_parts(phrases, words)


def novel_parts(phrases: Sequence[MaskedSpan], words: NDArray[np.int32]) -> tuple[Parts, ...]:
    """The subsets of a set of phrases with held-out compositions."""
    kinds = {name: kind for kind, name in HELD_OUT}
    novel = ((f"{kinds[phrase.pair]} novel/{phrase.pair}", row) for row, phrase in enumerate(phrases) if phrase.pair)
    return Parts.of(novel), _pair_parts(phrases, words, NOVEL), _word_parts(phrases, words)


def _word_parts(phrases: Sequence[MaskedSpan], words: NDArray[np.int32]) -> Parts:
    """For each composition, the hidden pieces of its verb or adjective alone."""
    forms = _forms()
    entries: list[tuple[str, int]] = []
    places: list[int] = []
    for row, phrase in enumerate(phrases):
        for kind, name in compositions(phrase):
            if phrase.pair in ("", name):
                said = _said(phrase, kind, forms[kind, name.split()[0]])
                own = np.flatnonzero(np.isin(words[row], said)).tolist()
                entries += [(WORD + name, row)] * len(own)
                places += own
    return Parts.of(entries, places)


def _pair_parts(phrases: Sequence[MaskedSpan], words: NDArray[np.int32], group: str) -> Parts:
    """For each composition, the hidden pieces of its two words alone, as in the released code.

    A phrase counts for one pair, the last that it names, if that is held out or one of `SEEN`. Both words weigh the
    same, however many pieces they have. A phrase is left out if it is unclear which of its words they are.
    """
    forms, nouns = _forms(), {each.name.split()[1]: each.nouns for each in held_out()}
    novel = {name for _, name in HELD_OUT}
    entries: list[tuple[str, int]] = []
    places: list[int] = []
    weights: list[float] = []
    for row, phrase in enumerate(phrases):
        found = []
        for kind, name in compositions(phrase):
            word, noun = name.split()
            said, named = _said(phrase, kind, forms[kind, word])[:1], _named(phrase, nouns[noun])
            if said and named and (name in SEEN or name in novel):
                found.append((min(said[0], named[-1]), max(said[0], named[-1]), kind, name, said, named))
        if not found:
            continue
        *_, kind, name, said, named = max(found)
        own = [np.flatnonzero(np.isin(words[row], each)).tolist() for each in (said, named)]
        if (name in novel) == (group == NOVEL) and all(own):
            for pieces in own:
                entries += [(f"{kind} {group} words/{name}", row)] * len(pieces)
                places += pieces
                weights += [0.5 / len(pieces)] * len(pieces)
    return Parts.of(entries, places, weights)


def _forms() -> dict[tuple[str, str], frozenset[str]]:
    """All words that count as a verb or an adjective of the list, by its kind and name."""
    return {(each.kind, each.name.split()[0]): each.words for each in held_out()}


def _named(phrase: MaskedSpan, forms: frozenset[str]) -> list[int]:
    """The words of a phrase that are the last of these nouns in it, which may have several words."""
    lemmas = [lemma(word, tag) for word, tag in zip(phrase.words, phrase.tags, strict=False)]
    for stop in range(len(lemmas), 0, -1):
        for start in range(stop):
            if " ".join(lemmas[start:stop]) in forms:
                return list(range(start, stop))
    return []


def _said(phrase: MaskedSpan, kind: str, forms: frozenset[str]) -> list[int]:
    """Which words of a phrase are one of these verbs or adjectives; its lemmas are in the order of its words."""
    mark, lemmas = ("VB", phrase.verbs) if kind == "verb" else ("JJ", phrase.adjectives)
    tagged = [number for number, tag in enumerate(phrase.tags) if tag.startswith(mark)]
    return [n for n, lemma in zip(tagged, lemmas, strict=False) if lemma in forms] if len(tagged) == len(lemmas) else []


@dataclass(frozen=True)
class History:
    """Log-perplexities over time: one row per evaluation, one column per subset."""

    names: tuple[str, ...]
    steps: Ids
    values: NDArray[np.float64]


def history(scores: Sequence[Score], prefix: str, split: str = "test") -> History:
    """The log-perplexity at each evaluation of the subsets whose names start with `prefix`, which is removed.

    >>> log = [Score(0, 5, "task/dog", "test", 9, -2.0), Score(1, 9, "task/dog", "test", 9, -1.5)]
    >>> history(log, "task/").values.tolist()
    [[2.0], [1.5]]
    """
    own = [s for s in scores if s.split == split and s.name.startswith(prefix)]
    names = sorted({s.name for s in own})
    steps = sorted({s.step for s in own})
    column, row = ({value: index for index, value in enumerate(each)} for each in (names, steps))
    values = np.full((len(steps), len(names)), np.nan)
    for score in own:
        values[row[score.step], column[score.name]] = -score.score
    return History(tuple(n.removeprefix(prefix) for n in names), np.array(steps, np.int64), values)


def forgetting(scores: Sequence[Score], *, by_example: bool = False) -> float:
    """The mean rise of a task's log-perplexity since the first evaluation after its data had been seen.

    Both are measured in steps. The text of the paper takes the plain mean over tasks; with `by_example`, a task counts
    by its test examples, as in the released code. Tasks that were never trained are left out (`untrained`). If the log
    does not say when tasks were learned, as after training in random order, or if there was only one evaluation,
    forgetting is undefined.
    """
    found, learned = history(scores, TASK), _learned(scores)
    if not learned or not len(found.steps):
        return metrics.Undefined("the stream has no order of tasks")
    if len(found.steps) < 2:
        return metrics.Undefined("there was only one evaluation")
    trained = [column for column, name in enumerate(found.names) if name in learned]
    if not trained:
        return metrics.Undefined("no task of the test phrases was trained")
    known = np.array([learned[found.names[column]] for column in trained])
    rows = np.minimum(np.searchsorted(found.steps, known), len(found.steps) - 1)
    counts = {s.name.removeprefix(TASK): s.count for s in scores if s.split == "test" and s.name.startswith(TASK)}
    weights = [counts[found.names[column]] for column in trained] if by_example else None
    return metrics.perplexity_forgetting(found.values[:, trained], checkpoints=rows, weights=weights)


def untrained(scores: Sequence[Score]) -> list[str]:
    """The tasks of the test phrases of which the stream had no phrase; forgetting leaves them out."""
    learned = _learned(scores)
    return [name for name in history(scores, TASK).names if name not in learned] if learned else []


def _learned(scores: Sequence[Score]) -> dict[str, float]:
    """By which step each trained task had been seen."""
    return {s.name.removeprefix(LEARNED): s.score for s in scores if s.split == "test" and s.name.startswith(LEARNED)}


def summary(scores: Sequence[Score]) -> dict[str, float]:
    """The measures of a run; those of compositions only if some were held out, as in COCO-shift."""
    tests = [s for s in scores if s.split == "test"]
    last = {s.name: s.score for s in sorted(tests, key=lambda s: (s.step, s.stage))}
    absent = metrics.Undefined("was not measured")
    found: dict[str, float] = {
        "log_perplexity": -last[REGULAR] if REGULAR in last else absent,
        "bleu_1": last.get("bleu/1", absent),
        "bleu_2": last.get("bleu/2", absent),
        "forgetting": forgetting(scores),
        "forgetting_by_example": forgetting(scores, by_example=True),
    }
    if without := untrained(scores):
        found["untrained_tasks"] = float(len(without))
    if NOVEL not in last:
        return found
    found |= {f"{kind}_{group}": composed(last, kind, group) for kind in KINDS for group in ("seen", NOVEL)}
    counts = {s.name: s.count for s in tests}
    return found | {
        f"{kind}_{group}_words": words_alone(last, counts, kind, group) for kind in KINDS for group in ("seen", NOVEL)
    }


def composed(last: Mapping[str, float], kind: str, group: str) -> float:
    """The log-perplexity of a group of compositions: the mean over the phrases of each, then over compositions."""
    values = [-score for name, score in last.items() if name.startswith(f"{kind} {group}/")]
    return metrics.mean(values) if values else metrics.Undefined("there are no such compositions in the test phrases")


def words_alone(last: Mapping[str, float], counts: Mapping[str, int], kind: str, group: str) -> float:
    """The log-perplexity of the two words of a group of compositions, as the released code has it.

    The mean is over all occurrences, so frequent compositions count more.
    """
    names = [name for name in last if name.startswith(f"{kind} {group} words/")]
    if not names:
        return metrics.Undefined("there are no such compositions in the test phrases")
    return -float(np.average([last[name] for name in names], weights=[counts[name] for name in names]))
