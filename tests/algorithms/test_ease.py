"""EASE: the means in every subspace, those that are completed, and its answers, one class and one number at a time."""

import math

import numpy as np
import pytest
import torch

from holdfast.algorithms.ease import Ease, completed
from holdfast.errors import UserError
from holdfast.experiments.request import Request
from smallest import make_learner, prepare, prepared, trained

STAGES = {"benchmark__stages": 3, "ease__reduction": 4}


def cosine(one, other):
    return float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))


def features(learner, ids, number):
    """With the adapters of one stage."""
    (part,) = learner.fetch(ids).parts
    learner.model.eval()
    for block in learner.model.encoder.blocks():
        block.active = f"ease-{number}"
    with torch.no_grad():
        return learner.model.encoder(part.inputs).numpy(), part.targets.numpy()


def by_hand(learner, ready):
    """The stage of each class, and its means in all subspaces: measured up to its own stage, then completed."""
    stages, of, means = ready.setup.stream.stages, {}, {}
    for b, stage in enumerate(stages):
        for k in range(len(stages)):
            x, y = features(learner, stage.train, k)
            for c in np.unique(y).tolist():
                of[c] = b
                if k <= b:
                    means[c, k] = x[y == c].mean(0)
    measured = dict(means)
    for k in range(len(stages)):
        for c, b in of.items():
            if b < k:
                later = [j for j in of if of[j] >= k]
                near = [math.exp(cosine(measured[c, b], measured[j, b])) for j in later]
                means[c, k] = sum(s / sum(near) * measured[j, k] for s, j in zip(near, later, strict=True))
    return of, means


@pytest.mark.parametrize("alpha", [0.1, 0.7])
def test_answers_are_weighted_cosines_in_every_subspace(alpha):
    ready = prepared("ease", **STAGES, ease__alpha=alpha)
    (algorithm,) = ready.algorithms
    learner, _ = trained(ready, [algorithm])
    of, means = by_hand(learner, ready)
    learner.model.eval()
    for evaluation in ready.setup.protocol.evaluations[:2]:
        ids = evaluation.ids[:10]
        seen = [features(learner, ids, k)[0] for k in range(3)]
        (part,) = learner.fetch(ids).parts
        with torch.no_grad():
            (found,) = learner.forward(learner.fetch(ids))
        for row in range(len(ids)):
            for c, b in of.items():
                cosines = [cosine(seen[k][row], means[c, k]) for k in range(3)]
                expected = cosines[b] + alpha * sum(cosines[k] for k in range(3) if k != b) / 2
                assert found[row, c].item() == pytest.approx(expected, abs=1e-9)
        assert len(part.targets) == len(ids)


def test_means_are_completed_by_hand():
    draw = np.random.default_rng(3)
    of = torch.tensor([0, 2, -1, 1, 0, 2, 1])
    means = torch.from_numpy(draw.normal(size=(3, 7, 4)))
    found = completed(means, of)
    for k in range(3):
        for c in range(7):
            later = [j for j in range(7) if of[j] >= k]
            if of[c] >= k or of[c] < 0:
                assert torch.equal(found[k, c], means[k, c])
                continue
            own = means[of[c]].numpy()
            near = np.exp([cosine(own[c], own[j]) for j in later])
            expected = sum(s * means[k, j].numpy() for s, j in zip(near / near.sum(), later, strict=True))
            assert found[k, c].numpy() == pytest.approx(expected)


def test_classes_of_later_stages_never_win():
    ready = prepared("ease", **STAGES)
    (algorithm,) = ready.algorithms
    learner = make_learner(ready)
    algorithm.setup(learner)
    first, second, _ = ready.setup.stream.stages
    algorithm.begin(learner, first)
    algorithm.observe(learner, first, iter([learner.fetch(first.train)]))
    learner.model.eval()
    (part,), (own,) = learner.fetch(second.train).parts, learner.fetch(first.train).parts
    logits = algorithm.route(learner, part.inputs, "patterns", learner.model)
    assert set(logits.argmax(1).tolist()) <= set(own.targets.tolist())


def test_only_the_new_adapters_and_the_head_learn():
    learner, _ = trained(prepared("ease", **STAGES))
    learning = {name.split(".")[4] for name in learner.trainable() if ".added." in name}
    assert learning == {"ease-2"}
    assert all(name.startswith("heads.") for name in learner.trainable() if ".added." not in name)


def test_tasks_without_classes_are_refused():
    ready = prepare(Request("viscoll:coco", scale="tiny", settings={"train.epochs": 1}))
    with pytest.raises(UserError, match="needs one class for each example"):
        Ease().setup(make_learner(ready))
