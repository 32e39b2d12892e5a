import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from holdfast.benchmarks.viscoll import tagger
from holdfast.benchmarks.viscoll.tagger import lemma, open_tagger, split_words
from holdfast.errors import UserError

# Tagged by hand, after the guidelines of the Penn treebank.
CAPTIONS = """
a/DT man/NN riding/VBG a/DT wave/NN on/IN top/NN of/IN a/DT surfboard/NN ./.
two/CD giraffes/NNS standing/VBG next/RB to/IN a/DT tall/JJ tree/NN
a/DT brown/JJ dog/NN is/VBZ lying/VBG on/IN the/DT green/JJ grass/NN
the/DT woman/NN holds/VBZ a/DT red/JJ umbrella/NN in/IN the/DT rain/NN
several/JJ people/NNS are/VBP flying/VBG kites/NNS on/IN the/DT beach/NN ./.
a/DT small/JJ white/JJ cat/NN sleeping/VBG in/IN a/DT sink/NN
an/DT old/JJ truck/NN parked/VBN in/IN front/NN of/IN a/DT house/NN
a/DT plate/NN of/IN food/NN with/IN rice/NN and/CC broccoli/NN
the/DT children/NNS sit/VBP at/IN a/DT wooden/JJ table/NN
a/DT large/JJ airplane/NN flying/VBG over/IN a/DT city/NN
a/DT black/JJ and/CC white/JJ photo/NN of/IN a/DT train/NN
three/CD sheep/NNS grazing/VBG in/IN a/DT field/NN ,/, near/IN a/DT fence/NN
a/DT young/JJ boy/NN wearing/VBG a/DT blue/JJ shirt/NN and/CC a/DT hat/NN
someone/NN is/VBZ cutting/VBG a/DT pizza/NN with/IN a/DT knife/NN
the/DT bathroom/NN has/VBZ a/DT toilet/NN and/CC a/DT mirror/NN
a/DT bird/NN sits/VBZ on/IN a/DT branch/NN
a/DT herd/NN of/IN elephants/NNS walking/VBG across/IN a/DT river/NN
a/DT laptop/NN computer/NN sitting/VBG on/IN top/NN of/IN a/DT desk/NN
two/CD men/NNS play/VBP soccer/NN on/IN a/DT muddy/JJ field/NN
a/DT bus/NN driving/VBG down/IN a/DT busy/JJ street/NN at/IN night/NN
a/DT girl/NN brushes/VBZ her/PRP$ teeth/NNS
there/EX are/VBP many/JJ boats/NNS in/IN the/DT harbor/NN
a/DT couple/NN of/IN zebras/NNS that/WDT are/VBP standing/VBG together/RB
a/DT skier/NN in/IN a/DT yellow/JJ jacket/NN going/VBG down/IN a/DT snowy/JJ hill/NN
a/DT bowl/NN filled/VBN with/IN oranges/NNS and/CC apples/NNS
a/DT person/NN who/WP is/VBZ eating/VBG a/DT sandwich/NN
the/DT horse/NN is/VBZ eating/VBG grass/NN behind/IN the/DT barn/NN
a/DT stop/NN sign/NN at/IN the/DT corner/NN of/IN a/DT road/NN
a/DT man/NN and/CC a/DT woman/NN are/VBP sitting/VBG on/IN a/DT bench/NN
a/DT very/RB big/JJ clock/NN on/IN the/DT side/NN of/IN a/DT building/NN
a/DT tennis/NN player/NN swings/VBZ his/PRP$ racket/NN at/IN the/DT ball/NN
some/DT donuts/NNS in/IN a/DT box/NN
a/DT cow/NN standing/VBG in/IN the/DT middle/NN of/IN a/DT dirt/NN road/NN
a/DT kitchen/NN with/IN a/DT stove/NN ,/, a/DT refrigerator/NN and/CC cabinets/NNS
a/DT woman/NN walking/VBG her/PRP$ dog/NN in/IN a/DT park/NN
a/DT little/JJ girl/NN is/VBZ holding/VBG a/DT teddy/NN bear/NN
cars/NNS are/VBP stopped/VBN at/IN a/DT traffic/NN light/NN
a/DT motorcycle/NN leaning/VBG against/IN a/DT brick/NN wall/NN
a/DT vase/NN of/IN pink/JJ flowers/NNS on/IN a/DT white/JJ tablecloth/NN
a/DT baseball/NN player/NN throwing/VBG a/DT ball/NN during/IN a/DT game/NN
"""


def tagged():
    for line in CAPTIONS.strip().splitlines():
        pairs = [word.rsplit("/", 1) for word in line.split()]
        yield [word for word, _ in pairs], [tag for _, tag in pairs]


def test_agrees_with_captions_that_were_tagged_by_hand():
    words, right = zip(*tagged(), strict=True)
    assert len(words) == 40
    found = open_tagger("gruut").tag(words)
    same = [a == b for ours, theirs in zip(found, right, strict=True) for a, b in zip(ours, theirs, strict=True)]
    assert sum(same) / len(same) >= 0.96
    # What phrases are made of: nouns, verbs, adjectives, determiners.
    open_class = [
        (a, b) for f, r in zip(found, right, strict=True) for a, b in zip(f, r, strict=True) if b[0] in "NVJD"
    ]
    assert sum(a[0] == b[0] for a, b in open_class) / len(open_class) >= 0.96


def test_the_model_knows_the_features_that_it_is_given():
    """The names of its attributes stand in the model's file, each with a zero after it."""
    model = (Path(find_spec("gruut_lang_en").origin).parent / "pos" / "model.crf").read_bytes()
    rows = tagger._sequence(["the", "woman", "walks"]).items()
    asked = {*rows[0], *rows[-1]}
    assert {"bias", "BOS", "EOS", "+2:word[-3:]:lks", "-1:len(word)"} <= asked
    unknown = {name for name in asked if name.encode() + b"\0" not in model}
    assert not unknown


def test_a_word_alone_and_an_unknown_one_get_a_tag():
    assert [len(tags) for tags in open_tagger("gruut").tag([["cat"], ["zzyzx", "blorps"], []])] == [1, 2, 0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A man riding a horse.", "a man riding a horse ."),
        ("  Black-and-white cat,sleeping!\n", "black-and-white cat , sleeping !"),
        ("the dog's ball (red)", "the dog's ball ( red )"),
        ("", ""),
        ("2 cats & 1,000 café tables", "2 cats & 1,000 café tables"),
    ],
)
def test_words_of_a_caption(text, words):
    assert list(split_words(text)) == words.split()


@pytest.mark.parametrize(
    ("word", "tag", "form"),
    [
        ("women", "NNS", "woman"),
        ("lying", "VBG", "lie"),
        ("buses", "NNS", "bus"),
        ("stood", "VBD", "stand"),
        ("biggest", "JJS", "big"),
        ("glasses", "NNS", "glass"),
        ("of", "IN", "of"),
        ("zzyzx", "NN", "zzyzx"),
    ],
)
def test_lemmas(word, tag, form):
    assert lemma(word, tag) == form


@pytest.fixture
def installed(monkeypatch):
    """Stand-ins for packages: a tagger that was opened before is opened anew, now and afterwards."""

    def install(**modules):
        for name, module in modules.items():
            monkeypatch.setitem(sys.modules, name.replace("__", "."), module)
        monkeypatch.setattr(tagger, "find_spec", lambda name: modules.get(name))
        monkeypatch.setattr(tagger, "version", {"spacy": "3.8", "stanza": "1.15"}.get)

    open_tagger.cache_clear()
    yield install
    open_tagger.cache_clear()


class Doc(list):
    """A spaCy document: words that have no tags yet."""

    def __init__(self, vocab, words):
        assert vocab == "the model's"
        super().__init__(SimpleNamespace(text=word, tag_="") for word in words)


class Part:
    """A part of a spaCy pipeline: it changes documents as they pass."""

    def __init__(self, change):
        self.change = change

    def pipe(self, documents):
        for document in documents:
            for word in document:
                word.tag_ = self.change(word)
            yield document


def spacy_model(**parts):
    """A model's package; its pipeline has the parts that are not disabled."""

    def load(disable):
        kept = [(name, part) for name, part in parts.items() if name not in disable]
        return SimpleNamespace(vocab="the model's", meta={"version": "3.7.1"}, pipeline=kept)

    return SimpleNamespace(load=load)


def test_spacy_tags_words_that_are_cut_already(installed):
    def parse(word):
        raise AssertionError("nobody asked for this")

    parts = {
        "tagger": Part(lambda word: {"cats": "NNS", "a": "DT"}.get(word.text, "_SP")),
        "attribute_ruler": Part(lambda word: word.tag_.replace("_SP", "NN")),
        "parser": Part(parse),
        "ner": Part(parse),
    }
    installed(spacy=ModuleType("spacy"), spacy__tokens=SimpleNamespace(Doc=Doc), en_core_web_sm=spacy_model(**parts))
    found = open_tagger("spacy")
    assert found.tag([("a", "t-shirt"), (), ("cats",)]) == [["DT", "NN"], [], ["NNS"]]
    assert found.version == "3.8+en_core_web_sm-3.7.1"


def test_stanza_tags_words_that_are_cut_already(installed):
    def pipeline(language, **settings):
        assert (language, settings.pop("download_method"), settings.pop("verbose")) == ("en", None, False)
        assert settings == {"processors": "tokenize,pos", "tokenize_pretokenized": True}
        tags = {"cats": "NNS", "a": "DT"}

        def document(sentences):
            assert all(type(words) is list for words in sentences), "Stanza takes lists for words"
            return SimpleNamespace(
                sentences=[
                    SimpleNamespace(words=[SimpleNamespace(text=w, upos="X", xpos=tags.get(w, "NN")) for w in words])
                    for words in sentences
                ]
            )

        return document

    installed(stanza=SimpleNamespace(Pipeline=pipeline))
    found = open_tagger("stanza")
    assert found.tag([("a", "t-shirt"), ("cats",)]) == [["DT", "NN"], ["NNS"]]
    assert found.version == "1.15"


def test_a_model_that_does_not_open_is_told_in_a_sentence(installed):
    def broken(*args, **settings):
        raise OSError("no config.cfg")

    installed(
        spacy=ModuleType("spacy"),
        spacy__tokens=SimpleNamespace(Doc=Doc),
        en_core_web_sm=SimpleNamespace(load=broken),
        stanza=SimpleNamespace(Pipeline=broken),
    )
    for name, advice in (("spacy", "spacy download en_core_web_sm"), ("stanza", "stanza.download")):
        with pytest.raises(UserError, match=rf"does not open \(OSError\): install {name}, then run .*{advice}"):
            open_tagger(name)


def test_a_tagger_that_is_not_there_is_told_in_a_sentence(installed):
    with pytest.raises(UserError, match="unknown tagger 'groot': did you mean gruut"):
        open_tagger("groot")
    installed()
    for name in ("spacy", "stanza"):
        with pytest.raises(UserError, match="install"):
            open_tagger(name)


def test_a_version_names_the_model_and_the_lemmas():
    assert "lemminflect" in open_tagger("gruut").version
