"""Classifiers that are solved for: against closed forms over all data at once, in any order, stages and ranks."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from holdfast.algorithms import RanPAC, SimpleCil
from holdfast.algorithms.exemplars import Exemplars, features_of, herded
from holdfast.errors import UserError
from holdfast.experiments.request import Request
from smallest import make_learner, prepare, prepared, trained

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


@pytest.mark.parametrize("seed", range(5))
def test_herding_is_brute_force(seed):
    """Each next exemplar, found by trying all."""
    x = torch.from_numpy(np.random.default_rng(seed).normal(size=(12, 3)))
    chosen: list[int] = []
    for _ in range(8):
        rest = [row for row in range(len(x)) if row not in chosen]
        chosen.append(min(rest, key=lambda row: (x.mean(0) - x[[*chosen, row]].mean(0)).norm().item()))
    assert herded(x, 8) == chosen


def test_exemplars_share_the_capacity_and_keep_the_best_first():
    ready = prepared("icarl")
    learner = make_learner(ready)
    exemplars = Exemplars(learner, 10, "icarl")
    first, second = ready.setup.stream.stages
    exemplars.update(learner, first.train)
    before = dict(exemplars.by_class)
    exemplars.update(learner, second.train)
    room = 10 // len(exemplars.by_class)
    assert {len(kept) for kept in exemplars.by_class.values()} == {room}
    for each, kept in before.items():
        assert kept[:room].tolist() == exemplars.by_class[each].tolist()
    for kept in exemplars.by_class.values():
        targets = learner.data.targets(kept)
        assert len(set(targets.tolist())) == 1
    lengths = features_of(learner, exemplars.ids).norm(dim=1)
    assert_close(lengths, torch.ones_like(lengths))


def test_icarls_loss_is_the_papers():
    """The task's loss and what the algorithm adds, together: binary cross-entropies, by hand."""
    ready = prepared("icarl", benchmark__stages=2)
    _, second = ready.setup.stream.stages
    learner, _ = trained(ready, [algorithm := ready.algorithms[0]])
    seen = algorithm.teacher.seen["patterns"]
    algorithm.teacher.seen["patterns"] = seen[: len(seen) // 2]
    batch = learner.fetch(second.train[:6])
    (part,), outputs = batch.parts, learner.forward(batch)
    total = learner.loss(batch, outputs) + algorithm.loss(learner, batch, outputs)
    taught = algorithm.teacher.outputs(learner.tasks[part.task], part).sigmoid()
    expected = 0.0
    for row, target in enumerate(part.targets.tolist()):
        for each in range(outputs[0].shape[1]):
            q = taught[row, each] if each in seen[: len(seen) // 2] else float(each == target)
            g = outputs[0][row, each].sigmoid()
            expected -= q * g.log() + (1 - q) * (1 - g).log()
    assert_close(total, expected / 6)


def test_icarl_answers_by_the_nearest_mean_of_exemplars():
    ready = prepared("icarl")
    learner, log = trained(ready, [algorithm := ready.algorithms[0]])
    means = {}
    for kept in algorithm.exemplars.by_class.values():
        x = features_of(learner, kept).mean(0)
        means[int(learner.data.targets(kept[:1])[0])] = x / x.norm()
    for evaluation in ready.setup.protocol.evaluations:
        x = features_of(learner, evaluation.ids)
        near = [min(means, key=lambda each: (means[each] - row).norm().item()) for row in x]
        right = np.mean(np.array(near) == learner.data.targets(evaluation.ids).numpy())
        last = next(s.score for s in reversed(log.scores) if (s.name, s.split) == (evaluation.name, evaluation.split))
        assert last == pytest.approx(right)


def test_wa_aligns_the_lengths_of_the_new_weights():
    ready = prepared("wa")
    learner = make_learner(ready)
    algorithm = ready.algorithms[0]
    algorithm.setup(learner)
    first, second = ready.setup.stream.stages
    layer = solved(learner)
    for stage in (first, second):
        algorithm.stage(learner, stage)
        before = layer.weight.detach().clone()
        old = sorted(algorithm.teacher.seen.get("patterns", torch.empty(0)).tolist())
        algorithm.end(learner, stage)
    new = sorted(set(learner.data.targets(second.train).tolist()) - set(old))
    ratio = before[old].norm(dim=1).mean() / before[new].norm(dim=1).mean()
    assert_close(layer.weight[new], before[new] * ratio)
    assert_close(layer.weight[old], before[old], rtol=0, atol=0)
    assert_close(layer.weight[new].norm(dim=1).mean(), layer.weight[old].norm(dim=1).mean())


def test_was_loss_weighs_distillation_by_the_share_of_old_classes():
    ready = prepared("wa")
    learner, _ = trained(ready, [algorithm := ready.algorithms[0]])
    first, second = ready.setup.stream.stages
    old = learner.data.targets(first.train).unique()
    algorithm.teacher.seen["patterns"] = old
    algorithm.stage(learner, second)
    batch = learner.fetch(second.train[:6])
    (part,), outputs = batch.parts, learner.forward(batch)
    total = learner.loss(batch, outputs) + algorithm.loss(learner, batch, outputs)
    taught = algorithm.teacher.outputs(learner.tasks[part.task], part)
    p, q = (taught[:, old] / 2).softmax(1), (outputs[0][:, old] / 2).log_softmax(1)
    new = learner.data.targets(second.train).unique()
    share = len(old) / len(set(old.tolist()) | set(new.tolist()))
    cross_entropy = -outputs[0].log_softmax(1)[torch.arange(6), part.targets]
    expected = (1 - share) * cross_entropy + share * (p * (p.log() - q)).sum(1)
    assert_close(total, expected.mean())


@pytest.mark.parametrize("name", ["simplecil", "ranpac"])
def test_tasks_without_classes_are_refused(name):
    ready = prepare(Request("viscoll:coco", name, scale="tiny", settings={"train.epochs": 1}))
    with pytest.raises(UserError, match="needs one class for each example"):
        trained(ready)
