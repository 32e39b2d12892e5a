"""Every command and script of docs/bring-your-data.md, on small pictures and tables of the layout that it describes."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.pictures import COLOURS, draw
from benchmarks.test_table import write_arrow, write_csv
from cli.inside import inside
from holdfast.experiments.plan import graph

PAGE = (Path(__file__).parents[2] / "docs/bring-your-data.md").read_text(encoding="utf-8")
COMMANDS = [line for line in PAGE.splitlines() if line.startswith("holdfast run")]
SCRIPT = "".join(re.findall(r"```python\n(?!>>>)(.*?)```", PAGE, re.S))
QUICK = ["train.epochs=1", "benchmark.side=32"]
TINY = ["model.width=16", "model.depth=1", "model.heads=2", "model.hidden=16", "model.weights="]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """All the data that the page speaks of."""
    folder, rows = tmp_path_factory.mktemp("page"), []
    colours = dict(zip(("cat", "cow", "dog", "hen", "pig", "yak"), [*COLOURS.values(), (128, 128, 128)], strict=True))
    for name, colour in colours.items():
        for number in range(12):
            draw(folder / f"photos/{name}/{number}.jpg", colour, 1)
    for domain in ("photo", "sketch"):
        for name in ("cat", "dog"):
            for number in range(8):
                draw(folder / f"domains/{domain}/{name}/{number}.jpg", colours[name], 2)
    for number in range(72):
        name = list(colours)[number % 6]
        topic = "farm" if number % 2 else "home"
        row = {"path": f"photos/{name}/{number // 6}.jpg", "question": f"What is number {number}?", "answer": name}
        rows.append({**row, "topic": topic, "year": 2000 + number // 10})
    write_csv(folder / "qa.csv", rows)
    reviews = [{"review": f"film {n} is {'good' if n % 2 else 'bad'}", "label": n % 2} for n in range(40)]
    (folder / "reviews.jsonl").write_text("".join(json.dumps(row) + "\n" for row in reviews))
    pets = [
        {"image": {"bytes": (folder / row["path"]).read_bytes(), "path": None}, "label": row["answer"]} for row in rows
    ]
    write_arrow(folder / "pets/train/data-00000-of-00001.arrow", pets)
    return folder


def words(command):
    found = shlex.split(command)[1:]
    more = QUICK + (TINY if "benchmark.text" in command else [])
    return [*found, *(word for each in more for word in ("--set", each))]


def test_the_page_has_commands_for_each_kind_of_data():
    assert len(COMMANDS) >= 8
    assert len(SCRIPT.splitlines()) <= 10
    for word in (
        "folder --data photos",
        "by=domain",
        "qa.csv",
        "reviews.jsonl",
        "pets",
        "stream=shift",
        "--setting task",
    ):
        assert any(word in command for command in COMMANDS), word


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_reads_the_data_that_it_names(command, place, monkeypatch):
    asked = []
    monkeypatch.setattr("holdfast.cli.run._run_all", lambda requests, *rest: asked.extend(requests))
    made = inside(*words(command), cwd=place)
    assert made.returncode == 0, made.stderr
    monkeypatch.chdir(place)
    plan = graph(asked)
    assert plan.settled
    assert len(plan.asked()) == len(asked)


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_runs_two_runs_at_once(command, place, tmp_path):
    made = inside(*words(command), "-j", "2", "--out", tmp_path, cwd=place)
    assert made.returncode == 0, made.stderr
    assert "final acc." in made.stdout
    assert inside("report", tmp_path, "--out", tmp_path / "report", cwd=place).returncode == 0


@pytest.mark.slow
def test_the_script_runs(place, tmp_path):
    quick = SCRIPT.replace(
        "hf.run(photos,", f"hf.run(photos, out={str(tmp_path)!r}, settings={{'train.epochs': 1}}, algorithms="
    )
    made = subprocess.run([sys.executable, "-c", quick], cwd=place, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    assert len(list(tmp_path.glob("*/record.json"))) == 4
