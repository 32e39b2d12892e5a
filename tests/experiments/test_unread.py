"""A plan that is only told: the same runs as when it is carried out, and not one look at their data."""

import sys
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from holdfast import registry
from holdfast.experiments.config import resolve
from holdfast.experiments.local import Here, Options
from holdfast.experiments.made import made
from holdfast.experiments.plan import graph
from holdfast.experiments.planfile import read_plan, shipped
from holdfast.experiments.request import Request
from holdfast.experiments.schedule import carry_out
from holdfast.experiments.setups import Setups
from holdfast.experiments.store import Store
from smallest import request

sys.path.insert(0, str(Path(__file__).parent))
import chained


@dataclass(frozen=True)
class Filed(chained.Chained):
    """It says that its data lies in files, and whether runs that begin with its weights follow is no part of an id."""

    places = chained.Chained.places | {"later"}

    data: str = ""
    later: bool = True

    def needs(self, title):
        return {name: need for name, need in super().needs(title).items() if self.later or need.after is None}


@pytest.fixture(autouse=True)
def _filed(monkeypatch):
    chained.register(monkeypatch)
    monkeypatch.setitem(registry.BENCHMARKS, "filed", registry.Entry(f"{__name__}:Filed", "for tests"))


def asked(algorithm="replay", **more):
    return replace(request(algorithm, **more), benchmark="filed")


def shape(plan):
    """Each run by its label, with what it needs and begins with."""
    return [
        (
            plan.labels[run],
            {name: plan.labels[other] for name, other in plan.needs[run].items()},
            config.after and plan.labels[config.after],
        )
        for run, config in plan.configs.items()
    ]


def test_it_has_the_runs_of_the_plan_that_is_carried_out_and_looks_at_no_data(monkeypatch):
    requests = [asked(), asked("finetune"), asked("er"), asked(train__epochs=1)]
    expected = graph(requests)

    def never(self, wants):
        raise AssertionError

    monkeypatch.setattr(Filed, "setup", never)
    found = graph(requests, read=False)
    assert shape(found) == shape(expected)
    assert len(found.wanted) == 3
    assert not any(node.settled for node in found.configs.values()), "nor are those known that begin with one of these"
    assert found.configs.keys().isdisjoint(expected.configs)


def test_what_is_drawn_in_memory_has_its_own_id():
    requests = [replace(each, benchmark="chained") for each in (asked(), asked("finetune"))]
    assert list(graph(requests, read=False).configs) == list(graph(requests).configs)


def test_done_is_what_was_made_with_the_same_settings(tmp_path):
    store, real = Store(tmp_path), graph([asked(), asked("finetune")])
    told = graph([asked(), asked("finetune")], read=False)
    assert told.done(store) == set()
    carry_out(real, store, Here(store, Options(), Setups()))
    assert told.done(store) == set(told.configs)
    assert told.done(store) == made(store)
    same = zip(real.configs.items(), told.configs.values(), strict=True)
    late = next((name, twin) for (name, node), twin in same if node.after is not None)
    (store.folder(late[0]).path / "record.json").unlink()
    assert told.done(store) == set(told.configs) - {late[1].id}
    for other in (asked(train__epochs=1), asked(replay__capacity=41), replace(asked(), data="elsewhere")):
        assert graph([other], needs=False, read=False).done(store) == set()


def test_a_record_that_tells_nothing_is_not_done(tmp_path):
    for name, text in (
        ("a", "{}"),
        ("b", "no JSON"),
        ("c", '{"config": {"version": 2}, "environment": {"command": 3}}'),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "record.json").write_text(text)
    for name, command in (("d", "holdfast"), ("e", "holdfast run patterns --start 0123456789ab@1"), ("f", "x y z --q")):
        (tmp_path / name).mkdir()
        record = f'{{"config": {{"version": 2}}, "environment": {{"command": "{command}"}}}}'
        (tmp_path / name / "record.json").write_text(record)
    assert made(Store(tmp_path)) == set()


@pytest.mark.parametrize("name", shipped())
def test_a_command_asks_for_what_the_request_did(name):
    for each in read_plan(name, "paper"):
        given = replace(each, seed=3, skip_bad=2, stages=1, data="a folder", predictions=True, precision="float64")
        again = resolve(Request.from_command(given.command()))
        assert replace(again.request, settings={}) == replace(resolve(given).request, settings={})
        assert again.id == resolve(given).id


@pytest.mark.parametrize("turned", [False, True])
def test_a_run_that_is_asked_for_twice_has_the_needs_of_both(turned):
    requests = [asked(benchmark__later=later) for later in (turned, not turned)]
    for read in (True, False):
        plan = graph(requests, read=read)
        assert len(plan.wanted) == 1
        assert sorted(shape(plan), key=str) == sorted(shape(graph([asked()])), key=str)
        assert list(plan.configs).index(plan.wanted[0]) < min(
            number for number, node in enumerate(plan.configs.values()) if node.after is not None
        )


def test_climbs_recipe_has_each_direct_run_once():
    """Whether low-shot runs follow it or not, a direct run is the same one."""
    plan = graph(read_plan("climb"), read=False)
    direct = [n for n in plan.configs.values() if n.request.benchmark == "climb" and ">" not in n.benchmark.order]
    names = Counter((resolve(node.request).names["model"], node.benchmark.order) for node in direct)
    tasks = ("vqav2", "nlvr2", "snli-ve", "vcr")
    assert names == Counter((m, task) for m in ("vilt-tiny", "uniter-tiny", "vault-tiny") for task in tasks)
    upstream = [n for n in plan.configs.values() if n.request.benchmark == "climb" and ">" in n.benchmark.order]
    models = Counter(resolve(n.request).names["model"] for n in upstream)
    assert models == {"vilt-tiny": 6 + 2, "uniter-tiny": 5, "vault-tiny": 4}
    single = [n for n in plan.configs.values() if n.after in {node.id for node in direct}]
    assert {plan.configs[n.after].benchmark.order for n in single} == set(tasks), "Table 10's rows of one task"


def test_a_run_of_a_file_that_has_changed_since_is_not_done(tmp_path):
    file = tmp_path / "mine.py"
    text = "from dataclasses import dataclass\nfrom holdfast.algorithms.base import Algorithm\n@dataclass\n"
    file.write_text(f"{text}class Mine(Algorithm):\n    pass\n")
    wanted = replace(asked(), algorithm=f"{file}:Mine")
    plan, store = graph([wanted]), Store(tmp_path / "store")
    carry_out(plan, store, Here(store, Options(), Setups()))
    assert resolve(wanted).id in made(store)
    file.write_text(file.read_text() + "# another one\n")
    assert resolve(wanted).id not in made(store)


def test_a_setting_that_only_asks_for_more_runs_is_no_part_of_the_name():
    def named(**settings):
        return resolve(Request("climb", scale="paper", settings=settings)).id

    assert named() == named(**{"benchmark.downstream": True}) != named(**{"train.epochs": 3})
