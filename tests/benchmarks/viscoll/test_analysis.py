"""The figures as data, and as pictures."""

import dataclasses
import json
import math
from dataclasses import dataclass, field

import pytest

from holdfast.benchmarks.viscoll import analysis
from holdfast.cli import viscoll as cli
from holdfast.cli.data import show
from holdfast.errors import UserError
from holdfast.experiments.store import Record
from holdfast.types import Score


@dataclass
class Run:
    scores: list[Score]
    config: dict = field(default_factory=dict)


def score(name, step, value, stage=0):
    return Score(stage, step, name, "test", 5, value)


RUN = Run(
    [
        *(score(name, 10, value) for name, value in (("regular", -3.0), ("task/dog", -2.0), ("word/big dog", -1.5))),
        *(score(name, 20, value, 1) for name, value in (("regular", -2.0), ("task/dog", -2.5), ("word/big dog", -1.0))),
        *(
            score(n, 20, v, 1)
            for n, v in (("verb seen/eat dog", -1.0), ("verb novel/eat man", -3.0), ("learned/dog", 7))
        ),
    ]
)


def test_curves_over_time():
    (whole,), (dog,), (word,) = (analysis.over_time(RUN, what) for what in ("all", "task", "word"))
    assert (whole.name, whole.values.tolist(), whole.learned) == ("regular", [3.0, 2.0], None)
    assert (dog.name, dog.steps.tolist(), dog.values.tolist(), dog.learned) == ("dog", [10, 20], [2.0, 2.5], 7)
    assert (word.name, word.values.tolist()) == ("big dog", [1.5, 1.0])


def test_curves_of_several_seeds_are_their_mean():
    other = Run([dataclasses.replace(each, score=each.score - 1) for each in RUN.scores])
    (dog,) = analysis.mean_over_time([RUN, other], "task")
    assert (dog.name, dog.steps.tolist(), dog.values.tolist()) == ("dog", [10, 20], [2.5, 3.0])


def test_bars_of_seen_and_novel_compositions():
    bars = {(bar.kind, bar.group): bar for bar in analysis.compositional(RUN)}
    assert bars["verb", "seen"].value == 1.0
    assert bars["verb", "novel"].each == {"eat man": 3.0}
    assert bars["adjective", "novel"].value != bars["adjective", "novel"].value


COST = ("steps", "seconds", "examples_forward", "examples_backward", "memory_bytes", "parameters")


@pytest.fixture
def store(tmp_path):
    """A store with two runs that differ in their memory."""
    for capacity in (100, 1000):
        algorithm = {"name": "replay", "capacity": capacity}
        benchmark = {"name": "viscoll:coco", "scale": "tiny", "order": "random", "setting": "images", "seed": 0}
        own = {
            "transforms": [],
            "seed": 0,
            "data": "",
            "training": [{"batch_size": 8}],
            "predictions": False,
            "precision": "float32",
            "version": 1,
        }
        record = Record(
            id=f"{capacity:012d}",
            config={"benchmark": benchmark, "model": {"name": "vlbert-tiny"}, "algorithms": [algorithm], **own},
            environment={},
            summary={},
            reasons={},
            scores=tuple(RUN.scores),
            cost=dict.fromkeys(COST, 1),
        )
        folder = tmp_path / record.id
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(record.config))
        (folder / "record.json").write_text(json.dumps(record.to_json()))
    return tmp_path


RUNS = ["000000000100", "000000001000"]
BARS = [(kind, group) for kind in ("verb", "adjective") for group in ("seen", "novel")]


def test_curves_of_several_runs_as_data_and_as_a_picture(store, phrases, monkeypatch, capsys):
    monkeypatch.setattr("holdfast.benchmarks.viscoll.phrases.read_phrases", lambda *a, **k: phrases)
    cli.time(RUNS, store, task="dog", as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert found["dog"]["replay (capacity=1000)"] == {"steps": [10, 20], "values": [2.0, 2.5]}
    for asked in ({}, {"task": "dog"}, {"word": "big dog"}):
        cli.time(RUNS, store, **asked, picture=store / "time.png")
        assert (store / "time.png").read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(UserError, match="'god' is not among what was tested: there are dog"):
        cli.time(RUNS, store, task="god")


def test_bars_of_several_runs(store, monkeypatch, capsys):
    cli.compositions(RUNS, store, as_json=True)
    assert json.loads(capsys.readouterr().out)["replay (capacity=100)"]["verb novel"] == 3.0
    cli.compositions(RUNS, store, picture=store / "bars.png")
    assert (store / "bars.png").stat().st_size > 1000
    monkeypatch.setattr(analysis, "compositional", lambda run: [analysis.Bar(k, g, math.nan, {}) for k, g in BARS])
    with pytest.raises(UserError, match=r"no compositions were held out for replay \(capacity=100\)"):
        cli.compositions(RUNS, store)


def test_the_density_of_a_stream(phrases, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("holdfast.benchmarks.viscoll.phrases.read_phrases", lambda *a, **k: phrases)
    cli.density("coco", scale="tiny", as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"dog", "cat", "bus", "bird", "horse", "boat"}
    assert all(sum(shares) == pytest.approx(1, abs=1e-3) for shares in zip(*found.values(), strict=True))
    show("viscoll:coco", out=tmp_path / "density.png")
    assert (tmp_path / "density.png").stat().st_size > 1000
    with pytest.raises(UserError, match="no benchmark 'viscoll:coca'"):
        cli.density("coca")
