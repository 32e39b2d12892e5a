import copy
import json

import pytest
import torch
from torch import nn

from holdfast.errors import UserError
from holdfast.models.modular import ModularPerceptron, ModularResNet18, ModularVit, modular
from holdfast.models.perceptron import Perceptron
from holdfast.models.resnet import ResNet18
from holdfast.models.vit import Vit
from holdfast.types import Head, Inputs

SIZES = {"patch": 4, "width": 12, "depth": 3, "heads": 2, "head_width": 5, "hidden": 16}
SMALL = Inputs((3, 16, 16))


def images(seed=0):
    generator = torch.Generator().manual_seed(seed)
    return {"image": torch.randint(0, 256, (3, 3, 16, 16), generator=generator)}


def disturbed(module):
    """All numbers of a network drawn at random, so that none hides behind its first value."""
    for value in module.state_dict().values():
        if value.is_floating_point():
            value.copy_(torch.rand_like(value) + 0.2 if value.ndim == 1 else 0.3 * torch.randn_like(value))
    return module.double().eval()


def take(module, *sources):
    """The weights of several modules, in order."""
    values = [value for source in sources for value in source.state_dict().values()]
    own = module.state_dict()
    module.load_state_dict(dict(zip(own, values, strict=True)))


@pytest.mark.parametrize("parts", ["branches", "stages"])
@pytest.mark.parametrize("start", ["medium", "cifar", "imagenet"])
def test_with_one_module_a_layer_it_is_the_plain_resnet(parts, start):
    plain = disturbed(ResNet18(start=start, channels=4).encoder(SMALL))
    network = ModularResNet18(start=start, channels=4, parts=parts).encoder(SMALL).double().eval()
    first, *rest = network.layers()
    take(first.choices[0], plain.conv1, plain.bn1)
    if parts == "branches":
        assert len(rest) == 8
        for layer, block in zip(rest, plain.layers(), strict=True):
            take(layer.choices[0], block.conv1, block.bn1, block.conv2, block.bn2)
            take(layer.beside, block.downsample)
    else:
        assert len(rest) == 4
        for layer, stage in zip(rest, plain.stages, strict=True):
            take(layer.choices[0], plain.get_submodule(stage))
    torch.testing.assert_close(network(images()), plain(images()))


@pytest.mark.parametrize("parts", ["branches", "stages"])
def test_with_one_module_a_layer_it_is_the_plain_vit(parts):
    plain = disturbed(Vit(**SIZES).encoder(SMALL))
    network = ModularVit(**SIZES, parts=parts).encoder(SMALL).double().eval()
    take(network.start, plain.patches)
    take(network.end, plain.norm)
    for layer, block in zip(network.layers(), plain.block, strict=True):
        if parts == "branches":
            take(layer.before, block.attention_norm, block.attention)
            take(layer.choices[0], block.feed_forward_norm, block.feed_forward)
        else:
            take(layer.choices[0], block)
    torch.testing.assert_close(network(images()), plain(images()))


def test_modules_that_are_on_are_summed():
    network = ModularPerceptron(width=5, depth=2).encoder(Inputs((3, 16, 16)))
    for layer in network.layers():
        layer.grow(4)
    x = torch.randn(2, 5)
    layer = network.layers()[1]
    expected = x + sum(torch.relu(x @ m[0].weight.T + m[0].bias) for m in (layer.choices[0], layer.choices[3]))
    torch.testing.assert_close(layer(x, (0, 3)), expected)


def test_new_modules_are_like_the_others_and_not_the_same():
    network = ModularVit(**SIZES).encoder(SMALL).double()
    layer = network.layers()[0]
    layer.grow(3)
    layer.grow(2)
    assert len(layer.choices) == 3
    assert {p.dtype for p in layer.parameters()} == {torch.float64}
    weights = [module[1].inner.weight for module in layer.choices]
    assert not torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[1], weights[2])


def test_each_head_sees_through_its_own_path_also_in_a_copy():
    heads = {"old": Head("classify", 2), "new": Head("classify", 2)}
    model = ModularPerceptron(width=5, depth=2, parts="stages").build(SMALL, heads)
    for layer in model.encoder.layers():
        layer.grow(2)
    old, new = ((0,), (0,)), ((0,), (1,))
    model.encoder.path, model.encoder.paths = new, {"old": old}
    twin = copy.deepcopy(model)
    nn.init.zeros_(model.encoder.layers()[1].choices[1][0].weight)
    assert torch.equal(model(images(), "old"), twin(images(), "old"))
    assert not torch.equal(model(images(), "new"), twin(images(), "new"))
    model.encoder.paths = {}
    assert not torch.equal(model(images(), "old"), twin(images(), "old"))


def test_several_images_have_a_vector_each():
    network = ModularResNet18(channels=4).encoder(SMALL).eval()
    pairs = images()["image"].unsqueeze(1).expand(-1, 2, -1, -1, -1)
    found = network({"image": pairs})
    assert found.shape == (3, 2, network.width)
    torch.testing.assert_close(found[:, 1], network(images()))


def test_what_is_not_modular_is_refused():
    with pytest.raises(UserError, match="needs a modular network, such as"):
        modular(Perceptron().encoder(SMALL), "rpsnet", "branches")
    with pytest.raises(UserError, match=r"set model\.parts=stages"):
        modular(ModularVit(**SIZES).encoder(SMALL), "mntdp", "stages")


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_network_is_rebuilt_from_its_structure(count):
    """From one with fewer modules, as many, or more."""
    model = ModularPerceptron(width=5, depth=2, parts="stages").build(SMALL, {"old": Head("classify", 2)})
    encoder = model.encoder
    for layer in encoder.layers():
        layer.grow(2)
    encoder.path, encoder.paths = ((1,), (1,)), {"old": ((0,), (1,))}
    structure = json.loads(json.dumps(encoder.structure()))
    twin = ModularPerceptron(width=5, depth=2, parts="stages").build(SMALL, {"old": Head("classify", 2)})
    for layer in twin.encoder.layers():
        layer.grow(count)
    twin.encoder.rebuild(structure)
    twin.load_state_dict(model.state_dict())
    assert (twin.encoder.path, twin.encoder.paths) == (encoder.path, encoder.paths)
    assert torch.equal(twin(images(), "old"), model(images(), "old"))
