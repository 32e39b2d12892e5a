import pickle

import pytest

from holdfast.datasets.base import DataError, Reading
from holdfast.datasets.phrase_streams import _FILES, DATASET

RECORDS = {
    **{f"coco_{split}": 2 for split in ("train", "validation", "test", "novel")},
    **{f"flickr_{split}": 1 for split in ("train", "validation", "test")},
}


def coco(caption="Two dogs on a couch ", mask=(0, 1), task="dog"):
    return {"annotation": {"image_id": 42, "id": 7, "caption": caption}, "task": task, "mask": mask}


def flickr(tokens=("a", "man", "in", "red"), offset=(0, 2), task=1):
    return {
        "tokens": list(tokens), "task_id": task, "image_id": "99", "instance_id": 0, "phrase_offset": offset
    }  # fmt: skip


def put(folder, split, records, place="datasets"):
    path = folder / place / _FILES[split]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(records, protocol=3))
    return path


def make(folder, place="datasets"):
    for split in RECORDS:
        put(folder, split, [coco(), coco(mask=[3, 4])] if split.startswith("coco") else [flickr()], place)
    tasks = folder / place / "flickr_buffer" / "flickr_tasks.pkl"
    tasks.write_bytes(pickle.dumps({"stat_nouns": [("dog", 3)], "tasks": ["dog", "man"]}))


@pytest.mark.parametrize("place", ["datasets", ""])
def test_phrases_are_as_they_were_released(place, tmp_path):
    make(tmp_path, place)
    assert DATASET.present(tmp_path)
    first, second = DATASET.examples(tmp_path, "coco_test")
    assert (first.id, first.text) == ("coco_test-0", "Two dogs on a couch")
    assert first.extra == {"image_id": "42", "task": "dog", "first": 0, "last": 1}
    assert (second.extra["first"], second.extra["last"]) == (3, 4)
    (phrase,) = DATASET.examples(tmp_path, "flickr_train")
    assert phrase.extra == {
        "image_id": "99", "task": "man", "first": 0, "last": 1, "tokens": ("a", "man", "in", "red")
    }  # fmt: skip


@pytest.mark.parametrize(
    ("split", "record", "what"),
    [
        ("coco_test", coco(mask=(3, 2)), "not a first and a last word piece"),
        ("coco_test", coco(mask=(0, 5000)), "not a first and a last word piece"),
        ("coco_test", coco(mask=(0, 1.5)), "not a pair of whole numbers"),
        ("coco_test", coco(caption=" "), "its caption is empty"),
        ("coco_test", {"task": "dog"}, "it has no 'annotation'"),
        ("coco_test", "dog", "it is not a dictionary"),
        ("flickr_test", flickr(offset=(2, 5)), "is not in its 4 words"),
        ("flickr_test", flickr(tokens=("a", " ")), "its tokens are not words"),
        ("flickr_test", flickr(task=2), "is not one of 2 tasks"),
    ],
)
def test_a_bad_phrase_is_reported_by_its_number(split, record, what, tmp_path):
    make(tmp_path)
    good = coco() if split.startswith("coco") else flickr()
    put(tmp_path, split, [good, record, good])
    reading = Reading(skip=1)
    assert [each.id for each in DATASET.examples(tmp_path, split, reading)] == [f"{split}-0", f"{split}-2"]
    assert reading.problems[0].record == "phrase 1"
    assert what in reading.problems[0].what


class Harm:
    def __reduce__(self):
        return (exec, ("raise SystemExit",))


@pytest.mark.parametrize("value", [[Harm()], {"a": 1}, 3])
def test_a_file_that_is_no_list_of_phrases_is_refused_and_nothing_is_executed(value, tmp_path):
    make(tmp_path)
    put(tmp_path, "coco_test", value)
    with pytest.raises(DataError, match=r"pickle of plain values|not a list"):
        list(DATASET.examples(tmp_path, "coco_test"))


def test_files_that_are_missing_are_named(tmp_path):
    make(tmp_path)
    (tmp_path / "datasets" / _FILES["coco_train"]).unlink()
    with pytest.raises(DataError, match=r"novel_comps_False.*no such file"):
        list(DATASET.examples(tmp_path, "coco_train"))
    (tmp_path / "datasets" / "flickr_buffer" / "flickr_tasks.pkl").write_bytes(pickle.dumps({"tasks": []}))
    with pytest.raises(DataError, match="it has no list of tasks"):
        list(DATASET.examples(tmp_path, "flickr_test"))
