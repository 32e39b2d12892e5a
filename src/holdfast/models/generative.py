"""Models of Hugging Face that write text: causal language models, and those that also read an image.

| reads            | such as                | an image is                                                              |
|------------------|------------------------|--------------------------------------------------------------------------|
| text             | GPT-2, Llama, SmolLM2  | nothing: a prefix of vectors can stand for it, see `prefix_lm.py`        |
| text and images  | LLaVA, SmolVLM         | tokens of the prompt, which its vectors replace                          |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import torch
from torch import nn

from holdfast.errors import UserError
from holdfast.models import image_text as images
from holdfast.models import library, places, weights
from holdfast.models.adapters import Attachable
from holdfast.models.causal import LibraryCausal
from holdfast.models.columns import trial
from holdfast.models.decoder import Decoder
from holdfast.models.pixels import PreparedPixels, side_of
from holdfast.models.prefix_decoder import PrefixDecoder, check_context
from holdfast.types import Inputs

Kind: TypeAlias = Literal["text", "image"]
CLASSES: Mapping[Kind, str] = {"text": "AutoModelForCausalLM", "image": "AutoModelForImageTextToText"}
"""The library's class for each kind."""


def kind_of(config: Mapping[str, Any]) -> Kind | None:
    """The kind of input of a folder's generative model, according to its configuration; None if it writes no text."""
    names = config.get("architectures")
    name = str(names[0]) if isinstance(names, list) and names else ""
    if config.get("is_encoder_decoder"):
        return None
    if name.endswith(("ForConditionalGeneration", "ForImageTextToText")) and "vision_config" in config:
        return "image"
    return "text" if name.endswith(("ForCausalLM", "LMHeadModel")) and not _both_ways(config) else None


def _both_ways(config: Mapping[str, Any]) -> bool:
    """Whether words attend to later words, as in an encoder with an output layer for words, such as BERT's."""
    return config.get("model_type") in ("bert", "roberta", "electra", "xlm-roberta") and not config.get("is_decoder")


def refused(folder: Path, config: Mapping[str, Any]) -> UserError:
    """The error for a folder without a generative model."""
    names = config.get("architectures") or ["no architecture"]
    return UserError(
        f"{folder} holds {names[0]}, which writes no text: give a folder whose config.json names a causal language "
        "model (...ForCausalLM) or one of images and text (...ForConditionalGeneration)"
    )


def image_text(folder: Path, config: Mapping[str, Any]) -> str:
    """The text that stands for an image in a prompt; empty for a model of text."""
    return images.image_text(folder) if kind_of(config) == "image" else ""


def decoder(folder: Path, inputs: Inputs, checkpointing: bool = False) -> Decoder:
    """The generative model of a folder."""
    config = weights.read_json(folder / "config.json")
    kind = kind_of(config)
    if kind is None:
        raise refused(folder, config)
    if kind == "image":
        return _of_images(folder, config, inputs, checkpointing)
    if inputs.image is not None:
        raise UserError(
            f"{folder} holds a model of text, but this benchmark has images: choose prefix-lm with "
            f"--set model.language={folder}"
        )
    language, blocks = causal(folder, inputs, checkpointing)
    check_context(language.context, 0, inputs, "choose a model that reads more")
    return PrefixDecoder(language, inputs.end, places=blocks)


def _of_images(folder: Path, config: Mapping[str, Any], inputs: Inputs, checkpointing: bool) -> Decoder:
    """The model of images and text of a folder."""
    if inputs.images > 1:
        raise UserError(
            f"{folder} gets one image in each prompt, but this benchmark has {inputs.images}: choose prefix-lm, or "
            "tasks with one image"
        )
    model, _ = library.loaded(folder, CLASSES["image"])
    _check_tokens(model, folder, inputs)
    if checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    layers = places.repeated(model.get_decoder())
    found = images.ImageTextDecoder(model, layers, PreparedPixels(folder, side_of(folder, config)), inputs.end)
    check_context(found.context, 0, inputs, "choose a model that reads more")
    found.eval()
    columns = trial(Inputs(inputs.image), rows=1)
    shown = model.config.image_token_id if inputs.image else inputs.end
    tokens = torch.full((1, images.image_tokens(model.config, folder)), shown)
    tokens = torch.cat([tokens, torch.full((1, 2), inputs.end)], 1)
    found.places = nn.ModuleList(
        attachable(found, layers, lambda: found.continued(tokens, tokens >= 0, 1, None, columns))
    )
    return found


def _check_tokens(model: Any, folder: Path, inputs: Inputs) -> None:
    """Raise a UserError if the tokenizer has tokens that the model does not know."""
    rows = model.get_input_embeddings().weight.shape[0]
    if inputs.vocabulary > rows:
        raise UserError(
            f"{folder} knows {rows} tokens, but the tokenizer has {inputs.vocabulary}: give the model its own tokenizer"
        )


def causal(folder: Path, inputs: Inputs, checkpointing: bool = False) -> tuple[LibraryCausal, Sequence[Attachable]]:
    """The causal language model of a folder, and the places for additions in its layers."""
    model, _ = library.loaded(folder, CLASSES["text"])
    _check_tokens(model, folder, inputs)
    layers = places.repeated(model.base_model)
    language = LibraryCausal(model, layers, checkpointing)
    tokens = torch.zeros(2, 3, dtype=torch.long)
    return language, attachable(language, layers, lambda: language.read(language.embedding()(tokens), tokens == 0, 3))


def attachable(module: nn.Module, layers: Sequence[nn.Module], run: Any) -> list[Attachable]:
    """The places for additions in layers; `run` passes a batch through these."""
    training = module.training
    module.eval()
    with torch.no_grad(), places.watching(module, layers) as seen:
        run()
    module.train(training)
    return [places.HookedLayer(each, seen) for each in layers if seen.outputs.get(each) is not None]
