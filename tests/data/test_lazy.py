import os
import signal
import subprocess
import sys
import textwrap
import time
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from holdfast.algorithms.replay import Replay
from holdfast.data import lazy
from holdfast.data.images import Drawing
from holdfast.data.lazy import AHEAD, ImageFileColumn
from holdfast.data.prepared import PreparedTable, open_prepared, prepare
from holdfast.data.table import Data
from holdfast.engine.learner import Learner
from holdfast.engine.loop import train
from holdfast.errors import RunError, UserError
from holdfast.models.perceptron import Perceptron
from holdfast.tasks import Classify
from holdfast.types import EvaluationSet, Example, Head, Inputs, Protocol, Stage, Stream, Training
from smallest import Scores

CPU = torch.device("cpu")


def write_images(folder: Path, count: int) -> list[Path]:
    """Pictures of many sizes, some of them grey, with a name that is not ASCII."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    paths = []
    for number in range(count):
        height, width = rng.integers(20, 60, 2)
        pixels = np.clip(rng.integers(40, 200, 3) + rng.normal(0, 5, (height, width, 3)), 0, 255).astype(np.uint8)
        paths.append(folder / f"größe {number}.jpg")
        Image.fromarray(pixels).convert("L" if number % 3 == 0 else "RGB").save(paths[-1], "JPEG")
    return paths


def questions(folder: Path, count: int = 30, images: int = 20, each: int = 1) -> list[Example]:
    paths = write_images(folder, images)
    return [Example(str(i), i % 5, tuple(paths[(i * 11 + j) % images] for j in range(each))) for i in range(count)]


def column(prepared: PreparedTable) -> ImageFileColumn:
    found = prepared.table.inputs["image"]
    assert isinstance(found, ImageFileColumn)
    return found


def in_memory(names: list[str]) -> list[bool]:
    return [Path("/dev/shm", name).exists() for name in names]


@pytest.fixture
def names(monkeypatch) -> list[str]:
    """The names of all shared memory that is made here."""
    made: list[str] = []

    def make(**options: Any) -> SharedMemory:
        memory = SharedMemory(**options)
        made.append(memory.name)
        return memory

    monkeypatch.setattr(lazy, "SharedMemory", make)
    return made


@pytest.fixture
def files(tmp_path) -> ImageFileColumn:
    examples = [Example(str(i), 0, (path,)) for i, path in enumerate(write_images(tmp_path / "images", 12))]
    return column(prepare("t", examples, tmp_path / "files", image_size=16, decode=False))


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("each", [1, 2])
@pytest.mark.parametrize("fit", [{"image_size": 24}, {"shorter": 16, "longest": 20}, {"longest": 20}])
def test_a_batch_is_byte_for_byte_that_of_the_decoded_table(tmp_path, workers, each, fit):
    examples = questions(tmp_path / "images", each=each)
    decoded = prepare("t", examples, tmp_path / "decoded", **fit)
    stayed = prepare("t", examples, tmp_path / "files", decode=False, workers=workers, **fit)
    assert decoded.table.inputs.keys() == stayed.table.inputs.keys()
    assert decoded.table.row_bytes == stayed.table.row_bytes
    one, other = Data([decoded.table]), Data([stayed.table])
    assert not one.reads_ahead
    assert other.reads_ahead
    order = np.random.default_rng(1).permutation(30)
    for start in range(0, 30, 7):
        ids = np.append(order[start : start + 7], order[0])  # as a replayed example, that nobody saw coming
        a, b = (data.fetch(ids, CPU).parts[0] for data in (one, other))
        for name in a.inputs:
            assert b.inputs[name].dtype == a.inputs[name].dtype
            np.testing.assert_array_equal(b.inputs[name].numpy(), a.inputs[name].numpy())
        other.prefetch(order[start + 7 : start + 14])


def test_what_was_decoded_ahead_is_not_decoded_again(files, monkeypatch):
    asked = []
    ask = ImageFileColumn._request
    monkeypatch.setattr(
        ImageFileColumn, "_request", lambda self, images: asked.append(images.tolist()) or ask(self, images)
    )
    wanted = files.rows(np.array([3, 1, 9]))
    files.prefetch(np.array([1, 3]))
    files.prefetch(np.array([3, 1]))  # the same again
    np.testing.assert_array_equal(files.rows(np.array([3, 1, 9])), wanted)
    assert asked == [[1, 3, 9], [1, 3], [9]], "only what was missing"
    assert len(files._ahead) == 0
    files.rows(np.array([1]))
    assert asked[3:] == [[1]], "what was taken is gone"


def test_batches_decoded_ahead_are_bounded_and_their_memory_goes(files, names):
    for row in range(6):
        files.prefetch(np.array([row]))
    assert [request.images.tolist() for request in files._ahead] == [[4], [5]]
    assert in_memory(names) == [False] * (6 - AHEAD) + [True] * AHEAD
    for row in (4, 5):
        files.rows(np.array([row]))
    assert in_memory(names) == [False] * 6


@pytest.mark.parametrize("workers", [0, 2])
def test_an_image_that_breaks_off_is_told_by_its_name_and_the_next_batch_goes_on(tmp_path, workers):
    paths = write_images(tmp_path / "images", 6)
    paths[4].write_bytes(paths[4].read_bytes()[:-60])
    examples = [Example(str(i), 0, (path,)) for i, path in enumerate(paths)]
    files = column(prepare("t", examples, tmp_path / "files", image_size=16, decode=False, workers=workers))
    files.prefetch(np.arange(6))
    with pytest.raises(UserError, match=r"größe 4\.jpg cannot be decoded"):
        files.rows(np.arange(6))
    assert files.rows(np.array([5, 3])).shape == (2, 3, 16, 16)
    paths[0].unlink()
    with pytest.raises(UserError, match=r"größe 0\.jpg: no such image"):
        files.rows(np.array([0, 1]))


def test_a_missing_file_is_left_out_of_the_table_and_told(tmp_path):
    paths = write_images(tmp_path / "images", 5)
    paths[1].write_text("no image")
    examples = [Example(str(i), i, (path,)) for i, path in enumerate([*paths, tmp_path / "lost.jpg"])]
    with pytest.raises(UserError, match=r"example 5: .*lost\.jpg.*one of 2 such examples; 1 may be left out"):
        prepare("t", examples, tmp_path / "files", image_size=16, decode=False, skip=1)
    prepared = prepare("t", examples, tmp_path / "files", image_size=16, decode=False, skip=2, workers=0)
    assert prepared.ids.tolist() == ["0", "2", "3", "4"]
    assert "größe 1.jpg cannot be decoded (it is not an image)" in prepared.problems[0]
    whole = prepare("t", [examples[i] for i in (0, 2, 3, 4)], tmp_path / "decoded", image_size=16)
    np.testing.assert_array_equal(column(prepared).rows(np.arange(4)), whole.table.inputs["image"].numpy())


def test_the_fingerprint_follows_contents_and_size_and_not_where_the_files_are(tmp_path):
    def fingerprint(name: str, size: int = 16, change: bool = False) -> str:
        paths = write_images(tmp_path / name, 3)
        if change:
            Image.new("RGB", (30, 30), "red").save(paths[1])
        examples = [Example(str(i), 0, (path,)) for i, path in enumerate(paths)]
        prepared = prepare("t", examples, tmp_path / "tables" / name, image_size=size, decode=False)
        return Data([prepared.table]).fingerprint()

    assert fingerprint("a") == fingerprint("b")
    assert len({fingerprint("a"), fingerprint("c", change=True), fingerprint("d", size=17)}) == 3


def test_a_table_of_files_and_a_decoded_one_are_not_taken_for_each_other(tmp_path):
    examples = questions(tmp_path / "images", 8, 4)
    first = prepare("t", examples, tmp_path / "table", image_size=16, decode=False, workers=0)
    assert column(open_prepared(tmp_path / "table", workers=2)).workers == 2
    assert column(first).nbytes < 1000 < first.table.row_bytes * 8
    second = prepare("t", examples, tmp_path / "table", image_size=16)
    assert not isinstance(second.table.inputs["image"], ImageFileColumn)
    assert first.fingerprint != second.fingerprint


def test_a_broken_column_is_told_and_prepared_anew(tmp_path):
    examples = questions(tmp_path / "images", 8, 4)
    prepare("t", examples, tmp_path / "table", image_size=16, decode=False)
    blob = np.load(tmp_path / "table" / "image.path.npy")
    np.save(tmp_path / "table" / "image.path.npy", blob[:-3])
    with pytest.raises(UserError, match=r"broken \(image.path.npy was damaged"):
        open_prepared(tmp_path / "table")
    prepare("t", examples, tmp_path / "table", image_size=16, decode=False)
    np.testing.assert_array_equal(np.load(tmp_path / "table" / "image.path.npy"), blob)


def test_what_cannot_stay_a_file_is_refused(tmp_path):
    (path,) = write_images(tmp_path, 1)
    array = Example("a", 0, (np.zeros((4, 4, 3), np.uint8),))
    with pytest.raises(UserError, match="plain image files"):
        prepare("t", [array], tmp_path / "t", image_size=4, decode=False)
    drawing = Drawing(((1, 1, 5, 5),), ("cup",), (0,))
    with pytest.raises(UserError, match="plain image files"):
        prepare("t", [Example("a", 0, (path,))], tmp_path / "t", image_size=4, decode=False, drawing=lambda _: drawing)
    with pytest.raises(UserError, match="image_size"):
        prepare("t", [Example("a", 0, (path,))], tmp_path / "t", decode=False)
    with pytest.raises(UserError, match="not by -1"):
        prepare("t", [Example("a", 0, (path,))], tmp_path / "t", image_size=4, decode=False, workers=-1)


def test_the_ranks_read_ahead_what_they_will_fetch(tmp_path):
    examples = questions(tmp_path / "images", 12, 12)
    table = prepare("t", examples, tmp_path / "files", image_size=8, decode=False).table
    data, ids = Data([table, table]), np.array([3, 15, 0, 7, 20, 9, 11])
    files = table.inputs["image"]
    assert isinstance(files, ImageFileColumn)
    data.prefetch(ids, 1, 2)
    found = [sorted(request.images.tolist()) for request in files._ahead]
    shown = np.arange(12) if files.index is None else files.index
    assert found == [sorted(shown[[0, 9]]), sorted(shown[[8]])], "every second row of each part"
    for part in data.fetch(ids, CPU, 1, 2).parts:
        assert len(part.targets) in (1, 2)
    assert len(files._ahead) == 0


def test_training_on_files_is_training_on_the_decoded_table(tmp_path, monkeypatch):
    examples = questions(tmp_path / "images", 40, 40)
    asked: list[int] = []
    early: list[int] = []
    ask, ahead = ImageFileColumn._request, ImageFileColumn.prefetch

    def trained(prepared: PreparedTable) -> tuple[dict[str, torch.Tensor], list[float]]:
        torch.manual_seed(0)
        task, training = Classify("t", head="t", outputs=5, chance=0.2), Training(epochs=2, batch_size=6)
        model = Perceptron(width=8, depth=1).build(Inputs((3, 8, 8)), {"t": Head("classify", 5)})
        learner = Learner(model, Data([prepared.table]), {"t": task})
        stages = (Stage("one", np.arange(15), training), Stage("two", np.arange(15, 30), training))
        protocol = Protocol((EvaluationSet("t", "t", "test", np.arange(30, 40)),), every=2)
        log = Scores()
        train(learner, Stream(stages), [Replay(capacity=5, size=2)], protocol, log=log)
        return model.state_dict(), [score.score for score in log.scores]

    wanted, scores = trained(prepare("t", examples, tmp_path / "decoded", image_size=8))
    monkeypatch.setattr(
        ImageFileColumn, "_request", lambda self, images: asked.append(len(images)) or ask(self, images)
    )
    monkeypatch.setattr(ImageFileColumn, "prefetch", lambda self, rows: early.append(len(rows)) or ahead(self, rows))
    found, found_scores = trained(prepare("t", examples, tmp_path / "files", image_size=8, decode=False))
    assert found_scores == scores
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)
    assert sum(early) == 4 * (6 + 3), "all but the first batch of each epoch"
    late, kept = sum(asked) - sum(early), 2 * 12
    assert late <= 10 * len(scores) + 4 * 6 + kept, "else evaluations, first batches and replayed examples alone"


def test_without_room_for_shared_memory_batches_are_decoded_here(files, names, monkeypatch):
    wanted = files.rows(np.arange(5))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.warns(RuntimeWarning, match="no room for a batch"):
        files.prefetch(np.arange(5))
    with pytest.warns(RuntimeWarning, match="no room for a batch"):
        np.testing.assert_array_equal(files.rows(np.arange(5)), wanted)
    assert in_memory(names) == [False, False, False]


def test_a_killed_worker_is_told_and_the_next_batch_has_new_ones(files):
    wanted = files.rows(np.arange(3))
    pool = lazy._pool(files.workers, os.getpid())
    for process in list(pool._processes.values()):
        os.kill(process.pid, signal.SIGKILL)
        process.join()
    with pytest.raises(RunError, match="ended early"):  # at the latest when it waits for the dead
        files.rows(np.arange(3))
    np.testing.assert_array_equal(files.rows(np.arange(3)), wanted)


SCRIPT = """
    import sys, time
    from pathlib import Path
    import numpy as np
    from holdfast.data import lazy

    if __name__ == "__main__":
        files = lazy.open_files(Path(sys.argv[1]))
        files.rows(np.arange(3))
        files.prefetch(np.arange(4))
        (worker,) = lazy._pool(1, lazy.os.getpid())._processes
        print(worker, files._ahead[0].memory.name, "torch" in sys.modules, flush=True)
        time.sleep(float(sys.argv[2]))
"""


@pytest.mark.parametrize("end", ["by itself", "killed"])
def test_workers_and_their_memory_end_with_their_parent(tmp_path, files, end):
    (tmp_path / "script.py").write_text(textwrap.dedent(SCRIPT))
    seconds = "0" if end == "by itself" else "60"
    command = [sys.executable, "-W", "error", str(tmp_path / "script.py"), str(tmp_path / "files"), seconds]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        worker, memory, torch_is_there = process.stdout.readline().split()
        assert torch_is_there == "False", "what a worker imports is light"
        if end == "killed":
            process.kill()
        _, errors = process.communicate(timeout=30)
    if end == "by itself":
        assert (process.returncode, errors) == (0, "")
    deadline = time.monotonic() + 20
    while Path(f"/proc/{worker}").exists() or in_memory([memory]) == [True]:
        assert time.monotonic() < deadline, "the worker, or its memory, outlived its parent"
        time.sleep(0.05)
