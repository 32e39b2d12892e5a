"""The measures: CIDEr-D on each domain, as COCO's script computes it, how much of it is lost, and two other scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from holdfast import metrics
from holdfast.benchmarks.base import USUAL, Benchmark, Measure
from holdfast.types import Score

FURTHER = {"bleu": "BLEU-4", "rouge-l": "ROUGE-L"}
MEASURES = {
    "final_accuracy": replace(USUAL["final_accuracy"], title="final CIDEr", mean_of=()),
    "learning_accuracy": replace(USUAL["learning_accuracy"], title="learning CIDEr", mean_of=()),
    "forgetting": replace(USUAL["forgetting"], relies_on=""),
    "backward_transfer": replace(USUAL["backward_transfer"], relies_on=""),
    **{name: Measure(title, higher=True) for name, title in FURTHER.items()},
}
EPOCHS = {"tiny": 4, "small": 8, "large": 4, "paper": 2}
RATES = {"tiny": 3e-3, "small": 3e-3, "large": 1e-3, "paper": 1e-4}
SIDES = {"tiny": 32, "small": 32, "large": 64, "paper": 224}


def summary(scores: Sequence[Score]) -> dict[str, float]:
    """The measures of a run: the further scores are means over the domains at the end."""
    found = Benchmark.summary(scores)
    last = max((score.stage for score in scores), default=0)
    for name in FURTHER:
        ends = {
            s.name: s.score for s in scores if s.stage == last and s.split == "test" and s.name.endswith(f"/{name}")
        }
        found[name] = metrics.mean(list(ends.values())) if ends else metrics.Undefined("was not measured")
    return found
