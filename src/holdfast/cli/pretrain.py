"""`holdfast pretrain`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.options import Device


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(pretrain)


def pretrain(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="vilt-tiny, or bert-tiny, which is the text side of vault-tiny.")
    ] = "vilt-tiny",
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to write the model to.")] = Path("pretrained"),
    scenes: Annotated[int, typer.Option(metavar="N", min=40, help="Train on N scenes of the synthetic world.")] = 2000,
    epochs: Annotated[int, typer.Option(metavar="N", min=1, help="Train for N epochs.")] = 10,
    batch_size: Annotated[int, typer.Option(metavar="N", min=1, help="Examples in each step.")] = 256,
    learning_rate: Annotated[float, typer.Option(metavar="RATE", min=0, help="The highest learning rate.")] = 1e-3,
    length: Annotated[int, typer.Option(metavar="N", min=8, help="The longest sentence, in word pieces.")] = 24,
    pieces: Annotated[int, typer.Option(metavar="N", min=64, help="The size of the vocabulary.")] = 3000,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="The seed.")] = 0,
    device: Device = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
) -> None:
    """Pre-train a small encoder on synthetic data.

    It learns to fill in masked words, and to tell which of two sentences matches a picture of the synthetic world. If
    the command is interrupted, repeat it to continue.
    """
    from rich.console import Console

    from holdfast.cli import INTERRUPTED
    from holdfast.cli.bar import ProgressBar
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.engine.stopping import interruptible
    from holdfast.errors import Stopped
    from holdfast.experiments.runner import find_device
    from holdfast.pretraining.encoders import Pretraining
    from holdfast.pretraining.encoders import pretrain as carry_out
    from holdfast.reports.tables import Grid
    from holdfast.settings import build

    given = {"model": model, "scenes": scenes, "epochs": epochs, "batch_size": batch_size, "seed": seed}
    given |= {"learning_rate": learning_rate, "length": length, "pieces": pieces}
    settings = build(Pretraining, given, "pretrain")
    console, place = Console(stderr=True, highlight=False, soft_wrap=True), find_device(device)
    with interruptible() as interrupt:
        try:
            with ProgressBar(f"pre-training {model}", console, lambda: interrupt.asked) as bar:
                found = carry_out(settings, out, str(place), bar)
        except (Stopped, KeyboardInterrupt):
            console.print(f"stopped and saved in {out}: run the same command to resume", markup=False)
            raise typer.Exit(INTERRUPTED) from None
    if as_json:
        print_json(found)
        return
    words = {"matching": "matching one of two sentences, accuracy", "words": "masked words, log-perplexity"}
    rows = tuple((words[name], f"{abs(score):.3f}") for name, score in found.items())
    print_grid(Grid(f"{model} on held-out scenes", ("measure", "value"), rows, (f"saved in {out}",)))
