from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch
from scipy.spatial import KDTree

from algorithms.test_rpsnet import Ends, Fits, equal, ready, weights
from holdfast.algorithms import mntdp
from holdfast.algorithms.base import Algorithm
from holdfast.algorithms.mntdp import Mntdp, nearest_path, vote
from holdfast.engine.checkpoint import Checkpoints
from holdfast.errors import Stopped, UserError
from holdfast.models.modular import ModularResNet18, ModularVit
from smallest import StopAt, make_learner, prepared, trained


@dataclass
class Outputs(Algorithm):
    """What the model answers, at the end of each stage, on the test data of each stage so far."""

    sets: list
    seen: list = field(default_factory=list)

    def end(self, learner, stage):
        learner.model.eval()
        with torch.no_grad():
            answers = [learner.forward(learner.data.fetch(ids, learner.device))[0] for ids in self.sets]
        learner.train_mode()
        self.seen.append(answers[: len(self.seen) + 1])


RECIPES = {
    "perceptron": None,
    "resnet": ModularResNet18(start="cifar", channels=2, parts="stages"),
    "vit": ModularVit(patch=4, width=16, depth=2, heads=2, head_width=8, hidden=16, parts="stages"),
}


@pytest.mark.parametrize("name", RECIPES)
def test_earlier_tasks_are_answered_the_same_to_the_last_bit(name):
    stages = 3 if name == "perceptron" else 2
    settings = {"benchmark__setting": "task", "benchmark__stages": stages, "train__epochs": 1}
    found = ready("stages", RECIPES[name], **settings)
    sets = [chosen.ids for chosen in found.setup.protocol.evaluations if chosen.split == "test"]
    algorithm = Mntdp()
    outputs = Outputs(sets)
    learner, _ = trained(found, [algorithm, outputs])
    assert [len(answers) for answers in outputs.seen] == list(range(1, stages + 1))
    for earlier, later in zip(outputs.seen, outputs.seen[1:], strict=False):
        assert all(torch.equal(*pair) for pair in zip(earlier, later, strict=False))
    assert {head: learner.model.encoder.paths[head] for head in learner.model.heads} == dict(
        zip(learner.model.heads, algorithm.chosen, strict=True)
    )


def test_the_search_is_over_the_deepest_modules_and_takes_the_best():
    settings = {"benchmark__setting": "task", "benchmark__stages": 3, "train__epochs": 3, "benchmark__noise": 2.0}
    algorithm, fits, ends = Mntdp(), Fits(), Ends()
    found = ready("stages", **settings)
    trained(found, [ends, algorithm, fits])
    first, *others = found.setup.stream.stages
    assert [path for name, path, _, _ in fits.seen if name == first.name] == [((0,), (0,))]
    for index, stage in enumerate(others, 1):
        tries = [entry for entry in fits.seen if entry[0] == stage.name]
        best, *_ = paths = [path for _, path, _, _ in tries]
        assert best in algorithm.chosen[:index]
        new = tuple((1 + max(path[layer][0] for path in algorithm.chosen[:index]),) for layer in range(2))
        assert paths == [best, (best[0], new[1]), new]
        scores = [score for _, _, score, _ in tries]
        winner = scores.index(max(scores))
        assert algorithm.chosen[index] == paths[winner]
        assert equal(ends.left[index], tries[winner][3])
        allowed = set(stage.train.tolist()) | set(stage.validation[0].ids.tolist())
        assert ends.read[index] == allowed, "no test data, and none of the past"


def test_a_vote_is_that_of_a_tree_of_neighbours():
    random = np.random.default_rng(0)
    train, queries = random.standard_normal((50, 3)), random.standard_normal((30, 3))
    classes = random.integers(0, 4, 50)
    _, nearest = KDTree(train).query(queries, 5)
    expected = [np.bincount(classes[row]).argmax() for row in nearest]
    found = vote(torch.from_numpy(train), torch.from_numpy(classes), torch.from_numpy(queries), 5)
    assert found.tolist() == expected
    assert len(vote(torch.from_numpy(train[:2]), torch.from_numpy(classes[:2]), torch.from_numpy(queries), 5)) == 30


@pytest.mark.parametrize("good", [0, 1, 2])
def test_the_path_with_the_best_features_is_found(good):
    """All paths but one end in a module that forgets what it was given."""
    found = ready("stages", benchmark__noise=0.1)
    learner = make_learner(found)
    last = learner.model.encoder.layers()[-1]
    last.grow(3)
    for index, module in enumerate(last.choices):
        if index != good:
            torch.nn.init.zeros_(module[0].weight)
    paths = [((0,), (index,)) for index in range(3)]
    before = learner.model.encoder.path
    assert nearest_path(learner, found.setup.stream.stages[0], paths, 5) == paths[good]
    assert learner.model.encoder.path == before


def test_what_was_not_chosen_is_drawn_anew_and_lists_grow_by_what_was():
    algorithm = Mntdp()
    settings = {"benchmark__setting": "task", "benchmark__stages": 4, "train__epochs": 1}
    learner, _ = trained(ready("stages", **settings), [algorithm])
    for index, layer in enumerate(learner.model.encoder.layers()):
        used = {path[index][0] for path in algorithm.chosen}
        assert used == set(range(len(used))), "no gaps"
        assert len(layer.choices) - len(used) in (0, 1), "at most one that waits"


@pytest.mark.parametrize("stop", [2, 5, 8, 11])
@pytest.mark.parametrize("setting", ["class", "task"])
def test_it_resumes_exactly_within_a_search(setting, stop, tmp_path):
    """The first stage has one fit of 3 steps here, the second three."""
    settings = {"train__epochs": 1, "benchmark__setting": setting}
    whole, expected = trained(ready("stages", **settings), [Mntdp()])
    with pytest.raises(Stopped):
        trained(ready("stages", **settings), [Mntdp()], checkpoints=Checkpoints(tmp_path), watch=StopAt(stop))
    learner, log = trained(ready("stages", **settings), [Mntdp()], checkpoints=Checkpoints(tmp_path))
    assert equal(weights(whole.model), weights(learner.model))
    assert whole.model.encoder.paths == learner.model.encoder.paths
    assert log.scores[-1] == expected.scores[-1]


def test_what_cannot_be_is_refused():
    with pytest.raises(UserError, match="needs a modular network"):
        trained(prepared(), [Mntdp()])
    with pytest.raises(UserError, match=r"set model\.parts=stages"):
        trained(ready("branches"), [Mntdp()])
    found = ready("stages")
    stream = replace(found.setup.stream, stages=tuple(replace(s, validation=()) for s in found.setup.stream.stages))
    with pytest.raises(UserError, match="chooses by validation data"):
        Mntdp().check(stream)


@pytest.mark.parametrize("neighbours", [1, 7])
def test_so_many_neighbours_vote_on_the_path_that_a_stage_begins_with(neighbours, monkeypatch):
    voted = []
    monkeypatch.setattr(mntdp, "vote", lambda *given: voted.append(given[-1]) or vote(*given))
    settings = {"benchmark__setting": "task", "benchmark__stages": 3, "train__epochs": 1}
    trained(ready("stages", **settings), [Mntdp(neighbours=neighbours)])
    assert set(voted) == {neighbours}
    assert len(voted) >= 2, "for each path that there was, in each stage but the first"
