import os
import pickle
import random
import subprocess
import sys
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from holdfast.data.text import NEUTRAL_NAMES, SPECIAL, Tokenizer, neutral_text, train
from holdfast.errors import UserError

TEXTS = [
    "A red cup stands on the dining table.",
    "Two cups stand; the reddest one isn't standing!",
    "Why is the café closed? The café closes at ten.",
    "the dogs are running after the other running dog",
] * 3


def by_hand(text: str, vocabulary: tuple[str, ...]) -> list[str]:
    """Longest piece first, over words of plain lower-case letters: the definition of word pieces."""
    out = []
    for word in text.lower().split():
        pieces, rest = [], word
        while rest:
            prefix = "##" if pieces else ""
            fits = [i for i in range(len(rest), 0, -1) if prefix + rest[:i] in vocabulary]
            if not fits:
                pieces = ["[UNK]"]
                break
            pieces.append(prefix + rest[: fits[0]])
            rest = rest[fits[0] :]
        out += pieces
    return out


def merged_by_hand(words: Counter[str], size: int) -> list[str]:
    """Training, by counting everything anew at each step."""
    split = {word: [word[0], *("##" + c for c in word[1:])] for word in words}
    letters = sorted({p for pieces in split.values() for p in pieces}, key=lambda p: (p.startswith("##"), p))
    vocabulary = [*SPECIAL, *letters]
    while len(vocabulary) < size:
        pairs: Counter[tuple[str, str]] = Counter()
        for word, pieces in split.items():
            for pair in pairwise(pieces):
                pairs[pair] += words[word]
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        new = best[0] + best[1][2:]
        if new not in vocabulary:
            vocabulary.append(new)
        for pieces in split.values():
            i = 0
            while i < len(pieces) - 1:
                if (pieces[i], pieces[i + 1]) == best:
                    pieces[i : i + 2] = [new]
                i += 1
    return vocabulary


def test_a_trained_vocabulary_covers_its_texts_and_encodes_by_the_longest_piece():
    tokenizer = train(TEXTS, 90)
    assert len(tokenizer.vocabulary) == 90
    for text in ["the dogs are running", "standing cups", "red running table", "zzz café"]:
        numbers, lengths = tokenizer.encode([text], 40)
        pieces = [tokenizer.vocabulary[n] for n in numbers[0, : lengths[0]]]
        assert pieces == ["[CLS]", *by_hand(text.replace("é", "e"), tokenizer.vocabulary), "[SEP]"]
    numbers, _ = tokenizer.encode(TEXTS, 60)
    assert tokenizer.vocabulary.index("[UNK]") not in numbers
    assert numbers.dtype == np.int32


@pytest.mark.parametrize("seed", range(5))
def test_training_merges_the_most_frequent_pair_each_time(seed):
    rng = random.Random(seed)
    words = ["".join(rng.choice("abc") for _ in range(rng.randint(1, 7))) for _ in range(40)]
    assert list(train(words, 40).vocabulary) == merged_by_hand(Counter(words), 40)


def test_training_depends_on_nothing_but_the_texts():
    """Not on the order, and not on the hash seed of the process."""
    shuffled = random.Random(1).sample(TEXTS, len(TEXTS))
    assert train(shuffled, 80) == train(TEXTS, 80)
    code = f"from holdfast.data.text import train; print(train({TEXTS!r}, 80).fingerprint)"
    found = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert found == {train(TEXTS, 80).fingerprint.encode()}


def test_a_vocabulary_smaller_than_its_letters_is_refused():
    with pytest.raises(UserError, match="too small"):
        train(TEXTS, 12)


def test_long_texts_are_cut_and_pairs_follow():
    tokenizer = Tokenizer((*SPECIAL, "red", "cup"))
    numbers, lengths = tokenizer.encode(["red " * 9, "cup"], 5)
    assert numbers.tolist() == [[2, 5, 5, 5, 3], [2, 6, 3, 0, 0]]
    assert lengths.tolist() == [5, 3]
    numbers, lengths, second = tokenizer.encode_pairs(["red", "cup"], ["cup", "red red red red"], 6)
    assert numbers.tolist() == [[2, 5, 3, 6, 3, 0], [2, 6, 3, 5, 5, 3]]
    assert (lengths.tolist(), second.tolist()) == ([5, 6], [3, 3])
    assert tokenizer.encode([], 5)[0].shape == (0, 5)
    with pytest.raises(UserError, match="no room"):
        tokenizer.encode(["red"], 1)
    with pytest.raises(UserError, match="no room"):
        tokenizer.encode_pairs(["red"], ["red"], 2)
    for encode in (tokenizer.encode_pairs, tokenizer.encode_joined):
        with pytest.raises(UserError, match="as many pairs"):
            encode(["red"], ["a", "b"], 8)


@pytest.fixture
def berts(tmp_path):
    """Our word pieces, and the same in `transformers`."""
    import transformers

    ours = train([*TEXTS, "Why is Casey pointing at the gray diningtable ? She wants it ."], 120)
    ours.save(tmp_path / "vocab.txt")
    return ours, transformers.BertTokenizerFast.from_pretrained(tmp_path)


ASKED = ["why is casey pointing at the gray diningtable ?", "why ?", "", "the gray diningtable " * 6]
ANSWERED = ["she wants it .", "the gray diningtable " * 6, "casey", "the gray diningtable " * 6]


@pytest.mark.parametrize("length", [5, 8, 13, 40])
def test_pairs_are_those_of_transformers(berts, length):
    ours, theirs = berts
    numbers, lengths, second = ours.encode_pairs(ASKED, ANSWERED, length)
    found = theirs(ASKED, ANSWERED, truncation=True, max_length=length, padding="max_length", return_tensors="np")
    np.testing.assert_array_equal(numbers, found["input_ids"])
    np.testing.assert_array_equal(lengths, found["attention_mask"].sum(1))
    at = np.arange(length)
    segments = (at >= second[:, None]) & (at < lengths[:, None])
    np.testing.assert_array_equal(segments, found["token_type_ids"])


@pytest.mark.parametrize("length", [5, 8, 13, 40])
def test_joined_texts_are_one_text_with_sep_inside_for_transformers(berts, length):
    ours, theirs = berts
    numbers, lengths = ours.encode_joined(ASKED, ANSWERED, length)
    joined = [f"{asked} [SEP] {answer}" for asked, answer in zip(ASKED, ANSWERED, strict=True)]
    found = theirs(joined, truncation=True, max_length=length, padding="max_length", return_tensors="np")
    np.testing.assert_array_equal(numbers, found["input_ids"])
    np.testing.assert_array_equal(lengths, found["attention_mask"].sum(1))


@pytest.mark.parametrize("length", [5, 8, 13, 40])
def test_a_text_of_several_parts_has_sep_between_them_for_transformers(berts, length):
    ours, theirs = berts
    texts = [f"{asked} [SEP] {answer}" for asked, answer in zip(ASKED, ANSWERED, strict=True)]
    numbers, lengths = ours.encode_joined(texts, ANSWERED[::-1], length)
    joined = [f"{text} [SEP] {reason}" for text, reason in zip(texts, ANSWERED[::-1], strict=True)]
    found = theirs(joined, truncation=True, max_length=length, padding="max_length", return_tensors="np")
    np.testing.assert_array_equal(numbers, found["input_ids"])
    np.testing.assert_array_equal(lengths, found["attention_mask"].sum(1))
    separators = (numbers == ours.vocabulary.index("[SEP]")).sum(1)
    assert (separators[lengths < length] == 3).all()
    assert separators.min() >= 1


def test_a_vocabulary_file_as_it_is_published(tmp_path):
    """Unused lines before the special pieces, odd characters that are no line ends, either line end."""
    pieces = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "\u2028", "cup", "##s"]
    for end in ("\n", "\r\n"):
        (tmp_path / "vocab.txt").write_bytes(end.join([*pieces, ""]).encode())
        tokenizer = Tokenizer.load(tmp_path / "vocab.txt")
        assert tokenizer.vocabulary == tuple(pieces)
        assert tokenizer.encode(["Cups"], 5)[0].tolist() == [[3, 7, 8, 4, 0]]
    tokenizer.save(tmp_path / "again.txt")
    assert Tokenizer.load(tmp_path / "again.txt") == tokenizer


@pytest.mark.parametrize(
    ("content", "match"),
    [(b"red\ncup\n", r"vocab\.txt: the vocabulary has no"), (b"\xff\xfe", "not UTF-8"), (None, "cannot be read")],
)
def test_a_wrong_vocabulary_file_is_named(tmp_path, content, match):
    if content is not None:
        (tmp_path / "vocab.txt").write_bytes(content)
    with pytest.raises(UserError, match=match):
        Tokenizer.load(tmp_path / "vocab.txt")


def test_a_piece_may_not_come_twice():
    with pytest.raises(UserError, match="'cup' more than once"):
        Tokenizer((*SPECIAL, "cup", "cup"))


def test_a_tokenizer_travels_to_another_process():
    tokenizer = train(TEXTS, 80)
    before = tokenizer.encode(TEXTS, 20)[0]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(tokenizer)).encode(TEXTS, 20)[0], before)


def test_importing_needs_neither_torch_nor_the_library():
    code = (
        "import holdfast.data.text, holdfast.data.images, sys; sys.exit(bool({'torch', 'tokenizers'} & {*sys.modules}))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_neutral_names_by_number_and_no_person_lost():
    assert len(set(NEUTRAL_NAMES)) == 50
    assert [NEUTRAL_NAMES[number] for number in (0, 14, 15, 16, 49)] == [
        "Casey",
        "Morgan",
        "Finley",
        "Harley",
        "Dakota",
    ]
    objects = ["person", "person", "cup", *["person"] * 60]
    assert neutral_text(["Why", "are", [0, 1], "here", "?"], objects) == "Why are Casey and Riley here ?"
    assert (
        neutral_text([[52], "holds", [2], "of", [99]], objects) == f"{NEUTRAL_NAMES[2]} holds the gray cup of someone"
    )
