"""Stores for the tests: a small real one, and synthetic records as many as one likes."""

import hashlib
import json
from pathlib import Path

import numpy as np

from holdfast import registry

ALGORITHMS = ("finetune", "replay", "ewc", "lwf", "gem", "derpp", "joint", "mas", "si", "gdumb")


def record(
    benchmark="patterns",
    algorithm="finetune",
    seed=0,
    stages=5,
    given="",
    run=None,
    summary=None,
    lost=0.15,
    **settings,
):
    """A record as a run of that name would write it, with made-up scores; `lost` is forgotten in each later stage."""
    random = np.random.default_rng([seed, *algorithm.encode()])
    bound = algorithm in ("joint", "cumulative")
    names = [f"stage-{number + 1}" for number in range(stages)]
    scores = [
        {"stage": stage, "step": 40 * stage, "name": name, "split": split, "count": 80,
         "score": float(np.clip(0.9 - lost * (stage - place - 1) + 0.05 * random.standard_normal(), 0, 1))
         if stage > place else 0.1}
        for stage in range(1, stages + 1)
        for split in ("validation", "test")
        for place, name in enumerate(names)
    ]  # fmt: skip
    final = float(np.mean([score["score"] for score in scores[-stages:]]))
    own = {"name": benchmark, "scale": "tiny", "setting": "class", "order": "forward", **settings, "seed": seed}
    plain = algorithm == "finetune" or bound
    command = f"holdfast run {benchmark} --algorithm {algorithm} --scale tiny --seed {seed}" + given
    return {
        "id": run or hashlib.blake2b(f"{own}{algorithm}{given}".encode(), digest_size=6).hexdigest(),
        "config": {
            "benchmark": own,
            "model": {"name": settings.get("model", "perceptron"), "width": 128, "depth": 2},
            "algorithms": [] if plain else [{"name": algorithm, "capacity": 200}],
            "transforms": [algorithm] if bound else [],
            "training": [{"epochs": 10, "batch_size": 32, "learning_rate": 0.001}] * stages,
            "seed": seed,
            "precision": "float32",
            "predictions": False,
            "data": "318f6439d137a6d068363c2347a1fe07",
            "version": 1,
        },
        "environment": {"holdfast": "0.1.0", "python": "3.11", "device": "x86_64", "command": command},
        "summary": summary or {
            "final_accuracy": final,
            "learning_accuracy": 0.9,
            "forgetting": 0.9 - final,
            "backward_transfer": final - 0.9,
        },
        "reasons": {},
        "shares": shares(benchmark, summary or {}),
        "scores": scores,
        "cost": {"steps": 200, "seconds": 1.5 + seed, "examples_forward": 6400, "examples_backward": 6400,
                 "memory_bytes": 0 if plain else 32064, "parameters": 52874},
        "chance": {},
        "dropped": 0,
        "problems": [],
        "schema": 1,
    }  # fmt: skip


def shares(benchmark, summary):
    """What one task, learned without a doubt, adds to pooled measures with these values."""
    known = getattr(registry.part(benchmark, "protocol"), "MEASURES", {})
    task = {n: {"change": v / 100, "base": 1.0, "doubt": ""} for n, v in summary.items() if v is not None}
    return {name: {"task": share} for name, share in task.items() if name in known and known[name].pooled}


def put(store: Path, value: dict) -> Path:
    """Write a record as a finished run of a store."""
    folder = store / value["id"]
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(value["config"]))
    (folder / "environment.json").write_text(json.dumps(value["environment"]))
    (folder / "record.json").write_text(json.dumps(value))
    return folder


def many(store: Path, count: int) -> Path:
    """A store of `count` finished runs: ten algorithms, two models, and as many seeds as that takes."""
    for number in range(count):
        algorithm, model, seed = ALGORITHMS[number % 10], number // 10 % 2, number // 20
        put(
            store, record(algorithm=algorithm, seed=seed, run=f"{number:012x}", model=("perceptron", "resnet18")[model])
        )
    return store
