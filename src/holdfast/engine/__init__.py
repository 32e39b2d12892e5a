"""The engine: the training loop and its supporting parts."""

VERSION = 2
"""Covers the loop, the learner, schedules, evaluation and ranks: everything in this folder except the optimiser."""
