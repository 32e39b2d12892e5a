"""Power cuts and errors of the disk, at every operation of a run.

`PYTHONPATH=tests python tests/damage/faults.py` prints the counts of docs/reliability.md; it takes half an hour. With
`--points 30` it tries so many operations, drawn at random.

A run is traced once. Then, after each of its operations on files, the power is cut: what the disk may hold is written
to another folder, and the same command is given there. Then each operation in turn fails, once or for ever, and the
same command is given again afterwards. Each time, the run must end with the same bits as the one that nothing happened
to, or refuse with a remedy.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

if __name__ == "__main__":
    from damage.shim import start_again

    start_again()

from cli.inside import inside
from damage import power
from damage.shim import child, read_log

SAME, REFUSED, OTHER, CRASHED = "the same", "refused", "DIFFERENT", "TRACEBACK"
COMMANDS: dict[str, Sequence[str]] = {
    "patterns": ("patterns", "-a", "replay", "--save-steps", "4", "--set", "benchmark.stages=2"),
    "clvqa": ("clvqa", "--set", "train.batch_size=256", "--save-steps", "4"),
}
"""A run, and one that also writes data and prepares tables."""
COMMON = ("--scale", "tiny", "--set", "train.epochs=2", "--no-needs", "-j", "1", "--out", "store")
REMEDIES = ("delete", "run the same command", "make room")


def results(folder: Path) -> Any:
    """What a run came to."""
    (path,) = (folder / "store").glob("*/record.json")
    record = json.loads(path.read_text(encoding="utf-8"))
    weights = path.with_name("model.safetensors").read_bytes()
    return [record["id"], record["scores"], record["summary"], weights.hex()]


def give(name: str, folder: Path) -> Any:
    """Give the command in a folder: its results, or its message."""
    os.environ["HOLDFAST_CACHE"] = str(folder / "cache")
    folder.mkdir(exist_ok=True)
    done = inside("run", *COMMANDS[name], *COMMON, cwd=folder)
    if done.returncode == 0:
        return results(folder)
    told = done.stderr.strip()
    return f"{CRASHED} {told[-2000:]}" if "Traceback" in told or not told else told


def judged(found: Any, expected: Any) -> str:
    """How a command ended."""
    if isinstance(found, list):
        return SAME if found == expected else OTHER
    if found.startswith(CRASHED):
        return found
    return REFUSED if any(word in found for word in REMEDIES) else f"{CRASHED}, without a remedy: {found}"


class Faults:
    """A run that was traced."""

    def __init__(self, name: str, scratch: Path) -> None:
        self.name, self.scratch = name, scratch
        give(name, scratch / "imported")  # so that no child has to import anything
        self.whole = scratch / "whole"
        self.whole.mkdir()
        log = scratch / "log"
        self.expected = child(lambda: give(name, self.whole), self.whole, log)
        assert isinstance(self.expected, list), self.expected
        self.operations = [each for each in read_log(log) if each.what != "read"]
        self.counted = sum(each.what not in ("content", "sync all") for each in self.operations)
        root = str(self.whole)
        there = {str(path): path.read_bytes() if path.is_file() else None for path in self.whole.rglob("*")}
        assert power.replayed(self.operations, self.whole).as_it_is() == {root: None, **there}, "the trace has it all"

    def cut(self, points: int, seed: int = 0) -> dict[str, Counter[str]]:
        """Cut the power after operations: of what was not synced, all is there, none is, or some."""
        random, disk = np.random.default_rng(seed), power.Disk(self.whole)
        chosen = _chosen(random, len(self.operations), points)
        found = {kind: Counter[str]() for kind in ("killed", "only what was synced", "some of the rest")}
        for number, operation in enumerate(self.operations):
            disk.apply(operation)
            if number not in chosen:
                continue
            states = disk.as_it_is(), disk.after_a_cut(None), disk.after_a_cut(random)
            for kind, state in zip(found, states, strict=True):
                folder = self._empty()
                power.write(state, disk.root, folder)
                found[kind][judged(child(lambda folder=folder: give(self.name, folder), folder), self.expected)] += 1
        return found

    def fail(self, points: int, seed: int = 0) -> dict[str, Counter[str]]:
        """Let operations fail; what the command says, and what it comes to when it is given again."""
        random = np.random.default_rng(seed)
        chosen = _chosen(random, self.counted, points)
        found = dict[str, Counter[str]]()
        for kind in ("{}:EIO", "{}:ENOSPC", "{}+:EIO", "{}+:ENOSPC"):
            first, again = Counter[str](), Counter[str]()
            for number in sorted(chosen):
                folder = self._empty()
                job = lambda folder=folder: give(self.name, folder)  # noqa: E731
                told = child(job, folder, fail=kind.format(number + 1))
                first[SAME if told == self.expected else _told(told)] += 1
                again[judged(child(job, folder), self.expected)] += 1
            what = kind.replace("{}", "from one on" if "+" in kind else "one").replace("+", "")
            found |= {f"{what}, then": first, f"{what}, again": again}
        return found

    def _empty(self) -> Path:
        folder = self.scratch / "again"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        return folder


def _told(found: Any) -> str:
    """A message counts as told; a traceback, or a result that is another, does not."""
    if isinstance(found, list):
        return OTHER
    return found if found.startswith(CRASHED) else "told"


def _chosen(random: np.random.Generator, count: int, points: int) -> set[int]:
    return set(random.permutation(count)[: points or count].tolist())


def main() -> None:
    """Print what came of all faults, as JSON lines."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--points", type=int, default=0, help="operations to try; 0: all")
    parser.add_argument("--only", choices=["power", "errors"])
    parser.add_argument("--run", choices=list(COMMANDS), action="append")
    given = parser.parse_args()
    for name in given.run or COMMANDS:
        with tempfile.TemporaryDirectory() as folder:
            faults = Faults(name, Path(folder).resolve())
            for kind, work in (("power", faults.cut), ("errors", faults.fail)):
                if given.only in (None, kind):
                    for how, counts in work(given.points).items():
                        row = {"run": name, "operations": faults.counted, "fault": kind, "how": how, "ended": counts}
                        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
