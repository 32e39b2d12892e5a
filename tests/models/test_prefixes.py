"""Prefixes against attention by hand: keys and values side by side, one query of one head of one row at a time."""

import copy
import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from holdfast.models.module import of
from holdfast.models.prefixes import Prefix
from holdfast.models.transformer import TransformerBlock, key_mask
from holdfast.types import Head, Inputs
from models import foreign

ROWS, LENGTH, WIDTH, HEADS = 3, 5, 8, 2
ENDS = torch.tensor([4, 9] * 3)
GREY = Inputs(image=(1, 12, 12))
ASKED = {"one": Head("classify", 3), "two": Head("classify", 3)}
IMAGE = {"image": torch.randint(0, 256, (5, 1, 12, 12), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))}


def by_hand(query, key, value, own, hidden):
    """Attention over a prefix and a sequence: `hidden(row, i, j)` says where query i does not see key j."""
    rows, length, width = query.shape
    out, size = torch.zeros_like(query), width // HEADS
    for row in range(rows):
        keys, values = torch.cat([own[0][row], key[row]]), torch.cat([own[1][row], value[row]])
        for head in range(HEADS):
            part = slice(head * size, (head + 1) * size)
            for i in range(length):
                scores = keys[:, part] @ query[row, i, part] / math.sqrt(size)
                seen = [j for j in range(len(keys)) if j < len(own[0][row]) or not hidden(row, i, j - len(own[0][row]))]
                shares = torch.exp(scores[seen]) / torch.exp(scores[seen]).sum()
                out[row, i, part] = (shares[:, None] * values[seen][:, part]).sum(0)
    return out


def numbers(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def disturbed(sets, seed=3):
    for module in sets:
        for place, parameter in enumerate(module.double().parameters()):
            parameter.data = numbers(*parameter.shape, seed=seed + place)
    return sets


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("across", [False, True])
def test_our_block_is_prefix_attention(norm, masked, across):
    torch.manual_seed(0)
    block = TransformerBlock(WIDTH, HEADS, 16, norm=norm).double()
    x, lengths = numbers(ROWS, LENGTH, WIDTH), [5, 2, 4]
    source = numbers(ROWS, 5, WIDTH, seed=1) if across else None
    mask = key_mask(torch.arange(5) < torch.tensor(lengths)[:, None]) if masked else None
    plain = block(x, mask, source)
    (own,) = disturbed([block.prefixes(3)])
    block.add("one", own)
    block.active = "one"
    normed = block.attention_norm(x) if norm == "pre" else x
    weight, bias = (each.chunk(3) for each in (block.attention.projection.weight, block.attention.projection.bias))
    reads = (normed, *((normed if source is None else source,) * 2))
    query, key, value = (y @ w.T + b for y, w, b in zip(reads, weight, bias, strict=True))
    prefix = [each.expand(ROWS, -1, -1) for each in (own["prefix"].key[0], own["prefix"].value[0])]
    found = by_hand(query, key, value, prefix, lambda row, i, j: masked and j >= lengths[row])
    attended = x + found @ block.attention.output.weight.T + block.attention.output.bias
    if norm == "pre":
        expected = attended + block.feed_forward(block.feed_forward_norm(attended))
    else:
        attended = block.attention_norm(attended)
        expected = block.feed_forward_norm(attended + block.feed_forward(attended))
    torch.testing.assert_close(block(x, mask, source), expected)
    block.remove("one")
    assert torch.equal(block(x, mask, source), plain)


def test_a_choice_selects_or_mixes_for_each_example():
    (own,) = disturbed([nn.ModuleDict({"prefix": Prefix((4, 6), length=2, pool=3)})])
    prefix = own["prefix"]
    key, value = prefix(2)
    assert (key.shape, value.shape) == ((2, 6, 4), (2, 6, 6)), "without a choice, all of the pool"
    prefix.choice = torch.tensor([[2, 0], [1, 1]])
    for found, pool in zip(prefix(4), (prefix.key, prefix.value), strict=True):
        for row, (first, second) in enumerate([(2, 0), (2, 0), (1, 1), (1, 1)]):
            assert torch.equal(found[row], torch.cat([pool[first], pool[second]])), "two images have the same"
    prefix.choice = weights = numbers(2, 3).requires_grad_()
    for found, pool in zip(prefix(2), (prefix.key, prefix.value), strict=True):
        for row in range(2):
            torch.testing.assert_close(found[row], sum(weights[row, k] * pool[k] for k in range(3)))
    prefix(2)[0].square().sum().backward()
    assert weights.grad.abs().min() > 0, "what gives the weights can learn"


class OwnAttention(nn.Module):
    """Attention as people write it: from layers of its own, by PyTorch's module, or in their own words."""

    def __init__(self, way, mask):
        super().__init__()
        self.way, self.mask = way, mask
        if way == "fused":
            self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        elif way in ("split", "written"):
            self.to_q, self.to_k, self.to_v = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        else:
            self.narrow = nn.Linear(WIDTH, 6) if way == "narrow module" else nn.Identity()
            self.attend = nn.MultiheadAttention(
                WIDTH, HEADS, batch_first=True, vdim=6 if way == "narrow module" else None
            )

    def projected(self, x):
        if self.way == "fused":
            return self.qkv(x).chunk(3, -1)
        if self.way in ("split", "written"):
            return self.to_q(x), self.to_k(x), self.to_v(x)
        own, reads = self.attend, (x, x, self.narrow(x))
        weights = own.q_proj_weight, own.k_proj_weight, own.v_proj_weight
        weights = own.in_proj_weight.chunk(3) if weights[0] is None else weights
        return [functional.linear(*each) for each in zip(reads, weights, own.in_proj_bias.chunk(3), strict=True)]

    def forward(self, x):
        length = x.shape[1]
        padding = torch.arange(length) >= ENDS[: len(x), None] if self.mask == "padding" else None
        causal = torch.ones(length, length, dtype=torch.bool).triu(1) if self.mask == "causal" else None
        if "module" in self.way:
            found, weights = self.attend(x, x, self.narrow(x), key_padding_mask=padding, attn_mask=causal)
            assert weights.shape == (len(x), length, length)
            return found
        query, key, value = (y.unflatten(-1, (HEADS, -1)).transpose(1, 2) for y in self.projected(x))
        if self.way == "written":
            found = (query @ key.transpose(-1, -2) / math.sqrt(WIDTH / HEADS)).softmax(-1) @ value
        else:
            seen = None if padding is None else ~padding[:, None, None]
            causes = causal is not None
            found = functional.scaled_dot_product_attention(query, key, value, seen, is_causal=causes)
        return found.transpose(1, 2).reshape(x.shape)


class Foreign(nn.Module):
    def __init__(self, way, mask):
        super().__init__()
        self.patches = nn.Conv2d(1, WIDTH, 4, 4)
        self.layers = nn.ModuleList(OwnAttention(way, mask) for _ in range(2))

    def forward(self, image):
        x = self.patches(image).flatten(2).transpose(1, 2)
        for layer in self.layers:
            x = x + layer(x)
        return x


@pytest.mark.parametrize("mask", ["", "padding", "causal"])
@pytest.mark.parametrize("way", ["fused", "split", "written", "module", "narrow module"])
def test_a_foreign_module_is_prefix_attention(way, mask):
    if mask and way == "written":
        pytest.skip("it is written without a mask")
    torch.manual_seed(0)
    model = of(lambda: Foreign(way, mask)).build(GREY, ASKED).double().eval()
    with torch.no_grad():
        plain, bare, before = model(IMAGE, "one"), model.encoder(IMAGE), copy.deepcopy(model.state_dict())
        for name in ASKED:
            model.add(name, disturbed([block.prefixes(2, pool=3) for block in model.encoder.blocks()]))
        choices = torch.tensor([[0], [2], [1], [1], [0]]), numbers(5, 3)
        model.choose = lambda inputs, head: choices
        found, module = model(IMAGE, "one"), model.encoder.module
        x = module.patches(IMAGE["image"].double() / 255).flatten(2).transpose(1, 2)
        shares = functional.one_hot(choices[0][:, 0], 3).double(), choices[1]
        for layer, block, share in zip(module.layers, model.encoder.blocks(), shares, strict=True):
            (prefix,) = block.added["one"].values()
            own = [(share[:, :, None, None] * pool).sum(1) for pool in (prefix.key, prefix.value)]
            attended = by_hand(
                *layer.projected(x),
                own,
                lambda row, i, j: (mask == "padding" and j >= ENDS[row]) or (mask == "causal" and j > i),
            )
            x = x + (layer.attend.out_proj(attended) if "module" in way else attended)
            assert prefix.choice is None, "a choice lasts for one pass"
        torch.testing.assert_close(found, model.heads["one"].classifier(x.mean(1)))
        twin = copy.deepcopy(model)
        assert torch.equal(twin(IMAGE, "one"), found)
        assert torch.equal(model.bare(IMAGE), bare)
        assert torch.equal(model(IMAGE, "one"), found), "what was switched on is on again"
        model.choose = None
        for name in ASKED:
            model.remove(name)
        assert torch.equal(model(IMAGE, "one"), plain)
    after = model.state_dict()
    assert list(after) == list(before)
    assert all(torch.equal(value, after[name]) for name, value in before.items())
    assert not any(each._forward_hooks or each._forward_pre_hooks for each in model.modules())


def test_pytorchs_own_transformer_takes_a_prefix_and_what_does_not_attend_takes_none():
    torch.manual_seed(0)
    attending, blocks = (of(kind).build(GREY, ASKED).eval() for kind in (foreign.Attending, foreign.Blocks))
    assert [list(block.prefixes(2)) for block in attending.encoder.blocks()] == [["prefix/self_attn"]] * 2
    assert [list(block.prefixes(2)) for block in blocks.encoder.blocks()] == [[]] * 3
    with torch.no_grad():
        plain = attending(IMAGE, "one")
        attending.add("one", [block.prefixes(2) for block in attending.encoder.blocks()])
        changed = attending(IMAGE, "one")
        attending.remove("one")
        assert torch.equal(attending(IMAGE, "one"), plain)
    assert not torch.allclose(changed, plain)


def test_an_error_within_a_module_leaves_nothing_behind():
    model = of(lambda: Foreign("split", "padding")).build(GREY, ASKED)
    model.add("one", [block.prefixes(2) for block in model.encoder.blocks()])
    with pytest.raises(RuntimeError):
        model({"image": torch.zeros(7, 1, 12, 12, dtype=torch.uint8)}, "one")  # the mask has six rows
    x = numbers(1, 1, 3, 4)
    assert torch.equal(
        functional.scaled_dot_product_attention(x, x, x), functional.scaled_dot_product_attention(x, x, x)
    )
    assert not torch.overrides._get_current_function_mode_stack()
