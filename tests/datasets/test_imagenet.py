import numpy as np
import pytest

from holdfast.datasets.base import DataError, Reading
from holdfast.datasets.imagenet import DATASET

RECORDS = {"train": 4, "val": 3, "test": 1}
# In sorted order 0, 1, 2; the devkit counts them otherwise.
FISH, DOG, CRANE = "n01440764", "n02105855", "n03126707"
DEVKIT = {1: CRANE, 2: FISH, 3: DOG}
VAL = [FISH, CRANE, DOG]


def touch(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")


def train(root):
    for wnid, number in ((FISH, 10026), (FISH, 3), (DOG, 2933), (CRANE, 1)):
        touch(root / "train" / wnid / f"{wnid}_{number}.JPEG")
    touch(root / "test" / "ILSVRC2012_test_00000001.JPEG")


def flat_val(root):
    for number in (1, 2, 3):
        touch(root / "val" / f"ILSVRC2012_val_{number:08d}.JPEG")


def devkit(folder):
    from scipy.io import savemat

    table = np.zeros(4, dtype=[("ILSVRC2012_ID", "O"), ("WNID", "O"), ("words", "O"), ("num_children", "O")])
    for row, (number, wnid) in enumerate(DEVKIT.items()):
        table[row] = (number, wnid, "words", 0)
    table[3] = (1001, "n00001740", "entity", 3)  # no leaf: no class
    data = folder / "ILSVRC2012_devkit_t12" / "data"
    data.mkdir(parents=True)
    savemat(data / "meta.mat", {"synsets": table})
    numbers = {wnid: number for number, wnid in DEVKIT.items()}
    (data / "ILSVRC2012_validation_ground_truth.txt").write_text("".join(f"{numbers[wnid]}\n" for wnid in VAL))


def make(folder):
    """Kaggle's layout, the one with most text in it."""
    root = folder / "ILSVRC" / "Data" / "CLS-LOC"
    train(root)
    flat_val(root)
    rows = [f"ILSVRC2012_val_{number:08d},{wnid} 1 2 3 4 {wnid} 5 6 7 8\n" for number, wnid in enumerate(VAL, 1)]
    (folder / "LOC_val_solution.csv").write_text("ImageId,PredictionString\n" + "".join(rows))
    (folder / "LOC_synset_mapping.txt").write_text(f"{FISH} tench\n{DOG} sheepdog\n{CRANE} crane, hoist")


def test_train_is_counted_by_sorted_wordnet_ids(tmp_path):
    train(tmp_path)
    assert DATASET.present(tmp_path)
    found = [(e.id, e.target, e.images[0].name) for e in DATASET.examples(tmp_path, "train")]
    assert found == [
        (f"{FISH}_10026", 0, f"{FISH}_10026.JPEG"),
        (f"{FISH}_3", 0, f"{FISH}_3.JPEG"),
        (f"{DOG}_2933", 1, f"{DOG}_2933.JPEG"),
        (f"{CRANE}_1", 2, f"{CRANE}_1.JPEG"),
    ]
    assert [(e.id, e.target) for e in DATASET.examples(tmp_path, "test")] == [("ILSVRC2012_test_00000001", None)]


def test_the_three_layouts_of_val_agree(tmp_path):
    expected = {"ILSVRC2012_val_00000001": 0, "ILSVRC2012_val_00000002": 2, "ILSVRC2012_val_00000003": 1}
    folders = [tmp_path / name for name in ("kaggle", "flat", "prepared", "alone")]
    make(folders[0])
    for folder in folders[1:3]:
        train(folder)
    flat_val(folders[1])
    devkit(folders[1])
    for number, wnid in enumerate(VAL, 1):
        touch(folders[2] / "val" / wnid / f"ILSVRC2012_val_{number:08d}.JPEG")
    flat_val(folders[3])
    devkit(folders[3])  # without train, the devkit knows the classes
    for folder in folders:
        assert DATASET.present(folder)
        found = list(DATASET.examples(folder, "val"))
        assert {e.id: e.target for e in found} == expected
        assert all(e.images[0].is_file() for e in found)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (f"train/{FISH}/{DOG}_7.JPEG", f"it is in the folder of {FISH}"),
        (f"train/{FISH}/list.txt", "not that of a picture"),
        ("train/others/1.JPEG", "others is not one of the classes"),
        ("train/1.JPEG", "1.JPEG is not one of the classes"),
    ],
)
def test_what_lies_in_the_wrong_place_is_told(tmp_path, name, words):
    train(tmp_path)
    touch(tmp_path / name)
    reading = Reading(skip=1)
    assert len(list(DATASET.examples(tmp_path, "train", reading))) == 4
    assert words in str(reading.problems[0])


def test_missing_pictures_and_missing_labels_are_told(tmp_path):
    make(tmp_path)
    val = tmp_path / "ILSVRC" / "Data" / "CLS-LOC" / "val"
    (val / "ILSVRC2012_val_00000002.JPEG").rename(val / "ILSVRC2012_val_00000009.JPEG")
    reading = Reading(skip=5)
    assert len(list(DATASET.examples(tmp_path, "val", reading))) == 2
    assert {problem.what for problem in reading.problems} == {
        "its image is missing",
        "it has no label in LOC_val_solution.csv",
    }


def test_a_flat_val_without_labels_and_a_broken_table_are_refused(tmp_path):
    train(tmp_path)
    flat_val(tmp_path)
    with pytest.raises(DataError, match="have no labels"):
        list(DATASET.examples(tmp_path, "val"))
    devkit(tmp_path)
    meta = tmp_path / "ILSVRC2012_devkit_t12" / "data" / "meta.mat"
    meta.write_bytes(meta.read_bytes()[:200])
    with pytest.raises(DataError, match="not a table of synsets"):
        list(DATASET.examples(tmp_path, "val"))


def test_a_part_of_the_train_folder_keeps_the_numbers_of_the_whole(tmp_path):
    devkit(tmp_path)
    touch(tmp_path / "train" / CRANE / f"{CRANE}_1.JPEG")
    assert [e.target for e in DATASET.examples(tmp_path, "train")] == [2]
