from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from holdfast.world.vocabulary import COCO_NOUNS
from holdfast.world.writers import vcr
from world.writers.written import digests, lines


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("vcr")
    vcr.write(path, "tiny", 3)
    return path


def tags(record: dict[str, Any]) -> list[list[int]]:
    texts = [record["question"], *record["answer_choices"], *record["rationale_choices"]]
    return [token for tokens in texts for token in tokens if isinstance(token, list)]


def test_the_same_call_writes_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    vcr.write(tmp_path, "tiny", 3)
    assert digests(folder) == digests(tmp_path)


@pytest.mark.parametrize("split", ["train", "val", "test"])
def test_lines(folder: Path, split: str) -> None:
    records = lines(folder / f"{split}.jsonl")
    questions, stills = vcr.COUNTS["tiny"][split]
    assert len(records) == len({record["annot_id"] for record in records}) == questions
    assert len({record["img_id"] for record in records}) == stills
    names = {noun.replace(" ", "") for noun in COCO_NOUNS}
    for record in records:
        assert set(record["objects"]) <= names
        assert record["objects"].count("person") >= 1
        assert len(record["answer_choices"]) == len(record["rationale_choices"]) == 4
        assert record["img_fn"][:-4] == record["metadata_fn"][:-5]
        assert record["img_fn"].split("/")[0].startswith(("lsmdc_", "movieclips_"))
        assert (folder / "vcr1images" / record["img_fn"]).is_file()
        assert (folder / "vcr1images" / record["metadata_fn"]).is_file()
        choices = [json.dumps(choice) for choice in record["answer_choices"]]
        assert len(set(choices)) == 4


def test_the_fields_of_a_line_and_their_order(folder: Path) -> None:
    record = lines(folder / "train.jsonl")[0]
    assert list(record) == [
        *("movie", "objects", "interesting_scores", "answer_likelihood", "img_fn", "metadata_fn", "answer_orig"),
        *("question_orig", "rationale_orig", "question", "answer_match_iter", "answer_sources", "answer_choices"),
        *("answer_label", "rationale_choices", "rationale_sources", "rationale_match_iter", "rationale_label"),
        *("img_id", "question_number", "annot_id", "match_fold", "match_index"),
    ]
    for name in ("answer", "rationale"):
        label = record[f"{name}_label"]
        assert [index for index, value in enumerate(record[f"{name}_match_iter"]) if value == 0] == [label]
        assert sorted(record[f"{name}_match_iter"]) == [0, 1, 2, 3]
        assert record[f"{name}_sources"][label] == 0


def test_the_test_split_does_not_tell(folder: Path) -> None:
    for record in lines(folder / "test.jsonl"):
        assert not [key for key in record if "label" in key or "source" in key or "match_iter" in key]
        assert not {"answer_orig", "rationale_orig"} & set(record)


def test_tags_point_at_objects_but_for_the_flaw_in_test(folder: Path, tmp_path: Path) -> None:
    vcr.write(tmp_path, "tiny", 3, images=False, flaws=False)
    for place, split, expected in (
        (folder, "train", 0),
        (folder, "val", 0),
        (folder, "test", 1),
        (tmp_path, "test", 0),
    ):
        records = lines(place / f"{split}.jsonl")
        beyond = [index for r in records for tag in tags(r) for index in tag if not 0 <= index < len(r["objects"])]
        assert len(beyond) == expected


def test_some_tags_have_two_indices_and_one_is_beyond_fifty(folder: Path) -> None:
    found = [tag for record in lines(folder / "train.jsonl") for tag in tags(record)]
    assert any(len(tag) > 1 for tag in found)
    assert any(index > 50 for tag in found for index in tag)


def test_typed_texts_count_from_one(folder: Path) -> None:
    for record in lines(folder / "val.jsonl"):
        first = next((token for token in record["question"] if isinstance(token, list)), None)
        if first is not None:
            assert (
                str(first[0] + 1)
                in record["question_orig"].replace("?", " ").replace(",", " ").replace("'", " ").split()
            )


def test_boxes(folder: Path) -> None:
    shapes = set()
    for record in lines(folder / "train.jsonl"):
        metadata = json.loads((folder / "vcr1images" / record["metadata_fn"]).read_text())
        assert list(metadata) == ["boxes", "segms", "names", "width", "height"]
        assert metadata["names"] == record["objects"]
        assert len(metadata["boxes"]) == len(metadata["segms"]) == len(record["objects"])
        for left, top, right, bottom, score in metadata["boxes"]:
            assert 0 <= left < right <= metadata["width"] + 0.01
            assert 0 <= top < bottom <= metadata["height"] + 0.01
            assert 0 < score <= 1
        with Image.open(folder / "vcr1images" / record["img_fn"]) as image:
            assert image.size == (metadata["width"], metadata["height"])
            shapes.add(image.size)
        shapes |= {len(polygons) and len(polygons[0]) for polygons in metadata["segms"]}
    assert {0, 1, 4} <= shapes, "no outline, one point, a whole outline"
    assert len(shapes) > 4, "stills of several sizes"


def test_movies_stay_in_one_split(folder: Path) -> None:
    movies = [{record["movie"] for record in lines(folder / f"{split}.jsonl")} for split in ("train", "val", "test")]
    assert not movies[0] & movies[1]
    assert not (movies[0] | movies[1]) & movies[2]


@pytest.mark.parametrize("name", ["answer_label", "rationale_label"])
def test_labels_are_balanced(folder: Path, name: str) -> None:
    records = lines(folder / "train.jsonl") + lines(folder / "val.jsonl")
    counts = Counter(record[name] for record in records)
    expected = len(records) / 4
    # The chi-squared distribution with three degrees of freedom is above 21 once in ten thousand.
    assert sum((counts[label] - expected) ** 2 / expected for label in range(4)) < 21
