"""Freezing: what stays to the last bit, and that it matters not which of two algorithms is named first."""

import pytest
import torch

from holdfast.errors import UserError
from smallest import make_learner, prepared, trained


def moved(name, **settings):
    """The parameters that training changed."""
    ready = prepared(name, train__weight_decay=0.1, **settings)
    before = dict(make_learner(ready).model.named_parameters())
    learner, _ = trained(ready)
    return {key for key, value in learner.model.named_parameters() if not torch.equal(value, before[key])}, learner


def test_only_the_heads_learn():
    found, learner = moved("frozen-encoder")
    assert found == {name for name, _ in learner.model.named_parameters() if name.startswith("heads.")}


@pytest.mark.parametrize("k", [0, 1, 2])
def test_the_lowest_layers_stay(k):
    found, learner = moved("frozen-bottom", **{"frozen-bottom__k": k})
    encoder = learner.model.encoder
    below = {id(p) for module in (*encoder.stem(), *encoder.layers()[:k]) for p in module.parameters()}
    assert found == {name for name, p in learner.model.named_parameters() if id(p) not in below}


def test_more_layers_than_there_are_is_refused():
    with pytest.raises(UserError, match=r"frozen-bottom\.k is 9, but this encoder has 2 layers: give a number from 0"):
        trained(prepared("frozen-bottom", **{"frozen-bottom__k": 9}))


@pytest.mark.parametrize("adds", ["adapters", "lora", "adapter-library"])
@pytest.mark.parametrize("freezes", ["frozen-encoder", "frozen-bottom"])
def test_what_others_add_learns_in_both_orders(adds, freezes):
    runs = [trained(prepared(pair))[0] for pair in (adds, f"{adds}+{freezes}", f"{freezes}+{adds}")]
    alone, *both = (dict(run.model.named_parameters()) for run in runs)
    assert any(".added." in name for name in runs[0].trainable())
    for run, weights in zip(runs[1:], both, strict=True):
        assert run.trainable().keys() == runs[0].trainable().keys()
        for name, value in alone.items():
            assert torch.equal(weights[name], value), name
