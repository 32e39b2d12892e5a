"""Recorded passes without a GPU: in place of a CUDA graph, a trace of every operation, which asks no Python again."""

import warnings
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import _disable_current_modes

from conformance.cases import NAMES
from holdfast.algorithms.replay import Replay
from holdfast.engine import passes
from holdfast.engine.compiled import Compiled, CompiledStepper
from holdfast.engine.learner import Learner
from holdfast.engine.loop import train
from holdfast.engine.passes import RecordedStepper
from holdfast.engine.stepper import Eager, declares
from holdfast.experiments import frozen
from smallest import Scores, make_learner, prepared, trained

pytestmark = pytest.mark.thorough  # trains each algorithm twice

replays = []


def traced(run, pool, stream):
    with torch.random.fork_rng([]):
        graph = make_fx(run)()
        with torch.no_grad(), _disable_current_modes():  # as a graph on a GPU, which no counter sees
            found = tuple(tensor.clone() for tensor in graph())

    @torch.no_grad()
    def replay():
        replays.append(1)
        with _disable_current_modes():
            again = graph()
        for here, new in zip(found, again, strict=True):
            here.copy_(new)

    return found, replay


@pytest.fixture
def recording(monkeypatch):
    """Every learner records, by a trace."""
    replays.clear()
    monkeypatch.setattr(passes, "recorded", traced)
    real = Learner.__init__

    def init(self, *given, **named):
        real(self, *given, **named)
        self.stepper = RecordedStepper(self, self.stepper)
        self.model_changed()

    monkeypatch.setattr(Learner, "__init__", init)


def equal(one, other):
    weights = other.model.state_dict()
    return all(
        torch.allclose(value, weights[name], rtol=0, atol=1e-12) for name, value in one.model.state_dict().items()
    )


@pytest.fixture
def graphs(monkeypatch):
    """Compiled calls with their own graphs: nothing is compiled in this test, but the calls are recorded."""
    made = []
    real = Compiled.__init__

    def init(self, *given, **named):
        real(self, *given, **named)
        if (run := self._run) is not None:
            self._run = lambda *given: (made.append(1) if torch.is_grad_enabled() else None) or run(*given)

    monkeypatch.setattr(torch, "compile", lambda function, **_: function)
    monkeypatch.setattr(Compiled, "__init__", init)
    return made


UNTRAINED = ("ranpac", "simplecil", "slda")
UNRECORDED = ("coda-prompt", "derpp", "er-ace", "icarl", "l2p", "o-lora", "wa", "zscl")
"""They do not declare that their losses are functions of the batch's tensors alone."""


@pytest.mark.parametrize("name", NAMES)
def test_weights_scores_and_counts_are_those_of_single_steps(name, request, monkeypatch):
    """And what is recorded has no graphs of its own: made for a few calls of each fit, they break it on a GPU."""
    monkeypatch.setattr(frozen, "keep", lambda config: None)  # compiled code computes frozen layers in every pass
    expected, scores = trained(prepared(name, train__epochs=4))
    request.getfixturevalue("recording")
    graphs, ready, log = request.getfixturevalue("graphs"), prepared(name, train__epochs=4), Scores()
    found = make_learner(ready, compiled=True)
    train(found, ready.setup.stream, ready.algorithms, ready.setup.protocol, log=log)
    assert equal(found, expected)
    assert log.scores == scores.scores
    assert (found.examples_forward, found.examples_backward) == (expected.examples_forward, expected.examples_backward)
    assert found.counter.total == expected.counter.total
    assert bool(replays) == (name not in UNTRAINED + UNRECORDED)
    assert bool(graphs) == (name in UNRECORDED)
    assert found.stepper.inner.learns == bool(graphs)


def test_gradients_that_someone_keeps_are_not_written_over(recording):
    learner, _ = trained(prepared())
    ids = learner.data.ids(0)
    kept = []
    for start in (0, 8, 16, 24, 32):
        learner.gradients(ids[start : start + 8])
        kept.append([p.grad for p in learner.parameters.values() if p.grad is not None])
    replayed = len(replays)
    again = [gradient.clone() for gradient in kept[3]]
    learner.gradients(ids[40:48])
    assert len(replays) == replayed + 1
    assert all(torch.equal(one, other) for one, other in zip(kept[3], again, strict=True))


def test_a_parameter_elsewhere_in_memory_is_recorded_anew(recording):
    learner, _ = trained(prepared())
    ids = learner.data.ids(0)[:8]
    losses = [learner.gradients(ids) for _ in range(4)]
    for parameter in learner.parameters.values():
        parameter.data = 2 * parameter.data
    moved = learner.gradients(ids)
    learner.stepper = Eager(learner)
    assert torch.allclose(moved, learner.gradients(ids), rtol=0, atol=1e-12)
    assert not torch.allclose(moved, losses[-1])


def failing(run, pool, stream):
    raise RuntimeError("no graph")


def off_by_a_little(which):
    """A graph whose loss (0) or first gradient (1) is wrong by a millionth."""

    def wrong(run, pool, stream):
        found, replay = traced(run, pool, stream)

        def replay_wrongly():
            replay()
            found[which].mul_(1 + 1e-6)

        return found, replay_wrongly

    return wrong


def empty(run, pool, stream):
    """A graph that does nothing, where the numbers of a pass lie already."""
    return tuple(tensor.clone() for tensor in run()), lambda: None


@pytest.mark.parametrize(
    ("recorder", "why"),
    [
        (failing, "no graph"),
        (empty, "the loss or gradients of a recorded pass differ from those of a single pass"),
        (off_by_a_little(0), "the loss or gradients of a recorded pass differ from those of a single pass"),
        (off_by_a_little(1), "the loss or gradients of a recorded pass differ from those of a single pass"),
    ],
)
def test_where_recording_fails_steps_go_on_singly(recorder, why, monkeypatch, recording):
    monkeypatch.setattr(passes, "recorded", recorder)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found, _ = trained(prepared())
    assert [str(each.message) for each in told if "step by step" in str(each.message)] == [
        f"continuing step by step: RuntimeError: {why}"
    ]
    monkeypatch.undo()
    assert equal(found, trained(prepared())[0])


def again(learner, times):
    for _ in range(times):
        learner.gradients(learner.data.ids(0)[:8])


def drawing(learner, draw=torch.nn.functional.dropout):
    """The outputs of a layer go through something random."""
    layer = next(module for module in learner.model.modules() if isinstance(module, torch.nn.Linear))
    real = layer.forward
    layer.forward = lambda x: draw(real(x))
    learner.model_changed()


def test_a_number_that_was_drawn_once_and_for_all_is_found_out(recording):
    """As where the CPU draws for a layer: a recording would keep what it drew."""
    learner, _ = trained(prepared())
    drawing(learner, lambda x: x * torch.default_generator.initial_seed())
    with pytest.warns(UserWarning, match="the loss or gradients of a recorded pass differ"):
        again(learner, 4)


def test_a_loss_that_is_no_number_is_not_compared(recording):
    learner, _ = trained(prepared())
    factors, before = [float("nan")] * 99, len(replays)
    drawing(learner, lambda x: x * (factors.pop() if factors else 1.0))
    again(learner, 3)
    assert len(replays) == before
    factors.clear()
    again(learner, 4)
    assert len(replays) > before


def test_what_hooks_see_is_not_recorded(recording):
    learner, _ = trained(prepared())
    seen = []
    learner.model.encoder.register_forward_hook(lambda module, inputs, output: seen.append(1))
    learner.model_changed()
    again(learner, 6)
    assert len(seen) == 6


@pytest.fixture
def trials(monkeypatch):
    """Not empty while a pass is tried or recorded."""
    within, real = [], RecordedStepper.calling

    @contextmanager
    def calling(self, how):
        with real(self, how):
            within.extend([how] * (how == "whole"))
            try:
                yield
            finally:
                within.clear()

    monkeypatch.setattr(RecordedStepper, "calling", calling)
    return within


def test_a_failed_trial_leaves_buffers_as_they_were(recording, trials):
    learner, _ = trained(prepared())
    learner.model.register_buffer("count", torch.zeros(()))
    real = learner.model.encoder.forward
    failing = []

    def counting(inputs):
        learner.model.count += 1
        if trials:
            failing.append(1)
            raise RuntimeError("not so")
        return real(inputs)

    learner.model.encoder.forward = counting
    learner.model_changed()
    with pytest.warns(UserWarning, match="not so"):
        again(learner, 5)
    assert failing
    assert learner.model.count == 5


def test_beside_graphs_that_learn_nothing_is_recorded(recording, graphs):
    learner, _ = trained(prepared())
    learner.stepper = RecordedStepper(learner, CompiledStepper(learner))
    for _ in range(3):
        learner.forward(learner.fetch(learner.data.ids(0)[:8]))
    assert graphs
    learner.model_changed()
    before = len(replays)
    again(learner, 5)
    assert len(replays) == before


def test_where_an_earlier_pass_is_kept_it_goes_on_step_by_step(recording, trials):
    learner, _ = trained(prepared())
    real = learner.model.encoder.forward

    def kept(inputs):
        if trials:
            warnings.warn("The AccumulateGrad node's stream does not match the stream of ...", stacklevel=1)
        return real(inputs)

    learner.model.encoder.forward = kept
    learner.model_changed()
    before, always = len(replays), torch.is_warn_always_enabled()
    with pytest.warns(UserWarning, match="continuing step by step: .* earlier step is kept with its graph: detach it"):
        again(learner, 5)
    assert len(replays) == before
    assert torch.is_warn_always_enabled() == always


def test_what_is_frozen_within_a_fit_is_recorded_without(recording):
    learner, _ = trained(prepared())
    learner.freeze(learner.model.encoder)
    before = len(replays)
    again(learner, 4)
    assert len(replays) > before
    assert all((p.grad is not None) == p.requires_grad for p in learner.parameters.values())


@dataclass
class Louder(Replay):
    """A loss of its own, over an algorithm that has none."""

    def loss(self, learner, batch, outputs):
        return outputs[0].square().mean() * (2 + len(batch.ids))


def test_an_algorithm_with_another_loss_than_the_one_that_it_is_made_from_is_asked(recording):
    learner, _ = trained(prepared())
    ids, louder = learner.data.ids(0)[:8], Louder()
    assert not declares(louder)
    assert declares(Replay())
    assert not declares(Replay(memory="balanced-forget"))
    first = learner.gradients(ids, [louder])
    for _ in range(4):
        assert torch.equal(learner.gradients(ids, [louder]), first)


def test_a_model_that_draws_is_recorded_and_proved_by_the_same_draws(recording):
    learner, _ = trained(prepared())
    drawing(learner)
    ids, before, losses = learner.data.ids(0)[:8], len(replays), []
    for number in range(5):
        learner.draw_at(number)
        losses.append(float(learner.gradients(ids)))
    assert len(replays) > before
    learner.stepper = Eager(learner)
    for number in range(5):
        learner.draw_at(number)
        assert float(learner.gradients(ids)) == pytest.approx(losses[number], abs=1e-12)
    assert len(set(losses)) == 5
