"""The section on cfst: Tables 1 to 8 with these runs included, composition as bars, fresh against old concepts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from holdfast import papers
from holdfast.benchmarks.cfst import paper
from holdfast.experiments.store import Record
from holdfast.reports.beside import Beside, caution, side_by_side
from holdfast.reports.blocks import Bars, Block, Cell, TableBlock, mean_cell
from holdfast.reports.groups import rows_of
from holdfast.reports.overview import bar_series

METHODS = {"joint": "multitask", "replay": "er"}
"""The paper's names, if they differ from those in this library."""
TESTS = {"sys": "Asys", "pro": "Apro", "sub": "Asub", "non": "Anon", "noc": "Anoc"}
MEANS = {"hn": "Hn", "hr": "Hr", "ha": "Ha"}
CONCEPTS = {
    "Anon(f)": "non_f",
    "Anon(o)": "non_o",
    "Asys(f)": "sys_f",
    "Asys(o)": "sys_o",
    "S(f)": "s_f",
    "S(o)": "s_o",
}
"""The measures of E.4, and their columns in the table of Figure 7."""
COBJ_TASKS = {10: "2", 5: "3", 3: "4"}
WAYS = {"2": 3, "3": 6}
"""The number of classes in a few-shot task of the paper's tables, if it is not ten."""


def section(records: Sequence[Record]) -> list[Block]:
    """A published table for each network and benchmark that was run, and the corresponding figures."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        settings = {n: v for n, v in record.config["benchmark"].items() if n not in ("seed", "setting")}
        groups.setdefault(f"{settings} {caution(record)}", []).append(record)
    return [block for group in groups.values() for own in _by_network(group) for block in _blocks(own)]


def _by_network(records: Sequence[Record]) -> list[list[Record]]:
    """Group runs by network.

    A network of modules is grouped with a plain one of its kind that was run: of the same size, or else the first.
    """
    found: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda record: _of_modules(record)):  # the plain ones first
        alike = [group for group in found.values() if _of_modules(record) and _kind(group[0]) == _kind(record)]
        own = found.get(f"{_kind(record)} {_size(record)}") or next(iter(alike), None)
        if own is None:
            own = found.setdefault(f"{_kind(record)} {_size(record)}", [])
        own.append(record)
    return list(found.values())


def _of_modules(record: Record) -> bool:
    return record.config["model"]["name"] in ("modular-resnet18", "modular-vit")


def _kind(record: Record) -> str:
    """The kind of a network, regardless of its width and of whether it consists of modules."""
    name = str(record.config["model"]["name"])
    return paper.family(name) or name


def _size(record: Record) -> dict[str, Any]:
    return {name: value for name, value in record.config["model"].items() if name not in ("name", "parts")}


def table_number(record: Record) -> str:
    """The paper's table for a run, by benchmark, kind of model, and number of tasks; empty if there is none."""
    benchmark = record.config["benchmark"]
    name, model = benchmark["name"].partition(":")[2], record.config["model"]["name"]
    vit = paper.family(model) == "vit"
    if not paper.family(model):
        return ""
    if name == "cobj":
        tasks = benchmark.get("tasks") or 3
        return ("6" if tasks == 3 else "") if vit else COBJ_TASKS.get(tasks, "")
    return {"cgqa": "5" if vit else "1", "cpin": "" if vit else "7", "cifar100": "" if vit else "8"}.get(name, "")


def method(record: Record) -> tuple[str, str]:
    """The row of a run in the paper's tables: method and setting."""
    return METHODS.get(record.algorithm, record.algorithm), record.config["benchmark"]["setting"]


def _blocks(records: Sequence[Record]) -> list[Block]:
    blocks: list[Block] = []
    number = table_number(records[0])
    if number:
        published = papers.table("cfst", number)
        there = {column.name for column in published.columns}
        columns = [Beside("Acon", "accuracy" if number == "8" else "acon", "Acon", interval="accuracy_ci")]
        for name in [name for name in (*TESTS, *MEANS) if name in there]:
            measure = {**TESTS, **MEANS}[name]
            own = f"{measure}_interval" if name in TESTS else ""
            columns.append(Beside(measure, name, measure, interval=f"{name}_ci", own_interval=own))
        columns.sort(key=lambda column: [c.name for c in published.columns].index(column.paper))
        beside = side_by_side(published, records, columns, method, ("method", "setting"))
        notes = (*beside.notes, *_intervals(beside), *_sizes(records), *_other_tests(records, number))
        blocks.append(replace(beside, notes=notes))
    return [*blocks, *_bars(records), *_concepts(records, number)]


def _intervals(table: TableBlock) -> tuple[str, ...]:
    """What the ± in each of our rows means: a row with one seed shows the interval of its few-shot tests."""
    with_width = [row for row in table.rows if any(cell.interval is not None for cell in row)]
    one = ", ".join(row[0].text for row in with_width if row[0].run)
    several = ", ".join(row[0].text for row in with_width if row[0].seeds)
    told = ["over the few-shot tasks of its only seed, and so not about other seeds: " + one] if one else []
    told += ["Student's t over seeds: " + several] if several else []
    return (f"The 95 % interval of our runs is {'; '.join(told)}.",) if told else ()


def _sizes(records: Sequence[Record]) -> tuple[str, ...]:
    """A note on tables with networks of several sizes, except a modular one beside the only plain one of its kind."""
    named = {str(_size(record)): record for record in records}
    if len(named) < 2:
        return ()
    told = "; ".join(
        f"{record.config['model']['name']} ({', '.join(f'{n}={v}' for n, v in _size(record).items())})"
        for record in named.values()
    )
    return (f"The networks differ in size: {told}.",)


def _other_tests(records: Sequence[Record], number: str) -> tuple[str, ...]:
    """A note on runs whose few-shot tests are not those of the paper's table; all records share these settings."""
    benchmark, way = records[0].config["benchmark"], WAYS.get(number, 10)
    if "way" not in benchmark:  # CIFAR-100 has no such tests
        return ()
    there = {"way": way, "shots": 10, "tests": 300, "frozen": True}
    own = {name: 10 if (found := benchmark.get(name, usual)) is None else found for name, usual in there.items()}
    words = {"way": "-way", "shots": "-shot", "tests": " tasks"}
    differ = [name for name in words if own[name] != there[name]]
    ours, theirs = (" ".join(f"{each[name]}{words[name]}" for name in differ) for each in (own, there))
    told = [f"{ours} here and {theirs} in the paper"] if differ else []
    told += [] if own["frozen"] else ["the extractor learns here, and is frozen in the paper"]
    if not told:
        return ()
    again = " ".join(f"--{name} {there[name]}" for name in differ) + ("" if own["frozen"] else " --frozen")
    return (
        f"The few-shot tests differ: {'; '.join(told)}. `holdfast cfst test RUN {again.strip()}` takes the paper's.",
    )


def _bars(records: Sequence[Record]) -> list[Block]:
    found = (bar_series(title, group, TESTS.values(), own="_interval") for title, group in _rows(records))
    series = tuple(each for each in found if each is not None)
    if not series:
        return []
    notes = ("The line on a bar is the 95 % interval: over seeds, or over the few-shot tests of one run.",)
    return [Bars("Composition: few-shot accuracy of the frozen extractor", "%", tuple(TESTS), series, notes)]


def _concepts(records: Sequence[Record], number: str) -> list[Block]:
    rows = [
        (Cell(title), *(mean_cell([r.summary.get(m) for r in group], 100.0) for m in CONCEPTS))
        for title, group in _rows(records)
        if any(record.summary.get(measure) is not None for record in group for measure in CONCEPTS)
    ]
    if not rows:
        return []
    notes = ("(f): only concepts of the last stage; (o): none of them. S: how far sys falls behind non, in percent.",)
    if number == "1":  # CGQA with ResNet-18
        columns = [Beside(measure, name, measure) for measure, name in CONCEPTS.items()]
        published = papers.table("cfst", "fig7")
        title = f"cfst, figure 7: {published.title}"
        beside = side_by_side(published, records, columns, method, ("method", "setting"), title)
        return [replace(beside, notes=(*beside.notes, *notes))]
    return [TableBlock("Fresh and old concepts (E.4)", ("method", *CONCEPTS), tuple(rows), notes)]


def _rows(records: Sequence[Record]) -> list[tuple[str, tuple[Record, ...]]]:
    """Rows by algorithm and setting; the setting is shown if both were run."""
    settings = {record.config["benchmark"]["setting"] for record in records}
    return [
        (f"{title}, {setting}" if len(settings) > 1 else title, group)
        for setting in sorted(settings)
        for title, group in rows_of([r for r in records if r.config["benchmark"]["setting"] == setting]).items()
    ]
