"""Build CGQA, COBJ and CPIN from the official files of GQA, Objects365 and PartImageNet.

Everything that chance decides is decided before the first picture is drawn (`plan.py`), so the number of processes
changes nothing. The pictures are drawn in a hidden folder beside the wanted one, which takes its name when all are
there and a reading of them, with the reader of the published archives, has found everything in order. A call that was
killed goes on when it is repeated.
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
from holdfast.data.decoding import working
from holdfast.datasets import cgqa, cobj
from holdfast.datasets.base import Dataset
from holdfast.errors import RunError, UserError, nearest

VERSION = 1
MARK = "holdfast-build.json"
"""The file that says what a folder was built from, and what is in it."""
MARKS = ".building"
"""What there is only while something is missing: the plan's fingerprint, and a mark for each piece that is done."""
READERS: dict[str, Dataset] = {"cgqa": cgqa.DATASET, "cobj": cobj.DATASET, "cpin": cgqa.DATASET}
"""CPIN has the layout of CGQA, and its reader."""


@dataclass(frozen=True)
class SplitSummary:
    """One set of pictures: how many combinations are wanted and there, how many pictures, and what is missing and why.

    `reasons` has a sentence for each combination that is missing, or of which there are fewer pictures than wanted.
    """

    split: str
    listed: int
    present: int
    wanted: int
    pictures: int
    reasons: dict[str, str]


@dataclass(frozen=True)
class Report:
    """What was built."""

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

    `per_combination` are the pictures of each combination for training, validation and test; a few-shot test has as
    many as the test. A thing is used where its box has at least `smallest` pixels on each side. `skip_bad` bad records
    of the source may be left out.
    """
    if name not in NAMES:
        raise UserError(f"{name!r} cannot be built: {nearest(name, NAMES)}")
    if min(per_combination) < 1:
        raise UserError(f"--per-combination is {','.join(map(str, per_combination))}: each number is at least 1")
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
            out.rmdir()  # it is empty: `_finished` has looked
        part.rename(out)
        shutil.rmtree(out / MARKS)
    return report


def verify(name: str, folder: Path) -> dict[str, Counter[Combination]]:
    """Read what was built and count the pictures of each combination; RunError where something is not in order.

    In order means: every picture is whole, it is of a listed combination, and no instance is in two sets. Training,
    validation, test and few-shot pictures do not even share a source picture; `sub` shares only pictures, for its
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
                raise RunError(f"{image} is not whole: delete {folder} and build again")
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
        raise RunError(f"{part.split} has other pictures than were planned: delete what was built, and build again")
    reasons = {", ".join(each): why for each, why in part.reasons.items()}
    return SplitSummary(part.split, len(part.listed), len(counts), part.wanted, counts.total(), reasons)


def _finished(out: Path, plan: BuildPlan) -> Report | None:
    """The report of what `out` holds, if it is this very build; a folder that holds anything else is refused."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return None
    try:
        found = json.loads((out / MARK).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = {}
    if found.get("plan") != plan.fingerprint:
        raise UserError(f"{out} is not empty, and holds another build or none: give another --out, or delete it")
    return Report(found["name"], str(out), tuple(SplitSummary(**row) for row in found["rows"]))


@contextmanager
def _hidden(out: Path) -> Iterator[Path]:
    """The folder where everything lies until it is whole; two processes never write in it at once."""
    part = out.with_name(f".{out.name}.part")
    part.mkdir(parents=True, exist_ok=True)
    handle = os.open(part, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # it ends with the process, however that ends
        yield part
    except BlockingIOError:
        raise UserError(f"another process is building {out}: wait for it, or give another --out") from None
    finally:
        os.close(handle)


def _begin(part: Path, plan: BuildPlan) -> None:
    """Keep what an earlier call of the same plan has drawn, and nothing else; make the folders."""
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
    """Draw what is not drawn yet: the pictures of one combination at a time, each by one process."""
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
    died = "a process that draws pictures ended early: call it again to go on"
    with working(min(workers, len(jobs)), died) as pool:
        for future in as_completed([pool.submit(draw_all, *job) for job in jobs]):
            done += future.result()
            progress(done, total)
