"""A store elsewhere: what one machine began another goes on with, and a third finds done."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.cli.carry import follow
from holdfast.errors import UserError
from holdfast.experiments.config import Preparation
from holdfast.experiments.local import Here, Options, attempt
from holdfast.experiments.plan import graph
from holdfast.experiments.remote import LIGHT, Remote, local_copy
from holdfast.experiments.schedule import carry_out
from holdfast.experiments.store import Store
from smallest import StopAt, request

sys.path.insert(0, str(Path(__file__).parent))
import chained
import fsspec

ADDRESS = "memory://bucket/runs"


@pytest.fixture(autouse=True)
def _empty():
    files, root = fsspec.core.url_to_fs(ADDRESS)
    if files.exists(root):
        files.rm(root, recursive=True)


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Be another machine: with a copy of the store of its own."""

    def switch(name):
        monkeypatch.setenv("HOLDFAST_CACHE", str(tmp_path / name))
        return local_copy(ADDRESS)

    return switch


def test_one_machine_goes_on_where_another_stopped_and_the_record_is_the_same(machine, tmp_path):
    plan = graph([request("replay")])
    (node,) = plan.nodes.values()
    whole, options = Store(tmp_path / "whole"), Options(remote=ADDRESS)
    carry_out(plan, whole, Here(whole, Options(), Preparation()))
    first = machine("first")
    outcome = attempt(node.id, node.request, first, options, Preparation(), StopAt(5))
    assert outcome.status == "stopped"
    assert Remote(ADDRESS).done() == set()
    second = machine("second")
    seen = []

    class Steps(StopAt):
        def step(self, stage_step, loss):
            seen.append(stage_step)

    assert attempt(node.id, node.request, second, options, Preparation(), Steps(0)).status == "done"
    assert len(seen) == 12 - 5, "it went on"
    expected, found = whole.folder(node.id), second.folder(node.id)
    assert found.record().scores == expected.record().scores
    assert found.weights.read_bytes() == expected.weights.read_bytes()
    remote = Remote(ADDRESS)
    assert remote.done() == {node.id}
    names = {path.split(f"{node.id}/")[1] for path in remote.files.find(f"{remote.root}/{node.id}")}
    assert names == {*LIGHT, "model.safetensors"}, "no lock, and no checkpoint any more"
    third = machine("third")
    remote.down(node.id, third, LIGHT)
    assert third.folder(node.id).record() == found.record()


def test_a_plan_on_a_store_elsewhere_is_whole_there(machine, monkeypatch):
    chained.register(monkeypatch)
    plan = graph([replace(request("replay"), benchmark="chained")])
    one = machine("one")
    remote, options = Remote(ADDRESS), Options(remote=ADDRESS)
    result = follow(plan, one, Here(one, options, Preparation()), remote=remote)
    assert not result.failed()
    assert remote.done() == set(plan.nodes)
    two = machine("two")
    again = follow(plan, two, Here(two, options, Preparation()), remote=remote)
    assert again.tries == {}, "all is done"
    (node,) = plan.asked()
    record = two.folder(node.id).record()
    assert record.others == dict(node.needs), "completed"
    assert record == one.folder(node.id).record()
    # A run that begins with another's weights finds them there.
    later = replace(request(), start=f"{node.id}@1", seed=3)
    (started,) = graph([later]).nodes.values()
    three = machine("three")
    assert attempt(started.id, later, three, options, Preparation()).status == "done"


def test_an_address_that_leads_nowhere_is_told_in_a_sentence():
    with pytest.raises(UserError, match="there is no way to nothing://here"):
        Remote("nothing://here")
