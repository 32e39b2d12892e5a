"""EWC and its Fisher: against closed forms, enumeration of all answers, and one gradient at a time."""

import itertools
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from torch import nn

from holdfast.algorithms import fisher as fishers
from holdfast.algorithms.ewc import EWC
from holdfast.algorithms.fisher import batched, fisher
from holdfast.algorithms.importance import Penalty
from holdfast.data.table import Data, Table
from holdfast.engine.learner import Learner
from holdfast.engine.loop import train
from holdfast.engine.ranks import Ranks
from holdfast.engine.watch import NoLog
from holdfast.errors import UserError
from holdfast.models.base import Encoder, Network
from holdfast.models.transformer import TransformerBlock
from holdfast.tasks import Choose, Classify, MaskedPhrase, MultiLabel, SoftLabel
from holdfast.types import Batch, Head, Protocol, Stage, Stream, Task, Training
from smallest import prepared, trained

WIDTH = 3


class Given(Encoder):
    """The inputs are the features; for words, each row's are those of its places."""

    width = WIDTH

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(4, WIDTH)

    def stem(self):
        return []

    def layers(self):
        return []

    def forward(self, inputs):
        return inputs["x"]

    def words(self, inputs):
        return inputs["x"]

    def word_embedding(self):
        return self.table


class Attentive(Given):
    """Attention and layer norm, so that a row's gradient is not a simple product."""

    def __init__(self):
        super().__init__()
        self.block = TransformerBlock(WIDTH, heads=1, hidden=4, norm="post")

    def forward(self, inputs):
        return self.block(torch.stack([inputs["x"], inputs["x"].square()], 1))[:, 0]


class Recurrent(Given):
    """An LSTM over the numbers of a row, whose fast kernels know neither many examples nor evaluation mode."""

    def __init__(self):
        super().__init__()
        self.recurrent = nn.LSTM(1, WIDTH, batch_first=True)

    def forward(self, inputs):
        return self.recurrent(inputs["x"].unsqueeze(-1))[0][:, -1]


class Peeking(Attentive):
    """Looks at a value, which gradients of many examples at once cannot."""

    def forward(self, inputs):
        assert inputs["x"].sum().item() < 1e9
        return super().forward(inputs)


ROWS = 7
TASKS = {
    "classify": (Classify("t", "h", 4, 0.25), (), torch.tensor([0, 3, 1, 1, 2, 0, 3])),
    "choose": (Choose("t", "h", 2, 0.5), (2,), torch.tensor([0, 1, 1, 0, 0, 0, 1])),
    "soft": (SoftLabel("t", "h", 3, 0.1), (), torch.tensor([[[2.0, -1], [0.6, 0]]]).repeat(ROWS, 1, 1)),
    "labels": (MultiLabel("t", "h", 3, 0.1), (), torch.tensor([[1, 0, 1]]).repeat(ROWS, 1)),
    "phrase": (MaskedPhrase("t", "h", 4, 0.1), (2,), torch.tensor([[1, 2], [3, -100]]).repeat(4, 1)[:ROWS]),
}


def learner_of(name="classify", encoder=Given) -> Learner:
    torch.manual_seed(0)
    task, more, targets = TASKS[name]
    body = encoder()
    reads = task.reads if name != "soft" else Head("classify", task.outputs)
    model = Network(body, {"h": body.head(reads)}).double()
    for parameter in model.parameters():
        nn.init.normal_(parameter)
    inputs = {"x": torch.randn(ROWS, *more, WIDTH, dtype=torch.float64)}
    if name == "phrase":
        inputs["masked"] = torch.tensor([[0, 1]]).repeat(ROWS, 1)
    return Learner(model, Data([Table("t", inputs, targets)]), {"t": task})


IDS = np.arange(ROWS)


def answers(name):
    """Every target that a model could give to a row, and how its chance follows from the row's outputs."""
    task, _, _ = TASKS[name]
    sides = [torch.tensor(side) for side in itertools.product([0, 1], repeat=3)]
    if name in ("classify", "choose"):
        return [(torch.tensor(k), lambda out, k=k: out.softmax(-1)[k]) for k in range(task.outputs)]
    if name == "phrase":
        pairs = itertools.product(range(4), repeat=2)
        return [(torch.tensor([a, b]), lambda o, a=a, b=b: o[0].softmax(-1)[a] * o[1].softmax(-1)[b]) for a, b in pairs]

    def chance(side):
        return lambda out: torch.where(side > 0, out.sigmoid(), 1 - out.sigmoid()).prod()

    if name == "labels":
        return [(side, chance(side)) for side in sides]
    return [(torch.stack([torch.arange(3.0), side.float()]), chance(side)) for side in sides]


def one_by_one(learner, target_of) -> dict[str, torch.Tensor]:
    """The mean over rows of chance times squared gradient, one row and one answer after another."""
    totals = {name: torch.zeros_like(p) for name, p in learner.trainable().items()}
    learner.model.eval()
    for row in range(ROWS):
        (part,) = learner.fetch(IDS[row : row + 1]).parts
        task = learner.tasks[part.task]
        for target, chance in target_of(part):
            output = task.forward(learner.model, part)
            loss = task.losses(output, replace(part, targets=target.unsqueeze(0))).sum()
            grads = torch.autograd.grad(loss, list(learner.trainable().values()), allow_unused=True)
            for total, grad in zip(totals.values(), grads, strict=True):
                if grad is not None:
                    total += chance(output[0]).detach() * grad**2 / ROWS
    return totals


def same(found, expected):
    assert found.keys() == expected.keys()
    for name in found:
        torch.testing.assert_close(found[name], expected[name], rtol=1e-10, atol=1e-12, msg=name)


def test_exact_fisher_of_a_softmax_regression_is_its_closed_form():
    learner = learner_of()
    x = learner.data.tables[0].inputs["x"]
    layer = learner.model.heads["h"].classifier
    p = (x @ layer.weight.T + layer.bias).softmax(-1).detach()
    found = fisher(learner, IDS, learner.trainable(), "exact")
    torch.testing.assert_close(found["heads.h.classifier.weight"], (p * (1 - p)).T @ x**2 / ROWS)
    torch.testing.assert_close(found["heads.h.classifier.bias"], (p * (1 - p)).mean(0))


@pytest.mark.parametrize("name", TASKS)
def test_exact_fisher_is_the_expectation_over_every_answer(name):
    learner = learner_of(name)

    def every(part):
        if name == "phrase":  # a place without a word has no answer
            hidden = part.targets[0] >= 0
            return [(torch.where(hidden, target, -100), chance) for target, chance in answers(name)]
        return answers(name)

    same(fisher(learner, IDS, learner.trainable(), "exact"), one_by_one(learner, every))


@pytest.mark.parametrize("name", TASKS)
def test_sampled_fisher_is_right_on_average(name):
    learner = learner_of(name)
    parameters = {n: p for n, p in learner.trainable().items() if n.startswith("heads")}
    exact = fisher(learner, IDS, parameters, "exact")
    draws = [fisher(learner, IDS, parameters, "sampled", seed=seed) for seed in range(150)]
    for key, value in exact.items():
        many = torch.stack([draw[key] for draw in draws])
        error = many.std(0) / len(draws) ** 0.5
        assert many.std(0).max() > 0, "it is drawn"
        assert ((many.mean(0) - value).abs() <= 4.5 * error + 1e-12).all(), key


@pytest.mark.parametrize("encoder", [Given, Attentive, Recurrent, Peeking])
@pytest.mark.parametrize("chunk", [2**28, 1])
def test_empirical_fisher_is_the_loop_over_examples(encoder, chunk, monkeypatch, caplog):
    """Many at once, in chunks, and for a model that can only be asked one by one."""
    caplog.set_level("INFO", "holdfast")
    monkeypatch.setattr("holdfast.algorithms.importance.NUMBERS", chunk)
    learner = learner_of(encoder=encoder)
    found = fisher(learner, IDS, learner.trainable(), "empirical")
    assert learner.examples_backward == ROWS
    assert learner.model.training
    assert [record.message[:48] for record in caplog.records] == (
        ["gradients of single examples are computed one by"] if encoder in (Peeking, Recurrent) else []
    )
    same(found, one_by_one(learner, lambda part: [(part.targets[0], lambda out: torch.ones(()))]))


class Bagged(Given):
    """With a layer that is slow, and warns, where operations are batched."""

    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(7, self.width)

    def forward(self, inputs):
        found = super().forward(inputs)
        return found + self.bag(torch.arange(len(found), device=found.device).view(-1, 1) % 7).to(found)


def test_slow_layers_do_not_fill_the_terminal_with_warnings():
    """Warnings are errors in tests."""
    learner = learner_of(encoder=Bagged)
    assert fisher(learner, IDS, learner.trainable(), "empirical")


def test_a_phrase_has_an_empirical_fisher_and_the_soft_label_too():
    for name in ("phrase", "soft", "labels"):
        learner = learner_of(name)
        found = fisher(learner, IDS, learner.trainable(), "empirical")
        same(found, one_by_one(learner, lambda part: [(part.targets[0], lambda out: torch.ones(()))]))


class OneOf(Ranks):
    """A rank among several that hears nothing from the others."""

    def __init__(self, rank, size):
        self.rank, self.size = rank, size

    def sum(self, tensors):
        pass


@pytest.mark.parametrize("kind", ["exact", "sampled", "empirical"])
def test_the_shares_of_ranks_add_up(kind):
    whole = fisher(learner_of(), IDS, learner_of().trainable(), kind, seed=5)
    shares = []
    for rank in range(3):
        learner = learner_of()
        learner.ranks = OneOf(rank, 3)
        shares.append(fisher(learner, IDS, learner.trainable(), kind, seed=5))
    same({name: sum(share[name] for share in shares) for name in whole}, whole)


def test_what_is_drawn_for_an_example_does_not_depend_on_the_order():
    """Nor on the table in which it lies: a batch comes table by table."""
    whole, split = learner_of(), learner_of()
    (table,) = whole.data.tables
    ends = [(0, 3), (3, ROWS)]
    split.data = Data([Table("t", {"x": table.inputs["x"][a:b]}, table.targets[a:b]) for a, b in ends])
    mixed = np.array([5, 0, 4, 2, 6, 1, 3])
    found = fisher(split, mixed, split.trainable(), "sampled", seed=2)
    same(found, fisher(whole, IDS, whole.trainable(), "sampled", seed=2))


def batch_gradients(learner, size):
    for start in range(0, ROWS, size):
        batch = learner.fetch(IDS[start : start + size])
        learner.model.eval()
        loss = learner.loss(batch, learner.forward(batch))
        yield torch.autograd.grad(loss, learner.model.heads["h"].classifier.weight)[0]


def test_batched_fisher_squares_the_gradients_of_batches_and_the_released_one_their_running_sum():
    """CLiMB's code never clears the gradients between batches, and divides by the number of examples."""
    learner, key = learner_of(), "heads.h.classifier.weight"
    first, second, third = batch_gradients(learner, 3)
    paper = batched(learner, IDS, learner.trainable(), 3)[key]
    released = batched(learner, IDS, learner.trainable(), 3, running=True)[key]
    torch.testing.assert_close(paper, (first**2 + second**2 + third**2) / 3)
    torch.testing.assert_close(released, (first**2 + (first + second) ** 2 + (first + second + third) ** 2) / ROWS)
    assert not torch.allclose(paper, released)


def test_the_released_fidelity_is_another_fisher():
    found = {}
    for fidelity in ("paper", "released"):
        learner, algorithm = learner_of(), EWC(fisher="batched", fidelity=fidelity)
        algorithm.setup(learner)
        algorithm.end(learner, Stage("s", IDS, Training(batch_size=3)))
        found[fidelity] = algorithm.penalties[0].weights["heads.h.classifier.weight"]
    ratio = found["released"] / found["paper"]
    assert ratio.max() > 2 * ratio.min(), "and no constant makes up for it"


# The penalty


@dataclass(frozen=True)
class Bowl(Task):
    """Half the sum of h (theta - target)^2: all that there is to learn is theta."""

    name: str = "bowl"
    head: str = "h"
    outputs: int = 2
    chance: float = 0.0

    def forward(self, model, part):
        return model(part.inputs, self.head).expand(len(part.targets), -1)

    def losses(self, output, part):
        return 0.5 * (CURVATURE * (output - part.targets) ** 2).sum(-1)

    def predictions(self, output, part):
        raise AssertionError

    def score(self, predictions, targets):
        raise AssertionError


CURVATURE = torch.tensor([1.0, 3.0], dtype=torch.float64)


class Itself(nn.Module):
    """A head that gives the encoder's weights."""

    def forward(self, encoder, inputs):
        return encoder.theta


class Theta(Given):
    def __init__(self):
        super().__init__()
        self.theta = nn.Parameter(torch.zeros(2))


def bowls(stages=3):
    """Clouds of targets, each a stage; one batch is a whole stage, so that descent ends in the minimum."""
    random = np.random.default_rng(3)
    clouds = torch.from_numpy(random.normal(size=(stages, 5, 2)) + random.normal(size=(stages, 1, 2)) * 2)
    data = Data([Table("bowl", {}, clouds.flatten(0, 1))])
    training = Training(epochs=200, batch_size=5, optimiser="sgd", learning_rate=0.1)
    plan = tuple(Stage(str(k), np.arange(5 * k, 5 * k + 5), training) for k in range(stages))
    body = Theta()
    return Learner(Network(body, {"h": Itself()}).double(), data, {"bowl": Bowl()}), Stream(plan), clouds


@pytest.mark.parametrize(
    ("past", "half", "decay"), [("sum", True, 1.0), ("sum", False, 1.0), ("online", True, 0.3), ("online", True, 1.0)]
)
def test_on_a_quadratic_loss_it_ends_in_the_minimum_that_algebra_gives(past, half, decay):
    learner, stream, clouds = bowls()
    strength = 0.1
    algorithm = EWC(strength=strength, fisher="empirical", past=past, half=half, decay=decay)
    train(learner, stream, [algorithm], Protocol(()), log=NoLog())
    pull = strength * (1 if half else 2)
    weight, moment = torch.zeros(2, dtype=torch.float64), torch.zeros(2, dtype=torch.float64)
    for cloud in clouds:
        theta = (CURVATURE * cloud.mean(0) + pull * moment) / (CURVATURE + pull * weight)
        found = ((CURVATURE * (theta - cloud)) ** 2).mean(0)
        weight = (decay if past == "online" else 1) * weight + found
        moment = weight * theta if past == "online" else moment + found * theta
    torch.testing.assert_close(learner.model.encoder.theta.detach(), theta, rtol=1e-8, atol=1e-8)
    assert algorithm.memory_bytes(learner) == 2 * sum(p.nbytes for p in learner.trainable().values())


def test_without_strength_it_is_fine_tuning():
    weights = []
    for algorithms in ([], [EWC(strength=0.0)], [EWC(strength=0.1)]):
        learner, stream, _ = bowls(2)
        for algorithm in algorithms:
            algorithm.fisher = "empirical"
        train(learner, stream, algorithms, Protocol(()), log=NoLog())
        weights.append(learner.model.encoder.theta.detach())
    assert torch.equal(weights[0], weights[1])
    assert not torch.allclose(weights[0], weights[2])


def test_one_past_stage_is_drawn_in_each_step():
    learner, stream, _ = bowls(4)
    algorithm = EWC(strength=0.1, fisher="empirical", past="one", half=False)
    train(learner, stream, [algorithm], Protocol(()), log=NoLog())
    assert len(algorithm.penalties) == 3
    theta, found = learner.model.encoder.theta, []
    for _ in range(60):
        theta.grad = torch.zeros_like(theta)
        algorithm.grads(learner, Batch(IDS))
        found.append(theta.grad.clone())
    expected = [
        0.2 * p.weights["encoder.theta"] * (theta.detach() - p.anchors["encoder.theta"]) for p in algorithm.penalties
    ]
    counts = [sum(torch.allclose(grad, one) for grad in found) for one in expected]
    assert sum(counts) == 60
    assert min(counts) >= 8, "60 fair draws of three give each at least 8 times but for one case in a thousand"


def test_penalties_folded_into_one_pull_as_their_sum():
    torch.manual_seed(1)
    model = nn.Linear(3, 2).double()
    pairs = [
        (
            {n: torch.rand_like(p) for n, p in model.named_parameters()},
            {n: p.detach() + torch.randn_like(p) for n, p in model.named_parameters()},
        )
        for _ in range(4)
    ]
    pairs[0][0]["weight"][0, 0] = 0.0
    pairs[1][0]["weight"][0, 0] = 0.0
    folded = Penalty(*pairs[0])
    for pair in pairs[1:]:
        folded = folded.plus(*pair)
    sums = sum((w[n] * (p - a[n]) ** 2).sum() for w, a in pairs for n, p in model.named_parameters())
    expected = torch.autograd.grad(0.3 * sums, list(model.parameters()))
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    folded.add_gradient(model, 0.3)
    for parameter, gradient in zip(model.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)


def test_what_a_batch_does_not_use_gets_no_gradient():
    model = nn.Linear(3, 2).double()
    model.weight.grad = torch.zeros_like(model.weight)
    ones = {name: torch.ones_like(p) for name, p in model.named_parameters()}
    Penalty(ones, ones).add_gradient(model, 1.0)
    assert model.bias.grad is None
    assert model.weight.grad.abs().sum() > 0


def test_the_encoder_alone_and_a_share_of_the_data():
    learner = learner_of(encoder=Attentive)
    algorithm = EWC(fisher="empirical", where="encoder", share=0.3)
    algorithm.setup(learner)
    algorithm.end(learner, Stage("s", IDS, Training()))
    assert all(name.startswith("encoder.") for name in algorithm.penalties[0].weights)
    assert learner.examples_backward == 2, "0.3 of 7, rounded"


def test_refusals_come_before_training_in_one_sentence(monkeypatch):
    with pytest.raises(UserError, match=r"set ewc\.fisher=batched"):
        EWC(fidelity="released")
    monkeypatch.setattr(fishers, "MOST", 7)
    with pytest.raises(UserError, match=r"takes 8 backward passes for each example of task 't'"):
        EWC(fisher="exact").setup(learner_of("phrase"))
    EWC(fisher="exact").setup(learner_of("classify"))
    for kind in ("exact", "sampled"):
        with pytest.raises(
            UserError, match=r"task 'bowl' \(Bowl\) does not define how to draw an answer: set ewc.fisher=empirical"
        ):
            EWC(fisher=kind).setup(bowls()[0])


@pytest.mark.parametrize(("fisher", "fidelity"), [("sampled", "paper"), ("batched", "released")])
def test_beside_an_adapter_library_the_fisher_is_of_what_is_trained(fisher, fidelity):
    """The library answers outside training by copies that it keeps; in both orders the weights themselves are held."""
    settings = {"ewc__fisher": fisher, "ewc__fidelity": fidelity}
    alone, _ = trained(prepared("adapter-library"))
    found = []
    for pair in ("ewc+adapter-library", "adapter-library+ewc"):
        ready = prepared(pair, **settings)
        learner, _ = trained(ready)
        (held,) = next(a for a in ready.algorithms if isinstance(a, EWC)).penalties
        for part in ("heads.patterns.classifier.weight", "encoder.block.0.added.library-0.attention.up.weight"):
            assert held.weights[part].max() > 0, part
        found.append((learner.model.state_dict(), held))
    (one, first), (other, second) = found
    for name, value in one.items():
        assert torch.equal(value, other[name]), name
    assert first.weights.keys() == second.weights.keys()
    assert not torch.equal(one["heads.patterns.classifier.weight"], alone.model.heads["patterns"].classifier.weight)


@pytest.mark.parametrize("name", ["ewc", "mas"])
def test_nothing_is_computed_for_what_follows_the_last_stage(name):
    """The end of the first of two stages takes passes of its own; that of the last one takes none."""
    plain, _ = trained(prepared("finetune"))
    ready = prepared(name, **{f"{name}__share": 0.1})
    learner, _ = trained(ready)
    first = len(ready.setup.stream.stages[0].train)
    assert learner.examples_backward - plain.examples_backward == round(0.1 * first)
    assert ready.algorithms[0].stages == 2
    assert ready.algorithms[0].memory_bytes(learner) == 2 * sum(p.nbytes for p in learner.trainable().values())
