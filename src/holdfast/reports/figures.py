"""The figures of a store for a paper: each as PDF and SVG in two widths, with its caption as text and as LaTeX."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from holdfast.errors import UserError
from holdfast.experiments.store import Record
from holdfast.reports import charts, overview
from holdfast.reports.blocks import Block, Heatmap, spread_of
from holdfast.reports.drawing import WIDTHS, Drawn, banded, draw, drawable
from holdfast.reports.formats import latex
from holdfast.reports.groups import Experiment, baselines, experiments
from holdfast.reports.latex import escape_latex, slug
from holdfast.reports.runs import Runs, on_world
from holdfast.reports.sections import section, stands_alone
from holdfast.reports.significance import LEAST
from holdfast.version import __version__

LONGEST = 80
"""The maximum number of letters of a folder's or file's name."""


def write(runs: Runs, out: Path, command: str) -> list[Path]:
    """Write every figure into a folder of its experiment or benchmark; return the files without their endings."""
    if out.is_file():
        raise UserError(f"{out} is a file, and figures go into a folder: give another name with --out")
    written: list[Path] = []
    for place, records, blocks in _groups(runs):
        folder, found = out / name_of(place), [block for block in blocks if drawable(block)]
        for block in found:
            assert isinstance(block, Drawn)
            folder.mkdir(parents=True, exist_ok=True)
            path = _new(folder / name_of(block.title), written)
            for columns in WIDTHS:
                draw(block, path.with_name(f"{path.name}-{columns}"), columns)
            words = caption(block, place, records)
            path.with_name(f"{path.name}.txt").write_text(f"{words}\n\nMade by: {command}\n", encoding="utf-8")
            path.with_name(f"{path.name}.tex").write_text(_environment(path, words, command), encoding="utf-8")
            written.append(path)
    for experiment in experiments(runs.records):
        if (folder := out / name_of(experiment.title)).is_dir():
            table = latex(overview.comparison(experiment), command)
            (folder / "measures.tex").write_text(table, encoding="utf-8")
    if not written:
        raise UserError(
            f"{runs.path} has no finished run with a figure: figures need runs of two stages or more, or two algorithms"
        )
    return written


def _groups(runs: Runs) -> Iterator[tuple[str, Sequence[Record], Sequence[Block]]]:
    """The blocks of each experiment, and of each family's own section, with the records behind them."""
    found = experiments(runs.records)
    needed = {each.key for each in baselines(found)}
    for each in (each for each in found if stands_alone(each.benchmark) and each.key not in needed):
        yield each.title, each.records, charts_of(each)
    for family in dict.fromkeys(each.benchmark.partition(":")[0] for each in found):
        own = [r for each in found if each.benchmark.partition(":")[0] == family for r in each.records]
        yield family, own, section(family, own)


def charts_of(experiment: Experiment) -> list[Block]:
    """The charts that the report has of an experiment, the one at its top first."""
    first = charts.picture(experiment)
    found: list[Block] = [] if first is None else [first]
    rest: list[Block] = [
        *overview.over_stages(experiment),
        *charts.distributions(experiment),
        *overview.cost_plots(experiment),
    ]
    found += [block for block in rest if block != first]
    rows = list(experiment.rows.items())[: overview.HEATMAPS]
    maps = [overview.heatmap(group, f"Scores after each stage: {title}") for title, group in rows]
    found += [block for block in maps if block is not None and len(block.rows) > 1]
    return found


def caption(block: Drawn, place: str, records: Sequence[Record]) -> str:
    """The caption's facts: what is drawn, over which seeds, with which intervals, and on what data."""
    sentences = [f"{block.title.rstrip('.')} ({place})."]
    seeds: dict[str, set[int]] = {}
    for record in records:
        seeds.setdefault(record.algorithm, set()).add(record.config["seed"])
    counts, every = sorted({len(each) for each in seeds.values()}), sorted({s for each in seeds.values() for s in each})
    if counts[-1] == 1:
        sentences.append("One seed, so without intervals.")
    else:
        count = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        numbers = f"{every[0]} to {every[-1]}" if every == list(range(every[0], every[-1] + 1)) else _list(every)
        sentences.append(f"Means over {count} seeds ({numbers}).")
        sentences += _intervals(block)
    return " ".join([*sentences, data_of(records), *block.notes, f"Made with Holdfast {__version__}."])


def _intervals(block: Drawn) -> list[str]:
    """What the intervals of a figure are, or what it takes to have some; nothing if its notes say it."""
    if isinstance(block, Heatmap) or any("interval" in note for note in block.notes):
        return []
    return [spread_of(block, banded(block)) or f"Intervals need {LEAST} seeds."]


def data_of(records: Sequence[Record]) -> str:
    """Whether the data is synthetic, as a sentence."""
    kinds = {on_world(record.environment) for record in records}
    if {record.config["benchmark"]["name"] for record in records} == {"patterns"}:
        return "Data: generated patterns."
    if kinds == {True}:
        return "Data: synthetic, drawn by Holdfast; this does not reproduce published results."
    given = sorted({str(r.config.get("data"))[:8] for r in records if not on_world(r.environment)})
    real = f"given with --data (fingerprint{'s' * (len(given) > 1)} {_list(given)})"
    return f"Data: {real}." if kinds == {False} else f"Data: {real}, and synthetic data drawn by Holdfast."


def name_of(title: str) -> str:
    """A file's or folder's name.

    >>> name_of("patterns · small")
    'patterns-small'
    >>> len(name_of("a" * 300))
    80
    """
    plain = slug(title) or "figure"
    mark = hashlib.blake2b(title.encode(), digest_size=3).hexdigest()
    return plain if len(plain) <= LONGEST else f"{plain[: LONGEST - len(mark) - 1]}-{mark}"


def _new(path: Path, taken: Sequence[Path]) -> Path:
    number, found = 1, path
    while found in taken:
        number += 1
        found = path.with_name(f"{path.name}-{number}")
    return found


def _list(values: Sequence[object], most: int = 6) -> str:
    return ", ".join(map(str, values[:most])) + (" and others" if len(values) > most else "")


def _environment(path: Path, words: str, command: str) -> str:
    """The figure's environment, for a column and, commented out, for a page."""
    name, label = f"{path.parent.name}/{path.name}", f"fig:{path.parent.name}-{path.name}"
    return "\n".join(
        [
            f"% {' '.join(command.split())}",
            f"% Over two columns: figure* and {name}-double.pdf.",
            r"\begin{figure}",
            r"  \centering",
            rf"  \includegraphics[width=\linewidth]{{{name}-single.pdf}}",
            rf"  \caption{{{escape_latex(words)}}}",
            rf"  \label{{{label}}}",
            r"\end{figure}",
            "",
        ]
    )
