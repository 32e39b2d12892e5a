"""The one block, against torch's own transformer layer and attention, and where what is added stands in it."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from holdfast.models.transformer import Attention, TransformerBlock, aligned, key_mask, lengths_to_present

WIDTH, HEADS, HIDDEN, ROWS, LENGTH = 8, 2, 12, 3, 5
PRESENT = lengths_to_present(torch.tensor([5, 2, 3]), LENGTH)


def drawn(seed=0, length=LENGTH):
    return torch.randn(ROWS, length, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def disturbed(module):
    """All parameters drawn at random, so that none hides behind its first value."""
    torch.manual_seed(1)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)
    return module.double().eval()


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_block_is_torchs_transformer_layer(norm):
    ours = disturbed(TransformerBlock(WIDTH, HEADS, HIDDEN, norm=norm, epsilon=1e-5))
    theirs = nn.TransformerEncoderLayer(
        WIDTH, HEADS, HIDDEN, dropout=0.0, activation="gelu", batch_first=True, norm_first=norm == "pre"
    )
    names = {
        "self_attn.in_proj_": "attention.projection.",
        "self_attn.out_proj.": "attention.output.",
        "linear1.": "feed_forward.inner.",
        "linear2.": "feed_forward.output.",
        "norm1.": "attention_norm.",
        "norm2.": "feed_forward_norm.",
    }
    state = ours.state_dict()
    taken = {there + kind: state[here + kind] for there, here in names.items() for kind in ("weight", "bias")}
    theirs.double().train().load_state_dict(taken)  # in training mode, for its plain path
    x = drawn()
    torch.testing.assert_close(ours(x), theirs(x))
    masked = theirs(x, src_key_padding_mask=~PRESENT)
    torch.testing.assert_close(ours(x, key_mask(PRESENT))[PRESENT], masked[PRESENT])


def test_attention_onto_another_sequence_is_torchs():
    ours = disturbed(Attention(WIDTH, HEADS, WIDTH, dropout=0.0))
    theirs = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True).double()
    theirs.load_state_dict(
        {
            "in_proj_weight": ours.projection.weight,
            "in_proj_bias": ours.projection.bias,
            "out_proj.weight": ours.output.weight,
            "out_proj.bias": ours.output.bias,
        }
    )
    x, source = drawn(), drawn(2, length=4)
    present = lengths_to_present(torch.tensor([1, 4, 2]), 4)
    expected, _ = theirs(x, source, source, key_padding_mask=~present)
    torch.testing.assert_close(ours(x, key_mask(present), source), expected)


def test_what_is_added_to_an_attention_reads_one_sequence():
    block = disturbed(TransformerBlock(WIDTH, HEADS, HIDDEN))
    added = block.low_rank(rank=2)["projection"].double()
    with pytest.raises(AssertionError, match="additions read one sequence"):
        block.attention(drawn(), None, drawn(2), added)
    block.attention(drawn(), None, None, added)


def test_adapters_stand_where_the_papers_put_them():
    x = drawn()
    for norm in ("pre", "post"):
        block = disturbed(TransformerBlock(WIDTH, HEADS, HIDDEN, norm=norm))
        block.added["one"] = disturbed(block.adapters(reduction=2))
        plain = block(x)
        block.active = "one"
        first, second = (block.added["one"][place] for place in ("attention", "feed_forward"))

        def through(adapter, value):
            return (
                value
                + functional.gelu(value @ adapter.down.weight.T + adapter.down.bias) @ adapter.up.weight.T
                + (adapter.up.bias)
            )

        if norm == "pre":
            y = x + through(first, block.attention(block.attention_norm(x)))
            expected = through(second, y + block.feed_forward(block.feed_forward_norm(y)))
        else:
            y = block.attention_norm(x + through(first, block.attention(x)))
            expected = block.feed_forward_norm(y + through(second, block.feed_forward(y)))
        torch.testing.assert_close(block(x), expected)
        block.active = "another"
        assert torch.equal(block(x), plain)


def test_on_the_cpu_nothing_is_lengthened():
    x, mask = drawn(), key_mask(PRESENT)
    found, same = aligned(x, mask)
    assert found is x
    assert same is mask
