"""A user's file is known by where it is, not by the path with which it was asked for."""

from pathlib import Path

from holdfast.usercode import file_of, load


def test_one_relative_path_means_another_file_in_another_folder(tmp_path, monkeypatch):
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "mine.py").write_text("NUMBER = 1\n")
        monkeypatch.chdir(folder)
        assert file_of(load(Path("mine.py")).module) == folder / "mine.py"
