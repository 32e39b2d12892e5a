"""Low-rank updates that are merged after each stage: O-LoRA's overlap by hand, and what is left after a merge."""

import pytest
import torch
from torch.testing import assert_close

from algorithms.test_adapters import answers
from holdfast.algorithms.low_rank import SET
from holdfast.errors import UserError
from smallest import make_learner, prepared, trained


def updates(learner):
    return [block.added[SET]["projection"] for block in learner.model.encoder.blocks()]


def test_o_loras_loss_adds_up_the_squared_inner_products_with_past_directions():
    ready = prepared("o-lora", **{"o-lora__rank": 2, "o-lora__strength": 0.3})
    learner = make_learner(ready)
    (algorithm,) = ready.algorithms
    algorithm.setup(learner)
    stage = ready.setup.stream.stages[0]
    past = []
    for _ in range(2):
        algorithm.begin(learner, stage)
        past.append([update.down.weight.detach().clone() for update in updates(learner)])
        algorithm.end(learner, stage)
    algorithm.begin(learner, stage)
    batch = learner.fetch(stage.train[:3])
    expected = 0.0
    for earlier in past:
        for old, update in zip(earlier, updates(learner), strict=True):
            new = update.down.weight.detach()
            for rows in (slice(0, 2), slice(2, 4)):  # queries, values
                for one in old[rows]:
                    for other in new[rows]:
                        expected += (one @ other).item() ** 2
    assert algorithm.loss(learner, batch, ()).item() == pytest.approx(0.3 * expected)


@pytest.mark.parametrize(("strength", "orthogonal"), [(100.0, True), (0.0, False)])
def test_o_loras_subspaces_become_orthogonal(strength, orthogonal):
    settings = {"o-lora__rank": 3, "o-lora__strength": strength, "train__epochs": 40, "train__schedule": "linear"}
    ready = prepared("o-lora", **settings, train__learning_rate=0.02, benchmark__stages=3)
    (algorithm,) = ready.algorithms
    trained(ready)
    for past in algorithm.past.values():
        for directions in torch.nn.functional.normalize(past, dim=-1):
            for later in (1, 2):
                new, old = directions[3 * later : 3 * later + 3], directions[: 3 * later]
                assert ((new @ old.T).abs().max() < 0.01) == orthogonal


@pytest.mark.parametrize("name", ["o-lora"])
def test_updates_are_merged_after_a_stage(name):
    """The same answers, without the updates."""
    ready = prepared(name)
    learner = make_learner(ready)
    (algorithm,) = ready.algorithms
    algorithm.setup(learner)
    stage = ready.setup.stream.stages[0]
    algorithm.begin(learner, stage)
    with torch.no_grad():
        for update in updates(learner):
            for up in update.ups():
                up.normal_()
    own = [block.attention.projection.weight.clone() for block in learner.model.encoder.blocks()]
    before = answers(learner, stage.train)
    algorithm.end(learner, stage)
    assert_close(answers(learner, stage.train), before)
    moved = [block.attention.projection.weight for block in learner.model.encoder.blocks()]
    assert all((one - two).abs().max() > 0.1 for one, two in zip(own, moved, strict=True))
    learner.model.remove(SET)
    assert_close(answers(learner, stage.train), before)


def test_the_encoder_learns_by_merging_alone():
    learner, _ = trained(prepared("o-lora", **{"o-lora__scale": 4.0}))
    start = make_learner(prepared("o-lora")).model.encoder.state_dict()
    now = learner.model.encoder.state_dict()
    changed = {name for name in start if not torch.equal(start[name], now[name])}
    assert changed == {f"block.{number}.attention.projection.weight" for number in range(2)}


def test_two_that_merge_are_refused():
    with pytest.raises(UserError, match="leave one of the two out"):
        trained(prepared("o-lora+lora"))
