"""Text classifications in words: the orders, what is asked and taught, what is held out, and how answers are scored."""

import json
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

from holdfast import registry
from holdfast.benchmarks.synthetic import world
from holdfast.benchmarks.text import stream
from holdfast.benchmarks.text.benchmark import TextCl
from holdfast.datasets.cl_benchmark import DATASET, KINDS
from holdfast.errors import UserError
from holdfast.types import Wants

SMALL = TextCl(scale="tiny", order="agnews>CB")


@pytest.fixture(scope="module")
def setup(cache):
    with mock.patch.dict("os.environ", HOLDFAST_CACHE=str(cache)):
        return SMALL.setup(Wants())


def asked(setup, ids):
    """The prompts, taught answers and references of some examples, as words."""
    (task,) = setup.tasks.values()
    (table,) = setup.data.tables
    prompts = [
        task.language.text(row[:length].tolist())
        for row, length in zip(table.inputs["text"][ids], table.inputs["text_length"][ids], strict=True)
    ]
    return prompts, task.texts(table.inputs["answer"][ids].numpy()), task.right(table.targets[ids].numpy())


def test_the_paper_has_three_orders_of_four_tasks_and_three_of_all():
    assert [set(stream.ORDERS[order]) for order in "123"] == [{"dbpedia", "amazon", "yahoo", "agnews"}] * 3
    assert [set(stream.ORDERS[order]) for order in "456"] == [set(KINDS)] * 3
    assert len({stream.ORDERS[order] for order in "123456"}) == 6
    with pytest.raises(UserError, match="unknown task 'agnew': did you mean agnews"):
        TextCl(order="agnew>CB")
    with pytest.raises(UserError, match="name each task once"):
        TextCl(order="CB>CB")


def test_a_stage_is_a_task_whose_labels_are_words(setup):
    assert [stage.name for stage in setup.stream.stages] == ["agnews", "CB"]
    folder = world("cl_benchmark", "tiny")
    given = {each.text: each for each in DATASET.examples(folder, "agnews_train")}
    prompts, answers, right = asked(setup, setup.stream.stages[0].train)
    assert len(prompts) == 36
    assert {(answer,) for answer in answers} == {tuple(map(str.lower, each)) for each in right}
    example = next(each for each in given.values() if each.target == "Sports")
    wanted = " ".join(stream.prompt(example).lower().split())
    assert any(wanted.replace(" ", "") == prompt.replace(" ", "") for prompt in prompts)


def test_a_part_of_the_training_data_is_held_out_and_dev_is_never_used(setup):
    parts = {(each.name, each.split): set(each.ids.tolist()) for each in setup.protocol.evaluations}
    assert {key: len(ids) for key, ids in parts.items()} == {
        ("agnews", "validation"): 4,
        ("agnews", "test"): 20,
        ("CB", "validation"): 4,
        ("CB", "test"): 20,
    }
    every = [set(stage.train.tolist()) for stage in setup.stream.stages] + list(parts.values())
    assert sum(map(len, every)) == len(set().union(*every)) == len(setup.data)
    for stage in setup.stream.stages:
        assert [each.split for each in stage.validation] == ["validation"]


def test_guessing_is_the_most_frequent_label_of_training(setup):
    for stage in setup.stream.stages:
        test = next(e.ids for e in setup.protocol.evaluations if (e.name, e.split) == (stage.name, "test"))
        _, _, taught = asked(setup, stage.train)
        _, _, tested = asked(setup, test)
        names, counts = np.unique([right for (right,) in taught], return_counts=True)
        frequent = str(names[counts.argmax()])
        assert setup.chance[stage.name] == np.mean([right == (frequent,) for right in tested])


def test_orders_share_their_data(cache, setup):
    other = replace(SMALL, order="CB>agnews", seed=3).setup(Wants())
    assert [stage.name for stage in other.stream.stages] == ["CB", "agnews"]
    assert other.data.fingerprint() == setup.data.fingerprint()


def test_a_fixed_part_and_given_choices(cache):
    few = replace(SMALL, most=8, most_tested=5, answers="chosen").setup(Wants())
    assert [len(stage.train) for stage in few.stream.stages] == [8, 8]
    assert {len(each.ids) for each in few.protocol.evaluations if each.split == "test"} == {5}
    (table,) = few.data.tables
    shown = (table.inputs["choices"] >= 0).any(-1).sum(1)
    assert set(shown[few.stream.stages[0].train].tolist()) == {4}
    assert set(shown[few.stream.stages[1].train].tolist()) == {3}


def test_brief_prompts_keep_their_labels_when_cut(cache):
    cut = replace(SMALL, layout="brief", length=40).setup(Wants())
    prompts, _, _ = asked(cut, cut.stream.stages[0].train)
    assert all(prompt.replace(" ", "").endswith("scienceortechnologyanswer:") for prompt in prompts)
    assert int(cut.data.tables[0].inputs["text_length"].max()) <= 40


def test_an_answer_that_does_not_fit_is_an_error(cache):
    with pytest.raises(UserError, match=r"the answer 'Science or Technology' takes 4 tokens.*benchmark.longest=4"):
        replace(SMALL, longest=3).setup(Wants())


def test_a_model_without_room_for_a_prompt_is_an_error(cache):
    with pytest.raises(UserError, match=r"the model reads 16 tokens, and an answer may take 16.*longest lower"):
        SMALL.setup(Wants(length=16))


def test_the_official_files(cache, tmp_path):
    folder = world("cl_benchmark", "tiny")
    setup = TextCl(scale="tiny", order="CB", data=str(folder)).setup(Wants())
    assert len(setup.stream.stages[0].train) == 36
    bad = tmp_path / "CL_Benchmark" / "NLI" / "CB"
    bad.mkdir(parents=True)
    (bad / "labels.json").write_text(json.dumps(["yes", "no"]))
    (bad / "train.json").write_text(json.dumps([{"sentence": "a", "label": "maybe"}]))
    with pytest.raises(UserError, match="its label is 'maybe', not one of yes, no"):
        TextCl(order="CB", data=str(tmp_path)).check(Wants())
    (bad / "train.json").unlink()
    with pytest.raises(UserError, match=r"train\.json: no such file"):
        TextCl(order="CB", data=str(tmp_path)).check(Wants())


def test_its_table_is_there():
    from holdfast import papers

    assert papers.table("o-lora", 1).value("accuracy", method="o-lora", order="6") == 71.6
    assert registry.BENCHMARKS["text:cl"].load() is TextCl
