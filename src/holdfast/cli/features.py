"""`holdfast features`: feature maps of images, or features of boxes, computed once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, cast

import typer

from holdfast.cli.options import Device
from holdfast.errors import UserError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(features)


def features(
    images: Annotated[
        Path, typer.Option(metavar="DIR", help="A folder of images, or a table from `holdfast data prepare`.")
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The .npy or .h5 file to write.")],
    kind: Annotated[
        str, typer.Option(metavar="KIND", help="grid: the feature map. regions: a feature for each cell or box.")
    ] = "grid",
    model: Annotated[
        str, typer.Option(metavar="NAME", help="efficientnet-lite0, vit, hf:FOLDER, net.py:Net; default: a ResNet.")
    ] = "",
    weights: Annotated[
        str,
        typer.Option(metavar="FILE", help="The weights: for a ResNet, as torchvision publishes them; or a model's."),
    ] = "",
    depth: Annotated[int, typer.Option(metavar="N", help="The ResNet: 18, 34, 50 or 101.")] = 101,
    stage: Annotated[
        int, typer.Option(metavar="N", min=1, max=4, help="The stage of the ResNet that returns the map.")
    ] = 3,
    side: Annotated[
        int | None, typer.Option(metavar="PIXELS", min=32, help="Resize images to this side. Default: the model's.")
    ] = None,
    cells: Annotated[int, typer.Option(metavar="N", min=0, help="Pool the map to N x N cells; 0: as it is.")] = 0,
    boxes: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With regions: JSON with a list of boxes [x1, y1, x2, y2] for each image."),
    ] = None,
    batch: Annotated[int, typer.Option(metavar="N", min=1, help="Compute N images at a time.")] = 32,
    jobs: Annotated[int, typer.Option("--jobs", "-j", metavar="N", min=0, help="Processes; 0: one for each core.")] = 0,
    device: Device = "cpu",
) -> None:
    """Compute features of images.

    By default, they are the stage-3 maps of a ResNet, 1024x14x14 for images of side 224. If the command is
    interrupted, repeat it to continue. docs/data.md shows how to use the features.
    """
    from holdfast.experiments.runner import find_device
    from holdfast.pretraining.backbones import Backbone, GridOf, ModelBackbone, ResNetBackbone, network
    from holdfast.pretraining.boxes import read_boxes
    from holdfast.pretraining.features import Kept, compute_features
    from holdfast.processes import cores
    from holdfast.progress import progress_bar

    if kind not in ("grid", "regions"):
        raise UserError(f"--kind is {kind}: give grid or regions")
    if boxes is not None and (kind == "grid" or cells):
        raise UserError("--boxes is for --kind regions without --cells: the features of boxes take the place of cells")
    if not model and not weights:
        raise UserError("give --weights FILE for a ResNet, or --model NAME for another network")
    backbone: Backbone = ModelBackbone(model, weights) if model else ResNetBackbone(Path(weights), depth, stage)
    found_kind = cast(Literal["grid", "regions"], kind)
    kept = Kept(found_kind, cells, read_boxes(boxes) if boxes else None)
    place = str(find_device(device))
    network(backbone)  # reports its mistakes at once
    with progress_bar("features") as progress:
        shape = compute_features(
            GridOf(backbone, place),
            images,
            out,
            name=backbone.name(),
            side=side or backbone.side(),
            batch=batch,
            device=place,
            kept=kept,
            workers=jobs or cores(),
            progress=progress,
        )
    if kind == "grid":
        typer.echo(f"{shape[0]} maps of {' x '.join(map(str, shape[1:]))} in {out}")
    else:
        typer.echo(f"features of {shape[0]} images, {shape[2]} wide, up to {shape[1]} of each, in {out}")
