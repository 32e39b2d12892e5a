import json

import numpy as np
import pytest
import torch
import typer
from PIL import Image
from typer.testing import CliRunner

from holdfast.cli.features import features
from holdfast.data.features import open_features
from holdfast.data.images import decode
from holdfast.data.prepared import prepare
from holdfast.errors import UserError
from holdfast.models.resnet import ResNetEncoder
from holdfast.pretraining.features import compute_features
from holdfast.types import Example


def shrink(images):
    """A stand-in for a network: the mean of each 8x8 square."""
    return torch.nn.functional.avg_pool2d(images.float(), 8)


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "images" / "val").mkdir(parents=True)
    for number in range(7):
        pixels = rng.integers(0, 256, (20 + number, 30, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / "images" / ("val" if number % 2 else "") / f"{number}.png")
    (tmp_path / "images" / "notes.txt").write_text("no image")
    return tmp_path / "images"


def test_each_image_has_its_map_under_its_name(folder, tmp_path):
    assert compute_features(shrink, folder, tmp_path / "maps.npy", side=16, batch=3) == (7, 3, 2, 2)
    found = open_features(tmp_path / "maps.npy")
    assert found.ids.tolist() == ["0.png", "2.png", "4.png", "6.png", "val/1.png", "val/3.png", "val/5.png"]
    stored = np.load(tmp_path / "maps.npy")
    assert stored.dtype == np.float16
    assert stored.shape == (7, 3, 2, 2)
    for row, name in enumerate(found.ids.tolist()):
        pixels = decode(folder / name, 16).astype(np.float64)
        expected = pixels.reshape(2, 8, 2, 8, 3).mean((1, 3)).transpose(2, 0, 1)
        np.testing.assert_allclose(stored[row], expected, rtol=1e-3)
    column = open_features(tmp_path / "maps.npy").column(["val/3.png", "0.png", "0.png"])
    assert column.rows(torch.tensor([0, 2])).tolist() == stored[[5, 0]].tolist()
    with pytest.raises(UserError, match=r"no features for the image 'lost.png'"):
        found.column(["lost.png"])


def test_goes_on_where_it_was_stopped(folder, tmp_path):
    compute_features(shrink, folder, tmp_path / "whole.npy", side=16, batch=2)
    calls = []

    def breaks(images):
        calls.append(len(images))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return shrink(images)

    out = tmp_path / "maps.npy"
    with pytest.raises(KeyboardInterrupt):
        compute_features(breaks, folder, out, side=16, batch=2)
    assert not out.exists()
    assert json.loads(out.with_suffix(".json").read_text())["done"] == 4
    compute_features(breaks, folder, out, side=16, batch=2)
    assert calls == [2, 2, 2, 2, 1]
    assert out.read_bytes() == (tmp_path / "whole.npy").read_bytes()
    compute_features(breaks, folder, out, side=16, batch=2)
    assert len(calls) == 5, "all was done"


def test_what_changed_is_not_taken_for_done(folder, tmp_path):
    out = tmp_path / "maps.npy"

    def stops(images):
        stops.count += 1
        if stops.count == 3:
            raise KeyboardInterrupt
        return shrink(images)

    stops.count = 0
    with pytest.raises(KeyboardInterrupt):
        compute_features(stops, folder, out, name="a", side=16, batch=2)
    Image.new("RGB", (9, 9), (250, 0, 0)).save(folder / "2.png")
    compute_features(shrink, folder, out, name="a", side=16, batch=2)
    assert open_features(out).values[1, 0].tolist() == [[250, 250], [250, 250]]
    with pytest.raises(UserError, match="other images or of another network"):
        compute_features(shrink, folder, out, name="b", side=16, batch=2)


def test_a_prepared_table_gives_each_distinct_image_once(folder, tmp_path):
    paths = [folder / "4.png", folder / "0.png"]
    examples = [Example(f"q{n}", n, (paths[which],)) for n, which in enumerate([0, 0, 1, 0])]
    prepare("questions", examples, tmp_path / "table", image_size=16)
    compute_features(shrink, tmp_path / "table", tmp_path / "maps.npy", batch=1)
    found = open_features(tmp_path / "maps.npy")
    assert found.ids.tolist() == ["q0", "q2"]
    compute_features(shrink, folder, tmp_path / "files.npy", side=16)
    assert torch.equal(found.values, open_features(tmp_path / "files.npy").values[[2, 0]])


def test_mistakes_are_told_in_a_sentence(folder, tmp_path):
    with pytest.raises(UserError, match=r"name the file maps.npy, not maps.bin"):
        compute_features(shrink, folder, tmp_path / "maps.bin")
    with pytest.raises(UserError, match=r"the folder .* does not exist"):
        compute_features(shrink, tmp_path / "nowhere", tmp_path / "maps.npy")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="contains no images"):
        compute_features(shrink, tmp_path / "empty", tmp_path / "maps.npy")
    (folder / "3.png").write_bytes(b"broken")
    with pytest.raises(UserError, match=r"3\.png"):
        compute_features(shrink, folder, tmp_path / "maps.npy", side=16)
    with pytest.raises(UserError, match=r"lost.npy does not exist"):
        open_features(tmp_path / "lost.npy")


def test_the_command_computes_stage_three_of_a_resnet(folder, tmp_path):
    torch.manual_seed(0)
    network = ResNetEncoder(50)
    torch.save(network.state_dict() | {"fc.weight": torch.zeros(2, 2)}, tmp_path / "resnet50.pth")
    app = typer.Typer()
    app.command()(features)
    call = ["--weights", str(tmp_path / "resnet50.pth"), "--images", str(folder / "val")]
    call += ["--out", str(tmp_path / "maps.npy"), "--side", "32", "--batch", "2", "--depth", "50"]
    result = CliRunner().invoke(app, call)
    assert result.exit_code == 0, result.output
    assert "3 maps of 1024 x 2 x 2" in result.output
    pixels = torch.from_numpy(decode(folder / "val" / "3.png", 32).transpose(2, 0, 1).copy())
    network.eval()
    x = network.maxpool(network.bn1(network.conv1(network.normalise(pixels[None]))).relu())
    expected = network.layer3(network.layer2(network.layer1(x)))[0]
    stored = torch.from_numpy(np.load(tmp_path / "maps.npy")[1]).float()
    torch.testing.assert_close(stored, expected.detach(), rtol=2e-3, atol=2e-3)
    wrong = CliRunner().invoke(app, [*call[:-1], "101"])
    assert isinstance(wrong.exception, UserError)
    assert "lacks layer3.1" in str(wrong.exception)
