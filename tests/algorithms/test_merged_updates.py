"""Low-rank updates that are merged after each stage: overlaps and singular vectors by hand, and what a merge leaves."""

import numpy as np
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


@pytest.mark.parametrize("name", ["o-lora", "inflora"])
def test_updates_are_merged_after_a_stage(name):
    """The same answers, without the updates."""
    ready = prepared(name)
    learner = make_learner(ready)
    (algorithm,) = ready.algorithms
    algorithm.check(ready.setup.stream)
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


def inputs_of(learner, stage):
    """The inputs of each block's projection, (vectors, width), seen by a hook of this test's own."""
    found, blocks = {}, learner.model.encoder.blocks()

    def note(block):
        def hook(module, args):
            found[block] = args[0].flatten(0, 1)

        return hook

    hooks = [each.attention.register_forward_pre_hook(note(block)) for block, each in enumerate(blocks)]
    answers(learner, stage.train)
    for hook in hooks:
        hook.remove()
    return [found[block].detach().numpy() for block in range(len(blocks))]


def inflora(**settings):
    """After `begin` of the second stage, and what the first stage's inputs were after it."""
    ready = prepared("inflora", **{f"inflora__{name}": value for name, value in settings.items()}, benchmark__stages=3)
    learner = make_learner(ready)
    (algorithm,) = ready.algorithms
    algorithm.check(ready.setup.stream)
    algorithm.setup(learner)
    first, second, _ = ready.setup.stream.stages
    seen = [inputs_of(learner, first)]
    algorithm.begin(learner, first)
    directions = [update.down.weight.detach().numpy().copy() for update in updates(learner)]
    with torch.no_grad():
        for update in updates(learner):
            for up in update.ups():
                up.normal_(std=0.3)
    algorithm.end(learner, first)
    seen += [inputs_of(learner, first), inputs_of(learner, second)]
    algorithm.begin(learner, second)
    return learner, algorithm, seen, directions


def test_infloras_directions_are_numpys_singular_vectors():
    learner, algorithm, (before, after, new), directions = inflora(rank=3, share=0.9)
    for block, update in enumerate(updates(learner)):
        h = before[block].T @ before[block] / len(before[block])
        u = np.linalg.svd(h)[0][:, :3]
        for own in np.split(directions[block], 2):  # of queries, and of values
            assert own.T @ own == pytest.approx(u @ u.T / 3, abs=1e-10)
        h = after[block].T @ after[block] / len(after[block])
        u, s, _ = np.linalg.svd(h)
        count = next(k for k in range(1, 17) if (s[:k] ** 2).sum() >= 0.9 * (s**2).sum())
        past = algorithm.past[f"{block}/projection"].numpy()
        assert past @ past.T == pytest.approx(u[:, :count] @ u[:, :count].T, abs=1e-10)
        h = new[block].T @ new[block] / len(new[block])
        u = np.linalg.svd(h - u[:, :count] @ u[:, :count].T @ h)[0][:, :3]
        for own in np.split(update.down.weight.detach().numpy(), 2):
            assert own.T @ own == pytest.approx(u @ u.T / 3, abs=1e-10)
            assert own @ past == pytest.approx(0, abs=1e-10)


def test_the_next_stage_cannot_change_what_inflora_kept():
    """With a share of nearly 1, updates of the second stage leave the first stage's inputs alone."""
    learner, _, (_, after, _), _ = inflora(rank=4, share=0.9999999, last_share=0.9999999)
    for block, update in enumerate(updates(learner)):
        read = after[block] @ update.down.weight.detach().numpy().T
        assert np.abs(read).max() < 1e-2 * np.abs(after[block]).max()


def test_infloras_basis_keeps_a_rising_share_of_each_stages_inputs():
    ready = prepared("inflora", inflora__share=0.8, inflora__last_share=0.98, benchmark__stages=3)
    (algorithm,) = ready.algorithms
    learner = make_learner(ready)
    algorithm.check(ready.setup.stream)
    algorithm.setup(learner)
    for stage, share in zip(ready.setup.stream.stages, (0.8, 0.86, 0.92), strict=True):
        algorithm.begin(learner, stage)
        algorithm.end(learner, stage)
        for block, inputs in enumerate(inputs_of(learner, stage)):
            h, past = inputs.T @ inputs, algorithm.past[f"{block}/projection"].numpy()
            assert past.T @ past == pytest.approx(np.eye(past.shape[1]), abs=1e-9)
            assert ((past.T @ h) ** 2).sum() >= share * (h**2).sum() * (1 - 1e-9)


def test_few_examples_describe_a_stage():
    _, _, _, many = inflora(rank=3)
    _, _, _, few = inflora(rank=3, count=5)
    assert np.abs(many[0]) != pytest.approx(np.abs(few[0]), abs=1e-3)
