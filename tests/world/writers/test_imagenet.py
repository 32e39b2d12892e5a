from __future__ import annotations

import csv
import hashlib
from collections import Counter
from pathlib import Path

import pytest
from PIL import Image
from scipy.io import loadmat

from holdfast.world.writers import imagenet
from world.writers.written import digests, look


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("imagenet")
    for layout in imagenet.LAYOUTS:
        imagenet.write(path / layout, "tiny", 3, layout=layout)
    return path


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def truth(root: Path) -> dict[str, str]:
    """The wnid of each val image, by the folders of the prepared layout."""
    return {path.name: path.parent.name for path in (root / "prepared" / "val").glob("*/*.JPEG")}


def test_the_same_call_writes_the_same_bytes(root: Path, tmp_path: Path) -> None:
    imagenet.write(tmp_path / "again", "tiny", 3)
    imagenet.write(tmp_path / "other", "tiny", 4)
    assert digests(root / "devkit") == digests(tmp_path / "again")
    assert digests(root / "devkit") != digests(tmp_path / "other")


def test_an_unknown_layout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there are devkit, prepared, kaggle"):
        imagenet.write(tmp_path, "tiny", 0, layout="flat")


def test_train_is_a_folder_for_each_wnid(root: Path) -> None:
    folders = sorted((root / "devkit" / "train").iterdir())
    assert len(folders) == 10
    assert "n02105855" in {folder.name for folder in folders}
    names = [path for folder in folders for path in folder.iterdir()]
    assert len(names) == 203
    for path in names:
        wnid, number = path.stem.split("_")
        assert wnid == path.parent.name
        assert len(wnid) == 9
        assert number.isdigit()
        assert path.suffix == ".JPEG"


def test_the_three_layouts_hold_the_same_val_and_labels(root: Path) -> None:
    by_name = truth(root)
    assert Counter(by_name.values()) == dict.fromkeys(sorted(set(by_name.values())), 5)
    flat, kaggle = root / "devkit" / "val", root / "kaggle" / "ILSVRC" / "Data" / "CLS-LOC" / "val"
    for name, wnid in by_name.items():
        assert digest(flat / name) == digest(root / "prepared" / "val" / wnid / name) == digest(kaggle / name)
    # The devkit: one number a line, in the order of the images, through the table of synsets.
    table = loadmat(str(root / "devkit/ILSVRC2012_devkit_t12/data/meta.mat"), squeeze_me=True)["synsets"]
    leaves = {int(row["ILSVRC2012_ID"]): str(row["WNID"]) for row in table if row["num_children"] == 0}
    assert sorted(leaves) == list(range(1, 11))
    assert len(table) > len(leaves)  # inner nodes are no classes
    lines = (root / "devkit/ILSVRC2012_devkit_t12/data/ILSVRC2012_validation_ground_truth.txt").read_text()
    assert [leaves[int(line)] for line in lines.split("\n")[:-1]] == [by_name[name] for name in sorted(by_name)]
    # Their order is not that of the sorted wnids.
    assert [leaves[number] for number in sorted(leaves)] != sorted(leaves.values())
    # Kaggle: the first word of the prediction string.
    with (root / "kaggle" / "LOC_val_solution.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {f"{row['ImageId']}.JPEG": row["PredictionString"].split()[0] for row in rows} == by_name
    assert {len(row["PredictionString"].split()) for row in rows} == {5, 10}
    mapping = [line.split(" ", 1) for line in (root / "kaggle" / "LOC_synset_mapping.txt").read_text().splitlines()]
    assert [wnid for wnid, _ in mapping] == sorted(set(by_name.values()))
    words = Counter(name for _, name in mapping)
    assert words["crane"] == 2  # English names are not unique


def test_the_traps_among_the_files(root: Path) -> None:
    train = root / "devkit" / "train"
    assert look(train / "n02105855" / "n02105855_2933.JPEG")[0] == "PNG"
    kinds = Counter(look(path) for path in (root / "devkit").rglob("*.JPEG"))
    assert kinds["PNG", "RGB"] == 1
    assert kinds["JPEG", "CMYK"] == 2
    assert kinds["JPEG", "L"] >= 2
    assert kinds["JPEG", "RGB"] > 200
    shapes = set()
    for path in (root / "devkit" / "val").iterdir():
        with Image.open(path) as image:
            shapes.add(image.size)
    assert len(shapes) > 3
