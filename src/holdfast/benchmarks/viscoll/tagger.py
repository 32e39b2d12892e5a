"""Parts of speech and lemmas: the words of a caption, what each is (Penn tags), and its dictionary form.

The tagger is a part that can be replaced; its name and version go into what is built with it. `gruut` is a conditional
random field that installs from the package registry and runs offline; `spacy` and `stanza` (the paper's) are used where
they are installed with a model for English.
"""

from __future__ import annotations

import base64
import re
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Protocol

from holdfast.errors import UserError, nearest

_WORD = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_]+(?:['’-][^\W_]+)*|\S")
_ENDS = {":2": slice(2), ":3": slice(3), "-2:": slice(-2, None), "-3:": slice(-3, None)}
_KINDS = {"N": "NOUN", "V": "VERB", "J": "ADJ", "R": "ADV"}
_MODEL = {"spacy": "en_core_web_sm", "stanza": "en"}
_EXTRA = "install it with `pip install holdfast[phrases]`"


class Tagger(Protocol):
    """Gives each word of each caption its Penn tag."""

    @property
    def name(self) -> str:
        """By which name it is chosen."""

    @property
    def version(self) -> str:
        """Which tags it gives: another version may give others."""

    def tag(self, captions: Sequence[Sequence[str]]) -> list[list[str]]:
        """One tag a word."""


def split_words(text: str) -> tuple[str, ...]:
    """The words of a caption, lower case, and its marks.

    >>> split_words("A man's t-shirt, at 10:30. ")
    ('a', "man's", 't-shirt', ',', 'at', '10:30', '.')
    """
    return tuple(_WORD.findall(text.lower()))


@cache
def lemma(word: str, tag: str) -> str:
    """The dictionary form of a word that has a tag; words other than nouns, verbs, adjectives stay as they are.

    >>> lemma("children", "NNS"), lemma("lying", "VBG"), lemma("larger", "JJR"), lemma("the", "DT")
    ('child', 'lie', 'large', 'the')
    """
    if (kind := _KINDS.get(tag[:1])) is None:
        return word
    found = _lemmas()(word, upos=kind)
    return str(found[0]) if found else word


@dataclass(frozen=True)
class Gruut:
    """The English model of gruut: a conditional random field over the word, its ends, and its neighbours."""

    name: ClassVar[str] = "gruut"

    @property
    def version(self) -> str:
        """The versions of the model and of the lemmas."""
        return f"{version('gruut-lang-en')}+lemminflect-{version('lemminflect')}"

    def tag(self, captions: Sequence[Sequence[str]]) -> list[list[str]]:
        """One tag a word."""
        model = _gruut_model()
        return [model.tag(_sequence(words)) for words in captions]


@dataclass(frozen=True)
class Spacy:
    """spaCy's small English model, where the user has it."""

    name: ClassVar[str] = "spacy"

    @property
    def version(self) -> str:
        """The versions of the package and of the model."""
        return f"{version('spacy')}+{_MODEL['spacy']}-{version(_MODEL['spacy'])}"

    def tag(self, captions: Sequence[Sequence[str]]) -> list[list[str]]:
        """One tag a word."""
        pipeline, doc = _spacy_pipeline()
        return [[word.tag_ for word in each] for each in pipeline.pipe(doc(pipeline.vocab, list(c)) for c in captions)]


@dataclass(frozen=True)
class Stanza:
    """Stanza's English model, the paper's choice, where the user has it."""

    name: ClassVar[str] = "stanza"

    @property
    def version(self) -> str:
        """The version of the package, which fixes that of its models."""
        return version("stanza")

    def tag(self, captions: Sequence[Sequence[str]]) -> list[list[str]]:
        """One tag a word."""
        found = _stanza_pipeline()([list(words) for words in captions])
        return [[word.xpos for word in sentence.words] for sentence in found.sentences]


TAGGERS: Mapping[str, Callable[[], Tagger]] = {"gruut": Gruut, "spacy": Spacy, "stanza": Stanza}


def open_tagger(name: str) -> Tagger:
    """A tagger that works here, or a sentence that says what it lacks.

    >>> open_tagger("gruut").tag([["a", "small", "cat", "lying", "down"]])
    [['DT', 'JJ', 'NN', 'VBG', 'RP']]
    """
    if name not in TAGGERS:
        raise UserError(f"there is no tagger {name!r}: {nearest(name, TAGGERS)}")
    _lemmas()
    tagger = TAGGERS[name]()
    tagger.tag([["a", "cat"]])
    return tagger


@cache
def _lemmas() -> Callable[..., tuple[str, ...]]:
    try:
        from lemminflect import getLemma  # type: ignore[import-untyped]
    except ImportError:
        raise UserError(f"lemmas need the package lemminflect: {_EXTRA}") from None
    found: Callable[..., tuple[str, ...]] = getLemma
    return found


@cache
def _gruut_model() -> Any:
    found = find_spec("gruut_lang_en")
    model = Path(found.origin).parent / "pos" / "model.crf" if found is not None and found.origin else None
    if model is None or not model.is_file() or find_spec("pycrfsuite") is None:
        raise UserError(f"the tagger gruut needs the packages gruut-lang-en and python-crfsuite: {_EXTRA}")
    import pycrfsuite  # type: ignore[import-untyped]

    tagger = pycrfsuite.Tagger()
    tagger.open(str(model))
    return tagger


@cache
def _spacy_pipeline() -> tuple[Any, Any]:
    if find_spec("spacy") is None or find_spec(_MODEL["spacy"]) is None:
        raise UserError(
            f"the tagger spacy needs spaCy and its model {_MODEL['spacy']}: install spacy, then run "
            f"`python -m spacy download {_MODEL['spacy']}`"
        )
    import spacy  # type: ignore[import-not-found]

    return spacy.load(_MODEL["spacy"], exclude=["parser", "ner", "lemmatizer"]), spacy.tokens.Doc


@cache
def _stanza_pipeline() -> Any:
    advice = f"install stanza, then run `python -c 'import stanza; stanza.download(\"{_MODEL['stanza']}\")'`"
    if find_spec("stanza") is None:
        raise UserError(f"the tagger stanza needs Stanza and its English model: {advice}")
    import stanza  # type: ignore[import-not-found]

    settings = {"processors": "tokenize,pos", "tokenize_pretokenized": True, "verbose": False}
    try:
        return stanza.Pipeline(_MODEL["stanza"], download_method=None, **settings)
    except Exception as error:
        raise UserError(f"Stanza's English model does not open ({type(error).__name__}): {advice}") from None


@lru_cache(maxsize=20_000)  # most words of captions are a few thousand; a kilobyte each
def _local(word: str, place: str) -> dict[str, float]:
    """What the model looks at of a word that stands at a place, under the names that it was trained with."""
    encoded = base64.b64encode(word.encode()).decode("ascii")
    ends = {f"{place}word[{part}]:{word[cut]}": 1.0 for part, cut in _ENDS.items()}
    return {
        f"{place}bias": 1.0,
        f"{place}word:{encoded}": 1.0,
        f"{place}len(word)": float(len(word)),
        f"{place}word.ispunctuation": float(word in string.punctuation),
        f"{place}word.isdigit()": float(word.isdigit()),
        **ends,
    }


def _sequence(words: Sequence[str]) -> Any:
    import pycrfsuite

    rows = []
    last = len(words) - 1
    for index, word in enumerate(words):
        row = dict(_local(word, ""))
        for step in (-2, -1, 1, 2):
            if 0 <= index + step <= last:
                row |= _local(words[index + step], f"{step:+d}:")
        if index == 0:
            row["BOS"] = 1.0
        if index == last:
            row["EOS"] = 1.0
        rows.append(row)
    return pycrfsuite.ItemSequence(rows)
