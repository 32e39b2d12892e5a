"""Texts without pictures and pictures without texts: what stands in for what is missing."""

import numpy as np
import pytest
import torch
from PIL import Image

from holdfast.benchmarks.climb import unimodal
from holdfast.benchmarks.climb.lowshot import LowShot
from holdfast.benchmarks.synthetic import world
from holdfast.data.table import Table
from holdfast.data.text import SPECIAL, Tokenizer
from holdfast.models.vilt import TinyVilt
from holdfast.types import Inputs, Wants

WANTS = Wants(side=48, vocabulary=TinyVilt().wants().vocabulary)


def texts(rows=2):
    return Table("t", {"text": torch.ones(rows, 5, dtype=torch.int32)}, torch.zeros(rows, dtype=torch.int64))


def test_the_mean_image_is_the_mean_of_cocos_training_images():
    files = sorted((world("coco", "tiny") / "train2014").glob("*.jpg"))
    assert len(files) == 160
    side = 40
    expected = np.mean(
        [np.asarray(Image.open(f).convert("RGB").resize((side, side), Image.Resampling.BICUBIC), float) for f in files],
        axis=0,
    )
    found = unimodal.vacuous_image("mean", side, side, data="", scale="tiny").numpy().transpose(1, 2, 0)
    assert np.abs(found - expected).mean() < 0.6  # rounded, and JPEGs are decoded at a part of their size
    again = unimodal.vacuous_image("mean", side, 20, data="", scale="tiny")
    assert again.shape == (3, 20, 20)
    assert not unimodal.vacuous_image("zero", side, 20, data="", scale="tiny").any()


def test_a_folder_without_coco_takes_the_worlds_mean(tmp_path):
    own = unimodal.vacuous_image("mean", 16, 16, data="", scale="tiny")
    assert torch.equal(unimodal.vacuous_image("mean", 16, 16, data=str(tmp_path), scale="tiny"), own)


def test_no_image_means_that_its_pixels_do_not_matter():
    encoder = TinyVilt(weights="").encoder(Inputs((3, 64, 64), text=5, vocabulary=9, padded=True)).eval()
    outputs = {}
    for kind in ("none", "mean"):
        for pixels in (0, 200):
            image = torch.full((3, 64, 64), pixels, dtype=torch.uint8)
            table = unimodal.with_image(texts(), image, kind)
            rows = torch.arange(2)
            inputs = {n: c if isinstance(c, torch.Tensor) else c.rows(rows) for n, c in table.inputs.items()}
            outputs[kind, pixels] = encoder(inputs)
    assert torch.allclose(outputs["none", 0], outputs["none", 200])
    assert not torch.allclose(outputs["mean", 0], outputs["mean", 200], atol=1e-3)


def test_every_picture_has_the_same_text():
    words = Tokenizer((*SPECIAL, "this", "is", "an", "image", "."))
    pictures = Table("p", {"image": torch.zeros(3, 3, 8, 8, dtype=torch.uint8)}, torch.zeros(3, dtype=torch.int64))
    table = unimodal.with_text(pictures, words)
    rows = table.inputs["text"].rows(torch.tensor([0, 2]))
    assert rows.shape == (2, 7), "no padding"
    assert [words.decode(row) for row in rows.tolist()] == ["this is an image ."] * 2
    assert table.inputs["text_length"].rows(torch.tensor([1])).tolist() == [7]


@pytest.mark.parametrize(("reallocate", "side", "most"), [(True, 32, 160), (False, 48, 40)])
def test_places_of_the_image_go_to_the_text(reallocate, side, most):
    setup = LowShot("imdb", scale="tiny", reallocate=reallocate).setup(WANTS)
    assert setup.inputs.image == (3, side, side)
    longest = max(int(t.inputs["text_length"].max()) for t in setup.data.tables)
    assert setup.inputs.text == longest <= most
    assert {t.inputs["text"].shape[1] for t in setup.data.tables} == {longest}
    if reallocate:
        assert longest > 40, "otherwise this says nothing"


def test_long_texts_get_the_pretrained_positions_again():
    encoder = TinyVilt(weights="").encoder(Inputs((3, 64, 64), text=100, vocabulary=9))
    assert encoder.text.positions.num_embeddings == 100


def test_cocos_labels_count_though_a_box_has_no_size():
    setup = LowShot("coco", scale="tiny", test=1000).setup(WANTS)
    assert len(setup.data.tables[2]) == 80, "all of val2014"
    assert setup.problems == ()
    assert setup.data.tables[2].targets.shape == (80, unimodal.OBJECTS)
