import json
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from holdfast.errors import RunError, Stopped, UserError
from holdfast.experiments import runner
from holdfast.experiments.store import Record, Store
from smallest import StopAt, make_learner, prepare, prepared, request, run


def test_a_run_leaves_its_configuration_scores_weights_and_record(tmp_path):
    ready = prepared("replay")
    record = run(ready, Store(tmp_path))
    folder = tmp_path / ready.config.id
    assert {p.name for p in folder.iterdir()} == {
        "config.json", "environment.json", "lock", "model.safetensors", "record.json", "scores.jsonl"
    }  # fmt: skip
    assert Record.from_json(json.loads((folder / "record.json").read_text()), "here") == record
    assert len(record.scores) == 3 * 2 * 2, "before and after each of two stages; two tasks; validation and test"
    assert record.cost["steps"] == 12
    assert record.cost["memory_bytes"] == 200 * (144 + 8 + 8), "160 examples, seen twice"
    assert record.cost["examples_backward"] > record.cost["steps"] * 32
    assert set(record.summary) == {
        "final_accuracy", "learning_accuracy", "forgetting", "backward_transfer"
    }  # fmt: skip


def test_a_run_that_is_done_is_not_run_again(tmp_path, monkeypatch):
    first = run(prepared(), Store(tmp_path))
    monkeypatch.setattr(runner, "train", None)
    assert run(prepared(), Store(tmp_path)) == first


def test_a_measure_without_a_value_says_why(tmp_path):
    record = run(prepared("joint"), Store(tmp_path))
    assert record.summary["forgetting"] is None
    assert record.reasons["forgetting"] == "needs one stage for each task, but there are 1 for 2"
    assert json.loads(json.dumps(record.to_json(), allow_nan=False))["summary"]["final_accuracy"] > 0


def test_a_run_of_the_first_stages_is_measured_by_these(tmp_path):
    asked = replace(request(benchmark__stages=3, benchmark__order="reverse"), stages=2)
    record = run(prepare(asked), Store(tmp_path))
    last = {s.name: s.score for s in record.scores if s.split == "test" and s.stage == 2}
    assert len(last) == 3
    assert record.summary["final_accuracy"] == pytest.approx((last["stage-3"] + last["stage-2"]) / 2)
    assert record.summary["forgetting"] is not None


def test_predictions_are_kept_where_asked_and_score_what_the_log_says(tmp_path):
    ready = prepare(replace(request(), predictions=True))
    record = run(ready, Store(tmp_path))
    files = sorted((tmp_path / record.id / "predictions").iterdir())
    assert len(files) == len(record.scores)
    last = record.scores[-1]
    answers = np.load(
        tmp_path / record.id / "predictions" / f"{last.stage:03d}-{last.step:010d}-{last.split}-{last.name}.npy"
    )
    (evaluation,) = (e for e in ready.setup.protocol.evaluations if e.name == last.name and e.split == last.split)
    assert (answers == ready.setup.data.targets(evaluation.ids).numpy()).mean() == last.score


def test_a_stopped_run_keeps_its_checkpoint_and_goes_on(tmp_path):
    expected = run(prepared(), Store(tmp_path / "whole"))
    store = Store(tmp_path / "stopped")
    with pytest.raises(Stopped):
        run(prepared(), store, watch=StopAt(8))
    folder = store.folder(expected.id)
    assert folder.status() == "stopped"
    assert list(folder.checkpoints.iterdir())
    record = run(prepared(), store)
    assert record.scores == expected.scores
    assert folder.weights.read_bytes() == (tmp_path / "whole" / expected.id / "model.safetensors").read_bytes()
    assert not folder.checkpoints.exists()


def test_a_failure_leaves_its_traceback_and_the_next_try_clears_it(tmp_path, monkeypatch):
    def broken(*arguments, **named):
        raise ZeroDivisionError("by the test")

    store = Store(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(runner, "train", broken)
        with pytest.raises(ZeroDivisionError):
            run(prepared(), store)
    (folder,) = store.runs()
    assert folder.status() == "failed"
    assert "ZeroDivisionError: by the test" in (folder.path / "failure.txt").read_text()
    run(prepared(), store)
    assert folder.status() == "done"
    assert not (folder.path / "failure.txt").exists()


def test_two_that_start_the_same_run_one_works_and_the_other_waits_and_says_who(tmp_path):
    store, holders, records = Store(tmp_path), [], []
    ready = prepared()
    with store.folder(ready.config.id).lock():
        assert store.folder(ready.config.id).holder().startswith("process ")
        waiter = threading.Thread(target=lambda: records.append(run(ready, store, waiting=holders.append)), daemon=True)
        waiter.start()
        end = time.monotonic() + 30
        while not holders and time.monotonic() < end:
            time.sleep(0.01)
        assert records == []
    waiter.join(30)
    assert len(records) == len(holders) == 1
    assert holders[0].startswith("process ")
    assert store.folder(ready.config.id).holder() is None


def test_one_that_waits_for_another_stops_when_asked(tmp_path):
    from holdfast.engine.watch import Watch

    store, ready, watch = Store(tmp_path), prepared(), Watch()
    watch.stopping = True
    with store.folder(ready.config.id).lock(), pytest.raises(Stopped):
        run(ready, store, watch=watch)


def test_looking_at_a_run_takes_nothing_from_it(tmp_path):
    store, ready = Store(tmp_path), prepared()
    with pytest.raises(Stopped):
        run(ready, store, watch=StopAt(3))
    folder = store.folder(ready.config.id)
    with (folder.path / "lock").open() as one:
        import fcntl

        fcntl.flock(one, fcntl.LOCK_SH)  # another who looks
        assert folder.status() == "stopped"


@pytest.mark.parametrize("damage", ["delete", "shorten"])
def test_a_score_log_that_lost_scores_is_refused_in_a_sentence(tmp_path, damage):
    store, ready = Store(tmp_path), prepared()
    with pytest.raises(Stopped):
        run(ready, store, watch=StopAt(3))
    path = tmp_path / ready.config.id / "scores.jsonl"
    path.unlink() if damage == "delete" else path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(RunError, match=r"scores are lost.*: delete .* to start this run again"):
        run(prepared(), store)


def test_asked_to_stop_in_an_evaluation_it_saves_and_takes_the_scores_later(tmp_path, monkeypatch):
    from holdfast.engine.watch import Watch

    monkeypatch.setattr(
        "holdfast.engine.evaluate.batch_size", lambda learner, ids: 60
    )  # four batches in each of three rounds

    class StopWhileScoring(Watch):
        def __init__(self, turn):
            self.turn = turn

        def evaluating(self, name):
            self.turn -= 1
            self.stopping = self.turn == 0

    expected = run(prepared(), Store(tmp_path / "whole"))
    for turn in (1, 3, 6, 8, 12):
        store = Store(tmp_path / str(turn))
        with pytest.raises(Stopped):
            run(prepared(), store, watch=StopWhileScoring(turn))
        assert any(store.folder(expected.id).checkpoints.iterdir())
        record = run(prepared(), store)
        assert record.scores == expected.scores
        assert (
            store.folder(expected.id).weights.read_bytes()
            == (tmp_path / "whole" / expected.id / "model.safetensors").read_bytes()
        )


def test_a_run_that_was_refused_leaves_nothing_to_list(tmp_path):
    store = Store(tmp_path)
    with pytest.raises(UserError, match=r"frozen-bottom\.k is 9"):
        run(prepared("frozen-bottom", **{"frozen-bottom__k": 9}), store)
    assert store.runs() == []


def test_files_can_be_read_by_whoever_reads_any_new_file(tmp_path):
    record = run(prepared(), Store(tmp_path))
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / record.id).glob("*.*")}
    (tmp_path / "new").touch()
    assert modes == {(tmp_path / "new").stat().st_mode & 0o777}


def test_checkpoints_that_a_kill_left_beside_the_record_are_cleared(tmp_path):
    record = run(prepared(), Store(tmp_path))
    left = tmp_path / record.id / "checkpoints"
    left.mkdir()
    (left / "0000000001.safetensors").touch()
    assert run(prepared(), Store(tmp_path)) == record
    assert not left.exists()


def test_a_store_that_cannot_be_written_gives_one_sentence(tmp_path):
    (tmp_path / "file").write_text("a file where the store should be")
    with pytest.raises(RunError, match=r"could not write to .*file"):
        run(prepared(), Store(tmp_path / "file"))


@pytest.mark.parametrize(
    ("device", "sentence"), [("tpu9", "unknown device 'tpu9'"), ("cuda:77", "is not here"), ("meta", "not supported")]
)
def test_a_device_that_is_not_here_is_refused(device, sentence, tmp_path):
    with pytest.raises(UserError, match=sentence):
        run(prepared(), Store(tmp_path), device=device)


GOLDEN = Path(__file__).parents[1] / "golden"


def test_records_of_every_schema_stay_readable():
    paths = sorted(GOLDEN.glob("record-schema-*.json"))
    assert paths
    for path in paths:
        record = Record.from_json(json.loads(path.read_text(encoding="utf-8")), path.name)
        assert record.algorithm == "replay"
        assert record.scores
        assert 0 < record.summary["final_accuracy"] < 1


def test_the_golden_scores_are_kept(tmp_path):
    """A change that is no more than a refactor keeps these numbers; one that changes results raises a version."""
    golden = json.loads((GOLDEN / "record-schema-1.json").read_text(encoding="utf-8"))
    record = run(prepared("replay", train__epochs=6), Store(tmp_path))
    assert [s.score for s in record.scores] == pytest.approx([s["score"] for s in golden["scores"]], abs=1e-12)


def test_a_record_of_a_newer_schema_says_so(tmp_path):
    store = Store(tmp_path)
    record = run(prepared(), store)
    path = tmp_path / record.id / "record.json"
    path.write_text(json.dumps(record.to_json() | {"schema": 99}))
    with pytest.raises(UserError, match=r"newer holdfast \(schema 99; this one reads up to 2\): upgrade"):
        run(prepared(), store)


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"schema": 1}', "\xff"])
def test_a_broken_record_names_its_file(tmp_path, text):
    store = Store(tmp_path)
    record = run(prepared(), store)
    path = tmp_path / record.id / "record.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(UserError, match=r"record.json"):
        run(prepared(), store)


def test_a_run_is_found_by_the_beginning_of_its_id(tmp_path):
    store = Store(tmp_path)
    with pytest.raises(UserError, match="unknown run 'abc'"):
        store.find("abc")
    record = run(prepared(), store)
    assert store.find(record.id[:4]).id == record.id
    with pytest.raises(UserError, match="no store exists"):
        Store(tmp_path / "nowhere").find("abc")


def test_weights_of_another_model_are_refused(tmp_path):
    from holdfast.experiments.start import begin_with

    model = make_learner(prepared()).model
    runner.checkpoint.write(tmp_path / "other.safetensors", {"encoder.elsewhere": torch.zeros(2)})
    with pytest.raises(UserError, match="was made by another model"):
        begin_with(model, tmp_path / "other.safetensors")
