"""What follows a run: progress for `holdfast watch`, TensorBoard's events."""

import json
import time

import numpy as np
import pytest
import torch

from holdfast.engine.loop import Watch
from holdfast.errors import UserError
from holdfast.experiments.trackers import Progress, Several, TensorBoard, TrackedLog, Tracker, open_trackers
from holdfast.types import Score, Stage, Training

STAGE = Stage("wh", np.arange(640), Training(batch_size=32))


def test_progress_tells_stage_step_loss_and_speed(tmp_path):
    began = time.time()
    progress = Progress(tmp_path, seconds=0.0)
    progress.stage(1, 4, STAGE, 20)
    told = json.loads((tmp_path / "progress.json").read_text())
    assert (told["stage"], told["index"], told["stages"], told["step"], told["steps"]) == ("wh", 1, 4, 0, 20)
    progress.step(6, torch.tensor(0.5))  # resumed in the middle: the five steps before were done by another process
    time.sleep(0.05)
    progress.step(16, torch.tensor(0.25))
    told = json.loads((tmp_path / "progress.json").read_text())
    assert (told["step"], told["loss"]) == (16, 0.25)
    assert told["done_at_begin"] == (1 + 5 / 20) / 4
    assert 0 < told["examples_per_second"] <= 10 * 32 / 0.05
    assert began <= told["began"] <= told["updated"]
    progress.evaluating("yn")
    assert json.loads((tmp_path / "progress.json").read_text())["evaluating"] == "yn"


def test_progress_is_written_seldom_and_never_stops_a_run(tmp_path):
    progress = Progress(tmp_path, seconds=100.0)
    progress.stage(0, 1, STAGE, 1000)
    for step in range(1, 100):
        progress.step(step, None)  # not once is the loss read
    assert json.loads((tmp_path / "progress.json").read_text())["step"] == 0
    gone = Progress(tmp_path / "no" / "such" / "folder", seconds=0.0)
    gone.stage(0, 1, STAGE, 10)
    gone.step(1, torch.tensor(float("nan")))
    assert gone._now["loss"] is None


def test_several_see_everything_and_any_may_stop():
    class Seen(Watch):
        def __init__(self):
            self.calls, self.stopping = [], False

        def stage(self, *words):
            self.calls.append(words)

        def step(self, *words):
            self.calls.append(words)

        def evaluating(self, *words):
            self.calls.append(words)

    first, second = Seen(), Seen()
    both = Several(first, second)
    both.stage(0, 2, STAGE, 5)
    both.step(1, None)
    both.evaluating("x")
    assert first.calls == second.calls == [(0, 2, STAGE, 5), (1, None), ("x",)]
    assert not both.stopping
    second.stopping = True
    assert both.stopping


def test_tensorboard_has_the_loss_of_each_stage_and_the_scores(tmp_path):
    from tensorboard.backend.event_processing import event_accumulator as accumulator

    (board,) = open_trackers(["tensorboard", "tensorboard"], tmp_path)
    assert isinstance(board, TensorBoard)
    board._seconds = 0.0
    board.stage(0, 2, STAGE, 5)
    board.step(1, torch.tensor(0.5))
    board.step(2, torch.tensor(0.25))
    board.score(Score(1, 40, "yn", "test", 9, 0.75))
    board.close()
    events = accumulator.EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [(e.step, e.value) for e in events.Scalars("loss/01 wh")] == [(1, 0.5), (2, 0.25)]
    assert [(e.step, e.value) for e in events.Scalars("test/yn")] == [(40, 0.75)]


def test_a_log_tells_its_trackers():
    class Kept(Tracker):
        def __init__(self):
            self.scores = []

        def score(self, score):
            self.scores.append(score)

    class List:
        def __init__(self):
            self.lines = []

        def add(self, scores):
            self.lines += [score for score, _ in scores]

        def size(self):
            return len(self.lines)

        def cut(self, size):
            del self.lines[size:]

        def damage(self, size):
            return f"line {size}"

    kept, inner = Kept(), List()
    log, score = TrackedLog(inner, [kept]), Score(1, 40, "yn", "test", 9, 0.75)
    log.add([(score, np.zeros(1))])
    assert log.size() == 1
    assert kept.scores == [score]
    assert log.damage(7) == "line 7"
    log.cut(0)
    assert inner.lines == []


def test_an_unknown_log_is_told(tmp_path):
    with pytest.raises(UserError, match="there is no log 'wandb'"):
        open_trackers(["wandb"], tmp_path)
