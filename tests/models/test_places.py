"""Adapters, low-rank updates and freezing on modules that are not ours, and that they leave no trace."""

import copy
from dataclasses import replace

import pytest
import torch
from torch import nn

from algorithms.test_adapters import answers, first_test
from holdfast.engine.checkpoint import Checkpoints
from holdfast.errors import Stopped, UserError
from holdfast.models.module import of
from holdfast.types import Head, Inputs
from models import foreign
from smallest import StopAt, make_learner, prepared, trained

GREY = Inputs(image=(1, 12, 12))
HEADS = {"one": Head("classify", 3), "two": Head("classify", 3)}
IMAGE = {"image": torch.randint(0, 256, (5, 1, 12, 12), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))}


class Tuples(nn.Module):
    """Layers that give tuples, or maps with the channels last, and take their input by name."""

    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(1, 1)

        def forward(self, x):
            return self.inner(input=x), None

    def __init__(self):
        super().__init__()
        self.stages = nn.ModuleList([self.Inner(), self.Inner()])

    def forward(self, image):
        x = image.movedim(1, -1)
        for stage in self.stages:
            x, _ = stage(x)
        return x.flatten(1)


KINDS = [foreign.Blocks, foreign.Attending, foreign.convolutional, Tuples]


def built(kind):
    torch.manual_seed(0)
    return of(kind).build(GREY, HEADS).double().eval()


def made(block, how):
    return block.adapters(2) if how == "adapters" else block.low_rank(2, 1.0)


def disturb(model):
    draw = torch.Generator().manual_seed(5)
    for name, parameter in model.named_parameters():
        if ".added." in name:
            parameter.data = torch.randn(parameter.shape, generator=draw, dtype=parameter.dtype)


@pytest.mark.parametrize("how", ["adapters", "low_rank"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_added_counts_and_what_is_removed_leaves_no_trace(kind, how):
    if kind is foreign.convolutional and how == "low_rank":
        pytest.skip("it has no linear layers")
    model = built(kind)
    with torch.no_grad():
        plain, before = model(IMAGE, "one"), copy.deepcopy(model.state_dict())
        for name in HEADS:
            model.add(name, [made(block, how) for block in model.encoder.blocks()])
        disturb(model)
        found = {name: model(IMAGE, name) for name in HEADS}
        assert not torch.allclose(found["one"], plain)
        twin = copy.deepcopy(model)
        assert torch.equal(twin(IMAGE, "one"), found["one"])
        for name, parameter in twin.named_parameters():
            if ".added." in name:
                parameter.zero_()
        torch.testing.assert_close(twin(IMAGE, "one"), plain)
        assert torch.equal(model(IMAGE, "one"), found["one"]), "a copy has modules of its own"
        model.remove("two")
        assert torch.equal(model(IMAGE, "one"), found["one"])
        model.remove("one")
        assert torch.equal(model(IMAGE, "one"), plain)
    after = model.state_dict()
    assert list(after) == list(before)
    assert all(torch.equal(value, after[name]) for name, value in before.items())
    assert not any(module._forward_hooks for module in model.modules())


@pytest.mark.parametrize("kind", [foreign.Blocks, foreign.Attending])
def test_a_low_rank_update_is_one_of_the_weights(kind):
    model = built(kind)
    model.add("one", [block.low_rank(2, 0.7) for block in model.encoder.blocks()])
    disturb(model)
    merged = built(kind)
    with torch.no_grad():
        for block, own in zip(model.encoder.blocks(), merged.encoder.blocks(), strict=True):
            for name, update in block.added["one"].items():
                own.linear[name].weight += 0.7 * update.up.weight @ update.down.weight
        torch.testing.assert_close(model(IMAGE, "one"), merged(IMAGE, "one"))
    for block in model.encoder.blocks():
        block.merge("one")
    model.remove("one")
    torch.testing.assert_close(model(IMAGE, "one"), merged(IMAGE, "one"))
    assert len(model.encoder.blocks()[0].low_rank(2)) == 2, "attention's own output layer is never called"


def test_an_adapter_adapts_what_a_layer_gives():
    model = built(foreign.convolutional)
    model.add("one", [block.adapters(2) for block in model.encoder.blocks()])
    disturb(model)
    own = model.encoder.module
    x = IMAGE["image"].double() / 255
    for layer, block in zip(own[:3], model.encoder.blocks(), strict=True):
        adapter, x = block.added["one"]["output"], layer(x)
        narrow = torch.einsum("rchw,nc->rnhw", x, adapter.down.weight) + adapter.down.bias[:, None, None]
        wide = torch.einsum("rnhw,cn->rchw", nn.functional.gelu(narrow), adapter.up.weight)
        x = x + wide + adapter.up.bias[:, None, None]
    torch.testing.assert_close(model(IMAGE, "one"), model.heads["one"].classifier(x.mean((2, 3))))


@pytest.mark.parametrize("name", ["adapters", "lora", "adapter-library"])
@pytest.mark.parametrize("kind", KINDS[:3])
def test_added_sets_learn_and_the_module_does_not(name, kind, tmp_path):
    ready = replace(prepared(name, benchmark__setting="task", train__batch_size=30), recipe=of(kind))
    if name == "lora" and kind is foreign.convolutional:
        with pytest.raises(UserError, match="lora adds to linear layers, and a layer of this model has none: choose"):
            trained(ready)
        return
    start = make_learner(ready).model.state_dict()
    learner, log = trained(ready)
    found = learner.model.state_dict()
    assert all(torch.equal(found[key], value) for key, value in start.items() if key.startswith("encoder."))
    moved = [key for key in found.keys() - start.keys() if ".added." in key and found[key].abs().max() > 0]
    assert moved
    with pytest.raises(Stopped):
        trained(ready, checkpoints=Checkpoints(tmp_path), watch=StopAt(5))
    again, later = trained(ready, checkpoints=Checkpoints(tmp_path))
    assert all(torch.equal(value, again.model.state_dict()[key]) for key, value in found.items())
    assert log.scores[-1] == later.scores[-1]
    if name != "adapter-library":
        ids = first_test(ready)
        assert not torch.equal(answers(learner, ids), answers(make_learner(ready), ids))


@pytest.mark.parametrize("k", [0, 2])
def test_the_stem_and_the_lowest_layers_freeze(k):
    ready = replace(prepared("frozen-bottom", **{"frozen-bottom__k": k}), recipe=of(foreign.Blocks))
    start = make_learner(ready).model.state_dict()
    found = trained(ready)[0].model.state_dict()
    still = {key.split(".", 2)[2] for key in start if torch.equal(found[key], start[key])}
    frozen = {"token", "patches.weight", "patches.bias"}
    frozen |= {
        f"layers.{n}.{part}.{leaf}" for n in range(k) for part in ("narrow", "wide") for leaf in ("weight", "bias")
    }
    assert still == frozen


def test_a_module_without_layers_is_refused_where_they_are_needed():
    class Bare(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(144, 4))

        def forward(self, x):
            return x.flatten(1) @ self.weight

    for name, message in {
        "adapters": "with a method layers",
        "frozen-bottom": "frozen-bottom.k is 1, but this encoder has 0 layers",
    }.items():
        with pytest.raises(UserError, match=message):
            trained(replace(prepared(name), recipe=of(Bare)))
