import base64
import json

import h5py
import numpy as np
import pytest

from holdfast.datasets.base import DataError, Reading
from holdfast.datasets.region_features import DATASET

RECORDS = {"coco_train": 3, "trainval_36": 2, "train2014_obj36": 1}
RANDOM = np.random.default_rng(0)
FEATURES = RANDOM.normal(size=(3, 4, 2048)).astype(np.float32)
BOXES = np.tile(np.array([1, 2, 30, 40], np.float32), (3, 4, 1))
COUNTS = np.array([4, 1, 3])


def encode(array, kind="<f4"):
    return base64.b64encode(np.asarray(array).astype(kind).tobytes())


def bottom_up(number, count, boxes=None, features=None):
    boxes = BOXES[0, :count] if boxes is None else boxes
    features = FEATURES[0, :count] if features is None else features
    cells = [b"%d" % number, b"640", b"480", b"%d" % count, encode(boxes), encode(features)]
    return b"\t".join(cells) + b"\r\n"


def lxmert(name, count):
    ids, sure = np.arange(count), np.full(count, 0.5)
    more = [encode(ids, "<i8"), encode(sure), encode(ids + 7, "<i8"), encode(sure)]
    cells = [name, b"480", b"640", *more, b"%d" % count, encode(BOXES[0, :count]), encode(FEATURES[1, :count])]
    return b"\t".join(cells) + b"\n"


def hdf5(path, features=FEATURES, boxes=BOXES, counts=COUNTS):
    with h5py.File(path, "w") as file:
        file["bbox_features"] = features
        file["bboxes"] = boxes
        file["num_boxes"] = counts


def make(folder):
    folder.mkdir(parents=True, exist_ok=True)
    hdf5(folder / "faster_rcnn_coco_train.h5")
    (folder / "coco_train_map.json").write_text(json.dumps({"0": 9, "2": 25, "1": 30}))
    (folder / "trainval_36").mkdir()
    name = "trainval_resnet101_faster_rcnn_genome_36.tsv"
    (folder / "trainval_36" / name).write_bytes(bottom_up(42, 2) + bottom_up(7, 3))
    (folder / "mscoco_imgfeat").mkdir()
    (folder / "mscoco_imgfeat" / "train2014_obj36.tsv").write_bytes(lxmert(b"COCO_train2014_000000000042", 3))


def test_rows_of_an_hdf5_file_go_to_the_images_of_the_map(tmp_path):
    make(tmp_path)
    assert DATASET.present(tmp_path)
    found = list(DATASET.examples(tmp_path, "coco_train"))
    assert [e.id for e in found] == ["9", "30", "25"]
    assert [e.extra["features"].shape for e in found] == [(4, 2048), (1, 2048), (3, 2048)]
    np.testing.assert_array_equal(found[2].extra["features"], FEATURES[2, :3])
    np.testing.assert_array_equal(found[1].extra["boxes"], [[1, 2, 30, 40]])
    assert found[0].extra["features"].dtype == np.float32


def test_without_a_map_rows_are_rows(tmp_path):
    hdf5(tmp_path / "faster_rcnn_flickr_val.h5", counts=COUNTS[:, None])
    assert [e.id for e in DATASET.examples(tmp_path, "flickr_val")] == ["row-0", "row-1", "row-2"]


def test_both_forms_of_tsv_are_read(tmp_path):
    make(tmp_path)
    first, second = DATASET.examples(tmp_path, "trainval_36")
    assert (first.id, second.id, first.extra["image_w"], first.extra["image_h"]) == ("42", "7", 640, 480)
    np.testing.assert_array_equal(second.extra["features"], FEATURES[0, :3])
    (third,) = DATASET.examples(tmp_path, "train2014_obj36")
    assert (third.id, third.extra["image_w"], third.extra["image_h"]) == ("COCO_train2014_000000000042", 640, 480)
    np.testing.assert_array_equal(third.extra["features"], FEATURES[1, :3])
    assert third.extra["attrs_id"].tolist() == [7, 8, 9]


def test_adaptive_features_come_in_several_files(tmp_path):
    (tmp_path / "trainval").mkdir()
    for part in (1, 0):
        name = f"karpathy_train_resnet101_faster_rcnn_genome.tsv.{part}"
        (tmp_path / "trainval" / name).write_bytes(bottom_up(part, part + 1))
    assert DATASET.present(tmp_path)
    found = list(DATASET.examples(tmp_path, "trainval"))
    assert [(e.id, len(e.extra["boxes"])) for e in found] == [("0", 1), ("1", 2)]
    with pytest.raises(DataError, match="no such file"):
        list(DATASET.examples(tmp_path / "elsewhere", "trainval"))


@pytest.mark.parametrize("width", [1, 768, 1280, 4096])
def test_any_width_is_read(tmp_path, width):
    hdf5(tmp_path / "faster_rcnn_coco_val.h5", features=np.zeros((3, 4, width), np.float32))
    assert {e.extra["features"].shape[1] for e in DATASET.examples(tmp_path, "coco_val")} == {width}


def test_no_width_at_all_is_refused(tmp_path):
    hdf5(tmp_path / "faster_rcnn_coco_val.h5", features=np.zeros((3, 4, 0), np.float32))
    with pytest.raises(DataError, match="its features are 0 wide, not 1 to 65536"):
        list(DATASET.examples(tmp_path, "coco_val"))


@pytest.mark.parametrize(
    "change",
    [
        {"features": FEATURES[0]},
        {"features": FEATURES.astype(np.int32)},
        {"boxes": BOXES[:2]},
        {"boxes": BOXES[:, :, :3]},
        {"counts": COUNTS[:2]},
        {"counts": np.array([b"1", b"2", b"3"])},
    ],
)
def test_arrays_that_do_not_go_together_are_refused(tmp_path, change):
    hdf5(tmp_path / "faster_rcnn_coco_val.h5", **change)
    with pytest.raises(DataError, match=r"faster_rcnn_coco_val.h5"):
        list(DATASET.examples(tmp_path, "coco_val"))


def test_a_file_of_an_absurd_size_or_cut_in_half_or_elsewhere_is_refused(tmp_path):
    path = tmp_path / "faster_rcnn_coco_val.h5"
    with h5py.File(path, "w") as file:  # terabytes that are declared and not there
        file.create_dataset("bbox_features", (10**9, 100, 2048), "f4", chunks=(1, 100, 2048))
        file.create_dataset("bboxes", (10**9, 100, 4), "f4", chunks=(1, 100, 4))
        file.create_dataset("num_boxes", (10**9,), "i4", chunks=(1000,))
    with pytest.raises(DataError, match="do not match"):
        list(DATASET.examples(tmp_path, "coco_val"))
    hdf5(path)
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(DataError, match="not a complete HDF5 file"):
        list(DATASET.examples(tmp_path, "coco_val"))
    with h5py.File(path, "w") as file:
        for name in ("bbox_features", "bboxes", "num_boxes"):
            file[name] = h5py.ExternalLink("/etc/passwd", name)
    with pytest.raises(DataError, match="of its own"):
        list(DATASET.examples(tmp_path, "coco_val"))


def test_bad_rows_are_told(tmp_path):
    make(tmp_path)
    features = FEATURES.copy()
    features[0, 0, 0] = np.nan
    hdf5(tmp_path / "faster_rcnn_coco_train.h5", features=features, counts=np.array([4, 5, 3]))
    (tmp_path / "coco_train_map.json").write_text(json.dumps({"0": 9, "1": 30, "2": 25, "3": 1, "x": 2}))
    reading = Reading(skip=9)
    assert [e.id for e in DATASET.examples(tmp_path, "coco_train", reading)] == ["25"]
    assert [problem.record for problem in reading.problems] == ["row 3", "row x", "row 0", "row 1"]


def test_a_box_without_size_in_an_hdf5_file_is_told(tmp_path):
    boxes = BOXES.copy()
    boxes[1, 0] = [5, 5, 5, 9]
    boxes[2, 3] = 0  # behind its three boxes: never read
    hdf5(tmp_path / "faster_rcnn_coco_val.h5", boxes=boxes)
    reading = Reading(skip=1)
    assert [e.id for e in DATASET.examples(tmp_path, "coco_val", reading)] == ["row-0", "row-2"]
    assert [(p.record, p.what) for p in reading.problems] == [("row 1", "one of its boxes has no size")]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (bottom_up(1, 2).replace(b"\t", b" ", 1), "5 columns"),
        (bottom_up(1, 2)[:-40] + b"\r\n", "features"),
        (bottom_up(1, 2, features=FEATURES[0, :2, :1024]), "width 2048"),
        (bottom_up(1, 2, boxes=[[1, 1, 1, 5], [1, 1, 2, 2]]), "no size"),
        (bottom_up(1, 2, boxes=[[1, 1, np.inf, 5], [1, 1, 2, 2]]), "not finite"),
        (bottom_up(1, 2).replace(b"\t2\t", b"\t999999999\t"), "num_boxes"),
        (bottom_up(1, 2).replace(b"\t2\t", b"\t0\t"), "num_boxes"),
        (b"\r\n", "1 columns"),
        (b"x" * (1 << 26) + b"\n", "far too long"),
    ],
    ids=["tab", "cut", "width", "size", "infinite", "absurd", "none", "empty", "long"],
)
def test_a_bad_line_is_told(tmp_path, line, words):
    (tmp_path / "train2014_obj36.tsv").write_bytes(line + lxmert(b"a", 2))
    reading = Reading(skip=1)
    assert [e.id for e in DATASET.examples(tmp_path, "train2014_obj36", reading)] == ["a"]
    assert words in reading.problems[0].what
    assert reading.problems[0].record == "line 1"
