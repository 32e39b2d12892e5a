"""The benchmark of speed, at a toy size: what is timed is a real pass."""

import pytest
import torch

from holdfast.benchmarks.viscoll.speed import CASES, Size, passes
from holdfast.errors import UserError

TOY = Size(examples=900, tasks=5, images=12, boxes=3, width=4, words=10, places=3, vocabulary=50)
TINY = {"size": TOY, "model": "vlbert-tiny", "warm": 5, "compiled": False}


def test_every_method_passes_over_the_whole_stream(monkeypatch):
    for name, (registered, settings, *limits) in CASES.items():
        small = {**settings, "capacity": 100} if settings else {}
        monkeypatch.setitem(CASES, name, (registered, small, *limits))
    found = passes(torch.device("cpu"), **TINY)
    assert [each.method for each in found] == ["vanilla", "er", "agem", "mir"]
    assert all(each.measured and each.steps_a_second > 0 for each in found)
    for each in found:  # the first steps, and the other 24 of 29 at their pace
        assert each.seconds == pytest.approx(each.starting + 24 / each.steps_a_second)


def test_a_part_is_taken_to_go_on_so():
    (found,) = passes(torch.device("cpu"), steps=10, only="vanilla", **TINY)
    assert not found.measured
    assert found.seconds == pytest.approx(found.starting + 24 / found.steps_a_second)
    with pytest.raises(UserError, match="too few to be timed"):
        passes(torch.device("cpu"), steps=5, only="vanilla", **TINY)
    with pytest.raises(UserError, match="unknown method 'gem'"):
        passes(torch.device("cpu"), only="gem", **TINY)
