"""The benchmark of many domains: its measures by brute force, what is learned and tested, and what is refused."""

import json
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

from holdfast.benchmarks.mtil import protocol, stream
from holdfast.benchmarks.mtil.benchmark import REFERENCE, Mtil
from holdfast.benchmarks.mtil.protocol import RETRIEVAL
from holdfast.errors import UserError
from holdfast.types import Score, Wants

SMALL = Mtil(scale="tiny", order="mnist>dtd>caltech101")


@pytest.fixture(scope="module")
def setup(cache):
    with mock.patch.dict("os.environ", HOLDFAST_CACHE=str(cache)):
        return SMALL.setup(Wants())


def log(matrix, before, retrieval):
    names = [f"d{number}" for number in range(len(before))]
    rows = [before, *matrix]
    scores = [
        Score(i, i, n, "test", 9, float(v)) for i, row in enumerate(rows) for n, v in zip(names, row, strict=True)
    ]
    scores += [Score(i, i, n, "validation", 9, 0.5) for i in range(len(rows)) for n in names]
    return scores + [Score(i, i, RETRIEVAL, "test", 9, value) for i, value in enumerate(retrieval)]


def test_the_measures_are_those_of_a_plain_loop():
    random = np.random.default_rng(0)
    matrix, before, retrieval = random.random((4, 4)), random.random(4), random.random(5).tolist()
    found = protocol.summary(log(matrix, before, retrieval))
    by_dataset = []
    for dataset in range(1, 4):
        earlier = [matrix[stage, dataset] for stage in range(4) if stage < dataset]
        by_dataset.append(sum(earlier) / len(earlier))
    assert found["transfer"] == pytest.approx(sum(by_dataset) / 3)
    assert found["average"] == pytest.approx(sum(matrix[i, j] for i in range(4) for j in range(4)) / 16)
    assert found["last"] == pytest.approx(sum(matrix[3]) / 4)
    assert found["zero_shot"] == pytest.approx(sum(before) / 4)
    assert found["retained"] == retrieval[-1]
    assert found["retained_change"] == pytest.approx(retrieval[-1] - retrieval[0])
    assert found.keys() == protocol.MEASURES.keys()


def test_without_captions_or_later_datasets_measures_are_undefined():
    found = protocol.summary([s for s in log(np.ones((1, 1)), [0.5], [0.1, 0.1]) if s.name != RETRIEVAL])
    assert found["transfer"].reason == "transfer needs at least two tasks"
    assert found["retained"].reason == "no captions were held out"


def test_both_orders_have_all_datasets():
    assert sorted(stream.ORDERS["II"]) == list(stream.ORDERS["I"]) == sorted(stream.SPLITS)
    assert Mtil(order="II").names == Mtil().names
    with pytest.raises(UserError, match="names 'mnst': did you mean mnist"):
        Mtil(order="mnst>dtd")
    with pytest.raises(UserError, match="has dtd twice"):
        Mtil(order="dtd>dtd")


def test_a_stage_is_a_dataset_and_all_are_tested_after_each(setup):
    stages = setup.stream.stages
    assert [stage.name for stage in stages] == ["mnist", "dtd", "caltech101"]
    names = [each.name for each in setup.protocol.evaluations if each.split == "test"]
    assert names == ["mnist", "dtd", "caltech101", RETRIEVAL]
    assert setup.protocol.initial
    for stage in stages:
        own = setup.data.targets(stage.train).numpy()
        assert set(own) == set(stage.classes)
        test = next(e for e in setup.protocol.evaluations if (e.name, e.split) == (stage.name, "test"))
        assert set(setup.data.targets(test.ids).numpy()) <= set(stage.classes)
        assert not set(stage.train) & set(test.ids)
        assert not set(stage.train) & {number for each in stage.validation for number in each.ids}
    assert sorted(number for stage in stages for number in stage.classes) == list(range(22))
    assert setup.chance["mnist"] == 0.1
    reference = next(table for table in setup.data.tables if table.task == REFERENCE)
    assert reference.inputs["text"].shape[:2] == (90, 5)


def test_orders_and_seeds_share_their_data(cache, setup):
    other = replace(SMALL, order="caltech101>mnist>dtd", shots=2, seed=3).setup(Wants())
    assert other.data.fingerprint() == setup.data.fingerprint()
    for stage in other.stream.stages:
        targets = setup.data.targets(stage.train).numpy()
        assert set(np.unique(targets, return_counts=True)[1]) <= {1, 2}


def test_a_fixed_part_is_the_same_each_time(cache):
    few = replace(SMALL, order="mnist", most=3, most_tested=2, captions=False).setup(Wants())
    assert len(few.data.tables[0]) == 30
    assert len(few.data.tables[1]) == 20
    rows = [(f"{number}", number % 3) for number in range(300)]
    part, more = (stream.chosen(rows, "mnist", "train", most) for most in (4, 9))
    assert part < more
    assert len(part) == 12


@pytest.mark.parametrize(("candidates", "chance"), [("own", 0.1), ("seen", 1 / 22), ("all", 1 / 22)])
def test_candidates_decide_what_guessing_scores(cache, candidates, chance):
    setup = replace(SMALL, candidates=candidates).setup(Wants())
    assert setup.chance["mnist"] == chance
    assert {task.reads.growing for task in setup.tasks.values()} == {candidates == "seen"}


def test_templates_are_data(cache, tmp_path):
    path = tmp_path / "templates.json"
    path.write_text(json.dumps({"mnist": ["the {}", "a {}", "{}!"], "dtd": ["{}", "some {}"]}))
    setup = Mtil(scale="tiny", order="mnist>dtd", templates=str(path), captions=False).setup(Wants())
    assert setup.tasks["dtd"].prompts.text.shape[:2] == (16, 6)
    path.write_text(json.dumps({"mnist": ["digit"]}))
    with pytest.raises(UserError, match=r"templates.json, mnist: the template 'digit' must have exactly one slot"):
        Mtil(scale="tiny", order="mnist", templates=str(path), captions=False).setup(Wants())
    with pytest.raises(UserError, match="has no list of templates for dtd"):
        Mtil(scale="tiny", order="dtd", templates=str(path), captions=False).setup(Wants())


def test_a_dataset_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UserError, match="contains no mnist"):
        Mtil(order="mnist", data=str(tmp_path), captions=False).setup(Wants())
