import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "breaks off"),
        ("[]", "where { should stand"),
        ("{}", "no 'a'"),
        ('{"a": {}}', "'a' is no list"),
        ('{"a": [1, 2', "breaks off"),
        ('{"a": [1 2]}', "there is '2' where ] or , should stand"),
        ('{"a": [1,]}', "a 2: it is not whole JSON"),
        ('{"a": []} x', "something follows"),
        ('{"a": [], }', "not whole"),
        ("{1: []}", "a key is no string"),
        ('{"a": [' + "[" * 100_000, "not whole"),
        ('{"a": [' + "1" * 5_000 + "]}", "not whole"),
    ],
)
def test_what_is_wrong_is_a_sentence(tmp_path, text, what):
    path = tmp_path / "broken.json"
    path.write_text(text)
    with pytest.raises(DataError, match=r"broken.json") as caught:
        list(stream_arrays(path, "a"))
    assert what in str(caught.value)
