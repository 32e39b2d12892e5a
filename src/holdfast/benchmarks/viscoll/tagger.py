"""Parts of speech and lemmas: the words of a caption, the Penn tag of each, and its dictionary form.

The tagger can be replaced; its name and version are recorded with everything built with it. `gruut` is a conditional
random field that installs from the package registry and runs offline; `spacy` and `stanza` (the paper's) can be used if
they are installed with a model for English.
"""

from __future__ import annotations

import base64
import re
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from holdfast.errors import UserError, nearest

_WORD = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_]+(?:['’-][^\W_]+)*|\S")
_ENDS = {":2": slice(2), ":3": slice(3), "-2:": slice(-2, None), "-3:": slice(-3, None)}
_KINDS = {"N": "NOUN", "V": "VERB", "J": "ADJ", "R": "ADV"}
_SPACY = "en_core_web_sm"


@dataclass(frozen=True)
class Tagger:
    """Assigns a Penn tag to each word of each caption; other versions may assign different tags."""

    name: str
    version: str
    tag: Callable[[Sequence[Sequence[str]]], list[list[str]]]


def split_words(text: str) -> tuple[str, ...]:
    """The words of a caption, in lower case, and its punctuation marks.

    >>> split_words("A man's t-shirt, at 10:30. ")
    ('a', "man's", 't-shirt', ',', 'at', '10:30', '.')
    """
    return tuple(_WORD.findall(text.lower()))


@cache
def lemma(word: str, tag: str) -> str:
    """The dictionary form of a tagged word; words other than nouns, verbs and adjectives are unchanged.

    >>> lemma("children", "NNS"), lemma("lying", "VBG"), lemma("larger", "JJR"), lemma("the", "DT")
    ('child', 'lie', 'large', 'the')
    """
    if (kind := _KINDS.get(tag[:1])) is None:
        return word
    from lemminflect import getLemma  # type: ignore[import-untyped]

    found = getLemma(word, upos=kind)
    return str(found[0]) if found else word


@cache
def open_tagger(name: str) -> Tagger:
    """A tagger that works on this machine; if something is missing, a UserError says what.

    >>> open_tagger("gruut").tag([["a", "small", "cat", "lying", "down"]])
    [['DT', 'JJ', 'NN', 'VBG', 'RP']]
    """
    if name not in TAGGERS:
        raise UserError(f"unknown tagger {name!r}: {nearest(name, TAGGERS)}")
    return TAGGERS[name]()


def _gruut() -> Tagger:
    """The English model of gruut: a conditional random field over the word, its ends, and its neighbours."""
    import gruut_lang_en  # type: ignore[import-untyped]
    import pycrfsuite  # type: ignore[import-untyped]

    model = pycrfsuite.Tagger()
    model.open(str(Path(gruut_lang_en.__file__).parent / "pos" / "model.crf"))
    own = f"{version('gruut-lang-en')}+lemminflect-{version('lemminflect')}"
    return Tagger("gruut", own, lambda captions: [model.tag(_sequence(words)) for words in captions])


def _spacy() -> Tagger:
    """The small English model of spaCy."""
    advice = f"install spacy, then run `python -m spacy download {_SPACY}`"
    if find_spec("spacy") is None or find_spec(_SPACY) is None:
        raise UserError(f"the tagger spacy needs spaCy and its model {_SPACY}: {advice}")
    from spacy.tokens import Doc  # type: ignore[import-not-found, unused-ignore]

    try:
        pipeline = import_module(_SPACY).load(disable=["parser", "ner", "lemmatizer"])
    except Exception as error:  # such as a model for another version of spaCy
        raise UserError(f"spaCy's model {_SPACY} does not open ({type(error).__name__}): {advice}") from None

    def tag(captions: Sequence[Sequence[str]]) -> list[list[str]]:
        documents = (Doc(pipeline.vocab, words=list(words)) for words in captions)
        for _, part in pipeline.pipeline:  # pipeline.pipe takes no documents before spaCy 3.2
            documents = part.pipe(documents)
        return [[word.tag_ for word in document] for document in documents]

    return Tagger("spacy", f"{version('spacy')}+{_SPACY}-{pipeline.meta['version']}", tag)


def _stanza() -> Tagger:
    """Stanza's English model, the paper's choice; the version of the package determines that of its models."""
    advice = "install stanza, then run `python -c 'import stanza; stanza.download(\"en\")'`"
    if find_spec("stanza") is None:
        raise UserError(f"the tagger stanza needs Stanza and its English model: {advice}")
    import stanza  # type: ignore[import-not-found, unused-ignore]

    settings = {"processors": "tokenize,pos", "tokenize_pretokenized": True, "verbose": False}
    try:
        pipeline = stanza.Pipeline("en", download_method=None, **settings)
    except Exception as error:
        raise UserError(f"Stanza's English model does not open ({type(error).__name__}): {advice}") from None

    def tag(captions: Sequence[Sequence[str]]) -> list[list[str]]:
        found = pipeline([list(words) for words in captions])
        return [[word.xpos for word in sentence.words] for sentence in found.sentences]

    return Tagger("stanza", version("stanza"), tag)


TAGGERS: Mapping[str, Callable[[], Tagger]] = {"gruut": _gruut, "spacy": _spacy, "stanza": _stanza}


@lru_cache(maxsize=20_000)  # captions mostly use a few thousand words; a kilobyte each
def _local(word: str, place: str) -> dict[str, float]:
    """The features the model uses for a word at a position, under the names that it was trained with."""
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
