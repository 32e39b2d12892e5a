from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import torch

from holdfast.algorithms.base import Algorithm
from holdfast.algorithms.rpsnet import RpsNet
from holdfast.data.table import Data, Table
from holdfast.engine.checkpoint import Checkpoints
from holdfast.engine.evaluate import evaluate
from holdfast.errors import Stopped, UserError
from holdfast.models.base import Model
from holdfast.models.modular import ModularPerceptron, ModularResNet18, ModularVit
from holdfast.types import Inputs
from smallest import Ready, StopAt, prepared, trained


def ready(parts: str, recipe: Model | None = None, **settings: Any) -> Ready:
    """The smallest benchmark under a modular network: a perceptron, or another one over images of three channels."""
    found = prepared(**settings)
    if recipe is None:
        return replace(found, recipe=ModularPerceptron(width=16, parts=parts))
    tables = [
        Table(table.task, {"image": table.inputs["image"].expand(-1, 3, -1, -1).contiguous()}, table.targets)
        for table in found.setup.data.tables
    ]
    setup = replace(found.setup, data=Data(tables), inputs=Inputs(image=(3, *found.setup.inputs.image[1:])))
    return replace(found, recipe=recipe, setup=setup)


def weights(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in module.state_dict().items()}


@dataclass
class Fits(Algorithm):
    """Listed after a procedure, it sees each of its fits: the stage, the path, the score and the weights."""

    seen: list[tuple[str, Any, float, dict[str, torch.Tensor]]] = field(default_factory=list)

    def learn(self, learner, stage, fit):
        fit()
        score = evaluate(learner, stage.validation[0]).score
        self.seen.append((stage.name, learner.model.encoder.path, score, weights(learner.model)))


@dataclass
class Ends(Algorithm):
    """Listed before a procedure, it sees what a stage's search leaves, and which examples the search reads."""

    left: list[dict[str, torch.Tensor]] = field(default_factory=list)
    read: list[set[int]] = field(default_factory=list)

    def learn(self, learner, stage, fit):
        inner, read = learner.data.fetch, set()

        def fetch(ids, *rest, **named):
            read.update(ids.tolist())
            return inner(ids, *rest, **named)

        learner.data.fetch = fetch
        fit()
        learner.data.fetch = inner
        self.read.append(read)
        self.left.append(weights(learner.model))


def equal(one, other):
    return one.keys() == other.keys() and all(torch.equal(value, other[name]) for name, value in one.items())


def rpsnet(**settings):
    return RpsNet(**({"modules": 4, "every": 1, "candidates": 3, "capacity": 40} | settings))


def test_the_best_path_by_validation_data_goes_on():
    algorithm, fits, ends = rpsnet(), Fits(), Ends()
    found = ready("branches", benchmark__stages=3, train__epochs=3)
    trained(found, [ends, algorithm, fits])
    assert algorithm.chosen[0] == ((0,), (0,)), "the first path is given"
    for index, stage in enumerate(found.setup.stream.stages):
        tries = [entry for entry in fits.seen if entry[0] == stage.name]
        assert len(tries) == (3 if index else 1)
        scores = [score for _, _, score, _ in tries]
        best = scores.index(max(scores))
        assert equal(ends.left[index], tries[best][3]), "the weights that are left are the best path's"
        paths = {on for _, path, _, _ in tries for on in path}
        assert all(on[0] == 0 for on in paths), "module 0 is always on"
        assert all(algorithm.chosen[index][layer][0] in on for layer, on in enumerate(tries[best][1]))
    assert len({score for _, _, score, _ in fits.seen}) > 3, "paths differ, or this test says nothing"


def test_the_search_reads_training_and_validation_data_only():
    found, ends = ready("branches"), Ends()
    trained(found, [ends, rpsnet()])
    past = set()
    for stage, read in zip(found.setup.stream.stages, ends.read, strict=True):
        allowed = past | set(stage.train.tolist()) | set(stage.validation[0].ids.tolist())
        assert read <= allowed
        validation = set(stage.validation[0].ids.tolist()) if past else set()  # the first path is not searched for
        assert read >= set(stage.train.tolist()) | validation
        past |= set(stage.train.tolist())


def test_a_new_path_comes_every_few_stages():
    algorithm, fits = rpsnet(every=2), Fits()
    trained(ready("branches", benchmark__stages=3, train__epochs=1), [algorithm, fits])
    counts = [sum(entry[0] == f"stage-{stage}" for entry in fits.seen) for stage in (1, 2, 3)]
    assert counts == [1, 1, 3]
    assert len(algorithm.chosen) == 2


def test_modules_of_earlier_paths_stay():
    algorithm, ends = rpsnet(modules=8), Ends()
    learner, _ = trained(ready("branches", benchmark__stages=3), [ends, algorithm])
    after, learned = weights(learner.model), 0
    for stage, path in enumerate(algorithm.chosen):
        for layer, (index,) in enumerate(path):
            names = [name for name in after if name.startswith(f"encoder.layer.{layer}.choices.{index}.")]
            assert names
            assert all(torch.equal(after[name], ends.left[stage][name]) for name in names)
            if stage and all(before[layer] != (index,) for before in algorithm.chosen[:stage]):
                assert not any(torch.equal(after[name], ends.left[stage - 1][name]) for name in names)
                learned += 1
    assert learned
    on = [{path[layer][0] for path in algorithm.chosen} for layer in range(2)]
    assert [set(modules) for modules in learner.model.encoder.path] == on, "all paths are on in the end"


def test_kept_examples_are_part_of_every_later_stage():
    algorithm, ends = rpsnet(capacity=7, candidates=1), Ends()
    found = ready("branches", benchmark__stages=3, train__epochs=1)
    trained(found, [ends, algorithm])
    own = [set(stage.train.tolist()) for stage in found.setup.stream.stages]
    validation = [set(stage.validation[0].ids.tolist()) for stage in found.setup.stream.stages]
    kept = [ends.read[stage] - own[stage] - validation[stage] for stage in range(3)]
    assert [len(ids) for ids in kept] == [0, 7, 7]
    assert kept[1] <= own[0]
    assert (len(kept[2] & own[0]), len(kept[2] & own[1])) == (3, 4)
    assert [len(set(algorithm.memory.ids.tolist()) & ids) for ids in own] == [2, 2, 3]


def test_distillation_weighs_more_with_every_stage_after_the_first_path():
    """Phi of the paper, by its own formula: 1 until J tasks are learned, then gamma (k - J)."""
    algorithm, seen = rpsnet(every=2, growth=10.0, strength=3.0, temperature=2.0, candidates=1), []

    class Weights(Algorithm):
        def learn(self, learner, stage, fit):
            seen.append(algorithm.teacher.strength / 3.0)
            fit()

    trained(ready("branches", benchmark__stages=5, train__epochs=1), [Weights(), algorithm])
    assert seen == [1.0, 1.0, 1.0, 10.0, 20.0]


@pytest.mark.parametrize("stop", [2, 5, 8, 11])
def test_it_resumes_exactly_within_a_search(stop, tmp_path):
    """Fits have 3 steps here: in the one of the first stage, and in each of the second's three, which has a teacher."""
    settings = {"train__epochs": 1}
    whole, _ = trained(ready("branches", **settings), [rpsnet()])
    with pytest.raises(Stopped):
        trained(ready("branches", **settings), [rpsnet()], checkpoints=Checkpoints(tmp_path), watch=StopAt(stop))
    again = rpsnet()
    learner, _ = trained(ready("branches", **settings), [again], checkpoints=Checkpoints(tmp_path))
    assert equal(weights(whole.model), weights(learner.model))
    assert again.teacher.teacher.model.encoder.path == learner.model.encoder.path == whole.model.encoder.path


def test_distillation_begins_with_the_second_session():
    """Without it, the first stage is the same to the bit, and the second is not."""
    left = []
    for strength in (1.0, 0.0):
        ends = Ends()
        trained(ready("branches"), [ends, rpsnet(strength=strength)])
        left.append(ends.left)
    assert equal(left[0][0], left[1][0])
    assert not equal(left[0][1], left[1][1])


@pytest.mark.parametrize(
    "recipe",
    [
        ModularResNet18(start="cifar", channels=2),
        ModularVit(patch=4, width=16, depth=2, heads=2, head_width=8, hidden=16),
    ],
)
def test_it_runs_over_resnet_and_vit(recipe):
    algorithm, ends = rpsnet(modules=3, candidates=2, every=1), Ends()
    learner, _ = trained(ready("branches", recipe, train__epochs=1), [ends, algorithm])
    layers = learner.model.encoder.layers()
    assert {len(layer.choices) for layer in layers} == {3}
    after = weights(learner.model)
    for layer, (index,) in enumerate(algorithm.chosen[0]):
        name = f"encoder.layer.{layer}.choices.{index}."  # frozen: its weights and its running statistics
        kept = {key: value for key, value in ends.left[0].items() if key.startswith(name)}
        assert kept
        assert equal(kept, {key: value for key, value in after.items() if key.startswith(name)})


def test_what_cannot_be_is_refused():
    with pytest.raises(UserError, match="needs a modular network"):
        trained(prepared(), [rpsnet()])
    found = ready("branches")
    stream = replace(found.setup.stream, stages=tuple(replace(s, validation=()) for s in found.setup.stream.stages))
    with pytest.raises(UserError, match="chooses by validation data"):
        rpsnet().check(stream)
