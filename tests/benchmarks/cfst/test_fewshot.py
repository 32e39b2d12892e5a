"""The few-shot test: all tasks together give what one after another gives, and nothing of the extractor moves."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from holdfast.benchmarks.cfst import fewshot
from holdfast.benchmarks.cfst import speed as bench
from holdfast.data.table import Data, Table
from holdfast.engine.learner import Learner
from holdfast.errors import UserError
from holdfast.models.modular import ModularPerceptron
from holdfast.models.resnet import ResNet18
from holdfast.tasks import Classify
from holdfast.types import Inputs

SIDE = 8


def learner_of(recipe, rows=60, dtype=torch.float64):
    """A learner with two heads over random pictures; odd ones are brighter."""
    torch.manual_seed(0)
    kinds = {name: Classify(name, head=name, outputs=2, chance=0.5) for name in ("one", "two")}
    model = recipe.build(Inputs((3, SIDE, SIDE)), {name: kind.reads for name, kind in kinds.items()}).to(dtype)
    images = torch.randint(128, (rows, 3, SIDE, SIDE), dtype=torch.uint8) + 100 * (torch.arange(rows) % 2)[
        :, None, None, None
    ].to(torch.uint8)
    return Learner(model, Data([Table("one", {"image": images}, torch.arange(rows) % 2)]), kinds)


def slim():
    learner = learner_of(ResNet18(start="cifar", channels=2))
    for module in learner.model.modules():
        if isinstance(module, nn.BatchNorm2d):  # as if it had been trained
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
    return learner


def test_all_heads_together_end_where_one_after_another_ends():
    random, width = np.random.default_rng(3), 7
    labels = np.repeat(np.arange(6), 12)
    features = torch.from_numpy(random.standard_normal((72, width)) + labels[:, None])
    drawn = fewshot.draw(labels, random, tasks=9, way=4, shot=5, query=6)
    heads = fewshot.new_heads(9, 4, width, random)
    known, asked = drawn.targets
    support = torch.stack([features[rows.reshape(-1)] for rows in drawn.support])
    weights, biases = fewshot.trained(support, known, heads)
    accuracies = fewshot.accuracies(features, drawn, heads)
    for number in range(9):
        head = nn.Linear(width, 4, dtype=torch.float64)
        head.load_state_dict({"weight": heads[0][number], "bias": heads[1][number]})
        optimiser = torch.optim.Adam(head.parameters(), lr=1e-3)
        for _ in range(20):
            optimiser.zero_grad()
            functional.cross_entropy(head(support[number]), known).backward()
            optimiser.step()
        assert torch.allclose(weights[number], head.weight, rtol=0, atol=1e-9)
        assert torch.allclose(biases[number], head.bias, rtol=0, atol=1e-9)
        assert not torch.allclose(head.weight, heads[0][number].double(), rtol=0, atol=1e-3), "it has learned"
        right = head(features[drawn.query[number].reshape(-1)]).argmax(1) == asked
        assert accuracies[number] == right.double().mean().item()


def test_flips_and_a_cosine_give_what_a_plain_loop_gives():
    """Mirrored support pictures and a schedule, as in the authors' code, against torch's own scheduler."""
    learner, random = learner_of(ResNet18(start="cifar", channels=2)), np.random.default_rng(0)
    learner.model.eval()
    ids, labels = np.arange(60), np.arange(60) % 2
    drawn = fewshot.draw(labels, random, tasks=3, way=2)
    heads = fewshot.new_heads(3, 2, learner.model.encoder.width, random)
    training = fewshot.head_training(drawn, random, flips=True, cosine=True)
    assert training.mirrored.float().mean() == pytest.approx(0.5, abs=0.05)
    sides = [fewshot.extract(learner, ids, "one", mirrored) for mirrored in (False, True)]
    assert not torch.allclose(*sides)
    learner.model.eval()
    found = fewshot.accuracies(sides[0], drawn, heads, training, sides[1])
    images, (known, asked) = learner.data.tables[0].inputs["image"], drawn.targets
    for number in range(3):
        head = nn.Linear(learner.model.encoder.width, 2, dtype=torch.float64)
        head.load_state_dict({"weight": heads[0][number], "bias": heads[1][number]})
        optimiser = torch.optim.Adam(head.parameters(), lr=1e-3)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 20, 1e-6)
        rows = drawn.support[number].reshape(-1)
        for epoch in range(20):
            shown = torch.stack(
                [
                    image.flip(-1) if flip else image
                    for image, flip in zip(images[rows], training.mirrored[epoch, number], strict=True)
                ]
            )
            with torch.no_grad():
                features = learner.model.encoder({"image": shown})
            optimiser.zero_grad()
            functional.cross_entropy(head(features), known).backward()
            optimiser.step()
            schedule.step()
        support = [side[torch.from_numpy(drawn.support)].flatten(1, 2) for side in sides]
        weights, biases = fewshot.trained(support[0], known, heads, training, support[1])
        assert torch.allclose(weights[number], head.weight, rtol=0, atol=1e-9)
        assert torch.allclose(biases[number], head.bias, rtol=0, atol=1e-9)
        right = head(sides[0][drawn.query[number].reshape(-1)]).argmax(1) == asked
        assert found[number] == right.double().mean().item()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_heads_that_it_begins_with_stay_as_they_are(dtype):
    learner, random = learner_of(ResNet18(start="cifar", channels=2), dtype=dtype), np.random.default_rng(0)
    drawn = fewshot.draw(np.arange(60) % 2, random, tasks=2, way=2)
    heads = fewshot.new_heads(2, 2, learner.model.encoder.width, random)
    before = [part.clone() for part in heads]
    fewshot.accuracies(fewshot.extract(learner, np.arange(60), "one"), drawn, heads)
    fewshot.unfrozen_accuracies(learner, np.arange(60), "one", drawn, heads)
    assert all(torch.equal(*pair) for pair in zip(heads, before, strict=True))


def test_what_is_drawn():
    labels = np.random.default_rng(1).permutation(np.repeat([2, 5, 6, 9, 11], [20, 8, 20, 20, 20]))
    drawn = fewshot.draw(labels, np.random.default_rng(0), tasks=40, way=3, shot=6, query=4)
    assert (drawn.support.shape, drawn.query.shape) == ((40, 3, 6), (40, 3, 4))
    seen = set()
    for support, query in zip(drawn.support, drawn.query, strict=True):
        rows = np.concatenate([support.reshape(-1), query.reshape(-1)])
        assert len(set(rows)) == 30, "no example twice, so none is both learned and asked"
        classes = [set(labels[support[place]]) | set(labels[query[place]]) for place in range(3)]
        assert all(len(each) == 1 for each in classes)
        assert len(set.union(*classes)) == 3
        seen |= set.union(*classes)
    assert seen == {2, 6, 9, 11}, "5 has too few examples"
    again = fewshot.draw(labels, np.random.default_rng(0), tasks=40, way=3, shot=6, query=4)
    other = fewshot.draw(labels, np.random.default_rng(1), tasks=40, way=3, shot=6, query=4)
    assert np.array_equal(drawn.support, again.support)
    assert not np.array_equal(drawn.support, other.support)
    with pytest.raises(UserError, match="needs 5 classes of 10 examples, but there are 4"):
        fewshot.draw(labels, np.random.default_rng(0), way=5, shot=6, query=4)


def test_what_tells_classes_apart_scores_and_noise_scores_chance():
    labels = np.repeat(np.arange(10), 20)
    told = functional.one_hot(torch.from_numpy(labels)).double().repeat(1, 20)
    noise = torch.from_numpy(np.random.default_rng(0).standard_normal((200, 200)))
    found = []
    for features in (told, noise):
        random = np.random.default_rng(5)
        drawn = fewshot.draw(labels, random, tasks=100)
        found.append(fewshot.accuracies(features, drawn, fewshot.new_heads(100, 10, 200, random)).mean())
    assert found[0] > 0.9
    assert abs(found[1] - 0.1) < 0.02


def test_fresh_heads_are_spread_as_torchs():
    weights, biases = fewshot.new_heads(50, 4, 16, np.random.default_rng(0))
    usual = nn.Linear(16, 3200)
    for ours, theirs in ((weights, usual.weight), (biases, usual.bias)):
        assert ours.abs().max() <= 0.25
        assert float(ours.std()) == pytest.approx(float(theirs.detach().std()), rel=0.1)


def test_the_extractor_stays_as_it_is():
    learner = slim()
    before = {name: value.clone() for name, value in learner.model.state_dict().items()}
    ids = np.random.default_rng(0).permutation(60)
    features = fewshot.extract(learner, ids, "one")
    learner.model.eval()
    images = learner.data.tables[0].inputs["image"]
    with torch.no_grad():
        alone = torch.cat([learner.model.encoder({"image": images[row : row + 1]}) for row in ids])
    assert torch.allclose(features, alone, rtol=0, atol=1e-9), "each by itself: no batch statistics"
    assert all(torch.equal(value, before[name]) for name, value in learner.model.state_dict().items())
    fewshot.extract(learner, ids, "one")
    assert learner.model.training, "and the learner goes on as it was"


def test_features_are_those_that_the_head_is_given():
    learner = learner_of(ModularPerceptron(width=8))
    encoder = learner.model.encoder
    for layer in encoder.layers():
        layer.grow(2)
    encoder.paths = {"one": ((0,), (0,)), "two": ((1,), (1,))}
    ids = np.arange(60)
    found = {head: fewshot.extract(learner, ids, head) for head in ("one", "two")}
    images = {"image": learner.data.tables[0].inputs["image"]}
    for head, features in found.items():
        encoder.active = head
        with torch.no_grad():
            assert torch.equal(features, encoder(images))
    assert not torch.allclose(found["one"], found["two"])


def test_unfrozen_each_task_begins_with_the_same_weights_and_leaves_the_learners_alone():
    learner = slim()
    learner.freeze(learner.model.encoder.conv1)  # what an algorithm froze learns here too
    labels, ids, random = np.arange(60) % 2, np.arange(60), np.random.default_rng(0)
    drawn = fewshot.draw(labels, random, tasks=3, way=2)
    heads = fewshot.new_heads(3, 2, learner.model.encoder.width, random)
    before = {name: value.clone() for name, value in learner.model.state_dict().items()}
    quick = fewshot.HeadTraining(rates=(0.03,) * 20)
    found = fewshot.unfrozen_accuracies(learner, ids, "one", drawn, heads, quick)
    assert all(torch.equal(value, before[name]) for name, value in learner.model.state_dict().items())
    last = fewshot.Draw(drawn.support[2:], drawn.query[2:])
    alone = fewshot.unfrozen_accuracies(learner, ids, "one", last, (heads[0][2:], heads[1][2:]), quick)
    assert alone[0] == found[2], "whatever came before"
    nothing = fewshot.HeadTraining(rates=())
    untrained = fewshot.unfrozen_accuracies(learner, ids, "one", drawn, heads, nothing)
    frozen = fewshot.accuracies(fewshot.extract(learner, ids, "one"), drawn, heads, nothing)
    assert np.array_equal(untrained, frozen), "where nothing is learned, both are the same"
    assert found.min() > 0.7 > untrained.max()


def test_unfrozen_mirrored_pictures_are_learned_as_if_they_were_stored_so():
    learner, other = slim(), slim()
    other.model.load_state_dict(learner.model.state_dict())
    drawn = fewshot.draw(np.arange(60) % 2, np.random.default_rng(0), tasks=1, way=2)
    heads = fewshot.new_heads(1, 2, learner.model.encoder.width, np.random.default_rng(0))
    images, rows = other.data.tables[0].inputs["image"], drawn.support.reshape(-1)
    images[rows] = images[rows].flip(-1)
    rates = (0.03,) * 5
    always = fewshot.HeadTraining(rates, torch.ones(5, 1, 20, dtype=torch.bool))
    found = fewshot.unfrozen_accuracies(learner, np.arange(60), "one", drawn, heads, always)
    assert found == fewshot.unfrozen_accuracies(other, np.arange(60), "one", drawn, heads, fewshot.HeadTraining(rates))


def test_the_bench_times_both_ways(monkeypatch):
    monkeypatch.setattr(bench, "CLASSES", 10)
    monkeypatch.setattr(bench, "EACH", 20)
    found = bench.fewshot(torch.device("cpu"), tasks=3, side=8, channels=2)
    assert [case.case for case in found] == ["heads alone", "extractor in every step", "extractor once a task"]
    assert all(case.times == case.one_by_one / case.together > 0 for case in found)
    assert [case.at_least for case in found] == [None, 20.0, None]
