"""One rank of two: trains modules that are not ours into a store. Started by torchrun."""

import sys
from dataclasses import replace

import torch

from holdfast.engine.ranks import join, leave
from holdfast.experiments.store import Store
from holdfast.models.module import of
from models import foreign
from smallest import prepared, run

KINDS = [foreign.Normalised, foreign.Blocks, foreign.convolutional]
SETTINGS = {"train__epochs": 1, "train__batch_size": 79, "train__optimiser": "sgd", "train__learning_rate": 0.1}
"""Not Adam, which would make steps of the noise in the gradient of a bias that normalisation takes away again."""


def ready(kind):
    model = foreign.Blocks(drop=0.0) if kind is foreign.Blocks else kind
    return replace(prepared(model="perceptron", **SETTINGS), recipe=of(model))


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    ranks = join()
    for kind in KINDS:
        found = ready(kind)
        run(found, Store(f"{sys.argv[1]}/{kind.__name__}"), ranks=ranks)
    leave()
