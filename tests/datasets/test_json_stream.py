import json
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.datasets import base
from holdfast.datasets.base import DataError
from holdfast.datasets.formats.json_stream import stream_arrays

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(derandomize=True, max_examples=100, deadline=None)
@given(
    arrays=st.dictionaries(st.sampled_from(["a", "b", "c"]), st.lists(VALUES, max_size=4), min_size=1),
    others=st.dictionaries(st.sampled_from(["x", "y"]), VALUES),
    indent=st.none() | st.integers(0, 2),
    first=st.booleans(),
)
def test_the_same_as_reading_it_whole(tmp_path_factory, arrays, others, indent, first):
    path = tmp_path_factory.getbasetemp() / "stream.json"
    content = {**others, **arrays} if first else {**arrays, **others}
    path.write_text(json.dumps(content, indent=indent), encoding="utf-8")
    found = {name: [] for name in arrays}
    for name, number, element in stream_arrays(path, *arrays):
        found[name].append(element)
        assert number == len(found[name])
    assert found == arrays


TEXT = json.dumps(
    {
        "x": [{"y": [1.5e-3, '\\u00e9"\u00e9]']}, -12],
        "a": [-1234.5, 1.5e300, True, None, "\U0001f600 \\", [{}], {"b": []}, 120],
    }
)


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("size", range(1, 24))
def test_wherever_a_part_of_the_file_ends_the_values_are_the_same(tmp_path, monkeypatch, size, ascii_only):
    monkeypatch.setattr(base, "_BLOCK", size)  # bytes: also in the middle of a letter
    text = json.dumps(json.loads(TEXT), ensure_ascii=ascii_only, indent=1)
    (tmp_path / "a.json").write_text(text, encoding="utf-8")
    assert [element for _, _, element in stream_arrays(tmp_path / "a.json", "a")] == json.loads(TEXT)["a"]
    for broken in (text[:-9], text.replace("true", "tree"), text.replace("-1234", "--1234")):
        (tmp_path / "a.json").write_text(broken, encoding="utf-8")
        with pytest.raises(DataError, match="not valid JSON"):
            list(stream_arrays(tmp_path / "a.json", "a"))


def test_the_place_of_a_mistake_is_counted_from_the_beginning_of_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(base, "_BLOCK", 50)
    text = json.dumps({"a": ["x" * 30] * 20})
    text = text[:-10] + "\0" + text[-9:]
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(DataError, match=rf"at character {len(text) - 10}\)"):
        list(stream_arrays(tmp_path / "a.json", "a"))


@pytest.mark.parametrize("names", [("a",), ("b",)], ids=["read", "passed over"])
def test_a_large_file_is_never_in_memory_whole(tmp_path, names):
    records = [{"id": number, "text": "x" * 2_000} for number in range(5_000)]
    (tmp_path / "large.json").write_text(json.dumps({"a": records, "b": [1]}))  # ten megabytes
    del records
    tracemalloc.start()
    count = sum(1 for _ in stream_arrays(tmp_path / "large.json", *names))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == (5_000 if names == ("a",) else 1)
    assert peak < 6e6


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "breaks off"),
        ("[]", "where { was expected"),
        ("{}", "no 'a'"),
        ('{"a": {}}', "'a' is not a list"),
        ('{"a": [1, 2', "breaks off"),
        ('{"a": [1 2]}', "there is '2' where ] or , was expected"),
        ('{"a": [1,]}', "a 2: it is not valid JSON"),
        ('{"a": []} x', "something follows"),
        ('{"a": [], }', "not valid"),
        ("{1: []}", "a key is not a string"),
        ('{"a": [' + "[" * 100_000, "not valid"),
        ('{"a": [' + "1" * 5_000 + "]}", "not valid"),
    ],
)
def test_what_is_wrong_is_a_sentence(tmp_path, text, what):
    path = tmp_path / "broken.json"
    path.write_text(text)
    with pytest.raises(DataError, match=r"broken.json") as caught:
        list(stream_arrays(path, "a"))
    assert what in str(caught.value)
