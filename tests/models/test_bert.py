"""BERT against `transformers`, on random weights and real masks."""

import pytest
import torch
from transformers import BertConfig, BertForMaskedLM, BertModel

from holdfast.errors import UserError
from holdfast.models import weights
from holdfast.models.bert import NAMES, Bert, TinyBert
from holdfast.types import Head, Inputs

SIZES = {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 40, "vocab_size": 30}
INPUTS = Inputs(text=7, vocabulary=30)


def randomise(module):
    """Weights that no part of a model can hide: norms and biases are not at their start."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(std=0.4)
    return module


@pytest.fixture
def reference():
    torch.manual_seed(0)
    config = BertConfig(**SIZES, max_position_embeddings=12, attn_implementation="eager")
    return randomise(BertModel(config)).double().eval()


@pytest.fixture
def ours(reference, tmp_path):
    reference.save_pretrained(tmp_path / "bert")
    return Bert(weights=str(tmp_path / "bert")).encoder(INPUTS).double().eval()


def batch(rows=5, length=7):
    generator = torch.Generator().manual_seed(1)
    lengths = torch.tensor([7, 1, 3, 6, 2][:rows])
    text = torch.randint(1, 30, (rows, length), generator=generator, dtype=torch.int32)
    present = torch.arange(length) < lengths[:, None]
    return {"text": text, "text_length": lengths.int()}, {"input_ids": text.long(), "attention_mask": present.long()}


def test_states_and_pooled_vector_equal_those_of_transformers(reference, ours):
    inputs, theirs = batch()
    expected = reference(**theirs)
    present = theirs["attention_mask"].bool()
    torch.testing.assert_close(ours.words(inputs)[present], expected.last_hidden_state[present], rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(ours(inputs), expected.pooler_output, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("second", [[3, 1, 2, 6, 0], [7, 7, 7, 7, 7]], ids=["pairs", "one segment"])
def test_second_segments_are_those_of_transformers(reference, ours, second):
    inputs, theirs = batch()
    second = torch.tensor(second)
    segments = (torch.arange(7) >= second[:, None]).long()
    expected = reference(**theirs, token_type_ids=segments).pooler_output
    torch.testing.assert_close(ours(inputs | {"text_second": second.int()}), expected, rtol=1e-9, atol=1e-9)
    assert segments.any() != torch.allclose(ours(inputs), expected)


def test_gradients_equal_those_of_transformers(reference, ours):
    inputs, theirs = batch()
    reference(**theirs).pooler_output.square().sum().backward()
    ours(inputs).square().sum().backward()
    expected = dict(reference.named_parameters())
    for name, parameter in ours.named_parameters():
        parts = [expected[name].grad for name in NAMES.theirs(name)]
        torch.testing.assert_close(parameter.grad, torch.cat(parts), rtol=1e-8, atol=1e-9, msg=name)


def test_choices_are_read_like_texts_of_their_own(ours):
    inputs, _ = batch(rows=4)
    chosen = ours({name: column.unflatten(0, (2, 2)) for name, column in inputs.items()})
    torch.testing.assert_close(chosen.flatten(0, 1), ours(inputs))
    assert chosen.shape == (2, 2, 24)


def test_text_without_lengths_is_read_whole(ours):
    inputs, _ = batch()
    full = inputs | {"text_length": torch.full((5,), 7)}
    torch.testing.assert_close(ours({"text": inputs["text"]}), ours(full))


def test_saved_weights_are_read_by_transformers(reference, ours, tmp_path):
    ours.save(tmp_path / "saved")
    again = BertModel.from_pretrained(tmp_path / "saved", dtype=torch.float64).eval()
    inputs, theirs = batch()
    torch.testing.assert_close(again(**theirs).pooler_output, ours(inputs), rtol=1e-9, atol=1e-9)


def test_masked_word_checkpoint_without_a_pooler_is_read(tmp_path):
    torch.manual_seed(0)
    model = randomise(BertForMaskedLM(BertConfig(**SIZES, max_position_embeddings=12))).eval()
    model.save_pretrained(tmp_path)
    state = weights.read_state(tmp_path)
    assert any(name.startswith("cls.") for name in state)
    assert not any("pooler" in name for name in state)
    inputs, theirs = batch()
    encoder = Bert(weights=str(tmp_path)).encoder(INPUTS).eval()
    present = theirs["attention_mask"].bool()
    found, expected = encoder.words(inputs)[present], model.bert(**theirs).last_hidden_state[present]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert encoder(inputs).shape == (5, 24)


def test_first_files_of_bert_name_their_norms_otherwise():
    state = {"bert.embeddings.LayerNorm.gamma": torch.ones(2), "bert.embeddings.position_ids": torch.arange(2)}
    assert list(weights.encoder_state(state, NAMES)) == ["embeddings.LayerNorm.weight"]


def test_it_is_a_model_with_layers_from_the_bottom_up():
    model = TinyBert().build(INPUTS, {"mood": Head("classify", 2), "word": Head("phrase", 30)})
    inputs, _ = batch()
    assert model(inputs, "mood").shape == (5, 2)
    assert model(inputs | {"masked": torch.tensor([[1, -1]] * 5)}, "word").shape == (5, 2, 30)
    assert len(model.encoder.layers()) == 3
    assert model.encoder.stem() == [model.encoder.text]


@pytest.mark.parametrize(
    ("recipe", "inputs", "sentence"),
    [
        (TinyBert(), Inputs((3, 32, 32)), "BERT reads text, but this benchmark has none"),
        (TinyBert(positions=8), Inputs(text=9, vocabulary=30), "9 word pieces, and BERT has 8 positions"),
        (TinyBert(heads=5), INPUTS, "width is 64 and heads is 5"),
    ],
)
def test_refuses_what_it_cannot_read(recipe, inputs, sentence):
    with pytest.raises(UserError, match=sentence):
        recipe.encoder(inputs)


def test_refuses_other_word_pieces_and_other_sizes(ours, tmp_path):
    with pytest.raises(UserError, match=r"vocabulary has 31 word pieces, and that of .* has 30"):
        Bert(weights=str(tmp_path / "bert")).encoder(Inputs(text=7, vocabulary=31))
    with pytest.raises(UserError, match=r"width is 32, but .* has hidden_size 24"):
        Bert(weights=str(tmp_path / "bert"), width=32).encoder(INPUTS)
