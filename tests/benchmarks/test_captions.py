"""Captions of one domain after another: which pictures, what is taught, and what answers are compared with."""

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
import torch

from holdfast import metrics
from holdfast.benchmarks.captions import protocol, stream
from holdfast.benchmarks.captions.benchmark import Captions
from holdfast.benchmarks.synthetic import world
from holdfast.datasets.base import Reading
from holdfast.datasets.coco import ANNOTATIONS
from holdfast.errors import UserError
from holdfast.types import Score, Wants

SMALL = Captions(scale="tiny", order="coco:animal>flickr8k", each=2, most=20, most_tested=5)


@pytest.fixture(scope="module")
def setup(cache):
    with mock.patch.dict("os.environ", HOLDFAST_CACHE=str(cache)):
        return SMALL.setup(Wants())


def test_every_category_but_people_has_one_group(cache):
    read = ANNOTATIONS.examples(world("coco", "tiny"), "train2014", Reading(skip=1))
    assert {label for each in read for label in each.extra["labels"]} - set(stream.GROUP) <= {"person"}
    assert len(stream.GROUP) == 79


def test_pictures_belong_to_the_group_of_most_of_their_things(cache):
    for each in list(ANNOTATIONS.examples(world("coco", "tiny"), "train2014", Reading(skip=1)))[:50]:
        groups = [stream.GROUP[label] for label in each.extra["labels"] if label in stream.GROUP]
        mine = [group for group in set(groups) if stream.belongs(each, f"coco:{group}")]
        assert len(mine) == bool(groups)
        assert all(groups.count(mine[0]) >= groups.count(group) for group in groups)


def test_several_captions_are_taught_and_all_are_references(setup):
    assert [stage.name for stage in setup.stream.stages] == ["coco:animal", "flickr8k"]
    assert len(setup.stream.stages[1].train) == 40
    (task,) = setup.tasks.values()
    assert task.scorer == "cider"
    batch = setup.data.fetch(setup.stream.stages[1].train, torch.device("cpu")).parts[0]
    taught, right = task.texts(batch.inputs["answer"].numpy()), task.right(batch.targets.numpy())
    plain = lambda text: "".join(filter(str.isalnum, text.lower()))  # noqa: E731
    assert all(plain(one) in map(plain, several) for one, several in zip(taught, right, strict=True))
    assert {len(several) for several in right} == {5}
    pictures, counts = np.unique(batch.inputs["image"].flatten(1).numpy(), axis=0, return_counts=True)
    assert (len(pictures), set(counts.tolist())) == (20, {2})


def test_further_scores_are_those_of_the_metrics(setup):
    (task,) = setup.tasks.values()
    test = next(each for each in setup.protocol.evaluations if (each.name, each.split) == ("flickr8k", "test"))
    targets = setup.data.targets(test.ids).numpy()
    right = task.right(targets)
    answers = setup.data.fetch(test.ids, torch.device("cpu")).parts[0].inputs["answer"].numpy()
    found = test.details(answers, targets)
    assert found["flickr8k/rouge-l"] == (5, pytest.approx(metrics.rouge_l(task.texts(answers), right).mean()))
    assert found["flickr8k/bleu"][1] == metrics.corpus_bleu(task.texts(answers), right)


def test_the_measures_are_means_over_domains():
    scores = [
        Score(stage, stage, f"{name}{part}", "test", 5, value + stage)
        for stage in (0, 1, 2)
        for name, value in (("a", 0.1), ("b", 0.3))
        for part, value in (("", value), ("/bleu", value / 2))
    ]
    found = protocol.summary(scores)
    assert found["final_accuracy"] == pytest.approx(2.2)
    assert found["bleu"] == pytest.approx(2.1)
    assert found["rouge-l"].reason == "was not measured"
    assert found.keys() == protocol.MEASURES.keys()


@pytest.mark.parametrize(
    ("order", "what"),
    [("coco:animals", "did you mean coco:animal"), ("coco>coco:food", "with coco:food twice"), ("coco>coco", "twice")],
)
def test_what_is_refused(order, what):
    with pytest.raises(UserError, match=what):
        replace(SMALL, order=order)
