"""The adapter library: which set answers, against a brute-force choice, and that earlier sets stay."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from algorithms.test_adapters import answers
from holdfast.algorithms.adapter_library import SHRINK, AdapterLibrary, seen
from holdfast.algorithms.base import Algorithm
from holdfast.data.table import Data
from holdfast.engine.checkpoint import Checkpoints
from holdfast.errors import Stopped
from smallest import StopAt, prepared, trained


def apart(**settings):
    """Three stages that an encoder tells apart without learning: each brighter than the last."""
    ready = prepared("adapter-library", benchmark__stages=3, train__weight_decay=0.1, **settings)
    tables = [
        replace(
            t, inputs={"image": t.inputs["image"] // 4 + (70 * (t.targets // 2))[:, None, None, None].to(torch.uint8)}
        )
        for t in ready.setup.data.tables
    ]
    return replace(ready, setup=replace(ready.setup, data=Data(tables)))


class Answers(Algorithm):
    """What the run answers for these examples after each stage, as an evaluation asks, and its weights."""

    def __init__(self, ids):
        self.ids, self.kept, self.weights = ids, [], []

    def end(self, learner, stage):
        self.kept.append(answers(learner, self.ids))
        self.weights.append({name: value.clone() for name, value in learner.model.state_dict().items()})


def held_out(ready):
    return [chosen.ids for chosen in ready.setup.protocol.evaluations if chosen.split == "test"]


def inputs_of(learner, ids):
    (part,) = learner.data.fetch(ids, learner.device).parts
    return part.inputs


@torch.no_grad()
def nearest(learner, stages, ids):
    """The stage with the nearest mean for each example, by the covariance within stages, one by one."""
    learner.model.eval()
    rows = [seen(learner.model, inputs_of(learner, stage.train)) for stage in stages]
    covariance = sum((r - r.mean(0)).T @ (r - r.mean(0)) for r in rows) / (sum(map(len, rows)) - len(rows))
    shrunk = torch.where(torch.eye(len(covariance), dtype=torch.bool), covariance, (1 - SHRINK) * covariance)
    found = []
    for row in seen(learner.model, inputs_of(learner, ids)):
        gaps = [row - r.mean(0) for r in rows]
        found.append(min(range(len(gaps)), key=lambda k: (gaps[k] @ torch.linalg.solve(shrunk, gaps[k])).item()))
    learner.train_mode()
    return torch.tensor(found)


@pytest.fixture(scope="module")
def library():
    ready = apart()
    kept = Answers(held_out(ready)[0])
    learner, _ = trained(ready, [*ready.algorithms, kept])
    return ready, learner, kept


def test_each_example_is_answered_by_the_set_of_its_stage(library):
    ready, learner, _ = library
    model = learner.model
    for stage, ids in enumerate(held_out(ready)):
        chosen = nearest(learner, ready.setup.stream.stages, ids)
        assert (chosen == stage).double().mean() > 0.95
        found, inputs = answers(learner, ids), inputs_of(learner, ids)
        model.eval()
        for number in range(3):
            before, model.active = model.active, f"library-{number}"
            model.switch("")
            head = model.library[f"library-{number}"]["patterns"]
            with torch.no_grad():
                expected = head(model.encoder, inputs)
            model.active = before
            torch.testing.assert_close(found[chosen == number], expected[chosen == number])


def test_an_example_alone_is_answered_as_in_a_batch(library):
    ready, learner, _ = library
    ids = held_out(ready)[1][:3]
    together = answers(learner, ids)
    for row in range(3):
        torch.testing.assert_close(answers(learner, ids[row : row + 1]), together[row : row + 1])


def test_what_is_seen_of_an_example_is_the_mean_over_its_images():
    model = SimpleNamespace(bare=lambda inputs: torch.tensor([[[1.0, 2.0], [3.0, 6.0]]]))
    assert seen(model, {}).tolist() == [[2.0, 4.0]]


def test_earlier_stages_are_answered_the_same_to_the_last_bit(library):
    ready, learner, kept = library
    first = held_out(ready)[0]
    own = nearest(learner, ready.setup.stream.stages, first) == 0
    assert own.double().mean() > 0.95
    for later in (*kept.kept[1:], answers(learner, first)):
        assert torch.equal(kept.kept[0][own], later[own])


def test_only_the_newest_set_and_the_heads_learn(library):
    _, learner, kept = library
    for name in learner.trainable():
        assert ".added.library-2." in name or name.startswith("heads."), name
    after = learner.model.state_dict()
    for name, value in kept.weights[0].items():
        same = torch.equal(value, after[name])
        assert same != name.startswith("heads."), name


def test_the_set_that_learned_stays_switched_on(library):
    """What others do at the end of a stage, Fisher information say, is about it."""
    ready, learner, _ = library
    answers(learner, held_out(ready)[0])
    assert learner.model.active == "library-2"


@pytest.mark.parametrize("stop", [7, 13])
def test_it_resumes_exactly_with_the_same_choice(stop, tmp_path, library):
    ready, whole, _ = library
    with pytest.raises(Stopped):
        trained(apart(), checkpoints=Checkpoints(tmp_path), watch=StopAt(stop))
    again, _ = trained(apart(), checkpoints=Checkpoints(tmp_path))
    for ids in held_out(ready):
        assert torch.equal(answers(again, ids), answers(whole, ids))


def test_few_examples_can_describe_a_stage():
    ready = apart()
    algorithm = AdapterLibrary(count=6)
    trained(ready, [algorithm])
    assert algorithm.described == 3 * 6


def test_its_adapters_are_as_narrow_and_as_bent_as_asked():
    ready = prepared("adapter-library", **{"adapter-library__reduction": 4, "adapter-library__activation": "relu"})
    learner, _ = trained(ready)
    blocks = learner.model.encoder.blocks()
    width = learner.model.encoder.width
    for block in blocks:
        for added in block.added.values():
            for adapter in added.values():
                assert adapter.down.weight.shape == (width // 4, width)
                values = torch.linspace(-1, 1, 5, dtype=torch.float64)
                assert torch.equal(adapter.activation(values), values.clamp(min=0))
