import os
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest

from holdfast.datasets.base import DataError, Reading
from holdfast.datasets.cifar100 import DATASET

RECORDS = {"train": 3, "test": 1}
PIXELS = np.random.default_rng(0).integers(0, 256, (3, 3072), dtype=np.uint8)


def content(count=3, **more):
    return {
        b"filenames": [b"apple_s_000001.png", b"crab_s_000002.png", b"bear_s_000003.png"][:count],
        b"batch_label": b"training batch 1 of 1",
        b"fine_labels": [0, 26, 3][:count],
        b"coarse_labels": [4, 13, 8][:count],
        b"data": PIXELS[:count],
        **more,
    }


def write(folder, split, value, protocol=2):
    root = folder / "cifar-100-python"
    root.mkdir(parents=True, exist_ok=True)
    (root / split).write_bytes(value if isinstance(value, bytes) else pickle.dumps(value, protocol=protocol))


def make(folder):
    write(folder, "train", content())
    write(folder, "test", content(1))
    names = [b"class %d" % number for number in range(100)]
    write(folder, "meta", {b"fine_label_names": names, b"coarse_label_names": names[:20]})


def python2():
    """A pickle as Python 2 wrote the official ones: byte strings as strings, by hand, opcode by opcode."""

    def text(value):
        return b"T" + struct.pack("<i", len(value)) + value

    array = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00t" + text(b"b") + b"tR"
    kind = (
        b"cnumpy\ndtype\n("
        + text(b"u1")
        + b"K\x00K\x01tR(K\x03"
        + text(b"|")
        + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    )
    state = b"(K\x01(K\x01M\x00\x0ct" + kind + b"\x89" + text(PIXELS[:1].tobytes()) + b"tb"
    items = text(b"data") + array + state
    items += text(b"fine_labels") + b"](K\x1ae" + text(b"coarse_labels") + b"](K\x0de"
    items += text(b"filenames") + b"](" + text(b"crab_s_000002.png") + b"e"
    return b"\x80\x02}(" + items + b"u."


def test_rows_become_pictures(tmp_path):
    make(tmp_path)
    assert DATASET.present(tmp_path)
    found = list(DATASET.examples(tmp_path, "train"))
    assert [(e.id, e.target, e.extra["coarse_label"]) for e in found] == [
        ("train-0", 0, 4),
        ("train-1", 26, 13),
        ("train-2", 3, 8),
    ]
    assert found[1].extra["filename"] == "crab_s_000002.png"
    assert found[1].extra["fine_label_name"] == "class 26"
    image = found[1].images[0]
    assert image.shape == (32, 32, 3)
    for row, column, channel in ((0, 0, 0), (0, 5, 1), (31, 31, 2), (7, 0, 0)):
        assert image[row, column, channel] == PIXELS[1, channel * 1024 + row * 32 + column]


def test_what_python_2_wrote_is_read(tmp_path):
    write(tmp_path, "train", python2())
    (found,) = DATASET.examples(tmp_path, "train")
    assert (found.target, found.extra["coarse_label"], found.extra["filename"]) == (26, 13, "crab_s_000002.png")
    np.testing.assert_array_equal(found.images[0].transpose(2, 0, 1).reshape(-1), PIXELS[0])
    real = pickle.loads(python2(), encoding="bytes")  # our bytes are what NumPy's own loader takes them for
    np.testing.assert_array_equal(real[b"data"], PIXELS[:1])


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
def test_keys_may_be_strings_in_any_protocol(tmp_path, protocol):
    value = {key.decode(): entry for key, entry in content().items()}
    value["data"] = np.asfortranarray(value["data"])
    write(tmp_path, "train", value, protocol)
    found = list(DATASET.examples(tmp_path, "train"))
    np.testing.assert_array_equal(found[2].images[0].transpose(2, 0, 1).reshape(-1), PIXELS[2])


class Malicious:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (self.path,))


def test_a_malicious_pickle_executes_nothing(tmp_path):
    trap = tmp_path / "trap"
    write(tmp_path, "train", {**content(), b"more": Malicious(str(trap))})
    with pytest.raises(DataError, match=r"posix\.mkdir, which no CIFAR file needs"):
        list(DATASET.examples(tmp_path, "train"))
    assert not trap.exists()


@pytest.mark.parametrize(
    "code",
    [
        b"cos\nsystem\n(S'true'\ntR.",
        b"cbuiltins\neval\n(S'1'\ntR.",
        b"c__builtin__\nbytes\n(J\xff\xff\xff\x7ftR.",  # two gigabytes of nothing
        b"cnumpy\nload\n(S'x'\ntR.",
        b"cnumpy.core.multiarray\n_reconstruct\n(tR.",
        b"r\xff\xff\xff\xff.",  # a memo index that would take gigabytes
        b"\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.",  # bytes of an absurd length
        b"(" * 3000 + b"t" * 3000 + b".",
        b"]\x94h\x00a.",
        b"N.",
        b"",
        b"PK\x03\x04 not a pickle",
    ],
)
def test_what_is_no_cifar_pickle_is_refused(tmp_path, code):
    write(tmp_path, "train", code)
    with pytest.raises(DataError, match=r"cifar-100-python/train: it is not a CIFAR pickle|its data is no"):
        list(DATASET.examples(tmp_path, "train"))


@pytest.mark.parametrize(
    "change",
    [
        {b"fine_labels": [0, 1]},
        {b"coarse_labels": None},
        {b"filenames": [b"a.png"]},
        {b"data": PIXELS.astype(np.int64)},
        {b"data": PIXELS[:, :3000]},
        {b"data": PIXELS[0]},
        {b"data": [1, 2]},
        {b"data": np.array([[None] * 3072])},
    ],
)
def test_columns_that_do_not_go_together_are_refused(tmp_path, change):
    write(tmp_path, "train", content(**{}) | change)
    with pytest.raises(DataError):
        list(DATASET.examples(tmp_path, "train", Reading(skip=100)))


def test_a_label_outside_the_classes_is_told(tmp_path):
    make(tmp_path)
    write(tmp_path, "train", content() | {b"fine_labels": [0, 100, 3]})
    reading = Reading(skip=1)
    assert [e.id for e in DATASET.examples(tmp_path, "train", reading)] == ["train-0", "train-2"]
    assert reading.problems[0].record == "image 1"
    assert "not one of 0 to 99" in reading.problems[0].what


@pytest.mark.slow
def test_the_real_files_have_the_official_counts():
    if "HOLDFAST_REAL_DATA" not in os.environ:
        pytest.skip("set HOLDFAST_REAL_DATA to a folder with cifar-100-python")
    folder = Path(os.environ["HOLDFAST_REAL_DATA"])
    if not DATASET.present(folder):
        pytest.skip(f"there is no cifar-100-python in {folder}")
    for split, count in DATASET.counts.items():
        targets = [e.target for e in DATASET.examples(folder, split)]
        assert len(targets) == count
        assert set(np.bincount(targets)) == {count // 100}
