"""Dark experience replay: what is stored, when, and the loss by its definition."""

from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from holdfast.algorithms.base import Algorithm
from holdfast.algorithms.derpp import DarkReplay
from holdfast.algorithms.logits import StoredLogits
from holdfast.data.order import mix, shuffled
from holdfast.data.table import Data, Table
from holdfast.engine.learner import Learner
from holdfast.errors import UserError
from holdfast.models.base import Encoder, Network
from holdfast.models.heads import Linear
from holdfast.tasks import MaskedPhrase
from smallest import make_learner, prepared, trained


def reference(ready, capacity, alpha, beta):
    """Mammoth's loop, written anew with lists: a reservoir of all that is seen, in every epoch, as it then is.

    Only the random numbers are ours: one for each offer to a full memory, and a choice for each batch.
    """
    learner = make_learner(ready)
    model, data = learner.model, learner.data.tables[0]
    random, seen, held = np.random.default_rng(mix(0, 0xDE2)), 0, []
    for number, stage in enumerate(ready.setup.stream.stages):
        optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
        for epoch in range(stage.training.epochs):
            ids = shuffled(stage.train, seed=0, stage=number, epoch=epoch)
            for start in range(0, len(ids), 32):
                rows = ids[start : start + 32].tolist()
                images, targets = data.inputs["image"][rows], data.targets[rows]
                outputs = model({"image": images}, "patterns")
                loss = functional.cross_entropy(outputs, targets)
                if held:

                    def draw(size):
                        size = min(size, len(held))
                        every = len(held) == size
                        places = range(size) if every else random.choice(len(held), size, replace=False, shuffle=False)
                        return [
                            torch.stack(column) for column in zip(*(held[place][1:] for place in places), strict=True)
                        ]

                    (image, _, logits), (other, target, _) = draw(len(rows)), draw(len(rows))
                    squares = (model({"image": image}, "patterns") - logits).square().sum(1)
                    again = functional.cross_entropy(model({"image": other}, "patterns"), target)
                    loss = loss + alpha * squares.mean() + beta * again
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                for item in zip(rows, images, targets, outputs.detach(), strict=True):
                    seen += 1
                    if len(held) < capacity:
                        held.append(item)
                    elif (place := int(random.random() * seen)) < capacity:
                        held[place] = item
    return model, held


def test_over_several_epochs_it_is_the_reference_loop():
    """Logits are of the step that took the place: not of the first epoch, in which the model knew little."""
    ready, dark = prepared(train__epochs=4), DarkReplay(capacity=60, alpha=0.5, beta=0.5)
    learner, _ = trained(ready, [dark])
    model, held = reference(ready, 60, 0.5, 0.5)
    assert dark.memory.ids.tolist() == [item[0] for item in held]
    assert len(set(dark.memory.ids.tolist())) < 60, "an example may be held twice, as it was at two steps"
    torch.testing.assert_close(dark.logits.rows, torch.stack([item[3] for item in held]), rtol=0, atol=1e-10)
    for name, value in model.state_dict().items():
        torch.testing.assert_close(learner.model.state_dict()[name], value, rtol=0, atol=1e-10)


@dataclass
class Outputs(Algorithm):
    """Notes the logits that each example has had."""

    rows: dict = field(default_factory=dict)

    def loss(self, learner, batch, outputs):
        (part,) = outputs
        for example, row in zip(batch.ids.tolist(), part.detach(), strict=True):
            self.rows.setdefault(example, []).append(row)


@pytest.mark.parametrize("setting", ["class", "task"])
def test_each_place_has_the_logits_of_a_step_at_which_its_example_was_seen(setting):
    spy, dark = Outputs(), DarkReplay(capacity=40)
    learner, _ = trained(prepared(benchmark__setting=setting), [dark, spy])
    width = 4 if setting == "class" else 2
    assert dark.logits.rows.shape == (40, width)
    epochs = []
    for place, example in enumerate(dark.memory.ids.tolist()):
        assert len(spy.rows[example]) == 2
        epochs += [e for e, row in enumerate(spy.rows[example]) if torch.equal(dark.logits.rows[place], row)]
    assert len(epochs) == 40
    assert 8 < sum(epochs) < 32, "of both epochs alike"
    assert dark.memory_bytes(learner) == 40 * (width * 8 + 8 + learner.data.tables[0].row_bytes)


def stored(learner, stage, **settings):
    """A dark replay with known logits: those of the present weights, shifted by 1."""
    dark = DarkReplay(capacity=40, size=10, **settings)
    dark.setup(learner)
    ids = stage.train[:40]
    batch = learner.fetch(ids)
    dark.loss(learner, batch, tuple(output + 1 for output in learner.outputs(batch)))
    dark.after(learner, batch)
    return dark


@pytest.mark.parametrize(("fidelity", "expected"), [("paper", 4.0), ("released", 1.0)])
def test_the_paper_sums_squared_differences_and_the_released_code_averages_them(fidelity, expected):
    ready = prepared()
    learner = make_learner(ready)
    first, second = ready.setup.stream.stages
    dark = stored(learner, first, alpha=1.0, beta=0.0, fidelity=fidelity)
    batch = learner.fetch(second.train)
    assert dark.loss(learner, batch, learner.outputs(batch)).item() == pytest.approx(expected, abs=1e-12)


def test_the_loss_is_the_distance_from_old_logits_and_the_loss_of_a_second_batch():
    ready = prepared()
    learner = make_learner(ready)
    first, second = ready.setup.stream.stages
    dark, twin = (stored(learner, first, alpha=0.3, beta=0.7) for _ in range(2))
    with torch.no_grad():
        for parameter in learner.trainable().values():
            parameter.mul_(1.1)
    batch = learner.fetch(second.train)
    before = learner.examples_backward
    loss = dark.loss(learner, batch, learner.outputs(batch))
    assert learner.examples_backward - before == 20
    places, table = twin.memory.draw(10), learner.data.tables[0]
    now = learner.model({"image": table.inputs["image"][twin.memory.ids[places]]}, "patterns")
    expected = 0.3 * (now - twin.logits.rows[places]).square().sum(1).mean()
    rows = torch.from_numpy(twin.memory.sample(10))
    output = learner.model({"image": table.inputs["image"][rows]}, "patterns")
    expected = expected + 0.7 * functional.cross_entropy(output, table.targets[rows])
    parameters = list(learner.trainable().values())
    assert loss.item() == pytest.approx(expected.item(), abs=1e-13)
    for a, b in zip(torch.autograd.grad(loss, parameters), torch.autograd.grad(expected, parameters), strict=True):
        assert torch.allclose(a, b, rtol=0, atol=1e-13)


def test_classes_that_were_not_open_then_are_not_held_to_their_logits():
    ready = prepared()
    learner = make_learner(ready)
    first, second = ready.setup.stream.stages
    learner.model.heads["patterns"].classifier = Linear(16, 4, growing=True).double()
    learner.model.open_classes([0, 1])
    dark = stored(learner, first, alpha=1.0, beta=0.0)
    assert dark.logits.rows.isnan().any(0).tolist() == [False, False, True, True]
    learner.model.open_classes([2, 3])
    batch = learner.fetch(second.train)
    assert dark.loss(learner, batch, learner.outputs(batch)).item() == pytest.approx(2.0, abs=1e-12)


def test_an_example_whose_logits_were_never_seen_is_learned_by_its_target_alone():
    """Another algorithm may have taken it out of the batch."""
    learner = make_learner(prepared())
    dark = DarkReplay(capacity=40, alpha=1.0, beta=0.0)
    dark.setup(learner)
    seen, unseen = learner.fetch(np.arange(10)), learner.fetch(np.arange(10, 12))
    dark.loss(learner, seen, learner.outputs(seen))
    dark.after(learner, seen)
    dark.after(learner, unseen)
    assert dark.logits.rows[10:12].isnan().all()
    assert dark.loss(learner, seen, learner.outputs(seen)).item() == pytest.approx(0.0, abs=1e-20)


class Phrases(Encoder):
    """A vector for each hidden word: its embedding, whatever the place."""

    width = 5

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(7, 5)

    def stem(self):
        return [self.embedding]

    def layers(self):
        return []

    def forward(self, inputs):
        raise AssertionError

    def words(self, inputs):
        return self.embedding(inputs["text"])

    def word_embedding(self):
        return self.embedding


def phrases():
    """Twelve captions of four words, of which one, two or three are hidden."""
    torch.manual_seed(0)
    text = torch.randint(7, (12, 4))
    hidden = 1 + torch.arange(12) % 3
    places = torch.arange(3).expand(12, 3)
    masked = places.where(places < hidden[:, None], -1)
    targets = text[:, :3].where(places < hidden[:, None], -100)
    task = MaskedPhrase("phrases", "phrases", 7, 0.0)
    data = Data([Table("phrases", {"text": text, "masked": masked}, targets)])
    encoder = Phrases()
    return Learner(Network(encoder, {"phrases": encoder.head(task.reads)}).double(), data, {"phrases": task})


def test_places_of_a_phrase_that_hide_no_word_are_not_held_to_logits():
    learner, dark = phrases(), DarkReplay(capacity=12, size=12, alpha=1.0, beta=0.0)
    dark.setup(learner)
    batch = learner.fetch(np.arange(12))
    dark.loss(learner, batch, tuple(output + 1 for output in learner.outputs(batch)))
    dark.after(learner, batch)
    kept = dark.logits.rows.view(12, 3, 7)
    hides = batch.parts[0].targets[torch.from_numpy(dark.memory.ids)] >= 0
    assert torch.equal(~kept.isnan().all(-1), hides)
    assert hides.sum() == 24
    # Each hidden word is off by 1 in each of 7 logits; a phrase has 2 hidden words on average.
    assert dark.loss(learner, batch, learner.outputs(batch)).item() == pytest.approx(14.0, abs=1e-12)


def test_logits_that_would_fill_the_device_are_refused_with_their_bytes():
    learner = phrases()
    row = 3 * 7 * 8
    most = (2 << 30) // row
    DarkReplay(capacity=most).setup(learner)
    with pytest.raises(UserError, match=rf"would take {(most + 1) * row:,} bytes.*set it to {most} or less"):
        DarkReplay(capacity=most + 1).setup(learner)


def test_a_memory_smaller_than_a_batch_is_refused():
    with pytest.raises(UserError, match=r"derpp\.capacity is 31"):
        trained(prepared(), [DarkReplay(capacity=31)])


def test_a_kept_example_that_left_the_batch_before_the_pass_has_no_logits():
    """Nor those of the example whose place it took."""
    ready = prepared("derpp", derpp__capacity=40)
    trained(ready)
    (algorithm,) = ready.algorithms
    taken, width = np.array([3, 7]), algorithm.logits.rows.shape[1]
    assert not algorithm.logits.rows[taken].isnan().all(dim=1).any()
    new = [(algorithm.memory.ids[taken[:1]], torch.ones(1, width, dtype=algorithm.logits.rows.dtype))]
    algorithm.logits.store(taken, algorithm.memory.ids[taken], new)
    assert (algorithm.logits.rows[3] == 1).all()
    assert algorithm.logits.rows[7].isnan().all()


def test_stored_logits_survive_a_wider_output():
    stored, ids = StoredLogits(3), np.array([7, 9])
    narrow, wide = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[5.0, 6.0, 7.0]])
    stored.store(np.array([0, 2]), ids, [(ids, narrow)])
    stored.store(np.array([1]), np.array([4]), [(np.array([4]), wide)])
    nan = torch.nan
    expected = torch.tensor([[1.0, 2.0, nan], [5.0, 6.0, 7.0], [3.0, 4.0, nan]])
    torch.testing.assert_close(stored.rows, expected, equal_nan=True)
