"""`holdfast papers`: the published tables, and the audit of their arithmetic."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from holdfast.cli.options import Json

Paper = Annotated[
    str | None, typer.Argument(metavar="PAPER", help="A paper's name: see `holdfast papers list`. Default: all.")
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help="Show the papers' tables and audit their arithmetic.")
    group.command()(audit)
    group.command()(table)
    group.command("list")(list_)
    app.add_typer(group, name="papers")


def audit(
    paper: Paper = None,
    every: Annotated[bool, typer.Option("--all", help="Also list the consistent cells.")] = False,
    as_json: Json = False,
) -> None:
    """List cells that do not follow from the others.

    Recomputes every derived cell of the papers' tables, and lists those that are inconsistent with the printed scores.
    """
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
    columns = ("paper", "table", "cell", "column", "printed", "recomputed", "can be", "consistent")
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
