"""`holdfast papers`: the published tables, and the audit of their arithmetic."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.options import Json
from holdfast.errors import UserError

if TYPE_CHECKING:
    from holdfast.papers.across import Quotation
    from holdfast.papers.matrix import PrintedCheck

Paper = Annotated[
    str | None, typer.Argument(metavar="PAPER", help="A paper's name: see `holdfast papers list`. Default: all.")
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help="Show the papers' tables and audit their arithmetic.")
    group.command()(audit)
    group.command("audit-matrix")(audit_matrix)
    group.command()(table)
    group.command("list")(list_)
    app.add_typer(group, name="papers")


def audit(
    paper: Paper = None,
    every: Annotated[bool, typer.Option("--all", help="Also list the consistent cells.")] = False,
    across: Annotated[
        bool,
        typer.Option("--across", help="List where papers print different values for one method, data and protocol."),
    ] = False,
    as_json: Json = False,
) -> None:
    """List cells that do not follow from the others.

    Recomputes every derived cell of the papers' tables, and lists those that are inconsistent with the printed scores.
    """
    if across:
        _across(paper, as_json)
        return
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.papers.audit import RULES, summary
    from holdfast.papers.audit import audit as checks_of
    from holdfast.reports.tables import Grid

    checks = checks_of(paper)
    shown = [check for check in checks if every or not check.consistent]
    if as_json:
        print_json([asdict(check) | {"keys": dict(check.keys)} for check in shown])
        return
    rows = [
        (
            c.paper,
            c.table,
            ", ".join(str(v) for _, v in c.keys),
            c.column,
            f"{c.printed:g}",
            f"{c.mid:.2f}",
            f"{c.low:.2f} to {c.high:.2f}",
            "yes" if c.consistent else "no",
        )
        for c in shown
    ]
    columns = ("paper", "table", "cell", "column", "printed", "recomputed", "range", "consistent")
    print_grid(
        Grid(
            "derived cells" if every else "cells that do not follow from the other printed numbers",
            columns,
            tuple(rows),
        )
    )
    tallies = [(t.paper, t.table, t.rule, str(t.checked), str(t.inconsistent), RULES[t.rule]) for t in summary(checks)]
    wrong = sum(not check.consistent for check in checks)
    notes = (
        f"{wrong} of {len(checks)} derived cells are inconsistent.",
        "Rounding is allowed for: a cell is inconsistent only if no unrounded inputs could give the printed value.",
    )
    print_grid(
        Grid(
            "by table and rule",
            ("paper", "table", "rule", "checked", "inconsistent", "what it recomputes"),
            tuple(tallies),
            notes,
        )
    )


def _across(paper: str | None, as_json: bool) -> None:
    """Different values of one quantity in two papers, and rows that one paper prints for two sets of data."""
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.papers import tables
    from holdfast.papers.across import copies, disagreements
    from holdfast.reports.tables import Grid

    wanted = {table.paper for table in tables(paper)}
    found = [each for each in disagreements() if {value.paper for value in each.values} & wanted]
    copied = [each for each in copies() if each.paper in wanted]
    if as_json:
        print_json({"different": [asdict(each) for each in found], "copied": [asdict(each) for each in copied]})
        return
    rows = []
    for each in found:
        heads = [", ".join(map(str, each.keys)), each.column.replace("_", " ")]
        for number, value in enumerate(each.values):
            rows.append((*(("", "") if number else heads), *_quoted(value)))
    notes = (f"{len(found)} quantities. Rounding is allowed for; a protocol includes the pre-training and the buffer.",)
    print_grid(
        Grid("values that differ between papers", ("of", "what", "value", "paper and table"), tuple(rows), notes)
    )
    alike = []
    for copy in copied:
        places = (f"{data} (table {number})" for data, number in zip(copy.data, copy.tables, strict=True))
        alike.append((copy.paper, str(copy.method), *places, ", ".join(f"{value:g}" for value in copy.values)))
    if alike:
        columns = ("paper", "method", "data", "other data", "the same numbers")
        print_grid(Grid("rows that a paper prints for different data", columns, tuple(alike)))


def _quoted(value: Quotation) -> tuple[str, str]:
    number = f"{value.value:g}" if value.decimals is None else f"{value.value:.{value.decimals}f}"
    return number, f"{value.paper} {value.table}" + (f", {value.said}" if value.said else "")


def audit_matrix(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The scores: a row for each stage, a column for each task.")
    ],
    values: Annotated[
        list[str] | None,
        typer.Option(
            "--printed", metavar="NAME=VALUE", help="Check a printed value, such as bwt=-5.1; repeat for more."
        ),
    ] = None,
    decimals: Annotated[
        int | None, typer.Option(metavar="N", min=0, max=9, help="The decimals that the scores were rounded to.")
    ] = None,
    transpose: Annotated[bool, typer.Option("--transpose", help="Rows are tasks and columns are stages.")] = False,
    as_json: Json = False,
) -> None:
    """Compute every measure of a score matrix.

    Reads CSV, JSON, npy, a record, and the logs of Avalanche and PILOT; prints each measure with its definition and,
    given a paper's values, which of them do not follow from the matrix.
    """
    from rich.markup import escape

    from holdfast.cli.screen import print_grid, print_json
    from holdfast.papers import matrix as matrices
    from holdfast.papers.matrix_files import read_matrix
    from holdfast.reports.tables import Grid

    printed = dict(map(_printed, values or []))
    found = read_matrix(file, decimals, transpose)
    computed, checks = matrices.measures(found), matrices.audit_matrix(found, printed)
    if as_json:
        shown = [{name: value for name, value in asdict(each).items() if value == value} for each in computed]
        print_json({"measures": shown, "printed": [asdict(check) for check in checks], "notes": found.notes})
        return
    places = 1 if found.unit == 100 else 3
    places = max(places, found.decimals or 0)
    rows = tuple(
        (
            matrices.MEASURES[each.name].title,
            "–" if each.reason else f"{each.value:.{places}f}",
            "" if each.reason or each.low == each.high else f"{each.low:.{places + 1}f} to {each.high:.{places + 1}f}",
        )
        for each in computed
    )
    count = len(found.scores)
    size = f"{count} stages and tasks" if count > 1 else "one stage and task"
    precision = "one decimal" if found.decimals == 1 else f"{found.decimals} decimals"
    rounded = "exact" if found.decimals is None else f"rounded to {precision}"
    notes = ["With R_ij, the score on task j of N after stage i:"]
    notes += [f"  {measure.title}: {measure.definition}" for measure in matrices.MEASURES.values()]
    notes += [*map(escape, found.notes), f"Scores are taken as {rounded}: --decimals N changes that."]
    notes += [f"No {matrices.MEASURES[each.name].title}: {each.reason}." for each in computed if each.reason]
    notes += [f"No {name}: {why}." for name, why in matrices.NEEDS_MORE.items()]
    if found.curve:
        mean = sum(found.curve) / len(found.curve)
        notes.append(
            f"The log's own curve over all classes has a mean of {mean:.{places}f} and ends at {found.curve[-1]:g}."
        )
    unit = ", in percent" if found.unit == 100 else ""
    print_grid(Grid(f"measures of {size}{unit}", ("measure", "value", "range"), rows, tuple(notes)))
    if checks:
        print_grid(Grid("printed values", ("measure", "printed", "computed", "follows"), *_verdicts(checks, places)))


def _verdicts(checks: Sequence[PrintedCheck], places: int) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
    """The rows of a table of printed values, and a note for each that does not follow."""
    from holdfast.papers.matrix import MEASURES

    rows, notes = [], []
    for check in checks:
        title = MEASURES[check.name].title
        value = "–" if check.value.reason else f"{check.value.value:.{places}f}"
        rows.append((title, f"{check.printed:g}", value, "yes" if check.follows else "no"))
        if not check.follows:
            others = ", ".join(MEASURES[name].title for name in check.others)
            notes.append(
                f"{title} {check.printed:g} is not what these scores give" + (f"; {others} is." if others else ".")
            )
    wrong = sum(not check.follows for check in checks)
    return tuple(rows), (f"{wrong} of {len(checks)} printed values do not follow from the matrix.", *notes)


def _printed(word: str) -> tuple[str, tuple[float, int | None]]:
    """A measure's name, its printed value and the decimals that were printed."""
    name, equals, text = word.partition("=")
    match = re.fullmatch(r"\s*([+-]?\d+(?:\.(\d*))?)\s*%?\s*", text)
    if not equals or match is None:
        raise UserError(f"--printed {word!r}: write it as NAME=VALUE, such as forgetting=12.3")
    return name.strip(), (float(match[1]), len(match[2] or ""))


def table(
    paper: Annotated[str, typer.Argument(metavar="PAPER", help="The paper's name: see `holdfast papers list`.")],
    number: Annotated[str, typer.Argument(metavar="NUMBER", help="The table's number in the paper, such as 3 or 9a.")],
    as_json: Json = False,
) -> None:
    """Print one published table."""
    from holdfast import papers
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.reports.tables import Grid

    found = papers.table(paper, number)
    if as_json:
        print_json(asdict(found) | {"rows": list(found)})
        return
    rows = tuple(tuple("–" if cell is None else str(cell) for cell in row) for row in found.rows)
    title = f"{found.paper}, table {found.number}: {found.title}"
    print_grid(Grid(title, tuple(c.name for c in found.columns), rows, (found.measures, found.where, *found.notes)))


def list_(paper: Paper = None, as_json: Json = False) -> None:
    """List the published tables."""
    from holdfast import papers
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.reports.tables import Grid

    found = papers.tables(paper)
    if as_json:
        print_json([{"paper": t.paper, "number": t.number, "title": t.title, "rows": len(t)} for t in found])
        return
    rows = tuple((t.paper, t.number, t.title) for t in found)
    print_grid(Grid("published tables", ("paper", "table", "what"), rows))
