"""The findings of a table of runs, in one sentence: differences that the statistics support, and no others.

The rows are compared with plain fine-tuning or, without it, with the row that has the best mean. Forgetting and the
headline measure form one family of tests (`significance.family`), so that at most one report in twenty claims anything
that is due to chance.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast.benchmarks.base import Measure
from holdfast.experiments.store import Record
from holdfast.reports.blocks import Cell
from holdfast.reports.groups import Experiment, baselines, experiments, is_bound
from holdfast.reports.marks import measured
from holdfast.reports.sections import stands_alone
from holdfast.reports.significance import LEAST, MARK_LEVEL, PairedDifference, above, difference, family
from holdfast.reports.tables import headline, in_percent, listed, shown_measures

Rows = Mapping[str, Sequence[Record]]
FORGETTING = ("forgetting", "forgetting_transfer", "backward_transfer", "transfer")
"""The measures of forgetting, by name: the first that a benchmark has is compared beside its headline measure.

`transfer` is what a model with knowledge of its own still scores on what it has not learned yet.
"""
PLURAL = re.compile(r"(er|or)s$")
"""Names of algorithms that are plural words, such as adapters."""


@dataclass(frozen=True)
class SupportedDifference:
    """A difference between two rows that the statistics support."""

    measure: str
    """Its name in a record's summary."""
    test: PairedDifference
    """The row, the one it is compared with, and their difference as printed, in percentage points if it is a share."""
    better: bool | None
    """Whether the difference is in favour of the row; None if it is unknown whether more is better."""


@dataclass(frozen=True)
class Conclusion:
    """The findings of a table, as a sentence, with the claims that it makes and the tests behind them."""

    text: str
    claims: tuple[SupportedDifference, ...] = ()
    basis: str = ""


@dataclass(frozen=True)
class _Measured:
    """A measure of the rows: their cells, and the test of each against the reference that could be made."""

    name: str
    measure: Measure
    cells: Mapping[str, Cell]
    tests: Mapping[str, PairedDifference]

    @property
    def forgets(self) -> bool:
        """Whether "forgets" is its verb."""
        return self.name in FORGETTING[:2]


def conclusions(records: Sequence[Record]) -> list[tuple[Experiment, Conclusion]]:
    """Each experiment among the records with its conclusion, without those that only serve others as baselines."""
    found = experiments(records)
    others = {each.key for each in baselines(found)}
    return [(each, conclude(each.rows)) for each in found if each.key not in others and stands_alone(each.benchmark)]


def conclude(rows: Rows) -> Conclusion:
    """The conclusion from the rows of one table: its claims, or an estimate and what is needed for more."""
    records = [record for group in rows.values() for record in group]
    if (found := headline(records)) is None:
        return Conclusion("No run has a score.")
    competing = {title: group for title, group in rows.items() if not is_bound(group[0])}
    measures = compared_measures(records)
    cells = {name: {t: measured(group, name, m) for t, group in competing.items()} for name, m in measures.items()}
    cells = {name: {t: cell for t, cell in each.items() if cell.number is not None} for name, each in cells.items()}
    reference, others = _reference(competing, cells[found[0]], found[1])
    raw = {name: _tests(each, reference) for name, each in cells.items()}
    if not any(raw.values()):
        return _estimate(rows, competing, measures)
    tests = family([test for each in raw.values() for test in each.values()], others * len(measures))
    corrected = iter(tests)
    compared = [_Measured(n, measures[n], cells[n], {t: next(corrected) for t in raw[n]}) for n in measures]
    rest = [title for title in competing if title != reference]
    return _sentence(reference, rest, compared, others > 0, len(tests) + others * len(measures))


def compared_measures(records: Sequence[Record]) -> dict[str, Measure]:
    """Forgetting, if the benchmark measures it, and the headline measure; none if nothing was scored."""
    shown, chosen = shown_measures(records), headline(records)
    if chosen is None:
        return {}
    forgetting = next((name for name in FORGETTING if name in shown and shown[name].higher is not None), chosen[0])
    return {forgetting: shown[forgetting], chosen[0]: chosen[1]}


def _reference(rows: Rows, cells: Mapping[str, Cell], measure: Measure) -> tuple[str, int]:
    """The row with which the others are compared, and how many more pairs it was chosen from.

    Plain fine-tuning is known in advance. The best of k rows is chosen by its scores, so that all pairs count.
    """
    plain = [title for title, group in rows.items() if group[0].algorithm == "finetune"]
    if len(plain) == 1 or not cells:
        return (plain[0] if plain else ""), 0
    several = {t: c for t, c in cells.items() if len(c.values) >= LEAST} or cells
    sign = -1.0 if measure.higher is False else 1.0
    best = max(several, key=lambda title: sign * (several[title].number or 0.0))
    return best, (len(cells) - 1) * (len(cells) - 2) // 2


def _tests(cells: Mapping[str, Cell], reference: str) -> dict[str, PairedDifference]:
    """The test of each row against the reference; the same difference for every seed is the limit, p = 0."""
    if reference not in cells:
        return {}
    values = {title: cell.values for title, cell in cells.items()}
    found = {title: difference(values, title, reference) for title in cells if title != reference}
    return {
        title: replace(test, p_value=0.0) if math.isnan(test.p_value) else test
        for title, test in found.items()
        if test is not None
    }


def _sentence(
    reference: str, others: Sequence[str], compared: Sequence[_Measured], best: bool, count: int
) -> Conclusion:
    """The sentence: rows that differ from the reference, those that are not distinguishable, and those not compared."""
    claims = [claim for each in compared for title in others if (claim := _claim(each, title)) is not None]
    tested = [title for title in others if any(title in each.tests for each in compared)]
    doubtful = [title for title in tested if any(_unlearned(each, title) for each in compared)]
    alike: dict[tuple[tuple[str, bool, bool], ...], list[str]] = {}
    whole = {t for each in compared if each.forgets for t, cell in each.cells.items() if _keeps_all(cell)}
    for title in (title for title in tested if title not in doubtful):
        own = tuple((c.measure, c.test.difference > 0, title in whole) for c in claims if c.test.first == title)
        alike.setdefault(own, []).append(title)
    said = _Explained()
    parts = [
        _differ(titles, [c for c in claims if c.test.first in titles], compared, said)
        for pattern, titles in sorted(alike.items(), key=lambda each: -len(each[0]))
        if pattern
    ]
    if same := alike.get(()):
        titles = " or in ".join(each.measure.title for each in compared)
        where = "" if parts else f" in {titles}"
        parts.append(f"{listed(same)} {_be(same)} not distinguishable{where}{'' if parts else said.seeds(compared)}")
    parts += [f"{listed(doubtful)} scored no better than chance"] if doubtful else []
    if untested := [title for title in others if title not in tested]:
        parts.append(f"{listed(untested)} cannot be compared (fewer than {LEAST} seeds in common)")
    headed = compared[-1].measure
    why = f", which has the best mean {headed.title}" if best and headed.higher is not None else ""
    seeds = sorted({test.seeds for each in compared for test in each.tests.values()})
    spans = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    basis = f"Student's paired t over {spans} seeds, Holm's correction for {count} test{'s' * (count != 1)}."
    kept = tuple(claim for claim in claims if claim.test.first not in doubtful)
    end = "," if len(others) == 1 or why else ":"  # a comma would add the reference to a list of rows
    text = f"Compared with {reference}{why}{end} {'; '.join(parts)}"
    return Conclusion(f"{text.removesuffix('.')}.", kept, basis)


def _claim(each: _Measured, title: str) -> SupportedDifference | None:
    test = each.tests.get(title)
    if test is None or test.corrected >= MARK_LEVEL or not test.difference:
        return None
    higher = each.measure.higher
    return SupportedDifference(each.name, test, None if higher is None else (test.difference > 0) == higher)


def _unlearned(each: _Measured, title: str) -> bool:
    """Whether a row seems to do better only because it learned nothing, or its better score is that of guessing."""
    claim, cell = _claim(each, title), each.cells.get(title)
    if claim is None or cell is None or not claim.better:
        return False
    values = list(cell.values.values())
    sign = 1.0 if each.measure.higher else -1.0
    guessed = cell.chance is not None and not above([sign * value for value in values], sign * cell.chance)
    return guessed or not cell.learned


class _Explained:
    """What a sentence has explained so far: the level of intervals, 95 %, and the number of seeds."""

    def __init__(self) -> None:
        self.count = 0

    def interval(self, test: PairedDifference, measure: Measure) -> str:
        """The interval of a difference in brackets, with what the reader does not know yet."""
        low, high = sorted(abs(test.difference + sign * test.half_width) for sign in (-1, 1))
        seeds = "" if test.seeds == self.count else f", {test.seeds} seeds"
        first, self.count = not self.count, test.seeds
        if test.half_width == 0:
            return f"(in each of {test.seeds} seeds)"
        places = _places(test, measure)
        return f"({'95 % interval ' * first}{low:.{places}f} to {high:.{places}f}{seeds})"

    def seeds(self, compared: Sequence[_Measured]) -> str:
        """The number of seeds behind a sentence without differences."""
        counts = sorted({test.seeds for each in compared for test in each.tests.values()})
        return f" ({counts[0]}{f' to {counts[-1]}' if len(counts) > 1 else ''} seeds)"


def _differ(
    titles: Sequence[str], claims: Sequence[SupportedDifference], compared: Sequence[_Measured], said: _Explained
) -> str:
    """A description of rows that differ from the reference in the same measures and directions."""
    parts, seen = [], list[bool | None]()
    size_of = {claim.test.first: abs(claim.test.difference) for claim in reversed(claims)}
    titles = sorted(titles, key=lambda title: -size_of[title])
    for each in compared:
        own = [claim for claim in claims if claim.measure == each.name]
        if not own:
            continue
        top = max(own, key=lambda claim: abs(claim.test.difference))
        size = f"{abs(top.test.difference):.{_places(top.test, each.measure)}f}{_unit(each.measure)}"
        way = ("less", "more") if each.forgets else ("lower", "higher")
        word = way[top.test.difference > 0]
        if each.forgets:
            verb = "forget" if _plural(titles) else "forgets"
            where = "" if each.name == FORGETTING[0] else f" in {each.measure.title}"
            if _keeps_all(each.cells[top.test.first]):
                told = f"{verb} nothing, {size} {word}{where}" if len(own) == 1 else f"{verb} nothing"
            else:
                told = f"{verb} {size} {word}{where}" if len(own) == 1 else f"{verb} {word}{where}"
        else:
            told = f"{_be(titles)} {size if len(own) == 1 else ''} {word} in {each.measure.title}".replace("  ", " ")
        interval = said.interval(top.test, each.measure)
        parts.append(f"{told} {interval}" if len(own) == 1 else f"{told}, {top.test.first} by {size} {interval}")
        seen.append(top.better)
    apart = len(titles) > 1 or any(_keeps_all(each.cells[titles[0]]) for each in compared if each.forgets)
    joint = f"{', ' if apart else ' '}{'and' if len(set(seen)) == 1 else 'but'} "
    claimed = {claim.measure for claim in claims}
    same = [c.measure.title for c in compared if c.name not in claimed and set(titles) <= c.tests.keys()]
    rest = f", but {_be(titles)} not distinguishable in {' or '.join(same)}" if same else ""
    return f"{listed(titles)} {joint.join(parts)}{rest}"


def _keeps_all(cell: Cell) -> bool:
    """Whether nothing was forgotten with any seed."""
    return all(value <= 1e-9 for value in cell.values.values())


def _places(test: PairedDifference, measure: Measure) -> int:
    """The decimals of a difference: whole points for large ones, and as many as keep its interval off zero."""
    least = abs(test.difference) - test.half_width
    large = abs(test.difference) >= 10 and least >= 1 and (test.half_width >= 1 or not test.half_width)
    places = 0 if _unit(measure) and large else measure.decimals
    while places < 6 and round(least, places) <= 0:
        places += 1
    return places


def _unit(measure: Measure) -> str:
    return " points" if in_percent(measure) else ""


def _percent(measure: Measure) -> str:
    return " %" if _unit(measure) else ""


def _plural(titles: Sequence[str]) -> bool:
    return len(titles) > 1 or bool(PLURAL.search(titles[0].partition(" ")[0]))


def _be(titles: Sequence[str]) -> str:
    return "are" if _plural(titles) else "is"


def _estimate(rows: Rows, competing: Rows, measures: Mapping[str, Measure]) -> Conclusion:
    """The measured values, if there is nothing to compare: no difference is claimed."""
    name, measure = list(measures.items())[-1]
    seeds = max(len(group) for group in rows.values())
    shown = {title: measured(group, name, measure) for title, group in (competing or rows).items()}
    known = {title: cell for title, cell in shown.items() if cell.number is not None}
    if not known:
        return Conclusion(f"No run has a value of {measure.title}.")
    if len(known) > 1:
        order = sorted(known, key=lambda t: (known[t].number or 0.0) * (-1 if measure.higher is not False else 1))
        told = listed([f"{title} {known[title].number:.{measure.decimals}f}{_percent(measure)}" for title in order])
        few = "one seed" if seeds == 1 else f"{seeds} seeds" if seeds < LEAST else f"fewer than {LEAST} seeds in common"
        return Conclusion(
            f"{measure.title[:1].upper()}{measure.title[1:]}: {told}. {few.capitalize()} cannot show whether they "
            f"differ: run at least {LEAST} (--seeds {LEAST})."
        )
    ((title, _),) = known.items()
    parts = list[str]()
    for key in list(measures)[::-1]:
        cell = measured(rows[title], key, measures[key])
        if cell.number is None:
            continue
        width = cell.interval
        ends = "" if width is None else f" (95 % interval {_ends(cell.number, width, measures[key].decimals)})"
        number = f"{cell.number:.{measures[key].decimals}f}{_percent(measures[key])}"
        parts.append(f"{measures[key].title} {number}{ends}")
    many = "One run" if len(rows[title]) == 1 else f"{len(rows[title])} runs"
    return Conclusion(f"{many} of {title}: {', '.join(parts)}. Run another algorithm to compare it with.")


def _ends(mean: float, width: float, places: int) -> str:
    return f"{mean - width:.{places}f} to {mean + width:.{places}f}"
