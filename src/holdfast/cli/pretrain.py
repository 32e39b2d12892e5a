"""`holdfast pretrain`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(pretrain)


def pretrain(
    model: Annotated[str, typer.Argument(help="vilt-tiny, or bert-tiny: the text side of vault-tiny.")] = "vilt-tiny",
    out: Annotated[Path, typer.Option(help="The folder of the model.")] = Path("pretrained"),
    scenes: Annotated[int, typer.Option(min=40, help="How many of the world's scenes it sees.")] = 2000,
    epochs: Annotated[int, typer.Option(min=1, help="How often it sees them.")] = 10,
    batch_size: Annotated[int, typer.Option(min=1, help="Examples a step.")] = 256,
    learning_rate: Annotated[float, typer.Option(min=0, help="The highest learning rate.")] = 1e-3,
    length: Annotated[int, typer.Option(min=8, help="The longest sentence, in word pieces.")] = 24,
    pieces: Annotated[int, typer.Option(min=64, help="How many word pieces there are at most.")] = 3000,
    seed: Annotated[int, typer.Option(min=0, help="The seed.")] = 0,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:N, or auto.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="The scores as JSON on standard output.")] = False,
) -> None:
    """Pre-train a small encoder on the world: masked words, and which of two sentences matches a picture."""
    from rich.console import Console

    from holdfast.cli import INTERRUPTED
    from holdfast.cli.bar import ProgressBar
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.errors import Stopped
    from holdfast.experiments.runner import find_device, interruptible
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
        except Stopped:
            console.print(f"stopped and saved in {out}: run the same command to go on", markup=False)
            raise typer.Exit(INTERRUPTED) from None
    if as_json:
        print_json(found)
        return
    words = {"matching": "matching: the true one of two sentences, accuracy", "words": "hidden words, log-perplexity"}
    rows = tuple((words[name], f"{abs(score):.3f}") for name, score in found.items())
    print_grid(Grid(f"{model} on held-out scenes", ("measure", "value"), rows, (f"saved in {out}",)))
