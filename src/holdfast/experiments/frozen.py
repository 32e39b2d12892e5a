"""Where a run keeps what the frozen part of its model gives: in the cache, up to a limit."""

from __future__ import annotations

import os
import shutil
from functools import partial
from pathlib import Path

from holdfast.benchmarks import cache
from holdfast.engine.once import Keep
from holdfast.errors import UserError
from holdfast.experiments import parts
from holdfast.experiments.config import Config

KIND, MODULE = "frozen", "holdfast.engine.once"
LIMIT, LIMIT_GB = "HOLDFAST_FROZEN_GB", 20.0
"""The environment variable with the most gigabytes that all tables may take; 0 computes everything anew."""
SHARE = 0.5
"""A table takes at most this share of what is free on the disk."""


def keep(config: Config) -> Keep | None:
    """Where the tables of a run are kept; None where none may be."""
    if (limit := limit_bytes()) == 0:
        return None
    content = config.content
    model = parts.of_benchmark(config.benchmark, config.recipe)
    key = cache.digest(content["model"], content["data"], model, content.get("threads", 1), content["precision"])
    return Keep(key, partial(_folder, limit))


def limit_bytes() -> int:
    """The most bytes that all tables may take."""
    said = os.environ.get(LIMIT, "")
    try:
        limit = float(said or LIMIT_GB)
    except ValueError:
        limit = -1.0
    if not 0 <= limit < float("inf"):
        raise UserError(f"{LIMIT} is {said!r}: give the most gigabytes to be kept of frozen models' outputs, or 0")
    return int(limit * 1e9)


def most_bytes() -> int:
    """The most bytes that a new table may take on this disk."""
    folder = cache.cache_folder()
    there = next(each for each in (folder, *folder.absolute().parents) if each.is_dir())
    return min(limit_bytes(), int(SHARE * shutil.disk_usage(there).free))


def _folder(limit: int, name: str, title: str, size: int) -> Path | None:
    """The folder for a table; what was not used for longest makes room for it."""
    place = cache.cache_folder() / KIND / name
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        others = sorted((each for each in cache.entries() if each.kind == KIND), key=lambda each: each.used)
        taken = sum(each.bytes for each in others)
        while others and taken + size > limit:
            oldest = others.pop(0)
            for path in oldest.paths:
                cache.remove(path)  # whoever has it open keeps it
            taken -= oldest.bytes
        if taken + size > limit or size > SHARE * shutil.disk_usage(place.parent).free:
            return None
    return cache.place(KIND, name, title, [MODULE], {})
