"""A store elsewhere: what one machine began another goes on with, and a third finds done."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.cli.carry import follow
from holdfast.errors import RunError, Stopped, UserError
from holdfast.experiments import remote as module
from holdfast.experiments.local import Here, Options, attempt
from holdfast.experiments.plan import graph
from holdfast.experiments.remote import LIGHT, Remote, local_copy
from holdfast.experiments.schedule import carry_out
from holdfast.experiments.setups import Setups
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
    (node,) = plan.configs.values()
    whole, options = Store(tmp_path / "whole"), Options(remote=ADDRESS)
    carry_out(plan, whole, Here(whole, Options(), Setups()))
    first = machine("first")
    outcome = attempt(node, first, options, Setups(), StopAt(5))
    assert outcome.status == "stopped"
    assert Remote(ADDRESS).done() == set()
    second = machine("second")
    seen = []

    class Steps(StopAt):
        def step(self, stage_step, loss):
            seen.append(stage_step)

    assert attempt(node, second, options, Setups(), Steps(0)).status == "done"
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
    result = follow(plan, one, Here(one, options, Setups()), remote=remote)
    assert not result.failed()
    assert remote.done() == set(plan.configs)
    two = machine("two")
    again = follow(plan, two, Here(two, options, Setups()), remote=remote)
    assert again.tries == {}, "all is done"
    (node,) = plan.asked()
    record = two.folder(node.id).record()
    assert record.others == plan.needs[node.id], "completed"
    assert record == one.folder(node.id).record()
    # A run that begins with another's weights finds them there.
    later = replace(request(), start=f"{node.id}@1", seed=3)
    (started,) = graph([later]).configs.values()
    three = machine("three")
    assert attempt(started, three, options, Setups()).status == "done"


def test_what_was_taken_away_there_is_copied_up_again(machine):
    plan = graph([request("replay")])
    here, remote, options = machine("one"), Remote(ADDRESS), Options(remote=ADDRESS)
    follow(plan, here, Here(here, options, Setups()), remote=remote)
    remote.files.rm(remote.root, recursive=True)
    assert remote.done() == set()
    again = follow(plan, here, Here(here, options, Setups()), remote=remote)
    assert again.tries == {}
    assert remote.done() == set(plan.configs)


def test_an_address_that_leads_nowhere_is_told_in_a_sentence():
    with pytest.raises(UserError, match="nothing://here cannot be opened"):
        Remote("nothing://here")


# The lock: on an object store, and on a folder that is named by an address


@pytest.fixture(params=["memory", "file"])
def elsewhere(request, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PAUSE", 0.01)
    if request.param == "file":
        return f"file://{tmp_path}/elsewhere"
    # An object store does one thing at a time to an object; the one in memory looks and writes in two steps.
    files, one = type(Remote(ADDRESS).files), threading.RLock()
    for name in ("pipe_file", "cat_file", "rm_file", "exists"):
        monkeypatch.setattr(files, name, alone(getattr(files, name), one))
    return ADDRESS


def alone(call, one):
    def within(*given, **named):
        with one:
            return call(*given, **named)

    return within


def written(address, **told):
    """A lock as another process left it."""
    remote = Remote(address)
    remote.files.makedirs(f"{remote.root}/run", exist_ok=True)
    remote.files.pipe_file(f"{remote.root}/run/lock", json.dumps(told).encode())


def lock(address, waiting=lambda holder: None, stopping=lambda: False):
    return Remote(address).lock("run", waiting, stopping)


def test_many_ask_for_a_lock_and_one_at_a_time_has_it(elsewhere):
    inside, most, turns = [], [], []

    def work(number):
        with lock(elsewhere):
            inside.append(number)
            most.append(len(inside))
            time.sleep(0.01)
            inside.remove(number)
        turns.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(turns) == list(range(8))
    assert max(most) == 1
    remote = Remote(elsewhere)
    assert not remote.files.exists(f"{remote.root}/run/lock")


def test_who_waits_is_told_who_holds_it_and_may_be_asked_to_stop(elsewhere):
    told = []
    with lock(elsewhere), pytest.raises(Stopped), lock(elsewhere, told.append, lambda: bool(told)):
        pytest.fail("two have it")
    assert told[0].startswith(f"process {os.getpid()} on {socket.gethostname()}, last seen ")


@pytest.mark.thorough  # waits
def test_a_lock_that_is_written_anew_is_held_and_one_that_stands_still_is_nobodys(elsewhere, monkeypatch):
    monkeypatch.setattr(module, "BEAT", 0.02)
    monkeypatch.setattr(module, "STILL", 2.0)
    end = time.monotonic() + 3.0
    with lock(elsewhere), pytest.raises(Stopped), lock(elsewhere, stopping=lambda: time.monotonic() > end):
        pytest.fail("longer than a lock may stand still")
    written(elsewhere, process=1, machine="a machine that burned", seen="yesterday", beats=3)
    began = time.monotonic()
    with lock(elsewhere):
        assert time.monotonic() - began > 2.0


def test_a_lock_that_is_let_go_while_it_is_looked_at_is_waited_for(elsewhere, monkeypatch):
    def held(self, path, text):
        raise FileExistsError(path)

    with monkeypatch.context() as patched:
        patched.setattr(Remote, "_write_new", held)  # and gone when one looks: no reason to give up
        with pytest.raises(Stopped), lock(elsewhere, stopping=lambda: True):
            pytest.fail("another has it")


@pytest.mark.parametrize("times", [2, 3])
def test_a_store_that_refuses_is_asked_again_and_then_told_of(elsewhere, monkeypatch, times):
    refusals, write = [OSError("conflict")] * times, Remote._write_new

    def refused(self, path, text):
        if refusals:
            raise refusals.pop()
        write(self, path, text)

    monkeypatch.setattr(Remote, "_write_new", refused)
    if times == 2:
        with lock(elsewhere):
            assert not refusals
    else:
        with pytest.raises(RunError, match="cannot be written to: conflict"), lock(elsewhere):
            pytest.fail("it was never written")


def test_a_process_of_this_machine_that_has_ended_holds_nothing(elsewhere):
    ended = subprocess.Popen(["/bin/true"])
    ended.wait()
    written(elsewhere, process=ended.pid, machine=socket.gethostname(), seen="now", beats=1)
    with lock(elsewhere, stopping=lambda: True):
        pass


def test_a_lock_that_another_machine_has_taken_is_left_to_it(elsewhere):
    remote = Remote(elsewhere)
    with lock(elsewhere):
        written(elsewhere, process=1, machine="another", seen="now", beats=1)
    assert remote.files.exists(f"{remote.root}/run/lock")


def test_two_machines_make_a_run_once(machine, monkeypatch):
    monkeypatch.setattr(module, "PAUSE", 0.01)
    (node,) = graph([request("replay")]).configs.values()
    options, outcomes, told = Options(remote=ADDRESS), [], []

    class Never(StopAt):
        def step(self, stage_step, loss):
            pytest.fail("the other machine has made it")

    with ExitStack() as held:
        held.enter_context(Remote(ADDRESS).lock(node.id, told.append, lambda: False))
        second = machine("second")
        waiter = threading.Thread(
            target=lambda: outcomes.append(attempt(node, second, options, Setups(), Never(0), told.append))
        )
        waiter.start()
        while not told:
            time.sleep(0.01)
        first = Store(second.path.parent / "first")
        carry_out(graph([request("replay")]), first, Here(first, Options(), Setups()))
        Remote(ADDRESS).up(node.id, first)
        assert not outcomes, "it waits"
    waiter.join()
    assert [outcome.status for outcome in outcomes] == ["done"]
    assert second.folder(node.id).record() == first.folder(node.id).record()
