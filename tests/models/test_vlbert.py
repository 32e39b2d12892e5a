"""VL-BERT against an independent sum, and masked phrases with both models of VisCOLL."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from holdfast.errors import UserError
from holdfast.models.lxmert import TinyLxmert
from holdfast.models.vlbert import TinyVLBert, VLBert, waves
from holdfast.tasks import MaskedPhrase
from holdfast.types import Head, Inputs, Part

VOCABULARY, LENGTH, BOXES, FEATURES = 50, 24, 8, 20
INPUTS = Inputs(text=LENGTH, vocabulary=VOCABULARY, regions=(BOXES, FEATURES))
RECIPES = [TinyVLBert(), TinyVLBert(geometry=True, whole="mean", visual_scale=0.1), TinyLxmert()]
TASK = MaskedPhrase("words", "words", VOCABULARY, 0.0)
both = pytest.mark.parametrize("recipe", RECIPES, ids=["vlbert", "vlbert-geometry-mean", "lxmert"])


def batch(rows=3):
    places = torch.tensor([[2, 3, 5, -1, -1, -1], [1, -1, -1, -1, -1, -1], [1, 2, 3, 4, 5, 6]])
    corners = torch.rand(rows, BOXES, 2, 2, dtype=torch.float64).sort(dim=2).values
    return {
        "text": torch.randint(1, VOCABULARY, (rows, LENGTH), dtype=torch.int32),
        "text_length": torch.tensor([LENGTH, 9, 12], dtype=torch.int32)[:rows],
        "regions": torch.randn(rows, BOXES, FEATURES, dtype=torch.float64),
        "boxes": corners.flatten(2),
        "region_count": torch.tensor([3, BOXES, 1])[:rows],
        "masked": places[:rows],
    }


def built(recipe, random=True):
    model = recipe.build(INPUTS, {"words": Head("phrase", VOCABULARY)}).double().eval()
    for parameter in model.parameters() if random else []:
        nn.init.normal_(parameter, std=0.3)
    return model


def library_layer(block, width, heads):
    """The same block, as torch itself has it."""
    layer = nn.TransformerEncoderLayer(
        width, heads, block.feed_forward.inner.out_features, 0.0, "gelu", layer_norm_eps=1e-12, batch_first=True
    ).double()
    pairs = [
        (layer.self_attn.out_proj, block.attention.output),
        (layer.linear1, block.feed_forward.inner),
        (layer.linear2, block.feed_forward.output),
        (layer.norm1, block.attention_norm),
        (layer.norm2, block.feed_forward_norm),
    ]
    for own, ours in pairs:
        own.load_state_dict(ours.state_dict())
    with torch.no_grad():
        layer.self_attn.in_proj_weight.copy_(block.attention.projection.weight)
        layer.self_attn.in_proj_bias.copy_(block.attention.projection.bias)
    return layer


@pytest.mark.parametrize(("geometry", "whole"), [(False, "first"), (True, "mean")])
def test_it_equals_its_equation_on_each_example_without_padding(geometry, whole):
    encoder = built(TinyVLBert(geometry=geometry, whole=whole)).encoder
    embedding, inputs = encoder.embedding, batch()
    layers = [library_layer(block, 64, 4) for block in encoder.layers()]
    found = encoder.words(inputs)
    for row in range(3):
        length, count = int(inputs["text_length"][row]), int(inputs["region_count"][row])
        seen = inputs["regions"][row, :count] @ embedding.feature.weight.T + embedding.feature.bias
        if geometry:
            seen = seen + waves(inputs["boxes"][row, :count]) @ embedding.geometry.weight.T
        image = seen[0] if whole == "first" else seen.mean(0)
        words = [
            embedding.words.weight[int(inputs["text"][row, place])]
            + embedding.word_feature_norm(image)
            + embedding.segments.weight[0]
            + embedding.positions.weight[place]
            for place in range(length)
        ]
        boxes = [
            embedding.image.weight[0]
            + embedding.box_feature_norm(box)
            + embedding.segments.weight[2]
            + embedding.positions.weight[length]
            for box in seen
        ]
        end = embedding.end.weight[0] + embedding.segments.weight[2] + embedding.positions.weight[length + 1]
        x = embedding.norm(torch.stack([*words, *boxes, end]))[None]
        for layer in layers:
            x = layer(x)
        assert torch.allclose(found[row, :length], x[0, :length], rtol=0, atol=1e-9)
        assert torch.allclose(encoder(inputs)[row], x[0, 0], rtol=0, atol=1e-9)


def test_where_a_corner_is_as_sines_and_cosines():
    found = waves(torch.tensor([0.25, 0.0, 0.5, 1.0], dtype=torch.float64)).view(4, 2, 64)
    angles = torch.tensor([100 * 0.25 / 1000 ** (k / 64) for k in range(64)], dtype=torch.float64)
    assert torch.allclose(found[0], torch.stack([angles.sin(), angles.cos()]), rtol=0, atol=1e-12)


def test_the_size_of_the_paper():
    inputs = Inputs(text=64, vocabulary=30600, regions=(100, 2048))
    with torch.device("meta"):
        model = VLBert().build(inputs, {"words": Head("phrase", 30600)})
    assert sum(p.numel() for p in model.parameters()) == 23_564_040


def test_it_starts_blind_and_can_learn_to_see():
    model, inputs = built(TinyVLBert(), random=False), batch()
    other = {**inputs, "regions": torch.randn_like(inputs["regions"])}
    assert torch.equal(model(inputs, "words"), model(other, "words"))
    model(inputs, "words").square().sum().backward()
    for norm in (model.encoder.embedding.word_feature_norm, model.encoder.embedding.box_feature_norm):
        assert norm.weight.grad.abs().max() > 0


def test_what_is_added_to_the_last_block_is_not_cut_short():
    model, inputs = built(TinyVLBert()), batch()
    before = model(inputs, "words")
    identity = [nn.ModuleDict({"attention": nn.Identity()}) for _ in model.encoder.blocks()]
    model.add("words", identity)
    assert torch.allclose(model(inputs, "words"), before, rtol=0, atol=1e-12)


@both
def test_padding_changes_nothing(recipe):
    model, inputs = built(recipe), batch()
    other = {name: column.clone() for name, column in inputs.items()}
    for row in range(3):
        other["text"][row, inputs["text_length"][row] :] = 7
        other["regions"][row, inputs["region_count"][row] :] = 100.0
        other["boxes"][row, inputs["region_count"][row] :] = 0.0
    there = inputs["masked"] >= 0
    assert torch.equal(model(inputs, "words")[there], model(other, "words")[there])
    assert torch.equal(model(inputs, "words"), model(inputs, "words"))
    blank = {**inputs, "region_count": torch.zeros(3, dtype=torch.int64)}
    without = model(blank, "words")
    assert without.isfinite().all()
    assert torch.equal(without, model({**blank, "regions": -inputs["regions"]}, "words"))


@both
def test_words_see_other_words_and_regions(recipe):
    """What is not padding does change the rest: the masks do not hide too much."""
    model, inputs = built(recipe), batch()
    before = model(inputs, "words")[:, 0]
    for name in ("text", "regions"):
        changed = inputs[name].clone()
        changed[:, 0] = 1 + changed[:, 0] % 7 if name == "text" else changed[:, 0] + 1
        difference = (model({**inputs, name: changed}, "words")[:, 0] - before).abs().amax(-1)
        assert (difference > 1e-6).all()


@both
def test_a_place_that_is_not_asked_for_changes_nothing(recipe):
    model, inputs = built(recipe), batch()
    targets = torch.where(inputs["masked"] >= 0, torch.randint(0, VOCABULARY, (3, 6)), -100)
    whole = TASK.losses(model(inputs, "words"), Part("words", inputs, targets))
    short = {**inputs, "masked": inputs["masked"][:2, :3]}
    short = {name: column[:2] for name, column in short.items()}
    fewer = TASK.losses(model(short, "words"), Part("words", short, targets[:2, :3]))
    assert torch.allclose(whole[:2], fewer, rtol=0, atol=1e-12)


@both
def test_the_gradient_reaches_words_and_regions(recipe):
    model, inputs = built(recipe), batch()
    inputs["regions"].requires_grad_()
    targets = torch.where(inputs["masked"] >= 0, 1, -100)
    TASK.loss(model(inputs, "words"), Part("words", inputs, targets)).backward()
    assert model.encoder.word_embedding().weight.grad.abs().max() > 0
    boxed = torch.arange(BOXES) < inputs["region_count"][:, None]
    moved = inputs["regions"].grad.abs().amax(-1)
    assert (moved[boxed] > 0).all()
    assert (moved[~boxed] == 0).all()


@both
def test_it_learns_a_word_that_only_the_regions_tell(recipe):
    """Four answers, the same text: without regions no loss is under log 4."""
    model = recipe.build(INPUTS, {"words": Head("phrase", VOCABULARY)}).train()
    kinds, answers = 5 * torch.randn(4, FEATURES), torch.arange(32) % 4  # as long as 2048 of a detector
    inputs = {
        "text": torch.tensor([[2, 9, 4, 4, 3]]).expand(32, 5),
        "text_length": torch.full((32,), 5),
        "regions": (kinds[answers] + 0.1 * torch.randn(32, FEATURES)).unsqueeze(1).expand(-1, 3, -1),
        "boxes": torch.tensor([0.0, 0.0, 0.5, 1.0]).expand(32, 3, 4),
        "region_count": torch.full((32,), 3),
        "masked": torch.tensor([[2, 3, -1, -1, -1, -1]]).expand(32, 6),
    }
    targets = torch.full((32, 6), -100)
    targets[:, 0], targets[:, 1] = 10 + answers, 20 + answers
    part, losses = Part("words", inputs, targets), []
    optimiser = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(50):
        loss = TASK.loss(model(inputs, "words"), part)
        losses.append(loss.item())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert losses[1] < losses[0]
    assert losses[-1] < 0.5 * torch.tensor(4.0).log()


def test_half_precision_regions_are_cast_to_the_weights():
    model, inputs = built(TinyVLBert()), batch()
    half = inputs["regions"].half()
    found = model({**inputs, "regions": half}, "words")
    assert torch.equal(found, model({**inputs, "regions": half.double()}, "words"))


@pytest.mark.parametrize(
    ("recipe", "inputs", "message"),
    [
        (TinyVLBert(), Inputs(text=5, vocabulary=9), "VL-BERT needs region features"),
        (TinyVLBert(), Inputs(regions=(3, 4)), "VL-BERT needs text"),
        (TinyVLBert(positions=10), Inputs(text=9, vocabulary=9, regions=(3, 4)), "9 word pieces.*8 positions"),
        (TinyVLBert(width=10), Inputs(text=9, vocabulary=9, regions=(3, 4)), "width is 10 and heads is 4"),
    ],
)
def test_refusals(recipe, inputs, message):
    with pytest.raises(UserError, match=message):
        recipe.encoder(inputs)


@pytest.mark.parametrize("head", [Head("choose", 4), Head("classify", 2, images=2)])
def test_several_images_or_texts_are_refused(head):
    with pytest.raises(UserError, match="one image and one text"):
        TinyVLBert().build(INPUTS, {"head": head})


def test_a_phrase_head_shares_the_table_of_words():
    model, inputs = built(TinyVLBert()), batch()
    head, states = model.heads["words"], model.encoder.words(inputs)
    chosen = torch.stack([states[row, inputs["masked"][row].clamp(min=0)] for row in range(3)])
    hidden = head.norm(functional.gelu(head.transform(chosen)))
    by_hand = hidden @ model.encoder.embedding.words.weight.T + head.bias
    assert torch.allclose(model(inputs, "words"), by_hand, rtol=0, atol=1e-12)


@pytest.mark.slow
@both
def test_it_compiles_as_one_graph(recipe):
    model, inputs = built(recipe), batch()
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    assert torch.allclose(compiled(inputs, "words"), model(inputs, "words"), rtol=0, atol=1e-12)
