"""When tasks are scored, and the resulting measures: CLiMB's two transfers, and the field's usual ones.

Every task of the order is scored before the first stage and after each. Knowledge transfer T_UK(i) compares the score
on task i right after learning it with that of the same model fine-tuned on it alone. Forgetting T_F(j <- i) compares
what was learned of task j with what is left of it after task i. Both are relative to chance (see `metrics.transfer`).

One number for a run pools its tasks: the total gain or loss, divided by the total that could be gained or lost. (The
mean of the tasks' own percentages would be dominated by the task whose baseline is closest to chance.)

    T_F = 100 sum_j (S_A^j - S_A^{j<-N}) / sum_j (S_A^j - S_R^j)        over the tasks before the last
    T_UK = 100 sum_i (S_A^i - S_PT^i) / sum_i (S_PT^i - S_R^i)

A task counts if its baseline, S_A^j for T_F and S_PT^i for T_UK, is clearly above chance: S - S_R > 1.96 standard
errors over the test examples. Nothing can be forgotten that was not learned: a task that scored 48.3 % after its stage,
with chance at 50 %, and 58.3 % later, would cancel the losses of the others. Tables over several runs pool the tasks
that count in all of them (see `metrics.pooling`). T_UK has no condition on S_A: if an algorithm does not learn what the
direct run learns, that is a transfer of -100 %, and must count.

The scores on each task, ACC, BWT and FWT are not shares, and include all tasks. For a run that learns only its first
stages, only the scores on their tasks are reported and counted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from holdfast import metrics
from holdfast.benchmarks.base import Measure, absent, score_matrix
from holdfast.benchmarks.climb.paper import KNOWN
from holdfast.metrics.pooling import Share, pool
from holdfast.types import Score

DIRECT, JOINT = "direct/", "joint"
"""The names of the runs that measures need: `direct/vqav2` and so on, and the joint one."""
_FEW = "the low-shot score of the pre-trained encoder"
MEASURES = {
    **{name: Measure(name, higher=True) for name in KNOWN},
    "knowledge_transfer": Measure("T_UK", higher=True, factor=1.0, pooled="the score of its direct run"),
    "forgetting_transfer": Measure(
        "T_F", higher=False, factor=1.0, pooled="the score right after its stage", relies_on="final_accuracy"
    ),
    "final_accuracy": Measure("ACC", higher=True, mean_of=("*",)),
    "backward_transfer": Measure("BWT", higher=True, relies_on="final_accuracy"),
    "forward_transfer": Measure("FWT", higher=True, relies_on="final_accuracy"),
    "intransigence": Measure("Int", higher=False, asked="--set benchmark.joint=true"),
    "score": Measure("score", higher=True),
    "low_shot_multimodal": Measure("T_LS multimodal", higher=True, factor=1.0, pooled=_FEW, asked="--downstream"),
    "low_shot_language": Measure("T_LS language", higher=True, factor=1.0, pooled=_FEW, asked="--downstream"),
    "low_shot_vision": Measure("T_LS vision", higher=True, factor=1.0, pooled=_FEW, asked="--downstream"),
}
"""The score of each task at the end, then the measures; the last four are those of low-shot runs."""
COSTS = {
    "memory_bytes": Measure("memory, bytes", higher=False, factor=1.0, decimals=0),
    "examples_backward": Measure("training passes", higher=False, factor=1.0, decimals=0),
}
"""The costs in a run's record that the table of runs shows beside the measures."""
DEVIATIONS = 1.96
"""The half-width of a 95 % interval in standard errors."""
_ONE_STAGE = "needs one stage for each task, but there are {} for {}"
_DIRECT = "needs the direct runs of all its tasks: run it without --no-needs"
_ALONE = "nothing came before its only task, and plain fine-tuning on that task is the direct run itself"


def summary(scores: Sequence[Score], split: str = "test") -> dict[str, float]:
    """The measures that need no other run."""
    names, before, matrix = score_matrix(scores, split)
    last = matrix[-1].tolist() if len(matrix) else [float("nan")] * len(names)
    found: dict[str, float] = dict(zip(names, last, strict=True))
    found["knowledge_transfer"] = metrics.Undefined(_ALONE if len(names) == 1 else _DIRECT)
    if matrix.shape[0] == matrix.shape[1]:
        lost = shares(scores, {}, split).get("forgetting_transfer")
        found["forgetting_transfer"] = pool(lost) if lost else metrics.Undefined("needs at least two tasks")
        found["backward_transfer"] = metrics.backward_transfer(matrix, final=True)
        found["forward_transfer"] = metrics.forward_transfer(matrix, before)
    else:
        reason = metrics.Undefined(_ONE_STAGE.format(*matrix.shape))
        found |= dict.fromkeys(("forgetting_transfer", "backward_transfer", "forward_transfer"), reason)
    found["final_accuracy"] = float(np.mean(last)) if names else metrics.Undefined("nothing was scored")
    return {name: found[name] for name in MEASURES if name in found}


def relative(scores: Sequence[Score], others: Mapping[str, Sequence[Score]], split: str = "test") -> dict[str, float]:
    """The measures that need other runs: T_UK the direct ones, intransigence the joint one."""
    own = learned(scores, split)
    missing = [DIRECT + name for name in own if DIRECT + name not in others]
    gained = shares(scores, others, split).get("knowledge_transfer", {})
    found = {"knowledge_transfer": absent(missing[0]) if missing else pool(gained)}
    if JOINT in others and len(own) > 1:
        together = learned(others[JOINT], split)
        found["intransigence"] = float(np.mean([together[name] - own[name] for name in list(own)[1:]]))
    return found


def shares(
    scores: Sequence[Score], others: Mapping[str, Sequence[Score]], split: str = "test"
) -> dict[str, dict[str, Share]]:
    """The contribution of each task to T_F and, if the direct runs of all tasks exist, to T_UK."""
    names, _, matrix = score_matrix(scores, split)
    if not set(names) <= set(KNOWN):
        return {}
    found: dict[str, dict[str, Share]] = {}
    own, counts = learned(scores, split), _counts(scores, split)
    if matrix.shape[0] == matrix.shape[1] > 1:
        left = dict(zip(names, matrix[-1].tolist(), strict=True))
        found["forgetting_transfer"] = {
            name: share(own[name] - left[name], own[name], counts[name], KNOWN[name].chance) for name in names[:-1]
        }
    if own and all(DIRECT + name in others for name in own):
        found["knowledge_transfer"] = {}
        for name, score in own.items():
            log = others[DIRECT + name]
            direct, count = learned(log, split)[name], _counts(log, split)[name]
            found["knowledge_transfer"][name] = share(score - direct, direct, count, KNOWN[name].chance)
    return found


def share(change: float, baseline: float, count: int, chance: float) -> Share:
    """The contribution of a task to a pooled measure, and any doubt about its baseline over `count` examples.

    >>> share(0.25, 0.75, 1000, 0.5)
    Share(change=0.25, base=0.25, doubt='')
    """
    if change != change or baseline != baseline:
        return Share(0.0, 0.0, "it was not scored")
    doubt = unclear([baseline], [count], chance)
    return Share(change, baseline - chance, doubt.reason if doubt else "")


def learned(scores: Sequence[Score], split: str = "test") -> dict[str, float]:
    """The score on each task right after its stage; if one stage learns all tasks, after that."""
    names, _, matrix = score_matrix(scores, split)
    if not len(matrix):
        return {}
    rows = range(len(names)) if matrix.shape[0] == matrix.shape[1] else [-1] * len(names)
    return {name: float(matrix[row, column]) for column, (name, row) in enumerate(zip(names, rows, strict=True))}


def unclear(baseline: Sequence[float], counts: Sequence[int], chance: float) -> metrics.Undefined | None:
    """Why a sum of scores, each over its count of examples, is useless as a baseline; None if it is well above chance.

    Its 95 % interval must not include chance. An example's score lies between 0 and 1, so the variance is at most that
    of right and wrong answers.

    >>> unclear([0.55], [100], 0.5).reason
    'the baseline (0.55 ±0.10) is not clearly above chance (0.50)'
    >>> unclear([0.55], [1000], 0.5)
    """
    score = sum(baseline)
    width = DEVIATIONS * math.sqrt(sum(max(s * (1 - s), 0) / n for s, n in zip(baseline, counts, strict=True)))
    if score != score or score - width > chance:
        return None
    return metrics.Undefined(f"the baseline ({score:.2f} ±{width:.2f}) is not clearly above chance ({chance:.2f})")


def transfers(scores: Sequence[Score], others: Mapping[str, Sequence[Score]], split: str = "test") -> dict[str, float]:
    """T_UK of each task, in percent, if its direct run is among the others and clearly above chance."""
    found: dict[str, float] = {}
    for name, score in learned(scores, split).items():
        if (need := DIRECT + name) not in others:
            found[name] = absent(need)
            continue
        direct, chance = learned(others[need], split)[name], KNOWN[name].chance
        found[name] = unclear([direct], [_counts(others[need], split)[name]], chance) or metrics.knowledge_transfer(
            score, direct, chance
        )
    return found


def forgettings(scores: Sequence[Score], split: str = "test") -> dict[tuple[str, str], float]:
    """T_F of each task after each later one, in percent, by both names; undefined if it was not clearly learned."""
    names, _, matrix = score_matrix(scores, split)
    if matrix.shape[0] != matrix.shape[1]:
        return {}
    counts, found = _counts(scores, split), dict[tuple[str, str], float]()
    for j, task in enumerate(names):
        was, chance = float(matrix[j, j]), KNOWN[task].chance
        doubt = unclear([was], [counts[task]], chance)
        for i in range(j + 1, len(names)):
            found[task, names[i]] = doubt or metrics.forgetting_transfer(was, matrix[i, j], chance)
    return found


def _counts(scores: Sequence[Score], split: str) -> dict[str, int]:
    """The number of examples on which each task is scored."""
    return {score.name: score.count for score in scores if score.split == split}
