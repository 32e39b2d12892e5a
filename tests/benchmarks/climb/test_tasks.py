"""The four tasks of CLiMB against the official files that the world writes: splits, texts, targets, pictures."""

import json
from collections import Counter

import numpy as np
import pytest
import torch

from holdfast.benchmarks.climb import paper
from holdfast.benchmarks.climb.paper import TASKS
from holdfast.benchmarks.climb.regions import CELLS, boxes, cells, with_grid
from holdfast.benchmarks.climb.tasks import (
    NamedBoxes,
    Place,
    answers,
    listing,
    official,
    read,
    soft_targets,
    task_of,
    vocabulary_file,
)
from holdfast.benchmarks.synthetic import world
from holdfast.data.text import Tokenizer, neutral_text
from holdfast.errors import UserError
from holdfast.metrics import normalise_answer, vqa_accuracy, vqa_score
from holdfast.papers import table
from holdfast.types import Example, Part, Wants

FIT = {"image_size": 16}
WANTS = Wants()


@pytest.fixture
def place():
    return Place(scale="tiny")


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_chance_and_sizes_are_those_of_table_4():
    for row in table("climb", 4):
        facts = TASKS[row["task"]]
        assert facts.chance == pytest.approx(row["chance"] / 100, abs=1e-4)
        assert facts.outputs in (0, row["labels"])
        assert facts.images == (2 if row["vision"].startswith("2") else 1)


def test_no_part_shares_an_example_and_no_cut_shares_a_picture(place):
    for name, facts in TASKS.items():
        parts = {part: listing(name, part, place) for part in ("train", "validation", "test")}
        ids = [example for each in parts.values() for example in each.ids]
        assert len(set(ids)) == len(ids)
        assert all(len(each.ids) > 10 for each in parts.values())
        if not facts.validation:
            assert set(parts["train"].groups).isdisjoint(parts["validation"].groups)
            whole = len(parts["train"].ids) + len(parts["validation"].ids)
            assert len(parts["validation"].ids) == pytest.approx(whole / 10, abs=8)


def test_the_test_split_is_the_official_one_and_is_never_validated_on(place):
    nlvr2 = [record["identifier"] for record in lines(world("nlvr2", "tiny") / "data/test1.json")]
    assert list(listing("nlvr2", "test", place).ids) == nlvr2
    vcr = [record["annot_id"] for record in lines(world("vcr", "tiny") / "val.jsonl")]
    assert list(listing("vcr", "test", place).ids) == vcr
    for name in TASKS:
        assert official(name, "validation") != official(name, "test")


def test_the_answers_are_the_frequent_ones_of_both_labelled_splits(place):
    given = Counter()
    for split in ("train2014", "val2014"):
        content = json.loads((world("vqav2", "tiny") / f"v2_mscoco_{split}_annotations.json").read_text())
        given.update(normalise_answer(each["multiple_choice_answer"]) for each in content["annotations"])
    assert set(answers(place)) == {answer for answer, count in given.items() if count >= 9}
    assert task_of("vqav2", place).outputs == len(answers(place))


def test_a_prediction_scores_what_the_official_rule_gives_it(place):
    split = read("vqav2", "test", place, vocabulary=vocabulary_file(WANTS, place), fit=FIT)
    words, task = answers(place), task_of("vqav2", place)
    content = json.loads((world("vqav2", "tiny") / "v2_mscoco_val2014_annotations.json").read_text())
    people = {str(e["question_id"]): [p["answer"] for p in e["answers"]] for e in content["annotations"]}
    guesses = np.arange(len(split.ids)) % len(words)
    expected = [vqa_score(words[guess], people[name]) for guess, name in zip(guesses, split.ids, strict=True)]
    assert task.score(guesses, split.table.targets.numpy()) == pytest.approx(np.mean(expected), abs=1e-6)
    assert sum(expected) > 0


def test_a_new_head_expects_one_answer_of_all_but_at_the_papers_scale(place):
    task = task_of("vqav2", place)
    logits = torch.zeros(1, task.outputs, dtype=torch.float64)
    output = task.forward(lambda inputs, head: logits, Part("vqav2", {}, torch.empty(0)))
    assert torch.allclose(output.exp(), torch.full_like(output, 1 / task.outputs)), "odds of one to all"
    official = Place(data=str(world("vqav2", "tiny")), scale="paper")
    assert task_of("vqav2", official).prior == 0


def test_soft_targets_by_hand():
    people = ("red",) * 2 + ("blue",) * 5 + ("mauve",) * 3
    found = soft_targets(["no", "red", "blue"])([Example("q", extra={"answers": people})])
    assert found.shape == (1, 2, 10)
    dense = np.zeros(3)
    numbers, scores = found[0]
    dense[numbers[numbers >= 0].astype(int)] = scores[numbers >= 0]
    assert dense.tolist() == pytest.approx([0, 0.6, 1])
    assert vqa_accuracy([1], dense[None]) == pytest.approx(0.6)


def test_questions_of_vcr_come_with_neutral_names_and_each_answer(place):
    words = vocabulary_file(WANTS, place)
    split = read("vcr", "test", place, vocabulary=words, fit=FIT)
    record = lines(world("vcr", "tiny") / "val.jsonl")[0]
    pieces = Tokenizer.load(words)
    read_back = pieces.decode(split.table.inputs["text"][0, 0].tolist())
    assert split.table.inputs["text"].shape[1] == 4
    assert split.table.targets[0] == record["answer_label"]
    tags = [token for token in record["question"] if isinstance(token, list)]
    person = any(record["objects"][number] == "person" for tag in tags for number in tag)
    assert ("casey" in read_back or "riley" in read_back or "jessie" in read_back or "jackie" in read_back) == person
    assert "[" not in read_back
    plain = [token.lower() for token in record["question"] if isinstance(token, str) and token.isalpha()]
    assert set(plain) <= set(read_back.split())


def test_vcr_qar_asks_for_the_reason_of_the_right_answer(place):
    """Against the official file: "question [SEP] right answer [SEP] reason", and which reason is right."""
    words = vocabulary_file(WANTS, place)
    pieces = Tokenizer.load(words)
    split = read("vcr-qar", "test", place, vocabulary=words, fit=FIT)
    records = {record["annot_id"]: record for record in lines(world("vcr", "tiny") / "val.jsonl")}
    assert split.ids.tolist() == list(listing("vcr", "test", place).ids), "the same questions as vcr's"
    assert split.table.targets.tolist() == [records[name]["rationale_label"] for name in split.ids]
    assert split.table.targets.tolist() != [records[name]["answer_label"] for name in split.ids]

    def neutral(tokens, record):
        return neutral_text([tuple(t) if isinstance(t, list) else t for t in tokens], record["objects"])

    for row, name in enumerate(split.ids[:20].tolist()):
        record = records[name]
        answer = record["answer_choices"][record["answer_label"]]
        before = f"{neutral(record['question'], record)} [SEP] {neutral(answer, record)}"
        reasons = [neutral(tokens, record) for tokens in record["rationale_choices"]]
        column = split.table.inputs["text"][row]
        expected, lengths = pieces.encode_joined([before] * 4, reasons, column.shape[-1])
        assert column.tolist() == expected.tolist()
        assert split.table.inputs["text_length"][row].tolist() == lengths.tolist()
        if lengths.max() < 40:
            assert (expected == pieces.vocabulary.index("[SEP]")).sum(1).tolist() == [3] * 4
    assert split.table.inputs["text_length"].max() <= 40
    assert task_of("vcr-qar", place).chance == 1 / 4


def test_the_extra_task_has_its_own_labels_and_leaves_the_words_alone(place):
    """The two tasks read the same files, so their lists must not be taken for one another's."""
    own, theirs = (listing(name, "validation", place) for name in ("vcr-qar", "vcr"))
    assert (own.ids, own.groups, own.pictures) == (theirs.ids, theirs.groups, theirs.pictures)
    assert own.labels != theirs.labels
    assert set(paper.EXTRA).isdisjoint(TASKS)
    asked = next(place.source("vcr-qar").examples("val"))
    named = {n for tokens in (asked.extra["question"], *asked.extra["answer_choices"]) for n in _numbers(tokens)}
    assert set(NamedBoxes()(asked).numbers) == named


def _numbers(tokens):
    return [number for token in tokens if not isinstance(token, str) for number in token]


def test_only_the_boxes_that_are_named_are_drawn():
    tokens = {"question": ("Why", (1,), "?"), "answer_choices": (("a",), ((2,), "runs"), ("b",), ("c",))}
    extra = {"boxes": [[0, 0, 5, 5, 1]] * 4, "objects": ["person", "person", "dog", "person"], **tokens}
    still, small = (NamedBoxes()(Example("x", extra=extra | {"width": 2 * h, "height": h})) for h in (540, 72))
    assert still.numbers == small.numbers == (1, 2)
    assert (still.line, small.line) == (7, 1), "the paper's on a film still, a thin one on a thumbnail"


def test_all_four_tasks_make_the_words_whichever_is_learned(place):
    words = vocabulary_file(WANTS, place)
    assert words == vocabulary_file(WANTS, Place(scale="tiny")), "made once"
    pieces = Tokenizer.load(words)
    for name in TASKS:
        text = next(place.source(name).examples("train")).text
        assert pieces.vocabulary.index("[UNK]") not in pieces.encode([text], 40)[0]
    assert vocabulary_file(Wants(vocabulary=words), Place(data="nowhere")) == words, "a model's own need no data"


def test_a_text_has_at_most_40_pieces(place):
    for name in TASKS:
        split = read(name, "train", place, vocabulary=vocabulary_file(WANTS, place), fit=FIT)
        column = split.table.inputs["text"]
        longest = split.table.inputs["text_length"].max().item()
        assert column.shape[-1] <= paper.TEXT
        assert longest == column.shape[-1] or name == "vqav2", "no wider than needed"


def test_official_folders_are_found_by_what_they_hold(tmp_path):
    for name, folder in {"nlvr2": "NLVR2 images", "snli_ve": "snli-ve", "vcr": "vcr1", "vqav2": "VQA"}.items():
        (tmp_path / folder).symlink_to(world(name, "tiny"))
    moved = Place(data=str(tmp_path))
    for name in TASKS:
        assert listing(name, "test", moved) == listing(name, "test", Place(scale="tiny"))


def test_a_missing_dataset_is_told(tmp_path):
    with pytest.raises(UserError, match="contains no nlvr2"):
        listing("nlvr2", "train", Place(data=str(tmp_path)))


def test_regions_are_the_cells_of_the_picture(place):
    split = read("nlvr2", "validation", place, vocabulary=vocabulary_file(WANTS, place), fit={"image_size": 32})
    found = with_grid(split)
    assert set(found.table.inputs) == {"text", "text_length", "regions", "boxes", "region_count"}
    image = split.table.inputs["image"]
    column = found.table.inputs["regions"]
    assert column.index.tolist() == image.index.tolist(), "two pictures each"
    pixels = image.values[3].float()
    left, top, right, bottom = (round(32 * share) for share in boxes()[6].tolist())
    expected = pixels[:, top:bottom, left:right].flatten() / 127.5 - 1
    assert np.allclose(column.values[3, 6].float(), expected, atol=1e-3)
    assert len(boxes()) == CELLS**2 == len(cells(image.values)[0])
