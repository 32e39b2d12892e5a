"""`holdfast import`: results and weights that the authors of a benchmark made with their own code."""

from __future__ import annotations

import typer

from holdfast import registry


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help="Import results and weights made with a benchmark's own code.")
    for family in registry.families():
        if (own := registry.part(family, "imports")) is not None:
            own.register_import(group)
    app.add_typer(group, name="import")
