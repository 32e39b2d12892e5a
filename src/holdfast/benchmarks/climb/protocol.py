"""When tasks are scored, and which measures follow: CLiMB's two transfers, and those of the field at large.

Every task of the order is scored before the first stage and after each. Knowledge transfer T_UK(i) compares the score
on task i right after learning it with that of the same model fine-tuned on it alone; forgetting T_F(j <- i) what was
learned of task j with what is left of it after task i. Both count from chance (see `metrics.transfer`).

One number for a run pools its tasks: what was gained or lost on all of them, over what there was to gain or lose. (A
mean of the tasks' own percentages would be that of the one whose baseline is nearest to chance.)

    T_F = 100 sum_j (S_A^j - S_A^{j<-N}) / sum_j (S_A^j - S_R^j)        over the tasks before the last
    T_UK = 100 sum_i (S_A^i - S_PT^i) / sum_i (S_PT^i - S_R^i)

A task counts where its baseline, S_A^j for T_F and S_PT^i for T_UK, is clearly above chance: S - S_R > 1.96 standard
errors over the test examples. What was not learned cannot be forgotten: a task that scored 48.3 % after its stage,
where guessing scores 50, and 58.3 % later, would cancel what the others lost. Tables over several runs pool the tasks
that count in all of them (see `metrics.pooling`). T_UK asks nothing of S_A: that an algorithm does not learn what
the direct run learns is a transfer of -100 %, and must count.

The scores on each task, ACC, BWT and FWT are no shares, and take all tasks. Of a run that learns only its first stages,
the scores on their tasks alone are given here, and count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from holdfast import metrics
from holdfast.benchmarks.base import Measure, absent, score_matrix
from holdfast.benchmarks.climb.paper import TASKS
from holdfast.metrics.pooling import Share, pool
from holdfast.types import Score

DIRECT, JOINT = "direct/", "joint"
"""The names of the runs that measures need: `direct/vqav2` and so on, and the joint one."""
_FEW = "the low-shot score of the pre-trained encoder"
MEASURES = {
    **{name: Measure(name, higher=True) for name in TASKS},
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
"""What a run's record says of its cost, and the table of runs shows beside the measures."""
DEVIATIONS = 1.96
"""A 95 % interval reaches so many standard errors to each side."""
_ONE_STAGE = "needs one stage for each task, and there are {} for {}"
_DIRECT = "needs the direct runs of all its tasks: run it without --no-needs"
_ALONE = "nothing came before its one task, and plain fine-tuning of that is the direct run itself"


def summary(scores: Sequence[Score], split: str = "test") -> dict[str, float]:
    """The measures of a run alone."""
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
    """What each task adds to T_F, and where the direct runs of all tasks are there, to T_UK."""
    names, _, matrix = score_matrix(scores, split)
    if not set(names) <= set(TASKS):
        return {}
    found: dict[str, dict[str, Share]] = {}
    own, counts = learned(scores, split), _counts(scores, split)
    if matrix.shape[0] == matrix.shape[1] > 1:
        left = dict(zip(names, matrix[-1].tolist(), strict=True))
        found["forgetting_transfer"] = {
            name: share(own[name] - left[name], own[name], counts[name], TASKS[name].chance) for name in names[:-1]
        }
    if own and all(DIRECT + name in others for name in own):
        found["knowledge_transfer"] = {}
        for name, score in own.items():
            log = others[DIRECT + name]
            direct, count = learned(log, split)[name], _counts(log, split)[name]
            found["knowledge_transfer"][name] = share(score - direct, direct, count, TASKS[name].chance)
    return found


def share(change: float, baseline: float, count: int, chance: float) -> Share:
    """What a task adds to a pooled measure, given its baseline over so many examples, and whether that is one.

    >>> share(0.25, 0.75, 1000, 0.5)
    Share(change=0.25, base=0.25, doubt='')
    """
    if change != change or baseline != baseline:
        return Share(0.0, 0.0, "it was not scored")
    doubt = unclear([baseline], [count], chance)
    return Share(change, baseline - chance, doubt.reason if doubt else "")


def learned(scores: Sequence[Score], split: str = "test") -> dict[str, float]:
    """The score on each task right after its stage; where one stage learns all, after that."""
    names, _, matrix = score_matrix(scores, split)
    if not len(matrix):
        return {}
    rows = range(len(names)) if matrix.shape[0] == matrix.shape[1] else [-1] * len(names)
    return {name: float(matrix[row, column]) for column, (name, row) in enumerate(zip(names, rows, strict=True))}


def unclear(baseline: Sequence[float], counts: Sequence[int], chance: float) -> metrics.Undefined | None:
    """Why a sum of scores is no baseline, each over so many examples; None where it is clearly above chance.

    Its 95 % interval must not reach chance. What an example scores lies between 0 and 1, so that the variance is at
    most that of right and wrong.

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
    """T_UK of each task, in percent, where its direct run is among the others and clearly above chance."""
    found: dict[str, float] = {}
    for name, score in learned(scores, split).items():
        if (need := DIRECT + name) not in others:
            found[name] = absent(need)
            continue
        direct, chance = learned(others[need], split)[name], TASKS[name].chance
        found[name] = unclear([direct], [_counts(others[need], split)[name]], chance) or metrics.knowledge_transfer(
            score, direct, chance
        )
    return found


def forgettings(scores: Sequence[Score], split: str = "test") -> dict[tuple[str, str], float]:
    """T_F of each task after each later one, in percent, by both names; undefined where it was not clearly learned."""
    names, _, matrix = score_matrix(scores, split)
    if matrix.shape[0] != matrix.shape[1]:
        return {}
    counts, found = _counts(scores, split), dict[tuple[str, str], float]()
    for j, task in enumerate(names):
        was, chance = float(matrix[j, j]), TASKS[task].chance
        doubt = unclear([was], [counts[task]], chance)
        for i in range(j + 1, len(names)):
            found[task, names[i]] = doubt or metrics.forgetting_transfer(was, matrix[i, j], chance)
    return found


def _counts(scores: Sequence[Score], split: str) -> dict[str, int]:
    """How many examples each task is scored on."""
    return {score.name: score.count for score in scores if score.split == split}
