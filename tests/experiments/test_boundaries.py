"""A user's algorithm on a stream that does not show where a stage ends."""

from dataclasses import dataclass
from typing import Any

import pytest

import holdfast as hf

SMALL = {"benchmark.stages": 2, "train.epochs": 1}


def small(algorithms, out, **more):
    return hf.run("patterns", algorithms, scale="tiny", out=out, **{"settings": SMALL} | more)


@dataclass
class Forgot(hf.Algorithm):
    """It does not declare that it needs boundaries."""

    strength: float = 0.01

    def setup(self, learner):
        self.anchor: dict[str, Any] = {}

    def begin(self, learner, stage):
        self.anchor = {name: p.detach().clone() for name, p in learner.trainable().items()}

    def loss(self, learner, batch, outputs):
        return self.strength * sum(((p - self.anchor[n]) ** 2).sum() for n, p in learner.trainable().items())


def test_an_algorithm_that_forgets_to_declare_its_need_of_boundaries_is_told(tmp_path):
    without = SMALL | {"benchmark.boundaries": False}
    with pytest.raises(hf.UserError) as error:
        small(Forgot(), tmp_path, settings=without)
    assert str(error.value).startswith(
        "Forgot failed in `loss` (KeyError: 'encoder.embedding.weight'): this stream does not show where a stage ends, "
        'so `begin` of Forgot was never called. If Forgot relies on that, write needs = frozenset({"boundaries"})'
    )
    assert isinstance(error.value.__cause__.__cause__, KeyError)
    assert small(Forgot(), tmp_path).summary, "with boundaries, all is well"
    assert small("agem", tmp_path, settings=without).summary, "it overrides `end`, and does without"


def test_an_error_of_its_own_is_not_taken_for_a_need_of_boundaries(tmp_path):
    @dataclass
    class Broken(hf.Algorithm):
        def loss(self, learner, batch, outputs):
            raise ZeroDivisionError

    with pytest.raises(hf.RunError, match="ZeroDivisionError"):
        small(Broken(), tmp_path, settings=SMALL | {"benchmark.boundaries": False})
