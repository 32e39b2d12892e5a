"""A run that diverged fails, and says at which stage, rate and strengths: it reports no score."""

from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch

import holdfast
from holdfast.algorithms.base import Algorithm
from holdfast.engine.evaluate import evaluate
from holdfast.engine.health import LARGEST, weight_norm
from holdfast.errors import RunError
from holdfast.experiments.store import Store
from smallest import Scores, make_learner, prepared, run, trained

SGD = {"train__optimiser": "sgd"}


def test_a_loss_that_is_no_number_stops_the_run_and_says_what_to_try():
    rate = r"lower the learning rate, 1e\+300 \(--set train.learning_rate=1e\+299\)$"
    with pytest.raises(RunError, match=rf"the loss became (nan|inf) in stage 'stage-1', by step 3: {rate}"):
        trained(prepared(**SGD, train__learning_rate=1e300))


@pytest.mark.parametrize("patience", [{}, {"train__patience": 3}])
def test_weights_that_explode_under_a_finite_loss_are_no_result(tmp_path, patience):
    """The penalty is no part of the reported loss, which stays finite while it throws the weights out."""
    ready = prepared("si", si__strength=1e6, **SGD, train__learning_rate=0.05, **patience)
    with pytest.raises(
        RunError, match=r"the norm of the weights became .*e\+.* 'stage-2', .*0\.05.*, or si\.strength, 1e\+06"
    ):
        run(ready, Store(tmp_path))
    folder = Store(tmp_path).folder(ready.config.id)
    assert not (folder.path / "record.json").exists()
    assert "si.strength" in (folder.path / "failure.txt").read_text(encoding="utf-8")


def test_ewc_at_strength_100_diverges_with_sgd_and_the_error_names_both(tmp_path):
    settings = {"ewc.strength": 100, "train.optimiser": "sgd", "train.learning_rate": 0.05, "train.epochs": 5}
    with pytest.raises(RunError, match=r"the (norm of the weights|loss) became .*, 0\.05 .*, or ewc\.strength, 100$"):
        holdfast.run("patterns", "ewc", settings=settings, out=tmp_path)


@dataclass
class Blast(Algorithm):
    """A user's own: it multiplies a weight after a number of steps."""

    strengths: ClassVar[tuple[str, ...]] = ("force", "nothing")
    force: float = 1e9
    nothing: float = 0.0
    left: int = 3

    def after(self, learner, batch):
        self.left -= 1
        if self.left == 0:
            next(iter(learner.parameters.values())).data.flatten()[0] = self.force


def test_an_algorithm_names_its_own_strengths():
    log = Scores()
    with pytest.raises(RunError, match=r"became 1e\+09 in stage 'stage-1', .* or Blast\.force, 1e\+09$"):
        trained(prepared(), [Blast()], log=log)
    assert {score.stage for score in log.scores} == {0}, "those before the first stage"
    trained(prepared(), [Blast(force=0.9 * LARGEST)])


@dataclass
class Poison(Algorithm):
    """What is no parameter becomes no number."""

    value: float

    def end(self, learner, stage):
        learner.model.heads["patterns"].register_forward_hook(lambda *given: given[2] + self.value)


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_outputs_that_are_no_numbers_are_not_scored(value):
    log = Scores()
    with pytest.raises(RunError, match=r"outputs on 'stage-1' became NaN or infinite in stage 'stage-1', by step 6"):
        trained(prepared(), [Poison(value)], log=log)
    assert {score.stage for score in log.scores} == {0}


def test_a_class_that_cannot_be_may_have_an_infinitely_low_output_and_ranks_agree():
    ready = prepared()
    learner, gathered = make_learner(ready), []
    Poison(-torch.inf).end(learner, ready.setup.stream.stages[0])
    assert evaluate(learner, ready.setup.protocol.evaluations[0]).finite

    def gather(own, total):
        gathered.append(own)
        return own | (own.dtype == torch.bool)  # another rank's were broken

    learner.ranks.gather_rows = gather
    assert not evaluate(learner, ready.setup.protocol.evaluations[0]).finite
    assert [own.any().item() for own in gathered if own.dtype == torch.bool] == [False]


def test_the_weight_norm_is_found_whatever_the_types():
    learner = make_learner(prepared())
    learner.parameters = {
        "a": torch.nn.Parameter(torch.tensor([2.0, -3.0])),
        "b": torch.nn.Parameter(torch.full((3,), -2.0, dtype=torch.float64)),
        "c": torch.nn.Parameter(torch.empty(0)),
    }
    assert weight_norm(learner) == pytest.approx(5.0)
    learner.parameters["b"].data[1] = torch.nan
    assert not weight_norm(learner) < LARGEST
    learner.parameters = {}
    assert weight_norm(learner) == 0
