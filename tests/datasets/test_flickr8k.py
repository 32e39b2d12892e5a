import pytest

from holdfast.datasets.base import DataError, Reading
from holdfast.datasets.check import check
from holdfast.datasets.flickr8k import ANNOTATIONS, DATASET

RECORDS = {"train": 2, "dev": 1, "test": 1}
LISTS = {"train": ("30_a.jpg", "10_b.jpg"), "dev": ("20_c.jpg",), "test": ("40_d.jpg",)}


def make(folder, texts="Flickr8k_text", pictures="Flicker8k_Dataset"):
    (folder / texts).mkdir(parents=True, exist_ok=True)
    (folder / pictures).mkdir(parents=True, exist_ok=True)
    for split, names in LISTS.items():
        (folder / texts / f"Flickr_8k.{split}Images.txt").write_text("".join(f"{name}\n" for name in names))
        for name in names:
            (folder / pictures / name).write_bytes(b"")
    names = [*(name for each in LISTS.values() for name in each), "50_unlisted.jpg", "20_c.jpg.1"]
    lines = [f"{name}#{order}\tCaption {order} of {name} .\n" for name in names for order in (1, 0)]
    (folder / texts / "Flickr8k.token.txt").write_text("".join(lines))


def test_photographs_come_in_the_order_of_their_list_with_captions_in_order(tmp_path):
    make(tmp_path)
    assert DATASET.present(tmp_path)
    found = list(DATASET.examples(tmp_path, "train"))
    assert [each.id for each in found] == ["30_a", "10_b"]
    assert found[1].extra["captions"] == ("Caption 0 of 10_b.jpg .", "Caption 1 of 10_b.jpg .")
    assert found[1].images == (tmp_path / "Flicker8k_Dataset" / "10_b.jpg",)


@pytest.mark.parametrize(("texts", "pictures"), [("", "Images"), ("Flicker8k_text", "Flickr8k_Dataset")])
def test_other_ways_to_unpack_it(texts, pictures, tmp_path):
    make(tmp_path, texts, pictures)
    assert DATASET.present(tmp_path)
    assert [len(list(DATASET.examples(tmp_path, split))) for split in DATASET.splits] == [2, 1, 1]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("10_b.jpg#2 no tab", "then a tab and a caption"),
        ("10_b.jpg\tno number", "then a tab and a caption"),
        ("10_b.jpg#x\tno number", "then a tab and a caption"),
        ("10_b.jpg#0\tanother", "occurred before"),
        ("10_b.jpg#2\t ", "its caption is empty"),
    ],
)
def test_a_bad_caption_is_reported_with_its_line(line, what, tmp_path):
    make(tmp_path)
    with (tmp_path / "Flickr8k_text" / "Flickr8k.token.txt").open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(DataError, match=rf"Flickr8k\.token\.txt, line 13: .*{what}"):
        list(DATASET.examples(tmp_path, "train"))
    reading = Reading(skip=1)
    found = list(DATASET.examples(tmp_path, "train", reading))
    assert [len(each.extra["captions"]) for each in found] == [2, 2]
    assert len(reading.problems) == 1


@pytest.mark.parametrize("name", ["../secret.jpg", "notes.txt", "60_without.jpg"])
def test_what_is_no_photograph_with_captions_is_reported(name, tmp_path):
    make(tmp_path)
    (tmp_path / "Flickr8k_text" / "Flickr_8k.devImages.txt").write_text(f"{name}\n20_c.jpg\n")
    reading = Reading(skip=1)
    assert [each.id for each in DATASET.examples(tmp_path, "dev", reading)] == ["20_c"]
    assert len(reading.problems) == 1


def test_photographs_may_be_absent_altogether(tmp_path):
    """Then `data check` reads the texts alone, and says so; one missing photograph is still a bad record."""
    make(tmp_path)
    (tmp_path / "Flicker8k_Dataset" / "10_b.jpg").unlink()
    findings = check(tmp_path, {"flickr8k": DATASET})
    assert {(each.split, each.verdict) for each in findings} == {("train", "bad"), ("dev", "bad"), ("test", "bad")}
    assert any("10_b.jpg is missing" in str(problem) for problem in findings[0].problems)
    for path in (tmp_path / "Flicker8k_Dataset").iterdir():
        path.unlink()
    for finding in check(tmp_path, {"flickr8k": DATASET}):
        assert (finding.verdict, finding.lacks) == ("part", ("the pictures",))
    assert [each.images for each in ANNOTATIONS.examples(tmp_path, "dev")] == [()]


def test_an_empty_list_is_an_error(tmp_path):
    make(tmp_path)
    (tmp_path / "Flickr8k_text" / "Flickr_8k.testImages.txt").write_text("\n")
    with pytest.raises(DataError, match="it lists no photographs"):
        list(DATASET.examples(tmp_path, "test"))
