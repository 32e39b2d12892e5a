"""A run computes with as many threads as its configuration says, whatever the engine and the caller's own number."""

from dataclasses import replace

import pytest
import torch

import holdfast
from holdfast.errors import UserError
from holdfast.experiments import setups
from holdfast.experiments.config import resolve
from holdfast.experiments.local import devices
from holdfast.experiments.plan import graph
from holdfast.experiments.planfile import from_tables
from holdfast.experiments.request import Request
from holdfast.experiments.setups import Setups
from holdfast.experiments.store import Store
from holdfast.reports.tables import comparison
from smallest import THREADED, prepare

pytestmark = pytest.mark.thorough  # starts processes


@pytest.fixture(autouse=True)
def _two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def weights(store, run):
    return store.folder(run).weights.read_bytes()


def from_python(store, **more):
    return holdfast.run(
        "patterns", model=THREADED.model, scale="tiny", settings=THREADED.settings, out=store.path, **more
    )


def test_the_number_of_the_caller_changes_nothing_and_returns(tmp_path):
    record = from_python(Store(tmp_path / "two"))
    assert torch.get_num_threads() == 2
    torch.set_num_threads(1)
    again = from_python(Store(tmp_path / "one"))
    assert record.environment["threads"] == again.environment["threads"] == 1
    assert weights(Store(tmp_path / "two"), record.id) == weights(Store(tmp_path / "one"), again.id)


def test_another_number_of_threads_is_another_run(tmp_path):
    store = Store(tmp_path)
    one, two = from_python(store), from_python(store, threads=2)
    assert (one.environment["threads"], two.environment["threads"]) == (1, 2)
    assert one.id != two.id
    assert weights(store, one.id) != weights(store, two.id), "so that one id never has two scores"
    assert "threads" not in one.config, "the default is part of no id"
    assert "--threads 2" in two.environment["command"]
    assert prepare(Request.from_command(two.environment["command"])).config.id == two.id
    with pytest.raises(UserError, match="threads"):
        resolve(replace(THREADED, threads=0))


def test_a_frozen_front_sees_its_pictures_with_the_threads_of_the_run(monkeypatch):
    seen = []
    monkeypatch.setattr(setups, "through", lambda setup, front: seen.append(torch.get_num_threads()) or setup)
    found = resolve(Request("clvqa", model="san", scale="tiny"))
    monkeypatch.setattr(type(found.recipe), "front", lambda self: torch.nn.Identity())
    shared = Setups()
    for threads in (1, 2):
        shared.of(replace(found, request=replace(found.request, threads=threads)))
    assert seen == [1, 2]


def test_threads_decide_how_many_runs_go_side_by_side(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda process: set(range(8)))
    assert [len(devices("cpu", threads=threads)) for threads in (1, 2, 3, 16)] == [8, 4, 2, 1]
    requests = from_tables({"experiment": {"algorithm": "finetune", "scale": "tiny", "threads": 2}}, "here")
    assert graph(requests).threads == 2


def test_a_table_of_runs_with_different_threads_says_so(tmp_path):
    store = Store(tmp_path)
    records = [from_python(store), from_python(store, threads=2)]
    grid = comparison(records)
    assert [row[0] for row in grid.rows[:2]] == ["finetune (threads=1)", "finetune (threads=2)"]
    assert grid.notes[-1].startswith("Computed with different numbers of threads, which changes scores (1: finetune")
    assert not any("threads" in note for note in comparison(records[:1]).notes)
