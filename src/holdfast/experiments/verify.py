"""Which files of a store are intact, and what to do about those that are not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from holdfast import checksums
from holdfast.checksums import DamagedError
from holdfast.errors import UserError
from holdfast.experiments.store import RunFolder, ScoreFile, Store
from holdfast.files import Bounds, FileError, read_inside

State = Literal["intact", "damaged", "no checksum"]


@dataclass(frozen=True)
class CheckedFile:
    """One stored file, whether it is intact, and what to do if it is not."""

    run: str
    name: str
    state: State
    problem: str = ""
    remedy: str = ""


def verify(store: Store) -> list[CheckedFile]:
    """Every file of a store that has a checksum, or should have one, run by run.

    A damaged checkpoint, or the score log of a finished run, costs nothing; a damaged record costs the run.
    """
    return [found for run in store.runs() for found in _run(run)]


def _run(run: RunFolder) -> Iterator[CheckedFile]:
    done = (run.path / "record.json").exists()
    again = run.again()
    if done:
        yield _checked(run, run.path / "record.json", again)
    for name in ("config.json", "environment.json"):
        if (run.path / name).exists():
            yield _checked(run, run.path / name, f"restore it, or {again}")
    if (run.path / "scores.jsonl").exists():
        remedy = "nothing: the record has all scores" if done else f"resume the run; if that is refused, {again}"
        yield _checked(run, run.path / "scores.jsonl", remedy)
    checkpoints = sorted(run.checkpoints.glob("[0-9]*.safetensors")) if run.checkpoints.is_dir() else []
    found = [_checked(run, path, "") for path in checkpoints]
    whole = any(each.state != "damaged" for each in found)
    for each in found:
        remedy = "nothing: the run resumes from the other one" if whole else again
        remedy = f"nothing, unless you want to test the run again; for that, {again}" if done else remedy
        yield each if each.state != "damaged" else CheckedFile(each.run, each.name, each.state, each.problem, remedy)
    for path in [run.weights, *(sorted(run.stages.glob("*.safetensors")) if run.stages.is_dir() else [])]:
        if path.exists():
            yield _checked(run, path, f"nothing, unless you need these weights; to get them again, {again}")


def _checked(run: RunFolder, path: Path, remedy: str) -> CheckedFile:
    name = path.relative_to(run.path).as_posix()
    try:
        Bounds(run.path.parent).check(path)
        sealed = _read(run, path)
    except (OSError, ValueError, TypeError, RecursionError) as error:
        problem = _sentence(error).replace(f"{path}: ", "").replace(f"{path}, ", "")
        return CheckedFile(run.id, name, "damaged", problem, error.remedy if isinstance(error, FileError) else remedy)
    return CheckedFile(run.id, name, "intact" if sealed else "no checksum")


def _read(run: RunFolder, path: Path) -> bool:
    """Raise an error if a file is damaged; return whether it has a checksum."""
    if path.suffix == ".safetensors":
        return checksums.check_tensors(path)
    if path.name == "scores.jsonl":
        log = ScoreFile(run.path, predictions=False)
        if damage := log.damage(log.size()):
            raise DamagedError(damage)
        return checksums.FIELD.encode() in read_inside(run.path.parent, path)[:1000]
    if path.name == "record.json":
        run.record()
    return checksums.is_sealed(path)


def _sentence(error: Exception) -> str:
    if isinstance(error, UserError):
        return str(error).rpartition(": delete ")[0] or str(error)
    return error.strerror.lower() if isinstance(error, OSError) and error.strerror else str(error)


def damaged(found: Sequence[CheckedFile]) -> list[CheckedFile]:
    """The damaged ones among some files."""
    return [each for each in found if each.state == "damaged"]
