"""What is frozen is computed once, and a run with it is the run without."""

import os
from dataclasses import replace

import numpy as np
import pytest
import torch

import holdfast
import smallest
from holdfast.algorithms.base import Algorithm
from holdfast.algorithms.frozen import FrozenBottom, FrozenEncoder
from holdfast.data import decoding, text
from holdfast.engine.checkpoint import Checkpoints
from holdfast.engine.once import BLOCK, MARKS, Keep
from holdfast.errors import Stopped, UserError
from holdfast.experiments import frozen
from holdfast.experiments.runner import find_device
from holdfast.experiments.store import Store
from holdfast.models.transformer import TransformerBlock

VIT = {**smallest.TRANSFORMER, "benchmark.stages": 2, "train.epochs": 3, "train.batch_size": 32}
VIT = {name.replace(".", "__"): value for name, value in VIT.items()}


@pytest.fixture(scope="module")
def ready():
    return smallest.prepared(model="vit-tiny", **VIT)


def trained(ready, algorithms, folder, monkeypatch=None, keep=None, **named):
    """A trained learner and its scores; with a folder, what is frozen is kept there."""
    keep = keep or (None if folder is None else Keep("test", lambda name, title, size: folder / name))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frozen, "keep", lambda config: keep)
        learner, log = smallest.trained(ready, algorithms, **named)
        return learner, log.scores


def tables(folder):
    return [each for each in folder.iterdir() if (each / MARKS).exists()]


def same(one, other):
    """Both runs have the same scores and weights, but for rounding."""
    (learner, scores), (without, expected) = one, other
    assert [(s.name, s.split) for s in scores] == [(s.name, s.split) for s in expected]
    np.testing.assert_allclose([s.score for s in scores], [s.score for s in expected], atol=1e-6)
    for name, value in learner.model.state_dict().items():
        torch.testing.assert_close(value, without.model.state_dict()[name], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("algorithm", [FrozenEncoder(), FrozenBottom(k=1)])
def test_scores_and_weights_are_those_without_it(ready, tmp_path, algorithm):
    with_tables = trained(ready, [algorithm], tmp_path)
    same(with_tables, trained(ready, [algorithm], None))
    assert tables(tmp_path)
    title = {"FrozenEncoder": "the encoder", "FrozenBottom": "1 of 2 layers"}[type(algorithm).__name__]
    assert list(with_tables[0].once.noted) == [f"{title} computed once"]


def test_each_example_is_computed_once(ready, tmp_path, monkeypatch):
    passes, plain = [], TransformerBlock.forward

    def counted(block, x, *rest, **named):
        if block is block.first:
            passes.append(len(x))
        return plain(block, x, *rest, **named)

    class Counts(Algorithm):
        def setup(self, learner):
            first = learner.model.encoder.layers()[0]
            monkeypatch.setattr(TransformerBlock, "first", first, raising=False)
            monkeypatch.setattr(TransformerBlock, "forward", counted)

    learner, _ = trained(ready, [FrozenEncoder(), Counts()], tmp_path)
    blocks = sum(np.count_nonzero(np.fromfile(each / MARKS, "u8")) for each in tables(tmp_path))
    assert 0 < sum(passes) <= blocks * BLOCK + 60 * len(tables(tmp_path))  # the rest are the rows of the proofs
    passes.clear()
    again, _ = trained(ready, [FrozenEncoder(), Counts()], tmp_path)
    assert sum(passes) <= 60 * len(tables(tmp_path)), "another run reads what is there"
    assert learner.examples_forward > 0
    assert again.counter.total == learner.counter.total, "whoever computed it, each run pays once"
    without, _ = trained(ready, [FrozenEncoder()], None)
    assert learner.counter.total < without.counter.total


def test_weights_that_an_algorithm_changes_between_stages_count(ready, tmp_path):
    class Disturbs(Algorithm):
        def end(self, learner, stage):
            for parameter in learner.model.encoder.parameters():
                parameter.data.mul_(1.1)  # no version counter sees this

    same(trained(ready, [FrozenEncoder(), Disturbs()], tmp_path), trained(ready, [FrozenEncoder(), Disturbs()], None))


class Sharper(Algorithm):
    """What it changes is no tensor that a module has registered."""

    def __init__(self, change):
        self.change = change

    def setup(self, learner):
        self.change(learner.model.encoder)


def other_epsilon(encoder):
    for module in encoder.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = 0.3


def other_module(encoder):
    norms = [
        (m, name) for m in encoder.modules() for name, n in m.named_children() if isinstance(n, torch.nn.LayerNorm)
    ]
    assert norms
    for module, name in norms:
        setattr(module, name, torch.nn.Tanh())


def other_forward(encoder):
    forward = encoder.forward
    encoder.forward = lambda inputs: 2 * forward(inputs)


def hook(encoder):
    encoder.layers()[0].register_forward_hook(lambda module, inputs, output: 2 * output)


@pytest.mark.parametrize("change", [other_epsilon, other_module, other_forward, hook])
def test_what_an_algorithm_changes_beside_the_weights_counts(ready, tmp_path, change):
    trained(ready, [FrozenEncoder()], tmp_path)  # its tables are there
    algorithms = [FrozenEncoder(), Sharper(change)]
    same(trained(ready, algorithms, tmp_path), trained(ready, algorithms, None))


class Projects(torch.nn.Module):
    """Its weights are always the same, and the run's seed draws a tensor that it has not registered."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(144, 8)
        torch.nn.init.eye_(self.layer.weight)
        torch.nn.init.zeros_(self.layer.bias)
        self.projection = torch.randn(8, 8)

    def forward(self, image):
        return self.layer(image.flatten(1)) @ self.projection.to(image.dtype)


def test_tensors_that_a_module_has_not_registered_count(tmp_path, monkeypatch):
    monkeypatch.setenv("HOLDFAST_CACHE", str(tmp_path / "cache"))
    small = {"benchmark.stages": 2, "train.epochs": 4}

    def losses(limit):
        monkeypatch.setenv(frozen.LIMIT, limit)
        given = {"model": Projects, "seeds": [0, 1], "scale": "tiny", "predictions": True, "settings": small}
        runs = holdfast.run("patterns", "frozen-encoder", out=tmp_path / limit, **given)
        return [[score.score for score in run.scores] for run in runs]

    with_tables = losses("1")
    assert tables(tmp_path / "cache" / "frozen")
    assert with_tables == losses("0")


@pytest.mark.parametrize("module", [decoding, text])
def test_versions_of_what_reads_the_data_count(ready, module, monkeypatch):
    before = frozen.keep(ready.config)
    monkeypatch.setattr(module, "VERSION", 99)
    assert frozen.keep(ready.config).key != before.key
    task = frozen.keep(replace(ready.config, further={"task Classify": 99}))
    assert (task.key, task.settings) != (before.key, before.settings)


def test_orders_of_stages_share_tables_and_other_pictures_do_not(tmp_path, monkeypatch):
    monkeypatch.setenv("HOLDFAST_CACHE", str(tmp_path))
    given = {"data": "", "settings": {"benchmark.reader": "cifar100", "train.epochs": 2, "train.augment": "none"}}
    counts = []
    for change in ({"order": "random-1"}, {"order": "random-2"}, {"side": 16}):
        settings = given["settings"] | {f"benchmark.{name}": value for name, value in change.items()}
        holdfast.run("dataset", "frozen-encoder", out=tmp_path / "runs", settings=settings, model="resnet18-tiny")
        counts.append(len(tables(tmp_path / "frozen")))
    assert counts == [1, 1, 2]


@pytest.mark.parametrize("file", ["0", MARKS])
def test_damage_is_computed_anew(ready, tmp_path, file):
    expected = trained(ready, [FrozenEncoder()], tmp_path)
    for each in tables(tmp_path):
        content = bytearray((each / file).read_bytes())
        content[3] ^= 1
        content[-2] ^= 1
        (each / file).write_bytes(content)
    found = trained(ready, [FrozenEncoder()], tmp_path)
    assert all(
        torch.equal(value, found[0].model.state_dict()[name]) for name, value in expected[0].model.state_dict().items()
    )
    for each in tables(tmp_path):
        os.truncate(each / file, 5)
    found = trained(ready, [FrozenEncoder()], tmp_path)
    assert all(
        torch.equal(value, found[0].model.state_dict()[name]) for name, value in expected[0].model.state_dict().items()
    )


def test_a_stopped_run_ends_with_the_same_bits(ready, tmp_path):
    whole, scores = trained(ready, [FrozenBottom(k=1)], tmp_path / "a")
    steps = 5
    checkpoints, log = Checkpoints(tmp_path / "c", every_steps=None, every_seconds=None), smallest.Scores()
    with pytest.raises(Stopped):
        trained(
            ready, [FrozenBottom(k=1)], tmp_path / "b", checkpoints=checkpoints, watch=smallest.StopAt(steps), log=log
        )
    resumed, again = trained(ready, [FrozenBottom(k=1)], tmp_path / "d", checkpoints=checkpoints, log=log)
    assert [s.score for s in again] == [s.score for s in scores]
    assert all(torch.equal(value, whole.model.state_dict()[name]) for name, value in resumed.model.state_dict().items())


def test_augmented_images_are_computed_at_every_step(ready, tmp_path, caplog):
    augmented = smallest.prepared(model="vit-tiny", **VIT, train__augment="flip")
    learner, _ = trained(augmented, [FrozenEncoder()], tmp_path)
    assert "images are augmented (train.augment=flip)" in caplog.text
    assert caplog.text.count("augmented") == 1
    assert any("augmented" in note for note in learner.once.noted)


def test_without_room_it_is_computed_as_before(ready, tmp_path, caplog):
    keep = Keep("test", lambda name, title, size: None)
    same(trained(ready, [FrozenEncoder()], None, keep=keep), trained(ready, [FrozenEncoder()], None))
    assert "which do not fit in the cache" in caplog.text


def test_a_folder_that_cannot_be_written_is_no_error(ready, tmp_path, caplog):
    (tmp_path / "file").write_text("")
    keep = Keep("test", lambda name, title, size: tmp_path / "file" / name)
    same(trained(ready, [FrozenEncoder()], None, keep=keep), trained(ready, [FrozenEncoder()], None))
    assert "Not a directory" in caplog.text


def test_a_run_notes_it_and_its_limit_makes_room(tmp_path, monkeypatch):
    monkeypatch.setenv("HOLDFAST_CACHE", str(tmp_path / "cache"))
    own = smallest.prepared("frozen-encoder", model="vit-tiny", **VIT)
    record = smallest.run(own, Store(tmp_path / "store"))
    assert record.environment["frozen"] == ["the encoder computed once"]
    kept = tables(tmp_path / "cache" / "frozen")
    assert kept
    used = sum(path.stat().st_size for each in kept for path in each.iterdir())
    monkeypatch.setenv(frozen.LIMIT, str(used * 1.5 / 1e9))
    other = smallest.prepare(replace(smallest.request("frozen-encoder", "vit-tiny", **VIT), seed=1))
    smallest.run(other, Store(tmp_path / "store"))
    left = tables(tmp_path / "cache" / "frozen")
    assert left
    assert {each.name for each in left} != {each.name for each in kept}
    assert sum(path.stat().st_size for each in left for path in each.iterdir()) <= used * 1.5
    monkeypatch.setenv(frozen.LIMIT, "0")
    assert smallest.make_learner(own, find_device("cpu")).once is None
    monkeypatch.setenv(frozen.LIMIT, "much")
    with pytest.raises(UserError, match="HOLDFAST_FROZEN_GB is 'much'"):
        smallest.make_learner(own)
