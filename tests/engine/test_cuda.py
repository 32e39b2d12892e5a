"""On a GPU: `pytest -m slow tests/engine/test_cuda.py` where there is one."""

import pytest
import torch
from torch.testing import assert_close

from holdfast.errors import Stopped
from holdfast.experiments import runner
from holdfast.experiments.store import Store
from smallest import StopAt, prepared

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here"),
]


@pytest.mark.parametrize("name", ["finetune", "replay", "frozen-bottom"])
def test_a_run_on_a_gpu_is_that_on_the_cpu_and_resumes(name, tmp_path):
    settings = {"train__weight_decay": 0.01, "train__schedule": "cosine"}
    stores = {key: Store(tmp_path / key) for key in ("cpu", "whole", "stopped")}
    cpu = runner.run(prepared(name, **settings), stores["cpu"])
    whole = runner.run(prepared(name, **settings), stores["whole"], device="cuda")
    for stop in (3, 5):
        with pytest.raises(Stopped):
            runner.run(prepared(name, **settings), stores["stopped"], device="cuda", watch=StopAt(stop))
    again = runner.run(prepared(name, **settings), stores["stopped"], device="cuda")
    assert cpu.id == whole.id == again.id
    weights = {key: runner.checkpoint.read(store.folder(cpu.id).weights) for key, store in stores.items()}
    for other in ("cpu", "stopped"):
        for key, value in weights["whole"].items():
            assert_close(weights[other][key], value, rtol=0, atol=1e-8)


def test_a_batch_comes_from_tables_on_the_gpu_and_beside_it():
    ready, place = prepared(), torch.device("cuda")
    ids = ready.setup.stream.stages[0].train[[5, 0, 7]]
    there = ready.setup.data.to(place).fetch(ids, place).parts[0]
    moved = ready.setup.data.fetch(ids, place).parts[0]
    assert there.targets.is_cuda
    assert moved.targets.is_cuda
    assert torch.equal(there.inputs["image"], moved.inputs["image"])
    assert torch.equal(there.targets.cpu(), ready.setup.data.targets(ids))


def test_bfloat16_learns(tmp_path):
    from dataclasses import replace

    from holdfast.experiments.config import prepare
    from smallest import request

    asked = replace(request("replay", benchmark__noise=0.1, train__epochs=8, model__width=64), precision="bfloat16")
    record = runner.run(prepare(asked), Store(tmp_path), device="cuda")
    assert record.summary["learning_accuracy"] > 0.6
