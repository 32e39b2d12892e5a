"""The data commands as a person uses them."""

import json

import numpy as np
import pytest
from PIL import Image

from cli.test_cli import holdfast


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


def test_an_emptied_file_is_bad_and_not_merely_absent_and_worlds_do_not_mix(tmp_path):
    holdfast("data", "make", "snli_ve", "--out", "data", cwd=tmp_path, check=0)
    path = next((tmp_path / "data").rglob("snli_ve_dev.jsonl"))
    path.write_bytes(b"")
    found = json.loads(holdfast("data", "check", "data", "--json", cwd=tmp_path, check=2).stdout)
    assert {f["split"]: f["verdict"] for f in found} == {"train": "part", "dev": "bad", "test": "part"}
    again = holdfast("data", "make", "snli_ve", "--out", "data", "--seed", "1", cwd=tmp_path, check=2)
    assert "two worlds must not mix" in again.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["data", "make", "vqa", "--out", "x"], "did you mean vqav2"),
        (["data", "make", "sst2", "--out", "x", "--scale", "huge"], "--scale is 'huge'"),
        (["data", "check", "nowhere"], "there is no folder nowhere"),
        (["data", "check", "."], "holds no dataset that is known here"),
        (["data", "show", "sst2", "."], "there is no such file"),
        (["data", "prepare", "sst2", "."], "holds no split of sst2"),
    ],
)
def test_a_mistake_is_told_in_a_sentence(tmp_path, words, sentence):
    assert sentence in holdfast(*words, cwd=tmp_path, check=2).stderr
