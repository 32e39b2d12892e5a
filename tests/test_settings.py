import math
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pytest
import torch

from holdfast.errors import UserError
from holdfast.settings import build
from holdfast.types import Between


@dataclass(frozen=True)
class Kind:
    count: Annotated[int, Between(1, 10)] = 1
    rate: Annotated[float, Between(0)] = 0.5
    on: bool = False
    mode: Literal["fast", "slow"] = "fast"
    limit: Annotated[int, Between(2)] | None = None
    pair: tuple[float, float] = (0.9, 0.99)
    word: str = ""


def test_text_becomes_the_type_of_its_field():
    text = {"count": "3", "rate": "1e-3", "on": "yes", "mode": "slow", "limit": "none", "pair": "0.1,0.2"}
    assert build(Kind, text, "kind") == Kind(3, 1e-3, True, "slow", None, (0.1, 0.2))


def test_numbers_paths_and_numpys_values_are_taken_as_they_are():
    values = {
        "count": np.int64(3),
        "rate": np.float32(0.5),
        "on": np.bool_(True),
        "pair": [1, 0.5],
        "word": Path("a/b"),
    }
    assert build(Kind, values, "kind") == Kind(3, 0.5, True, pair=(1.0, 0.5), word="a/b")
    assert build(Kind, {"count": 3.0, "rate": 2, "on": 0, "word": 16}, "kind") == Kind(3, 2.0, False, word="16")


class Looks(type):
    """A class that has the text of a value and is none."""

    def __str__(cls) -> str:
        return "true"

    def __int__(cls) -> int:
        return 3

    def __float__(cls) -> float:
        return 3.0


@pytest.mark.parametrize("name", ["count", "rate", "on", "mode", "limit", "word"])
@pytest.mark.parametrize(
    "value", [Looks("Three", (), {}), Fraction(5, 2), torch.tensor(2.7), None, [3], {}, b"3", math.nan]
)
def test_what_only_has_the_text_of_a_value_is_refused(name, value):
    if name == "limit" and value is None:
        return
    if name == "rate" and isinstance(value, Fraction):
        assert build(Kind, {name: value}, "kind").rate == 2.5
        return
    with pytest.raises(UserError, match=rf"^kind\.{name} is "):
        build(Kind, {name: value}, "kind")


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("count", "x", "kind.count is 'x': it must be a whole number"),
        ("count", "1.5", "kind.count is '1.5': it must be a whole number"),
        ("count", 1.5, "kind.count is 1.5: it must be a whole number"),
        ("count", True, "kind.count is True: it must be a whole number"),
        ("count", "11", "kind.count is 11: it must be at least 1 and at most 10"),
        ("rate", "-1", "kind.rate is -1.0: it must be at least 0"),
        ("rate", "nan", "kind.rate is nan: it must be at least 0"),
        ("on", "maybe", "kind.on is 'maybe': it must be true or false"),
        ("mode", "fasst", "kind.mode is 'fasst': did you mean fast"),
        ("limit", "1", "kind.limit is 1: it must be at least 2"),
        ("pair", "1", "kind.pair is '1': it takes 2 values"),
        ("coumt", "1", "kind.coumt is not a setting: did you mean count"),
    ],
)
def test_what_is_wrong_is_named(name, value, sentence):
    with pytest.raises(UserError) as error:
        build(Kind, {name: value}, "kind")
    assert str(error.value).startswith(sentence)
