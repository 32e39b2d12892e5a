from dataclasses import dataclass
from typing import Annotated, Literal

import pytest

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


def test_text_becomes_the_type_of_its_field():
    text = {"count": "3", "rate": "1e-3", "on": "yes", "mode": "slow", "limit": "none", "pair": "0.1,0.2"}
    assert build(Kind, text, "kind") == Kind(3, 1e-3, True, "slow", None, (0.1, 0.2))


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
        ("coumt", "1", "kind.coumt is no setting: did you mean count"),
    ],
)
def test_what_is_wrong_is_named(name, value, sentence):
    with pytest.raises(UserError) as error:
        build(Kind, {name: value}, "kind")
    assert str(error.value).startswith(sentence)
