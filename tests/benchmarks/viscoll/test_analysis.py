"""The figures as data, and as pictures."""

import dataclasses
import json
import math
from dataclasses import dataclass, field

import pytest

from holdfast.benchmarks.viscoll import analysis
from holdfast.benchmarks.viscoll import commands as cli
from holdfast.benchmarks.viscoll.benchmark import CocoShift
from holdfast.cli.data import show
from holdfast.engine.files import write_json
from holdfast.errors import UserError
from holdfast.experiments.store import Record
from holdfast.types import Score, Wants


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
RUNS = ["000000000100", "000000001000"]
BARS = [(kind, group) for kind in ("verb", "adjective") for group in ("seen", "novel")]


@pytest.fixture
def stream(phrases, pieces, regions, monkeypatch):
    """What the benchmark lays out of the phrases made by hand, in an order."""
    monkeypatch.setattr(CocoShift, "setup", lambda self, wants: self.laid_out(phrases, pieces, regions))
    return lambda order="random": CocoShift(scale="tiny", order=order).setup(Wants(sees="regions"))


@pytest.fixture
def put(tmp_path, stream):
    """Puts a run into the store."""

    def done(run, algorithm, scores=RUN.scores, data=None, **settings):
        benchmark = {"name": "viscoll:coco", "scale": "tiny", "order": "random", "setting": "images", "seed": 0}
        own = {
            "transforms": [],
            "seed": settings.get("seed", 0),
            "data": stream().data.fingerprint() if data is None else data,
            "training": [{"batch_size": 8}],
            "predictions": False,
            "precision": "float32",
            "version": 1,
        }
        model = {"name": "vlbert-tiny"}
        record = Record(
            id=run,
            config={"benchmark": benchmark | settings, "model": model, "algorithms": [algorithm], **own},
            environment={},
            summary={},
            reasons={},
            scores=tuple(scores),
            cost=dict.fromkeys(COST, 1),
        )
        folder = tmp_path / run
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(record.config))
        write_json(folder / "record.json", record.to_json())

    return done


@pytest.fixture
def store(tmp_path, put):
    """A store with two runs that differ in their memory."""
    for capacity in (100, 1000):
        put(f"{capacity:012d}", {"name": "replay", "capacity": capacity})
    return tmp_path


@pytest.fixture
def drawn(monkeypatch):
    """The figures that would have been saved."""
    found = []
    monkeypatch.setattr(cli, "_save", lambda figure, picture, what: found.append(figure))
    return found


def shade(figure, title):
    """The heights of what lies under a panel's curves, from left to right."""
    panel = next(axes for axes in figure.axes if axes.get_title() == title)
    under = next(axes for axes in figure.axes if axes is not panel and axes.bbox.bounds == panel.bbox.bounds)
    (polygon,) = under.collections
    outline = polygon.get_paths()[0].vertices
    # Around the polygon: along its bottom or top, and back.
    heights = {}
    for x, y in outline:
        heights[x] = max(y, heights.get(x, 0))
    return [heights[x] for x in sorted(heights)]


def test_curves_of_several_runs_as_data_and_as_a_picture(store, capsys):
    cli.time(RUNS, store, task="dog", as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert found["dog"]["replay (capacity=1000)"] == {"steps": [10, 20], "values": [2.0, 2.5]}
    for asked in ({}, {"task": "dog"}, {"word": "big dog"}):
        cli.time(RUNS, store, **asked, picture=store / "time.png")
        assert (store / "time.png").read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(UserError, match="'god' was not tested: there are dog"):
        cli.time(RUNS, store, task="god")
    with pytest.raises(UserError, match="--task and --word draw different figures"):
        cli.time(RUNS, store, task="dog", word="big dog")


@pytest.mark.parametrize("order", ["random", "ascending"])
def test_a_task_is_drawn_over_its_density_in_the_stream_of_the_run(order, put, stream, phrases, drawn, tmp_path):
    put("00000000000a", {"name": "gem"}, order=order)
    cli.time(["00000000000a"], tmp_path, task="dog")
    about = [phrases[row].task for row in stream(order).stream.stages[0].train]
    stretches = [[t for i, t in enumerate(about) if i * cli.BINS // len(about) == b] for b in range(cli.BINS)]
    assert shade(drawn[0], "dog") == pytest.approx([each.count("dog") / len(each) for each in stretches])


def test_a_noun_finds_the_task_of_another_name_and_where_there_is_none_a_sentence_says_so(put, drawn, tmp_path, capsys):
    words = [score(f"word/{name}", 10, -1.0) for name in ("big kitten", "big cat", "eat man")]
    put("00000000000a", {"name": "gem"}, [*RUN.scores, *words, *(dataclasses.replace(s, step=20) for s in words)])
    cli.time(["00000000000a"], tmp_path, word="big kitten,big cat,eat man")
    assert shade(drawn[0], "big kitten, over cat") == shade(drawn[0], "big cat")
    assert sum(bool(axes.collections) for axes in drawn[0].axes) == 2
    assert any(axes.get_title() == "eat man (no such task)" for axes in drawn[0].axes)
    assert capsys.readouterr().err == "the stream has no task for 'eat man': its panel has no density\n"
    kitten = [dataclasses.replace(s, name="task/kitten") for s in RUN.scores if s.name == "task/dog"]
    put("00000000000b", {"name": "agem"}, [*RUN.scores, *kitten])
    cli.time(["00000000000b"], tmp_path, task="kitten")  # a task that is tested, and has no training phrase
    assert not any(axes.collections for axes in drawn[1].axes)
    assert capsys.readouterr().err == "the stream has no task for 'kitten': its panel has no density\n"


def test_a_density_is_never_that_of_other_data(put, tmp_path):
    put("00000000000a", {"name": "gem"}, data="another")
    with pytest.raises(UserError, match="the synthetic data is not the data of run 00000000000a: specify its"):
        cli.time(["00000000000a"], tmp_path, task="dog")
    with pytest.raises(UserError, match="photos is not the data of run 00000000000a"):
        cli.time(["00000000000a"], tmp_path, task="dog", data="photos")
    put("00000000000b", {"name": "gem"}, seed=1)
    with pytest.raises(UserError, match="runs 00000000000a, 00000000000b were trained on different data"):
        cli.time(["00000000000a", "00000000000b"], tmp_path)


def test_runs_of_different_streams_have_no_density_in_common(put, drawn, tmp_path, capsys):
    """Where none is drawn, they may stand beside each other, and the legend names their orders."""
    others = [dataclasses.replace(s, score=3.0) if s.name == "learned/dog" else s for s in RUN.scores]
    put("00000000000a", {"name": "gem"})
    put("00000000000b", {"name": "agem"}, others, order="ascending")
    put("00000000000c", {"name": "derpp"}, [s for s in RUN.scores if s.name != "learned/dog"])
    with pytest.raises(UserError, match="'gem, order random' and 'agem, order ascending' were trained on different"):
        cli.time(["00000000000a", "00000000000b"], tmp_path, task="dog")
    cli.time(["00000000000a", "00000000000b"], tmp_path)
    (legend,) = drawn[0].legends
    assert [text.get_text() for text in legend.get_texts()] == ["gem, order random", "agem, order ascending"]
    cli.time(["00000000000c"], tmp_path, task="dog")
    assert not any(axes.collections for axes in drawn[1].axes)
    assert "derpp was not trained on one pass over a stream in its order" in capsys.readouterr().err


def test_bars_of_several_runs(store, monkeypatch, capsys):
    cli.compositions(RUNS, store, as_json=True)
    assert json.loads(capsys.readouterr().out)["replay (capacity=100)"]["verb novel"] == 3.0
    cli.compositions(RUNS, store, picture=store / "bars.png")
    assert (store / "bars.png").stat().st_size > 1000
    monkeypatch.setattr(
        analysis, "compositional", lambda run: [analysis.KindPerplexity(k, g, math.nan, {}) for k, g in BARS]
    )
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
    with pytest.raises(UserError, match="unknown benchmark 'viscoll:coca'"):
        cli.density("coca")
