"""From records to evidence: the value of each contrast of a claim for each seed, and the runs behind it.

A record belongs to a claim if its command asks for one of the claim's runs at the same scale, and the code that it used
has not changed since. Records on synthetic and on real data are never mixed: each kind is evidence of its own.

Measures pooled over tasks (`metrics.pooling`) compare the same tasks: within one contrast and seed, a task that one run
did not clearly learn is left out of all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from holdfast import metrics, registry
from holdfast.benchmarks.base import Measure, score_matrix
from holdfast.claims.definition import Claims, Contrast, PaperClaim, Quantity, every_item
from holdfast.claims.evidence import Evidence
from holdfast.errors import UserError
from holdfast.experiments.config import Config, resolve
from holdfast.experiments.made import unchanged
from holdfast.experiments.planfile import from_tables
from holdfast.experiments.request import Request
from holdfast.experiments.store import Record
from holdfast.metrics.pooling import Share, doubtful, pool


def requests_of(found: Claims, runs: str, scale: str | None, data: str | None = None) -> list[Request]:
    """The requests behind the name of some runs, with the seed 0: one, or one for each order, task and so on."""
    table = found.runs[runs]
    where = f"{found.path}, runs.{runs}"
    if unknown := sorted({"seed", "seeds"} & set(table)):
        raise UserError(f"{where}: leave out {unknown[0]!r}: the number of seeds is given to the command")
    own = {**table, **({"data": data} if data else {})}
    return from_tables({"experiment": [own]}, where, scale)


def gathered(
    papers: Sequence[Claims], claims: Sequence[PaperClaim], records: Iterable[tuple[Record, bool]]
) -> list[Evidence]:
    """The evidence of records, each with whether its data is synthetic, by claim; claims without any are left out."""
    known: dict[tuple[str, bool], dict[str, dict[int, Record]]] = {}
    names = _RunNames()
    by_name = {each.name: each for each in papers}
    for runs, paper in {(runs, claim.paper) for claim in claims if claim.file for runs in claim.runs}:
        for request in requests_of(by_name[paper], runs, None):
            names.trust(request)
    for record, synthetic in records:
        if (name := names.of(record)) is None:
            continue
        own = known.setdefault((str(record.config["benchmark"].get("scale", "")), synthetic), {}).setdefault(name, {})
        seed = record.config["seed"]
        if seed in own and own[seed].scores != record.scores:
            raise UserError(
                f"runs {own[seed].id} and {record.id} differ only in their data, and a verdict must not mix data: "
                "leave one of them out"
            )
        own.setdefault(seed, record)
    found = []
    for claim in claims:
        for (scale, synthetic), there in sorted(known.items()):
            if (each := _evidence(by_name[claim.paper], claim, scale, synthetic, there, names)) is not None:
                found.append(each)
    return found


def _evidence(
    paper: Claims,
    claim: PaperClaim,
    scale: str,
    synthetic: bool,
    there: Mapping[str, Mapping[int, Record]],
    names: _RunNames,
) -> Evidence | None:
    cells: dict[str, list[Mapping[int, Record]]] = {}
    orders: dict[str, set[str]] = {}
    scored: dict[str, Mapping[str, Measure]] = {}
    for runs in claim.runs:
        requests = requests_of(paper, runs, scale)
        configs = [names.config(request) for request in requests]
        cells[runs] = [there.get(config.id, {}) for config in configs]
        orders[runs] = {str(request.order or "") for request in requests}
        scored[runs] = configs[0].benchmark.measures
    if not all(seeds for own in cells.values() for seeds in own):
        return None
    values, gaps, used, made = [], list[str](), dict[str, None](), dict[str, None]()
    for contrast in claim.contrasts:
        own = [cell for item in _items(contrast) for cell in cells[item.runs]]
        seeds = sorted(set.intersection(*({*cell} for cell in own)))
        series: dict[int, float] = {}
        reasons = []
        for seed in seeds:
            records = {item.runs: [cell[seed] for cell in cells[item.runs]] for item in _items(contrast)}
            if not all(_is_measured(item, record) for item in _items(contrast) for record in records[item.runs]):
                continue  # the runs that this measure needs have not been made
            used |= dict.fromkeys(record.id for group in records.values() for record in group)
            made |= {_maker(record.environment): None for group in records.values() for record in group}
            value = _value(contrast, records, scored)
            if math.isfinite(value):
                series[seed] = value
            else:
                reasons.append(getattr(value, "reason", "it is not a number"))
        if reasons:
            gaps.append(f"undefined for {len(reasons)} of {len(seeds)} seeds: {reasons[0]}")
        values.append(series)
    if not used:
        return None
    most = max(len(each) for each in orders.values())
    return Evidence(claim, scale, synthetic, tuple(values), tuple(gaps), tuple(used), most, tuple(made))


def _is_measured(item: Quantity, record: Record) -> bool:
    return item.stage is not None or bool(item.task) or item.measure in record.summary


def _maker(environment: Mapping[str, Any]) -> str:
    """The software versions on which the last digits of a run depend, and its device."""
    python = ".".join(str(environment.get("python", "")).split(".")[:2])
    return f"torch {environment.get('torch')}, Python {python}, {environment.get('device')}"


def _items(contrast: Contrast) -> list[Quantity]:
    return [item for _, item in contrast.terms if item.runs]


def _value(
    contrast: Contrast, records: Mapping[str, Sequence[Record]], scored: Mapping[str, Mapping[str, Measure]]
) -> float:
    """The value of a contrast from the records of one seed, or why it has none."""
    without = {
        item.measure: doubtful(
            shares
            for other in _items(contrast)
            for record in records[other.runs]
            if (shares := _shares(record, item.measure))
        )
        for item in _items(contrast)
    }
    total = 0.0
    for weight, item in contrast.terms:
        if not item.runs:
            total += weight * item.constant
            continue
        measure = scored[item.runs].get(item.measure) or Measure(item.measure)
        each = [_read(item, measure, record, without[item.measure]) for record in records[item.runs]]
        if gap := [value for value in each if math.isnan(value)]:
            return gap[0]
        total += weight * measure.factor * metrics.mean(each)
    return total


def _read(item: Quantity, measure: Measure, record: Record, without: Sequence[str]) -> float:
    """An item of a record, in its own units."""
    if item.stage is not None:
        names, _, rows = score_matrix(record.scores)
        if item.measure not in names or item.stage > len(rows):
            return metrics.Undefined(f"{item} was not scored")
        value = float(rows[item.stage - 1, names.index(item.measure)])
        return metrics.Undefined(f"{item} was not scored") if math.isnan(value) else value
    if item.task:
        share = _shares(record, item.measure).get(item.task)
        if share is None or share.doubt or not share.base:
            return metrics.Undefined(f"{item}: {share.doubt if share else 'this task has no share'}")
        return 100 * share.change / share.base
    if measure.pooled and (shares := _shares(record, item.measure)):
        return pool(shares, without)
    found = record.summary.get(item.measure)
    if found is None:
        return metrics.Undefined(f"{item}: {record.reasons.get(item.measure, 'it was not measured')}")
    return found


def _shares(record: Record, name: str) -> dict[str, Share]:
    return {task: Share(**share) for task, share in record.shares.get(name, {}).items()}


class _RunNames:
    """The ids that runs have before their data is read, whatever their seed, and wherever the data is.

    A record may be a stranger's: the code that it names is not executed, unless the user's claims name it as well.
    """

    def __init__(self) -> None:
        self.known: dict[str, Config | None] = {}

    def trust(self, request: Request) -> None:
        """Let records name the code that a request names."""
        with suppress(UserError):  # told where the claim itself is looked at
            self.config(request)

    def of(self, record: Record) -> str | None:
        """The name of a record's run; None if no claim can mean it, or its code has changed."""
        command = record.environment.get("command")
        if not command or not record.config.get("parts"):
            return None
        try:
            with registry.of_records():
                config = self.config(Request.from_command(str(command)))
            return config.id if unchanged(record.config, config) else None
        except (UserError, KeyError, TypeError, ValueError, StopIteration):
            return None  # it used something that no longer exists

    def config(self, request: Request) -> Config:
        """The configuration of a request without its seed and the place of its data."""
        settings = {name: value for name, value in request.settings.items() if name != "benchmark.features"}
        plain = replace(request, seed=0, data=None, skip_bad=0, predictions=False, settings=settings)
        if (known := self.known.get(plain.text())) is None:
            known = self.known[plain.text()] = resolve(plain)
        return known


def measures_of(paper: Claims, claim: PaperClaim, scale: str | None = None) -> dict[Quantity, Measure]:
    """How each item of a claim is measured; raises a UserError for a measure that its benchmark does not have."""
    found = {}
    for item in every_item(claim):
        known = resolve(requests_of(paper, item.runs, scale)[0]).benchmark.measures
        found[item] = known.get(item.measure) or Measure(item.measure)
    return found
