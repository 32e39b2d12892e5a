"""One rank of several: a ResNet, whose rows are normalised together, into a store. Started by torchrun."""

import sys

import torch

from holdfast.engine.ranks import join, leave
from holdfast.experiments.request import Request
from holdfast.experiments.store import Store
from smallest import Ready, prepare, run

QUICK = {"model.channels": 2, "train.epochs": 1, "train.augment": "none", "train.batch_size": 79}
QUICK |= {"replay.capacity": 30, "replay.size": 5}


def asked(setting: str) -> Ready:
    """Replay, so that a batch has rows of several heads, and the last one of a stage fewer than there are ranks."""
    return prepare(Request("patterns", "er", "resnet18-tiny", "tiny", setting, precision="float64", settings=QUICK))


if __name__ == "__main__":
    torch.set_num_threads(1)
    ranks = join()
    for setting in ("class", "task"):
        run(asked(setting), Store(sys.argv[1]), ranks=ranks)
    leave()
