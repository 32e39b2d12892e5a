import pytest
import torch
from transformers import LxmertConfig, LxmertModel

from holdfast.errors import UserError
from holdfast.models import weights
from holdfast.models.lxmert import Lxmert, TinyLxmert
from holdfast.types import Head, Inputs

INPUTS = Inputs(text=10, vocabulary=50, regions=(6, 20))
SIZES = {"width": 48, "language": 3, "vision": 2, "crossing": 2, "heads": 4, "hidden": 96, "positions": 16}


def attention(ours, theirs, output):
    parts = tuple(f"{theirs}.{part}" for part in ("query", "key", "value"))
    return {f"{ours}.projection": parts, f"{ours}.output": (f"{output}.dense",)}


def block(ours, self_attention, inner, output):
    return {
        **attention(f"{ours}.attention", f"{self_attention}.self", f"{self_attention}.output"),
        f"{ours}.attention_norm": (f"{self_attention}.output.LayerNorm",),
        f"{ours}.feed_forward.inner": (f"{inner}.dense",),
        f"{ours}.feed_forward.output": (f"{output}.dense",),
        f"{ours}.feed_forward_norm": (f"{output}.LayerNorm",),
    }


def tower(ours, theirs):
    return block(ours, f"{theirs}.attention", f"{theirs}.intermediate", f"{theirs}.output")


CROSS = "encoder.x_layers.{}"
NAMES = weights.Names(
    "",
    {
        "text.words": ("embeddings.word_embeddings",),
        "text.positions": ("embeddings.position_embeddings",),
        "text.segments": ("embeddings.token_type_embeddings",),
        "text.norm": ("embeddings.LayerNorm",),
        "image.feature": ("encoder.visn_fc.visn_fc",),
        "image.feature_norm": ("encoder.visn_fc.visn_layer_norm",),
        "image.place": ("encoder.visn_fc.box_fc",),
        "image.place_norm": ("encoder.visn_fc.box_layer_norm",),
        **tower("language.{}", "encoder.layer.{}"),
        **tower("vision.{}", "encoder.r_layers.{}"),
        **attention("crossing.{}.attention", f"{CROSS}.visual_attention.att", f"{CROSS}.visual_attention.output"),
        "crossing.{}.norm": (f"{CROSS}.visual_attention.output.LayerNorm",),
        **block("crossing.{}.language", f"{CROSS}.lang_self_att", f"{CROSS}.lang_inter", f"{CROSS}.lang_output"),
        **block("crossing.{}.vision", f"{CROSS}.visn_self_att", f"{CROSS}.visn_inter", f"{CROSS}.visn_output"),
        "pooler": ("pooler.dense",),
    },
)
"""What `transformers` calls our weights."""


def batch(rows=3, length=10, boxes=6, features=20):
    corners = torch.rand(rows, boxes, 2, 2, dtype=torch.float64).sort(dim=2).values
    return {
        "text": torch.randint(1, 50, (rows, length)),
        "text_length": torch.tensor([length, 4, 2])[:rows],
        "regions": torch.randn(rows, boxes, features, dtype=torch.float64),
        "boxes": corners.flatten(2),
        "region_count": torch.tensor([2, boxes, 1])[:rows],
    }


@pytest.fixture
def theirs():
    config = LxmertConfig(
        vocab_size=50, hidden_size=48, num_attention_heads=4, intermediate_size=96, l_layers=3, r_layers=2, x_layers=2,
        max_position_embeddings=16, visual_feat_dim=20,
    )  # fmt: skip
    model = LxmertModel(config).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


@pytest.fixture
def ours(theirs):
    encoder = Lxmert(**SIZES).encoder(INPUTS).double().eval()
    weights.load(encoder, weights.encoder_state(theirs.state_dict(), NAMES), NAMES, "transformers")
    return encoder


def test_it_equals_transformers_in_outputs_and_gradients(ours, theirs):
    inputs = batch()
    spoken = torch.arange(10) < inputs["text_length"][:, None]
    boxed = torch.arange(6) < inputs["region_count"][:, None]
    expected = theirs(
        input_ids=inputs["text"], visual_feats=inputs["regions"], visual_pos=inputs["boxes"],
        attention_mask=spoken, visual_attention_mask=boxed,
    )  # fmt: skip
    words, boxes = ours.words_and_boxes(inputs)
    assert torch.allclose(words[spoken], expected.language_output[spoken], rtol=0, atol=1e-9)
    assert torch.allclose(boxes[boxed], expected.vision_output[boxed], rtol=0, atol=1e-9)
    assert torch.equal(ours.words(inputs), words)
    assert torch.allclose(ours(inputs), expected.pooled_output, rtol=0, atol=1e-9)

    (words[spoken].square().sum() + boxes[boxed].square().sum()).backward()
    (expected.language_output[spoken].square().sum() + expected.vision_output[boxed].square().sum()).backward()
    gradients = {name: parameter.grad for name, parameter in theirs.named_parameters()}
    checked = [name for name, p in ours.named_parameters() if p.grad is not None and p.ndim > 1]
    assert len(checked) > 40
    for name in checked:
        found = ours.get_parameter(name).grad
        expected_gradient = torch.cat([gradients[part] for part in NAMES.theirs(name)])
        if name.startswith("text."):  # there, row 0 counts as padding and never learns
            found, expected_gradient = found[1:], expected_gradient[1:]
        assert torch.allclose(found, expected_gradient, rtol=1e-9, atol=1e-9), name


def test_padding_changes_nothing(ours):
    inputs = batch()
    other = {name: column.clone() for name, column in inputs.items()}
    for row in range(3):
        other["text"][row, inputs["text_length"][row] :] = 7
        other["regions"][row, inputs["region_count"][row] :] = 100.0
        other["boxes"][row, inputs["region_count"][row] :] = 0.0
    spoken = torch.arange(10) < inputs["text_length"][:, None]
    assert torch.equal(ours(inputs), ours(other))
    assert torch.equal(ours.words(inputs)[spoken], ours.words(other)[spoken])


def test_an_image_without_regions_is_no_number_gone_wrong(ours):
    assert ours({**batch(), "region_count": torch.tensor([0, 0, 3])}).isfinite().all()


def test_the_size_of_the_paper():
    """VisCOLL counts 58,614,794: with a head for image-text matching that it never trains, and a third segment."""
    inputs = Inputs(text=64, vocabulary=30600, regions=(100, 2048))
    with torch.device("meta"):
        model = Lxmert().build(inputs, {"words": Head("phrase", 30600)})
    matching, segment = 384 * 2 + 2, 384
    assert sum(p.numel() for p in model.parameters()) == 58_614_794 - matching - segment


def test_layers_come_from_both_encoders_from_the_bottom_up():
    encoder = TinyLxmert(language=4, vision=2, crossing=1).encoder(INPUTS)
    names = {id(module): name for name, module in encoder.named_modules()}
    order = [names[id(layer)] for layer in encoder.layers()]
    assert order == ["language.0", "language.1", "vision.0", "language.2", "language.3", "vision.1", "crossing.0"]
    assert len(encoder.blocks()) == 4 + 2 + 1, "nobody reads the last crossing's regions"


@pytest.mark.parametrize(
    ("recipe", "inputs", "message"),
    [
        (TinyLxmert(), Inputs(text=5, vocabulary=9), "LXMERT needs region features"),
        (TinyLxmert(), Inputs(regions=(3, 4)), "LXMERT needs text"),
        (TinyLxmert(positions=8), Inputs(text=9, vocabulary=9, regions=(3, 4)), "9 word pieces.*8 positions"),
        (TinyLxmert(width=10), Inputs(text=9, vocabulary=9, regions=(3, 4)), "width is 10 and heads is 4"),
    ],
)
def test_refusals(recipe, inputs, message):
    with pytest.raises(UserError, match=message):
        recipe.encoder(inputs)


@pytest.mark.parametrize("head", [Head("choose", 4), Head("classify", 2, images=2)])
def test_several_images_or_texts_are_refused(head):
    with pytest.raises(UserError, match="one image and one text"):
        TinyLxmert().build(INPUTS, {"head": head})
