"""The units that `holdfast list algorithms NAME` states, against the formulas of Mammoth and Avalanche, written out."""

import sys
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from torch.nn import functional

from holdfast import registry
from holdfast.algorithms.base import Algorithm
from holdfast.algorithms.derpp import DarkReplay
from holdfast.algorithms.ewc import EWC
from holdfast.algorithms.importance import copies
from holdfast.algorithms.mas import MAS
from holdfast.algorithms.si import SI
from holdfast.data.order import mix
from holdfast.settings import fields
from holdfast.tasks import Classify
from holdfast.types import Part
from smallest import make_learner, prepared, trained

STRENGTHS = ("strength", "alpha", "beta", "growth", "consolidation")
OF_LOGITS = {("ease", "alpha")}
"""They weight answers, not a term of the loss or gradient."""


@pytest.mark.parametrize("name", sorted(registry.ALGORITHMS))
def test_an_algorithm_with_a_strength_says_its_units(name):
    kind = registry.ALGORITHMS[name].load()
    own = {each for each in fields(kind) if each in STRENGTHS}
    assert set(kind.strengths) == {each for each in own if (name, each) not in OF_LOGITS}, "so that an error names them"
    if own:
        assert "\nUnits: " in (sys.modules[kind.__module__].__doc__ or "")


def moved(learner, ready):
    """A learner at some distance from where it was, with the gradients of the loss on a batch; what an algorithm adds.

    Returns the parameters before the move, and a function that gives the gradient that an algorithm adds.
    """
    before = copies(learner.trainable())
    with torch.no_grad():
        for parameter in learner.parameters.values():
            parameter.add_(0.1 * torch.randn_like(parameter))

    def added(algorithm):
        for parameter in learner.parameters.values():
            parameter.grad = torch.zeros_like(parameter)
        algorithm.grads(learner, learner.fetch(ready.setup.stream.stages[1].train[:8]))
        return {name: p.grad.clone() for name, p in learner.parameters.items()}

    return before, added


def slope(learner, penalty):
    """The gradient of a penalty by autograd."""
    parameters = learner.trainable()
    return dict(zip(parameters, torch.autograd.grad(penalty(parameters), list(parameters.values())), strict=True))


def equal(found, expected):
    assert found.keys() == expected.keys()
    for name, value in found.items():
        torch.testing.assert_close(value, expected[name], rtol=1e-9, atol=1e-13)
    assert any(value.abs().max() > 0 for value in found.values())


def gradients(learner, ids, loss):
    """The gradients of a loss of the model's outputs and the targets, in evaluation mode."""
    (part,) = learner.fetch(ids, augment=False).parts
    learner.model.eval()
    found = torch.autograd.grad(
        loss(learner.model(part.inputs, "patterns"), part.targets), learner.trainable().values()
    )
    return dict(zip(learner.trainable(), found, strict=True))


def by_hand(learner, batches, loss, size):
    """The mean over batches of `size` of the gradients."""
    totals = {name: torch.zeros_like(p) for name, p in learner.trainable().items()}
    for ids in batches:
        for name, gradient in gradients(learner, ids, loss).items():
            totals[name] += size(gradient) / len(batches)
    return totals


@pytest.mark.parametrize(("half", "strength"), [(False, 7.0), (True, 14.0)])
def test_ewc_in_avalanches_units(half, strength):
    """ewc_lambda = 7: the sum of batches' squared gradients over their number, and no half."""
    ready, ewc = prepared(), EWC(strength=strength, half=half, fisher="batched", share=1.0)
    learner, (first, _) = make_learner(ready), ready.setup.stream.stages
    ewc.setup(learner)
    ewc.end(learner, first)
    ids = np.random.default_rng(mix(0, 0xF15, 0)).permutation(first.train)
    importance = by_hand(learner, np.split(ids, [32, 64]), functional.cross_entropy, torch.square)
    learner.restart(first.training, 1)
    before, added = moved(learner, ready)
    equal(
        added(ewc),
        slope(learner, lambda now: 7.0 * sum((importance[n] * (p - before[n]) ** 2).sum() for n, p in now.items())),
    )


def test_ewc_in_mammoths_units_but_for_its_fisher():
    """e_lambda = 7, gamma = 0.5, over two stages; its Fisher weighs each example by the probability of its answer."""
    ready = prepared()
    ewc = EWC(strength=7.0, half=False, past="online", decay=0.5, fisher="empirical", share=1.0)
    learner, stages = make_learner(ready), ready.setup.stream.stages
    ewc.setup(learner)
    likely = lambda output, target: functional.cross_entropy(output, target).mul(-1).exp()  # noqa: E731
    fish, theirs = None, None
    for stage in stages:
        ewc.end(learner, stage)
        ones = np.split(stage.train, len(stage.train))
        new = by_hand(learner, ones, functional.cross_entropy, torch.square)
        fish = new if fish is None else {n: 0.5 * fish[n] + value for n, value in new.items()}
        # Of a gradient of p, which is p times that of log p, the square over p is p times the square of the latter.
        chances = []
        for ids in ones:
            (part,) = learner.fetch(ids, augment=False).parts
            chances.append(likely(learner.model(part.inputs, "patterns"), part.targets).item())
        weighed = {n: torch.zeros_like(value) for n, value in new.items()}
        for ids, chance in zip(ones, chances, strict=True):
            for name, gradient in gradients(learner, ids, functional.cross_entropy).items():
                weighed[name] += chance * gradient**2 / len(ones)
        theirs = weighed if theirs is None else {n: 0.5 * theirs[n] + value for n, value in weighed.items()}
    learner.restart(stages[0].training, 1)
    before, added = moved(learner, ready)
    equal(added(ewc), {n: 7.0 * 2 * fish[n] * (p.detach() - before[n]) for n, p in learner.trainable().items()})
    assert all((theirs[name] <= value).all() for name, value in fish.items()), "theirs holds less"


@dataclass
class Way(Algorithm):
    """Mammoth's small omega: the gradient of the loss alone times the movement against it."""

    omega: dict = field(default_factory=dict)

    def grads(self, learner, batch):
        self.seen = {n: (p.grad.clone(), p.detach().clone()) for n, p in learner.parameters.items()}

    def after(self, learner, batch):
        for name, (gradient, before) in self.seen.items():
            fall = gradient * (before - learner.parameters[name].detach())
            self.omega[name] = self.omega.get(name, 0) + fall


def test_si_in_mammoths_and_avalanches_units():
    """Their c = 3, xi = 0.01; or si_lambda = 6 and eps = 0.01, where no importance is above the 0.001 of Avalanche."""
    ready = prepared(benchmark__stages=1, train__optimiser="sgd", train__learning_rate=0.01)
    start = copies(make_learner(ready).trainable())
    way, si = Way(), SI(strength=3.0, damping=0.01)
    learner, _ = trained(ready, [way, si])
    end = copies(learner.trainable())
    assert all((omega > -1e-15).all() for omega in way.omega.values()), "plain gradient descent: nothing to bound"
    big = {n: omega / ((end[n] - start[n]) ** 2 + 0.01) for n, omega in way.omega.items()}
    penalty = si.penalty
    penalty.anchors = end  # what the next stage's beginning does
    before, added = moved(learner, prepared())
    equal(added(si), {n: 3.0 * 2 * big[n] * (p.detach() - before[n]) for n, p in learner.trainable().items()})
    equal(
        added(si),
        slope(learner, lambda now: 6.0 / 2 * sum((big[n] * (p - before[n]) ** 2).sum() for n, p in now.items())),
    )


def test_mas_in_avalanches_units():
    """Their lambda_reg = 7, with batches of one example; with larger ones its importance is smaller."""
    ready, mas = prepared(), MAS(strength=7.0, share=1.0)
    learner, (first, _) = make_learner(ready), ready.setup.stream.stages
    mas.setup(learner)
    mas.end(learner, first)
    norm = lambda output, target: torch.norm(output, p="fro", dim=1).pow(2).mean()  # noqa: E731
    ones = by_hand(learner, np.split(first.train, len(first.train)), norm, torch.abs)
    batches = by_hand(learner, np.split(first.train, 4), norm, torch.abs)
    assert all((batches[name] <= value + 1e-15).all() for name, value in ones.items())
    learner.restart(first.training, 1)
    before, added = moved(learner, ready)
    equal(
        added(mas),
        slope(learner, lambda now: 7.0 * sum((ones[n] * (p - before[n]) ** 2).sum() for n, p in now.items())),
    )


def test_lwf_in_mammoths_and_avalanches_units():
    """Their alpha = 0.7 at temperature 2: Mammoth's cross-entropy has the gradient of the KL, which is Avalanche's."""
    generator = torch.Generator().manual_seed(3)
    taught, output = (torch.randn(6, 5, dtype=torch.float64, generator=generator) for _ in range(2))
    leaf = output.requires_grad_()

    def smooth(chances):
        powers = chances ** (1 / 2.0)
        return powers / powers.sum(1, keepdim=True)

    old = slice(3)
    mammoth = -(smooth(taught[:, old].softmax(1)) * smooth(leaf[:, old].softmax(1)).log()).sum(1).mean()
    log_p, q = torch.log_softmax(leaf[:, old] / 2.0, 1), torch.softmax(taught[:, old] / 2.0, 1)
    avalanche = functional.kl_div(log_p, q, reduction="batchmean")
    part, task = Part("t", {}, torch.zeros(6)), Classify("t", "h", 5, 0.2)
    ours = 0.7 * task.divergence(taught, leaf, part, 2.0, torch.arange(3)).mean()
    assert ours.item() == pytest.approx(0.7 * avalanche.item(), rel=1e-12)
    (found,) = torch.autograd.grad(ours, leaf)
    for loss in (mammoth, avalanche):
        (expected,) = torch.autograd.grad(0.7 * loss, leaf, retain_graph=True)
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize(("fidelity", "factor"), [("paper", 1 / 4), ("released", 1)])
def test_derpp_in_mammoths_and_avalanches_units(fidelity, factor):
    """Their alpha = 0.5, over four classes."""
    ready = prepared()
    learner, (first, second) = make_learner(ready), ready.setup.stream.stages
    dark = DarkReplay(capacity=40, size=40, alpha=0.5 * factor, beta=0.0, fidelity=fidelity)
    dark.setup(learner)
    batch = learner.fetch(first.train[:40])
    dark.loss(learner, batch, learner.outputs(batch))
    dark.after(learner, batch)
    moved(learner, ready)
    (now,) = learner.outputs(learner.fetch(dark.memory.ids))
    new = learner.fetch(second.train[:40])
    expected = 0.5 * functional.mse_loss(now, dark.logits.rows)
    assert dark.loss(learner, new, learner.outputs(new)).item() == pytest.approx(expected.item(), rel=1e-10)
