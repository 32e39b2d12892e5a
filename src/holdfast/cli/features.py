"""`holdfast features`: feature maps of images, computed once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.options import Device
from holdfast.errors import UserError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(features)


def features(
    weights: Annotated[Path, typer.Option(metavar="FILE", help="A ResNet's weights, as torchvision publishes them.")],
    images: Annotated[
        Path, typer.Option(metavar="DIR", help="A folder of images, or a table from `holdfast data prepare`.")
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The .npy file to write; the ids are written beside it.")],
    depth: Annotated[int, typer.Option(metavar="N", help="The ResNet: 50 or 101.")] = 101,
    side: Annotated[int, typer.Option(metavar="PIXELS", min=32, help="Resize images to this side.")] = 224,
    batch: Annotated[int, typer.Option(metavar="N", min=1, help="Compute N images at a time.")] = 32,
    device: Device = "cpu",
) -> None:
    """Compute feature maps of images.

    They are the stage-3 maps of a ResNet, 1024x14x14 for images of side 224. If the command is interrupted, repeat it.
    """
    import hashlib

    from holdfast.experiments.runner import find_device
    from holdfast.models.resnet import published
    from holdfast.pretraining.features import compute_features
    from holdfast.progress import progress_bar

    if depth not in (50, 101):
        raise UserError(f"--depth is {depth}: give 50 or 101")
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
