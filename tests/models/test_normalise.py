"""Batch normalisation: over several heads, a batch is normalised as a whole; over ranks, see `tests/conformance`."""

import pytest
import torch
from torch import nn

from conformance.cases import RESNET, TWO_HEADS
from holdfast.engine.learner import Learner
from holdfast.models.normalise import BatchNorm, shared_batch
from smallest import make_learner, prepared


def test_the_rows_of_all_heads_are_normalised_together():
    ready = prepared("er", **RESNET, **TWO_HEADS, benchmark__stages=3)
    learner: Learner = make_learner(ready)
    stages = ready.setup.stream.stages
    ids = torch.cat([torch.from_numpy(stage.train[:5]) for stage in stages[:3]]).numpy()
    batch = learner.fetch(ids, augment=False)
    assert len(batch.parts) == 3
    found = learner.forward(batch)
    features = learner.model.encoder({"image": torch.cat([part.inputs["image"] for part in batch.parts])})
    for number, (part, output) in enumerate(zip(batch.parts, found, strict=True)):
        head = learner.model.heads[learner.tasks[part.task].head]
        assert torch.equal(output, head.classifier(features[5 * number : 5 * number + 5]))
    learner.model.eval()
    alone = [learner.model(part.inputs, learner.tasks[part.task].head) for part in batch.parts]
    assert all(torch.allclose(a, b) for a, b in zip(learner.forward(batch), alone, strict=True))


def test_a_shared_batch_is_normalised_as_by_torch_and_padding_counts_nothing():
    torch.manual_seed(0)
    x = torch.randn(6, 3, 4, 5, dtype=torch.float64)
    slope = torch.randn_like(x)
    padded = torch.cat([x, 100 + torch.randn(1, 3, 4, 5, dtype=torch.float64)]).requires_grad_()
    plain, ours = nn.BatchNorm2d(3).double(), BatchNorm(3).double()
    expected = plain(given := x.clone().requires_grad_())
    with shared_batch([ours], lambda rows: rows, torch.tensor([1.0] * 6 + [0.0])):
        found = ours(padded)
    assert torch.allclose(found[:6], expected)
    (expected * slope).sum().backward()
    (found[:6] * slope).sum().backward()
    assert torch.allclose(padded.grad[:6], given.grad)
    assert not padded.grad[6].any()
    for name, value in plain.state_dict().items():
        assert torch.allclose(ours.state_dict()[name].double(), value.double()), name
    ours.eval()
    with shared_batch([ours], lambda rows: pytest.fail("nothing is summed in evaluation")):
        assert torch.allclose(ours(x), plain.eval()(x))
