"""The store: one folder for each run, named by the run's id.

<id>/config.json        the frozen configuration
<id>/environment.json   where it ran
<id>/scores.jsonl       the score log, one line for each score, append-only
<id>/predictions/       the answers behind each score, if requested
<id>/checkpoints/       the last two checkpoints, while the run is not done; then the last, if it can be tested again
<id>/stages/            the weights at the end of each stage, if other runs start from them
<id>/model.safetensors  the final weights
<id>/record.json        what the run did and scored: if it exists, the run is done
<id>/failure.txt        the traceback of the last failure, if the last try failed
<id>/lock               the process that works on it
"""

from __future__ import annotations

import difflib
import fcntl
import json
import os
import shlex
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np

from holdfast import checksums
from holdfast.checksums import DamagedError, sealed
from holdfast.errors import RunError, Stopped, UserError, nearest, printable
from holdfast.experiments.drawn import Drawn
from holdfast.experiments.wellformed import is_config, wrong_part
from holdfast.files import Bounds, FileError, open_inside, open_own, open_regular, read_inside
from holdfast.types import Array, Score

SCHEMA = 2
"""The version of a record's layout. This one and all earlier ones can be read; from 2 on, a file has a checksum."""
MOST_FAILURE = 8000
"""How many bytes of the end of a traceback are shown."""
FEW = 10
"""The maximum number of ids of runs that one message lists."""


@dataclass(frozen=True, repr=False)
class Record(Drawn):
    """What one run did and scored, as data."""

    id: str
    config: Mapping[str, Any]
    environment: Mapping[str, Any]
    summary: Mapping[str, float | None]
    reasons: Mapping[str, str]
    """Why a measure of the summary has no value, or what its value omits."""
    scores: tuple[Score, ...]
    cost: Mapping[str, float]
    chance: Mapping[str, float] = field(default_factory=dict)
    """The score of guessing on each evaluation set, if the benchmark states it."""
    dropped: int = 0
    """How many bad records of the data were skipped, as `--skip-bad` allows."""
    problems: tuple[str, ...] = ()
    """The problems of the first few of them."""
    others: Mapping[str, str] = field(default_factory=dict)
    """The ids of the runs that some measures compare with, by the benchmark's names; not all need be done."""
    shares: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    """The contribution of each task to measures pooled over tasks: `metrics.pooling.Share` as JSON."""
    tuning: Mapping[str, Any] = field(default_factory=dict)
    """How its settings were chosen, if `holdfast tune` chose them: by which measure, among how many trials."""
    measures: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """How each measure is shown, as stated by its benchmark: `benchmarks.base.Measure` as JSON."""
    spent: tuple[tuple[int, ...], ...] = ()
    """At each round of scores: the stage, the step, the operations, and the examples passed forward and backward."""
    schema: int = SCHEMA

    @property
    def algorithm(self) -> str:
        """The name of the run's row in a table."""
        return algorithm_of(self.config)

    @cached_property
    def tested(self) -> frozenset[str]:
        """The names of the test sets that were scored, without details of them (`a/b` is a detail of `a`)."""
        return frozenset(score.name for score in self.scores if score.split == "test" and "/" not in score.name)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)

    @staticmethod
    def from_json(value: Any, where: str) -> Record:
        """Read a record of this schema or an earlier one; raise a UserError that names what is wrong with it."""
        schema = value.get("schema") if isinstance(value, dict) else None
        if isinstance(schema, int) and schema > SCHEMA:
            raise UserError(
                f"{where} was written by a newer holdfast (schema {schema}; this one reads up to {SCHEMA}): "
                "upgrade holdfast to read it"
            )
        wrong = wrong_part(value) if isinstance(schema, int) else "all of it"
        try:
            if not wrong:
                value = {name: part for name, part in value.items() if name != checksums.FIELD}
                value = _plain(value)
                scores = tuple(Score(**score) for score in value["scores"])
                return Record(**value | as_tuples(value) | {"scores": scores})
        except TypeError as error:  # an unknown field of a record or a score, or a missing one
            wrong = str(error)
        raise UserError(f"{where} is not a record of a run ({wrong}): delete its folder and run again")


def as_tuples(value: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a record that JSON has as lists, but for its scores."""
    return {"problems": tuple(value.get("problems", ())), "spent": tuple(map(tuple, value.get("spent", ())))}


def algorithm_of(config: Mapping[str, Any]) -> str:
    """The name of a run's row in a table: `replay`, `ewc+replay`, `joint`."""
    return "+".join([*config["transforms"], *(a["name"] for a in config["algorithms"])]) or "finetune"


class ScoreFile:
    """The score log as a file of JSON lines, with the predictions behind each score if requested."""

    def __init__(self, folder: Path, predictions: bool) -> None:
        self.path, self.folder = folder / "scores.jsonl", folder / "predictions" if predictions else None

    def add(self, scores: Sequence[tuple[Score, Array]]) -> None:
        """Append scores: one write, one sync. `cut` drops the remains of an interrupted write."""
        lines = [json.dumps(sealed(vars(score))) for score, _ in scores]
        try:
            for score, predictions in scores:
                if self.folder is not None and len(predictions):
                    self.folder.mkdir(exist_ok=True)
                    name = f"{score.stage:03d}-{score.step:010d}-{score.split}-{score.name}.npy"
                    (self.folder / name).unlink(missing_ok=True)
                    np.save(self.folder / name, predictions)
            with open_own(self.path, "ab") as file:
                file.write("".join(f"{line}\n" for line in lines).encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise RunError(f"could not write the scores to {self.path}: {error.strerror}; make room there") from error

    def size(self) -> int:
        """The bytes written so far, which a checkpoint stores."""
        return self.path.stat().st_size if self.path.exists() else 0

    def cut(self, size: int) -> None:
        """Drop what was written after a checkpoint: the resumed run writes it again."""
        if damage := self.damage(size):
            raise RunError(f"{damage}: delete {self.path.parent} to start this run again")
        if self.path.exists():
            with open_own(self.path, "r+b") as file:
                file.truncate(size)

    def damage(self, size: int) -> str:
        """A description of damage to the scores before a position; empty if they are intact."""
        if size > self.size():
            return f"{self.path} is shorter than when the run's checkpoint was written, so scores are lost"
        try:
            self._read(size)
        except DamagedError as error:
            return str(error)
        return ""

    def scores(self) -> tuple[Score, ...]:
        """All scores."""
        try:
            return self._read(self.size())
        except DamagedError as error:
            raise RunError(f"{error}: run the same command again to continue from the last intact checkpoint") from None

    def _read(self, size: int) -> tuple[Score, ...]:
        if size == 0:
            return ()
        *lines, rest = read_inside(self.path.parent.parent, self.path)[:size].split(b"\n")
        found = []
        for number, line in enumerate(lines, 1):
            try:
                found.append(Score(**checksums.opened(json.loads(line))))
            except (ValueError, TypeError, RecursionError) as error:
                raise DamagedError(f"{self.path}, line {number} is damaged ({error})") from None
        if rest:
            raise DamagedError(f"{self.path}, line {len(lines) + 1} breaks off")
        return tuple(found)


class RunFolder:
    """One run's folder."""

    def __init__(self, path: Path) -> None:
        self.path, self.id = path, path.name
        self.checkpoints, self.weights = path / "checkpoints", path / "model.safetensors"
        self.stages = path / "stages"

    def record(self) -> Record | None:
        """The record, if the run is done."""
        path = self.path / "record.json"
        if not path.exists():
            return None
        found = read_json(path)
        schema = found.get("schema") if isinstance(found, dict) else None
        if isinstance(schema, int) and schema <= SCHEMA:  # for anything else, `from_json` has a better message
            found = _opened(found, path, required=schema > 1)
        return Record.from_json(found, str(path))

    def config(self) -> dict[str, Any]:
        """The configuration as JSON values; if its file is gone, the one in the record."""
        path = self.path / "config.json"
        if not path.exists() and (record := self.record()) is not None:
            return dict(record.config)
        config: dict[str, Any] = _opened(read_json(path), path)
        if not is_config(config):
            raise UserError(f"{path} is not a configuration of a run: delete its folder if it should not be there")
        return dict(_plain(config))

    def final_weights(self) -> Path:
        """The file of the final weights; if they were dropped, raises a UserError that says how to get them."""
        if not self.weights.exists():
            raise UserError(f"the weights of run {self.id} were dropped: {self.again()}")
        return self.intact(self.weights)

    def intact(self, weights: Path) -> Path:
        """A file of weights; raises a UserError if it is damaged."""
        try:
            Bounds(self.path.parent).check(weights)
            checksums.check_tensors(weights)
        except (OSError, DamagedError) as error:
            raise UserError(f"{weights} cannot be used ({error}): {self.again()}") from None
        return weights

    def again(self) -> str:
        """How to get a run's weights again."""
        try:
            command = self.command()
        except UserError:
            command = ""
        if not command:
            return f"delete {self.path}, and run it again"
        return f"delete {self.path}, and repeat it with: {command}{out_option(self.path.parent)}"

    def command(self) -> str:
        """The command that repeats the run; empty if no command does: `environment.json` then says what does."""
        path = self.path / "environment.json"
        found = _opened(read_json(path), path)
        if not isinstance(found, dict) or not isinstance(found.get("command"), str):
            raise UserError(f"{path} does not say which command started the run: delete its folder and run again")
        return str(_plain(found)["command"])

    def failure(self) -> str:
        """The end of the traceback of the last failure; empty if there is none, or it cannot be read."""
        try:
            with open_inside(self.path.parent, self.path / "failure.txt") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - MOST_FAILURE))
                return printable(file.read(MOST_FAILURE).decode("utf-8", "replace"))
        except (OSError, FileError):
            return ""

    def began(self) -> float:
        """When the run started, according to the files: its configuration, or else its record."""
        file = self.path / "config.json"
        return (file if file.is_file() else self.path / "record.json").stat().st_mtime

    def status(self) -> str:
        """done, running, failed or stopped."""
        if (self.path / "record.json").exists():
            return "done"
        if self.holder() is not None:
            return "running"
        return "failed" if (self.path / "failure.txt").exists() else "stopped"

    def holder(self) -> str | None:
        """The process that works on the run at the moment, or None."""
        try:
            with open_regular(self.path / "lock") as file:
                return None if _try_lock(file, fcntl.LOCK_SH) else _holder(file)
        except (OSError, FileError):
            return None

    @contextmanager
    def lock(
        self, waiting: Callable[[str], None] = lambda holder: None, stopping: Callable[[], bool] = lambda: False
    ) -> Iterator[None]:
        """Lock the run. If another process holds it, wait; `waiting` is called once with the name of the holder.

        The operating system holds the lock: it ends with the process, however that ends.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        limits = Bounds(self.path.parent)
        for name in (".", "checkpoints", "stages", "predictions", "tensorboard", "wandb"):
            limits.check(self.path / name)  # a store from others must not make this process write outside it
        with open_own(self.path / "lock", "a+b") as file:
            told = False
            while not _try_lock(file):
                if not told:
                    told = True
                    file.seek(0)
                    waiting(_holder(file))
                if stopping():
                    raise Stopped
                time.sleep(0.1)
            file.truncate(0)
            since = time.strftime("%Y-%m-%d %H:%M:%S")
            file.write(f"process {os.getpid()} on {socket.gethostname()} since {since}".encode())
            file.flush()
            yield


def local_folder(path: str | Path) -> Path:
    """A local folder; raises a UserError for an address, since a folder of that name is not what is meant.

    >>> local_folder("s3://bucket/runs")
    Traceback (most recent call last):
    holdfast.errors.UserError: s3://bucket/runs is not a folder: only `holdfast plan` keeps runs at an address; ...
    """
    if not isinstance(path, str | os.PathLike):
        raise UserError(f"the store is {path!r}: give the path of a folder, such as 'runs'")
    found = Path(path)
    first, *rest = found.parts or ("",)
    if first.endswith(":") and len(first) > 2:
        address = f"{first}//{'/'.join(rest)}"
        raise UserError(
            f"{address} is not a folder: only `holdfast plan` keeps runs at an address; give a folder, and copy to it "
            "the runs that you want to see"
        )
    return found


class Store:
    """A folder of runs."""

    def __init__(self, path: str | Path) -> None:
        self.path = local_folder(path)

    def folder(self, run: str) -> RunFolder:
        """The folder of a run by its full id, whether or not it exists."""
        return RunFolder(self.path / run)

    def runs(self) -> list[RunFolder]:
        """All runs, the oldest first: the folders that have a configuration or a record, intact or broken."""
        names = ("config.json", "record.json")
        found = {file.parent for name in names for file in self.path.glob(f"*/{name}") if file.is_file()}
        return sorted(map(RunFolder, found), key=lambda run: (run.began(), run.id))

    def find(self, name: str) -> RunFolder:
        """The run whose id begins with the given characters."""
        if not self.path.is_dir():
            named = shlex.quote(str(self.path))
            raise UserError(f"no store exists at {self.path}: `holdfast run --out {named}` makes one")
        ids = [run.id for run in self.runs()]
        found = [run for run in ids if run.startswith(name)]
        if len(found) == 1:
            return self.folder(found[0])
        all_of_them = f"`holdfast list runs{out_option(self.path)}` lists all"
        if found:
            named = ", ".join(found) if len(found) <= FEW else all_of_them
            raise UserError(f"{name!r} matches {len(found)} runs of {self.path}: {named}")
        few = len(ids) <= FEW or difflib.get_close_matches(name, ids)
        raise UserError(f"unknown run {name!r} in {self.path}: {nearest(name, ids) if few else all_of_them}")


def out_option(store: Path) -> str:
    """The option by which a command names a store; empty for the default store.

    >>> out_option(Path("runs")), out_option(Path("my runs"))
    ('', " --out 'my runs'")
    """
    return "" if store == Path("runs") else f" --out {shlex.quote(str(store))}"


def _opened(value: Any, path: Path, *, required: bool = False) -> Any:
    """A value without its checksum; raises an error that says what to do if the checksum is wrong."""
    try:
        return checksums.opened(value, required=required)
    except DamagedError as error:
        raise UserError(f"{path} cannot be trusted ({error}): delete its folder and run again") from None


def _holder(file: IO[bytes]) -> str:
    return printable(file.read(1000).decode("utf-8", "replace")) or "another process"


def _plain(value: Any) -> Any:
    """A value from a store with every text safe for a terminal, and every command safe for a shell."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {_plain(name): quoted(item) if name == "command" else _plain(item) for name, item in value.items()}
    return value


def quoted(command: Any) -> Any:
    """A command from a store with each word quoted, so that a copied command can only run holdfast.

    >>> quoted("holdfast run patterns; rm -r ~"), quoted("rm -r ~")
    ("holdfast run 'patterns;' rm -r '~'", '')
    """
    if not isinstance(command, str):
        return command
    try:
        words = shlex.split(printable(command))
    except ValueError:
        return ""
    return shlex.join(words) if words[:1] == ["holdfast"] else ""


def read_json(path: Path) -> Any:
    """A JSON file of a run; raises an error that names it."""
    try:
        return json.loads(read_inside(path.parent.parent, path))
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # not JSON, not text, a number too long, brackets nested too deeply
        raise UserError(f"{path} is broken ({error}): delete its folder and run again") from None


def _try_lock(file: IO[bytes], kind: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
