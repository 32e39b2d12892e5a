"""What a user asks for: a run by names and settings that differ from the defaults, and the command that says so.

What has no name (a class typed into a shell, a dataset in memory) is carried beside the words: see `objects`.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from holdfast import registry
from holdfast.algorithms.base import Algorithm
from holdfast.errors import UserError, nearest
from holdfast.experiments.carried import Carried
from holdfast.settings import build
from holdfast.types import Between, Budget

START = r"([0-9a-f]{12})@([1-9]\d*)"
"""The form of a start: a run's id and the number of a stage."""


@dataclass(frozen=True)
class Request:
    """A run as a user asks for it: names, and settings that differ from the defaults."""

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
    """The folder of the official files; None for synthetic data."""
    skip_bad: Annotated[int, Between(0)] = 0
    """How many bad records of the data may be skipped."""
    start: str = ""
    """RUN@STAGE: the encoder starts from the weights that another run of the store had after a stage."""
    stages: Annotated[int, Between(1)] | None = None
    """Learn only the first N stages; None for all."""
    threads: Annotated[int, Between(1)] = 1
    """The number of CPU threads. It affects rounding, so it is part of the run's id."""
    budget: str = ""
    """The resources that training may use, as in `flops=1e13` or `passes=20000,bytes=1e6`; empty: as much as it
    needs."""
    objects: Mapping[str, Carried] = field(default_factory=dict)
    """The objects that the words above refer to, if no command can name them."""

    def carried(self) -> list[Carried]:
        """The objects that the words of this run refer to; if there are any, no command repeats the run."""
        words = [self.benchmark, *self.algorithm.split("+"), self.model or ""]
        return [self.objects[word] for word in words if word in self.objects]

    def command(self) -> str:
        """The command for the same run; empty if the request has objects that cannot be found by name."""
        return "" if self.carried() else self.text()

    def again(self) -> str:
        """The advice for a request without a command."""
        if not (carried := self.carried()):
            return ""
        *others, last = map(str, carried)
        what = f"{', '.join(others)} and {last}" if others else last
        script = next((each.origin for each in carried if each.origin), "")
        if script:
            return f"no command repeats this run: {what} came from {script}; run that script again"
        return f"no command repeats this run: {what} came from a shell or a notebook"

    def text(self) -> str:
        """The request as one line: a command, if everything in it has a name.

        >>> Request("patterns", "er", seed=2, settings={"replay.capacity": 50}).text()
        'holdfast run patterns --algorithm er --seed 2 --set replay.capacity=50'
        """
        words = ["holdfast", "run", self.benchmark, "--algorithm", self.algorithm]
        plain = ("model", "scale", "setting", "order", "data", "skip_bad", "seed", "precision", "start", "stages")
        for name in (*plain, "threads", "budget"):
            if (value := getattr(self, name)) != getattr(Request, name):
                words += [f"--{name.replace('_', '-')}", str(value)]
        words += ["--predictions"] if self.predictions else []
        for name, value in self.settings.items():
            words += ["--set", f"{name}={','.join(map(str, value)) if isinstance(value, list | tuple) else value}"]
        return shlex.join(words)

    @staticmethod
    def from_command(command: str) -> Request:
        """Parse such a command; numbers stay text, which `resolve` reads.

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


def budget_of(text: str) -> Budget | None:
    """The budget that a text states; None if it is empty.

    >>> budget_of("flops=1e13,passes=2000")
    Budget(flops=10000000000000.0, passes=2000.0, bytes=None)
    """
    found: dict[str, str] = {}
    for word in text.split(",") if text.strip() else ():
        name, equals, value = (each.strip() for each in word.partition("="))
        if not equals or name in found:
            raise UserError(f"--budget {text!r}: write it as flops=N, passes=N or bytes=N, each at most once")
        found[name] = value
    return build(Budget, found, "budget") if found else None


def entry_of(word: str, kind: str, objects: Mapping[str, Carried]) -> registry.Entry | Carried:
    """What a word of a request refers to: an object carried beside it, or what has that name."""
    return objects.get(word.strip()) or registry.find(word, kind)


def settings_for(
    algorithms: Sequence[str], settings: Mapping[str, Any], objects: Mapping[str, Carried] | None = None
) -> dict[str, dict[str, Any]]:
    """The settings that each of several algorithms gets: those of the run, and its own.

    >>> settings_for(["finetune", "er"], {"train.epochs": 3, "replay.size": 8})
    {'finetune': {'train.epochs': 3}, 'er': {'train.epochs': 3, 'replay.size': 8}}
    """
    found = objects or {}
    owners = {word: {name for name, _ in algorithms_of(settings_in(word, found)[0], found)[1]} for word in algorithms}
    own = {key: owner_of(key)[0] for key in settings}
    elsewhere = {word: set().union(*owners.values()) - mine for word, mine in owners.items()}
    return {word: {k: v for k, v in settings.items() if own[k] not in elsewhere[word]} for word in algorithms}


def settings_in(words: str, objects: Mapping[str, Carried] | None = None) -> tuple[str, dict[str, str]]:
    """The algorithms that words name, and the settings that names imply: a paper's row, a memory's size.

    >>> settings_in("ewc+er@1000+mir-max@50")
    ('ewc+er+mir', {'er.capacity': '1000', 'mir.by': 'max', 'mir.capacity': '50'})
    """
    names: list[str] = []
    settings: dict[str, str] = {}
    for word in words.split("+"):
        if word in (objects or {}):
            names.append(word)
            continue
        name, _, size = word.strip().rpartition("@")
        name, size = (name, size) if name and size.isdigit() else (word, "")
        name, own = registry.row(name)
        settings |= own
        if size:
            settings[f"{name.rpartition(':')[2]}.capacity"] = size
        names.append(name)
    return "+".join(names), settings


def algorithms_of(
    words: str, objects: Mapping[str, Carried] | None = None
) -> tuple[list[str], list[tuple[str, type[Algorithm] | Algorithm]]]:
    """The stream transforms that `A+B` names, and its algorithms: name, and class or object."""
    transforms, entries = [], []
    names = [word.strip() for word in words.split("+")]
    for name in names:
        entry = entry_of(name, "algorithm", objects or {})
        found = entry.load()
        if isinstance(found, type | Algorithm):
            entries.append((entry.name, found))
        elif found is not None:
            transforms.append(entry.name)
        elif len(names) > 1:
            raise UserError(f"{name!r} is plain fine-tuning: there is nothing to combine in {words!r}")
    if len({*transforms, *(name for name, _ in entries)}) < len(transforms) + len(entries):
        raise UserError(f"{words!r} names one algorithm twice")
    return transforms, entries


def title_of(transforms: Sequence[str], algorithms: Sequence[str]) -> str:
    """The name of a run's row in a table."""
    return "+".join([*transforms, *algorithms]) or "finetune"


def owner_of(key: str) -> tuple[str, str]:
    """The registered name of the owner of a setting such as `er.capacity`, and the rest."""
    owner, _, name = key.rpartition(".")
    main = {alias: n for n, e in registry.ALGORITHMS.items() for alias in (n, *e.aliases)}
    return main.get(owner, owner), name


def by_owner(settings: Mapping[str, Any], algorithms: list[str]) -> dict[str, dict[str, Any]]:
    """Settings such as `replay.capacity`, grouped by owner."""
    owners: dict[str, dict[str, Any]] = {name: {} for name in ("benchmark", "model", "train", *algorithms)}
    for key, value in settings.items():
        owner, name = owner_of(key)
        if owner in registry.ALGORITHMS and owner not in owners:
            raise UserError(f"{key} sets nothing: {owner} is not among the algorithms of this run")
        if owner not in owners:
            raise UserError(f"{key} sets nothing: {owner!r} is not part of this run; {nearest(owner, owners)}")
        if str(owners[owner].setdefault(name, value)) != str(value):
            raise UserError(f"{owner}.{name} is given as {owners[owner][name]} and, as {key}, as {value}: give it once")
    return owners
