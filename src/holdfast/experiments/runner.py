"""One run, from its configuration to its record: started, resumed, or found done."""

from __future__ import annotations

import copy
import math
import platform
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from holdfast.benchmarks.base import Benchmark, Setup
from holdfast.data.order import mix
from holdfast.data.threads import threads
from holdfast.engine import checkpoint
from holdfast.engine.checkpoint import Checkpoints
from holdfast.engine.files import sweep, write_json
from holdfast.engine.learner import Learner
from holdfast.engine.loop import Position, refuse, train
from holdfast.engine.ranks import Ranks
from holdfast.engine.stepper import forget_earlier_runs
from holdfast.engine.stopping import Interrupt
from holdfast.engine.watch import Log, NoLog, Watch
from holdfast.errors import RunError, Stopped, UserError
from holdfast.experiments import frozen
from holdfast.experiments.config import Config
from holdfast.experiments.following import PROGRESS
from holdfast.experiments.size import bounded, free_memory, refuse_too_large
from holdfast.experiments.start import begin_with, start_file
from holdfast.experiments.store import Record, RunFolder, ScoreFile, Store
from holdfast.experiments.trackers import Progress, Several, TrackedLog, Tracker, open_trackers
from holdfast.metrics import anytime_area, anytime_curve
from holdfast.types import Budget, Score
from holdfast.version import __version__

DEVICE_SHARE = 0.5
"""All data is put on a GPU if it takes at most this share of the free memory there."""
SHOWN = 5
"""A record describes at most this many bad records."""


def run(
    config: Config,
    setup: Setup,
    store: Store,
    *,
    device: str = "cpu",
    every_steps: int | None = None,
    every_seconds: float | None = 60.0,
    watch: Watch | None = None,
    waiting: Callable[[str], None] = lambda holder: None,
    ranks: Ranks | None = None,
    compiled: bool = False,
    trackers: Sequence[str | Tracker] = (),
) -> Record:
    """Execute or resume a run, or return its record if it is done.

    If another process works on the same run, wait for it, and call `waiting` with its name. `trackers` also follow
    the run, such as tensorboard.
    """
    refuse(config.algorithms, setup.stream, config.budget)
    place, ranks, watch = find_device(device), ranks or Ranks(), watch or Watch()
    folder = store.folder(config.id)
    checkpoints = Checkpoints(
        folder.checkpoints,
        every_steps=every_steps,
        every_seconds=every_seconds,
        writes=ranks.first,
        stages=folder.stages if setup.keep_stages else None,
    )
    if not ranks.first:
        if ranks.agree(None) == "train":
            _train(config, setup, NoLog(), checkpoints, store, place, watch, ranks, compiled)
        ranks.wait()
        record = folder.record()
        assert record is not None, "the first rank wrote the record before it came here"
        return record
    try:
        with folder.lock(waiting, lambda: watch.stopping):
            record = folder.record()
            ranks.agree("train" if record is None else "done")
            if record is None:
                following = open_trackers(trackers, folder.path)
                try:
                    record = _first_rank(
                        config, setup, folder, checkpoints, store, place, watch, ranks, compiled, following
                    )
                finally:
                    for tracker in following:
                        tracker.close()
            checkpoints.clear(keep_last=setup.finish is not None and bool(config.benchmark.retests))
            (folder.path / PROGRESS).unlink(missing_ok=True)
            ranks.wait()
            return record
    except OSError as error:
        raise RunError(f"could not write to {error.filename or folder.path}: {checkpoint.reason(error)}") from error


def _first_rank(
    config: Config,
    setup: Setup,
    folder: RunFolder,
    checkpoints: Checkpoints,
    store: Store,
    place: torch.device,
    watch: Watch,
    ranks: Ranks,
    compiled: bool,
    trackers: Sequence[Tracker],
) -> Record:
    log = ScoreFile(folder.path, config.request.predictions)
    watch = Several(watch, Progress(folder.path), *trackers)
    here = environment(place, ranks) | {"threads": config.request.threads, "compiled": compiled}
    here |= {"command": config.request.command(), "world": config.synthetic}
    here |= {"again": again} if (again := config.request.again()) else {}
    failure = folder.path / "failure.txt"
    sweep(folder.path)
    failure.unlink(missing_ok=True)
    # Written again when the run resumes, so neither has to outlast a power cut; `record.json` repeats both.
    write_json(folder.path / "environment.json", here, durable=False)
    write_json(folder.path / "config.json", config.content, durable=False)
    try:
        at, learner, memory = _train(
            config, setup, TrackedLog(log, trackers), checkpoints, store, place, watch, ranks, compiled
        )
    except UserError:
        if not folder.checkpoints.exists():  # it never began, so there is no run to list
            (folder.path / "config.json").unlink()
        raise
    except (Stopped, KeyboardInterrupt):
        raise
    except Exception:
        with suppress(OSError):  # the disk may be what failed
            failure.write_text(traceback.format_exc(), encoding="utf-8")
        raise
    scores = log.scores()
    record = Record(
        id=config.id,
        config=config.content,
        environment=here | ({"frozen": list(learner.once.noted)} if learner.once and learner.once.noted else {}),
        **measured(config.benchmark, _counted(scores, config.benchmark, config.stages), None, at.spent, config.budget),
        scores=scores,
        cost={
            "steps": at.total,
            "seconds": at.seconds,
            "examples_forward": learner.examples_forward,
            "examples_backward": learner.examples_backward,
            "flops": learner.counter.flops,
            "skipped": at.skipped,
            "memory_bytes": memory,
            "added_bytes": learner.added_bytes(),
            "parameters": sum(p.numel() for p in learner.model.parameters()),
            "trained": sum(learner.moved.values()),
            "added": sum(p.numel() - learner.initial.get(name, 0) for name, p in learner.added().items()),
        },
        spent=tuple(map(tuple, at.spent)),
        chance=setup.chance,
        dropped=len(setup.problems),
        problems=setup.problems[:SHOWN],
        measures={name: measure.to_json() for name, measure in config.benchmark.measures.items()},
    )
    checkpoint.write(folder.weights, learner.model.state_dict())
    write_json(folder.path / "record.json", record.to_json())
    return record


def complete(record: Record, benchmark: Benchmark, others: Mapping[str, str], store: Store) -> Record:
    """Add the measures that compare with other runs, by their names and ids, as far as these are done.

    Runs that the record already names, from an earlier command, stay unless a name is given again.
    """
    if not others:
        return record
    others = {**record.others, **others}
    found = {name: record if run == record.id else store.folder(run).record() for name, run in others.items()}
    scores = {name: other.scores for name, other in found.items() if other is not None}
    own = _counted(record.scores, benchmark, record.config.get("stages"))
    budget = Budget(**record.config["budget"]) if "budget" in record.config else None
    completed = replace(record, others=others, **measured(benchmark, own, scores, record.spent, budget))
    if completed != record:
        write_json(store.folder(record.id).path / "record.json", completed.to_json())
    return completed


def _counted(scores: Sequence[Score], benchmark: Benchmark, stages: int | None) -> Sequence[Score]:
    """The scores that measures are computed from: if only the first stages were learned, only those of their tasks."""
    names = None if stages is None else benchmark.first(stages)
    # `a/b` is a detail of `a`
    return scores if names is None else [score for score in scores if score.name.partition("/")[0] in names]


def measured(
    benchmark: Benchmark,
    scores: Sequence[Score],
    others: Mapping[str, Sequence[Score]] | None,
    spent: Sequence[Sequence[int]] = (),
    budget: Budget | None = None,
) -> dict[str, Any]:
    """Measures as a record stores them: a number, or the reason for none, and what tasks contribute to pooled ones."""
    measures = benchmark.summary(scores) | ({} if others is None else benchmark.relative(scores, others))
    if budget is not None:
        by = "passes" if budget.flops is None and budget.passes is not None else "flops"
        measures["anytime_area"] = anytime_area(*anytime_curve(scores, spent, by), getattr(budget, by))
    shares = benchmark.shares(scores, others or {})
    return {
        "summary": {name: None if math.isnan(value) else float(value) for name, value in measures.items()},
        "reasons": {
            name: reason
            for name, value in measures.items()
            if (reason := getattr(value, "reason", "not a number" if math.isnan(value) else ""))
        },
        "shares": {name: {task: asdict(each) for task, each in own.items()} for name, own in shares.items()},
    }


def _train(
    config: Config,
    setup: Setup,
    log: Log,
    checkpoints: Checkpoints,
    store: Store,
    place: torch.device,
    watch: Watch,
    ranks: Ranks,
    compiled: bool,
) -> tuple[Position, Learner, int]:
    """Train, and return the position at which the run ended, its learner, and the bytes that its algorithms keep."""
    start = start_file(config.request.start, store) if config.request.start else None
    algorithms = copy.deepcopy(config.algorithms)
    with threads(config.request.threads):
        learner = make_learner(config, setup, place, ranks, compiled, start)
        at = train(
            learner,
            setup.stream,
            algorithms,
            setup.protocol,
            log=log,
            checkpoints=checkpoints,
            watch=watch,
            budget=config.budget,
        )
        if setup.finish is not None:  # a run that was stopped here repeats these scores: the log was truncated
            watch.evaluating("what was learned")
            log.add(setup.finish(learner, setup.stream, at.total))
    return at, learner, sum(algorithm.memory_bytes(learner) for algorithm in algorithms)


def make_learner(
    config: Config,
    setup: Setup,
    place: torch.device | None = None,
    ranks: Ranks | None = None,
    compiled: bool = False,
    start: Path | None = None,
) -> Learner:
    """The learner at the start of a run: the same weights on every rank and machine; by default on the CPU.

    `start` is the file of the weights that the encoder starts from, in place of its own.
    """
    place = place or torch.device("cpu")
    data = setup.data
    if place.type == "cuda" and data.nbytes <= DEVICE_SHARE * torch.cuda.mem_get_info(place)[0]:
        data = data.to(place)
    refuse_too_large(config, setup, place)
    torch.default_generator.manual_seed(mix(config.seed, 0x1417))
    if compiled:
        forget_earlier_runs()
    heads = {task.head: task.reads for task in setup.tasks.values()}
    assert all(heads[task.head] == task.reads for task in setup.tasks.values()), "tasks share a head but not its shape"
    with bounded(free_memory(), f"the model {config.model!r}"):
        model = config.recipe.build(setup.inputs, heads)
    refuse_too_large(config, setup, place, model)  # an external model can be measured only now
    model.to(torch.float64 if config.request.precision == "float64" else torch.float32)
    if start is not None:
        begin_with(model, start)
    autocast = torch.bfloat16 if config.request.precision == "bfloat16" else None
    return Learner(
        model,
        data,
        setup.tasks,
        seed=config.seed,
        device=place,
        ranks=ranks,
        autocast=autocast,
        compiled=compiled,
        settings=config.recipe,
        keep=frozen.keep(config),
    )


def find_device(name: str) -> torch.device:
    """An available device; raises a UserError that lists the available ones. `auto` is a GPU if there is one.

    >>> find_device("cpu").type
    'cpu'
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        place = torch.device(name)
    except (RuntimeError, TypeError):
        raise UserError(f"unknown device {name!r}: give cpu, cuda or cuda:N") from None
    if place.type == "cuda" and (place.index or 0) >= torch.cuda.device_count():
        raise UserError(f"device {name!r} is not here: this machine has {torch.cuda.device_count()} CUDA devices")
    if place.type not in ("cpu", "cuda"):
        raise UserError(f"device {name!r} is not supported: give cpu, cuda or cuda:N")
    return place


def environment(place: torch.device, ranks: Ranks) -> dict[str, Any]:
    """The environment of a run, which may explain a difference in the last digits."""
    return {
        "holdfast": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "platform": platform.platform(),
        "device": torch.cuda.get_device_name(place) if place.type == "cuda" else platform.machine(),
        "ranks": ranks.size,
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }


class Asked(Watch):
    """Shows nothing, and asks the run to stop if the command was asked to."""

    def __init__(self, interrupt: Interrupt) -> None:
        self._interrupt = interrupt

    @property
    def stopping(self) -> bool:  # type: ignore[override]
        """Whether the command was asked to stop."""
        return self._interrupt.asked
