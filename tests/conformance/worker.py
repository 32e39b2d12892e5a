"""One rank of several: runs the cases of a JSON file into a store. Started by torchrun."""

import json
import sys
from pathlib import Path

import torch

import holdfast
from holdfast.engine import ranks as sending
from holdfast.engine.ranks import join, leave
from holdfast.experiments.store import Store
from smallest import prepared, run

if __name__ == "__main__":
    torch.set_num_threads(1)
    sending.BUCKET = 2000  # several buckets even of the smallest model: they are sent while the backward pass goes on
    _, cases, store = sys.argv
    ranks = join()
    for name, settings in json.loads(Path(cases).read_text()):
        run(prepared(name, **settings), Store(store), ranks=ranks)
    if ranks.first:
        (Path(store) / "holdfast").write_text(holdfast.__file__)
    leave()
