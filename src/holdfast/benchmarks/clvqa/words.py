"""The setting `text`: the answers of CLEVR as words, written by a model, with one output for all questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain

import torch

from holdfast.benchmarks.base import Setup
from holdfast.benchmarks.clvqa.tasks import ANSWERS, TASK
from holdfast.benchmarks.source import Source
from holdfast.benchmarks.vocabulary import word_pieces
from holdfast.data.language import FolderLanguage, Language, WordPieces, filled
from holdfast.data.table import Data, Shared, Table
from holdfast.data.text import Tokenizer
from holdfast.tasks import Generate, References
from holdfast.types import Wants

MOST = 64
"""The maximum number of tokens of a question."""


def language_of(source: Source, wants: Wants, texts: Callable[[], Iterator[str]]) -> Language:
    """The model's own language, or word pieces of the questions and answers."""
    if wants.speaks is not None:
        return FolderLanguage(wants.speaks, wants.template, wants.image_text)
    if wants.vocabulary is not None:
        return WordPieces(Tokenizer.load(wants.vocabulary))
    return WordPieces(word_pieces(source, lambda: chain(texts(), ANSWERS), None, "questions and answers")[0])


def with_answers(setup: Setup, language: Language) -> Setup:
    """A set-up of classes in which the name of a question's class is the text to write."""
    answers = language.answers(ANSWERS)
    tokens, longest = torch.from_numpy(filled(answers, -1)), max(map(len, answers))
    tables = [
        Table(table.task, {**table.inputs, "answer": Shared(tokens, table.targets)}, table.targets)
        for table in setup.data.tables
    ]
    references = References([[answer] for answer in ANSWERS])
    task = Generate(TASK.name, "text", language.size, TASK.chance, language, references, longest=longest)
    return replace(
        setup,
        data=Data(tables, setup.data.arrangement),
        tasks={TASK.name: task},
        inputs=replace(setup.inputs, answer=longest, end=language.end),
    )
