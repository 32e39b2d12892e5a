"""The engine: one loop, and what it stands on."""

VERSION = 1
"""Covers the loop, the learner, schedules, evaluation and ranks: all of this folder but the optimiser."""
