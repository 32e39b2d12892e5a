"""Low-shot transfer: the numbers of examples, the runs it needs, and the measures from their scores.

After each upstream stage, the upstream tasks still to come, the language tasks and the vision tasks are each learned
from few examples. T_LS compares that with learning the same examples from the pre-trained encoder (CLiMB, Table 2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast import metrics
from holdfast.benchmarks.base import Need
from holdfast.benchmarks.climb.protocol import share
from holdfast.errors import UserError, nearest
from holdfast.metrics.pooling import Share, pool
from holdfast.types import Score

MODALITIES = {
    "multimodal": ("vqav2", "nlvr2", "snli-ve", "vcr"),
    "language": ("imdb", "sst-2", "hellaswag", "commonsenseqa", "piqa"),
    "vision": ("imagenet", "inaturalist2019", "places365", "coco"),
}
"""The tasks, under the names used in the paper's tables."""
PER_CLASS = ("nlvr2", "snli-ve", "imdb", "sst-2", "imagenet", "inaturalist2019", "places365")
"""Tasks for which a number of shots is per class; for the others it is a total, or a share of the data."""
LEVELS: dict[str, dict[str, tuple[str, ...]]] = {
    "paper": {
        **dict.fromkeys(("vqav2", "vcr"), ("5%",)),
        **dict.fromkeys(("nlvr2", "snli-ve"), ("2048",)),
        **dict.fromkeys(("imdb", "sst-2"), ("16", "32")),
        **dict.fromkeys(("hellaswag", "commonsenseqa", "piqa"), ("1024", "4096")),
        **dict.fromkeys(("imagenet", "inaturalist2019", "places365"), ("16", "32")),
        "coco": ("5%", "10%"),
    },
    "small": {
        **dict.fromkeys(("vqav2", "vcr"), ("5%",)),
        **dict.fromkeys(("nlvr2", "snli-ve"), ("128",)),
        **dict.fromkeys(("imdb", "sst-2"), ("32",)),
        **dict.fromkeys(("hellaswag", "commonsenseqa"), ("64",)),
        "piqa": ("128",),
        **dict.fromkeys(("imagenet", "inaturalist2019", "places365"), ("8",)),
        "coco": ("10%",),
    },
    "tiny": {
        **dict.fromkeys(("vqav2", "vcr", "coco"), ("10%",)),
        **dict.fromkeys(("nlvr2", "snli-ve"), ("8",)),
        **dict.fromkeys(("imdb", "sst-2"), ("8",)),
        **dict.fromkeys(("hellaswag", "commonsenseqa", "piqa"), ("16",)),
        **dict.fromkeys(("imagenet", "inaturalist2019", "places365"), ("2",)),
    },
}
LEVELS["large"] = LEVELS["paper"]
"""The numbers of examples: the paper's and, for the small scales, a single level, rescaled to the available data."""
SAMPLES = 3
"""The number of sub-samples of a language task, whose scores are averaged; other tasks have one."""
UNTOUCHED = frozenset({"frozen-encoder", "adapters", "lora", "adapter-library"})
"""Algorithms that leave the encoder unchanged, so that nothing can be transferred through it."""
GUESSING = "guessing"
"""The lines of a low-shot run's score log that contain the score of guessing."""
_PREFIX = "lowshot"


def task_name(word: str) -> str:
    """The name of a task as in the paper's tables, whatever its spelling.

    >>> task_name("sst2"), task_name("SNLI_VE")
    ('sst-2', 'snli-ve')
    """
    known = {name.replace("-", ""): name for names in MODALITIES.values() for name in names}
    plain = word.strip().lower().replace("-", "").replace("_", "")
    if plain not in known:
        raise UserError(f"benchmark.task is {word!r}: {nearest(word, known.values())}")
    return known[plain]


def modality(task: str) -> str:
    """The modality of a task: multimodal, language or vision.

    >>> modality("piqa")
    'language'
    """
    return next(kind for kind, names in MODALITIES.items() if task in names)


def levels(task: str, scale: str) -> tuple[str, ...]:
    """The numbers of examples for a task at a scale.

    >>> levels("imdb", "paper"), levels("coco", "paper")
    (('16', '32'), ('5%', '10%'))
    """
    return LEVELS[scale][task]


def amount(shots: str) -> tuple[float | None, int | None]:
    """A share of the data, or a count.

    >>> amount("5%"), amount("16")
    ((0.05, None), (None, 16))
    """
    try:
        if shots.endswith("%"):
            share = float(shots[:-1]) / 100
            if 0 < share <= 1:
                return share, None
        elif (count := int(shots)) > 0:
            return None, count
    except ValueError:
        pass
    raise UserError(f"benchmark.shots is {shots!r}: use a count such as 16, or a share such as 5%")


@dataclass(frozen=True)
class LowShotRun:
    """One low-shot run: the task, its few examples, and the number of upstream stages before it (0: none).

    >>> LowShotRun(2, "sst-2", "16", 1).name
    'lowshot/2/sst-2/16/1'
    >>> LowShotRun.parse("lowshot/2/sst-2/16/1"), LowShotRun.parse("direct/vcr")
    (LowShotRun(stage=2, task='sst-2', shots='16', sample=1), None)
    """

    stage: int
    task: str
    shots: str
    sample: int

    @property
    def name(self) -> str:
        """The name under which another run needs this one."""
        return f"{_PREFIX}/{self.stage}/{self.task}/{self.shots}/{self.sample}"

    @staticmethod
    def parse(name: str) -> LowShotRun | None:
        """The low-shot run with this name; None for a name of another kind."""
        prefix, *rest = name.split("/")
        if prefix != _PREFIX:
            return None
        stage, task, shots, sample = rest
        return LowShotRun(int(stage), task, shots, int(sample))

    def need(self, after: int | None, features: str = "") -> Need:
        """The differences from the upstream run; it starts from the weights after that many stages, or from none."""
        settings = {"benchmark.task": self.task, "benchmark.shots": self.shots, "benchmark.sample": self.sample}
        settings |= {"benchmark.features": features} if features else {}
        change = {"benchmark": "climb:lowshot", "algorithm": "finetune", "order": None, "setting": None}
        return Need({**change, "settings": settings}, after, self.stage)


def needs(order: Sequence[str], scale: str, title: str, features: str = "", only: str = "all") -> dict[str, Need]:
    """The low-shot runs after each stage of an upstream run, and those from the pre-trained encoder.

    If the algorithm leaves the encoder unchanged, all are runs from the pre-trained encoder. A model that takes a
    detector's `features` learns only the multimodal tasks: there are no features for the others.
    """
    untouched = not UNTOUCHED.isdisjoint(title.split("+"))
    found: dict[str, Need] = {}
    for each in _after_each(order, scale):
        kind = modality(each.task)
        if (features and kind != "multimodal") or only not in ("all", kind):
            continue
        found.setdefault(replace(each, stage=0).name, each.need(None, features))  # for the first stage that needs it
        found[each.name] = each.need(None if untouched else each.stage, features)
    return found


def measures(others: Mapping[str, Sequence[Score]]) -> dict[str, float]:
    """T_LS of each modality, in percent, pooled over all stages, tasks and shots."""
    logs = [run for name in others if (run := LowShotRun.parse(name))]
    if not logs:
        return {}
    found, there = shares(others), {(run.stage, run.task, run.shots) for run in logs}
    measured: dict[str, float] = {}
    for kind, names in MODALITIES.items():
        lacking = [t for stage, t, s in there if stage > 0 and t in names and (0, t, s) not in there]
        own = found.get(f"low_shot_{kind}")
        reason = metrics.Undefined(f"the low-shot runs of {min(lacking or names)} are missing")
        measured[f"low_shot_{kind}"] = pool(own) if own else reason
    return measured


def shares(others: Mapping[str, Sequence[Score]]) -> dict[str, dict[str, Share]]:
    """The contribution of each task to T_LS of its modality, for each number of shots, summed over the upstream stages.

    Scores of several sub-samples are averaged first. A modality is left out if any of its baselines is missing.
    """
    logs = {run: scores for name, scores in others.items() if (run := LowShotRun.parse(name))}
    means: dict[tuple[int, str, str], list[float]] = {}
    for run, log in logs.items():
        means.setdefault((run.stage, run.task, run.shots), []).append(final(log))
    about = {run.task: (tested(log), guessing(log)) for run, log in logs.items()}
    found: dict[str, dict[str, Share]] = {}
    for kind, names in MODALITIES.items():
        after: dict[tuple[str, str], list[float]] = {}
        for (stage, task, shots), values in means.items():
            if stage > 0 and task in names:
                after.setdefault((task, shots), []).append(metrics.mean(values))
        if not after or any((0, *key) not in means for key in after):
            continue
        own = found.setdefault(f"low_shot_{kind}", {})
        for (task, shots), scores in after.items():
            direct = metrics.mean(means[0, task, shots])
            one = share(sum(scores) - len(scores) * direct, direct, *about[task])
            own[f"{task} {shots}"] = replace(one, base=len(scores) * one.base)
    return found


def final(scores: Sequence[Score]) -> float:
    """The score of a low-shot run on test data at its end."""
    (found,) = (s.score for s in scores if s.split == "test" and s.name != GUESSING)
    return found


def tested(scores: Sequence[Score]) -> int:
    """The number of examples on which a low-shot run is tested."""
    (found,) = (s.count for s in scores if s.split == "test" and s.name != GUESSING)
    return found


def guessing(scores: Sequence[Score]) -> float:
    """The score of guessing on the task of a low-shot run."""
    (found,) = (s.score for s in scores if s.split == "test" and s.name == GUESSING)
    return found


def _after_each(order: Sequence[str], scale: str) -> Iterator[LowShotRun]:
    for stage in range(1, len(order) + 1):
        later = [task for task in order[stage:] if task in MODALITIES["multimodal"]]
        for task in (*later, *MODALITIES["language"], *MODALITIES["vision"]):
            for shots in levels(task, scale):
                for sample in range(SAMPLES if modality(task) == "language" else 1):
                    yield LowShotRun(stage, task, shots, sample)
