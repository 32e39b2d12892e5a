"""A stream of classes from any reader, built in or one's own."""

from contextlib import redirect_stdout
from io import StringIO

import pytest

from cli.inside import inside
from holdfast.benchmarks.dataset.benchmark import ReadData
from holdfast.benchmarks.synthetic import world
from holdfast.errors import UserError
from holdfast.experiments.request import Request
from holdfast.registry import DATASETS
from holdfast.types import Wants
from smallest import prepare

READER = """
import numpy as np

from holdfast.datasets.base import Dataset
from holdfast.types import Example


def read(folder, split, reading):
    for number, line in enumerate((folder / f"{split}.txt").read_text().split()):
        shade, year = map(int, line.split("-"))
        if shade > 5:
            reading.bad(folder / f"{split}.txt", f"word {number}", "it is no shade")
        else:
            picture = np.full((6, 6, 1), 40 * shade + number % 7, np.uint8)
            yield Example(f"{split}-{number}", shade, (picture,), extra={"year": year})


SHADES = Dataset("shades", ("train", "test", "other"), read)
"""


@pytest.fixture
def word(tmp_path):
    (tmp_path / "readers.py").write_text(READER)
    for split, count in (("train", 60), ("test", 24)):
        (tmp_path / f"{split}.txt").write_text(" ".join(f"{n % 6}-{2000 + n // 6 % 2}" for n in range(count)))
    return f"{tmp_path}/readers.py:SHADES"


def test_the_examples_of_a_reader_of_your_own_are_learned_class_by_class(word, tmp_path):
    setup = ReadData(reader=word, data=str(tmp_path), stages=3, validation=0.0).setup(Wants())
    assert [len(stage.train) for stage in setup.stream.stages] == [20, 20, 20]
    assert [(each.name, len(each.ids)) for each in setup.protocol.evaluations] == [
        ("stage-1", 8),
        ("stage-2", 8),
        ("stage-3", 8),
    ]
    for number, stage in enumerate(setup.stream.stages):
        seen = setup.data.tables[0].inputs["image"][stage.train, 0, 0, 0] // 40
        assert sorted(set(seen.tolist())) == [2 * number, 2 * number + 1]
        assert seen.tolist() == setup.data.targets(stage.train).tolist()


def test_set_up_reads_each_split_once_and_looks_at_the_first_example_once(word, tmp_path):
    readers = tmp_path / "readers.py"
    readers.write_text(readers.read_text().replace("    for number,", "    print('read', split)\n    for number,", 1))
    with redirect_stdout(StringIO()) as out:
        ReadData(reader=word, data=str(tmp_path), stages=6).setup(Wants())
    assert sorted(out.getvalue().split("\n")[:-1]) == ["read test", "read train", "read train"]


def test_stages_may_follow_another_value_of_its_examples(word, tmp_path):
    setup = ReadData(reader=word, data=str(tmp_path), by="year", validation=0.0).setup(Wants())
    assert [(stage.name, len(stage.train)) for stage in setup.stream.stages] == [("2000", 30), ("2001", 30)]
    with pytest.raises(UserError, match="has no 'yaer': did you mean year"):
        ReadData(reader=word, data=str(tmp_path), by="yaer").setup(Wants())


def test_a_built_in_reader_gives_the_same_examples_and_brings_its_own_data(tiny_cache, monkeypatch):
    monkeypatch.setenv("HOLDFAST_CACHE", str(tiny_cache))
    benchmark = ReadData(reader="sst2", stages=1)
    listing, own = benchmark.listing(), DATASETS["sst2"].load()
    assert (benchmark.sees, benchmark.model()) == ("text", "bert-tiny")
    splits = {"train": "train", "dev": "validation"}  # its test split has no labels
    folder = world("sst2", "tiny")
    expected = [
        (each.text, str(each.target), splits[split]) for split in splits for each in own.examples(folder, split)
    ]
    assert list(zip(listing.texts, listing.targets, listing.splits, strict=True)) == expected


def test_it_runs_from_the_command_line_and_an_edited_reader_is_a_new_run(word, tmp_path):
    words = ["run", "dataset", "--data", ".", "--set", "benchmark.reader=readers.py:SHADES", "--model", "perceptron"]
    done = inside(*words, "--set", "train.epochs=1", "-j", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    asked = Request("dataset", model="perceptron", data=str(tmp_path), settings={"benchmark.reader": word})
    first = prepare(asked).config.id
    (tmp_path / "readers.py").write_text(READER + "\nMORE = 1\n")
    assert prepare(asked).config.id != first


def test_bad_records_are_skipped_only_where_that_is_asked_for(word, tmp_path):
    (tmp_path / "test.txt").write_text((tmp_path / "test.txt").read_text() + " 9-2000")
    with pytest.raises(UserError, match="word 24: it is no shade"):
        ReadData(reader=word, data=str(tmp_path)).setup(Wants())
    setup = ReadData(reader=word, data=str(tmp_path), skip_bad=1).setup(Wants())
    assert len(setup.problems) == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "which dataset"),
        ({"reader": "sst"}, "unknown dataset 'sst': did you mean sst2"),
        ({"reader": "{word}"}, "Give the folder of its files: --data FOLDER"),
        ({"reader": "piqa"}, "piqa, .* has choices: write a benchmark for it"),
        ({"reader": "coco"}, "coco has the splits train2014, .*: none is called train or test"),
    ],
)
def test_what_it_cannot_learn_is_said_before_anything_is_trained(settings, message, word, tiny_cache, monkeypatch):
    monkeypatch.setenv("HOLDFAST_CACHE", str(tiny_cache))
    given = {name: value.format(word=word) for name, value in settings.items()}
    with pytest.raises(UserError, match=message):
        ReadData(**given).setup(Wants())


def test_a_folder_without_the_dataset_is_named(tmp_path):
    with pytest.raises(UserError, match=f"{tmp_path} has no example of cifar100 with a class"):
        prepare(Request("dataset", data=tmp_path, settings={"benchmark.reader": "cifar100"}))
