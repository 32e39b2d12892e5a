"""`holdfast bench`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from holdfast import registry
from holdfast.cli import bench_start
from holdfast.cli.options import Compiled, Device, Json, Out, Scale


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help="Measure speed against references.")
    group.command()(overhead)
    group.command()(data)
    group.command()(reading)
    group.command()(models)
    group.command()(generate)
    group.command()(algorithms)
    group.command()(plans)
    group.command()(epoch)
    group.command()(frozen)
    group.command()(calibration)
    group.command()(soak)
    group.command()(experiments)
    bench_start.register(group)
    group.command()(stores)
    for family in registry.families():
        own = getattr(registry.part(family, "commands"), "register_bench", None)
        if own is not None:
            own(group)
    app.add_typer(group, name="bench")


def overhead(
    steps: Annotated[int, typer.Option(metavar="N", min=1, help="Steps of each loop in each repetition.")] = 256,
    repeats: Annotated[int, typer.Option(metavar="N", min=1, help="Repetitions; their median counts.")] = 25,
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Time our loop beside a bare PyTorch loop.

    Both train the same model on the same data.
    """
    from holdfast.bench.overhead import overhead as measure
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.experiments.runner import find_device
    from holdfast.reports.tables import Grid

    found = measure(steps, repeats, find_device(device))
    if as_json:
        print_json([asdict(each) for each in found])
        return
    rows = tuple(
        (
            f.case,
            f"{f.bare_ms:.3f}",
            f"{f.ours_ms:.3f}",
            f"{f.extra_ms:+.3f}",
            f"{f.ours_ms / f.bare_ms:.2f}",
            f"{f.limit_ms:g}",
            "yes" if f.extra_ms <= f.limit_ms else "NO",
        )
        for f in found
    )
    columns = ("case", "bare ms", "ours ms", "extra ms", "ratio", "limit ms", "within")
    notes = ("For replay, the bare loop has the larger batch; for module, both train the same nn.Module.",)
    print_grid(Grid("milliseconds a step", columns, rows, notes))


def data(
    size: Annotated[int, typer.Option(metavar="PIXELS", min=8, help="The side of an image.")] = 64,
    as_json: Json = False,
) -> None:
    """Time batches beside PyTorch's own loader.

    Ours come from a prepared table of the same examples.
    """
    from holdfast.bench.data import LIMIT_RATIO, batches
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.reports.tables import Grid

    found = batches(size=size)
    if as_json:
        print_json([asdict(each) for each in found])
        return
    rows = tuple(
        (
            f.case,
            f"{f.loader_ms:.2f}",
            f"{f.ours_ms:.3f}",
            f"{f.ratio:.1f}",
            "–" if f.limit_ratio is None else "yes" if f.ratio >= f.limit_ratio else "NO",
        )
        for f in found
    )
    notes = (
        "files: the loader decodes a file and tokenises a text for each example, as loaders usually do.",
        "rows: the loader reads each example from the same table; with large images, both mostly copy memory.",
    )
    columns = ("loader", "loader ms", "ours ms", "speed-up", f"at least {LIMIT_RATIO:g}")
    print_grid(Grid("milliseconds a batch of 64", columns, rows, notes))


def reading(
    scale: Annotated[
        str, typer.Option(metavar="SCALE", help="paper is the official size and takes two minutes to write.")
    ] = "paper",
    as_json: Json = False,
) -> None:
    """Time reading VQAv2's annotations.

    The training annotations are written as synthetic data of the official size, and read.
    """
    from holdfast.bench.reading import LIMIT_GIB, LIMIT_SECONDS, vqav2_annotations
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.reports.tables import Grid

    found = vqav2_annotations(scale)
    if as_json:
        print_json(asdict(found))
        return
    within = found.read_seconds <= LIMIT_SECONDS and found.peak_gib <= LIMIT_GIB
    row = (
        f"{found.questions:,}",
        f"{found.write_seconds:.1f}",
        f"{found.read_seconds:.1f}",
        f"{found.peak_gib:.2f}",
        "yes" if within else "NO",
    )
    columns = ("questions", "s to write", "s to read", "peak GiB", f"within {LIMIT_SECONDS:g} s, {LIMIT_GIB:g} GiB")
    print_grid(Grid("VQAv2, training questions", columns, (row,)))


def models(
    device: Device = "auto",
    steps: Annotated[int, typer.Option(metavar="N", min=5, help="Time N steps.")] = 50,
    only: Annotated[str, typer.Option(metavar="TEXT", help="Only cases whose name contains TEXT.")] = "",
    as_json: Json = False,
) -> None:
    """Time each model beside `transformers`."""
    from holdfast.bench.models import models as measure
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.experiments.runner import find_device
    from holdfast.reports.tables import Grid

    found = measure(find_device(device), steps, only=only)
    if as_json:
        print_json([asdict(each) for each in found])
        return
    rows = tuple(
        (
            f.case,
            str(f.batch),
            "–" if f.reference is None else f"{f.reference:,.0f}",
            f"{f.plain:,.0f}",
            "–" if f.compiled is None else f"{f.compiled:,.0f}",
            "–" if f.reference is None else f"{max(f.plain, f.compiled or 0) / f.reference:.2f}",
            f"{f.tera:.2f}",
            f.bar or "–",
            "–" if f.met is None else "yes" if f.met else "NO",
        )
        for f in found
    )
    columns = ("model", "batch", "transformers", "ours", "compiled", "ratio", "TFLOP/s", "bar", "met")
    print_grid(Grid("examples a second: forward, backward, AdamW", columns, rows))


def generate(
    device: Device = "auto",
    repeats: Annotated[int, typer.Option(metavar="N", min=1, help="Repetitions; their median counts.")] = 7,
    compiled: Compiled = False,
    as_json: Json = False,
) -> None:
    """Time training on answers, and generating them, beside `transformers`.

    Both sides have the same sizes, and take turns.
    """
    from holdfast.bench.generate import generate as measure
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.experiments.runner import find_device
    from holdfast.reports.tables import Grid

    found = measure(find_device(device), repeats, compiled=compiled)
    if as_json:
        print_json([{**asdict(each), "ratio": each.ratio} for each in found])
        return
    rows = tuple(
        (
            f.case,
            f.unit,
            f"{f.theirs:,.0f}",
            f"{f.ours:,.0f}",
            f"{f.ratio:.2f}",
            f"{f.bar:g}",
            "yes" if f.ratio >= f.bar else "NO",
        )
        for f in found
    )
    columns = ("case", "unit", "transformers", "ours", "ratio", "at least", "met")
    print_grid(Grid("units a second", columns, rows))


def algorithms(
    device: Device = "auto",
    steps: Annotated[int, typer.Option(metavar="N", min=20, help="Steps of each stage.")] = 60,
    repeats: Annotated[int, typer.Option(metavar="N", min=1, help="Repetitions; their median counts.")] = 3,
    as_json: Json = False,
) -> None:
    """Time each algorithm beside fine-tuning.

    The model is VL-BERT: tiny on a CPU, 6 x 384 on a GPU.
    """
    from holdfast.bench.algorithms import algorithms as measure
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.experiments.runner import find_device
    from holdfast.reports.tables import Grid

    found = measure(find_device(device), steps, repeats)
    if as_json:
        print_json([asdict(each) for each in found])
        return
    rows = tuple(
        (
            f.algorithm,
            f"{f.milliseconds:.2f}",
            f"{f.ratio:.2f}",
            "–" if f.bar is None else f"{f.bar:g}",
            "–" if f.bar is None else "yes" if f.ratio <= f.bar else "NO",
        )
        for f in found
    )
    print_grid(Grid("a step in the second stage", ("algorithm", "ms", "times fine-tuning", "at most", "met"), rows))


def epoch(
    device: Device = "auto",
    images: Annotated[int, typer.Option(metavar="N", min=200, help="Images in an epoch.")] = 50_000,
    only: Annotated[str, typer.Option(metavar="TEXT", help="Only forms whose name contains TEXT.")] = "",
    as_json: Json = False,
) -> None:
    """Time an epoch beside a bare PyTorch loop.

    ResNet-18 over images like CIFAR-100's; meant for a GPU.
    """
    from holdfast.bench.epoch import IMAGES, LIMIT, epochs
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.experiments.runner import find_device
    from holdfast.reports.tables import Grid

    found = list(epochs(find_device(device), images=images, only=only))
    if as_json:
        print_json([asdict(each) for each in found])
        return
    limit = LIMIT * images / IMAGES
    rows = tuple(
        (
            f.form,
            f"{f.bare:.2f}",
            f"{f.seconds:.2f}",
            f"{f.bare / f.seconds:.1f}",
            f"{f.starting:.0f}",
            "yes" if f.seconds <= limit else "NO",
        )
        for f in found
    )
    columns = ("form", "bare s", "ours s", "speed-up", "start-up s", f"within {limit:g} s")
    print_grid(Grid(f"an epoch over {images:,} images", columns, rows))


def frozen(
    examples: Annotated[int, typer.Option(metavar="N", min=64, help="Training examples.")] = 512,
    repeats: Annotated[int, typer.Option(metavar="N", min=1, help="Repetitions; their median counts.")] = 3,
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Time training with frozen layers computed once.

    A ViLT of 12 layers, 8 epochs, beside the same run without the cache.
    """
    from holdfast.bench.frozen import frozen as measure
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.experiments.runner import find_device
    from holdfast.reports.tables import Grid

    found = measure(examples, repeats, find_device(device))
    if as_json:
        print_json([asdict(each) for each in found])
        return
    rows = tuple(
        (
            f.case,
            f"{f.anew:.1f}",
            f"{f.once:.1f}",
            f"{f.again:.1f}",
            f"{f.ratio:.2f}",
            f"{f.later:.2f}",
            f"{f.limit:g}",
            f"{f.difference:.0e}",
            "yes" if f.ratio >= f.limit else "NO",
        )
        for f in found
    )
    columns = ("frozen", "off, s", "first, s", "later, s", "faster", "later", "bar", "differ", "met")
    notes = (
        "off: at every step; first: computed once and kept; later: kept by an earlier run.",
        "differ: the largest difference between outputs after training, relative to the largest output.",
    )
    print_grid(Grid(f"8 epochs over {examples} examples", columns, rows, notes))


def calibration(
    scale: Annotated[
        str, typer.Option(metavar="SCALE", help="tiny, small or large for all. Default: each at its own.")
    ] = "",
    device: Device = "auto",
    only: Annotated[str, typer.Option(metavar="TEXT", help="Only datasets whose name contains TEXT.")] = "",
    compiled: Compiled = False,
    out: Out = Path("runs"),
    as_json: Json = False,
) -> None:
    """Check how hard the synthetic datasets are.

    Trains a small model on each dataset alone: it should be learnable, and not trivial.
    """
    from holdfast.bench.calibration import calibration as measure
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.experiments.store import Store
    from holdfast.reports.tables import Grid

    found = []
    for each in measure(
        Store(out), scale, device, only, compiled, begin=lambda case: typer.echo(case.dataset, err=True)
    ):
        found.append(each)
    if as_json:
        print_json([asdict(each) | {"within": each.within} for each in found])
        return
    rows = tuple(
        (
            f.dataset,
            f.scale,
            "–" if f.score is None else f"{f.score:.3f}",
            "–" if f.chance is None else f"{f.chance:.3f}",
            f"{f.low:.2f} to {f.high:.2f}",
            "–" if f.within is None else "yes" if f.within else "NO",
            f"{f.seconds:.0f}",
        )
        for f in found
    )
    notes = tuple(f"{f.dataset}: {f.reason}." for f in found if f.score is None)
    columns = ("dataset", "scale", "score", "guessing", "band", "within", "s")
    print_grid(Grid("each dataset alone", columns, rows, notes))


def soak(
    steps: Annotated[int, typer.Option(metavar="N", min=0, help="Steps of one stage; 0 leaves this load out.")] = 10**6,
    stages: Annotated[int, typer.Option(metavar="N", min=0, help="Stages of one run; 0 leaves this load out.")] = 300,
    runs: Annotated[int, typer.Option(metavar="N", min=0, help="Runs in workers; 0 leaves this load out.")] = 2000,
    as_json: Json = False,
) -> None:
    """Look for growth over long use.

    Fits slopes to memory, open files, threads and time over a million steps, 300 stages and 2,000 runs of the
    smallest model, and compares the disk that is used with a prediction.
    """
    from holdfast.bench.soak import Growth
    from holdfast.bench.soak import soak as measure
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.reports.tables import Grid

    found = measure(steps, stages, runs, lambda load: typer.echo(f"{load} ...", err=True))
    growths = [each for each in found if isinstance(each, Growth)]
    others = [each for each in found if not isinstance(each, Growth)]
    if as_json:
        print_json({"growth": [asdict(each) for each in growths], "disk": [asdict(each) for each in others]})
        return
    rows = tuple(
        (g.load, g.what, f"{g.level:.3g}", f"{g.growth:+.3g} ±{g.interval:.2g}", "yes" if g.flat else "NO")
        for g in growths
    )
    notes = ("Growth over the whole load, with a 95 % interval; flat: the interval has 0, or it is below a hundredth.",)
    print_grid(Grid("growth", ("load", "what", "median", "growth", "flat"), rows, notes))
    used = tuple((d.load, d.what, f"{d.found:,.0f}", f"{d.predicted:,.0f}") for d in others)
    print_grid(Grid("disk", ("load", "what", "found", "predicted"), used))


def experiments(
    runs: Annotated[
        list[str],
        typer.Argument(metavar="BENCHMARK=NAMES...", help="Benchmarks, each with algorithms, as in NAME=A,B."),
    ],
    scale: Scale = None,
    as_json: Json = False,
) -> None:
    """Account for the time of whole runs.

    Prints the shares of the wall time, from an empty cache on, and which part of the machine's peak training reaches.
    """
    from holdfast.bench.experiments import PARTS
    from holdfast.bench.experiments import experiments as measure
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.reports.tables import Grid

    asked = [word.partition("=") for word in runs]
    found = [measure(name, (names or "finetune").split(","), scale) for name, _, names in asked]
    if as_json:
        print_json([asdict(each) for each in found])
        return
    rows = tuple(
        (
            each.runs,
            f"{each.total:.1f}",
            *(f"{each.seconds[part] / each.total:.0%}" for part in PARTS),
            f"{each.gflops:.0f}",
            f"{each.peak:.0f}",
            f"{each.gflops / each.peak:.0%}",
        )
        for each in found
    )
    columns = ("runs", "s", *PARTS, "GFLOP/s", "peak", "of peak")
    notes = ("Peak: a product of two matrices of 1,024 by 1,024 with one thread. Run this on an idle machine.",)
    print_grid(Grid("where the wall time goes", columns, rows, notes))


def stores(
    records: Annotated[int, typer.Option(metavar="N", min=1, help="Write N synthetic records.")] = 10_000,
    as_json: Json = False,
) -> None:
    """Time `list`, `compare` and `report` on a large store.

    The first reading makes the index of the store, the second one uses it.
    """
    from holdfast.bench.stores import reading
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.reports.tables import Grid

    found = list(reading(records))
    if as_json:
        print_json([asdict(each) for each in found])
        return
    rows = tuple(
        (
            each.command,
            f"{each.first_s:.1f}",
            f"{each.again_s:.1f}",
            f"{each.limit_s:g}",
            "yes" if each.again_s <= each.limit_s else "NO",
        )
        for each in found
    )
    columns = ("command", "first", "with index", "at most", "within")
    print_grid(Grid(f"seconds of processor time, {records:,} records", columns, rows))


def plans(
    runs: Annotated[int, typer.Option(metavar="N", min=4, help="Trivial runs with each engine.")] = 100,
    engines: Annotated[str, typer.Option(metavar="ENGINES", help="local, ray, or local,ray.")] = "local",
    as_json: Json = False,
) -> None:
    """Time plans of many runs.

    Measures what scheduling adds to each run, how well sixteen runs fill two cores, and what two ranks gain.
    """
    from holdfast.bench.plans import ENGINES, filling, overhead, overlap
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.errors import UserError, nearest
    from holdfast.reports.tables import Grid

    names = engines.split(",")
    for name in names:
        if name not in ENGINES:
            raise UserError(f"unknown engine {name!r}: {nearest(name, ENGINES)}")
    added, filled, sent = [overhead(name, runs) for name in names], filling(), overlap()
    if as_json:
        ratios = {name: asdict(each) | {"ratio": each.ratio} for name, each in (("filling", filled), ("overlap", sent))}
        print_json({"overhead": [asdict(each) for each in added], **ratios})
        return
    rows = [
        (
            f"{each.engine}: overhead of each of {each.runs} trivial runs of {each.run_ms:.0f} ms",
            f"{each.extra_ms:.1f} ms",
            f"{each.limit_ms:g} ms",
            "yes" if each.extra_ms <= each.limit_ms else "NO",
        )
        for each in added
    ]
    what = f"wall time of {filled.runs} runs on {filled.places} cores, divided by the {filled.sum_s:.1f} s they sum to"
    rows.append((what, f"{filled.ratio:.3f}", f"{filled.limit:g}", "yes" if filled.ratio <= filled.limit else "NO"))
    what = (
        f"step of two ranks that average {sent.megabytes:.0f} MB of gradients: during the backward pass, "
        "divided by after it"
    )
    rows.append((what, f"{sent.ratio:.3f}", f"{sent.limit:g}", "yes" if sent.ratio <= sent.limit else "NO"))
    print_grid(Grid("plans", ("what", "found", "at most", "within"), tuple(rows)))
