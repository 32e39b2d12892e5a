"""How well masked phrases are predicted, and how much of that is forgotten (VisCOLL: Jin et al., 2020).

Logarithms are natural. Log-perplexity is lower for better models, so positive forgetting means that it rose.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.errors import UserError
from holdfast.metrics.arrays import Floats, Integers, integers, matrix, same_length, vector
from holdfast.metrics.undefined import Undefined


def phrase_log_perplexities(token_log_probabilities: ArrayLike, lengths: ArrayLike) -> Floats:
    """Log-perplexity of each phrase: -(1/n) sum of its n tokens' log-probabilities (Jin et al., 2020, section 6.1).

    The tokens of all phrases lie one after another in one flat array; `lengths` says how many belong to each.

    >>> phrase_log_perplexities([-1, -3, -4], lengths=[2, 1])
    array([2., 4.])
    """
    tokens, counts = vector(token_log_probabilities, "token_log_probabilities"), integers(lengths, "lengths")
    if counts.min() < 1:
        raise UserError("lengths must be at least 1: a phrase without masked tokens has no perplexity")
    if counts.sum() != len(tokens):
        raise UserError(f"lengths sum to {counts.sum()}, but token_log_probabilities has {len(tokens)} values")
    if (tokens > 1e-6).any():  # rounding may lift log(1) a little above 0
        raise UserError("token_log_probabilities must not be above 0: they are logarithms of probabilities")
    starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
    return -np.add.reduceat(tokens, starts) / counts


def log_perplexity(token_log_probabilities: ArrayLike, lengths: ArrayLike) -> float:
    """Mean over the tokens of a phrase, then over phrases, so that long phrases do not count more (Jin et al., 2020).

    A token of probability zero (log-probability -inf) makes the result infinite, as it should.

    >>> log_perplexity([-1, -3, -4], lengths=[2, 1])  # ((1 + 3) / 2 + 4) / 2
    3.0
    """
    mean = float(phrase_log_perplexities(token_log_probabilities, lengths).mean())
    return mean if mean == mean else Undefined("token_log_probabilities contains a NaN")


def group_means(values: ArrayLike, groups: Sequence[Any] | NDArray[Any]) -> tuple[list[Any], Floats]:
    """The groups in sorted order, and the mean of the values in each group.

    With tasks as groups, this is one row of the history that `perplexity_forgetting` reads. With compositions as
    groups, the mean of the returned means is the score on compositions of Jin et al. (2020, figure 6): first over the
    examples of each composition, then over compositions.

    >>> names, means = group_means([1, 3, 5], ["dog", "dog", "cat"])
    >>> names, means
    (['cat', 'dog'], array([5., 2.]))
    """
    array = vector(values, "values")
    same_length(array, "values", groups, "groups")
    names, index = np.unique(np.asarray(groups), return_inverse=True)
    return names.tolist(), np.bincount(index, weights=array) / np.bincount(index)


def bleu(candidates: Sequence[str], references: Sequence[str], n: int, effective_order: bool = True) -> float:
    """Sentence-level BLEU-n of each candidate against its one reference, averaged over the pairs; from 0 to 100.

    BLEU-n = BP exp((1/n) sum_{m <= n} log p_m), with the clipped m-gram precisions p_m and the brevity penalty
    BP = min(1, exp(1 - |reference| / |candidate|)) (Papineni et al., 2002). Tokens are split at white space, case
    matters, and there is **no smoothing**: a pair without a common n-gram scores 0, as in the evaluator behind the
    tables of Jin et al. (2020).

    A candidate shorter than n tokens has no n-grams. By default it is judged by the orders that it has (effective
    order, so that a correct one-word phrase scores 100 under BLEU-2 too); with `effective_order=False` it scores 0, as
    in that paper.

    >>> bleu(["a red car"], ["a red bus"], n=1)  # 2 of 3 words
    66.66...
    >>> bleu(["a red car"], ["a red bus"], n=2)  # 100 * sqrt(2/3 * 1/2)
    57.73...
    """
    from sacrebleu.metrics.bleu import BLEU  # imported on use: it is slow to import, and few callers need it

    if n < 1:
        raise UserError(f"n must be at least 1, not {n}")
    if isinstance(candidates, str) or isinstance(references, str):
        raise UserError("candidates and references must be lists of phrases, not single strings")
    if not len(candidates):
        raise UserError("candidates is empty")
    same_length(candidates, "candidates", references, "references")
    # Phrases arrive as tokens: a second tokeniser would split word pieces such as "##ing".
    scorer = BLEU(tokenize="none", smooth_method="none", max_ngram_order=n, effective_order=effective_order)
    # A corpus of one sentence gets the sentence's score, and logs no warning if the order is not effective.
    pairs = zip(candidates, references, strict=True)
    total = sum(scorer.corpus_score([candidate], [[reference]]).score for candidate, reference in pairs)
    # Rounding may lift a perfect match above 100, since the score is computed through logarithms.
    return min(float(total) / len(candidates), 100.0)


def aligned_bleu(candidates: ArrayLike, references: ArrayLike, n: int) -> Floats:
    """Sentence-level BLEU-n of each candidate that is as long as its reference, from 0 to 1.

    Words are numbers; a row ends where its reference has a negative one. The result is that of `bleu` with
    `effective_order=False`, computed for many short phrases at once: words that are predicted side by side, each in its
    place, always have the right length.

    >>> aligned_bleu([[4, 7, 9]], [[4, 7, 8]], n=1), aligned_bleu([[4, 7, 9]], [[4, 7, 8]], n=2)  # sqrt(2/3 * 1/2)
    (array([0.66666667]), array([0.57735027]))
    """
    words, right = np.asarray(candidates, np.int64), np.asarray(references, np.int64)
    lengths, base = (right >= 0).sum(1), int(max(words.max(), right.max())) + 1
    said, asked, product = np.zeros_like(words), np.zeros_like(right), np.ones(len(right))
    for order in range(n):
        width = words.shape[1] - order
        if width < 1:
            return np.zeros(len(right))
        # One number for each n-gram; base ** n stays below 2 ** 63 for any vocabulary and order in use.
        said, asked = said[:, :width] * base + words[:, order:], asked[:, :width] * base + right[:, order:]
        there = np.arange(width) < (lengths - order)[:, None]
        same = (said[:, :, None] == said[:, None, :]) & there[:, None, :]
        earlier = np.tril(same, -1).sum(2)
        available = ((said[:, :, None] == asked[:, None, :]) & there[:, None, :]).sum(2)
        matches = ((earlier < available) & there).sum(1)  # a word counts as often as it occurs in the reference
        product *= matches / np.maximum(lengths - order, 1)
    return product ** (1 / n)


def perplexity_forgetting(
    history: ArrayLike,
    seen: ArrayLike | None = None,
    share: float = 0.98,
    *,
    checkpoints: ArrayLike | None = None,
    weights: ArrayLike | None = None,
) -> float:
    """Mean rise of each task's log-perplexity from the point where its data had been seen to the end; lower is better.

    f = (1/K) sum_k (PPL_T(D_k) - PPL_{c_k}(D_k)) (Jin et al., 2020, section 6.1), where `history` holds the
    log-perplexity at each checkpoint (rows) on each task (columns), T is its last row, and c_k one of:

    - with `seen`, the fraction of each task's training data seen by each checkpoint: the first checkpoint where at
      least `share` of it was seen. This is the paper's text, with the 98 % of its code.
    - with `checkpoints`: the given row for each task.
    - with neither: the row at which the task was at its best, which is the paper's formula (so never negative).

    A task that never reached `share`, or has no value at one of its two rows, is left out; if no task is left, the
    result is undefined. `weights` replaces the plain mean over tasks: the paper's code weighs each by its test
    examples.

    >>> history = [[5, 6], [3, 5], [4, 2]]
    >>> perplexity_forgetting(history, seen=[[0.5, 0], [1, 0.1], [1, 1]])  # ((4 - 3) + (2 - 2)) / 2
    0.5
    """
    table = matrix(history, "history")
    if seen is not None and checkpoints is not None:
        raise UserError("pass seen or checkpoints, not both")
    if seen is not None:
        rows, reached = _first_seen(seen, share, table)
    elif checkpoints is not None:
        rows, reached = _given_rows(checkpoints, table), np.ones(table.shape[1], dtype=np.bool_)
    else:
        rows = np.where(np.isfinite(table), table, np.inf).argmin(axis=0)
        reached = np.ones(table.shape[1], dtype=np.bool_)
    importance = np.ones(table.shape[1]) if weights is None else vector(weights, "weights")
    if len(importance) != table.shape[1] or not (np.isfinite(importance) & (importance >= 0)).all():
        raise UserError(f"weights must hold one number of at least 0 for each of the {table.shape[1]} tasks")
    start, end = table[rows, np.arange(table.shape[1])], table[-1]
    used = reached & np.isfinite(start) & np.isfinite(end) & (importance > 0)
    if not used.any():
        return Undefined("no task has a log-perplexity both when its data had been seen and at the end")
    return float(np.average((end - start)[used], weights=importance[used]))


def _first_seen(seen: ArrayLike, share: float, table: Floats) -> tuple[Integers, NDArray[np.bool_]]:
    fractions = matrix(seen, "seen")
    if fractions.shape != table.shape:
        raise UserError(f"seen must have the shape of history, {table.shape}, not {fractions.shape}")
    if not 0 < share <= 1:
        raise UserError(f"share must be above 0 and at most 1, not {share}")
    enough: NDArray[np.bool_] = fractions >= share - 1e-9  # a fraction such as 49/50 may round below 0.98
    return np.argmax(enough, axis=0), np.any(enough, axis=0)


def _given_rows(checkpoints: ArrayLike, table: Floats) -> Integers:
    rows = integers(checkpoints, "checkpoints")
    if len(rows) != table.shape[1] or rows.min() < 0 or rows.max() >= len(table):
        raise UserError(
            f"checkpoints must hold one row of history (0 to {len(table) - 1}) for each of {table.shape[1]} tasks"
        )
    return rows
