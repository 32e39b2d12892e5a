"""Tables from records, as plain data: a terminal, a page or a file draws them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast import metrics, registry
from holdfast.benchmarks.base import Measure, score_matrix
from holdfast.experiments.store import Record
from holdfast.reports.groups import rows_of
from holdfast.reports.measures import measures
from holdfast.reports.pooled import pooled

APART = 4
"""The maximum number of settings of training in which rows are said to differ."""
NAMED = 3
"""The maximum number of names that a part of a sentence lists."""
MOST = 8
"""The maximum number of measures shown of a benchmark that does not describe them."""
HEADLINES = ("cl_score", "final_accuracy", "Acon", "log_perplexity", "last")
"""The headline measures, by name."""


@dataclass(frozen=True)
class Grid:
    """A table as text: a title, column heads, rows, and notes that a reader must know."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def shown_measures(records: Sequence[Record]) -> dict[str, Measure]:
    """The measures of these records, as their benchmark shows them; unknown ones as plain numbers."""
    known = {name: measure for record in records for name, measure in measures(record).items()}
    there = {name for record in records for name in record.summary}
    found = {name: measure for name, measure in known.items() if name in there}
    return found or {name: Measure(name, factor=1.0, decimals=3) for name in sorted(there)[:MOST]}


def headline(records: Sequence[Record]) -> tuple[str, Measure] | None:
    """The measure to show if there is room for only one: the usual one, or the benchmark's first."""
    shown = shown_measures(records)
    return next(((name, shown[name]) for name in (*HEADLINES, *shown) if name in shown), None)


def comparison(records: Sequence[Record]) -> Grid:
    """A row for each algorithm and a column for each measure: the mean over seeds, and its 95 % t-interval."""
    benchmark = records[0].config["benchmark"]["name"]
    shown, costs = shown_measures(records), getattr(registry.part(benchmark, "protocol"), "COSTS", {})
    shown = {**shown, **{name: m for name, m in costs.items() if any(name in record.cost for record in records)}}
    groups, left_out = pooled(rows_of(records))
    rows = []
    missing: dict[tuple[str, str], list[str]] = {}  # measures without a value, by row and reason
    for title, group in groups.items():
        rows.append((title, *(_mean([_value(r, name) for r in group], m) for name, m in shown.items())))
        for name in (name for name in shown if any(_value(r, name) is None for r in group)):
            reason = why_missing(next(r for r in group if _value(r, name) is None), name, shown[name])
            missing.setdefault((title, reason), []).append(shown[name].title)
    if guessed := {name: records[0].chance[name] for name in shown if name in records[0].chance}:
        rows.append(("guessing", *(_mean([guessed.get(name)], m) for name, m in shown.items())))
    seeds = max(len(group) for group in groups.values())
    unit = units(list(shown.values()))
    if seeds > 1:
        notes = [f"{unit}the mean of {seeds} seeds, ± its 95 % t-interval."]
    else:
        notes = [f"{unit}one seed, so without an interval (--seeds 3 gives one)."]
    notes += left_out
    alike: dict[tuple[str, str], list[str]] = {}  # a reason that applies to several rows is stated once
    for (title, reason), names in missing.items():
        alike.setdefault((", ".join(names), reason), []).append(title)
    notes += [f"{', '.join(who)}: no {names}: {reason}." for (names, reason), who in alike.items()]
    notes += [*training_note(groups), *tuning_note(groups), *threads_note(groups), *budget_note(groups)]
    return Grid(benchmark, ("algorithm", *(m.head for m in shown.values())), tuple(rows), tuple(notes))


def training_note(rows: Mapping[str, Sequence[Record]]) -> list[str]:
    """In which settings of training, or in which start, the rows of a table differ."""
    found: dict[str, dict[str, list[str]]] = {}
    for title, records in rows.items():
        every = [stage for record in records for stage in record.config.get("training", ())]
        stages = {json.dumps(stage): stage for stage in every}.values()  # thousands are alike
        own = {
            name: {json.dumps(each.get(name)) for each in stages}
            for name in dict.fromkeys(n for s in stages for n in s)
        }
        own["start"] = {"a run's weights" if record.config.get("start") else "none" for record in records}
        for name, values in own.items():
            told = "several" if len(values) > 1 else next(iter(values)).strip('"')
            found.setdefault(name, {}).setdefault(told, []).append(title)
    apart = [
        f"{name.replace('_', ' ')} {', '.join(f'{value} ({listed(titles)})' for value, titles in values.items())}"
        for name, values in found.items()
        if len(values) > 1
    ]
    more = f"; {len(apart) - APART} more settings differ" if len(apart) > APART else ""
    return [f"The rows were not trained alike: {'; '.join(apart[:APART])}{more}."] if apart else []


def listed(names: Sequence[str], most: int = NAMED) -> str:
    """Names as in a sentence, the last ones counted if there are many.

    >>> listed(["ewc"]), listed(["ewc", "si"]), listed(list("abcde"))
    ('ewc', 'ewc and si', 'a, b, c and 2 more')
    """
    shown = [*names[:most], f"{len(names) - most} more"] if len(names) > most + 1 else list(names)
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))


def tuning_note(rows: Mapping[str, Sequence[Record]]) -> list[str]:
    """How many points each row's settings were chosen among, if any were chosen."""
    found: dict[str, list[str]] = {}
    for title, records in rows.items():
        budgets = sorted({record.tuning["trials"] for record in records if "trials" in record.tuning})
        some = any("trials" not in record.tuning for record in records)
        how = [*(f"the best of {number}" for number in budgets), *(["not tuned"] if some else [])]
        found.setdefault(" or ".join(how), []).append(title)
    if set(found) <= {"not tuned"}:
        return []
    told = "; ".join(f"{budget}: {', '.join(titles)}" for budget, titles in found.items())
    return [f"Settings were chosen on validation data: {told}."]


def threads_note(rows: Mapping[str, Sequence[Record]]) -> list[str]:
    """A note if the runs of a table used different numbers of CPU threads."""
    found: dict[int, list[str]] = {}
    for title, records in rows.items():
        for where in (record.environment for record in records):
            threads, on_cpu = where.get("threads"), str(where.get("device")) in str(where.get("platform"))
            if isinstance(threads, int) and on_cpu and title not in found.setdefault(threads, []):
                found[threads].append(title)
    if len(found) < 2:
        return []
    told = "; ".join(f"{threads}: {', '.join(titles)}" for threads, titles in sorted(found.items()))
    return [f"Computed with different numbers of threads, which changes scores ({told}): repeat with one --threads."]


def budget_note(rows: Mapping[str, Sequence[Record]]) -> list[str]:
    """The share of the budget that the runs of a table spent: the mean of each row."""
    told = []
    for title, records in rows.items():
        for name, allowed in (records[0].config.get("budget") or {}).items():
            taken = [_spent(record.cost, name) for record in records]
            told.append(f"{title} {100 * metrics.mean(taken) / allowed:.0f} % of {name}={allowed:g}")
    return [f"Spent by training: {', '.join(told)}."] if told else []


def _spent(cost: Mapping[str, float], name: str) -> float:
    if name == "passes":
        return cost["examples_forward"] + cost["examples_backward"]
    return cost["flops"] if name == "flops" else cost["memory_bytes"] + cost["added_bytes"]


def why_missing(record: Record, name: str, measure: Measure) -> str:
    """Why a record has no value of a measure that others have."""
    if name in record.reasons:
        return record.reasons[name]
    if measure.asked:
        return f"it needs runs that were not requested ({measure.asked})"
    if (stages := record.config.get("stages")) is not None:
        return f"only {stages} of its stages {'was' if stages == 1 else 'were'} learned"
    return "this record is older than the measure"


def units(shown: Sequence[Measure]) -> str:
    """Which of the measures are in percent, as the start of a note.

    >>> units([Measure("BLEU-1", higher=True), Measure("PPL", higher=False, factor=1)])
    'BLEU-1 in percent; '
    """
    percent = [measure.title for measure in shown if in_percent(measure)]
    if len(percent) == len(shown):
        return "In percent; "
    return f"{', '.join(percent)} in percent; " if percent else ""


def in_percent(measure: Measure) -> bool:
    """Whether a measure is printed in percent, as shares and pooled measures are."""
    return measure.factor == 100 or bool(measure.pooled)


def axis_label(measure: Measure) -> str:
    """A measure as the label of an axis, with its unit and direction.

    >>> axis_label(Measure("final acc.", higher=True)), axis_label(Measure("log PPL", higher=False, factor=1))
    ('final acc., % ↑', 'log PPL ↓')
    """
    return replace(measure, title=f"{measure.title}, %").head if in_percent(measure) else measure.head


def matrix(record: Record, split: str = "test") -> Grid:
    """The score matrix of a run: a row for each stage, a column for each evaluation set."""
    names, initial, rows = score_matrix(record.scores, split)
    finite = [value for value in (*initial, *rows.ravel()) if value == value]
    shares = all(0 <= value <= 1 for value in finite)
    show = _percent if shares else _number
    lines = [("before", *(show(v) for v in initial))]
    lines += [(f"after {i + 1}", *(show(v) for v in row)) for i, row in enumerate(rows)]
    unit = ", in percent" if shares else ""
    return Grid(f"scores on {split} data{unit}", ("stages", *names), tuple(lines))


def _value(record: Record, name: str) -> float | None:
    """A measure or a cost of a run, as text."""
    return record.summary[name] if name in record.summary else record.cost.get(name)


def _mean(values: Sequence[float | None], measure: Measure) -> str:
    numbers = [value * measure.factor for value in values if value is not None]
    if len(numbers) < len(values):
        return "–"
    found = metrics.summary(numbers)
    places = measure.decimals
    return f"{found.mean:,.{places}f}" + (f" ±{found.half_width:,.{places}f}" if found.count > 1 else "")


def _percent(value: float) -> str:
    return "–" if value != value else f"{100 * value:.1f}"


def _number(value: float) -> str:
    return "–" if value != value else f"{value:.3f}"
