"""Readers of labelled photographs, on files made by hand in the official layouts."""

import gzip

import numpy as np
import pytest
from scipy.io import savemat

from holdfast import registry
from holdfast.datasets.base import DataError, Reading

PICTURE = b"not decoded here"


def write(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def idx(values):
    array = np.array(values, np.uint8)
    return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()


def flowers(folder):
    write(folder, {f"jpg/image_{n:05d}.jpg": PICTURE for n in (1, 2, 3)})
    savemat(folder / "imagelabels.mat", {"labels": np.array([[77, 1, 102]], np.uint8)})
    savemat(folder / "setid.mat", {"trnid": np.array([[1, 3]]), "valid": np.array([[2]]), "tstid": np.array([[2]])})


def cars(folder):
    write(folder, {f"cars_{split}/0000{n}.jpg": PICTURE for split in ("train", "test") for n in (1, 2)})
    (folder / "devkit").mkdir()
    names = np.array([["AM General Hummer SUV 2000", "Acura RL Sedan 2012"]], object)
    savemat(folder / "devkit/cars_meta.mat", {"class_names": names})
    rows = np.empty((1, 2), [(n, object) for n in ("bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2", "class", "fname")])
    rows[0, 0], rows[0, 1] = (1, 1, 9, 9, 2, "00001.jpg"), (1, 1, 9, 9, 1, "00002.jpg")
    savemat(folder / "devkit/cars_train_annos.mat", {"annotations": rows})
    savemat(folder / "cars_test_annos_withlabels.mat", {"annotations": rows[:, :1]})


FILES = {
    "aircraft": {
        "fgvc-aircraft-2013b/data/variants.txt": "707-320\nA300B4\n",
        "fgvc-aircraft-2013b/data/images_variant_train.txt": "0034309 A300B4\n0000002 707-320\n",
        "fgvc-aircraft-2013b/data/images/0034309.jpg": PICTURE,
        "fgvc-aircraft-2013b/data/images/0000002.jpg": PICTURE,
    },
    "caltech101": {
        "101_ObjectCategories/BACKGROUND_Google/image_0001.jpg": PICTURE,
        "101_ObjectCategories/airplanes/image_0001.jpg": PICTURE,
        "101_ObjectCategories/water_lilly/image_0001.jpg": PICTURE,
    },
    "dtd": {
        "dtd/images/banded/banded_0002.jpg": PICTURE,
        "dtd/images/zigzagged/zigzagged_0001.jpg": PICTURE,
        "dtd/labels/train1.txt": "zigzagged/zigzagged_0001.jpg\nbanded/banded_0002.jpg\n",
    },
    "eurosat": {"2750/AnnualCrop/AnnualCrop_1.jpg": PICTURE, "2750/Forest/Forest_1.jpg": PICTURE},
    "food101": {
        "food-101/images/apple_pie/1005649.jpg": PICTURE,
        "food-101/images/waffles/7.jpg": PICTURE,
        "food-101/meta/classes.txt": "apple_pie\nwaffles\n",
        "food-101/meta/train.txt": "waffles/7\napple_pie/1005649\n",
    },
    "mnist": {
        "train-images-idx3-ubyte": idx(np.arange(2 * 28 * 28).reshape(2, 28, 28) % 251),
        "train-labels-idx1-ubyte.gz": gzip.compress(idx([7, 0])),
    },
    "oxford_pets": {
        "images/Abyssinian_1.jpg": PICTURE,
        "images/american_bulldog_10.jpg": PICTURE,
        "annotations/trainval.txt": "american_bulldog_10 2 2 1\nAbyssinian_1 1 1 1\n",
    },
    "sun397": {
        "Partitions/ClassName.txt": "/a/abbey\n/a/apartment_building/outdoor\n",
        "Partitions/Training_01.txt": "/a/apartment_building/outdoor/sun_a.jpg\n/a/abbey/sun_b.jpg\n",
        "SUN397/a/apartment_building/outdoor/sun_a.jpg": PICTURE,
        "SUN397/a/abbey/sun_b.jpg": PICTURE,
    },
}
MADE = {"flowers102": flowers, "stanford_cars": cars}
EXPECTED = {
    "aircraft": ("train", [("0034309", 1, "A300B4"), ("0000002", 0, "707-320")]),
    "caltech101": ("all", [("airplanes/image_0001", 0, "airplane"), ("water_lilly/image_0001", 1, "water lilly")]),
    "dtd": ("train", [("zigzagged/zigzagged_0001", 1, "zigzagged"), ("banded/banded_0002", 0, "banded")]),
    "eurosat": ("all", [("AnnualCrop/AnnualCrop_1", 0, "annual crop"), ("Forest/Forest_1", 1, "forest")]),
    "flowers102": ("train", [("image_00001", 76, "passion flower"), ("image_00003", 101, "blackberry lily")]),
    "food101": ("train", [("waffles/7", 1, "waffles"), ("apple_pie/1005649", 0, "apple pie")]),
    "mnist": ("train", [("train-0", 7, "7"), ("train-1", 0, "0")]),
    "oxford_pets": ("trainval", [("american_bulldog_10", 1, "american bulldog"), ("Abyssinian_1", 0, "Abyssinian")]),
    "stanford_cars": ("train", [("00001", 1, "Acura RL Sedan 2012"), ("00002", 0, "AM General Hummer SUV 2000")]),
    "sun397": (
        "train",
        [("a/apartment_building/outdoor/sun_a", 1, "outdoor apartment building"), ("a/abbey/sun_b", 0, "abbey")],
    ),
}


def make(name, folder):
    folder.mkdir(exist_ok=True)
    MADE[name](folder) if name in MADE else write(folder, FILES[name])
    return registry.DATASETS[name].load()


@pytest.mark.parametrize("name", EXPECTED)
def test_examples_have_their_class_and_its_name(name, tmp_path):
    dataset, (split, expected) = make(name, tmp_path), EXPECTED[name]
    assert dataset.holds(tmp_path)
    found = list(dataset.examples(tmp_path, split))
    assert [(each.id, each.target, each.extra["class_name"]) for each in found] == expected
    classes = dataset.classes(tmp_path)
    assert all(classes[target] == words for _, target, words in expected)
    for each in found:
        (image,) = each.images
        assert image.shape == (28, 28, 1) if name == "mnist" else image.read_bytes() == PICTURE


def test_mnist_keeps_its_pixels(tmp_path):
    first = next(make("mnist", tmp_path).examples(tmp_path, "train"))
    assert first.images[0][0, 5, 0] == 5


BROKEN = [
    (
        "aircraft",
        "fgvc-aircraft-2013b/data/images/0034309.jpg",
        None,
        "line 1: its image 0034309.jpg is missing",
    ),
    ("dtd", "dtd/labels/train1.txt", "zigzagged/zigzagged_0001.jpg\nstriped/a.jpg\n", "line 2: its class 'striped'"),
    ("food101", "food-101/meta/classes.txt", None, "classes.txt: no such file: unpack food-101.tar.gz"),
    ("caltech101", "101_ObjectCategories/airplanes/notes.txt", "x", "its name is not that of a picture"),
    ("mnist", "train-images-idx3-ubyte", b"\0\0\x08\x03\0\0\0\x02", "it is not an IDX file of bytes"),
    ("oxford_pets", "annotations/trainval.txt", "a_1 2 1 1\nb_1 3 1 1\n", "not numbered from 1 on"),
    ("flowers102", "setid.mat", b"MATLAB", "has no readable 'trnid'"),
    ("stanford_cars", "devkit/cars_meta.mat", b"", "has no readable 'class_names'"),
    ("sun397", "SUN397/a/abbey/sun_b.jpg", None, "line 2: its image a/abbey/sun_b.jpg is missing"),
    ("eurosat", "2750/Forest/Forest_1.jpg", None, "Forest: it has no pictures"),
]


@pytest.mark.parametrize(("name", "file", "content", "message"), BROKEN)
def test_what_is_broken_is_named(name, file, content, message, tmp_path):
    dataset = make(name, tmp_path)
    path = tmp_path / file
    path.unlink(missing_ok=True)
    if content is not None:
        write(tmp_path, {file: content})
    with pytest.raises(DataError, match=message):
        list(dataset.examples(tmp_path, EXPECTED[name][0]))


def test_bad_records_may_be_skipped(tmp_path):
    dataset, reading = make("sun397", tmp_path), Reading(skip=1)
    (tmp_path / "SUN397/a/abbey/sun_b.jpg").unlink()
    assert len(list(dataset.examples(tmp_path, "train", reading))) == 1
    assert len(reading.problems) == 1


def test_backgrounds_are_set_aside(tmp_path):
    dataset, reading = make("caltech101", tmp_path), Reading()
    list(dataset.examples(tmp_path, "all", reading))
    assert reading.aside == {"no class: background": 1}
