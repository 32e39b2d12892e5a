"""Compiled calls on the CPU with the `eager` backend, which traces as any other does and takes no minutes."""

import warnings

import pytest
import torch

from holdfast.engine import compiled
from holdfast.engine.compiled import Compiled
from holdfast.models.perceptron import Perceptron
from holdfast.types import Head, Inputs


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
    assert [str(w.message) for w in told] == ["goes on without compiling: RuntimeError: no such kernel"]
    assert all(p.grad is not None for p in model.encoder.parameters())


def test_an_error_of_the_model_itself_stays_an_error(model):
    call = Compiled(model)
    with pytest.raises(KeyError):
        call({"text": torch.zeros(1)}, "a")
