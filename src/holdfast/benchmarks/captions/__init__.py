"""Captions of pictures from one domain after another."""
