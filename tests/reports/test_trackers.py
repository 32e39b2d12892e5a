"""What follows a run: progress for `holdfast watch`, TensorBoard's events."""

import json
import time

import numpy as np
import pytest
import torch

from holdfast.engine.files import write_json
from holdfast.engine.watch import Watch
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


def follow(name, folder, losses, scores):
    """A run as a tracker of this name sees it."""
    (tracker,) = open_trackers([name], folder)
    tracker.stage(0, 2, STAGE, 5)
    for step, loss in losses:
        tracker._next = 0.0
        tracker.step(step, torch.tensor(loss))
    for score in scores:
        tracker.score(score)
    tracker.close()


@pytest.fixture
def folder(tmp_path):
    """The folder of a run that begins."""
    path = tmp_path / "store" / "0123456789ab"
    path.mkdir(parents=True)
    write_json(path / "config.json", {"benchmark": {"name": "patterns", "scale": "tiny"}, "model": {}, "seed": 3})
    return path


def test_mlflow_has_the_run_in_one_piece_however_often_it_is_resumed(folder, monkeypatch):
    from mlflow import MlflowClient

    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    for name in ("MLFLOW_DISABLE_TELEMETRY", "MLFLOW_ALLOW_FILE_STORE"):
        monkeypatch.setenv(name, "true")
    follow("mlflow", folder, [(1, 0.5)], [])
    follow("mlflow", folder, [(2, 0.25)], [Score(1, 40, "yn", "test", 9, 0.75)])
    client = MlflowClient((folder.parent.parent / "mlruns").as_uri())
    experiment = client.get_experiment_by_name("patterns")
    (run,) = client.search_runs([experiment.experiment_id])
    assert (run.data.params["benchmark.scale"], run.data.params["seed"]) == ("tiny", "3")
    assert (run.data.tags["holdfast_id"], run.info.status) == ("0123456789ab", "FINISHED")
    history = client.get_metric_history(run.info.run_id, "loss/01 wh")
    assert [(each.step, each.value) for each in history] == [(1, 0.5), (2, 0.25)]
    (score,) = client.get_metric_history(run.info.run_id, "test/yn")
    assert (score.step, score.value) == (40, 0.75)


def records_in(path):
    """The records of a log in LevelDB's format: blocks of 32 KiB with pieces, each after checksum, length and kind."""
    content, place, record = path.read_bytes(), 7, b""
    while place + 7 <= len(content):
        if 2**15 - place % 2**15 < 7:
            place += 2**15 - place % 2**15
            continue
        length, kind = int.from_bytes(content[place + 4 : place + 6], "little"), content[place + 6]
        record += content[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # whole, or the last piece
            yield record
            record = b""


def in_files(folder):
    """The ids, the configuration and the logged values in the files of a run."""
    from wandb.proto.wandb_internal_pb2 import Record

    ids, config, logged = set(), {}, []
    for path in sorted(folder.glob("wandb/offline-run-*/*.wandb")):
        for content in records_in(path):
            record = Record()
            record.ParseFromString(content)
            if record.HasField("run"):
                ids.add(record.run.run_id)
                config |= {each.key: json.loads(each.value_json) for each in record.run.config.update}
            if record.HasField("history"):
                items = {each.key or each.nested_key[0]: json.loads(each.value_json) for each in record.history.item}
                logged.append({key: value for key, value in items.items() if not key.startswith("_")})
    return ids, config, logged


def test_weights_and_biases_has_the_run_under_its_id_offline(folder, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    follow("wandb", folder, [(1, 0.5)], [])
    time.sleep(1.1)  # its folders are named by the second
    follow("wandb", folder, [(2, 0.25)], [Score(1, 40, "yn", "test", 9, 0.75)])
    until = time.monotonic() + 30
    while True:  # what was written last may be a moment on its way to the file
        ids, config, logged = in_files(folder)
        if len(logged) == 3 or time.monotonic() > until:
            break
        time.sleep(0.2)
    assert ids == {"0123456789ab"}
    assert (config["benchmark"]["name"], config["seed"]) == ("patterns", 3)
    assert {"loss/01 wh": 0.5, "stage_step": 1} in logged
    assert {"loss/01 wh": 0.25, "stage_step": 2} in logged
    assert {"test/yn": 0.75, "step": 40} in logged


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
    with pytest.raises(UserError, match="unknown log 'wandbb'"):
        open_trackers(["wandbb"], tmp_path)
