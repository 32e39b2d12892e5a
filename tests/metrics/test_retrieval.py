"""Recall at K against a plain loop."""

import numpy as np
import pytest

from holdfast.errors import UserError
from holdfast.metrics import retrieval


def test_recalls_are_those_of_a_plain_loop(monkeypatch):
    monkeypatch.setattr(retrieval, "_ROWS", 7)
    random = np.random.default_rng(0)
    images = random.standard_normal((23, 4))
    texts = images[:, None] + random.standard_normal((23, 3, 4))
    by_image, by_text = {1: 0, 5: 0, 10: 0}, {1: 0, 5: 0, 10: 0}
    for own, image in enumerate(images):
        order = sorted(
            ((float(image @ text), which) for which, some in enumerate(texts) for text in some), reverse=True
        )
        for k in by_image:
            by_image[k] += own in [which for _, which in order[:k]]
    for own, some in enumerate(texts):
        for text in some:
            order = sorted(((float(text @ image), which) for which, image in enumerate(images)), reverse=True)
            for k in by_text:
                by_text[k] += own in [which for _, which in order[:k]]
    expected = {f"text R@{k}": n / 23 for k, n in by_image.items()} | {
        f"image R@{k}": n / 69 for k, n in by_text.items()
    }
    assert retrieval.recalls(images, texts) == pytest.approx(expected)


def test_vectors_that_are_all_alike_find_nothing():
    assert set(retrieval.recalls(np.ones((20, 2)), np.ones((20, 5, 2))).values()) == {0.0}


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(UserError, match="give \\(images, width\\)"):
        retrieval.recalls(np.ones((3, 2)), np.ones((4, 1, 2)))
