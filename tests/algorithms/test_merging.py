"""Merging against arithmetic on the weights that each stage ended with, one number at a time."""

from dataclasses import dataclass, field

import pytest
import torch

from holdfast.algorithms import MagMax, Ties
from holdfast.algorithms.base import Algorithm
from holdfast.errors import UserError
from smallest import prepared, trained


@dataclass
class Saved(Algorithm):
    """Saves the weights at the beginning and at the end of each stage."""

    begun: list = field(default_factory=list)
    ended: list = field(default_factory=list)

    def begin(self, learner, stage):
        self.begun.append(weights(learner))

    def end(self, learner, stage):
        self.ended.append(weights(learner))


def weights(learner, within=""):
    return {name: p.detach().clone() for name, p in learner.model.named_parameters() if name.startswith(within)}


def run(algorithm, stages=3):
    """The learner at the end, and the weights at the beginning and end of each stage, without merging."""
    before, after = Saved(), Saved()
    learner, _ = trained(prepared(benchmark__stages=stages, train__epochs=3), [before, algorithm, after])
    return learner, after.begun, before.ended


def numbers(tensors):
    return torch.cat([tensor.flatten() for tensor in tensors.values()]).tolist()


@pytest.mark.parametrize(("density", "scale"), [(0.2, 1.0), (0.6, 0.7)])
def test_ties_trims_elects_signs_and_averages(density, scale):
    learner, begun, ended = run(Ties(density=density, scale=scale))
    start = numbers(begun[0])
    changes = [[b - a for a, b in zip(start, numbers(end), strict=True)] for end in ended]
    count = round(density * len(start))
    trimmed = []
    for change in changes:
        chosen = set(sorted(range(len(change)), key=lambda place: -abs(change[place]))[:count])
        trimmed.append([value if place in chosen else 0.0 for place, value in enumerate(change)])
    several = opposed = 0
    for first, now, *values in zip(start, numbers(weights(learner)), *trimmed, strict=True):
        total = sum(values)
        agree = [value for value in values if value * total > 0]
        several += len(agree) > 1
        opposed += 0 < len(agree) < sum(value != 0 for value in values)
        assert now == pytest.approx(first + scale * (sum(agree) / len(agree) if agree else 0.0), abs=1e-12)
    assert several > 10
    assert opposed > 10


@pytest.mark.parametrize(("density", "kept"), [(0.1, [0, 0, 0]), (0.3, [0, -3, 0]), (0.7, [0, -3, 2])])
def test_ties_may_keep_one_weight_or_none(density, kept):
    assert Ties(density=density)._trimmed(torch.tensor([1.0, -3.0, 2.0])).tolist() == kept


def test_magmax_takes_the_largest_change():
    learner, begun, ended = run(MagMax(scale=0.8))
    winners = set()
    for first, now, *ends in zip(numbers(begun[0]), numbers(weights(learner)), *map(numbers, ended), strict=True):
        changes = [end - first for end in ends]
        winners.add(max(range(3), key=lambda stage: abs(changes[stage])))
        assert now == pytest.approx(first + 0.8 * max(changes, key=abs), abs=1e-12)
    assert winners == {0, 1, 2}


@pytest.mark.parametrize(("algorithm", "which"), [(Ties(), "first"), (MagMax(), "last")])
def test_a_stage_starts_from_the_first_weights_or_goes_on(algorithm, which):
    _, begun, ended = run(algorithm)
    for stage in (1, 2):
        expected = begun[0] if which == "first" else ended[stage - 1]
        assert all(torch.equal(value, expected[name]) for name, value in begun[stage].items())
        assert not all(torch.equal(value, ended[stage][name]) for name, value in begun[stage].items())


def test_one_stage_is_fine_tuning():
    learner, _, (end,) = run(MagMax(), stages=1)
    for name, value in weights(learner).items():
        torch.testing.assert_close(value, end[name], rtol=0, atol=1e-12)


def test_heads_can_go_on_learning():
    learner, begun, ended = run(Ties(where="encoder"))
    assert all(torch.equal(value, ended[-1][name]) for name, value in weights(learner, "heads.").items())
    assert not any(torch.equal(value, ended[-1][name]) for name, value in weights(learner, "encoder.").items())
    assert all(torch.equal(value, ended[0][name]) for name, value in begun[1].items() if name.startswith("heads."))


@pytest.mark.parametrize(
    ("names", "why"),
    [
        ("ties+magmax", "sets the weights between stages"),
        ("ties+adapter-library", "keeps an encoder, or parts of one, for each stage"),
        ("magmax+mntdp", "this model differs from stage to stage"),
    ],
)
def test_what_cannot_be_merged_is_refused(names, why):
    with pytest.raises(UserError, match=why):
        trained(prepared(names))
