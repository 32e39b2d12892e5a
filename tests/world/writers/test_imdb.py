from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.world.writers import imdb
from world.writers.written import digests

RATINGS = {"pos": {7, 8, 9, 10}, "neg": {1, 2, 3, 4}, "unsup": {0}}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("imdb")
    imdb.write(path, "tiny", 3)
    return path / "aclImdb"


def names(root: Path, folder: str) -> list[tuple[int, int]]:
    """Number and rating of each file."""
    pairs = [path.stem.split("_") for path in (root / folder).iterdir() if path.suffix == ".txt"]
    return sorted((int(number), int(rating)) for number, rating in pairs)


def texts(root: Path, folder: str) -> list[str]:
    return [path.read_bytes().decode() for path in sorted((root / folder).iterdir())]


def test_the_same_call_writes_the_same_bytes(root: Path, tmp_path: Path) -> None:
    imdb.write(tmp_path / "again", "tiny", 3)
    imdb.write(tmp_path / "other", "tiny", 4)
    assert digests(root) == digests(tmp_path / "again" / "aclImdb")
    assert digests(root) != digests(tmp_path / "other" / "aclImdb")


@pytest.mark.parametrize(
    ("folder", "count"),
    [("train/pos", 100), ("train/neg", 100), ("train/unsup", 20), ("test/pos", 50), ("test/neg", 50)],
)
def test_numbers_start_at_zero_in_each_folder_and_ratings_fit_it(root: Path, folder: str, count: int) -> None:
    found = names(root, folder)
    assert [number for number, _ in found] == list(range(count))
    assert {rating for _, rating in found} == RATINGS[folder.split("/")[1]]


def test_the_files_beside_the_reviews_are_there(root: Path) -> None:
    assert {path.name for path in root.iterdir()} == {"README", "imdb.vocab", "imdbEr.txt", "train", "test"}
    assert {path.name for path in (root / "train").iterdir() if path.is_file()} == {
        *("urls_pos.txt", "urls_neg.txt", "urls_unsup.txt"),
    }
    words = (root / "imdb.vocab").read_text().splitlines()
    expected = [float(line) for line in (root / "imdbEr.txt").read_text().splitlines()]
    assert len(words) == len(set(words)) == len(expected)
    assert max(map(abs, expected)) <= 4.5


def test_traps_are_there(root: Path) -> None:
    pos = texts(root, "train/pos")
    assert any("<br /><br />" in text for text in pos)
    assert any(not text.isascii() for text in pos)
    assert len(set(pos)) < len(pos)  # a duplicate


def test_length_does_not_tell_the_label(root: Path) -> None:
    pos, neg = ([len(text.split()) for text in texts(root, f"train/{label}")] for label in ("pos", "neg"))
    assert abs(sum(pos) / len(pos) - sum(neg) / len(neg)) < 6
