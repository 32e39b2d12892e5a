"""`holdfast data build`: the datasets of CFST and of VisCOLL from the official files of others."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from holdfast.errors import UserError

if TYPE_CHECKING:
    from holdfast.benchmarks.cfst.build import Report
    from holdfast.benchmarks.viscoll.build import Built
    from holdfast.reports.tables import Grid

VISCOLL = "viscoll-"
REASONS = 5
"""How many combinations are named for each split; `--json` names them all."""


def build(
    name: Annotated[
        str,
        typer.Argument(
            help="cgqa (from GQA), cobj (Objects365), cpin (PartImageNet), viscoll-coco (COCO) or viscoll-flickr "
            "(Flickr30k Entities)."
        ),
    ],
    source: Annotated[
        Path | None,
        typer.Option("--from", help="The folder of the official files; VisCOLL is built of the world's without it."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Where to: the published layout; of VisCOLL, a file of phrases beside those in the cache."),
    ] = None,
    per_combination: Annotated[
        str, typer.Option(help="Pictures of a combination: training, validation, and each test.")
    ] = "1000,50,100",
    seed: Annotated[int, typer.Option(min=0, help="Another seed is another dataset.")] = 0,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; all cores by default.")] = None,
    smallest: Annotated[int, typer.Option(min=1, help="The least width and height of a thing, in pixels.")] = 30,
    skip_bad: Annotated[int, typer.Option(min=0, help="Leave out at most so many bad records of the source.")] = 0,
    scale: Annotated[str, typer.Option(help="VisCOLL of the world: tiny, small, large or paper.")] = "small",
    tagger: Annotated[str, typer.Option(help="VisCOLL: gruut, spacy or stanza.")] = "gruut",
    synonyms: Annotated[
        Path | None, typer.Option(help="VisCOLL: the words for COCO's categories, a line for each.")
    ] = None,
    grammar: Annotated[
        Literal["meant", "printed"],
        typer.Option(help="VisCOLL: the paper's chunks as meant, or as printed, without VBZ."),
    ] = "meant",
    as_json: Annotated[bool, typer.Option("--json", help="What was built, as JSON on standard output.")] = False,
) -> None:
    """Build a dataset from the official data, and check the result. A killed call goes on when repeated."""
    if name.startswith(VISCOLL):
        _viscoll(name, source, out, workers, skip_bad, scale, tagger, synonyms, grammar, as_json)
        return
    if source is None or out is None:
        raise UserError(f"{name} is built of official files: say where they are with --from, and where to with --out")
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from holdfast.benchmarks.cfst.build import build as make
    from holdfast.cli.screen import print_grid, print_json

    counts = _counts(per_combination)
    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(f"reading {source}", total=None)

        def progress(done: int, total: int) -> None:
            bar.update(task, description=f"drawing {name}", completed=done, total=total)

        report = make(
            name,
            source,
            out,
            per_combination=counts,
            seed=seed,
            workers=workers,
            smallest=smallest,
            skip_bad=skip_bad,
            progress=progress,
        )
    if as_json:
        print_json(asdict(report))
    else:
        print_grid(_grid(report))


def _counts(text: str) -> tuple[int, int, int]:
    """Three numbers with commas between.

    >>> _counts("1000,50,100")
    (1000, 50, 100)
    """
    try:
        train, val, test = (int(number) for number in text.split(","))
    except ValueError:
        raise UserError(f"--per-combination is {text!r}: give three whole numbers, as in 1000,50,100") from None
    return train, val, test


def _grid(report: Report) -> Grid:
    from holdfast.reports.tables import Grid

    rows = tuple(
        (
            row.split,
            f"{row.present} of {row.listed}",
            f"{row.pictures:,}",
            f"{row.listed * row.wanted:,}",
            str(len(row.reasons) - (row.listed - row.present)),
        )
        for row in report.rows
    )
    notes = []
    for row in report.rows:
        named = [f"({each}): {why}" for each, why in list(row.reasons.items())[:REASONS]]
        more = len(row.reasons) - len(named)
        if named:
            notes.append(f"{row.split}: {'; '.join(named)}" + (f"; and {more} more" if more else "") + ".")
    columns = ("split", "combinations", "pictures", "wanted", "combinations with fewer")
    return Grid(f"{report.name} in {report.folder}", columns, rows, tuple(notes))


def _viscoll(
    name: str,
    source: Path | None,
    out: Path | None,
    workers: int | None,
    skip_bad: int,
    scale: str,
    tagger: str,
    synonyms: Path | None,
    grammar: Literal["meant", "printed"],
    as_json: bool,
) -> None:
    from holdfast.benchmarks.viscoll.build import build as make
    from holdfast.benchmarks.viscoll.phrases import load_phrases, write_lines
    from holdfast.benchmarks.viscoll.synonyms import FILE
    from holdfast.cli.screen import print_grid, print_json

    built = make(
        cast(Literal["coco", "flickr"], name.removeprefix(VISCOLL)),
        data=str(source) if source is not None else "",
        scale=scale,
        tagger=tagger,
        synonyms_file=synonyms or FILE,
        grammar=grammar,
        skip_bad=skip_bad,
        workers=workers,
    )
    if out is not None:
        write_lines(out, load_phrases(built.file))
    if as_json:
        print_json(asdict(built) | {"file": str(built.file), "published": _published(built)})
    else:
        print_grid(_sizes(built))


def _published(built: Built) -> dict[str, float | None]:
    from holdfast.papers.published import table

    row = next(iter(table("viscoll", 1).select(dataset=f"{built.dataset}-shift")))
    return {name: cast(float | None, row[name]) for name in asdict(built.statistics)}


def _sizes(built: Built) -> Grid:
    """The statistics of Table 1 beside the paper's."""
    from holdfast.papers.published import table
    from holdfast.reports.tables import Grid

    ours, theirs = asdict(built.statistics), _published(built)
    rows = tuple((name.replace("_", " "), _amount(ours[name]), _amount(theirs[name])) for name in ours)
    notes = [f"From {built.source}, tagged by {built.tagger}; in {built.file}."]
    if built.world:
        notes.append("This is data of the world, in the format of the official files: the paper's sizes are no target.")
    if built.held_out_images:
        notes.append(f"{built.held_out_images:,} images have a caption with one of the 24 held-out pairs.")
    notes += [f"Left out: {problem}" for problem in built.problems]
    notes += [note for note in table("viscoll", 1).notes if note.lower().startswith(f"{built.dataset}-shift")]
    return Grid(f"viscoll-{built.dataset}", ("", "ours", "the paper's"), rows, tuple(notes))


def _amount(value: float | None) -> str:
    """A count without decimals, a mean with three.

    >>> _amount(639592), _amount(2.497), _amount(None)
    ('639,592', '2.497', '–')
    """
    if value is None:
        return "–"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.3f}"
