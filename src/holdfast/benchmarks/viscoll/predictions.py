"""The predictions of a run in the form in which the released code keeps them, for its metric scripts.

A file has the phrases of one test set at one evaluation, `{"records": [...]}`, each with the caption, the hidden pieces
(`gt_word_list`), the most likely ones (`pred_word_list`), the loss of each (`ppl_list`), the task and the image.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.benchmarks.base import Setup
from holdfast.benchmarks.viscoll.benchmark import TasksOverTime
from holdfast.benchmarks.viscoll.protocol import NOVEL, REGULAR
from holdfast.errors import UserError
from holdfast.types import Array, Ids


def export(setup: Setup, predictions: Path, out: Path) -> list[Path]:
    """Write what a run predicted at each evaluation, under the names that the released code gives its files."""
    rows = {each.name: each.ids for each in setup.protocol.evaluations if each.split == "test"}
    kept = sorted(_kept(predictions))
    if not kept:
        raise UserError(f"{predictions} has no predictions: repeat the run with --predictions")
    last = max(step for step, _, _ in kept)
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for step, name, file in kept:
        number = "0" if step == last else f"_{step}"
        path = out / f"results_verbose_model_0{number}{'_novel_comps' if name == NOVEL else ''}.json"
        found = np.load(file)
        path.write_text(json.dumps({"records": list(records(setup, rows[name], found))}), encoding="utf-8")
        written.append(path)
    return written


def _kept(folder: Path) -> Iterator[tuple[int, str, Path]]:
    """Step, name and file of the predictions behind the scores of whole test sets."""
    for name in (REGULAR, NOVEL):
        for path in folder.glob(f"*-test-{name}.npy"):
            yield int(path.name.split("-")[1]), name, path


def records(setup: Setup, rows: Ids, predictions: Array) -> Iterator[dict[str, Any]]:
    """One record for each phrase of a test set."""
    finish = setup.finish
    assert isinstance(finish, TasksOverTime)
    names = finish.words.vocabulary
    targets = setup.data.targets(rows)
    losses, said = np.hsplit(predictions.astype(np.float64), 2)
    for row, right, loss, guess in zip(rows.tolist(), targets.tolist(), losses.tolist(), said.tolist(), strict=True):
        phrase, length = finish.phrases[row], sum(number >= 0 for number in right)
        yield {
            "inp_sent": list(phrase.caption),
            "gt_word_list": [names[number] for number in right[:length]],
            "pred_word_list": [names[int(number)] for number in guess[:length]],
            "ppl_list": loss[:length],
            "image_id": phrase.image,
            "task": phrase.task,
        }
