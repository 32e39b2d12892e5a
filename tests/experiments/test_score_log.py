"""The score log: written at once after each stage, and a kill within that costs no bit of the run's results."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.experiments import store as store_module
from holdfast.experiments.store import Store
from processes import environment
from smallest import prepared, run

ROUNDS = 3  # before the first stage, and after each of two
MOMENTS = [(number, moment) for number in range(ROUNDS) for moment in ("before", "within", "after")]
KILLED = """
import os, signal, sys
from holdfast.experiments.store import ScoreFile, Store
from smallest import prepared, run

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def dying(round, moment):
    def add(self, scores):
        seen.append(self)
        if len(seen) <= round:
            return write(self, scores)
        if moment != "before":
            before = self.size()
            write(self, scores)
        if moment == "within":
            os.truncate(self.path, (before + self.size()) // 2)
        die()
    write, seen = ScoreFile.add, []
    ScoreFile.add = add

for place in sys.argv[1:]:
    if (child := os.fork()) == 0:
        round, moment = os.path.basename(place).split("-")
        dying(int(round), moment)
        run(prepared("replay"), Store(place))
        os._exit(1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_the_scores_of_a_round_are_one_write_and_one_sync(tmp_path, monkeypatch):
    synced, sync = [], os.fsync

    def count(number):
        synced.append(Path(f"/proc/self/fd/{number}").readlink().name)
        sync(number)

    monkeypatch.setattr(store_module.os, "fsync", count)
    record = run(prepared("replay"), Store(tmp_path))
    assert len(record.scores) == 4 * ROUNDS
    assert synced.count("scores.jsonl") == ROUNDS


@pytest.mark.thorough
def test_killed_before_within_or_after_writing_scores_it_resumes_to_the_same_bits(tmp_path):
    whole = run(prepared("replay"), Store(tmp_path / "whole"))
    places = [tmp_path / f"{number}-{moment}" for number, moment in MOMENTS]
    words = [sys.executable, "-c", KILLED, *map(str, places)]
    told = subprocess.run(words, env=environment(), check=True, capture_output=True, text=True).stdout
    assert told.split() == [str(-signal.SIGKILL)] * len(MOMENTS)
    expected = Store(tmp_path / "whole").folder(whole.id)
    for place in places:
        folder = Store(place).folder(whole.id)
        left = (folder.path / "scores.jsonl").read_bytes() if (folder.path / "scores.jsonl").exists() else b""
        assert left.endswith(b"}\n") or "within" in place.name or place.name == "0-before"
        record = run(prepared("replay"), Store(place))
        assert record.scores == whole.scores
        assert (folder.path / "scores.jsonl").read_bytes() == (expected.path / "scores.jsonl").read_bytes()
        assert folder.weights.read_bytes() == expected.weights.read_bytes()
