"""Region features: how rows become arrays, and which of them a table maps."""

import numpy as np
import pytest
import torch

from holdfast.benchmarks.source import open_source
from holdfast.data.regions import Regions, open_or_write
from holdfast.datasets.region_features import read_rows
from holdfast.errors import UserError


def row(name, count, width=3):
    value = float(ord(name))
    return name, np.full((count, width), value, np.float32), np.full((count, 4), value / 256, np.float32)


def test_rows_are_arranged_and_filled_up_with_zeros(tmp_path):
    found = open_or_write(
        tmp_path / "arranged", iter([row("c", 1), row("a", 2), row("b", 1)]), order=["a", "b", "nowhere", "c"]
    )
    assert found.ids.tolist() == ["a", "b", "c"]
    assert found.shape == (2, 3)
    assert found.counts.tolist() == [2, 1, 1]
    assert found.values[:, :, 0].tolist() == [[97, 97], [98, 0], [99, 0]]
    assert found.boxes[:, :, 3].tolist() == [[97 / 256, 97 / 256], [98 / 256, 0], [99 / 256, 0]]
    again = open_or_write(tmp_path / "arranged", iter([]), order=[])
    assert torch.equal(again.values, found.values), "from the cache"
    plain = open_or_write(tmp_path / "plain", iter([row("c", 1), row("a", 2)]))
    assert plain.ids.tolist() == ["c", "a"]


def test_features_of_two_widths_are_refused_and_leave_nothing_behind(tmp_path):
    with pytest.raises(UserError, match="the features of a are 3 wide, those of b 5"):
        open_or_write(tmp_path / "two widths", iter([row("a", 1), row("b", 1, width=5)]))
    with pytest.raises(UserError, match="no region features found"):
        open_or_write(tmp_path / "none", iter([]))
    assert not list(tmp_path.iterdir())


def test_a_stretch_has_the_rows_between_its_images_and_its_columns_count_from_there():
    names = np.array(["a", "b", "c", "d", "e"])
    whole = Regions(torch.arange(5.0).view(5, 1, 1), torch.zeros(5, 1, 4), torch.arange(5), names)
    part = whole.stretch(["d", "b"])
    assert part.ids.tolist() == ["b", "c", "d"]
    assert part.values.data_ptr() == whole.values[1:].data_ptr(), "no copy"
    assert part.columns([("d", "b")])["region_count"].rows(torch.tensor([0])).tolist() == [[3, 1]]
    with pytest.raises(UserError, match="no features for the image 'a'"):
        part.columns([("a", "b")])
    assert len(whole.stretch(["x"]).ids) == 0


def test_what_is_not_there_is_told_by_the_names_of_files(tmp_path):
    with pytest.raises(UserError, match="contains no region_features"):
        open_source("region_features", data=str(tmp_path))
    (tmp_path / "region_features").mkdir()
    (tmp_path / "region_features" / "test2015_obj36.tsv").touch()
    files = open_source("region_features", data=str(tmp_path))
    assert files.folder == tmp_path / "region_features"
    alternatives = (("nlvr2_train_obj36",), ("coco_train", "coco_val"))
    named = r"images of all: add nlvr2_imgfeat/train_obj36.tsv or faster_rcnn_coco_train.h5"
    with pytest.raises(UserError, match=named):
        list(read_rows(files.folder, alternatives, {"a"}, lambda name: (1, 1), of="all"))
