"""`holdfast data`: make small datasets, check what a folder holds, and view it."""

from __future__ import annotations

import os
import random
import signal
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict
from itertools import islice
from multiprocessing import active_children, get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast import registry
from holdfast.cli.options import Json, Picture
from holdfast.errors import RunError, UserError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from multiprocessing.sharedctypes import Synchronized

    from holdfast.data.sheet import Card
    from holdfast.datasets.check import Finding

SCALES = ("tiny", "small", "large", "paper")
_CLASSES = {"nlvr2": ("false", "true"), "imdb": ("negative", "positive"), "sst2": ("negative", "positive")}
"""Names of classes that the official files only number."""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help="Make, check, view and prepare datasets.")
    group.command()(make)
    group.command()(check)
    group.command()(show)
    group.command()(prepare)
    builds = typer.Typer(no_args_is_help=True, help="Build a benchmark's datasets from official files.")
    for family in registry.families():
        if (own := registry.part(family, "building")) is not None:
            own.register_build(builds)
    group.add_typer(builds, name="build")
    app.add_typer(group, name="data")


def make(
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME", help="Datasets to write, or `all`: see `holdfast list datasets`."),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Write each dataset to a folder of its name in DIR.")],
    scale: Annotated[str, typer.Option(metavar="SCALE", help="tiny, small, large or paper.")] = "tiny",
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="The seed of the synthetic world.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print what will be written as JSON.")] = False,
) -> None:
    """Write small synthetic datasets in official formats.

    The datasets are drawn from the synthetic world. If the command is interrupted, repeat it to continue.
    """
    from rich.console import Console

    from holdfast.world.whole import is_written

    if scale not in SCALES:
        from holdfast.errors import nearest

        raise UserError(f"--scale is {scale!r}: {nearest(scale, SCALES)}")
    chosen = list(registry.WRITERS) if names == ["all"] else names
    chosen = list(dict.fromkeys(registry.resolve(name, "dataset", registry.WRITERS) for name in chosen))
    missing = [name for name in chosen if not is_written(out / name, scale, seed)]
    processes = max(min(os.cpu_count() or 1, len(missing)), 1)
    if as_json or scale in ("large", "paper"):
        _print_plan(missing, scale, processes, as_json)
        sys.stdout.flush()  # before the work, also into a pipe
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    if len(missing) < len(chosen):
        console.print(f"already written: {', '.join(name for name in chosen if name not in missing)}", markup=False)
    unfinished = get_context("spawn").Value("i", len(missing))
    pool = ProcessPoolExecutor(processes, get_context("spawn"), initializer=_follow, initargs=(unfinished,))
    try:
        # The longest first: one that starts last would keep all other processes waiting.
        jobs = {pool.submit(_write, name, out / name, scale, seed): name for name in _longest_first(missing, scale)}
        with console.status("writing") as status:
            for number, job in enumerate(as_completed(jobs), 1):
                job.result()
                unfinished.value = len(jobs) - number
                status.update(f"written {number} of {len(jobs)}")
                console.print(f"{jobs[job]}: {out / jobs[job]}", markup=False)
    except BrokenProcessPool:
        raise RunError("a writing process was killed: run the same command again to write the rest") from None
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in active_children():
            process.terminate()
        raise
    finally:
        pool.shutdown()  # its thread must be gone before Python ends


def check(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of one dataset or of several.")],
    every_image: Annotated[
        bool, typer.Option("--every-image", help="Decode every picture, not only a sample.")
    ] = False,
    reader: Annotated[
        str | None,
        typer.Option("--as", metavar="NAME", help="Read the folder as this dataset: a name, or file.py:NAME of yours."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check the datasets in a folder.

    Lists which datasets the folder holds, how much of each, and every bad record. The exit status is 2 if there is one.
    """
    from rich.console import Console

    from holdfast.cli.screen import print_grid, print_json
    from holdfast.datasets.check import check as look
    from holdfast.reports.tables import Grid

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    datasets = {}
    for name, entry in registry.entries("dataset").items() if reader is None else [(reader, _dataset(reader))]:
        try:
            datasets[name] = entry.load()
        except UserError as error:  # a broken package does not hide the others
            if reader is not None:
                raise
            console.print(str(error), markup=False)
    with console.status("looking") as status:
        found = look(folder, datasets, asked=reader is not None, every_image=every_image, progress=status.update)
    if reader is not None and all(finding.verdict == "absent" for finding in found):
        raise UserError("; ".join(finding.absent for finding in found))
    if not found:
        raise UserError(f"{folder} holds no known dataset: `holdfast list datasets` lists them all")
    verdicts = ["planted" if _is_planted(finding) else finding.verdict for finding in found]
    if as_json:
        print_json([asdict(finding) | {"verdict": each} for finding, each in zip(found, verdicts, strict=True)])
    else:
        for finding in found:
            for problem in finding.problems[:20]:
                console.print(str(problem), markup=False)
            if len(finding.problems) > 20:
                console.print(f"… and {len(finding.problems) - 20} more in {finding.dataset}, {finding.split}")
        here = [f for f in found if f.verdict != "absent"]
        shown = [verdict for verdict in verdicts if verdict != "absent"]
        rows = tuple(
            (f.dataset, f.split, str(f.examples), str(f.official or "–"), str(len(f.problems)), verdict)
            for f, verdict in zip(here, shown, strict=True)
        )
        absent = _absent(found)
        notes = ("It is fine to have only a part of the official data.", *([f"Not here: {absent}."] if absent else []))
        if "planted" in verdicts:
            notes += ("Planted: synthetic data has a bad record where the official data does. Nothing is wrong.",)
        notes += tuple(_aside(f"{f.dataset}, {f.split}", f.aside) for f in here if f.aside)
        print_grid(Grid(f"in {folder}", ("dataset", "split", "examples", "official", "bad", "verdict"), rows, notes))
    if "bad" in verdicts:
        sys.exit(2)


def _is_planted(finding: Finding) -> bool:
    """Whether the bad records of a split are those that the writer of synthetic data planted."""
    from importlib import import_module

    from holdfast.world.whole import MARK

    if finding.dataset not in registry.WRITERS or not (Path(finding.folder) / MARK).is_file():
        return False
    planted = getattr(import_module(registry.WRITERS[finding.dataset].module), "PLANTED", {})
    return 0 < len(finding.problems) == planted.get(finding.split)


def _absent(found: list[Finding]) -> str:
    """The splits that are missing, completely or partly, with the folder of each dataset."""
    missing: dict[tuple[str, str], list[str]] = {}
    for finding in found:
        own = [finding.split] if finding.verdict == "absent" else list(finding.lacks)
        missing.setdefault((finding.dataset, finding.folder), []).extend(own)
    return "; ".join(
        f"{name} in {folder}: {', '.join(dict.fromkeys(own))}" for (name, folder), own in missing.items() if own
    )


def _aside(place: str, reasons: Mapping[str, int]) -> str:
    """How many records are not used, and why.

    >>> _aside("snli_ve, dev", {"without a gold label": 2})
    'Not used in snli_ve, dev: 2 without a gold label.'
    """
    return f"Not used in {place}: {', '.join(f'{count} {why}' for why, count in reasons.items())}."


def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A dataset or a benchmark; file.py:NAME is yours.")],
    folder: Annotated[
        Path | None, typer.Argument(metavar="FOLDER", help="The folder of a dataset; a benchmark needs none.")
    ] = None,
    split: Annotated[str | None, typer.Option(metavar="SPLIT", help="The split. Default: the first.")] = None,
    count: Annotated[
        int, typer.Option(metavar="N", min=1, max=400, help="Show N examples, drawn from the first 4,000.")
    ] = 24,
    out: Picture = Path("sheet.png"),
) -> None:
    """Draw a contact sheet of examples.

    The sheet shows examples with their text and target; of a shifting stream, it shows the density of its tasks.
    """
    if (own := getattr(registry.part(name, "commands"), "show", None)) is not None:
        own(name, folder, out)
        return
    from holdfast.data.sheet import card, sheet
    from holdfast.datasets.base import Reading
    from holdfast.datasets.whole import can_be_shown

    if folder is None:
        cards = _of_stream(name, count)
        sheet(cards).save(out, "PNG")
        typer.echo(f"{len(cards)} training examples of {name} in {out}")
        return
    entry = _dataset(name)
    found, dataset = entry.name, entry.load()
    reading = Reading(skip=1_000_000_000)  # a sheet shows good records; `data check` lists the bad ones
    examples = list(islice(dataset.examples(folder, split or dataset.splits[0], reading), 4000))
    if not examples:
        raise UserError(f"{found} has no examples in {folder}, split {split or dataset.splits[0]}")
    if not can_be_shown(examples):
        raise UserError(f"{found} has neither pictures nor text: there is nothing to show")
    rows = sorted(random.Random(0).sample(range(len(examples)), min(count, len(examples))))
    names = _names(found, folder, split or dataset.splits[0])
    sheet([card(examples[row], names) for row in rows]).save(out, "PNG")
    typer.echo(f"{len(rows)} examples of {found}, {split or dataset.splits[0]}, in {out}")


def _dataset(word: str) -> registry.Entry:
    return registry.find(word, "dataset")


def _of_stream(name: str, count: int) -> list[Card]:
    """Training examples of a benchmark as its default model sees them: pictures, target and stage."""
    import numpy as np
    import torch

    from holdfast.data.sheet import Card
    from holdfast.experiments.config import resolve
    from holdfast.experiments.request import Request
    from holdfast.experiments.setups import Setups

    try:
        registry.find(name, "benchmark")
    except UserError:
        if name not in registry.entries("dataset"):
            raise
        more = f"; `holdfast data make {name} --out DIR` writes a small one" if name in registry.WRITERS else ""
        raise UserError(f"give the folder of {name}{more}") from None
    setup = Setups().of(resolve(Request(name)))
    if setup.inputs.image is None:
        raise UserError(f"{name} has no pictures for its default model: there is nothing to show")
    kept = [
        (stage.name, row)
        for stage in setup.stream.stages
        for row in stage.train[: -(-count // len(setup.stream.stages))]
    ]
    cards = []
    for stage, row in kept[:count]:
        (part,) = setup.data.fetch(np.array([row]), torch.device("cpu")).parts
        pictures = part.inputs["image"].reshape(-1, *part.inputs["image"].shape[-3:]).permute(0, 2, 3, 1)
        shown = tuple(each.expand(*each.shape[:2], 3).to(torch.uint8).numpy() for each in pictures)
        cards.append(Card(shown, f"stage {stage}", str(part.targets[0].tolist()), str(row)))
    return cards


def _names(dataset: str, folder: Path, split: str) -> dict[int, str]:
    """The names of a dataset's classes by number, if its examples only have numbers."""
    from holdfast.datasets.formats.json_stream import stream_arrays

    if dataset in _CLASSES:
        return dict(enumerate(_CLASSES[dataset]))
    if dataset not in ("objects365", "partimagenet"):
        return {}
    # Classes are numbered by the rank of their ids, and no version of the file lists them in that order.
    for path in (*folder.glob(f"*{split}.json"), *folder.glob(f"*/*{split}.json")):
        records = [record for _, _, record in stream_arrays(path, "categories")]
        return {rank: record["name"].strip() for rank, record in enumerate(sorted(records, key=lambda r: r["id"]))}
    return {}


def prepare(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The dataset.")],
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Its folder.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Write the tables to DIR/NAME/SPLIT.")] = Path("tables"),
    size: Annotated[int, typer.Option(metavar="PIXELS", min=8, help="The side of a picture.")] = 64,
    length: Annotated[int, typer.Option(metavar="N", min=3, help="Cut texts after N word pieces.")] = 40,
    vocabulary: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A vocab.txt. Default: train one on the first split.")
    ] = None,
    skip_bad: Annotated[
        int, typer.Option(metavar="N", min=0, help="Skip up to N bad records in each split and list them.")
    ] = 0,
    as_json: Json = False,
) -> None:
    """Prepare a dataset as tables on disk.

    Word pieces, targets and decoded pictures are computed once.
    """
    from rich.console import Console

    from holdfast.cli.screen import print_grid, print_json
    from holdfast.datasets.whole import prepare_all
    from holdfast.reports.tables import Grid

    entry = _dataset(name)
    found, dataset = entry.name, entry.load()
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    with console.status("reading") as status:
        tables = prepare_all(
            dataset,
            folder,
            out / found,
            size=size,
            length=length,
            vocabulary=vocabulary,
            skip_bad=skip_bad,
            progress=status.update,
        )
    for table in tables:
        for line in table.dropped:
            console.print(f"skipped: {line}", markup=False)
    if as_json:
        print_json([asdict(table) for table in tables])
        return
    rows = tuple(
        (
            *(t.split, str(t.examples), str(len(t.dropped)), str(t.labels or "–"), str(t.unknown)),
            *(f"{t.bytes / 1e6:.1f}", t.folder),
        )
        for t in tables
    )
    absent = [split for split in dataset.splits if split not in {t.split for t in tables}]
    notes = [f"Not in {folder}: {', '.join(absent)}."] if absent else []
    notes += [_aside(t.split, t.aside) for t in tables if t.aside]
    columns = ("split", "examples", "skipped", "words as labels", "unknown words", "MB", "folder")
    print_grid(Grid(f"{found}, prepared", columns, rows, tuple(notes)))


def _longest_first(names: list[str], scale: str) -> list[str]:
    from holdfast.world.estimate import estimate

    return sorted(names, key=lambda name: -estimate(name, scale).seconds)


def _print_plan(names: list[str], scale: str, processes: int, as_json: bool) -> None:
    """Print what will be written before it is: the papers' scale takes hours and hundreds of gigabytes."""
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.reports.tables import Grid
    from holdfast.world.estimate import estimate, together

    plans = [estimate(name, scale) for name in names]
    if as_json:
        print_json([asdict(plan) for plan in plans])
        return
    total = together(plans, processes)
    rows = tuple(
        (plan.dataset, f"{plan.records:,}", f"{plan.pictures:,}", _bytes(plan.bytes), _time(plan.seconds))
        for plan in (*plans, total)
    )
    note = f"Estimated from rates on one core; the total is for {processes} processes. Ctrl-C stops."
    print_grid(Grid(f"to be written at {scale}", ("dataset", "records", "pictures", "size", "time"), rows, (note,)))


def _bytes(count: float) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{max(count / 1e6, 0.1):.1f} MB"


def _time(seconds: float) -> str:
    if seconds >= 5400:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{max(seconds, 1):.0f} s"


def _follow(unfinished: Synchronized[int]) -> None:
    """Leave Ctrl-C to the parent process, and end when it ends; draw alone while other datasets take all cores."""
    import holdfast.seldom  # noqa: F401
    from holdfast import processes

    processes.unfinished = unfinished
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    Thread(target=wait, daemon=True).start()


def _write(name: str, folder: Path, scale: str, seed: int) -> None:
    from holdfast.world.whole import write_whole

    write_whole(registry.WRITERS[name].load(), folder, scale, seed)
