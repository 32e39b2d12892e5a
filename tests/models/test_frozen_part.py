"""What is recorded of a frozen encoder stands in for computing it, or is refused."""

import copy

import pytest
import torch
from torch import nn

from holdfast import registry
from holdfast.models.frozen_part import PROBE, FrozenPart, Lent, UnsuitableError, candidates, find
from holdfast.models.module import of
from holdfast.types import Head, Inputs

IMAGES = Inputs((3, 32, 32))
BOTH = Inputs((3, 32, 32), text=6, vocabulary=30)
MODELS = {
    "perceptron": IMAGES,
    "vit-tiny": IMAGES,
    "resnet18-tiny": IMAGES,
    "vilt-tiny": BOTH,
    "bert-tiny": Inputs(text=6, vocabulary=30),
}


def batch(inputs, rows=PROBE):
    draw = torch.Generator().manual_seed(rows)
    found = {}
    if inputs.image:
        found["image"] = torch.randint(256, (rows, *inputs.image), generator=draw, dtype=torch.uint8)
    if inputs.text:
        found["text"] = torch.randint(1, inputs.vocabulary, (rows, inputs.text), generator=draw, dtype=torch.int32)
        found["text_length"] = torch.randint(2, inputs.text, (rows,), generator=draw)
    return found


def built(name, inputs):
    torch.manual_seed(0)
    recipe = registry.MODELS[name].load()() if isinstance(name, str) else of(name)
    if hasattr(recipe, "weights"):
        recipe = type(recipe)(weights="")
    return recipe.build(inputs, {"a": Head("classify", 4)}).double()


def found(model, inputs, frozen=()):
    def training():
        model.train()
        for module in frozen:
            module.eval()

    return find(model.encoder, lambda given: model.plain(given, "a"), batch(inputs), [training, model.eval])


def check(model, part, inputs):
    """Values recorded in blocks of five give the outputs and gradients of plain passes over other batches."""
    whole, picked = batch(inputs, 10), [7, 0, 3]
    with torch.no_grad():
        pieces = [{name: column[start : start + 5] for name, column in whole.items()} for start in (0, 5)]
        columns = [part.columns(lambda p=piece: model.plain(p, "a"), 5) for piece in pieces]
    rows = [torch.cat(both)[picked] for both in zip(*columns, strict=True)]
    few = {name: column[picked] for name, column in whole.items()}
    results = []
    for given in (few, Lent(part, rows, lambda: few)):
        model.zero_grad()
        output = model.plain(given, "a")
        output.square().sum().backward()
        results.append([output, *(p.grad for p in model.parameters() if p.requires_grad)])
    for plain, lent in zip(*results, strict=True):
        torch.testing.assert_close(lent, plain, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", MODELS)
def test_a_frozen_encoder_is_recorded_whole(name):
    model = built(name, MODELS[name])
    model.encoder.requires_grad_(False)
    part = found(model, MODELS[name], [model.encoder])
    assert part.whole
    model.eval()
    check(model, part, MODELS[name])
    few = batch(MODELS[name], 3)
    model.plain(Lent(part, [torch.zeros(3, *part.layouts[0].row).double()], lambda: pytest.fail("was read")), "a")
    model.plain(few, "a")


@pytest.mark.parametrize("name", ["vit-tiny", "resnet18-tiny", "vilt-tiny", "bert-tiny"])
def test_the_lowest_layers_are_recorded_as_far_as_they_are_frozen(name):
    model = built(name, MODELS[name])
    frozen = [*model.encoder.stem(), *model.encoder.layers()[:2]]
    for module in frozen:
        module.requires_grad_(False)
    part = found(model, MODELS[name], frozen)
    assert part.sites == (model.encoder.layers()[1],)
    model.eval()
    check(model, part, MODELS[name])


class Foreign(nn.Module):
    """A stem and three layers; `mode` says what is special about it."""

    def __init__(self, mode="plain"):
        super().__init__()
        self.stem, self.layers, self.mode = nn.Linear(48, 8), nn.ModuleList(nn.Linear(8, 8) for _ in range(3)), mode
        self.drop = nn.Dropout(0.5)

    def forward(self, image):
        x = first = self.stem(image.flatten(1))
        for layer in self.layers:
            x = layer(x).tanh()
            if self.mode == "dropout":
                x = self.drop(x)
        if self.mode == "rows":
            x = x + x.mean(0)
        return x + first if self.mode == "skip" else x


FOREIGN = Inputs((3, 4, 4))


@pytest.mark.parametrize(("mode", "recorded"), [("plain", 2), ("skip", 0), ("dropout", 1)])
def test_layers_of_an_external_module(mode, recorded):
    model = built(lambda: Foreign(mode), FOREIGN)
    for module in [*model.encoder.stem(), *model.encoder.layers()[:2]]:
        module.requires_grad_(False)
    if not recorded:
        with pytest.raises(UnsuitableError, match="their outputs for an example vary"):
            found(model, FOREIGN)
        return
    part = found(model, FOREIGN)
    assert part.sites == (model.encoder.layers()[recorded - 1],)
    assert part.title == f"{recorded} of 3 layers"
    check(model, part, FOREIGN)


def test_an_encoder_whose_rows_depend_on_each_other_is_refused():
    model = built(lambda: Foreign("rows"), FOREIGN)
    model.encoder.requires_grad_(False)
    with pytest.raises(UnsuitableError):
        found(model, FOREIGN)


def test_batch_normalisation_that_follows_the_batch_is_refused_and_not_moved():
    model = built("resnet18-tiny", IMAGES)
    model.encoder.requires_grad_(False)
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(UnsuitableError):
        found(model, IMAGES)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_a_stem_that_learns_leaves_nothing_to_record():
    model = built("vit-tiny", IMAGES)
    model.encoder.layers()[0].requires_grad_(False)
    with pytest.raises(UnsuitableError, match="a module below them learns"):
        found(model, IMAGES)
    assert not list(candidates(built("vit-tiny", IMAGES).encoder))


def test_a_copy_with_other_weights_computes_its_own():
    model = built("vit-tiny", IMAGES)
    model.encoder.requires_grad_(False)
    part, few = found(model, IMAGES, [model.encoder]), batch(IMAGES, 3)
    model.eval()
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.encoder.norm.weight.mul_(2)
    lent = Lent(part, part.columns(lambda: model.plain(few, "a"), 3), lambda: few)
    assert torch.equal(other.plain(lent, "a"), other.plain(few, "a"))
    assert not torch.equal(other.plain(lent, "a"), model.plain(lent, "a"))


def test_the_weights_below_the_place_count_and_no_others():
    model = built("vit-tiny", IMAGES)
    encoder = model.encoder
    for module in [*encoder.stem(), *encoder.layers()[:2]]:
        module.requires_grad_(False)
    names = set(FrozenPart(encoder, [encoder.layers()[1]]).weights())
    below = {name for name, weight in encoder.named_parameters() if name.startswith(("patches", "block.0", "block.1"))}
    assert below <= names
    assert not any(name.startswith(("block.2", "norm")) for name in names)
