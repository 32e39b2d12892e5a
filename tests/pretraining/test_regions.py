"""Features of boxes and cells, in both formats, by several processes, and after a kill."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from PIL import Image

from cli.inside import inside
from holdfast.benchmarks.viscoll.features import FILES
from holdfast.data.features import open_features
from holdfast.data.images import decode
from holdfast.datasets.base import DataError
from holdfast.datasets.region_features import DATASET, read_rows
from holdfast.errors import UserError
from holdfast.models.resnet import ResNetEncoder
from holdfast.pretraining.boxes import read_boxes
from holdfast.pretraining.features import Kept, compute_features, pooled
from processes import environment

WIDTHS = (30, 24, 40, 18, 33)


def ramp(images):
    """A network whose map shows where it is: columns, rows, and the brightness of the image, on 4 x 5 cells."""
    across = torch.arange(5.0).expand(len(images), 4, 5)
    down = torch.arange(4.0)[:, None].expand(len(images), 4, 5)
    return torch.stack([across, down, images.float().mean((1, 2, 3))[:, None, None].expand(-1, 4, 5)], 1)


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "images" / "val").mkdir(parents=True)
    for number, width in enumerate(WIDTHS):
        pixels = rng.integers(0, 256, (20, width, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / "images" / "val" / f"COCO_val2014_{number:012}.png")
    return tmp_path / "images"


def rows_of(folder, most=36):
    return {
        name: (features, boxes)
        for name, features, boxes in read_rows(folder, FILES["coco"], {"0", "2", "3"}, None, of="coco", most=most)
    }


@pytest.mark.parametrize("name", ["regions.h5", "regions.npy", "coco_regions.h5"])
def test_each_cell_is_a_region_that_benchmarks_read(folder, tmp_path, name):
    out = tmp_path / "features" / name
    assert compute_features(ramp, folder, out, side=16, batch=2, kept=Kept("regions")) == (5, 20, 3)
    found = rows_of(out.parent)
    assert set(found) == {"0", "2", "3"}
    features, boxes = found["2"]
    np.testing.assert_allclose(boxes[0], [0, 0, 1 / 5, 1 / 4], atol=1e-6)
    np.testing.assert_allclose(boxes[7], [2 / 5, 1 / 4, 3 / 5, 2 / 4], atol=1e-6)
    assert features[7].tolist()[:2] == [2, 1]
    brightness = decode(folder / "val" / "COCO_val2014_000000000002.png", 16).mean()
    np.testing.assert_allclose(features[:, 2], brightness, rtol=1e-3)
    assert not [path for path in out.parent.iterdir() if path.name.startswith(".")]
    with pytest.raises(UserError, match=r"has 20 boxes of an image, and this benchmark takes 6: .* --cells"):
        rows_of(out.parent, most=6)


@pytest.mark.parametrize("suffix", [".h5", ".npy"])
def test_a_map_is_kept_in_either_format(folder, tmp_path, suffix):
    out = tmp_path / f"maps{suffix}"
    compute_features(ramp, folder, out, side=16, kept=Kept(cells=2))
    found = open_features(out)
    assert found.ids[0] == "val/COCO_val2014_000000000000.png"
    expected = torch.nn.functional.adaptive_avg_pool2d(ramp(torch.zeros(1, 3, 4, 4)), 2)[0, :2]
    torch.testing.assert_close(found.values[3, :2].float(), expected)
    content = bytearray(out.read_bytes())
    content[-100] ^= 4
    out.write_bytes(content)
    with pytest.raises(UserError, match="damaged"):
        open_features(out)


def test_a_box_has_the_mean_of_what_it_shows(folder, tmp_path):
    boxes = {f"COCO_val2014_{n:012}": [[0, 0, width, 20]] for n, width in enumerate(WIDTHS)}
    boxes["COCO_val2014_000000000002"] = [[10, 5, 30, 15], [0, 0, 40, 20], [12, 8, 20, 18]]
    (tmp_path / "boxes.json").write_text(json.dumps(boxes))
    kept = Kept("regions", boxes=read_boxes(tmp_path / "boxes.json"))
    for name, workers in (("regions.h5", 1), ("flickr_regions.npy", 1)):
        compute_features(ramp, folder, tmp_path / "features" / name, side=16, batch=2, kept=kept, workers=workers)
    found = rows_of(tmp_path / "features")
    assert [len(features) for features, _ in found.values()] == [1, 3, 1]
    features, corners = found["2"]
    np.testing.assert_allclose(corners[0], [0.25, 0.25, 0.75, 0.75], atol=1e-6)
    # The map is a ramp, so the mean within a box is its value at the middle: 5 cells over 40 pixels, 4 over 20.
    np.testing.assert_allclose(features[0, :2], [20 / 8 - 0.5, 10 / 5 - 0.5], rtol=1e-3)
    np.testing.assert_allclose(features[2, :2], [16 / 8 - 0.5, 13 / 5 - 0.5], rtol=1e-3)
    (first, *_) = DATASET.examples(tmp_path / "features", "flickr_regions")
    assert (first.extra["image_w"], first.extra["image_h"]) == (30, 20)
    assert first.extra["boxes"].tolist() == [[0, 0, 30, 20]]


def test_pooling_equals_the_mean_over_a_dense_grid_of_points():
    rng = np.random.default_rng(1)
    found = torch.from_numpy(rng.normal(size=(2, 6, 5)))
    box = torch.tensor([[0.13, 0.31, 0.77, 0.62]], dtype=torch.float64)
    x0, y0, x1, y1 = box[0].tolist()
    total = np.zeros(2)
    for i in range(7):
        for j in range(7):
            x = np.clip((x0 + (x1 - x0) * (i + 0.5) / 7) * 5 - 0.5, 0, 4)
            y = np.clip((y0 + (y1 - y0) * (j + 0.5) / 7) * 6 - 0.5, 0, 5)
            left, top = int(min(x, 3)), int(min(y, 4))
            a, b = x - left, y - top
            cell = found[:, top : top + 2, left : left + 2].numpy()
            total += (1 - b) * ((1 - a) * cell[:, 0, 0] + a * cell[:, 0, 1])
            total += b * ((1 - a) * cell[:, 1, 0] + a * cell[:, 1, 1])
    np.testing.assert_allclose(pooled(found, box)[0].numpy(), total / 49, rtol=1e-9)


@pytest.mark.parametrize(
    ("boxes", "told"),
    [
        ("[]", "has no boxes"),
        ('{"a": [[0, 0, 4]]}', "the boxes of a are not a list of"),
        ('{"a": [[4, 0, 4, 9]]}', "with x1 < x2"),
        ('{"a": [[0, 0, 4, NaN]]}', "the boxes of a"),
        ("{", "not valid JSON"),
        ('{"a": [[0, 0, 4, 9]]}', "no boxes for the image val/COCO_val2014_000000000000.png"),
        ('{"COCO_val2014_00000000000%d": [[90, 0, 94, 9]]}', "lies outside the image, which is 30 x 20"),
    ],
)
def test_wrong_boxes_are_refused(folder, tmp_path, boxes, told):
    if "%d" in boxes:
        boxes = json.dumps({f"COCO_val2014_{n:012}": [[90, 0, 94, 9]] for n in range(5)})
    (tmp_path / "boxes.json").write_text(boxes)

    def compute():
        kept = Kept("regions", boxes=read_boxes(tmp_path / "boxes.json"))
        compute_features(ramp, folder, tmp_path / "regions.h5", side=16, kept=kept)

    with pytest.raises(UserError, match=told):
        compute()


def test_two_images_of_one_name_and_a_damaged_file_are_refused(folder, tmp_path):
    (folder / "train").mkdir()
    (folder / "val" / "COCO_val2014_000000000001.png").rename(folder / "train" / "COCO_val2014_000000000002.png")
    out = tmp_path / "features" / "regions.h5"
    compute_features(ramp, folder, out, side=16, kept=Kept("regions"))
    with pytest.raises(DataError, match="its id occurs twice"):
        list(DATASET.examples(out.parent, "regions"))
    out.write_bytes(out.read_bytes()[:4000])
    with pytest.raises(DataError, match="it is not complete"):
        list(DATASET.examples(out.parent, "regions"))


@pytest.fixture
def resnet(tmp_path):
    torch.manual_seed(0)
    torch.save(ResNetEncoder(18).state_dict() | {"fc.weight": torch.zeros(2, 2)}, tmp_path / "resnet18.pth")
    return ["--weights", str(tmp_path / "resnet18.pth"), "--depth", "18", "--stage", "4", "--side", "32"]


@pytest.mark.thorough
def test_a_killed_command_goes_on_by_any_number_of_processes(folder, tmp_path, resnet):
    for number in range(40):
        Image.new("RGB", (9 + number, 9), (number, 9, 200)).save(folder / f"{number}.png")
    call = ["features", *resnet, "--images", str(folder), "--batch", "2", "--kind", "regions"]
    assert inside(*call, "--out", "whole.h5", "--jobs", "1", cwd=tmp_path).returncode == 0
    command = [sys.executable, "-m", "holdfast", *call, "--out", "killed.h5", "--jobs", "2"]
    note, process = tmp_path / "killed.json", subprocess.Popen(command, cwd=tmp_path, env=environment())
    while process.poll() is None and not note.exists():
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    done = json.loads(note.read_text())["done"]
    assert 0 < done < 45, "killed in the midst of it"
    found = inside(*call, "--out", "killed.h5", "--jobs", "1", cwd=tmp_path)
    assert "features of 45 images, 512 wide, up to 1 of each, in killed.h5" in found.stdout
    assert (tmp_path / "killed.h5").read_bytes() == (tmp_path / "whole.h5").read_bytes()


def test_mistakes_of_the_command_are_told(folder, tmp_path, resnet):
    def told(*more):
        return inside("features", "--images", str(folder), "--out", "x.npy", *more, cwd=tmp_path).stderr

    assert "give --weights FILE for a ResNet, or --model NAME" in told()
    assert "--kind is boxes: give grid or regions" in told(*resnet, "--kind", "boxes")
    assert "--boxes is for --kind regions" in told(*resnet, "--boxes", "b.json")
    assert "--depth is 19: give 18, 34, 50, 101" in told("--weights", "w", "--depth", "19")
    assert "begins with random weights" in told("--model", "efficientnet-lite0")
    assert "choose another model" in told("--model", "vilt-tiny")
    assert "the file lost.pth does not exist" in told("--weights", "lost.pth")
