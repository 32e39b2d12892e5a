"""The door for files from elsewhere, on its own."""

import os
import socket
from pathlib import Path

import h5py
import numpy as np
import pytest
from PIL import Image

from holdfast import files
from holdfast.errors import UserError
from holdfast.files import (
    FileError,
    bounds,
    load_array,
    open_hdf5,
    open_image,
    open_inside,
    open_regular,
    own_array,
    read_inside,
    within,
)


@pytest.fixture(autouse=True)
def _no_links_allowed(monkeypatch):
    monkeypatch.delenv("HOLDFAST_LINKS", raising=False)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "7.txt").write_text("seven")
    return tmp_path / "inside"


def test_a_regular_file_is_read(folder):
    assert read_inside(folder, folder / "7.txt") == b"seven"


@pytest.mark.parametrize("path", ["../secret.txt", "link", "chain", "linked/secret.txt", "linked/../secret.txt"])
def test_nothing_outside_is_read(folder, path):
    (folder / "link").symlink_to(folder.parent / "secret.txt")
    (folder / "chain").symlink_to("link")
    (folder / "linked").symlink_to("..")
    with pytest.raises(FileError, match=r"outside .*inside: copy it there, or, .* set HOLDFAST_LINKS=/"):
        open_inside(folder, folder / path)


def test_a_link_within_the_folder_is_followed(folder):
    (folder / "link").symlink_to("7.txt")
    assert read_inside(folder, folder / "link") == b"seven"


def test_a_link_to_a_disk_that_the_user_named_is_followed(folder, monkeypatch):
    (folder / "link").symlink_to(folder.parent / "secret.txt")
    monkeypatch.setenv("HOLDFAST_LINKS", f"/nowhere:{folder.parent}")
    assert read_inside(folder, folder / "link") == b"secret"


def test_the_folder_itself_may_be_a_link(folder):
    (folder.parent / "moved").symlink_to(folder)
    assert read_inside(folder.parent / "moved", folder.parent / "moved" / "7.txt") == b"seven"


def test_the_hubs_cache_links_to_its_blobs(tmp_path):
    snapshot = tmp_path / "snapshots" / "0a1b"
    snapshot.mkdir(parents=True)
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / "99").write_text("weights")
    (snapshot / "train.parquet").symlink_to("../../blobs/99")
    with within(bounds(snapshot)), open_regular(snapshot / "train.parquet") as file:
        assert file.read() == b"weights"


def test_what_is_no_regular_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        (tmp_path / "device").symlink_to("/dev/zero")
        for name in ("pipe", "socket", "device"):
            with pytest.raises(FileError, match="a pipe, a socket or a device"):
                open_regular(tmp_path / name)
    with pytest.raises(IsADirectoryError):
        open_regular(tmp_path)


def test_a_format_that_starts_a_program_is_no_picture(tmp_path):
    """Pillow gives an EPS to Ghostscript."""
    Image.new("RGB", (4, 4)).save(tmp_path / "9.jpg", "EPS")
    with pytest.raises(OSError, match="cannot identify"), open_image(tmp_path / "9.jpg"):
        pass


@pytest.mark.parametrize("kind", files.FORMATS)
def test_each_allowed_format_is_read(tmp_path, kind):
    Image.new("RGB", (4, 3), "red").save(tmp_path / "picture", kind)
    with open_image(tmp_path / "picture") as image:
        assert image.size == (4, 3)


def test_a_picture_that_would_fill_the_memory_is_refused_unread(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MOST_PIXELS", 11)
    Image.new("1", (4, 3)).save(tmp_path / "9.png")
    with pytest.raises(FileError, match="4 x 3 pixels, more than 11: make it smaller"), open_image(tmp_path / "9.png"):
        pass


def test_an_hdf5_file_reads_no_other_file(tmp_path):
    (tmp_path / "secret").write_bytes(b"s" * 8)
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["values"] = np.zeros(2)
    with h5py.File(tmp_path / "traps.h5", "w") as file:
        file["own"] = np.arange(2)
        file.create_dataset("external", (8,), "u1", external=[(str(tmp_path / "secret"), 0, 8)])
        layout = h5py.VirtualLayout((2,), "f8")
        layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "values", (2,))
        file.create_virtual_dataset("virtual", layout)
        file["link"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "/values")
        file["soft"] = h5py.SoftLink("/link")
        file.create_group("group")
    with open_hdf5(tmp_path / "traps.h5") as file:
        assert own_array(file, "own")[:].tolist() == [0, 1]
        names = ("external", "virtual", "link", "soft", "group", "absent")
        assert [name for name in names if own_array(file, name) is not None] == []


@pytest.mark.parametrize("mode", ["", "r", "c"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_an_array_is_read_as_numpy_reads_it(tmp_path, mode, order):
    for number, array in enumerate(
        (np.arange(12.0).reshape(3, 4), np.array(["a", "bb"]), np.array(7), np.ones(5, ">i2"))
    ):
        path = tmp_path / f"{number}.npy"
        np.save(path, np.asarray(array, order=order))
        found = load_array(path, mode)
        assert found.dtype == array.dtype
        assert np.array_equal(found, array)
        assert isinstance(found, np.memmap) == bool(mode)


def test_an_array_of_objects_or_one_that_lies_is_refused(tmp_path):
    np.save(tmp_path / "objects.npy", np.array([{}], object), allow_pickle=True)
    np.save(tmp_path / "short.npy", np.ones(100))
    content = (tmp_path / "short.npy").read_bytes()
    (tmp_path / "short.npy").write_bytes(content[:-1])
    (tmp_path / "huge.npy").write_bytes(content.replace(b"(100,), }       ", b"(10000000000,), }", 1))
    (tmp_path / "pickle.npy").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    for name in ("objects", "short", "huge", "pickle"):
        for mode in ("", "r"):
            with pytest.raises(ValueError, match=r"holds objects, or breaks off|magic string"):
                load_array(tmp_path / f"{name}.npy", mode)
    os.mkfifo(tmp_path / "pipe.npy")
    with pytest.raises(FileError, match="a pipe, a socket or a device"):
        load_array(tmp_path / "pipe.npy")


def test_the_error_travels_between_processes():
    import pickle

    error = pickle.loads(pickle.dumps(FileError(Path("a.png"), "it is a trap", "remove it")))
    assert isinstance(error, UserError)
    assert str(error) == "a.png: it is a trap: remove it"
