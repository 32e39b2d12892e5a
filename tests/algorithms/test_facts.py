"""What is said of an algorithm in lists and pages follows from its hooks and its docstring."""

from types import SimpleNamespace

import pytest

from holdfast.algorithms.base import Algorithm
from holdfast.algorithms.facts import documented, facts


class Sees(Algorithm):
    """Sees each example once, and trains as usual."""

    def observe(self, learner, stage, batches):
        """Look."""


class Learns(Algorithm):
    """Trains in its own way."""

    def learn(self, learner, stage, fit):
        """Take steps."""


class Solves(Sees, Learns):
    """Sees each example once, and takes no step."""


@pytest.mark.parametrize(("kind", "steps"), [(Sees, True), (Learns, True), (Solves, False), (None, True)])
def test_only_what_replaces_training_by_looking_takes_no_gradient_step(kind, steps):
    assert ("gradients" in facts(kind)) == steps


def test_a_docstring_without_an_item_says_nothing_about_it(monkeypatch):
    module = SimpleNamespace(__doc__="Words.\n\nCost: one pass")
    monkeypatch.setattr("inspect.getmodule", lambda kind: module)
    assert documented(Sees, "Memory") == ""
    assert documented(Sees, "Cost") == "one pass."
