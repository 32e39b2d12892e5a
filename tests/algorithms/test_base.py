"""What every algorithm inherits."""

from dataclasses import dataclass, replace

import pytest

from holdfast.algorithms.base import Algorithm, refuse_accumulation
from holdfast.errors import UserError
from smallest import prepared


@dataclass
class Fixed(Algorithm):
    """Has a loss, and says that it may be recorded."""

    def loss(self, learner, batch, outputs):
        return None

    def adds(self):
        return "fixed"


class Other(Fixed):
    """Has a loss of its own, of which nothing is known."""

    def loss(self, learner, batch, outputs):
        return None


class Same(Fixed):
    """Has the loss that it inherits."""


def test_what_a_class_says_of_its_loss_does_not_hold_for_another_loss():
    assert Fixed().adds() == Same().adds() == "fixed"
    assert Other.adds is Algorithm.adds


def test_an_algorithm_that_keeps_nothing_takes_no_memory():
    assert Algorithm().memory_bytes(None) == 0


@pytest.mark.parametrize("pieces", [(2, 1), (1, 3), (2, 2)])
def test_one_stage_by_pieces_is_enough_to_refuse(pieces):
    stream = prepared().setup.stream
    stages = [
        replace(s, training=replace(s.training, accumulate=n)) for s, n in zip(stream.stages, pieces, strict=True)
    ]
    with pytest.raises(UserError, match="mine looks at a batch as a whole"):
        refuse_accumulation("mine", replace(stream, stages=tuple(stages)))
    refuse_accumulation("mine", stream)
