"""Counted operations against PyTorch's own counter, for every registered algorithm and model."""

import pytest
from torch.utils.flop_counter import FlopCounterMode

from holdfast import registry
from holdfast.engine.loop import train
from holdfast.engine.operations import EXTRA
from holdfast.types import Protocol
from smallest import Scores, make_learner, prepared

ALGORITHMS = sorted([*registry.PLAIN, *registry.ALGORITHMS, *registry.TRANSFORMS])


def extra(formula):
    def found(*args, out_val=None, **named):
        return formula(args, out_val)

    found._get_raw = True
    return found


def counted(ready):
    """A run's own count, and that of a counter which watches every operation of the same run."""
    learner, setup = make_learner(ready), ready.setup
    learner.once = None  # whose proofs and tables are not part of the training
    with FlopCounterMode(display=False, custom_mapping={name: extra(each) for name, each in EXTRA.items()}) as every:
        train(learner, setup.stream, ready.algorithms, Protocol(()), log=Scores())
    return learner.counter.total, every.get_total_flops()


@pytest.mark.parametrize("settings", [{}, {"benchmark__setting": "task", "train__batch_size": 39}], ids=["one", "two"])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_operations_of_every_algorithm(name, settings):
    found, expected = counted(prepared(name, **settings))
    assert found == pytest.approx(expected, rel=0.01)
