"""The measures of the patterns: the field's usual ones, on the whole score matrix."""

from __future__ import annotations

from holdfast.benchmarks.base import USUAL

MEASURES = USUAL
