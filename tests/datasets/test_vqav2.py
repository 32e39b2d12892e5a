import json
import tracemalloc
from pathlib import Path

import pytest

from holdfast.datasets.base import DataError, Reading
from holdfast.datasets.vqav2 import DATASET
from holdfast.errors import UserError

TEN = ("a", "blue", "navy", "blue", "blue", "blue", "blue", "blue", "blue", "blue")


def question(number: int, image: int, text: str = "What colour is the cup?") -> dict:
    return {"image_id": image, "question": text, "question_id": number}


def annotation(number: int, image: int, answers=TEN, kind: str = "other") -> dict:
    people = [{"answer": a, "answer_confidence": "yes", "answer_id": i} for i, a in enumerate(answers, 1)]
    return {
        "question_type": "what color is the",
        "multiple_choice_answer": "blue",
        "answers": people,
        "image_id": image,
        "answer_type": kind,
        "question_id": number,
    }


def write(folder: Path) -> None:
    """Train has its annotations in another order than its questions; test has none."""
    files = {"train2014": [9, 25], "val2014": [42], "test2015": [1]}
    for name, images in files.items():
        (folder / name).mkdir(parents=True)
        for image in images:
            (folder / name / f"COCO_{name}_{image:012d}.jpg").write_bytes(b"")
    train = [question(9000, 9), question(9001, 9, "Is it “Größe”?"), question(25000, 25)]
    labels = [annotation(25000, 25), annotation(9001, 9, ("yes",) * 10, "yes/no"), annotation(9000, 9)]
    put(folder, "v2_OpenEnded_mscoco_train2014_questions.json", "questions", train)
    put(folder, "v2_mscoco_train2014_annotations.json", "annotations", labels)
    put(folder, "v2_OpenEnded_mscoco_val2014_questions.json", "questions", [question(42000, 42)])
    put(folder, "v2_mscoco_val2014_annotations.json", "annotations", [annotation(42000, 42)])
    for name in ("test2015", "test-dev2015"):
        put(folder, f"v2_OpenEnded_mscoco_{name}_questions.json", "questions", [question(1000, 1)])


def put(folder: Path, name: str, key: str, records: list) -> None:
    content = {"info": {"year": 2017, key: []}, "data_type": "mscoco", key: records, "license": {"name": "CC"}}
    (folder / name).write_text(json.dumps(content), encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "vqav2")
    return tmp_path / "vqav2"


def test_questions_are_joined_to_annotations_by_id(folder):
    examples = list(DATASET.examples(folder, "train"))
    assert [e.id for e in examples] == ["9000", "9001", "25000"]
    first, second, third = examples
    assert first.target == "blue"
    assert first.images == (folder / "train2014" / "COCO_train2014_000000000009.jpg",)
    assert third.images == (folder / "train2014" / "COCO_train2014_000000000025.jpg",)
    assert first.extra["answers"] == TEN
    assert second.extra["answers"] == ("yes",) * 10
    assert second.extra["answer_type"] == "yes/no"
    assert first.extra["question_type"] == "what color is the"
    assert second.text == "Is it “Größe”?"


@pytest.mark.parametrize("split", ["test", "test-dev"])
def test_the_test_splits_have_no_answers(folder, split):
    (example,) = DATASET.examples(folder, split)
    assert example.target is None
    assert example.extra == {"image_id": 1}


def test_images_under_the_names_of_2017_and_in_a_coco_folder_beside_it(folder):
    (folder / "val2014" / "COCO_val2014_000000000042.jpg").unlink()
    place = folder.parent / "coco" / "train2017"
    place.mkdir(parents=True)
    (place / "000000000042.jpg").write_bytes(b"")
    (example,) = DATASET.examples(folder, "val")
    assert example.images == (place / "000000000042.jpg",)


def test_a_missing_image_is_one_bad_question(folder):
    (folder / "train2014" / "COCO_train2014_000000000025.jpg").unlink()
    reading = Reading(skip=1)
    assert [e.id for e in DATASET.examples(folder, "train", reading)] == ["9000", "9001"]
    assert "question 25000: its image 25 is missing: unpack train2014.zip" in str(reading.problems[0])
    with pytest.raises(DataError, match="question 25000"):
        list(DATASET.examples(folder, "train"))


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        (annotation(9000, 9, TEN[:9]), "9 answers, not 10"),
        (annotation(9000, 9, kind="maybe"), "answer_type 'maybe'"),
        (annotation(9000, 25), "about image 9, but its annotation about 25"),
        ({"question_id": 9000}, "no 'answers'"),
        (annotation(9999, 9), "no annotation"),
    ],
)
def test_a_bad_annotation_is_reported_once_and_takes_only_its_question(folder, bad, what):
    labels = [annotation(25000, 25), annotation(9001, 9), bad]
    put(folder, "v2_mscoco_train2014_annotations.json", "annotations", labels)
    reading = Reading(skip=5)
    assert [e.id for e in DATASET.examples(folder, "train", reading)] == ["9001", "25000"]
    assert what in str(reading.problems[0])
    strays = [problem for problem in reading.problems[1:] if "no such question" in problem.what]
    assert len(reading.problems) == 1 + len(strays)
    assert len(strays) == (bad["question_id"] == 9999)


def test_a_question_that_comes_twice_is_reported(folder):
    put(folder, "v2_OpenEnded_mscoco_test2015_questions.json", "questions", [question(1000, 1), question(1000, 1)])
    reading = Reading(skip=1)
    assert len(list(DATASET.examples(folder, "test", reading))) == 1
    assert "occurred before" in reading.problems[0].what


def test_a_file_cut_in_half_or_absent_is_refused(folder):
    path = folder / "v2_mscoco_train2014_annotations.json"
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(DataError, match=r"annotations 3: it is not valid JSON"):
        list(DATASET.examples(folder, "train", Reading(skip=99)))
    path.unlink()
    with pytest.raises(DataError, match="no such file: unpack the annotations"):
        list(DATASET.examples(folder, "train", Reading(skip=99)))
    with pytest.raises(UserError, match="no split 'minival'"):
        DATASET.examples(folder, "minival")


def test_presence(folder, tmp_path):
    assert DATASET.present(folder)
    assert not DATASET.present(tmp_path)


def test_the_official_size_would_fit_in_two_gibibytes(folder):
    """Memory grows with the number of questions, so a share of them may take that share of it."""
    count = 10_000
    questions = [question(9000 + number, 9) for number in range(count)]
    put(folder, "v2_OpenEnded_mscoco_train2014_questions.json", "questions", questions)
    labels = [annotation(9000 + number, 9) for number in range(count)]
    put(folder, "v2_mscoco_train2014_annotations.json", "annotations", labels)
    del labels, questions
    tracemalloc.start()
    read = sum(1 for _ in DATASET.examples(folder, "train"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert read == count
    assert peak < 2**31 * count / DATASET.counts["train"]
