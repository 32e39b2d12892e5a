"""The folders that CLiMB's authors tell their users to make, as they are described in its DATA_DOWNLOAD.md."""

import shutil

import pytest

from holdfast import registry
from holdfast.benchmarks.synthetic import world
from holdfast.datasets.check import check
from holdfast.world.whole import MARK

NAMES = ("vqav2", "nlvr2", "snli_ve", "vcr", "coco", "imagenet", "inaturalist2019", "places365")


def flat(source, into):
    """All pictures of a folder's folders in one, named by their numbers."""
    into.mkdir(parents=True, exist_ok=True)
    for path in source.rglob("*.jpg"):
        shutil.copy(path, into / path.name.rpartition("_")[2])


@pytest.fixture(scope="module")
def downloaded(tmp_path_factory, tiny_cache):
    data = tmp_path_factory.mktemp("data")
    own = {name: world(name, "tiny") for name in NAMES}
    without = shutil.ignore_patterns(MARK, "*.jpg")
    flat(own["coco"], data / "ms-coco" / "images")
    flat(own["vqav2"], data / "ms-coco" / "images")
    (data / "ms-coco" / "detections" / "annotations").mkdir(parents=True)
    for path in own["coco"].rglob("instances_*2017.json"):
        shutil.copy(path, data / "ms-coco" / "detections" / "annotations")
    shutil.copytree(own["vqav2"], data / "vqav2", ignore=without)
    shutil.copytree(own["nlvr2"], data / "nlvr2", ignore=shutil.ignore_patterns(MARK))
    for path in list((data / "nlvr2" / "images" / "train").rglob("*.png")):
        path.rename(data / "nlvr2" / "images" / "train" / path.name)
    shutil.copytree(own["snli_ve"], data / "snli-ve", ignore=shutil.ignore_patterns(MARK, "flickr30k_images"))
    shutil.copytree(own["snli_ve"] / "flickr30k_images", data / "flickr30k" / "flickr30k_images")
    shutil.copytree(own["vcr"], data / "vcr", ignore=shutil.ignore_patterns(MARK, "*.jsonl"))
    (data / "vcr" / "annotation").mkdir()
    for path in own["vcr"].rglob("*.jsonl"):
        shutil.copy(path, data / "vcr" / "annotation")
    for name, folder in (("imagenet", "ILSVRC2012"), ("inaturalist2019", "iNat2019"), ("places365", "Places365")):
        shutil.copytree(own[name], data / folder, ignore=shutil.ignore_patterns(MARK))
    return data


def verdicts(data):
    found = check(data, {name: registry.DATASETS[name].load() for name in registry.DATASETS})
    return {(each.dataset, each.split): each for each in found}


def test_the_layout_of_climbs_users_is_read_as_it_is(downloaded):
    found = verdicts(downloaded)
    assert set(NAMES) <= {name for name, _ in found}
    for name, splits in {
        "vqav2": ("train", "val"),
        "nlvr2": ("train", "dev", "test1"),
        "snli_ve": ("train", "dev", "test"),
        "vcr": ("train", "val"),
        "coco": ("train2017", "val2017"),
        "imagenet": ("train", "val"),
        "inaturalist2019": ("train", "val"),
        "places365": ("train", "val"),
    }.items():
        planted = verdicts_of(name)
        for split in splits:
            assert not found[name, split].absent, (name, split, found[name, split].absent)
            assert found[name, split].examples == planted[split], (name, split, found[name, split].problems[:2])


def test_a_download_with_some_of_the_splits_is_told_apart_from_a_whole_one(downloaded, tmp_path):
    others = shutil.ignore_patterns("train", "train.json", "test*")
    shutil.copytree(downloaded / "nlvr2", tmp_path / "nlvr2", ignore=others)
    found = verdicts(tmp_path)
    assert {name for name, _ in found} == {"nlvr2"}
    assert found["nlvr2", "dev"].verdict in ("part", "bad"), "the stub is smaller than the official split"
    assert found["nlvr2", "dev"].examples > 0
    assert {found["nlvr2", split].verdict for split in ("train", "test1")} == {"absent"}
    assert "no such file" in found["nlvr2", "train"].absent


def verdicts_of(name):
    """How many examples the world's own layout of a dataset has."""
    found = check(world(name, "tiny"), {name: registry.DATASETS[name].load()}, asked=True)
    return {each.split: each.examples for each in found}
