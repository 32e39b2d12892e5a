import copy
import json
import math
import pickle

import pytest

from holdfast.metrics import Undefined


def test_is_a_nan_with_a_reason() -> None:
    result = Undefined("why")
    assert isinstance(result, float)
    assert math.isnan(result)
    assert result != result
    assert result.reason == "why"
    assert repr(result) == "Undefined('why')"
    assert json.dumps(result) == "NaN"


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_the_reason_survives_pickling(protocol: int) -> None:
    assert pickle.loads(pickle.dumps(Undefined("why"), protocol)).reason == "why"


def test_the_reason_survives_copying() -> None:
    assert copy.copy(Undefined("why")).reason == "why"
    assert copy.deepcopy([Undefined("why")])[0].reason == "why"
