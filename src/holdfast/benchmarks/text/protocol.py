"""The measures: those of the field on the matrix of accuracies; the paper's average is the final accuracy."""

from __future__ import annotations

from holdfast.benchmarks.base import USUAL

MEASURES = USUAL
EPOCHS = {"tiny": 8, "small": 8, "large": 4, "paper": 1}
RATES = {"tiny": 3e-3, "small": 3e-3, "large": 1e-3, "paper": 1e-3}
BATCHES = {"tiny": 16, "small": 32, "large": 32, "paper": 64}
"""The paper's eight GPUs had eight examples each."""
