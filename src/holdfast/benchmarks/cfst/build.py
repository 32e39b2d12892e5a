"""Build CGQA, COBJ and CPIN from the official files of GQA, Objects365 and PartImageNet.

All random decisions are made before the first picture is drawn (`plan.py`), so the result does not depend on the number
of processes. The pictures are drawn in a hidden folder beside the requested one, which is renamed once all pictures
exist and have been verified with the reader of the published archives. If a call is killed, repeating it continues the
work.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from holdfast.benchmarks.cfst.combinations import NAMES, Combination, of_folder
from holdfast.benchmarks.cfst.compose import Picture, draw_all, is_whole
from holdfast.benchmarks.cfst.plan import CONTINUAL, LAYOUTS, SMALLEST, BuildPlan, SplitPlan, make_plan
from holdfast.datasets import cgqa, cobj
from holdfast.datasets.base import Dataset
from holdfast.errors import RunError, UserError, nearest
from holdfast.processes import working

VERSION = 3
MARK = "holdfast-build.json"
"""The file that records what a folder was built from, and its contents."""
MARKS = ".building"
"""Files that exist only while the build is incomplete: the plan's fingerprint, and a mark for each finished piece."""
READERS: dict[str, Dataset] = {"cgqa": cgqa.DATASET, "cobj": cobj.DATASET, "cpin": cgqa.DATASET}
"""CPIN has the same layout and reader as CGQA."""


@dataclass(frozen=True)
class SplitSummary:
    """One set of pictures: the combinations listed and present, the number of pictures, and what is missing and why.

    `reasons` explains each combination that is missing, or that has fewer pictures than requested.
    """

    split: str
    listed: int
    present: int
    wanted: int
    pictures: int
    reasons: dict[str, str]


@dataclass(frozen=True)
class Report:
    """A summary of the build."""

    name: str
    folder: str
    rows: tuple[SplitSummary, ...]


def build(
    name: str,
    source: Path,
    out: Path,
    *,
    per_combination: tuple[int, int, int] = (1000, 50, 100),
    seed: int = 0,
    workers: int | None = None,
    smallest: int = SMALLEST,
    skip_bad: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Report:
    """Build one of cgqa, cobj and cpin in `out`, from the official files in `source`.

    `per_combination` is the number of pictures of each combination for training, validation and test; a few-shot test
    has as many as the test. A thing is used if its box has at least `smallest` pixels on each side. Up to `skip_bad`
    bad records of the source are skipped.
    """
    if name not in NAMES:
        raise UserError(f"{name!r} cannot be built: {nearest(name, NAMES)}")
    if min(per_combination) < 1:
        raise UserError(f"--per-combination is {','.join(map(str, per_combination))}: each number must be at least 1")
    plan = make_plan(name, source, per_combination, seed, smallest, skip_bad)
    if (found := _finished(out, plan)) is not None:
        return found
    with _hidden(out) as part:
        _begin(part, plan)
        _draw(part, plan, workers or os.cpu_count() or 1, progress)
        root = part / plan.root
        for each in plan.parts:
            if each.records:
                (root / each.file).write_text(json.dumps(each.records, ensure_ascii=False), encoding="utf-8")
        plan.combinations.write(part)
        counts = verify(name, part)
        report = Report(name, str(out), tuple(_row(each, counts[each.split]) for each in plan.parts))
        mark = {"plan": plan.fingerprint, "name": name, "rows": [asdict(row) for row in report.rows]}
        (part / MARK).write_text(json.dumps(mark, indent=1), encoding="utf-8")
        if out.exists():
            out.rmdir()  # it is empty: `_finished` has checked
        part.rename(out)
        shutil.rmtree(out / MARKS)
    return report


def verify(name: str, folder: Path) -> dict[str, Counter[Combination]]:
    """Read the built dataset and count the pictures of each combination; raise a RunError if something is wrong.

    The checks: every picture is complete and shows a listed combination, and no instance is in two sets. Training,
    validation, test and few-shot pictures do not even share a source picture; only `sub` shares pictures, because its
    things are chosen by an attribute.
    """
    reader, field = READERS[name], LAYOUTS[name].field
    combinations = of_folder(folder, name)
    assert combinations is not None
    counts: dict[str, Counter[Combination]] = {}
    owners: dict[tuple[object, ...], str] = {}
    pictures: dict[str, str] = {}
    for split in (*CONTINUAL, *combinations.modes):
        counts[split] = Counter()
        file = folder / LAYOUTS[name].root / LAYOUTS[name].files[split]
        if not file.is_file():
            continue
        known = set(combinations.trained if split in CONTINUAL else combinations.of(split))
        group = split if split in (*CONTINUAL, "sub") else "fewshot"
        for example in reader.examples(folder, split):
            combination = example.extra[field]
            if combination not in known:
                raise RunError(f"{file}: {', '.join(combination)} is not listed for {split}")
            image = example.images[0]
            assert isinstance(image, Path)
            if not is_whole(image):
                raise RunError(f"{image} is incomplete: delete {folder} and build it again")
            counts[split][combination] += 1
            for source, thing in _instances(example.extra):
                if owners.setdefault((source, thing), group) != group:
                    raise RunError(f"{file}: {thing} of {source} is in {group} and {owners[source, thing]}")
                if group != "sub" and pictures.setdefault(source, group) != group:
                    raise RunError(f"{file}: the picture {source} is in {group} and {pictures[source]}")
    return counts


def _instances(extra: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The source pictures of a built picture, each with the thing that was taken from it."""
    objects = extra.get("objects")
    if isinstance(objects, list):
        for thing in objects:
            yield thing["imageName"], f"{thing['objName']} {thing['boundingBox']}"
    else:
        yield str(extra["imageName"]), "all of it"


def _row(part: SplitPlan, counts: Counter[Combination]) -> SplitSummary:
    expected = {each: len(pictures) for each, pictures in part.pictures.items()}
    if counts != expected:
        raise RunError(f"{part.split} has pictures other than those planned: delete the folder, and build it again")
    reasons = {", ".join(each): why for each, why in part.reasons.items()}
    return SplitSummary(part.split, len(part.listed), len(counts), part.wanted, counts.total(), reasons)


def _finished(out: Path, plan: BuildPlan) -> Report | None:
    """The report of what `out` holds, if it is this very build; raise a UserError if it holds anything else."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return None
    try:
        found = json.loads((out / MARK).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = {}
    if found.get("plan") != plan.fingerprint:
        raise UserError(f"{out} is not empty, and does not hold this build: change --out, or delete it")
    return Report(found["name"], str(out), tuple(SplitSummary(**row) for row in found["rows"]))


@contextmanager
def _hidden(out: Path) -> Iterator[Path]:
    """A hidden folder that holds everything until the build is complete; two processes never write in it at once."""
    part = out.with_name(f".{out.name}.part")
    part.mkdir(parents=True, exist_ok=True)
    handle = os.open(part, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # released when the process ends, however it ends
        yield part
    except BlockingIOError:
        raise UserError(f"another process is building {out}: wait for it to finish, or change --out") from None
    finally:
        os.close(handle)


def _begin(part: Path, plan: BuildPlan) -> None:
    """Keep only what an earlier call with the same plan has drawn; create the folders."""
    mark = part / MARKS / "plan"
    if not mark.is_file() or mark.read_text() != plan.fingerprint:
        for old in part.iterdir():
            if old.is_dir():
                shutil.rmtree(old)
            else:
                old.unlink()
        mark.parent.mkdir()
        mark.write_text(plan.fingerprint)
    for each in plan.parts:
        if each.records:
            (part / plan.root / each.folder).mkdir(parents=True, exist_ok=True)


def _draw(part: Path, plan: BuildPlan, workers: int, progress: Callable[[int, int], None]) -> None:
    """Draw the pictures that do not exist yet: those of one combination at a time, each by one process."""
    root = part / plan.root
    jobs: list[tuple[Path, Sequence[Picture], Path]] = []
    total = done = 0
    for each in plan.parts:
        for number, pictures in enumerate(each.pictures.values()):
            mark = part / MARKS / f"{each.split}-{number}"
            total += len(pictures)
            if mark.exists():
                done += len(pictures)
            else:
                jobs.append((root, pictures, mark))
    progress(done, total)
    if workers <= 1 or len(jobs) <= 1:
        for job in jobs:
            done += draw_all(*job)
            progress(done, total)
        return
    died = "a process that draws pictures died: repeat the command to continue"
    with working(min(workers, len(jobs)), died) as pool:
        for future in as_completed([pool.submit(draw_all, *job) for job in jobs]):
            done += future.result()
            progress(done, total)
