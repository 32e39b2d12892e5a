"""How soon a run trains: process time to the first step of a second run, and the total time of trivial runs."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from holdfast.experiments.store import Store

LIMIT_S = 2.0
"""The target for the process time until the first step, in seconds."""
WORKERS, SHARE, MORE_S = 2, 1.1, 2.0
"""The target for trivial runs: this multiple of the time that the workers train, plus these seconds."""
RUN = ("--scale", "tiny", "--jobs", "1", "--device", "cpu")
UNTIL_THE_FIRST_STEP = """
import os, time
from holdfast.engine.loop import Loop

def step(*_):
    print(time.process_time(), time.time(), flush=True)
    os._exit(0)

Loop.step = step
from holdfast.cli import main
main()
"""
"""The command line, which ends at the first step and prints its process time, and the time of day."""
TRIVIAL = ("run", "patterns", "--scale", "tiny", "--set", "benchmark.stages=1", "--set", "train.epochs=1")


@dataclass(frozen=True)
class FirstStep:
    """Seconds of process time until the first step of a second run with the same data, in a new process each time."""

    seconds: tuple[float, ...]
    limit_s: float = LIMIT_S


@dataclass(frozen=True)
class FolderStart:
    """Seconds from the command to the first step with a folder of pictures: of the first run, and of a later one."""

    pictures: int
    first_s: float
    later_s: float
    first_limit_s: float = 60.0
    later_limit_s: float = 5.0


@dataclass(frozen=True)
class Trivial:
    """The seconds that a command takes for trivial runs in two workers, and the seconds that the workers train."""

    runs: int
    wall_s: float
    training_s: float
    """The total training time of all runs, divided by the number of workers."""

    @property
    def limit_s(self) -> float:
        """The target."""
        return SHARE * self.training_s + MORE_S


def first_step(benchmark: str, repeats: int = 5) -> FirstStep:
    """Make a run of a benchmark, and start others with its data."""
    with tempfile.TemporaryDirectory() as folder:
        run = ["run", benchmark, *RUN, "--out", f"{folder}/runs"]
        _holdfast(run, folder)
        words = [sys.executable, "-c", UNTIL_THE_FIRST_STEP, *run, "--seed"]
        found = []
        for seed in range(1, repeats + 1):
            done = subprocess.run(
                [*words, str(seed)], env=_own(folder), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
            )
            found.append(float(done.stdout.split()[-2]))
    return FirstStep(tuple(found))


def folder(pictures: int = 10_000) -> FolderStart:
    """Write JPEGs of 320 x 240 pixels in twenty classes, and run the command on them with two algorithms."""
    with tempfile.TemporaryDirectory() as root:
        random = np.random.default_rng(0)
        for number in range(pictures):
            place = Path(root) / f"photos/class{number % 20:02d}"
            place.mkdir(parents=True, exist_ok=True)
            small = Image.fromarray(random.integers(0, 256, (15, 20, 3), np.uint8))
            small.resize((320, 240), Image.Resampling.BICUBIC).save(place / f"{number}.jpg", quality=85)
        run = ["run", "folder", "--data", f"{root}/photos", "--set", "benchmark.stages=5", "--out", f"{root}/runs"]
        found = []
        for algorithm in ("finetune", "er"):
            began = time.time()
            command = [sys.executable, "-c", UNTIL_THE_FIRST_STEP, *run, "-a", algorithm]
            done = subprocess.run(
                command, env=_own(root), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
            )
            found.append(float(done.stdout.split()[-1]) - began)
    return FolderStart(pictures, *found)


def trivial(runs: int = 100) -> Trivial:
    """Make trivial runs with one command."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        _holdfast([*TRIVIAL, "--seeds", str(runs), "--jobs", str(WORKERS), "--out", f"{folder}/runs"], folder)
        wall = time.perf_counter() - began
        records = [run.record() for run in Store(Path(folder) / "runs").runs()]
        training = sum(record.cost["seconds"] for record in records if record is not None)
    return Trivial(runs, wall, training / WORKERS)


def _holdfast(words: Sequence[str], folder: str) -> None:
    command = [sys.executable, "-m", "holdfast", *words]
    subprocess.run(command, env=_own(folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


def _own(folder: str) -> Mapping[str, str]:
    return os.environ | {"HOLDFAST_CACHE": f"{folder}/cache", "OMP_NUM_THREADS": "1"}
