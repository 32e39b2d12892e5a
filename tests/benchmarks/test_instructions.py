"""Instructions with pictures: tasks, answers, pictures and scores, in the layouts of CoIN and UCIT."""

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
import torch

from holdfast.benchmarks.instructions import protocol
from holdfast.benchmarks.instructions.benchmark import Coin, Ucit
from holdfast.benchmarks.synthetic import world
from holdfast.data.images import decode
from holdfast.datasets import coin
from holdfast.errors import UserError
from holdfast.types import Wants

SMALL = Coin(scale="tiny", order="ScienceQA>ImageNet>Grounding", longest=24)


@pytest.fixture(scope="module")
def setup(cache):
    with mock.patch.dict("os.environ", HOLDFAST_CACHE=str(cache)):
        return SMALL.setup(Wants())


def test_a_stage_is_a_task_and_boxes_are_scored_apart(setup):
    assert [stage.name for stage in setup.stream.stages] == ["ScienceQA", "ImageNet", "Grounding"]
    assert {name: task.scorer for name, task in setup.tasks.items()} == {
        "instructions:coin: exact": "exact",
        "instructions:coin: boxes": protocol.boxes,
    }
    of = {each.name: each.task for each in setup.protocol.evaluations}
    assert of["ImageNet"] == of["ScienceQA"] == "instructions:coin: exact"
    assert of["Grounding"] == "instructions:coin: boxes"
    sizes = {(each.name, each.split): len(each.ids) for each in setup.protocol.evaluations}
    assert sizes["ImageNet", "validation"] == 2
    assert sizes["ImageNet", "test"] == 12
    ids = [stage.train for stage in setup.stream.stages] + [each.ids for each in setup.protocol.evaluations]
    assert sorted(np.concatenate(ids)) == list(range(len(setup.data)))


def test_each_row_has_its_own_picture_and_answer(setup):
    folder = world("coin", "tiny")
    given = {f"{each.id}": each for each in coin.DATASET.examples(folder, "ImageNet_test")}
    test = next(e for e in setup.protocol.evaluations if (e.name, e.split) == ("ImageNet", "test"))
    task = setup.tasks[test.task]
    batch = setup.data.fetch(test.ids, torch.device("cpu"))
    right = task.right(batch.parts[0].targets.numpy())
    assert right == [each.extra["answers"] for each in given.values()]
    pictures = batch.parts[0].inputs["image"].float().mean((1, 2, 3)).numpy()
    means = [decode(each.images[0], None).mean() for each in given.values()]
    assert np.corrcoef(pictures, means)[0, 1] > 0.95
    assert set(setup.data.tables[0].inputs) == set(setup.data.tables[-1].inputs)


def test_captions_of_ucit_are_scored_by_cider(cache):
    setup = Ucit(scale="tiny", order="Flickr30k>CLEVR").setup(Wants())
    of = {each.name: setup.tasks[each.task].scorer for each in setup.protocol.evaluations}
    assert of == {"Flickr30k": "cider", "CLEVR": "exact"}
    test = next(e for e in setup.protocol.evaluations if (e.name, e.split) == ("Flickr30k", "test"))
    right = setup.tasks[test.task].right(setup.data.targets(test.ids).numpy())
    assert {len(each) for each in right} == {5}


@pytest.mark.parametrize(
    ("said", "share"),
    [
        ("[0.0, 0.0, 1.0, 1.0]", 1.0),
        ("0 0 0.4 1", 0.0),  # 0.4 of the union
        ("0 0 .6 1", 1.0),
        ("[0.1, 0.1]", 0.0),
        ("nowhere", 0.0),
        ("[1, 1, 0, 0]", 0.0),
    ],
)
def test_boxes(said, share):
    assert protocol.boxes([said], [["[0, 0, 1, 1]"]]) == share


def test_what_is_refused(tmp_path):
    with pytest.raises(UserError, match="unknown task 'GQ': did you mean GQA"):
        replace(SMALL, order="GQ")
    with pytest.raises(UserError, match="contains no coin"):
        replace(SMALL, data=str(tmp_path)).setup(Wants())
