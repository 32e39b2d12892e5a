"""Our language model with a prefix of image features."""

import pytest
import torch
from transformers import ViTConfig, ViTModel

from generating import llama
from holdfast.errors import UserError
from holdfast.models.decoder import Decoder
from holdfast.models.prefix_lm import PrefixLm, TinyPrefixLm
from holdfast.types import Head, Inputs

SMALL = {"width": 16, "depth": 2, "heads": 2, "hidden": 16, "context": 24, "patch": 8, "tower_depth": 1, "dropout": 0.0}
TEXT = Inputs(text=6, vocabulary=30, answer=4, end=3)
BOTH = Inputs((3, 16, 16), text=6, vocabulary=30, answer=4, end=3)


def network(inputs, checkpointing=False):
    torch.manual_seed(0)
    return PrefixLm(**SMALL, checkpointing=checkpointing).build(inputs, {"text": Head("generate", 30)}).double()


def columns(inputs=TEXT, rows=3):
    draw = torch.Generator().manual_seed(1)
    found = {
        "text": torch.randint(4, 30, (rows, 6), generator=draw),
        "text_length": torch.tensor([6, 2, 4]),
        "answer": torch.tensor([[5, 6, 7, 3], [8, 3, -1, -1], [9, 3, -1, -1]]),
    }
    if inputs.image:
        found["image"] = torch.randint(0, 256, (rows, *inputs.image), dtype=torch.uint8, generator=draw)
    return found


@pytest.mark.parametrize("inputs", [TEXT, BOTH])
def test_padding_and_neighbours_do_not_count(inputs):
    model, given = network(inputs), columns(inputs)
    whole = model(given, "text")
    alone = {name: column[1:2] for name, column in given.items()} | {"text": given["text"][1:2, :2]}
    alone["answer"] = given["answer"][1:2, :2]
    torch.testing.assert_close(whole[1:2, :2], model(alone, "text"), rtol=0, atol=1e-12)


@pytest.mark.parametrize("inputs", [TEXT, BOTH])
def test_kept_keys_and_values_give_the_logits_of_a_whole_pass(inputs):
    model, given = network(inputs), columns(inputs)
    encoder = model.encoder
    assert isinstance(encoder, Decoder)
    with torch.inference_mode():
        whole = model(given, "text")
        first, past = encoder.opened(given, 3)
        torch.testing.assert_close(first, whole[:, 0], rtol=0, atol=1e-12)
        for place in range(3):
            logits = past.following(given["answer"][:, place : place + 1].clamp(min=0))[:, 0]
            there = given["answer"][:, place] >= 0
            torch.testing.assert_close(logits[there], whole[there, place + 1], rtol=0, atol=1e-12)


def test_no_word_sees_those_after_it_and_all_see_the_image():
    model, given = network(BOTH), columns(BOTH)
    before = model(given, "text")
    after = model({**given, "answer": given["answer"].where(given["answer"] != 7, 8)}, "text")
    torch.testing.assert_close(before[0, :3], after[0, :3], rtol=0, atol=0)
    assert not torch.equal(before[0, 3], after[0, 3])
    other = model({**given, "image": 255 - given["image"]}, "text")
    assert (before - other).abs().amax((1, 2)).min() > 0


def test_checkpointing_changes_memory_alone():
    given = columns()
    slopes = []
    for checkpointing in (False, True):
        model = network(TEXT, checkpointing)
        model(given, "text").square().mean().backward()
        slopes.append([parameter.grad for parameter in model.parameters()])
    for one, two in zip(*slopes, strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=0)


def test_reports_what_does_not_fit():
    with pytest.raises(UserError, match=r"reads 24 tokens, but a sequence needs 30: 4 of the image, 20 of the p"):
        PrefixLm(**SMALL).encoder(Inputs((3, 16, 16), text=20, vocabulary=30, answer=6))
    with pytest.raises(UserError, match=r"not a multiple of model\.heads"):
        PrefixLm(**{**SMALL, "width": 15}).encoder(TEXT)
    with pytest.raises(UserError, match="needs text, but this benchmark has none"):
        PrefixLm(**SMALL).encoder(Inputs((3, 16, 16)))


def test_prefers_images_of_its_patches():
    assert PrefixLm(**SMALL).wants().side == 112
    assert TinyPrefixLm(patch=4).wants().side == 16


def test_joins_an_image_encoder_and_a_language_model_of_hugging_face(tmp_path):
    """The prefix comes from the encoder's map, and what follows is the language model's own."""
    language = llama(tmp_path / "llama")
    torch.manual_seed(1)
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    ViTModel(ViTConfig(**sizes, image_size=16, patch_size=8)).save_pretrained(tmp_path / "vit")
    recipe = PrefixLm(language=f"hf:{language}", tower=str(tmp_path / "vit"), template="Q: {} A: ")
    wants = recipe.wants()
    assert (wants.side, wants.speaks, wants.template, wants.image_text) == (16, language, "Q: {} A: ", "")
    assert len(recipe.source().split()) == 2
    inputs = Inputs((3, 16, 16), text=6, vocabulary=304, answer=4, end=1)
    model = recipe.build(inputs, {"text": Head("generate", 304)}).double()
    given = columns(inputs)
    output = model(given, "text")
    encoder = model.encoder
    prefix = encoder.projector(encoder.tower.grid(given["image"]).flatten(2).transpose(1, 2))
    tokens = torch.cat([given["text"][0], given["answer"][0, :3]])
    x = torch.cat([prefix[0], encoder.language.embedding()(tokens)])
    theirs = encoder.language.model(inputs_embeds=x[None]).logits[0, -4:]
    torch.testing.assert_close(output[0], theirs, rtol=0, atol=1e-9)
    assert len(encoder.blocks()) == 2
    assert encoder.towers() == [encoder.tower]
