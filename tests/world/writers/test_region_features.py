from __future__ import annotations

import base64
import json
from pathlib import Path

import h5py
import numpy as np
import pytest

from holdfast.world.scene import make_scene
from holdfast.world.writers import coco, nlvr2, region_features, snli_ve
from world.writers.written import digests


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("region_features")
    region_features.write(path, "tiny", 3)
    return path


def rows(path: Path) -> list[list[str]]:
    content = path.read_bytes().decode("ascii")
    assert content.endswith("\r\n")
    assert content.count("\n") == content.count("\r\n")
    return [line.split("\t") for line in content.split("\r\n")[:-1]]


def array(cell: str, kind: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(cell, validate=True), kind)


def test_the_same_call_writes_the_same_bytes(root: Path, tmp_path: Path) -> None:
    region_features.write(tmp_path / "again", "tiny", 3)
    assert digests(root) == digests(tmp_path / "again")


def test_hdf5_rows_belong_to_the_images_of_the_map(root: Path) -> None:
    for name, kind, width in (
        ("coco_train", int, 1024),
        ("coco_val", int, 1024),
        ("flickr_train", str, 2048),
        ("flickr_test", str, 2048),
    ):
        index = json.loads((root / f"{name}_map.json").read_text())
        assert list(index) == [str(row) for row in range(len(index))]
        assert all(type(image_id) is kind for image_id in index.values())
        with h5py.File(root / f"faster_rcnn_{name}.h5") as file:
            assert set(file) == {"bbox_features", "bboxes", "num_boxes"}
            assert file["bbox_features"].shape == (len(index), 100, width)
            assert file["bboxes"].shape == (len(index), 100, 4)
            assert file["bbox_features"].dtype == file["bboxes"].dtype == np.float32
            counts = file["num_boxes"][:]
            assert counts.shape == (len(index),)
            for row in range(0, len(index), 7):
                count = int(counts[row])
                assert 10 <= count <= 100
                assert (np.abs(file["bbox_features"][row, :count]).sum(1) > 0).all()
                assert not file["bbox_features"][row, count:].any()


def test_six_columns_with_36_boxes_and_with_10_to_100(root: Path) -> None:
    fixed = rows(root / "trainval_36" / "trainval_resnet101_faster_rcnn_genome_36.tsv")
    free = rows(root / "trainval" / "trainval_resnet101_faster_rcnn_genome.tsv")
    assert (len(fixed), len(free)) == (16, 6)
    assert {row[3] for row in fixed} == {"36"}
    assert len({row[3] for row in free}) > 1
    for row in (*fixed, *free):
        image, width, height, count, boxes, values = row
        assert image.isdigit()
        assert 10 <= int(count) <= 100
        left, top, right, bottom = array(boxes, "<f4").reshape(int(count), 4).T
        assert ((left >= 0) & (left < right) & (right <= int(width))).all()
        assert ((top >= 0) & (top < bottom) & (bottom <= int(height))).all()
        assert array(values, "<f4").size == int(count) * 2048
    numbers = [int(row[0]) for row in fixed]
    assert numbers != sorted(numbers)


def test_ten_columns_have_the_height_first(root: Path) -> None:
    given = rows(root / "mscoco_imgfeat" / "val2014_obj36.tsv")
    assert len(given) == 80
    tall = 0
    for image, height, width, *labels, number, boxes, values in given:
        assert image.startswith("COCO_val2014_")
        assert len(image) == len("COCO_val2014_000000000042")
        count, things = int(number), coco.coco_scene(int(image[-12:]), 3).things
        assert count == len(things) + 2
        objects, object_scores, attributes, attribute_scores = labels
        assert array(objects, "<i8").size == array(attributes, "<i8").size == count
        assert array(object_scores, "<f4").tolist() == pytest.approx([0.9] * len(things) + [0.2] * 2)
        assert array(attribute_scores, "<f4").size == count
        _, _, right, bottom = array(boxes, "<f4").reshape(count, 4).T
        assert right.max() <= int(width)
        assert bottom.max() <= int(height)
        assert array(values, "<f4").size == count * 2048
        tall += int(height) > int(width)
    assert tall > 0


def test_at_the_papers_scale_a_row_of_lxmert_has_36_boxes() -> None:
    (*_, number, boxes, _) = region_features._lxmert("a", make_scene(0, 1), (96, 72), 0, whole=True)
    assert number == 36
    assert array(str(boxes), "<f4").size == 36 * 4


def test_every_picture_of_three_tasks_has_features(root: Path, tmp_path: Path) -> None:
    """As the tasks themselves name them: COCO's numbers, the names of NLVR2's files, the ids of Flickr30k."""
    nlvr2.write(tmp_path, "tiny", 3, images=False)
    for split, part in (("train", "train"), ("dev", "valid"), ("test1", "test")):
        lines = (tmp_path / "data" / f"{split}.json").read_text().splitlines()
        pairs = {json.loads(line)["identifier"].rpartition("-")[0] for line in lines}
        given = [row[0] for row in rows(root / "nlvr2_imgfeat" / f"{part}_obj36.tsv")]
        assert sorted(given) == sorted(f"{pair}-img{side}" for pair in pairs for side in (0, 1))
    for split in ("train2014", "val2014"):
        given = [row[0] for row in rows(root / "mscoco_imgfeat" / f"{split}_obj36.tsv")]
        assert given == [coco.file_name(split, number)[:-4] for number in coco.image_ids(split, "tiny")]
    snli_ve.write(tmp_path, "tiny", 3, images=False)
    flickr = {name for map_ in root.glob("flickr_*_map.json") for name in json.loads(map_.read_text()).values()}
    lines = [line for path in tmp_path.glob("*.jsonl") for line in path.read_text().splitlines()]
    shown = {json.loads(line)["captionID"] for line in lines}
    assert {name.partition(".jpg")[0] for name in shown} <= flickr


def test_features_carry_noun_and_colour_and_are_not_without_noise() -> None:
    # Nearest mean over boxes of other scenes tells the noun and the colour of a new box far above chance.
    nouns, colours, values = [], [], []
    for number in range(240):
        scene = make_scene(0, number)
        random = np.random.default_rng(number)
        seen = region_features.regions(scene, random, len(scene.things))
        values.append(region_features.features(scene, seen, random, 1024))
        nouns += [thing.noun for _, thing in seen if thing]
        colours += [thing.colour for _, thing in seen if thing]
    table = np.concatenate(values)
    half = len(table) // 2
    for names, least in ((np.array(nouns), 0.8), (np.array(colours), 0.5)):
        known = sorted(set(names[:half]))
        means = np.array([table[:half][names[:half] == name].mean(0) for name in known])
        test = np.isin(names[half:], known)
        far = ((table[half:][test][:, None] - means[None]) ** 2).sum(-1)
        assert np.mean(np.array(known)[far.argmin(1)] == names[half:][test]) > least
    again = region_features.features(scene, seen, np.random.default_rng(10_000), 1024)
    assert 0.05 < np.abs(again - values[-1]).mean() < 1.0
