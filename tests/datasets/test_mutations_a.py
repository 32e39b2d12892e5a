"""Files that are cut, flipped, emptied or rewritten: a reader gives each record or reports it, and never falls over."""

import importlib.util
import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.datasets.base import Dataset, Reading
from holdfast.errors import UserError
from holdfast.types import Example

# Each dataset: the split that is read, and the files that are mutated.
CASES: dict[str, tuple[str, tuple[str, ...]]] = {
    "vqav2": ("train", ("v2_OpenEnded_mscoco_train2014_questions.json", "v2_mscoco_train2014_annotations.json")),
    "nlvr2": ("train", ("data/train.json",)),
    "snli_ve": ("dev", ("snli_ve_dev.jsonl",)),
    "vcr": ("train", ("train.jsonl", "vcr1images/movieclips_Y/AbC12@44.json")),
    "coco": ("val2014", ("annotations/instances_val2014.json", "annotations/captions_val2014.json")),
    "flickr30k_entities": ("test", ("Sentences/77.txt", "Annotations/77.xml", "test.txt", "UNRELATED_CAPTIONS")),
    "nikolaus": ("test_1", ("data/dataset_splits/dataset_splits_1.json", "data/occurrences/red_bus.json")),
}
FILES = [(name, file) for name, (_, files) in CASES.items() for file in files]
JSON_FILES = [(name, file) for name, file in FILES if name != "flickr30k_entities"]
STRANGE: list[Any] = [None, True, -1, 0, 3, 10**30, 1.5, float("nan"), "", "x", "9", "../x", "\ud800", "\0", [], {}]
STRANGE += [[[]], [None], [-1], [0, 0], {"x": None}, [1, 2, 3, float("inf")], [10**400] * 4, "x" * 9_999]


def sibling(name: str) -> Any:
    """The hand-made files of a dataset are written by its own test."""
    spec = importlib.util.spec_from_file_location(f"handmade_{name}", Path(__file__).with_name(f"test_{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


HANDMADE = {name: sibling(name) for name in CASES}


def whole_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        return None


def records(name: str, folder: Path) -> int:
    """How many examples the files name, counted without the reader."""
    files = [folder / file for file in CASES[name][1]]
    if name in ("nlvr2", "snli_ve", "vcr"):
        lines = [line for line in files[0].read_bytes().split(b"\n") if line.strip()]
        return len(lines) - sum(b'"gold_label": "-"' in line for line in lines)
    if name == "flickr30k_entities":
        return 5 * sum(1 for line in files[2].read_bytes().split(b"\n") if line.strip())
    keys = {"vqav2": "questions", "coco": "images", "nikolaus": "test_images_split"}
    return len(whole_json(files[0])[keys[name]])


def read_mutated(name: str, file: str, mutate: Callable[[Path], None]) -> None:
    """Read a dataset with one mutated file, and see that nothing is lost without a word."""
    dataset: Dataset = HANDMADE[name].DATASET
    split = CASES[name][0]
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root) / name
        HANDMADE[name].write(folder)
        mutate(folder / file)
        reading = Reading(skip=10_000)
        try:
            examples = list(dataset.examples(folder, split, reading))
        except UserError:
            return  # the whole file was refused
        check(name, folder, examples, reading)
        if reading.problems:  # with none to skip, the first of them is the error
            with pytest.raises(UserError) as caught:
                list(dataset.examples(folder, split))
            assert str(caught.value) == str(reading.problems[0])


def check(name: str, folder: Path, examples: list[Example], reading: Reading) -> None:
    count = records(name, folder)
    assert all(isinstance(image, Path) and image.is_file() for e in examples for image in e.images)
    assert all(problem.what and problem.file for problem in reading.problems)
    if name == "flickr30k_entities":  # one problem may be of an image, and so of five captions
        assert len(examples) + 5 * len(reading.problems) >= count
    else:
        assert len(examples) + len(reading.problems) >= count
    if reading.problems:
        return
    assert len(examples) == count
    if name == "coco":  # what belongs to an image is a record too
        instances, captions = (whole_json(folder / file)["annotations"] for file in CASES[name][1])
        assert sum(len(e.extra["boxes"]) for e in examples) == len(instances)
        assert sum(len(e.extra["captions"]) for e in examples) == len(captions)


@settings(derandomize=True, max_examples=16, deadline=None, database=None)
@given(
    kind=st.sampled_from(["cut", "flip", "insert", "drop"]),
    place=st.floats(0, 1, exclude_max=True),
    byte=st.integers(1, 255),
    length=st.integers(1, 40),
)
@pytest.mark.parametrize(("name", "file"), FILES)
def test_bytes(name, file, kind, place, byte, length):
    def mutate(path: Path) -> None:
        content = bytearray(path.read_bytes())
        position = int(place * len(content))
        if kind == "cut":
            del content[position:]
        elif kind == "flip":
            content[position] ^= byte
        elif kind == "insert":
            content[position:position] = bytes([byte]) * length
        else:
            del content[position : position + length]
        path.write_bytes(content)

    read_mutated(name, file, mutate)


@pytest.mark.parametrize("content", [b"", b"\n", b"{}", b"[]", b"null", b"\xff\xfe", b"[" * 100_000])
@pytest.mark.parametrize(("name", "file"), FILES)
def test_another_content(name, file, content):
    read_mutated(name, file, lambda path: path.write_bytes(content) and None)


def become_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


OPTIONAL = ("data/occurrences/red_bus.json", "UNRELATED_CAPTIONS")
NEEDED = [(name, file) for name, file in FILES if file not in OPTIONAL and name != "coco"]


@pytest.mark.parametrize("mutate", [Path.unlink, become_folder])
@pytest.mark.parametrize(("name", "file"), NEEDED)
def test_no_file_or_a_folder_in_its_place(name, file, mutate, tmp_path):
    HANDMADE[name].write(tmp_path / name)
    mutate(tmp_path / name / file)
    with pytest.raises(UserError, match=Path(file).name):
        list(HANDMADE[name].DATASET.examples(tmp_path / name, CASES[name][0]))


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each container inside a JSON value with each of its keys or indices."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(items):
        yield value, key
        yield from places(inner)


@settings(derandomize=True, max_examples=40, deadline=None, database=None)
@given(place=st.floats(0, 1, exclude_max=True), strange=st.sampled_from([..., *STRANGE]), line=st.integers(0, 9))
@pytest.mark.parametrize(("name", "file"), JSON_FILES)
def test_values(name, file, place, strange, line):
    """One value anywhere in a JSON file becomes another, or is gone."""

    def mutate(path: Path) -> None:
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        number = line % len(lines)
        value = json.loads(lines[number])
        spots = list(places(value))
        container, key = spots[int(place * len(spots))]
        if strange is ...:
            del container[key]
        else:
            container[key] = strange
        lines[number] = json.dumps(value)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")

    read_mutated(name, file, mutate)
