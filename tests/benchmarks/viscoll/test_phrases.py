import json

import pytest

from holdfast.benchmarks.viscoll.extract import CaptionWords, extractor
from holdfast.benchmarks.viscoll.phrases import MaskedSpan, load_phrases, save_phrases, write_lines
from holdfast.benchmarks.viscoll.synonyms import FILE
from holdfast.benchmarks.viscoll.tagger import split_words

PHRASES = [
    MaskedSpan("9", ("a", "cat", "sits", "."), (0, 3), "cat", ("cat",), ("sit",), (), "train", "", ("DT", "NN", "VBZ")),
    MaskedSpan("9", ("a", "cat", "sits", "."), (1, 2), "cat", ("cat",), (), (), "test", "", ("NN",)),
    MaskedSpan(
        "1000003", ("café", "tables"), (0, 2), "dining table", ("café", "table"), (), ("small",), "novel", "small table"
    ),
]


def found(text, grammar="printed"):
    return extractor("gruut", FILE, grammar)([CaptionWords("1", "train", split_words(text))])[0]


def test_a_file_gives_back_what_was_written(tmp_path):
    save_phrases(tmp_path / "new" / "phrases.npz", PHRASES)
    assert load_phrases(tmp_path / "new" / "phrases.npz") == PHRASES
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["phrases.npz"]


def test_captions_are_shared_in_memory(tmp_path):
    save_phrases(tmp_path / "phrases.npz", PHRASES)
    first, second, _ = load_phrases(tmp_path / "phrases.npz")
    assert first.caption is second.caption


def test_no_phrases_are_a_file_too(tmp_path):
    save_phrases(tmp_path / "phrases.npz", [])
    assert load_phrases(tmp_path / "phrases.npz") == []


def test_lines_for_other_programs(tmp_path):
    write_lines(tmp_path / "phrases.jsonl", PHRASES)
    lines = [json.loads(line) for line in (tmp_path / "phrases.jsonl").read_text().splitlines()]
    assert lines[2]["pair"] == "small table"
    assert lines[0]["caption"][slice(*lines[0]["span"])] == ["a", "cat", "sits"]


@pytest.mark.parametrize(
    ("text", "words", "task", "nouns", "verbs", "adjectives"),
    [
        ("A small dog sitting.", "a small dog sitting", "dog", "dog", "sit", "small"),
        ("a woman riding a bike", "a woman riding", "person", "woman", "ride", ""),
        ("the big hot dog", "the big hot dog", "hot dog", "hot dog", "", "big"),
        ("two red buses", "red buses", "bus", "bus", "", "red"),
        ("a standing giraffe", "a standing giraffe", "giraffe", "giraffe", "stand", ""),
        ("a tennis player", "a tennis player", "person", "tennis player", "", ""),
    ],
)
def test_the_first_phrase_of_a_caption(text, words, task, nouns, verbs, adjectives):
    phrase = found(text).phrases[0]
    assert " ".join(phrase.words) == words
    assert phrase.task == task
    assert (", ".join(phrase.nouns), " ".join(phrase.verbs), " ".join(phrase.adjectives)) == (nouns, verbs, adjectives)
    assert len(phrase.tags) == len(phrase.words)


def test_what_no_category_names_is_no_phrase():
    assert found("a green tree stands in the forest").phrases == ()


def test_orange_is_a_colour_where_it_stands_alone():
    assert [phrase.task for phrase in found("a child in orange").phrases] == ["person"]
    assert [phrase.task for phrase in found("a child eating an orange").phrases] == ["person", "orange"]


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("a small black kitten", {"black cat", "small cat"}),
        ("the cat is black", {"black cat"}),
        ("the guy is slowly eating", {"eat man"}),
        ("a boy standing on a skateboard", {"stand child"}),
        ("a large bird flies over the sea", {"big bird", "fly bird"}),
        ("a lady laying in bed", {"lie woman"}),
        ("a man next to a black cat", {"black cat"}),
        ("a dog near a black car", set()),
        ("a small hot dog", set()),
        ("a man eating with a woman", {"eat man"}),
        ("a child in white is holding a ball", {"hold child"}),
        ("a bus near a red car", set()),
        ("a black and white cat on a bed", {"black cat"}),
        ("a red, white and blue bus", {"red bus", "blue bus"}),
        ("a man and a woman eating pizza", {"eat man"}),
        ("a cat and a black dog", set()),
    ],
)
def test_held_out_pairs_that_a_caption_says(text, pairs):
    assert found(text).pairs == pairs


def test_a_phrase_has_a_pair_only_where_its_own_words_say_it():
    assert [phrase.pair for phrase in found("a black cat").phrases] == ["black cat"]
    assert [phrase.pair for phrase in found("the cat near a bed is black").phrases] == ["", ""]


def test_the_printed_grammar_masks_no_third_person():
    assert found("a woman holds a cup").phrases[0].words == ("a", "woman")
    assert found("a woman holds a cup", "meant").phrases[0].words == ("a", "woman", "holds")


@pytest.mark.parametrize(
    ("text", "tasks"),
    [
        ("a couple of zebra in a field", []),  # the tagger does not know this plural
        ("a couple of zebras in a field", ["zebra"]),
        ("a crowd of people near a bus", ["person", "bus"]),
        ("a couple sitting on a bench", ["person", "bench"]),
        ("a family of elephants", ["elephant"]),
        ("a plate with a slice of pizza", ["bowl", "pizza"]),
    ],
)
def test_a_quantity_of_things_is_no_person(text, tasks):
    assert [phrase.task for phrase in found(text).phrases] == tasks


def test_annotated_spans_are_masked_as_they_are():
    words = ("two", "young", "men", "in", "white", "shirts", "at", "the", "same", "time")
    caption = CaptionWords("1", "train", words, ((0, 3), (4, 6), (6, 7)))
    phrases = extractor("gruut", FILE)([caption])[0].phrases
    assert [(phrase.span, phrase.task, phrase.adjectives) for phrase in phrases] == [
        ((0, 3), "man", ("young",)),
        ((4, 6), "shirt", ("white",)),
    ]
