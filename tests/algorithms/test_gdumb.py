"""GDumb against training from scratch on its memory."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from holdfast.algorithms.gdumb import GDumb
from holdfast.data.order import shuffled
from holdfast.engine.checkpoint import Checkpoints
from holdfast.errors import Stopped, UserError
from holdfast.models.heads import Linear
from smallest import StopAt, make_learner, prepared, trained


def test_the_last_weights_are_those_of_a_training_from_scratch_on_a_balanced_memory():
    ready = prepared()
    gdumb = GDumb(capacity=40)
    learner, _ = trained(ready, [gdumb])
    other = make_learner(ready)
    model, data = other.model, other.data.tables[0]
    kept = gdumb.memory.ids
    assert np.bincount(data.targets[torch.from_numpy(kept)]).tolist() == [10, 10, 10, 10]
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
    for epoch in range(2):
        ids = shuffled(kept, seed=0, stage=1, epoch=epoch)
        for rows in (torch.from_numpy(ids[:32]), torch.from_numpy(ids[32:])):
            optimiser.zero_grad()
            functional.cross_entropy(
                model({"image": data.inputs["image"][rows]}, "patterns"), data.targets[rows]
            ).backward()
            optimiser.step()
    expected = model.state_dict()
    assert all(torch.allclose(learner.model.state_dict()[n], expected[n], rtol=0, atol=1e-12) for n in expected)
    assert learner.examples_backward == 2 * 40 + 2 * 40


def test_classes_that_are_open_stay_open_when_the_weights_start_again():
    ready = prepared()
    learner = make_learner(ready)
    head = Linear(16, 4, growing=True).double()
    learner.model.heads["patterns"].classifier = head
    gdumb = GDumb()
    gdumb.setup(learner)
    gdumb.begin(learner, ready.setup.stream.stages[0])
    start = head.weight.clone()
    learner.model.open_classes([0, 2])
    with torch.no_grad():
        head.weight += 1
    gdumb.learn(learner, ready.setup.stream.stages[0], lambda start=None: start())
    assert torch.equal(head.weight, start)
    assert head.closed.tolist() == [False, True, False, True]


@pytest.mark.parametrize("names", ["gdumb+adapters", "adapters+gdumb"])
def test_what_other_algorithms_add_starts_again_too(names, tmp_path):
    """Whoever comes first, and where the run is resumed in the second stage."""
    ready = prepared(names)
    (gdumb,) = (a for a in ready.algorithms if isinstance(a, GDumb))
    whole, _ = trained(ready)
    added = {name for name, _ in whole.model.named_parameters() if "added" in name}
    assert added
    assert added <= gdumb.start.keys()
    with pytest.raises(Stopped):
        trained(prepared(names), checkpoints=Checkpoints(tmp_path), watch=StopAt(9))
    again, _ = trained(prepared(names), checkpoints=Checkpoints(tmp_path))
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, again.model.state_dict()[name])


def test_a_memory_smaller_than_a_batch_is_refused():
    with pytest.raises(UserError, match=r"gdumb\.capacity is 31.* set train\.batch_size to 31 or less"):
        trained(prepared(), [GDumb(capacity=31)])
