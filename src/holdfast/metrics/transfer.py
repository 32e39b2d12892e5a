"""Transfer relative to a baseline and to chance, in percent.

From CLiMB (Srinivasan et al., 2022, Table 2). A score S on a task is measured from the task's chance score S_R:
delta = S - S_R. Each measure is the relative change of delta from a baseline B to an algorithm A,

    T = 100 (delta_A - delta_B) / delta_B = 100 (S_A - S_B) / (S_B - S_R),

with the sign reversed for forgetting, so that positive means lost. The measures do not depend on the scale
of the scores (0 to 1, or percent), as long as all three share it.

If the baseline is **at or below chance**, all of them are `Undefined`. At chance the measure divides by zero. Below
chance it would still be a number, but with the wrong sign (an algorithm better than its baseline would show negative
transfer), and the baseline has no knowledge above chance to take a share of.
"""

import math
from typing import SupportsFloat

from holdfast.metrics.arrays import number
from holdfast.metrics.undefined import Undefined


def knowledge_transfer(score: SupportsFloat, direct: SupportsFloat, chance: SupportsFloat) -> float:
    """Upstream knowledge transfer: how much the earlier tasks helped in learning this one, in percent; higher is
    better.

    T_UK(i) = 100 (S_A^i - S_PT^i) / (S_PT^i - S_R^i), where S_A^i is the score right after learning task i in
    the sequence, and S_PT^i (`direct`) is that of the pre-trained model fine-tuned on task i alone
    (Srinivasan et al., 2022, CLiMB, Table 2).

    CLiMB's sequential fine-tuning on NLVR2 (72.66, against 73.07 directly, chance 50), printed as -1.80 from
    unrounded scores:

    >>> round(knowledge_transfer(72.66, direct=73.07, chance=50), 2)
    -1.78
    >>> knowledge_transfer(60, direct=50, chance=50)
    Undefined('the baseline (direct = 50) is not above chance (50)')
    """
    return _relative(score, "score", direct, "direct", chance)


def forgetting_transfer(before: SupportsFloat, after: SupportsFloat, chance: SupportsFloat) -> float:
    """Forgetting of a task through learning later ones, in percent: 0 keeps all, 100 falls to chance; lower is better.

    T_F(j <- i) = 100 (S_A^j - S_A^{j<-i}) / (S_A^j - S_R^j), where `before` is the score on task j right after
    learning it, and `after` is the score after training has continued to task i (Srinivasan et al., 2022, CLiMB, Table
    2). It is negative if later tasks helped, and above 100 if the score fell below chance.

    CLiMB's sequential fine-tuning: VQAv2 right after learning it, and after NLVR2 (printed: 40.97, from unrounded
    scores):

    >>> round(forgetting_transfer(before=67.79, after=40.02, chance=0), 2)
    40.96
    """
    loss = _relative(after, "after", before, "before", chance)
    return loss if isinstance(loss, Undefined) else 0.0 - loss  # 0.0 - x, so that nothing lost is 0.0 and not -0.0


def low_shot_transfer(score: SupportsFloat, direct: SupportsFloat, chance: SupportsFloat) -> float:
    """Low-shot transfer: how much upstream tasks helped in learning from few examples, in percent; higher is better.

    T_LS(i) = 100 (S_A^LS(i) - S_PT^LS(i)) / (S_PT^LS(i) - S_R^i), where both scores come from fine-tuning on the
    same low-shot task: from the upstream checkpoint (`score`), and from the pre-trained model (`direct`)
    (Srinivasan et al., 2022, CLiMB, Table 2).

    >>> low_shot_transfer(0.625, direct=0.75, chance=0.5)
    -50.0
    """
    return _relative(score, "score", direct, "direct", chance)


def _relative(
    score: SupportsFloat, score_name: str, baseline: SupportsFloat, baseline_name: str, chance: SupportsFloat
) -> float:
    score, baseline, floor = number(score, score_name), number(baseline, baseline_name), number(chance, "chance")
    for value in (score, baseline, floor):
        if isinstance(value, Undefined):
            return value
    # A baseline that differs from chance by rounding alone (1/3 against 0.3333333333) is at chance.
    if baseline <= floor or math.isclose(baseline, floor, rel_tol=1e-9, abs_tol=1e-12):
        return Undefined(f"the baseline ({baseline_name} = {baseline:g}) is not above chance ({floor:g})")
    return 100 * (score - baseline) / (baseline - floor)
