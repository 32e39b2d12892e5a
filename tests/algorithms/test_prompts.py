"""Prompts: which ones an example gets, and the terms of the loss, one example and one prompt at a time."""

import copy

import pytest
import torch
from torch.testing import assert_close

from holdfast.errors import UserError
from smallest import make_learner, prepared, trained


def an_example(learner, ready, row):
    (part,) = learner.fetch(ready.setup.stream.stages[0].train[row : row + 1]).parts
    return part


def length_one(x):
    return x / x.pow(2).sum().sqrt()


L2P = {"l2p__pool": 6, "l2p__top": 3, "l2p__length": 2, "l2p__layers": 1}


def nearest(learner, inputs, top):
    """The cosines to all keys, sorted by hand."""
    q = length_one(learner.model.bare(inputs)[0].detach())
    cosines = [(q @ length_one(key)).item() for key in learner.model.prompt_keys.detach()]
    return sorted(((cosine, number) for number, cosine in enumerate(cosines)), reverse=True)[:top]


def test_l2p_gives_each_example_the_prompts_of_its_nearest_keys():
    ready = prepared("l2p", **L2P)
    learner, _ = trained(ready)
    learner.model.eval()
    with torch.no_grad():  # keys that tell the examples apart
        own = torch.cat([learner.model.bare(an_example(learner, ready, row).inputs) for row in range(12)])
        learner.model.prompt_keys.copy_((own - own.mean(0))[:6])
    first, second = learner.model.encoder.blocks()
    assert len(second.added["prompts"]) == 0
    chosen = set()
    for row in range(12):
        part = an_example(learner, ready, row)
        output = learner.model(part.inputs, "patterns")
        numbers = [number for _, number in nearest(learner, part.inputs, 3)]
        chosen.add(tuple(sorted(numbers)))
        with torch.no_grad():
            alone = copy.deepcopy(learner.model)
            alone.choose = None
            for name in ("key", "value"):
                pool = getattr(first.added["prompts"]["prefix"], name)
                setattr(alone.encoder.blocks()[0].added["prompts"]["prefix"], name, torch.nn.Parameter(pool[numbers]))
            assert_close(alone(part.inputs, "patterns"), output)
    assert len(chosen) > 1, "examples differ in their prompts, or this test says nothing"


def test_l2ps_loss_is_the_distance_to_the_keys_of_each_examples_prompts():
    ready = prepared("l2p", l2p__strength=0.7, **L2P)
    learner = make_learner(ready)
    (algorithm,) = ready.algorithms
    algorithm.setup(learner)
    learner.train_mode()
    batch = learner.fetch(ready.setup.stream.stages[0].train[:5])
    found = algorithm.loss(learner, batch, learner.forward(batch))
    near = [nearest(learner, an_example(learner, ready, row).inputs, 3) for row in range(5)]
    expected = sum(1 - cosine for own in near for cosine, _ in own)
    assert found.item() == pytest.approx(0.7 * expected / 5)
    found.backward()
    assert learner.model.prompt_keys.grad.abs().sum() > 0


def test_only_prompts_keys_and_heads_learn():
    learner, _ = trained(prepared("l2p", **L2P))
    rest = {name for name in learner.trainable() if not name.startswith(("heads.", "encoder.block.0.added."))}
    assert rest == {"prompt_keys"}


@pytest.mark.parametrize("name", ["l2p"])
def test_a_copy_of_the_model_chooses_by_its_own_keys(name):
    """A teacher, say, while the model itself goes on learning."""
    ready = prepared(name)
    learner, _ = trained(ready)
    learner.model.eval()
    part = an_example(learner, ready, 0)
    taught, teacher = learner.model(part.inputs, "patterns"), copy.deepcopy(learner.model)
    with torch.no_grad():
        for own, parameter in learner.model.named_parameters():
            if own.startswith("prompt_"):
                parameter.copy_(torch.randn_like(parameter))
    assert not torch.equal(learner.model(part.inputs, "patterns"), taught)
    assert torch.equal(teacher(part.inputs, "patterns"), taught)


def test_more_prompts_than_the_pool_has_are_refused():
    with pytest.raises(UserError, match=r"l2p\.top is 3, but the pool has 2"):
        trained(prepared("l2p", l2p__pool=2, l2p__top=3))
