import math

import numpy as np
import pytest

from holdfast import metrics
from holdfast.errors import UserError
from holdfast.metrics import Undefined

NAN = float("nan")
ON_SCORES = [
    metrics.mean_accuracy,
    metrics.final_accuracy,
    metrics.learning_accuracy,
    metrics.backward_transfer,
    metrics.remembering,
    metrics.forward_transfer,
    metrics.forgetting,
]
NEEDS_TWO_TASKS = [metrics.backward_transfer, metrics.remembering, metrics.forward_transfer, metrics.forgetting]


def _random_scores(tasks: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random((tasks, tasks))


@pytest.mark.parametrize("tasks", [2, 3, 7])
def test_against_the_definitions_as_loops(tasks: int) -> None:
    r = _random_scores(tasks, seed=tasks).tolist()
    n = tasks
    pairs = n * (n - 1) / 2
    lower = sum(r[i][j] for i in range(n) for j in range(n) if i >= j)
    assert metrics.mean_accuracy(r) == pytest.approx(lower / (n * (n + 1) / 2))
    assert metrics.final_accuracy(r) == pytest.approx(sum(r[n - 1]) / n)
    assert metrics.learning_accuracy(r) == pytest.approx(sum(r[j][j] for j in range(n)) / n)
    bwt = sum(r[i][j] - r[j][j] for i in range(1, n) for j in range(i)) / pairs
    assert metrics.backward_transfer(r) == pytest.approx(bwt)
    assert metrics.remembering(r) == pytest.approx(1 - abs(min(bwt, 0)))
    last = sum(r[n - 1][j] - r[j][j] for j in range(n - 1)) / (n - 1)
    assert metrics.backward_transfer(r, final=True) == pytest.approx(last)
    upper = sum(r[i][j] for i in range(n) for j in range(i + 1, n)) / pairs
    assert metrics.forward_transfer(r) == pytest.approx(upper)
    b = [0.1 * j for j in range(n)]
    gain = sum(r[j - 1][j] - b[j] for j in range(1, n)) / (n - 1)
    assert metrics.forward_transfer(r, baseline=b) == pytest.approx(gain)
    drop = sum(max(r[k][j] for k in range(n - 1)) - r[n - 1][j] for j in range(n - 1)) / (n - 1)
    assert metrics.forgetting(r) == pytest.approx(drop)
    a = [0.9 - 0.05 * k for k in range(n)]
    gap = sum(a[k] - r[k][k] for k in range(1, n)) / (n - 1)
    assert metrics.intransigence(r, reference=a) == pytest.approx(gap)


# Greco et al., Wh then yes/no (accuracies of the main paper): what is left after both stages. .81 and .74 are the
# cumulative model's, which on the first task alone is the same model.
NAIVE = [[0.81, NAN], [0.00, 0.61]]


def test_a_published_run_by_hand() -> None:
    assert metrics.mean_accuracy(NAIVE) == pytest.approx(1.42 / 3)
    assert metrics.backward_transfer(NAIVE) == pytest.approx(-0.81)  # with the stray factor N it would be -1.62
    assert metrics.remembering(NAIVE) == pytest.approx(0.19)
    assert metrics.intransigence(NAIVE, [NAN, 0.74]) == pytest.approx(0.13)
    measures = {
        "mean_accuracy": metrics.mean_accuracy(NAIVE),
        "remembering": metrics.remembering(NAIVE),
        "intransigence": metrics.intransigence(NAIVE, [NAN, 0.74]),
    }
    assert metrics.cl_score(measures) == pytest.approx((1.42 / 3 + 0.19 + (1 - 1.13 / 2)) / 3)


def test_remembering_ignores_gains() -> None:
    assert metrics.remembering([[0.5, 0], [0.75, 0.5]]) == 1


def test_what_is_above_the_diagonal_does_not_matter_where_it_should_not() -> None:
    full = _random_scores(4, seed=1)
    sparse = np.where(np.tri(4, dtype=bool), full, NAN)
    for metric in ON_SCORES:
        if metric not in (metrics.forward_transfer, metrics.forgetting):
            assert metric(sparse) == metric(full)
    reference = [0.5] * 4
    assert metrics.intransigence(sparse, reference) == metrics.intransigence(full, reference)
    # Chaudhry's maximum reads earlier stages where they were measured; high values there count.
    assert metrics.forgetting([[0.5, 0.9, 0], [0.5, 0.6, 0], [0.5, 0.4, 1]]) == pytest.approx(0.25)
    assert metrics.forgetting([[0.5, NAN, NAN], [0.5, 0.6, NAN], [0.5, 0.4, 1]]) == pytest.approx(0.1)


@pytest.mark.parametrize("metric", NEEDS_TWO_TASKS)
def test_one_task_is_undefined(metric) -> None:
    result = metric([[0.5]])
    assert isinstance(result, Undefined)
    assert result.reason == f"{metric.__name__.replace('_', ' ')} needs at least two tasks"


def test_one_task_where_it_is_defined() -> None:
    assert isinstance(metrics.backward_transfer([[0.5]], final=True), Undefined)
    assert isinstance(metrics.forward_transfer([[0.5]], baseline=[0.1]), Undefined)
    assert isinstance(metrics.intransigence([[0.5]], [0.5]), Undefined)
    for metric in (metrics.mean_accuracy, metrics.final_accuracy, metrics.learning_accuracy):
        assert metric([[0.5]]) == 0.5


@pytest.mark.parametrize("metric", ON_SCORES)
def test_a_missing_score_that_is_needed_is_named(metric) -> None:
    scores = np.full((3, 3), NAN)
    result = metric(scores)
    assert isinstance(result, Undefined)
    assert "was not measured" in result.reason


def test_the_missing_cell_is_the_one_named() -> None:
    scores = _random_scores(3, seed=0)
    scores[2, 1] = NAN
    result = metrics.backward_transfer(scores)
    assert isinstance(result, Undefined)
    assert result.reason == "scores[2, 1] was not measured"
    assert math.isnan(metrics.forward_transfer(np.tri(3) * np.nan, baseline=[0, NAN, 0]))
    assert math.isnan(metrics.intransigence(np.ones((2, 2)), [1, NAN]))


@pytest.mark.parametrize("metric", ON_SCORES)
@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([], "scores is empty"),
        ([[1, 2]], "scores must be square"),
        ([1, 2], "scores must be a table"),
        ([[1, 2], [3]], "scores must be a table"),
        ([["high"]], "scores must be a table"),
    ],
)
def test_bad_scores_are_refused_by_name(metric, scores, message: str) -> None:
    with pytest.raises(UserError, match=message):
        metric(scores)


def test_bad_vectors_are_refused_by_name() -> None:
    scores = [[1, 0], [0, 1]]
    with pytest.raises(UserError, match="baseline must hold one value for each of the 2 tasks"):
        metrics.forward_transfer(scores, baseline=[1])
    with pytest.raises(UserError, match="reference must hold one value for each of the 2 tasks"):
        metrics.intransigence(scores, [1, 2, 3])
    with pytest.raises(UserError, match="reference is empty"):
        metrics.intransigence(scores, [])


def test_percent_is_refused_where_shares_are_needed() -> None:
    with pytest.raises(UserError, match="percent"):
        metrics.remembering([[80, 0], [40, 60]])
    with pytest.raises(UserError, match="percent"):
        metrics.cl_score({"mean_accuracy": 80})


def test_kinds_of_numbers_agree() -> None:
    scores = [[1, 0], [0, 1]]
    for metric in ON_SCORES:
        assert metric(np.array(scores, dtype=np.float32)) == metric(scores) == metric(np.array(scores))


def test_cl_score_weights() -> None:
    measures = {"mean_accuracy": 0.4, "intransigence": -1.0, "forgetting": 1.0}
    weights = {"forgetting": 0.5, "mean_accuracy": 0.25, "intransigence": 0.25}
    assert metrics.cl_score(measures, weights) == pytest.approx(0.25 * 0.4 + 0.25 * 1 + 0.5 * 0)


def test_cl_score_refuses() -> None:
    with pytest.raises(UserError, match=r"unknown names speed; the known names are mean_accuracy, .*intransigence"):
        metrics.cl_score({"speed": 1})
    with pytest.raises(UserError, match="measures is empty"):
        metrics.cl_score({})
    with pytest.raises(UserError, match="weights must name the same measures: remembering"):
        metrics.cl_score({"remembering": 1}, {"mean_accuracy": 1})
    with pytest.raises(UserError, match="weights must sum to 1"):
        metrics.cl_score({"remembering": 1}, {"remembering": 2})
    with pytest.raises(UserError, match="weights must be at least 0"):
        metrics.cl_score({"remembering": 1, "mean_accuracy": 1}, {"remembering": 2, "mean_accuracy": -1})
    with pytest.raises(UserError, match="intransigence must lie between -1 and 1"):
        metrics.cl_score({"intransigence": -1.5})


def test_cl_score_of_an_undefined_measure_is_undefined() -> None:
    result = metrics.cl_score({"mean_accuracy": 0.5, "remembering": Undefined("one task")})
    assert isinstance(result, Undefined)
    assert result.reason == "remembering is undefined: one task"
