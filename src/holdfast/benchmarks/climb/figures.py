"""CLiMB's Figures 3 to 6 and 8 to 10 from our runs; dashed lines show the values printed in the paper's tables.

A band is the 95 % t-interval of a mean of at least three runs. A change from a baseline that is not clearly above
chance is not drawn, and a note says so.

| figure | content                                                              |
|--------|----------------------------------------------------------------------|
| 3      | forgetting under each algorithm; transfer and forgetting by order    |
| 4      | low-shot transfer to the upstream tasks still to come                |
| 5, 9   | low-shot transfer to vision tasks                                    |
| 6, 8   | accuracy on low-shot language tasks, ViLT and VAuLT                  |
| 10     | forgetting with UNITER                                               |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from holdfast import metrics
from holdfast.benchmarks.climb import paper, protocol
from holdfast.benchmarks.climb.runs import (
    DRAWN,
    ROWS,
    LowShotRecord,
    RunsAtScale,
    Upstream,
    low_shot_interval,
    low_shot_transfer,
    mean_and_interval,
)
from holdfast.benchmarks.climb.tables import SMALLER, WORLD
from holdfast.benchmarks.climb.transfer import final
from holdfast.errors import UserError, missing_extra
from holdfast.papers import table

TITLES = {
    "vqav2": "VQAv2",
    "nlvr2": "NLVR2",
    "snli-ve": "SNLI-VE",
    "vcr": "VCR",
    "imdb": "IMDb",
    "sst-2": "SST-2",
    "hellaswag": "HellaSwag",
    "commonsenseqa": "CommonsenseQA",
    "piqa": "PIQA",
    "imagenet": "ImageNet",
    "inaturalist2019": "iNaturalist 2019",
    "places365": "Places365",
    "coco": "COCO",
}
COLOURS = ("#4477aa", "#999999", "#228833", "#ee6677", "#ccaa22", "#aa3377", "#66ccee", "#222222")
"""One for each algorithm, in the order of the paper's tables; distinguishable with colour blindness."""
STANDARD = paper.ORDERS[0].split(">")
Spread: TypeAlias = tuple[float | None, float | None]
"""A mean, and the half-width of its interval."""


@dataclass(frozen=True)
class PlotLine:
    """A line of a panel: an optional value at each place, perhaps with a band; dashed for the paper's values."""

    name: str
    colour: str
    values: tuple[float | None, ...]
    band: tuple[float | None, ...] = ()
    """The half-width of each value's interval."""
    printed: bool = False
    marker: str = "o"


@dataclass(frozen=True)
class Panel:
    """One plot: its title, the names of the places on its axis, and its lines."""

    title: str
    places: tuple[str, ...]
    lines: list[PlotLine] = field(default_factory=list)
    unit: str = ""
    axis: str = "upstream tasks so far"
    doubtful: list[str] = field(default_factory=list)
    """Our lines, or places on them, that are left out because the baseline is not clearly above chance."""

    @property
    def drawn(self) -> bool:
        """Whether it contains a line of ours."""
        return any(not line.printed for line in self.lines)


def draw(runs: RunsAtScale, out: Path) -> list[Path]:
    """Write every figure for which there are runs; return the files."""
    try:
        import matplotlib.figure  # type: ignore[import-not-found, unused-ignore]  # noqa: F401
    except ImportError:
        raise missing_extra("the pictures need matplotlib", "pictures") from None
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for number, make in FIGURES.items():
        panels = make(runs)
        if any(panel.drawn or panel.doubtful for panel in panels):
            written.append(_write(panels, out / f"figure-{number}.png", runs))
    if not written:
        raise UserError("none of these runs belongs to a figure: make such runs with `holdfast run climb`")
    return written


def forgetting(model: str) -> Callable[[RunsAtScale], list[Panel]]:
    """How much each algorithm forgets of each task but the last, after each later one."""

    def make(runs: RunsAtScale) -> list[Panel]:
        panels = []
        for at, task in enumerate(STANDARD[:-1]):
            later = STANDARD[at + 1 :]
            panel = Panel(f"Forgetting of {TITLES[task]}", _after(later), unit="T_F (%)")
            for algorithm, found in runs.by_algorithm(model, paper.ORDERS[0]).items():
                own = [_forgotten(found, task, after) for after in later]
                theirs = _printed("8", "forgetting", later, algorithm=algorithm, task=task) if model == "vilt" else []
                _add(panel, algorithm, own, theirs)
            panels.append(panel)
        return panels

    return make


def orders(runs: RunsAtScale) -> list[Panel]:
    """Knowledge transfer at each position of the paper's orders, and how much of the first task is forgotten."""
    axis = "place in the order"
    gained = Panel("Knowledge transfer", tuple(f"task {n}" for n in range(1, 5)), unit="T_UK (%)", axis=axis)
    lost = Panel("Forgetting of task 1", tuple(f"after task {n}" for n in range(2, 5)), unit="T_F (%)", axis=axis)
    for number, order in enumerate(paper.ORDERS):
        names, colour = order.split(">"), COLOURS[number]
        found = runs.by_algorithm("vilt", order)["seqft"]
        transfers = [protocol.transfers(run.scores, runs.direct(run)) for run in found]
        own = [_all([each[name] for each in transfers]) for name in names]
        _add(gained, " > ".join(TITLES[name] for name in names), own, _transfer_by_order(order), colour)
        own = [_forgotten(found, names[0], after) for after in names[1:]]
        theirs = _printed("9b", "forgetting", names[1:], order=order, task=names[0])
        _add(lost, " > ".join(TITLES[name] for name in names), own, theirs, colour)
    return [gained, lost]


def later(runs: RunsAtScale) -> list[Panel]:
    """Low-shot transfer to each upstream task, after each stage before it."""
    panels = []
    for at, task in enumerate(STANDARD[1:], 1):
        panel = Panel(f"Low-shot {TITLES[task]}", _after(STANDARD[:at]), unit="T_LS (%)")
        for algorithm, found in runs.by_algorithm("vilt", paper.ORDERS[0]).items():
            own = [_transferred(runs, found, stage, task) for stage in range(1, at + 1)]
            theirs = _printed("10", "transfer", STANDARD[:at], algorithm=algorithm, task=task, data="low-shot")
            _add(panel, algorithm, own, theirs)
        panels.append(panel)
    return panels


def vision(*tasks: str) -> Callable[[RunsAtScale], list[Panel]]:
    """Low-shot transfer to vision tasks after each stage."""

    def make(runs: RunsAtScale) -> list[Panel]:
        panels = []
        for task in tasks:
            panel = Panel(f"Low-shot {TITLES[task]}", _after(STANDARD), unit="T_LS (%)")
            for algorithm, found in runs.by_algorithm("vilt", paper.ORDERS[0]).items():
                own = [_transferred(runs, found, stage, task) for stage in range(1, 5)]
                _add(panel, algorithm, own, _vision_transfers(task, algorithm))
            panels.append(panel)
        return panels

    return make


def language(*tasks: str) -> Callable[[RunsAtScale], list[Panel]]:
    """Accuracy on low-shot language tasks, before the first stage and after each, with ViLT and with VAuLT."""

    def make(runs: RunsAtScale) -> list[Panel]:
        panels = []
        for task in tasks:
            panel = Panel(f"Low-shot {TITLES[task]}", ("none", *_after(STANDARD)), unit="accuracy (%)")
            for model, marker in (("vilt", "o"), ("vault", "s")):
                direct = [100 * final(r.scores) for r in _largest(runs.pretrained(model, task))]
                for algorithm, found in runs.by_algorithm(model, paper.ORDERS[0]).items():
                    before = _largest(runs.before(found, task))
                    after = [_few(runs, found, n, task) for n in range(1, 5)]
                    groups = [[100 * final(r.scores) for r in each] for each in (before, *after)]
                    if not any(groups[1:]):
                        continue
                    own, band = zip(*map(mean_and_interval, groups), strict=True)
                    name = f"{algorithm}, {'ViLT' if model == 'vilt' else 'VAuLT'}"
                    panel.lines.append(PlotLine(name, _colour(algorithm), own, band, marker=marker))
                if direct and not any(line.marker == marker for line in panel.lines):
                    name = f"pre-trained {'ViLT' if model == 'vilt' else 'VAuLT'}"
                    panel.lines.append(PlotLine(name, "#222222", (metrics.mean(direct), *[None] * 4), marker=marker))
            for algorithm in ROWS:
                theirs = _language_scores(task, algorithm)
                if any(line.name.startswith(f"{algorithm}, ViLT") for line in panel.lines) and any(theirs):
                    panel.lines.append(PlotLine(f"{algorithm}, ViLT", _colour(algorithm), tuple(theirs), printed=True))
            panels.append(panel)
        return panels

    return make


FIGURES: dict[str, Callable[[RunsAtScale], list[Panel]]] = {
    "3a": forgetting("vilt"),
    "3b": orders,
    "4": later,
    "5": vision("imagenet", "coco"),
    "6": language("sst-2", "commonsenseqa"),
    "8": language("imdb", "hellaswag", "piqa"),
    "9": vision("places365", "inaturalist2019"),
    "10": forgetting("uniter"),
}


# Values


def _forgotten(found: Sequence[Upstream], task: str, after: str) -> Spread:
    lost = [protocol.forgettings(run.scores) for run in found]
    return _all([each[task, after] for each in lost if each])


def _transferred(runs: RunsAtScale, found: Sequence[Upstream], stage: int, task: str) -> Spread:
    after = _few(runs, found, stage, task)
    direct = _largest(runs.before(found, task))
    if not after or not direct:
        return None, None
    return low_shot_transfer(after, direct), low_shot_interval(after, direct) if len(after) >= DRAWN else None


def _few(runs: RunsAtScale, found: Sequence[Upstream], stage: int, task: str) -> list[LowShotRecord]:
    return _largest([r for run in found for r in runs.after(run, stage) if r.task == task])


def _largest(found: Sequence[LowShotRecord]) -> list[LowShotRecord]:
    """The runs with the most shots, if there are several levels."""
    most = max((float(each.shots.rstrip("%")) for each in found), default=0.0)
    return [each for each in found if float(each.shots.rstrip("%")) == most]


def _printed(number: str, column: str, places: Iterable[str], **keys: str) -> list[float | None]:
    found = {str(row["after"]): row[column] for row in table("climb", number).select(**keys)}
    return [_number(found.get(place)) for place in places]


def _transfer_by_order(order: str) -> list[float | None]:
    found = {str(row["task"]): row["transfer"] for row in table("climb", "9a").select(order=order)}
    return [_number(found.get(name)) for name in order.split(">")]


def _vision_transfers(task: str, algorithm: str) -> list[float | None]:
    """The paper's low-shot transfers, from the scores of Table 11 with the most shots."""
    chance = 0.0 if task == "coco" else 100 / {"imagenet": 1000, "inaturalist2019": 1010, "places365": 365}[task]
    direct, *after = _low_shot_scores("11", task, algorithm, "10%" if task == "coco" else "32")
    if direct is None:
        return [None] * len(after)
    return [None if s is None else metrics.low_shot_transfer(s, direct, chance) for s in after]


def _language_scores(task: str, algorithm: str) -> list[float | None]:
    return _low_shot_scores("12", task, algorithm, "32" if task in ("imdb", "sst-2") else "4096")


def _low_shot_scores(number: str, task: str, algorithm: str, shots: str) -> list[float | None]:
    """Direct, then after each stage; for most algorithms the first stage is listed under "single-task"."""
    source = table("climb", number).select(task=task, shots=shots)
    found = {(str(row["algorithm"]), str(row["after"])): _number(row["score"]) for row in source}
    after = [found.get((algorithm, name)) for name in STANDARD]
    if any(value is not None for value in after):
        after[0] = after[0] if after[0] is not None else found.get(("single-task", STANDARD[0]))
    return [found.get(("direct", "None")), *after] if any(value is not None for value in after) else [None] * 5


def _number(cell: object) -> float | None:
    return float(cell) if isinstance(cell, int | float) else None


def _all(values: Sequence[float]) -> Spread:
    """The mean of the runs with its interval; not a number if the value of any run is not."""
    if (unknown := next((value for value in values if value != value), None)) is not None:
        return unknown, None
    return mean_and_interval(values)


# Drawing


def _after(tasks: Iterable[str]) -> tuple[str, ...]:
    return tuple(TITLES[task] for task in tasks)


def _colour(algorithm: str) -> str:
    return COLOURS[ROWS.index(algorithm)] if algorithm in ROWS else COLOURS[-1]


def _add(panel: Panel, name: str, found: Sequence[Spread], theirs: Sequence[float | None], colour: str = "") -> None:
    """Our line, and the paper's beside it; values that are not numbers are left out, with a note."""
    colour = colour or _colour(name)
    own, band = zip(*found, strict=True)
    if all(value is None for value in own):
        return  # it was not run
    known = [None if value is None or value != value else value for value in own]
    unknown = [place for place, value in zip(panel.places, own, strict=True) if value is not None and value != value]
    if any(value is not None for value in known):
        panel.lines.append(PlotLine(name, colour, tuple(known), band))
        panel.doubtful.extend(place for place in unknown if place not in panel.doubtful)
    else:
        panel.doubtful.append(name)
    if any(value is not None for value in theirs):
        panel.lines.append(PlotLine(name, colour, tuple(theirs), printed=True))


def _write(panels: Sequence[Panel], path: Path, runs: RunsAtScale) -> Path:
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    figure = Figure(figsize=(3.4 * len(panels) + 2.4, 3.6), layout="constrained")
    named: dict[str, Any] = {}
    for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        for line in panel.lines:
            at = range(len(line.values))
            values = [math.nan if value is None else value for value in line.values]  # a gap for a missing value
            look: dict[str, Any] = (
                {"linestyle": "--", "linewidth": 1, "alpha": 0.6} if line.printed else {"linewidth": 2}
            )
            (drawn,) = axes.plot(at, values, color=line.colour, marker=line.marker, markersize=4, **look)
            if not line.printed or line.name not in named:
                named[line.name] = drawn
            if any(line.band):
                band = [math.nan if width is None else width for width in line.band]
                axes.errorbar(at, values, band, color=line.colour, alpha=0.6, linestyle="none", capsize=2, linewidth=1)
                low, high = ([v + s * b for v, b in zip(values, band, strict=True)] for s in (-1, 1))
                axes.fill_between(at, low, high, color=line.colour, alpha=0.1, linewidth=0)
        if panel.doubtful:
            note = f"{'some' if panel.drawn else 'all'} of our values omitted: the baseline is not clearly above chance"
            axes.text(0.5, 1.02, note, transform=axes.transAxes, fontsize=6, color="#555555", ha="center")
        axes.set_title(panel.title, fontsize=10, pad=14 if panel.doubtful else None)
        axes.set_ylabel(panel.unit)
        axes.set_xticks(range(len(panel.places)), panel.places, fontsize=8)
        axes.set_xlim(-0.3, len(panel.places) - 0.7)
        axes.spines[["top", "right"]].set_visible(False)
        if panel.unit.startswith("T_"):
            axes.axhline(0, color="#888888", linewidth=0.8, zorder=0)
    if any(line.printed for panel in panels for line in panel.lines):
        named["the paper"] = Line2D([], [], color="#555555", linestyle="--", linewidth=1)
    if any(any(line.band) for panel in panels for line in panel.lines):
        named["95 % interval"] = Line2D([], [], color="#555555", marker="|", linestyle="none")
    figure.legend(named.values(), named.keys(), loc="outside right center", frameon=False, fontsize=8)
    caution = WORLD if runs.world else SMALLER if runs.scale != "paper" else ""
    figure.supxlabel("\n".join([panels[0].axis, *([caution] if caution else [])]), fontsize=8)
    figure.savefig(path, dpi=150)
    return path
