"""Runs that calibrate this benchmark's synthetic data: each kind of question alone."""

from __future__ import annotations

from holdfast.bench.calibration import CalibrationCase

CALIBRATION = tuple(CalibrationCase(f"clevr, {task}", "clvqa", task, order=task) for task in ("wh", "yn"))
