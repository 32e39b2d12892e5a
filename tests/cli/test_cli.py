"""The command line as a person uses it: words in, tables, JSON and exit status out."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from cli.inside import inside
from holdfast.cli import carry as carrying
from holdfast.experiments.local import Options
from holdfast.experiments.store import Store
from processes import environment

SMALL = ["--scale", "tiny", "--set", "benchmark.stages=2", "--set", "train.epochs=1"]


def holdfast(*words, cwd, check=None):
    """A command in this process, and its runs as well: one after another."""
    return checked(inside(*words, *(["-j", "1"] if words[0] == "run" else []), cwd=cwd), check)


def process(*words, cwd, check=None):
    """A command in a process of its own, which takes seconds to start."""
    words = [sys.executable, "-m", "holdfast", *words]
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False, env=environment(COLUMNS="100"))
    return checked(done, check)


def checked(done, status):
    assert "Traceback" not in done.stderr, done.stderr
    if status is not None:
        assert done.returncode == status, done.stdout + done.stderr
    return done


def test_run_list_and_show(tmp_path):
    words = ["run", *SMALL, "-a", "finetune,er", "--set", "replay.capacity=40", "--seeds", "2"]
    first = holdfast(*words, cwd=tmp_path, check=0)
    assert "finetune" in first.stdout
    assert "replay" in first.stdout
    assert "mean of 2 seeds, ± its 95 % t-interval" in first.stdout
    again = process(*words, cwd=tmp_path, check=0)
    assert again.stdout == first.stdout

    records = json.loads(holdfast(*words, "--json", cwd=tmp_path, check=0).stdout)
    assert [(r["config"]["seed"], [a["name"] for a in r["config"]["algorithms"]]) for r in records] == [
        (0, []), (1, []), (0, ["replay"]), (1, ["replay"])
    ]  # fmt: skip
    runs = json.loads(holdfast("list", "runs", "--json", cwd=tmp_path, check=0).stdout)
    assert {run["run"] for run in runs} == {record["id"] for record in records}
    assert {run["status"] for run in runs} == {"done"}

    shown = holdfast("show", records[3]["id"][:8], cwd=tmp_path, check=0).stdout
    assert "after 2" in shown
    assert "bytes kept by the algorithm" in shown
    command = shown.split("again: holdfast ")[1].split()
    assert json.loads(holdfast(*command, "--json", cwd=tmp_path, check=0).stdout)[0]["id"] == records[3]["id"]
    assert json.loads(holdfast("show", records[0]["id"], "--json", cwd=tmp_path, check=0).stdout) == records[0]


def test_lists_name_what_there_is(tmp_path):
    listed = json.loads(holdfast("list", "--json", cwd=tmp_path, check=0).stdout)
    assert {entry["name"] for entry in listed["algorithms"]} >= {"finetune", "replay", "joint", "frozen-encoder"}
    assert next(e for e in listed["algorithms"] if e["name"] == "replay")["settings"]["capacity"] == 200
    text = holdfast("list", cwd=tmp_path, check=0).stdout
    assert "multitask" in text
    assert "patterns" in text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["run", "clim"], "unknown benchmark 'clim'"),
        (["run", "-a", "repla"], "did you mean replay?"),
        (["run", "--set", "train.epochs=zero"], "train.epochs is 'zero': it must be a whole number"),
        (["run", "--set", "epochs=3"], "write it as owner.name=value"),
        (["run", "--device", "cuda:9"], "device 'cuda:9' is not here"),
        (["show", "abc"], "no store exists at runs"),
        (["list", "algoritms"], "did you mean algorithms?"),
        (["list", "runs"], "no store exists at runs: `holdfast run --out runs` makes one"),
        (["list", "runs", "--out", "nosuch"], "no store exists at nosuch"),
        (["list", "runs", "foo"], "`list runs` takes no name: `holdfast show foo` describes a run"),
        (["climb", "vacuous", "--workers", "1", "--model", "vlit"], "unknown model 'vlit'"),
        (["climb", "vacuous", "--device", "9a"], "unknown device '9a': give cpu, cuda or cuda:N"),
        (["tune", "patterns", "-a", "ewc", "--by", "forgetting", "--grid", "rate"], "--grid 'rate': write it as"),
        (["papers", "table", "climb", "99"], "climb"),
        (["run", "--seeds", "0"], "--seeds"),
        (["run", "--downstream"], "patterns.downstream is not a setting"),
        (["fly"], "fly"),
        (["bench", "overhead", "--device", "abacus"], "unknown device 'abacus'"),
        (["run", "--ranks", "2", "patternz"], "unknown benchmark 'patternz'"),
        (["run", "-a", "mine.py"], "write it as mine.py:Name"),
        (["run", "--out", "s3://bucket/runs"], "s3://bucket/runs is not a folder: only `holdfast plan` keeps runs at"),
        (["compare", "file:///share/runs"], "is not a folder: only `holdfast plan`"),
        (["run", "--log", "wandbb"], "unknown log 'wandbb': did you mean wandb"),
        (
            ["run", "--scale", "tiny", "--out", "/proc/nowhere"],
            "the store /proc/nowhere cannot be created: no such file",
        ),
    ],
)
def test_a_mistake_is_reported_with_status_2(tmp_path, words, sentence):
    done = inside(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_run_that_fails_does_not_stop_the_others_and_gives_status_1(tmp_path):
    (tmp_path / "mine.py").write_text(
        "from dataclasses import dataclass\n"
        "from holdfast.algorithms.base import Algorithm\n"
        "@dataclass\n"
        "class Broken(Algorithm):\n"
        "    def after(self, learner, batch):\n"
        "        raise IndexError('a mistake in the algorithm')\n"
    )
    done = holdfast("run", *SMALL, "-a", "mine.py:Broken,finetune", cwd=tmp_path, check=1)
    assert "IndexError: a mistake in the algorithm (traceback in " in done.stderr
    assert "1 of 2 runs failed" in done.stderr
    assert "finetune" in done.stdout
    (run,) = (r for r in json.loads(holdfast("list", "runs", "--json", cwd=tmp_path).stdout) if r["status"] == "failed")
    assert "raise IndexError" in holdfast("show", run["run"], cwd=tmp_path, check=0).stdout


def test_the_audit_lists_what_the_papers_print_inconsistently(tmp_path):
    cells = json.loads(holdfast("papers", "audit", "climb", "--json", cwd=tmp_path, check=0).stdout)
    assert 10 < len(cells) < 40
    assert not any(cell["consistent"] for cell in cells)
    text = holdfast("papers", "audit", cwd=tmp_path, check=0).stdout
    assert "derived cells are inconsistent" in text
    assert (
        json.loads(holdfast("papers", "table", "climb", "3", "--json", cwd=tmp_path, check=0).stdout)["number"] == "3"
    )


def test_ranks_as_a_flag_give_the_record_of_one(tmp_path):
    words = ["run", *SMALL, "--precision", "float64", "--json"]
    (two,) = json.loads(process(*words, "--ranks", "2", "--out", "two", cwd=tmp_path, check=0).stdout)
    (one,) = json.loads(holdfast(*words, "--out", "one", cwd=tmp_path, check=0).stdout)
    assert (two["environment"]["ranks"], one["environment"]["ranks"]) == (2, 1)
    assert two["id"] == one["id"]
    assert two["scores"] == one["scores"]


def test_one_run_under_two_names_is_one_run_and_not_two_seeds(tmp_path):
    done = holdfast("run", *SMALL, "-a", "er,replay", cwd=tmp_path, check=0)
    assert "one seed" in done.stdout


def test_a_run_reports_a_rank_that_was_killed_and_resumes_with_another_number(tmp_path):
    words = [sys.executable, "-m", "holdfast", "run", "--scale", "small", "--precision", "float64", "--save-steps", "5"]
    started = subprocess.Popen(
        [*words, "--ranks", "2"], cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True
    )
    end = time.monotonic() + 60
    while not list(tmp_path.glob("runs/*/checkpoints/*.safetensors")) and time.monotonic() < end:
        time.sleep(0.05)
    children = Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()
    assert len(children) == 2
    os.kill(int(children[1]), signal.SIGKILL)
    _, errors = started.communicate(timeout=60)
    assert started.returncode == 1
    assert "rank 1 was stopped by SIGKILL: run the same command to resume" in errors
    assert "Traceback" not in errors
    holdfast(*words[3:], cwd=tmp_path, check=0)
    holdfast(*words[3:], "--out", "whole", cwd=tmp_path, check=0)
    resumed, whole = (json.loads(next(tmp_path.glob(f"{s}/*/record.json")).read_text()) for s in ("runs", "whole"))
    assert resumed["scores"] == whole["scores"]


def test_broken_and_foreign_folders_in_a_store_do_not_stop_a_listing(tmp_path):
    holdfast("run", *SMALL, cwd=tmp_path, check=0)
    for name, text in [("aaa", "{}"), ("bbb", "[]"), ("ccc", "{"), ("ddd", '"text"')]:
        (tmp_path / "runs" / name).mkdir()
        (tmp_path / "runs" / name / "config.json").write_text(text)
    (tmp_path / "runs" / "eee" / "config.json").mkdir(parents=True)
    runs = json.loads(holdfast("list", "runs", "--json", cwd=tmp_path, check=0).stdout)
    assert sorted(run["status"] for run in runs) == ["broken"] * 4 + ["done"]
    for name in ("aaa", "bbb", "ccc", "ddd"):
        assert "config.json" in holdfast("show", name, cwd=tmp_path, check=2).stderr
    assert "unknown run 'eee'" in holdfast("show", "eee", cwd=tmp_path, check=2).stderr


def test_help_imports_no_torch(tmp_path):
    code = (
        "import sys\nfrom holdfast.cli import main\nsys.argv = ['holdfast', '--help']\n"
        "try: main()\nexcept SystemExit: sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0
    assert "run" in done.stdout


def test_one_thing_is_explained(tmp_path):
    told = json.loads(holdfast("list", "algorithms", "er", "--json", cwd=tmp_path, check=0).stdout)
    assert "Chaudhry et al. 2019" in told["about"]
    assert told["settings"]["capacity"]["default"] == 200
    assert "Equation:" in holdfast("list", "algorithms", "ewc", cwd=tmp_path, check=0).stdout
    assert "plain fine-tuning" in holdfast("list", "algorithms", "seqft", cwd=tmp_path, check=0).stdout
    assert "did you mean" in holdfast("list", "models", "vilt-tyni", cwd=tmp_path, check=2).stderr


def test_what_tables_need_is_imported_while_workers_work(monkeypatch, tmp_path):
    imported = []
    monkeypatch.setattr(carrying, "Workers", lambda *_: nullcontext())
    monkeypatch.setattr(carrying, "import_module", imported.append)
    monkeypatch.setattr(carrying, "Thread", lambda target, args, daemon: SimpleNamespace(start=lambda: target(*args)))
    monkeypatch.setattr(carrying, "follow", lambda *_: list(imported))
    plan = SimpleNamespace(threads=1, configs={"a": None, "b": None})
    assert carrying.carry(plan, Store(tmp_path / "runs"), Options(), None, jobs=2) == [carrying.FOR_TABLES]
