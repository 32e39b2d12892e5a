import math
import statistics

import numpy as np
import pytest

from holdfast.errors import UserError
from holdfast.metrics import Undefined, composition_scores, confidence_interval, harmonic_mean, related_score

NAN = float("nan")


def test_harmonic_mean_against_the_standard_library() -> None:
    values = np.random.default_rng(0).random(20).tolist()
    assert harmonic_mean(values) == pytest.approx(statistics.harmonic_mean(values))
    assert harmonic_mean(np.array([1, 4, 4], dtype=np.float32)) == 2
    assert harmonic_mean([5]) == 5


def test_harmonic_mean_edges() -> None:
    assert harmonic_mean([0, 0]) == 0
    assert harmonic_mean([1e-320, 1e-320]) == pytest.approx(1e-320)
    assert math.isnan(harmonic_mean([1, NAN]))
    with pytest.raises(UserError, match="values must be at least 0"):
        harmonic_mean([1, -1])
    with pytest.raises(UserError, match="values is empty"):
        harmonic_mean([])


# CFST, supplement, Tables 1 (CGQA), 2 (COBJ, 3-way) and 7 (CPIN): sys, pro, sub, non, noc, then Hn, Hr, Ha as printed.
ROWS = [
    (64.73, 65.43, 61.26, 68.54, 40.32, 63.75, 50.77, 57.84),
    (59.80, 60.26, 59.75, 64.22, 45.09, 59.94, 52.98, 56.95),
    (47.27, 47.41, 47.50, 52.28, 32.29, 47.39, 39.93, 44.09),
    (72.70, 67.11, None, 83.38, 57.52, 69.79, 68.08, 68.93),
    (48.97, 42.06, None, 52.33, 15.56, 45.25, 23.99, 31.35),
]


@pytest.mark.parametrize("row", ROWS)
def test_published_rows(row) -> None:
    sys, pro, sub, non, noc, *printed = row
    scores = composition_scores(con=10, sys=sys, pro=pro, sub=sub, non=non, noc=noc)
    assert [scores["Hn"], scores["Hr"], scores["Ha"]] == pytest.approx(printed, abs=0.011)


def test_names_come_in_the_order_of_the_tables() -> None:
    row = composition_scores(con=1, sys=1, pro=1, sub=1, non=1, noc=1)
    assert list(row) == ["Acon", "Asys", "Apro", "Asub", "Hn", "Anon", "Anoc", "Hr", "Ha"]
    assert "Asub" not in composition_scores(con=1, sys=1, pro=1, non=1, noc=1)


def test_a_missing_test_leaves_the_other_means() -> None:
    row = composition_scores(con=1, sys=NAN, pro=1, non=1, noc=0)
    assert row["Hr"] == 0
    assert isinstance(row["Hn"], Undefined)
    assert row["Hn"].reason == "Asys is undefined: sys is not a finite number"
    assert math.isnan(row["Ha"])


def test_related_score() -> None:
    assert related_score(70, 70) == 0
    assert related_score(90, 60) == pytest.approx(0.5)
    assert related_score(0, 60) == -1
    assert isinstance(related_score(0.5, 0), Undefined)
    assert isinstance(related_score(NAN, 0.5), Undefined)
    with pytest.raises(UserError, match="novel and non_novel must be at least 0"):
        related_score(0.5, -0.1)
    with pytest.raises(UserError, match="novel must be one number"):
        related_score([1, 2], 0.5)


def test_confidence_interval_against_the_standard_library() -> None:
    values = np.random.default_rng(0).normal(70, 6, size=300).tolist()
    assert confidence_interval(values) == pytest.approx(1.96 * statistics.stdev(values) / math.sqrt(300))
    assert confidence_interval([3, 3, 3]) == 0
    assert isinstance(confidence_interval([1]), Undefined)
    assert isinstance(confidence_interval([1, NAN]), Undefined)
    with pytest.raises(UserError, match="values is empty"):
        confidence_interval([])
