import json

import pytest

from holdfast.benchmarks.viscoll import compositions
from holdfast.benchmarks.viscoll.compositions import HELD_OUT, held_out
from holdfast.benchmarks.viscoll.phrases import MaskedSpan
from holdfast.benchmarks.viscoll.synonyms import our_synonyms, read_synonyms
from holdfast.errors import UserError
from holdfast.papers import published
from holdfast.world.vocabulary import COCO_NOUNS


def test_the_categories_are_cocos_own():
    assert our_synonyms().categories == COCO_NOUNS


def test_no_word_belongs_to_two_categories():
    lines = [line.split(", ") for line in compositions.FILE.with_name("categories.txt").read_text().splitlines()]
    words = [word for line in lines for word in line]
    assert len(words) == len(set(words))


@pytest.mark.parametrize(
    ("lemmas", "first", "start", "stop", "nouns", "categories"),
    [
        (["small", "hot", "dog"], 0, 2, 3, ["hot dog"], ["hot dog"]),
        (["hot", "dog", "stand"], 0, 1, 3, ["hot dog", "stand"], ["hot dog", ""]),
        (["dog", "house"], 0, 0, 2, ["dog", "house"], ["dog", ""]),
        (["sport", "ball"], 0, 0, 2, ["sport ball"], ["sports ball"]),
        (["teddy", "bear"], 0, 0, 2, ["teddy bear"], ["teddy bear"]),
        (["teddy", "bear"], 1, 1, 2, ["bear"], ["bear"]),  # the word before is not of the phrase
        (["tree"], 0, 0, 1, ["tree"], [""]),
    ],
)
def test_the_longest_noun_that_the_table_has(lemmas, first, start, stop, nouns, categories):
    found = our_synonyms().things(lemmas, first, start, stop)
    assert [each.noun for each in found] == nouns
    assert [each.category for each in found] == categories


def test_the_papers_own_table_can_be_given(tmp_path):
    file = tmp_path / "nouns.txt"
    file.write_text("person, girl,  boy, iPhone\nknife, knife, knives\n\n")
    table = read_synonyms(file)
    assert table.categories == ("person", "knife")
    assert table.of("person") == {"person", "girl", "boy", "iphone"}
    assert table.nouns["knife"] == "knife"


@pytest.mark.parametrize("content", [b"", b"\n , \n", b"\xff\xfe\x00"])
def test_a_table_that_is_none_is_refused(tmp_path, content):
    file = tmp_path / "nouns.txt"
    file.write_bytes(content)
    with pytest.raises(UserError, match=r"nouns\.txt"):
        read_synonyms(file)


def test_the_held_out_pairs_are_those_of_table_4():
    printed = {(row["word_class"], row["composition"]) for row in published.table("viscoll", 4)}
    assert len(HELD_OUT) == len(printed) == 24
    assert set(HELD_OUT) == printed


def test_every_noun_of_a_pair_is_a_word_of_the_table():
    nouns = our_synonyms().nouns
    unknown = {word for each in held_out() for word in each.nouns if word not in nouns}
    assert unknown <= {"gentlewoman", "babe"}  # words of the lists that no caption has


def test_the_lists_have_no_word_that_no_pair_uses():
    lists = json.loads(compositions.FILE.read_text())
    words = {word for name in lists["pairs"] for word in name.split()}
    assert words == {*lists["nouns"], *lists["categories"], *lists["verbs"], *lists["adjectives"]}
    assert {word for name in lists["seen"] for word in name.split()} <= words
    assert not set(lists["seen"]) & set(lists["pairs"])


def phrase(nouns, verbs=(), adjectives=()):
    return MaskedSpan("1", ("x",), (0, 1), "person", nouns, verbs, adjectives, "test")


def test_compositions_of_a_phrase_go_by_the_names_of_the_list():
    assert compositions.compositions(phrase(("boy",), ("eat",))) == (("verb", "eat man"), ("verb", "eat child"))
    assert compositions.compositions(phrase(("kitten",), (), ("tiny", "fluffy"))) == (("adjective", "small cat"),)
    assert compositions.compositions(phrase(("tree",), ("stand",), ("big",))) == ()
    assert compositions.compositions(phrase(("horse",), ("ride", "walk"))) == (("verb", "ride horse"),)


def test_a_pair_is_within_a_phrase_by_any_of_its_words():
    black_cat, eat_man = held_out()[0], held_out()[4]
    assert black_cat.within(["tabby"], [], ["black"])
    assert not black_cat.within(["dog"], [], ["black"])
    assert not black_cat.within(["cat"], ["black"], [])
    assert eat_man.within(["guy"], ["bite"], [])
