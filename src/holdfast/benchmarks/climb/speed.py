"""Runs that calibrate this benchmark's synthetic data: each dataset alone, with all the data of a scale."""

from __future__ import annotations

from holdfast.bench.calibration import ALL, CalibrationCase


def _upstream(task: str, dataset: str) -> CalibrationCase:
    whole = {"benchmark.train": ALL, "benchmark.scored": ALL}
    return CalibrationCase(dataset, "climb", task, order=task, scale="large", settings=whole, own_epochs=False)


def _words(task: str, dataset: str) -> CalibrationCase:
    whole = {"benchmark.task": task, "benchmark.shots": "100%"}
    return CalibrationCase(dataset, "climb:lowshot", "score", settings=whole, own_epochs=False)


CALIBRATION = (
    _upstream("vqav2", "vqav2"),
    _upstream("nlvr2", "nlvr2"),
    _upstream("snli-ve", "snli_ve"),
    _upstream("vcr", "vcr"),
    *(_words(task, task.replace("-", "")) for task in ("imdb", "sst-2", "hellaswag", "commonsenseqa", "piqa")),
)
