"""`bench frozen`: both ways of training end with the same model."""

import torch

from holdfast.bench.frozen import CASES, frozen


def test_each_row_has_its_bar_and_the_same_outputs(monkeypatch):
    monkeypatch.setattr("holdfast.bench.frozen.EPOCHS", 2)
    found = {each.case: each for each in frozen(64, 1, torch.device("cpu"))}
    assert {case: each.limit for case, each in found.items()} == {case: limit for case, (_, limit) in CASES.items()}
    assert [each.limit for each in found.values()] == [5.0, 2.2]
    assert all(each.difference < 1e-4 and min(each.anew, each.once, each.again) > 0 for each in found.values())
