"""Reads what a store, and what the commands print, hold: with json and numpy alone, and nothing of Holdfast.

What these tests compute shares no code with the package. They take a run's score log, its stored predictions and the
raw files of the dataset, follow the papers' definitions, and compare with the record, with `holdfast compare` and with
the page of the report.
"""

import csv
import io
import json
import math
import re
from dataclasses import dataclass
from html.parser import HTMLParser

import numpy as np

T = {1: 12.706204736432095, 2: 4.302652729911275, 3: 3.182446305284263}
"""The 97.5 % quantiles of Student's t by its degrees of freedom, as tables print them."""


@dataclass(frozen=True)
class Run:
    """One run's folder, as plain values."""

    path: object
    config: dict
    log: list
    record: dict

    @property
    def algorithm(self):
        return "+".join([*self.config["transforms"], *(a["name"] for a in self.config["algorithms"])]) or "finetune"

    @property
    def seed(self):
        return self.config["seed"]

    @property
    def summary(self):
        return self.record["summary"]

    def names(self, split="test"):
        return list(dict.fromkeys(line["name"] for line in self.log if line["split"] == split))

    def score(self, stage, name, split="test"):
        """The score at the end of a stage: its first, for what is scored later is scored within the next stage."""
        found = [line for line in self.log if (line["stage"], line["name"], line["split"]) == (stage, name, split)]
        return min(found, key=lambda line: line["step"])["score"]

    def count(self, name, split="test"):
        (count,) = {line["count"] for line in self.log if (line["name"], line["split"]) == (name, split)}
        return count

    def predictions(self):
        """Each line of the log that has predictions, with them."""
        for line in self.log:
            name = f"{line['stage']:03d}-{line['step']:010d}-{line['split']}-{line['name']}.npy"
            if (self.path / "predictions" / name).is_file():
                yield line, np.load(self.path / "predictions" / name)


def runs(store):
    """All runs of a store."""
    return [
        Run(
            path,
            json.loads((path / "config.json").read_text()),
            [json.loads(line) for line in (path / "scores.jsonl").read_text().splitlines()],
            json.loads((path / "record.json").read_text()),
        )
        for path in sorted(file.parent for file in store.glob("*/record.json"))
    ]


def same(found, expected):
    """Whether two numbers are the same but for rounding in the last bits; None is a measure without a value."""
    if found is None or expected is None:
        return found is expected
    return math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-9)


def check_summary(run, expected):
    """The measures of a record are these, and no others."""
    assert set(run.summary) == set(expected)
    for name, value in expected.items():
        assert same(run.summary[name], value), (run.algorithm, name)


def mean_and_interval(values):
    """The mean of several runs, and half the width of its 95 % interval by Student's t; one run has none."""
    count = len(values)
    mean = sum(values) / count
    if count == 1:
        return mean, None
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (count - 1))
    return mean, T[count - 1] * deviation / math.sqrt(count)


def p_value(values):
    """Student's paired test, two-sided, by adding up the density of t in small steps."""
    count = len(values)
    mean, half = mean_and_interval(values)
    t = abs(mean) / (half / T[count - 1])
    freedom = count - 1
    # With x = tan(angle) sqrt(n), the density of t is cos(angle) to the power n - 1, up to a constant.
    angles = (np.arange(200_000) + 0.5) * (math.pi / 2) / 200_000
    density = np.cos(angles) ** (freedom - 1)
    return float(density[angles > math.atan(t / math.sqrt(freedom))].sum() / density.sum())


def holm(p_values):
    """Holm's correction: the smallest of m p-values counts m times, the next m - 1 times, and none less than before."""
    corrected, worst = {}, 0.0
    for rank, key in enumerate(sorted(p_values, key=p_values.get)):
        worst = max(worst, min(1.0, (len(p_values) - rank) * p_values[key]))
        corrected[key] = worst
    return corrected


def rounds_to(text, value, decimals):
    """Whether a printed number is this value, rounded."""
    digits = text.replace(",", "").replace("−", "-")
    places = len(digits.partition(".")[2])
    return places == decimals and abs(float(digits) - value) <= 0.5 * 10**-decimals + 1e-9


def cell_shows(text, mean, half, decimals):
    """Whether a printed cell shows a mean with its interval, or a dash if there is none."""
    if mean is None:
        return text.startswith("–")
    found = re.match(r"([-−\d.,]+)(?: ±([\d.,]+))?", text)
    if not found or not rounds_to(found[1], mean, decimals):
        return False
    return (found[2] is None) == (half is None) and (half is None or rounds_to(found[2], half, decimals))


def check_row(table, title, expected, printed=None, decimals=1):
    """One row of a table of `holdfast compare --json`, and of the same table as it is printed.

    `expected` has the mean and the half width of each column, both None for a dash.
    """
    (row,) = [row for row in table["rows"] if next(iter(row.values())) == title]
    assert set(expected) == set(list(row)[1:]), "every column is recomputed, and no other"
    for column, (mean, half) in expected.items():
        found = row[column]
        if not isinstance(found, dict):
            assert mean is None, (title, column, found)
            continue
        assert same(found["value"], mean), (title, column, found["value"], mean)
        assert same(found["interval"], half), (title, column, found["interval"], half)
    if printed is not None:
        (texts,) = [row for row in printed if next(iter(row.values())) == title]
        for column, (mean, half) in expected.items():
            places = decimals.get(column, 1) if isinstance(decimals, dict) else decimals
            assert cell_shows(texts[column], mean, half, places), (title, column, texts[column], mean, half)


def markdown_tables(text):
    """The tables of `holdfast compare --format markdown` by their titles: rows of texts by column."""
    found, title, heads = {}, "", None
    for line in text.splitlines():
        plain = re.sub(r"\\(.)", r"\1", line)
        if plain.startswith("### "):
            title, heads = plain[4:], None
            found[title] = []
        elif plain.startswith("| ") and not plain.startswith("| ---"):
            cells = [cell.strip().replace("**", "").rstrip("*") for cell in plain.strip("|").split("|")]
            if heads is None:
                heads = [cell.rstrip(" ↑↓") for cell in cells]
            else:
                found[title].append(dict(zip(heads, cells, strict=True)))
    return found


def csv_tables(text):
    """The tables of `holdfast compare --format csv` by their titles: rows by column."""
    found, heads = {}, None
    for row in csv.reader(io.StringIO(text)):
        if not row or row[0] == "table":
            heads = row
        else:
            found.setdefault(row[0], []).append(dict(zip(heads[1:], row[1:], strict=False)))
    return found


class _Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tables, self._cell = [], None

    def handle_starttag(self, tag, attributes):
        if tag == "table":
            self.tables.append([])
        elif tag == "tr" and self.tables:
            self.tables[-1].append([])
        elif tag in ("td", "th") and self.tables:
            self._cell = []

    def handle_endtag(self, tag):
        if tag in ("td", "th") and self._cell is not None:
            self.tables[-1][-1].append(" ".join("".join(self._cell).split()))
            self._cell = None

    def handle_data(self, data):
        if self._cell is not None:
            self._cell.append(data)


def page_tables(text):
    """The tables of a page as rows of texts."""
    page = _Page()
    page.feed(text)
    return page.tables
