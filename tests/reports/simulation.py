"""Simulated stores: algorithms that are equal, and one that is far better, in tables with marks."""

import re
from collections.abc import Iterator

import numpy as np

from holdfast.experiments.store import Record
from holdfast.reports import overview
from holdfast.reports.groups import experiments
from holdfast.reports.sentences import conclude
from holdfast.reports.significance import leaders
from reports.stores import ALGORITHMS, record

STORES = 2000
FAR = 15.0
"""A large true difference, in standard deviations over seeds."""
COUNTS = [(rows, seeds) for rows in (2, 3, 5, 8) for seeds in (3, 5, 10)]
KINDS = ("normal", "heavy tails", "unequal variances", "80 examples", "two at the top")


def draw(kind: str, rows: int, seeds: int, stores: int = STORES, far: float = 0.0) -> np.ndarray:
    """Scores by store, row and seed. The rows have equal means, but for the first one where it is `far` above."""
    random = np.random.default_rng([rows, seeds, *kind.encode()])
    shape = (stores, rows, seeds)
    noise = random.standard_t(3, shape) if kind == "heavy tails" else random.standard_normal(shape)
    if kind == "unequal variances":
        noise *= np.geomspace(1, 10, rows)[:, None]
    if kind == "lopsided":  # one row is now and then far better, and its rivals hardly vary
        noise[:, 0] = 20 * (random.exponential(1, (stores, seeds)) - 1)
    if kind == "80 examples":
        return random.binomial(80, 0.9, shape) / 80
    values = noise + 2 * random.standard_normal((stores, 1, seeds))  # what a seed does to every row
    values[:, 0] += far
    if kind == "two at the top":
        values[:, 2:] -= 100
    return values / 100 + 0.5


def winners(values: np.ndarray) -> Iterator[frozenset[str]]:
    """The marked rows of each store, as the deciding function says."""
    for store in values.tolist():
        yield leaders({str(n): dict(enumerate(row)) for n, row in enumerate(store)}, higher=True).names


def tables(values: np.ndarray) -> Iterator[frozenset[str]]:
    """The same from the table that a page and `holdfast compare` show, from records."""
    names = [name for name in ALGORITHMS if name != "joint"]
    made = [
        Record.from_json(record(algorithm=names[row], seed=seed, stages=1), "")
        for row in range(values.shape[1])
        for seed in range(values.shape[2])
    ]
    for store in values.reshape(len(values), -1).tolist():
        for each, value in zip(made, store, strict=True):
            each.summary.clear()
            each.summary["final_accuracy"] = value
        (found,) = experiments(made)
        table = overview.comparison(found)
        yield frozenset(str(names.index(row[0].text)) for row in table.rows if row[1].best)


def single(found: Iterator[frozenset[str]], of: str = "") -> float:
    """The share of stores with a single winner, in percent; with `of`, with that row as the only winner."""
    each_store = list(found)
    return 100 * sum(len(names) == 1 and (not of or of in names) for names in each_store) / len(each_store)


def false_claims(values: np.ndarray, forgetting: np.ndarray, names: list[str], equal: int) -> float:
    """The share of stores whose first sentence claims a difference between two of the first `equal` rows, in percent.

    Rows and seeds are as in `draw`; the rows with numbers from `equal` on truly differ from those before.
    """
    made = [
        Record.from_json(record(algorithm=names[row], seed=seed, stages=1), "")
        for row in range(values.shape[1])
        for seed in range(values.shape[2])
    ]
    wrong, (table,) = 0, experiments(made)
    flat = (each.reshape(len(each), -1).tolist() for each in (values, forgetting))
    for scores, lost in zip(*flat, strict=True):
        for each, score, loss in zip(made, scores, lost, strict=True):
            each.summary.clear()
            each.summary.update(final_accuracy=score, forgetting=loss)
        found, alike = conclude(table.rows), set(names[:equal])
        wrong += any({claim.test.first, claim.test.second} <= alike for claim in found.claims)
        assert found.claims or not re.search(r"less|lower|higher|(points|forgets?) more", found.text), found.text
    return 100 * wrong / len(values)


def sentences(kind: str, rows: int, seeds: int, stores: int, plain: bool = True) -> float:
    """The rate of false claims in simulated stores, with plain fine-tuning among the rows or without it."""
    names = [name for name in ALGORITHMS if name != "joint"][not plain :]
    both = draw(kind, rows, seeds, 2 * stores)
    return false_claims(both[:stores], 1 - both[stores:], names, 2 if kind == "two at the top" else rows)
