"""A set-up from the arrays of a benchmark's own stages."""

import numpy as np
import pytest
import torch

from holdfast.benchmarks.stages import in_stages
from holdfast.errors import UserError
from holdfast.tasks import Classify
from holdfast.types import Example, Inputs, Training

TASK = Classify("colours", head="colours", outputs=2, chance=0.5)


def rows(count, shape=(4, 4, 3), start=0):
    seen = np.arange(start, start + count, dtype=np.uint8)[:, None, None, None] * np.ones(shape, np.uint8)
    return seen, np.arange(count) % 2


def test_each_split_of_each_stage_keeps_its_rows():
    sizes = {"train": 6, "validation": 2, "test": 4}
    data = {name: {split: rows(size, start=start) for split, size in sizes.items()} for start, name in enumerate("ab")}
    setup = in_stages(data, TASK, Training(epochs=3), boundaries=False)
    assert [stage.name for stage in setup.stream.stages] == ["a", "b"]
    assert not setup.stream.boundaries
    assert {stage.training.epochs for stage in setup.stream.stages} == {3}
    assert [(each.name, each.split, len(each.ids)) for each in setup.protocol.evaluations] == [
        ("a", "validation", 2),
        ("a", "test", 4),
        ("b", "validation", 2),
        ("b", "test", 4),
    ]
    for start, stage in enumerate(setup.stream.stages):
        (part,) = setup.data.fetch(stage.train, torch.device("cpu")).parts
        assert part.inputs["image"].shape == (6, 3, 4, 4)
        assert part.inputs["image"][:, 0, 0, 0].tolist() == list(range(start, start + 6))
        assert part.targets.tolist() == [0, 1] * 3
        assert stage.validation == (setup.protocol.evaluations[2 * start],)
    assert setup.inputs == Inputs(image=(3, 4, 4))
    assert setup.chance == {"a": 0.5, "b": 0.5}


def test_examples_columns_and_a_task_for_each_stage():
    examples = [Example(str(n), n % 2, (np.full((4, 4, 1), n, np.uint8),)) for n in range(4)]
    other = Classify("shapes", head="shapes", outputs=3, chance=1 / 3)
    columns = {"text": torch.zeros(5, 7, dtype=torch.int64)}, np.arange(5) % 3
    stages = {"a": {"train": examples, "test": examples}, "b": {"train": columns, "test": columns}}
    setup = in_stages(stages, {"a": TASK, "b": other}, inputs=Inputs((1, 4, 4), text=7, vocabulary=9))
    assert set(setup.tasks) == {"colours", "shapes"}
    assert setup.data.fetch(setup.stream.stages[1].train, torch.device("cpu")).parts[0].inputs["text"].shape == (5, 7)
    with pytest.raises(UserError, match=r"describe them with inputs=Inputs"):
        in_stages(stages, {"a": TASK, "b": other})


@pytest.mark.parametrize(
    ("stages", "task", "message"),
    [
        ({}, TASK, "there are no stages"),
        ({"a": {"train": rows(4)}}, TASK, "stage 'a': .*look at 'test'"),
        ({"a": {"train": rows(4), "test": rows(4), "tests": rows(4)}}, TASK, "stage 'a': .*look at 'tests'"),
        ({"a": {"train": (rows(4)[0], rows(3)[1]), "test": rows(4)}}, TASK, r"stage 'a', train: .* \[3, 4\] rows"),
        ({"a": {"train": rows(0), "test": rows(4)}}, TASK, r"stage 'a', train: .* \[0\] rows"),
        (
            {"a": {"train": (rows(4)[0] / 255, [0] * 4), "test": rows(4)}},
            TASK,
            "stage 'a', train: .* float64",
        ),
        ({"a": {"train": rows(4), "test": rows(4, (5, 5, 3))}}, TASK, "not just pictures of one size"),
        ({"a": {"train": rows(4), "test": rows(4)}}, {"b": TASK}, "the stages are a, and there are tasks for b"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(stages, task, message):
    with pytest.raises(UserError, match=message):
        in_stages(stages, task)
