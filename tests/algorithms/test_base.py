"""What every algorithm inherits."""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from holdfast.algorithms import base
from holdfast.algorithms.base import Algorithm, refuse_accumulation
from holdfast.engine.stepper import declares
from holdfast.errors import UserError
from smallest import prepared


@dataclass
class Declared(Algorithm):
    """Declares that its loss may be recorded."""

    recordable = True

    def loss(self, learner, batch, outputs):
        return None


class Inherits(Declared):
    """Declares nothing of its own."""


def test_a_declaration_does_not_hold_for_a_subclass():
    assert declares(Declared())
    assert not declares(Inherits())
    assert not declares(Algorithm())


@pytest.mark.parametrize("name", ["replay", "lwf", "derpp", "agem"])
def test_the_usual_algorithms_read_in_a_minute(name):
    """Further forms, and what others share, are in files of their own."""
    assert len((Path(base.__file__).with_name(f"{name}.py")).read_text(encoding="utf-8").splitlines()) <= 120


def test_an_algorithm_that_keeps_nothing_takes_no_memory():
    assert Algorithm().memory_bytes(None) == 0


@pytest.mark.parametrize("pieces", [(2, 1), (1, 3), (2, 2)])
def test_one_stage_by_pieces_is_enough_to_refuse(pieces):
    stream = prepared().setup.stream
    stages = [
        replace(s, training=replace(s.training, accumulate=n)) for s, n in zip(stream.stages, pieces, strict=True)
    ]
    with pytest.raises(UserError, match="mine needs each batch as a whole"):
        refuse_accumulation("mine", replace(stream, stages=tuple(stages)))
    refuse_accumulation("mine", stream)
