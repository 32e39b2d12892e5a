"""Runs named without their data: for a plan that is only told, which must neither read, write nor download anything.

A run's own id needs the fingerprints of its data and of the weights that its model starts from. What stands here in its
place hashes all that is known without them: the settings that were asked for, and which folder was named.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from holdfast.benchmarks.base import Benchmark
from holdfast.errors import UserError
from holdfast.experiments.config import Checked, Config, Preparation, Request, check, configured
from holdfast.experiments.parts import of_any_data
from holdfast.experiments.store import Store, read_json
from holdfast.settings import build, fields
from holdfast.types import Stream, Training


class Unread:
    """Names runs as `Preparation` does, but looks at no files: an id of its own tells only one run from another."""

    def __init__(self) -> None:
        self._drawn = Preparation()
        self._named: set[str] = set()

    def named(self, checked: Checked) -> tuple[Config, Stream | None]:
        """The configuration of a run; its stream is None where its data, or that of its start, lies in files."""
        in_files = "data" in fields(type(checked.benchmark))  # others draw theirs in memory, and are named in full
        if not in_files and checked.request.start.partition("@")[0] not in self._named:
            return self._drawn.named(checked)
        config = provisional(checked)
        self._named.add(config.id)
        return config, None


def provisional(checked: Checked) -> Config:
    """The configuration of a run as far as it is known without its data."""
    asked = build(Training, checked.training, "train")
    known: dict[str, Any] = {name: getattr(asked, name) for name in sorted(checked.training)}
    named = sorted(Benchmark.places & fields(type(checked.benchmark)).keys())  # where the data lies, for what it is
    data = "unread: " + ", ".join(f"{name}={getattr(checked.benchmark, name)}" for name in named)
    return replace(configured(checked, [known], data, weights="", further={}), stages=checked.request.stages)


def made(store: Store) -> set[str]:
    """The provisional ids of the runs that a store has done, by the commands that made them."""
    commands: dict[str, str] = {}
    configs: dict[str, dict[str, Any]] = {}
    for path in store.path.glob("*/record.json"):
        try:
            record = read_json(path)
            if record["config"].get("parts"):  # none: it was made before parts had versions
                configs[path.parent.name] = record["config"]
                commands[path.parent.name] = str(record["environment"]["command"])
        except (UserError, KeyError, TypeError):
            continue  # a foreign or broken record is no run that is done
    found: dict[str, str | None] = {}

    def name(run: str) -> str | None:
        if run not in found:
            found[run] = None
            try:
                request = Request.from_command(commands[run])
                first, at, stage = request.start.partition("@")
                start = f"{name(first)}@{stage}" if at else ""
                checked = check(replace(request, start=start))
                config = provisional(checked)
                if _code(config.to_json()) == _code(configs[run]) and not _outdated(configs[run]["parts"], config):
                    found[run] = config.id
            except (UserError, KeyError, TypeError, ValueError, StopIteration):
                pass  # made by what is no longer there: a user's algorithm, or the run that it began with
        return found[run]

    return {known for run in commands if (known := name(run)) is not None}


def _outdated(recorded: dict[str, int], config: Config) -> bool:
    """Whether the version of some part was raised since."""
    return not recorded.items() <= {**of_any_data(), **config.parts}.items()


def _code(config: dict[str, Any]) -> list[str | None]:
    """The hashes of the code that is not ours."""
    return [each.get("code") for each in (config["benchmark"], config["model"], *config["algorithms"])]
