"""Benchmarks: tasks, streams and protocols. None imports another, or a model, or an algorithm."""
