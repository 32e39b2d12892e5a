"""Runs that calibrate the synthetic data of this benchmark: each dataset alone, on all that a scale has."""

from __future__ import annotations

from holdfast.bench.calibration import ALL, Case


def _upstream(task: str, dataset: str) -> Case:
    whole = {"benchmark.train": ALL, "benchmark.scored": ALL}
    return Case(dataset, "climb", task, order=task, scale="large", settings=whole, own_epochs=False)


def _words(task: str, dataset: str) -> Case:
    whole = {"benchmark.task": task, "benchmark.shots": "100%"}
    return Case(dataset, "climb:lowshot", "score", settings=whole, own_epochs=False)


CALIBRATION = (
    _upstream("vqav2", "vqav2"),
    _upstream("nlvr2", "nlvr2"),
    _upstream("snli-ve", "snli_ve"),
    _upstream("vcr", "vcr"),
    *(_words(task, task.replace("-", "")) for task in ("imdb", "sst-2", "hellaswag", "commonsenseqa", "piqa")),
)
