import json

import pytest
import torch
from torch.nn import functional
from transformers import BertConfig, BertModel

from holdfast.errors import UserError
from holdfast.models.uniter import NAMES, TinyUniter, Uniter
from holdfast.types import Head, Inputs

SIZES = {"width": 48, "depth": 3, "heads": 4, "hidden": 96, "positions": 16, "dropout": 0.0}
INPUTS = Inputs(text=10, vocabulary=50, regions=(6, 20))


def batch(rows=3, length=10, boxes=6, features=20):
    corners = torch.rand(rows, boxes, 2, 2, dtype=torch.float64).sort(dim=2).values
    return {
        "text": torch.randint(1, 50, (rows, length)),
        "text_length": torch.tensor([length, 4, 1])[:rows],
        "regions": torch.randn(rows, boxes, features, dtype=torch.float64),
        "boxes": corners.flatten(2),
        "region_count": torch.tensor([2, boxes, 1])[:rows],
    }


@pytest.fixture
def encoder():
    built = Uniter(**SIZES).encoder(INPUTS).double()
    for parameter in built.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return built.eval()


@pytest.fixture
def bert():
    config = BertConfig(
        vocab_size=50, hidden_size=48, num_hidden_layers=3, num_attention_heads=4, intermediate_size=96,
        max_position_embeddings=16, attn_implementation="eager",
    )  # fmt: skip
    model = BertModel(config).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def published(bert):
    """A checkpoint as UNITER's authors name it: BERT's names, those of regions, and the heads of pre-training."""
    shapes = {
        "img_linear.weight": (48, 20), "img_linear.bias": (48,), "img_layer_norm.weight": (48,),
        "img_layer_norm.bias": (48,), "pos_linear.weight": (48, 7), "pos_linear.bias": (48,),
        "pos_layer_norm.weight": (48,), "pos_layer_norm.bias": (48,), "LayerNorm.weight": (48,),
        "LayerNorm.bias": (48,), "mask_embedding.weight": (2, 20),
    }  # fmt: skip
    state = {f"uniter.{name}": weight for name, weight in bert.state_dict().items()}
    images = {f"uniter.img_embeddings.{name}": torch.randn(*s, dtype=torch.float64) for name, s in shapes.items()}
    return {**state, **images, "cls.predictions.bias": torch.zeros(50), "itm_output.weight": torch.zeros(2, 48)}


def reference(bert, images, inputs):
    """UNITER's last states, from `transformers`' BERT and the equation of a region, word for word."""

    def norm(x, name):
        return functional.layer_norm(x, (48,), images[f"{name}.weight"], images[f"{name}.bias"], 1e-12)

    def linear(x, name):
        return functional.linear(x, images[f"{name}.weight"], images[f"{name}.bias"])

    x1, y1, x2, y2 = inputs["boxes"].unbind(-1)
    where = torch.stack([x1, y1, x2, y2, x2 - x1, y2 - y1, (x2 - x1) * (y2 - y1)], dim=-1)
    seen = norm(linear(inputs["regions"], "img_linear"), "img_layer_norm")
    seen = seen + norm(linear(where, "pos_linear"), "pos_layer_norm") + bert.embeddings.token_type_embeddings.weight[1]
    x = torch.cat([bert.embeddings(inputs["text"]), norm(seen, "LayerNorm")], dim=1)
    spoken = torch.arange(inputs["text"].shape[1]) < inputs["text_length"][:, None]
    boxed = torch.arange(seen.shape[1]) < inputs["region_count"][:, None]
    absent = (~torch.cat([spoken, boxed], dim=1)).double() * torch.finfo(torch.float64).min
    return bert.encoder(x, attention_mask=absent[:, None, None, :]).last_hidden_state


def test_it_equals_transformers_bert_over_words_and_regions_by_the_published_names(bert):
    state = published(bert)
    ours = Uniter(**SIZES).encoder(INPUTS).double().eval()
    ours.load_published(state)
    prefix = "uniter.img_embeddings."
    images = {n.removeprefix(prefix): w.clone().requires_grad_() for n, w in state.items() if n.startswith(prefix)}
    inputs = batch()
    states = reference(bert, images, inputs)
    pooled = bert.pooler(states)
    assert torch.allclose(ours(inputs), pooled, rtol=0, atol=1e-9)
    spoken = torch.arange(10) < inputs["text_length"][:, None]
    assert torch.allclose(ours.words(inputs)[spoken], states[:, :10][spoken], rtol=0, atol=1e-9)

    ours(inputs).square().sum().backward()
    pooled.square().sum().backward()
    layer = bert.encoder.layer[1].attention.self
    projection = torch.cat([layer.query.weight.grad, layer.key.weight.grad, layer.value.weight.grad])
    assert torch.allclose(ours.stack[1].attention.projection.weight.grad, projection, rtol=0, atol=1e-9)
    assert torch.allclose(ours.image.feature.weight.grad, images["img_linear.weight"].grad, rtol=0, atol=1e-9)
    assert torch.allclose(ours.image.geometry.weight.grad, images["pos_linear.weight"].grad, rtol=0, atol=1e-9)
    assert torch.allclose(ours.text.words.weight.grad, bert.embeddings.word_embeddings.weight.grad, rtol=0, atol=1e-9)
    assert torch.equal(ours.text.segments.weight[2], ours.text.segments.weight[1])


def test_a_choice_is_read_as_if_it_were_alone(encoder):
    inputs = batch()
    text = torch.randint(1, 50, (3, 4, 10))
    lengths = torch.tensor([[10, 3, 1, 7]]).expand(3, 4)
    together = encoder({**inputs, "text": text, "text_length": lengths})
    assert together.shape == (3, 4, 48)
    for choice in range(4):
        alone = encoder({**inputs, "text": text[:, choice], "text_length": lengths[:, choice]})
        assert torch.allclose(together[:, choice], alone, rtol=0, atol=1e-12)


def test_each_image_of_a_pair_is_read_with_the_text_and_its_own_kind(encoder):
    first, second = batch(), batch()
    pair = {k: torch.stack([first[k], second[k]], dim=1) for k in ("regions", "boxes")}
    counts = torch.tensor([[2, 6], [6, 3], [1, 5]])
    together = encoder({**first, **pair, "region_count": counts})
    assert together.shape == (3, 2, 48)
    left = encoder({**first, "region_count": counts[:, 0]})
    assert torch.allclose(together[:, 0], left, rtol=0, atol=1e-12)
    text = {"text": first["text"], "text_length": first["text_length"], "region_count": counts[:, 1]}
    with torch.no_grad():
        encoder.text.segments.weight[1] = encoder.text.segments.weight[2]
    assert torch.allclose(together[:, 1], encoder({**second, **text}), rtol=0, atol=1e-12)


def test_padding_changes_nothing(encoder):
    inputs = batch()
    other = {name: column.clone() for name, column in inputs.items()}
    for row in range(3):
        other["text"][row, inputs["text_length"][row] :] = 7
        other["regions"][row, inputs["region_count"][row] :] = 100.0
        other["boxes"][row, inputs["region_count"][row] :] = 0.0
    assert torch.equal(encoder(inputs), encoder(other))
    spoken = torch.arange(10) < inputs["text_length"][:, None]
    assert torch.equal(encoder.words(inputs)[spoken], encoder.words(other)[spoken])
    shorter = {**inputs, "text": inputs["text"][1:2, :4], "regions": inputs["regions"][1:2]}
    shorter |= {name: inputs[name][1:2] for name in ("boxes", "text_length", "region_count")}
    assert torch.allclose(encoder(shorter), encoder(inputs)[1:2], rtol=0, atol=1e-12)


def test_an_adapter_sees_the_whole_last_block(encoder):
    """What is added to the blocks switches the short cut of the last one off; without effect, it changes nothing."""
    inputs = batch()
    before = encoder(inputs)
    for block in encoder.blocks():
        block.added["task"] = torch.nn.ModuleDict({"attention": torch.nn.Identity()})
        block.active = "task"
    assert torch.allclose(encoder(inputs), before, rtol=0, atol=1e-12)


def test_heads_of_climb():
    inputs = Inputs(text=10, vocabulary=50, regions=(6, 20), images=2)
    model = TinyUniter().build(inputs, {"pair": Head("classify", 2, images=2), "answer": Head("choose", 4)})
    hidden = model.heads["pair"].classifier[0]
    assert (hidden.in_features, hidden.out_features) == (128, 128)
    single = {name: column.float() if column.is_floating_point() else column for name, column in batch().items()}
    pair = {name: torch.stack([single[name]] * 2, dim=1) for name in ("regions", "boxes", "region_count")}
    assert model({**single, **pair}, "pair").shape == (3, 2)
    choices = {name: torch.stack([single[name]] * 4, dim=1) for name in ("text", "text_length")}
    assert model({**single, **choices}, "answer").shape == (3, 4)


def test_half_precision_regions_are_cast_to_the_weights(encoder):
    inputs = batch()
    half = inputs["regions"].half()
    assert torch.equal(encoder({**inputs, "regions": half}), encoder({**inputs, "regions": half.double()}))


def test_a_recipe_reads_a_folder_of_published_weights(bert, tmp_path):
    state = published(bert)
    torch.save(state, tmp_path / "pytorch_model.bin")
    config = {"hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 96}
    config |= {"max_position_embeddings": 16, "vocab_size": 50, "hidden_act": "gelu", "type_vocab_size": 2}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "vocab.txt").write_text("[PAD]\n")
    recipe = Uniter(weights=str(tmp_path))
    found, by_hand = recipe.encoder(INPUTS).state_dict(), Uniter(**SIZES).encoder(INPUTS)
    by_hand.load_published(state)
    assert all(torch.equal(weight, by_hand.state_dict()[name]) for name, weight in found.items())
    assert recipe.wants().vocabulary == tmp_path / "vocab.txt"
    assert recipe.source()
    assert not Uniter().source()
    with pytest.raises(UserError, match=r"vocabulary has 60 word pieces.* has 50"):
        recipe.encoder(Inputs(text=10, vocabulary=60, regions=(6, 20)))


def test_what_is_wrong_with_a_checkpoint_is_told_in_one_sentence(bert):
    encoder, state = Uniter(**SIZES).encoder(INPUTS), published(bert)
    name = "uniter.img_embeddings.pos_linear.weight"
    with pytest.raises(UserError, match=r"no weight img_embeddings.pos_linear.weight, .*\(48, 7\)"):
        encoder.load_published({n: w for n, w in state.items() if n != name})
    with pytest.raises(UserError, match=r"pos_linear.weight has the shape \(48, 4\), .* \(48, 7\)"):
        encoder.load_published({**state, name: torch.zeros(48, 4)})
    key = "uniter.encoder.layer.0.attention.self.key.weight"
    with pytest.raises(UserError, match=r"self.key.weight has the shape \(48, 50\), .* \(48, 48\)"):
        encoder.load_published({**state, key: torch.zeros(48, 50)})
    with pytest.raises(UserError, match=r"encoder.layer.2.*does not have"):
        Uniter(**{**SIZES, "depth": 2}).encoder(INPUTS).load_published(state)


@pytest.mark.parametrize(
    ("recipe", "inputs", "message"),
    [
        (TinyUniter(), Inputs(text=5, vocabulary=9), "UNITER needs region features"),
        (TinyUniter(), Inputs(regions=(3, 4)), "UNITER needs text"),
        (TinyUniter(positions=8), Inputs(text=9, vocabulary=9, regions=(3, 4)), "9 word pieces.*has 8 positions"),
        (TinyUniter(width=10), Inputs(text=9, vocabulary=9, regions=(3, 4)), "width is 10 and heads is 4"),
    ],
)
def test_refusals(recipe, inputs, message):
    with pytest.raises(UserError, match=message):
        recipe.encoder(inputs)


def test_the_published_size():
    """The paper's 86 million are those of blocks, regions and pooler; words, places and kinds come on top."""
    with torch.device("meta"):
        encoder = Uniter().encoder(Inputs(text=60, vocabulary=28996, regions=(100, 2048)))
    count = sum(p.numel() for p in encoder.parameters()) - sum(p.numel() for p in encoder.text.parameters())
    block = 4 * (768 * 768 + 768) + 2 * 768 * 3072 + 3072 + 768 + 4 * 768
    assert count == 12 * block + (2048 + 1 + 7 + 1 + 6) * 768 + 768 * 769
    assert all(NAMES.theirs(name) for name in encoder.state_dict())


def test_text_comes_with_a_vocabulary():
    with pytest.raises(AssertionError, match="text without a vocabulary"):
        TinyUniter().encoder(Inputs(text=5, regions=(3, 4)))
