"""The section on clvqa: the paper's main table, with each task alone and both orders of the tasks side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from holdfast import papers
from holdfast.benchmarks.base import Measure, headed
from holdfast.benchmarks.versions import mixed
from holdfast.experiments.store import Record
from holdfast.reports.beside import caution
from holdfast.reports.blocks import Bars, Block, Cell, TableBlock, mean_cell
from holdfast.reports.groups import rows_of
from holdfast.reports.marks import mark_best, measured
from holdfast.reports.overview import bar_series

METHODS = {"naive": "finetune", "ewc": "ewc", "rehearsal": "rehearsal", "cumulative": "cumulative"}
"""This library's names for the paper's methods, in the paper's order."""
ORDERS = {"wh>yn": ("wh", "yn"), "yn>wh": ("yn", "wh")}
TITLES = {"wh": "Wh", "yn": "Y/N"}


def section(records: Sequence[Record]) -> list[Block]:
    """The main table for each scale and model that was run."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        settings = record.config["benchmark"]
        if settings.get("setting") == "two":
            plain = {name: value for name, value in settings.items() if name not in ("seed", "order")}
            groups.setdefault(f"{plain} {record.config['model']} {caution(record)}", []).append(record)
    blocks: list[Block] = []
    for group in groups.values():
        blocks += [_table(group), *_bars(group)]
    return blocks


def _table(records: Sequence[Record]) -> TableBlock:
    columns = [(order, task) for order, tasks in ORDERS.items() for task in tasks]
    ours = {order: _with_choices(rows_of([r for r in records if _order(r) == order])) for order in ORDERS}
    titles = [title for order in ORDERS for title in ours[order]]
    names = [*METHODS.values(), *dict.fromkeys(title for title in titles if title not in METHODS.values())]
    published = {ours_: theirs for theirs, ours_ in METHODS.items()}
    rows: list[tuple[Cell, ...]] = []
    for name in names:
        cells = [_cell(ours[order].get(name, ()), published.get(name, ""), order, task) for order, task in columns]
        rows.append((Cell(published.get(name, name)), *cells))
    asked = [f"{' → '.join(TITLES[t] for t in ORDERS[order])}: {TITLES[task]}" for order, task in columns]
    ranks = [None if name == "cumulative" else "" for name in names]
    marked = mark_best(rows, asked, [True] * len(columns), ranks)
    alone = {task: rows_of([r for r in records if _order(r) == task]).get("finetune", ()) for task in TITLES}
    below = {
        "guessing": [_guessed(records, order, task) for order, task in columns],
        "independent (one task alone)": [_cell(alone[task], "independent", task, task) for _, task in columns],
        "guessing, one task alone": [_guessed(records, task, task) for _, task in columns],
    }
    heads = tuple(headed(title, True) for title in asked)
    scale, model = records[0].config["benchmark"].get("scale"), records[0].config["model"]["name"]
    title = f"clvqa, the main table: accuracy after both tasks ({scale}, {model})"
    notes = ["Accuracy in percent on both tasks at the end, with one output layer; below, of models of one task alone."]
    notes += _choices([group for order in ORDERS for name, group in ours[order].items() if name in METHODS.values()])
    notes += [*mixed((record.algorithm, record.config) for record in records), *marked.notes]
    all_rows = (*marked.rows, *((Cell(name), *cells) for name, cells in below.items()))
    return TableBlock(title, ("method", *heads), all_rows, tuple(notes), caution(records[0]), marked.marks)


def _with_choices(rows: dict[str, tuple[Record, ...]]) -> dict[str, tuple[Record, ...]]:
    """Rows by method, where that with the settings that a search chose on validation data stands for its method."""
    found = dict(rows)
    for method in METHODS.values():
        chosen = [title for title, group in rows.items() if group[0].algorithm == method and _chosen(group)]
        if method not in rows and len(chosen) == 1:
            found[method] = found.pop(chosen[0])
    return found


def _chosen(group: Sequence[Record]) -> bool:
    return all(record.tuning for record in group)


def _choices(groups: Sequence[Sequence[Record]]) -> list[str]:
    """A note on each row whose settings were chosen."""
    told = []
    for group in filter(_chosen, groups):
        (algorithm,) = group[0].config["algorithms"]
        name = {"rehearsal": "count", "ewc": "strength"}.get(group[0].algorithm, "")
        how = group[0].tuning
        asked = " → ".join(TITLES[task] for task in ORDERS[_order(group[0])])
        told.append(
            f"{group[0].algorithm}, {asked}: {name} {algorithm.get(name)}, the best of {how.get('trials')} by CL score "
            "on validation data."
        )
    return told


def _cell(group: Sequence[Record], method: str, order: str, task: str) -> Cell:
    return replace(measured(group, task, Measure(TITLES[task], decimals=0)), paper=_paper(method, order, task))


def _guessed(records: Sequence[Record], order: str, task: str) -> Cell:
    chances = [record.chance.get(task) for record in records if _order(record) == order]
    return replace(mean_cell(chances[:1], 100.0, 0), paper=_paper("random", order, task))


def _paper(method: str, order: str, task: str) -> float | None:
    rows = papers.table("clvqa", "main").select(method=method, setup=order.replace(">", "-"), task=task)
    values: list[Mapping[str, object]] = list(rows)
    value = values[0]["accuracy"] if values else None
    return 100 * value if isinstance(value, int | float) else None


def _bars(records: Sequence[Record]) -> list[Bars]:
    found = [
        bar_series(f"{title}, {' → '.join(TITLES[t] for t in ORDERS[order])}", group, TITLES)
        for order in ORDERS
        for title, group in rows_of([r for r in records if _order(r) == order]).items()
    ]
    series = tuple(each for each in found if each is not None)
    title, groups = "What is left of both tasks at the end", tuple(TITLES.values())
    return [Bars(title, "accuracy, %", groups, series)] if series else []


def _order(record: Record) -> str:
    return str(record.config["benchmark"].get("order") or "wh>yn")
