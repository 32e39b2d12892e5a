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


@pytest.mark.parametrize("name", ["l2p", "coda-prompt"])
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
    trained(prepared("l2p", l2p__pool=2, l2p__top=2))


CODA = {"coda-prompt__pool": 6, "coda-prompt__length": 2, "coda-prompt__layers": 1}


def test_codas_prompt_is_the_weighted_sum_of_the_components_so_far():
    """Those of two of three stages: the rest has no weight."""
    ready = prepared("coda-prompt", benchmark__stages=3, **CODA)
    learner, _ = trained(ready)
    (algorithm,) = ready.algorithms
    algorithm.load_state_dict(learner, {"begun": 2})
    learner.model.eval()
    keys, attention = learner.model.prompt_keys.detach()[0], learner.model.prompt_attention.detach()[0]
    seen = set()
    for row in range(4):
        part = an_example(learner, ready, row)
        output = learner.model(part.inputs, "patterns")
        q = learner.model.bare(part.inputs)[0].detach()
        weights = [length_one(q * attention[m]) @ length_one(keys[m]) for m in range(4)]
        seen |= {round(weight.item(), 6) for weight in weights}
        with torch.no_grad():
            alone = copy.deepcopy(learner.model)
            alone.choose = None
            own = alone.encoder.blocks()[0].added["prompts"]["prefix"]
            own.fixed = 0
            for name in ("key", "value"):
                mixed = sum(weight * pool for weight, pool in zip(weights, getattr(own, name), strict=False))
                setattr(own, name, torch.nn.Parameter(mixed[None]))
            assert_close(alone(part.inputs, "patterns"), output)
    assert len(seen) > 8


def test_codas_loss_is_the_distance_from_orthogonal_components():
    ready = prepared("coda-prompt", **CODA, **{"coda-prompt__strength": 0.3})
    learner, _ = trained(ready)
    (algorithm,) = ready.algorithms
    batch = learner.fetch(ready.setup.stream.stages[0].train[:3])
    prefix = learner.model.encoder.blocks()[0].added["prompts"]["prefix"]
    prompts = [torch.cat([prefix.key[m].flatten(), prefix.value[m].flatten()]) for m in range(6)]
    expected = 0.0
    for rows in (learner.model.prompt_keys[0], learner.model.prompt_attention[0], prompts):
        for i, one in enumerate(rows):
            for j, other in enumerate(rows):
                if i < 3 and j < 3:  # of the first stage: constant
                    continue
                expected += ((one @ other).item() - (i == j)) ** 2
    assert expected > 1e-4, "they moved away from orthogonal ones"
    assert algorithm.loss(learner, batch, ()).item() == pytest.approx(0.3 * expected)


def test_each_stage_of_coda_moves_its_own_components_alone():
    ready = prepared("coda-prompt", **CODA)
    learner = make_learner(ready)
    (algorithm,) = ready.algorithms
    algorithm.check(ready.setup.stream)
    algorithm.setup(learner)
    learner.train_mode()
    for stage, own in zip(ready.setup.stream.stages, (slice(0, 3), slice(3, 6)), strict=True):
        algorithm.begin(learner, stage)
        learner.gradients(stage.train[:8], [algorithm])
        for name, parameter in learner.model.named_parameters():
            if name.startswith("prompt_") or ".added." in name:
                slope = parameter.grad[0] if name.startswith("prompt_") else parameter.grad
                moved = slope.flatten(1).abs().sum(1) > 0
                assert moved[own].all()
                assert moved.sum() == 3
        learner.restart(stage.training, 1)


@pytest.mark.parametrize(
    ("settings", "why"),
    [({"coda-prompt__pool": 1}, r"set coda-prompt\.pool=2 or more"), ({"train__weight_decay": 0.1}, "would decay")],
)
def test_coda_refuses_stages_without_components_and_decay(settings, why):
    with pytest.raises(UserError, match=why):
        trained(prepared("coda-prompt", **settings))
