"""From what a user asks for to a frozen configuration, whose hash is the run's id."""

from __future__ import annotations

import hashlib
import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, Literal

from holdfast import registry
from holdfast.algorithms.base import Algorithm
from holdfast.benchmarks.base import Benchmark, Setup
from holdfast.errors import UserError, nearest
from holdfast.models.base import Recipe
from holdfast.settings import build, fields
from holdfast.types import Between, Training

RESULT_VERSION = 1
"""Raised when the same configuration would give another result, so that no old record stands for a new run."""


@dataclass(frozen=True)
class Request:
    """A run as a user asks for it: names and what differs from the defaults."""

    benchmark: str = "patterns"
    algorithm: str = "finetune"
    model: str | None = None
    scale: str | None = None
    setting: str | None = None
    order: str | None = None
    seed: Annotated[int, Between(0)] = 0
    precision: Literal["float32", "float64", "bfloat16"] = "float32"
    predictions: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Config:
    """Everything that decides a run's result, with no default left open."""

    benchmark: Mapping[str, Any]
    model: Mapping[str, Any]
    algorithms: Sequence[Mapping[str, Any]]
    transforms: Sequence[str]
    training: Sequence[Mapping[str, Any]]
    seed: int
    precision: str
    predictions: bool
    data: str
    version: int = RESULT_VERSION

    @property
    def id(self) -> str:
        """The hash of the configuration: twelve hexadecimal digits. Where a user's file lies does not count."""
        plain = self.to_json()
        for algorithm in plain["algorithms"]:
            algorithm.pop("file", None)
        text = json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()

    @property
    def algorithm(self) -> str:
        """The name of the run's row in a table: `replay`, `ewc+replay`, `joint`."""
        return "+".join([*self.transforms, *(a["name"] for a in self.algorithms)]) or "finetune"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return plain


@dataclass(frozen=True)
class Prepared:
    """A run that is ready to begin: its configuration and the things that it names."""

    config: Config
    benchmark: Benchmark
    setup: Setup
    recipe: Recipe
    algorithms: tuple[Algorithm, ...]


def prepare(request: Request) -> Prepared:
    """Look every name up, check every setting, make the data ready; raise UserError at the first thing wrong."""
    chosen = {name: getattr(request, name) for name in ("seed", "precision", "predictions")}
    build(Request, chosen, "run")
    transforms, entries = _algorithms(request.algorithm)
    settings = _by_owner(request.settings, [name for name, _, _ in entries])

    benchmark_name = registry.resolve(request.benchmark, "benchmark", registry.BENCHMARKS)
    kind = registry.BENCHMARKS[benchmark_name].load()
    asked = {name: getattr(request, name) for name in ("scale", "setting", "order")}
    given = {name: value for name, value in asked.items() if value is not None} | settings["benchmark"]
    benchmark: Benchmark = build(kind, given | {"seed": request.seed}, benchmark_name)
    setup = benchmark.setup()
    build(Training, settings["train"], "train")
    if settings["train"]:
        stages = tuple(
            replace(stage, training=build(Training, asdict(stage.training) | settings["train"], "train"))
            for stage in setup.stream.stages
        )
        setup = replace(setup, stream=replace(setup.stream, stages=stages))
    for name in transforms:
        setup = replace(setup, stream=registry.TRANSFORMS[name].load()(setup.stream))
    for stage in setup.stream.stages:
        if stage.training.patience is not None and not stage.validation:
            raise UserError(f"train.patience needs validation data, and stage {stage.name!r} has none")

    model_name = registry.resolve(request.model or benchmark.default_model, "model", registry.MODELS)
    recipe: Recipe = build(registry.MODELS[model_name].load(), settings["model"], "model")
    algorithms = tuple(build(kind, settings[name], name) for name, kind, _ in entries)
    config = Config(
        benchmark={"name": benchmark_name, **_plain(benchmark)},
        model={"name": model_name, **_plain(recipe)},
        algorithms=[
            {"name": name, **source, **_plain(algorithm)}
            for (name, _, source), algorithm in zip(entries, algorithms, strict=True)
        ],
        transforms=transforms,
        training=[_plain(stage.training) for stage in setup.stream.stages],
        data=setup.data.fingerprint(),
        **chosen,
    )
    return Prepared(config, benchmark, setup, recipe, algorithms)


def command(config: Config) -> str:
    """The command that repeats a run.

    Settings that stand as the defaults are left out; the record holds all of them.
    """
    names = [f"{a['file']}:{a['name']}" if "file" in a else a["name"] for a in config.algorithms]
    algorithm = "+".join([*config.transforms, *names]) or "finetune"
    words = ["holdfast run", config.benchmark["name"], f"--algorithm {algorithm}"]
    words.append(f"--model {config.model['name']}")
    kind = registry.BENCHMARKS[config.benchmark["name"]].load()
    owners: list[tuple[str, type, Mapping[str, Any]]] = [("benchmark", kind, config.benchmark)]
    owners.append(("model", registry.MODELS[config.model["name"]].load(), config.model))
    owners += [(a["name"], _algorithm_kind(a), a) for a in config.algorithms]
    for owner, owned, values in owners:
        defaults = _plain(owned())
        for name, value in values.items():
            if name in defaults and name != "seed" and value != defaults[name]:
                flag = owner == "benchmark" and name in ("scale", "setting", "order")
                word = shlex.quote(_text(value))
                words.append(f"--{name} {word}" if flag else f"--set {owner}.{name}={word}")
    words += [f"--set train.{name}={_text(value)}" for name, value in _training_changes(kind, config).items()]
    words += [f"--seed {config.seed}"] if config.seed else []
    words += [f"--precision {config.precision}"] if config.precision != "float32" else []
    words += ["--predictions"] if config.predictions else []
    return " ".join(words)


def _training_changes(kind: type[Benchmark], config: Config) -> dict[str, Any]:
    """What `--set train.…` changed: the values that all stages share and the benchmark's own stages do not have."""
    values = {name: value for name, value in config.benchmark.items() if name != "name"}
    own = [_plain(stage.training) for stage in build(kind, values, "benchmark").setup().stream.stages]
    changed = {}
    for name, value in config.training[0].items():
        if all(t[name] == value for t in config.training) and any(t[name] != value for t in own):
            changed[name] = value
    return changed


def settings_for(algorithms: Sequence[str], settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Which settings each of several algorithms is given: those of the run, and its own.

    >>> settings_for(["finetune", "er"], {"train.epochs": 3, "replay.size": 8})
    {'finetune': {'train.epochs': 3}, 'er': {'train.epochs': 3, 'replay.size': 8}}
    """
    owners = {word: {name for name, _, _ in _algorithms(word)[1]} for word in algorithms}
    own = {key: _owner(key)[0] for key in settings}
    elsewhere = {word: set().union(*owners.values()) - mine for word, mine in owners.items()}
    return {word: {k: v for k, v in settings.items() if own[k] not in elsewhere[word]} for word in algorithms}


def _algorithms(words: str) -> tuple[list[str], list[tuple[str, type[Algorithm], dict[str, str]]]]:
    """The stream transforms that `A+B` names, and its algorithms: name, class, and where a user's file is."""
    transforms, entries = [], []
    names = [word.strip() for word in words.split("+")]
    for name in names:
        if ".py:" in name:
            kind, source = registry.algorithm_from_file(name)
            entries.append((kind.__name__, kind, {"file": name.rpartition(":")[0], "source": source}))
            continue
        found = registry.resolve(name, "algorithm", registry.ALGORITHMS, registry.PLAIN, registry.TRANSFORMS)
        if found in registry.TRANSFORMS:
            transforms.append(found)
        elif found in registry.ALGORITHMS:
            entries.append((found, registry.ALGORITHMS[found].load(), {}))
        elif len(names) > 1:
            raise UserError(f"{name!r} is plain fine-tuning: there is nothing to combine in {words!r}")
    if len({name for name, _, _ in entries}) < len(entries):
        raise UserError(f"{words!r} names one algorithm twice")
    return transforms, entries


def _algorithm_kind(algorithm: Mapping[str, Any]) -> type[Algorithm]:
    kind: type[Algorithm]
    if "file" in algorithm:
        kind, _ = registry.algorithm_from_file(f"{algorithm['file']}:{algorithm['name']}")
    else:
        kind = registry.ALGORITHMS[algorithm["name"]].load()
    return kind


def _owner(key: str) -> tuple[str, str]:
    """What a setting such as `er.capacity` belongs to, by its registered name, and the rest."""
    owner, _, name = key.rpartition(".")
    main = {alias: n for n, e in registry.ALGORITHMS.items() for alias in (n, *e.aliases)}
    return main.get(owner, owner), name


def _by_owner(settings: Mapping[str, Any], algorithms: list[str]) -> dict[str, dict[str, Any]]:
    """Settings such as `replay.capacity` by what they set."""
    owners: dict[str, dict[str, Any]] = {name: {} for name in ("benchmark", "model", "train", *algorithms)}
    for key, value in settings.items():
        owner, name = _owner(key)
        if owner in registry.ALGORITHMS and owner not in owners:
            raise UserError(f"{key} sets nothing: {owner} is not among the algorithms of this run")
        if owner not in owners:
            raise UserError(f"{key} sets nothing: {owner!r} is no part of this run; {nearest(owner, owners)}")
        owners[owner][name] = value
    return owners


def _plain(thing: Any) -> dict[str, Any]:
    """The settings of a dataclass as JSON values."""
    values = {name: getattr(thing, name) for name in fields(type(thing))}
    for name, value in values.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise UserError(f"{type(thing).__name__}.{name} is {value}: it must be finite")
    plain: dict[str, Any] = json.loads(json.dumps(values))
    return plain


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
