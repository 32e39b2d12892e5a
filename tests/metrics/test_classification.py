import numpy as np
import pytest

from holdfast.errors import UserError
from holdfast.metrics import Undefined, accuracy, confusion, micro_f1, top1


def test_accuracy_of_numbers_and_words() -> None:
    assert accuracy([0, 1, 2], np.array([0, 1, 1], dtype=np.int32)) == pytest.approx(2 / 3)
    assert accuracy(["yes", "no"], ["yes", "yes"]) == 0.5
    assert accuracy(np.array([1.0, 2.0], dtype=np.float32), [1, 2]) == 1
    assert accuracy(["1"], [1]) == 0


def test_accuracy_refuses() -> None:
    with pytest.raises(UserError, match="predictions is empty"):
        accuracy([], [])
    with pytest.raises(UserError, match="predictions and targets must have the same length, not 1 and 2"):
        accuracy([1], [1, 2])
    with pytest.raises(UserError, match="targets must be a flat list"):
        accuracy([1], [[1]])
    with pytest.raises(UserError, match="predictions must be a flat list"):
        accuracy([[1], [1, 2]], [1, 2])


def test_top1_against_a_loop() -> None:
    generator = np.random.default_rng(0)
    logits, targets = generator.normal(size=(60, 4)), generator.integers(4, size=60)
    right = sum(max(range(4), key=lambda c: row[c]) == target for row, target in zip(logits, targets, strict=True))
    assert top1(logits, targets) == right / 60
    assert top1(logits.astype(np.float32), targets.tolist()) == right / 60


def test_top1_edges() -> None:
    assert top1([[1, 1]], [0]) == 1
    assert top1([[1, 1]], [1]) == 0
    assert top1([[np.nan, 1], [0, 1]], [0, 1]) == 0.5
    assert top1([[-np.inf, -1]], [1]) == 1
    with pytest.raises(UserError, match="targets must lie between 0 and 1"):
        top1([[1, 2]], [2])
    with pytest.raises(UserError, match="logits and targets must have the same length"):
        top1([[1, 2]], [0, 1])
    with pytest.raises(UserError, match="logits must be a table"):
        top1([1, 2], [0, 1])
    with pytest.raises(UserError, match="targets is empty"):
        top1([], [])


def test_micro_f1_against_counting() -> None:
    generator = np.random.default_rng(0)
    predicted, targets = generator.integers(2, size=(30, 5)), generator.integers(2, size=(30, 5))
    cells = list(zip(predicted.ravel(), targets.ravel(), strict=True))
    precision = cells.count((1, 1)) / sum(guess for guess, _ in cells)
    recall = cells.count((1, 1)) / sum(truth for _, truth in cells)
    assert micro_f1(predicted, targets) == pytest.approx(2 * precision * recall / (precision + recall))
    assert micro_f1(predicted.astype(bool), targets.astype(np.float32)) == micro_f1(predicted, targets)


def test_micro_f1_edges() -> None:
    assert micro_f1([[0, 0]], [[1, 0]]) == 0
    assert micro_f1([[1, 0]], [[1, 0]]) == 1
    assert isinstance(micro_f1([[0, 0]], [[0, 0]]), Undefined)
    with pytest.raises(UserError, match="predicted must hold only 0 and 1"):
        micro_f1([[0.7]], [[1]])
    with pytest.raises(UserError, match="targets must hold only 0 and 1"):
        micro_f1([[1]], [[np.nan]])
    with pytest.raises(UserError, match="same shape"):
        micro_f1([[1, 0]], [[1]])
    with pytest.raises(UserError, match="predicted is empty"):
        micro_f1([], [])


def test_confusion_against_a_loop() -> None:
    generator = np.random.default_rng(0)
    kinds, categories = ["query_color", "query_shape", "equal_size"], ["color", "yes/no"]
    rows, columns = generator.choice(kinds[:2], size=50).tolist(), generator.choice(categories, size=50).tolist()
    table = confusion(rows, columns, kinds, categories)
    assert table.shape == (3, 2)
    assert np.issubdtype(table.dtype, np.integer)
    for i, kind in enumerate(kinds):
        for j, category in enumerate(categories):
            assert table[i, j] == list(zip(rows, columns, strict=True)).count((kind, category))


def test_confusion_refuses() -> None:
    with pytest.raises(UserError, match="columns contains 'maybe', which is not one of yes, no"):
        confusion(["q"], ["maybe"], ["q"], ["yes", "no"])
    with pytest.raises(UserError, match="rows contains 'q'"):
        confusion(["q"], ["yes"], ["r"], ["yes"])
    with pytest.raises(UserError, match="rows is empty"):
        confusion([], [], ["q"], ["yes"])
    with pytest.raises(UserError, match="rows and columns must have the same length"):
        confusion(["q"], [], ["q"], ["yes"])
    with pytest.raises(UserError, match="names for rows must be distinct"):
        confusion(["q"], ["yes"], ["q", "q"], ["yes"])
    with pytest.raises(UserError, match="must not be empty"):
        confusion(["q"], ["yes"], [], ["yes"])
