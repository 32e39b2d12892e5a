"""Repeat the tests at the end of a run with other settings, from the state in which its training ended.

The result is the run that the same request with these settings would have made, with its own id, scores and record.
Only its training is copied.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.engine import checkpoint
from holdfast.engine.files import sync_rename, temporary_name
from holdfast.errors import UserError
from holdfast.experiments.config import resolve
from holdfast.experiments.request import Request
from holdfast.experiments.setups import Setups
from holdfast.experiments.store import RunFolder, Store
from holdfast.files import read_inside


def retested(run: RunFolder, settings: Mapping[str, Any], data: str | None, store: Store, setups: Setups) -> Request:
    """The request of a run with other settings for its tests; the training of `run` is copied to its folder."""
    if run.record() is None:
        raise UserError(f"run {run.id} is {run.status()}: only a run that is done can be tested again")
    if not (command := run.command()):
        raise UserError(f"run {run.id} was made with objects that no command names: test it in the script that made it")
    request = Request.from_command(command)
    request = replace(request, settings={**request.settings, **settings}, data=data or request.data)
    config = setups.settle(resolve(request))
    _refuse_another(run, config.content, config.benchmark.retests)
    folder = store.folder(config.id)
    if folder.record() is None and checkpoint.newest(folder.checkpoints) is None:
        _copy(run, folder)
    return request


def _refuse_another(run: RunFolder, content: Mapping[str, Any], retests: frozenset[str]) -> None:
    """Raise a UserError if a fresh run would differ from a stored one in more than its tests."""
    then, now = ({**each, "benchmark": _without(each["benchmark"], retests)} for each in (run.config(), content))
    if differ := sorted(name for name in then.keys() | now.keys() if then.get(name) != now.get(name)):
        raise UserError(
            f"run {run.id} would be trained differently now ({', '.join(differ)} differ): give its data with --data, "
            f"or {run.again()}"
        )


def _without(settings: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in names}


def _copy(run: RunFolder, folder: RunFolder) -> None:
    """Copy the scores and then the state, so that the new run can be resumed."""
    state = checkpoint.newest(run.checkpoints)
    if state is None:
        raise UserError(f"run {run.id} kept no state that could be tested: {run.again()}")
    run.intact(state)
    with folder.lock():
        folder.checkpoints.mkdir(exist_ok=True)
        if (predictions := run.path / "predictions").is_dir():
            shutil.copytree(predictions, folder.path / "predictions", dirs_exist_ok=True)
        (folder.path / "scores.jsonl").write_bytes(read_inside(run.path.parent, run.path / "scores.jsonl"))
        target = folder.checkpoints / state.name
        temporary = temporary_name(target)
        temporary.unlink(missing_ok=True)  # never through a link that somebody left there
        shutil.copyfile(state, temporary)
        sync_rename(temporary, target)
