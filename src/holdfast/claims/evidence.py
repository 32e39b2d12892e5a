"""The evidence of runs about a claim: the value of each contrast for each seed, which determines the verdict."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from holdfast.claims.definition import PaperClaim, from_table, to_table
from holdfast.claims.verdicts import LEAST, Verdict, judge
from holdfast.errors import UserError, printable

_WORD = re.compile(r"[\w.-]*")
"""The form of a scale, and of the name of a paper: nothing that a shell would take for more than a word."""


@dataclass(frozen=True)
class Evidence:
    """The evidence of some records about a claim, on one kind of data at one scale."""

    claim: PaperClaim
    scale: str
    synthetic: bool
    values: tuple[Mapping[int, float], ...]
    """The value of each contrast by seed."""
    gaps: tuple[str, ...] = ()
    """Why some values are undefined."""
    runs: tuple[str, ...] = ()
    """The ids of the runs."""
    orders: int = 1
    """How many orders of the tasks the runs have."""
    made: tuple[str, ...] = ()
    """The versions and devices that made the runs, and on which the last digits may depend."""

    @cached_property
    def verdict(self) -> Verdict:
        """The verdict that follows from the values."""
        return judge(self.claim, self.values, self.gaps)

    @property
    def data(self) -> str:
        """The data, in words.

        >>> Evidence(None, "small", True, ()).data
        'synthetic, small'
        """
        return f"{'synthetic' if self.synthetic else 'real'}, {self.scale}"

    def command(self, out: str = "runs") -> str:
        """The command that repeats the verdict, from the first run on."""
        seeds = max(len(each.values) for each in self.verdict.estimates) or LEAST
        data = "" if self.synthetic else " --data DIR"
        where = "" if out == "runs" else f" --out {shlex.quote(out)}"
        paper = f" --paper {shlex.quote(self.claim.file)}" if self.claim.file else ""
        asked = f"--scale {shlex.quote(self.scale)} --seeds {seeds}"
        return f"holdfast claims run{paper} --only {shlex.quote(self.claim.name)} {asked}{data}{where}"


def to_json(found: Evidence) -> dict[str, Any]:
    """Plain JSON values, from which the verdict follows: without seeds beyond the look that decided."""
    claim = found.claim
    own = {} if not claim.file else {"definition": to_table(claim)}
    return {
        "claim": claim.name,
        **own,
        "scale": found.scale,
        "synthetic": found.synthetic,
        "orders": found.orders,
        "values": [
            {"of": each.name, "seeds": {str(seed): value for seed, value in each.values.items()}}
            for each in found.verdict.estimates
        ],
        "gaps": list(found.gaps),
        "runs": list(found.runs),
        "made": list(found.made),
    }


def from_json(value: Any, claims: Mapping[str, PaperClaim], where: str) -> Evidence | None:
    """Evidence from JSON values; None if its claim is gone, or is now about other values.

    The definition of a claim that does not come with the library is among the values, for when `claims` lacks it.
    """
    try:
        claim = claims.get(name := str(value["claim"]))
        if not _WORD.fullmatch(name.partition("/")[0]) or not _WORD.fullmatch(str(value["scale"])):
            raise ValueError("its paper or its scale is not a word")
        if claim is None and "definition" in value:
            table = {
                key: printable(each) if isinstance(each, str) else each for key, each in value["definition"].items()
            }
            claim = from_table(table, name, where)
        if claim is None or [each["of"] for each in value["values"]] != [str(each) for each in claim.contrasts]:
            return None
        series = tuple({int(s): float(v) for s, v in each["seeds"].items()} for each in value["values"])
        if not all(math.isfinite(number) for each in series for number in each.values()):
            raise ValueError("a value is not finite")
        gaps, runs, made = (tuple(printable(str(each)) for each in value[name]) for name in ("gaps", "runs", "made"))
        data = str(value["scale"]), bool(value["synthetic"])
        return Evidence(claim, *data, series, gaps, runs, int(value["orders"]), made)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"{where} is not the evidence of claims ({error}): `holdfast claims page` writes it") from None
