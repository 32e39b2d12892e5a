"""From a request to a frozen configuration: names are resolved to objects here, once, and its hash is the run's id."""

from __future__ import annotations

import functools
import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from holdfast import registry
from holdfast.algorithms.base import Algorithm
from holdfast.benchmarks.base import Benchmark, Need
from holdfast.errors import UserError, nearest
from holdfast.experiments import parts
from holdfast.experiments.carried import pack, unpack
from holdfast.experiments.contents import content_of
from holdfast.experiments.request import (
    START,
    Request,
    algorithms_of,
    budget_of,
    by_owner,
    entry_of,
    owner_of,
    settings_in,
    title_of,
)
from holdfast.foreign import identity
from holdfast.models.base import Model
from holdfast.settings import build, convert, fields
from holdfast.types import Budget, Stream, Training
from holdfast.world.whole import holds_world

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Config:
    """A frozen run: the objects that its request names, and everything that affects its result.

    `resolve` creates it from a request alone. `Setups.settle` adds what depends on the data: until then, `id`
    distinguishes the runs of a plan, and afterwards, results.
    """

    request: Request
    benchmark: Benchmark
    recipe: Model
    algorithms: tuple[Algorithm, ...]
    """The algorithms as they were built: a run trains copies of them."""
    transforms: tuple[str, ...]
    train: Mapping[str, Any]
    """What the request and the benchmark's preset change in the training of every stage."""
    names: Mapping[str, Any]
    """The registered names of all of these, with a hash of the code of external ones."""
    source: Benchmark
    """The benchmark that is set up for this run: its own, or one that serves several runs of a plan."""
    training: tuple[Mapping[str, Any], ...] = ()
    """How each stage is trained."""
    data: str = ""
    """The fingerprint of the data; empty if the data was not read."""
    weights: str = ""
    """A hash of the weights that the model starts from; empty if there are none."""
    further: Mapping[str, int | str] = field(default_factory=dict)
    """The versions of the parts that depend on the data."""
    stages: int | None = None
    """How many stages are learned, if not all."""

    @property
    def settled(self) -> bool:
        """Whether its data was read."""
        return bool(self.data)

    @property
    def title(self) -> str:
        """The name of the run's row in a table: `replay`, `ewc+replay`, `joint`."""
        return title_of(self.transforms, [each["name"] for each in self.names["algorithms"]])

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return self.request.seed

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.request.model or self.benchmark.model(self.title)

    @property
    def after(self) -> str | None:
        """The id of the run whose weights it starts from."""
        return self.request.start.partition("@")[0] or None

    @property
    def budget(self) -> Budget | None:
        """The resources that its training may use."""
        return budget_of(self.request.budget)

    @property
    def synthetic(self) -> bool:
        """Whether its data is synthetic, whatever folder it is in."""
        data = self.request.data or getattr(self.benchmark, "data", "")
        return holds_world(Path(data)) if data else self.benchmark.brings_data

    @functools.cached_property
    def id(self) -> str:
        """The hash of the configuration: twelve hexadecimal digits."""
        text = json.dumps(self.content, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()

    @property
    def parts(self) -> dict[str, int | str]:
        """The version of each built-in part that the run uses: see `parts`."""
        found: dict[str, int | str] = self.content["parts"]
        return found

    @functools.cached_property
    def content(self) -> dict[str, Any]:
        """What the id covers, as plain JSON values. Rare entries are omitted if absent: other runs keep their ids."""
        request, code = self.request, self.names["code"]
        training, data = list(self.training), self.data
        if not self.settled:
            asked = _plain(build(Training, self.train, "train"))
            training = [{name: asked[name] for name in sorted(self.train)}]
            places = sorted(Benchmark.places & fields(type(self.benchmark)).keys())
            where = {name: getattr(self.benchmark, name) for name in places}
            data = "unread: " + ", ".join(f"{name}={_json(name, value)}" for name, value in where.items())
        known_by_hash = self.recipe.places if self.settled else frozenset()
        model = {"name": self.names["model"], **code["model"], **_plain(self.recipe, known_by_hash)}
        found = {
            "benchmark": {
                "name": self.names["benchmark"],
                **code["benchmark"],
                **_plain(self.benchmark, self.benchmark.places),
            },
            "model": {**model, **({"source": self.weights} if self.weights else {})},
            "algorithms": [
                {**name, **_plain(algorithm)}
                for name, algorithm in zip(self.names["algorithms"], self.algorithms, strict=True)
            ],
            "transforms": self.transforms,
            "training": training,
            "seed": request.seed,
            "precision": request.precision,
            "predictions": request.predictions,
            "data": data,
            "parts": {
                **parts.of_training(training),
                **parts.of_benchmark(self.benchmark, self.recipe),
                **parts.of_algorithms(self.algorithms, self.transforms),
                **self.further,
            },
            "start": request.start,
            "stages": self.stages if self.settled else request.stages,
            "threads": request.threads,
            "budget": None if self.budget is None else {n: v for n, v in asdict(self.budget).items() if v is not None},
        }
        few = {"start": "", "stages": None, "threads": 1, "budget": None}
        plain: dict[str, Any] = json.loads(json.dumps(found))
        return {name: value for name, value in plain.items() if name not in few or value != few[name]}

    def frozen(self) -> Config:
        """The same configuration, with the content and id that the current code gives it."""
        assert self.id
        return self

    def stream(self, given: Stream) -> Stream:
        """The benchmark's stream as this run learns it, with its settings, transforms and number of stages."""
        stages = tuple(
            replace(stage, training=build(Training, asdict(stage.training) | dict(self.train), "train"))
            for stage in given.stages[: self.request.stages]
        )
        stream = replace(given, stages=stages)
        for name in self.transforms:
            stream = registry.TRANSFORMS[name].load()(stream)
        for stage in stream.stages:
            if stage.training.patience is not None and not stage.validation:
                raise UserError(f"train.patience needs validation data, and stage {stage.name!r} has none")
        return stream

    def packed(self) -> bytes:
        """Pack the configuration for another process, which resolves its names with the code that it finds there.

        Objects that cannot be found by name are sent as they are, with what is known about their code.
        """
        found = {name: getattr(self, name) for name in ("training", "data", "weights", "further", "stages")}
        own, wider = fields(type(self.benchmark)), self.source
        both = {name: (getattr(wider, name), getattr(self.benchmark, name)) for name in own}
        shared = {name: there for name, (there, here) in both.items() if there is not here and there != here}
        return pack((self.id, self.request, shared, found))


def _changed(thing: T, settings: Mapping[str, Any]) -> T:
    """A copy of an object with other settings, and without any state beyond its settings."""
    own = {name: getattr(thing, name) for name in fields(type(thing))}
    return type(thing)(**{**own, **settings})


def _made(found: Any, settings: Mapping[str, Any], where: str) -> Any:
    """Instantiate a class with settings, or copy a given object, with settings that replace its own."""
    if isinstance(found, type):
        return build(found, settings, where)
    known = fields(type(found))
    if unknown := sorted(settings.keys() - known.keys()):
        raise UserError(f"{where}.{unknown[0]} is not a setting: {nearest(unknown[0], known)}")
    return _changed(found, {name: convert(value, known[name], f"{where}.{name}") for name, value in settings.items()})


def unpacked(packed: bytes) -> Config:
    """Unpack a configuration that another process packed."""
    run, request, shared, found = unpack(packed)
    config = resolve(request)
    source = _changed(config.benchmark, shared) if shared else config.benchmark
    config = replace(config, source=source, **found)
    if config.id != run:
        raise UserError(f"the code of run {run} ({config.title}) changed after it was planned: run the command again")
    return config


def resolve(request: Request) -> Config:
    """Resolve names to objects and check every setting; raise UserError for the first mistake.

    The objects are created here, from a request's words or as copies of those that it carries: each run has its own.
    """
    plain = {name: getattr(request, name) for name in fields(Request) if name not in ("settings", "objects")}
    request = replace(build(Request, plain, "run"), settings=dict(request.settings), objects=request.objects)
    if request.start and not re.fullmatch(START, request.start):
        raise UserError(f"--start is {request.start!r}: write it as RUN@STAGE, a run's id and the number of a stage")
    words, named = settings_in(request.algorithm, request.objects)
    transforms, entries = algorithms_of(words, request.objects)
    names = [name for name, _ in entries]
    settings = by_owner(request.settings, names)
    for owner, said in by_owner(named, names).items():
        for name, value in said.items():
            if str(given := settings[owner].setdefault(name, value)) != value:
                raise UserError(
                    f"{request.algorithm!r} says {owner}.{name}={value}, and --set says {given}: give one of the two"
                )

    benchmark_entry = entry_of(request.benchmark, "benchmark", request.objects)
    benchmark_name, benchmark_found = benchmark_entry.name, benchmark_entry.load()
    kind: type[Benchmark] = benchmark_found if isinstance(benchmark_found, type) else type(benchmark_found)
    for key, names_now in kind.former.items():
        owner, name = owner_of(key)
        if name in settings[owner]:
            settings[owner][name] = names_now.get(str(settings[owner][name]), settings[owner][name])
    asked = {name: getattr(request, name) for name in ("scale", "setting", "order", "data", "skip_bad")}
    given = {name: value for name, value in asked.items() if value not in (None, 0)}
    for name in given.keys() & settings["benchmark"].keys():
        if str(given[name]) != str(settings["benchmark"][name]):
            raise UserError(
                f"--{name.replace('_', '-')} is {given[name]} and benchmark.{name} {settings['benchmark'][name]}: "
                "these are the same setting: give it once"
            )
    given |= settings["benchmark"]
    for name in ("data", "skip_bad"):
        if name in given and name not in fields(kind):
            raise UserError(f"{benchmark_name} draws its own data: leave out --{name.replace('_', '-')}")
    if "seed" in given:
        raise UserError("benchmark.seed is the run's seed: give it with --seed")
    own_seed = {"seed": request.seed} if "seed" in fields(kind) else {}
    budget_of(request.budget)
    benchmark: Benchmark = _made(benchmark_found, given | own_seed, benchmark_name)
    build(Training, settings["train"], "train")
    title = title_of(transforms, names)
    model_entry = entry_of(request.model or benchmark.model(title), "model", request.objects)
    model_name, model_found = model_entry.name, model_entry.load()
    preset = by_owner(benchmark.preset(model_name, title), names)
    assert not preset["benchmark"], "a preset depends on the benchmark's settings, and changes none of them"
    for name, kind_of in entries:
        for given_name in kind_of.instead.keys() & settings[name].keys():
            preset[name].pop(kind_of.instead[given_name], None)
    for name, each in [("model", model_found), *entries]:
        if not isinstance(each, type):  # an object states all of its settings
            preset[name] = {}
    settings = {owner: {**preset[owner], **said} for owner, said in settings.items()}
    in_word = model_entry.given if isinstance(model_entry, registry.Entry) else {}
    recipe: Model = _made(model_found, {**in_word, **settings["model"]}, "model")
    algorithms = tuple(_made(each, settings[name], name) for name, each in entries)
    for name, algorithm in zip(names, algorithms, strict=True):
        algorithm.called = name  # what messages call it
    found = {
        "benchmark": benchmark_name,
        "model": model_name,
        "code": {"benchmark": identity(kind), "model": identity(type(recipe))},
        "algorithms": [
            {"name": name, **identity(type(algorithm))} for name, algorithm in zip(names, algorithms, strict=True)
        ],
    }
    return Config(
        request, benchmark, recipe, algorithms, tuple(transforms), settings["train"], found, benchmark
    ).frozen()


def needed(config: Config, need: Need, run: str) -> Request:
    """The request of a run that another run needs, named by its id."""
    given, change = config.request, {"budget": "", **need.change}  # a baseline is the same for every budget
    kept = {"model"} if "settings" in change else {"model", "benchmark", "train"}
    if "benchmark" in change:
        kept -= {"benchmark"}
        change = {"order": None, "setting": None, "model": config.model} | change
    elif "settings" not in change and change.get("algorithm", given.algorithm) == given.algorithm:
        kept |= {owner_of(name)[0] for name in given.settings}
    settings = {name: value for name, value in given.settings.items() if owner_of(name)[0] in kept}
    change["settings"] = settings | dict(change.get("settings", {}))
    if need.after is not None:
        change["start"] = f"{run}@{need.after}"
    return replace(given, **change)


def trained(training: Training) -> dict[str, Any]:
    """How a stage is trained. Rare entries are omitted if absent, so that other runs keep their ids."""
    rare = {"accumulate": 1, "lowest_rate": 0.0, "rates": []}
    return {name: value for name, value in _plain(training).items() if name not in rare or value != rare[name]}


def _without_place(value: Any) -> Any:
    """The name in `file.py:Name`, without the location of the file: the code itself counts among the parts."""
    return re.sub(r".*\.py:", "", value) if isinstance(value, str) else value


def _plain(thing: Any, without: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The settings of a dataclass as JSON values."""
    where = type(thing).__name__
    return {n: _json(f"{where}.{n}", getattr(thing, n)) for n in fields(type(thing)) if n not in without}


def _json(name: str, value: Any) -> Any:
    """A setting as a JSON value; for an object, a hash of its content."""
    if isinstance(value, float) and not math.isfinite(value):
        raise UserError(f"{name} is {value}: it must be finite")
    if value is None or isinstance(value, bool | int | float | str):
        return _without_place(value)
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError):
        return content_of(name, value)
