"""Exemplars and what is built on them: herding by brute force, the losses and answers of iCaRL and WA by hand."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from holdfast.algorithms.exemplars import Exemplars, features_of, herded
from smallest import make_learner, prepared, trained


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
    layer = learner.model.heads["patterns"].classifier
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
    ready = prepared("wa", wa__temperature=3.0)
    learner, _ = trained(ready, [algorithm := ready.algorithms[0]])
    first, second = ready.setup.stream.stages
    old = learner.data.targets(first.train).unique()
    algorithm.teacher.seen["patterns"] = old
    algorithm.stage(learner, second)
    batch = learner.fetch(second.train[:6])
    (part,), outputs = batch.parts, learner.forward(batch)
    total = learner.loss(batch, outputs) + algorithm.loss(learner, batch, outputs)
    taught = algorithm.teacher.outputs(learner.tasks[part.task], part)
    p, q = (taught[:, old] / 3).softmax(1), (outputs[0][:, old] / 3).log_softmax(1)
    new = learner.data.targets(second.train).unique()
    share = len(old) / len(set(old.tolist()) | set(new.tolist()))
    cross_entropy = -outputs[0].log_softmax(1)[torch.arange(6), part.targets]
    expected = (1 - share) * cross_entropy + share * (p * (p.log() - q)).sum(1)
    assert_close(total, expected.mean())
