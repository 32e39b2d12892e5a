"""`holdfast data build`: the phrases of COCO, Flickr30k Entities or Flickr8k, built from their official files."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from holdfast.cli.options import SkipBad

if TYPE_CHECKING:
    from holdfast.benchmarks.viscoll.build import Built
    from holdfast.reports.tables import Grid

NAME = "viscoll-"


def register_build(group: typer.Typer) -> None:
    """Add the commands."""
    for dataset, source in (("coco", "COCO"), ("flickr", "Flickr30k Entities"), ("flickr8k", "Flickr8k")):
        group.command(NAME + dataset, help=f"Build the phrases of {source}.")(build)


def build(
    context: typer.Context,
    source: Annotated[
        Path | None,
        typer.Option("--from", metavar="DIR", help="The folder of official files. Default: synthetic data."),
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the phrases to this file.")] = None,
    workers: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Use N processes. Default: one for each core.")
    ] = None,
    skip_bad: SkipBad = 0,
    scale: Annotated[
        str, typer.Option(metavar="SCALE", help="Of synthetic data: tiny, small, large or paper.")
    ] = "small",
    tagger: Annotated[str, typer.Option(metavar="NAME", help="gruut, spacy or stanza.")] = "gruut",
    synonyms: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The words for COCO's categories, a line for each.")
    ] = None,
    grammar: Annotated[
        Literal["meant", "printed"], typer.Option(help="The paper's chunks as printed, without VBZ; or as meant.")
    ] = "printed",
    released: Annotated[
        bool, typer.Option("--released", help="Read the phrases that the authors published, with --from.")
    ] = False,
    vocabulary: Annotated[
        str, typer.Option(metavar="FILE", help="BERT's vocab.txt, for released phrases. Default: look for it.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Build the phrases, and print their statistics beside the paper's."""
    from holdfast.benchmarks.viscoll.build import build as make
    from holdfast.benchmarks.viscoll.phrases import load_phrases, write_lines
    from holdfast.benchmarks.viscoll.released import build_released
    from holdfast.benchmarks.viscoll.synonyms import FILE
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.data.text import Tokenizer, bert_vocabulary

    name = cast(Literal["coco", "flickr", "flickr8k"], str(context.info_name).removeprefix(NAME))
    data = str(source) if source is not None else ""
    if released:
        words = Tokenizer.load(Path(vocabulary) if vocabulary else bert_vocabulary())
        built = build_released(name, data=data, tokenizer=words, tagger=tagger, skip_bad=skip_bad)
    else:
        built = make(
            name,
            data=data,
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

    row = next(iter(table("viscoll", 1).select(dataset=f"{built.dataset}-shift")), {})  # the paper has no Flickr8k
    return {name: cast(float | None, row.get(name)) for name in asdict(built.statistics)}


def _sizes(built: Built) -> Grid:
    """The statistics of Table 1 beside the paper's."""
    from holdfast.papers.published import table
    from holdfast.reports.tables import Grid

    ours, theirs = asdict(built.statistics), _published(built)
    rows = tuple((name.replace("_", " "), _amount(ours[name]), _amount(theirs[name])) for name in ours)
    notes = [f"From {built.source}, tagged by {built.tagger}; in {built.file}."]
    if built.world:
        notes.append("This is synthetic data in the format of the official files: the paper's sizes do not apply.")
    if built.warning:
        notes.append(f"Warning: {built.warning}.")
    if built.held_out_images:
        notes.append(f"{built.held_out_images:,} images have a caption with one of the 24 held-out pairs.")
    notes += [f"Left out: {problem}" for problem in built.problems]
    notes += [note for note in table("viscoll", 1).notes if note.lower().startswith(f"{built.dataset}-shift")]
    return Grid(f"viscoll-{built.dataset}", ("", "ours", "the paper's"), rows, tuple(notes))


def _amount(value: float | None) -> str:
    """Format a count without decimals, a mean with three.

    >>> _amount(639592), _amount(2.497), _amount(None)
    ('639,592', '2.497', '–')
    """
    if value is None:
        return "–"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.3f}"
