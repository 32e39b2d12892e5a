"""Wh- and yes/no-questions on CLEVR, in either order, with one output layer (Greco et al., 2019)."""
