"""The end of a comparison of algorithms: a picture of the means with their intervals, and the conclusion."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from holdfast.errors import printable
from holdfast.experiments.store import Record
from holdfast.reports.groups import Experiment
from holdfast.reports.marks import measured
from holdfast.reports.overview import comparison
from holdfast.reports.sentences import Conclusion, conclusions
from holdfast.reports.significance import LEAST
from holdfast.reports.tables import headline, shown_measures

WIDTH, NAME = 78, 24
"""The width of a picture, and the most letters of a name in it."""
ROWS = 12
"""The maximum number of rows in a picture."""


def ending(records: Sequence[Record]) -> str:
    """For each experiment with several rows, the picture of its claims and the sentence; empty if there is none.

    If the data is synthetic and the benchmark a paper's, it says so.
    """
    found = [(each, said) for each, said in conclusions(records) if len(each.rows) > 1]
    parts = []
    for each, said in found:
        heading = [printable(each.title)] if len(found) > 1 else []
        words = " ".join(filter(None, (said.text, said.basis, comparison(each).warning)))
        parts.append("\n".join([*heading, *_pictures(each, said), *textwrap.wrap(printable(words), WIDTH)]))
    return "\n\n".join(parts)


def _pictures(experiment: Experiment, said: Conclusion) -> list[str]:
    """A picture of each measure that the sentence speaks of."""
    shown = shown_measures(experiment.records)
    first = headline(experiment.records)
    names = dict.fromkeys([*(claim.measure for claim in said.claims), *([first[0]] if first else [])])
    lines = []
    for name in names if said.claims else ():
        measure = shown[name]
        cells = {title: measured(group, name, measure) for title, group in list(experiment.rows.items())[:ROWS]}
        spreads = {
            title: (cell.number, cell.interval if len(cell.values) >= LEAST else None)
            for title, cell in cells.items()
            if cell.number is not None
        }
        lines += [f"{measure.head}, mean and 95 % interval over the seeds", *intervals(spreads, WIDTH), ""]
    return lines


def intervals(spreads: Mapping[str, tuple[float, float | None]], width: int) -> list[str]:
    """Means with their intervals as lines of text over a common axis.

    >>> print("\\n".join(intervals({"er": (2.0, 1.0), "ewc": (6.0, None)}, 24)))
      er   ├──●──┤
      ewc                  ●
           1               6
    """
    means = [mean for mean, _ in spreads.values()]
    room = (max(means) - min(means)) or abs(means[0]) or 1.0
    ends = [mean + sign * (half or 0.0) for mean, half in spreads.values() for sign in (-1, 1)]
    low, high = max(min(ends), min(means) - room), min(max(ends), max(means) + room)  # few seeds have wide intervals
    names = {title: printable(title if len(title) <= NAME else f"{title[: NAME - 1]}…") for title in spreads}
    start = max(map(len, names.values())) + 4
    across = max(width - start - 1, 1)

    def place(value: float) -> int:
        return round((min(max(value, low), high) - low) / ((high - low) or 1.0) * across)

    lines = []
    for title, (mean, half) in spreads.items():
        line = [" "] * (across + 1)
        if half:
            left, right = place(mean - half), place(mean + half)
            line[left : right + 1] = ["─"] * (right - left + 1)
            if mean - half >= low:
                line[left] = "├"
            if mean + half <= high:
                line[right] = "┤"
        line[place(mean)] = "●"
        lines.append(f"  {names[title]:<{start - 2}}{''.join(line)}".rstrip())
    first, last = f"{low:.3g}", f"{high:.3g}"
    return [*lines, f"{'':{start}}{first}{last:>{max(across + 1 - len(first), len(last) + 1)}}"]
