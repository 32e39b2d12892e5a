"""The progress of active runs, from what each writes into its folder: progress bars for a notebook."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.errors import UserError
from holdfast.experiments.store import read_json
from holdfast.progress import NotebookBar, in_notebook, notebook_bars

if TYPE_CHECKING:
    from holdfast.experiments.plan import Plan
    from holdfast.experiments.store import Store

PROGRESS = "progress.json"
"""What a run writes, at most once a second: see `trackers.Progress`."""
SECONDS = 0.5
"""The seconds between updates of a notebook's bars."""


def read_progress(folder: Path) -> Mapping[str, Any]:
    """The progress of an active run; empty if it has not been written, or not completely."""
    try:
        found = read_json(folder / PROGRESS)
    except UserError:
        return {}
    return found if isinstance(found, dict) else {}


@contextmanager
def followed(plan: Plan, store: Store) -> Iterator[None]:
    """In a notebook, show a bar for the plan and one for each active run, in whatever process it is."""
    if not in_notebook():
        yield
        return
    ended, began = threading.Event(), time.time()
    with notebook_bars() as show:

        def follow() -> None:
            while not ended.wait(SECONDS):
                show(bars(plan, store, began))

        thread = threading.Thread(target=follow, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def bars(plan: Plan, store: Store, began: float) -> list[NotebookBar]:
    """The bars of a plan that started at the given time."""
    done = {run for run in plan.configs if (store.folder(run).path / "record.json").exists()}
    found = [NotebookBar("all runs", len(done) / len(plan.configs), f"{len(done)} of {len(plan.configs)}")]
    for run in (run for run in plan.configs if run not in done):
        told = read_progress(store.folder(run).path)
        if told.get("updated", 0) >= began and "stage" in told:
            share = (told["index"] + told["step"] / max(told["steps"], 1)) / told["stages"]
            doing = f"evaluating {told['evaluating']}" if told["evaluating"] else told["stage"]
            loss = "" if told["loss"] is None else f", loss {told['loss']:.3f}"
            found.append(NotebookBar(plan.labels[run], min(share, 1.0), f"{doing}{loss}"))
    return found if len(plan.configs) > 1 else found[1:]
