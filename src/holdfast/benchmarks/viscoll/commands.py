"""`holdfast viscoll`: the paper's figures, from our streams and runs."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.options import Device, Json, Out, Picture, SkipBad
from holdfast.errors import UserError, missing_extra, nearest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from holdfast.benchmarks.base import Setup
    from holdfast.experiments.store import Record

Runs = Annotated[list[str], typer.Argument(metavar="RUN", help="The ids of runs, or their first characters.")]
InPlace = Annotated[bool, typer.Option("--json", help="Print JSON instead of drawing.")]
BINS = 200
SHADE = "0.75"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help="Draw streams and runs as in the VisCOLL paper.", no_args_is_help=True)
    group.command()(density)
    group.command()(time)
    group.command()(compositions)
    group.command()(agreement)
    group.command()(export)
    app.add_typer(group, name="viscoll")


def register_bench(group: typer.Typer) -> None:
    """Add the benchmarks of speed to `holdfast bench`."""
    group.command("viscoll")(passes)


def density(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="coco or flickr.")] = "coco",
    scale: Annotated[str, typer.Option(metavar="SCALE", help="tiny, small, large or paper.")] = "small",
    order: Annotated[str, typer.Option(metavar="ORDER", help="random, ascending or descending.")] = "random",
    data: Annotated[
        str, typer.Option(metavar="DIR", help="The folder of official files. Default: synthetic data.")
    ] = "",
    tasks: Annotated[int, typer.Option(metavar="N", min=1, help="Draw the N tasks with most phrases.")] = 50,
    skip_bad: SkipBad = 0,
    picture: Picture = Path("density.png"),
    as_json: InPlace = False,
) -> None:
    """Draw how likely each task is over time (Figure 4)."""
    from holdfast.cli.screen import print_json

    names, shares = _density({"name": _benchmark(dataset), "scale": scale, "order": order}, data, skip_bad)
    most = sorted(range(len(names)), key=lambda task: -shares[task].sum())[:tasks]
    if as_json:
        print_json({names[task]: shares[task].round(5).tolist() for task in most})
        return
    figure, axes = _figure(7.5, 3.2)
    along = [100 * (bin + 0.5) / BINS for bin in range(BINS)]
    for task in most:
        axes.plot(along, shares[task], linewidth=1)
    axes.set(xlabel="% of the stream", ylabel="probability", xlim=(0, 100), ylim=(0, None))
    axes.set_title(f"{len(most)} of {len(names)} tasks, {order} order")
    _save(figure, picture, f"{len(most)} tasks")


def show(name: str, folder: Path | None, picture: Path) -> None:
    """Draw the density of a stream, for `holdfast data show`."""
    density(name.partition(":")[2] or "coco", data=str(folder or ""), picture=picture)


def time(
    runs: Runs,
    out: Out = Path("runs"),
    task: Annotated[
        str, typer.Option(metavar="TASKS", help="Comma-separated tasks: a panel each, over its density.")
    ] = "",
    word: Annotated[
        str, typer.Option(metavar="PHRASES", help="Comma-separated compositions, as in 'black dog,big dog'.")
    ] = "",
    data: Annotated[str, typer.Option(metavar="DIR", help="The folder of official files, if the runs had one.")] = "",
    features: Annotated[
        str, typer.Option(metavar="DIR", help="The folder of region features, if the runs had one.")
    ] = "",
    vocabulary: Annotated[str, typer.Option(metavar="FILE", help="The file of word pieces, if the runs had one.")] = "",
    skip_bad: SkipBad = 0,
    picture: Picture = Path("time.png"),
    as_json: InPlace = False,
) -> None:
    """Draw the log-perplexity of runs over time.

    Without options, of all phrases (Figure 9); with --task, of tasks (Figure 7); with --word, of the first words of
    compositions (Figure 8).
    """
    from holdfast.benchmarks.viscoll.analysis import mean_over_time
    from holdfast.cli.screen import print_json

    if task and word:
        raise UserError("--task and --word draw different figures: use one of them")
    asked = [name.strip() for name in (task or word).split(",") if name.strip()]
    kind: Any = "task" if task else "word" if word else "all"
    found: dict[str, dict[str, Any]] = {}
    rows = _rows(_records(runs, out))
    for title, group in rows.items():
        curves = {curve.name: curve for curve in mean_over_time(group, kind)}
        for name in asked or curves:
            if name not in curves:
                raise UserError(f"{name!r} was not tested: {nearest(name, curves)}")
            found.setdefault(name, {})[title] = curves[name]
    if as_json:
        print_json(
            {
                name: {title: {"steps": c.steps.tolist(), "values": c.values.tolist()} for title, c in each.items()}
                for name, each in found.items()
            }
        )
        return
    places = {"data": data, "features": features, "vocabulary": vocabulary, "skip_bad": skip_bad}
    shade = _density_of_runs(rows, places) if asked else None
    titles = list(dict.fromkeys(title for each in found.values() for title in each))
    figure, panels = _figure(max(3.6 * len(found), 5.0), 3.0 + 0.2 * len(titles), len(found))
    for axes, (name, each) in zip(panels, found.items(), strict=True):
        for title, curve in each.items():
            axes.plot(curve.steps, curve.values, f"C{titles.index(title)}.-", label=title)
        last = max(int(curve.steps[-1]) for curve in each.values())
        axes.set(title=name, xlabel="step", ylabel="log-perplexity")
        if shade is None:
            continue
        about = _task_of(name.split()[-1], shade[0]) if word else name
        if about not in shade[0]:
            axes.set(title=f"{name} (no such task)")
            typer.echo(f"the stream has no task for {name!r}: its panel has no density", err=True)
            continue
        axes.set(title=name if about in (name, name.split()[-1]) else f"{name}, over {about}")
        under = axes.twinx()
        along = [last * (bin + 0.5) / BINS for bin in range(BINS)]
        under.fill_between(along, shade[1][shade[0].index(about)], color=SHADE, alpha=0.5, linewidth=0)
        under.set(yticks=[], ylim=(0, None))
        axes.set(zorder=under.get_zorder() + 1, frame_on=False)  # draw what lies under the curves first
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower left", frameon=False)
    _save(figure, picture, f"{', '.join(found)}")


def compositions(
    runs: Runs,
    out: Out = Path("runs"),
    picture: Picture = Path("compositions.png"),
    as_json: InPlace = False,
) -> None:
    """Draw seen beside novel compositions (Figure 6).

    They are compositions of nouns with verbs and with adjectives.
    """
    from holdfast import metrics
    from holdfast.benchmarks.viscoll.analysis import compositional
    from holdfast.cli.screen import print_json

    rows = {title: [compositional(record) for record in group] for title, group in _rows(_records(runs, out)).items()}
    means = {
        title: {(b.kind, b.group): metrics.mean([each[i].value for each in group]) for i, b in enumerate(group[0])}
        for title, group in rows.items()
    }
    kinds = ("verb", "adjective")
    if without := [title for title, found in means.items() if all(math.isnan(found[k, "novel"]) for k in kinds)]:
        raise UserError(f"no compositions were held out for {', '.join(without)}: choose runs of viscoll:coco")
    if as_json:
        print_json({t: {f"{kind} {group}": float(v) for (kind, group), v in m.items()} for t, m in means.items()})
        return
    figure, panels = _figure(8.5, 1.3 + 0.42 * len(means), 2)
    for axes, kind in zip(panels, kinds, strict=True):
        for side, group in ((-0.2, "seen"), (0.2, "novel")):
            lengths = [found[kind, group] for found in means.values()]
            axes.barh([place + side for place in range(len(means))], lengths, 0.38, label=group)
        axes.set(title=f"nouns with {kind}s", xlabel="log-perplexity")
        axes.set_yticks(range(len(means)), list(means) if axes is panels[0] else [])
        axes.invert_yaxis()
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    _save(figure, picture, f"{len(means)} methods")


def export(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run that kept its predictions (--predictions).")],
    to: Annotated[Path, typer.Option(metavar="DIR", help="The folder to write to.")] = Path("predictions"),
    out: Out = Path("runs"),
    data: Annotated[str, typer.Option(metavar="DIR", help="The folder of official files, if the run had one.")] = "",
    features: Annotated[
        str, typer.Option(metavar="DIR", help="The folder of region features, if the run had one.")
    ] = "",
    vocabulary: Annotated[str, typer.Option(metavar="FILE", help="The file of word pieces, if the run had one.")] = "",
    skip_bad: SkipBad = 0,
) -> None:
    """Write the predictions of a run in the form that the authors' metric scripts read."""
    from holdfast.benchmarks.viscoll.predictions import export as write
    from holdfast.experiments.store import Store

    (record,) = _records([run], out)
    places = {"data": data, "features": features, "vocabulary": vocabulary, "skip_bad": skip_bad}
    written = write(_setup_of(record, places), Store(out).find(run).path / "predictions", to)
    typer.echo(f"{len(written)} files in {to}")


def agreement(
    data: Annotated[str, typer.Argument(metavar="DIR", help="A copy of the authors' repository.")],
    vocabulary: Annotated[str, typer.Option(metavar="FILE", help="BERT's vocab.txt. Default: look for it.")] = "",
    tagger: Annotated[str, typer.Option(metavar="NAME", help="gruut, spacy or stanza.")] = "gruut",
    synonyms: Annotated[str, typer.Option(metavar="FILE", help="Another list of words for COCO's categories.")] = "",
    as_json: InPlace = False,
) -> None:
    """Count how many of the released phrases of COCO-shift each grammar finds exactly."""
    from holdfast.benchmarks.viscoll.agreement import agreement as count
    from holdfast.benchmarks.viscoll.synonyms import FILE
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.data.text import Tokenizer, bert_vocabulary
    from holdfast.reports.tables import Grid

    words = Tokenizer.load(Path(vocabulary) if vocabulary else bert_vocabulary())
    file = Path(synonyms) if synonyms else FILE
    found = {grammar: count(data, words, tagger, file, grammar) for grammar in ("printed", "meant")}
    if as_json:
        print_json(found)
        return
    sets = list(found["printed"])
    rows = tuple(
        (grammar, *(f"{100 * same / total:.1f} % of {total:,}" for same, total in each.values()))
        for grammar, each in found.items()
    )
    print_grid(Grid("released phrases that are found exactly", ("grammar", *sets), rows, ()))


def _benchmark(dataset: str) -> str:
    from holdfast import registry

    return registry.resolve(f"viscoll:{dataset}", "benchmark", registry.BENCHMARKS)


def _density(settings: dict[str, Any], data: str, skip_bad: int) -> tuple[list[str], NDArray[np.float64]]:
    """The names of the tasks of a stream, and the share of each in equal stretches of it."""
    import numpy as np

    from holdfast import registry
    from holdfast.benchmarks.viscoll.phrases import read_phrases
    from holdfast.data.shifting import density as over_stream
    from holdfast.settings import build

    own = {name: value for name, value in settings.items() if name != "name"}
    benchmark = build(registry.BENCHMARKS[settings["name"]].load(), own | {"data": data}, "benchmark")
    phrases = read_phrases(benchmark.dataset, **benchmark.building() | {"skip_bad": skip_bad})
    about = [phrase.task for phrase in phrases if phrase.split == "train"]
    names, numbers = np.unique(np.array(about), return_inverse=True)
    return names.tolist(), over_stream(numbers[benchmark.arranged(about)], BINS, len(names))


def _density_of_runs(
    rows: Mapping[str, Sequence[Record]], places: Mapping[str, Any]
) -> tuple[list[str], NDArray[np.float64]] | None:
    """The density of the stream that all runs were trained on; None if they saw it more than once or out of order."""
    from holdfast.benchmarks.viscoll.benchmark import TasksOverTime
    from holdfast.data.shifting import density as over_stream

    (title, (run, *_)), *others = rows.items()
    for other, group in others:
        if _stream(group[0]) != _stream(run):
            raise UserError(
                f"{title!r} and {other!r} were trained on different streams, and a panel has the density of one: "
                "specify runs of one stream"
            )
    if not _stream(run):
        typer.echo(f"{title} was not trained on one pass over a stream in its order: no density is drawn", err=True)
        return None
    setup = _setup_of(run, places)
    assert isinstance(setup.finish, TasksOverTime)
    names, numbers = setup.finish.of(setup.stream.stages[0].train)
    return names, over_stream(numbers, BINS, len(names))


def _setup_of(run: Record, places: Mapping[str, Any]) -> Setup:
    """The data of a run, set up again from the folders that are given."""
    from holdfast import registry
    from holdfast.experiments.rebuilt import recipe_of
    from holdfast.settings import build

    own = {name: value for name, value in run.config["benchmark"].items() if name != "name"}
    benchmark = build(registry.BENCHMARKS[run.config["benchmark"]["name"]].load(), own | dict(places), "benchmark")
    setup: Setup = benchmark.setup(recipe_of(run).wants())
    if setup.data.fingerprint() != run.config["data"]:
        where = places["data"] or "the synthetic data"
        raise UserError(
            f"{where} is not the data of run {run.id}: specify its folder with --data, and its --features and "
            "--vocabulary if it had them"
        )
    return setup


def _stream(run: Record) -> dict[str, tuple[int, float]]:
    """The facts in a run's record about its stream: the phrases of each task, and the step by which all were seen."""
    from holdfast.benchmarks.viscoll.protocol import LEARNED

    return {s.name: (s.count, s.score) for s in run.scores if s.name.startswith(LEARNED) and s.split == "test"}


def _task_of(noun: str, tasks: list[str]) -> str:
    """The task of a noun, by its own name or by that of its category; empty if there is none.

    >>> _task_of("plane", ["airplane", "person"]), _task_of("plane", ["person", "plane"]), _task_of("plane", ["dog"])
    ('airplane', 'plane', '')
    """
    from holdfast.benchmarks.viscoll.synonyms import our_synonyms

    return next((name for name in (noun, our_synonyms().nouns.get(noun, "")) if name in tasks), "")


def _rows(records: list[Record]) -> dict[str, tuple[Record, ...]]:
    """Runs that differ only in their seeds, by a title that names what distinguishes them."""
    from holdfast.reports.groups import SEEDS, rows_of

    rows = rows_of(records)
    for group in rows.values():
        if len({record.config["data"] for record in group}) > 1:
            ids = ", ".join(record.id for record in group)
            raise UserError(f"runs {ids} were trained on different data: draw those of one dataset at a time")
    told = [group[0].config["benchmark"] | {"model": group[0].config["model"]["name"]} for group in rows.values()]
    names = dict.fromkeys(name for each in told for name in each if name not in SEEDS)
    differing = [name for name in names if len({str(each.get(name)) for each in told}) > 1]
    titles = [
        ", ".join([title, *(f"{n} {own.get(n)}" for n in differing if f"{n}={own.get(n)}" not in title)])
        for title, own in zip(rows, told, strict=True)
    ]
    return dict(zip(titles, rows.values(), strict=True))


def _records(runs: list[str], out: Path) -> list[Record]:
    from holdfast.experiments.store import Store

    found = []
    for name in runs:
        folder = Store(out).find(name)
        if not folder.config()["benchmark"]["name"].startswith("viscoll"):
            raise UserError(f"run {folder.id} is one of {folder.config()['benchmark']['name']}: this is about viscoll")
        record = folder.record()
        if record is None:
            raise UserError(f"run {folder.id} is {folder.status()}: this command needs a run that is done")
        found.append(record)
    return found


def _figure(width: float, height: float, panels: int | None = None) -> tuple[Any, Any]:
    """A figure with one panel, or with a list of them."""
    try:
        import matplotlib.figure  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise missing_extra("the picture needs matplotlib", "pictures") from None
    figure = matplotlib.figure.Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots() if panels is None else figure.subplots(1, panels, squeeze=False)[0]


def _save(figure: Any, picture: Path, what: str) -> None:
    figure.savefig(picture, dpi=150)
    typer.echo(f"{what} in {picture}")


def passes(
    device: Device = "auto",
    steps: Annotated[
        int | None, typer.Option(metavar="N", min=400, help="Time only the first N steps of the pass.")
    ] = None,
    only: Annotated[
        str, typer.Option(metavar="METHODS", help="Only these, comma-separated: vanilla, er, agem, mir.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Time a pass over COCO-shift with each method.

    The stream is synthetic, of COCO-shift's size, and the model is VL-BERT 6 x 384; meant for a GPU.
    """
    from holdfast.benchmarks.viscoll.speed import passes as measure
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.experiments.runner import find_device
    from holdfast.reports.tables import Grid

    found = measure(find_device(device), steps=steps, only=only)
    if as_json:
        print_json([asdict(each) | {"met": each.met} for each in found])
        return
    rows = tuple(
        (
            f.method,
            f"{f.seconds:.0f}",
            f"{f.starting:.0f}",
            f"{f.steps_a_second:.0f}",
            f"{60 * f.paper_minutes / f.seconds:.0f}",
            f"{f.limit:.0f}",
            "yes" if f.met else "NO",
        )
        for f in found
    )
    columns = ("method", "seconds", "start-up s", "steps/s", "speed-up on the paper", "at most", "met")
    notes = () if all(f.measured for f in found) else ("The end of the stream was not run; its time is extrapolated.",)
    print_grid(Grid("one pass over 639,592 examples", columns, rows, notes))
