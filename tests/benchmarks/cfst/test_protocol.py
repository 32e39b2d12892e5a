"""The measures of a run, against the paper's tables; the paper's settings, against what can be set."""

import math
import subprocess
import sys

import numpy as np
import pytest

from holdfast import registry
from holdfast.benchmarks.cfst import paper, protocol
from holdfast.papers import table
from holdfast.settings import build
from holdfast.types import Score, Training


def log(continual, tests):
    """A score log of two stages, the second of which is the last."""
    first = [Score(1, 5, f"task-{n}", "test", 10, 0.9) for n in range(1, len(continual) + 1)]
    last = [Score(2, 9, f"task-{n}", "test", 10, value) for n, value in enumerate(continual, 1)]
    aside = [Score(2, 9, "task-1", "validation", 10, 0.123)]
    return first + last + aside + [Score(2, 9, name, "test", 30, value) for name, value in tests.items()]


ROWS = [(number, row) for number in (1, 2, 3, 4, 7) for row in table("cfst", number)]


@pytest.mark.parametrize(
    ("number", "row"), ROWS, ids=lambda value: value if isinstance(value, int) else value["method"]
)
def test_the_harmonic_means_of_every_row_of_the_papers_tables(number, row):
    tests = {mode: row[mode] / 100 for mode in ("sys", "pro", "sub", "non", "noc") if mode in row}
    found = protocol.summary(log([row["acon"] / 100] * 2, tests))
    assert ("Asub" in found) == (number == 1)
    for name in ("Hn", "Hr", "Ha", "Acon"):
        assert 100 * found[name] == pytest.approx(row[name.lower()], abs=0.0151), name


def test_acon_is_the_mean_over_tasks_after_the_last_stage():
    found = protocol.summary(log([0.2, 0.4, 0.9], {"sys": 0.5, "pro": 0.5, "sub": 0.5, "non": 0.5, "noc": 0.5}))
    assert found["Acon"] == pytest.approx(0.5)
    assert set(protocol.MEASURES) <= set(found)
    assert list(protocol.MEASURES) == list(found)[: len(protocol.MEASURES)], "in the order of the paper's columns"


def test_split_cifar100_has_acon_alone():
    assert protocol.summary(log([0.25, 0.75], {})) == {"Acon": 0.5}


def test_intervals_and_related_scores():
    accuracies = np.array([0.5, 0.7, 0.9, 0.9])
    (score, behind), (width, _) = protocol.scored("sys", accuracies, 120, stage=2, step=9)
    assert (score.name, score.score, score.count) == ("sys", pytest.approx(0.75), 120)
    assert width.score == pytest.approx(1.96 * math.sqrt((0.25**2 + 0.05**2 + 2 * 0.15**2) / 3) / 2)
    assert behind is accuracies
    tests = {"pro": 0.6, "non": 0.8, "noc": 0.2, "non(f)": 0.9, "sys(f)": 0.45, "non(o)": 0.5, "sys(o)": 0.5}
    found = protocol.summary([*log([0.5, 0.5], tests), score, width])
    assert found["Asys_interval"] == width.score
    assert found["Acon"] == 0.5, "no test counts as a task"
    assert [found[f"S({name})"] for name in ("sys", "pro", "noc")] == pytest.approx([-0.0625, -0.25, -0.75])
    assert (found["S(f)"], found["S(o)"], found["Asys(f)"]) == (-0.5, 0.0, 0.45)


def test_what_was_not_tested_is_undefined_with_a_reason():
    found = protocol.summary(log([0.5, 0.5], {"sys": 0.5, "pro": 0.5, "non": 0.5}))
    assert math.isnan(found["Anoc"])
    assert "Anoc" in found["Hr"].reason
    assert found["Hn"] == 0.5
    assert "not tested" in found["S(o)"].reason


def test_reports_read_the_measures_without_torch():
    code = "import holdfast.benchmarks.cfst.protocol, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


METHODS = ("joint", "finetune", "replay", "gem", "lwf", "ewc", "rpsnet", "mntdp")


@pytest.mark.parametrize("benchmark", ["cgqa", "cobj", "cpin", "cifar100"])
@pytest.mark.parametrize("model", ["resnet18", "vit", "modular-resnet18", "modular-vit"])
@pytest.mark.parametrize("setting", ["class", "task"])
def test_every_setting_of_a_preset_can_be_set(benchmark, model, setting):
    for method in METHODS:
        preset = paper.preset(benchmark, model, method, setting)
        assert bool(preset) != ((method, setting) in {("rpsnet", "task"), ("mntdp", "class")}), "not in the paper"
        own: dict[str, dict] = {}
        for name, value in preset.items():
            owner, _, field = name.partition(".")
            own.setdefault(owner, {})[field] = value
        build(Training, own.pop("train", {}), "train")
        assert own.keys() <= {method}
        if own:
            build(registry.ALGORITHMS[method].load(), own[method], method)


def test_some_of_the_bold_values():
    assert paper.preset("cgqa", "resnet18", "finetune", "task")["train.learning_rate"] == 8e-3
    assert paper.preset("cgqa", "vit", "gem", "task")["train.learning_rate"] == 1e-5
    ewc = {"ewc.strength": 10.0, "ewc.fisher": "batched", "ewc.half": False, "ewc.share": 1.0}
    assert paper.preset("cobj", "resnet18", "ewc", "class") == {"train.learning_rate": 5.3e-4} | ewc
    assert paper.preset("cobj", "resnet18", "lwf", "class")["lwf.temperature"] == 1.52
    assert paper.preset("cobj", "resnet18", "lwf", "task")["lwf.strength"] == 1.0, "alpha, without T^2"
    assert paper.preset("cobj", "vit", "replay", "class")["replay.capacity"] == 2000
    assert paper.preset("cobj", "modular-resnet18", "rpsnet", "class")["rpsnet.every"] == 1
    assert "rpsnet.every" not in paper.preset("cobj", "modular-resnet18", "rpsnet", "class", 10)
    assert paper.preset("cifar100", "resnet18", "gem", "task")["gem.examples"] == 256
    assert paper.preset("cifar100", "modular-resnet18", "rpsnet", "class") == {
        "train.learning_rate": 1e-3,
        "train.patience": 30,
        "train.schedule": "halving",
        "rpsnet.capacity": 1000,
        "rpsnet.growth": 2.5,
    }
    assert paper.preset("cifar100", "vit", "gem", "task") == paper.preset("cgqa", "vit", "gem", "task")
    assert paper.preset("cgqa", "perceptron", "ewc", "class") == {}
