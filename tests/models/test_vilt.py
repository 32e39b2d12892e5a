"""ViLT against `transformers`, on random weights and real masks; and the shares of CLiMB's table."""

import dataclasses

import pytest
import torch
from transformers import ViltConfig, ViltForMaskedLM, ViltModel

from holdfast.errors import UserError
from holdfast.models import weights
from holdfast.models.vilt import NAMES, TinyVilt, Vilt, stretch
from holdfast.types import Head, Inputs

SIZES = {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 40, "vocab_size": 30}
IMAGE = {"image_size": 32, "patch_size": 8, "max_position_embeddings": 10}
INPUTS = Inputs((3, 32, 32), images=2, padded=True, text=7, vocabulary=30)


def randomise(module):
    """Weights that no part of a model can hide: norms and biases are not at their start."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(std=0.4)
    return module


@pytest.fixture
def reference():
    torch.manual_seed(0)
    return randomise(ViltModel(ViltConfig(**SIZES, **IMAGE, modality_type_vocab_size=3))).double().eval()


@pytest.fixture
def ours(reference, tmp_path):
    reference.save_pretrained(tmp_path / "vilt")
    return Vilt(weights=str(tmp_path / "vilt")).encoder(INPUTS).double().eval()


def batch(rows=4, height=32, width=32, sizes=None):
    generator = torch.Generator().manual_seed(1)
    inputs = {
        "text": torch.randint(1, 30, (rows, 7), generator=generator, dtype=torch.int32),
        "text_length": torch.tensor([7, 1, 3, 6][:rows], dtype=torch.int32),
        "image": torch.randint(0, 256, (rows, 3, height, width), generator=generator, dtype=torch.uint8),
    }
    return inputs if sizes is None else inputs | {"image_size": torch.tensor(sizes, dtype=torch.int32)}


def in_their_words(inputs):
    """The same inputs as `transformers` takes them."""
    image, lengths = inputs["image"], inputs["text_length"]
    mask = torch.zeros(len(image), *image.shape[-2:], dtype=torch.long)
    for row, (height, width) in enumerate(inputs.get("image_size", [image.shape[-2:]] * len(image))):
        mask[row, :height, :width] = 1
    return {
        "input_ids": inputs["text"].long(),
        "attention_mask": (torch.arange(inputs["text"].shape[-1]) < lengths[:, None]).long(),
        "pixel_values": image.double() / 127.5 - 1,
        "pixel_mask": mask,
    }


def run(reference, inputs, **options):
    with torch.random.fork_rng():  # it draws the order of patches, even in evaluation
        return reference(**in_their_words(inputs), **options)


PADDED = [[32, 32], [16, 24], [24, 8], [8, 32]]
WIDE = [[24, 56], [16, 56], [24, 8], [8, 40]]
BATCHES = {
    "whole": batch(),
    "another grid": batch(height=24, width=56),
    "one patch": batch(height=8, width=8),
    "left over pixels": batch(height=27, width=45),
    "padded": batch(sizes=PADDED),
    "padded on another grid": batch(height=24, width=56, sizes=WIDE),
}


@pytest.mark.parametrize("inputs", BATCHES.values(), ids=BATCHES)
def test_words_and_pooled_vector_equal_those_of_transformers(reference, ours, inputs):
    expected = run(reference, inputs)
    present = torch.arange(7) < inputs["text_length"][:, None]
    words = expected.last_hidden_state[:, :7]
    torch.testing.assert_close(ours.words(inputs)[present], words[present], rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(ours(inputs), expected.pooler_output, rtol=1e-9, atol=1e-9)


def test_in_float32_the_difference_stays_below_a_ten_thousandth(reference, ours):
    inputs = BATCHES["padded on another grid"]
    found, expected = ours.float()(inputs), run(reference, inputs).pooler_output.float()
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", ["whole", "padded on another grid"])
def test_gradients_equal_those_of_transformers(reference, ours, name):
    inputs = BATCHES[name]
    run(reference, inputs).pooler_output.square().sum().backward()
    ours(inputs).square().sum().backward()
    expected = dict(reference.named_parameters())
    for name, parameter in ours.named_parameters():
        grads = torch.cat([expected[name].grad for name in NAMES.theirs(name)])
        torch.testing.assert_close(parameter.grad, grads, rtol=1e-8, atol=1e-9, msg=name)


@pytest.mark.parametrize("sizes", [None, [PADDED, PADDED[::-1]]], ids=["whole", "padded"])
def test_two_images_are_two_passes_with_their_own_type(reference, ours, sizes):
    first, second = batch(sizes=sizes and sizes[0]), batch(sizes=sizes and sizes[1])
    second["image"] = second["image"].flip(0)
    both = dict(first, image=torch.stack([first["image"], second["image"]], 1))
    if sizes:
        both["image_size"] = torch.stack([first["image_size"], second["image_size"]], 1)
    expected = [run(reference, first), run(reference, second, image_token_type_idx=2)]
    torch.testing.assert_close(ours(both), torch.stack([e.pooler_output for e in expected], 1), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("sizes", [None, PADDED[:2]], ids=["whole", "padded"])
def test_choices_share_their_image(reference, ours, sizes):
    inputs = batch(rows=2, sizes=sizes)
    texts, lengths = batch()["text"].view(2, 2, 7), torch.tensor([[7, 1], [3, 6]])
    found = ours(inputs | {"text": texts, "text_length": lengths})
    for choice in range(2):
        one = inputs | {"text": texts[:, choice], "text_length": lengths[:, choice]}
        torch.testing.assert_close(found[:, choice], run(reference, one).pooler_output, rtol=1e-9, atol=1e-9)


def test_the_second_text_of_a_pair_is_a_segment_of_its_own(reference, ours):
    inputs, second = batch(rows=2), torch.tensor([[3, 1], [2, 4]])
    texts, lengths = batch()["text"].view(2, 2, 7), torch.tensor([[7, 1], [3, 6]])
    found = ours(inputs | {"text": texts, "text_length": lengths, "text_second": second.int()})
    for choice in range(2):
        one = inputs | {"text": texts[:, choice], "text_length": lengths[:, choice]}
        segments = (torch.arange(7) >= second[:, choice, None]).long()
        expected = run(reference, one, token_type_ids=segments).pooler_output
        torch.testing.assert_close(found[:, choice], expected, rtol=1e-9, atol=1e-9)


def test_nothing_is_masked_where_nothing_can_be_padded(ours):
    inputs = batch()
    full = inputs | {"text_length": torch.full((4,), 7)}
    without = {name: column for name, column in inputs.items() if name != "text_length"}
    torch.testing.assert_close(ours(without), ours(full))
    sized = without | {"image_size": torch.full((4, 2), 32)}
    torch.testing.assert_close(ours(sized), ours(full))


def test_padding_changes_nothing(ours):
    inputs = batch(sizes=PADDED)
    changed = {name: column.clone() for name, column in inputs.items()}
    for row, (height, width) in enumerate(PADDED):
        changed["image"][row, :, height:] = 7
        changed["image"][row, :, :, width:] = 200
        changed["text"][row, inputs["text_length"][row] :] = 29
    assert not torch.equal(changed["image"], inputs["image"])
    assert torch.equal(ours(changed), ours(inputs))


def test_without_an_image_it_is_a_transformer_over_the_words_alone(reference, ours):
    inputs = batch(sizes=[[32, 32], [0, 0], [0, 0], [0, 0]])
    theirs = in_their_words(inputs)
    embeddings, mask = reference.embeddings, theirs["attention_mask"]
    words = embeddings.text_embeddings(input_ids=theirs["input_ids"]) + embeddings.token_type_embeddings.weight[0]
    unseen = (1 - mask[:, None, None].double()) * torch.finfo(torch.float64).min
    hidden = reference.encoder(words, attention_mask=unseen)[0]
    expected = reference.pooler(reference.layernorm(hidden))
    torch.testing.assert_close(ours(inputs)[1:], expected[1:], rtol=1e-9, atol=1e-9)
    shown = run(reference, batch()).pooler_output
    torch.testing.assert_close(ours(inputs)[0], shown[0], rtol=1e-9, atol=1e-9)


def test_positions_are_stretched_as_interpolation_with_aligned_corners_does():
    table = torch.randn(1, 5, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for high, wide in [(1, 1), (2, 7), (4, 4), (9, 3)]:
        expected = torch.nn.functional.interpolate(table, (high, wide), mode="bilinear", align_corners=True)
        rows, columns = stretch(high, high, 4, table), stretch(wide, wide, 4, table)
        torch.testing.assert_close(torch.einsum("hp,wq,bdpq->bdhw", rows, columns, table), expected)


def test_saved_weights_are_read_by_transformers(ours, tmp_path):
    (tmp_path / "words").write_text("[PAD]\n")
    ours.save(tmp_path / "saved", vocabulary=tmp_path / "words")
    again = ViltModel.from_pretrained(tmp_path / "saved", dtype=torch.float64).eval()
    inputs = BATCHES["padded"]
    torch.testing.assert_close(run(again, inputs).pooler_output, ours(inputs), rtol=1e-9, atol=1e-9)
    assert Vilt(weights=str(tmp_path / "saved")).wants().vocabulary == tmp_path / "saved" / "vocab.txt"


def test_whole_checkpoint_with_two_types_starts_the_second_image_like_the_first(tmp_path):
    torch.manual_seed(0)
    model = randomise(ViltForMaskedLM(ViltConfig(**SIZES, **IMAGE))).eval()
    model.save_pretrained(tmp_path)
    encoder = Vilt(weights=str(tmp_path)).encoder(INPUTS)
    kinds = model.vilt.embeddings.token_type_embeddings.weight
    assert torch.equal(encoder.modality.weight, kinds[[0, 1, 1]])
    wants, source = Vilt(weights=str(tmp_path)).wants(), Vilt(weights=str(tmp_path)).source()
    assert (wants.side, wants.vocabulary) == (32, None)
    assert source == weights.digest(tmp_path) != ""
    assert Vilt().source() == ""
    assert Vilt().wants().side == 384


def test_long_texts_repeat_the_positions(reference, ours, tmp_path):
    recipe = Vilt(weights=str(tmp_path / "vilt"))
    table = recipe.encoder(dataclasses.replace(INPUTS, text=25)).text.positions.weight
    assert torch.equal(table, ours.text.positions.weight[torch.arange(25) % 10].float())
    longer = dataclasses.replace(recipe, text_positions=12).encoder(INPUTS)
    assert len(longer.text.positions.weight) == 12
    longer.save(tmp_path / "longer")
    assert Vilt(weights=str(tmp_path / "longer")).encoder(INPUTS).recipe.positions == 12
    with pytest.raises(UserError, match="has 25 word pieces, and ViLT has 12 positions"):
        dataclasses.replace(recipe, text_positions=12).encoder(dataclasses.replace(INPUTS, text=25))


@pytest.mark.parametrize(
    ("recipe", "inputs", "sentence"),
    [
        (TinyVilt(weights=""), Inputs(text=7, vocabulary=30), "ViLT sees images, but this benchmark has none"),
        (TinyVilt(weights=""), Inputs((3, 32, 32)), "ViLT reads text with its images"),
        (TinyVilt(weights=""), Inputs((1, 32, 32), text=7, vocabulary=30), "3 channels, but this benchmark's have 1"),
        (TinyVilt(weights=""), Inputs((3, 12, 32), text=7, vocabulary=30), "image of 12 x 32 is too small .* 16 x 16"),
        (TinyVilt(weights="", side=8), INPUTS, r"8 x 8 \(side\) is too small for one patch of 16 x 16"),
        (TinyVilt(weights="", heads=5), INPUTS, "width is 64 and heads is 5"),
        (TinyVilt(weights=""), dataclasses.replace(INPUTS, images=3), "at most 2 images, but this benchmark has 3"),
    ],
)
def test_refuses_what_it_cannot_see(recipe, inputs, sentence):
    with pytest.raises(UserError, match=sentence):
        recipe.encoder(inputs)


def test_a_setting_that_disagrees_with_the_weights_is_refused_with_both(ours, tmp_path):
    with pytest.raises(UserError, match=r"depth is 2, but .* has num_hidden_layers 3: leave out depth"):
        Vilt(weights=str(tmp_path / "vilt"), depth=2).encoder(INPUTS)
    assert Vilt(weights=str(tmp_path / "vilt"), depth=3).encoder(INPUTS).recipe.width == 24


def test_every_head_learns_through_it():
    torch.manual_seed(0)
    heads = {"vqa": Head("classify", 5), "pair": Head("classify", 2, images=2), "vcr": Head("choose", 2)}
    model = TinyVilt(weights="", depth=2).build(INPUTS, heads | {"word": Head("phrase", 30)})
    inputs = batch()
    pair = inputs | {"image": torch.stack([inputs["image"]] * 2, 1)}
    choices = inputs | {"text": inputs["text"].unsqueeze(1).expand(-1, 2, -1), "text_length": torch.full((4, 2), 5)}
    masked = inputs | {"masked": torch.tensor([[1, -1]] * 4)}
    outputs = [model(i, name) for i, name in [(inputs, "vqa"), (pair, "pair"), (choices, "vcr"), (masked, "word")]]
    assert [tuple(output.shape) for output in outputs] == [(4, 5), (4, 2), (4, 2), (4, 2, 30)]
    sum(output.logsumexp(-1).sum() for output in outputs).backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_adapters_of_the_last_block_are_used_and_have_no_published_name(tmp_path):
    torch.manual_seed(0)
    model = TinyVilt(weights="", depth=2).build(INPUTS, {"vqa": Head("classify", 5)}).eval()
    inputs = batch()
    before = model(inputs, "vqa")
    added = [block.adapters() for block in model.encoder.blocks()]
    torch.nn.init.constant_(added[-1]["feed_forward"].up.bias, 1.0)
    model.add("vqa", added)
    assert not torch.allclose(model(inputs, "vqa"), before)
    with pytest.raises(UserError, match=r"no name for stack.0.added.vqa.attention.down.weight of shape \(4, 64\)"):
        model.encoder.save(tmp_path / "saved")
    assert not (tmp_path / "saved").exists()


def test_a_compiled_forward_has_no_graph_break_and_no_shape_that_depends_on_data():
    encoder = TinyVilt(weights="", depth=1).encoder(INPUTS).eval()
    inputs = batch(sizes=PADDED)
    traced = torch.compile(encoder, backend="eager", fullgraph=True)
    torch.testing.assert_close(traced(inputs), encoder(inputs))


def test_trainable_shares_are_those_of_climb():
    """Nothing differs from CLiMB's table.

    What has to be counted for that: the third modality embedding; norm and pooler above the blocks, which a frozen
    bottom leaves trainable; a choice head of one output; all four heads at once; adapters with their biases, as
    trainable and in the whole, while everything else in the encoder is frozen.
    """
    heads = {
        "vqav2": Head("classify", 3129),
        "nlvr2": Head("classify", 2, images=2),
        "snli_ve": Head("classify", 3),
        "vcr": Head("choose", 4),
    }
    with torch.device("meta"):
        model = Vilt().build(Inputs((3, 384, 384), images=2, text=40, vocabulary=30522), heads)
        sets = [block.adapters() for _ in heads for block in model.encoder.blocks()]

    def count(*modules):
        return sum(parameter.numel() for module in modules for parameter in module.parameters())

    encoder, classifiers, added = count(model.encoder), count(model.heads), count(*sets)
    bottom = count(*model.encoder.stem(), *model.encoder.layers()[:9])
    shares = {
        "frozen encoder": classifiers / (encoder + classifiers),
        "frozen bottom 9": (encoder + classifiers - bottom) / (encoder + classifiers),
        "adapters": (classifiers + added) / (encoder + classifiers + added),
    }
    assert {name: round(100 * share, 2) for name, share in shares.items()} == {
        "frozen encoder": 7.88,
        "frozen bottom 9": 25.92,
        "adapters": 13.02,
    }
