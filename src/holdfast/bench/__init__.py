"""Benchmarks of speed, as ratios within a single run."""
