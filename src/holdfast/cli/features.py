"""`holdfast features`: feature maps of images, computed once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from holdfast.errors import UserError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(features)


def features(
    weights: Annotated[Path, typer.Option(help="A ResNet's weights, as torchvision publishes them.")],
    images: Annotated[Path, typer.Option(help="A folder of images, or a table that `holdfast data prepare` made.")],
    out: Annotated[Path, typer.Option(help="The .npy file to write; the ids go beside it.")],
    depth: Annotated[int, typer.Option(help="Which ResNet: 50 or 101.")] = 101,
    side: Annotated[int, typer.Option(min=32, help="The side to which images are resized.")] = 224,
    batch: Annotated[int, typer.Option(min=1, help="Images at a time.")] = 32,
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:N.")] = "cpu",
) -> None:
    """Compute the stage-3 feature map of every image, 1024x14x14 at side 224; a stopped call continues where it was."""
    import hashlib

    from holdfast.experiments.runner import find_device
    from holdfast.models.resnet import published
    from holdfast.pretraining.features import compute_features
    from holdfast.progress import progress_bar

    if depth not in (50, 101):
        raise UserError(f"--depth is {depth}: there are features of ResNet-50 and ResNet-101")
    place = find_device(device)
    network = published(depth, weights).to(place)
    with weights.open("rb") as file:
        name = f"resnet{depth}/{hashlib.file_digest(file, 'sha256').hexdigest()}"
    with progress_bar("features") as progress:
        found = compute_features(
            network.grid,
            images,
            out,
            name=name,
            side=side,
            batch=batch,
            device=place,
            progress=progress,
        )
    typer.echo(f"{len(found.ids)} maps of {' x '.join(map(str, found.values.shape[1:]))} in {out}")
