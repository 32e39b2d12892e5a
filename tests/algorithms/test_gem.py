import numpy as np
import pytest
import torch
from scipy.optimize import lsq_linear, minimize

from holdfast.algorithms.gem import PIECE, TOGETHER, Gem, _products, dual
from smallest import make_learner, prepared, trained


def objective(v, gram, products):
    return v @ gram @ v / 2 + products @ v


def problems():
    random = np.random.default_rng(0)
    for past in (1, 2, 3, 5, 8, 13, 20):
        for width in (past // 2 + 1, past, 3 * past):  # also more gradients than dimensions
            for strength in (0.0, 0.3, 2.0):
                rows = random.standard_normal((past, width)) * 10.0 ** random.uniform(-3, 3, (past, 1))
                yield rows, random.standard_normal(width), strength


def test_the_dual_is_that_of_a_general_solver():
    for rows, own, strength in problems():
        gram, products = rows @ rows.T, rows @ own
        found = dual(gram, products, strength)
        assert (found >= strength).all()
        scale = np.linalg.norm(rows, axis=1)
        # The same problem as least squares within bounds, on gradients of unit length.
        best = lsq_linear((rows / scale[:, None]).T, -own, bounds=(strength * scale, np.inf), method="bvls")
        least = best.cost - own @ own / 2
        assert objective(found, gram, products) <= least + 1e-9 * max(1, abs(least))


def test_the_dual_is_that_of_a_quadratic_program():
    random = np.random.default_rng(1)
    for _ in range(20):
        rows, own = random.standard_normal((4, 6)), random.standard_normal(6)
        gram, products = rows @ rows.T, rows @ own
        best = minimize(
            objective,
            np.full(4, 0.5),
            (gram, products),
            jac=lambda v, gram, products: gram @ v + products,
            bounds=[(0.3, None)] * 4,
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        np.testing.assert_allclose(dual(gram, products, 0.3), best.x, atol=1e-5)


def test_the_projected_gradient_opposes_no_past_stage():
    moved = 0
    for rows, own, strength in problems():
        projected = own + rows.T @ dual(rows @ rows.T, rows @ own, strength)
        lengths = np.linalg.norm(rows, axis=1) * max(np.linalg.norm(projected), 1)
        assert (rows @ projected >= -1e-8 * lengths).all()
        moved += not np.allclose(projected, own)
    assert moved > 30


def test_with_one_past_stage_and_no_strength_it_is_agems_projection():
    row, own = np.array([[1.0, 2.0, 0.0]]), np.array([1.0, -3.0, 1.0])
    projected = own + row.T @ dual(row @ row.T, row @ own, 0.0)
    np.testing.assert_allclose(projected, own - (own @ row[0]) / (row[0] @ row[0]) * row[0])


def test_equal_and_empty_gradients_are_served():
    row = np.array([1.0, 1.0])
    rows = np.stack([row, row, np.zeros(2)])
    own = np.array([-2.0, 0.0])
    projected = own + rows.T @ dual(rows @ rows.T, rows @ own, 0.0)
    np.testing.assert_allclose(projected, [-1.0, 1.0])


@pytest.mark.parametrize("size", [7, PIECE, 3 * PIECE + 5, PIECE * (TOGETHER + 1)])
def test_the_products_are_those_of_whole_gradients(size):
    """Fewer numbers than a piece, just one, several and some over, and more pieces than are taken at once."""
    draw = torch.Generator().manual_seed(size)
    columns = {"body": size - 3, "old": 2, "new": 1}  # one head that past stages read alone, and one that they do not
    kept = [["body", "old"], ["body"], ["body", "new"]]
    found = [{name: torch.randn(columns[name], generator=draw) for name in names} for names in kept]
    gram, products = _products(found[:-1], found[-1])
    rows = [[f[name].numpy() if name in f else np.zeros(n) for name, n in columns.items()] for f in found]
    whole = np.array([np.concatenate(row) for row in rows], np.float64)
    lengths = np.linalg.norm(whole, axis=1)
    expected = whole @ whole.T
    np.testing.assert_allclose(gram, expected[:-1, :-1], rtol=0, atol=1e-12 * lengths.max() ** 2)
    np.testing.assert_allclose(products, expected[:-1, -1], rtol=0, atol=1e-12 * lengths.max() ** 2)


def stepped(strength, same):
    """A learner, its gradients before and after, and those of two past stages, one with a head of its own."""
    ready = prepared(benchmark__stages=3, benchmark__setting="task")
    learner, algorithm = make_learner(ready), Gem(strength=strength)
    algorithm.setup(learner)
    stages = [stage.train for stage in ready.setup.stream.stages]
    # Of one class and of the other of a stage, the gradients disagree; of both together they agree.
    new, other = (stages[2], stages[2][::2]) if same else (stages[2][40:], stages[2][:40])
    algorithm.kept = [stages[0], other] if not same else [other, stages[2][1::2]]
    past = []
    for ids in algorithm.kept:
        batch = learner.data.fetch(ids, learner.device)
        loss = learner.losses(batch, learner.forward(batch)).mean()
        grads = torch.autograd.grad(loss, list(learner.trainable().values()), materialize_grads=True)
        past.append(torch.cat([g.flatten() for g in grads]).numpy())
    batch = learner.fetch(new)
    learner.backward(learner.loss(batch, learner.outputs(batch)), batch)

    def now():
        found = [torch.zeros_like(p) if p.grad is None else p.grad for p in learner.trainable().values()]
        return torch.cat([g.flatten() for g in found]).numpy().copy()

    before = now()
    algorithm.grads(learner, batch)
    return before, now(), np.stack(past)


def test_a_step_projects_the_learners_gradient():
    before, after, past = stepped(strength=0.3, same=False)
    assert (past @ before < 0).any(), "the stages disagree, or this test says nothing"
    assert (past @ after >= -1e-12).all()
    np.testing.assert_allclose(after, before + past.T @ dual(past @ past.T, past @ before, 0.3), atol=1e-12)


def test_where_no_stage_is_harmed_the_gradient_stays_to_the_bit():
    before, after, past = stepped(strength=0.3, same=True)
    assert (past @ before > 0).all()
    assert np.array_equal(before, after)


def test_several_fits_of_a_stage_keep_its_last_examples_once():
    ready = prepared("mntdp+gem", gem__examples=100)
    trained(ready)
    for stage, kept in zip(ready.setup.stream.stages, ready.algorithms[1].kept, strict=True):
        assert sorted(kept) == sorted(stage.train), "all 80 of them, though 100 could be kept"


@pytest.mark.parametrize("keep", ["last", "random"])
def test_it_keeps_examples_of_each_stage(keep):
    ready = prepared(train__batch_size=30)
    algorithm = Gem(examples=50, keep=keep)
    order = []

    class Spy(Gem):
        def after(self, learner, batch):
            super().after(learner, batch)
            if learner.epoch == 0:
                order.extend(batch.ids.tolist())

    spy = Spy(examples=50, keep=keep)
    trained(ready, [spy])
    trained(ready, [algorithm])
    for index, stage in enumerate(ready.setup.stream.stages):
        assert np.array_equal(spy.kept[index], algorithm.kept[index])
        kept = set(spy.kept[index].tolist())
        assert len(kept) == 50
        assert kept <= set(stage.train.tolist())
        assert (kept == set(order[80 * index + 30 : 80 * (index + 1)])) == (keep == "last")
