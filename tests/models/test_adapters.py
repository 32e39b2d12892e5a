"""What is added to a block: how large it is, how it starts, and what a low-rank update comes to."""

import pytest
import torch
from torch import nn

from holdfast.models.adapters import Adapter
from holdfast.models.lxmert import TinyLxmert
from holdfast.models.transformer import TransformerBlock
from holdfast.types import Head, Inputs


def rows(seed=0):
    return torch.randn(2, 5, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def block():
    torch.manual_seed(0)
    return TransformerBlock(8, heads=2, hidden=16, inner=12).double()


def count(module):
    return sum(parameter.numel() for parameter in module.parameters())


def test_an_adapter_starts_near_the_identity():
    torch.manual_seed(0)
    adapter = Adapter(64, 4).double()
    x = torch.randn(100, 64, dtype=torch.float64)
    gap = (adapter(x) - x).abs().max()
    assert 0 < gap < 1e-3


@pytest.mark.parametrize(
    ("activation", "by_hand"),
    [
        ("gelu", lambda x: x * (1 + torch.erf(x / 2**0.5)) / 2),
        ("relu", lambda x: x * (x > 0)),
        ("silu", lambda x: x / (1 + torch.exp(-x))),
    ],
)
def test_what_an_adapter_applies_within_is_a_setting(activation, by_hand):
    torch.manual_seed(0)
    adapter = Adapter(6, 3, activation).double()
    for parameter in adapter.parameters():
        torch.nn.init.normal_(parameter)
    x = torch.randn(9, 6, dtype=torch.float64)
    narrow = x @ adapter.down.weight.T + adapter.down.bias
    torch.testing.assert_close(adapter(x), x + by_hand(narrow) @ adapter.up.weight.T + adapter.up.bias)


def test_sizes(block):
    assert count(block.adapters(reduction=4)) == 2 * (8 * 2 + 2 + 2 * 8 + 8)
    assert block.adapters(reduction=100)["attention"].down.out_features == 1, "never nothing"
    assert count(block.low_rank(rank=3)) == 2 * 3 * (8 + 12)


def test_a_low_rank_update_starts_at_nothing_and_learns(block):
    plain = block(rows())
    block.added["one"], block.active = block.low_rank(rank=3).double(), "one"
    assert torch.equal(block(rows()), plain)
    block(rows()).square().sum().backward()
    update = block.added["one"]["projection"]
    assert update.up_query.grad.abs().max() > 0
    assert update.up_value.grad.abs().max() > 0


def test_a_low_rank_update_is_one_of_the_projections_weight(block):
    update = block.low_rank(rank=3, scale=0.7)["projection"].double()
    for parameter in update.parameters():
        nn.init.normal_(parameter)
    x, weight = rows(), block.attention.projection.weight
    found = block.attention(x, added=update)
    query, value = update.down.weight.split(3)
    merged = torch.cat([update.up_query @ query, torch.zeros(12, 8), update.up_value @ value])
    with torch.no_grad():
        weight += 0.7 * merged
    torch.testing.assert_close(block.attention(x), found)


@pytest.mark.parametrize("make", [TransformerBlock.adapters, TransformerBlock.low_rank])
@pytest.mark.parametrize("kind", ["classify", "phrase"])
def test_all_that_is_added_to_lxmert_learns(make, kind):
    """Its last block for regions is read by no head, so nothing is added there."""
    torch.manual_seed(0)
    inputs = Inputs(text=4, vocabulary=10, regions=(3, 5))
    recipe = TinyLxmert(width=8, heads=2, hidden=8, language=1, vision=1, crossing=2)
    model = recipe.build(inputs, {"h": Head(kind, 10)})
    model.add("h", [make(block) for block in model.encoder.blocks()])
    batch = {
        "text": torch.randint(10, (2, 4)),
        "text_length": torch.tensor([4, 3]),
        "regions": torch.randn(2, 3, 5),
        "boxes": torch.rand(2, 3, 4),
        "region_count": torch.tensor([3, 2]),
        "masked": torch.tensor([[1], [2]]),
    }
    model(batch, "h").square().sum().backward()
    added = {name: parameter for name, parameter in model.named_parameters() if ".added." in name}
    assert added
    assert [name for name, parameter in added.items() if parameter.grad is None] == []
