"""VAuLT against `transformers`' BertModel and ViltModel, one feeding the other."""

import dataclasses

import pytest
import torch
from transformers import BertConfig, BertModel, ViltConfig, ViltModel

from holdfast.errors import UserError
from holdfast.models import weights
from holdfast.models.bert import TinyBert
from holdfast.models.vault import TinyVault, Vault
from holdfast.types import Head, Inputs

BERT = {"num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 40, "vocab_size": 50}
VILT = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 40, "vocab_size": 30}
INPUTS = Inputs((3, 32, 32), text=7, vocabulary=50)


def randomise(module):
    """Weights that no part of a model can hide: norms and biases are not at their start."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(std=0.4)
    return module.double().eval()


def published(folder, bert_width=24):
    """A BERT and a ViLT of `transformers`, saved, and the recipe that names them."""
    torch.manual_seed(0)
    bert = randomise(BertModel(BertConfig(**BERT, hidden_size=bert_width, max_position_embeddings=12)))
    vilt = randomise(ViltModel(ViltConfig(**VILT, image_size=32, patch_size=8, max_position_embeddings=10)))
    bert.save_pretrained(folder / "bert")
    (folder / "bert" / "vocab.txt").write_text("[PAD]\n")
    vilt.save_pretrained(folder / "vilt")
    return bert, vilt, Vault(weights=str(folder / "vilt"), bert=str(folder / "bert"))


def batch(rows=4):
    generator = torch.Generator().manual_seed(1)
    return {
        "text": torch.randint(1, 50, (rows, 7), generator=generator, dtype=torch.int32),
        "text_length": torch.tensor([7, 1, 3, 6][:rows], dtype=torch.int32),
        "image": torch.randint(0, 256, (rows, 3, 32, 32), generator=generator, dtype=torch.uint8),
    }


def expected(bert, vilt, inputs, mapped=None):
    present = (torch.arange(7) < inputs["text_length"][:, None]).long()
    segments = (torch.arange(7) >= inputs.get("text_second", torch.full((len(present),), 7))[:, None]).long()
    given = {"attention_mask": present, "token_type_ids": segments}
    states = bert(input_ids=inputs["text"].long(), **given).last_hidden_state.detach()
    states = states if mapped is None else states @ mapped.T
    pixels = inputs["image"].double() / 127.5 - 1
    with torch.random.fork_rng():  # ViltModel draws the order of patches, even in evaluation
        return vilt(inputs_embeds=states, pixel_values=pixels, **given).pooler_output


@pytest.mark.parametrize("width", [24, 16])
def test_it_is_vilt_over_the_states_of_bert(tmp_path, width):
    bert, vilt, recipe = published(tmp_path, width)
    encoder, inputs = recipe.encoder(INPUTS).double(), batch()
    mapped = None if width == 24 else encoder.map.weight
    assert (encoder.map is None) == (width == 24)
    torch.testing.assert_close(encoder(inputs), expected(bert, vilt, inputs, mapped), rtol=1e-9, atol=1e-9)


def test_both_read_the_second_text_of_a_pair_as_a_segment_of_its_own(tmp_path):
    bert, vilt, recipe = published(tmp_path)
    inputs = batch() | {"text_second": torch.tensor([3, 1, 2, 4])}
    found = recipe.encoder(INPUTS).double()(inputs)
    torch.testing.assert_close(found, expected(bert, vilt, inputs), rtol=1e-9, atol=1e-9)
    inputs.pop("text_second")
    assert not torch.allclose(found, expected(bert, vilt, inputs), atol=1e-3)


def test_gradients_of_vilt_equal_those_of_transformers_and_bert_has_none(tmp_path):
    bert, vilt, recipe = published(tmp_path)
    encoder, inputs = recipe.encoder(INPUTS).double(), batch()
    encoder(inputs).square().sum().backward()
    expected(bert, vilt, inputs).square().sum().backward()
    for ours, theirs in [
        (encoder.vilt.text.norm.weight, vilt.embeddings.text_embeddings.LayerNorm.weight),
        (encoder.vilt.text.positions.weight, vilt.embeddings.text_embeddings.position_embeddings.weight),
        (encoder.vilt.stack[0].feed_forward.inner.weight, vilt.encoder.layer[0].intermediate.dense.weight),
    ]:
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-8, atol=1e-9)
    assert all(p.grad is None and not p.requires_grad for p in encoder.bert.parameters())
    assert all(p.grad is not None for p in encoder.vilt.parameters())


def test_bert_never_drops_out(tmp_path):
    _, _, recipe = published(tmp_path)
    encoder, inputs = recipe.encoder(INPUTS).train(), batch()
    assert encoder.bert.recipe.dropout > 0
    assert encoder.vilt.training
    assert torch.equal(encoder(inputs), encoder(inputs))


def test_padded_words_change_nothing_and_choices_share_their_image():
    torch.manual_seed(0)
    encoder, inputs = TinyVault(weights="", bert="").encoder(INPUTS).double().eval(), batch()
    changed = inputs["text"].clone()
    changed[1, 1:] = 9
    assert torch.equal(encoder(inputs | {"text": changed}), encoder(inputs))
    assert not torch.equal(encoder(inputs | {"text": changed, "text_length": torch.full((4,), 7)}), encoder(inputs))
    choices = {name: inputs[name].unflatten(0, (2, 2)) for name in ("text", "text_length")}
    found = encoder(choices | {"image": inputs["image"][:2]})
    each = encoder(inputs | {"image": inputs["image"][[0, 0, 1, 1]]})
    torch.testing.assert_close(found.flatten(0, 1), each)


def test_only_vilt_has_places_for_adapters_and_only_it_learns():
    model = TinyVault(weights="", bert="").build(INPUTS, {"vqa": Head("classify", 3)})
    encoder = model.encoder
    assert list(encoder.blocks()) == list(encoder.layers()) == list(encoder.vilt.stack)
    assert encoder.bert in encoder.stem()
    names = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    assert {name.split(".")[1] for name in names if name.startswith("encoder.")} == {"vilt"}


def test_text_is_cut_into_the_pieces_of_bert(tmp_path):
    _, _, recipe = published(tmp_path)
    assert recipe.wants().vocabulary == tmp_path / "bert" / "vocab.txt"
    assert recipe.wants().side == 32
    assert recipe.source() == f"{weights.digest(tmp_path / 'vilt')}-{weights.digest(tmp_path / 'bert')}"
    with pytest.raises(UserError, match=r"vocabulary has 30 word pieces, and that of .*bert has 50"):
        recipe.encoder(dataclasses.replace(INPUTS, vocabulary=30))


def test_refuses_what_it_lacks_and_text_that_is_too_long_for_bert(tmp_path):
    _, _, recipe = published(tmp_path)
    with pytest.raises(UserError, match="13 word pieces, and BERT has 12 positions"):
        recipe.encoder(dataclasses.replace(INPUTS, text=13))
    with pytest.raises(UserError, match="VAuLT reads text with its images"):
        recipe.encoder(Inputs((3, 32, 32)))
    with pytest.raises(UserError, match=r"bert is '/nowhere/bert', which does not exist"):
        dataclasses.replace(recipe, bert="/nowhere/bert").encoder(INPUTS)


def test_what_ships_is_a_bert_that_fits_the_small_vilt():
    inputs = Inputs((3, 64, 64), text=24, vocabulary=3000)
    encoder = TinyVault().encoder(inputs)
    assert encoder.map is None, "both are as wide"
    assert TinyVault().wants().vocabulary == weights.locate("holdfast/bert-tiny", "bert") / "vocab.txt"
    read = TinyBert(weights="holdfast/bert-tiny").text_side(inputs, pooled=False)
    for name, value in read.state_dict().items():
        assert torch.equal(encoder.bert.state_dict()[name], value)
