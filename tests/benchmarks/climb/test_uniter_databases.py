"""UNITER's image databases: what reaches the model is what stands in them, for all four tasks."""

import io
import json

import lmdb
import msgpack
import numpy as np
import pytest
import torch

from holdfast.benchmarks.climb.benchmark import Climb
from holdfast.benchmarks.climb.regions import with_regions
from holdfast.benchmarks.climb.stream import PARTS
from holdfast.benchmarks.climb.tasks import Place, picture_names, read, vocabulary_file
from holdfast.benchmarks.synthetic import world
from holdfast.data.table import Data
from holdfast.datasets.base import Reading
from holdfast.datasets.vcr import DATASET as VCR
from holdfast.errors import UserError
from holdfast.types import Wants

WIDTH, GIVEN, DETECTED = 6, 3, 15


def arrays(name, count, sure=True):
    """The arrays of an image, which follow from its name; five of the detected boxes are below the threshold."""
    random = np.random.default_rng(sum(name.encode()))
    corners = np.sort(random.random((count, 2, 2)), axis=1).reshape(count, 4)
    found = {
        "features": random.standard_normal((count, WIDTH)).astype(np.float16),
        "norm_bb": np.concatenate([corners, corners[:, 2:] - corners[:, :2]], 1).astype(np.float16),
    }
    if sure:
        found["conf"] = np.linspace(0.9, 0.2 + 0.7 * 5 / count, count).astype(np.float16)[:, None]
        found["conf"][-5:] = 0.1
    return found


def packed(array):
    """As msgpack-numpy writes it."""
    return {b"nd": True, b"type": array.dtype.str, b"kind": b"", b"shape": array.shape, b"data": array.tobytes()}


def blob(found):
    out = io.BytesIO()
    np.savez_compressed(out, **found, allow_pickle=True)
    return out.getvalue()


def write_lmdb(folder, images, compressed):
    folder.mkdir(parents=True)
    with lmdb.open(str(folder), map_size=1 << 26) as environment, environment.begin(write=True) as transaction:
        for name, found in images.items():
            plain = msgpack.packb({key: packed(array) for key, array in found.items()}, use_bin_type=True)
            transaction.put(name.encode(), blob(found) if compressed else plain)
        transaction.put(b"__keys__", json.dumps(list(images)).encode())


def stills(split):
    examples = VCR.examples(world("vcr", "tiny"), split, Reading(skip=10))
    return list(dict.fromkeys(each.extra["img_id"] for each in examples))


@pytest.fixture(scope="module")
def databases(tmp_path_factory, tiny_cache):
    """Databases of VCR: detected boxes in an LMDB of each kind, given ones in files."""
    folder = tmp_path_factory.mktemp("features")
    for split, compressed in (("train", False), ("val", True)):
        ids = stills(split)
        names = {each: each.replace("-", "_") for each in ids}
        detected = {f"vcr_{name}.npz": arrays(each, DETECTED) for each, name in names.items()}
        kind = "feat_th0.2_max100_min10" + "_compressed" * compressed
        write_lmdb(folder / "img_db" / f"vcr_{split}" / kind, detected, compressed)
        given = folder / "img_db" / f"vcr_gt_{split}"
        given.mkdir()
        for each, name in names.items():
            (given / f"vcr_gt_{name}.npz").write_bytes(blob(arrays(f"gt {each}", GIVEN, sure=False)))
    return folder


def test_a_question_of_vcr_has_the_boxes_of_its_objects_and_then_the_detected_ones(databases):
    place = Place(scale="tiny")
    words = vocabulary_file(Wants(), place)
    splits = [read("vcr", part, place, vocabulary=words, fit={"pictures": False}) for part in PARTS]
    for split in with_regions("vcr", splits, place, str(databases)):
        rows = np.linspace(0, len(split.ids) - 1, 9).astype(np.int64)
        (part,) = Data([split.table]).fetch(rows, torch.device("cpu")).parts
        official = {
            e.id: e for which in ("train", "val") for e in VCR.examples(world("vcr", "tiny"), which, Reading(10))
        }
        for row, name in enumerate(split.ids[rows].tolist()):
            (still,) = picture_names("vcr", official[name])
            first, second = arrays(f"gt {still}", GIVEN), arrays(still, DETECTED)
            count = GIVEN + DETECTED - 5
            assert part.inputs["region_count"][row] == count, "ten boxes are above the threshold"
            features = np.concatenate([first["features"], second["features"]])[:count]
            boxes = np.concatenate([first["norm_bb"], second["norm_bb"]])[:count, :4]
            assert np.array_equal(part.inputs["regions"][row][:count].numpy(), features)
            assert part.inputs["boxes"][row][:count].numpy() == pytest.approx(boxes, abs=1e-6)


def test_vcr_qar_sees_the_regions_of_vcr(databases):
    place = Place(scale="tiny")
    words = vocabulary_file(Wants(), place)
    found = []
    for name in ("vcr", "vcr-qar"):
        splits = [read(name, part, place, vocabulary=words, fit={"pictures": False}) for part in PARTS]
        found.append([split.table.inputs for split in with_regions(name, splits, place, str(databases))])
    for one, other in zip(*found, strict=True):
        for column in ("regions", "boxes", "region_count"):
            assert torch.equal(one[column].index, other[column].index)
            assert torch.equal(one[column].values, other[column].values)
    Climb(scale="tiny", order="vcr-qar", features=str(databases)).check(Wants(sees="regions"))


def test_features_are_found_among_the_official_files(databases, tmp_path):
    (tmp_path / "vcr").symlink_to(world("vcr", "tiny"))
    for name in ("vqav2", "nlvr2", "snli_ve"):
        (tmp_path / name).symlink_to(world(name, "tiny"))
    (tmp_path / "uniter").symlink_to(databases)
    own = Climb(scale="paper", order="vcr", data=str(tmp_path), train=16, scored=8, skip_bad=10)
    own.check(Wants(sees="regions"))
    setup = own.setup(Wants(sees="regions"))
    assert setup.inputs.image is None
    assert setup.inputs.regions == (GIVEN + DETECTED - 5, WIDTH)
    with pytest.raises(UserError, match=r"no features of the images of nlvr2: add nlvr2_imgfeat/train_obj36.tsv"):
        Climb(scale="paper", order="vcr>nlvr2", data=str(tmp_path), skip_bad=10).check(Wants(sees="regions"))


def test_what_is_damaged_is_named(databases, tmp_path):
    folder = tmp_path / "vcr_val"
    folder.mkdir()
    good = blob(arrays("a", 12))
    cases = {
        "vcr_val_0.npz": good,
        "vcr_val_1.npz": good[:-40],
        "other_val_2.npz": good,
        "vcr_val_3.npz": blob({"features": np.zeros((3, 2), np.float16), "norm_bb": np.zeros((4, 6), np.float16)}),
        "vcr_val_4.npz": blob(
            {"features": np.full((1, 2), np.nan, np.float16), "norm_bb": np.zeros((1, 6), np.float16)}
        ),
    }
    for name, content in cases.items():
        (folder / name).write_bytes(content)
    from holdfast.datasets.region_features import DATASET

    reading = Reading(skip=10)
    found = list(DATASET.examples(tmp_path, "uniter_vcr_val", reading))
    assert [each.id for each in found] == ["val-0"]
    told = [str(problem) for problem in reading.problems]
    for words in ("vcr_val_1.npz: it is damaged", "is not that of an image", "do not match", "not finite"):
        assert any(words in each for each in told), (words, told)
