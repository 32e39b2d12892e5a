"""The website: `python -m website OUT` builds it."""
