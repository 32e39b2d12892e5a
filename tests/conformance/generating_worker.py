"""One rank of two: trains a model that writes, with each of some algorithms, into a store. Started by torchrun."""

import sys
from pathlib import Path

import torch

from generating import request
from holdfast.engine.ranks import join, leave
from holdfast.experiments.store import Store
from smallest import prepare, run

if __name__ == "__main__":
    torch.set_num_threads(1)
    _, folder, store, *names = sys.argv
    ranks = join()
    for name in names:
        run(prepare(request(name, Path(folder))), Store(store), ranks=ranks)
    leave()
