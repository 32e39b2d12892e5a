"""CL_Benchmark: O-LoRA's fifteen text classifications as instructions, as its authors publish them.

`CL_Benchmark/KIND/NAME/{train,dev,test,labels}.json`: lists of a sentence and its label, a word. The question to the
model is in `configs/instruction_config.json` beside it, one for each kind. A split is called `NAME_train`. In the
authors' files, `dev` and `test` are identical, so neither can serve as validation data for the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.datasets.base import DataError, Dataset, Problem, Reading, get, read_json
from holdfast.datasets.formats.fields import text
from holdfast.datasets.formats.files import first_folder
from holdfast.types import Example

VERSION = 1
KINDS = {
    **dict.fromkeys(("amazon", "yelp", "IMDB", "SST-2"), "SC"),
    **dict.fromkeys(("agnews", "dbpedia", "yahoo"), "TC"),
    **dict.fromkeys(("MNLI", "CB", "RTE"), "NLI"),
    **{name: name for name in ("QQP", "BoolQA", "COPA", "MultiRC", "WiC")},
}
"""The kind of each task, which is its folder."""
_PARTS = ("train", "dev", "test")
_COUNTS = {
    "amazon": (5_000, 7_600),
    "yelp": (5_000, 7_600),
    "IMDB": (2_000, 7_600),
    "SST-2": (2_000, 872),
    "agnews": (4_000, 7_600),
    "dbpedia": (14_000, 7_600),
    "yahoo": (10_000, 7_600),
    "MNLI": (3_000, 7_469),
    "CB": (250, 56),
    "RTE": (2_000, 277),
    "QQP": (2_000, 7_600),
    "BoolQA": (2_000, 3_270),
    "COPA": (400, 100),
    "MultiRC": (2_000, 4_848),
    "WiC": (2_000, 638),
}
"""The numbers of training and of test examples."""
_NO_AGREEMENT = "-"
_AGAIN = "copy it from the authors' repository again"
_CONFIG = "configs/instruction_config.json"


def _root(folder: Path) -> Path:
    return first_folder(folder, ["CL_Benchmark"], sorted(set(KINDS.values())))


def _present(folder: Path) -> bool:
    return any((_root(folder) / kind / name / "labels.json").is_file() for name, kind in KINDS.items())


def _config(folder: Path) -> Path | None:
    """The file of the questions: in the folder, or beside the folder CL_Benchmark."""
    places = (folder / _CONFIG, folder.parent / _CONFIG)
    return next((place for place in places if place.is_file()), None)


def _lacks(folder: Path, split: str) -> list[str]:
    return [] if _config(folder) else [_CONFIG]


def _read(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
    """Yield each sentence with its label as target, the labels to choose from, and the question of its kind.

    Sentences whose annotators did not agree (label "-", in MNLI) are set aside.
    """
    name, _, part = split.rpartition("_")
    place = _root(folder) / KINDS[name] / name
    labels = _labels(place / "labels.json")
    asked = _instruction(folder, KINDS[name])
    path = place / f"{part}.json"
    records = _list(path)
    for number, record in enumerate(records):
        try:
            if not isinstance(record, dict):
                raise ValueError(f"{record!r:.40} is not a JSON object")
            sentence, label = text(record, "sentence"), get(record, "label", str)
            if label == _NO_AGREEMENT:
                reading.aside["annotators did not agree"] += 1
                continue
            if label not in labels:
                raise ValueError(f"its label is {label!r:.40}, not one of {', '.join(labels)}")
        except ValueError as error:
            reading.bad(path, f"record {number + 1}", str(error), _AGAIN)
            continue
        extra = {"task": name, "kind": KINDS[name], "instruction": asked}
        yield Example(f"{split}-{number}", label, text=sentence, choices=labels, extra=extra)


def _labels(path: Path) -> tuple[str, ...]:
    found = _list(path)
    if (
        not all(isinstance(label, str) and label.strip() for label in found)
        or len(set(found)) != len(found)
        or not found
    ):
        raise DataError(Problem(str(path), "", "it is not a list of different labels", _AGAIN))
    return tuple(found)


def _list(path: Path) -> list[Any]:
    if not path.is_file():
        raise DataError(Problem(str(path), "", "no such file", _AGAIN))
    found = read_json(path)
    if not isinstance(found, list):
        raise DataError(Problem(str(path), "", "it is not a JSON list", _AGAIN))
    return found


def _instruction(folder: Path, kind: str) -> str:
    """The question that is asked of each sentence of a kind; empty if there is none, as for COPA."""
    if (path := _config(folder)) is None:
        return ""
    try:
        given = read_json(path)
        if not isinstance(given, dict):
            raise ValueError("it is not a JSON object")
        several = get(given, kind, list) if kind in given else []
        ours = [each for each in several if get(each, "instruction_type", str) == "zero-shot"]
        return get(ours[0], "instruction", str) if ours else ""
    except (ValueError, TypeError) as error:
        raise DataError(Problem(str(path), kind, str(error), _AGAIN)) from None


DATASET = Dataset(
    name="cl_benchmark",
    splits=tuple(f"{name}_{part}" for name in KINDS for part in _PARTS),
    read=_read,
    present=_present,
    lacks=_lacks,
    beside=("configs",),
    counts={f"{name}_{part}": counts[part != "train"] for name, counts in _COUNTS.items() for part in _PARTS},
)
