import json

import pytest

from holdfast.datasets.base import DataError, Reading
from holdfast.datasets.ucit import DATASET

RECORDS = {"Flickr30k_train": 1, "Flickr30k_test": 2, "CLEVR_test": 1}
CAPTIONS = "val_coco_type_3000.json"


def put(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def make(folder):
    asked = {"image": "./Flickr30k/val/1.jpg", "text": "Describe the picture."}
    turns = [{"from": "human", "value": "<image>\nDescribe the picture."}, {"from": "gpt", "value": "A dog."}]
    place = folder / "instructions"
    train = {"id": "1", "image": asked["image"], "conversations": turns}
    put(place / "Flickr30k" / "train_brief_4w.json", [train])
    put(place / "Flickr30k" / "test_3000.json", [{**asked, "question_id": row} for row in (0, 1)])
    notes = [{"image_id": 1 + row % 2, "id": row, "caption": f"Caption {row}."} for row in range(4)]
    put(place / "Flickr30k" / CAPTIONS, {"images": [{"id": 1}, {"id": 2}], "annotations": notes})
    put(place / "CLEVR" / "test_3000.json", [{**asked, "question_id": 7, "answer": "3"}])
    path = folder / "datasets" / "Flickr30k" / "val" / "1.jpg"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")


def test_captions_are_joined_by_the_number_of_the_record(tmp_path):
    make(tmp_path)
    assert DATASET.present(tmp_path)
    found = list(DATASET.examples(tmp_path, "Flickr30k_test"))
    assert [each.extra["answers"] for each in found] == [("Caption 0.", "Caption 2."), ("Caption 1.", "Caption 3.")]
    assert found[0].target == "Caption 0."
    assert found[0].images == (tmp_path / "datasets" / "Flickr30k" / "val" / "1.jpg",)
    assert [each.target for each in DATASET.examples(tmp_path, "Flickr30k_train")] == ["A dog."]


def test_without_the_file_of_captions_the_split_is_an_error(tmp_path):
    make(tmp_path)
    (tmp_path / "instructions" / "Flickr30k" / CAPTIONS).unlink()
    with pytest.raises(DataError, match=CAPTIONS):
        list(DATASET.examples(tmp_path, "Flickr30k_test"))


@pytest.mark.parametrize(
    "note", ["a", {"image_id": "1", "caption": "a"}, {"image_id": 1}, {"image_id": 1, "caption": ""}]
)
def test_a_bad_caption_is_reported_and_so_is_a_picture_without_any(note, tmp_path):
    make(tmp_path)
    notes = [{"image_id": 1, "caption": "A dog."}, note]
    put(tmp_path / "instructions" / "Flickr30k" / CAPTIONS, {"annotations": notes})
    with pytest.raises(DataError, match="annotation 2: "):
        list(DATASET.examples(tmp_path, "Flickr30k_test"))
    reading = Reading(skip=2)
    assert len(list(DATASET.examples(tmp_path, "Flickr30k_test", reading))) == 1
    assert "it has no 'answer'" in reading.problems[1].what
