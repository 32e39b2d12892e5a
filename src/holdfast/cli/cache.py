"""`holdfast cache`."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.options import Json
from holdfast.errors import UserError

if TYPE_CHECKING:
    from holdfast.benchmarks.cache import CacheEntry
    from holdfast.experiments.weights import Weights


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(cache)


def cache(
    clean: Annotated[bool, typer.Option("--clean", help="Remove what is no longer needed.")] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="With --clean: remove everything; it is made again when needed.")
    ] = False,
    store: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="List (or --clean) the weights that a store's finished runs keep instead."),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the cache, or free its space with --clean.

    With --store, --clean removes the final weights and stage weights of runs that no other run starts from; records
    are kept.
    """
    if everything and not clean:
        raise UserError("--all has no effect without --clean: give both, or neither")
    if store is None:
        _cache(clean, everything, as_json)
    elif everything:
        raise UserError(
            "--all works on the cache, not with --store: weights that other runs start from are always kept"
        )
    else:
        _weights(store, clean, as_json)


def _cache(clean: bool, everything: bool, as_json: bool) -> None:
    from holdfast.benchmarks import cache as kept

    found = kept.clean(everything) if clean else list(kept.entries())
    rows = [
        {
            "kind": each.kind,
            "what": each.title,
            "bytes": each.bytes,
            "used": time.strftime("%Y-%m-%d", time.localtime(each.used)),
            "state": each.state,
            "why": each.why,
            "path": str(each.paths[0]),
        }
        for each in found
    ]
    unused = [each for each in found if each.state in ("unused", "half-written")]
    if clean:
        note = f"Freed {in_bytes(_sum(found))}."
    else:
        note = f"{in_bytes(_sum(found))} in total; {in_bytes(_sum(unused))} no longer needed"
        note += ": holdfast cache --clean removes them." if unused else "."
    title = f"removed from {kept.cache_folder()}" if clean else str(kept.cache_folder())
    _show(title, rows, [*_reasons(unused if not clean else []), note], as_json)


def _reasons(unused: Sequence[CacheEntry]) -> list[str]:
    """Each reason once, with a count."""
    counts: dict[str, int] = {}
    for each in unused:
        counts[each.why] = counts.get(each.why, 0) + 1
    return [f"{count} unused: {why}." for why, count in counts.items()]


def _weights(place: Path, clean: bool, as_json: bool) -> None:
    from holdfast.experiments.store import Store
    from holdfast.experiments.weights import drop, weights_of

    store = Store(place)
    if not store.path.is_dir():
        raise UserError(f"no store exists at {place}: `holdfast run --out {shlex.quote(str(place))}` makes one")
    found = list(weights_of(store))
    if clean:
        found = drop(found)
    rows = [
        {
            "run": each.run.id,
            "algorithm": each.algorithm,
            "bytes": each.bytes,
            "state": "needed" if each.needed else "unused",
            "why": each.needed,
        }
        for each in found
    ]
    if clean:
        note = f"Freed {in_bytes(_sum(found))}; all records are kept."
    else:
        unused = [each for each in found if not each.needed]
        note = f"{in_bytes(_sum(found))} in total; no other run starts from {in_bytes(_sum(unused))} of them"
        note += f": holdfast cache --store {shlex.quote(str(place))} --clean removes these." if unused else "."
    _show(f"weights {'removed from' if clean else 'in'} {place}", rows, [note], as_json)


def _show(title: str, rows: list[dict[str, Any]], notes: list[str], as_json: bool) -> None:
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.reports.tables import Grid

    if as_json:
        print_json(rows)
        return
    columns = tuple(name for name in (rows[0] if rows else ()) if name not in ("why", "path"))
    cells = tuple(tuple(in_bytes(row[name]) if name == "bytes" else str(row[name]) for name in columns) for row in rows)
    print_grid(Grid(title, columns or ("nothing",), cells, tuple(notes)))


def _sum(found: Sequence[CacheEntry] | Sequence[Weights]) -> int:
    return sum(each.bytes for each in found)


def in_bytes(count: float) -> str:
    """A number of bytes as text.

    >>> in_bytes(12), in_bytes(4_321_000), in_bytes(315e9)
    ('12 B', '4.3 MB', '315.0 GB')
    """
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:,.1f} GB"
