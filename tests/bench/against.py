"""Time this tree beside an earlier commit of it, in turns on one machine: `python tests/bench/against.py COMMIT WORK`.

Works: `clvqa` and `climb` write the data of these benchmarks at `small`, `stages` trains `patterns` for 100 stages.
Prints seconds of wall and processor time for both trees, and their ratios, as medians over the repetitions.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TREE = Path(__file__).parents[2]
STAGES = ["--scale", "tiny", "--set", "benchmark.stages=100", "--device", "cpu", "-j", "1", "--out", "runs"]
WORKS = {
    "clvqa": ["data", "make", "clevr", "--scale", "small", "--out", "data"],
    "climb": ["data", "make", "vqav2", "nlvr2", "snli-ve", "vcr", "--scale", "small", "--out", "data"],
    "stages": ["run", "patterns", *STAGES],
}


def seconds(tree: Path, words: list[str]) -> tuple[float, float]:
    """The wall and processor time of a command of a tree, with an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        own = {"PYTHONPATH": str(tree / "src"), "HOLDFAST_CACHE": f"{folder}/cache"}
        before, began = os.times(), time.perf_counter()
        command = [sys.executable, "-m", "holdfast", *words]
        subprocess.run(command, cwd=folder, env=os.environ | own, check=True, capture_output=True)
        wall, after = time.perf_counter() - began, os.times()
        return wall, after[2] + after[3] - before[2] - before[3]


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("commit")
    asked.add_argument("work", choices=WORKS)
    asked.add_argument("--repeats", type=int, default=3)
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        earlier = Path(folder) / "tree"
        subprocess.run(["git", "-C", TREE, "worktree", "add", "--detach", earlier, given.commit], check=True)
        try:
            times: dict[Path, list[tuple[float, float]]] = {earlier: [], TREE: []}
            for _ in range(given.repeats):
                for tree, found in times.items():
                    found.append(seconds(tree, WORKS[given.work]))
        finally:
            subprocess.run(["git", "-C", TREE, "worktree", "remove", "--force", earlier], check=True)
    for number, kind in enumerate(("wall", "processor")):
        then, now = ([each[number] for each in found] for found in times.values())
        ratio = statistics.median(one / other for one, other in zip(then, now, strict=True))
        medians = statistics.median(then), statistics.median(now)
        print(f"{given.work}, {kind}: {medians[0]:.2f} s at {given.commit}, {medians[1]:.2f} s here: {ratio:.2f} times")


if __name__ == "__main__":
    main()
