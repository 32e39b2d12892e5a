"""A user's algorithm counts by the traits that it declares, as the built-in ones do."""

from dataclasses import dataclass

import pytest
import torch

from holdfast import registry
from holdfast.algorithms.adapters import Adapters
from holdfast.algorithms.base import TRAITS, Algorithm
from holdfast.algorithms.lwf import LwF
from holdfast.algorithms.mir import Mir
from holdfast.algorithms.replay import Replay
from holdfast.algorithms.si import SI
from holdfast.engine.loop import refuse
from holdfast.errors import UserError
from smallest import prepared, trained


@dataclass
class Pull(Algorithm):
    """A weight penalty: every weight is pulled to 0."""

    traits = frozenset({"weight-penalty"})

    def grads(self, learner, batch):
        for parameter in learner.parameters.values():
            if parameter.grad is not None:
                parameter.grad += 0.1 * parameter.detach()


@dataclass
class Undeclared(Pull):
    """The same without a word about it."""

    traits = frozenset()


def test_mir_reuses_its_gradient_before_a_penalty_of_the_users():
    settings = {"mir__capacity": 50, "mir__size": 9}
    learners, alone = [], []
    for penalty in (Pull(), Undeclared()):
        algorithms = [*prepared("mir", **settings).algorithms, penalty]
        learners.append(trained(prepared(), algorithms)[0])
        alone.append(algorithms[0].alone)
    assert alone == [True, False]
    assert learners[0].examples_backward < learners[1].examples_backward
    states = [learner.model.state_dict() for learner in learners]
    assert max((states[0][name] - states[1][name]).abs().max() for name in states[0]) < 1e-9


def test_a_penalty_that_comes_first_or_also_looks_at_the_batch_is_not_taken_for_one():
    @dataclass
    class Both(Pull):
        def loss(self, learner, batch, outputs):
            return torch.zeros(())

    for order, alone in (([Mir(), Pull()], True), ([Pull(), Mir()], False), ([Mir(), Both()], False)):
        for algorithm in order:
            algorithm.beside(order)
        assert [a.alone for a in order if isinstance(a, Mir)] == [alone]


@pytest.mark.parametrize(
    ("ours", "trait", "words"),
    [
        (SI(), "extra-steps", "SI follows one step for each batch, and Mine takes optimiser steps of its own"),
        (SI(), "several-fits", "SI follows one path .*, and Mine fits a stage several times"),
        (LwF(), "encoder-per-stage", "LwF distils from the encoder of the last stage, and Mine keeps an encoder"),
        (LwF(on="old-heads"), "encoder-per-head", r"one pass .*, and Mine gives each head .*: set lwf\.on=seen, or"),
        (Adapters(), "adds-to-blocks", "Adapters needs the transformer blocks to itself, and Mine adds modules"),
    ],
)
def test_each_rule_sees_the_trait_of_a_users_algorithm_before_training(ours, trait, words):
    class Mine(Algorithm):
        traits = frozenset({trait})

    stream = prepared().setup.stream
    for order in ([ours, Mine()], [Mine(), ours]):
        with pytest.raises(UserError, match=f"{words}.*leave one of the two out$"):
            refuse(order, stream)
    refuse([ours, Algorithm()], stream)
    refuse([LwF(), type("Other", (Mine,), {"traits": frozenset({"encoder-per-head"})})()], stream)


def test_a_trait_that_depends_on_a_setting_follows_it():
    assert "extra-steps" in Replay(mode="separate").traits
    assert "extra-steps" in Mir(fidelity="released").traits
    assert not Replay().traits | Mir().traits


def test_an_unknown_trait_is_refused_before_training():
    class Mine(Algorithm):
        traits = frozenset({"extra-step"})

    with pytest.raises(UserError, match=r"Mine declares the trait 'extra-step', .*did you mean extra-steps\?"):
        trained(prepared(), [Mine()])


def test_each_trait_is_declared_by_an_algorithm_of_ours():
    kinds = [entry.load() for entry in registry.ALGORITHMS.values()]
    declared = set().union(*(kind.traits for kind in kinds), *(kind.remedies for kind in kinds))
    assert declared == TRAITS.keys()
