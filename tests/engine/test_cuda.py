"""On a GPU: `pytest -m slow tests/engine/test_cuda.py` where there is one."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from conformance.cases import NAMES
from engine.test_passes import UNRECORDED, UNTRAINED
from holdfast import registry
from holdfast.bench import models as speed
from holdfast.data.table import Data, Table
from holdfast.engine import passes
from holdfast.engine.learner import Learner
from holdfast.engine.loop import train
from holdfast.errors import Stopped
from holdfast.experiments import frozen, runner
from holdfast.experiments.store import Store
from holdfast.types import Inputs, Training
from smallest import Scores, StopAt, make_learner, prepare, prepared, request, run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # torch's compiler imports what torch is giving up
    pytest.mark.filterwarnings("ignore:The CUDA Graph is empty"),  # of a part of a compiled model without kernels
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here"),
]


@pytest.mark.parametrize("name", ["finetune", "replay", "frozen-bottom"])
def test_a_run_on_a_gpu_is_that_on_the_cpu_and_resumes(name, tmp_path):
    settings = {"train__weight_decay": 0.01, "train__schedule": "cosine"}
    stores = {key: Store(tmp_path / key) for key in ("cpu", "whole", "stopped")}
    cpu = run(prepared(name, **settings), stores["cpu"])
    whole = run(prepared(name, **settings), stores["whole"], device="cuda")
    for stop in (3, 5):
        with pytest.raises(Stopped):
            run(prepared(name, **settings), stores["stopped"], device="cuda", watch=StopAt(stop))
    again = run(prepared(name, **settings), stores["stopped"], device="cuda")
    assert cpu.id == whole.id == again.id
    weights = {key: runner.checkpoint.read(store.folder(cpu.id).weights) for key, store in stores.items()}
    for other in ("cpu", "stopped"):
        for key, value in weights["whole"].items():
            assert_close(weights[other][key], value, rtol=0, atol=1e-8)


def test_a_batch_comes_from_tables_on_the_gpu_and_beside_it():
    ready, place = prepared(), torch.device("cuda")
    ids = ready.setup.stream.stages[0].train[[5, 0, 7]]
    there = ready.setup.data.to(place).fetch(ids, place).parts[0]
    moved = ready.setup.data.fetch(ids, place).parts[0]
    assert there.targets.is_cuda
    assert moved.targets.is_cuda
    assert torch.equal(there.inputs["image"], moved.inputs["image"])
    assert torch.equal(there.targets.cpu(), ready.setup.data.targets(ids))


def test_bfloat16_learns(tmp_path):
    asked = replace(request("replay", benchmark__noise=0.1, train__epochs=8, model__width=64), precision="bfloat16")
    record = run(prepare(asked), Store(tmp_path), device="cuda")
    assert record.summary["learning_accuracy"] > 0.6


def record(learner):
    """Record the passes of a learner that does not compile: the very kernels of single passes."""
    learner.stepper = passes.RecordedStepper(learner, learner.stepper)
    learner.model_changed()


def learned(ready, *, compiled=False, recorded=False):
    learner = make_learner(ready, torch.device("cuda"), compiled=compiled)
    assert isinstance(learner.stepper, passes.RecordedStepper) == compiled
    if recorded:
        record(learner)
    train(learner, ready.setup.stream, ready.algorithms, ready.setup.protocol, log=Scores())
    return learner


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_run_is_that_of_single_passes_to_the_bit(name, monkeypatch):
    # A compiled run keeps no outputs of frozen layers: computed for 64 examples at once, their last bits may differ.
    monkeypatch.setattr(frozen, "keep", lambda config: None)
    made, real = [], passes.recorded
    monkeypatch.setattr(passes, "recorded", lambda *given: made.append(1) or real(*given))
    expected = learned(prepared(name, train__epochs=4))
    found = learned(prepared(name, train__epochs=4), recorded=True)
    assert bool(made) == (name not in UNTRAINED + UNRECORDED)
    assert found.examples_forward == expected.examples_forward
    for key, value in expected.model.state_dict().items():
        assert torch.equal(found.model.state_dict()[key], value), key


@pytest.mark.parametrize("name", ["finetune", "replay", "agem", "mir", "ewc", "lwf"])
def test_compiled_and_recorded_it_is_the_eager_run(name):
    """In float64: all that differs is the order of sums."""
    ready = prepared(name, train__epochs=4)
    expected, found = learned(ready), learned(ready, compiled=True)
    assert found.stepper._known
    for key, value in expected.model.state_dict().items():
        assert_close(found.model.state_dict()[key], value, rtol=0, atol=1e-9)


PAIR = Inputs(image=(3, 64, 64), text=24, vocabulary=3000)
REGIONS = Inputs(text=24, vocabulary=3000, regions=(10, 128))
IMAGE = Inputs(image=(3, 64, 64))
SEEN = {"vilt-tiny": PAIR, "vault-tiny": PAIR, "uniter-tiny": REGIONS, "vlbert-tiny": REGIONS}
SEEN |= {
    "lxmert-tiny": REGIONS,
    "bert-tiny": Inputs(text=24, vocabulary=3000),
    "resnet18-tiny": IMAGE,
    "vit-tiny": IMAGE,
}
SEEN |= {"modular-resnet18": IMAGE, "perceptron": IMAGE}


@pytest.fixture
def deterministic(monkeypatch):
    """Convolutions that add in one order: in eight steps, a network with batch normalisation makes much of rounding."""
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)


@pytest.mark.usefixtures("deterministic")
@pytest.mark.parametrize("precision", [None, torch.bfloat16])
@pytest.mark.parametrize("name", SEEN)
def test_every_model_is_recorded_with_its_dropout(name, precision):
    case = speed.ModelCase(name, name, 32, SEEN[name], phrase=name.startswith(("vlbert", "lxmert")))
    columns, targets, task = speed._made(case)
    data, found = Data([Table(task.name, columns, targets)]).to(torch.device("cuda")), []
    for recorded in (False, True):
        torch.manual_seed(0)
        recipe = registry.MODELS[name].load()()
        if hasattr(recipe, "dropout"):
            recipe = replace(recipe, dropout=0.1)
        model = recipe.build(case.inputs, {"speed": task.reads})
        learner = Learner(model, data, {"speed": task}, device="cuda", autocast=precision)
        learner.restart(Training(learning_rate=1e-3), 100)
        learner.train_mode()
        if recorded:
            record(learner)
        losses = []
        for step in range(8):
            learner.draw_at(step)
            losses.append(float(learner.gradients(np.arange(32 * step, 32 * step + 32))))
            learner.step(step)
        found.append((losses, learner))
    assert found[1][1].stepper._known
    # Not to the bit: some kernels add in any order. Other draws would show in the second digit.
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-4 if precision is None else 2e-3)
    assert len(set(found[0][0])) == 8
    for (key, one), other in zip(found[0][1].model.named_buffers(), found[1][1].model.buffers(), strict=True):
        assert_close(one, other, rtol=1e-2, atol=1e-2, msg=key)  # running statistics move once a step


def draw_in(learner):
    """A layer with dropout."""
    layers = learner.model.encoder.hidden
    layers[0] = torch.nn.Sequential(layers[0], torch.nn.Dropout(0.5))
    learner.restart(Training(), 100)
    learner.train_mode()


@pytest.mark.usefixtures("deterministic")
@pytest.mark.parametrize("name", ["vlbert-tiny", "vilt-tiny", "resnet18-tiny", "modular-resnet18"])
def test_compiled_and_recorded_in_bfloat16(name):
    """As a user has it for speed; beside it, compiled, but not recorded."""
    case = speed.ModelCase(name, name, 32, SEEN[name], phrase=name.startswith("vlbert"))
    columns, targets, task = speed._made(case)
    data, found = Data([Table(task.name, columns, targets)]).to(torch.device("cuda")), []
    for recorded in (False, True):
        torch.manual_seed(0)
        model = registry.MODELS[name].load()().build(case.inputs, {"speed": task.reads})
        learner = Learner(model, data, {"speed": task}, device="cuda", autocast=torch.bfloat16, compiled=True)
        assert isinstance(learner.stepper, passes.RecordedStepper)
        if not recorded:
            learner.stepper = learner.stepper.inner
        learner.restart(Training(learning_rate=1e-3), 100)
        learner.train_mode()
        losses = []
        for step in range(12):
            learner.draw_at(step)
            losses.append(float(learner.gradients(np.arange(32 * step, 32 * step + 32))))
            learner.step(step)
        found.append(losses)
        assert not recorded or learner.stepper._known
    assert found[0] == pytest.approx(found[1], rel=2e-2)


def test_a_recorded_pass_draws_anew_each_time_and_the_same_by_its_seed():
    ready = prepared(train__epochs=1)
    learner = make_learner(ready, torch.device("cuda"), compiled=True)
    draw_in(learner)
    ids, seen = ready.setup.stream.stages[0].train[:32], []
    for number in (0, 1, 2, 3, 4, 3, 4, 5):
        learner.draw_at(number)
        seen.append(float(learner.gradients(ids)))
    assert learner.stepper._known
    assert seen[3:5] == seen[5:7], "by the seed alone"
    assert len(set(seen[3:5] + seen[7:])) == 3, "and otherwise another"


def test_what_waits_for_the_device_cannot_be_recorded_and_goes_on(monkeypatch):
    ready = prepared()
    expected = learned(ready)
    real = Learner.__init__

    def waiting(self, model, *given, **named):
        forward = model.encoder.forward

        def wait(inputs):
            output = forward(inputs)
            return output * float(output.detach()[0, 0] * 0 + 1)

        model.encoder.forward = wait
        real(self, model, *given, **named)

    monkeypatch.setattr(Learner, "__init__", waiting)
    with pytest.warns(UserWarning, match="continuing step by step"):
        found = learned(ready, recorded=True)
    assert not found.stepper._known
    torch.rand(1, device="cuda")  # the generator, the memory and recording are as they were
    torch.cuda.empty_cache()
    monkeypatch.undo()
    assert learned(ready, recorded=True).stepper._known
    for key, value in expected.model.state_dict().items():
        assert_close(found.model.state_dict()[key], value, rtol=0, atol=1e-9)
