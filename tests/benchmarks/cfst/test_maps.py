"""Class activation maps: what they add up to, and that they point at what makes a class."""

import numpy as np
import torch
from torch.nn import functional

from holdfast.benchmarks.cfst.maps import TILE, TaskMaps, activations, maps, sheet
from holdfast.benchmarks.cfst.testing import FewShotTest
from holdfast.data.table import Data, Table

SIDE, CELL = 16, 4


def grid(images):
    """An extractor that sees the mean colour of each cell, in three channels."""
    return functional.avg_pool2d(images.double(), CELL)


def spots(count=20):
    """Pictures of two classes: a red or a blue cell, anywhere on black."""
    random = np.random.default_rng(0)
    images, places = torch.zeros(2 * count, 3, SIDE, SIDE, dtype=torch.uint8), random.integers(0, 4, (2 * count, 2))
    for row, (down, across) in enumerate((places * CELL).tolist()):
        images[row, 0 if row < count else 2, down : down + CELL, across : across + CELL] = 255
    return images


def test_the_mean_of_a_map_and_the_bias_are_the_logit():
    torch.manual_seed(0)
    last, weight, bias = torch.randn(5, 7, 3, 4), torch.randn(5, 7), torch.randn(5)
    logits = (functional.linear(last.mean((-2, -1)), weight, bias)).diagonal()
    assert torch.allclose(activations(last, weight).mean((-2, -1)) + bias, logits, atol=1e-6)


def test_a_map_points_at_what_makes_the_class():
    images, labels = spots(), np.repeat([3, 8], 20)
    data = Data([Table("spots", {"image": images}, torch.from_numpy(labels))])
    rows = np.arange(40)
    test = FewShotTest("sys", rows, rows, labels, 2)
    names = {"sys": {3: "red", 8: "blue"}}
    (shown,) = maps(grid, data, [test], names.__getitem__, seed=1)
    assert sorted(shown.titles) == ["blue", "red"]
    assert shown.right.all()
    for title, image, heat in zip(shown.titles, shown.images, shown.maps, strict=True):
        lit = image[..., 0 if title == "red" else 2] == 255
        assert lit.sum() == CELL**2
        assert lit[np.unravel_index(heat.argmax(), heat.shape)]
        assert heat.max() == 1
        assert heat[~lit].mean() < 0.1
    assert maps(grid, data, [test], names.__getitem__, seed=1)[0].maps.tobytes() == shown.maps.tobytes()
    (more,) = maps(grid, data, [test], names.__getitem__, seed=1, samples=3)
    assert sorted(more.titles) == ["blue"] * 3 + ["red"] * 3
    assert len({image.tobytes() for image in more.images}) > 2, "several pictures of a class"
    assert more.images[::3].tobytes() == shown.images.tobytes()
    for title, image, heat in zip(more.titles, more.images, more.maps, strict=True):
        assert (image[..., 0 if title == "red" else 2] == 255)[np.unravel_index(heat.argmax(), heat.shape)]


def test_long_titles_wrap_and_move_the_pictures_down():
    def drawn(title):
        images = np.full((1, 8, 8, 3), 200, np.uint8)
        shown = TaskMaps("noc", (title,), images, np.zeros((1, 8, 8), np.float32), np.ones(1, bool))
        return np.asarray(sheet({"run": [shown]}))

    short, long = drawn("hat"), drawn("Bovidae Head, Bovidae Foot, Lacertilia Body, Snake Head, Testudines Foot, Hat")
    assert long.shape[1] == short.shape[1]
    assert long.shape[0] > short.shape[0] + 4 * 12
    for sheet_of in (short, long):
        grey = (sheet_of == 200).all(-1)
        rows = np.flatnonzero(grey.sum(1) == TILE)
        assert len(rows) == TILE, "no title covers a picture"
        above = (sheet_of[: rows[0]] < 128).any(-1)
        assert above.any(), "there is a title"
