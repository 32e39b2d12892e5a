"""Phrases of captions from a shifting stream without boundaries (VisCOLL: Jin et al., 2020)."""
