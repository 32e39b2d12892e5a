import random
from itertools import pairwise

import pytest

from holdfast.benchmarks.viscoll.chunks import PRINTED, VERBS, find_chunks

TAGS = ("DT", "JJ", "VBG", "VBN", "NN", "NNS", "VB", "VBD", "VBP", "VBZ", "IN", "RB", "CC", "NNP", ".")


def by_hand(tags, verbs):
    """The same grammar, word by word: from each place on, the longest chunk that begins there."""
    found, at = [], 0
    while at < len(tags):
        here = at + (tags[at] == "DT")
        while here < len(tags) and tags[here] in ("JJ", "VBG", "VBN"):
            here += 1
        nouns = here
        while here < len(tags) and tags[here] in ("NN", "NNS"):
            here += 1
        if here == nouns:
            at += 1
            continue
        after = here
        while here < len(tags) and tags[here] in verbs:
            here += 1
        found.append((at, nouns, after, here))
        at = here
    return found


@pytest.mark.parametrize("verbs", [VERBS, PRINTED])
def test_chunks_are_those_of_the_grammar(verbs):
    draw = random.Random(0)
    for _ in range(2_000):
        tags = [draw.choice(TAGS) for _ in range(draw.randrange(12))]
        assert [(c.start, c.nouns, c.verbs, c.stop) for c in find_chunks(tags, verbs)] == by_hand(tags, verbs)


def test_every_chunk_has_a_noun_and_chunks_do_not_overlap():
    draw = random.Random(1)
    for _ in range(500):
        chunks = find_chunks([draw.choice(TAGS) for _ in range(20)])
        assert all(c.start <= c.nouns < c.verbs <= c.stop for c in chunks)
        assert all(not c.start <= place < c.stop for c in chunks for place in c.beside)
        assert all(a.stop <= b.start for a, b in pairwise(chunks))


@pytest.mark.parametrize(
    ("caption", "chunks"),
    [
        ("a/DT small/JJ cat/NN sits/VBZ on/IN two/CD books/NNS", ["a small cat sits", "books"]),
        ("standing/VBG child/NN", ["standing child"]),
        ("a/DT man/NN is/VBZ riding/VBG a/DT horse/NN", ["a man is riding", "a horse"]),
        ("the/DT baseball/NN players/NNS ran/VBD", ["the baseball players ran"]),
        ("running/VBG fast/RB", []),
    ],
)
def test_worked_examples(caption, chunks):
    words, tags = zip(*(word.split("/") for word in caption.split()), strict=True)
    assert [" ".join(words[c.start : c.stop]) for c in find_chunks(tags)] == chunks


def test_the_printed_grammar_leaves_out_the_third_person():
    assert find_chunks(["DT", "NN", "VBZ"], PRINTED)[0].stop == 2
    assert find_chunks(["DT", "NN", "VBG"], PRINTED)[0].stop == 3


@pytest.mark.parametrize(
    ("caption", "said"),
    [
        ("the/DT cat/NN is/VBZ black/JJ", "black"),
        ("the/DT man/NN is/VBZ slowly/RB eating/VBG", "slowly eating"),
        ("a/DT man/NN who/WP is/VBZ eating/VBG an/DT apple/NN", "who is eating"),
        ("a/DT child/NN in/IN red/JJ is/VBZ eating/VBG", "is eating"),
        ("a/DT man/NN in/IN a/DT big/JJ hat/NN riding/VBG", "riding"),
        ("a/DT woman/NN sitting/VBG on/IN her/PRP$ bed/NN eating/VBG", "eating"),
        ("a/DT man/NN eating/VBG green/JJ apples/NNS", ""),
        ("a/DT man/NN eating/VBG small/JJ green/JJ apples/NNS", ""),
        ("a/DT bus/NN near/IN a/DT red/JJ car/NN", ""),
        ("a/DT black/JJ and/CC white/JJ cat/NN", "black and"),
        ("a/DT red/JJ ,/, white/JJ and/CC blue/JJ bus/NN", "red , white and"),
        ("the/DT cat/NN is/VBZ black/JJ and/CC white/JJ", "black and white"),
        ("a/DT man/NN sitting/VBG and/CC eating/VBG", "and eating"),
        ("a/DT man/NN and/CC a/DT woman/NN eating/VBG", "eating"),
        ("a/DT cat/NN and/CC a/DT black/JJ dog/NN", ""),
        ("a/DT black/JJ cat/NN and/CC white/JJ dogs/NNS", ""),
    ],
)
def test_what_is_said_of_a_noun_beside_its_chunk(caption, said):
    words, tags = zip(*(word.split("/") for word in caption.split()), strict=True)
    assert " ".join(words[place] for place in find_chunks(tags)[0].beside) == said
