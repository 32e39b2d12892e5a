import copy
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from torch import nn

from holdfast.algorithms.base import Algorithm
from holdfast.algorithms.derpp import DarkReplay
from holdfast.algorithms.mir import Mir, most_harmed, virtual_step
from holdfast.data.table import Data, Table
from holdfast.engine.learner import Learner
from holdfast.engine.watch import Watch
from holdfast.errors import UserError
from holdfast.models.resnet import TinyResNet18
from holdfast.tasks import Classify, MaskedPhrase
from holdfast.types import Batch, Inputs, Part, Training
from smallest import make_learner, prepared, trained

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
    algorithm = Mir(capacity=80, size=7, candidates=30, fidelity=fidelity)
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
        learner.fetch = lambda ids, *how, fetch=learner.fetch: fetched.append(ids) or fetch(ids, *how)
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


@dataclass
class Look(Algorithm):
    """Looks at each batch, and changes nothing: MIR hands it the new examples too."""

    batches: list = field(default_factory=list)

    def loss(self, learner, batch, outputs):
        self.batches.append(batch.ids)


def largest_difference(one, other):
    states = one.model.state_dict(), other.model.state_dict()
    return max((states[0][key] - states[1][key]).abs().max().item() for key in states[0])


class Losses(Watch):
    """Notes the loss of each step, as a run reports it."""

    def __init__(self):
        self.found = []

    def step(self, stage_step, loss):
        self.found.append(float(loss))


def test_the_reported_loss_is_that_of_the_joint_batch():
    """With the gradient of the new examples known, too: and that of the first batches, beside which nothing is kept."""
    settings = {"mir__capacity": 50, "mir__size": 9}
    ready, whole = prepared("mir", **settings), prepared("mir", **settings)
    fast, slow = Losses(), Losses()
    trained(ready, watch=fast)
    trained(whole, [*whole.algorithms, Look()], watch=slow)
    assert len(fast.found) == len(slow.found) > 6
    assert max(abs(a - b) for a, b in zip(fast.found, slow.found, strict=True)) < 1e-9


@pytest.mark.parametrize("setting", ["class", "task"])
@pytest.mark.parametrize("others", ["", "ewc", "mas"])
def test_reusing_the_gradient_is_the_joint_batch(others, setting):
    """On its own and before weight penalties, MIR saves a pass; with another to look on, it takes the joint batch."""
    names, mir = "+".join(filter(None, ["mir", others])), {"mir__capacity": 50, "mir__size": 9}
    settings = {"train__schedule": "linear", "benchmark__setting": setting} | mir
    ready, look = prepared(names, **settings), Look()
    fast, _ = trained(ready)
    assert ready.algorithms[0].alone
    whole = prepared(names, **settings)
    slow, _ = trained(whole, [*whole.algorithms, look])
    assert not whole.algorithms[0].alone
    assert max(map(len, look.batches)) == 32 + 9
    assert fast.examples_backward < slow.examples_backward
    assert largest_difference(fast, slow) < 1e-9


@pytest.mark.parametrize(
    "names",
    ["agem+mir", "gem+mir", "mir+agem", "mir+replay", "si+mir", "mir+lwf", "mir+er-ace", "mir+derpp", "ewc+mir"],
)
def test_whoever_looks_at_the_batch_or_the_gradient_sees_all_of_it(names):
    """The same as with one more who only looks on; DER++ has logits of every example that it keeps."""
    ready, watched = prepared(names), prepared(names)
    learner, _ = trained(ready)
    other, _ = trained(watched, [*watched.algorithms, Look()])
    assert largest_difference(learner, other) == 0
    assert not any(a.alone for a in ready.algorithms if isinstance(a, Mir))
    for algorithm in ready.algorithms:
        if isinstance(algorithm, DarkReplay):
            assert not algorithm.logits.rows[: len(algorithm.memory)].isnan().any()


def normalised():
    """A learner with batch normalisation, and a Mir whose memory holds the first half of its examples."""
    torch.manual_seed(0)
    images = torch.randint(256, (32, 3, 8, 8), dtype=torch.uint8)
    task = Classify("images", "images", 4, 0.25)
    model = TinyResNet18(channels=2).build(Inputs((3, 8, 8)), {"images": task.reads}).double()
    learner = Learner(model, Data([Table("images", {"image": images}, torch.arange(32) % 4)]), {"images": task})
    algorithm = Mir(capacity=16, size=8)
    algorithm.beside([algorithm])
    algorithm.setup(learner)
    algorithm.memory.add(np.arange(16))
    learner.train_mode()
    return learner, algorithm


def test_with_batch_normalisation_the_batch_is_whole_and_the_virtual_pass_leaves_no_trace():
    learner, algorithm = normalised()
    before = copy.deepcopy(learner.model.state_dict())
    batch = algorithm.batch(learner, Batch(np.arange(16, 24)))
    assert batch.ids[:8].tolist() == list(range(16, 24)), "the new examples are normalised with the chosen ones"
    assert len(batch.ids) == 16
    after = learner.model.state_dict()
    assert any("running" in key for key in after)
    assert all(torch.equal(value, after[key]) for key, value in before.items())
    learner.outputs(learner.fetch(batch.ids))
    assert any("running_mean" in key and not torch.equal(value, after[key]) for key, value in before.items())


def test_a_virtual_step_does_not_mark_the_end_of_a_step():
    """Compiled graphs may still own the gradients that the real step needs; and weights stay at their addresses."""
    learner, new = started(TRAININGS["adam"], Mir())
    batch = learner.fetch(new)
    learner.backward(learner.loss(batch, learner.outputs(batch)), batch)
    places = [p.data_ptr() for p in learner.parameters.values()]
    learner.step = None
    with virtual_step(learner, 3):
        assert [p.data_ptr() for p in learner.parameters.values()] == places
    assert [p.data_ptr() for p in learner.parameters.values()] == places


def test_reuse_saves_a_pass_over_the_new_examples():
    passes = {}
    for reuse in (True, False):
        algorithm = Mir(capacity=80, size=10, candidates=30)
        algorithm.beside([algorithm] if reuse else [algorithm, Look()])
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
        counts.append({int(learner.optimiser.state(p)["step"]) for p in learner.parameters.values()})
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
