"""The cache folder for the outputs of a model's frozen part, up to a limit."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

from holdfast.benchmarks import cache
from holdfast.data import decoding, text
from holdfast.engine.once import Keep
from holdfast.errors import UserError
from holdfast.experiments import parts
from holdfast.experiments.config import Config
from holdfast.models.base import Model

KIND, MODULE = "frozen", "holdfast.engine.once"
LIMIT, LIMIT_GB = "HOLDFAST_FROZEN_GB", 20.0
"""The environment variable with the gigabytes that all tables together may take; 0 disables them."""
SHARE = 0.5
"""A table takes at most this share of the free disk space."""


def keep(config: Config) -> Keep | None:
    """The place for the tables of a run; None if no tables may be kept."""
    content = config.content
    found = of_model(config.recipe, content.get("threads", 1), content["precision"])
    own = parts.of_benchmark(config.benchmark, config.recipe), sorted(config.further.items())
    return None if found is None else replace(found, settings=cache.digest(content["model"], own))


def of_model(recipe: Model, threads: int = 1, precision: str = "float32") -> Keep | None:
    """The place for the tables of a model's towers, shared by all its runs and by the alignment of its towers."""
    if limit_bytes() == 0:
        return None
    kinds = type(recipe), *recipe.uses()
    own = parts.versions(*kinds), parts.code("model", *kinds)
    # The names of tables cover the content of pictures, or the files of pictures that are decoded during training.
    return Keep(cache.digest(own, decoding.VERSION, text.VERSION, threads, precision), folder)


def limit_bytes() -> int:
    """The number of bytes that all tables together may take."""
    said = os.environ.get(LIMIT, "")
    try:
        limit = float(said or LIMIT_GB)
    except ValueError:
        limit = -1.0
    if not 0 <= limit < float("inf"):
        raise UserError(f"{LIMIT} is {said!r}: set it to the gigabytes that outputs of frozen models may take, or to 0")
    return int(limit * 1e9)


def most_bytes() -> int:
    """The maximum number of bytes that a new table may take on this disk."""
    folder = cache.cache_folder()
    there = next(each for each in (folder, *folder.absolute().parents) if each.is_dir())
    return min(limit_bytes(), int(SHARE * shutil.disk_usage(there).free))


def folder(name: str, title: str, size: int) -> Path | None:
    """The folder for a table; the least recently used tables are removed to make room for it."""
    limit, place = limit_bytes(), cache.cache_folder() / KIND / name
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        others = sorted((each for each in cache.entries() if each.kind == KIND), key=lambda each: each.used)
        taken = sum(each.bytes for each in others)
        while others and taken + size > limit:
            oldest = others.pop(0)
            for path in oldest.paths:
                cache.remove(path)  # a process that has it open can continue to read it
            taken -= oldest.bytes
        if taken + size > limit or size > SHARE * shutil.disk_usage(place.parent).free:
            return None
    return cache.place(KIND, name, title, [MODULE], {})
