"""On a GPU, masked sequences are lengthened: no model may answer otherwise, nor its weights get other gradients."""

import pytest
import torch

from holdfast import registry
from holdfast.models import transformer
from holdfast.types import Head, Inputs

PAIR = Inputs(image=(3, 32, 32), text=5, vocabulary=30)
REGIONS = Inputs(text=5, vocabulary=30, regions=(4, 6))
CASES = {
    "vilt-tiny": (PAIR, Head("classify", 3)),
    "vault-tiny": (PAIR, Head("classify", 3)),
    "bert-tiny": (Inputs(text=5, vocabulary=30), Head("phrase", 30)),
    "vlbert-tiny": (REGIONS, Head("phrase", 30)),
    "lxmert-tiny": (REGIONS, Head("phrase", 30)),
    "uniter-tiny": (REGIONS, Head("classify", 3)),
}


def columns(inputs: Inputs) -> dict[str, torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    found = {
        "text": torch.randint(5, 30, (3, 5), generator=draw),
        "text_length": torch.tensor([5, 3, 4]),
        "masked": torch.tensor([[1, 2], [2, -1], [0, 3]]),
    }
    if inputs.image:
        found["image"] = torch.randint(256, (3, *inputs.image), dtype=torch.uint8, generator=draw)
    if inputs.regions:
        found["regions"] = torch.rand(3, *inputs.regions, generator=draw)
        found["boxes"] = torch.rand(3, inputs.regions[0], 4, generator=draw)
        found["region_count"] = torch.tensor([4, 1, 3])
    return found


@pytest.mark.parametrize("name", CASES)
def test_padding_that_nobody_sees_changes_nothing(name, monkeypatch):
    inputs, head = CASES[name]
    torch.manual_seed(0)
    recipe = registry.MODELS[name].load()
    scratch = {name: "" for name in ("weights", "bert") if hasattr(recipe, name)}
    model = recipe(dropout=0.0, **scratch).build(inputs, {"head": head}).double()
    lengths = []
    real = transformer.TransformerBlock.forward
    monkeypatch.setattr(
        transformer.TransformerBlock,
        "forward",
        lambda block, x, *rest: lengths.append(x.shape[1]) or real(block, x, *rest),
    )
    outputs, gradients = [], []
    for kinds in (set(), {"cpu"}):
        monkeypatch.setattr(transformer, "ALIGNED", kinds)
        lengths.clear()
        output = model(columns(inputs), "head")
        assert (lengths[0] % 8 == 0) is bool(kinds)
        learning = [p for p in model.parameters() if p.requires_grad]
        outputs.append(output)
        gradients.append(torch.autograd.grad(output.square().sum(), learning, allow_unused=True))
    torch.testing.assert_close(outputs[1], outputs[0], rtol=1e-12, atol=1e-12)
    for one, other in zip(*gradients, strict=True):
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-10)
