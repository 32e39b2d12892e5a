"""Files that something happened to: a reader yields or tells every record, and raises nothing but UserError."""

import importlib
import importlib.util
import json
import math
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.datasets.base import Reading
from holdfast.errors import UserError

TEXT = ["imdb", "sst2", "hellaswag", "commonsenseqa", "piqa", "imagenet", "places365"]
JSON = ["inaturalist2019", "clevr", "gqa", "objects365", "partimagenet", "cgqa", "cobj", "cpin"]
JSON += ["cl_benchmark", "coin", "ucit"]
BINARY = ["cifar100", "region_features", "phrase_streams", "flickr8k"]  # of the last, one photograph has many lines
DEEP = json.loads("[" * 200 + "]" * 200)
JUNK = [
    None,
    True,
    -1,
    0,
    1e400,
    math.nan,
    10**30,
    "",
    "x" * 60,
    "../..",
    "\0",
    "\ud800",
    {},
    {"a": 1},
    [1],
    [[]],
    DEEP,
]
HOW = settings(
    max_examples=40,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def example_of(name):
    """The module that tests one reader: it knows how to make a small dataset, and how many records that has."""
    path = Path(__file__).parent / f"test_{name}.py"
    spec = importlib.util.spec_from_file_location(f"hand_made_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def made(folder, module):
    """A dataset made by hand: those of its files that have something in them, with what they have."""
    folder.mkdir()
    module.make(folder)
    found = {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    return {path: content for path, content in found.items() if content}


def restore(files):
    for path, content in files.items():
        path.write_bytes(content)


def told(module, folder, split):
    """How many records are yielded or told; None where a whole file is refused."""
    reading = Reading(skip=1_000_000)
    try:
        count = sum(1 for _ in module.DATASET.examples(folder, split, reading))
    except UserError:
        return None
    return count + len(reading.problems)


@pytest.mark.parametrize("name", TEXT + JSON + BINARY)
def test_nothing_is_told_of_files_that_nothing_happened_to(name, tmp_path):
    module = example_of(name)
    made(tmp_path / "data", module)
    for split, count in module.RECORDS.items():
        assert len(list(module.DATASET.examples(tmp_path / "data", split))) == count


@pytest.mark.parametrize("name", TEXT + JSON + BINARY)
def test_bytes_that_change_raise_nothing_but_a_sentence(name, tmp_path):
    module = example_of(name)
    files = made(tmp_path / "data", module)

    @HOW
    @given(st.data())
    def check(data):
        restore(files)
        path = data.draw(st.sampled_from(list(files)))
        content = path.read_bytes()
        for _ in range(data.draw(st.integers(1, 4))):
            # the first bytes are where formats keep what matters most
            start = data.draw(st.integers(0, min(len(content), 4_000)) | st.integers(0, len(content)))
            stop = data.draw(st.sampled_from([start, start + 1, start + 9, len(content)]))
            content = content[:start] + data.draw(st.binary(max_size=9)) + content[stop:]
        path.write_bytes(content)
        for split in module.RECORDS:
            told(module, tmp_path / "data", split)
        module.DATASET.present(tmp_path / "data")

    check()


@pytest.mark.parametrize("name", TEXT)
def test_a_line_that_changes_is_yielded_or_told(name, tmp_path):
    module = example_of(name)
    files = made(tmp_path / "data", module)

    @HOW
    @given(st.data())
    def check(data):
        restore(files)
        path = data.draw(st.sampled_from(list(files)))
        lines = path.read_text(encoding="utf-8").split("\n")
        number = data.draw(st.integers(0, len(lines) - 1).filter(lambda n: lines[n]))
        alphabet = st.characters(exclude_characters="\n\r", exclude_categories=["Cs"])
        junk = st.text(alphabet, min_size=1, max_size=20).filter(str.strip)
        keep = data.draw(st.integers(0, len(lines[number])))
        lines[number] = lines[number][:keep] + data.draw(junk)
        path.write_text("\n".join(lines), encoding="utf-8", newline="")
        for split, count in module.RECORDS.items():
            found = told(module, tmp_path / "data", split)
            assert found is None or found >= count

    check()


def places(value, path=()):
    """The paths of all values inside a JSON value."""
    yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(inner, (*path, key))


def changed(value, path, junk, rename):
    """The value with junk at a path, or, where that is a key of an object, with another key there."""
    if not path:
        return junk
    key = path[0]
    if rename and len(path) == 1 and isinstance(value, dict):
        return {(f"{name}x" if name == key else name): inner for name, inner in value.items()}
    if isinstance(value, dict):
        return {**value, key: changed(value[key], path[1:], junk, rename)}
    return [*value[:key], changed(value[key], path[1:], junk, rename), *value[key + 1 :]]


def depth_of_records(value):
    """How deep the records lie: in a list or an object by id at once, in the arrays of an object one deeper."""
    return 2 if isinstance(value, dict) and any(isinstance(inner, list) for inner in value.values()) else 1


@pytest.mark.parametrize("name", [*JSON, "hellaswag", "commonsenseqa", "piqa"])
def test_a_field_that_changes_is_yielded_or_told(name, tmp_path):
    module = example_of(name)
    files = made(tmp_path / "data", module)

    @HOW
    @given(st.data())
    def check(data):
        restore(files)
        path = data.draw(st.sampled_from([path for path in files if path.suffix in (".json", ".jsonl")]))
        records = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
        number = data.draw(st.integers(0, len(records) - 1))
        value = json.loads(records[number])
        depth = 0 if path.suffix == ".jsonl" else depth_of_records(value)
        place = data.draw(st.sampled_from(list(places(value))))
        records[number] = json.dumps(changed(value, place, data.draw(st.sampled_from(JUNK)), data.draw(st.booleans())))
        path.write_text("\n".join(records))
        for split, count in module.RECORDS.items():
            found = told(module, tmp_path / "data", split)
            assert found is None or found >= count or len(place) < depth

    check()
