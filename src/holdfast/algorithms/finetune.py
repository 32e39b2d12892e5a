"""Plain fine-tuning: each stage is learned in turn, and nothing is done against forgetting. The usual baseline.

One forward and one backward pass for each batch; it keeps nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.algorithms.base import Algorithm


@dataclass
class Finetune(Algorithm):
    """No algorithm at all, as an object: a run with it is the run of the word `finetune`."""
