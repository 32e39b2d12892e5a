"""Your own pictures: what is learned when, which pictures are tested, and what is said of a folder that is wrong."""

import json
import math
import os
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchmarks.pictures import COLOURS, QUICK, domains, draw, photos
from cli.inside import inside
from holdfast import run
from holdfast.benchmarks.folder.benchmark import FolderData
from holdfast.benchmarks.own import inputs, measures
from holdfast.benchmarks.own.layout import in_order, lay_out
from holdfast.benchmarks.own.listing import Listed
from holdfast.data.lazy import ImageFileColumn
from holdfast.errors import UserError
from holdfast.experiments.config import resolve
from holdfast.experiments.request import Request
from holdfast.experiments.setups import Setups
from holdfast.types import Score, Wants


def listed(sizes, **columns):
    """Examples of classes with these sizes."""
    rows = [(name, n) for name, size in sizes.items() for n in range(size)]
    return Listed([f"{name}/{n}" for name, n in rows], [name for name, _ in rows], **columns)


def split_of(layout):
    return dict(zip(layout.listing.ids, layout.split.tolist(), strict=True))


def identity(folder, **settings):
    request = Request("folder", data=str(folder), settings={f"benchmark.{n}": v for n, v in settings.items()})
    return Setups().settle(resolve(request)).id


# Which example is learned when, and which are kept for tests


def test_classes_are_dealt_out_evenly_and_every_picture_is_used_once(tmp_path):
    setup = FolderData(data=str(photos(tmp_path, "ant bee cow dog eel")), stages=2).setup(Wants())
    assert [stage.classes for stage in setup.stream.stages] == [(0, 1, 2), (3, 4)]
    used = [stage.train for stage in setup.stream.stages] + [each.ids for each in setup.protocol.evaluations]
    assert sorted(np.concatenate(used).tolist()) == list(range(100))
    for number, stage in enumerate(setup.stream.stages):
        learned = Counter(setup.data.targets(stage.train).tolist())
        assert learned == dict.fromkeys(stage.classes, 14)
        (tested,) = [e for e in setup.protocol.evaluations if (e.name, e.split) == (stage.name, "test")]
        assert Counter(setup.data.targets(tested.ids).tolist()) == dict.fromkeys(stage.classes, 4), number


def test_the_cut_follows_names_and_not_places():
    sizes = {"a": 50, "b": 30, "c": 7}
    before = split_of(lay_out(listed(sizes), stages=3))
    whole = listed(sizes)
    shuffled = np.random.default_rng(1).permutation(len(whole))
    assert split_of(lay_out(whole.take(shuffled), stages=3)) == before
    # Of a class that grows, at most the last of a split moves; other classes stay as they are.
    after = split_of(lay_out(listed({**sizes, "b": 31}), stages=3))
    moved = [name for name, split in before.items() if after[name] != split]
    assert len(moved) <= 2
    assert all(name.startswith("b/") for name in moved)
    for name, size in sizes.items():
        cut = Counter(split for id, split in before.items() if id.startswith(f"{name}/"))
        assert cut["test"] == round(0.2 * size)


def test_a_group_is_never_in_two_splits_and_the_shares_hold_for_rare_classes():
    random = np.random.default_rng(3)
    groups = [str(g) for g in random.integers(0, 150, 600)]
    targets = [("rare" if int(g) % 10 == 0 else "usual") if n % 2 else "other" for n, g in enumerate(groups)]
    layout = lay_out(Listed([str(n) for n in range(600)], targets, groups=groups), stages=1)
    seen = {}
    for group, split in zip(groups, layout.split.tolist(), strict=True):
        assert seen.setdefault(group, split) == split
    assert 0.15 < (layout.split == "test").mean() < 0.25
    rare = layout.target == layout.classes.index("rare")
    assert set(layout.split[rare].tolist()) == {"train", "validation", "test"}


def test_splits_that_the_data_brings_are_kept():
    given = ["train"] * 8 + ["validation"] * 4
    listing = listed({"a": 6, "b": 6}, splits=given[::2] * 2)
    layout = lay_out(listing, stages=1, validation=0.0)
    assert [{"validation": "test"}.get(s, s) for s in listing.splits] == layout.split.tolist(), "as ImageNet's val"
    three = ["train", "train", "validation", "test", "test", "train"] * 2
    assert lay_out(listed({"a": 6, "b": 6}, splits=three), stages=1).split.tolist() == three
    only = lay_out(listed({"a": 20, "b": 20}, splits=["train"] * 40), stages=1)
    assert Counter(only.split.tolist()) == {"train": 28, "validation": 4, "test": 8}


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("sorted", ["1", "2", "10", "20"]),
        ("20>1>10>2", ["20", "1", "10", "2"]),
        ("10>2", ["10", "2"]),
    ],
)
def test_orders(order, expected):
    layout = lay_out(listed(dict.fromkeys(["10", "2", "1", "20"], 9)), stages=len(expected), order=order)
    first = [layout.classes[layout.target[layout.stage == n][0]] for n in range(len(expected))]
    assert first == expected


def test_random_orders_follow_the_runs_seed_or_one_of_their_own():
    sizes = dict.fromkeys("abcdefgh", 9)

    def order(word, seed):
        layout = lay_out(listed(sizes), stages=8, order=word, seed=seed)
        return [layout.classes[layout.target[layout.stage == n][0]] for n in range(8)]

    assert order("random", 1) != order("random", 2)
    assert order("random-7", 1) == order("random-7", 2) == order("random", 7)


def test_values_share_stages_with_their_neighbours():
    """Each boundary is where a stage is nearest to its share, with a value for each stage at least."""
    years = {"1999": 30, "2001": 30, "2005": 100, "2010": 5, "2011": 35, "2020": 100}
    rows = [year for year, count in years.items() for _ in range(count)]
    names = [f"{n}" for n in range(len(rows))]
    layout = lay_out(Listed(names, ["a", "b"] * 150, values=rows), stages=3)
    assert layout.stages == ("1999 to 2001", "2005 to 2011", "2020")
    assert lay_out(Listed(names, ["a", "b"] * 150, values=rows), stages=6).stages == tuple(years)
    skewed = [value for value, count in {"1": 292, "2": 4, "3": 4}.items() for _ in range(count)]
    every = lay_out(Listed(names, ["a", "b"] * 150, values=skewed), stages=3, test=0.5)
    assert every.stages == ("1", "2", "3")


def test_only_the_most_frequent_classes_are_kept():
    layout = lay_out(listed({"a": 5, "b": 50, "c": 20, "d": 20}), most=3, stages=1)
    assert layout.classes == ("b", "c", "d")
    assert lay_out(listed({"a": 5, "b": 50, "c": 20, "d": 20}), most=2, stages=1).classes == ("b", "c")


def test_names_are_sorted_as_people_do():
    assert in_order({"-1.5", "10", "9"}) == ["-1.5", "9", "10"]
    assert in_order({"2020-10-01", "2020-9-30"}) == ["2020-9-30", "2020-10-01"]
    assert in_order({"b", "A", "a10", "a9"}) == ["A", "a9", "a10", "b"]


def test_a_head_for_each_stage(tmp_path):
    setup = FolderData(data=str(photos(tmp_path)), stages=2, setting="task").setup(Wants())
    assert {name: task.outputs for name, task in setup.tasks.items()} == {"stage-1": 2, "stage-2": 2}
    for stage in setup.stream.stages:
        assert set(setup.data.targets(stage.train).tolist()) == {0, 1}
        (batch,) = setup.data.fetch(stage.train, setup.data.tables[0].targets.device).parts
        assert batch.task == stage.name
        # The colours tell which classes came: those of each row are the ones of its stage.
        means = batch.inputs["image"].float().mean((2, 3)).numpy()
        names = ["ant", "bee"] if stage.name == "stage-1" else ["cow", "dog"]
        nearest = [min(COLOURS, key=lambda n, row=row: np.abs(np.array(COLOURS[n]) - row).sum()) for row in means]
        assert [names[target] for target in batch.targets.tolist()] == nearest


def test_domains_share_one_head(tmp_path):
    setup = FolderData(data=str(domains(tmp_path)), by="domain").setup(Wants())
    assert [stage.name for stage in setup.stream.stages] == ["art", "dusk", "sea"]
    assert [stage.classes for stage in setup.stream.stages] == [None] * 3
    (task,) = setup.tasks.values()
    assert (task.outputs, task.growing) == (2, False)


def test_a_stream_without_boundaries_shows_each_picture_once_and_fades(tmp_path):
    setup = FolderData(data=str(photos(tmp_path, count=60)), stages=4, stream="shift").setup(Wants())
    (stage,) = setup.stream.stages
    assert not setup.stream.boundaries
    assert not stage.training.shuffle
    assert sorted(stage.train.tolist()) == sorted(set(stage.train.tolist()))
    middles = [np.flatnonzero(setup.data.targets(stage.train).numpy() == number).mean() for number in range(4)]
    assert middles == sorted(middles)
    first = np.flatnonzero(setup.data.targets(stage.train).numpy() == 0)
    assert first.max() > len(stage.train) / 4, "it goes on while the second has begun"
    assert setup.protocol.every == round(len(stage.train) / 10 / 10)


# Scores


def test_guessing_scores_what_the_most_frequent_class_does():
    """A learner that always gives one answer scores at most the mean of the chances."""
    from holdfast.benchmarks.own.benchmark import _chance

    by_class = _chance(lay_out(listed({"a": 20, "b": 60, "c": 20}), stages=3), apart=False)
    assert by_class == pytest.approx(dict.fromkeys(["stage-1", "stage-2", "stage-3"], 42 / 70))
    targets = ["yes"] * 30 + ["no"] * 10 + ["no"] * 60
    by_topic = lay_out(
        Listed([str(n) for n in range(100)], targets, values=["x"] * 40 + ["y"] * 60), stages=2, validation=0.0
    )
    assert _chance(by_topic, apart=False) == pytest.approx({"x": 0.75, "y": 1.0})


def test_measures_by_hand():
    rows = [(0.9, 0.1, 0.1), (0.5, 0.8, 0.2), (0.4, 0.6, 0.7)]
    log = [
        Score(stage, 10 * stage, name, split, 5, value if split == "test" else 0.0)
        for stage, row in enumerate(rows, 1)
        for name, value in zip("abc", row, strict=True)
        for split in ("validation", "test")
    ]
    found = measures.summary(log)
    assert found["final_accuracy"] == pytest.approx((0.4 + 0.6 + 0.7) / 3)
    assert found["learning_accuracy"] == pytest.approx((0.9 + 0.8 + 0.7) / 3)
    assert found["average_accuracy"] == pytest.approx((0.9 + 0.65 + 1.7 / 3) / 3)
    assert found["forgetting"] == pytest.approx((0.5 + 0.2) / 2)
    assert found["backward_transfer"] == pytest.approx((-0.5 - 0.2) / 2)
    along = [Score(0, 5, "a", "test", 5, 0.2), Score(0, 5, "b", "test", 5, 0.4)]
    along += [Score(1, 10, "a", "test", 5, 0.6), Score(1, 10, "b", "test", 5, 0.8)]
    found = measures.summary(along)
    assert (found["final_accuracy"], found["average_accuracy"]) == pytest.approx((0.7, 0.5))
    assert math.isnan(found["forgetting"])


@pytest.fixture(scope="module")
def four(tmp_path_factory):
    return photos(tmp_path_factory.mktemp("four"))


def test_what_is_trained_together_is_learned_and_what_comes_after_is_forgotten(four, tmp_path):
    settings = {**QUICK, "train.epochs": 6}
    joint = run("folder", "joint", data=str(four), out=tmp_path, settings=settings)
    finetune = run("folder", "finetune", data=str(four), out=tmp_path, settings=settings)
    assert joint.summary["final_accuracy"] > 0.8
    assert finetune.summary["learning_accuracy"] > 0.8
    assert finetune.summary["forgetting"] > 0.5
    assert "needs one stage" in joint.reasons["forgetting"]
    assert not finetune.environment["world"], "the user's own"
    assert not resolve(Request("folder", settings={"benchmark.data": str(four)})).synthetic


def test_files_are_decoded_by_workers_where_there_are_many(four, tmp_path, monkeypatch):
    decoded = run("folder", data=str(four), out=tmp_path, settings=QUICK)
    monkeypatch.setattr(inputs, "IN_CACHE", 1000)
    setup = FolderData(data=str(four), side=8).setup(Wants())
    (table,) = setup.data.tables
    assert isinstance(table.inputs["image"], ImageFileColumn)
    stays = run("folder", data=str(four), out=tmp_path, settings=QUICK)
    assert [s.score for s in stays.scores] == [s.score for s in decoded.scores]
    assert len(FolderData(data=str(four), side=8, setting="task").setup(Wants()).data.tables) == 2


def test_the_id_follows_pictures_classes_and_cuts_but_not_the_place(tmp_path):
    here = photos(tmp_path / "here", count=10)
    first = identity(here)
    assert identity(here) == first
    shutil.copytree(here, tmp_path / "there")
    assert identity(tmp_path / "there") == first
    (here / "ant/000.png").rename(here / "ant/zzz.png")
    renamed = identity(here)
    assert renamed != first, "the cut follows names"
    draw(here / "bee/001.png", (1, 2, 3), 7)
    painted = identity(here)
    assert painted not in (first, renamed)
    shutil.move(here / "cow/001.png", here / "dog/new.png")
    assert identity(here) not in (first, renamed, painted)
    assert identity(here, stages=4) != identity(here, stages=2)
    assert identity(here, order="random-3") != identity(here)


@pytest.mark.parametrize(
    "changed",
    [
        {"stages": 2},
        {"order": "dog>cow>bee>ant"},
        {"most": 3},
        {"test": 0.3},
        {"validation": 0.3},
        {"side": 9},
        {"setting": "domain"},
        {"stream": "shift"},
        {"seed": 1},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_what_is_learned_follows_each_setting(changed, tmp_path):
    base = {
        "data": str(photos(tmp_path, count=10)),
        "stages": 3,
        "side": 8,
        "order": "random" if "seed" in changed else "sorted",
    }

    def seen(**settings):
        setup = FolderData(**{**base, **settings}).setup(Wants())
        stages = [(stage.train.tolist(), stage.classes, stage.training.shuffle) for stage in setup.stream.stages]
        return (
            stages,
            [each.ids.tolist() for each in setup.protocol.evaluations],
            setup.inputs,
            setup.data.fingerprint(),
        )

    assert seen(**changed) != seen()
    assert seen() == seen()


# What is wrong


def test_one_bad_picture_is_named_and_can_be_skipped(tmp_path):
    folder = photos(tmp_path / "photos", count=10)
    whole = (folder / "ant/003.png").read_bytes()
    (folder / "ant/003.png").write_bytes(whole[:60])
    (folder / "bee/notes.txt").write_text("not a picture")
    with pytest.raises(
        UserError, match=r"bee/notes\.txt: a \.txt file is not a picture: move it elsewhere, or skip it"
    ):
        FolderData(data=str(folder)).setup(Wants(side=8))
    with pytest.raises(UserError, match=r"ant/003\.png cannot be decoded.*leave it out; --skip-bad 1 skips it"):
        FolderData(data=str(folder), skip_bad=1).setup(Wants(side=8))
    record = run("folder", data=str(folder), skip_bad=2, out=tmp_path / "runs", settings=QUICK)
    assert record.dropped == 2
    assert any("003.png" in problem for problem in record.problems)
    (folder / "bee/notes.txt").unlink()
    (folder / "ant/003.png").write_bytes(whole)
    assert run("folder", data=str(folder), out=tmp_path / "runs", settings=QUICK).id != record.id


def leave(folder):
    """What file managers leave, a README, pictures of other kinds, and one without an ending."""
    for name in (".DS_Store", "ant/Thumbs.db", "ant/.hidden.jpg", "README.txt", "ant/desktop.ini"):
        (folder / name).write_bytes(b"")
    Image.new("L", (30, 20), 90).save(folder / "ant" / "grey.JPEG", "JPEG")
    Image.new("RGBA", (9, 9), "red").save(folder / "ant" / "clear.webp")
    Image.new("P", (9, 9)).save(folder / "ant" / "nothing", "GIF")


def test_what_lies_about_does_no_harm(tmp_path):
    before = len(FolderData(data=str(photos(tmp_path, count=6))).listing())
    leave(tmp_path)
    assert len(FolderData(data=str(tmp_path)).listing()) == before + 3
    assert FolderData(data=str(tmp_path)).setup(Wants(side=8)).problems == ()


WRONG = {
    "no folder": (lambda f: None, {"data": "lost"}, "lost: no such folder"),
    "a file": (lambda f: (f / "ant.csv").write_text("x"), {"data": "ant.csv"}, "it is a file"),
    "nothing given": (lambda f: None, {"data": ""}, "which folder.*--data photos"),
    "one class": (lambda f: photos(f, "ant"), {"stages": 1}, "only one class, 'ant'"),
    "empty class": (lambda f: (photos(f) / "yak").mkdir(), {}, "yak: it has no pictures: put some there"),
    "too many stages": (lambda f: photos(f), {"stages": 9}, "4 classes cannot be divided among 9 stages"),
    "one class a head": (lambda f: photos(f), {"stages": 4, "setting": "task"}, "stage 'stage-1' has one class"),
    "loose pictures": (lambda f: draw(photos(f) / "x.png", (1, 2, 3), 1), {}, "x.png lies beside the folders"),
    "loose in domains": (lambda f: photos(f), {"by": "domain"}, "000.png and 19 other pictures lie beside.*by=domain"),
    "domains as classes": (lambda f: domains(f), {}, "art holds folders and no pictures.*benchmark.by=domain"),
    "folder in a class": (lambda f: draw(photos(f) / "ant/in/x.png", (1, 2, 3), 1), {}, "a folder within a class"),
    "twins": (lambda f: photos(f, "ant bee") and (f / "bee").rename(f / "ANT"), {}, "classes 'ANT' and 'ant'"),
    "splits and more": (
        lambda f: [photos(f / s, "ant bee") for s in ("train", "test", "extra")],
        {},
        "'extra' beside them",
    ),
    "only tests": (lambda f: photos(f / "test"), {}, "test examples, and none to train on"),
    "class of tests": (
        lambda f: (photos(f / "train", "ant bee"), photos(f / "test", "ant bee cow")),
        {"stages": 1},
        "class 'cow' has no examples to train on",
    ),
    "too few": (lambda f: photos(f, count=2), {}, "stage 'stage-1' has no test examples"),
    "shares": (lambda f: photos(f), {"test": 0.9, "validation": 0.2}, "leave nothing to train on"),
    "order": (lambda f: photos(f), {"order": "ant>bea"}, "names 'bea', which is no class.*did you mean bee"),
    "order twice": (lambda f: photos(f), {"order": "ant>bee>ant"}, "'ant' twice"),
    "heads in a shift": (lambda f: photos(f), {"stream": "shift", "setting": "task"}, "has no stages to give heads to"),
    "unreadable": (lambda f: (photos(f) / "ant").chmod(0), {}, "ant: it cannot be opened"),
}


@pytest.mark.parametrize("case", WRONG)
def test_each_mistake_has_one_clear_message(case, tmp_path, monkeypatch):
    make, settings, message = WRONG[case]
    folder = tmp_path / "photos"
    folder.mkdir()
    make(folder)
    monkeypatch.chdir(folder)
    if case == "unreadable" and os.access(folder / "ant", os.R_OK):
        pytest.skip("root may read everything")
    with pytest.raises(UserError, match=message):
        FolderData(**{"data": str(folder), **settings}).setup(Wants(side=8))


def test_splits_in_folders(tmp_path):
    for split, count in {"train": 10, "val": 4, "Test": 6}.items():
        photos(tmp_path / split, "ant bee", count)
    setup = FolderData(data=str(tmp_path), stages=1).setup(Wants(side=8))
    assert len(setup.stream.stages[0].train) == 20
    assert {e.split: len(e.ids) for e in setup.protocol.evaluations} == {"validation": 8, "test": 12}


# Commands


def test_from_the_command_to_the_report(tmp_path):
    photos(tmp_path / "photos", count=8)
    words = [w for name, value in QUICK.items() for w in ("--set", f"{name}={value}")]
    made = inside("run", "folder", "--data", "photos", "-a", "er", *words, cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert "final acc." in made.stdout
    assert "learning acc." in made.stdout
    first = inside("run", "folder", "--data", "photos", "--stages", "1", *words, "--json", cwd=tmp_path)
    assert json.loads(first.stdout)[0]["summary"]["final_accuracy"] is not None, first.stderr
    page = inside("report", "--out", "report", cwd=tmp_path)
    assert page.returncode == 0, page.stderr
    text = "".join(path.read_text() for path in Path(tmp_path / "report").rglob("*.html"))
    assert "average acc." in text
    none = inside("run", "folder", cwd=tmp_path)
    assert (none.returncode, "--data photos" in none.stderr) == (2, True)
