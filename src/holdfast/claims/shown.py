"""Claims and verdicts in words: the texts and tables that the command line, the docs and the reports share."""

from __future__ import annotations

import math
from collections.abc import Iterable
from textwrap import wrap

from holdfast.claims.definition import STATISTICS, PaperClaim
from holdfast.claims.evidence import Evidence
from holdfast.claims.verdicts import LOOKS, OUTCOMES, ContrastEstimate

WIDTH = 80
METHOD = (
    f"Paired over seeds; t-intervals with {', '.join(map(str, list(LOOKS)[:-1]))} and {list(LOOKS)[-1]} seeds, "
    "which together miss the truth in at most 5 %."
)
SYNTHETIC = "Verdicts on synthetic data say how our implementation behaves there. They do not reproduce a paper."


def number(value: float) -> str:
    """A number with three significant digits, but no more than three decimals; a dash if there is none.

    >>> number(12.345), number(0.04567), number(-1234.5), number(float("nan")), number(-0.0001)
    ('12.3', '0.046', '-1234', '–', '0.000')
    """
    if not math.isfinite(value):
        return "–"
    size = abs(value)
    decimals = 3 if size < 1 else 2 if size < 10 else 1 if size < 100 else 0
    text = f"{value:.{decimals}f}"
    return text.lstrip("-") if not float(text) else text


def interval(found: ContrastEstimate) -> str:
    """The mean and the interval of a contrast.

    >>> interval(ContrastEstimate("a", 1, 9, {}, 5, 3.0, (2.0, 4.5)))
    '3.00 [2.00, 4.50]'
    """
    if not found.looked:
        return "–"
    return f"{number(found.mean)} [{number(found.interval[0])}, {number(found.interval[1])}]"


def repeated(found: Evidence) -> str:
    """The number of seeds, and of orders if there are several: 5, or 5 x 3."""
    return f"{found.verdict.seeds}" + (f" x {found.orders}" if found.orders > 1 else "")


def asserted(claim: PaperClaim) -> str:
    """What the claim asserts, written as a formula."""
    items = [str(item) for item in claim.of]
    name = " and ".join(dict.fromkeys(item.measure for item in claim.of if item.runs))
    if all(item.measure == name and item.stage is None and not item.task for item in claim.of if item.runs):
        items = [item.runs or str(item) for item in claim.of]
    sign = "<" if claim.less else ">"
    margin = f"by more than {claim.margin:g}"
    first, *rest = items
    if claim.statistic == "order":
        text = f"{f' {sign} '.join(items)}, each {margin}"
    elif claim.statistic == "interaction":
        text = f"({items[0]} - {items[1]}) {sign} ({items[2]} - {items[3]}), {margin}"
    elif claim.statistic == "equivalence":
        text = f"{first} = {', '.join(rest)}, within {claim.margin:g}"
    elif claim.statistic == "no-worse":
        text = f"{first} not {'above' if claim.less else 'below'} {', '.join(rest)} by {claim.margin:g}"
    else:
        text = f"{first} {sign} {', '.join(rest)}, {margin}"
    return f"{name}: {text}" if items[0] != str(claim.of[0]) or items[-1] != str(claim.of[-1]) else text


def counted(found: Iterable[Evidence]) -> str:
    """How many verdicts of each kind there are.

    >>> counted([])
    '0 supported, 0 contradicted, 0 undecided'
    """
    outcomes = [each.verdict.outcome for each in found]
    return ", ".join(f"{outcomes.count(outcome)} {outcome}" for outcome in OUTCOMES)


def by_paper(found: Iterable[Evidence]) -> dict[tuple[str, str], list[Evidence]]:
    """Evidence by the name of the paper and the data, in order of first occurrence."""
    groups: dict[tuple[str, str], list[Evidence]] = {}
    for each in found:
        groups.setdefault((each.claim.paper, each.data), []).append(each)
    return groups


def details(found: Evidence, out: str = "runs") -> list[str]:
    """Everything about one verdict, line by line."""
    verdict, claim = found.verdict, found.claim
    texts = [
        claim.says,
        claim.where,
        f"{asserted(claim)} ({claim.statistic}: {STATISTICS[claim.statistic]})",
        f"why: {verdict.why}",
    ]
    lines = [f"{claim.name}: {verdict.outcome} on {found.data} data"]
    lines += [line for text in texts for line in wrap(text, WIDTH, initial_indent="  ", subsequent_indent="  ")]
    for each in verdict.estimates:
        bounds = " and ".join(
            f"{word} {bound:g}" for word, bound in (("above", each.low), ("below", each.high)) if math.isfinite(bound)
        )
        summed = f"{each.name}: {interval(each)}, claimed {bounds}; {len(each.values)} seeds"
        lines += wrap(summed, WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
        values = f"by seed: {', '.join(f'{value!r}' for value in each.values.values())}"
        lines += wrap(values, WIDTH, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
        if each.looked:
            lines.append(f"    detectable: {number(each.detectable)} from a bound, with a probability of 80 %")
    lines += [f"  runs: {len(found.runs)}, such as {found.runs[0]}"] if found.runs else []
    return [*lines, f"  again: {found.command(out)}"]
