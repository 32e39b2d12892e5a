"""What is measured of all parts but algorithms."""

from __future__ import annotations

import dataclasses
import itertools
import math
import tempfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from golden.small import Outcome, exactly, model_values, table_of, tensors
from holdfast import registry
from holdfast.data.augment import augment
from holdfast.data.decoding import ImageFit
from holdfast.data.images import decode
from holdfast.data.text import train
from holdfast.experiments import parts
from holdfast.memory import (
    ClassBalanced,
    ExperienceBalanced,
    GreedyBalanced,
    Latest,
    Memory,
    PerTask,
    Reservoir,
    TargetBalanced,
)
from holdfast.models.base import Encoder, Model
from holdfast.models.dual import Dual
from holdfast.models.module import of
from holdfast.settings import build, fields
from holdfast.tasks import Generate, Retrieve
from holdfast.types import Head, Inputs, Part, Score, Stream, Training
from smallest import prepared

ROWS, STEPS, RATE = 4, 3, 0.05
TEXT = {"text": 6, "vocabulary": 30}
SMALL = {"width": 16, "depth": 2, "heads": 2, "hidden": 24, "head_width": 8, "patch": 8, "positions": 12, "side": 16}
SMALL |= {"channels": 8, "language": 1, "vision": 1, "crossing": 1, "embedding": 6, "recurrent": 8, "attention": 8}
SMALL |= {"context": 24, "tower_depth": 1}
IMAGE = Inputs(image=(3, 16, 16))
BOTH = Inputs(image=(3, 16, 16), **TEXT)
REGIONS = Inputs(regions=(5, 7), **TEXT)
PADDED = Inputs(image=(3, 16, 16), padded=True, **TEXT)
MODELS: dict[str, list[tuple[str, Inputs, dict[str, Any]]]] = {
    "perceptron": [("default", IMAGE, {})],
    "vilt": [("default", BOTH, {"dropout": 0.1}), ("padded", PADDED, {}), ("texts", BOTH, {"text_positions": 9})],
    "vilt-tiny": [("shipped", Inputs(image=(3, 64, 64), text=8, vocabulary=3000), {"weights": "holdfast/vilt-tiny"})],
    "bert": [("default", Inputs(**TEXT), {})],
    "bert-tiny": [("default", Inputs(**TEXT), {})],
    "vault-tiny": [("shipped", Inputs(image=(3, 64, 64), text=8, vocabulary=3000), {"bert": "holdfast/bert-tiny"})],
    "uniter": [("default", REGIONS, {})],
    "vlbert": [("default", REGIONS, {}), ("other", REGIONS, {"whole": "mean", "visual_scale": 0.3, "geometry": True})],
    "lxmert": [("default", REGIONS, {})],
    "san": [("default", BOTH, {}), ("apart", BOTH, {"apart": True}), ("grid", Inputs(grid=(6, 4, 4), **TEXT), {})],
    "resnet18": [(start, IMAGE, {"start": start}) for start in ("medium", "cifar", "imagenet")],
    "vit": [("default", IMAGE, {})],
    "efficientnet-lite0": [("default", IMAGE, {})],
    "dual-tiny": [
        ("shipped", Inputs(image=(3, 32, 32), text=8, vocabulary=598), {"weights": "holdfast/dual-tiny"}),
    ],
    "dual": [("default", Inputs(image=(3, 32, 32), **TEXT), {"image": "vit-tiny", "text": "bert-tiny", "width": 8})],
    "prefix-lm": [("default", BOTH, {"dropout": 0.1}), ("texts", Inputs(**TEXT), {"dropout": 0.0})],
    "hf": [("shipped", Inputs(image=(3, 64, 64), text=8, vocabulary=3000), {"weights": "holdfast/vilt-tiny"})],
    "modular-resnet18": [("branches", IMAGE, {}), ("stages", IMAGE, {"parts": "stages"})],
    "modular-vit": [("branches", IMAGE, {}), ("stages", IMAGE, {"parts": "stages"})],
    "modular-perceptron": [("branches", IMAGE, {}), ("stages", IMAGE, {"parts": "stages"})],
}
"""Small models, with what they see; the sizes are those of SMALL that a recipe has, unless weights give them."""
BENCHMARKS = ("patterns", "cfst:cgqa", "cfst:cifar100", "climb", "climb:lowshot", "clvqa", "viscoll:coco")
BENCHMARKS += ("viscoll:flickr", "mtil", "text:cl", "captions", "instructions:coin", "instructions:ucit")
"""All but cobj and cpin, whose stream is that of cgqa: their data takes a minute to make."""


OWN_DATA: dict[str, tuple[str, dict[str, Any]]] = {
    "classes": ("folder", {"stages": 2}),
    "heads": ("folder", {"stages": 2, "setting": "task", "order": "random-3"}),
    "domains": ("folder", {"by": "domain"}),
    "shift": ("folder", {"stages": 3, "stream": "shift", "most": 3}),
    "rows": ("table", {"text": "text", "target": "label", "by": "year", "stages": 3}),
}
"""Forms of benchmarks of one's own data."""


def columns(inputs: Inputs, rows: int = ROWS) -> dict[str, Tensor]:
    """Random rows of all columns of these inputs."""
    random = np.random.default_rng(3)
    found: dict[str, Tensor] = {}
    if inputs.image:
        found["image"] = torch.from_numpy(random.integers(0, 256, (rows, *inputs.image), np.uint8))
        if inputs.padded:
            found["image_size"] = torch.tensor([[16, 16], [8, 16], [16, 12], [10, 9]])[:rows]
    if inputs.text:
        found["text"] = torch.from_numpy(random.integers(5, inputs.vocabulary, (rows, inputs.text)))
        found["text_length"] = torch.from_numpy(random.integers(2, inputs.text + 1, rows))
    if inputs.regions:
        count, width = inputs.regions
        found["regions"] = torch.from_numpy(random.standard_normal((rows, count, width)))
        found["boxes"] = torch.from_numpy(np.sort(random.random((rows, count, 2, 2)), axis=2).reshape(rows, count, 4))
        found["region_count"] = torch.from_numpy(random.integers(1, count + 1, rows))
    if inputs.grid:
        found["grid"] = torch.from_numpy(random.standard_normal((rows, *inputs.grid)))
    return found


def _descend(module: nn.Module, loss: Callable[[], Tensor]) -> None:
    """A few steps of plain gradient descent."""
    for step in range(STEPS):
        torch.manual_seed(step)
        module.zero_grad()
        loss().backward()
        with torch.no_grad():
            for weight in module.parameters():
                if weight.grad is not None:
                    weight -= RATE * weight.grad


def small(name: str, given: Mapping[str, Any]) -> Model:
    """A recipe with the sizes of SMALL that it has, unless weights give them."""
    kind: type[Model] = registry.MODELS[name].load()
    numbers = {each.name for each in dataclasses.fields(kind) if isinstance(each.default, int)}
    sizes = {} if {"weights", "bert"} & given.keys() else {n: v for n, v in SMALL.items() if n in numbers}
    return build(kind, {**sizes, **given}, name)


def of_model(name: str, inputs: Inputs, given: Mapping[str, Any]) -> Outcome:
    return _of_recipe(small(name, given), inputs)


class _Foreign(nn.Module):
    """Looks at all columns, and normalises over the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.pixels, self.norm, self.words = nn.Conv2d(3, 4, 4, 4), nn.BatchNorm2d(4), nn.Embedding(30, 4)

    def forward(self, pixel_values: Tensor, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, None]:
        seen = self.norm(self.pixels(pixel_values)).flatten(2).transpose(1, 2)
        return torch.cat([seen, self.words(input_ids) * attention_mask.unsqueeze(-1)], 1), None


def of_wrapped() -> Outcome:
    return _of_recipe(of(_Foreign), BOTH)


def _of_recipe(recipe: Model, inputs: Inputs) -> Outcome:
    with exactly():
        torch.manual_seed(1)
        model = recipe.build(inputs, {"head": Head("classify", 3)})
        model.double()
        seen, targets = columns(inputs), torch.tensor([0, 1, 2, 1])
        _descend(model.train(), lambda: nn.functional.cross_entropy(model(seen, "head"), targets))
        with torch.no_grad():
            output = model.eval()(seen, "head")
    used = parts.versions(type(recipe), parts.HEADS["classify"])
    return Outcome(used, {"outputs": output.flatten().tolist(), **model_values(model)})


class _Still(Encoder):
    """An encoder that gives fixed numbers, for heads alone."""

    width = 6

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(9, self.width)

    def stem(self) -> list[nn.Module]:
        return []

    def layers(self) -> list[nn.Module]:
        return []

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        return inputs["vector"]

    def words(self, inputs: Mapping[str, Tensor]) -> Tensor:
        return inputs["vector"]

    def word_embedding(self) -> nn.Embedding:
        return self.table


def of_head(kind: str, growing: bool) -> Outcome:
    with exactly():
        torch.manual_seed(2)
        encoder = _Still()
        head = encoder.head(Head(kind, 3, images=2 if kind == "classify" else 1, growing=growing))  # type: ignore[arg-type]
        if growing:
            head.classifier.open_classes([0, 2])
        vectors = torch.from_numpy(np.random.default_rng(4).standard_normal((ROWS, 2, encoder.width)))
        given = {"vector": vectors, "masked": torch.tensor([[0, 1], [1, -1], [0, -1], [1, 0]])}
        _descend(head.train(), lambda: head(encoder, given).clamp(min=-10).square().mean())
        output = head.eval()(encoder, given)
    return Outcome(parts.versions(parts.HEADS[kind]), {"outputs": output.flatten().tolist(), **model_values(head)})


def of_comparison(prompted: bool, growing: bool) -> Outcome:
    """The head that compares, on small towers: with prompts, or with an example's own texts."""
    inputs = Inputs(image=(3, 32, 32), **TEXT)
    prompts = columns(Inputs(**TEXT), 3 if prompted else 0)
    with exactly():
        torch.manual_seed(2)
        recipe = Dual(image="vit-tiny", text="bert-tiny", width=8, temperature=0.3, bias=-0.5)
        model = recipe.build(inputs, {"head": Head("compare", 3, growing=growing)})
        model.double()
        model.open_classes([0, 2])
        given = columns(inputs) | {
            "prompts": prompts["text"][:, None],
            "prompts_length": prompts["text_length"][:, None],
        }
        _descend(model, lambda: model(given, "head").clamp(min=-10).square().mean())
        with torch.no_grad():
            output = model.eval()(given, "head")
    return Outcome(parts.versions(parts.HEADS["compare"]), {"outputs": output.flatten().tolist()})


def of_writing(form: str) -> Outcome:
    """The head that writes: the logits of answers, and the answers themselves."""
    inputs = Inputs(image=(3, 16, 16), **TEXT, answer=4, end=3)
    with exactly():
        torch.manual_seed(2)
        recipe = build(registry.MODELS["prefix-lm-tiny"].load(), {"width": 8, "hidden": 8}, "prefix-lm-tiny")
        model = recipe.build(inputs, {"head": Head("generate", 30)})
        model.double()
        given = columns(inputs) | {"answer": torch.from_numpy(np.random.default_rng(4).integers(4, 30, (ROWS, 4)))}
        given["answer"][1, 2:] = -1
        there = given["answer"].unsqueeze(-1) >= 0  # what follows the end of an answer has no meaning
        _descend(model, lambda: (model(given, "head") * there).square().mean())
        with torch.no_grad():
            if form != "logits":
                asked = {"write": torch.tensor([[4, 2 if form == "beams" else 1]]).expand(ROWS, 2)}
                asked |= {"choices": given["answer"].expand(ROWS, ROWS, 4)} if form == "choices" else {}
                given = {name: column for name, column in given.items() if name != "answer"} | asked
            output = model.eval()(given, "head") * (there if form == "logits" else 1)
    return Outcome(parts.versions(parts.HEADS["generate"]), {"outputs": output.flatten().tolist()})


def of_task(task: Any) -> Outcome:
    table = table_of(task, np.random.default_rng(6))
    width = {"phrase": (2,), "generate": (3,), "compare": (3,) if isinstance(task, Retrieve) else ()}.get(
        task.reads.kind, ()
    )
    shape = (len(table), *width, task.outputs)
    drawn = torch.from_numpy(np.random.default_rng(8).standard_normal(shape))
    part = Part(task.name, table.inputs, table.targets)
    output = task.forward(lambda inputs, head: drawn.requires_grad_(), part)
    task.loss(output, part).backward()
    answers = output.detach()  # of a task that writes, tokens
    predicted = task.predictions(answers.argmax(-1) if isinstance(task, Generate) else answers, part)
    assert drawn.grad is not None
    values = {
        "losses": task.losses(output, part).tolist(),
        "loss": [task.loss(output, part).item()],
        "score": [task.score(predicted.numpy(), table.targets.numpy()), task.chance],
    }
    return Outcome(parts.versions(type(task)), values | tensors([drawn.grad]))


def _group(ids: Any) -> Any:
    return (ids % 7) * (ids % 7 < 4)


_WORDS = np.array([[0, 1], [2, -1], [3, 0], [1, 3], [4, 4], [5, -1], [6, 2]])
MEMORIES: dict[str, Callable[[], Memory]] = {
    "small": lambda: Reservoir(11, 3),
    "grouped": lambda: Reservoir(20, 3, _group),
    "latest": lambda: Latest(9, 3),
    "count": lambda: PerTask(3, 5),
    "share": lambda: PerTask(3, share=0.13),
    "experience": lambda: ExperienceBalanced(11, 3),
    "class": lambda: ClassBalanced(13, 3, _group),
    "greedy": lambda: GreedyBalanced(13, 3, _group),
    "sqrt": lambda: TargetBalanced(14, 3, _group, "sqrt"),
    "forget": lambda: TargetBalanced(14, 3, _group, "forget"),
    "words": lambda: TargetBalanced(14, 3, lambda ids: ids % 7, "sqrt", _WORDS),
    "forgotten words": lambda: TargetBalanced(14, 3, lambda ids: ids % 7, "forget", _WORDS),
}


def of_memory(make: Callable[[], Memory]) -> Outcome:
    """Offer a stream in batches, some of them twice; draw in between."""
    memory, drawn, losses = make(), list[float](), np.random.default_rng(9)
    for turn, start in enumerate(range(0, 150, 15)):
        ids = np.arange(start, start + 15) * 3 % 151
        for offered in (ids, ids[:6]) if turn % 3 == 2 else (ids,):
            memory.add(offered)
        if isinstance(memory, TargetBalanced):
            memory.observe(np.arange(7), losses.random(7).round(2))
            drawn += memory.distribution().tolist()
        drawn += [float(each) for each in memory.sample(4)]
        if len(memory.groups):
            group = memory.draw_group(but=0)
            drawn += [] if group is None else [float(group), *map(float, memory.sample_group(group, 3))]
        if isinstance(memory, Latest) and turn % 4 == 3:
            drawn += map(float, memory.take())
    return Outcome(parts.versions(type(memory)), {"kept": memory.ids.astype(float).tolist(), "drawn": drawn})


def of_augmentation(kind: str) -> Outcome:
    torch.manual_seed(4)
    image = columns(Inputs(image=(3, 16, 16)), 24)["image"]
    seen = tensors(augment(image, kind).split(4))
    version = {f"augment {kind}": parts.of_any_data()[f"augment {kind}"]}
    return Outcome(version, seen)


def of_pieces() -> Outcome:
    texts = ["A red cup, two red cups.", "The cup isn't there!", "Two théâtres: 12 cups; reds", "red-ish things"]
    pieces = train(texts, 60)
    numbers, lengths = pieces.encode(texts, 12)
    pairs, *_ = pieces.encode_pairs(texts, texts[::-1], 9)
    found = [zlib.crc32(" ".join(pieces.vocabulary).encode()), *numbers.flatten(), *lengths, *pairs.flatten()]
    version = {"tokenizer": parts.of_any_data()["tokenizer"]}
    return Outcome(version, {"numbers": [float(each) for each in found]})


def of_decoding() -> Outcome:
    pixels = np.random.default_rng(2).integers(0, 256, (20, 31, 3), np.uint8)
    fits = (ImageFit(size=8), ImageFit(shorter=10, longest=12), ImageFit(longest=16))
    shown = [decode(pixels, fit.size, shorter=fit.shorter, longest=fit.longest) for fit in fits]
    version = {"decoding": parts.of_any_data()["decoding"]}
    return Outcome(version, {"sums": [float(each.astype(float).sum()) for each in shown]})


def of_benchmark(name: str, settings: Mapping[str, Any] | None = None) -> Outcome:
    """Its stream, its evaluations, and its measures of scores that are drawn at random."""
    kind = registry.BENCHMARKS[name].load()
    benchmark = build(kind, {"scale": "tiny"} if settings is None else settings, name)
    recipe: Model = registry.MODELS[benchmark.model()].load()()
    setup = benchmark.setup(recipe.wants())
    random = np.random.default_rng(12)
    log = [
        Score(stage, 10 * stage, each.name, each.split, len(each.ids), float(random.random()))
        for stage in range(0 if setup.protocol.initial else 1, len(setup.stream.stages) + 1)
        for each in setup.protocol.evaluations
    ]
    measured = benchmark.summary(log)
    near = [[_above_chance(each, setup.chance, deviations) for each in log] for deviations in (1.0, 1.9, 2.1, 3.0)]
    shares = [
        share for scores in (log, *near) for own in benchmark.shares(scores, {}).values() for share in own.values()
    ]
    found = {**parts.of_benchmark(benchmark, recipe), **parts.of_setup(setup)}
    kept = {part: version for part, version in found.items() if not part.startswith(("model", "head"))}
    words = [*measured, *setup.tasks, *(each.name for each in setup.protocol.evaluations)]
    values = {
        "stages": [number for stage in setup.stream.stages for number in _ids(stage.train)],
        "training": [float(zlib.crc32(_chosen(stage.training).encode())) for stage in setup.stream.stages],
        "evaluations": [number for each in setup.protocol.evaluations for number in _ids(each.ids)],
        "words": [float(zlib.crc32(" ".join(words).encode()))],
        "chance": list(setup.chance.values()),
        "measures": [value for value in measured.values() if value == value],
        "shares": [number for each in shares for number in (each.change, each.base, float(bool(each.doubt)))],
        "every": [float(setup.protocol.every or 0), float(setup.protocol.initial)],
    }
    return Outcome(kept, values)


def of_own_data(name: str, settings: Mapping[str, Any]) -> Outcome:
    """The same of a few small pictures in folders, or of a few rows."""
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict("os.environ", HOLDFAST_CACHE=f"{folder}/cache"):
        place = Path(folder) / "own"
        for domain, label, number in itertools.product(("one", "two"), ("ant", "bee", "cow", "dog"), range(9)):
            path = place / domain / label / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (6, 5), (number, 9, 9)).save(path)
        rows = [f"{label} {number % 13},{label},{number}\n" for label in ("yes", "no") for number in range(40)]
        (place / "rows.csv").write_text("text,label,year\n" + "".join(rows), encoding="utf-8")
        data = place / "rows.csv" if "text" in settings else place / "one" if "by" not in settings else place
        return of_benchmark(name, {**settings, "data": str(data)})


def _above_chance(score: Score, chance: Mapping[str, float], deviations: float) -> Score:
    """A score this many standard errors above chance, where the rule for pooled measures decides."""
    level = chance.get(score.name, 0.0)
    spread = math.sqrt(max(level * (1 - level), 0.25 / 9) / score.count)
    return replace(score, score=level + deviations * spread)


def _chosen(training: Training) -> str:
    """What is not as it is by default: a setting that is new later changes nothing here."""
    values = {name: getattr(training, name) for name in sorted(fields(Training))}
    return repr({name: value for name, value in values.items() if value != getattr(Training, name)})


def _ids(ids: Any) -> Iterable[float]:
    """How many, and which in which order."""
    return float(len(ids)), float(zlib.crc32(np.asarray(ids, dtype="<i8").tobytes()))


def of_transform(name: str) -> Outcome:
    changed: Stream = registry.TRANSFORMS[name].load()(prepared(benchmark__stages=3).setup.stream)
    values = [number for stage in changed.stages for number in (*_ids(stage.train), float(stage.training.epochs))]
    return Outcome(parts.of_algorithms([], [name]), {"stages": values})
