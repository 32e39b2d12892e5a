"""Every algorithm on a model that writes, a tiny random LLaVA: what refuses it is listed, and all others conform."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from conformance.cases import NAMES, or_slow
from generating import llava, request
from holdfast.engine.checkpoint import Checkpoints
from holdfast.errors import Stopped, UserError
from holdfast.experiments.store import Store
from processes import environment
from smallest import StopAt, prepare, run, trained

OF_CLASSES = {"ease", "er-ace", "gdumb", "icarl", "ranpac", "simplecil", "slda", "wa"}
"""These balance classes, or classify by statistics of classes; a text has none."""
OF_OTHERS = {"frozen-encoder", "mntdp", "rpsnet"}
"""Nothing learns without heads; and these need modular networks."""
FIRST = ["finetune", "lora", "o-lora", "adapters", "ewc", "lwf", "replay", "agem", "ties"]
OTHERS = [name for name in NAMES if name not in {*FIRST, *OF_CLASSES, *OF_OTHERS}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return llava(tmp_path_factory.mktemp("conformance") / "llava")


def ready(name, folder):
    return prepare(request(name, folder))


@pytest.mark.thorough
@pytest.mark.parametrize("name", or_slow(FIRST, OTHERS))
def test_resumes_exactly(name, folder, tmp_path):
    whole, log = trained(ready(name, folder))
    for stop in (2, 4):
        place = tmp_path / str(stop)
        with pytest.raises(Stopped):
            trained(ready(name, folder), checkpoints=Checkpoints(place), watch=StopAt(stop))
        again, scores = trained(ready(name, folder), checkpoints=Checkpoints(place))
        for key, value in whole.model.state_dict().items():
            assert torch.equal(value, again.model.state_dict()[key]), key
        assert scores.scores[-1] == log.scores[-1]


@pytest.mark.parametrize("name", sorted(OF_CLASSES | OF_OTHERS))
def test_says_why_it_refuses_texts(name, folder):
    with pytest.raises(UserError):
        trained(ready(name, folder))


@pytest.fixture(scope="module")
def two_ranks(request, folder, tmp_path_factory) -> Path:
    """The store of all algorithms that were asked for, each trained by two processes over gloo."""
    here = [each for each in request.session.items if getattr(each, "module", None) is request.module]
    asked = [each.callspec.params for each in here if "two_ranks" in each.fixturenames]
    names, out = [each["name"] for each in asked], tmp_path_factory.mktemp("two-ranks")
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    words = [*launcher, Path(__file__).with_name("generating_worker.py"), folder, out, *names]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return out


@pytest.mark.thorough
@pytest.mark.parametrize("name", or_slow(FIRST, OTHERS))
def test_two_ranks_give_the_weights_and_scores_of_one(name, folder, two_ranks, tmp_path):
    found = ready(name, folder)
    record = run(found, Store(tmp_path))
    both = Store(two_ranks).folder(found.config.id)
    one, two = load_file(tmp_path / record.id / "model.safetensors"), load_file(both.weights)
    assert one.keys() == two.keys()
    for key, value in one.items():
        assert torch.allclose(value.double(), two[key].double(), rtol=0, atol=1e-10), key
    other = both.record()
    assert other.environment["ranks"] == 2
    assert other.scores == record.scores
