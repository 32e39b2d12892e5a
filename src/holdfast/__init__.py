"""Continual learning of vision and language, measured."""

from holdfast.version import __version__

__all__ = ["__version__"]
