"""The index of a store: what it changes (how often files are read), and what it must not change (anything else)."""

import json
import time

import pytest

from holdfast.bench.stores import fill
from holdfast.benchmarks import cache
from holdfast.engine.files import write_json
from holdfast.reports import index, runs
from holdfast.reports.runs import load

RUNS = 12


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    store = tmp_path_factory.mktemp("indexed") / "runs"
    fill(store, RUNS, 3)
    return store


@pytest.fixture
def store(written, tmp_path, monkeypatch):
    """A copy of the store, an empty cache, and an index whatever the number of runs."""
    monkeypatch.setenv("HOLDFAST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(index, "LEAST", 1)
    for folder in written.iterdir():
        (tmp_path / "runs" / folder.name).mkdir(parents=True)
        for file in folder.iterdir():
            (tmp_path / "runs" / folder.name / file.name).write_bytes(file.read_bytes())
    return tmp_path / "runs"


@pytest.fixture
def read(monkeypatch):
    """The names of the folders that are read."""
    found, real = [], runs.read_run
    monkeypatch.setattr(runs, "read_run", lambda path: (found.append(path.name), real(path))[1])
    return found


def the_index(store):
    (path,) = (each for each in (store.parent / "cache" / "indexes").iterdir() if not each.name.startswith("."))
    return path


def rewritten(file, change):
    """Replace a file as our writers do, with a right checksum."""
    value = {name: part for name, part in json.loads(file.read_text()).items() if name != "checksum"}
    change(value)
    write_json(file, value)


def test_what_is_read_from_the_index_is_what_is_read_from_the_files(store, read):
    first = load(store)
    assert len(first) == RUNS
    assert sorted(read) == sorted(run.id for run in first)
    read.clear()
    assert list(load(store)) == list(first)
    assert read == []


def test_an_index_that_is_missing_or_of_another_version_is_made_again(store, read):
    first = list(load(store))
    for damage in (lambda path: path.unlink(), lambda path: path.write_bytes(b"[0]\n" + path.read_bytes())):
        damage(the_index(store))
        read.clear()
        assert list(load(store)) == first
        assert len(read) == RUNS
        read.clear()
        assert list(load(store)) == first
        assert read == []


def test_only_a_run_whose_files_changed_is_read_again(store, read):
    changed = load(store)[4]
    read.clear()
    rewritten(changed.path / "record.json", lambda value: value["summary"].update(final_accuracy=0.125))
    assert {run.id: run for run in load(store)}[changed.id].summary["final_accuracy"] == 0.125
    assert read == [changed.id]


def test_a_run_that_breaks_is_broken_though_it_was_indexed(store):
    for number, name in enumerate(index.FILES):
        run = load(store)[number]
        content = bytearray((run.path / name).read_bytes())
        content[len(content) // 2] ^= 1
        (run.path / name).write_bytes(content)
        assert {each.id: each for each in load(store)}[run.id].status == "broken", name


def test_runs_that_come_and_go_do_so_in_the_index(store, read):
    gone = load(store)[0]
    gone.path.rename(store.parent / gone.id)
    assert len(load(store)) == RUNS - 1
    (store.parent / gone.id).rename(gone.path)
    read.clear()
    assert len(load(store)) == RUNS
    assert read == [gone.id]


def test_a_damaged_line_counts_for_nothing(store, read):
    first = list(load(store))
    path = the_index(store)
    lines = path.read_bytes().splitlines()
    lines[3] = lines[3].replace(b'"final_accuracy":0', b'"final_accuracy":7')
    lines[5] = b"\xff" + lines[5][10:]
    path.write_bytes(b"\n".join(lines))
    read.clear()
    assert list(load(store)) == first
    assert len(read) == 2


def test_runs_that_are_links_or_not_finished_are_always_read(store, read, tmp_path):
    linked, unfinished = load(store)[:2]
    (linked.path / "record.json").rename(store / "elsewhere.json")
    (linked.path / "record.json").symlink_to(store / "elsewhere.json")
    (unfinished.path / "record.json").unlink()
    for _ in range(2):
        read.clear()
        assert [run.status for run in load(store)[:2]] == ["done", "stopped"]
        assert sorted(read) == sorted([linked.id, unfinished.id])


def test_a_small_store_has_no_index(store, monkeypatch, tmp_path):
    monkeypatch.setattr(index, "LEAST", RUNS + 1)
    load(store)
    assert not (tmp_path / "cache").exists()


def test_a_cache_that_cannot_be_written_changes_nothing(store, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HOLDFAST_CACHE", str(tmp_path / "file" / "cache"))
    assert len(load(store)) == RUNS


def test_the_cache_knows_the_index(store):
    load(store)
    (entry,) = [each for each in cache.entries() if each.kind == "indexes"]
    assert (entry.state, entry.title) == ("current", f"the index of the store {store}")
    assert time.time() - entry.used < 60
    assert the_index(store) in entry.paths
