"""Another value for each setting, by its type, and for those that are words, by hand."""

import dataclasses
import types
import typing
from typing import Annotated, Literal, Union

from holdfast.settings import fields
from holdfast.types import Between

BY_HAND = {
    ("patterns", "order"): "reverse",
    ("clvqa", "order"): "yn>wh",
    ("climb", "order"): "2",
    ("climb:lowshot", "task"): "imdb",
    ("climb:lowshot", "shots"): "4",
    ("dataset", "reader"): "sst2",
    ("mtil", "order"): "mnist>dtd",
    ("text:cl", "order"): "CB>agnews",
    ("captions", "order"): "flickr8k>coco:food",
    ("instructions:coin", "order"): "GQA>VizWiz",
    ("instructions:ucit", "order"): "CLEVR>IconQA",
    **{(name, "image"): "resnet18-tiny" for name in ("dual", "dual-tiny")},
    **{(name, "text"): "bert-tiny" for name in ("dual", "dual-tiny")},
    ("dual", "weights"): "holdfast/dual-tiny",
    ("dual-tiny", "weights"): "",
    ("train", "rates"): ("encoder.*=0.5",),
    ("viscoll:coco", "tagger"): "another",
    ("viscoll:flickr", "tagger"): "another",
    ("viscoll:flickr8k", "tagger"): "another",
}


def other(owner, kind, name):
    """A value that is allowed for a setting and is not its default."""
    default = next(field.default for field in dataclasses.fields(kind) if field.name == name)
    known = BY_HAND.get((owner, name))
    return _other(fields(kind)[name], default) if known is None else known


def _other(hint, default):
    low, high = None, None
    if typing.get_origin(hint) in (Union, types.UnionType):
        (hint,) = (each for each in typing.get_args(hint) if each is not type(None))
    if typing.get_origin(hint) is Annotated:
        hint, *notes = typing.get_args(hint)
        low, high = next(((note.low, note.high) for note in notes if isinstance(note, Between)), (None, None))
        if typing.get_origin(hint) in (Union, types.UnionType):
            (hint,) = (each for each in typing.get_args(hint) if each is not type(None))
    if typing.get_origin(hint) is Literal:
        return next(choice for choice in typing.get_args(hint) if choice != default)
    if typing.get_origin(hint) is tuple:
        return tuple(_other(part, value) for part, value in zip(typing.get_args(hint), default, strict=True))
    if hint is bool:
        return not default
    if hint is str:
        return "another"
    if hint is int:
        return 2 * default if default else max(low or 0, 16)
    assert hint is float
    return default / 2 if default else min(0.25, high or 0.25)
