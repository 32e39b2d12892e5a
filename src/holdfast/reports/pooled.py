"""Measures pooled over tasks, for runs in one table: over the tasks that every one of them learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from holdfast import registry
from holdfast.benchmarks.base import Measure
from holdfast.experiments.store import Record
from holdfast.metrics.pooling import Share, Shares, doubtful, pool
from holdfast.reports.measures import measures

Rows = Mapping[str, tuple[Record, ...]]
OLD = "an earlier version pooled all tasks, learned or not: run it again"


def pooled(rows: Rows) -> tuple[dict[str, tuple[Record, ...]], tuple[str, ...]]:
    """Rows of one table with pooled measures over the same tasks, and a note on each task that is left out.

    Rows of a benchmark without such measures are returned unchanged.
    """
    found = dict(rows)
    known = {name: measure for group in rows.values() for r in group for name, measure in measures(r).items()}
    notes: list[str] = []
    for name, measure in known.items():
        if not measure.pooled:
            continue
        shares = {title: [_shares(record, name) for record in group] for title, group in rows.items()}
        without = doubtful(each for group in shares.values() for each in group if each)
        for title, group in found.items():
            found[title] = tuple(_again(r, name, own, without) for r, own in zip(group, shares[title], strict=True))
        notes += [_note(measure, task, shares) for task in without]
    return found, tuple(notes)


def _again(record: Record, name: str, shares: Shares | None, without: Sequence[str]) -> Record:
    """A record with this measure pooled over the tasks that count."""
    if record.summary.get(name) is None and not shares:
        return record
    value = pool(shares, without) if shares else None
    reasons = {key: reason for key, reason in record.reasons.items() if key != name}
    if reason := getattr(value, "reason", "" if shares else OLD):
        reasons[name] = reason
    known = None if value is None or value != value else float(value)
    return replace(record, summary={**record.summary, name: known}, reasons=reasons)


def _shares(record: Record, name: str) -> Shares | None:
    """The contribution of each task to a measure of a record; None if neither record nor scores determine it."""
    if record.shares:
        kept = record.shares.get(name)
        return None if kept is None else {task: Share(**share) for task, share in kept.items()}
    protocol = registry.part(record.config["benchmark"]["name"], "protocol")
    if record.config.get("stages") is not None or protocol is None:
        return None
    found: Mapping[str, Shares] = protocol.shares(record.scores, {})
    return found.get(name)


def _note(measure: Measure, task: str, shares: Mapping[str, Sequence[Shares | None]]) -> str:
    """The rows because of which a task is left out."""
    who = []
    for title, group in shares.items():
        there = [each[task] for each in group if each and task in each]
        bad = sum(bool(share.doubt) for share in there)
        if bad:
            who.append(title if bad == len(there) else f"{title} ({bad} of {len(there)} seeds)")
    return f"{measure.title} leaves {task} out: {measure.pooled} is not clearly above chance with {', '.join(who)}."
