"""The processor time of the commands that read a whole store, on synthetic records.

A few trivial runs are executed. Their records are then copied many times: each copy has another seed and id, scores
that differ a little, and the right checksums, so that every command reads it like the record of a run.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.checksums import sealed
from holdfast.experiments.carry import carry
from holdfast.experiments.local import Options
from holdfast.experiments.plan import graph
from holdfast.experiments.request import Request
from holdfast.experiments.setups import Setups
from holdfast.experiments.store import Record, Store

LIMIT_S = 15.0
"""The target for each command on 10,000 records, in seconds of processor time."""
RECORDS, SEEDS = 10_000, 25
ALGORITHMS = ("finetune", "er", "ewc", "joint")
COMMANDS = ("list", "compare", "report")
NOISE = 0.02
"""The standard deviation of the noise added to a copied score."""


@dataclass(frozen=True)
class StoreReading:
    """The processor time of a command in a new process: the first time, and again."""

    command: str
    records: int
    first_s: float
    again_s: float
    limit_s: float


def reading(records: int = RECORDS, seeds: int = SEEDS) -> Iterator[StoreReading]:
    """Time each command on a store of N records."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "runs"
        fill(store, records, seeds)
        for command in COMMANDS:
            words = {"list": ["list", "runs", "--out", str(store)], "compare": ["compare", str(store)]}
            words["report"] = ["report", str(store), "--out", str(Path(folder) / "page")]
            own = {"HOLDFAST_CACHE": str(Path(folder) / f"cache of {command}")}
            first, again = (_seconds(words[command], own) for _ in range(2))
            yield StoreReading(command, records, first, again, LIMIT_S)


def fill(store: Path, records: int, seeds: int) -> None:
    """Write N records: groups of `seeds` runs that differ in nothing else."""
    models = _models()
    for number in range(records):
        group, seed = divmod(number, seeds)
        _write(store, _copy(models[group % len(models)], group // len(models), seed))


def _models() -> list[Record]:
    """The records of a few trivial runs."""
    with tempfile.TemporaryDirectory() as folder:
        settings = {"train.epochs": 1}
        plan = graph([Request(algorithm=name, scale="tiny", settings=settings) for name in ALGORITHMS])
        return carry(plan, Store(folder), Options(), Setups())


def _copy(record: Record, variant: int, seed: int) -> dict[str, Any]:
    """The record with another learning rate, another seed, and scores that differ accordingly."""
    value: dict[str, Any] = json.loads(json.dumps(record.to_json()))
    rate = 1e-3 * 1.01**variant
    value["config"]["seed"] = seed
    value["config"]["training"] = [{**stage, "learning_rate": rate} for stage in value["config"]["training"]]
    text = json.dumps(value["config"], sort_keys=True)
    value["id"] = hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
    random = np.random.default_rng([variant, seed, *record.algorithm.encode()])
    for score in value["scores"]:
        score["score"] = float(np.clip(score["score"] + NOISE * random.standard_normal(), 0, 1))
    for name, measure in value["summary"].items():
        value["summary"][name] = None if measure is None else measure + NOISE * random.standard_normal()
    words = value["environment"]["command"].split()
    value["environment"]["command"] = " ".join([*words, "--set", f"train.learning_rate={rate!r}", "--seed", str(seed)])
    return value


def _write(store: Path, value: dict[str, Any]) -> None:
    folder = store / value["id"]
    folder.mkdir(parents=True)
    for name, part in (("config", value["config"]), ("environment", value["environment"]), ("record", value)):
        (folder / f"{name}.json").write_text(json.dumps(sealed(part), indent=1) + "\n", encoding="utf-8")


def _seconds(words: Sequence[str], own: Mapping[str, str]) -> float:
    """The processor time of a command."""
    before = os.times()
    subprocess.run(
        [sys.executable, "-m", "holdfast", *words], env=os.environ | own, check=True, stdout=subprocess.DEVNULL
    )
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system
