"""The section on viscoll: Tables 2 and 5 with our runs included, perplexity over time, seen vs novel compositions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from holdfast import papers
from holdfast.benchmarks.viscoll.analysis import over_time
from holdfast.benchmarks.viscoll.protocol import DENSITY, LEARNED, untrained
from holdfast.experiments.store import Record
from holdfast.papers import PublishedTable
from holdfast.reports.beside import Beside, caution, side_by_side
from holdfast.reports.blocks import Bars, Block, Curves, Note, Series, mean_cell
from holdfast.reports.groups import rows_of
from holdfast.reports.overview import line
from holdfast.reports.significance import LEAST

METHODS = {"finetune": "vanilla", "replay": "er", "mir": "er-mir", "joint": "offline-one-pass"}
"""The paper's names, if they differ from those in this library."""
ORDERS = {"ascending": "ascending-frequency", "descending": "descending-frequency"}
TASKS = 4
"""The number of tasks drawn over time: those with the most test phrases."""
GROUPS = {
    "verb_seen": "verbs seen",
    "verb_novel": "verbs novel",
    "adjective_seen": "adj. seen",
    "adjective_novel": "adj. novel",
}
PERPLEXITY = Beside("log PPL", "log_perplexity", "log_perplexity", higher=False, factor=1, decimals=3)
COLUMNS = (
    PERPLEXITY,
    Beside("BLEU-1", "bleu_1", "bleu_1"),
    Beside("BLEU-2", "bleu_2", "bleu_2"),
    Beside("forgetting", "forgetting", "forgetting", higher=False, factor=1, decimals=3),
    Beside("forgetting, by example", "forgetting", "forgetting_by_example", higher=False, factor=1, decimals=3),
)


def section(records: Sequence[Record]) -> list[Block]:
    """For each dataset, model and scale that was run: the tables, then the figures."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        settings = record.config["benchmark"]
        plain = {name: value for name, value in settings.items() if name not in ("seed", "order", "setting")}
        groups.setdefault(f"{plain} {record.config['model']} {caution(record)}", []).append(record)
    return [block for group in groups.values() for block in _blocks(group)]


def method(config: Mapping[str, Any]) -> tuple[str, str]:
    """The row of a run in the paper's tables: method, and the size of its memory if it has one."""
    own = config["algorithms"][0] if config["algorithms"] else {}
    name = "+".join([*config["transforms"], *(each["name"] for each in config["algorithms"])]) or "finetune"
    name = METHODS.get(name, name)
    if own.get("name") == "mir" and own.get("by") == "max":
        name = "er-mir-max"
    if config["benchmark"].get("setting") == "text-only":
        name = f"{name}-text-only"
    if own.get("memory", "reservoir") != "reservoir":
        name = f"{name} ({own['memory']})"
    return name, str(own.get("capacity"))


def _order(record: Record) -> str:
    return str(record.config["benchmark"].get("order", "random"))


def _blocks(records: Sequence[Record]) -> list[Block]:
    dataset = records[0].config["benchmark"]["name"].partition(":")[2]
    model = records[0].config["model"]["name"].removesuffix("-tiny")
    usual = [r for r in records if _order(r) == "random"]
    never = max((untrained(r.scores) for r in records), key=len)
    published = papers.table("viscoll", 2).select(model=model, dataset=f"{dataset}-shift")
    blocks: list[Block] = []
    if usual and len(published):
        blocks.append(_beside(published, usual, COLUMNS, ("method", "memory")))
    ordered = {method(r.config) for r in records if _order(r) != "random"}
    if ordered and (dataset, model) == ("coco", "vlbert"):
        own = [r for r in records if method(r.config) in ordered]
        blocks.append(_beside(papers.table("viscoll", 5), own, [PERPLEXITY], ("order", "method", "memory")))
    if never:
        blocks.append(Note(f"The stream has no phrase of {len(never)} tasks of the test set: {', '.join(never)}."))
    return [*blocks, *_density(usual), *_over_time(usual), *_compositions(usual)]


def _beside(
    published: PublishedTable, records: Sequence[Record], columns: Sequence[Beside], names: Sequence[str]
) -> Block:
    def key(record: Record) -> tuple[str, ...]:
        order = _order(record)
        return (ORDERS.get(order, order), *method(record.config)) if "order" in names else method(record.config)

    return side_by_side(
        published, records, columns, key, names, compete=lambda place: place[0] if "order" in names else ""
    )


def _density(records: Sequence[Record]) -> list[Block]:
    """The probability of the most frequent tasks over the stream (Figure 4), which is the same for all runs."""
    for record in records:
        shares: dict[str, list[tuple[int, float]]] = {}
        for score in record.scores:
            if score.name.startswith(DENSITY):
                shares.setdefault(score.name.removeprefix(DENSITY), []).append((score.step, score.score))
        if shares:
            series = tuple(line(task, *_columns(found)) for task, found in shares.items())
            note = "The tasks with the most training phrases; the share of all phrases seen at a time."
            return [Curves("Probability of tasks over the stream", "step", "share", series, notes=(note,))]
    return []


def _columns(points: Sequence[tuple[int, float]]) -> tuple[list[int], Any]:
    steps, values = zip(*sorted(points), strict=True)
    return list(steps), np.array([values])


def _over_time(records: Sequence[Record]) -> list[Block]:
    """All regular phrases (Figure 9), and the tasks with the most test phrases (Figure 7), over the steps."""
    rows = rows_of(records)
    counts = {s.name.partition("/")[2]: s.count for r in records for s in r.scores if s.name.startswith("task/")}
    most = sorted(counts, key=lambda name: (-counts[name], name))[:TASKS]
    blocks: list[Block] = []
    for title, what, name in [
        ("Log-perplexity of all regular phrases over the stream", "all", "regular"),
        *((f"Log-perplexity of the task “{task}”", "task", task) for task in most),
    ]:
        series = [each for row, group in rows.items() if (each := _line(row, group, what, name)) is not None]
        if series:
            blocks.append(Curves(title, "step", "log-perplexity", tuple(series), notes=_learned(records, name)))
    return blocks


def _learned(records: Sequence[Record], task: str) -> tuple[str, ...]:
    """When the data of a task had been seen: its density over the stream in one number."""
    steps = {s.score for r in records for s in r.scores if s.name == f"{LEARNED}{task}"}
    return (f"98 % of its training phrases had been seen by step {min(steps):.0f}.",) if len(steps) == 1 else ()


def _line(title: str, group: Sequence[Record], what: Any, name: str) -> Series | None:
    curves = [curve for record in group for curve in over_time(record, what) if curve.name == name]
    if len(curves) < len(group) or any(
        len(c.steps) < 2 or c.steps.tolist() != curves[0].steps.tolist() for c in curves
    ):
        return None
    return line(title, curves[0].steps.tolist(), np.array([curve.values for curve in curves]))


def _compositions(records: Sequence[Record]) -> list[Block]:
    """Seen against novel compositions at the end (Figure 6)."""
    series = []
    for title, group in rows_of(records).items():
        cells = [mean_cell([record.summary.get(name) for record in group]) for name in GROUPS]
        if any(cell.number is not None for cell in cells):
            widths = tuple(cell.interval if len(group) >= LEAST else None for cell in cells)
            series.append(Series(title, (), tuple(cell.number for cell in cells), widths))
    title = "Seen against novel compositions: log-perplexity, lower is better"
    return [Bars(title, "log-perplexity", tuple(GROUPS.values()), tuple(series))] if series else []
