"""The values behind verdicts as a file, and the page of verdicts that follows from it.

The file has, for each claim and kind of data, the value of each contrast for each seed: enough to repeat every verdict
to the digit, without the runs. The page is a function of the file and of the claims' definitions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from holdfast.checksums import DamagedError, opened, sealed
from holdfast.claims.definition import Claims, PaperClaim
from holdfast.claims.evidence import Evidence, from_json, to_json
from holdfast.claims.shown import METHOD, SYNTHETIC, asserted, by_paper, counted, interval, number, repeated
from holdfast.claims.verdicts import OUTCOMES
from holdfast.errors import UserError
from holdfast.files import FileError, open_inside, open_regular

LAYOUT = 1
MOST_BYTES = 1 << 26
STORED = "claims.json"
"""The file in a store in which `holdfast claims run` keeps the values, for the report."""


@dataclass(frozen=True)
class Untested:
    """The cost of testing the claims of one paper that have no runs."""

    paper: str
    claims: int
    runs: int
    """How many runs are missing, with five seeds at small."""
    seconds: float | None
    """The seconds that they take on one core, estimated from similar runs; None without similar runs."""


def dump(found: Sequence[Evidence], out: Path, left: Sequence[Untested] = ()) -> None:
    """Write the values behind verdicts, and the claims left to test."""
    evidence = [to_json(each) for each in found]
    content = sealed({"claims": LAYOUT, "evidence": evidence, "left": [asdict(each) for each in left]})
    out.parent.mkdir(parents=True, exist_ok=True)
    temporary = out.with_name(f".{out.name}.writing")
    temporary.unlink(missing_ok=True)  # never through a link that somebody left in a store
    temporary.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    temporary.rename(out)


def is_evidence(path: Path) -> bool:
    """Whether a file has the values behind verdicts, as far as its beginning shows."""
    try:
        if not path.is_file():
            return False
        with open_regular(path) as file:
            return file.read(40).split()[:2] == [b"{", b'"claims":']
    except (OSError, FileError):
        return False


def read(path: Path, claims: Mapping[str, PaperClaim]) -> list[Evidence]:
    """The evidence in a file, without that for claims that no longer exist or are now about other values."""
    return [each for value in _opened(path)[0] if (each := from_json(value, claims, str(path))) is not None]


def read_left(path: Path) -> list[Untested]:
    """The claims that were left to test when a file was written."""
    try:
        return [Untested(**each) for each in _opened(path)[1]]
    except TypeError as error:
        raise UserError(f"{path} is not the evidence of claims ({error}): `holdfast claims page` writes it") from None


def _opened(path: Path) -> tuple[list[Any], list[Any]]:
    try:
        with open_inside(path.parent, path) as file:
            text = file.read(MOST_BYTES + 1)
        if len(text) > MOST_BYTES:
            raise UserError(f"{path} is larger than 64 MiB: that is not the evidence of claims")
        found = opened(json.loads(text), required=True)
        if found["claims"] > LAYOUT:
            raise UserError(f"{path} was written by a newer holdfast: upgrade holdfast to read it")
        return list(found["evidence"]), list(found["left"])
    except DamagedError as error:
        raise UserError(f"{path} cannot be trusted ({error}): write it again with `holdfast claims page`") from None
    except (OSError, FileError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(f"{path} is not the evidence of claims ({error}): `holdfast claims page` writes it") from None


def write(papers: Sequence[Claims], found: Sequence[Evidence], out: Path, left: Sequence[Untested] = ()) -> None:
    """Write the page and, in a file beside it, the values behind it."""
    dump(found, out.with_suffix(".json"), left)
    out.write_text(text(papers, found, out.name, left), encoding="utf-8")


def text(papers: Sequence[Claims], found: Sequence[Evidence], out: str, left: Sequence[Untested] = ()) -> str:
    """The page, in Markdown; `out` is the name of its file."""
    values = Path(out).with_suffix(".json").name
    total = sum(len(paper.claims) for paper in papers)
    tested = len({each.claim for each in found})
    lines = [
        "# Claims",
        "",
        f"What the papers assert, tested: {total} claims, of which {tested} have runs. `holdfast claims` lists them,",
        "`holdfast claims plan` estimates what a test costs, and `holdfast claims run` makes it.",
        "",
        METHOD,
        "A claim is supported if the interval of each of its contrasts is within what it says, contradicted if that",
        "of one is outside, and undecided otherwise. *Detectable* is the distance from a bound of a claim that these",
        "seeds decide with a probability of 80 %. Effects are in the units of the papers' tables. Their signs are such",
        "that a claim of a difference says that the effect is above its margin.",
        "",
        f"This page is generated: `holdfast claims page docs/{values} --out docs/{out}`. Add stores or exported files",
        "to the command to include their runs.",
    ]
    if any(each.synthetic for each in found):
        lines += ["", f"**{SYNTHETIC}**"]
    lines += ["", "## Verdicts", "", *_tally(papers, found), *_against(found)]
    groups = by_paper(found)
    for paper in papers:
        lines += ["", f"## {paper.title}"]
        for (of, data), own in groups.items():
            if of == paper.name:
                lines += ["", f"### On {data} data: {counted(own)}", "", *_table(own)]
        missing = [claim for claim in paper.claims if all(each.claim is not claim for each in found)]
        if missing:
            lines += ["", f"### Not tested yet: {len(missing)} claims", ""]
            lines += [f"{_cost(each)}\n" for each in left if each.paper == paper.name]
            lines += [f"- `{claim.id}`: {claim.says} ({claim.where})" for claim in missing]
    return "\n".join(lines) + "\n"


def _tally(papers: Sequence[Claims], found: Sequence[Evidence]) -> list[str]:
    rows = ["| paper | data | " + " | ".join(OUTCOMES) + " |", "|---|---|" + "---:|" * len(OUTCOMES)]
    titles = {paper.name: paper.title for paper in papers}
    for (paper, data), own in by_paper(found).items():
        outcomes = [each.verdict.outcome for each in own]
        rows.append(f"| {titles[paper]} | {data} | " + " | ".join(str(outcomes.count(o)) for o in OUTCOMES) + " |")
    return rows if len(rows) > 2 else ["No claim has runs yet."]


def _against(found: Sequence[Evidence]) -> list[str]:
    """The contradicted claims, which deserve a look at the paper and at our code."""
    against = [each for each in found if each.verdict.outcome == "contradicted"]
    lines = [
        f"- `{each.claim.name}`: {_escaped(each.claim.says)} On {each.data} data: {interval(each.verdict.decisive)}, "
        f"{_escaped(each.verdict.why)}."
        for each in against
    ]
    return ["", "Contradicted, so that the paper, the data or our code deserves a look:", "", *lines] if lines else []


def _table(found: Sequence[Evidence]) -> list[str]:
    rows = ["| claim | verdict | effect, 95 % interval | seeds | detectable |", "|---|---|---|---|---:|"]
    for each in found:
        verdict, claim = each.verdict, each.claim
        several = f"{verdict.decisive.name}: " if len(verdict.estimates) > 1 else ""
        cells = [
            f"`{claim.id}`: {_escaped(claim.says)} ({_escaped(claim.where)}) *{_escaped(asserted(claim))}*",
            f"**{verdict.outcome}**: {_escaped(verdict.why)}",
            f"{_escaped(several)}{interval(verdict.decisive)}",
            repeated(each),
            number(verdict.decisive.detectable),
        ]
        rows.append(f"| {' | '.join(cells)} |")
    made = " and ".join(dict.fromkeys(name for each in found for name in each.made))
    example = max(found, key=lambda each: each.verdict.seeds)
    command = example.command().replace(example.claim.name, f"{example.claim.paper}/ID")
    again = f"To repeat a verdict to the digit: `{command}`, with {_escaped(made)}."
    return [*rows, "", f"{again} Other versions round differently, which training can enlarge to a point or more."]


def _cost(left: Untested) -> str:
    """The cost of the untested claims of a paper."""
    hours = "" if left.seconds is None else f", about {left.seconds / 3600:.1f} hours of one core"
    plan = f"`holdfast claims plan --paper {left.paper}` lists them."
    return f"With five seeds at small, they need {left.runs} more runs{hours}. {plan}"


def _escaped(value: str) -> str:
    """Text for a cell of a Markdown table.

    >>> _escaped("a | b * <c>")
    'a \\\\| b \\\\* &lt;c&gt;'
    """
    for mark in ("|", "*"):
        value = value.replace(mark, f"\\{mark}")
    return value.replace("<", "&lt;").replace(">", "&gt;")
