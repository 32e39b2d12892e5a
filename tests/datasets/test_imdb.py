import pytest

from holdfast.datasets.base import DataError, Reading
from holdfast.datasets.imdb import DATASET

RECORDS = {"train": 4, "test": 2, "unsupervised": 1}


def make(folder):
    reviews = {
        "train/pos/10_9.txt": "A fine film.<br /><br />See it.",
        "train/pos/2_7.txt": "Très bien, at 10/10 \u2026",
        "train/neg/0_1.txt": "Dull.",
        "train/neg/1_4.txt": "Not for me.",
        "train/unsup/0_0.txt": "A film.",
        "test/pos/0_10.txt": "Lovely.",
        "test/neg/0_2.txt": "Awful.",
    }
    for name, text in reviews.items():
        path = folder / "aclImdb" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    (folder / "aclImdb" / "train" / "urls_pos.txt").write_text("a list that is no review\n")


def test_reviews_come_class_by_class_in_the_order_of_their_numbers(tmp_path):
    make(tmp_path)
    assert DATASET.present(tmp_path)
    assert DATASET.present(tmp_path / "aclImdb")
    found = list(DATASET.examples(tmp_path, "train"))
    assert [(e.id, e.target, e.extra["rating"]) for e in found] == [
        ("train/neg/0_1", 0, 1),
        ("train/neg/1_4", 0, 4),
        ("train/pos/2_7", 1, 7),  # 2 before 10: by number, not by text
        ("train/pos/10_9", 1, 9),
    ]
    assert found[2].text == "Très bien, at 10/10 …"
    assert found[3].text == "A fine film.<br /><br />See it."


def test_the_unlabelled_reviews_are_apart(tmp_path):
    make(tmp_path)
    assert [e.target for e in DATASET.examples(tmp_path, "unsupervised")] == [None]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("train/pos/5_2.txt", b"Bad.", "rating 2 does not belong in train/pos"),
        ("train/pos/5_9.txt", b"\xff\xfe", "not UTF-8"),
        ("train/pos/5_9.txt", b" \n", "empty"),
        ("train/pos/notes.md", b"notes", "ID_RATING.txt"),
    ],
)
def test_a_bad_review_is_told_and_the_others_are_read(tmp_path, name, content, words):
    make(tmp_path)
    (tmp_path / "aclImdb" / name).write_bytes(content)
    reading = Reading(skip=1)
    assert len(list(DATASET.examples(tmp_path, "train", reading))) == 4
    assert words in str(reading.problems[0])
    assert name in str(reading.problems[0])


def test_a_class_without_reviews_is_refused(tmp_path):
    make(tmp_path)
    for path in (tmp_path / "aclImdb" / "test" / "pos").iterdir():
        path.unlink()
    with pytest.raises(DataError, match="test/pos: it has no reviews: unpack the archive again"):
        list(DATASET.examples(tmp_path, "test"))


def test_a_missing_class_is_refused(tmp_path):
    (tmp_path / "train" / "pos").mkdir(parents=True)
    with pytest.raises(DataError, match="train/neg: no such folder"):
        list(DATASET.examples(tmp_path, "train"))
