"""Algorithms: what changes about plain fine-tuning. One short file each."""
