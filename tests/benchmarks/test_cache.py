"""The cache: it knows and removes what is no longer needed, and nothing that someone is writing."""

import fcntl
import json
import os
import shutil

import pytest

from cli.inside import inside
from holdfast.benchmarks import cache
from holdfast.benchmarks.source import Source, open_source, place_of
from holdfast.benchmarks.synthetic import world
from holdfast.benchmarks.vocabulary import word_pieces
from holdfast.datasets.sst2 import DATASET


@pytest.fixture(autouse=True)
def root(_own_cache, monkeypatch, tmp_path):
    monkeypatch.setenv("HOLDFAST_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def words(source):
    return word_pieces(source, lambda: (e.text for e in source.examples("dev")))


def states():
    return {(each.kind, each.title): each.state for each in cache.entries()}


def test_what_the_present_code_uses_is_current_and_no_clean_removes_it(root):
    words(open_source("sst2"))
    known = {("world", "sst2 at tiny, seed 0"): "current", ("tables", "sst2: words"): "current"}
    assert states() == known
    assert cache.clean() == []
    found = list(cache.entries())
    files = [path for path in root.rglob("*") if path.is_file() and not path.name.endswith(".lock")]
    assert sum(each.bytes for each in found) == sum(path.stat().st_size for path in files)
    os.utime(root / "world" / ".sst2-tiny-0-v1.about.json", (0, 0))
    before = {each.kind: each.used for each in cache.entries()}["world"]
    world("sst2", "tiny")
    assert {each.kind: each.used for each in cache.entries()}["world"] > before, "looking it up is use"


def test_what_another_version_made_is_unused_and_so_is_what_was_made_of_it(root, monkeypatch):
    words(open_source("sst2"))
    monkeypatch.setattr("holdfast.world.writers.sst2.VERSION", 99)
    reasons = {each.kind: each.why for each in cache.entries()}
    assert reasons["world"] == "holdfast.world.writers.sst2 is at version 99, and this is of version 1"
    assert reasons["tables"].startswith("it was made from sst2-tiny-0-v1, which is no longer needed")
    new = world("sst2", "tiny")
    assert sorted(each.kind for each in cache.clean()) == ["tables", "world"]
    assert states() == {("world", "sst2 at tiny, seed 0"): "current"}
    assert new.is_dir()


def test_a_table_is_unused_once_its_files_changed_but_not_while_they_are_away(root, tmp_path):
    mine = shutil.copytree(world("sst2", "tiny"), tmp_path / "mine")
    words(Source(DATASET, mine))
    shutil.move(mine, tmp_path / "away")
    assert states()["tables", "sst2: words"] == "current"
    shutil.move(tmp_path / "away", mine)
    (mine / "more.txt").touch()
    assert states()["tables", "sst2: words"] == "unused"
    assert cache.clean()[0].why == f"the files in {mine} have changed"
    assert states() == {("world", "sst2 at tiny, seed 0"): "current"}


def test_what_is_half_written_goes_but_not_while_it_is_being_written(root):
    left = root / "world" / ".clevr-tiny-0-v1.part"
    (left / "images").mkdir(parents=True)
    writing = root / "regions" / f".{32 * 'a'}.{os.getppid()}"
    writing.mkdir(parents=True)
    ended = root / "tables" / f".{32 * 'b'}.json.999999999"
    ended.parent.mkdir()
    ended.touch()
    handle = os.open(left, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    assert {(each.kind, each.state) for each in cache.entries()} == {
        ("world", "being written"),
        ("regions", "being written"),
        ("tables", "half-written"),
    }
    assert [each.kind for each in cache.clean(everything=True)] == ["tables"]
    os.close(handle)
    assert [each.kind for each in cache.clean()] == ["world"]
    assert not left.exists()
    assert writing.exists()


def test_a_table_that_is_locked_stays_and_locks_stay(root):
    table = place_of("tables", "some", [open_source("sst2")])
    table.mkdir()
    lock = table.with_name(f".{table.name}.lock")
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert [each.kind for each in cache.clean(everything=True)] == ["world"]
        assert table.is_dir()
    assert [each.kind for each in cache.clean(everything=True)] == ["tables"]
    assert lock.exists()
    assert list(cache.entries()) == []


def test_what_an_earlier_holdfast_made_is_unused_and_copies_of_stores_are_not(root):
    (root / "world" / "clevr-tiny-0-0123456789ab").mkdir(parents=True)
    held = root / "stores" / "0123456789abcdef" / "run" / "lock"
    held.parent.mkdir(parents=True)
    with held.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert sorted(states().values()) == ["being written", "unused"]
        assert [each.why for each in cache.clean(everything=True)] == ["an earlier holdfast made it"]
    assert cache.clean() == []
    assert len(cache.clean(everything=True)) == 1


def test_what_is_not_ours_is_left_alone_whatever_folder_is_named_as_the_cache(root):
    mine = [root / "photos" / "a.jpg", root / "tables" / "prices.csv", root / "world" / "maps" / "north.txt"]
    for path in mine:
        path.parent.mkdir(parents=True)
        path.touch()
    assert cache.clean(everything=True) == []
    assert all(path.exists() for path in mine)


def test_the_command_lists_and_frees(tmp_path, monkeypatch):
    words(open_source("sst2"))
    monkeypatch.setattr("holdfast.data.text.VERSION", 99)
    listed = inside("cache", cwd=tmp_path)
    assert "1 unused: holdfast.data.text is at version 99, and this is of version 1." in listed.stdout
    assert "holdfast cache --clean removes them" in listed.stdout
    rows = json.loads(inside("cache", "--json", cwd=tmp_path).stdout)
    assert {row["kind"]: row["state"] for row in rows} == {"tables": "unused", "world": "current"}
    assert "Freed" in inside("cache", "--clean", cwd=tmp_path).stdout
    assert [row["kind"] for row in json.loads(inside("cache", "--clean", "--all", "--json", cwd=tmp_path).stdout)] == [
        "world"
    ]
    assert "0 B in total" in inside("cache", cwd=tmp_path).stdout
    assert "--all has no effect without --clean" in inside("cache", "--all", cwd=tmp_path).stderr
    assert "no store exists" in inside("cache", "--store", "nowhere", cwd=tmp_path).stderr


def test_the_command_drops_weights_of_a_store(tmp_path):
    out = str(tmp_path / "runs")
    inside("run", "patterns", "--scale", "tiny", "--set", "train.epochs=1", "--out", out, cwd=tmp_path)
    (row,) = json.loads(inside("cache", "--store", out, "--json", cwd=tmp_path).stdout)
    assert (row["algorithm"], row["state"]) == ("finetune", "unused")
    assert "Freed" in inside("cache", "--store", out, "--clean", cwd=tmp_path).stdout
    assert not list((tmp_path / "runs").glob("*/*.safetensors"))
    assert (
        "final_accuracy"
        in inside(
            "run", "patterns", "--scale", "tiny", "--set", "train.epochs=1", "--out", out, "--json", cwd=tmp_path
        ).stdout
    )
