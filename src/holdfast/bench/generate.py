"""The speed of language models beside `transformers`: training on answers, and writing them, in one interleaved run.

`llama` is one model with the same weights on both sides: ours drives the library's own model. `prefix-lm` is ours
beside a GPT-2 of the same sizes. The reference trains as its documentation shows, with labels of -100 on prompts and a
fused AdamW; it writes with `generate`.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from holdfast.data.table import Data, Table
from holdfast.engine.learner import Learner
from holdfast.engine.stepper import forget_earlier_runs
from holdfast.models import library
from holdfast.models.base import Model
from holdfast.models.decoding import left_padded
from holdfast.models.huggingface import HuggingFace
from holdfast.models.prefix_lm import PrefixLm
from holdfast.tasks import Generate, References
from holdfast.types import Array, Inputs, Training

END = 0
"""The token that ends an answer; no training answer has it, so hardly any written answer ends early."""
BARS: Mapping[str, float] = {"cpu": 1.0, "cuda": 1.5}
"""The minimum ratio to `transformers`."""


@dataclass(frozen=True)
class WritingSize:
    """A language model and what it learns."""

    width: int
    depth: int
    heads: int
    vocabulary: int
    prompt: int
    answer: int
    batch: int


SIZES = {
    "tiny": WritingSize(32, 1, 2, 100, 12, 4, 4),
    "cpu": WritingSize(192, 4, 3, 8_000, 48, 16, 16),
    "cuda": WritingSize(576, 30, 9, 49_152, 128, 32, 32),
}
"""`cuda` has about the sizes of SmolLM2-135M."""


@dataclass(frozen=True)
class WritingSpeed:
    """Examples, or tokens, a second, of both sides."""

    case: str
    unit: str
    theirs: float
    ours: float
    bar: float

    @property
    def ratio(self) -> float:
        """Our speed divided by theirs."""
        return self.ours / self.theirs


class Untold:
    """A language without words: nothing here is scored."""

    def texts(self, tokens: Array) -> list[str]:
        """No texts."""
        return [""] * len(tokens)


def generate(
    device: torch.device, repeats: int = 5, size: WritingSize | None = None, compiled: bool = False
) -> list[WritingSpeed]:
    """Measure both models."""
    chosen = size or SIZES[device.type]
    found = []
    for name in ("llama", "prefix-lm"):
        found += _measured(name, chosen, device, repeats, compiled)
    return found


def _measured(
    name: Literal["llama", "prefix-lm"] | str, size: WritingSize, device: torch.device, repeats: int, compiled: bool
) -> list[WritingSpeed]:
    torch.manual_seed(0)
    theirs = _theirs(name, size)
    inputs = Inputs(text=size.prompt, vocabulary=size.vocabulary, answer=size.answer, end=END)
    with tempfile.TemporaryDirectory() as folder:
        recipe = _recipe(name, size, theirs, Path(folder))
        task = Generate("speed", "text", size.vocabulary, 0.0, Untold(), References([[""]]), longest=size.answer)
        network = recipe.build(inputs, {"text": task.reads})
    columns = _columns(size)
    data = Data([Table("speed", columns, torch.zeros(len(columns["text"]), dtype=torch.long))]).to(device)
    forget_earlier_runs()
    learner = Learner(network, data, {"speed": task}, device=device, compiled=compiled)
    learner.restart(Training(learning_rate=1e-4), 10**6)
    theirs.to(device)
    ids, order = np.arange(size.batch), columns["text"].to(device)
    labels = _labels({column: values.to(device) for column, values in columns.items()})
    optimiser = torch.optim.AdamW(theirs.parameters(), lr=1e-4, fused=True)

    def our_step() -> None:
        learner.gradients(ids)
        learner.step(1)

    def their_step() -> None:
        optimiser.zero_grad()
        theirs(**labels).loss.backward()
        optimiser.step()

    def our_answers() -> None:
        with torch.inference_mode():
            learner.answers(learner.fetch(ids))

    lengths = columns["text_length"].to(device)
    tokens, present = left_padded(order, lengths, 0)
    options: dict[str, Any] = {"max_new_tokens": size.answer, "do_sample": False, "eos_token_id": None}

    def their_answers() -> None:
        with torch.inference_mode():
            theirs.generate(tokens, attention_mask=present.long(), pad_token_id=0, **options)

    bar, cases = BARS[device.type], []
    learner.train_mode()
    theirs.train()
    reference, own = _interleaved(our_step, their_step, device, repeats, warm=24 if compiled else 2)
    cases.append(WritingSpeed(f"{name}, training", "examples", size.batch / reference, size.batch / own, bar))
    learner.model.eval()
    theirs.eval()
    written = size.batch * size.answer
    reference, own = _interleaved(our_answers, their_answers, device, repeats, warm=1)
    cases.append(WritingSpeed(f"{name}, writing", "tokens", written / reference, written / own, bar))
    return cases


def _interleaved(
    ours: Callable[[], None], theirs: Callable[[], None], device: torch.device, repeats: int, warm: int
) -> tuple[float, float]:
    """The median seconds of a call of each, theirs first; the two take turns."""
    found: tuple[list[float], list[float]] = ([], [])
    for turn in range(warm + repeats):
        for times, call in zip(found, (theirs, ours), strict=True):
            _finish(device)
            began = time.perf_counter()
            call()
            _finish(device)
            if turn >= warm:
                times.append(time.perf_counter() - began)
    return statistics.median(found[0]), statistics.median(found[1])


def _finish(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _columns(size: WritingSize) -> dict[str, Tensor]:
    """A batch of prompts of several lengths, and answers of one."""
    draw = torch.Generator().manual_seed(0)
    rows = size.batch
    lengths = torch.randint(size.prompt // 2, size.prompt + 1, (rows,), generator=draw)
    lengths[0] = size.prompt
    return {
        "text": torch.randint(1, size.vocabulary, (rows, size.prompt), generator=draw, dtype=torch.int32),
        "text_length": lengths.int(),
        "answer": torch.randint(1, size.vocabulary, (rows, size.answer), generator=draw, dtype=torch.int32),
    }


def _labels(columns: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The reference's batch: prompts and answers, with labels for answers alone."""
    tokens, present = left_padded(columns["text"], columns["text_length"], 0)
    answer = columns["answer"].long()
    return {
        "input_ids": torch.cat([tokens, answer], 1),
        "attention_mask": torch.cat([present, torch.ones_like(answer, dtype=torch.bool)], 1).long(),
        "labels": torch.cat([torch.full_like(tokens, -100), answer], 1),
    }


def _recipe(name: str, size: WritingSize, theirs: Any, folder: Path) -> Model:
    if name == "llama":
        with library.quiet():
            theirs.save_pretrained(folder)
        return HuggingFace(str(folder))
    context = size.prompt + size.answer
    return PrefixLm(size.width, size.depth, size.heads, 4 * size.width, context, dropout=0.0)


def _theirs(name: str, size: WritingSize) -> Any:
    transformers = library.found()
    shared = {"vocab_size": size.vocabulary, "bos_token_id": 0, "eos_token_id": None, "pad_token_id": 0}
    if name == "llama":
        config = transformers.LlamaConfig(
            **shared,
            hidden_size=size.width,
            num_hidden_layers=size.depth,
            num_attention_heads=size.heads,
            intermediate_size=4 * size.width,
            max_position_embeddings=size.prompt + size.answer,
        )
        return transformers.LlamaForCausalLM(config)
    off = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
    sizes = {"n_embd": size.width, "n_layer": size.depth, "n_head": size.heads}
    config = transformers.GPT2Config(**shared, **off, **sizes, n_positions=size.prompt + size.answer)
    return transformers.GPT2LMHeadModel(config)
