"""`holdfast cfst`: runs in the layout of the paper's tables, series over a setting, and class activation maps."""

from __future__ import annotations

from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.options import Device, Format, Json, Out, Picture, Store
from holdfast.errors import UserError, nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.benchmarks.cfst.maps import TaskMaps
    from holdfast.experiments.store import Record

SERIES = {
    "tasks": "the number of stages (E.5)",
    "per_class": "the training images per class (E.6)",
    "frozen": "whether the extractor is frozen in the tests (E.7)",
    "way": "the classes of a few-shot task",
}
"""The settings of the benchmark that a series may run over."""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help="Show runs as in the CFST paper.", no_args_is_help=True)
    group.command()(table)
    group.command()(series)
    group.command("test")(retest)
    group.command()(maps)
    app.add_typer(group, name="cfst")


def register_bench(group: typer.Typer) -> None:
    """Add the benchmarks of speed to `holdfast bench`."""
    group.command()(fewshot)


def table(
    store: Store = Path("runs"),
    form: Format = "text",
    as_json: Json = False,
) -> None:
    """Print runs beside the paper's Tables 1 to 8.

    Values on synthetic data are marked: they do not reproduce the paper's.
    """
    from holdfast.cli.compare import compare

    compare([store], form, "cfst", as_json=as_json)


def series(
    store: Store = Path("runs"),
    over: Annotated[str, typer.Option(metavar="SETTING", help="tasks, per_class, frozen or way.")] = "tasks",
    measure: Annotated[
        str, typer.Option(metavar="NAME", help="Such as Hn, Acon or Asys, or S(sys) for the related score.")
    ] = "Hn",
    as_json: Json = False,
) -> None:
    """Print how a measure changes with a setting.

    There is a row for each method and a column for each value that was run.
    """
    from holdfast import metrics
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.reports.runs import load
    from holdfast.reports.tables import Grid

    if over not in SERIES:
        raise UserError(f"unknown series {over!r}: {nearest(over, SERIES)}")
    records = load(store).records
    found = _by_value([r for r in records if r.config["benchmark"]["name"].startswith("cfst:")], over, measure)
    if not found:
        known = sorted({name for record in records for name in record.summary})
        raise UserError(f"{store} has no run of cfst with a measure {measure!r}: {nearest(measure, known)}")
    values = sorted({value for row in found.values() for value in row}, key=lambda value: (len(value), value))
    means = {row: {v: 100 * metrics.mean(own[v]) for v in values if v in own} for row, own in found.items()}
    if as_json:
        print_json({"over": over, "measure": measure, "rows": means})
        return
    rows = tuple((row, *(f"{own[v]:.1f}" if v in own else "–" for v in values)) for row, own in means.items())
    notes = (f"In percent, the mean over seeds; over {SERIES[over]}.",)
    print_grid(Grid(f"{measure} over {over}", ("method", *map(str, values)), rows, notes))


def _by_value(records: Sequence[Record], over: str, measure: str) -> dict[str, dict[str, list[float]]]:
    """The values of a measure for each method and each value of a setting, over the seeds."""
    found: dict[str, dict[str, list[float]]] = {}
    for record in records:
        benchmark, value = record.config["benchmark"], record.summary.get(measure)
        if value is None:
            continue
        others = {name: v for name, v in benchmark.items() if name not in (over, "seed", "name", "setting", "scale")}
        told = ", ".join(f"{name} {v}" for name, v in others.items() if v not in (None, True) and name != "tests")
        star = "*" if benchmark["setting"] == "task" else ""
        words = [f"{record.algorithm}{star}", benchmark["name"], record.config["model"]["name"], benchmark["scale"]]
        row = ", ".join([*words, *([told] if told else [])])
        asked = benchmark.get(over)
        if over == "tasks" and not record.config["transforms"]:
            asked = len(record.config["training"])
        found.setdefault(row, {}).setdefault("default" if asked is None else str(asked), []).append(value)
    return found


def retest(
    runs: Annotated[list[str], typer.Argument(metavar="RUN", help="The ids of runs, or their first characters.")],
    way: Annotated[int | None, typer.Option(metavar="N", min=2, help="The classes of a few-shot task.")] = None,
    shots: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="The pictures of each class to learn from.")
    ] = None,
    frozen: Annotated[
        bool | None, typer.Option("--frozen/--no-frozen", help="Whether the extractor stays frozen.")
    ] = None,
    tests: Annotated[int | None, typer.Option(metavar="N", min=2, help="The few-shot tasks of each test.")] = None,
    out: Out = Path("runs"),
    data: Annotated[str, typer.Option(metavar="DIR", help="The folder of the archive, if it has moved.")] = "",
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Take the few-shot tests of finished runs again, without training.

    What is not given stays as in the run. The results are those of fresh runs with these settings, under whose ids
    they are stored.
    """
    from holdfast.cli.carry import carry, end
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.experiments.local import Options
    from holdfast.experiments.plan import graph
    from holdfast.experiments.retest import retested
    from holdfast.experiments.runner import find_device
    from holdfast.experiments.setups import Setups
    from holdfast.experiments.store import Store
    from holdfast.reports.tables import comparison

    find_device(device)
    asked = {"way": way, "shots": shots, "frozen": frozen, "tests": tests}
    settings = {f"benchmark.{name}": value for name, value in asked.items() if value is not None}
    if not settings:
        raise UserError("there is nothing to test differently: give --way, --shots, --frozen or --tests")
    store, setups = Store(out), Setups()
    folders = [store.find(run) for run in runs]
    for folder in folders:
        _refuse_without_tests(folder.id, folder.config()["benchmark"]["name"], "this command needs")
    plan = graph([retested(folder, settings, data or None, store, setups) for folder in folders], setups=setups)
    result = carry(plan, store, Options(device), setups, jobs=1)
    records = [record for run in plan.wanted if (record := store.folder(run).record()) is not None]
    if as_json:
        print_json([record.to_json() for record in records])
    elif records:
        print_grid(comparison(records))
    end(result)


def _refuse_without_tests(run: str, benchmark: str, needs: str) -> None:
    if not benchmark.startswith("cfst:") or benchmark == "cfst:cifar100":
        raise UserError(f"run {run} is one of {benchmark}: {needs} the few-shot tests of cgqa, cobj or cpin")


def maps(
    runs: Annotated[list[str], typer.Argument(metavar="RUN", help="The ids of runs, or their first characters.")],
    out: Out = Path("runs"),
    data: Annotated[str, typer.Option(metavar="DIR", help="The folder of the archive, if the runs had one.")] = "",
    picture: Picture = Path("maps.png"),
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Draws the few-shot task of each test.")] = 0,
    concepts: Annotated[
        bool, typer.Option("--concepts", help="Show the tests on fresh and on old concepts, five pictures of a class.")
    ] = False,
) -> None:
    """Draw class activation maps.

    For one task of each few-shot test, shows a picture of each class and where each run's extractor finds it. All runs
    must be of one benchmark and its data.
    """
    from holdfast.benchmarks.cfst.maps import sheet

    shown = {name: found for run in runs for name, found in [_maps_of(run, out, data, seed, concepts)]}
    tasks = {name: [each.images.tobytes() for each in found] for name, found in shown.items()}
    if len({tuple(images) for images in tasks.values()}) > 1:
        raise UserError(f"{', '.join(runs)} do not share the same pictures: specify runs of one benchmark and size")
    sheet(shown).save(picture)
    typer.echo(f"{sum(len(each.titles) for each in next(iter(shown.values())))} pictures in {picture}")


def _maps_of(run: str, out: Path, data: str, seed: int, concepts: bool) -> tuple[str, list[TaskMaps]]:
    from holdfast import registry
    from holdfast.benchmarks.cfst.maps import maps as look
    from holdfast.benchmarks.cfst.testing import FewShotTests
    from holdfast.engine.checkpoint import read
    from holdfast.experiments.rebuilt import recipe_of
    from holdfast.experiments.store import Store, algorithm_of
    from holdfast.models.resnet import ResNetEncoder
    from holdfast.settings import build

    folder = Store(out).find(run)
    config: dict[str, Any] = folder.config()
    name = config["benchmark"]["name"]
    _refuse_without_tests(folder.id, name, "maps need")
    if (record := folder.record()) is None:
        raise UserError(f"run {folder.id} is {folder.status()}: maps need a run that is done")
    settings = {key: value for key, value in config["benchmark"].items() if key != "name"}
    benchmark = build(registry.BENCHMARKS[name].load(), settings | {"data": data}, "benchmark")
    recipe = recipe_of(record)
    setup = benchmark.setup(recipe.wants())
    if setup.data.fingerprint() != config["data"]:
        where = data or "the synthetic data"
        raise UserError(f"{where} is not the data of run {folder.id}: specify its folder with --data")
    model = recipe.build(setup.inputs, {task.head: task.reads for task in setup.tasks.values()})
    if not isinstance(model.encoder, ResNetEncoder):
        raise UserError(f"run {folder.id} is of {config['model']['name']}: maps need a plain ResNet, such as resnet18")
    try:
        model.load_state_dict(read(folder.final_weights()))
    except RuntimeError:
        raise UserError(f"the algorithm of run {folder.id} has added to its model: maps need a plain one") from None
    model.eval()
    assert isinstance(setup.finish, FewShotTests)
    tests = [test for test in setup.finish.tests if ("(" in test.name) == concepts]
    if not tests:
        raise UserError(
            f"run {folder.id} has too few combinations of fresh or of old concepts to test: omit --concepts"
        )
    samples = 5 if concepts else 1
    star = "*" if config["benchmark"]["setting"] == "task" else ""
    shown = look(model.encoder.grid, setup.data, tests, cache(benchmark.titles), seed, setup.finish.shots, samples)
    return f"{algorithm_of(config)}{star} {folder.id[:6]}", shown


def fewshot(
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Time CFST's few-shot tests.

    Compares the 300 tasks of a mode solved together with the same tasks one after another.
    """
    from holdfast.benchmarks.cfst.speed import fewshot as measure
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.experiments.runner import find_device
    from holdfast.reports.tables import Grid

    found = [asdict(each) for each in measure(find_device(device))]
    if as_json:
        print_json(found)
        return
    rows = tuple(tuple(f"{v:.2f}" if isinstance(v, float) else str(v) for v in each.values()) for each in found)
    print_grid(Grid("300 tasks of one mode", tuple(found[0]), rows))
