"""The phrases that the authors released: exactly theirs, in their order, and scored like ours."""

import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
import typer
from typer.testing import CliRunner

from holdfast.benchmarks.synthetic import world
from holdfast.benchmarks.viscoll import commands
from holdfast.benchmarks.viscoll.benchmark import CocoShift, Flickr8kShift, FlickrShift
from holdfast.benchmarks.viscoll.building import register_build
from holdfast.benchmarks.viscoll.features import read_regions
from holdfast.benchmarks.viscoll.phrases import load_phrases
from holdfast.benchmarks.viscoll.released import build_released
from holdfast.data.text import SPECIAL, Tokenizer
from holdfast.datasets.region_features import read_rows
from holdfast.errors import UserError
from holdfast.types import Wants

BUFFER = "coco_buffer/task_buffer_real_split_{}_split_{}_novel_comps_{}_task_partition_any_objects.pkl"
FILES = {
    "train": BUFFER.format("train", "train", False),
    "validation": BUFFER.format("train", "val", False),
    "test": BUFFER.format("val", "val", False),
    "novel": BUFFER.format("val", "val", True),
}


def unpickled(name):
    return pickle.loads((world("phrase_streams", "tiny") / "datasets" / name).read_bytes())


@pytest.fixture(scope="module")
def vocabulary(tiny_cache, tmp_path_factory):
    """Every word of the synthetic world as a piece."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOLDFAST_CACHE", str(tiny_cache))
        captions = {record["annotation"]["caption"] for name in FILES.values() for record in unpickled(name)}
    file = tmp_path_factory.mktemp("words") / "vocab.txt"
    Tokenizer((*SPECIAL, *sorted({word for caption in captions for word in caption.split()}))).save(file)
    return str(file)


def shift(kind, vocabulary, **settings):
    data = str(world("phrase_streams", "tiny"))
    return kind(
        scale="tiny", stream="released", setting="text-only", data=data, vocabulary=vocabulary, **settings
    )  # fmt: skip


def test_every_phrase_hides_the_released_words_and_training_keeps_their_order(vocabulary):
    setup = shift(CocoShift, vocabulary).setup(Wants(sees="regions"))
    words = Tokenizer.load(Path(vocabulary))
    sets = {each.split if each.name == "regular" else each.name: each.ids for each in setup.protocol.evaluations}
    (stage,) = setup.stream.stages
    for split, rows in {"train": stage.train, **sets}.items():
        records = unpickled(FILES[split])
        assert len(rows) == len(records) > 40
        for row, record in zip(rows, records, strict=True):
            first, last = record["mask"]
            part = setup.data.fetch(np.array([row]), torch.device("cpu")).parts[0]
            hidden = [words.vocabulary[n] for n in part.targets[0].tolist() if n >= 0]
            assert hidden == record["annotation"]["caption"].split()[first : last + 1]
    other = shift(CocoShift, vocabulary, order="ascending").setup(Wants(sees="regions")).stream.stages[0].train
    assert (other != stage.train).any()
    assert sorted(other) == sorted(stage.train)


def test_offsets_of_flickr_end_before_their_last_number(vocabulary):
    built = build_released(
        "flickr", data=str(world("phrase_streams", "tiny")), tokenizer=Tokenizer.load(Path(vocabulary))
    )
    tasks = unpickled("flickr_buffer/flickr_tasks.pkl")["tasks"]
    for split, name in (("train", "train"), ("validation", "val"), ("test", "test")):
        records = unpickled(f"flickr_buffer/flickr_task_buffer_{name}_0.pkl")
        ours = [p for p in load_phrases(built.file) if p.split == split]
        assert [p.words for p in ours] == [tuple(r["tokens"][slice(*r["phrase_offset"])]) for r in records]
        assert [p.task for p in ours] == [tasks[r["task_id"]] for r in records]
    setup = shift(FlickrShift, vocabulary).setup(Wants(sees="regions"))
    assert not [each for each in setup.protocol.evaluations if each.name == "novel"]


@pytest.fixture
def by_hand(tmp_path):
    """Two captions in pieces: a black cat and a dog in the novel set, snowboarders in the test set."""
    pieces = [*SPECIAL, "a", "black", "cat", "and", "dog", "two", "snow", "##board", "##ers", "in", "the", "riding"]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces) + "\n")

    def record(caption, mask, task):
        return {"annotation": {"image_id": 7, "id": 1, "caption": caption}, "task": task, "mask": mask}

    content = {
        "novel": [record("A black cat and a dog ", (0, 2), "cat"), record("A black cat and a dog ", (4, 5), "dog")],
        "test": [record("two snowboarders riding in the snow", (0, 4), "person")],
        "validation": [record("a dog", (0, 1), "dog"), record("a dog", (0, 9), "dog")],
    }
    for split, records in content.items():
        path = tmp_path / "datasets" / FILES[split]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps(records))
    return tmp_path


def test_masks_count_word_pieces_and_atoms_are_those_of_the_words(by_hand):
    words = Tokenizer.load(by_hand / "vocab.txt")
    with pytest.raises(UserError, match=r"its mask lies beyond its caption: .*bert-base-uncased"):
        build_released("coco", data=str(by_hand), tokenizer=words)
    built = build_released("coco", data=str(by_hand), tokenizer=words, skip_bad=1)
    assert len(built.problems) == 1
    valid, test, cat, dog = load_phrases(built.file)
    assert (valid.split, valid.words) == ("validation", ("a", "dog"))
    assert test.words == ("two", "snow", "##board", "##ers", "riding")
    assert test.verbs == ("ride",)
    assert test.tags[1:4] == ("NNS",) * 3, "the tag of their word"
    assert (cat.nouns, cat.adjectives, cat.pair) == (("cat",), ("black",), "black cat")
    assert (dog.split, dog.pair) == ("novel", ""), "the released set has all phrases of its images"
    assert built.held_out_images == 1


def test_without_the_training_file_phrases_can_be_counted_but_not_learned(by_hand):
    with pytest.raises(UserError, match="no phrases for train"):
        CocoShift(
            stream="released", setting="text-only", data=str(by_hand), vocabulary=str(by_hand / "vocab.txt"), skip_bad=1
        ).setup(Wants(sees="regions"))
    app = typer.Typer()
    register_build(app)
    words = ["viscoll-coco", "--from", str(by_hand), "--released", "--vocabulary", str(by_hand / "vocab.txt")]
    shown = json.loads(CliRunner().invoke(app, [*words, "--skip-bad", "1", "--json"], catch_exceptions=False).stdout)
    assert (shown["statistics"]["regular_test_instances"], shown["statistics"]["training_instances"]) == (1, 0)


def test_what_has_no_released_stream_is_refused():
    for benchmark in (CocoShift(stream="released"), Flickr8kShift(stream="released", data="anywhere")):
        with pytest.raises(UserError, match="a copy of the repository INK-USC/VisCOLL"):
            benchmark.setup(Wants(sees="regions"))
    assert CocoShift(stream="released").reads() == ("phrase_streams",)


def test_agreement_counts_spans_that_are_the_same(by_hand):
    app = typer.Typer()
    commands.register(app)
    words = ["viscoll", "agreement", str(by_hand), "--vocabulary", str(by_hand / "vocab.txt"), "--json"]
    found = json.loads(CliRunner().invoke(app, words, catch_exceptions=False).stdout)
    # "two" is a number, which no chunk holds; the mask that lies beyond its caption is none of ours either.
    assert found["printed"] == {"validation": [1, 2], "test": [0, 1], "novel": [2, 2]}


def test_features_of_released_phrases_need_no_captions():
    """Pictures end where their boxes do if nothing says how large they are."""
    folder = str(world("region_features", "tiny"))
    whole = read_regions("coco", scale="tiny", features=folder)
    wanted = set(whole.ids.tolist()[:3])
    found = read_regions("coco", features=folder, images=wanted)
    assert set(found.ids.tolist()) == wanted
    for row, name in enumerate(found.ids.tolist()):
        there = whole.ids.tolist().index(name)
        assert torch.equal(found.values[row], whole.values[there][: found.shape[0]])
        count = int(found.counts[row])
        assert found.boxes[row, :count, 2:].max(0).values.tolist() == pytest.approx([1, 1])
    with pytest.raises(UserError, match="need the region features of their images"):
        read_regions("coco", images=wanted)
    with pytest.raises(UserError, match="no features of the images of coco"):
        list(read_rows(Path(folder) / "trainval_36", [("coco_train",)], wanted, None, of="coco"))


@pytest.mark.slow
def test_the_released_counts():
    """With a copy of INK-USC/VisCOLL in HOLDFAST_REAL_DATA/phrase_streams and BERT's vocabulary in HOLDFAST_BERT."""
    root, words = os.environ.get("HOLDFAST_REAL_DATA"), os.environ.get("HOLDFAST_BERT")
    if not root or not words or not (Path(root) / "phrase_streams").is_dir():
        pytest.skip("set HOLDFAST_REAL_DATA to a folder with phrase_streams, and HOLDFAST_BERT to BERT's vocab.txt")
    tokenizer = Tokenizer.load(Path(words))
    coco, flickr = (build_released(name, data=root, tokenizer=tokenizer) for name in ("coco", "flickr"))
    sizes = coco.statistics
    assert sizes.validation_instances == 27_945
    assert (sizes.regular_test_instances, sizes.compositional_test_instances) == (28_743, 4_427)
    assert (flickr.statistics.validation_instances, flickr.statistics.regular_test_instances) == (15_406, 15_286)
    assert {p.task for p in load_phrases(coco.file)} <= set(commands_tasks())
    from holdfast.benchmarks.viscoll.agreement import agreement
    from holdfast.benchmarks.viscoll.synonyms import FILE

    found = agreement(root, tokenizer, "gruut", FILE, "printed")
    assert all(same / total > 0.92 for same, total in found.values())


def commands_tasks():
    from holdfast.benchmarks.viscoll.synonyms import our_synonyms

    return our_synonyms().categories
