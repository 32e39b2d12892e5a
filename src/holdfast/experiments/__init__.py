"""Experiments: configurations, the store of runs, and what carries them out."""
