from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PIL import Image

from holdfast.world.writers import flickr30k_entities
from world.writers.written import digests

PHRASE = re.compile(r"\[/EN#(\d+)((?:/[a-z]+)+) ([^\]\[]+)\]")
TYPES = {"people", "clothing", "bodyparts", "animals", "vehicles", "instruments", "scene", "other", "notvisual"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("entities")
    flickr30k_entities.write(path, "tiny", 3)
    return path


def sentences(folder: Path) -> dict[str, list[str]]:
    return {path.stem: path.read_bytes().decode().split("\n")[:-1] for path in (folder / "Sentences").iterdir()}


def objects(folder: Path, name: str) -> list[ElementTree.Element]:
    return ElementTree.parse(folder / "Annotations" / f"{name}.xml").getroot().findall("object")


def test_the_same_call_writes_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    flickr30k_entities.write(tmp_path, "tiny", 3)
    assert digests(folder) == digests(tmp_path)


def test_splits_name_every_image_once(folder: Path) -> None:
    ids = []
    for split, count in flickr30k_entities.COUNTS["tiny"].items():
        text = (folder / f"{split}.txt").read_text()
        assert text.endswith("\n")
        assert len(text.splitlines()) == count
        ids += text.splitlines()
    for place, end in (("Sentences", ".txt"), ("Annotations", ".xml"), ("flickr30k-images", ".jpg")):
        assert sorted(ids) == sorted(path.name.removesuffix(end) for path in (folder / place).iterdir())


def test_five_sentences_whose_marks_follow_the_grammar(folder: Path) -> None:
    for lines in sentences(folder).values():
        assert len(lines) == 5
        for line in lines:
            phrases = PHRASE.findall(line)
            assert line.count("[") == line.count("]") == line.count("/EN#") == len(phrases)
            for chain, types, _ in phrases:
                assert set(types[1:].split("/")) <= TYPES
                assert (chain == "0") == (types == "/notvisual")


def test_the_token_file_says_the_same_without_marks(folder: Path) -> None:
    marked = sentences(folder)
    rows = (folder / "results_20130124.token").read_bytes().decode().split("\n")[:-1]
    assert len(rows) == 5 * len(marked)
    for row in rows:
        key, text = row.split("\t")
        name, number = key.split(".jpg#")
        assert PHRASE.sub(r"\3", marked[name][int(number)]) == text


def test_boxes_count_from_one_and_lie_in_the_picture(folder: Path) -> None:
    lefts = []
    for name in sentences(folder):
        root = ElementTree.parse(folder / "Annotations" / f"{name}.xml").getroot()
        assert root.findtext("filename") == f"{name}.jpg"
        width, height = (int(root.findtext(f"size/{side}") or 0) for side in ("width", "height"))
        with Image.open(folder / "flickr30k-images" / f"{name}.jpg") as image:
            assert image.size == (width, height)
        for box in root.iter("bndbox"):
            assert [child.tag for child in box] == ["xmin", "ymin", "xmax", "ymax"]
            left, top, right, bottom = (int(child.text or 0) for child in box)
            assert 1 <= left < right <= width
            assert 1 <= top < bottom <= height
            lefts.append(left)
    assert len(lefts) > 200


def test_what_a_phrase_names_has_a_box(folder: Path) -> None:
    for name, lines in sentences(folder).items():
        boxed = {n.text for item in objects(folder, name) if item.find("bndbox") is not None for n in item.iter("name")}
        unboxed = {n.text for item in objects(folder, name) if item.find("bndbox") is None for n in item.iter("name")}
        said = {
            (chain, words) for line in lines for chain, types, words in PHRASE.findall(line) if types != "/notvisual"
        }
        assert boxed <= {chain for chain, _ in said}
        for chain, words in said - {(chain, words) for chain, words in said if chain in boxed | unboxed}:
            assert words == "a café", chain


def test_traps(folder: Path) -> None:
    marked = [phrase for lines in sentences(folder).values() for line in lines for phrase in PHRASE.findall(line)]
    assert any(chain == "0" for chain, _, _ in marked)
    assert any(types.count("/") == 2 for _, types, _ in marked)
    found = [item for name in sentences(folder) for item in objects(folder, name)]
    assert any(len(item.findall("name")) == 2 and item.find("bndbox") is not None for item in found)
    flags = {(item.findtext("scene"), item.findtext("nobndbox")) for item in found if item.find("bndbox") is None}
    assert flags == {("1", "0"), ("0", "1")}
    assert any(not words.isascii() for _, _, words in marked)


def test_unrelated_captions_have_no_phrases(folder: Path) -> None:
    text = (folder / "UNRELATED_CAPTIONS").read_text()
    assert not text.endswith("\n")
    comment, *rows = text.split("\n")
    assert comment.startswith("# format:")
    assert rows
    for row in rows:
        name, number = row.split()
        assert not PHRASE.findall(sentences(folder)[name][int(number) - 1])
