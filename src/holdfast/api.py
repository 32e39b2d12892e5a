"""The functions of the public interface: names or objects in, results out. Use them as `holdfast.run` and so on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, TypeGuard, Unpack, overload

from holdfast.errors import UserError, nearest
from holdfast.usercode import executing

if TYPE_CHECKING:
    from torch import nn

    from holdfast.algorithms.base import Algorithm
    from holdfast.benchmarks.base import Benchmark
    from holdfast.engine.learner import Learner
    from holdfast.experiments.planned import PlannedRuns
    from holdfast.experiments.store import Record, Store
    from holdfast.experiments.trackers import Tracker
    from holdfast.models.base import Model
    from holdfast.reports.runs import Runs

    ABenchmark: TypeAlias = str | Benchmark | type[Benchmark]
    AModel: TypeAlias = str | Model | type[Model] | nn.Module | type[nn.Module]
    AnAlgorithm: TypeAlias = str | Algorithm | type[Algorithm]
    Combination: TypeAlias = AnAlgorithm | tuple[AnAlgorithm, ...]
    Logs: TypeAlias = str | Tracker | Sequence[str | Tracker]


class Words(TypedDict, total=False):
    """The options of a run, as on the command line."""

    scale: str | None
    """How much data: tiny, small, large or paper."""
    setting: str | None
    """The benchmark's setting, such as class or task."""
    order: str | None
    """The order of the stages."""
    data: str | None
    """The folder of the official files; synthetic data without it."""
    skip_bad: int
    """Skip up to N bad records of the data."""
    precision: Literal["float32", "float64", "bfloat16"]
    predictions: bool
    """Keep the predictions behind every score."""
    start: str
    """RUN@STAGE: start from the weights that another run of the store had after a stage."""
    stages: int | None
    """Learn only the first N stages."""
    threads: int
    """The number of CPU threads of a run; it is part of the run's id."""
    budget: str
    """The resources that training may use, as in `flops=1e13`, `passes=20000` or `bytes=1e6`."""
    settings: Mapping[str, Any]
    """Settings by owner and name: `{"replay.capacity": 50, "train.epochs": 3, "model.width": 64}`."""


class RunWords(Words, total=False):
    """The same options, and how runs are executed: see `run`."""

    model: AModel | None
    seed: int
    jobs: int
    ranks: int
    device: str
    out: str | Path
    needs: bool
    log: Logs


@overload
def run(  # type: ignore[overload-overlap]
    benchmark: ABenchmark = ..., algorithms: AnAlgorithm = ..., *, seeds: None = ..., **words: Unpack[RunWords]
) -> Record: ...
@overload
def run(
    benchmark: ABenchmark,
    algorithms: Sequence[Combination],
    *,
    seeds: int | Sequence[int] | None = ...,
    **words: Unpack[RunWords],
) -> Runs: ...
@overload
def run(
    benchmark: ABenchmark = ...,
    algorithms: AnAlgorithm = ...,
    *,
    seeds: int | Sequence[int],
    **words: Unpack[RunWords],
) -> Runs: ...
def run(
    benchmark: ABenchmark = "patterns",
    algorithms: AnAlgorithm | Sequence[Combination] = "finetune",
    *,
    model: AModel | None = None,
    seeds: int | Sequence[int] | None = None,
    seed: int = 0,
    jobs: int = 1,
    ranks: int = 1,
    device: str = "cpu",
    out: str | Path = "runs",
    needs: bool = True,
    log: Logs = (),
    **words: Unpack[Words],
) -> Record | Runs:
    """Execute or resume runs; finished runs of the store `out` are not repeated.

    The benchmark, the algorithms and the model are names or objects. With one algorithm, the result is its `Record`.
    With a list of algorithms, or `seeds` (a number, counted from `seed`, or a list), it is `Runs`. A tuple within the
    list is one combination: `[Finetune(), (EWC(), Replay())]`. `jobs` runs are executed at once in separate processes,
    or each run by `ranks` processes that train it together. `log` takes `"tensorboard"` and `Tracker` objects.

    The runs that the measures need, such as CLiMB's direct fine-tuning, are executed as well; `needs=False` omits
    them. Nothing is printed. Ctrl-C saves before it is raised, and the same call resumes.

    >>> import tempfile
    >>> record = run("patterns", "replay", scale="tiny", out=tempfile.mkdtemp(), settings={"benchmark.stages": 2})
    >>> record.algorithm, sorted(record.summary)[:2]
    ('replay', ['backward_transfer', 'final_accuracy'])
    """
    found = _planned(benchmark, algorithms, model, seeds, seed, device, out, needs, log, words, "run")
    records = found.carry_out(jobs, ranks)
    return records[0] if seeds is None and not _several(algorithms) else _gather(found.store, found.ids)


def plan(
    benchmark: ABenchmark = "patterns",
    algorithms: AnAlgorithm | Sequence[Combination] = "finetune",
    *,
    model: AModel | None = None,
    seeds: int | Sequence[int] | None = None,
    seed: int = 0,
    device: str = "cpu",
    out: str | Path = "runs",
    needs: bool = True,
    log: Logs = (),
    **words: Unpack[Words],
) -> PlannedRuns:
    """The runs that `run` would execute: print them, see which are `done`, and execute them with `.run(jobs=2)`.

    >>> import tempfile
    >>> plan("patterns", ["finetune", "replay"], scale="tiny", out=tempfile.mkdtemp())
    2 runs in ..., 0 of them done
      ...  to do  finetune, seed 0
      ...  to do  replay, seed 0
    """
    return _planned(benchmark, algorithms, model, seeds, seed, device, out, needs, log, words, "plan")


def train(
    model: AModel | None,
    stream: ABenchmark = "patterns",
    algorithms: AnAlgorithm | Sequence[AnAlgorithm] = "finetune",
    *,
    seed: int = 0,
    device: str = "cpu",
    log: Tracker | Sequence[Tracker] = (),
    **words: Unpack[Words],
) -> Learner:
    """Train a model on a stream and return its learner; nothing is stored, and nothing resumes.

    Several algorithms form one combination. If the model is None, the stream's own is used. `evaluate` scores the
    learner, whose network is `learner.model`.

    >>> learner = train(None, "patterns", "replay", scale="tiny", settings={"benchmark.stages": 2})
    >>> sorted(evaluate(learner, "patterns", scale="tiny", settings={"benchmark.stages": 2}))
    ['stage-1', 'stage-2']
    """
    from holdfast.experiments import training

    _refuse_while_loading("train")
    combined = tuple(algorithms) if _several(algorithms) else algorithms
    return training.train(stream, combined, model, seed, device, _trackers(log), _checked(words, "train"))


def evaluate(
    learner: Learner,
    stream: ABenchmark = "patterns",
    split: Literal["test", "validation"] = "test",
    *,
    seed: int = 0,
    **words: Unpack[Words],
) -> dict[str, float]:
    """The current score of a learner on each evaluation set of a stream."""
    from holdfast.experiments import training

    _refuse_while_loading("evaluate")
    return training.evaluate(learner, stream, split, seed, _checked(words, "evaluate"))


def report(runs: Runs | str | Path, out: str | Path = "report", title: str = "") -> Path:
    """Write the HTML report of some runs, or of a store, into a folder; return its first page.

    >>> import tempfile
    >>> store = tempfile.mkdtemp()
    >>> record = run("patterns", scale="tiny", out=store, settings={"benchmark.stages": 1, "train.epochs": 1})
    >>> report(store, f"{store}/report").name
    'index.html'
    """
    from holdfast.reports.report import write
    from holdfast.reports.runs import Runs, load

    return write(runs if isinstance(runs, Runs) else load(runs), Path(out), title).index


def _planned(
    benchmark: Any,
    algorithms: Any,
    model: Any,
    seeds: int | Sequence[int] | None,
    seed: int,
    device: str,
    out: str | Path,
    needs: bool,
    log: Any,
    words: Any,
    name: str,
) -> PlannedRuns:
    from holdfast.experiments.local import Options
    from holdfast.experiments.objects import requests
    from holdfast.experiments.planned import PlannedRuns
    from holdfast.experiments.store import Store

    _refuse_while_loading(name)
    asked = list(algorithms) if _several(algorithms) else [algorithms]
    if not asked:
        raise UserError("the list of algorithms is empty: name at least one, such as 'finetune'")
    found = requests(benchmark, asked, model, _seeds(seeds, seed), **_checked(words, name))
    return PlannedRuns(found, Store(out), Options(device, trackers=_trackers(log)), needs, _gather)


def _several(algorithms: Any) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    return isinstance(algorithms, list | tuple)


def _seeds(seeds: Any, first: int) -> list[int]:
    if seeds is None:
        return [first]
    if isinstance(seeds, int) and not isinstance(seeds, bool) and seeds > 0:
        return list(range(first, first + seeds))
    if isinstance(seeds, Sequence) and not isinstance(seeds, str) and seeds and first == 0:
        return list(seeds)
    raise UserError(f"seeds is {seeds!r}: give the number of seeds, counted from seed, or a list of them")


def _trackers(log: Any) -> tuple[str | Tracker, ...]:
    return tuple(log) if isinstance(log, list | tuple) else (log,)


def _checked(words: Any, name: str) -> dict[str, Any]:
    known = [*Words.__annotations__, "seed", "seeds", "model", "algorithms"]
    if unknown := sorted(words.keys() - Words.__annotations__.keys()):
        raise UserError(f"{name}() takes no {unknown[0]!r}: {nearest(unknown[0], known)}")
    return dict(words)


def _gather(store: Store, ids: Sequence[str]) -> Runs:
    from holdfast.reports.runs import Runs, read_run

    return Runs([read_run(store.folder(each).path) for each in ids], store.path)


def _refuse_while_loading(name: str) -> None:
    if executing():  # the file is being loaded to find a name: the error names the line
        raise UserError(
            f"this calls holdfast.{name} while the file is loaded for its definitions: put the call below "
            "if __name__ == '__main__':"
        )
