"""The data commands as a person uses them."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from PIL import Image

from cli.inside import inside
from cli.test_cli import holdfast
from holdfast.cli.data import _names


def test_make_check_show_and_prepare(tmp_path):
    holdfast("data", "make", "snli-ve", "sst2", "--out", "data", cwd=tmp_path, check=0)
    table = holdfast("data", "check", "data", cwd=tmp_path, check=0).stdout
    assert "snli_ve" in table
    assert "529527" in table, "the official number of training examples"
    found = json.loads(holdfast("data", "check", "data", "--json", cwd=tmp_path, check=0).stdout)
    assert {f["verdict"] for f in found} == {"part"}
    holdfast("data", "show", "snli_ve", "data/snli_ve", "--out", "sheet.png", "--count", "6", cwd=tmp_path, check=0)
    sheet = np.asarray(Image.open(tmp_path / "sheet.png"))
    assert sheet.std() > 20, "there is something to see"
    rows = json.loads(holdfast("data", "prepare", "sst2", "data/sst2", "--json", cwd=tmp_path, check=0).stdout)
    assert [row["split"] for row in rows] == ["train", "dev", "test"]
    assert (tmp_path / "tables" / "sst2" / "vocab.txt").exists()


def test_what_is_wrong_with_a_folder_is_told_by_file_and_record_with_status_2(tmp_path):
    holdfast("data", "make", "snli_ve", "--out", "data", cwd=tmp_path, check=0)
    pictures = sorted((tmp_path / "data").rglob("*.jpg"))
    pictures[0].write_bytes(pictures[0].read_bytes()[:300])
    pictures[1].unlink()
    done = holdfast("data", "check", "data", "--every-image", cwd=tmp_path, check=2)
    assert pictures[0].name in done.stderr
    assert pictures[1].stem in done.stderr
    assert "bad" in done.stdout


def test_flaws_that_the_world_plants_are_called_so_and_are_no_mistake(tmp_path):
    holdfast("data", "make", "vcr", "--out", "data", cwd=tmp_path, check=0)
    done = holdfast("data", "check", "data", cwd=tmp_path, check=0)
    assert "test-1: its tag [5] is not among its 2 objects" in done.stderr
    assert "Planted: synthetic data has a bad record where the official data does." in done.stdout
    path = tmp_path / "data" / "vcr" / "test.jsonl"
    path.write_bytes(path.read_bytes() + b"{}\n")
    found = json.loads(holdfast("data", "check", "data", "--json", cwd=tmp_path, check=2).stdout)
    assert next(f for f in found if f["split"] == "test")["verdict"] == "bad"


def test_an_emptied_file_is_bad_and_not_merely_absent_and_worlds_do_not_mix(tmp_path):
    holdfast("data", "make", "snli_ve", "--out", "data", cwd=tmp_path, check=0)
    path = next((tmp_path / "data").rglob("snli_ve_dev.jsonl"))
    path.write_bytes(b"")
    found = json.loads(holdfast("data", "check", "data", "--json", cwd=tmp_path, check=2).stdout)
    assert {f["split"]: f["verdict"] for f in found} == {"train": "part", "dev": "bad", "test": "part"}
    again = holdfast("data", "make", "snli_ve", "--out", "data", "--seed", "1", cwd=tmp_path, check=2)
    assert "data of another scale or seed" in again.stderr


def test_a_large_scale_says_first_what_it_will_write_and_a_repeated_call_writes_what_is_missing(tmp_path):
    words = ["data", "make", "piqa", "--out", "data", "--scale", "large"]
    first = holdfast(*words, cwd=tmp_path, check=0)
    row = next(line for line in first.stdout.splitlines() if "piqa" in line)
    assert "21,035" in row
    assert row.split()[-1] in ("s", "min")
    written = {path: path.read_bytes() for path in (tmp_path / "data" / "piqa").rglob("*.jsonl")}
    again = holdfast(*words[:3], "commonsenseqa", *words[3:], "--json", cwd=tmp_path, check=0)
    assert "already written: piqa" in again.stderr
    (plan,) = json.loads(again.stdout)
    assert (plan["dataset"], plan["records"], plan["pictures"]) == ("commonsenseqa", 12_102, 0)
    size = sum(path.stat().st_size for path in (tmp_path / "data" / "commonsenseqa").iterdir())
    assert 0.8 < plan["bytes"] / size < 1.25, "the expected size"
    assert {path: path.read_bytes() for path in written} == written, "what was there is untouched"


def _hear_ctrl_c():
    """What a shell starts in the background ignores Ctrl-C, and so would whatever it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize(("sign", "status"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_a_stopped_make_leaves_nothing_half_and_starts_again(tmp_path, sign, status):
    words = [sys.executable, "-m", "holdfast", "data", "make", "imdb", "--out", "data", "--scale", "paper"]
    process = subprocess.Popen(
        words,
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        preexec_fn=_hear_ctrl_c,
    )
    part = tmp_path / "data" / ".imdb.part" / "aclImdb"
    while not part.exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(sign)
    told = process.communicate(timeout=20)[1]
    assert process.returncode == status
    assert told.strip().endswith("holdfast: stopped" if sign == signal.SIGINT else "")
    assert "Traceback" not in told
    assert not (tmp_path / "data" / "imdb").exists(), "nothing looks finished"
    # The writing process ends with the one that was stopped, and so does its lock.
    for _ in range(100):
        done = holdfast("data", "make", "imdb", "--out", "data", cwd=tmp_path)
        if done.returncode == 0:
            break
        assert "another process is writing" in done.stderr
    assert len(list((tmp_path / "data" / "imdb" / "aclImdb" / "train" / "pos").iterdir())) == 100
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["imdb"]


def test_a_sheet_names_what_is_in_the_pictures(tmp_path):
    holdfast("data", "make", "partimagenet", "--out", "data", cwd=tmp_path, check=0)
    assert _names("partimagenet", tmp_path / "data" / "partimagenet", "val")[9] == "Fish Head"
    done = holdfast("data", "show", "partimagenet", "data/partimagenet", "--count", "3", cwd=tmp_path, check=0)
    assert "3 examples of partimagenet, train, in sheet.png" in done.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["data", "make", "vqa", "--out", "x"], "did you mean vqav2"),
        (["data", "make", "sst2", "--out", "x", "--scale", "huge"], "--scale is 'huge'"),
        (["data", "check", "nowhere"], "the folder nowhere does not exist"),
        (["data", "check", "."], "holds no known dataset"),
        (["data", "show", "sst2", "."], "no such file"),
        (["data", "prepare", "sst2", "."], "holds no split of sst2"),
    ],
)
def test_a_mistake_is_told_in_a_sentence(tmp_path, words, sentence):
    done = inside(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


READER = """
from holdfast.datasets.base import Dataset
from holdfast.types import Example

def read(folder, split, reading):
    for path in sorted((folder / split).glob("*.png")):
        if path.stem == "bad":
            reading.bad(path, path.stem, "it is bad")
        else:
            yield Example(f"{split}-{path.stem}", path.stem, images=(path,))

PHOTOS = Dataset("photos", ("train", "test"), read)
"""


def test_a_reader_of_your_own_reads_checks_and_shows_a_folder(tmp_path):
    (tmp_path / "readers.py").write_text(READER)
    for split in ("train", "test"):
        (tmp_path / "photos" / split).mkdir(parents=True)
        for number in range(4):
            noise = np.random.default_rng(number).integers(0, 255, (20, 20, 3), np.uint8)
            Image.fromarray(noise).save(tmp_path / "photos" / split / f"c{number}.png")
    own = ["--as", "readers.py:PHOTOS"]
    found = json.loads(holdfast("data", "check", "photos", *own, "--json", cwd=tmp_path, check=0).stdout)
    assert [(f["dataset"], f["split"], f["examples"], f["verdict"]) for f in found] == [
        ("photos", "train", 4, "read"),
        ("photos", "test", 4, "read"),
    ]
    holdfast("data", "show", "readers.py:PHOTOS", "photos", "--out", "sheet.png", cwd=tmp_path, check=0)
    assert np.asarray(Image.open(tmp_path / "sheet.png")).std() > 20
    words = ["data", "prepare", "readers.py:PHOTOS", "photos", "--json"]
    rows = json.loads(holdfast(*words, cwd=tmp_path, check=0).stdout)
    assert [row["examples"] for row in rows] == [4, 4]
    (tmp_path / "photos" / "test" / "bad.png").touch()
    assert "it is bad" in holdfast("data", "check", "photos", *own, cwd=tmp_path, check=2).stderr
    assert (
        "did you mean PHOTOS"
        in holdfast("data", "check", "photos", "--as", "readers.py:PHOTO", cwd=tmp_path, check=2).stderr
    )


def test_a_sheet_of_a_benchmark_has_examples_of_each_stage(tmp_path):
    done = holdfast("data", "show", "patterns", "--count", "10", cwd=tmp_path, check=0)
    assert "10 training examples of patterns" in done.stdout
    assert np.asarray(Image.open(tmp_path / "sheet.png")).std() > 20
