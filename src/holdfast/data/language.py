"""The tokens of generative models: prompts by a template, answers with an end, and tokens as text again."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.data.text import Tokenizer
from holdfast.errors import UserError, missing_extra
from holdfast.types import Array

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

VERSION = 1
SLOT = "{}"
IMAGE = "<image>"
"""The mark for an image in a template."""
PLAIN = f"{SLOT}\n"
"""The template for models without a chat template."""
SEPARATOR = "[SEP]"
"""The word piece that ends an answer."""
FILES = ("tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja", "chat_template.json")


class Language(ABC):
    """How texts become the tokens of a model, and back. Two languages are equal if their fingerprints are."""

    size: int
    """The number of tokens."""
    end: int
    """The token that ends an answer."""
    pad: int
    """The token that pads a text."""
    image: int | None = None
    """The token that stands for a vector of an image."""

    @abstractmethod
    def prompts(self, asked: Sequence[str], images: bool = False) -> list[list[int]]:
        """The tokens of prompts, with a place for an image if `images` is true."""

    @abstractmethod
    def answers(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of answers, which end with `end`."""

    @abstractmethod
    def text(self, tokens: Sequence[int]) -> str:
        """The text of some tokens, without special ones."""

    @abstractmethod
    def fingerprint(self) -> str:
        """A hash of everything that determines the tokens."""

    def texts(self, tokens: Array) -> list[str]:
        """The texts of rows of tokens, which are padded with negative numbers."""
        return [self.text([token for token in row if token >= 0]) for row in tokens.tolist()]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Language) and self.fingerprint() == other.fingerprint()

    def __hash__(self) -> int:
        return hash(self.fingerprint())


class PromptPieces:
    """Texts as the tokens of prompts, in the form in which tables are prepared."""

    def __init__(self, language: Language, images: bool, title: str) -> None:
        self.language, self.images, self.title = language, images, title

    @property
    def fingerprint(self) -> str:
        """The language's fingerprint, and whether prompts have images."""
        return f"prompts {self.language.fingerprint()} {self.images}"

    def encode(self, texts: Sequence[str], length: int) -> tuple[Array, Array]:
        """Prompts as an array (texts, length), padded, and their true lengths; longer ones are shortened."""
        prompts = self.language.prompts(texts, self.images)
        prompts = [shortened(prompt, length, self.language.image, self.title) for prompt in prompts]
        found = np.full((len(prompts), length), self.language.pad, np.int32)
        for number, prompt in enumerate(prompts):
            found[number, : len(prompt)] = prompt
        return found, np.array([len(prompt) for prompt in prompts], np.int32)

    def length(self, words: int) -> int:
        """The length of a prompt with this number of tokens in its text."""
        return len(self.language.prompts([""], self.images)[0]) + words


class WordPieces(Language):
    """Word pieces of a benchmark's own text: a prompt is [CLS], its pieces and [SEP]; an answer ends with [SEP].

    >>> from holdfast.data.text import SPECIAL
    >>> pieces = WordPieces(Tokenizer((*SPECIAL, "red", "cup", "##s")))
    >>> pieces.prompts(["Red cups"]), pieces.answers(["red"]), pieces.text([5, 6, 7])
    ([[2, 5, 6, 7, 3]], [[5, 3]], 'red cups')
    """

    def __init__(self, pieces: Tokenizer) -> None:
        if SEPARATOR not in pieces.vocabulary:
            raise UserError(
                f"this model's word pieces have no {SEPARATOR}, which ends an answer: choose a language model, such as "
                "prefix-lm-tiny, or hf:FOLDER with a causal language model"
            )
        self.pieces = pieces
        self.size, self.pad, self.end = len(pieces.vocabulary), pieces.pad, pieces.vocabulary.index(SEPARATOR)

    def prompts(self, asked: Sequence[str], images: bool = False) -> list[list[int]]:
        """The pieces between [CLS] and [SEP]; an image comes before them."""
        return self._encoded(asked)

    def answers(self, texts: Sequence[str]) -> list[list[int]]:
        """The pieces and [SEP]."""
        return [found[1:] for found in self._encoded(texts)]

    def text(self, tokens: Sequence[int]) -> str:
        """The text of the word pieces."""
        return self.pieces.decode(tokens)

    def fingerprint(self) -> str:
        """The fingerprint of the word pieces."""
        return self.pieces.fingerprint

    def _encoded(self, texts: Sequence[str]) -> list[list[int]]:
        room = max((len(text) for text in texts), default=0) + 2
        numbers, lengths = self.pieces.encode(list(texts), room)
        return [row[:length].tolist() for row, length in zip(numbers, lengths, strict=True)]


class FolderLanguage(Language):
    """The tokenizer of a folder in Hugging Face's format, with its chat template, or one that is given.

    A template has `{}` for the text, and `<image>` for an image. `image_text` is the text that replaces `<image>` in a
    prompt: one token for each vector of the image. If it is empty, the image comes before the prompt.
    """

    def __init__(self, folder: Path, template: str = "", image_text: str = "") -> None:
        self.folder, self.template, self.image_text = folder, template, image_text
        if template and template.count(SLOT) != 1:
            raise UserError(f"model.template is {template!r}: write {SLOT} once, where the text goes")
        tokenizer = self._tokenizer
        self.size, pad, end = len(tokenizer), tokenizer.pad_token_id, tokenizer.eos_token_id
        if not isinstance(end, int):
            raise UserError(
                f"the tokenizer of {folder} has no token that ends a text: set its eos_token, and save it again"
            )
        if not isinstance(pad, int):
            raise UserError(
                f"the tokenizer of {folder} has no padding token: set tokenizer.pad_token, to tokenizer.eos_token for "
                "example, and save it again"
            )
        self.end, self.pad = end, pad
        self.image = int(tokenizer.get_vocab()[self._image_token]) if image_text else None
        self._chats = not template and bool(tokenizer.chat_template)

    def prompts(self, asked: Sequence[str], images: bool = False) -> list[list[int]]:
        """The tokens of the filled template; special tokens come from a chat template, or else from the tokenizer."""
        images = images and bool(self.image_text)
        shown = self._image_token if images else ""
        written = [self._chat(text, images) for text in asked] if self._chats else self._filled(asked, images)
        if images:
            for text in written[:1]:
                if text.count(shown) != 1:
                    where = "the chat template" if self._chats else f"model.template {self.template!r}"
                    raise UserError(
                        f"{where} has {text.count(shown) or 'no'} {shown}, and each example has one image: write "
                        f"{IMAGE} once in model.template, as in 'USER: {IMAGE}\\n{SLOT} ASSISTANT: '"
                    )
            written = [text.replace(shown, self.image_text, 1) for text in written]
        found: list[list[int]] = self._tokenizer(written, add_special_tokens=not self._chats)["input_ids"]
        return [row[:-1] if row and row[-1] == self.end and not self._chats else row for row in found]

    def answers(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of each text, after a space if the prompt does not end in white space, and the end."""
        lead = "" if self._spaced else " "
        found: list[list[int]] = self._tokenizer([lead + text for text in texts], add_special_tokens=False)["input_ids"]
        return [[*row, self.end] for row in found]

    def text(self, tokens: Sequence[int]) -> str:
        """The text, without the space before it."""
        return str(self._tokenizer.decode(list(tokens), skip_special_tokens=True)).strip()

    def fingerprint(self) -> str:
        """A hash of the tokenizer's files and of the template."""
        digest = hashlib.blake2b(json.dumps([self.template, self.image_text]).encode(), digest_size=16)
        for name in ("tokenizer.json", *FILES):
            if (path := self.folder / name).is_file():
                digest.update(name.encode() + path.read_bytes())
        return digest.hexdigest()

    def _filled(self, asked: Sequence[str], images: bool) -> list[str]:
        template = self.template or (f"{IMAGE}\n{PLAIN}" if images else PLAIN)
        if images:
            template = template.replace(IMAGE, self._image_token)
        before, after = template.split(SLOT)
        return [f"{before}{text}{after}" for text in asked]

    def _chat(self, text: str, images: bool) -> str:
        content: Any = [{"type": "image"}, {"type": "text", "text": text}] if images else text
        try:
            return str(
                self._tokenizer.apply_chat_template(
                    [{"role": "user", "content": content}], add_generation_prompt=True, tokenize=False
                )
            )
        except Exception as error:  # a template may raise anything
            raise UserError(
                f"the chat template of {self.folder} fails ({error}): give one with --set model.template=..., such as "
                f"'Question: {SLOT} Answer: '"
            ) from None

    @cached_property
    def _image_token(self) -> str:
        return str(getattr(self._tokenizer, "image_token", None) or IMAGE)

    @cached_property
    def _spaced(self) -> bool:
        """Whether an answer needs no space before it: the prompt ends in one, or the tokenizer adds it."""
        prompt = self._chat("a", images=False) if self._chats else self._filled(["a"], images=False)[0]
        first = self._tokenizer.tokenize("a", add_special_tokens=False)[:1]
        return prompt[-1:].isspace() or any(token.startswith("▁") for token in first)

    @cached_property
    def _tokenizer(self) -> PreTrainedTokenizerBase:
        try:
            import transformers
        except ImportError:
            raise missing_extra("hf: needs the library transformers", "hf") from None
        try:
            found: PreTrainedTokenizerBase = transformers.AutoTokenizer.from_pretrained(
                self.folder, local_files_only=True, trust_remote_code=False
            )
        except Exception as error:  # the library fails in many ways on what it cannot read
            told = next(filter(None, str(error).splitlines()), type(error).__name__)
            raise UserError(f"the tokenizer of {self.folder} cannot be loaded: {told}") from None
        return found

    def __getstate__(self) -> dict[str, Any]:  # without the library's object: each process loads its own
        return {name: value for name, value in vars(self).items() if name != "_tokenizer"}


def filled(rows: Sequence[Sequence[int]], padding: int) -> Array:
    """Rows of tokens as one array.

    >>> filled([[1, 2], [3]], 0).tolist()
    [[1, 2], [3, 0]]
    """
    found = np.full((len(rows), max(map(len, rows))), padding, np.int32)
    for number, row in enumerate(rows):
        found[number, : len(row)] = row
    return found


def shortened(prompt: list[int], length: int, image: int | None, title: str) -> list[int]:
    """A prompt shortened in the middle of the part after its image.

    >>> shortened([1, 2, 3, 4, 5, 6], 4, None, "here")
    [1, 2, 5, 6]
    >>> shortened([9, 9, 9, 1, 2, 3, 4], 5, 9, "here")
    [9, 9, 9, 1, 4]
    """
    if len(prompt) <= length:
        return prompt
    start = len(prompt) - prompt[::-1].index(image) if image in prompt else 0
    half = (length - start) // 2
    if half < 1:
        raise UserError(f"{title}: a prompt of {length} tokens has no room for words: set benchmark.length higher")
    return prompt[: length - half] + prompt[len(prompt) - half :]
