"""No flipped bit changes a result silently, and none ends in a traceback: see flips.py."""

import json
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from cli.inside import inside
from damage.flips import ANEW, GOOD, REFUSED, SAME, Resumes, flip, scratch, stored, try_loader
from holdfast import checksums
from holdfast.experiments.store import Store
from holdfast.experiments.verify import damaged, verify
from smallest import prepared, run


def check_loaders(times):
    with scratch() as folder:
        for name, kind in stored(folder).items():
            found = try_loader(kind, times)
            assert found.keys() <= ({ANEW} if kind.rebuilds else GOOD), f"{name}: {found}"
            assert found[SAME] < times / 100, f"{name}: every bit counts, but for the case of a digit in an escape"


def check_commands(times):
    with scratch() as folder:
        random = np.random.default_rng(0)
        for name, command in Resumes(folder).kinds().items():
            found = Counter(command(random) for _ in range(times))
            assert found.keys() <= {SAME, REFUSED}, f"{name}: {found}"
            if name not in ("score log", "record", "final weights", "stage weights"):
                assert found[SAME] == times, f"{name} is no loss: {found}"


@pytest.mark.thorough
def test_a_few_flips_of_each_kind_of_file():
    check_loaders(25)


@pytest.mark.thorough
def test_a_few_commands_on_damaged_files():
    check_commands(2)


@pytest.mark.slow
def test_a_thousand_flips_of_each_kind_of_file():
    check_loaders(1000)


@pytest.mark.slow
def test_fifty_commands_on_damaged_files_of_each_kind():
    check_commands(50)


def test_verify_names_what_is_damaged_and_what_to_do(tmp_path):
    record = run(prepared(), Store(tmp_path / "store"))
    folder = tmp_path / "store" / record.id
    assert {(each.name, each.state) for each in verify(Store(tmp_path / "store"))} == {
        (name, "intact")
        for name in ("record.json", "config.json", "environment.json", "scores.jsonl", "model.safetensors")
    }
    assert inside("verify", "store", cwd=tmp_path).stdout == "1 runs: 5 files intact\n"
    random = np.random.default_rng(0)
    for name in ("record.json", "scores.jsonl", "model.safetensors"):
        flip(folder / name, random)
    found = {each.name: each for each in damaged(verify(Store(tmp_path / "store")))}
    assert found.keys() == {"record.json", "scores.jsonl", "model.safetensors"}
    assert "repeat it with: holdfast run patterns" in found["record.json"].remedy
    assert found["scores.jsonl"].remedy == "nothing: the record has all scores"
    done = inside("verify", "store", "--json", cwd=tmp_path)
    assert done.returncode == 1
    assert len(json.loads(done.stdout)["damaged"]) == 3
    assert "what to do" in inside("verify", "store", cwd=tmp_path).stdout
    assert "no store exists at gone" in inside("verify", "gone", cwd=tmp_path).stderr


def test_a_store_of_the_first_version_has_no_checksums_and_is_read(tmp_path):
    shutil.copytree(Path(__file__).parents[1] / "golden" / "store-0.1", tmp_path / "old")
    found = verify(Store(tmp_path / "old"))
    assert {each.state for each in found} == {"no checksum"}
    assert len(found) == 10
    assert all(run.record() is not None for run in Store(tmp_path / "old").runs())


def test_a_record_changed_by_hand_is_refused(tmp_path):
    record = run(prepared(), Store(tmp_path))
    path = tmp_path / record.id / "record.json"
    better = json.loads(path.read_text())
    better["summary"]["final_accuracy"] = 0.99
    for changed in (better, {name: value for name, value in better.items() if name != checksums.FIELD}):
        path.write_text(json.dumps(changed))
        done = inside("show", record.id, "--out", tmp_path, cwd=tmp_path)
        assert done.returncode == 2
        assert "changed by hand): delete its folder and run again" in done.stderr
        assert "99" not in inside("compare", tmp_path, cwd=tmp_path).stdout
