import pytest
import torch
from transformers import ViTConfig, ViTForImageClassification, ViTModel

from holdfast.errors import UserError
from holdfast.models.modular import ModularVit
from holdfast.models.vit import TinyVit, Vit
from holdfast.types import Head, Inputs

SMALL = Vit(patch=8, width=48, depth=3, heads=4, head_width=12, hidden=80)


def images(rows=3, height=24, width=24):
    size = (rows, 3, height, width)
    return torch.randint(256, size, dtype=torch.uint8, generator=torch.Generator().manual_seed(1))


def scrambled(module):
    generator = torch.Generator().manual_seed(5)
    for value in module.state_dict().values():
        value.copy_(torch.randn(value.shape, generator=generator) * 0.3)
    return module.double()


def reference(ours):
    """The transformer of `transformers` with our weights."""
    config = ViTConfig(
        hidden_size=48, num_hidden_layers=3, num_attention_heads=4, intermediate_size=80, image_size=24, patch_size=8
    )
    theirs = ViTModel(config, add_pooling_layer=False).double().eval()
    own = ours.state_dict()
    names = {
        "attention_norm": "layernorm_before",
        "feed_forward_norm": "layernorm_after",
        "attention.output": "attention.o_proj",
        "feed_forward.inner": "mlp.fc1",
        "feed_forward.output": "mlp.fc2",
    }
    state = {
        "embeddings.cls_token": own["patches.whole"],
        "embeddings.position_embeddings": own["patches.position"],
        "embeddings.patch_embeddings.projection.weight": own["patches.projection.weight"],
        "embeddings.patch_embeddings.projection.bias": own["patches.projection.bias"],
        "layernorm.weight": own["norm.weight"],
        "layernorm.bias": own["norm.bias"],
    }
    for layer in range(3):
        for leaf in ("weight", "bias"):
            for here, there in names.items():
                state[f"layers.{layer}.{there}.{leaf}"] = own[f"block.{layer}.{here}.{leaf}"]
            parts = own[f"block.{layer}.attention.projection.{leaf}"].chunk(3)
            for kind, part in zip("qkv", parts, strict=True):
                state[f"layers.{layer}.attention.{kind}_proj.{leaf}"] = part
    theirs.load_state_dict(state)
    return theirs


def test_equals_transformers():
    ours = scrambled(SMALL.encoder(Inputs((3, 24, 24)))).eval()
    theirs = reference(ours)
    found = ours({"image": images()})
    expected = theirs(ours.patches.normalise(images())).last_hidden_state[:, 0]
    torch.testing.assert_close(found, expected, atol=1e-10, rtol=1e-10)
    found.sin().sum().backward()
    expected.sin().sum().backward()
    pairs = [
        (ours.patches.position, theirs.embeddings.position_embeddings),
        (ours.patches.projection.weight, theirs.embeddings.patch_embeddings.projection.weight),
        (ours.block[1].feed_forward.inner.weight, theirs.layers[1].mlp.fc1.weight),
    ]
    for own, other in pairs:
        torch.testing.assert_close(own.grad, other.grad)


@pytest.fixture(params=[ViTModel, ViTForImageClassification])
def published(request, tmp_path):
    """A folder as google/vit-base-patch16-224 and its in21k sibling have it, and the model that it was saved from."""
    config = ViTConfig(
        hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40, image_size=32, patch_size=8
    )
    model = request.param(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
    model.save_pretrained(tmp_path)
    return tmp_path, model.base_model


@pytest.mark.parametrize(("height", "width"), [(32, 32), (48, 32)])
def test_published_weights_give_what_they_give_in_transformers(published, height, width):
    folder, theirs = published
    recipe = Vit(weights=str(folder))
    ours = recipe.encoder(Inputs((3, height, width))).eval()
    assert recipe.wants().side == 32
    assert ours.width == 24
    shown = images(3, height, width)
    expected = theirs(shown / 127.5 - 1, interpolate_pos_encoding=True).last_hidden_state[:, 0]
    torch.testing.assert_close(ours({"image": shown}), expected, rtol=0, atol=1e-5)


def test_published_weights_bring_their_normalisation_and_their_hash(published):
    folder, theirs = published
    before = Vit(weights=str(folder)).source()
    (folder / "preprocessor_config.json").write_text('{"image_mean": [0.1, 0.2, 0.3], "image_std": [0.4, 0.5, 0.6]}')
    recipe = TinyVit(weights=str(folder))
    mean, deviation = torch.tensor([0.1, 0.2, 0.3]).view(3, 1, 1), torch.tensor([0.4, 0.5, 0.6]).view(3, 1, 1)
    shown = images(3, 32, 32)
    expected = theirs((shown / 255 - mean) / deviation).last_hidden_state[:, 0]
    found = recipe.encoder(Inputs((3, 32, 32))).eval()({"image": shown})
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
    assert recipe.wants().side == 32
    assert before != recipe.source() == Vit(weights=str(folder)).source()
    with pytest.raises(UserError, match=r"depth is 7, but .* has num_hidden_layers 2"):
        Vit(weights=str(folder), depth=7).encoder(Inputs((3, 32, 32)))
    with pytest.raises(UserError, match="a modular ViT starts from scratch"):
        ModularVit(weights=str(folder)).encoder(Inputs((3, 32, 32)))


def test_a_map_has_the_patches_in_their_places(published):
    folder, theirs = published
    encoder, shown = TinyVit(weights=str(folder)).encoder(Inputs((3, 32, 32))).eval(), images(3, 32, 32)
    states = theirs(shown / 127.5 - 1).last_hidden_state[:, 1:]
    found = encoder.grid(shown)
    assert found.shape[2:] == (32 // 8, 32 // 8)
    torch.testing.assert_close(found[:, :, 1, 2], states[:, 4 + 2], rtol=0, atol=1e-5)


def test_the_papers_size():
    encoder = Vit().encoder(Inputs((3, 224, 224)))
    assert encoder.patches.position.shape == (1, 197, 384)
    assert len(encoder.layers()) == 9
    attention = 384 * 3 * 1024 + 3 * 1024 + 1024 * 384 + 384
    feed_forward = 2 * 384 * 1536 + 1536 + 384
    embedding = 3 * 16 * 16 * 384 + 384 + 198 * 384
    count = 9 * (attention + feed_forward + 4 * 384) + embedding + 2 * 384
    assert sum(p.numel() for p in encoder.parameters()) == count
    assert Vit().wants().side == 224


def test_pairs_of_images_give_a_vector_each():
    encoder = SMALL.encoder(Inputs((3, 16, 24))).eval()
    pairs = images(6, 16, 24).view(3, 2, 3, 16, 24)
    found = encoder({"image": pairs})
    assert found.shape == (3, 2, 48)
    torch.testing.assert_close(found[2, 0], encoder({"image": pairs[2, :1]})[0])


def test_a_tiny_one_learns():
    torch.manual_seed(0)
    model = TinyVit(width=32, depth=2).build(Inputs((3, 16, 16)), {"side": Head("classify", 2)})
    pixels = torch.zeros(64, 3, 16, 16, dtype=torch.uint8)
    targets = torch.arange(2).repeat(32)
    for row, target in enumerate(targets.tolist()):  # a bright square on the left or on the right, at any height
        pixels[row, :, row // 5 :, 8 * target : 8 * target + 4] = 200
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(40):
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(model({"image": pixels}, "side"), targets)
        loss.backward()
        optimiser.step()
    assert loss < 0.1


def test_refuses_what_it_cannot_see():
    with pytest.raises(UserError, match="at least 16 x 16 pixels, but these have 8 x 32"):
        Vit().encoder(Inputs((3, 8, 32)))
    with pytest.raises(UserError, match="needs images"):
        Vit().encoder(Inputs(text=9, vocabulary=5))
