import numpy as np
import pytest
import torch

from holdfast.algorithms.agem import AGem, projected
from holdfast.errors import UserError
from smallest import make_learner, prepared, trained


def draw(seed, names):
    generator = torch.Generator().manual_seed(seed)
    shapes = {"a": (3, 4), "b": (5,), "c": ()}
    return {name: torch.randn(shapes[name], generator=generator, dtype=torch.float64) for name in names}


def flat(found, names="abc"):
    sizes = {"a": 12, "b": 5, "c": 1}
    return np.concatenate([found[n].numpy().ravel() if n in found else np.zeros(sizes[n]) for n in names])


@pytest.mark.parametrize("names", [("abc", "abc"), ("ab", "bc"), ("abc", "c"), ("a", "abc")])
def test_the_projection_is_the_equation_on_random_gradients(names):
    taken = 0
    for seed in range(40):
        own, reference = draw(2 * seed, names[0]), draw(2 * seed + 1, names[1])
        g, r = flat(own), flat(reference)
        expected = g - (g @ r) / (r @ r) * r if g @ r < 0 else g
        found = flat(projected(own, reference))
        np.testing.assert_allclose(found, expected, atol=1e-12)
        assert found @ r >= -1e-10
        taken += g @ r < 0
    assert 0 < taken < 40, "both cases were met"


def test_gradients_that_share_no_parameter_stay():
    own = draw(0, "a")
    assert projected(own, draw(1, "bc")) == own


def test_a_memory_without_gradient_takes_nothing_out():
    own = draw(0, "ab")
    zero = {name: torch.zeros_like(value) for name, value in own.items()}
    assert all(torch.equal(value, own[name]) for name, value in projected(own, zero).items())


def mean_loss_gradients(learner, ids):
    batch = learner.data.fetch(ids, learner.device)
    loss = sum(learner.losses(batch, learner.forward(batch))) / len(ids)
    found = torch.autograd.grad(loss, list(learner.trainable().values()))
    return dict(zip(learner.trainable(), found, strict=True))


def test_a_step_uses_the_gradient_of_the_memory():
    ready = prepared()
    learner, algorithm = make_learner(ready), AGem(capacity=8, size=8)
    algorithm.setup(learner)
    new, kept = ready.setup.stream.stages[1].train[:32], ready.setup.stream.stages[0].train[:8]
    algorithm.memory.add(kept)
    own, reference = mean_loss_gradients(learner, new), mean_loss_gradients(learner, kept)
    batch = learner.fetch(new)
    learner.backward(learner.loss(batch, learner.outputs(batch)), batch)
    algorithm.grads(learner, batch)
    product = sum((own[name] * reference[name]).sum() for name in own)
    assert product < 0, "the two stages disagree, or this test says nothing"
    factor = product / sum((value**2).sum() for value in reference.values())
    for name, parameter in learner.trainable().items():
        torch.testing.assert_close(parameter.grad, own[name] - factor * reference[name], atol=1e-12, rtol=0)
    assert (learner.examples_forward, learner.examples_backward) == (40, 40)


def test_with_boundaries_only_past_stages_are_asked():
    ready = prepared()
    algorithm = AGem(capacity=400)

    class Spy(AGem):
        def grads(self, learner, batch):
            seen.append((set(batch.ids.tolist()), set(self.memory.ids.tolist())))

    seen = []
    trained(ready, [Spy(capacity=200)])
    first, second = (set(stage.train.tolist()) for stage in ready.setup.stream.stages)
    assert all(kept == (set() if batch <= first else first) for batch, kept in seen)
    trained(prepared(benchmark__boundaries=False), [algorithm])
    assert set(algorithm.memory.ids.tolist()) == first | second


def test_it_forgets_less_than_fine_tuning():
    settings = {"benchmark__noise": 0.1, "train__epochs": 8, "model__width": 64}
    final = {}
    for name, algorithms in (("finetune", []), ("agem", [AGem()])):
        _, log = trained(prepared(**settings), algorithms)
        final[name] = next(s.score for s in log.scores if (s.name, s.split, s.stage) == ("stage-1", "test", 2))
    assert final["agem"] > final["finetune"] + 0.2


def test_a_memory_smaller_than_a_batch_is_refused():
    for algorithm in (AGem(capacity=10), AGem(capacity=40, size=50)):
        with pytest.raises(UserError, match="of one batch"):
            trained(prepared(), [algorithm])
