"""`holdfast pretrain`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.options import Device

if TYPE_CHECKING:
    from holdfast.pretraining.dual import Alignment


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(pretrain)


def pretrain(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="vilt-tiny; bert-tiny, which is the text side of vault-tiny; or dual, two towers."
        ),
    ] = "vilt-tiny",
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to write the model to.")] = Path("pretrained"),
    scenes: Annotated[int, typer.Option(metavar="N", min=40, help="Train on N scenes of the synthetic world.")] = 2000,
    epochs: Annotated[int, typer.Option(metavar="N", min=1, help="Train for N epochs.")] = 10,
    batch_size: Annotated[int, typer.Option(metavar="N", min=1, help="Examples in each step.")] = 256,
    learning_rate: Annotated[float, typer.Option(metavar="RATE", min=0, help="The highest learning rate.")] = 1e-3,
    length: Annotated[int, typer.Option(metavar="N", min=8, help="The longest sentence, in word pieces.")] = 24,
    pieces: Annotated[int, typer.Option(metavar="N", min=64, help="The size of the vocabulary.")] = 3000,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="The seed.")] = 0,
    image: Annotated[
        str, typer.Option(metavar="TOWER", help="dual: efficientnet-lite0:package, hf:FOLDER...")
    ] = "vit-tiny",
    text: Annotated[str, typer.Option(metavar="TOWER", help="dual: bert:FOLDER, hf:FOLDER...")] = "bert-tiny",
    data: Annotated[str, typer.Option(metavar="DIR", help="dual: the files of a dataset with captions.")] = "",
    dataset: Annotated[str, typer.Option(metavar="NAME", help="dual: the reader of these files.")] = "flickr8k",
    train_towers: Annotated[bool, typer.Option("--train-towers", help="dual: train the towers as well.")] = False,
    pictures: Annotated[int, typer.Option(metavar="N", min=100, help="dual: synthetic pictures.")] = 4000,
    width: Annotated[int, typer.Option(metavar="N", min=0, help="dual: the width of the shared space.")] = 64,
    pairing: Annotated[str, typer.Option(metavar="LOSS", help="dual: softmax (CLIP) or sigmoid (SigLIP).")] = "softmax",
    temperature: Annotated[float, typer.Option(metavar="T", min=1e-3, help="dual: the first temperature.")] = 0.07,
    bias: Annotated[float, typer.Option(metavar="B", help="dual: the first bias.")] = 0.0,
    weight_decay: Annotated[float, typer.Option(metavar="RATE", min=0, help="dual: the weight decay.")] = 0.01,
    gallery: Annotated[
        int, typer.Option(metavar="N", min=0, help="dual: also test on the first N pictures of the test.")
    ] = 0,
    device: Device = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
) -> None:
    """Pre-train a small encoder on synthetic data.

    It learns to fill in masked words, and to tell which of two sentences matches a picture of the synthetic world. With
    dual, an image tower and a text tower are aligned on captions, synthetic or of a dataset. If the command is
    interrupted, repeat it to continue.
    """
    from rich.console import Console

    from holdfast.cli import INTERRUPTED
    from holdfast.cli.bar import ProgressBar
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.data.threads import own_process
    from holdfast.engine.stopping import interruptible
    from holdfast.errors import Stopped
    from holdfast.experiments import frozen
    from holdfast.experiments.runner import find_device
    from holdfast.pretraining.dual import Alignment, align, shown
    from holdfast.pretraining.encoders import Pretraining
    from holdfast.pretraining.encoders import pretrain as carry_out
    from holdfast.reports.tables import Grid
    from holdfast.settings import build

    given: dict[str, Any] = {"epochs": epochs, "batch_size": batch_size, "seed": seed, "learning_rate": learning_rate}
    if model == "dual":
        given |= {"image": image, "text": text, "data": data, "dataset": dataset, "train_towers": train_towers}
        given |= {"pictures": pictures, "width": width, "pairing": pairing, "temperature": temperature}
        given |= {"bias": bias, "weight_decay": weight_decay, "gallery": gallery}
        settings = build(Alignment, given, "pretrain")
        work = partial(align, settings, tables=_tables(settings), keeping=frozen.of_model)
    else:
        given |= {"model": model, "scenes": scenes, "length": length, "pieces": pieces}
        work = partial(carry_out, build(Pretraining, given, "pretrain"))
    own_process()
    console, place = Console(stderr=True, highlight=False, soft_wrap=True), find_device(device)
    with interruptible() as interrupt:
        try:
            with ProgressBar(f"pre-training {model}", console, lambda: interrupt.asked) as bar:
                found = work(out, str(place), bar)
        except (Stopped, KeyboardInterrupt):
            console.print(f"stopped and saved in {out}: run the same command to resume", markup=False)
            raise typer.Exit(INTERRUPTED) from None
    if as_json:
        print_json(found)
        return
    if model == "dual":
        grid = Grid(
            "retrieval on held-out captions, in percent",
            ("measure", "value"),
            tuple(shown(found)),
            (f"saved in {out}",),
        )
        print_grid(grid)
        return
    words = {"matching": "matching one of two sentences, accuracy", "words": "masked words, log-perplexity"}
    rows = tuple((words[name], f"{abs(score):.3f}") for name, score in found.items())
    print_grid(Grid(f"{model} on held-out scenes", ("measure", "value"), rows, (f"saved in {out}",)))


def _tables(settings: Alignment) -> Path | None:
    """The place in the cache for the captions of a dataset, as the towers see them; None for the synthetic world."""
    from holdfast import registry
    from holdfast.benchmarks.cache import digest, place
    from holdfast.data import decoding, prepared, text

    if not settings.data or not Path(settings.data).is_dir():
        return None
    files = prepared.files_fingerprint(Path(settings.data))
    modules = [each.__name__ for each in (prepared, decoding, text)]
    own = [registry.find(settings.dataset, "dataset").module] if settings.dataset in registry.DATASETS else []
    name = digest("captions", settings.dataset, settings.image, settings.text, files)
    title = f"{settings.dataset}: captions for {settings.image} and {settings.text}"
    return place("tables", name, title, [*modules, *own], {str(Path(settings.data).absolute()): files})
