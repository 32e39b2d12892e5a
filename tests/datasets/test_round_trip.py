"""What the world writes, the readers read: neither side imports the other, so agreement is evidence for both."""

import ast
import hashlib
from importlib import import_module
from pathlib import Path
from unittest import mock

import pytest

import holdfast
from holdfast import registry
from holdfast.benchmarks.synthetic import world
from holdfast.data.images import decode
from holdfast.datasets.base import Dataset, Reading
from holdfast.datasets.check import check
from holdfast.world.whole import MARK

NAMES = sorted(registry.WRITERS)
NOT_WRITTEN = {
    "gqa": {"challenge_questions"},
    "region_features": {
        *("coco_test", "test2014_36", "test2015_36", "test2015_obj36", "vg_gqa_obj36", "gqa_testdev_obj36"),
        *("regions", "coco_regions", "flickr_regions", "nlvr2_regions", "vcr_regions"),
        *("uniter_coco_train2014", "uniter_coco_val2014", "uniter_flickr30k", "uniter_nlvr2_train", "uniter_nlvr2_dev"),
        *("uniter_nlvr2_test", "uniter_vcr_train", "uniter_vcr_val", "uniter_vcr_test"),
    },
}
"""Splits that the readers know and the world leaves out: further files of a format that it writes."""
PLANTED = {
    name: sum(module.PLANTED.values())
    for name in NAMES
    if hasattr(module := import_module(registry.WRITERS[name].module), "PLANTED")
}
"""Records that the world makes bad on purpose, as the official files have them."""


@pytest.fixture(scope="module")
def written(tiny_cache, tmp_path_factory) -> Path:
    """Every dataset at the `tiny` scale, each in a folder of its own name."""
    root = tmp_path_factory.mktemp("world")
    with mock.patch.dict("os.environ", HOLDFAST_CACHE=str(tiny_cache)):
        for name in NAMES:
            (root / name).symlink_to(world(name, "tiny"))
    return root


@pytest.mark.parametrize("name", NAMES)
def test_everything_written_is_read_without_a_problem(name, written, monkeypatch):
    monkeypatch.delenv("HOLDFAST_LINKS")  # as for a user who has linked nothing
    folder = (written / name).resolve()
    dataset: Dataset = registry.DATASETS[name].load()
    assert isinstance(dataset, Dataset)
    assert dataset.present(folder)
    total, ids, problems = 0, set(), []
    for split in set(dataset.splits) - NOT_WRITTEN.get(name, set()):
        reading = Reading(skip=PLANTED.get(name, 0))
        for example in dataset.examples(folder, split, reading):
            total += 1
            ids.add((split, example.id))
            for image in example.images[:1]:
                if total % 10 == 1:
                    pixels = decode(image, None)
                    assert pixels.ndim == 3
                    assert pixels.shape[2] == 3
        problems += reading.problems
    assert len(problems) == PLANTED.get(name, 0)
    assert total > 10
    assert len(ids) == total, "ids are unique within a split"


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_of_one_dataset_is_taken_for_no_other(name, written):
    present = {other for other in NAMES if registry.DATASETS[other].load().present(written / name)}
    assert name in present
    assert present - {name} <= {"coco", "nikolaus", "vqav2", "flickr30k_entities", "snli_ve"}, "those share pictures"


def test_check_finds_every_dataset_and_nothing_wrong(written):
    found = check(written, {name: registry.DATASETS[name].load() for name in NAMES})
    assert {finding.dataset for finding in found} == set(NAMES)
    absent = {(finding.dataset, finding.split) for finding in found if finding.verdict == "absent"}
    assert {(name, split) for name, splits in NOT_WRITTEN.items() for split in splits} <= absent
    bad = {finding.dataset: len(finding.problems) for finding in found if finding.problems}
    assert bad == PLANTED
    assert not any(finding.verdict == "whole" for finding in found if finding.official), "tiny is not the whole"


@pytest.mark.parametrize("name", ["vqav2", "clevr", "sst2", "cifar100"])
def test_another_seed_is_another_world_and_the_same_seed_the_same_bytes(name, written, tmp_path):
    def digest(folder: Path) -> str:
        total = hashlib.sha256()
        for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.name != MARK):
            total.update(str(path.relative_to(folder)).encode() + path.read_bytes())
        return total.hexdigest()

    write = registry.WRITERS[name].load()
    write(tmp_path / "same", "tiny", 0)
    write(tmp_path / "other", "tiny", 1)
    assert digest(tmp_path / "same") == digest((written / name).resolve())
    assert digest(tmp_path / "other") != digest((written / name).resolve())


def test_readers_and_writers_have_the_same_names_and_never_meet():
    root = Path(holdfast.__file__).parent
    readers = {path.stem for path in (root / "datasets").glob("*.py")} - {"__init__", "base", "check", "whole"}
    writers = {path.stem for path in (root / "world" / "writers").glob("*.py")} - {"__init__"}
    assert set(NAMES) == readers
    assert set(NAMES) <= writers
    for side, other in (("datasets", "holdfast.world"), ("world", "holdfast.datasets")):
        for path in (root / side).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                module = node.module if isinstance(node, ast.ImportFrom) else None
                assert not (module or "").startswith(other), path
