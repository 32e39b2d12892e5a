"""A few hundred phrases made by hand, six nouns with two adjectives each, and what regions show of them."""

import numpy as np
import pytest
import torch

from holdfast.benchmarks.synthetic import world
from holdfast.benchmarks.viscoll.phrases import MaskedSpan
from holdfast.benchmarks.viscoll.tasks import Pieces
from holdfast.data.table import Shared
from holdfast.data.text import SPECIAL, Tokenizer
from holdfast.world.whole import MARK

NOUNS = ("dog", "cat", "bus", "bird", "horse", "boat")
ADJECTIVES = {"dog": ("black", "white"), "cat": ("white", "red"), "bus": ("white", "black")}
SHARES = {"dog": 6, "cat": 5, "bus": 4, "bird": 3, "horse": 2, "boat": 1}


def phrase(noun, adjective, split, image, pair=""):
    words = ("a", adjective, noun, "in", "the", "picture")
    return MaskedSpan(image, words, (0, 3), noun, (noun,), (), (adjective,), split, pair, ("DT", "JJ", "NN"))


@pytest.fixture
def unmarked():
    """Lays the world's files into a folder without the mark that they are the world's: they stand for official ones."""

    def laid(name, folder):
        folder.mkdir(exist_ok=True)
        for path in world(name, "tiny").iterdir():
            if path.name != MARK:
                (folder / path.name).symlink_to(path)
        return folder

    return laid


@pytest.fixture(scope="session")
def phrases():
    """Ten times as many to train on as to test with; black cats are seen in no split but the novel one."""
    found = []
    for split, times in (("train", 20), ("validation", 2), ("test", 2)):
        for noun, share in SHARES.items():
            for number in range(times * share):
                adjective = ADJECTIVES.get(noun, ("brown", "blue"))[number % 2]
                found.append(phrase(noun, adjective, split, f"{noun} {adjective}"))
    return [*found, *(phrase("cat", "black", "novel", "cat black", "black cat") for _ in range(9))]


@pytest.fixture(scope="session")
def pieces(phrases):
    return Pieces(Tokenizer((*SPECIAL, *sorted({word for p in phrases for word in p.caption}))))


@pytest.fixture(scope="session")
def regions(phrases):
    """The whole picture and the thing in it, as ones and zeros for its noun and its adjective."""
    images = sorted({p.image for p in phrases})
    words = sorted({word for image in images for word in image.split()})
    values = torch.zeros(len(images), 2, len(words), dtype=torch.float16)
    for row, image in enumerate(images):
        for word in image.split():
            values[row, :, words.index(word)] = 1
    index = torch.tensor(np.searchsorted(images, [p.image for p in phrases]))
    return {
        "regions": Shared(values, index),
        "boxes": Shared(torch.tensor([0.0, 0, 1, 1]).expand(len(images), 2, 4).contiguous(), index),
        "region_count": Shared(torch.full((len(images),), 2), index),
    }
