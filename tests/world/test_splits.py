"""No item of one split stands in another: what is asked at the end was never seen before."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from holdfast import registry
from holdfast.datasets.base import Reading
from holdfast.types import Example
from holdfast.world import knowledge, physical, reviews, stories
from holdfast.world.physical import PLACES, TOOLS
from holdfast.world.writers import coco, commonsenseqa, gqa, hellaswag, piqa, sst2

TEXTS = ("piqa", "sst2", "hellaswag", "commonsenseqa")
SPLITS = {
    "vqav2": ("train", "val", "test"),
    "nlvr2": ("train", "dev", "test1", "test2"),
    "snli_ve": ("train", "dev", "test"),
    "vcr": ("train", "val", "test"),
    "gqa": ("train_questions", "val_questions", "testdev_questions", "test_questions"),
}


def plain(text: str) -> str:
    """The letters of a text: neither case, blanks, punctuation nor line breaks tell two items apart."""
    return "".join(filter(str.isalpha, text.lower().replace("<br />", "")))


def question(example: Example) -> str:
    """What is asked, without the choices; PIQA's goals of a single word have the whole goal in each choice."""
    return plain(example.text if " " in example.text.strip() else example.choices[0])


def repeated(name: str, scale: str, folder: Path) -> dict[str, float]:
    """For each split, the share of its questions that an earlier split has too."""
    registry.WRITERS[name].load()(folder, scale, 0)
    dataset = registry.DATASETS[name].load()
    seen: set[str] = set()
    shares = {}
    for split in dataset.splits:
        asked = [question(example) for example in dataset.examples(folder, split, Reading())]
        if split != "unsupervised":  # IMDb's reviews without labels are part of its training set
            shares[split] = sum(each in seen for each in asked) / len(asked)
        seen.update(asked)
    return shares


@pytest.mark.parametrize("name", TEXTS)
def test_no_question_of_a_text_stands_in_two_splits(name, tmp_path):
    assert set(repeated(name, "small", tmp_path).values()) == {0}


def test_nor_does_a_review(tmp_path):
    assert set(repeated("imdb", "tiny", tmp_path).values()) == {0}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*TEXTS, "imdb"])
def test_nor_at_the_size_of_the_papers(name, tmp_path):
    assert set(repeated(name, "paper", tmp_path).values()) == {0}


@pytest.mark.parametrize(
    ("given", "writer"),
    [
        (physical.goals, piqa),
        (knowledge.stems, commonsenseqa),
        (stories.contexts, hellaswag),
        (reviews.opinions, sst2),
    ],
)
def test_the_language_gives_several_times_what_the_papers_need(given, writer):
    assert given() > 4 * writer.amount("paper").records


def test_the_count_of_goals_is_the_number_of_goals():
    """The number of distinct draws is what chance predicts for equally likely items within each kind."""
    random, draws = np.random.default_rng(0), 20_000
    drawn = {physical.physical_question(random)[0] for _ in range(draws)}
    tools, places = (240 * sum(len(gap) for served in table.values() for _, gap in served) for table in (TOOLS, PLACES))
    kinds = ((tools, 0.5), (places, 0.25), (physical.goals() - tools - places, 0.25))
    expected = sum(size * (1 - (1 - 1 / size) ** (share * draws)) for size, share in kinds)
    assert abs(len(drawn) / expected - 1) < 0.02


@pytest.mark.parametrize("table", [TOOLS, PLACES], ids=["tools", "places"])
def test_no_aim_is_served_by_two_ways(table):
    aims = [aim.format(filling) for served in table.values() for aim, gap in served for filling in gap]
    assert len(aims) == len(set(aims))


@pytest.mark.parametrize("scale", ["tiny", "small", "large", "paper"])
def test_no_scene_of_gqa_is_in_two_splits_or_in_coco(scale):
    scenes = [
        gqa.scene_number(gqa._FIRST[split] + index) for split, n in gqa.COUNTS[scale].items() for index in range(n)
    ]
    assert len(scenes) == len(set(scenes))
    ids = {number for split in ("train2014", "val2014", "test2015") for number in coco.image_ids(split, scale)}
    assert not ids & set(scenes)


@pytest.mark.parametrize("name", SPLITS)
def test_no_picture_is_in_two_splits(name, tiny_world):
    dataset = registry.DATASETS[name].load()
    homes: dict[str, str] = {}
    for split in SPLITS[name]:
        examples = list(dataset.examples(tiny_world / name, split, Reading(skip=1)))
        assert len(examples) > 10
        for image in {image for example in examples for image in example.images}:
            digest = hashlib.sha256(image.read_bytes()).hexdigest()
            assert homes.setdefault(digest, split) == split, image


def test_written_items_are_read_as_they_were_meant(tmp_path):
    """The share above is no zero by mistake: a goal of train that is put into valid by hand is found."""
    piqa.write(tmp_path, "tiny", 0)
    train, valid = (tmp_path / f"{split}.jsonl" for split in ("train", "valid"))
    lines = valid.read_text().splitlines()
    lines[0] = json.dumps(json.loads(train.read_text().splitlines()[0]) | {"sol1": "other", "sol2": "ways"})
    valid.write_text("\n".join(lines) + "\n")
    dataset = registry.DATASETS["piqa"].load()
    seen = {question(example) for example in dataset.examples(tmp_path, "train")}
    assert sum(question(example) in seen for example in dataset.examples(tmp_path, "valid")) == 1
