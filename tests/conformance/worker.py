"""One rank of several: runs every registered algorithm into a store. Started by torchrun."""

import sys

import torch

from conformance.cases import CASES
from holdfast.engine import ranks as sending
from holdfast.engine.ranks import join, leave
from holdfast.experiments.store import Store
from smallest import prepared, run

if __name__ == "__main__":
    torch.set_num_threads(1)
    sending.BUCKET = 2000  # several buckets even of the smallest model: they are sent while the backward pass goes on
    ranks = join()
    for name, settings in CASES:
        run(prepared(name, **settings), Store(sys.argv[1]), ranks=ranks)
    leave()
