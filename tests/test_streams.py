"""Benchmarks of data that a program has: what may be given, what becomes of it, and that a copy costs nothing."""

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import holdfast
from holdfast import streams
from holdfast.errors import UserError
from holdfast.types import Wants


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HOLDFAST_CACHE", str(tmp_path / "cache"))


def digits(count=80, classes=4, seed=0):
    """Grey pictures whose brightness tells the class."""
    y = np.arange(count) % classes
    noise = np.random.default_rng(seed).integers(0, 40, (count, 8, 6))
    return (noise + 50 * y[:, None, None]).astype(np.uint8), y


def ready(benchmark, wants=None):
    setup = benchmark.setup(wants or Wants())
    (table,) = setup.data.tables
    return setup, table


def test_arrays_keep_their_size_and_their_classes():
    x, y = digits()
    setup, table = ready(streams.from_arrays(x, y, stages=2), Wants(side=64))
    assert setup.inputs.image == (1, 8, 6)
    assert np.array_equal(table.inputs["image"].numpy()[:, 0], x)
    assert table.targets.tolist() == y.tolist()
    assert [stage.classes for stage in setup.stream.stages] == [(0, 1), (2, 3)]
    assert ready(streams.from_arrays(x, y, side=16))[0].inputs.image == (3, 16, 16)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x[..., None],
        lambda x: x[:, None],
        lambda x: x / np.float32(255),
        lambda x: torch.from_numpy(x)[:, None].float() / 255,
        lambda x: torch.from_numpy(x).long(),
        lambda x: list(x),
        lambda x: x.astype(np.float64),
    ],
    ids=["channels last", "channels first", "fractions", "tensor", "integers", "list", "floats"],
)
def test_the_same_pictures_however_they_are_given(make):
    x, y = digits()
    x[0, 0, 0] = 255  # or what looks like fractions of 190 is not what was meant
    expected = streams.from_arrays(x, y)
    found = streams.from_arrays(make(x), torch.from_numpy(y))
    assert found == expected
    assert ready(found)[0].data.fingerprint() == ready(expected)[0].data.fingerprint()


def test_pairs_of_a_dataset_of_torch_a_list_and_rows_of_hugging_face():
    x, y = digits()
    tensors = torch.utils.data.TensorDataset(torch.from_numpy(x)[:, None], torch.from_numpy(y))
    pairs = list(zip(x, y.tolist(), strict=True))
    rows = [{"img": Image.fromarray(picture), "label": int(label)} for picture, label in pairs]
    first = streams.from_dataset(pairs, stages=2)
    assert streams.from_dataset(tensors, stages=2) == first
    assert streams.from_dataset((pair for pair in pairs), stages=2) == first
    setup, table = ready(streams.from_dataset(rows, image="img", stages=2))
    assert setup.inputs.image == (3, 8, 6), "Pillow's pictures become RGB"
    assert np.array_equal(table.inputs["image"][:, 1].numpy(), x)


def test_values_texts_and_both(tmp_path):
    x, y = digits()
    words = [f"what is number {label} here, in picture {n}" for n, label in enumerate(y)]
    moods = ["day" if n < 40 else "night" for n in range(80)]
    setup, table = ready(streams.from_arrays((x, words), y, by=moods))
    assert [stage.name for stage in setup.stream.stages] == ["day", "night"]
    assert set(table.inputs) == {"image", "text", "text_length"}
    items = [((picture, said), label) for picture, said, label in zip(x, words, y, strict=True)]
    by_place = dict(zip(map(id, items), moods, strict=True))
    assert streams.from_dataset(items, by=lambda item: by_place[id(item)]) == streams.from_arrays(
        (x, words), y, by=moods
    )
    assert ready(streams.from_arrays(words, y))[0].inputs.image is None
    files = []
    for number, picture in enumerate(x):
        Image.fromarray(picture).save(tmp_path / f"{number}.png")
        files.append((tmp_path / f"{number}.png", y[number]))
    assert ready(streams.from_dataset(files, side=8))[0].inputs.image == (3, 8, 8)


def test_pictures_of_several_sizes_come_to_the_models(tmp_path):
    pictures = [np.full((4 + n % 3, 5, 3), 10 * n, np.uint8) for n in range(20)]
    setup, table = ready(streams.from_dataset([(p, n % 2) for n, p in enumerate(pictures)], stages=1), Wants(side=12))
    assert setup.inputs.image == (3, 12, 12)
    assert [int(v) for v in table.inputs["image"][:, 0, 0, 0]] == [10 * n for n in range(20)]


def test_tests_that_are_given():
    x, y = digits()
    more, answers = digits(20, seed=5)
    setup, _ = ready(streams.from_arrays(x, y, test=(more, answers), stages=2, validation=0.25))
    sizes = {(e.name, e.split): len(e.ids) for e in setup.protocol.evaluations}
    assert sizes == {(f"stage-{n}", split): 10 for n in (1, 2) for split in ("validation", "test")}
    again = streams.from_dataset(list(zip(x, y, strict=True)), test=list(zip(more, answers, strict=True)), stages=2)
    assert again.held == streams.from_arrays(x, y, test=(more, answers)).held
    assert sum(len(e.ids) for e in ready(streams.from_arrays(x, y, test=0.5))[0].protocol.evaluations) == 48


def test_equal_pictures_are_in_one_split_and_the_cut_follows_content():
    x, y = digits(40)
    layout, _ = streams.from_arrays(np.concatenate([x, x]), np.concatenate([y, y]), stages=2)._layout()
    assert layout.split[:40].tolist() == layout.split[40:].tolist()
    turned, _ = streams.from_arrays(x[::-1], y[::-1], stages=2)._layout()
    whole, _ = streams.from_arrays(x, y, stages=2)._layout()
    assert turned.split[::-1].tolist() == whole.split.tolist()


def test_a_copy_costs_nothing_and_travels():
    import cloudpickle

    x, y = digits()
    benchmark = streams.from_arrays(x, y, stages=2, order="random-3")
    assert copy.deepcopy(benchmark).held is benchmark.held
    there = pickle.loads(cloudpickle.dumps(benchmark))
    assert there == benchmark
    assert hash(there) == hash(benchmark)
    assert there.setup(Wants()).data.fingerprint() == benchmark.setup(Wants()).data.fingerprint()
    x[0] += 1
    other = streams.from_arrays(x, y, stages=2, order="random-3")
    assert other != benchmark
    assert len(repr(benchmark)) < 400, "its repr is not a list of pixels"


def test_folders_and_tables_are_the_benchmarks_of_the_command_line():
    folder = streams.from_folder(Path("photos"), by="domain", setting="task", skip_bad=3)
    assert (folder.data, folder.by, folder.setting, folder.skip_bad) == ("photos", "domain", "task", 3)
    table = streams.from_table("qa.csv", text="question", target="answer", most="20")
    assert (table.text, table.target, table.most) == ("question", "answer", 20)


TINY = {"model.width": 16, "train.epochs": 20, "train.batch_size": 16, "train.learning_rate": 3e-3}


def test_runs_learn_what_a_program_gives(tmp_path):
    x, y = digits()
    benchmark = holdfast.streams.from_arrays(x, y, stages=2)
    record = holdfast.run(benchmark, "joint", model="perceptron", out=tmp_path, settings=TINY)
    assert record.summary["final_accuracy"] > 0.6
    assert not record.environment["world"]
    again = holdfast.run(
        holdfast.streams.from_arrays(x, y, stages=2), "joint", model="perceptron", out=tmp_path, settings=TINY
    )
    assert again.id == record.id
    x[3, 2, 1] ^= 128
    changed = holdfast.plan(
        holdfast.streams.from_arrays(x, y, stages=2), "joint", model="perceptron", out=tmp_path, settings=TINY
    )
    assert changed.ids != [record.id]


@pytest.mark.slow
def test_two_runs_at_once_of_arrays_and_of_a_folder(tmp_path):
    x, y = digits()
    for number, (picture, label) in enumerate(zip(x, y, strict=True)):
        (tmp_path / f"photos/{label}").mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(tmp_path / f"photos/{label}/{number}.png")
    for benchmark in (streams.from_arrays(x, y, stages=2), streams.from_folder(tmp_path / "photos", stages=2, side=8)):
        words = {"model": "perceptron", "jobs": 2, "out": tmp_path / "runs", "settings": TINY}
        runs = holdfast.run(benchmark, ["finetune", "er"], seeds=2, **words)
        assert len(runs.records) == 4


X, Y = digits()
WRONG = {
    "a setting": (
        lambda: streams.from_folder("photos", stage=3),
        r"from_folder\(\) takes no 'stage': did you mean sta",
    ),
    "a type": (lambda: streams.from_folder("photos", stages="many"), "stages is 'many': it must be a whole number"),
    "the seed": (lambda: streams.from_arrays(X, Y, seed=1), "takes no 'seed'"),
    "lengths": (lambda: streams.from_arrays(X, Y[:-1]), "x has 80 examples and y 79: give one for each"),
    "normalised": (lambda: streams.from_arrays((X - 100.0) / 50, Y), "values from -2 .*Models normalise pixels"),
    "vectors": (lambda: streams.from_arrays(X.reshape(80, -1), Y), r"x has shape \(80, 48\): give pictures"),
    "continuous": (lambda: streams.from_arrays(X, Y / 3), "example 1: 0.33.* is not a class"),
    "one-hot": (
        lambda: streams.from_arrays(X, np.eye(4)[Y]),
        "example 0: an object of the class ndarray is not a class",
    ),
    "objects": (lambda: streams.from_arrays(np.array([object()] * 80), Y), "x holds no pictures"),
    "test": (lambda: streams.from_arrays(X, Y, test=(X,)), r"test must be a tuple \(x, y\)"),
    "no pairs": (lambda: streams.from_dataset(list(X)), "is not a class|not a pair"),
    "a number": (lambda: streams.from_dataset(7), "class int is not a sequence of"),
    "numbers": (lambda: streams.from_dataset([1, 2]), "train example 0 is not a pair of an input and a target"),
    "columns": (lambda: streams.from_dataset([{"a": 1, "label": 2}]), "say image= or text=.* it has a, label"),
    "a column": (lambda: streams.from_dataset([{"img": X[0], "label": 2}], image="image"), "no column 'image'.*img"),
    "by of pairs": (lambda: streams.from_dataset([("a", 1)], by="mood"), "a pair, without columns: give a function"),
    "nothing": (lambda: streams.from_dataset([]), "there are no examples"),
    "mixed": (lambda: streams.from_dataset([("a", 1), (X[0], 1)]), "1 of 2 examples have a picture"),
    "channels": (lambda: streams.from_dataset([(np.zeros((7, 7, 7), np.uint8), 1)]), r"shape \(7, 7, 7\)"),
}


@pytest.mark.parametrize("case", WRONG)
def test_each_mistake_has_one_clear_message(case):
    call, message = WRONG[case]
    with pytest.raises(UserError, match=message):
        call()
