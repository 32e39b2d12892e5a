"""Memories that balance the words of phrases, where there are many different phrases of several lengths."""

import numpy as np
import pytest

from holdfast.memory import TargetBalanced


@pytest.mark.parametrize("target", ["sqrt", "forget"])
def test_places_without_a_word_count_for_nothing(target):
    """With more room for words in each row, the same examples are kept, however many phrases there are."""
    random = np.random.default_rng(0)
    lengths = random.integers(1, 4, 300)
    words = np.where(np.arange(3) < lengths[:, None], random.geometric(0.1, (300, 3)), -1)
    roomier = np.pad(words, ((0, 0), (0, 3)), constant_values=-1)
    says = random.integers(0, 300, 2000)
    memories = [TargetBalanced(40, 0, lambda ids: says[ids], target, each) for each in (words, roomier)]
    for start in range(0, len(says), 50):
        for memory in memories:
            memory.observe(np.arange(1, 9), np.linspace(0, 1, 8) * (start + 1))
            memory.add(np.arange(start, start + 50))
    assert len(np.unique(says)) > 256
    assert memories[0].ids.tolist() == memories[1].ids.tolist()
    assert len(memories[0].ids) == 40
