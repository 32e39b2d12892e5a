import copy

import numpy as np
import pytest
import torch
from torch import nn

from holdfast.algorithms.mir import Mir, most_harmed, virtual_step
from holdfast.engine.learner import Learner
from holdfast.errors import UserError
from holdfast.experiments.runner import make_learner
from holdfast.tasks import MaskedPhrase
from holdfast.types import Batch, Part, Training
from smallest import prepared, trained

TRAININGS = {
    "adamw": Training(optimiser="adamw", learning_rate=0.01, weight_decay=0.1, schedule="linear", warmup=0.5),
    "adam": Training(optimiser="adam", learning_rate=0.01, schedule="cosine"),
    "momentum": Training(optimiser="sgd", learning_rate=0.1, momentum=0.9),
    "sgd": Training(optimiser="sgd", learning_rate=0.1, schedule="linear"),
}


def started(training, algorithm, steps=3):
    """A learner in the middle of a fit, whose memory holds its first stage."""
    ready = prepared()
    learner = make_learner(ready)
    learner.restart(training, 8)
    algorithm.setup(learner)
    first, second = (stage.train for stage in ready.setup.stream.stages)
    for step in range(steps):
        batch = learner.fetch(first[step * 20 : (step + 1) * 20])
        learner.backward(learner.loss(batch, learner.outputs(batch)), batch)
        learner.step(step)
        algorithm.after(learner, Batch(batch.ids))
    algorithm.memory.add(first[steps * 20 :])
    return learner, second[:20]


def rises_by_brute_force(learner, new, candidates, step):
    """How much each candidate's loss rises by a step, on a copy of the model and its optimiser, one at a time."""
    twin = copy.deepcopy(learner)

    def losses():
        twin.model.eval()
        with torch.no_grad():
            fetched = [twin.data.fetch(candidates[i : i + 1], twin.device) for i in range(len(candidates))]
            return np.array([float(twin.losses(one, twin.forward(one))) for one in fetched])

    before = losses()
    twin.train_mode()
    batch = twin.fetch(new)
    twin.backward(twin.loss(batch, twin.forward(batch)), batch)
    twin.step(step)
    return losses() - before


@pytest.mark.parametrize("fidelity", ["paper", "released"])
@pytest.mark.parametrize("name", TRAININGS)
def test_it_chooses_what_a_copy_of_model_and_optimiser_says(name, fidelity):
    algorithm = Mir(capacity=80, size=7, candidates=30, reuse=False, fidelity=fidelity)
    learner, new = started(TRAININGS[name], algorithm)
    candidates = copy.deepcopy(algorithm.memory).sample(30)
    rises = rises_by_brute_force(learner, new, candidates, step=3)
    expected = candidates[np.argsort(-rises)[:7]]
    assert np.ptp(rises) > 1e-3, "some candidates are harmed more than others"
    if fidelity == "paper":
        chosen = algorithm.batch(learner, Batch(new)).ids
        assert np.array_equal(chosen[:20], new)
        chosen = chosen[20:]
    else:
        fetched = []
        learner.fetch = lambda ids, fetch=learner.fetch: fetched.append(ids) or fetch(ids)
        batch = learner.fetch(algorithm.batch(learner, Batch(new)).ids)
        learner.backward(learner.loss(batch, learner.outputs(batch)), batch)
        learner.step(3)
        algorithm.after(learner, Batch(new))
        chosen = fetched[-1]
    assert chosen.tolist() == expected.tolist()


@pytest.mark.parametrize("name", TRAININGS)
@pytest.mark.parametrize("steps", [0, 3])
def test_a_virtual_step_is_the_real_one_and_leaves_no_trace(name, steps):
    learner, new = started(TRAININGS[name], Mir(), steps)
    batch = learner.fetch(new)
    learner.backward(learner.loss(batch, learner.outputs(batch)), batch)
    before = copy.deepcopy(learner.state_dict())
    with virtual_step(learner, steps):
        virtual = copy.deepcopy(learner.model.state_dict())
    after = learner.state_dict()
    assert before["optimiser"].keys() == after["optimiser"].keys()
    for name_, moments in before["optimiser"].items():
        assert all(torch.equal(value, after["optimiser"][name_][key]) for key, value in moments.items())
    assert all(torch.equal(value, after["model"][key]) for key, value in before["model"].items())
    learner.step(steps)
    assert all(torch.equal(value, virtual[key]) for key, value in learner.model.state_dict().items())


def test_reusing_the_gradient_is_the_joint_batch():
    weights = []
    for reuse in (True, False):
        learner, _ = trained(prepared(train__schedule="linear"), [Mir(capacity=50, size=9, reuse=reuse)])
        weights.append(learner.model.state_dict())
    for key, value in weights[0].items():
        torch.testing.assert_close(value, weights[1][key], atol=1e-9, rtol=0)


def test_reuse_saves_a_pass_over_the_new_examples():
    passes = {}
    for reuse in (True, False):
        algorithm = Mir(capacity=80, size=10, candidates=30, reuse=reuse)
        learner, new = started(TRAININGS["sgd"], algorithm)
        learner.examples_forward = learner.examples_backward = 0
        batch = learner.fetch(algorithm.batch(learner, Batch(new)).ids)
        outputs = learner.outputs(batch)
        learner.backward(learner.loss(batch, outputs) + (algorithm.loss(learner, batch, outputs) or 0), batch)
        passes[reuse] = learner.examples_forward, learner.examples_backward
    assert passes == {True: (20 + 2 * 30 + 10, 20 + 10), False: (20 + 2 * 30 + 30, 20 + 30)}


def test_the_released_variant_takes_two_steps():
    """New examples first, then those chosen: not the joint batch's step, and twice as many steps."""
    weights, counts = [], []
    for fidelity in ("paper", "released"):
        learner, _ = trained(prepared(train__epochs=1), [Mir(capacity=80, fidelity=fidelity)])
        weights.append(torch.cat([p.detach().flatten() for p in learner.model.parameters()]))
        counts.append({int(state["step"]) for state in learner.optimiser.state.values()})
    assert (weights[0] - weights[1]).abs().max() > 1e-3
    assert counts == [{3}, {6}]


class Words(nn.Module):
    """Logits that depend on one weight for each word: so that a step's harm is known by hand."""

    def __init__(self):
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(3, 4, dtype=torch.float64))
        self.heads = nn.ModuleDict()

    def forward(self, inputs, head):
        return self.scores[inputs["context"]]


class Phrases:
    """Three phrases of up to three words; -100 where there are fewer."""

    reads_ahead = False

    def fetch(self, ids, device, rank=0, size=1):
        contexts = torch.tensor([[0, 0, 0], [1, 2, 2], [2, 2, 2]])
        targets = torch.tensor([[0, 0, -100], [0, 1, 1], [2, -100, -100]])
        part = Part("phrases", {"context": contexts[ids]}, targets[ids])
        return Batch(ids, (part,))


def test_by_max_the_worst_word_decides():
    """Phrase 0 is harmed a little in each word; phrase 1 much in one of three; phrase 2 gains in its only word."""
    order = {}
    for by in ("mean", "max"):
        learner = Learner(Words(), Phrases(), {"phrases": MaskedPhrase("phrases", "phrases", 4, 0.0)})
        algorithm, phrases = Mir(by=by), Phrases().fetch(np.array([0, 1, 2]), learner.device)
        algorithm.setup(learner)
        before = algorithm._losses(learner, phrases)
        with torch.no_grad():
            learner.model.scores[0, 3] += 1.0
            learner.model.scores[1, 3] += 2.0
            learner.model.scores[2, 1:3] += 5.0
        after = algorithm._losses(learner, phrases)
        order[by] = most_harmed(learner, phrases, 3, before, after).tolist()
    # By hand: a rival's score that rises by s costs log((e^s + 3) / 4), 0.36 for 1 and 0.95 for 2; a word gains
    # log 4 - log(2 + 2 e^-5) = 0.69 in context 2. Phrase by phrase, means 0.36, -0.14, -0.69; worst 0.36, 0.95, -0.69.
    assert order == {"mean": [0, 1, 2], "max": [1, 0, 2]}


def test_what_cannot_be_is_refused():
    with pytest.raises(UserError, match="too few to choose"):
        trained(prepared(), [Mir(candidates=10)])
    with pytest.raises(UserError, match="of one batch"):
        trained(prepared(), [Mir(capacity=10)])
