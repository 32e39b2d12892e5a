import pytest
import torch
from transformers import ResNetConfig, ResNetModel

from holdfast.errors import UserError
from holdfast.models.resnet import STARTS, Basic, Normalise, ResNet18, ResNetEncoder, TinyResNet18, published
from holdfast.types import Head, Inputs


def images(rows=2, side=64):
    return torch.randint(256, (rows, 3, side, side), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))


def scrambled(module):
    """Random weights everywhere, norms and their statistics too."""
    generator = torch.Generator().manual_seed(7)
    for name, value in module.state_dict().items():
        if value.dtype.is_floating_point:
            drawn = torch.randn(value.shape, generator=generator, dtype=value.dtype)
            fan = value[0].numel() if value.ndim > 1 else 1
            value.copy_(drawn.abs() * 0.3 + 0.7 if "var" in name or value.ndim == 1 else drawn / fan**0.5)
    return module.double()


def reference(ours, depths, kind):
    """The network of `transformers` with our weights."""
    widths = [ours.layer1[-1].bn2.num_features * (1 if kind == "basic" else 4) << n for n in range(len(depths))]
    config = ResNetConfig(
        embedding_size=ours.conv1.out_channels,
        hidden_sizes=widths,
        depths=list(depths),
        layer_type=kind,
        hidden_act="relu",
    )
    theirs = ResNetModel(config).double().eval()
    names = {"embedder.embedder.convolution": "conv1", "embedder.embedder.normalization": "bn1"}
    for stage, blocks in enumerate(depths):
        for block in range(blocks):
            here, there = f"layer{stage + 1}.{block}", f"encoder.stages.{stage}.layers.{block}"
            for number in range(2 if kind == "basic" else 3):
                names[f"{there}.layer.{number}.convolution"] = f"{here}.conv{number + 1}"
                names[f"{there}.layer.{number}.normalization"] = f"{here}.bn{number + 1}"
            names[f"{there}.shortcut.convolution"] = f"{here}.downsample.0"
            names[f"{there}.shortcut.normalization"] = f"{here}.downsample.1"
    own = ours.state_dict()
    state = {}
    for name in theirs.state_dict():
        module, _, leaf = name.rpartition(".")
        state[name] = own[f"{names[module]}.{leaf}"]
    theirs.load_state_dict(state)
    assert len(state) == len(own)
    return theirs


@pytest.mark.parametrize(("depth", "kind", "depths"), [(18, "basic", (2, 2, 2, 2)), (50, "bottleneck", (3, 4, 6))])
def test_equals_transformers(depth, kind, depths):
    ours = scrambled(ResNetEncoder(depth, channels=8, stages=len(depths))).eval()
    theirs = reference(ours, depths, kind)
    pixels = images()
    expected = theirs(ours.normalise(pixels))
    torch.testing.assert_close(ours.grid(pixels), expected.last_hidden_state, atol=1e-10, rtol=1e-10)
    found = ours({"image": pixels})
    torch.testing.assert_close(found, expected.pooler_output.flatten(1), atol=1e-10, rtol=1e-10)
    found.square().sum().backward()
    expected.pooler_output.square().sum().backward()
    torch.testing.assert_close(ours.conv1.weight.grad, theirs.embedder.embedder.convolution.weight.grad)
    last = theirs.encoder.stages[2].layers[0].shortcut.normalization.bias.grad
    torch.testing.assert_close(ours.layer3[0].downsample[1].bias.grad, last)


def test_pixels_become_what_imagenet_statistics_make_of_them():
    pixels = torch.tensor([0, 128, 255], dtype=torch.uint8).view(1, 3, 1, 1)
    expected = [-0.485 / 0.229, (128 / 255 - 0.456) / 0.224, (1 - 0.406) / 0.225]
    torch.testing.assert_close(Normalise()(pixels).flatten(), torch.tensor(expected))


@pytest.mark.parametrize(
    ("start", "side", "cells"), [("medium", 128, 8), ("cifar", 32, 4), ("imagenet", 224, 7), ("medium", 32, 2)]
)
def test_each_start_gives_its_cells(start, side, cells):
    encoder = ResNetEncoder(18, STARTS[start], channels=4).eval()
    assert encoder.grid(images(1, side)).shape == (1, 32, cells, cells)


def test_the_full_size_has_the_published_number_of_weights():
    with torch.device("meta"):
        encoder = ResNetEncoder(18)
        deep = ResNetEncoder(101)
    assert sum(p.numel() for p in encoder.parameters()) == 11_689_512 - 512 * 1000 - 1000
    assert sum(p.numel() for p in deep.parameters()) == 44_549_160 - 2048 * 1000 - 1000
    assert ResNet18().encoder(Inputs((3, 128, 128))).width == 512


def test_learns_and_frozen_statistics_stay():
    torch.manual_seed(0)
    model = TinyResNet18(channels=4).build(Inputs((3, 16, 16)), {"all": Head("classify", 2)})
    assert isinstance(model.encoder.layers()[0], Basic)
    assert len(model.encoder.layers()) == 8
    frozen = [*model.encoder.stem(), *model.encoder.layers()[:2]]
    model.train()
    for module in frozen:
        module.requires_grad_(False).eval()
    before = {name: value.clone() for name, value in model.encoder.state_dict().items()}
    dark = torch.randint(0, 100, (32, 3, 16, 16), dtype=torch.uint8)
    bright = torch.randint(120, 256, (32, 3, 16, 16), dtype=torch.uint8)
    inputs, targets = {"image": torch.cat([dark, bright])}, torch.arange(2).repeat_interleave(32)
    optimiser = torch.optim.Adam((p for p in model.parameters() if p.requires_grad), lr=1e-2)
    for _ in range(10):
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs, "all"), targets)
        loss.backward()
        optimiser.step()
    assert loss < 0.1
    for name, value in model.encoder.state_dict().items():
        still = name.startswith(("conv1.", "bn1.", "layer1."))
        assert torch.equal(value, before[name]) == still, name


def test_pairs_of_images_give_a_vector_each():
    encoder = ResNetEncoder(18, STARTS["cifar"], channels=4).eval()
    pairs = images(6, 16).view(3, 2, 3, 16, 16)
    found = encoder({"image": pairs})
    assert found.shape == (3, 2, 32)
    torch.testing.assert_close(found[1, 1], encoder({"image": pairs[1, 1:]})[0])


def test_weights_of_torchvision_load_by_their_names(tmp_path):
    whole = scrambled(ResNetEncoder(50)).float().eval()
    state = whole.state_dict() | {"fc.weight": torch.zeros(1000, 2048), "fc.bias": torch.zeros(1000)}
    assert {"conv1.weight", "layer1.0.conv1.weight", "layer3.5.bn3.running_var", "layer2.0.downsample.1.bias"} <= set(
        state
    )
    torch.save(state, tmp_path / "resnet50.pth")
    features = published(50, tmp_path / "resnet50.pth")
    assert not features.training
    assert not any(p.requires_grad for p in features.parameters())
    found = features.grid(images(1, 64))
    assert found.shape == (1, 1024, 4, 4)
    x = whole.maxpool(whole.bn1(whole.conv1(whole.normalise(images(1, 64)))).relu())
    torch.testing.assert_close(found, whole.layer3(whole.layer2(whole.layer1(x))))

    with pytest.raises(UserError, match=r"lacks layer3.10.* which a ResNet-101 has"):
        published(101, tmp_path / "resnet50.pth")
    with pytest.raises(UserError, match=r"has layer1.0.bn3.*, which a ResNet-34 does not have"):
        published(34, tmp_path / "resnet50.pth")
    state["conv1.weight"] = state["conv1.weight"][:, :1]
    torch.save(state, tmp_path / "grey.pth")
    with pytest.raises(UserError, match=r"conv1.weight is \(64, 1, 7, 7\), and a ResNet-50 needs \(64, 3, 7, 7\)"):
        published(50, tmp_path / "grey.pth")
    (tmp_path / "text.pth").write_text("no weights")
    with pytest.raises(UserError, match=r"text.pth is not a file of weights"):
        published(50, tmp_path / "text.pth")
    with pytest.raises(UserError, match=r"the file .* does not exist"):
        published(50, tmp_path / "lost.pth")


def test_refuses_what_it_cannot_see():
    with pytest.raises(UserError, match="needs images, but this benchmark has none"):
        ResNet18().encoder(Inputs(text=8, vocabulary=10))
    with pytest.raises(UserError, match="3 channels or 1, but these have 2"):
        ResNet18().encoder(Inputs((2, 28, 28)))
