"""What is measured of each built-in part: by the part's name, and the name of a form of it.

A part is named as in a run's configuration, so that a golden tells which version to raise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, get_args

from golden import others
from golden.small import PAIRS, PHRASES, TASKS, WRITTEN, Outcome, on_pictures, on_texts
from holdfast import registry
from holdfast.experiments.parts import HEADS
from holdfast.settings import fields
from holdfast.types import Task, Training

KEPT = {"capacity": 24, "size": 6}
FORMS: dict[str, dict[str, dict[str, Any]]] = {
    "frozen-bottom": {"k0": {"k": 0}},
    "replay": {
        "default": {},
        "reservoir": KEPT,
        "one": KEPT | {"source": "one"},
        "separate": KEPT | {"mode": "separate", "every": 2},
        "per-task": {"memory": "per-task", "share": 0.1, "every": 2, "mode": "separate", "source": "one"},
        "released": {"memory": "per-task", "share": 0.1, "mode": "separate", "fidelity": "released"},
        "experience-balanced": KEPT | {"memory": "experience-balanced"},
        "class-balanced": KEPT | {"memory": "class-balanced"},
        "balanced-sqrt": KEPT | {"memory": "balanced-sqrt", "by": "task"},
        "balanced-forget": KEPT | {"memory": "balanced-forget"},
    },
    "rehearsal": {"default": {}, "few": {"count": 7}},
    "derpp": {"default": {}, "small": KEPT | {"alpha": 0.7, "beta": 0.2}, "released": KEPT | {"fidelity": "released"}},
    "er-ace": {"default": {}, "small": KEPT},
    "gdumb": {"default": {}, "small": {"capacity": 24}},
    "ewc": {
        "default": {},
        "exact": {"fisher": "exact", "share": 0.2, "past": "one"},
        "empirical": {"fisher": "empirical", "share": 0.2, "half": False},
        "online": {"past": "online", "decay": 0.7, "share": 0.2, "where": "encoder"},
        "batched": {"fisher": "batched"},
        "released": {"fisher": "batched", "fidelity": "released"},
    },
    "si": {"default": {}, "strong": {"strength": 30.0, "damping": 0.1}},
    "mas": {"default": {}, "few": {"strength": 30.0, "share": 0.2}},
    "lwf": {"default": {}, "all": {"on": "all", "strength": 3.0, "temperature": 1.3}},
    "agem": {"default": {}, "small": KEPT},
    "gem": {"default": {}, "random": {"keep": "random", "examples": 9, "strength": 0.7}},
    "mir": {
        "default": {"capacity": 60, "size": 8},
        "max": {"capacity": 60, "size": 8, "by": "max", "candidates": 15},
        "released": {"capacity": 60, "size": 8, "fidelity": "released"},
    },
    "rpsnet": {"default": {}, "growing": {"growth": 5.0, "strength": 2.0, "temperature": 1.5, "capacity": 11}},
    "mntdp": {"default": {}, "one": {"neighbours": 1}},
    "adapters": {name: {"activation": name, "reduction": 4} for name in ("gelu", "relu", "silu")} | {"default": {}},
    "wise-ft": {"default": {}, "start": {"share": 0.3, "towards": "start"}},
    "zscl": {"default": {}, "averaged": {"every": 2, "strength": 0.3, "temperature": 1.5, "consolidation": 0.1}},
    "lora": {"default": {}, "rank": {"rank": 2, "scale": 3.0}},
    "adapter-library": {"default": {}, "few": {"count": 20, "reduction": 4}},
}
"""Settings under which each constant of an algorithm counts; those that are not here have the default alone."""
CLASSES = {name: task for name, task in TASKS.items() if name != "choose"}
TRAINING: dict[str, dict[str, Any]] = {
    "default": {},
    "patience": {"patience": 1, "epochs": 5},
    "accumulate": {"accumulate": 3},
    "in order": {"shuffle": False},
    "linear": {"schedule": "linear", "warmup": 0.3},
    "cosine": {"schedule": "cosine", "warmup": 0.1},
    "to a lowest rate": {"schedule": "cosine", "lowest_rate": 2e-3},
    "halving": {"schedule": "halving"},
    "augmented": {"augment": "crop"},
    "plain": {"optimiser": "sgd"},
    "heavy": {"optimiser": "sgd", "momentum": 0.7, "weight_decay": 0.1},
    "adam": {"optimiser": "adam", "weight_decay": 0.1, "betas": (0.7, 0.9), "epsilon": 1e-3},
    "adamw": {"optimiser": "adamw", "weight_decay": 0.1, "betas": (0.7, 0.9), "epsilon": 1e-3},
}
WORDS = KEPT | {"by": "word"}
ON_TEXTS: dict[str, list[tuple[str, dict[str, Any], Mapping[str, Task]]]] = {
    "ewc": [("exact", {"fisher": "exact"}, TASKS), ("sampled", {}, TASKS), ("phrases", {}, PHRASES)],
    "lwf": [("seen", {}, TASKS), ("old-heads", {"on": "old-heads"}, CLASSES), ("phrases", {}, PHRASES)],
    "mas": [("tasks", {}, TASKS), ("phrases", {}, PHRASES)],
    "derpp": [("tasks", KEPT, TASKS), ("phrases", KEPT, PHRASES)],
    "replay": [(name, WORDS | {"memory": name}, PHRASES) for name in ("balanced-sqrt", "balanced-forget")],
    "mir": [("max", KEPT | {"by": "max"}, PHRASES)],
}


Case = Callable[[], Outcome]
CASES: dict[str, Case] = {}
"""Each case by the part that it is about and its form: `algorithm Replay: separate`."""


def _algorithms() -> None:
    for name, entry in registry.ALGORITHMS.items():
        part = f"algorithm {_class(entry)}"
        for form, own in FORMS.get(name, {"default": {}}).items():
            CASES[f"{part}: {form}"] = partial(on_pictures, name, _of(name, own))
        CASES[f"{part}: task"] = partial(on_pictures, name, {"benchmark__setting": "task"})
        if "boundaries" not in entry.load().needs:
            CASES[f"{part}: free"] = partial(on_pictures, name, {"benchmark__boundaries": False})
        for form, own, tasks in ON_TEXTS.get(name, []):
            which = "phrases" if tasks is PHRASES else "texts"
            CASES[f"{part}: {form} on {which}"] = partial(on_texts, name, _of(name, own), tasks)


def _others() -> None:
    for name, forms in others.MODELS.items():
        for form, inputs, sizes in forms:
            part = f"model {_class(registry.MODELS[name])}"
            CASES[f"{part}: {form}"] = partial(others.of_model, name, inputs, sizes)
    CASES["model Wrapped: module"] = others.of_wrapped
    for prompted, growing in ((True, False), (True, True), (False, False)):
        form = "growing" if growing else "prompts" if prompted else "pairs"
        CASES[f"head {HEADS['compare'].__name__}: {form}"] = partial(others.of_comparison, prompted, growing)
    for form in ("logits", "greedy", "beams", "choices"):
        CASES[f"head {HEADS['generate'].__name__}: {form}"] = partial(others.of_writing, form)
    for kind in sorted(HEADS.keys() - {"compare", "generate"}):
        for growing in (False, True) if kind == "classify" else (False,):
            case = f"head {HEADS[kind].__name__}: {'growing' if growing else 'default'}"
            CASES[case] = partial(others.of_head, kind, growing)
    for task in [*TASKS.values(), *PHRASES.values(), *PAIRS, WRITTEN]:
        CASES[f"task {type(task).__name__}: {task.name}"] = partial(others.of_task, task)
    for form, memory in others.MEMORIES.items():
        CASES[f"memory {type(memory()).__name__}: {form}"] = partial(others.of_memory, memory)
    for name in registry.TRANSFORMS:
        CASES[f"transform {name}: stream"] = partial(others.of_transform, name)
        CASES[f"transform {name}: run"] = partial(on_pictures, name, {})
    for kind in get_args(fields(Training)["augment"])[1:]:
        CASES[f"augment {kind}: images"] = partial(others.of_augmentation, kind)
    for form, own in TRAINING.items():
        part = f"optimiser {own['optimiser']}" if "optimiser" in own else "engine"
        CASES[f"{part}: {form}"] = partial(on_pictures, "finetune", _of("train", own))
    CASES["tokenizer: pieces"] = others.of_pieces
    CASES["decoding: pictures"] = others.of_decoding
    for name in others.BENCHMARKS:
        CASES[f"benchmark {_class(registry.BENCHMARKS[name])}: tiny"] = partial(others.of_benchmark, name)
    for form, (name, settings) in others.OWN_DATA.items():
        CASES[f"benchmark OwnData: {form}"] = partial(others.of_own_data, name, settings)


def _class(entry: registry.Entry) -> str:
    return entry.place.partition(":")[2]


def _of(owner: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{owner}.{name}": value for name, value in settings.items()}


_algorithms()
_others()
