"""VQA v2: separate questions and annotations, with ten annotators each, on the COCO pictures of 2014 and 2015."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.world.language import Question, questions
from holdfast.world.writers import coco
from holdfast.world.writers.coco import coco_scene, image_ids, write_images
from holdfast.world.writers.json_files import list_file, write_json
from holdfast.world.writers.scales import Amount, at_scale

VERSION = 1
COUNTS: dict[str, dict[str, int]] = {
    "tiny": {"train2014": 480, "val2014": 240, "test2015": 60, "test-dev2015": 15},
    "small": {"train2014": 10_000, "val2014": 3_000, "test2015": 1_000, "test-dev2015": 240},
    "large": {"train2014": 160_000, "val2014": 32_000, "test2015": 10_000, "test-dev2015": 2_400},
    "paper": {"train2014": 443_757, "val2014": 214_354, "test2015": 447_793, "test-dev2015": 107_394},
}

_INFO = {
    "description": "Holdfast world in the format of VQA v2.0.",
    "url": "http://visualqa.org",
    "version": "2.0",
    "year": 2017,
    "contributor": "Holdfast",
    "date_created": "2017-04-26 17:07:13",
}
_LICENSE = {
    "url": "http://creativecommons.org/licenses/by/4.0/",
    "name": "Creative Commons Attribution 4.0 International License",
}


def amount(scale: str) -> Amount:
    """The amount of data written at a scale.

    >>> amount("tiny")
    Amount(records=795, pictures=260, pixels=6912, values=0)
    """
    pictures = sum(at_scale(coco.COUNTS, scale).values())
    return Amount(sum(at_scale(COUNTS, scale).values()), pictures, coco.amount(scale).pixels)


def write(
    folder: Path,
    scale: str,
    seed: int,
    *,
    images: bool = True,
    splits: Sequence[str] = ("train2014", "val2014", "test2015"),
) -> None:
    """Write questions, annotations, complementary pairs and, with `images`, the pictures of the chosen splits.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Path(folder), "tiny", seed=0, images=False)
    ...     sum("questions" in path.name for path in Path(folder).iterdir())
    4
    """
    for split in splits:
        if split == "test2015":
            _write_test(folder, scale, seed)
        else:
            _write_labelled(folder, split, scale, seed)
        if images:
            write_images(folder, split, image_ids(split, scale), seed)


def _question_file(subtype: str) -> dict[str, Any]:
    return {
        "info": _INFO,
        "task_type": "Open-Ended",
        "data_type": "mscoco",
        "license": _LICENSE,
        "data_subtype": subtype,
    }


def _write_labelled(folder: Path, split: str, scale: str, seed: int) -> None:
    annotation_head = {"info": _INFO, "license": _LICENSE, "data_subtype": split, "data_type": "mscoco"}
    pairs: list[list[int]] = []
    unpaired: dict[str, list[tuple[int, str]]] = {}
    with ExitStack() as stack:
        questions_name = f"v2_OpenEnded_mscoco_{split}_questions.json"
        add_question = stack.enter_context(list_file(folder / questions_name, _question_file(split), "questions"))
        annotations_name = f"v2_mscoco_{split}_annotations.json"
        add_annotation = stack.enter_context(list_file(folder / annotations_name, annotation_head, "annotations"))
        position = 0
        for image_id, asked in _asked(split, scale, seed):
            annotations = []
            for number, question in enumerate(asked):
                question_id = 1_000 * image_id + number
                add_question({"image_id": image_id, "question": question.text, "question_id": question_id})
                annotations.append(_annotation(image_id, question_id, question, position, seed))
                _pair(unpaired.setdefault(question.text, []), pairs, question_id, question.answer)
                position += 1
            for annotation in reversed(annotations):  # not in the order of the questions: readers must join by id
                add_annotation(annotation)
    write_json(folder / f"v2_mscoco_{split}_complementary_pairs.json", pairs)


def _asked(split: str, scale: str, seed: int) -> Iterator[tuple[int, Sequence[Question]]]:
    """The questions about each image, with the scale's number of questions in total."""
    numbers = image_ids(split, scale)
    each, left_over = divmod(at_scale(COUNTS, scale)[split], len(numbers))
    for index, image_id in enumerate(numbers):
        random = np.random.default_rng([seed, image_id, 1])
        yield image_id, _exactly(image_id, random, each + (index < left_over), seed)


def _exactly(image_id: int, random: np.random.Generator, count: int, seed: int) -> list[Question]:
    scene = coco_scene(image_id, seed)
    asked = list(questions(scene, random, count))
    while len(asked) < count:
        asked.extend(questions(scene, random, count - len(asked)))
    return asked[:count]


def _annotation(image_id: int, question_id: int, question: Question, position: int, seed: int) -> dict[str, Any]:
    answers = list(question.annotators)
    if position % 40 == 0:
        answers = [question.answer] * 10
    elif position % 40 == 1:
        answers[9] = "a"  # a lone article: the official normalisation leaves nothing of it
    sure = np.random.default_rng([seed, question_id, 2]).random(10)
    return {
        "question_type": question.question_type,
        "multiple_choice_answer": question.answer,
        "answers": [
            {
                "answer": answer,
                "answer_confidence": "yes" if value < 0.7 else "maybe" if value < 0.93 else "no",
                "answer_id": number,
            }
            for number, (answer, value) in enumerate(zip(answers, sure, strict=True), 1)
        ],
        "image_id": image_id,
        "answer_type": question.answer_type,
        "question_id": question_id,
    }


def _pair(waiting: list[tuple[int, str]], pairs: list[list[int]], question_id: int, answer: str) -> None:
    """Pair a question with an earlier one that has the same words and a different answer, if there is one."""
    for index, (other, other_answer) in enumerate(waiting[:20]):
        if other_answer != answer and other // 1_000 != question_id // 1_000:
            pairs.append([other, question_id])
            del waiting[index]
            return
    waiting.append((question_id, answer))


def _write_test(folder: Path, scale: str, seed: int) -> None:
    with ExitStack() as stack:
        names = ("test2015", "test-dev2015")
        add, add_dev = (
            stack.enter_context(
                list_file(folder / f"v2_OpenEnded_mscoco_{name}_questions.json", _question_file(name), "questions")
            )
            for name in names
        )
        position = 0
        for image_id, asked in _asked("test2015", scale, seed):
            for number, question in enumerate(asked):
                record = {"image_id": image_id, "question": question.text, "question_id": 1_000 * image_id + number}
                add(record)
                if position < at_scale(COUNTS, scale)["test-dev2015"]:
                    add_dev(record)
                position += 1
