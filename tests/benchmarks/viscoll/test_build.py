import json

import pytest
import typer
from typer.testing import CliRunner

from holdfast import registry
from holdfast.benchmarks.synthetic import world
from holdfast.benchmarks.viscoll import build as building
from holdfast.benchmarks.viscoll import compositions
from holdfast.benchmarks.viscoll.build import Statistics, build, statistics
from holdfast.benchmarks.viscoll.building import register_build
from holdfast.benchmarks.viscoll.extract import Found
from holdfast.benchmarks.viscoll.phrases import MaskedSpan, load_phrases, read_phrases
from holdfast.datasets import coco, flickr8k, flickr30k_entities, nikolaus
from holdfast.errors import UserError
from holdfast.world.grammar import gerund, plural, third_person
from holdfast.world.whole import write_whole
from holdfast.world.writers import nikolaus as nikolaus_writer


@pytest.fixture
def coco_phrases():
    return read_phrases("coco", scale="tiny")


@pytest.fixture
def flickr_phrases():
    return read_phrases("flickr", scale="tiny")


def spoken():
    """Each held-out pair with every form of each of its words, from the list itself and from rules of English."""
    lists = json.loads(compositions.FILE.read_text())
    table = {line.split(", ")[0]: line.split(", ") for line in building.synonyms.FILE.read_text().splitlines()}
    for pair in lists["pairs"]:
        word, noun = pair.split()
        nouns = lists["nouns"].get(noun) or table[lists["categories"][noun]]
        said = lists["adjectives"].get(word) or [
            form for verb in lists["verbs"][word] for form in (verb, gerund(verb), third_person(verb))
        ]
        yield pair, {form for each in nouns for form in (each, plural(each))}, set(said)


def says(words, nouns, said):
    text = f" {' '.join(words)} ".replace(" hot dog", " hotdog")
    return any(f" {noun} " in text for noun in nouns) and any(f" {word} " in text for word in said)


def test_no_kept_phrase_has_a_held_out_pair(coco_phrases):
    kept = [phrase for phrase in coco_phrases if phrase.split != "novel"]
    assert {phrase.split for phrase in kept} == {"train", "validation", "test"}
    for pair, nouns, said in spoken():
        assert [phrase for phrase in kept if says(phrase.words, nouns, said)] == [], pair


def test_novel_phrases_have_the_pair_that_they_name(coco_phrases):
    forms = {pair: (nouns, said) for pair, nouns, said in spoken()}
    novel = [phrase for phrase in coco_phrases if phrase.split == "novel"]
    assert len({phrase.pair for phrase in novel}) >= 12
    assert all(says(phrase.words, *forms[phrase.pair]) for phrase in novel)
    assert all(not phrase.pair for phrase in coco_phrases if phrase.split != "novel")


def test_no_image_is_in_two_splits(coco_phrases):
    images = {split: {p.image for p in coco_phrases if p.split == split} for split in {p.split for p in coco_phrases}}
    assert sum(len(each) for each in images.values()) == len(set().union(*images.values()))


def test_the_test_images_are_those_of_val2017(coco_phrases):
    official = {example.id for example in coco.DATASET.examples(world("coco", "tiny"), "val2017")}
    assert {phrase.image for phrase in coco_phrases if phrase.split == "test"} < official
    assert not {phrase.image for phrase in coco_phrases if phrase.split in ("train", "validation")} & official


def test_spans_lie_in_their_captions_and_tasks_are_categories(coco_phrases):
    assert all(0 <= p.span[0] < p.span[1] <= len(p.caption) for p in coco_phrases)
    assert {p.task for p in coco_phrases} <= set(building.synonyms.our_synonyms().categories)
    captions = {
        text.lower().replace(".", " .")
        for split in ("train2017", "val2017")
        for example in coco.DATASET.examples(world("coco", "tiny"), split)
        for text in example.extra["captions"]
    }
    assert {" ".join(p.caption) for p in coco_phrases} <= captions


@pytest.mark.parametrize(("dataset", "name"), [("coco", "coco"), ("flickr", "flickr30k_entities")])
def test_the_worlds_files_are_the_worlds_wherever_they_lie(dataset, name, tmp_path, unmarked, capsys):
    """As without a folder, although lists of images to hold out lie beside it."""
    write_whole(registry.WRITERS[name].load(), tmp_path / name, "tiny", 0)
    nikolaus_writer.write(tmp_path / "nikolaus", "tiny", 0, images=False)
    there, here = build(dataset, data=str(tmp_path / name)), build(dataset, scale="tiny")
    assert there.world
    assert (there.statistics, there.held_out_images) == (here.statistics, here.held_out_images)
    assert load_phrases(there.file) == load_phrases(here.file)
    assert not build(dataset, data=str(unmarked(name, tmp_path / "official"))).world
    assert "synthetic data" in command(f"viscoll-{dataset}", "--from", str(tmp_path / name))


def test_images_that_the_lists_name_are_left_out(tmp_path, unmarked):
    """With official files, only test images give novel phrases, and the lists beside them count."""
    unmarked("coco", tmp_path / "coco")
    without = build("coco", data=str(tmp_path))
    assert "lists of Nikolaus et al. are not beside" in without.warning
    assert "lists of Nikolaus" in command("viscoll-coco", "--from", str(tmp_path))
    plain = load_phrases(without.file)
    assert {p.image for p in plain if p.split == "novel"} < {
        example.id for example in coco.DATASET.examples(world("coco", "tiny"), "val2017")
    }
    lists = tmp_path / "nikolaus"
    nikolaus_writer.write(lists, "tiny", 0, images=False)
    first = next(p.image for p in plain if p.split == "train")
    file = lists / "data" / "dataset_splits" / "dataset_splits_2.json"
    content = json.loads(file.read_text())
    content["val_images_split"].append(first)
    content["train_images_split"].remove(first)
    file.write_text(json.dumps(content))
    held = {
        e.id for n in range(1, 5) for part in ("val", "test") for e in nikolaus.DATASET.examples(lists, f"{part}_{n}")
    }
    listed = build("coco", data=str(tmp_path))
    assert not listed.warning
    kept = {p.image for p in load_phrases(listed.file) if p.split != "novel"}
    assert first in held
    assert not kept & held


def test_flickr8k_keeps_its_splits_and_holds_out_in_all_of_them(tmp_path, unmarked):
    """Each split without the images that are held out; their phrases with a pair are the novel set."""
    phrases = load_phrases(build("flickr8k", data=str(unmarked("flickr8k", tmp_path / "flickr8k"))).file)
    folder = world("flickr8k", "tiny")
    official = {s: {e.id for e in flickr8k.DATASET.examples(folder, s)} for s in flickr8k.DATASET.splits}
    images = {s: {p.image for p in phrases if p.split == s} for s in ("train", "validation", "test", "novel")}
    for ours, theirs in (("train", "train"), ("validation", "dev"), ("test", "test")):
        assert images[ours] <= official[theirs] - images["novel"]
        assert len(images[ours]) > len(official[theirs]) / 4
    assert images["novel"] & official["train"]
    assert all(p.pair for p in phrases if p.split == "novel")


def test_the_pairs_are_found_that_the_captions_were_written_with(coco_phrases, tmp_path):
    """The world's own lists know what each sentence says of what; our reading of the sentences must find as much.

    By the lists a small hot dog is a small dog; not so by us.
    """
    nikolaus_writer.write(tmp_path, "tiny", 0, images=False)
    splits = [f"{part}_{number}" for number in range(1, 5) for part in ("val", "test")]
    listed = {example.id for split in splits for example in nikolaus.DATASET.examples(tmp_path, split)}
    listed -= {phrase.image for phrase in coco_phrases if "hot dog" in phrase.nouns}
    kept = {phrase.image for phrase in coco_phrases if phrase.split != "novel"}
    assert len(listed) > 50
    assert len(listed & kept) <= 0.03 * len(listed)


def test_flickr_masks_the_annotated_phrases(flickr_phrases):
    folder = world("flickr30k_entities", "tiny")
    for split, official in (("train", "train"), ("validation", "val"), ("test", "test")):
        spans = {
            (example.extra["image_id"], " ".join(example.extra["tokens"]).lower(), phrase["start"], phrase["stop"])
            for example in flickr30k_entities.DATASET.examples(folder, official)
            for phrase in example.extra["phrases"]
        }
        ours = {(p.image, " ".join(p.caption), *p.span) for p in flickr_phrases if p.split == split}
        assert ours <= spans
        assert len(ours) > 0.9 * len(spans) if split == "train" else ours
    assert {p.task for p in flickr_phrases} == {p.task for p in flickr_phrases if p.split == "train"}


def test_the_tasks_of_flickr_are_the_most_frequent_nouns(monkeypatch):
    def phrase(task, split):
        return MaskedSpan("1", (task,), (0, 1), task, (task,), (), (), split)

    counts = {"man": 3, "dog": 2, "cat": 2, "tree": 1}
    phrases = [phrase(task, "train") for task, count in counts.items() for _ in range(count)]
    phrases += [phrase("tree", "test"), phrase("man", "test"), phrase("dog", "test")] + [phrase("tree", "test")] * 9
    monkeypatch.setattr(building, "TASKS", 2)
    kept = building._flickr([Found("1", tuple(phrases), frozenset())])
    assert [p.task for p in kept] == ["man"] * 3 + ["cat"] * 2 + ["man"]


def test_statistics_by_hand():
    def phrase(task, length, split):
        return MaskedSpan("1", ("x",) * 9, (2, 2 + length), task, (), (), (), split)

    found = statistics(
        [
            *[phrase("dog", 3, "train")] * 4,
            phrase("cat", 1, "validation"),
            phrase("cat", 2, "test"),
            phrase("bus", 4, "novel"),
        ]
    )
    assert found == Statistics(4, 1, 1, 1, pytest.approx(7 / 3), 2.0, pytest.approx(19 / 7), 3)


def test_workers_change_nothing(monkeypatch, tmp_path):
    alone = read_phrases("flickr", scale="tiny")
    monkeypatch.setattr(building, "MANY", 100)
    monkeypatch.setattr(building, "BATCH", 60)
    monkeypatch.setattr(building, "VERSION", building.VERSION + 1)
    assert load_phrases(build("flickr", scale="tiny", workers=2).file) == alone


def test_what_is_built_is_kept(monkeypatch, coco_phrases, tmp_path):
    monkeypatch.setattr(building, "extract", None)
    assert read_phrases("coco", scale="tiny") == coco_phrases
    (tmp_path / "nouns.txt").write_text("dog, puppy\n")
    with pytest.raises(TypeError):  # another table is another dataset
        build("coco", scale="tiny", synonyms_file=tmp_path / "nouns.txt")


def test_mistakes_are_told(tmp_path):
    with pytest.raises(UserError, match="unknown VisCOLL dataset 'cocoa'"):
        build("cocoa")
    with pytest.raises(UserError, match="contains no coco"):
        build("coco", data=str(tmp_path))
    for split in ("train2017", "val2017"):
        name = f"instances_{split}.json"
        (tmp_path / name).symlink_to(world("coco", "tiny") / "annotations" / name)
    with pytest.raises(UserError, match="has no captions"):
        build("coco", data=str(tmp_path))


def command(*words: str) -> str:
    app = typer.Typer()
    register_build(app)
    return CliRunner().invoke(app, list(words), catch_exceptions=False).stdout


def test_the_command_ends_with_table_1(coco_phrases, tmp_path):
    shown = command("viscoll-coco", "--scale", "tiny", "--out", str(tmp_path / "phrases.jsonl"))
    assert "639,592" in shown
    assert "synthetic data" in shown
    assert len((tmp_path / "phrases.jsonl").read_text().splitlines()) == len(coco_phrases)
    found = json.loads(command("viscoll-coco", "--scale", "tiny", "--json"))
    assert found["statistics"]["training_instances"] == sum(p.split == "train" for p in coco_phrases)
    assert found["published"]["mean_masked_length"] == 2.497
    assert found["world"] is True
    assert found["tagger"].startswith("gruut ")
    assert json.loads(command("viscoll-flickr8k", "--scale", "tiny", "--json"))["published"]["tasks"] is None
