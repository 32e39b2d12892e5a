"""Results as one file, to share: records without machine paths, readable wherever a store is.

| field | content |
|---|---|
| `holdfast` | the version that wrote the file |
| `export` | the version of this layout |
| `runs` | the records, as in a store (`record.json`): configuration, scores, measures, environment and cost |
| `checksum` | of all the rest |

In every text, paths are cut down to their last part.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast import checksums
from holdfast.checksums import DamagedError
from holdfast.errors import UserError
from holdfast.experiments.store import Record
from holdfast.files import FileError, open_regular
from holdfast.reports.runs import Run, Runs, checked_record, load
from holdfast.version import __version__

LAYOUT = 1
MOST_BYTES = 1 << 30
_PATH = re.compile(r"(?<![\w/.])(?:~|\.{1,2})?/(?:[^\s:,='\"]*/)*([^\s:,='\"/]+)/?")


def without_paths(value: Any) -> Any:
    """A JSON value whose texts have the last parts of paths alone.

    >>> without_paths(["holdfast run table --data /home/me/qa.csv --model ~/net.py:Net --set a.b=../weights/x.pt", 0.5])
    ['holdfast run table --data qa.csv --model net.py:Net --set a.b=x.pt', 0.5]
    """
    if isinstance(value, str):
        return _PATH.sub(r"\1", value)
    if isinstance(value, dict):
        return {name: without_paths(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [without_paths(each) for each in value]
    return value


def export(runs: Sequence[Run], out: Path) -> int:
    """Write the records of the runs that are done to a file; return how many there are."""
    records = [without_paths(run.record.to_json()) for run in runs if run.record is not None]
    content = checksums.sealed({"holdfast": __version__, "export": LAYOUT, "runs": records})
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return len(records)


def read(path: Path) -> list[Run]:
    """The runs in a file that `export` wrote."""
    try:
        with open_regular(path) as file:
            text = file.read(MOST_BYTES + 1)
        if len(text) > MOST_BYTES:
            raise UserError(f"{path} is larger than 1 GiB: export fewer runs at a time")
        found = json.loads(text)
        layout = found.get("export") if isinstance(found, dict) else None
        if not isinstance(layout, int):
            raise UserError(f"{path} is not an export of holdfast: `holdfast export STORE --out FILE` writes one")
        if layout > LAYOUT:
            raise UserError(f"{path} was written by a newer holdfast (layout {layout}): upgrade holdfast to read it")
        found = checksums.opened(found, required=True)
    except (OSError, FileError) as error:
        raise UserError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    except DamagedError as error:
        raise UserError(f"{path} cannot be trusted ({error}): export the runs again") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not valid JSON ({error}): export the runs again") from None
    if not isinstance(found.get("runs"), list):
        raise UserError(f"{path} has no list of runs: export them again")
    runs = []
    for number, value in enumerate(found["runs"], 1):
        record = checked_record(Record.from_json(value, f"run {number} of {path}"))
        runs.append(Run(record.id, path, "done", record.config, record, record.environment.get("command", "")))
    return runs


def load_all(sources: Sequence[Path]) -> Runs:
    """The runs of several stores and exported files; each once, and an error if the same run has different scores."""
    found: dict[str, Run] = {}
    for source in sources:
        for run in load(source):
            known = found.get(run.id)
            if known is None or (known.record is None and run.record is not None):
                found[run.id] = run
            elif run.record is not None and known.record is not None and run.record.scores != known.record.scores:
                raise UserError(
                    f"run {run.id} has different scores in {known.path} and {run.path}, although its configuration is "
                    "the same: leave one of them out, and see docs/plans.md on threads and CPUs"
                )
    return Runs(list(found.values()), sources[0])
