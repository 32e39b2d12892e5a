"""Datasets from many domains one after another, learned by their classes' names, with zero-shot scores (ZSCL, 2023)."""
