from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.datasets.base import DataError, Reading
from holdfast.datasets.flickr30k_entities import ANNOTATIONS, DATASET

SENTENCES = [
    "[/EN#901/people Two young guys] with [/EN#0/notvisual each other] hold [/EN#902/other/instruments a big guitar] .",
    "[/EN#901/people They] stand near [/EN#903/clothing hats] [/EN#904/scene outside] .",
    "Nothing is marked [ here ] .",
    "[/EN#905/other Something] is nowhere .",
    "Zwei Männer – [/EN#901/people beide] .",
]
ANNOTATION = """<annotation>
  <filename>77.jpg</filename>
  <size><width>500</width><height>375</height><depth>3</depth></size>
  <object><name>901</name><name>903</name>
    <bndbox><xmin>11</xmin><ymin>21</ymin><xmax>111</xmax><ymax>221</ymax></bndbox></object>
  <object><name>901</name>
    <bndbox><xmin>1</xmin><ymin>1</ymin><xmax>500</xmax><ymax>375</ymax></bndbox></object>
  <object><name>904</name><scene>1</scene><nobndbox>0</nobndbox></object>
  <object><name>902</name><scene>0</scene><nobndbox>1</nobndbox></object>
</annotation>
"""


def write(folder: Path) -> None:
    for name in ("Sentences", "Annotations", "flickr30k-images"):
        (folder / name).mkdir(parents=True)
    for image in ("77", "78"):
        (folder / "Sentences" / f"{image}.txt").write_text("\n".join(SENTENCES) + "\n", encoding="utf-8")
        (folder / "Annotations" / f"{image}.xml").write_text(ANNOTATION)
        (folder / "flickr30k-images" / f"{image}.jpg").write_bytes(b"")
    (folder / "test.txt").write_text("77\n78\n")
    (folder / "UNRELATED_CAPTIONS").write_text("# format: image caption\n78 5")


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "flickr")
    return tmp_path / "flickr"


def phrase(example, number):
    return example.extra["phrases"][number]


def test_words_phrases_and_boxes(folder):
    examples = list(DATASET.examples(folder, "test"))
    assert [e.id for e in examples] == [f"{image}.jpg#{n}" for image in (77, 78) for n in range(5)]
    first = examples[0]
    assert first.text == "Two young guys with each other hold a big guitar ."
    people, nobody, guitar = first.extra["phrases"]
    assert (people["start"], people["stop"], people["phrase"]) == (0, 3, "Two young guys")
    assert first.extra["tokens"][guitar["start"] : guitar["stop"]] == ("a", "big", "guitar")
    assert guitar["types"] == ("other", "instruments")
    # The files count pixels from one, we count from zero.
    assert people["boxes"] == ((10.0, 20.0, 110.0, 220.0), (0.0, 0.0, 499.0, 374.0))
    assert (nobody["chain"], nobody["boxes"]) == ("0", ())
    assert (guitar["boxes"], guitar["nobndbox"], guitar["scene"]) == ((), True, False)
    assert first.images == (folder / "flickr30k-images" / "77.jpg",)
    assert (first.extra["width"], first.extra["height"]) == (500, 375)


def test_a_box_of_two_chains_a_scene_and_a_chain_without_anything(folder):
    examples = list(DATASET.examples(folder, "test"))
    they, hats, outside = examples[1].extra["phrases"]
    assert hats["boxes"] == they["boxes"][:1]
    assert (outside["scene"], outside["boxes"]) == (True, ())
    something = phrase(examples[3], 0)
    assert (something["boxes"], something["scene"], something["nobndbox"]) == ((), False, False)


def test_plain_brackets_and_other_alphabets(folder):
    examples = list(DATASET.examples(folder, "test"))
    assert examples[2].text == "Nothing is marked [ here ] ."
    assert examples[2].extra["phrases"] == ()
    assert examples[4].text == "Zwei Männer – beide ."
    assert (phrase(examples[4], 0)["start"], phrase(examples[4], 0)["stop"]) == (3, 4)


def test_unrelated_captions_are_marked(folder):
    related = [e.extra["related"] for e in DATASET.examples(folder, "test")]
    assert related == [True] * 9 + [False]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("[/EN#1/people a man", "does not end"),
        ("[/EN#1/people a [/EN#2/other b] ]", "begins inside another"),
        ("[/EN#1 a man]", "does not open a phrase"),
        ("[/EN#1/people ]", "without words"),
        ("  ", "no words"),
    ],
)
def test_a_bad_caption_is_reported_alone(folder, line, what):
    lines = [*SENTENCES[:2], line, *SENTENCES[3:]]
    (folder / "Sentences" / "77.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    reading = Reading(skip=1)
    assert len(list(DATASET.examples(folder, "test", reading))) == 9
    assert reading.problems[0].record == "line 3"
    assert what in reading.problems[0].what


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("<xmax>111</xmax>", "<xmax>10</xmax>", "has no size"),
        ("<xmax>111</xmax>", "", "its xmax is ''"),
        ("<xmax>111</xmax>", "<xmax>1e999</xmax>", "its xmax is '1e999'"),
        ("<scene>1</scene>", "<scene>yes</scene>", "its scene is 'yes'"),
        ("<name>901</name><name>903</name>", "", "no name"),
    ],
)
def test_a_bad_object_is_reported_alone(folder, old, new, what):
    assert old in ANNOTATION
    (folder / "Annotations" / "77.xml").write_text(ANNOTATION.replace(old, new))
    reading = Reading(skip=1)
    assert len(list(DATASET.examples(folder, "test", reading))) == 10
    assert reading.problems[0].file.endswith("77.xml")
    assert what in reading.problems[0].what


def test_a_box_of_one_pixel_is_a_box(folder):
    (folder / "Annotations" / "77.xml").write_text(ANNOTATION.replace("<xmax>111</xmax>", "<xmax>11</xmax>"))
    phrases = next(iter(DATASET.examples(folder, "test"))).extra["phrases"]
    assert phrases[0]["boxes"][0] == (10.0, 20.0, 10.0, 220.0)  # the files count pixels from one, and both ends


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><annotation>&b;</annotation>'


@pytest.mark.parametrize(
    ("file", "content", "what"),
    [
        ("Annotations/77.xml", "<annotation>", "not an annotation"),
        ("Annotations/77.xml", BOMB, "document type"),
        ("Annotations/77.xml", ANNOTATION.replace("500", "0"), "size 0 x 375"),
        ("Annotations/77.xml", None, "no such file"),
        ("Sentences/77.txt", "One line .\n", "1 lines, not 5"),
        ("Sentences/77.txt", None, "no such file"),
        ("flickr30k-images/77.jpg", None, "no such file"),
    ],
)
def test_an_image_that_cannot_be_used_is_one_problem(folder, file, content, what):
    if content is None:
        (folder / file).unlink()
    else:
        (folder / file).write_text(content)
    reading = Reading(skip=1)
    assert {e.extra["image_id"] for e in DATASET.examples(folder, "test", reading)} == {"78"}
    assert reading.problems[0].record == "image 77"
    assert what in reading.problems[0].what


def test_the_other_folder_of_images_and_a_list_of_nonsense(folder):
    (folder / "flickr30k-images").rename(folder.parent / "flickr30k_images")
    (folder / "test.txt").write_text("77\r\n../78\n")
    reading = Reading(skip=1)
    examples = list(DATASET.examples(folder, "test", reading))
    assert examples[0].images == (folder.parent / "flickr30k_images" / "77.jpg",)
    assert len(examples) == 5
    assert "'../78' is not the number of an image" in reading.problems[0].what


def test_annotations_are_read_without_the_images(folder):
    whole = [replace(example, images=()) for example in DATASET.examples(folder, "test")]
    for path in folder.rglob("*.jpg"):
        path.unlink()
    assert list(ANNOTATIONS.examples(folder, "test")) == whole
    with pytest.raises(DataError, match="no such file: ask for the images of Flickr30k"):
        list(DATASET.examples(folder, "test"))


def test_presence_and_absence(folder):
    assert DATASET.present(folder)
    assert not DATASET.present(folder.parent)
    with pytest.raises(DataError, match=r"train.txt: no such file"):
        list(DATASET.examples(folder, "train"))
    (folder / "test.txt").write_text("")
    with pytest.raises(DataError, match="lists no images"):
        list(DATASET.examples(folder, "test"))
