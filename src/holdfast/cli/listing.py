"""`holdfast list` and `holdfast show`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast import registry
from holdfast.cli.options import Json, Out, RunId
from holdfast.errors import UserError, nearest

KINDS = ("benchmarks", "algorithms", "models", "datasets")
ALONE = ("training", "runs")
"""Lists that take no name."""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("list")(list_)
    app.command()(show)


def list_(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="KIND", help="benchmarks, algorithms, models, datasets, training or runs. Default: all."
        ),
    ] = None,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Explain this one and its settings.")] = None,
    out: Out = Path("runs"),
    with_: Annotated[
        str, typer.Option("--with", metavar="WORDS", help="Of the algorithms, those with all of these, as in --facts.")
    ] = "",
    without: Annotated[
        str, typer.Option("--without", metavar="WORDS", help="Of the algorithms, those with none of these.")
    ] = "",
    by_facts: Annotated[
        bool, typer.Option("--facts", help="Show what sets the algorithms apart, and the words for it.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List all parts, or explain one of them.

    `list algorithms` lists all algorithms, `list algorithms ewc` explains one and its settings, `list training`
    explains the settings of training, and `list runs` lists the runs of a store.
    """
    if with_ or without or by_facts:
        if kind != "algorithms" or name is not None:
            raise UserError("only algorithms are listed by facts: holdfast list algorithms --facts")
        from holdfast.cli.chooser import list_by_facts

        list_by_facts(with_, without, as_json)
        return
    if kind in ALONE and name is not None:
        from holdfast.experiments.store import out_option

        instead = f": `holdfast show {name}{out_option(out)}` describes a run" if kind == "runs" else ""
        raise UserError(f"`list {kind}` takes no name{instead}")
    if kind == "runs":
        _list_runs(out, as_json)
    elif kind == "training":
        from holdfast.cli.explain import about_training

        about_training(as_json)
    elif kind is not None and kind not in KINDS:
        raise UserError(f"there is nothing to list under {kind!r}: {nearest(kind, [*KINDS, *ALONE])}")
    elif kind is not None and name is not None:
        from holdfast.cli.explain import about

        about(kind.removesuffix("s"), name, as_json)
    else:
        _list_kinds(KINDS if kind is None else (kind,), as_json)


def _list_kinds(kinds: Sequence[str], as_json: bool) -> None:
    chosen = {kind: registry.entries(kind.removesuffix("s")) for kind in kinds}
    if as_json:
        from holdfast.cli.screen import print_json

        print_json({kind: [_as_json(name, entry) for name, entry in found.items()] for kind, found in chosen.items()})
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    for kind, entries in chosen.items():
        table = Table(title=kind, title_justify="left", title_style="bold", box=None, pad_edge=False)
        table.add_column("name", header_style="dim", no_wrap=True)
        table.add_column("what", header_style="dim")
        table.add_column("also called", header_style="dim", max_width=28)
        for name, entry in entries.items():
            what = entry.summary if entry.origin == registry.BUILT_IN else f"from {entry.origin}"
            table.add_row(Text(name), Text(what), ", ".join([*entry.aliases, *entry.rows]))
        console.print(table)
        console.print()
    what = kinds[0] if len(kinds) == 1 else "KIND"
    typer.echo(f"`holdfast list {what} NAME` explains one of them and its settings.")


def _as_json(name: str, entry: registry.Entry) -> dict[str, Any]:
    from holdfast.cli.explain import settings_in

    found: dict[str, Any] = {
        "name": name,
        "summary": entry.summary,
        "origin": entry.origin,
        "aliases": list(entry.aliases),
        "rows": {row: dict([own]) for row, own in entry.rows.items()},
    }
    try:
        return found | {"settings": {each.name: each.default for each in settings_in(entry)}}
    except UserError as error:  # a broken package does not hide the others
        return found | {"problem": str(error)}


def show(
    run: RunId,
    out: Out = Path("runs"),
    as_json: Json = False,
) -> None:
    """Show a run: settings, scores, cost and command."""
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.experiments.store import Store, out_option
    from holdfast.reports.runs import read_run

    folder = Store(out).find(run)
    found = read_run(folder.path)
    record, config = found.record, found.config
    if found.status == "broken":
        raise UserError(f"run {found.id} in {out} is broken: {found.problem}")
    if as_json:
        print_json(record.to_json() if record else {"id": found.id, "status": found.status, "config": config})
        return
    from rich.console import Console

    from holdfast.reports.anytime import over_budget
    from holdfast.reports.tables import comparison, matrix

    console = Console(highlight=False, soft_wrap=True)
    whole = not console.is_terminal  # commands and messages stay whole in a terminal, too: they are copied
    console.print(f"[bold]run {found.id}[/bold]  {found.status}  {found.path}")
    algorithms = [*config["transforms"], *map(_line, config["algorithms"])]
    lines = {
        "benchmark": _line(config["benchmark"]),
        "model": _line(config["model"]),
        "algorithm": "; ".join(algorithms) or "finetune",
        "training": _line(config["training"][0]) + (" (first stage)" if len(config["training"]) > 1 else ""),
        "run": f"seed={config['seed']}, precision={config.get('precision')}, data={config.get('data')}, "
        f"threads={record.environment.get('threads', 'unknown') if record else config.get('threads', 1)}",
    }
    if "parts" in config:
        lines["versions"] = ", ".join(f"{part}={version}" for part, version in sorted(config["parts"].items()))
    for name, line in lines.items():
        console.print(f"{name}: {line}", markup=False, soft_wrap=whole)
    if record is not None:
        print_grid(matrix(record))
        print_grid(comparison([record]))
        if (spent := over_budget(record)) is not None:
            print_grid(spent)
        if record.chance:
            guesses = ", ".join(f"{name} {100 * score:.1f}" for name, score in record.chance.items())
            console.print(f"guessing scores: {guesses}", soft_wrap=whole)
        if record.dropped:
            console.print(f"{record.dropped} bad records were skipped:")
            for problem in record.problems:
                console.print(f"  {problem}", markup=False)
        if cost := record.cost:
            console.print(
                f"cost: {cost['steps']} steps, {cost['seconds']:.1f} s, {cost['examples_forward']} examples forward "
                f"and {cost['examples_backward']} backward, {cost['memory_bytes']} bytes kept by the algorithm, "
                f"{cost['parameters']} parameters" + _further(cost),
                soft_wrap=whole,
            )
        if imported := record.environment.get("imported"):
            console.print(f"imported: {imported}", markup=False, soft_wrap=whole)
    elif failure := folder.failure():
        console.print(failure, markup=False, style="red")
    elif (holder := folder.holder()) is not None:
        console.print(f"running: held by {holder}")
    else:
        console.print("not finished: run the same command to resume it")
    if found.command:
        console.print(f"again: {found.command}{out_option(out)}", markup=False)
    elif record is not None and (again := record.environment.get("again")):
        console.print(f"again: {again}", markup=False)
    else:
        console.print("the command that repeats it is unknown: its environment.json is missing")


def _list_runs(out: Path, as_json: bool) -> None:
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.reports.runs import load
    from holdfast.reports.tables import Grid

    columns = ("run", "status", "benchmark", "algorithm", "model", "seed", "problem")
    rows = [
        (r.id, r.status, r.benchmark, r.algorithm, r.model, "" if r.seed is None else str(r.seed), r.problem)
        for r in load(out)
    ]
    if as_json:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
        return
    # A problem is too long for a column.
    notes = [f"{run} is broken: {problem}" for run, status, *_, problem in rows if status == "broken"]
    shown = tuple(row[:-1] for row in rows)
    print_grid(
        Grid(
            f"runs in {out}",
            columns[:-1],
            shown,
            tuple(notes) if rows else ("No runs yet: `holdfast run` makes some.",),
        )
    )


def _further(cost: Mapping[str, float]) -> str:
    """What only newer records state about the cost of a run."""
    if "flops" not in cost:
        return ""
    weights = f" ({cost['trained']} trained, {cost['added']} added, {cost['added_bytes']} bytes)"
    return f"{weights}, {cost['flops']:.3g} floating-point operations"


def _line(values: dict[str, Any]) -> str:
    rest = ", ".join(f"{name}={value}" for name, value in values.items() if name != "name")
    return f"{values['name']} ({rest})" if "name" in values else rest
