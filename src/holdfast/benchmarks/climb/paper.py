"""CLiMB's constants (Srinivasan et al., 2022): orders, training, and the settings of its algorithms.

The numbers of Table 4 and the three orders come from `holdfast.papers`. Details that the text leaves open follow the
released code: the betas of AdamW, the warm-up, the rule for answers, when ER replays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast import registry
from holdfast.data.decoding import ImageFit
from holdfast.papers import table
from holdfast.types import Training


@dataclass(frozen=True)
class Facts:
    """The facts about a task; an empty `validation` is split off train."""

    name: str
    dataset: str
    validation: str
    test: str
    chance: float
    """S_R of Table 4; 0 for VQAv2, since the chance of one of 3129 answers is next to nothing."""
    outputs: int = 0
    """The number of answers; 0: as determined by the rule for answers."""
    images: int = 1
    like: str = ""
    """The task of the paper whose training, budget and files of region features it shares; empty: it is one itself."""

    @property
    def model(self) -> str:
        """The task of the paper that it is, or is like."""
        return self.like or self.name


TASKS = {
    facts.name: facts
    for facts in (
        Facts("vqav2", "vqav2", "", "val", 0.0),
        Facts("nlvr2", "nlvr2", "dev", "test1", 1 / 2, outputs=2, images=2),
        Facts("snli-ve", "snli_ve", "dev", "test", 1 / 3, outputs=3),
        Facts("vcr", "vcr", "", "val", 1 / 4, outputs=4),
    )
}
"""The four tasks, under the names used in the paper's tables."""
EXTRA = {"vcr-qar": Facts("vcr-qar", "vcr", "", "val", 1 / 4, outputs=4, like="vcr")}
"""Tasks of the released code without a result in the paper. Only an order that names them has them: the word pieces are
those of the four tasks' texts, whatever is learned."""
KNOWN = TASKS | EXTRA
"""All tasks that an order may name."""

ORDERS = tuple(dict.fromkeys(str(row["order"]) for row in table("climb", "9a") if row["order"] != "direct"))
"""The three orders of Table 9, the standard one first."""
BETAS, WARMUP = (0.9, 0.98), 0.1
TEXT = 40
"""The maximum number of word pieces in a text; also in a question together with an answer."""
SIDE, LONGEST, STEP = 384, 639, 32
"""The shorter side of an image, the maximum of its longer side, and the step to whose multiples both are cut."""
LEAST_ANSWERS = 9
"""How often an answer of VQAv2 must occur to become a choice: with the official files, 3129 answers do."""
LAYERS, FROZEN = 12, 9
"""How many of ViLT's layers are frozen in Frozen Bottom-9."""

ALGORITHMS: dict[str, dict[str, Any]] = {
    "replay": {"memory": "per-task", "share": 0.01, "every": 100, "mode": "separate", "source": "one"},
    "ewc": {"strength": 100.0, "half": False, "where": "encoder", "past": "one", "share": 0.01, "fisher": "batched"},
    "adapters": {"reduction": 16, "activation": "gelu"},
}
"""The paper's settings for each algorithm."""

EPOCHS = {"tiny": 0.2, "small": 1.0, "large": 1.0, "paper": 1.0}
"""The share of the paper's epochs at each scale, unless a budget specifies the epochs."""
RATES = {"large": 5.0, "paper": 1.0}
"""The factor on the paper's learning rates, unless a budget has its own: a smaller model learns faster at higher
ones."""


@dataclass(frozen=True)
class TaskLimits:
    """Limits on a task if time is short: the maximum number of examples in each part, the epochs, and the rate."""

    train: int
    validation: int
    test: int
    epochs: int
    learning_rate: float = 1e-3


BUDGETS = {
    "tiny": dict.fromkeys(TASKS, TaskLimits(160, 40, 60, epochs=2)),
    "small": {
        "vqav2": TaskLimits(5000, 200, 500, epochs=8),
        "nlvr2": TaskLimits(3000, 200, 500, epochs=6, learning_rate=3e-4),
        "snli-ve": TaskLimits(5000, 200, 500, epochs=8),
        "vcr": TaskLimits(800, 200, 500, epochs=8),
    },
}
"""At small, each task takes about twenty-five seconds of one core: four algorithms and their direct baselines take
minutes on two cores."""
RESCALED: dict[str, dict[str, Any]] = {
    "replay": {"share": 0.2, "every": 3},
    "ewc": {"share": 0.1, "strength": 1000.0},
    "adapters": {"reduction": 4},
}
"""At the smaller scales a stage has some hundred steps, not tens of thousands, and an encoder is 64 wide: ER keeps 20 %
of a task and replays every 3 steps, EWC is ten times as strong with a Fisher from 10 %, and an adapter is a quarter as
wide as its layer, not a sixteenth."""


def training(task: str, scale: str) -> Training:
    """The training settings of a task: Table 4, AdamW with a linear schedule, the best epoch by validation data.

    >>> training("snli-ve", "paper").epochs, training("vcr", "paper").batch_size, training("nlvr2", "paper").warmup
    (5, 16, 0.1)
    """
    task = KNOWN[task].model
    (row,) = table("climb", 4).select(task=task)
    budget = BUDGETS[scale][task] if scale in BUDGETS else None
    epochs = budget.epochs if budget else max(round(_number(row["epochs"]) * EPOCHS[scale]), 1)
    return Training(
        epochs=epochs,
        batch_size=int(_number(row["batch_size"])),
        optimiser="adamw",
        learning_rate=budget.learning_rate if budget else _number(row["learning_rate"]) * RATES[scale],
        weight_decay=_number(row["weight_decay"]),
        betas=BETAS,
        epsilon=_number(row["adam_epsilon"]),
        schedule="linear",
        warmup=WARMUP,
        patience=epochs,  # train all of them, and keep the best
    )


def fit(side: int, scale: str) -> dict[str, Any]:
    """How images are fitted into a table (see `data.prepared`).

    They are squares for small data; at the paper's scale they keep their proportions, and stay in files.

    >>> fit(384, "paper")
    {'shorter': 384, 'longest': 639, 'step': 32, 'decode': False}
    """
    if scale != "paper":
        return {"image_size": side}
    return {"shorter": side, "longest": side * LONGEST // SIDE, "step": STEP, "decode": False}


def shape(fit: Mapping[str, Any]) -> tuple[int, int, int]:
    """The shape of the images that are fitted so, with their padding.

    >>> shape(fit(384, "paper")), shape(fit(64, "small"))
    ((3, 608, 608), (3, 64, 64))
    """
    return ImageFit(fit.get("image_size"), fit.get("shorter"), fit.get("longest"), fit.get("step", 1)).shape(())


def preset(model: str, algorithm: str, scale: str) -> Mapping[str, Any]:
    """The settings of an algorithm: the paper's, or rescaled ones for small data and models.

    >>> preset("vilt", "replay", "paper")["replay.share"], preset("vilt-tiny", "replay", "small")["replay.share"]
    (0.01, 0.2)
    >>> preset("vilt", "frozen-bottom", "paper"), preset("vilt-tiny", "frozen-bottom", "small")
    ({'frozen-bottom.k': 9}, {'frozen-bottom.k': 2})
    """
    found: dict[str, Any] = {}
    for name in algorithm.split("+"):
        own = ALGORITHMS.get(name, {}) | (RESCALED.get(name, {}) if scale != "paper" else {})
        if name == "frozen-bottom":
            own = {"k": FROZEN * _depth(model) // LAYERS}
        found |= {f"{name}.{setting}": value for setting, value in own.items()}
    return found


def _depth(model: str) -> int:
    """The default number of layers of a model."""
    return int(getattr(registry.MODELS[model].load(), "depth", LAYERS))


def _number(cell: object) -> float:
    assert isinstance(cell, int | float)
    return float(cell)
