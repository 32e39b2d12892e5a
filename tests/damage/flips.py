"""Random damage to stored files: what each loader makes of it, and what a whole command makes of it.

`PYTHONPATH=tests python tests/damage/flips.py --flips 1000 --resumes 50` prints the counts of docs/reliability.md.

One flip changes one bit anywhere in a file. A loader must give the same values, refuse the file with an error that a
user can read, or make it anew. A command must end as if nothing had happened, or refuse with a remedy; and where an
older checkpoint is intact, it must recover.
"""

from __future__ import annotations

import argparse
import copy
import logging
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

from holdfast import checksums
from holdfast.benchmarks.source import open_source
from holdfast.benchmarks.vocabulary import word_pieces
from holdfast.checksums import DamagedError
from holdfast.claims.definition import read_claims
from holdfast.claims.evidence import Evidence, to_json
from holdfast.claims.published import dump
from holdfast.claims.published import read as read_evidence
from holdfast.data.features import open_features
from holdfast.data.prepared import prepare
from holdfast.data.regions import open_or_write
from holdfast.engine import checkpoint
from holdfast.errors import RunError, UserError
from holdfast.experiments.request import Request
from holdfast.experiments.start import start_file
from holdfast.experiments.store import Record, ScoreFile, Store
from holdfast.pretraining.features import compute_features
from holdfast.reports import exchange
from holdfast.reports.index import Index, state_of
from holdfast.reports.runs import load
from holdfast.types import Example
from smallest import TRANSFORMER, StopAt, request, run
from smallest import prepare as ready

SAME, REFUSED, ANEW, OTHER, CRASHED = "the same", "refused", "made anew", "DIFFERENT", "TRACEBACK"
GOOD = {SAME, REFUSED, ANEW}


def flip(path: Path, random: np.random.Generator) -> int:
    """Change one bit of a file; where."""
    content = bytearray(path.read_bytes())
    place = int(random.integers(len(content)))
    content[place] ^= 1 << int(random.integers(8))
    path.write_bytes(content)
    checksums._VERIFIED.clear()  # as in a new process
    return place


def alike(a: Any, b: Any) -> bool:
    """Whether two trees of values are the same, bit for bit."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(alike(a[name], b[name]) for name in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    return bool(a == b)


@dataclass(frozen=True)
class Kind:
    """A kind of stored file, and what reads it; `rebuilds` says that damage to it is repaired on the spot."""

    files: tuple[Path, ...]
    load: Callable[[], Any]
    rebuilds: bool = False


FROZEN = request("frozen-encoder", "vit-tiny", **{**TRANSFORMER, "benchmark.stages": 1})
"""A run that reads what its frozen encoder gives."""
TABLE = {"train.epochs": 1, "train.batch_size": 256}
STATE = {
    "position": {"stage": 1, "total": 40, "seconds": 1.5},
    "learner": {"a": torch.randn(40, 5), "b": torch.arange(9), "names": ["x", "y"], "half": torch.randn(7).half()},
    "choice": {"best": -1.0, "weights": None},
}


def with_stages(asked: Request) -> Any:
    """A run that is ready to begin, and keeps its weights after each stage."""
    found = ready(asked)
    return replace(found, setup=replace(found.setup, keep_stages=True))


def stored(folder: Path) -> dict[str, Kind]:
    """A file, or a folder of files, of each kind."""
    store = Store(folder / "store")
    record = run(with_stages(request()), store)
    done = store.folder(record.id)
    log = ScoreFile(done.path, predictions=False)
    checkpoint.write(folder / "state.safetensors", STATE)
    rng = np.random.default_rng(0)
    pictures = [Example(f"{n}", n % 3, (rng.integers(0, 256, (6, 6, 3), np.uint8),)) for n in range(20)]
    regions = [(f"{n}", rng.random((2, 4), np.float32), rng.random((2, 4), np.float32)) for n in range(9)]
    (folder / "images").mkdir()
    prepare("pictures", pictures, folder / "images" / "table", image_size=4)
    maps = folder / "maps.npy"
    compute_features(lambda images: images[:, :1].float() / 255, folder / "images" / "table", maps)
    pieces = open_source("sst2", scale="tiny")

    def table() -> Any:
        found = prepare("pictures", pictures, folder / "table", image_size=4)
        return [found.table.inputs, found.table.targets, found.ids.tolist(), found.fingerprint, found.problems]

    def read_regions() -> Any:
        found = open_or_write(folder / "regions", iter(regions))
        return [found.values, found.boxes, found.counts, found.ids.tolist()]

    def words() -> Any:
        found, longest = word_pieces(pieces, lambda: (e.text for e in pieces.examples("dev")), kept="dev")
        return [found.vocabulary, longest]

    def features() -> Any:
        found = open_features(maps)
        return [found.values, found.ids.tolist()]

    def once() -> Any:
        shutil.rmtree(folder / "once", ignore_errors=True)
        found = run(ready(FROZEN), Store(folder / "once"))
        return [found.id, found.scores, Store(folder / "once").folder(found.id).weights.read_bytes()]

    exported, verdicts = folder / "exported.json", folder / "claims.json"
    exchange.export(load(store.path), exported)
    claims = {claim.name: claim for paper in read_claims() for claim in paper.claims}
    claim = claims["climb/vcr-makes-forget"]
    values = tuple({seed: 5.0 + seed / 100 for seed in range(5)} for _ in claim.contrasts)
    dump([Evidence(claim, "tiny", True, values, runs=("a", "b"), made=("torch 2.9",))], verdicts)
    lines = Index(folder / "lines")
    for each in load(store.path):
        lines.add(each, state_of(each.path))
    lines.save()

    def indexed() -> Any:
        known = Index(folder / "lines").find(done.path, state_of(done.path))
        return known or (done.command(), done.config(), done.record())

    table(), read_regions(), words(), once()
    kept = sorted(path for path in (folder / "cache" / "frozen").iterdir() if path.is_dir())
    (vocabulary,) = [path for path in (folder / "cache" / "tables").glob("*.json") if not path.name.startswith(".")]
    return {
        "checkpoint": Kind((folder / "state.safetensors",), lambda: checkpoint.read(folder / "state.safetensors")),
        "final weights": Kind((done.weights,), lambda: checkpoint.read(done.final_weights())),
        "stage weights": Kind(
            (checkpoint.stage_file(done.stages, 1),), lambda: checkpoint.read(start_file(f"{record.id}@1", store))
        ),
        "score log": Kind((log.path,), log.scores),
        "record": Kind((done.path / "record.json",), done.record),
        "configuration": Kind((done.path / "config.json",), done.config),
        "environment": Kind((done.path / "environment.json",), done.command),
        "prepared table": Kind(files_of(folder / "table"), table, rebuilds=True),
        "region features": Kind(files_of(folder / "regions"), read_regions, rebuilds=True),
        "feature maps": Kind((maps, maps.with_suffix(".id.npy"), maps.with_suffix(".json")), features),
        "frozen layers": Kind(tuple(file for each in kept for file in files_of(each)), once, rebuilds=True),
        "exported results": Kind((exported,), lambda: [each.record for each in exchange.read(exported)]),
        "evidence of claims": Kind((verdicts,), lambda: [to_json(each) for each in read_evidence(verdicts, claims)]),
        "index of a store": Kind((folder / "lines",), indexed, rebuilds=True),
        "vocabulary": Kind((vocabulary, checksums.note_of(vocabulary)), words, rebuilds=True),
    }


def files_of(folder: Path) -> tuple[Path, ...]:
    """All files of a folder."""
    return tuple(sorted(folder.iterdir()))


def try_loader(kind: Kind, times: int, seed: int = 0) -> Counter[str]:
    """Flip a bit of a file, load it, put it back; what came of it."""
    random, found = np.random.default_rng(seed), Counter[str]()
    whole = {path: path.read_bytes() for path in kind.files}
    sizes = np.array([len(content) for content in whole.values()], float)
    expected = copy.deepcopy(kind.load())  # what is mapped would change with its file
    for _ in range(times):
        path = kind.files[random.choice(len(kind.files), p=sizes / sizes.sum())]
        flip(path, random)
        found[outcome(kind, expected)] += 1
        for each, content in whole.items():
            if not each.exists() or each.read_bytes() != content:
                each.write_bytes(content)
        checksums._VERIFIED.clear()
    return found


def outcome(kind: Kind, expected: Any) -> str:
    """What a loader makes of a damaged file."""
    try:
        same = alike(kind.load(), expected)
    except (UserError, RunError, DamagedError):
        return OTHER if kind.rebuilds else REFUSED
    except Exception as error:
        return f"{CRASHED} {type(error).__name__}: {error}"
    return (ANEW if kind.rebuilds else SAME) if same else OTHER


# Whole runs


class KilledAt(StopAt):
    """Ends a run in the middle of a step, as a kill would: nothing is saved."""

    def step(self, stage_step, loss):
        super().step(stage_step, loss)
        if self.stopping:
            raise KeyboardInterrupt


class Resumes:
    """A run that was killed half way, a run that is done, and a run that begins with its weights.

    Of the two checkpoints of the first, one was written before the scores after its first stage, one after them.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked = request("replay")
        self.whole = run(with_stages(self.asked), Store(folder / "whole"))
        self.weights = Store(folder / "whole").folder(self.whole.id).weights.read_bytes()
        self.stopped = Store(folder / "stopped")
        with suppress(KeyboardInterrupt):
            run(ready(self.asked), self.stopped, watch=KilledAt(11), every_steps=4)
        first, last = sorted(self.stopped.folder(self.whole.id).checkpoints.iterdir())
        self.before = checkpoint.read(first)["log"]
        assert 0 < self.before < checkpoint.read(last)["log"]
        shutil.copytree(folder / "whole", folder / "started")
        self.starts = {stage: ready(replace(request(), start=f"{self.whole.id}@{stage}")) for stage in (1, 2)}
        self.started = {stage: run(each, Store(folder / "started")) for stage, each in self.starts.items()}
        self.frozen = run(ready(FROZEN), Store(folder / "cached"))
        self.table = Request("clvqa", scale="tiny", settings=TABLE)
        self.tabled = run(ready(self.table), Store(folder / "cached"))

    def kinds(self) -> dict[str, Callable[[np.random.Generator], str]]:
        """For each kind of file, what damages one and carries out a command that reads it."""
        return {
            "newest checkpoint": lambda random: self.resume("checkpoints", random, recovers=True),
            "older checkpoint": lambda random: self.resume("older", random, recovers=True),
            "score log": lambda random: self.resume("scores.jsonl", random),
            "configuration": lambda random: self.resume("config.json", random, recovers=True),
            "environment": lambda random: self.resume("environment.json", random, recovers=True),
            "record": self.of_done,
            "final weights": lambda random: self.begun(2, random),
            "stage weights": lambda random: self.begun(1, random),
            "prepared table": lambda random: self.of_cache("tables", self.table, self.tabled, random),
            "frozen layers": lambda random: self.of_cache("frozen", FROZEN, self.frozen, random),
        }

    def resume(self, name: str, random: np.random.Generator, recovers: bool = False) -> str:
        """Go on with the stopped run after damage to one of its files."""
        store = self.copy(self.stopped)
        path = store.folder(self.whole.id).path
        if name in ("checkpoints", "older"):
            path = sorted((path / "checkpoints").iterdir())[0 if name == "older" else -1]
        else:
            path /= name
        place = flip(path, random)
        recovers = recovers or (name == "scores.jsonl" and place >= self.before)

        def again() -> bool:
            found = run(ready(self.asked), store)
            same = store.folder(found.id).weights.read_bytes() == self.weights
            return same and found.scores == self.whole.scores and found.summary == self.whole.summary

        return self.ended(again, recovers)

    def of_done(self, random: np.random.Generator) -> str:
        """Ask for a run that is done, whose record is damaged."""
        store = self.copy(Store(self.folder / "whole"))
        flip(store.folder(self.whole.id).path / "record.json", random)
        return self.ended(lambda: alike(run(ready(self.asked), store), self.whole))

    def begun(self, stage: int, random: np.random.Generator) -> str:
        """Begin with the weights of another run after a stage, which are damaged."""
        store = self.copy(Store(self.folder / "whole"))
        flip(start_file(f"{self.whole.id}@{stage}", store), random)
        return self.ended(lambda: run(self.starts[stage], store).scores == self.started[stage].scores)

    def of_cache(self, kind: str, asked: Request, expected: Record, random: np.random.Generator) -> str:
        """Make a run with what the cache holds, which is damaged: it is made again."""
        files = [path for path in (self.folder / "cache" / kind).glob("*/*") if path.is_file()]
        sizes = np.array([path.stat().st_size for path in files], float)
        flip(files[random.choice(len(files), p=sizes / sizes.sum())], random)
        shutil.rmtree(self.folder / "copy", ignore_errors=True)

        def again() -> bool:
            found = run(ready(asked), Store(self.folder / "copy"))
            weights = [Store(self.folder / name).folder(found.id).weights.read_bytes() for name in ("copy", "cached")]
            return found.scores == expected.scores and weights[0] == weights[1]

        return self.ended(again, recovers=True)

    def copy(self, store: Store) -> Store:
        """A store that may be damaged."""
        target = self.folder / "copy"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(store.path, target)
        return Store(target)

    def ended(self, command: Callable[[], bool], recovers: bool = False) -> str:
        """How a command ends."""
        try:
            return SAME if command() else OTHER
        except (UserError, RunError) as error:
            told = any(word in str(error) for word in ("delete", "run again", "run the same command again"))
            return REFUSED if told and not recovers else f"{CRASHED}, not recovered: {error}"
        except Exception as error:
            return f"{CRASHED} {type(error).__name__}: {error}"


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder with a cache of its own."""
    with tempfile.TemporaryDirectory() as name, mock.patch.dict("os.environ", HOLDFAST_CACHE=f"{name}/cache"):
        (Path(name) / "cache").mkdir()
        logging.getLogger("holdfast").setLevel(logging.ERROR)
        yield Path(name)
        logging.getLogger("holdfast").setLevel(logging.NOTSET)


def main() -> None:
    """Print what came of all flips."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--flips", type=int, default=1000)
    parser.add_argument("--resumes", type=int, default=50)
    given = parser.parse_args()
    with scratch() as folder:
        for name, kind in stored(folder).items():
            print(f"loader | {name} | {dict(try_loader(kind, given.flips))}", flush=True)
    with scratch() as folder:
        random = np.random.default_rng(0)
        for name, command in Resumes(folder).kinds().items():
            counts = Counter(command(random) for _ in range(given.resumes))
            print(f"command | {name} | {dict(counts)}", flush=True)


if __name__ == "__main__":
    main()
