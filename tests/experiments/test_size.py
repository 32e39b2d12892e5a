"""Sizes from the meta device: of every model as it is built, and refused at once where they cannot fit."""

import json
import subprocess
import sys
import time

import pytest
import torch

from cli.inside import inside
from holdfast import registry
from holdfast.errors import UserError
from holdfast.experiments import size
from holdfast.experiments.request import Request
from holdfast.experiments.size import bounded, estimate, parameters_outside, refuse_unbuildable
from holdfast.experiments.store import Store
from holdfast.models.bert import Bert
from processes import environment
from smallest import make_learner, prepare, prepared, run

OURS = [name for name in registry.MODELS if name != "hf"]


@pytest.mark.parametrize("model", ["perceptron", "vit-tiny", "resnet18-tiny", "modular-perceptron"])
def test_the_estimate_is_the_size_of_what_is_built(model):
    ready = prepared(model=model) if model == "perceptron" else prepared(model=model, train__momentum=0.9)
    found = estimate(ready.config, ready.setup)
    built = make_learner(ready).model
    assert found.parameters == sum(parameter.numel() for parameter in built.parameters())
    weights = sum(parameter.nbytes for parameter in built.parameters())
    assert found.memory == 4 * weights, "weights, gradients, and the two moments of AdamW"
    assert found.disk == 2 * 3 * weights + weights


def test_the_moments_of_sgd_are_none_or_one():
    plain, heavy = (prepared(train__optimiser="sgd", train__momentum=value) for value in (0.0, 0.9))
    found = estimate(plain.config, plain.setup)
    weights = 8 * found.parameters
    assert found.memory == 2 * weights
    assert estimate(heavy.config, heavy.setup).memory == 3 * weights


def test_an_estimate_leaves_no_trace_in_random_numbers():
    ready = prepared("finetune", "vit-tiny")
    size._parameters.cache_clear()
    torch.manual_seed(3)
    expected = torch.randn(3)
    torch.manual_seed(3)
    estimate(ready.config, ready.setup)
    assert torch.equal(torch.randn(3), expected)


@pytest.mark.parametrize("model", OURS)
def test_each_model_can_be_measured_without_data(model):
    if "vault" in model:
        pytest.skip("its words come from the hub")
    refuse_unbuildable.cache_clear()
    refuse_unbuildable(registry.MODELS[model].load()())


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("model.depth=1000000000000", "more than 50,000 weight tensors: give it fewer layers"),
        ("model.width=1000000000", "parameters, and there is memory for"),
    ],
)
def test_what_cannot_fit_is_refused_at_once(tmp_path, setting, told):
    began = time.process_time()
    done = inside("run", "patterns", "--set", setting, "--out", "runs", cwd=tmp_path)
    assert done.returncode == 2
    assert told in done.stderr
    assert time.process_time() - began < 20, "about two seconds"


def test_ten_million_layers_in_a_folder_of_weights_are_refused_at_once(tmp_path):
    config = {"model_type": "bert", "hidden_size": 8, "num_attention_heads": 1, "intermediate_size": 8}
    (tmp_path / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 10**7}))
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(UserError, match="more than 50,000 weight tensors"):
        refuse_unbuildable(Bert(weights=str(tmp_path)))


def test_what_fits_in_no_memory_is_refused_before_it_is_built(monkeypatch, tmp_path):
    monkeypatch.setattr(size, "free_memory", lambda: 100_000)
    size._parameters.cache_clear()
    with pytest.raises(UserError, match=r"with gradients and moments they take .* make it smaller"):
        make_learner(prepared(model__width=64))


def test_a_module_of_the_users_is_stopped_while_it_is_built():
    with pytest.raises(UserError, match=r"mine has at least .* memory for 1.0 kB"), bounded(1000, "mine"):
        torch.nn.Linear(20, 20)
    torch.nn.Linear(20, 20)


NET = """
from pathlib import Path
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        with Path(__file__).with_suffix(".built").open("a") as file:
            file.write(".")
        self.first = torch.nn.Linear(144, 8)

    def forward(self, image):
        return torch.relu(self.first(image.flatten(1)))
"""


@pytest.fixture
def outside(tmp_path):
    """A run with a module of the user's."""
    (tmp_path / "net.py").write_text(NET)
    return prepare(Request("patterns", model=f"{tmp_path}/net.py:Net", scale="tiny", precision="float32"))


def test_a_module_of_the_users_is_measured_for_a_dry_run_and_not_for_a_run(outside, tmp_path):
    (tmp_path / "net.built").unlink(missing_ok=True)
    assert estimate(outside.config, outside.setup) is None
    assert not (tmp_path / "net.built").exists()
    found = estimate(outside.config, outside.setup, parameters_outside(outside.config, outside.setup))
    assert found.parameters == 144 * 8 + 8
    assert found.memory == 16 * found.parameters
    assert (tmp_path / "net.built").read_text() == "."


def test_a_module_of_the_users_that_cannot_be_trained_here_is_refused_once_it_is_built(outside, monkeypatch):
    weights = sum(parameter.nbytes for parameter in make_learner(outside).model.parameters())
    monkeypatch.setattr(size, "free_memory", lambda: 4 * weights - weights)  # as it is left once the weights are there
    make_learner(outside)
    monkeypatch.setattr(size, "free_memory", lambda: 4 * weights - weights - 1)
    with pytest.raises(UserError, match=r"with gradients and moments they take .* make it smaller"):
        make_learner(outside)


def test_a_dry_run_knows_the_size_of_a_hugging_face_model(tmp_path):
    import transformers

    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 20}
    built = transformers.BertModel(transformers.BertConfig(vocab_size=30, **sizes))
    built.save_pretrained(tmp_path / "bert")
    (tmp_path / "bert" / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcd"]))
    rows = [f"{'abcd'[n % 4]}\t{'yn'[n % 2]}\t{('train', 'test')[n > 30]}" for n in range(40)]
    (tmp_path / "rows.tsv").write_text("\n".join(["text\tanswer\tsplit", *rows]))
    columns = (
        f"benchmark.{each}" for each in ("text=text", "target=answer", "split=split", "setting=domain", "stages=1")
    )
    words = [word for each in columns for word in ("--set", each)]
    done = inside(
        "run", "table", "--data", "rows.tsv", *words, "--model", "hf:bert", "--dry-run", "--json", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout).values()
    assert found["parameters"] == sum(parameter.numel() for parameter in built.parameters())


def test_a_dry_run_says_what_frozen_layers_may_take_on_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("HOLDFAST_FROZEN_GB", "0.001")
    told = " ".join(inside("run", "patterns", "--scale", "tiny", "--dry-run", cwd=tmp_path).stdout.split())
    assert "the outputs of frozen layers, if a run has any: at most 1.0 MB." in told


def test_a_dry_run_shows_sizes_and_makes_no_run(tmp_path):
    done = inside("run", "patterns", "-a", "er,ewc", "--scale", "tiny", "--dry-run", "--json", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert len(found) == 2
    assert all(each["memory"] == 16 * each["parameters"] for each in found.values())
    assert "parameters" in inside("run", "patterns", "--scale", "tiny", "--dry-run", cwd=tmp_path).stdout
    assert not (tmp_path / "runs").exists()
    made = run(prepared(), Store(tmp_path / "store"))
    assert made.cost["parameters"] == estimate(prepared().config, prepared().setup).parameters


def test_neither_a_worker_nor_measuring_a_model_imports_a_compiler():
    """On the meta device, torch computes many functions in Python, and imports its compiler and sympy to do so."""
    code = (
        "import sys\nimport holdfast.experiments.worker\nfrom holdfast import registry\n"
        "from holdfast.experiments.size import refuse_unbuildable\n"
        f"for name in {[name for name in OURS if 'vault' not in name]}:\n"
        "    refuse_unbuildable(registry.MODELS[name].load()())\n"
        "print([name for name in ('torch._dynamo', 'sympy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_dry_run_refuses_a_model_that_does_not_suit_the_task(tmp_path):
    words = "--setting", "text", "--model", "perceptron", "--scale", "tiny", "--dry-run"
    done = inside("run", "clvqa", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert "PerceptronEncoder writes no text: choose a language model" in done.stderr
