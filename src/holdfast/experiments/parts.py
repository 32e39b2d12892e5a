"""The built-in parts that affect a run's result, each with its version.

A class states its version as `version`, a module of functions as `VERSION`. Raise it when the same configuration would
lead to a different result: the tests in `tests/golden` say when, and which one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any, TypeAlias, get_args

from holdfast import engine, registry, tasks
from holdfast.algorithms.base import Algorithm
from holdfast.benchmarks.base import Benchmark, Setup
from holdfast.data import augment, decoding, text
from holdfast.data.lazy import ImageFileColumn
from holdfast.engine import optimiser
from holdfast.foreign import code_of, identity, taken
from holdfast.memory import Memory
from holdfast.models import heads
from holdfast.models.base import Model
from holdfast.settings import fields
from holdfast.types import Training

Parts: TypeAlias = dict[str, int | str]
"""The version of each built-in part, and the hash of each external one, by kind and name."""
KINDS = {
    "holdfast.algorithms": "algorithm",
    "holdfast.memory": "memory",
    "holdfast.models.heads": "head",
    "holdfast.models": "model",
    "holdfast.tasks": "task",
    "holdfast.benchmarks": "benchmark",
}
"""The kind of part that the classes of a room are, the more specific rooms first."""
CODE = "code of"
"""The prefix for external parts, which have hashes in place of versions."""
HEADS = {
    "classify": heads.ClassifyHead,
    "choose": heads.ChooseHead,
    "phrase": heads.PhraseHead,
    "compare": heads.CompareHead,
    "generate": heads.GenerateHead,
}


def versions(*kinds: type) -> dict[str, int]:
    """The versions of classes and of the classes that they extend; a class without its own version counts as these.

    An external class counts as all built-in classes that its code refers to.

    >>> from holdfast.models.vilt import TinyVilt
    >>> list(versions(TinyVilt))
    ['model Vilt']
    """
    found = {}
    whole = [each for kind in kinds for each in (kind, *taken(kind))]
    for each in (each for kind in whole for each in kind.__mro__ if "version" in vars(each)):
        for room, name in KINDS.items():
            if f"{each.__module__}.".startswith(f"{room}."):
                found[f"{name} {each.__name__}"] = int(vars(each)["version"])
                break
    return found


def code(kind: str, *classes: type) -> dict[str, str]:
    """The hash of the code of each external class, by name.

    >>> from holdfast.memory import Reservoir
    >>> code("memory", Reservoir)
    {}
    """
    found: dict[str, set[str]] = {}
    for each in classes:
        if own := identity(each):
            found.setdefault(f"{CODE} {kind} {each.__name__}", set()).add(own["code"])
    return {name: "+".join(sorted(each)) for name, each in found.items()}


def of_algorithms(algorithms: Iterable[Algorithm], transforms: Iterable[str]) -> Parts:
    """The versions of algorithms, of the parts that they use, and of stream transforms."""
    found: dict[str, int | str] = {
        f"transform {name}": _module_version(registry.TRANSFORMS[name]) for name in transforms
    }
    for algorithm in algorithms:
        used = algorithm.uses()
        found |= versions(type(algorithm), *used)
        found |= code("memory", *(each for each in used if issubclass(each, Memory)))
    return found


def of_training(training: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """The versions of the engine and of the optimisers and augmentations that these settings name."""
    found = {"engine": engine.VERSION}
    for stage in training:
        if "optimiser" in stage:
            found[f"optimiser {stage['optimiser']}"] = optimiser.VERSION
        if stage.get("augment", "none") != "none":
            found[f"augment {stage['augment']}"] = augment.VERSION
    return found


def of_benchmark(benchmark: Benchmark, recipe: Model) -> Parts:
    """The versions of a benchmark, of the readers of its files, and of a model."""
    return {**versions(type(benchmark), type(recipe), *recipe.uses()), **_readers(benchmark.reads())}


def of_setup(setup: Setup) -> Parts:
    """The versions of tasks and heads, of word pieces, and of what decodes pictures while a run trains."""
    found: dict[str, int | str] = {**code("task", *(type(task) for task in setup.tasks.values()))}
    found |= versions(*(kind for task in setup.tasks.values() for kind in (type(task), HEADS[task.reads.kind])))
    if setup.inputs.text:
        found["tokenizer"] = text.VERSION
    if any(isinstance(column, ImageFileColumn) for table in setup.data.tables for column in table.inputs.values()):
        found["decoding"] = decoding.VERSION
    return found


def of_any_data() -> dict[str, int]:
    """The versions of everything that a run may use beside its benchmark, model and algorithms, whatever its data."""
    kinds = fields(Training)
    found = of_training({name: value} for name in ("optimiser", "augment") for value in get_args(kinds[name]))
    found |= {"tokenizer": text.VERSION, "decoding": decoding.VERSION}
    kinds_of_task = (each for each in vars(tasks).values() if isinstance(each, type) and hasattr(each, "version"))
    return found | versions(*HEADS.values(), *kinds_of_task)


def _module_version(entry: registry.Entry) -> int:
    return int(import_module(entry.module).VERSION)


def _readers(words: Iterable[str]) -> Parts:
    found: Parts = {}
    for entry in (registry.find(word, "dataset") for word in words):
        dataset, module = entry.load(), entry.imported()
        if entry.origin != registry.BUILT_IN:
            found[f"{CODE} reader {entry.name}"] = code_of(dataset, module.__name__)
        elif (version := getattr(module, "VERSION", None)) is not None:
            found[f"reader {entry.name}"] = version
    return found
