"""Compiled calls on the CPU with the `eager` backend, which traces as any other does and takes no minutes."""

import warnings

import pytest
import torch

from holdfast.algorithms.lwf import LwF
from holdfast.engine import compiled
from holdfast.engine.compiled import Calling, Compiled, CompiledStepper
from holdfast.engine.loop import train
from holdfast.engine.watch import NoLog
from holdfast.models.modular import ModularPerceptron
from holdfast.models.perceptron import Perceptron
from holdfast.types import Head, Inputs
from smallest import make_learner, prepared, trained


@pytest.fixture
def model(monkeypatch):
    real = torch.compile
    monkeypatch.setattr(compiled.torch, "compile", lambda f, **_: real(f, backend="eager", dynamic=False))
    torch.manual_seed(0)
    return Perceptron(width=8, depth=1).build(Inputs((1, 4, 4)), {"a": Head("classify", 3), "b": Head("classify", 2)})


def image(rows: int) -> dict[str, torch.Tensor]:
    draw = torch.Generator().manual_seed(rows)
    return {"image": torch.randint(256, (rows, 1, 4, 4), dtype=torch.uint8, generator=draw)}


def test_outputs_and_gradients_equal_the_models_own(model):
    call = Compiled(model)
    for rows, head in [(4, "a"), (5, "b"), (4, "a"), (4, "a"), (4, "a"), (5, "b"), (5, "b"), (3, "a")]:
        expected = model(image(rows), head)
        found = call(image(rows), head)
        assert torch.equal(found, expected)
        weights = [p for p in model.parameters() if p.requires_grad]
        pairs = [torch.autograd.grad(out.square().sum(), weights, allow_unused=True) for out in (found, expected)]
        for one, other in zip(*pairs, strict=True):
            assert (one is None and other is None) or torch.allclose(one, other, atol=1e-7)


def test_only_what_comes_often_is_compiled(model):
    call = Compiled(model)
    runs = []
    whole = call._run
    call._run = lambda *given: runs.append(len(given[0]["image"])) or whole(*given)
    for rows in (4, 4, 3, 4, 4, 3):
        call(image(rows), "a")
    assert set(runs) == {4}
    model.eval()
    with torch.no_grad():
        for _ in range(5):
            call(image(3), "a")
    assert set(runs) == {4}


def test_what_will_be_recorded_is_called_as_it_is_and_not_counted(model):
    mode, runs = Calling(), []
    call = Compiled(model, mode)
    whole = call._run
    call._run = lambda *given: runs.append(1) or whole(*given)
    with mode.within("as it is"):
        for _ in range(5):
            call(image(4), "a")
    for _ in range(2):
        call(image(4), "a")
    assert not runs
    assert not call.learns
    call(image(4), "a")
    assert runs
    assert call.learns


def test_scores_have_graphs_that_do_not_learn(model):
    call = Compiled(model, often=1)
    with torch.no_grad():
        call(image(4), "a")
    assert not call.learns


def test_a_network_of_modules_runs_as_it_is(monkeypatch):
    """Else each path through it would be compiled, and an algorithm that tries paths would wait for that."""
    monkeypatch.setattr(compiled.torch, "compile", lambda *given, **named: pytest.fail("compiled"))
    model = ModularPerceptron(width=8, depth=1).build(Inputs((1, 4, 4)), {"a": Head("classify", 3)})
    mode = Calling()
    call = Compiled(model, mode)
    for _ in range(5):
        assert torch.equal(call(image(4), "a"), model(image(4), "a"))
    with mode.within("whole"):
        assert torch.equal(call(image(4), "a"), model(image(4), "a"))


def test_draws_no_random_numbers_of_its_own(model):
    model.heads["a"] = torch.nn.Identity()
    model.plain = lambda inputs, head: torch.nn.functional.dropout(inputs["image"].float(), 0.5)
    call = Compiled(model)
    torch.manual_seed(3)
    expected = [model.plain(image(4), "a") for _ in range(6)]
    torch.manual_seed(3)
    for value in expected:
        assert torch.equal(call(image(4), "a"), value)


@pytest.mark.parametrize("where", ["forward", "backward"])
def test_goes_on_without_compiling_where_that_fails(model, where):
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            return x.clone()

        @staticmethod
        def backward(context, gradient):
            raise RuntimeError("no such kernel")

    def broken(inputs, head):
        if where == "forward":
            raise RuntimeError("no such kernel")
        return Fails.apply(model.plain(inputs, head))

    call = Compiled(model)
    call._run = broken
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(5):
            call(image(4), "a").sum().backward()
    assert [str(w.message) for w in told] == ["continuing without compiling: RuntimeError: no such kernel"]
    assert all(p.grad is not None for p in model.encoder.parameters())


def test_an_error_of_the_model_itself_stays_an_error(model):
    call = Compiled(model)
    with pytest.raises(KeyError):
        call({"text": torch.zeros(1)}, "a")


def test_each_batch_of_a_score_is_a_step_of_its_own(model, monkeypatch):
    """Else the graph of each batch would follow that of the one before, and be recorded anew."""
    call, marks = Compiled(model, often=1), []
    monkeypatch.setattr(call, "step_done", lambda: marks.append(1))
    model.eval()
    with torch.no_grad():
        call(image(4), "a")
    assert not marks, "within a step, as MIR asks"
    with torch.inference_mode():
        for _ in range(3):
            call(image(4), "a")
    assert len(marks) == 3


def test_a_teacher_is_compiled_beside_its_pupil_and_stays(monkeypatch):
    real = torch.compile
    monkeypatch.setattr(compiled.torch, "compile", lambda f, **_: real(f, backend="eager", dynamic=False))
    plain, ready = prepared("lwf", benchmark__stages=3), prepared("lwf", benchmark__stages=3)
    expected, _ = trained(plain)
    learner = make_learner(ready)
    learner.stepper = CompiledStepper(learner)
    teachers = []
    end = LwF.end
    monkeypatch.setattr(
        LwF, "end", lambda self, *rest: end(self, *rest) or teachers.append((self.teacher.model, self.teacher._ask))
    )
    train(learner, ready.setup.stream, ready.algorithms, ready.setup.protocol, log=NoLog())
    assert len({id(teacher) for teacher, _ in teachers}) == 1
    assert isinstance(teachers[-1][1], Compiled)
    for one, other in zip(learner.model.parameters(), expected.model.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


def test_a_compiled_run_frees_what_an_earlier_one_left(monkeypatch):
    resets = []
    monkeypatch.setattr(compiled.torch, "compile", lambda function, **_: function)
    monkeypatch.setattr(torch._dynamo, "reset", lambda: resets.append(1))
    make_learner(prepared(), compiled=True)
    assert len(resets) == 1
    make_learner(prepared())
    assert len(resets) == 1
