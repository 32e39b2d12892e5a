import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from holdfast import processes
from holdfast.checksums import opened, sealed
from holdfast.data import decoding
from holdfast.data.images import Drawing, decode
from holdfast.data.prepared import file_state, files_fingerprint, open_prepared, prepare
from holdfast.data.table import Data, Shared, Table
from holdfast.data.text import train
from holdfast.errors import UserError
from holdfast.types import Example

CPU = torch.device("cpu")


def write_images(folder: Path, count: int, seed: int = 0) -> list[Path]:
    """Small pictures of different sizes, smooth so that a JPEG holds something; every third is a grey JPEG."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    paths = []
    for number in range(count):
        height, width = rng.integers(20, 60, 2)
        pixels = np.clip(rng.integers(40, 200, 3) + rng.normal(0, 5, (height, width, 3)), 0, 255).astype(np.uint8)
        path = folder / f"{number:012d}.jpg"
        Image.fromarray(pixels).convert("L" if number % 3 == 0 else "RGB").save(path, "JPEG")
        paths.append(path)
    return paths


def questions(folder: Path, count: int = 40, images: int = 15) -> list[Example]:
    paths = write_images(folder, images)
    rng = np.random.default_rng(1)
    words = ["what", "colour", "is", "the", "red", "cup", "dog"]
    return [
        Example(str(1000 + i), int(rng.integers(5)), (paths[i * 11 % images],), " ".join(rng.choice(words, 1 + i % 6)))
        for i in range(count)
    ]


def tree(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def left_over(folder: Path) -> set[str]:
    return {path.name for path in folder.parent.iterdir() if path.name.endswith((".partial", ".old"))}


@pytest.mark.parametrize("workers", [1, 2])
def test_batches_are_the_examples_decoded_one_by_one(tmp_path, workers, monkeypatch):
    monkeypatch.setattr(decoding, "SPAWN", 0.0)
    examples = questions(tmp_path / "images", 80, 70)
    tokenizer = train((e.text for e in examples), 60)
    calls = []
    prepared = prepare(
        "vqa",
        examples,
        tmp_path / "table",
        image_size=24,
        tokenizer=tokenizer,
        length=7,
        workers=workers,
        progress=lambda done, total: calls.append((done, total)),
    )
    data = Data([prepared.table])
    for rows in np.random.default_rng(0).permutation(80).reshape(4, 20):
        (part,) = data.fetch(rows, CPU).parts
        assert part.task == "vqa"
        wanted = np.stack([decode(examples[row].images[0], 24).transpose(2, 0, 1) for row in rows])
        np.testing.assert_array_equal(part.inputs["image"].numpy(), wanted)
        texts, lengths = tokenizer.encode([examples[row].text for row in rows], 7)
        np.testing.assert_array_equal(part.inputs["text"].numpy(), texts)
        np.testing.assert_array_equal(part.inputs["text_length"].numpy(), lengths)
        assert part.targets.tolist() == [examples[row].target for row in rows]
        assert prepared.ids[rows].tolist() == [examples[row].id for row in rows]
    assert calls == [(32, 70), (64, 70), (70, 70)]


def test_an_image_that_many_questions_share_is_stored_once(tmp_path):
    prepared = prepare("vqa", questions(tmp_path / "images"), tmp_path / "table", image_size=16)
    column = prepared.table.inputs["image"]
    assert isinstance(column, Shared)
    assert column.values.shape == (15, 3, 16, 16)
    assert prepared.table.row_bytes == 3 * 16 * 16 + 8, "what a memory keeps, it keeps whole"
    assert prepared.table.nbytes == 15 * 3 * 16 * 16 + 40 * 8 + 40 * 8


def test_rows_with_an_image_each_have_no_index(tmp_path):
    rng = np.random.default_rng(0)
    examples = [Example(str(i), i, (rng.integers(0, 256, (8, 6, 3), np.uint8),)) for i in range(5)]
    column = prepare("cifar", examples, tmp_path / "table").table.inputs["image"]
    assert isinstance(column, torch.Tensor)
    wanted = np.stack([e.images[0].transpose(2, 0, 1) for e in examples])
    np.testing.assert_array_equal(column.numpy(), wanted)


def test_pairs_of_images_keep_their_order_and_proportions(tmp_path):
    paths = write_images(tmp_path / "images", 4)
    pairs = [(0, 1), (1, 0), (3, 2)]
    examples = [Example(f"{a}-{b}", a % 2, (paths[a], paths[b])) for a, b in pairs]
    table = prepare("nlvr2", examples, tmp_path / "table", shorter=16, longest=20).table
    (part,) = Data([table]).fetch(np.arange(3), CPU).parts
    assert part.inputs["image"].shape == (3, 2, 3, 20, 20)
    for row, pair in enumerate(pairs):
        for which, number in enumerate(pair):
            wanted = decode(paths[number], None, 16, 20).transpose(2, 0, 1)
            height, width = part.inputs["image_size"][row, which].tolist()
            assert (height, width) == wanted.shape[1:]
            found = part.inputs["image"][row, which].numpy()
            np.testing.assert_array_equal(found[:, :height, :width], wanted)
            assert found.sum() == wanted.sum(), "nothing beside it"


def test_choices_follow_their_text_and_columns_are_the_caller_s(tmp_path):
    examples = [Example(str(i), i % 2, text=f"goal {i}", choices=("do this", f"do that {i}")) for i in range(1500)]
    tokenizer = train([e.text for e in examples] + [c for e in examples for c in e.choices], 80)
    prepared = prepare(
        "piqa",
        examples,
        tmp_path / "table",
        tokenizer=tokenizer,
        length=12,
        target=lambda some: np.array([[e.target, 0.5] for e in some], np.float32),
        columns={"number": lambda some: np.array([int(e.id) for e in some])},
    )
    text = prepared.table.inputs["text"]
    assert text.shape == (1500, 2, 12)
    assert tokenizer.decode(text[1200, 1].tolist()) == "goal 1200 do that 1200"
    separator = tokenizer.vocabulary.index("[SEP]")
    assert text[1200, 1].tolist().count(separator) == 2
    second = prepared.table.inputs["text_second"]
    assert second[1200, 1] == text[1200, 1].tolist().index(separator) + 1
    one = prepare("vcr", examples[:3], tmp_path / "joined", tokenizer=tokenizer, length=12, joined=True).table.inputs
    assert "text_second" not in one
    assert torch.equal(one["text"][2, 1], text[2, 1])
    assert prepared.table.inputs["number"].tolist() == list(range(1500))
    assert prepared.table.targets[3].tolist() == [1, 0.5]
    alone = [replace(e, text="") for e in examples[:3]]
    text = prepare("story", alone, tmp_path / "alone", tokenizer=tokenizer, length=12).table.inputs["text"]
    np.testing.assert_array_equal(text[2].numpy(), tokenizer.encode(alone[2].choices, 12)[0])


def test_drawn_boxes_make_another_picture_of_the_same_file(tmp_path):
    path = tmp_path / "white.png"
    Image.fromarray(np.full((60, 60, 3), 255, np.uint8)).save(path)
    drawings = {"a": None, "b": Drawing(((10, 10, 50, 50),), ("person",), (3,)), "c": None}
    examples = [Example(name, 0, (path,)) for name in drawings]
    table = prepare("vcr", examples, tmp_path / "t", image_size=30, drawing=lambda e: drawings[e.id]).table
    column = table.inputs["image"]
    assert isinstance(column, Shared)
    assert column.index.tolist() == [0, 1, 0]
    wanted = decode(path, 30, drawing=drawings["b"]).transpose(2, 0, 1)
    np.testing.assert_array_equal(column.values[1].numpy(), wanted)
    assert (column.values[0] == 255).all()


def test_workers_start_only_where_they_save_more_time_than_that_takes(tmp_path, monkeypatch):
    examples = questions(tmp_path / "images", 80, 70)

    def pool(workers):
        raise AssertionError(f"{workers} workers")

    monkeypatch.setattr(processes, "worker_pool", pool)
    monkeypatch.setattr(decoding, "SPAWN", 60.0)
    prepare("vqa", examples, tmp_path / "few", image_size=16, workers=2)
    monkeypatch.setattr(decoding, "SPAWN", 0.0)
    with pytest.raises(AssertionError, match="2 workers"):
        prepare("vqa", examples, tmp_path / "many", image_size=16, workers=2)
    prepare("vqa", examples, tmp_path / "alone", image_size=16, workers=1)


def test_the_same_source_gives_the_same_bytes_whatever_the_workers(tmp_path, monkeypatch):
    monkeypatch.setattr(decoding, "SPAWN", 0.0)
    examples = questions(tmp_path / "images", 80, 70)
    prepare("vqa", examples, tmp_path / "one", image_size=16)
    prepare("vqa", examples, tmp_path / "two", image_size=16, workers=2)
    assert tree(tmp_path / "one") == tree(tmp_path / "two")


def test_an_unchanged_source_is_opened_and_a_changed_one_prepared_anew(tmp_path):
    examples = questions(tmp_path / "images")
    folder = tmp_path / "table"

    def prepared(rows=examples, size=16, **options):
        decoded = []
        found = prepare(
            "vqa", rows, folder, image_size=size, progress=lambda done, total: decoded.append(done), **options
        )
        assert left_over(folder) == set()
        return bool(decoded), found

    assert prepared()[0]
    assert not prepared()[0]
    assert prepared(size=20)[0], "another setting"
    assert prepared(rows=[replace(examples[0], target=4), *examples[1:]], size=20)[0], "another target"
    fresh, found = prepared(rows=examples[:9])
    assert fresh
    assert len(found.table) == 9
    Image.fromarray(np.zeros((30, 30, 3), np.uint8)).save(examples[0].images[0])
    fresh, found = prepared(rows=examples[:9])
    assert fresh, "another image in the same file"
    assert found.table.inputs["image"][0].max() == 0
    assert prepared(target=lambda some: np.zeros(len(some), np.int64))[0], "another function's values"


def test_with_a_source_given_the_examples_are_not_even_read(tmp_path):
    def once():
        yield from questions(tmp_path / "images")
        assert not (tmp_path / "table").exists()

    write_images(tmp_path / "images", 15)
    source = files_fingerprint(tmp_path / "images", "train")
    first = prepare("vqa", once(), tmp_path / "table", image_size=16, source=source)
    again = prepare("vqa", once(), tmp_path / "table", image_size=16, source=source)
    assert again.fingerprint == first.fingerprint
    os.utime(tmp_path / "images" / f"{3:012d}.jpg", (1, 1))
    assert files_fingerprint(tmp_path / "images", "train") != source
    with pytest.raises(AssertionError):
        prepare("vqa", once(), tmp_path / "table", image_size=16, source="another")


def test_a_file_that_was_replaced_by_one_of_the_same_size_and_date_is_another(tmp_path):
    file = tmp_path / "data" / "a.csv"
    file.parent.mkdir()
    file.write_text("one")
    before, source, state = file.stat(), files_fingerprint(file.parent), file_state(file)
    time.sleep(0.02)  # the clock of a file system ticks every few milliseconds
    file.write_text("two")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert files_fingerprint(file.parent) != source
    assert file_state(file) != state


@pytest.mark.parametrize("workers", [1, 2])
def test_killed_in_the_middle_leaves_nothing_half(tmp_path, workers):
    write_images(tmp_path / "images", 100)
    code = textwrap.dedent(f"""
        import os, signal
        from pathlib import Path
        from holdfast.data import decoding
        from holdfast.data.prepared import prepare
        from holdfast.types import Example

        decoding.SPAWN = 0.0

        def kill(done, total):
            if done >= 64:
                os.kill(os.getpid(), signal.SIGKILL)

        if __name__ == "__main__":
            root = Path({str(tmp_path)!r})
            examples = [Example(p.name, 0, (p,)) for p in sorted((root / "images").iterdir())]
            prepare("t", examples, root / "table", image_size=8, workers={workers}, progress=kill)
    """)
    script = tmp_path / "script.py"
    script.write_text(code)
    # Waiting for the end of the output is waiting for the workers: they hold it open until they end.
    done = subprocess.run([sys.executable, script], capture_output=True, timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert not (tmp_path / "table").exists()
    examples = [Example(p.name, 0, (p,)) for p in sorted((tmp_path / "images").iterdir())]
    prepared = prepare("t", examples, tmp_path / "table", image_size=8)
    assert len(prepared.table) == 100
    assert left_over(tmp_path / "table") == set()
    np.testing.assert_array_equal(
        prepared.table.inputs["image"][99], decode(examples[99].images[0], 8).transpose(2, 0, 1)
    )


def test_an_error_in_the_middle_keeps_the_table_that_was_there(tmp_path):
    examples = questions(tmp_path / "images")
    before = prepare("vqa", examples, tmp_path / "table", image_size=16).fingerprint

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare("vqa", examples, tmp_path / "table", image_size=18, progress=stop)
    assert open_prepared(tmp_path / "table").fingerprint == before
    assert left_over(tmp_path / "table") == set()


def test_images_that_cannot_be_decoded_are_named_or_left_out(tmp_path):
    examples = questions(tmp_path / "images")
    bad = examples[0].images[0]
    bad.write_bytes(bad.read_bytes()[:300])
    lost = [e.id for e in examples if e.images[0] == bad]
    with pytest.raises(UserError, match=rf"example {lost[0]}: .*{bad.name} cannot be decoded"):
        prepare("vqa", examples, tmp_path / "table", image_size=16)
    assert not (tmp_path / "table").exists()
    prepared = prepare("vqa", examples, tmp_path / "table", image_size=16, skip=len(lost))
    assert prepared.ids.tolist() == [e.id for e in examples if e.id not in lost]
    assert len(prepared.problems) == len(lost)
    kept = [e for e in examples if e.id not in lost]
    (part,) = Data([prepared.table]).fetch(np.array([5]), CPU).parts
    np.testing.assert_array_equal(part.inputs["image"][0], decode(kept[5].images[0], 16).transpose(2, 0, 1))
    with pytest.raises(UserError, match=f"example {lost[-1]}"):
        prepare("vqa", examples, tmp_path / "table", image_size=16, skip=len(lost) - 1)


def test_a_broken_table_is_told_and_prepared_anew(tmp_path):
    examples = questions(tmp_path / "images")
    folder = tmp_path / "table"
    whole = tree(folder) if prepare("vqa", examples, folder, image_size=16) else {}

    def cut(name):
        (folder / name).write_bytes(whole[name][: len(whole[name]) // 2])

    def shorten():
        np.save(folder / "target.npy", np.zeros(3, np.int64))

    for harm in [
        *(lambda n=n: cut(n) for n in whole),
        *(lambda n=n: (folder / n).unlink() for n in ("id.npy",)),
        shorten,
    ]:
        harm()
        with pytest.raises(UserError, match=r"broken|holds no prepared"):
            open_prepared(folder)
        prepare("vqa", examples, folder, image_size=16)
        assert tree(folder) == whole
    index = json.loads(whole["index.json"])
    (folder / "index.json").write_text(json.dumps(sealed(opened(index) | {"version": 0})))
    with pytest.raises(UserError, match="another version"):
        open_prepared(folder)


def test_nothing_written_through_a_tensor_reaches_the_file(tmp_path):
    examples = questions(tmp_path / "images")
    prepare("vqa", examples, tmp_path / "table", image_size=16).table.targets.fill_(77)
    assert 77 not in open_prepared(tmp_path / "table").table.targets


def test_what_cannot_be_prepared_is_said_in_a_sentence(tmp_path):
    path = write_images(tmp_path / "images", 2)
    folder = tmp_path / "table"
    one, two = Example("a", 0, (path[0],)), Example("b", 0, (path[1],))
    cases = [
        ([], {}, "no examples"),
        ([one, two], {}, "give an image_size"),
        ([one, Example("b", 0)], {}, "the same number of images"),
        ([replace(one, target="red")], {"image_size": 8}, "example a has the target 'red'"),
        ([one], {"length": 4}, "need both a tokenizer and a length"),
        ([one], {"shorter": 4}, "longest side"),
        ([one], {"image_size": 8, "columns": {"id": len}}, "cannot be called 'id'"),
        ([one], {"image_size": 8, "columns": {"../x": len}}, "cannot be called"),
        ([one, two], {"image_size": 8, "target": lambda some: np.zeros(1)}, "1 rows for 2 examples"),
    ]
    for examples, options, match in cases:
        with pytest.raises(UserError, match=match):
            prepare("t", examples, folder, **options)
        assert not folder.exists()
        assert left_over(folder) == set()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(UserError, match="something other than a prepared table"):
        prepare("t", [one], tmp_path / "mine", image_size=8)
    assert (tmp_path / "mine" / "thesis.txt").exists()


def test_two_at_once_prepare_once(tmp_path):
    examples = questions(tmp_path / "images")
    decoded: list[int] = []

    def work():
        return prepare(
            "vqa", examples, tmp_path / "table", image_size=16, progress=lambda done, total: decoded.append(done)
        )

    with ThreadPoolExecutor(4) as pool:
        found = [future.result() for future in [pool.submit(work) for _ in range(4)]]
    assert decoded == [15]
    assert len({prepared.fingerprint for prepared in found}) == 1
    assert left_over(tmp_path / "table") == set()


def test_shared_columns_behave_as_plain_ones_do():
    values = torch.arange(12).reshape(3, 4)
    index = torch.tensor([2, 0, 0, 1, 2])
    targets = torch.arange(5)
    shared, plain = (Data([Table("t", {"x": c}, targets)]) for c in (Shared(values, index), values[index]))
    for rank, size in [(0, 1), (1, 2), (4, 7)]:
        a, b = (data.to(CPU).fetch(np.array([4, 1, 3]), CPU, rank, size).parts[0] for data in (shared, plain))
        assert torch.equal(a.inputs["x"], b.inputs["x"])
    assert shared.example_bytes(np.array([0, 1])) == plain.example_bytes(np.array([0, 1]))
    other = Data([Table("t", {"x": Shared(values, index.flip(0))}, targets)])
    assert other.fingerprint() != shared.fingerprint(), "the same images in other places"


def test_a_full_disk_is_told_before_it_is_full(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("usage", (), {"free": 10})())
    with pytest.raises(UserError, match=r"the images take .* but .* has .* free"):
        prepare("t", questions(tmp_path / "images"), tmp_path / "table", image_size=16)
