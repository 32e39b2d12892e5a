"""A benchmark whose runs need others: a direct run of each stage, and one that begins with the weights of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast import registry
from holdfast.benchmarks.base import Need, Setup, absent
from holdfast.benchmarks.patterns.benchmark import Patterns
from holdfast.types import Score, Wants

NAME = "chained"


@dataclass(frozen=True)
class Chained(Patterns):
    def needs(self, title: str) -> Mapping[str, Need]:
        alone = {"joint": Need({"algorithm": "joint"})}
        if title == "joint":
            return alone
        later = {"benchmark": "patterns", "algorithm": "finetune", "settings": {"benchmark.stages": 1}}
        return alone | {f"after {n}": Need(later, after=n) for n in range(1, self.stages + 1)}

    def setup(self, wants: Wants) -> Setup:
        return replace(super().setup(wants), keep_stages=True)

    @staticmethod
    def relative(scores: Sequence[Score], others: Mapping[str, Sequence[Score]]) -> dict[str, float]:
        found = {name: log[-1].score for name, log in others.items()}
        return {f"last of {name}": found.get(name, absent(name)) for name in ("joint", "after 1", "after 2")}


def register(patch) -> None:
    """Make it known for a test."""
    patch.setitem(registry.BENCHMARKS, NAME, registry.Entry(f"{__name__}:Chained", "for tests"))
