"""Classifiers that are solved for: against closed forms over all data at once, in any order, stages and ranks."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from holdfast.algorithms import RanPAC, SimpleCil
from holdfast.algorithms.analytic import Sums
from holdfast.algorithms.ranpac import RIDGES
from holdfast.engine.loop import train
from holdfast.errors import UserError
from holdfast.experiments.request import Request
from holdfast.types import Protocol
from smallest import Scores, make_learner, prepare, prepared, trained

CASES = {
    "simplecil": {},
    "slda": {"slda__shrinkage": 0.01},
    "ranpac": {"ranpac__dimensions": 30, "ranpac__ridge": 0.1},
}


def everything(learner, ready):
    """All training examples: what the encoder gives for them, and their classes."""
    ids = np.concatenate([stage.train for stage in ready.setup.stream.stages])
    (part,) = learner.fetch(ids).parts
    learner.model.eval()
    with torch.no_grad():
        return learner.model.features(part.inputs).double(), part.targets


def solved(learner):
    (head,) = learner.model.heads.values()
    return head.classifier


def test_simplecil_has_the_direction_of_each_mean():
    ready = prepared("simplecil")
    learner, _ = trained(ready)
    x, y = everything(learner, ready)
    for each in range(int(y.max()) + 1):
        mean = x[y == each].mean(0)
        assert_close(solved(learner).weight[each], mean / mean.norm(), rtol=0, atol=1e-12)


def test_slda_is_the_discriminant_analysis_of_all_data():
    ready = prepared("slda", **CASES["slda"])
    learner, _ = trained(ready)
    x, y = everything(learner, ready)
    classes = int(y.max()) + 1
    means = torch.stack([x[y == each].mean(0) for each in range(classes)])
    centred = x - means[y]
    precision = torch.linalg.inv(
        0.99 * centred.T @ centred / len(x) + 0.01 * torch.eye(x.shape[1], dtype=torch.float64)
    )
    expected = x @ precision @ means.T - 0.5 * torch.einsum("cd,de,ce->c", means, precision, means)
    with torch.no_grad():
        assert_close(solved(learner)(x)[:, :classes], expected, rtol=1e-8, atol=1e-8)


def test_ranpac_is_the_ridge_regression_on_all_data():
    """Solved for as least squares with a row of sqrt(ridge) for each dimension."""
    ready = prepared("ranpac", **CASES["ranpac"])
    learner, _ = trained(ready)
    x, y = everything(learner, ready)
    h = (x @ solved(learner).lift.weight.T).relu()
    rows = torch.cat([h, 0.1**0.5 * torch.eye(30, dtype=torch.float64)])
    wanted = torch.cat([torch.nn.functional.one_hot(y).double(), torch.zeros(30, int(y.max()) + 1)])
    expected = torch.linalg.lstsq(rows, wanted, driver="gelsd").solution
    assert_close(solved(learner).weight[: expected.shape[1]].T, expected, rtol=0, atol=1e-8)


def test_ranpac_chooses_the_ridge_with_the_least_held_out_error():
    ready = prepared("ranpac", ranpac__dimensions=30, benchmark__stages=1)
    learner, _ = trained(ready, [chosen := RanPAC(dimensions=30)])
    (stage,) = ready.setup.stream.stages
    x, y = everything(learner, ready)
    h, y = (x @ solved(learner).lift.weight.T).relu(), torch.nn.functional.one_hot(y).double()
    apart = torch.from_numpy(stage.train * 2654435761 % 2**32 % 5 == 0)
    assert 5 < apart.sum() < 30
    errors = {}
    for power in range(-8, 9):
        fit, kept = h[~apart], torch.eye(30, dtype=torch.float64) * 10.0**power
        weight = torch.linalg.lstsq(fit.T @ fit + kept, fit.T @ y[~apart], driver="gelsd").solution
        errors[10.0**power] = (h[apart] @ weight - y[apart]).square().sum().item()
    assert chosen.chosen == min(errors, key=errors.get)
    assert list(errors) == RIDGES


def test_ranpac_does_not_amplify_rounding():
    """With few examples G is singular, and the smallest ridge is far below what rounding adds to it."""
    x, y = torch.randn(20, 48, dtype=torch.float64).relu(), torch.nn.functional.one_hot(torch.arange(20) % 4).double()
    found = []
    for order in (torch.arange(20), torch.arange(19, -1, -1)):
        sums = Sums.zeros(4, 48, True, torch.device("cpu"))
        sums.add(x[order], y[order])
        algorithm = RanPAC()
        algorithm.chosen = 1e-8
        found.append(algorithm.solve(sums)[0])
    assert_close(found[0], found[1], rtol=0, atol=1e-10)
    assert_close(x @ found[0].T, y, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_each_example_passes_through_the_encoder_once(name, monkeypatch):
    """Choosing the ridge takes no passes of its own."""
    monkeypatch.setenv("HOLDFAST_FROZEN_GB", "0")  # nor does any other pass try what can be kept
    ready = prepared(name, **CASES[name] | ({"ranpac__ridge": None} if name == "ranpac" else {}))
    learner, rows = make_learner(ready), []
    learner.model.encoder.register_forward_pre_hook(lambda _, given: rows.append(len(given[0]["image"])))
    train(learner, ready.setup.stream, ready.algorithms, Protocol(()), log=Scores())
    assert sum(rows) == sum(len(stage.train) for stage in ready.setup.stream.stages)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    ("before", "other"), [("joint+", {}), ("", {"train__batch_size": 7}), ("", {"benchmark__order": "reverse"})]
)
def test_order_stages_and_batches_do_not_matter(name, before, other):
    """All data in one stage, in other batches, or with the stages in reverse: the same classifier."""
    learner, _ = trained(prepared(name, **CASES[name]))
    again, _ = trained(prepared(f"{before}{name}", **CASES[name], **other))
    assert_close(solved(again).weight, solved(learner).weight, rtol=0, atol=1e-8)


def test_nothing_is_trained_and_unseen_classes_never_win():
    ready = prepared("simplecil")
    learner, _ = trained(ready)
    assert (learner.examples_backward, list(learner.trainable())) == (0, [])
    first, second = ready.setup.stream.stages
    half = make_learner(ready)
    algorithm = SimpleCil()
    algorithm.setup(half)
    algorithm.observe(half, first, iter([half.fetch(first.train)]))
    half.model.eval()
    (part,) = half.fetch(second.train).parts
    assert half.model(part.inputs, "patterns").argmax(1).max() < part.targets.min()


@pytest.mark.parametrize("name", ["simplecil", "ranpac"])
def test_tasks_without_classes_are_refused(name):
    ready = prepare(Request("viscoll:coco", name, scale="tiny", settings={"train.epochs": 1}))
    with pytest.raises(UserError, match="needs one class for each example"):
        trained(ready)
