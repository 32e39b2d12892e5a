"""Rehearsal, and the hook with which an algorithm changes a stage's data."""

import math
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch
from torch.nn import functional

from holdfast.algorithms.base import Algorithm
from holdfast.algorithms.rehearsal import Rehearsal
from holdfast.data.order import mix, shuffled
from holdfast.engine.checkpoint import Checkpoints
from holdfast.errors import Stopped, UserError
from holdfast.memory import PerTask
from smallest import StopAt, make_learner, prepared, trained


def test_kept_examples_are_shuffled_into_the_next_stages_data():
    """Plain PyTorch, with a cosine schedule over the longer epochs."""
    ready = prepared(train__schedule="cosine")
    learner, _ = trained(ready, [Rehearsal(count=20)])
    other = make_learner(ready)
    model, data = other.model, other.data.tables[0]
    memory = PerTask(mix(0, 0x2E4E), 20)
    for index, stage in enumerate(ready.setup.stream.stages):
        train = np.concatenate([stage.train, memory.ids])
        optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
        done, steps = 0, 2 * math.ceil(len(train) / 32)
        for epoch in range(2):
            ids = shuffled(train, seed=0, stage=index, epoch=epoch)
            assert sorted(ids) == sorted(train)
            for start in range(0, len(ids), 32):
                optimiser.param_groups[0]["lr"] = 3e-3 * 0.5 * (1 + math.cos(math.pi * done / steps))
                rows = torch.from_numpy(ids[start : start + 32])
                optimiser.zero_grad()
                output = model({"image": data.inputs["image"][rows]}, "patterns")
                functional.cross_entropy(output, data.targets[rows]).backward()
                optimiser.step()
                done += 1
        memory.add(stage.train)
    expected = model.state_dict()
    assert all(torch.allclose(learner.model.state_dict()[n], expected[n], rtol=0, atol=1e-12) for n in expected)
    assert learner.examples_backward == 2 * (80 + 100)


@pytest.mark.parametrize("stop", [1, 6, 7, 10, 13])
def test_a_longer_stage_with_a_schedule_resumes_exactly(stop, tmp_path):
    settings = {"train__schedule": "cosine", "train__warmup": 0.2, "train__patience": 1}
    whole, expected = trained(prepared(**settings), [Rehearsal(count=20)])
    with pytest.raises(Stopped):
        trained(prepared(**settings), [Rehearsal(count=20)], Checkpoints(tmp_path), StopAt(stop))
    again, log = trained(prepared(**settings), [Rehearsal(count=20)], Checkpoints(tmp_path))
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, again.model.state_dict()[name])
    assert log.scores[-1] == expected.scores[-1]


def test_a_stream_that_repeats_all_earlier_data_is_refused_and_one_that_repeats_some_is_not_doubled():
    with pytest.raises(UserError, match="leave rehearsal out"):
        trained(prepared("cumulative+rehearsal"))
    ready = prepared(train__epochs=1)
    first, second = ready.setup.stream.stages
    second = replace(second, train=np.concatenate([second.train, first.train[:30]]))
    stream = replace(ready.setup.stream, stages=(first, second))
    rehearsal = Rehearsal(count=1000)
    learner, _ = trained(replace(ready, setup=replace(ready.setup, stream=stream)), [rehearsal])
    assert learner.examples_backward == 80 + 160
    assert sorted(rehearsal.memory.ids) == sorted({*first.train.tolist(), *second.train.tolist()})


@dataclass
class Fewer(Algorithm):
    """Trains on the first few examples that it is given, and notes which stage each hook saw."""

    count: int
    seen: dict = field(default_factory=dict)

    def begin(self, learner, stage):
        self.seen["begin"] = len(stage.train)

    def stage(self, learner, stage):
        self.seen["stage"] = len(stage.train)
        return replace(stage, train=stage.train[: self.count])

    def learn(self, learner, stage, fit):
        self.seen["learn"] = len(stage.train)
        fit()

    def end(self, learner, stage):
        self.seen["end"] = len(stage.train)


def test_stages_change_in_a_chain_and_begin_and_end_see_the_streams_own():
    first, second = Fewer(50), Fewer(40)
    learner, _ = trained(prepared(benchmark__stages=1, train__epochs=1), [first, second])
    assert first.seen == {"begin": 80, "stage": 80, "learn": 40, "end": 80}
    assert second.seen == {"begin": 80, "stage": 50, "learn": 40, "end": 80}
    assert learner.examples_backward == 40


def test_a_stage_is_not_changed_where_the_stream_shows_no_boundaries():
    fewer = Fewer(40)
    learner, _ = trained(prepared(benchmark__boundaries=False, train__epochs=1), [fewer])
    assert fewer.seen == {"learn": 80}
    assert learner.examples_backward == 160


def test_a_stream_of_which_some_stages_hold_the_one_before_is_served():
    """Only where all do, as in cumulative training, would nothing be added."""
    stream = prepared(benchmark__stages=3).setup.stream
    first, second, third = stream.stages
    both = replace(second, train=np.concatenate([first.train, second.train]))
    Rehearsal().check(replace(stream, stages=(first, both, third)))
    every = replace(third, train=np.concatenate([both.train, third.train]))
    with pytest.raises(UserError, match="already contains all of them"):
        Rehearsal().check(replace(stream, stages=(first, both, every)))
