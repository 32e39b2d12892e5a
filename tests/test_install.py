"""What a user installs: the core runs every benchmark, and what it does not bring is asked for by the right extra."""

import ast
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
from PIL import Image

import holdfast
from holdfast import registry

ROOT = Path(__file__).parents[1]
SOURCE = Path(holdfast.__file__).parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
BROUGHT = {"markupsafe": "jinja2"}
"""Packages that come with one of ours, as a part of its interface."""
BY_USER = {"spacy", "stanza"}
"""Taggers that a user may have installed with models of their own."""


def packages(requirements: list[str]) -> set[str]:
    """The names of packages, as the index writes them."""
    return {re.match(r"[\w.-]+", each)[0].lower().replace("_", "-") for each in requirements}


def imported(path: Path) -> set[tuple[str, bool]]:
    """The packages of others that a file imports, and whether it does so where they may be absent."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    guarded = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.Try) and any("ImportError" in ast.dump(each) for each in node.handlers)
        for inner in ast.walk(node)
    }
    typing = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for inner in ast.walk(node)
    }
    found = set()
    for node in ast.walk(tree):
        if node in typing:
            continue
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
        found |= {(name.partition(".")[0], node in guarded) for name in names}
    return {each for each in found if each[0] not in {*sys.stdlib_module_names, "holdfast", *BY_USER}}


def test_what_is_imported_without_care_comes_with_the_core():
    core = packages(PROJECT["dependencies"])
    homes = importlib.metadata.packages_distributions()
    found = {path: imported(path) for path in SOURCE.rglob("*.py")}
    assert ("tokenizers", False) in found[SOURCE / "data/text.py"]
    assert ("pandas", True) in found[SOURCE / "reports/runs.py"]
    for path, names in found.items():
        for name, guarded in names:
            homes_of = {home.lower().replace("_", "-") for home in [BROUGHT.get(name, name), *homes.get(name, ())]}
            assert guarded or (name, True) in names or homes_of & core, f"{path} imports {name}"


def test_every_extra_that_a_message_names_exists_and_is_quoted():
    named = {
        extra
        for path in [*SOURCE.rglob("*.py"), *ROOT.glob("docs/*.md"), ROOT / "README.md"]
        for extra in re.findall(r"missing_extra\([^)]*\"(\w+)\"\)|holdfast\[(\w+)\]", path.read_text(encoding="utf-8"))
        for extra in extra
        if extra and extra != "{extra}"
    }
    assert {"pictures", "hub", "ray", "pandas", "tensorboard"} <= named <= set(EXTRAS)
    for path in [*SOURCE.rglob("*.py"), *ROOT.glob("docs/*.md"), ROOT / "README.md"]:
        for line in path.read_text(encoding="utf-8").splitlines():
            if "holdfast[" in line:
                assert re.search(r'"holdfast\[[\w{}]+\]"', line), f"{path}: {line.strip()}"


def test_all_is_every_extra_but_the_developers():
    (everything,) = EXTRAS["all"]
    unlicensed = {"efficientnet"}  # weights whose page states no licence: only for those who ask for them
    assert set(re.findall(r"\w+", everything)) - {"holdfast"} == set(EXTRAS) - {"all", "dev"} - unlicensed
    assert "urls" not in PROJECT


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A fresh environment with the built wheel, and nothing but what the core brings."""
    folder = tmp_path_factory.mktemp("install")
    began = time.monotonic()
    call("python", sys.executable, "-m", "venv", folder / "venv", cwd=folder)
    python = folder / "venv/bin/python"
    pip = (python, "-m", "pip", "--disable-pip-version-check")
    call("wheel", *pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT, cwd=folder)
    (wheel,) = folder.glob("holdfast-*.whl")
    pinned = ("--constraint", ROOT / "constraints.txt")
    call("install", *pip, "install", "--quiet", "--no-compile", *pinned, wheel, cwd=folder)
    size = sum(path.lstat().st_size for path in (folder / "venv").rglob("*") if not path.is_dir())
    print(f"\nthe core takes {time.monotonic() - began:.0f} s to install, and {size / 1e6:.0f} MB")
    found = json.loads(call("list", *pip, "list", "--format", "json", cwd=folder).stdout)
    extras = {package for name, wanted in EXTRAS.items() if name not in ("all", "dev") for package in packages(wanted)}
    extras -= {"huggingface-hub"}  # tokenizers brings it
    assert not packages([each["name"] for each in found]) & extras
    return folder


def call(what, *words, cwd, check=True):
    """A command outside the repository, with nothing of the tests' environment but what pip is configured by."""
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "HTTP", "http"))}
    own = {"PATH": "/usr/bin:/bin", "HOME": os.environ.get("HOME", "/"), "HOLDFAST_CACHE": str(cwd / "cache")}
    words = [str(word) for word in words]
    done = subprocess.run(words, cwd=cwd, env=kept | own, capture_output=True, text=True, check=False, timeout=1200)
    if check:
        assert done.returncode == 0, f"{what}:\n{done.stdout}\n{done.stderr}"
    return done


def own_data(folder, command):
    """Options of the benchmarks that learn a user's own data, which is made here."""
    for kind, level in (("dark", 40), ("light", 210)):
        (folder / "photos" / kind).mkdir(parents=True)
        for number in range(20):
            Image.new("RGB", (40, 30), (level + number,) * 3).save(folder / "photos" / kind / f"{number}.jpg")
    rows = [f"{'good' if n % 2 else 'bad'} film {n},{n % 2}" for n in range(60)]
    (folder / "films.csv").write_text("\n".join(["text,label", *rows]), encoding="utf-8")
    call("make", command, "data", "make", "sst2", "--out", "made", cwd=folder)
    return {
        "folder": ("--data", "photos"),
        "table": ("--data", "films.csv", "--set", "benchmark.text=text", "--set", "benchmark.target=label"),
        "dataset": ("--data", "made/sst2", "--set", "benchmark.reader=sst2"),
    }


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_core_runs_every_benchmark(installed):
    command = installed / "venv/bin/holdfast"
    assert call("version", command, "--version", cwd=installed).stdout == f"holdfast {holdfast.__version__}\n"
    assert "viscoll:coco" in call("list", command, "list", cwd=installed).stdout
    own = own_data(installed, command)
    for name in registry.BENCHMARKS:
        began = time.monotonic()
        small = (*own.get(name, ("--scale", "tiny")), "--set", "train.epochs=1", "-j", "1", "--device", "cpu", "--json")
        (record,) = json.loads(call(name, command, "run", name, *small, cwd=installed).stdout)
        assert record["config"]["benchmark"]["name"] == name
        assert record["scores"]
        print(f"{name}: {time.monotonic() - began:.0f} s")
    call("report", command, "report", "runs", "--out", "report", cwd=installed)
    assert "climb" in (installed / "report/index.html").read_text(encoding="utf-8")
    done = call("picture", command, "clvqa", "tsne", "0", "--picture", "tsne.png", cwd=installed, check=False)
    assert done.returncode == 2
    assert 'pip install "holdfast[pictures]"' in done.stderr
