"""A benchmark whose answers are written, of a few facts, and tiny random models in Hugging Face's format for it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers, trainers

from holdfast import registry
from holdfast.benchmarks.base import Benchmark, Setup
from holdfast.benchmarks.writing import Exchange, language_for, write
from holdfast.data.table import Data, Table
from holdfast.experiments.request import Request
from holdfast.settings import fields
from holdfast.tasks import Generate
from holdfast.types import EvaluationSet, Protocol, Stage, Stream, Training, Wants

PLACE = f"{Path(__file__)}:Facts"
OPPOSITES = "hot/cold big/small wet/dry old/new high/low fast/slow hard/soft full/empty"
SOUNDS = "dog/woof cat/meow cow/moo duck/quack bee/buzz lion/roar owl/hoot pig/oink"
FACTS = {
    name: dict(pair.split("/") for pair in pairs.split())
    for name, pairs in {"opposites": OPPOSITES, "sounds": SOUNDS}.items()
}
SIDE = 16
SMALL = {"ewc.samples": 3, "mas.samples": 3, "coda-prompt.pool": 4, "replay.capacity": 6}
SMALL |= {"agem.capacity": 6, "gem.capacity": 6, "mir.capacity": 8, "derpp.capacity": 6}


@dataclass(frozen=True)
class Facts(Benchmark):
    """Two stages of facts: the opposites of words, and the sounds of animals."""

    default_model: ClassVar[str] = "prefix-lm-tiny"

    images: bool = False
    """Whether each question has a picture."""
    choices: bool = False
    """Whether the answer is one of all answers of its stage."""
    longest: int = 8
    """The most tokens of an answer."""
    beams: int = 1
    """The number of beams."""
    length: int | None = None
    """The most tokens of a prompt."""
    boundaries: bool = True
    """Whether the learner sees where one stage ends."""
    seed: int = 0
    """The run's."""

    def setup(self, wants: Wants) -> Setup:
        """One table, and one task."""
        exchanges = [
            Exchange(f"{name} of {word}", answer, choices=tuple(facts.values()) if self.choices else ())
            for name, facts in FACTS.items()
            for word, answer in facts.items()
        ]
        words = [word for each in exchanges for word in (each.asked, each.answer)]
        language = language_for(wants, "facts", words)
        book = write(language, exchanges, title="facts", longest=self.longest, length=self.length, images=self.images)
        task = Generate(
            "facts", "text", language.size, 0.0, language, book.references, longest=self.longest, beams=self.beams
        )
        columns = dict(book.columns)
        side = wants.side or SIDE
        if self.images:
            draw = torch.Generator().manual_seed(1)
            columns["image"] = torch.randint(0, 256, (len(exchanges), 3, side, side), dtype=torch.uint8, generator=draw)
        rows = {name: np.arange(8) + 8 * number for number, name in enumerate(FACTS)}
        sets = tuple(EvaluationSet(name, "facts", "test", own) for name, own in rows.items())
        training = Training(epochs=30, batch_size=3, learning_rate=3e-3)
        return Setup(
            Data([Table("facts", columns, book.targets)], book.references.fingerprint()),
            {"facts": task},
            Stream(tuple(Stage(name, own, training) for name, own in rows.items()), self.boundaries),
            Protocol(sets),
            book.inputs((3, side, side) if self.images else None),
        )


def request(algorithm: str, folder: Path, **settings: object) -> Request:
    """A run of a model with pictures, of six steps."""
    kinds = [registry.ALGORITHMS[name].load() for name in algorithm.split("+") if name in registry.ALGORITHMS]
    known = {
        f"{name}.{field}" for name, kind in zip(algorithm.split("+"), kinds, strict=False) for field in fields(kind)
    }
    small = {"benchmark.images": True, "train.epochs": 1, "train.learning_rate": 1e-2}
    small |= {name: value for name, value in SMALL.items() if name in known}
    small |= {name.replace("__", "."): value for name, value in settings.items()}
    return Request(PLACE, algorithm, f"hf:{folder}", precision="float64", settings=small)


def words(folder: Path, *special: str, **config: object) -> None:
    """A byte-level tokenizer, saved in a folder; `config` is more of its configuration."""
    own = Backend(models.BPE())
    own.pre_tokenizer, own.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["<s>", "</s>", "<pad>", *special],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    own.train_from_iterator([f"{word} {answer}" for facts in FACTS.values() for word, answer in facts.items()], trainer)
    folder.mkdir(exist_ok=True, parents=True)
    own.save(str(folder / "tokenizer.json"))
    known = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
    kept = {"tokenizer_class": "PreTrainedTokenizerFast", **known, **config}
    (folder / "tokenizer_config.json").write_text(json.dumps({k: v for k, v in kept.items() if v is not None}))


TOKENS = {"vocab_size": 304, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
TEXT = {
    **TOKENS,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "intermediate_size": 20,
    "max_position_embeddings": 64,
}


def llama(folder: Path, **config: object) -> Path:
    """A tiny random Llama."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(3)
    LlamaForCausalLM(LlamaConfig(**{**TEXT, **config})).save_pretrained(folder)
    words(folder)
    return folder


def gpt2(folder: Path) -> Path:
    """A tiny random GPT-2, whose output layer shares the table of tokens."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(3)
    off = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    GPT2LMHeadModel(GPT2Config(**TOKENS, **off, n_positions=64, n_embd=16, n_layer=2, n_head=2)).save_pretrained(folder)
    words(folder)
    return folder


CHAT = (
    "{% for m in messages %}{{ m.role }}: {% for c in m.content %}{% if c.type == 'image' %}<image>"
    "{% else %} {{ c.text }}{% endif %}{% endfor %}\n{% endfor %}bot: "
)
SEES = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 20}
SEES |= {"image_size": SIDE, "patch_size": 4}
LAYERS = {**TEXT, "vocab_size": 304}
IMAGE_TOKENS = ("<image>", "<fake_token_around_image>", "<global-img>")


def llava(folder: Path) -> Path:
    """A tiny random LLaVA: CLIP's image tower, a projector, and Llama."""
    from transformers import CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration

    torch.manual_seed(3)
    config = LlavaConfig(vision_config=CLIPVisionConfig(**SEES), text_config=LlamaConfig(**LAYERS), image_token_index=3)
    return _with_images(folder, LlavaForConditionalGeneration(config))


def smolvlm(folder: Path) -> Path:
    """A tiny random SmolVLM, which joins four of the image's vectors into one."""
    from transformers import SmolVLMConfig, SmolVLMForConditionalGeneration

    torch.manual_seed(3)
    config = SmolVLMConfig(
        vision_config=SEES,
        text_config={**LAYERS, "model_type": "llama"},
        scale_factor=2,
        image_token_id=3,
        pad_token_id=2,
    )
    return _with_images(folder, SmolVLMForConditionalGeneration(config))


def _with_images(folder: Path, model: object) -> Path:
    model.save_pretrained(folder)
    words(folder, *IMAGE_TOKENS, chat_template=CHAT)
    seen = {"size": {"height": SIDE, "width": SIDE}, "image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.3, 0.4]}
    (folder / "preprocessor_config.json").write_text(json.dumps(seen))
    return folder
