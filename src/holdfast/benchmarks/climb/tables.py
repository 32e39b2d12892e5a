"""CLiMB's tables from records, our rows beside the paper's: 3, 5 to 8, 9a, 9b and 10 to 13. Does not import torch.

A cell contains a score in percent, and the transfer or forgetting if the paper's table has one. Our cells are means
over seeds and sub-samples with the half-width of a 95 % interval; the paper's ± is a standard deviation. A change from
a baseline that is not clearly above chance is shown as a dash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from holdfast import metrics
from holdfast.benchmarks.climb import paper, protocol
from holdfast.benchmarks.climb.runs import LowShotRecord, RunsAtScale, Upstream, low_shot_interval, low_shot_transfer
from holdfast.benchmarks.climb.transfer import MODALITIES, UNTOUCHED, final
from holdfast.errors import UserError, nearest
from holdfast.papers import table as published
from holdfast.papers.published import PublishedTable

WORLD = "Our runs use small synthetic data, the paper real data: not a reproduction of the paper."
SMALLER = "Our runs are not at the paper's scale: not a reproduction of the paper."
DOUBTFUL = "–*: undefined, as the baseline is not clearly above chance (its 95 % interval over the test examples)."
SAME = "{}: the encoder does not change, so its low-shot runs are those of the row 'direct'."


@dataclass(frozen=True)
class ScoreCell:
    """A score in percent and a transfer or forgetting in percent, each with its interval or deviation.

    >>> str(ScoreCell(67.786, change=0.13)), str(ScoreCell(55.9, 2.1)), str(ScoreCell())
    ('0.1 [67.8]', '55.9 ±2.1', '–')
    >>> str(ScoreCell(51.2, doubtful=True)), str(ScoreCell(67.786, 1.2, change=0.13, change_spread=0.4))
    ('–* [51.2]', '0.1 ±0.4 [67.8 ±1.2]')
    """

    score: float | None = None
    spread: float | None = None
    change: float | None = None
    change_spread: float | None = None
    doubtful: bool = False
    """Whether there is no change, because the baseline is not clearly above chance."""
    changes: Mapping[int, float] = field(default_factory=dict, compare=False)
    """The changes behind the mean, by seed, if rows compete by them."""

    def __str__(self) -> str:
        if self.score is None and self.change is None:
            return "–"
        score = "–" if self.score is None else _with_spread(self.score, self.spread)
        if self.doubtful:
            return f"–* [{score}]"
        return score if self.change is None else f"{_with_spread(self.change, self.change_spread)} [{score}]"


def _with_spread(value: float, spread: float | None) -> str:
    return f"{value:.1f}" if spread is None else f"{value:.1f} ±{spread:.1f}"


@dataclass(frozen=True)
class ComparedRow:
    """One row: our cells and the paper's, under the same column heads."""

    title: str
    ours: tuple[ScoreCell, ...]
    paper: tuple[ScoreCell, ...]


@dataclass(frozen=True)
class Sheet:
    """One table: its number and title in the paper, its column heads, its rows, and its notes."""

    number: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[ComparedRow, ...]
    notes: tuple[str, ...] = ()


def sheet(number: str, runs: RunsAtScale) -> Sheet:
    """One of the paper's tables."""
    if number not in BUILDERS:
        raise UserError(f"unknown table {number!r} of runs: {nearest(number, BUILDERS)}")
    source = published("climb", number)
    columns, rows = BUILDERS[number](runs, source)
    rows = [row for row in rows if any(cell != ScoreCell() for cell in (*row.ours, *row.paper))]
    notes = [WORLD] if runs.world else [SMALLER] if runs.scale != "paper" else []
    if any(cell.doubtful for row in rows for cell in row.ours):
        notes.append(DOUBTFUL)
    if number in _AFTER and (same := _untouched(runs)):
        notes.append(SAME.format(", ".join(same)))
    return Sheet(number, source.title, columns, tuple(rows), (*notes, *runs.notes))


def filled(found: Sheet) -> bool:
    """Whether any of a table's runs exist."""
    return any(cell != ScoreCell() for row in found.rows for cell in row.ours)


# Upstream


def _knowledge(model: str) -> Builder:
    def build(runs: RunsAtScale, source: PublishedTable) -> Built:
        order = paper.ORDERS[0].split(">")
        rows = [_direct_row(runs, model, order, source, {"algorithm": "direct"})]
        for algorithm, found in runs.by_algorithm(model, paper.ORDERS[0]).items():
            theirs = [_published(source, "transfer", algorithm=algorithm, task=task) for task in order]
            rows.append(ComparedRow(algorithm, tuple(_learned(runs, found, task) for task in order), tuple(theirs)))
        if not any(column.name == "trained" for column in source.columns):
            return tuple(order), rows
        shares = {"direct": runs.alone(model, order[0])} | runs.by_algorithm(model, paper.ORDERS[0])
        return (*order, TRAINED), [_with_share(row, shares[row.title], source) for row in rows]

    return build


def _encoders(runs: RunsAtScale, source: PublishedTable) -> Built:
    order = paper.ORDERS[0].split(">")
    return tuple(order), [_direct_row(runs, model, order, source, {"model": model}, model) for model in _MODELS]


def _forgetting(runs: RunsAtScale, source: PublishedTable) -> Built:
    order = paper.ORDERS[0].split(">")
    rows: list[ComparedRow] = []
    for algorithm, found in runs.by_algorithm("vilt", paper.ORDERS[0]).items():
        rows += _forgotten(found, order, order[:-1], source, algorithm, {"algorithm": algorithm})
    return tuple(order[:-1]), rows


def _orders(runs: RunsAtScale, source: PublishedTable) -> Built:
    rows = [_direct_row(runs, "vilt", list(paper.TASKS), source, {"order": "direct"})]
    for order in paper.ORDERS:
        found = runs.by_algorithm("vilt", order).get("seqft", [])
        theirs = tuple(_published(source, "transfer", order=order, task=task) for task in paper.TASKS)
        rows.append(ComparedRow(order, tuple(_learned(runs, found, task) for task in paper.TASKS), theirs))
    return tuple(paper.TASKS), rows


def _orders_forgetting(runs: RunsAtScale, source: PublishedTable) -> Built:
    rows: list[ComparedRow] = []
    for order in paper.ORDERS:
        found = runs.by_algorithm("vilt", order).get("seqft", [])
        rows += _forgotten(found, order.split(">"), list(paper.TASKS), source, order, {"order": order})
    return tuple(paper.TASKS), rows


def _learned(runs: RunsAtScale, found: Sequence[Upstream], task: str) -> ScoreCell:
    """The score right after learning a task, and the knowledge transfer."""
    scores = [protocol.learned(run.scores)[task] for run in found]
    changes = [protocol.transfers(run.scores, runs.direct(run))[task] for run in found]
    seeds = {run.seed: change for run, change in zip(found, changes, strict=True) if change == change}
    return replace(_cell(scores, changes), changes=seeds)


def _with_share(row: ComparedRow, found: Sequence[Upstream], source: PublishedTable) -> ComparedRow:
    """A row with one more cell: the share of the parameters that is trained."""
    shares = [run.trained for run in found if run.trained is not None]
    ours = ScoreCell(100 * metrics.mean(shares)) if shares else ScoreCell()
    theirs = {_float(each["trained"]) for each in source.select(algorithm=row.title)}
    return ComparedRow(row.title, (*row.ours, ours), (*row.paper, *(ScoreCell(share) for share in theirs or {None})))


def _forgotten(
    found: Sequence[Upstream],
    order: Sequence[str],
    columns: Sequence[str],
    source: PublishedTable,
    title: str,
    keys: Mapping[str, str],
) -> list[ComparedRow]:
    """A row for each checkpoint: right after each task, then after each later one."""
    found = [run for run in found if protocol.forgettings(run.scores)]  # skip runs whose stages are none of these tasks
    lost = [protocol.forgettings(run.scores) for run in found]
    own = tuple(_cell([protocol.learned(run.scores)[task] for run in found]) for task in columns)
    theirs = tuple(_published(source, "forgetting", **keys, task=task, after=task) for task in columns)
    rows = [ComparedRow(f"{title}: after that task", own, theirs)]
    for at, after in enumerate(order[1:], 1):
        cells, printed = [], []
        for task in columns:
            earlier = task in order[:at]
            scores = [run.score(task, at) for run in found] if earlier else []
            cells.append(_cell(scores, [each[task, after] for each in lost]) if earlier else ScoreCell())
            printed.append(_published(source, "forgetting", **keys, task=task, after=after) if earlier else ScoreCell())
        rows.append(ComparedRow(f"{title}: after {after}", tuple(cells), tuple(printed)))
    return rows


def _direct_row(
    runs: RunsAtScale,
    model: str,
    order: Sequence[str],
    source: PublishedTable,
    keys: Mapping[str, str],
    title: str = "direct",
) -> ComparedRow:
    ours = tuple(_cell([protocol.learned(r.scores)[task] for r in runs.alone(model, task)]) for task in order)
    return ComparedRow(title, ours, tuple(_published(source, "", **keys, task=task) for task in order))


# Low-shot


def _vacuous(runs: RunsAtScale, source: PublishedTable) -> Built:
    variants = {("40", "none"): "none", ("40", "zero"): "zero", ("40", "average"): "mean", ("160", "average"): "mean"}
    found = {
        key: [r for r in runs.few("vilt", "imdb") if r.shows(image, key[0] == "160")] for key, image in variants.items()
    }
    levels = _levels([r for rows in found.values() for r in rows], "imdb", source)
    rows = [
        ComparedRow(
            f"{tokens} word pieces, {image} image",
            tuple(_few([r for r in found[tokens, image] if r.shots == ours]) for ours, _ in levels),
            tuple(_published(source, "", tokens=tokens, image=image, shots=theirs) for _, theirs in levels),
        )
        for tokens, image in variants
    ]
    return tuple(_head("imdb", *level) for level in levels), rows


def _priors(runs: RunsAtScale, source: PublishedTable) -> Built:
    return _by_task(runs, source, MODALITIES["language"], [(model, model, None, {"model": model}) for model in _MODELS])


def _later(runs: RunsAtScale, source: PublishedTable) -> Built:
    order = paper.ORDERS[0].split(">")
    full = _direct_row(runs, "vilt", order[1:], source, {"algorithm": "direct", "data": "full"}, "direct, all data")
    low = tuple(_few(runs.pretrained("vilt", task)) for task in order[1:])
    theirs = tuple(_published(source, "", algorithm="direct", data="low-shot", task=task) for task in order[1:])
    rows = [full, ComparedRow("direct, low-shot", low, theirs)]
    for algorithm, found in runs.by_algorithm("vilt", paper.ORDERS[0]).items():
        for stage, after in enumerate(order[:-1], 1):
            ours = tuple(_transferred(runs, found, stage, task) for task in order[1:])
            keys = {"algorithm": algorithm, "after": after, "data": "low-shot"}
            theirs = tuple(_published(source, "transfer", **keys, task=task) for task in order[1:])
            rows.append(ComparedRow(f"{algorithm}: after {after}", ours, theirs))
    return tuple(order[1:]), rows


def _everywhere(kind: str) -> Builder:
    def build(runs: RunsAtScale, source: PublishedTable) -> Built:
        order = paper.ORDERS[0].split(">")
        lines: list[Line] = [("direct", "vilt", None, {"algorithm": "direct"})]
        for task in order:
            alone = runs.alone("vilt", task)
            lines.append(
                (f"single-task: after {task}", "vilt", (alone, 1), {"algorithm": "single-task", "after": task})
            )
        for algorithm, found in runs.by_algorithm("vilt", paper.ORDERS[0]).items():
            for stage, after in enumerate(order, 1):
                once = stage == 1 and algorithm in _ALIKE
                keys = {"algorithm": "single-task" if once else algorithm, "after": after}
                lines.append((f"{algorithm}: after {after}", "vilt", (found, stage), keys))
        return _by_task(runs, source, MODALITIES[kind], lines)

    return build


def _by_task(runs: RunsAtScale, source: PublishedTable, tasks: Sequence[str], lines: Sequence[Line]) -> Built:
    """A column for each task and level of shots; a row for each line with values of ours or of the paper's."""
    few = {task: [r for model in _MODELS for r in runs.few(model, task)] for task in tasks}
    places = [(task, level) for task in tasks for level in _levels(few[task], task, source)]
    rows = []
    for title, model, after, keys in lines:
        ours = tuple(_few([r for r in _from(runs, model, task, after) if r.shots == own]) for task, (own, _) in places)
        theirs = tuple(_published(source, "", **keys, task=task, shots=printed) for task, (_, printed) in places)
        rows.append(ComparedRow(title, ours, theirs))
    return tuple(_head(task, *level) for task, level in places), rows


def _from(
    runs: RunsAtScale, model: str, task: str, after: tuple[Sequence[Upstream], int] | None
) -> Iterable[LowShotRecord]:
    if after is None:
        return runs.pretrained(model, task)
    found, stage = after
    return [r for run in found for r in runs.after(run, stage) if r.task == task]


def _transferred(runs: RunsAtScale, found: Sequence[Upstream], stage: int, task: str) -> ScoreCell:
    after = [r for run in found for r in runs.after(run, stage) if r.task == task]
    direct = runs.before(found, task)
    scores = [final(r.scores) for r in after]
    if not after or not direct:
        return _cell(scores)
    return replace(_cell(scores, [low_shot_transfer(after, direct)]), change_spread=low_shot_interval(after, direct))


def _few(found: Iterable[LowShotRecord]) -> ScoreCell:
    return _cell([final(each.scores) for each in found])


def _levels(found: Sequence[LowShotRecord], task: str, source: PublishedTable) -> list[tuple[str, str]]:
    """Our levels of shots beside the same ones of the paper, smallest first; empty: the other one has no such level."""
    theirs = {str(row["shots"]) for row in source if row.get("task", task) == task and row["shots"] is not None}
    ours = {each.shots for each in found}
    if ours <= theirs:
        ours = theirs
    levels = sorted(ours | theirs, key=_size)
    return [(level if level in ours else "", level if level in theirs else "") for level in levels]


def _size(shots: str) -> float:
    return float(shots.rstrip("%"))


def _head(task: str, ours: str, theirs: str) -> str:
    if ours == theirs:
        return f"{task} {ours}"
    return f"{task} {ours} (not in the paper)" if ours else f"{task} {theirs} (only in the paper)"


# Cells


def _cell(scores: Iterable[float], changes: Sequence[float] = ()) -> ScoreCell:
    """The mean of scores, and of changes in percent if all are known."""
    values = [100 * score for score in scores if score == score]
    if not values:
        return ScoreCell()
    doubtful = any("above chance" in getattr(change, "reason", "") for change in changes)
    known = bool(changes) and all(change == change for change in changes)
    change, change_spread = _mean(changes) if known else (None, None)
    return ScoreCell(*_mean(values), change, change_spread, doubtful)


def _mean(values: Sequence[float]) -> tuple[float, float | None]:
    """The mean, and the half-width of its 95 % interval if there are several values."""
    found = metrics.summary(values)
    return found.mean, found.half_width if found.count > 1 else None


def _untouched(runs: RunsAtScale) -> list[str]:
    """The algorithms that were run but leave nothing to transfer."""
    return [name for name, found in runs.by_algorithm("vilt", paper.ORDERS[0]).items() if found and name in UNTOUCHED]


def _published(source: PublishedTable, change: str, **keys: str) -> ScoreCell:
    found = source.select(**keys).rows if all(keys.values()) else ()
    if len(found) != 1:
        return ScoreCell()
    row = dict(zip([column.name for column in source.columns], found[0], strict=True))
    value = row.get("score", row.get("accuracy"))
    return ScoreCell(_float(value), _float(row.get("deviation")), _float(row.get(change)))


def _float(cell: object) -> float | None:
    return float(cell) if isinstance(cell, int | float) else None


TRAINED = "trained"
_MODELS = ("vilt", "vault")
_AFTER = ("10", "11", "12")
"""The tables of low-shot runs after upstream stages."""
_ALIKE = ("seqft", "er", "ewc")
"""On the first task these do not differ, and the paper prints them once, as single-task."""
Built = tuple[tuple[str, ...], list[ComparedRow]]
Builder = Callable[[RunsAtScale, PublishedTable], Built]
Line = tuple[str, str, tuple[Sequence[Upstream], int] | None, dict[str, str]]

BUILDERS: dict[str, Builder] = {
    "3": _knowledge("vilt"),
    "5": _vacuous,
    "6": _encoders,
    "7": _priors,
    "8": _forgetting,
    "9a": _orders,
    "9b": _orders_forgetting,
    "10": _later,
    "11": _everywhere("vision"),
    "12": _everywhere("language"),
    "13": _knowledge("uniter"),
}
