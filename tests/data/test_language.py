"""Prompts and answers as tokens, by the tokenizers of folders."""

import json
import pickle

import numpy as np
import pytest

from generating import words
from holdfast.data.language import FolderLanguage, WordPieces
from holdfast.data.text import SPECIAL, Tokenizer
from holdfast.errors import UserError

CHAT = (
    "{% for m in messages %}<s>{{ m.role }}: {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}bot:{% endif %}"
)


def test_a_prompt_without_a_template_is_the_text_on_a_line(tmp_path):
    words(tmp_path)
    language = FolderLanguage(tmp_path)
    (prompt,), (answer,) = language.prompts(["hot"]), language.answers(["cold"])
    assert language.text(prompt + answer) == "hot\ncold"
    assert answer[-1] == language.end
    assert language.texts(np.array([[*answer[:-1], -1, -1]])) == ["cold"]


def test_the_chat_template_of_the_folder_counts_unless_one_is_given(tmp_path):
    words(tmp_path, chat_template=CHAT)
    language = FolderLanguage(tmp_path)
    (prompt,), (answer,) = language.prompts(["hot"]), language.answers(["cold"])
    tokenizer = language._tokenizer
    assert tokenizer.decode(prompt) == "<s>user: hot\nbot:"
    assert tokenizer.decode(answer) == " cold</s>", "a space comes between a colon and the answer"
    given = FolderLanguage(tmp_path, template="Q: {} A: ")
    assert tokenizer.decode(given.prompts(["hot"])[0]) == "Q: hot A: "
    assert tokenizer.decode(given.answers(["cold"])[0]) == "cold</s>"
    assert given.fingerprint() != language.fingerprint()
    assert pickle.loads(pickle.dumps(given)).prompts(["hot"]) == given.prompts(["hot"])


@pytest.mark.parametrize(
    ("missing", "told"), [("pad_token", "has no padding token: set tokenizer.pad_token"), ("eos_token", "that ends a")]
)
def test_reports_a_tokenizer_without_a_special_token(missing, told, tmp_path):
    words(tmp_path, **{missing: None})
    with pytest.raises(UserError, match=told):
        FolderLanguage(tmp_path)


@pytest.mark.parametrize("template", ["no slot", "{} and {}"])
def test_reports_a_template_without_one_slot(template, tmp_path):
    words(tmp_path)
    with pytest.raises(UserError, match=r"write \{\} once"):
        FolderLanguage(tmp_path, template)


def test_reports_a_chat_template_that_fails(tmp_path):
    words(tmp_path, chat_template="{{ raise_exception('no') }}")
    with pytest.raises(UserError, match=r"the chat template of .* fails"):
        FolderLanguage(tmp_path).prompts(["hot"])


def test_reports_a_folder_whose_tokenizer_cannot_be_read(tmp_path):
    (tmp_path / "tokenizer.json").write_text(json.dumps({}))
    with pytest.raises(UserError, match="cannot be loaded"):
        FolderLanguage(tmp_path)


def test_languages_of_equal_words_are_equal():
    first, second = (WordPieces(Tokenizer((*SPECIAL, "red"))) for _ in range(2))
    assert first == second
    assert hash(first) == hash(second)


def test_word_pieces_without_an_end_are_refused(tmp_path):
    words(tmp_path)
    with pytest.raises(UserError, match=r"no \[SEP\], which ends an answer: choose a language model"):
        WordPieces(Tokenizer.load(tmp_path / "tokenizer.json"))
