"""The benchmark of writing at its smallest size: the same model on both sides, and rates of both."""

import torch

from holdfast.bench.generate import SIZES, generate


def test_measures_training_and_writing_of_both_models():
    found = generate(torch.device("cpu"), repeats=1, size=SIZES["tiny"])
    assert [each.case for each in found] == [
        "llama, training",
        "llama, writing",
        "prefix-lm, training",
        "prefix-lm, writing",
    ]
    assert all(each.theirs > 0 and each.ours > 0 and each.ratio == each.ours / each.theirs for each in found)
