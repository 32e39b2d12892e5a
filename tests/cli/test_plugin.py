"""`examples/plugin`, installed as a user would install it, and used as anything built in is."""

import importlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from cli.inside import inside
from holdfast import registry
from holdfast.experiments.request import Request
from processes import environment
from smallest import prepare

ROOT = Path(__file__).parents[2]
SMALL = {"benchmark.count": 20, "train.epochs": 1}
WORDS = [f"--set={name}={value}" for name, value in SMALL.items()]
KINDS = {
    "benchmark": "dots",
    "algorithm": "stay-near",
    "model": "dots-net",
    "dataset": "dots",
    "memory": "newest",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder that the package is installed into, without a network."""
    folder = tmp_path_factory.mktemp("plugin")
    shutil.copytree(ROOT / "examples" / "plugin", folder / "source")
    words = (
        "install --quiet --no-deps --no-build-isolation --no-index --disable-pip-version-check --no-compile --target"
    )
    pip = [sys.executable, "-m", "pip", *words.split(), str(folder / "site"), str(folder / "source")]
    subprocess.run(pip, check=True, timeout=120)
    return folder / "site"


@pytest.fixture
def installed(site, monkeypatch):
    """The same, importable in this process."""
    monkeypatch.syspath_prepend(site)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # an edit in the same second would not be seen
    forget()
    yield site
    forget()


def forget():
    for name in [name for name in sys.modules if name.partition(".")[0] == "dots"]:
        del sys.modules[name]
    importlib.invalidate_caches()
    registry._announced.cache_clear()


def command(*words, cwd, site=None):
    """A command in a process of its own, with the package or without it."""
    given = environment()
    if site is not None:
        given["PYTHONPATH"] += f":{site}"
    line = [sys.executable, "-m", "holdfast", *words]
    return subprocess.run(line, env=given, cwd=cwd, capture_output=True, text=True, timeout=200)


@pytest.fixture(scope="module")
def store(site, tmp_path_factory):
    """Runs of everything that the package announces, by two workers."""
    folder = tmp_path_factory.mktemp("runs")
    names = ["dots", "--algorithm", "stay-near,replay", "--set", "replay.memory=newest", *WORDS]
    done = command("run", *names, "-j", "2", cwd=folder, site=site)
    assert done.returncode == 0, done.stderr
    assert "found ↑   lost since learned ↓" in done.stdout
    assert len(list(folder.glob("runs/*/record.json"))) == 2
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_each_thing_is_found_by_its_name_and_says_where_it_comes_from(installed, kind):
    assert registry.find(KINDS[kind], kind).origin == "package dots 1.0"
    assert registry.find(KINDS[kind], kind).load() is not None
    assert registry.entries(kind)[KINDS[kind]].origin == "package dots 1.0"


def test_the_command_that_a_record_prints_finds_the_run_again(store, site):
    records = [json.loads(path.read_text()) for path in store.glob("runs/*/record.json")]
    again = records[0]["environment"]["command"].split()[1:]
    before = {path: path.stat().st_mtime_ns for path in store.glob("runs/*/record.json")}
    assert command(*again, cwd=store, site=site).returncode == 0
    assert {path: path.stat().st_mtime_ns for path in store.glob("runs/*/record.json")} == before


def test_a_plan_file_and_python_make_the_same_runs(store, installed, monkeypatch):
    lines = ['benchmarks = ["dots"]', 'models = ["dots-net"]', 'algorithms = ["stay-near", "replay"]']
    own = [*(f'"{name}" = {value}' for name, value in SMALL.items()), '"replay.memory" = "newest"']
    (store / "plan.toml").write_text("\n".join(["[[experiment]]", *lines, "[experiment.set]", *own]))
    before = set(store.glob("runs/*"))
    done = inside("plan", "plan.toml", "-j", "1", cwd=store)
    assert done.returncode == 0, done.stderr
    record = holdfast.run("dots", "stay-near", settings=SMALL, out=store / "runs", model="dots-net")
    assert {path.name for path in store.glob("runs/*")} - {path.name for path in before} == set()
    assert record.id in {path.name for path in before}
    assert record.measures["found"] == {"title": "found", "higher": True, "mean_of": ["*"]}


def test_a_store_is_shown_where_the_package_is_not_installed(store):
    tables = inside("compare", cwd=store)
    assert "found ↑" in tables.stdout
    assert "lost since learned ↓" in tables.stdout
    run = next(store.glob("runs/*")).name
    assert "dots" in inside("list", "runs", cwd=store).stdout
    assert inside("show", run, cwd=store).returncode == 0
    assert inside("report", "runs", "--out", "pages", cwd=store).returncode == 0
    assert "lost since learned" in (store / "pages" / "index.html").read_text()
    assert "unknown benchmark 'dots'" in inside("run", "dots", cwd=store).stderr


def test_settings_are_tuned_by_its_measures(store, installed):
    words = ["--algorithm", "stay-near", "--grid", "stay-near.strength=0.01,1", *WORDS]
    done = inside("tune", "dots", *words, "--by", "found", "-j", "1", cwd=store)
    assert "stay-near.strength" in done.stdout, done.stderr
    assert "did you mean found" in inside("tune", "dots", *words, "--by", "fond", cwd=store).stderr


def test_its_dataset_is_checked_and_its_benchmark_shown(installed, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "dots.version").write_text("1")
    for split in ("train", "test"):
        (tmp_path / "data" / f"{split}.txt").write_text(f"{'0' * 35}f 5 5\n{'f' * 36} 0 3\n")
    found = json.loads(inside("data", "check", "data", "--json", cwd=tmp_path).stdout)
    assert [(each["dataset"], each["examples"]) for each in found] == [("dots", 2), ("dots", 2)]
    (tmp_path / "data" / "test.txt").write_text("0 5 5\n")
    assert "it is not 36 shades" in inside("data", "check", "data", "--as", "dots", cwd=tmp_path).stderr
    assert inside("data", "show", "dots", "data", "--out", "one.png", cwd=tmp_path).returncode == 0
    assert inside("data", "show", "dots", "--out", "two.png", cwd=tmp_path).returncode == 0


READS = """
from dataclasses import dataclass
from holdfast.benchmarks.patterns.benchmark import Patterns

@dataclass(frozen=True)
class Reads(Patterns):
    def reads(self):
        return ("dots",)
"""


@pytest.mark.parametrize("edited", ["algorithm", "model", "benchmark", "task", "memory", "dataset"])
def test_an_edit_of_any_of_its_files_is_a_new_run(installed, tmp_path, edited):
    (tmp_path / "own.py").write_text(READS)
    words = {
        "algorithm": ("patterns", "stay-near", "perceptron"),
        "model": ("patterns", "finetune", "dots-net"),
        "benchmark": ("dots", "finetune", "perceptron"),
        "task": ("dots", "finetune", "perceptron"),
        "memory": ("patterns", "replay", "perceptron"),
        "dataset": (f"{tmp_path}/own.py:Reads", "finetune", "perceptron"),
    }[edited]
    settings = {"replay.memory": "newest"} if edited == "memory" else {}

    def run():
        forget()
        request = Request(*words, settings=settings)
        return prepare(request).config.id

    path = installed / "dots" / f"{edited}.py"
    text, first = path.read_text(), run()
    try:
        assert run() == first
        path.write_text(f"{text}\nMORE = 1\n")
        assert run() != first
    finally:
        path.write_text(text)
    assert run() == first
