"""Instructions with pictures in LLaVA's JSON, one file for each task, as in the downloads of CoIN and UCIT.

A training record has `conversations`, turns of a human and of the model in alternation; a test record may have `text`,
the question, and its `answer` instead. `image` is the picture's path below the folder of the pictures.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.datasets.base import DataError, Dataset, Problem, Reading, first_file, get, read_json
from holdfast.datasets.formats.fields import text
from holdfast.datasets.formats.image_files import ImageFiles
from holdfast.datasets.formats.json_stream import stream_arrays
from holdfast.types import Example

VERSION = 1
IMAGE = "<image>"
"""The mark for the picture in a human's turn."""
_AGAIN = "download it again"
_HUMAN, _MODEL = frozenset({"human", "user"}), frozenset({"gpt", "assistant"})


@dataclass(frozen=True)
class Suite:
    """A published sequence of such tasks: by name, the files of each split, and the folders where files may be."""

    name: str
    tasks: Mapping[str, Mapping[str, Sequence[str]]]
    """By task and split, the names under which its file is published."""
    folders: Sequence[str]
    """Folders that may contain the folders of the tasks."""
    pictures: Sequence[str]
    """Folders to which the paths of pictures may be relative, in addition to the main one."""
    captions: Mapping[str, str]
    """Files in COCO's format with all captions of the test pictures, by task."""
    counts: Mapping[str, int]

    def dataset(self) -> Dataset:
        """The reader: a split is called `TASK_train` or `TASK_test`."""
        return Dataset(
            name=self.name,
            splits=tuple(f"{task}_{split}" for task, splits in self.tasks.items() for split in splits),
            read=self._read,
            present=lambda folder: any(self._file(folder, task, "test") for task in self.tasks),
            counts=self.counts,
        )

    def _file(self, folder: Path, task: str, split: str) -> Path | None:
        """The file of a split, in the first folder that has it; pictures lie in folders of the same names."""
        roots = (folder, *(folder / name for name in self.folders))
        paths = (root / task / name for root in roots for name in self.tasks[task][split])
        return next((path for path in paths if path.is_file()), None)

    def _read(self, folder: Path, split: str, reading: Reading) -> Iterator[Example]:
        task, _, part = split.rpartition("_")
        if (path := self._file(folder, task, part)) is None:
            wanted = folder / task / self.tasks[task][part][0]
            raise DataError(Problem(str(wanted), "", "no such file", "unpack the instructions there"))
        captions = self._captions(path.parent, task, part, reading)
        pictures = ImageFiles(folder, *(folder / name for name in self.pictures))
        for example in conversations(path, pictures, reading, captions):
            yield Example(
                f"{split}-{example.id}",
                example.target,
                example.images,
                example.text,
                (),
                {**example.extra, "task": task},
            )

    def _captions(self, place: Path, task: str, part: str, reading: Reading) -> Mapping[int, tuple[str, ...]]:
        if part != "test" or task not in self.captions:
            return {}
        found: dict[int, list[str]] = defaultdict(list)
        path = first_file(place, [self.captions[task]], "unpack the instructions there")
        for _, number, record in stream_arrays(path, "annotations"):
            try:
                if not isinstance(record, dict):
                    raise ValueError(f"{record!r:.40} is not a JSON object")
                found[get(record, "image_id", int)].append(text(record, "caption").strip())
            except ValueError as error:
                reading.bad(path, f"annotation {number}", str(error), _AGAIN)
        return {number: tuple(each) for number, each in found.items()}


def conversations(
    path: Path, pictures: ImageFiles, reading: Reading, captions: Mapping[int, tuple[str, ...]] | None = None
) -> Iterator[Example]:
    """One example for each answer in a file of records; its id is the record's number, with the answer's if there are
    several.

    The text is the question, after the turns before it; the target is the answer, and `extra` has all right `answers`.
    `captions` are further right answers, by the number of the record from 1.
    """
    records = read_json(path)
    if not isinstance(records, list):
        raise DataError(Problem(str(path), "", "it is not a JSON list", _AGAIN))
    for number, record in enumerate(records, 1):
        try:
            if not isinstance(record, dict):
                raise ValueError(f"{record!r:.40} is not a JSON object")
            shown = _picture(record, pictures)
            turns = _turns(record, captions is not None and captions.get(number))
            if not shown and any(IMAGE in asked for asked, _ in turns):
                raise ValueError(f"it has no 'image', but its question has {IMAGE}")
        except ValueError as error:
            reading.bad(path, f"record {number}", str(error), _AGAIN)
            continue
        before = ""
        for turn, (asked, answers) in enumerate(turns):
            question = f"{before}{asked.replace(IMAGE, '').strip()}"
            own = str(record.get("question_id", record.get("id", number)))
            extra = {"answers": answers, "official_id": own}
            yield Example(
                f"{number}" if len(turns) == 1 else f"{number}.{turn + 1}", answers[0], shown, question, (), extra
            )
            before = f"{question}\n{answers[0]}\n"


def _picture(record: Mapping[str, Any], pictures: ImageFiles) -> tuple[Path, ...]:
    if record.get("image") is None:
        return ()
    name = get(record, "image", str).removeprefix("./")
    return (pictures.need(name, remedy="unpack the pictures of its dataset there"),)


def _turns(record: Mapping[str, Any], captions: Any) -> list[tuple[str, tuple[str, ...]]]:
    """The questions of a record, each with its right answers."""
    if "conversations" not in record:
        return [(text(record, "text"), captions or _answers(record))]
    turns = get(record, "conversations", list)
    if len(turns) < 2 or len(turns) % 2:
        raise ValueError(f"its conversation has {len(turns)} turns, not questions with answers")
    found: list[tuple[str, tuple[str, ...]]] = []
    for asked, answered in zip(turns[::2], turns[1::2], strict=True):
        for turn, speakers in ((asked, _HUMAN), (answered, _MODEL)):
            if not isinstance(turn, dict) or get(turn, "from", str) not in speakers:
                raise ValueError("its conversation does not alternate between human and gpt")
        found.append((get(asked, "value", str), (text(answered, "value").strip(),)))
    return found


def _answers(record: Mapping[str, Any]) -> tuple[str, ...]:
    """The right answers of a test record: one, several, or a box."""
    name = next((name for name in ("answer", "answers", "answer_bbox") if name in record), "answer")
    given: Any = get(record, name, (str, list, int, float))
    if isinstance(given, list) and name != "answer_bbox":
        several = [get({"answer": each}, "answer", str).strip() for each in given]
    else:
        several = [str(given).strip()]
    if not several or not all(several):
        raise ValueError(f"its {name} is empty")
    return tuple(several)
