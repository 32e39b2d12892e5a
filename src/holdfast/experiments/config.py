"""From what a user asks for to a frozen configuration, whose hash is the run's id."""

from __future__ import annotations

import functools
import hashlib
import json
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from holdfast import registry
from holdfast.algorithms.base import Algorithm
from holdfast.benchmarks.base import Benchmark, Need, Setup
from holdfast.data.threads import threads
from holdfast.errors import UserError, nearest
from holdfast.experiments import parts
from holdfast.experiments.front import through
from holdfast.foreign import identity
from holdfast.models.base import Recipe
from holdfast.settings import build, fields, shown
from holdfast.types import Between, Stream, Training
from holdfast.world.whole import holds_world

START = r"([0-9a-f]{12})@([1-9]\d*)"
"""How a start is written: a run's id and the number of a stage."""


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
    data: str | None = None
    """The folder of the official files; None: the world's."""
    skip_bad: Annotated[int, Between(0)] = 0
    """How many bad records of the data may be dropped."""
    start: str = ""
    """RUN@STAGE: the encoder begins with the weights that another run of the store had after a stage."""
    stages: Annotated[int, Between(1)] | None = None
    """Only so many stages, the first, are learned; None: all."""
    threads: Annotated[int, Between(1)] = 1
    """How many threads compute on the CPU. Another number rounds otherwise, so it is part of the run's id."""

    def command(self) -> str:
        """The command that asks for the same.

        >>> Request("patterns", "er", seed=2, settings={"replay.capacity": 50}).command()
        'holdfast run patterns --algorithm er --seed 2 --set replay.capacity=50'
        """
        words = ["holdfast", "run", self.benchmark, "--algorithm", self.algorithm]
        plain = ("model", "scale", "setting", "order", "data", "skip_bad", "seed", "precision", "start", "stages")
        for name in (*plain, "threads"):
            if (value := getattr(self, name)) != getattr(Request, name):
                words += [f"--{name.replace('_', '-')}", str(value)]
        words += ["--predictions"] if self.predictions else []
        for name, value in self.settings.items():
            words += ["--set", f"{name}={','.join(map(str, value)) if isinstance(value, list | tuple) else value}"]
        return shlex.join(words)

    @staticmethod
    def from_command(command: str) -> Request:
        """The request behind such a command; its numbers are still words, which `check` reads.

        >>> Request.from_command("holdfast run patterns --algorithm er --seed 2 --set replay.capacity=50").settings
        {'replay.capacity': '50'}
        """
        words, settings = iter(shlex.split(command)[2:]), dict[str, str]()
        given: dict[str, Any] = {"benchmark": next(words)}
        for word in words:
            name = word.removeprefix("--").replace("-", "_")
            if name == "set":
                key, _, value = next(words).partition("=")
                settings[key] = value
            else:
                given[name] = True if name == "predictions" else next(words)
        return Request(**given, settings=settings)


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
    parts: Mapping[str, int]
    """The version of each built-in part that the run uses: see `parts`."""
    start: str = ""
    stages: int | None = None
    threads: int = 1

    @functools.cached_property
    def id(self) -> str:
        """The hash of the configuration: twelve hexadecimal digits."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; without what few runs have, so that the others keep the ids that they always had."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        few = {"start": "", "stages": None, "threads": 1}
        return {name: value for name, value in plain.items() if name not in few or value != few[name]}


@dataclass(frozen=True)
class Checked:
    """A request whose names and settings are all right; its data is not yet looked at."""

    request: Request
    benchmark: Benchmark
    recipe: Recipe
    algorithms: tuple[Algorithm, ...]
    transforms: tuple[str, ...]
    training: dict[str, Any]
    names: Mapping[str, Any]
    """The registered names of all of these, with a hash of the code of those that are not ours."""

    @property
    def title(self) -> str:
        """The name of the run's row in a table: `replay`, `ewc+replay`, `joint`."""
        return _title(self.transforms, [a["name"] for a in self.names["algorithms"]])


@dataclass(frozen=True)
class Prepared:
    """A run that is ready to begin: its configuration and the things that it names."""

    config: Config
    command: str
    benchmark: Benchmark
    setup: Setup
    recipe: Recipe
    algorithms: tuple[Algorithm, ...]
    world: bool
    """Whether its data is the world's, wherever that lies."""


@dataclass(frozen=True)
class Outline:
    """What a run's id must know of its data: kept where the data itself would be too much."""

    stream: Stream
    data: str
    parts: Mapping[str, int]


class Preparation:
    """Prepares runs one after another: data that the next one shares is read once.

    The last run's data is kept, and the outlines of all, so that a thousand runs are named without reading a thousand
    times.
    """

    def __init__(self) -> None:
        self._outlines: dict[Any, Outline] = {}
        self._last: tuple[Any, Setup] | None = None

    def named(self, checked: Checked) -> tuple[Config, Stream]:
        """The configuration of a run, whose hash is its id, and the stream that it will learn."""
        key = checked.benchmark, checked.recipe.wants()
        if key not in self._outlines:
            self._setup(checked)
        outline = self._outlines[key]
        stream = _stream(outline.stream, checked)
        fewer = checked.request.stages if (checked.request.stages or 0) < len(outline.stream.stages) else None
        training = [_training(stage.training) for stage in stream.stages]
        config = configured(checked, training, outline.data, checked.recipe.source(), outline.parts)
        return replace(config, stages=fewer), stream

    def prepared(self, checked: Checked) -> Prepared:
        """The run, ready to begin."""
        setup = self._setup(checked)
        config, stream = self.named(checked)
        setup = replace(setup, stream=stream)
        given = checked.request.data
        return Prepared(
            config,
            checked.request.command(),
            checked.benchmark,
            setup,
            checked.recipe,
            checked.algorithms,
            world=given is None or holds_world(Path(given)),
        )

    def _setup(self, checked: Checked) -> Setup:
        """The benchmark's own setup, as this model sees it."""
        key = checked.benchmark, checked.recipe, checked.request.threads
        if self._last is None or self._last[0] != key:
            self._last = None  # two at once may be too many
            wants = checked.recipe.wants()
            setup = checked.benchmark.setup(wants)
            outline = Outline(setup.stream, setup.data.fingerprint(), parts.of_setup(setup))
            self._outlines.setdefault((checked.benchmark, wants), outline)
            if (front := checked.recipe.front()) is not None:
                with threads(checked.request.threads):
                    setup = through(setup, front)
            self._last = key, setup
        return self._last[1]


def check(request: Request) -> Checked:
    """Look every name up and check every setting; raise UserError at the first thing wrong."""
    refuse_objects(request)
    plain = {name: getattr(request, name) for name in fields(Request) if name != "settings"}
    request = replace(build(Request, plain, "run"), settings=dict(request.settings))
    if request.start and not re.fullmatch(START, request.start):
        raise UserError(f"--start is {request.start!r}: write it as RUN@STAGE, a run's id and the number of a stage")
    words, named = _named(request.algorithm)
    transforms, entries = _algorithms(words)
    names = [name for name, _ in entries]
    settings = _by_owner(request.settings, names)
    for owner, own in _by_owner(named, names).items():
        for name, value in own.items():
            if str(given := settings[owner].setdefault(name, value)) != value:
                raise UserError(
                    f"{request.algorithm!r} says {owner}.{name}={value}, and --set says {given}: give one of the two"
                )

    benchmark_name = registry.resolve(request.benchmark, "benchmark", registry.BENCHMARKS)
    kind: type[Benchmark] = registry.BENCHMARKS[benchmark_name].load()
    asked = {name: getattr(request, name) for name in ("scale", "setting", "order", "data", "skip_bad")}
    given = {name: value for name, value in asked.items() if value not in (None, 0)}
    for name in given.keys() & settings["benchmark"].keys():
        if str(given[name]) != str(settings["benchmark"][name]):
            raise UserError(
                f"--{name.replace('_', '-')} is {given[name]} and benchmark.{name} {settings['benchmark'][name]}: "
                "these are the same setting, give it once"
            )
    given |= settings["benchmark"]
    for name in ("data", "skip_bad"):
        if name in given and name not in fields(kind):
            raise UserError(f"{benchmark_name} draws its own data: leave --{name.replace('_', '-')} out")
    if "seed" in given:
        raise UserError("benchmark.seed is the run's seed: give it with --seed")
    benchmark = build(kind, given | {"seed": request.seed}, benchmark_name)
    build(Training, settings["train"], "train")
    title = _title(transforms, names)
    model_name = registry.resolve(request.model or benchmark.model(title), "model", registry.MODELS)
    preset = _by_owner(benchmark.preset(model_name, title), names)
    assert not preset["benchmark"], "a preset follows from the benchmark's settings, and changes none of them"
    for name, kind_of in entries:
        for given_name in kind_of.instead.keys() & settings[name].keys():
            preset[name].pop(kind_of.instead[given_name], None)
    settings = {owner: {**preset[owner], **own} for owner, own in settings.items()}
    recipe: Recipe = build(registry.MODELS[model_name].load(), settings["model"], "model")
    algorithms = tuple(build(kind, settings[name], name) for name, kind in entries)
    for name, algorithm in zip(names, algorithms, strict=True):
        algorithm.called = name  # what messages call it
    found = {
        "benchmark": benchmark_name,
        "model": model_name,
        "code": {"benchmark": identity(kind), "model": identity(type(recipe))},
        "algorithms": [{"name": name, **identity(kind)} for name, kind in entries],
    }
    return Checked(request, benchmark, recipe, algorithms, tuple(transforms), settings["train"], found)


def refuse_objects(request: Request) -> None:
    """Raise UserError where an object stands in the place of a name, or settings are no dictionary."""
    for part in _NAMED:
        refuse_object(part, getattr(request, part))
    given = request.settings
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise UserError(f"settings is {shown(given)}: give a dictionary such as {{'replay.capacity': 64}}")


def refuse_object(part: str, value: object) -> None:
    """Raise UserError where the benchmark, algorithm or model is no name: the text of an object may name another."""
    if not isinstance(value, str) and not (part == "model" and value is None):
        raise UserError(
            f"{part} is {shown(value)}, and must be text (objects are not supported yet): give its name, such as "
            f"{_NAMED[part]}"
        )


_NAMED = {
    "benchmark": "'patterns'; `holdfast list benchmarks` shows all",
    "algorithm": "'replay', with settings={'replay.capacity': 64}, or 'file.py:Class' for one of your own",
    "model": "'vilt-tiny', with settings={'model.width': 64}",
}
"""What a request names, and how."""


def prepare(request: Request | Checked) -> Prepared:
    """Check a request, and make its data ready."""
    return Preparation().prepared(check(request) if isinstance(request, Request) else request)


def needed(checked: Checked, need: Need, run: str) -> Request:
    """The request of a run that another needs, which is named by its id."""
    given, change = checked.request, dict(need.change)
    kept = {"model"} if "settings" in change else {"model", "benchmark", "train"}
    if "benchmark" in change:
        kept -= {"benchmark"}
        change = {"order": None, "setting": None, "model": checked.names["model"]} | change
    elif "settings" not in change and change.get("algorithm", given.algorithm) == given.algorithm:
        kept |= {_owner(name)[0] for name in given.settings}
    settings = {name: value for name, value in given.settings.items() if _owner(name)[0] in kept}
    change["settings"] = settings | dict(change.get("settings", {}))
    if need.after is not None:
        change["start"] = f"{run}@{need.after}"
    return replace(given, **change)


def _stream(given: Stream, checked: Checked) -> Stream:
    """The stream as the run learns it: with its settings, its transforms, and as many stages as it asks for."""
    stages = tuple(
        replace(stage, training=build(Training, asdict(stage.training) | checked.training, "train"))
        for stage in given.stages[: checked.request.stages]
    )
    stream = replace(given, stages=stages)
    for name in checked.transforms:
        stream = registry.TRANSFORMS[name].load()(stream)
    for stage in stream.stages:
        if stage.training.patience is not None and not stage.validation:
            raise UserError(f"train.patience needs validation data, and stage {stage.name!r} has none")
    return stream


def configured(
    checked: Checked, training: Sequence[Mapping[str, Any]], data: str, weights: str, further: Mapping[str, int]
) -> Config:
    """The configuration of a run whose stages are trained so, on this data and from these weights, by their hashes.

    `further` has the versions of the parts that follow from the data.
    """
    request, code, source = checked.request, checked.names["code"], {"source": weights} if weights else {}
    drawn = _plain(checked.benchmark, checked.benchmark.places)
    return Config(
        benchmark={"name": checked.names["benchmark"], **code["benchmark"], **drawn},
        model={"name": checked.names["model"], **code["model"], **_plain(checked.recipe), **source},
        algorithms=[
            {**name, **_plain(algorithm)}
            for name, algorithm in zip(checked.names["algorithms"], checked.algorithms, strict=True)
        ],
        transforms=checked.transforms,
        training=training,
        seed=request.seed,
        precision=request.precision,
        predictions=request.predictions,
        data=data,
        parts={
            **parts.of_training(training),
            **parts.of_benchmark(checked.benchmark, checked.recipe),
            **parts.of_algorithms(checked.algorithms, checked.transforms),
            **further,
        },
        start=request.start,
        threads=request.threads,
    )


def settings_for(algorithms: Sequence[str], settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Which settings each of several algorithms is given: those of the run, and its own.

    >>> settings_for(["finetune", "er"], {"train.epochs": 3, "replay.size": 8})
    {'finetune': {'train.epochs': 3}, 'er': {'train.epochs': 3, 'replay.size': 8}}
    """
    owners = {word: {name for name, _ in _algorithms(_named(word)[0])[1]} for word in algorithms}
    own = {key: _owner(key)[0] for key in settings}
    elsewhere = {word: set().union(*owners.values()) - mine for word, mine in owners.items()}
    return {word: {k: v for k, v in settings.items() if own[k] not in elsewhere[word]} for word in algorithms}


def _named(words: str) -> tuple[str, dict[str, str]]:
    """The algorithms that words name, and the settings that are part of a name: a paper's row, a memory's size.

    >>> _named("ewc+er@1000+mir-max@50")
    ('ewc+er+mir', {'er.capacity': '1000', 'mir.by': 'max', 'mir.capacity': '50'})
    """
    names: list[str] = []
    settings: dict[str, str] = {}
    for word in words.split("+"):
        name, _, size = word.strip().rpartition("@")
        name, size = (name, size) if name and size.isdigit() else (word, "")
        name, own = registry.row(name)
        settings |= own
        if size:
            settings[f"{name.rpartition(':')[2]}.capacity"] = size
        names.append(name)
    return "+".join(names), settings


def _algorithms(words: str) -> tuple[list[str], list[tuple[str, type[Algorithm]]]]:
    """The stream transforms that `A+B` names, and its algorithms: name and class."""
    transforms, entries = [], []
    names = [word.strip() for word in words.split("+")]
    for name in names:
        if ".py" in name:
            kind = registry.algorithm_from_file(name)
            entries.append((kind.__name__, kind))
            continue
        found = registry.resolve(name, "algorithm", registry.ALGORITHMS, registry.PLAIN, registry.TRANSFORMS)
        if found in registry.TRANSFORMS:
            transforms.append(found)
        elif found in registry.ALGORITHMS:
            entries.append((found, registry.ALGORITHMS[found].load()))
        elif len(names) > 1:
            raise UserError(f"{name!r} is plain fine-tuning: there is nothing to combine in {words!r}")
    if len({*transforms, *(name for name, _ in entries)}) < len(transforms) + len(entries):
        raise UserError(f"{words!r} names one algorithm twice")
    return transforms, entries


def _title(transforms: Sequence[str], algorithms: Sequence[str]) -> str:
    return "+".join([*transforms, *algorithms]) or "finetune"


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


def _training(training: Training) -> dict[str, Any]:
    """How a stage is trained; without what few runs have, so that the others keep the ids that they always had."""
    return {name: value for name, value in _plain(training).items() if name != "accumulate" or value != 1}


def _plain(thing: Any, without: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The settings of a dataclass as JSON values."""
    values = {name: getattr(thing, name) for name in fields(type(thing)) if name not in without}
    for name, value in values.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise UserError(f"{type(thing).__name__}.{name} is {value}: it must be finite")
    plain: dict[str, Any] = json.loads(json.dumps(values))
    return plain
