"""Models of the library `transformers`, loaded from folders without downloading or executing anything."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from holdfast.errors import UserError, missing_extra
from holdfast.files import refuse_strange
from holdfast.models import weights

SETTING = "model.weights"
SAFELY: Mapping[str, Any] = {"local_files_only": True, "trust_remote_code": False}
"""How the library reads a folder: it downloads nothing, and does not ask whether to execute code that lies there."""


def found() -> Any:
    """The library."""
    try:
        import transformers
    except ImportError:
        raise missing_extra("hf: needs the library transformers", "hf") from None
    return transformers


def folder(name: str) -> Path:
    """The folder of a model: a local one, or one of the local cache."""
    if not name:
        raise UserError("a Hugging Face model needs a folder, or a name in the local cache: write hf:FOLDER or hf:NAME")
    place = weights.locate(name.removeprefix("hf:"), SETTING, download=False)
    refuse_strange(place)
    return place


def loaded(folder: Path, kind: str, optional: str = "") -> tuple[Any, list[str]]:
    """A folder's model by one of the library's `Auto` classes, and the names of the optional weights that it lacks."""
    transformers = found()
    if not weights.weight_files(folder):
        raise UserError(f"{folder} has no weights: it needs model.safetensors, or pytorch_model.bin")
    refuse_strange(folder)
    with quiet():
        try:
            model, loading = getattr(transformers, kind).from_pretrained(
                folder, dtype=torch.float32, output_loading_info=True, **SAFELY
            )
        except Exception as error:  # the library fails in many ways on what it cannot read
            told = next(filter(None, str(error).splitlines()), type(error).__name__)
            raise UserError(f"{folder} cannot be loaded: {told}") from error
    missing = sorted(loading["missing_keys"])
    for name in missing:
        if not optional or optional not in name:
            raise UserError(f"{folder} lacks {name}: give the weights of a whole {type(model).__name__}")
    return model, missing


@contextmanager
def quiet() -> Iterator[None]:
    """Hide the library's progress bars and loading messages; we report what matters in them ourselves."""
    from transformers.utils import logging as notes

    notes_of: Any = notes
    level, bars = notes_of.get_verbosity(), notes_of.is_progress_bar_enabled()
    notes_of.set_verbosity(logging.CRITICAL)
    notes_of.disable_progress_bar()
    try:
        yield
    finally:
        notes_of.set_verbosity(level)
        if bars:
            notes_of.enable_progress_bar()
