"""Score matrices from files of any origin: CSV, JSON, npy, our records, and the logs of Avalanche and PILOT."""

from __future__ import annotations

import ast
import csv
import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from holdfast import checksums
from holdfast.errors import UserError, printable
from holdfast.files import FileError, load_array, read_bytes
from holdfast.papers.matrix import Floats, ScoreMatrix

MOST_BYTES = 32 << 20
MOST = 1000
"""The maximum number of stages or tasks."""
EXACT = 6
"""Numbers with more decimals count as exact."""
MISSING = {"", "-", "–", "nan", "none", "null", "n/a"}
AVALANCHE = ["eval_exp", "training_exp", "eval_accuracy"]
AVALANCHE_METRIC = re.compile(r"Top1_Acc_Exp/eval_phase/[\w ]*stream/Task\d+/Exp(\d+)(?:\s*=\s*([-+.\deE]+))?")
PILOT, PILOT_CURVE = "=> CNN: {", "=> CNN top1 curve: ["
NUMPY = re.compile(r"np\.float\d+\(([^()]*)\)")
LABELS = {"", "stage", "after", "after stage", "task", "experience", "session", "step", "trained on"}
"""Heads of a first column that has no scores."""
WHAT = "give CSV, JSON, .npy, a record, Avalanche's eval_results.csv or text log, or PILOT's log"


def read_matrix(path: Path, decimals: int | None = None, transpose: bool = False) -> ScoreMatrix:
    """The score matrix of a file, whose format is recognised by its content; raises a UserError that says what is
    wrong.

    `decimals` states how far the scores were rounded if the file does not show it. With `transpose`, rows are tasks.
    """
    try:
        if path.suffix == ".npy":
            if path.stat().st_size > MOST_BYTES:
                raise ValueError(f"it is larger than {MOST_BYTES >> 20} MiB")
            found = _of_array(load_array(path), path)
        else:
            found = _of_text(read_bytes(path, MOST_BYTES).decode("utf-8-sig"), path)
    except FileError as error:
        raise UserError(str(error)) from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}") from None
    except checksums.DamagedError as error:
        raise UserError(f"{path}: {error}") from None
    except (ValueError, RecursionError, OverflowError, csv.Error) as error:
        raise UserError(f"{path} has no score matrix ({str(error).splitlines()[0][:200]}): {WHAT}") from None
    if transpose:
        found = replace(found, scores=found.scores.T)
    found = _completed(found)
    return found if decimals is None else replace(found, decimals=decimals)


def _of_array(array: Any, path: Path) -> ScoreMatrix:
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise ValueError(f"it holds an array of {array.ndim} dimensions and type {array.dtype}, not a table of numbers")
    return _matrix(array.astype(np.float64), None)


def _of_text(text: str, path: Path) -> ScoreMatrix:
    start = text.lstrip()[:1]
    if start in "[{" and path.suffix != ".csv":
        return _of_json(json.loads(text))
    if PILOT in text:
        return _of_pilot(text)
    if "Top1_Acc_Exp" in text:
        return _of_avalanche_text(text)
    return _of_csv(text)


# CSV


def _of_csv(text: str) -> ScoreMatrix:
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if not lines:
        raise ValueError("it is empty")
    mark = max(",;\t", key=lines[0].count) if any(sign in lines[0] for sign in ",;\t") else None
    if not lines[0].startswith(AVALANCHE[0]):
        _need_few(len(lines), max(len(line.split()) if mark is None else line.count(mark) + 1 for line in lines))
    rows = (
        [line.split() for line in lines]
        if mark is None
        else list(csv.reader(io.StringIO("\n".join(lines)), delimiter=mark))
    )
    if [word.strip() for word in rows[0][:3]] == AVALANCHE:
        return _of_avalanche(rows)
    notes, labelled = [], False
    if any(_number(word) is None for word in rows[0][1:]):
        labelled = rows[0][0].strip().lower() in LABELS
        rows = rows[1:]
        notes.append("The first line names the tasks.")
    if labelled or all(_number(row[0]) is None or not row[0].strip() for row in rows if row):
        rows = [row[1:] for row in rows]
        notes.append("The first column names the stages.")
    width = max((len(row) for row in rows), default=0)
    table = []
    for number, row in enumerate(rows, 1):
        values = [_number(word) for word in row]
        if (bad := next((word for word, value in zip(row, values, strict=True) if value is None), None)) is not None:
            raise ValueError(f"row {number} has {bad[:40]!r} where a score should be")
        table.append([*values, *[math.nan] * (width - len(row))])
    return _matrix(table, _decimals(word for row in rows for word in row), tuple(notes))


def _of_avalanche(rows: Sequence[Sequence[str]]) -> ScoreMatrix:
    """Avalanche's CSVLogger: one line for each experience evaluated after each training experience."""
    found: dict[tuple[int, int], float] = {}
    for number, row in enumerate(rows[1:], 2):
        try:
            task, score = int(row[0]), float(row[2])
            stage = -1 if row[1].strip().lower() == "none" else int(row[1])  # evaluated before training
        except (ValueError, IndexError):
            raise ValueError(f"line {number} is not a line of Avalanche's eval_results.csv") from None
        found[stage, task] = score
    notes = ("Avalanche's eval_results.csv: the last accuracy of each pair of experiences counts.",)
    return _placed(found, _decimals(row[2] for row in rows[1:]), notes)


def _of_avalanche_text(text: str) -> ScoreMatrix:
    """The text of Avalanche's loggers: accuracies by experience, a block for each evaluation phase."""
    found: dict[tuple[int, int], float] = {}
    words, stage, trained = [], -1, False
    for line in text.splitlines():
        if "Start of training phase" in line:
            trained = True
        elif "Start of eval phase" in line and trained:
            stage, trained = stage + 1, False
        elif (match := AVALANCHE_METRIC.search(line)) and match[2]:
            found[stage, int(match[1])] = float(match[2])
            words.append(match[2])
    return _placed(found, _decimals(words), ("Avalanche's text log: a stage ends where its evaluation begins.",))


def _placed(found: Mapping[tuple[int, int], float], decimals: int | None, notes: tuple[str, ...]) -> ScoreMatrix:
    """A matrix from scores by stage and task; stage -1 is before training."""
    if not found:
        raise ValueError("it has no accuracy of an experience")
    stages, tasks = (max(place[axis] for place in found) + 1 for axis in (0, 1))
    if min(min(place[1] for place in found), min(place[0] for place in found) + 1) < 0 or max(stages, tasks) > MOST:
        raise ValueError(f"it has numbers of experiences outside 0 to {MOST}")
    table = np.full((stages, tasks), np.nan)
    before = np.full(tasks, np.nan)
    for (stage, task), score in found.items():
        if stage < 0:
            before[task] = score
        else:
            table[stage, task] = score
    return replace(_matrix(table, decimals, notes), before=before if np.isfinite(before).all() else None)


# JSON


def _of_json(value: Any) -> ScoreMatrix:
    if isinstance(value, dict) and isinstance(value.get("scores"), list) and isinstance(value.get("config"), dict):
        return _of_record(checksums.opened(value)["scores"])
    if isinstance(value, dict) and any("Top1_Acc_Exp" in str(name) for name in value):
        return _of_avalanche_json(value)
    before = None
    if isinstance(value, dict):
        before = value.get("before")
        value = next((value[name] for name in ("scores", "matrix", "accuracy") if name in value), None)
    if not isinstance(value, list) or not all(isinstance(row, list) for row in value):
        raise ValueError("a list of rows is needed, or an object with `scores`, and perhaps `before`")
    width = max((len(row) for row in value), default=0)
    _need_few(len(value), width)
    table = [[*map(_json_number, row), *[math.nan] * (width - len(row))] for row in value]
    decimals = _decimals(repr(each) for row in value for each in row if each is not None)
    found = _matrix(table, decimals)
    if before is None:
        return found
    if not isinstance(before, list) or len(before) != width:
        raise ValueError("`before` has one score for each task")
    return replace(found, before=np.array(list(map(_json_number, before))))


def _of_record(scores: Sequence[Any]) -> ScoreMatrix:
    """Our own record of a run: its scores on test data after each stage."""
    places: dict[tuple[int, int], float] = {}
    names: dict[str, int] = {}
    for each in scores:
        if not isinstance(each, dict) or each.get("split") != "test" or "/" in str(each.get("name")):
            continue
        stage, task = each.get("stage"), names.setdefault(str(each.get("name")), len(names))
        if not isinstance(stage, int) or isinstance(stage, bool) or not 0 <= stage <= MOST:
            raise ValueError("a score has no stage")
        places.setdefault((stage - 1, task), _json_number(each.get("score")))
    return _placed(places, None, (f"A record of a run: the tasks are {printable(', '.join(names)[:200])}.",))


def _of_avalanche_json(value: Mapping[str, Any]) -> ScoreMatrix:
    """All metrics of Avalanche's plugin: by name, the steps and the values of a metric."""
    found: dict[tuple[int, int], float] = {}
    for name, series in value.items():
        if (match := AVALANCHE_METRIC.fullmatch(str(name))) is None:
            continue
        if not isinstance(series, list) or len(series) != 2 or not isinstance(series[1], list):
            raise ValueError(f"{name[:80]} is not a list of steps and a list of values")
        for stage, score in enumerate(series[1][:MOST]):
            found[stage, int(match[1])] = _json_number(score)
    return _placed(found, None, ("All metrics of Avalanche: the n-th value of an experience is after stage n.",))


# PILOT


def _of_pilot(text: str) -> ScoreMatrix:
    """PILOT's log: after each stage, a line with the accuracy on each group of classes, the learned ones."""
    rows: list[list[float]] = []
    curve: tuple[float, ...] = ()
    for line in text.splitlines():
        if said := _last(line, PILOT):
            groups = _literal(said)
            if not isinstance(groups, dict):
                raise ValueError("a line of accuracies is not a dictionary")
            own = [_json_number(score) for name, score in groups.items() if "-" in str(name)]
            if rows and len(own) <= len(rows[-1]):  # another run of the same file: the last one counts
                rows = []
            rows.append(own)
        elif said := _last(line, PILOT_CURVE):
            values = _literal(said)
            curve = tuple(map(_json_number, values)) if isinstance(values, list) else ()
    width = max((len(row) for row in rows), default=0)
    table = [[*row, *[math.nan] * (width - len(row))] for row in rows]
    notes = ("PILOT's log: accuracies on groups of classes, rounded to two decimals.",)
    return replace(_matrix(table, 2, notes), curve=curve)


def _last(line: str, mark: str) -> str:
    """What follows the last mark of a line, with the bracket that ends the mark; empty if there is no mark."""
    _, found, rest = line.rpartition(mark)
    return f"{mark[-1]}{rest.strip()}" if found else ""


def _literal(text: str) -> Any:
    """A dictionary or a list as Python prints it, without executing anything."""
    try:
        return ast.literal_eval(NUMPY.sub(r"\1", text[:100_000]))
    except (SyntaxError, MemoryError, TypeError):
        raise ValueError(f"{text[:40]!r} is not what PILOT writes") from None


# Common to all formats


def _need_few(rows: int, columns: int) -> None:
    """Raise a ValueError for more rows or columns than any matrix has, before they are converted."""
    if max(rows, columns) > MOST + 2:  # with a head, and with scores from before training
        raise ValueError(f"it has {rows} rows and {columns} columns, and at most {MOST} are read")


def _matrix(table: Any, decimals: int | None, notes: tuple[str, ...] = ()) -> ScoreMatrix:
    array: Floats = np.array(table, dtype=np.float64)
    if array.ndim != 2 or not array.size:
        raise ValueError("it is empty")
    if max(array.shape) > MOST:
        raise ValueError(f"it has {array.shape[0]} rows and {array.shape[1]} columns, and at most {MOST} are read")
    if np.isinf(array).any() or np.abs(np.nan_to_num(array)).max() > 1e9:
        raise ValueError("a score is infinite, or no score at all")
    return ScoreMatrix(array, decimals, notes=notes)


def _completed(matrix: ScoreMatrix) -> ScoreMatrix:
    """The matrix without a first row from before training, and with zeros above the diagonal as not measured."""
    scores, notes = matrix.scores, list(matrix.notes)
    rows, columns = scores.shape
    if rows == columns + 1 and matrix.before is None:
        matrix = replace(matrix, before=scores[0])
        scores = scores[1:]
        notes.append("There is a row more than there are tasks: the first one is from before training.")
    if scores.shape[0] == scores.shape[1] > 1:
        above, below = ~np.tri(len(scores), dtype=bool), np.tri(len(scores), k=-1, dtype=bool)
        if not np.nan_to_num(scores[above]).any() and np.isfinite(scores[above]).all():
            scores = np.where(above, np.nan, scores)
            notes.append("All scores above the diagonal are 0: they count as not measured.")
        elif not np.nan_to_num(scores[below]).any():
            notes.append("All scores below the diagonal are missing or 0: if rows are tasks, give --transpose.")
    return replace(matrix, scores=scores, notes=tuple(notes))


def _number(word: str) -> float | None:
    """A score as text, perhaps with a percent sign; NaN if it is missing, None for other words."""
    plain = word.strip().rstrip("%").strip()
    if plain.lower() in MISSING:
        return math.nan
    if "_" in plain:  # Python's own way to write thousands
        return None
    try:
        return float(plain)
    except ValueError:
        return None


def _json_number(value: Any) -> float:
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{str(value)[:40]!r} is not a score")
    return float(value)


def _decimals(words: Any) -> int | None:
    """How many decimals the numbers were printed with, at most; None if they look exact."""
    found = [
        len(match[1] or "") for word in words if (match := re.fullmatch(r"\s*-?\d+(?:\.(\d*))?\s*%?\s*", str(word)))
    ]
    most = max(found, default=None)
    return None if most is None or most > EXACT else most
