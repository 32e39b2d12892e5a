"""The section on climb: the paper's tables with our runs included, and low-shot scores by task and by shots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from holdfast.benchmarks.climb import tables
from holdfast.benchmarks.climb.paper import ORDERS
from holdfast.benchmarks.climb.runs import LowShotRecord, RunsAtScale, mean_and_interval, whole
from holdfast.benchmarks.climb.transfer import MODALITIES, final
from holdfast.experiments.store import Record
from holdfast.reports.blocks import Bars, Block, Cell, Curves, Series, TableBlock
from holdfast.reports.marks import Marked, mark_best
from holdfast.reports.runs import on_world

RANKED = {"3", "13"}
"""Tables whose rows are competing algorithms, by their knowledge transfer."""
AT_CHANCE = -100.0
"""The knowledge transfer of a score at chance."""
HOW = "Transfer or forgetting in percent, the score in brackets. The paper's ± is a deviation, ours a 95 % interval."


def section(records: Sequence[Record]) -> list[Block]:
    """The results on synthetic and on given data, separately for each scale."""
    groups: dict[tuple[bool, str], list[Record]] = {}
    for record in (record for record in records if whole(record.config)):
        world = on_world(record.environment)
        groups.setdefault((world, record.config["benchmark"]["scale"]), []).append(record)
    return [block for (_, scale), group in groups.items() for block in _blocks(RunsAtScale(group, scale))]


def _blocks(runs: RunsAtScale) -> list[Block]:
    sheets = [tables.sheet(number, runs) for number in tables.BUILDERS]
    return [*(_table(each) for each in sheets if tables.filled(each)), *_low_shot(runs)]


def _table(sheet: tables.Sheet) -> TableBlock:
    rows = [
        (Cell(row.title), *(_cell(ours, paper) for ours, paper in zip(row.ours, row.paper, strict=True)))
        for row in sheet.rows
    ]
    marked = Marked(rows, "", ())
    if sheet.number in RANKED:
        compete = [column for column in sheet.columns if column != tables.TRAINED]  # more trained weights: no merit
        ranks = [
            None if r.title == "direct" or not any(c != tables.ScoreCell() for c in r.ours) else "" for r in sheet.rows
        ]
        marked = mark_best(rows, compete, [True] * len(compete), ranks)
    warning = " ".join(note for note in sheet.notes if note in (tables.WORLD, tables.SMALLER))
    notes = (HOW, *(note for note in sheet.notes if note not in warning), *marked.notes)
    title = f"climb, table {sheet.number}: {sheet.title}"
    return TableBlock(title, ("", *sheet.columns), tuple(marked.rows), notes, warning, marked.marks)


def _cell(ours: tables.ScoreCell, paper: tables.ScoreCell) -> Cell:
    if ours.change is None and paper.change is None and not ours.doubtful:
        return Cell(number=ours.score, interval=ours.spread, paper=paper.score, paper_interval=paper.spread)
    return Cell(
        "" if ours == tables.ScoreCell() else str(ours),
        number=ours.change,
        interval=ours.change_spread,
        paper=paper.change,
        paper_text="" if paper == tables.ScoreCell() else str(paper),
        values=ours.changes,
        chance=AT_CHANCE,
    )


def _low_shot(runs: RunsAtScale) -> list[Block]:
    """Low-shot scores from the pre-trained encoder and from each algorithm's last checkpoint (Figures 4 to 6)."""
    starts = {name: found for name, found in runs.by_algorithm("vilt", ORDERS[0]).items() if found}
    last = len(ORDERS[0].split(">"))
    after = {name: [each for run in found for each in runs.after(run, last)] for name, found in starts.items()}
    blocks: list[Block] = []
    for kind, names in MODALITIES.items():
        by_start = {"pre-trained": [each for task in names for each in runs.pretrained("vilt", task)]}
        by_start |= {f"after {name}": [each for each in found if each.task in names] for name, found in after.items()}
        there = [task for task in names if any(each.task == task for found in by_start.values() for each in found)]
        for task in there:
            if (curves := _by_shots(task, by_start)) is not None:
                blocks.append(curves)
        series = tuple(_bars(name, found, there) for name, found in by_start.items() if found)
        if there:
            notes = ("The line on a bar is a 95 % t-interval over seeds and sub-samples, at the fewest shots.",)
            blocks.append(Bars(f"Low-shot transfer to {kind} tasks", "score, %", tuple(there), series, notes))
    return blocks


def _bars(name: str, found: Sequence[LowShotRecord], tasks: Sequence[str]) -> Series:
    spread = [_spread(_fewest([each for each in found if each.task == task])) for task in tasks]
    return Series(name, (), tuple(mean for mean, _ in spread), tuple(width for _, width in spread))


def _by_shots(task: str, by_start: Mapping[str, Sequence[LowShotRecord]]) -> Curves | None:
    """The score over the number of shots, with its interval as a band; None if there is only one number."""
    series, levels = [], set()
    for name, found in by_start.items():
        by_level: dict[float, list[LowShotRecord]] = {}
        for each in found:
            if each.task == task:
                by_level.setdefault(_shots(each), []).append(each)
        spread = {level: _spread(group) for level, group in sorted(by_level.items())}
        levels |= set(spread)
        if spread:
            means, widths = tuple(m for m, _ in spread.values()), tuple(w for _, w in spread.values())
            series.append(Series(name, tuple(spread), means, widths))
    if len(levels) < 2:
        return None
    notes = ("The band is a 95 % t-interval over seeds and sub-samples.",)
    return Curves(f"Low-shot: {task}", "shots", "score, %", tuple(series), notes=notes, logarithmic=True)


def _fewest(found: Sequence[LowShotRecord]) -> list[LowShotRecord]:
    least = min(map(_shots, found), default=0.0)
    return [each for each in found if _shots(each) == least]


def _spread(found: Iterable[LowShotRecord]) -> tuple[float | None, float | None]:
    return mean_and_interval([100 * final(each.scores) for each in found])


def _shots(record: LowShotRecord) -> float:
    return float(str(record.shots).rstrip("%"))
