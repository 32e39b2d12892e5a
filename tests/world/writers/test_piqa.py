from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.world.writers import piqa
from world.writers.written import digests, lines


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("piqa")
    piqa.write(path, "tiny", 3)
    return path


def labels(path: Path) -> str:
    text = path.read_bytes().decode("ascii")
    assert text.endswith("\n")
    return text.replace("\n", "")


def test_the_same_call_writes_the_same_bytes(root: Path, tmp_path: Path) -> None:
    piqa.write(tmp_path / "again", "tiny", 3)
    piqa.write(tmp_path / "other", "tiny", 4)
    assert digests(root) == digests(tmp_path / "again")
    assert digests(root) != digests(tmp_path / "other")


def test_the_owners_files(root: Path) -> None:
    for split, count in (("train", 200), ("valid", 80), ("tests", 40)):
        records = lines(root / f"{split}.jsonl")
        assert len(records) == count
        assert all(list(record) == ["goal", "sol1", "sol2"] for record in records)
        assert all(record["sol1"] != record["sol2"] for record in records)
    assert not (root / "tests-labels.lst").exists()


def test_labels_are_aligned_and_balanced(root: Path) -> None:
    for split, half in (("train", 100), ("valid", 40)):
        given = labels(root / f"{split}-labels.lst")
        assert (given.count("0"), given.count("1"), len(given)) == (half, half, 2 * half)


def test_the_mirror_holds_the_same_under_its_own_names(root: Path) -> None:
    mirror = root / "physicaliqa-train-dev"
    assert {path.name for path in mirror.iterdir()} == {
        *("train.jsonl", "train-labels.lst", "dev.jsonl", "dev-labels.lst"),
    }
    for ours, theirs in (("train", "train"), ("valid", "dev")):
        rows = lines(mirror / f"{theirs}.jsonl")
        assert all(list(row) == ["id", "goal", "sol1", "sol2"] for row in rows)
        assert [{key: row[key] for key in ("goal", "sol1", "sol2")} for row in rows] == lines(root / f"{ours}.jsonl")
        assert labels(mirror / f"{theirs}-labels.lst") == labels(root / f"{ours}-labels.lst")


def test_goals_repeat_and_some_are_one_word(root: Path) -> None:
    goals = [record["goal"] for record in lines(root / "train.jsonl")]
    assert len(set(goals)) < len(goals)
    assert any(len(goal.split()) == 1 for goal in goals)
    assert any(goal != goal.strip() for goal in goals)


def test_labels_point_to_the_solution_that_works(root: Path) -> None:
    # A goal that comes with the same two solutions in either order has the same right one.
    right: dict[tuple[str, frozenset[str]], set[str]] = {}
    for split in ("train", "valid"):
        for record, label in zip(lines(root / f"{split}.jsonl"), labels(root / f"{split}-labels.lst"), strict=True):
            both = (record["sol1"], record["sol2"])
            right.setdefault((record["goal"], frozenset(both)), set()).add(both[int(label)])
    assert all(len(chosen) == 1 for chosen in right.values())
