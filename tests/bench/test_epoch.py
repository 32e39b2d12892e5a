import torch

from holdfast.bench.epoch import FORMS, epochs


def test_an_epoch_is_timed_beside_the_barest_loop():
    (found,) = epochs(torch.device("cpu"), images=200, side=8, only="float32")
    assert found.form in FORMS
    assert found.seconds > 0
    assert found.bare > 0
