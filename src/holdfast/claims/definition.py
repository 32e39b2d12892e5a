"""Claims as data: a sentence of a paper, the runs it concerns, the statistic, and the margin that matters.

A benchmark with a paper has them in its folder, as `claims.toml`; a file of your own has the same form:

    title = "My claims"

    [runs.er]                                    # a name for runs, with the keys of a plan's [[experiment]] but seeds
    benchmark = "patterns"
    algorithm = "er"

    [runs.finetune]
    benchmark = "patterns"

    [[claim]]
    id = "replay-helps"
    says = "Replay ends at a higher accuracy than fine-tuning."
    where = "section 5, Table 2"
    statistic = "difference"
    measure = "final_accuracy"
    of = ["er", "finetune"]
    margin = 2

An item of `of` is a number, or the name of some runs, whose `measure` is taken. `er/bleu_1` takes another measure,
`er/knowledge_transfer[vcr]` the share of one task in a pooled measure, and `er@2/vcr` the test score on an evaluation
set after the second stage. Values and margins are in the units of the tables: percent, where they print percent. If
several runs have one name (orders, tasks), the value of a seed is their mean.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from holdfast import registry
from holdfast.errors import UserError, nearest
from holdfast.files import FileError, open_regular

STATISTICS = {
    "difference": "the first exceeds each of the others by more than the margin",
    "order": "each exceeds the next by more than the margin",
    "interaction": "the first less the second exceeds the third less the fourth by more than the margin",
    "equivalence": "the first differs from each of the others by less than the margin",
    "no-worse": "the first is not below any of the others by the margin or more",
}
"""What each statistic asserts of its items; with `less = true`, smaller values count as larger ones."""
FILE = "claims.toml"
MOST_BYTES = 1 << 20
_ITEM = re.compile(r"(?P<runs>[\w.-]+)(@(?P<stage>[1-9]\d*))?(/(?P<measure>[^\[\]]+)(\[(?P<task>[^\[\]]+)\])?)?")
_KEYS = {"id", "says", "where", "statistic", "measure", "of", "margin", "less"}


@dataclass(frozen=True)
class Quantity:
    """A number that a claim is about: a measure of some runs or, without runs, a constant."""

    runs: str = ""
    measure: str = ""
    stage: int | None = None
    """The stage after which the test score on the evaluation set `measure` is taken; None: it is a measure."""
    task: str = ""
    """The task whose share of a pooled measure is taken; empty: the whole measure."""
    constant: float = 0.0

    def __str__(self) -> str:
        if not self.runs:
            return f"{self.constant:g}"
        stage = "" if self.stage is None else f"@{self.stage}"
        return f"{self.runs}{stage}/{self.measure}{f'[{self.task}]' if self.task else ''}"


@dataclass(frozen=True)
class Contrast:
    """A weighted sum of items, for which the claim states two bounds, either of which may be infinite."""

    terms: tuple[tuple[int, Quantity], ...]
    low: float
    high: float = float("inf")

    def __str__(self) -> str:
        ordered = sorted(self.terms, key=lambda term: -term[0])
        text = " ".join(f"{'+' if weight > 0 else '-'} {item}" for weight, item in ordered if str(item) != "0")
        return text.removeprefix("+ ")


@dataclass(frozen=True)
class PaperClaim:
    """A sentence of a paper that runs can support or contradict."""

    paper: str
    id: str
    says: str
    """The sentence in our own words."""
    where: str
    """Where it stands in the paper."""
    statistic: str
    of: tuple[Quantity, ...]
    margin: float
    less: bool = False
    file: str = ""
    """The file that defines it; empty if it comes with the library."""

    @property
    def name(self) -> str:
        """Its name among the claims of all papers."""
        return f"{self.paper}/{self.id}"

    @property
    def runs(self) -> tuple[str, ...]:
        """The names of the runs that it concerns, each once."""
        return tuple(dict.fromkeys(item.runs for item in self.of if item.runs))

    @property
    def contrasts(self) -> tuple[Contrast, ...]:
        """The quantities to estimate: the claim is that each lies between its bounds."""
        first, *rest = self.of
        sign = -1 if self.less else 1
        if self.statistic == "interaction":
            a, b, c, d = self.of
            return (Contrast(((sign, a), (-sign, b), (-sign, c), (sign, d)), self.margin),)
        pairs = list(pairwise(self.of)) if self.statistic == "order" else [(first, other) for other in rest]
        low = self.margin if self.statistic in ("difference", "order") else -self.margin
        high = self.margin if self.statistic == "equivalence" else float("inf")
        return tuple(Contrast(((sign, a), (-sign, b)), low, high) for a, b in pairs)


@dataclass(frozen=True, eq=False)
class Claims:
    """The claims of one paper, and the runs that they concern."""

    name: str
    title: str
    path: Path
    runs: Mapping[str, Mapping[str, Any]]
    """The runs by the names that the claims use, each a table as in a plan."""
    claims: tuple[PaperClaim, ...]


def shipped() -> dict[str, Path]:
    """The files of claims that come with the library, by name: one in the folder of each benchmark with a paper.

    >>> {path.name for path in shipped().values()}
    {'claims.toml'}
    """
    folders = {name: Path(*package.split(".")[1:]) for name, package in registry.families().items()}
    found = {name: Path(__file__).parents[1] / folder / FILE for name, folder in folders.items()}
    return {name: path for name, path in found.items() if path.exists()}


def read_claims(paper: str | None = None) -> list[Claims]:
    """The claims of a paper, by name or as a file; by default those of all papers.

    >>> [found.name for found in read_claims("greco")]
    Traceback (most recent call last):
    holdfast.errors.UserError: there are no claims 'greco': give a .toml file, or a name; ...
    """
    known = shipped()
    if paper is None:
        return [_read(name, path) for name, path in known.items()]
    if paper in known:
        return [_read(paper, known[paper])]
    if not paper.endswith(".toml"):
        raise UserError(f"there are no claims {paper!r}: give a .toml file, or a name; {nearest(paper, known)}")
    return [_read(Path(paper).stem, Path(paper))]


def chosen(found: Sequence[Claims], only: Sequence[str] = ()) -> list[PaperClaim]:
    """The claims with these names, or ids within one paper; by default all."""
    every = {claim.name: claim for each in found for claim in each.claims}
    if not only:
        return list(every.values())
    names = [name for word in only for name in _named(word, every)]
    return [every[name] for name in dict.fromkeys(names)]


def _named(word: str, every: Mapping[str, PaperClaim]) -> list[str]:
    names = [name for name, claim in every.items() if word in (name, claim.id)]
    if not names:
        close = get_close_matches(word, [*every, *(claim.id for claim in every.values())], n=3)
        meant = f"did you mean {' or '.join(close)}? " if close else ""
        raise UserError(f"unknown claim {word!r}: {meant}`holdfast claims` lists them")
    if len(names) > 1:
        raise UserError(f"the claim {word!r} is ambiguous: write {' or '.join(names)}")
    return names


@cache
def _read(name: str, path: Path) -> Claims:
    try:
        with open_regular(path) as file:
            text = file.read(MOST_BYTES + 1)
        if len(text) > MOST_BYTES:
            raise UserError(f"{path} is larger than 1 MiB: that is not a file of claims")
        found = tomllib.loads(text.decode("utf-8"))
    except (OSError, FileError) as error:
        raise UserError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not valid TOML: {error}") from None
    return parsed(found, name, path)


def parsed(found: Mapping[str, Any], name: str, path: Path) -> Claims:
    """The claims in the tables of a file; raises a UserError for the first mistake.

    >>> claim = {"id": "a", "says": "A.", "where": "1", "statistic": "difference", "of": ["x/acc", 0], "margin": 1}
    >>> tables = {"title": "T", "runs": {"x": {"algorithm": "er"}}, "claim": [claim]}
    >>> [str(contrast) for contrast in parsed(tables, "mine", Path("mine.toml")).claims[0].contrasts]
    ['x/acc']
    """
    if unknown := sorted(set(found) - {"title", "runs", "claim"}):
        raise UserError(f"{path} has {unknown[0]!r}: {nearest(unknown[0], ['title', 'runs', 'claim'])}")
    runs, tables = found.get("runs"), found.get("claim")
    if not isinstance(runs, Mapping) or not runs or not all(isinstance(each, Mapping) for each in runs.values()):
        raise UserError(f"{path} describes no runs: begin with [runs.NAME]")
    if not isinstance(tables, list) or not tables or not all(isinstance(each, Mapping) for each in tables):
        raise UserError(f"{path} makes no claim: write one under [[claim]]")
    claims: dict[str, PaperClaim] = {}
    for number, table in enumerate(tables, 1):
        claim = _claim(table, name, runs, path, f"{path}, claim {number}")
        if claim.id in claims:
            raise UserError(f"{path}: two claims have the id {claim.id!r}")
        claims[claim.id] = claim
    return Claims(name, str(found.get("title", name)), path, runs, tuple(claims.values()))


def _claim(table: Mapping[str, Any], paper: str, runs: Mapping[str, Any], path: Path, where: str) -> PaperClaim:
    if unknown := sorted(set(table) - _KEYS):
        raise UserError(f"{where}: {unknown[0]!r} is not a key of a claim: {nearest(unknown[0], sorted(_KEYS))}")
    for key in ("id", "says", "where", "statistic"):
        if not isinstance(table.get(key), str) or not table[key].strip():
            raise UserError(f"{where}: {key} is missing, or not text")
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", table["id"]):
        raise UserError(f"{where}: id is {table['id']!r}: use small letters, digits and hyphens")
    if (named := table["statistic"]) not in STATISTICS:
        raise UserError(f"{where}: unknown statistic {named!r}: {nearest(named, STATISTICS)}")
    margin, less, given = table.get("margin"), table.get("less", False), table.get("of")
    if isinstance(margin, bool) or not isinstance(margin, int | float) or not 0 < margin < float("inf"):
        raise UserError(f"{where}: margin is {margin!r}: give the smallest difference that matters, above 0")
    if not isinstance(less, bool):
        raise UserError(f"{where}: less is {less!r}: give true or false")
    count = 4 if table["statistic"] == "interaction" else None
    if not isinstance(given, list) or len(given) < 2 or (count and len(given) != count):
        raise UserError(f"{where}: of needs {count or 'at least 2'} items")
    items = tuple(_item(each, str(table.get("measure", "")), runs, where) for each in given)
    if not any(item.runs for item in items):
        raise UserError(f"{where}: of names no runs")
    file = "" if path in shipped().values() else str(path)
    return PaperClaim(paper, table["id"], table["says"], table["where"], named, items, float(margin), less, file)


def _item(given: Any, measure: str, runs: Mapping[str, Any], where: str) -> Quantity:
    if isinstance(given, int | float) and not isinstance(given, bool):
        return Quantity(constant=float(given))
    match = _ITEM.fullmatch(given) if isinstance(given, str) else None
    if match is None:
        raise UserError(f"{where}: {given!r} is not an item: write a number, RUNS, RUNS/MEASURE or RUNS@STAGE/SET")
    if match["runs"] not in runs:
        raise UserError(f"{where}: [runs.{match['runs']}] is missing: {nearest(match['runs'], runs)}")
    if not (named := match["measure"] or measure):
        raise UserError(f"{where}: {given!r} has no measure: write {given}/MEASURE, or give `measure`")
    return Quantity(match["runs"], named, int(match["stage"]) if match["stage"] else None, match["task"] or "")


def to_table(claim: PaperClaim) -> dict[str, Any]:
    """A claim as in a file, so that it can be read without that file."""
    items = [str(item) if item.runs else item.constant for item in claim.of]
    table = {name: getattr(claim, name) for name in ("id", "says", "where", "statistic", "margin", "less")}
    return {**table, "of": items}


def from_table(table: Mapping[str, Any], name: str, where: str) -> PaperClaim:
    """A claim from such a table, under its full name."""
    paper, _, own = name.partition("/")
    items = [str(each).partition("/")[0].partition("@")[0] for each in table["of"]]
    found = _claim(table, paper, {name: {} for name in items}, Path(where), where)
    if found.id != own:
        raise ValueError(f"the definition of {name} has another id")
    return found


def every_item(claim: PaperClaim) -> Iterator[Quantity]:
    """The items of a claim that are taken from runs."""
    return (item for item in claim.of if item.runs)
