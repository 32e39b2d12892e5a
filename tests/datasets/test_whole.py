import json

import numpy as np
import pytest

from holdfast import registry
from holdfast.data.prepared import open_prepared
from holdfast.datasets.base import DataError
from holdfast.datasets.whole import prepare_all
from holdfast.errors import UserError


def test_one_vocabulary_and_one_numbering_of_labels_serve_all_splits(tmp_path):
    registry.WRITERS["vqav2"].load()(tmp_path / "vqav2", "tiny", 0)
    dataset = registry.DATASETS["vqav2"].load()
    splits = prepare_all(dataset, tmp_path / "vqav2", tmp_path / "out", size=16, length=20)
    assert [s.split for s in splits] == ["train", "val", "test", "test-dev"]
    names = json.loads((tmp_path / "out" / "labels.json").read_text(encoding="utf-8"))
    val = open_prepared(tmp_path / "out" / "val")
    targets = {example.id: example.target for example in dataset.examples(tmp_path / "vqav2", "val")}
    for row, number in zip(val.ids.tolist(), val.table.targets.tolist(), strict=True):
        assert (names[number] if number >= 0 else None) == (targets[row] if targets[row] in names else None)
    test = open_prepared(tmp_path / "out" / "test")
    assert set(test.table.targets.tolist()) == {-1}, "the official test split has no labels"
    again = prepare_all(dataset, tmp_path / "vqav2", tmp_path / "out", size=16, length=20)
    assert again == splits


def test_several_labels_become_rows_of_zeros_and_ones(tmp_path):
    registry.WRITERS["coco"].load()(tmp_path / "coco", "tiny", 0)
    dataset = registry.DATASETS["coco"].load()
    prepare_all(dataset, tmp_path / "coco", tmp_path / "out", size=16, skip_bad=1)
    table = open_prepared(tmp_path / "out" / "train2014")
    expected = {example.id: example.target for example in dataset.examples(tmp_path / "coco", "train2014")}
    for row, labels in zip(table.ids.tolist(), table.table.targets.numpy(), strict=True):
        assert tuple(np.flatnonzero(labels)) == tuple(sorted(expected[row]))


def test_a_bad_record_ends_the_preparation_unless_it_may_be_dropped_and_is_told(tmp_path):
    registry.WRITERS["nlvr2"].load()(tmp_path / "nlvr2", "tiny", 0)
    dataset = registry.DATASETS["nlvr2"].load()
    with pytest.raises(DataError, match="missing"):
        prepare_all(dataset, tmp_path / "nlvr2", tmp_path / "out", size=16)
    splits = prepare_all(dataset, tmp_path / "nlvr2", tmp_path / "out", size=16, skip_bad=1)
    assert sum(len(s.dropped) for s in splits) == 1


def test_a_folder_without_any_split_says_so(tmp_path):
    with pytest.raises(UserError, match="holds no split of sst2"):
        prepare_all(registry.DATASETS["sst2"].load(), tmp_path, tmp_path / "out")
