"""Runs that start from another run's weights: finding these, and loading them into a new model."""

from __future__ import annotations

import re
from pathlib import Path

from holdfast.engine import checkpoint
from holdfast.errors import UserError
from holdfast.experiments.request import START
from holdfast.experiments.store import Store
from holdfast.models.base import Network
from holdfast.models.vilt import tiled


def start_file(start: str, store: Store) -> Path:
    """The file of the weights that a run starts from; `start` is RUN@STAGE."""
    found = re.fullmatch(START, start)
    assert found is not None, "requests with any other start were refused"
    folder, stage = store.folder(found[1]), int(found[2])
    path = checkpoint.stage_file(folder.stages, stage)
    if path.exists():
        return folder.intact(path)
    if (record := folder.record()) is None:
        raise UserError(f"--start {start}: {store.path} has no finished run {folder.id}: run it first")
    if stage == len(record.config["training"]) or not folder.weights.exists():
        return folder.final_weights()
    raise UserError(
        f"--start {start}: the weights after stage {stage} were not kept; "
        f"those after its last stage, {len(record.config['training'])}, are there"
    )


def begin_with(model: Network, path: Path) -> None:
    """Load the weights of a file into an encoder, by name. Heads, and weights that the file does not have, stay new.

    A table of positions that must be longer is repeated, as for long texts.
    """
    given = {
        name.removeprefix("encoder."): value
        for name, value in checkpoint.read(path).items()
        if name.startswith("encoder.")
    }
    state = model.encoder.state_dict()
    if not given.keys() & state.keys():
        raise UserError(f"{path} was made by another model: it has no weight of this one; start from a run of the same")
    for name, own in state.items():
        if (value := given.get(name)) is None:
            continue
        if "position" in name and value.ndim == 2 and value.shape[1:] == own.shape[1:]:
            value = tiled(value, len(own))
        if value.shape != own.shape:
            raise UserError(
                f"{path} was made by another model: {name} has the shape {tuple(value.shape)} there, and "
                f"{tuple(own.shape)} here; start from a run of the same model and settings"
            )
        state[name] = value
    model.encoder.load_state_dict(state)
