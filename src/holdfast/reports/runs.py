"""The runs of a store as objects: done, running, failed, stopped or broken. Reading them never fails."""

from __future__ import annotations

import gc
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from holdfast.errors import UserError, missing_extra, printable
from holdfast.experiments.drawn import Drawn
from holdfast.experiments.store import Record, RunFolder, algorithm_of, local_folder
from holdfast.reports.index import Index, index, state_of
from holdfast.types import Score

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped, import-not-found, unused-ignore]

SETTINGS = ("scale", "setting", "order")
"""The settings of a benchmark that have their own columns."""


@dataclass(frozen=True)
class Run:
    """One run: its configuration, its status, and its record once it is done.

    A run with a broken or invalid file has the status `broken`; `problem` says why.
    """

    id: str
    path: Path
    status: str
    config: Mapping[str, Any] = field(default_factory=dict)
    record: Record | None = None
    command: str = ""
    problem: str = ""

    @property
    def benchmark(self) -> str:
        """The benchmark's name; empty if the configuration is broken."""
        return str(self.config["benchmark"]["name"]) if self.config else ""

    @property
    def algorithm(self) -> str:
        """The name of the run's row in a table."""
        return algorithm_of(self.config) if self.config else ""

    @property
    def model(self) -> str:
        """The model's name."""
        return str(self.config["model"]["name"]) if self.config else ""

    @property
    def seed(self) -> int | None:
        """The seed."""
        return self.config["seed"] if self.config else None

    @property
    def summary(self) -> Mapping[str, float | None]:
        """The measures; empty if the run is not done."""
        return self.record.summary if self.record else {}

    @property
    def scores(self) -> tuple[Score, ...]:
        """The score log; empty if the run is not done."""
        return self.record.scores if self.record else ()

    def row(self) -> dict[str, Any]:
        """The run as a row of a table: its configuration, measures, cost and every setting."""
        named = self.config.get("benchmark", {})
        record = self.record
        return {
            "id": self.id,
            "status": self.status,
            "benchmark": self.benchmark,
            "algorithm": self.algorithm,
            "model": self.model,
            **{name: named.get(name) for name in SETTINGS},
            "seed": self.seed,
            **self.summary,
            **({f"cost_{name}": value for name, value in record.cost.items()} if record else {}),
            **self.settings,
        }

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting by owner and name, such as `replay.capacity`; a list if stages differ in it."""
        if not self.config:
            return {}
        owners = [("benchmark", self.config["benchmark"]), ("model", self.config["model"])]
        owners += [(each["name"], each) for each in self.config["algorithms"]]
        found = {f"{owner}.{name}": value for owner, own in owners for name, value in own.items() if name != "name"}
        stages = self.config["training"]
        for name in dict.fromkeys(name for each in stages for name in each):
            values = [each.get(name) for each in stages]
            found[f"train.{name}"] = values[0] if all(value == values[0] for value in values) else values
        plain = (bool, int, float, str, list, type(None))
        rest = {name: value for name, value in self.config.items() if isinstance(value, plain) and name not in _OWN}
        return found | {"transforms": "+".join(self.config["transforms"])} | rest


class Runs(Drawn, Sequence[Run]):
    """The runs of a store, the oldest first. They print as tables, also in a notebook."""

    def __init__(self, runs: Sequence[Run], path: Path) -> None:
        self._runs, self.path = tuple(runs), path

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    @overload
    def __getitem__(self, index: int) -> Run: ...
    @overload
    def __getitem__(self, index: slice) -> Runs: ...
    def __getitem__(self, index: int | slice) -> Run | Runs:
        return Runs(self._runs[index], self.path) if isinstance(index, slice) else self._runs[index]

    @property
    def records(self) -> list[Record]:
        """The records of the runs that are done."""
        return [run.record for run in self if run.record is not None]

    def where(self, **wanted: object) -> Runs:
        """The runs with these values: status, benchmark, algorithm, model, seed, scale, setting or order.

        `runs.where(benchmark="patterns", seed=0)`.
        """
        known = {"id", "status", "benchmark", "algorithm", "model", "seed", *SETTINGS}
        if unknown := sorted(set(wanted) - known):
            raise UserError(f"runs have no {unknown[0]!r} to choose by: choose by {', '.join(sorted(known))}")
        rows = ((run, run.row()) for run in self)
        return Runs([run for run, row in rows if all(row[name] == value for name, value in wanted.items())], self.path)

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each run: its configuration, measures, cost and every setting."""
        return _pandas().DataFrame([run.row() for run in self])

    def scores_to_pandas(self) -> pandas.DataFrame:
        """A row for each score of each run's log."""
        rows = [
            {"id": run.id, "benchmark": run.benchmark, "algorithm": run.algorithm, "seed": run.seed, **vars(score)}
            for run in self
            for score in run.scores
        ]
        return _pandas().DataFrame(rows)


def load(store: str | Path) -> Runs:
    """The runs of a store, of a file that `holdfast export` wrote, or the one run in the given folder.

    >>> load("no/such/store")
    Traceback (most recent call last):
    holdfast.errors.UserError: no store exists at no/such/store: `holdfast run --out no/such/store` makes one
    """
    path = local_folder(store)
    if path.is_file():
        from holdfast.reports.exchange import read

        return Runs(read(path), path)
    if not path.is_dir():
        raise UserError(f"no store exists at {path}: `holdfast run --out {shlex.quote(str(path))}` makes one")
    if _is_run(path):
        return Runs([read_run(path)], path)
    folders = [each for each in path.iterdir() if each.is_dir() and _is_run(each)]
    with index(path, len(folders)) as known, _uncollected():
        runs = [_indexed(each, known) for each in sorted(folders, key=_age)]
    return Runs(runs, path)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Pause the garbage collector, which would scan all records repeatedly while more of them are created."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _indexed(path: Path, known: Index | None) -> Run:
    """The run in a folder, from the index of its store or else from its files."""
    state = "" if known is None else state_of(path)  # taken before the files are read: a later change is noticed
    if known is None or not state:
        return read_run(path)
    if (found := known.find(path, state)) is not None:
        command, config, record = found
        return Run(printable(path.name), path, "done", config, record, command)
    run = read_run(path)
    if run.status == "done":
        known.add(run, state)
    return run


def read_run(path: Path) -> Run:
    """The run in a folder; if it cannot be read, its status is `broken`, with the reason."""
    folder, config, command = RunFolder(path), {}, ""
    try:
        if (path / "config.json").exists():
            config = folder.config()
            _check_config(config, "config.json")
        if (path / "environment.json").exists():
            command = folder.command()
        status = folder.status()
        record = folder.record() if status == "done" else None
        if record is not None:
            _check_record(record, path.name)
            config, command = dict(record.config), record.environment.get("command", command)
        problem = _failure(path) if status == "failed" else ""
        return Run(printable(path.name), path, status, config, record, command, problem)
    except (UserError, KeyError, TypeError, ValueError, AttributeError, OSError, RecursionError) as error:
        reason = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
        return Run(printable(path.name), path, "broken", problem=reason.replace(f"{path}/", ""))


def on_world(environment: Mapping[str, Any]) -> bool:
    """Whether a run's data is synthetic; if its record does not say, whether its command names no folder of data.

    >>> on_world({"command": "holdfast run table --seed 1"}), on_world({"command": "holdfast run table --data folder"})
    (True, False)
    >>> on_world({"command": "holdfast run table --data made", "world": True})
    True
    """
    if "world" in environment:
        return bool(environment["world"])
    try:
        words = shlex.split(environment.get("command", ""))
    except ValueError:
        return True
    return not any(word == "--data" or word.startswith("--data=") for word in words)


def _is_run(path: Path) -> bool:
    return (path / "config.json").is_file() or (path / "record.json").is_file()


def _age(path: Path) -> tuple[float, str]:
    file = path / "config.json" if (path / "config.json").is_file() else path / "record.json"
    return file.stat().st_mtime, path.name


def _failure(path: Path) -> str:
    lines = RunFolder(path).failure().strip().splitlines()
    return lines[-1] if lines else "it failed without a message"


def _check_config(config: Any, where: str) -> None:
    """Raise a UserError for values that a table could not show."""
    right = (
        isinstance(config, dict)
        and all(isinstance(config[part], dict) and isinstance(config[part]["name"], str) for part in _NAMED)
        and all(isinstance(name, str) for name in config["transforms"])
        and all(isinstance(each["name"], str) for each in config["algorithms"])
        and all(isinstance(each, dict) for each in config["training"])
        and isinstance(config["seed"], int)
    )
    if not right:
        raise UserError(f"{where} is not a configuration of a run")
    json.dumps(config, sort_keys=True)  # raises an error for keys that cannot be sorted, or are not text


def _check_record(record: Record, name: str) -> None:
    if record.id != name:
        raise UserError(f"record.json belongs to run {record.id}, but its folder is {name}: it was copied here by hand")
    checked_record(record)


def checked_record(record: Record) -> Record:
    """A record that tables can show; raises a UserError for any other."""
    _check_config(record.config, "the configuration in record.json")
    numbers = [*record.summary.values(), *record.cost.values(), *record.chance.values()]
    if not all(value is None or (isinstance(value, int | float) and value == value) for value in numbers):
        raise UserError("record.json has a measure that is not a number")
    for score in record.scores:
        if not (isinstance(score.stage, int) and isinstance(score.step, int) and isinstance(score.name, str)):
            raise UserError("record.json has a score without a valid stage, step or name")
        if not isinstance(score.score, int | float):
            raise UserError(f"record.json has a score of {score.name!r} that is not a number")
    if not isinstance(record.environment, dict) or not isinstance(record.reasons, dict):
        raise UserError("record.json is not a record of a run")
    return record


_NAMED = ("benchmark", "model")
_OWN = ("seed", "benchmark", "model", "algorithms", "training", "transforms", "parts")
"""Entries of a configuration that `Run.row` shows separately, or that are not settings."""


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise missing_extra("to_pandas() needs pandas", "pandas") from None
    return pandas
