"""Shares pooled over tasks, and only over tasks whose baseline is clearly above chance.

The transfer or forgetting of one task is a share, 100 change / base, where the base is a score minus that of guessing.
A single number for a run pools its tasks: 100 sum_i change_i / sum_i base_i. A task whose baseline is at chance has
nothing to gain or lose a share of: its base is noise around 0, and its change, of either sign, would cancel what other
tasks lost. Such a task is therefore left out and named. If several runs are compared, a task that is left out of one of
them is left out of all, so that their numbers refer to the same tasks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from holdfast.metrics import Undefined


@dataclass(frozen=True)
class Share:
    """What a task adds to a pooled measure: the change of its score, and the above-chance score to divide it by."""

    change: float
    base: float
    doubt: str = ""
    """Why the base cannot serve as a baseline; empty if it is clearly above chance."""


Shares = Mapping[str, Share]
"""The shares of one measure, by task."""


class Partial(float):
    """A number that leaves something out; `reason` says what."""

    __slots__ = ("reason",)
    reason: str

    def __new__(cls, value: float, reason: str) -> Self:
        """Make the number and keep the reason."""
        result = super().__new__(cls, value)
        result.reason = reason
        return result

    def __getnewargs__(self) -> tuple[float, str]:  # type: ignore[override]  # copies and pickles keep the reason
        return float(self), self.reason

    def __repr__(self) -> str:
        return f"Partial({float(self)!r}, {self.reason!r})"


def pool(shares: Shares, without: Collection[str] = ()) -> float:
    """The pooled measure in percent, over the tasks without a `doubt` and not in `without`.

    >>> pool({"vqav2": Share(0.1, 0.5), "nlvr2": Share(0.1, 0.3)})
    25.0
    >>> pool({"vqav2": Share(0.1, 0.5), "nlvr2": Share(-0.1, -0.02, "at chance")})
    Partial(20.0, 'without nlvr2: at chance')
    """
    kept = {name: share for name, share in shares.items() if not share.doubt and name not in without}
    reasons = [f"{name}: {share.doubt or ELSEWHERE}" for name, share in shares.items() if name not in kept]
    if not kept:
        return Undefined(f"no task counts: {'; '.join(reasons)}" if reasons else "there are no tasks")
    value = 100 * sum(share.change for share in kept.values()) / sum(share.base for share in kept.values())
    return Partial(value, f"without {'; '.join(reasons)}") if reasons else value


ELSEWHERE = "left out of another run of this comparison"


def doubtful(runs: Iterable[Shares]) -> list[str]:
    """The tasks that at least one of several runs leaves out, and that are therefore left out of all.

    >>> doubtful([{"a": Share(0, 0.5), "b": Share(0, 0.0, "at chance")}, {"a": Share(0, 0.5)}])
    ['b']
    """
    return list(dict.fromkeys(name for shares in runs for name, share in shares.items() if share.doubt))
