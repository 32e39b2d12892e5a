"""The training speed of models relative to their references in `transformers`: forward, backward and AdamW."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from holdfast import registry
from holdfast.data.table import Data, Table
from holdfast.engine.learner import Learner
from holdfast.engine.stepper import forget_earlier_runs
from holdfast.errors import UserError, missing_extra
from holdfast.tasks import Classify, MaskedPhrase
from holdfast.types import Inputs, Task, Training

ROWS = 512
"""How many examples there are to draw batches from."""
PLACES = 6


@dataclass(frozen=True)
class ModelCase:
    """A model at a size and batch, its inputs, its reference, and the target that it should meet."""

    name: str
    model: str
    batch: int
    inputs: Inputs
    phrase: bool = False
    reference: Callable[[Inputs], nn.Module] | None = None
    feeds: Callable[[Mapping[str, Tensor]], dict[str, Tensor]] | None = None
    ratio: float | None = None
    """The minimum ratio to the reference."""
    rate: float | None = None
    """The minimum number of examples per second."""
    precision: torch.dtype | None = None


@dataclass(frozen=True)
class Speed:
    """Examples per second: the reference, this library uncompiled, and compiled, if each was measured."""

    case: str
    batch: int
    reference: float | None
    plain: float
    compiled: float | None
    tera: float
    """Floating-point operations of the faster one, in 10^12 per second."""
    bar: str
    met: bool | None


def models(device: torch.device, steps: int = 30, compiled: bool | None = None, only: str = "") -> list[Speed]:
    """Measure every case that fits the device."""
    cases = [case for case in (_on_cuda() if device.type == "cuda" else _on_cpu()) if only in case.name]
    if not cases:
        raise UserError(f"no case of the benchmark is called {only!r}")
    return [_measure(case, device, steps, device.type == "cuda" if compiled is None else compiled) for case in cases]


def _on_cpu() -> list[ModelCase]:
    pair = Inputs(image=(3, 64, 64), text=24, vocabulary=3000)
    small = Inputs(image=(3, 48, 48), text=24, vocabulary=3000)
    regions = Inputs(text=24, vocabulary=3000, regions=(10, 128))
    return [
        ModelCase("vilt-tiny, 16 patches", "vilt-tiny", 64, pair, reference=_vilt(True), feeds=_vilt_feeds, rate=1500),
        ModelCase("vilt-tiny, 9 patches", "vilt-tiny", 64, small, rate=1500),
        ModelCase("vlbert-tiny", "vlbert-tiny", 32, regions, phrase=True),
        ModelCase("lxmert-tiny", "lxmert-tiny", 32, regions, phrase=True),
        ModelCase("san-tiny", "san-tiny", 64, pair),
        ModelCase("vit-tiny", "vit-tiny", 64, Inputs(image=(3, 64, 64))),
    ]


def _on_cuda() -> list[ModelCase]:
    half = torch.bfloat16
    pair = Inputs(image=(3, 384, 384), text=40, vocabulary=30522)
    regions = Inputs(text=24, vocabulary=30522, regions=(36, 2048))
    return [
        ModelCase("vilt, 384 px, 40 tokens", "vilt", 64, pair, False, _vilt(False), _vilt_feeds, 4.5, None, half),
        ModelCase("vlbert 6 x 384", "vlbert", 32, regions, True, rate=250 * 32, precision=half),
        ModelCase("lxmert 9/5/5", "lxmert", 32, regions, True, _lxmert, _lxmert_feeds, precision=half),
        ModelCase("vit 9 x 384, 224 px", "vit", 100, Inputs(image=(3, 224, 224)), precision=half),
        ModelCase("resnet18, 128 px", "resnet18", 100, Inputs(image=(3, 128, 128)), precision=half),
    ]


def _measure(case: ModelCase, device: torch.device, steps: int, compiled: bool) -> Speed:
    columns, targets, task = _made(case)
    data = Data([Table(task.name, columns, targets)]).to(device)
    reference = None
    if case.reference is not None and case.feeds is not None:
        reference = _reference(case, {name: c.to(device) for name, c in columns.items()}, device, steps)
    plain, tera = _ours(case, data, task, device, steps, False)
    faster = _ours(case, data, task, device, steps, True)[0] if compiled else None
    best = max(plain, faster or 0.0)
    bar, met = "", None
    if case.ratio is not None and reference is not None:
        bar, met = f"{case.ratio:g} times the reference", best >= case.ratio * reference
    if case.rate is not None:
        bar, met = f"{case.rate:g} a second", best >= case.rate
    return Speed(case.name, case.batch, reference, plain, faster, best * tera, bar, met)


def _made(case: ModelCase) -> tuple[dict[str, Tensor], Tensor, Task]:
    """Random columns of the right shapes; texts of varying lengths."""
    draw, given = torch.Generator().manual_seed(0), case.inputs
    columns: dict[str, Tensor] = {}
    if given.image:
        columns["image"] = torch.randint(0, 256, (ROWS, *given.image), dtype=torch.uint8, generator=draw)
    if given.text:
        columns["text"] = torch.randint(5, given.vocabulary, (ROWS, given.text), dtype=torch.int32, generator=draw)
        columns["text_length"] = torch.randint(8, given.text + 1, (ROWS,), dtype=torch.int32, generator=draw)
    if given.regions:
        boxes, width = given.regions
        columns["regions"] = torch.rand(ROWS, boxes, width, generator=draw).to(torch.float16)
        columns["boxes"] = torch.rand(ROWS, boxes, 4, generator=draw).sort(-1).values
        columns["region_count"] = torch.randint(boxes // 3, boxes + 1, (ROWS,), dtype=torch.int32, generator=draw)
    if not case.phrase:
        return columns, torch.randint(0, 4, (ROWS,), generator=draw), Classify("speed", "speed", 4, 0.25)
    columns["masked"] = torch.randint(1, 7, (ROWS, PLACES), generator=draw)
    targets = torch.randint(5, given.vocabulary, (ROWS, PLACES), generator=draw)
    return columns, targets, MaskedPhrase("speed", "speed", given.vocabulary, 0.0)


def _ours(
    case: ModelCase, data: Data, task: Task, device: torch.device, steps: int, compiled: bool
) -> tuple[float, float]:
    """Examples per second through the learner, as the loop drives it, and 10^12 operations per example."""
    torch.manual_seed(0)
    recipe = registry.MODELS[case.model].load()()
    model = recipe.build(case.inputs, {"speed": task.reads})
    forget_earlier_runs()
    learner = Learner(model, data, {"speed": task}, device=device, autocast=case.precision, compiled=compiled)
    learner.restart(Training(learning_rate=1e-4, weight_decay=0.01), 10**6)
    order = np.random.default_rng(0).permutation(ROWS)
    at = 0

    def step() -> None:
        nonlocal at
        at += 1
        start = at * case.batch % (ROWS - case.batch)
        learner.gradients(order[start : start + case.batch])
        learner.step(at)

    def single() -> None:  # uncompiled, so that operations can be counted
        batch = learner.fetch(order[: case.batch])
        learner.backward(learner.loss(batch, learner.outputs(batch)), batch)

    rate = case.batch / _seconds(step, device, steps)
    return rate, (0.0 if compiled else _operations(single) / case.batch / 1e12)


def _operations(step: Callable[[], None]) -> float:
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        step()
    return float(counter.get_total_flops())


def _reference(case: ModelCase, columns: Mapping[str, Tensor], device: torch.device, steps: int) -> float:
    """Examples per second of the model in `transformers`, with a linear head, trained as in its documentation."""
    assert case.reference is not None
    assert case.feeds is not None
    torch.manual_seed(0)
    model = case.reference(case.inputs).to(device).train()
    sizes: Any = model.config
    head = nn.Linear(sizes.hidden_size, 4).to(device)
    optimiser = torch.optim.AdamW([*model.parameters(), *head.parameters()], lr=1e-4, fused=True)
    feeds = case.feeds(columns)
    targets = torch.zeros(case.batch, dtype=torch.long, device=device)
    order = torch.randperm(ROWS, device=device)
    at = 0

    def step() -> None:
        nonlocal at
        at += 1
        start = at * case.batch % (ROWS - case.batch)
        rows = order[start : start + case.batch]
        batch = {name: column[rows] for name, column in feeds.items()}
        optimiser.zero_grad()
        with torch.autocast(device.type, case.precision, enabled=case.precision is not None):
            output: Any = model(**batch)
            pooled = getattr(output, "pooler_output", None)
            logits = head(output.pooled_output if pooled is None else pooled)
        nn.functional.cross_entropy(logits.float(), targets).backward()  # type: ignore[no-untyped-call]
        optimiser.step()

    return case.batch / _seconds(step, device, max(steps // 3, 5))


def _seconds(step: Callable[[], None], device: torch.device, steps: int) -> float:
    """The median of five timings of a step, after a warm-up."""
    for _ in range(24 if device.type == "cuda" else 8):
        step()
    found = []
    for _ in range(5):
        _wait(device)
        began = time.perf_counter()
        for _ in range(max(steps // 5, 1)):
            step()
        _wait(device)
        found.append((time.perf_counter() - began) / max(steps // 5, 1))
    return sorted(found)[2]


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


# The references


def _transformers() -> Any:
    try:
        import transformers
    except ImportError:
        raise missing_extra("the references need transformers", "hf") from None
    return transformers


def _vilt(tiny: bool) -> Callable[[Inputs], nn.Module]:
    def make(inputs: Inputs) -> nn.Module:
        library, image = _transformers(), inputs.image
        assert image is not None
        sizes: dict[str, Any] = {"image_size": image[-1], "vocab_size": inputs.vocabulary}
        if tiny:
            sizes |= {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 256}
            sizes["patch_size"] = 16
        return library.ViltModel(library.ViltConfig(**sizes))  # type: ignore[no-any-return]

    return make


def _vilt_feeds(columns: Mapping[str, Tensor]) -> dict[str, Tensor]:
    text, image = columns["text"].long(), columns["image"]
    return {
        "input_ids": text,
        "attention_mask": (torch.arange(text.shape[1], device=text.device) < columns["text_length"][:, None]).long(),
        "pixel_values": image.float() / 127.5 - 1,
        "pixel_mask": torch.ones(len(image), *image.shape[2:], dtype=torch.long, device=image.device),
    }


def _lxmert(inputs: Inputs) -> nn.Module:
    library = _transformers()
    assert inputs.regions is not None
    config = library.LxmertConfig(
        vocab_size=inputs.vocabulary,
        hidden_size=384,
        num_attention_heads=6,
        intermediate_size=1536,
        l_layers=9,
        x_layers=5,
        r_layers=5,
        visual_feat_dim=inputs.regions[1],
    )
    return library.LxmertModel(config)  # type: ignore[no-any-return]


def _lxmert_feeds(columns: Mapping[str, Tensor]) -> dict[str, Tensor]:
    text, regions = columns["text"].long(), columns["regions"]
    counts = columns["region_count"][:, None]
    return {
        "input_ids": text,
        "attention_mask": (torch.arange(text.shape[1], device=text.device) < columns["text_length"][:, None]).float(),
        "visual_feats": regions.float(),
        "visual_pos": columns["boxes"],
        "visual_attention_mask": (torch.arange(regions.shape[1], device=text.device) < counts).float(),
    }
