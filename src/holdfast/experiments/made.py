"""Which runs of a plan are done, judged by the commands that made them: for plans whose data must not be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast import registry
from holdfast.errors import UserError
from holdfast.experiments.config import Config, resolve
from holdfast.experiments.parts import CODE, of_any_data
from holdfast.experiments.request import Request
from holdfast.experiments.store import Store, read_json


def made(store: Store) -> set[str]:
    """The ids that the finished runs of a store have before their data is read.

    Runs with code that nobody named in this process are left out: it is not executed because a store says so.
    """
    commands: dict[str, str] = {}
    configs: dict[str, dict[str, Any]] = {}
    for path in store.path.glob("*/record.json"):
        try:
            record = read_json(path)
            if record["config"].get("parts"):  # records without them predate versions of parts
                configs[path.parent.name] = record["config"]
                commands[path.parent.name] = str(record["environment"]["command"])
        except (UserError, KeyError, TypeError):
            continue  # a foreign or broken record does not count as done
    found: dict[str, str | None] = {}

    def name(run: str) -> str | None:
        if run not in found:
            found[run] = None
            try:
                request = Request.from_command(commands[run])
                first, at, stage = request.start.partition("@")
                start = f"{name(first)}@{stage}" if at else ""
                with registry.of_records():
                    config = resolve(replace(request, start=start))
                if unchanged(configs[run], config):
                    found[run] = config.id
            except (UserError, KeyError, TypeError, ValueError, StopIteration):
                pass  # it used something that no longer exists: a user's algorithm, or the run that it started from
        return found[run]

    return {known for run in commands if (known := name(run)) is not None}


def unchanged(recorded: Mapping[str, Any], config: Config) -> bool:
    """Whether a recorded configuration used the same code as this one would, as far as can be known without reading
    data.
    """
    return _code(config.content) == _code(recorded) and not _outdated(recorded["parts"], config)


def _outdated(recorded: Mapping[str, int | str], config: Config) -> bool:
    """Whether the version of some part was raised since, as far as can be known without reading data."""
    told = {part: version for part, version in recorded.items() if not part.startswith(f"{CODE} task")}
    return not told.items() <= {**of_any_data(), **config.parts}.items()


def _code(config: Mapping[str, Any]) -> list[str | None]:
    """The hashes of external code."""
    return [each.get("code") for each in (config["benchmark"], config["model"], *config["algorithms"])]
