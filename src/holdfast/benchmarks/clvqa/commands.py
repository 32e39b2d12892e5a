"""`holdfast clvqa`: the answers of a run of this benchmark, and how it distinguishes questions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.options import Json, Out, Picture, RunId
from holdfast.errors import UserError, missing_extra

if TYPE_CHECKING:
    from holdfast.benchmarks.clvqa.analysis import Confusion
    from holdfast.reports.tables import Grid

Data = Annotated[str, typer.Option(metavar="DIR", help="The folder of official files, if the run had one.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help="Analyse runs of clvqa.", no_args_is_help=True)
    group.command()(confusion)
    group.command()(tsne)
    app.add_typer(group, name="clvqa")


def confusion(
    run: RunId,
    out: Out = Path("runs"),
    data: Data = "",
    as_json: Json = False,
) -> None:
    """Print which kinds of answers questions get.

    The paper's table is printed after ours.
    """
    from holdfast.benchmarks.clvqa.analysis import confusion as count
    from holdfast.benchmarks.clvqa.analysis import published
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.experiments.store import algorithm_of

    looked = _look(run, out, data)
    ours = count(looked.functions, looked.predictions)
    config = looked.config
    two = config["benchmark"]["setting"] == "two"
    theirs = published(algorithm_of(config), config["benchmark"]["order"]) if two else None
    if as_json:
        tables = {"ours": ours, "paper": theirs}
        print_json(
            {
                name: {
                    row: dict(zip(t.columns, map(int, counts), strict=True))
                    for row, counts in zip(t.rows, t.counts, strict=True)
                }
                for name, t in tables.items()
                if t is not None
            }
        )
        return
    print_grid(_grid(ours, f"what run {looked.id} answers"))
    if theirs is not None:
        print_grid(_grid(theirs, theirs.title))
        if not data:
            typer.echo("Ours is on synthetic CLEVR, the paper's on the real one: this does not reproduce it.")


def tsne(
    run: RunId,
    out: Out = Path("runs"),
    data: Data = "",
    picture: Picture = Path("tsne.png"),
    count: Annotated[int, typer.Option(metavar="N", min=50, help="Draw at most N test questions.")] = 512,
) -> None:
    """Draw a t-SNE of the penultimate layer.

    Each point is a test question, coloured by the subject of the question.
    """
    try:
        import matplotlib.figure  # type: ignore[import-not-found, unused-ignore]
        from sklearn.manifold import TSNE  # type: ignore[import-untyped, import-not-found, unused-ignore]
    except ImportError:
        raise missing_extra("the picture needs scikit-learn and matplotlib", "pictures") from None
    import numpy as np

    looked = _look(run, out, data)
    asked = np.array([function for task in looked.functions.values() for function in task])
    chosen = np.random.default_rng(0).permutation(len(asked))[:count]
    found = np.concatenate(list(looked.activations.values()))[chosen]
    places = TSNE(init="pca", random_state=0, perplexity=min(30, (len(found) - 1) / 3)).fit_transform(found)
    figure = matplotlib.figure.Figure(figsize=(7, 5), layout="constrained")
    axes = figure.subplots()
    for function in dict.fromkeys(asked.tolist()):
        rows = asked[chosen] == function
        marker = "o" if function.startswith("query") else "^"
        axes.scatter(places[rows, 0], places[rows, 1], s=8, marker=marker, label=function, linewidths=0)
    axes.set(xticks=[], yticks=[], title=f"penultimate layer, run {looked.id}")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, markerscale=2)
    figure.savefig(picture, dpi=150)
    typer.echo(f"{len(found)} questions in {picture}")


@dataclass(frozen=True)
class _Looked:
    """A run's final model on its test questions: their types, its answers, and its penultimate layer."""

    id: str
    config: dict[str, Any]
    functions: dict[str, list[str]]
    predictions: dict[str, list[int]]
    activations: dict[str, Any]


def _look(run: str, out: Path, data: str) -> _Looked:
    import torch

    from holdfast.benchmarks.clvqa.benchmark import Clvqa
    from holdfast.benchmarks.clvqa.tasks import TASK
    from holdfast.engine import checkpoint
    from holdfast.experiments.front import through
    from holdfast.experiments.rebuilt import recipe_of
    from holdfast.experiments.store import Store
    from holdfast.settings import build

    folder = Store(out).find(run)
    config = folder.config()
    if config["benchmark"]["name"] != "clvqa":
        raise UserError(f"run {folder.id} is one of {config['benchmark']['name']}: this command needs runs of clvqa")
    if (record := folder.record()) is None:
        raise UserError(f"run {folder.id} is {folder.status()}: this command needs a run that is done")
    settings = {name: value for name, value in config["benchmark"].items() if name != "name"}
    benchmark = build(Clvqa, settings | {"data": data}, "benchmark")
    recipe = recipe_of(record)
    setup = benchmark.setup(recipe.wants())
    if setup.data.fingerprint() != config["data"]:
        where = data or "the synthetic data"
        raise UserError(f"{where} is not the data of run {folder.id}: specify its folder with --data")
    if (front := recipe.front()) is not None:
        setup = through(setup, front)
    model = recipe.build(setup.inputs, {TASK.head: TASK.reads})
    try:
        model.load_state_dict(checkpoint.read(folder.final_weights()))
    except RuntimeError:
        raise UserError(
            f"the algorithm of run {folder.id} has added to its model: this command needs a plain one"
        ) from None
    model.eval()
    predictions, activations = {}, {}
    for each in setup.protocol.evaluations:
        if each.split != "test":
            continue
        hidden, answers = [], []
        with torch.inference_mode():
            for start in range(0, len(each.ids), 256):
                inputs = setup.data.fetch(each.ids[start : start + 256], torch.device("cpu")).parts[0].inputs
                hidden.append(model.encoder(inputs))
                answers.append(model(inputs, TASK.head).argmax(-1))
        predictions[each.name], activations[each.name] = torch.cat(answers).tolist(), torch.cat(hidden).numpy()
    return _Looked(folder.id, config, benchmark.functions(recipe.wants()), predictions, activations)


def _grid(table: Confusion, title: str) -> Grid:
    from holdfast.benchmarks.clvqa.analysis import TITLES
    from holdfast.reports.tables import Grid

    rows = tuple((row, *map(str, counts)) for row, counts in zip(table.rows, table.counts.tolist(), strict=True))
    return Grid(title, ("question", *(TITLES.get(name, name) for name in table.columns)), rows)
