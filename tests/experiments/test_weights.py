"""The weights of finished runs: those that no run begins with can be dropped, and everything else stays as it is."""

import fcntl
import json
from dataclasses import replace

import pytest

from holdfast.checksums import read_json
from holdfast.engine.files import write_json
from holdfast.errors import UserError
from holdfast.experiments.local import Here, Options
from holdfast.experiments.plan import graph
from holdfast.experiments.request import Request
from holdfast.experiments.schedule import carry_out
from holdfast.experiments.setups import Setups
from holdfast.experiments.store import Store
from holdfast.experiments.weights import drop, weights_of
from smallest import prepare, request, run


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "runs")


def made(store, *requests):
    plan = graph(requests)
    carry_out(plan, store, Here(store, Options(), Setups()))
    return list(plan.wanted)


def test_weights_that_no_run_begins_with_are_dropped_and_records_stay(store):
    first, other = made(store, request(), request("replay"))
    (later,) = made(store, replace(request(), start=f"{first}@2", seed=1))
    found = {each.run.id: each for each in weights_of(store)}
    assert {name: each.needed for name, each in found.items()} == {
        first: f"run {later} starts from them",
        other: "",
        later: "",
    }
    assert all(each.bytes == each.run.weights.stat().st_size for each in found.values())
    before = {name: store.folder(name).record() for name in found}
    assert sorted(each.run.id for each in drop(found.values())) == sorted([other, later])
    assert [name for name in found if store.folder(name).weights.exists()] == [first]
    assert {name: store.folder(name).record() for name in found} == before
    assert [each.run.id for each in weights_of(store)] == [first]


def test_what_is_under_way_or_held_keeps_its_weights_and_checkpoints(store):
    (done,) = made(store, request())
    unfinished = store.folder("0" * 12)
    unfinished.stages.mkdir(parents=True)
    unfinished.checkpoints.mkdir()
    kept = [unfinished.stages / "001.safetensors", unfinished.checkpoints / "0000000001.safetensors"]
    for path in kept:
        path.write_bytes(b"weights")
    (unfinished.path / "config.json").write_text(json.dumps(store.folder(done).config()))
    found = list(weights_of(store))
    assert [each.run.id for each in found] == [done]
    with (store.folder(done).path / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert drop(found) == []
    assert store.folder(done).weights.exists()
    assert all(path.exists() for path in kept)


def test_a_run_whose_measures_want_runs_that_begin_with_it_keeps_its_stages(store):
    (done,) = made(store, request())
    folder = store.folder(done)
    where = read_json(folder.path / "environment.json")
    downstream = Request("climb", scale="tiny", settings={"benchmark.downstream": True}).command()
    write_json(folder.path / "environment.json", where | {"command": downstream})
    (kept,) = weights_of(store)
    assert "needs a run that starts from them" in kept.needed
    folder.stages.mkdir()
    (folder.stages / "001.safetensors").write_bytes(b"weights")
    gone = "holdfast run patterns -a nowhere.py:Gone"
    write_json(folder.path / "environment.json", where | {"command": gone})
    (kept,) = weights_of(store)
    assert kept.needed == "its command cannot be read alone, and it kept weights after its stages"


def test_who_needs_dropped_weights_is_told_how_to_make_them_again(store):
    (first,) = made(store, request())
    drop(weights_of(store))
    start = prepare(replace(request(), start=f"{first}@2"))
    with pytest.raises(UserError, match=f"the weights of run {first} were dropped: delete .*, and repeat it with"):
        run(start, store)
    with pytest.raises(UserError, match=r"holdfast run patterns .* --out"):
        store.folder(first).final_weights()
