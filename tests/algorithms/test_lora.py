"""Low-rank additions, against the same model with the additions put into its own weights."""

import torch

from algorithms.test_adapters import TASKS, answers
from smallest import make_learner, prepared, trained


def test_the_trained_additions_merge_into_the_projections():
    ready = prepared("lora", lora__rank=3, lora__scale=6.0, **TASKS)
    learner, _ = trained(ready)
    for stage in ready.setup.stream.stages:
        merged = make_learner(ready)
        own = merged.model.state_dict()
        merged.model.load_state_dict({name: value for name, value in learner.model.state_dict().items() if name in own})
        (head,) = {part.task for part in learner.fetch(stage.train[:1]).parts}
        for block, other in zip(learner.model.encoder.blocks(), merged.model.encoder.blocks(), strict=True):
            added = block.added[head]["projection"]
            down_query, down_value = added.down.weight.detach().split(3)
            query, value = added.up_query.detach() @ down_query, added.up_value.detach() @ down_value
            assert query.abs().max() > 1e-4, "it learned, or this test says nothing"
            other.attention.projection.weight.data += 6 / 3 * torch.cat([query, torch.zeros_like(query), value])
        torch.testing.assert_close(answers(merged, stage.train), answers(learner, stage.train))
