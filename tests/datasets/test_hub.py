"""The hub's columns: small tables written here with pyarrow, in the layouts of snapshots and caches."""

import io
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as arrow
import pyarrow.parquet as parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from holdfast.datasets import cifar100, coco, commonsenseqa, hellaswag, imagenet, imdb, nlvr2, piqa, sst2, vcr, vqav2
from holdfast.datasets.base import DataError, Dataset, Reading
from holdfast.datasets.whole import prepare_all
from holdfast.errors import UserError


def png(side: int = 32, mode: str = "RGB", colour: Any = (200, 10, 30), kind: str = "PNG") -> bytes:
    content = io.BytesIO()
    Image.new(mode, (side, side), colour).save(content, kind)
    return content.getvalue()


def embedded(path: str | None = None, **settings: Any) -> dict[str, Any]:
    return {"bytes": png(**settings), "path": path}


ANSWERS = [{"answer": "blue", "answer_confidence": "yes", "answer_id": n} for n in range(1, 11)]
HELLASWAG = {"ind": 4, "activity_label": "Tea", "ctx_a": "A man.", "ctx_b": "he", "ctx": "A man. he"}
HELLASWAG |= {"endings": ["a", "b", "c", "d"], "source_id": "wikihow~1", "split": "val", "split_type": "indomain"}
COMMONSENSE = {"id": "0f", "question": "Where?", "question_concept": "river"}
COMMONSENSE |= {"choices": {"label": list("ABCDE"), "text": ["sky", "valley", "shoe", "lamp", "cloud"]}}
VQA = {"question_type": "what", "multiple_choice_answer": "blue", "answers": ANSWERS, "image_id": 9}
VQA |= {"answer_type": "other", "question_id": 9000, "question": "What colour?", "image": embedded("9.jpg", side=3)}
COCO = {"image_id": 9, "image": embedded(side=3), "width": 3, "height": 3}
COCO |= {"objects": {"bbox_id": [1, 2, 3], "category": [79, 0, 79], "bbox": [[0.0, 0.0, 2.0, 2.0]] * 3}}
NLVR2 = {"identifier": "dev-850-0-1", "sentence": "Both show a boat.", "label": "True"}
NLVR2 |= {"image0": embedded(side=3), "image1": embedded(side=4)}
WORD, TAG = {"kind": "text", "text": "Who", "object_indices": None}, {"kind": "objects", "object_indices": [0, 1]}
VCR = {"annot_id": "val-0", "question_tokens": [WORD, TAG], "answer_label": 2, "rationale_label": 0}
VCR |= {"answer_choice_tokens": [[TAG, WORD], [WORD], [WORD], [TAG]], "rationale_choice_tokens": [[WORD]] * 4}
STILL = {"image": embedded(side=9), "objects": ["person", "dog"], "boxes": [[0.0, 1.0, 5.0, 8.0, 0.9]] * 2}
STILL |= {"width": 9, "height": 9, "annotations": [VCR]}

# Each dataset, our split, the hub's split, and its rows.
CASES: dict[str, tuple[Dataset, str, str, list[dict[str, Any]]]] = {
    "sst2": (
        sst2.DATASET,
        "dev",
        "validation",
        [{"idx": n, "sentence": f'a "film {n} ', "label": n % 2} for n in range(3)],
    ),
    "imdb": (imdb.DATASET, "train", "train", [{"text": f"fine<br />{n}", "label": n % 2} for n in range(3)]),
    "hellaswag": (
        hellaswag.DATASET,
        "val",
        "validation",
        [HELLASWAG | {"label": "3"}, HELLASWAG | {"ind": 9, "label": "0"}],
    ),
    "commonsenseqa": (
        commonsenseqa.DATASET,
        "dev",
        "validation",
        [COMMONSENSE | {"answerKey": "B"}, COMMONSENSE | {"id": "1a", "answerKey": "E"}],
    ),
    "piqa": (
        piqa.DATASET,
        "valid",
        "validation",
        [{"goal": "Dry shoes", "sol1": "paper", "sol2": "soup", "label": n} for n in (0, 1)],
    ),
    "cifar100": (
        cifar100.DATASET,
        "train",
        "train",
        [
            {"img": embedded(), "fine_label": 26, "coarse_label": 14},
            {"img": embedded(), "fine_label": 99, "coarse_label": 0},
        ],
    ),
    "imagenet": (
        imagenet.DATASET,
        "val",
        "validation",
        [
            {
                "image": embedded("ILSVRC2012_val_00000293_n01440764.JPEG", mode="CMYK", colour=0, kind="JPEG"),
                "label": 0,
            },
            {"image": embedded(), "label": 999},
        ],
    ),
    "coco": (coco.DATASET, "val2017", "val", [COCO, COCO | {"image_id": 10, "objects": {"category": [], "bbox": []}}]),
    "nlvr2": (nlvr2.DATASET, "dev", "validation", [NLVR2, NLVR2 | {"identifier": "dev-850-1-0", "label": "False"}]),
    "vcr": (vcr.DATASET, "val", "validation", [STILL, STILL | {"annotations": [VCR | {"annot_id": "val-1"}]}]),
    "vqav2": (vqav2.DATASET, "val", "validation", [VQA, VQA | {"question_id": 9001, "question": "And now?"}]),
}


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = arrow.Table.from_pylist(rows)
    if path.suffix == ".parquet":
        parquet.write_table(table, path)
    else:
        with arrow.OSFile(str(path), "wb") as file, arrow.ipc.new_stream(file, table.schema) as stream:
            stream.write_table(table)


def read(name: str, folder: Path, skip: int = 0) -> tuple[list[Any], list[Any]]:
    reading = Reading(skip=skip)
    return list(CASES[name][0].examples(folder, CASES[name][1], reading)), reading.problems


def snapshot(name: str, folder: Path, file: str = "data/{}-00000-of-00001.parquet") -> Path:
    _, _, split, rows = CASES[name]
    write(folder / file.format(split), rows)
    return folder / file.format(split)


@pytest.mark.parametrize("name", CASES)
def test_a_snapshot_is_recognised_as_one_dataset_and_read(name, tmp_path):
    folder = tmp_path / name
    snapshot(name, folder)
    assert [other for other, case in CASES.items() if case[0].present(folder)] == [name]
    assert not any(case[0].present(tmp_path / "nothing") for case in CASES.values())
    examples, problems = read(name, folder)
    assert len(examples) == len(CASES[name][3])
    assert problems == []


def test_texts_targets_and_choices(tmp_path):
    found = {}
    for name in ("sst2", "imdb", "hellaswag", "commonsenseqa", "piqa"):
        snapshot(name, tmp_path / name)
        found[name] = [(e.id, e.target, e.text, e.choices) for e in read(name, tmp_path / name)[0]]
    assert found["sst2"][1] == ("dev-1", 1, 'a "film 1 ', ())
    assert found["imdb"][2] == ("train-2", 0, "fine<br />2", ())
    endings = ("a", "b", "c", "d")
    assert found["hellaswag"] == [("val-0", 3, "A man. he", endings), ("val-1", 0, "A man. he", endings)]
    texts = ("sky", "valley", "shoe", "lamp", "cloud")
    assert found["commonsenseqa"] == [("0f", 1, "Where?", texts), ("1a", 4, "Where?", texts)]
    assert found["piqa"][1] == ("valid-1", 1, "Dry shoes", ("paper", "soup"))


def test_the_hub_gives_what_the_official_file_gives(tmp_path):
    """The same rows as the owner's JSON lines, where both have the same fields."""
    import json

    rows = CASES["hellaswag"][3]
    (tmp_path / "official").mkdir()
    lines = "\n".join(json.dumps(row | {"label": int(row["label"])}) for row in rows)
    (tmp_path / "official" / "hellaswag_val.jsonl").write_text(lines)
    snapshot("hellaswag", tmp_path / "hub")
    assert read("hellaswag", tmp_path / "official") == read("hellaswag", tmp_path / "hub")


def test_pictures_are_decoded_to_colour(tmp_path):
    for name in ("cifar100", "imagenet", "vqav2"):
        snapshot(name, tmp_path / name)
    small = read("cifar100", tmp_path / "cifar100")[0][0]
    assert small.images[0].dtype == np.uint8
    assert small.images[0].shape == (32, 32, 3)
    assert small.images[0][5, 5].tolist() == [200, 10, 30]
    assert (small.target, small.extra) == (26, {"coarse_label": 14})
    first, second = read("imagenet", tmp_path / "imagenet")[0]
    assert (first.id, first.target, first.extra) == ("ILSVRC2012_val_00000293", 0, {"wnid": "n01440764"})
    assert (second.id, second.target, second.extra) == ("val-1", 999, {})
    assert first.images[0].shape == (32, 32, 3)  # it was CMYK
    question = read("vqav2", tmp_path / "vqav2")[0][0]
    assert (question.id, question.target, question.text) == ("9000", "blue", "What colour?")
    assert question.extra["answers"] == ("blue",) * 10
    assert question.extra["image_id"] == 9
    assert question.images[0].shape == (3, 3, 3)


def test_coco_has_the_categories_of_an_image_in_either_form(tmp_path):
    snapshot("coco", tmp_path / "coco")
    first, second = read("coco", tmp_path / "coco")[0]
    assert (first.id, first.target, first.images[0].shape) == ("9", (0, 79), (3, 3, 3))
    assert (second.id, second.target) == ("10", ())
    assert "boxes" not in first.extra
    write(tmp_path / "list" / "val.parquet", [COCO | {"objects": [{"category": 4}, {"category": 2}]}])
    assert [e.target for e in read("coco", tmp_path / "list")[0]] == [(2, 4)]
    write(tmp_path / "bad" / "val.parquet", [COCO | {"objects": {"category": [80]}}])
    with pytest.raises(DataError, match="its label is 80"):
        read("coco", tmp_path / "bad")


def test_nlvr2_has_two_pictures_under_the_names_of_either_copy(tmp_path):
    snapshot("nlvr2", tmp_path / "whole")
    first, second = read("nlvr2", tmp_path / "whole")[0]
    assert (first.id, first.target, second.id, second.target) == ("dev-850-0-1", 1, "dev-850-1-0", 0)
    assert [image.shape for image in first.images] == [(3, 3, 3), (4, 4, 3)]
    row = {"question_id": "test1-0-1-0", "question": "Both show a boat.", "answer": "False", "synset": "boat"}
    rows = [row | {"left_image": embedded(side=5), "right_image": embedded(side=6)}]
    write(tmp_path / "parts" / "data" / "balanced_test_public-00000-of-00001.parquet", rows)
    assert nlvr2.DATASET.present(tmp_path / "parts")
    (found,) = nlvr2.DATASET.examples(tmp_path / "parts", "balanced_test1")
    assert (found.id, found.target, found.text) == ("test1-0-1-0", 0, "Both show a boat.")
    assert [image.shape for image in found.images] == [(5, 5, 3), (6, 6, 3)]
    assert found.extra == {"synset": "boat"}
    write(tmp_path / "numbers" / "validation.parquet", [NLVR2 | {"label": 0}])  # one copy's 0 is True: not guessed
    with pytest.raises(DataError, match="its 'label' is 0, not str"):
        read("nlvr2", tmp_path / "numbers")


def test_vcr_has_several_questions_about_an_image_and_one_bad_one_spoils_no_other(tmp_path):
    bad = VCR | {"annot_id": "val-1", "question_tokens": [TAG | {"object_indices": [2]}]}
    odd = VCR | {"annot_id": "val-2", "question_tokens": [TAG | {"kind": "sound"}]}
    notes = [VCR, bad, odd, VCR | {"annot_id": "val-3"}]
    write(tmp_path / "image_examples" / "validation-00000-of-00001.parquet", [STILL | {"annotations": notes}])
    assert vcr.DATASET.present(tmp_path)
    (first, last), problems = read("vcr", tmp_path, skip=2)
    assert (first.id, last.id, first.target) == ("val-0", "val-3", 2)
    assert first.text == "Who [person1] and [dog2]"
    assert first.choices == ("[person1] and [dog2] Who", "Who", "Who", "[person1] and [dog2]")
    assert first.extra["question"] == ("Who", (0, 1))
    assert first.extra["boxes"][1] == (0.0, 1.0, 5.0, 8.0, 0.9)
    assert first.images[0].shape == (9, 9, 3)
    assert [problem.record for problem in problems] == ["row 0", "row 0"]
    assert "not among its 2 objects" in problems[0].what
    assert "neither text nor objects" in problems[1].what
    hidden = VCR | {"answer_label": None, "rationale_label": -1}
    write(tmp_path / "test.parquet", [STILL | {"annotations": [hidden]}])
    (example,) = vcr.DATASET.examples(tmp_path, "test")
    assert (example.target, example.extra["rationale_label"]) == (None, None)


def test_a_picture_may_be_a_file_beside_the_table(tmp_path):
    write(tmp_path / "train.parquet", [{"img": {"bytes": None, "path": "a/1.png"}, "fine_label": 1, "coarse_label": 2}])
    with pytest.raises(DataError, match=r"the file 'a/1\.png' does not exist"):
        read("cifar100", tmp_path)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "1.png").write_bytes(png())
    assert read("cifar100", tmp_path)[0][0].images == (tmp_path / "a" / "1.png",)


def test_hidden_labels_are_none_in_the_test_split_and_bad_elsewhere(tmp_path):
    write(tmp_path / "sst2" / "test.parquet", [{"idx": 0, "sentence": "a film", "label": -1}])
    write(tmp_path / "sst2" / "train.parquet", [{"idx": 0, "sentence": "a film", "label": -1}])
    assert [e.target for e in sst2.DATASET.examples(tmp_path / "sst2", "test")] == [None]
    with pytest.raises(DataError, match="its label is -1"):
        list(sst2.DATASET.examples(tmp_path / "sst2", "train"))
    write(tmp_path / "h" / "test.parquet", [HELLASWAG | {"label": ""}])
    assert [e.target for e in hellaswag.DATASET.examples(tmp_path / "h", "test")] == [None]
    write(tmp_path / "c" / "test.parquet", [COMMONSENSE | {"answerKey": ""}])
    assert [e.target for e in commonsenseqa.DATASET.examples(tmp_path / "c", "test")] == [None]
    hidden = {"question": "What?", "question_id": 1, "image_id": 9, "image": embedded(), "answers": None}
    write(tmp_path / "v" / "testdev.parquet", [hidden])
    (found,) = vqav2.DATASET.examples(tmp_path / "v", "test-dev")
    assert (found.target, found.extra) == (None, {"image_id": 9})
    write(tmp_path / "imdb" / "unsupervised.parquet", [{"text": "hm", "label": -1}])
    assert [e.target for e in imdb.DATASET.examples(tmp_path / "imdb", "unsupervised")] == [None]


HASH = "0123456789abcdef0123456789abcdef01234567"
LAYOUTS = [
    "{}.parquet",
    "{}-00000-of-00001.parquet",
    "data/{}-00000-of-00001-9564e8b05b4757ab.parquet",
    "plain_text/{}-00000-of-00001.parquet",
    "default/{}/0000.parquet",
    "default/partial-{}/0000.parquet",
    f"snapshots/{HASH}/data/{{}}-00000-of-00001.parquet",
    f"plain_text/0.0.0/{HASH}/piqa-{{}}.arrow",
    "{}/data-00000-of-00001.arrow",
]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout, tmp_path):
    snapshot("piqa", tmp_path / "piqa", layout)
    assert piqa.DATASET.present(tmp_path / "piqa")
    assert [e.target for e in read("piqa", tmp_path / "piqa")[0]] == [0, 1]
    if not layout.startswith(("plain_text", "{}/")):
        assert not piqa.DATASET.present(tmp_path)  # a folder of datasets is none of them


def test_of_a_cache_the_snapshot_of_main_is_read(tmp_path):
    other = HASH[::-1]
    for commit, goal in ((HASH, "Dry shoes"), (other, "Old")):
        rows = [{"goal": goal, "sol1": "a", "sol2": "b", "label": 0}]
        write(tmp_path / "snapshots" / commit / "data" / "train-00000-of-00001.parquet", rows)
    (tmp_path / "refs").mkdir()
    (tmp_path / "refs" / "main").write_text(HASH)
    assert [e.text for e in piqa.DATASET.examples(tmp_path, "train")] == ["Dry shoes"]
    (tmp_path / "refs" / "main").write_text(other)
    assert [e.text for e in piqa.DATASET.examples(tmp_path, "train")] == ["Old"]


def test_shards_are_one_split_and_a_missing_one_is_told(tmp_path):
    for number in range(3):
        rows = [{"goal": f"{number}.{row}", "sol1": "a", "sol2": "b", "label": 0} for row in range(300)]
        write(tmp_path / f"train-{number:05d}-of-00003.parquet", rows)
    found = list(piqa.DATASET.examples(tmp_path, "train"))
    assert [e.id for e in found] == [f"train-{row}" for row in range(900)]
    assert found[599].text == "1.299"
    (tmp_path / "train-00001-of-00003.parquet").unlink()
    with pytest.raises(DataError, match=r"train-00001-of-00003\.parquet: this part of the split is missing"):
        list(piqa.DATASET.examples(tmp_path, "train"))
    assert len(list(piqa.DATASET.examples(tmp_path, "train", Reading(skip=1)))) == 600
    with pytest.raises(DataError, match="00001-of-00003"):  # it is not a split that the folder does not have
        prepare_all(piqa.DATASET, tmp_path, tmp_path / "out")


def test_a_copy_that_has_only_some_splits_is_prepared(tmp_path):
    snapshot("piqa", tmp_path / "piqa")
    assert [split.split for split in prepare_all(piqa.DATASET, tmp_path / "piqa", tmp_path / "out")] == ["valid"]


def test_official_files_come_first(tmp_path):
    (tmp_path / "sst2").mkdir()
    (tmp_path / "sst2" / "train.tsv").write_text("sentence\tlabel\nofficial\t1\n")
    write(tmp_path / "sst2" / "train.parquet", [{"idx": 0, "sentence": "hub", "label": 0}])
    assert [e.text for e in sst2.DATASET.examples(tmp_path / "sst2", "train")] == ["official"]


def test_another_dataset_with_the_same_columns_is_not_recognised_but_read_when_asked(tmp_path):
    write(tmp_path / "cola" / "train.parquet", [{"idx": 0, "sentence": "a film", "label": 1}])
    assert not sst2.DATASET.present(tmp_path / "cola")
    assert len(list(sst2.DATASET.examples(tmp_path / "cola", "train"))) == 1


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"label": 2}, "its label is 2"),
        ({"label": None}, "it has no 'label'"),
        ({"sentence": None}, "it has no 'sentence'"),
        ({"sentence": "  "}, "its sentence is empty"),
        ({"idx": 0}, "its id dev-0 occurred before"),
    ],
)
def test_a_bad_row_is_told_with_its_number(tmp_path, change, what):
    rows = [dict(row) for row in CASES["sst2"][3]]
    rows[1] |= change
    write(tmp_path / "validation.parquet", rows)
    examples, problems = read("sst2", tmp_path, skip=1)
    assert [e.id for e in examples] == ["dev-0", "dev-2"]
    assert problems[0].record == "row 1"
    assert what in problems[0].what
    with pytest.raises(DataError, match="row 1"):
        read("sst2", tmp_path)


def test_text_that_is_not_utf8_is_one_bad_row(tmp_path):
    texts = arrow.array([b"good", b"\xff\xfe", b"fine"], arrow.binary()).view(arrow.string())
    parquet.write_table(arrow.table({"text": texts, "label": [0, 1, 1]}), tmp_path / "train.parquet")
    examples, problems = read("imdb", tmp_path, skip=1)
    assert [e.id for e in examples] == ["train-0", "train-2"]
    assert problems[0].record == "row 1"


@pytest.mark.parametrize("content", [b"", b"\xff\xd8\xff\xe0 cut", png()[:60], png(side=31)])
def test_a_broken_picture_is_one_bad_row(tmp_path, content):
    rows = [*CASES["cifar100"][3], {"img": {"bytes": content, "path": None}, "fine_label": 1, "coarse_label": 1}]
    write(tmp_path / "train.parquet", rows)
    examples, problems = read("cifar100", tmp_path, skip=1)
    assert len(examples) == 2
    assert problems[0].record == "row 2"


def test_whole_files_that_cannot_be_used(tmp_path):
    path = snapshot("piqa", tmp_path / "cut")
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match="not a complete table"):
        read("piqa", tmp_path / "cut")
    write(tmp_path / "column" / "validation.parquet", [{"goal": "a", "sol1": "b"}])
    with pytest.raises(DataError, match="no column 'sol2'"):
        read("piqa", tmp_path / "column")
    write(tmp_path / "split" / "train.parquet", CASES["piqa"][3])
    with pytest.raises(DataError, match="no such split: 'validation'"):
        read("piqa", tmp_path / "split")
    table = arrow.Table.from_pylist(CASES["piqa"][3]).slice(0, 0)
    (tmp_path / "empty").mkdir()
    parquet.write_table(table, tmp_path / "empty" / "validation.parquet")
    with pytest.raises(DataError, match="no rows"):
        read("piqa", tmp_path / "empty")


COPIES = [
    ("data/{}.parquet", "default/{}.parquet"),
    ("{}.parquet", "{}.arrow"),
    ("{}.parquet", "{}-00000-of-00001.parquet"),
    ("{}-00000-of-00001-9564e8b05b4757ab.parquet", "{}-00000-of-00001-0123456789abcdef.parquet"),
    ("{}/0000.parquet", "{}.parquet"),
]


@pytest.mark.parametrize("files", COPIES)
def test_two_copies_of_a_split_are_not_read_as_one(tmp_path, files):
    for file in files:
        snapshot("piqa", tmp_path, file)
    with pytest.raises(DataError, match="two copies of one split: leave one of them"):
        read("piqa", tmp_path)


def test_a_stream_cut_between_two_batches_is_not_taken_for_a_shorter_one(tmp_path):
    table = arrow.Table.from_pylist(CASES["piqa"][3])
    path = tmp_path / "validation.arrow"
    with arrow.OSFile(str(path), "wb") as file, arrow.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table)
        cut = file.tell()
        stream.write_table(table)
    assert len(read("piqa", tmp_path)[0]) == 4
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(DataError, match="it breaks off"):
        read("piqa", tmp_path)


def test_without_pyarrow_a_sentence_says_what_to_install(tmp_path, monkeypatch):
    snapshot("piqa", tmp_path / "piqa")
    for name in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UserError, match=r"tables of the hub need pyarrow: pip install \"holdfast\[hub\]\""):
        read("piqa", tmp_path / "piqa")


@pytest.fixture(scope="module")
def originals():
    root = Path(tempfile.mkdtemp())
    for name in CASES:
        for suffix in ("parquet", "arrow"):
            snapshot(name, root / suffix / name, f"{{}}.{suffix}")
    yield root
    shutil.rmtree(root)


@settings(derandomize=True, max_examples=25, deadline=None, database=None)
@given(
    kind=st.sampled_from(["cut", "flip", "insert", "drop"]),
    place=st.floats(0, 1, exclude_max=True),
    byte=st.integers(1, 255),
    length=st.integers(1, 40),
)
@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@pytest.mark.parametrize("name", CASES)
def test_mutated_tables(originals, name, suffix, kind, place, byte, length):
    file = f"{CASES[name][2]}.{suffix}"
    content = bytearray((originals / suffix / name / file).read_bytes())
    position = int(place * len(content))
    if kind == "cut":
        del content[position:]
    elif kind == "flip":
        content[position] ^= byte
    elif kind == "insert":
        content[position:position] = bytes([byte]) * length
    else:
        del content[position : position + length]
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root) / name
        folder.mkdir()
        (folder / file).write_bytes(content)
        CASES[name][0].present(folder)
        try:
            examples, problems = read(name, folder, skip=100)
        except UserError:
            return
        if suffix == "parquet":
            assert len(examples) + len(problems) == len(CASES[name][3])


STRANGE = [None, -1, 7, 2**40, 1.5, True, "", "x", "9", b"\xff", [], ["x"], {"x": 1}, {"bytes": b"x", "path": "../x"}]


@settings(derandomize=True, max_examples=25, deadline=None, database=None)
@given(column=st.integers(0, 20), strange=st.sampled_from([..., *STRANGE]))
@pytest.mark.parametrize("name", CASES)
def test_a_column_of_another_type(name, column, strange):
    rows = CASES[name][3]
    chosen = list(rows[0])[column % len(rows[0])]
    changed = [{key: value for key, value in row.items() if key != chosen} for row in rows]
    if strange is not ...:
        changed = [row | {chosen: strange} for row in changed]
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root) / name
        write(folder / f"{CASES[name][2]}.parquet", changed)
        try:
            examples, problems = read(name, folder, skip=100)
        except UserError:
            return
        assert len(examples) + len(problems) == len(rows)


def test_files_that_are_only_numbered_are_shards_too(tmp_path):
    for number in range(2):
        rows = [{"goal": f"{number}", "sol1": "a", "sol2": "b", "label": 0}]
        write(tmp_path / "default" / "train" / f"{number:04d}.parquet", rows)
    assert [(e.id, e.text) for e in piqa.DATASET.examples(tmp_path, "train")] == [("train-0", "0"), ("train-1", "1")]
