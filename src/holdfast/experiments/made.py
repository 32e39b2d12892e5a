"""Which runs of a plan are done, judged by the commands that made them: for plans whose data must not be read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from holdfast.errors import UserError
from holdfast.experiments.config import Config, resolve
from holdfast.experiments.parts import CODE, of_any_data
from holdfast.experiments.request import Request
from holdfast.experiments.store import Store, read_json


def made(store: Store) -> set[str]:
    """The ids that the finished runs of a store have before their data is read."""
    commands: dict[str, str] = {}
    configs: dict[str, dict[str, Any]] = {}
    for path in store.path.glob("*/record.json"):
        try:
            record = read_json(path)
            if record["config"].get("parts"):  # without them, it was made before parts had versions
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
                config = resolve(replace(request, start=start))
                if _code(config.content) == _code(configs[run]) and not _outdated(configs[run]["parts"], config):
                    found[run] = config.id
            except (UserError, KeyError, TypeError, ValueError, StopIteration):
                pass  # it used something that is gone: a user's algorithm, or the run that it started from
        return found[run]

    return {known for run in commands if (known := name(run)) is not None}


def _outdated(recorded: dict[str, int | str], config: Config) -> bool:
    """Whether the version of some part was raised since, as far as is known without its data."""
    told = {part: version for part, version in recorded.items() if not part.startswith(f"{CODE} task")}
    return not told.items() <= {**of_any_data(), **config.parts}.items()


def _code(config: dict[str, Any]) -> list[str | None]:
    """The hashes of external code."""
    return [each.get("code") for each in (config["benchmark"], config["model"], *config["algorithms"])]
