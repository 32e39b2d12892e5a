"""Experiments: configurations, the store of runs, and the code that executes them."""
