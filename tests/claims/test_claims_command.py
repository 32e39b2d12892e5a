"""`holdfast claims`, as a person uses it: from an empty store to a verdict that repeats to the digit."""

import json
import statistics
from pathlib import Path

import pytest

from cli.inside import inside

CLAIMS = """
title = "Mine"

[runs.er]
benchmark = "patterns"
algorithm = "er"
set = { "train.epochs" = 2, "benchmark.stages" = 2 }

[runs.finetune]
benchmark = "patterns"
set = { "train.epochs" = 2, "benchmark.stages" = 2 }

[runs.both-orders]
benchmark = "patterns"
orders = ["forward", "reverse"]
set = { "train.epochs" = 2, "benchmark.stages" = 2 }

[[claim]]
id = "replay-helps"
says = "Replay ends at a higher accuracy."
where = "Table 1"
statistic = "difference"
measure = "final_accuracy"
of = ["er", "finetune"]
margin = 0.5

[[claim]]
id = "replay-does-wonders"
says = "Replay gains ninety-five points."
where = "Table 1"
statistic = "difference"
measure = "final_accuracy"
of = ["er", "finetune"]
margin = 95

[[claim]]
id = "forgets-in-both-orders"
says = "Fine-tuning ends below what it learned, in both orders."
where = "Table 2"
statistic = "difference"
of = ["both-orders/learning_accuracy", "both-orders/final_accuracy"]
margin = 0.5
"""
MINE = ("--paper", "mine.toml", "--scale", "tiny")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("claims")
    (found / "mine.toml").write_text(CLAIMS)
    return found


@pytest.fixture(scope="module")
def tested(folder):
    """A folder with the runs of all claims, and what the command printed."""
    done = inside("claims", "run", *MINE, "--seeds", 10, "-j", 1, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_list_fits_in_80_columns(folder):
    found = inside("claims", cwd=folder)
    assert found.returncode == 0
    assert max(map(len, found.stdout.splitlines())) <= 80
    assert "holdfast claims plan" in found.stdout


def test_an_empty_store_is_explained(folder):
    (folder / "empty").mkdir(exist_ok=True)
    found = inside("claims", "verdicts", "empty", "--paper", "mine.toml", cwd=folder)
    assert found.returncode == 0
    assert "empty has no runs of these 3 claims" in found.stdout
    assert "holdfast claims run --out empty" in found.stdout
    missing = inside("claims", "verdicts", "nowhere", "--only", "clvqa/yn-is-harder", cwd=folder)
    assert "nowhere has no runs of this claim" in missing.stdout
    assert "holdfast claims run --only clvqa/yn-is-harder --out nowhere" in missing.stdout


def test_the_plan_shares_runs_and_makes_nothing(folder):
    found = inside("claims", "run", *MINE, "--dry-run", "--json", "--out", "other", cwd=folder)
    steps = {step["id"]: step for step in json.loads(found.stdout)}
    assert {name: step["runs"] for name, step in steps.items()} == {
        "mine/replay-helps": 10,
        "mine/replay-does-wonders": 10,
        "mine/forgets-in-both-orders": 10,
    }
    assert sum(step["missing"] for step in steps.values()) == 15  # forward fine-tuning and er, and reverse
    assert not (folder / "other").exists()
    table = inside("claims", "plan", *MINE, "--out", "other", cwd=folder)
    assert "15 are left" in table.stdout
    assert "mine/" not in table.stdout, "names without that of the only paper, to fit in 80 columns"


def test_verdicts_stop_at_the_first_look_that_decides(tested):
    found = {each["claim"]: each for each in tested}
    assert found["mine/replay-helps"]["verdict"] in ("supported", "undecided")
    assert found["mine/replay-does-wonders"]["verdict"] == "contradicted"
    assert found["mine/forgets-in-both-orders"]["verdict"] == "supported"
    assert found["mine/forgets-in-both-orders"]["orders"] == 2
    seeds = {name: len(each["values"][0]["seeds"]) for name, each in found.items()}
    assert seeds["mine/forgets-in-both-orders"] == 5  # decided with five, so the other five were not run


def test_a_verdict_repeats_to_the_digit_by_its_command_and_from_an_exported_file(tested, folder):
    first = next(each for each in tested if each["claim"] == "mine/replay-does-wonders")
    again = inside(*first["command"].split()[1:], "--out", "again", "-j", 1, "--json", cwd=folder)
    (second,) = json.loads(again.stdout)
    assert second["values"] == first["values"]
    assert second["verdict"] == first["verdict"]
    assert inside("export", "again", "--out", "again.json", cwd=folder).returncode == 0
    assert inside("merge", "again.json", "--out", "merged", cwd=folder).returncode == 0
    for source in ("again.json", "merged", "again/claims.json"):
        found = inside(
            "claims", "verdicts", source, "--paper", "mine.toml", "--only", first["claim"], "--json", cwd=folder
        )
        (kept,) = json.loads(found.stdout)
        assert kept["values"] == first["values"], source
        assert ".json" not in kept["command"], "runs are not made in a file"


def test_details_name_every_value_and_the_command(tested, folder):
    found = inside("claims", "verdicts", "runs", "--paper", "mine.toml", "--only", "replay-does-wonders", cwd=folder)
    first = next(each for each in tested if each["claim"] == "mine/replay-does-wonders")
    assert first["command"] in found.stdout
    assert all(repr(value) in found.stdout for value in first["values"][0]["seeds"].values())
    words = " ".join(found.stdout.split())
    assert "it is the other way round" in words or "smaller than the margin" in words
    assert max(len(line) for line in found.stdout.splitlines() if "again:" not in line) <= 80


def test_a_page_follows_from_its_values(tested, folder):
    made = inside("claims", "page", "runs", "--paper", "mine.toml", "--out", "page.md", cwd=folder)
    assert made.returncode == 0, made.stderr
    text = (folder / "page.md").read_text()
    assert "**contradicted**" in text
    assert inside("claims", "page", "page.json", "--paper", "mine.toml", "--out", "page.md", cwd=folder).returncode == 0
    assert (folder / "page.md").read_text() == text
    (folder / "page.json").write_text((folder / "page.json").read_text().replace('"orders": 2', '"orders": 3'))
    damaged = inside("claims", "page", "page.json", "--paper", "mine.toml", "--out", "page.md", cwd=folder)
    assert damaged.returncode == 2
    assert "cannot be trusted" in damaged.stderr


def test_a_page_keeps_the_cost_of_what_is_left_if_no_run_in_the_store_tells_it(tested, folder):
    docs = Path(__file__).parents[2] / "docs" / "claims.json"
    made = inside("claims", "page", docs, "runs", "--paper", "cfst", "--out", "left.md", cwd=folder)
    assert made.returncode == 0, made.stderr
    (before,) = [each for each in json.loads(docs.read_text())["left"] if each["paper"] == "cfst"]
    assert json.loads((folder / "left.json").read_text())["left"] == [before]


def test_the_report_has_a_page_of_verdicts(tested, folder):
    assert inside("report", "runs", "--out", "report", cwd=folder).returncode == 0
    page = (folder / "report" / "claims.html").read_text()
    assert "replay-does-wonders" in page
    assert "contradicted" in page
    assert "do not reproduce a paper" in page
    assert 'href="claims.html"' in (folder / "report" / "index.html").read_text()


def test_a_plan_says_how_many_seeds_a_difference_needs(tested, folder):
    (folder / "plan.toml").write_text('[[experiment]]\nalgorithms = ["er", "finetune"]\nscale = "tiny"\n')
    found = inside("plan", "plan.toml", "--power", 5, "--json", cwd=folder)
    (spread,) = [each for each in json.loads(found.stdout) if each["pairs"] == 1]
    series = next(each for each in tested if each["claim"] == "mine/replay-helps")["values"][0]["seeds"]
    assert spread["largest"] == pytest.approx(statistics.stdev(series.values()))
    assert "needs" in inside("plan", "plan.toml", "--power", 5, cwd=folder).stdout
    empty = inside("plan", "plan.toml", "--power", 5, "--out", "nothing", cwd=folder)
    assert (empty.returncode, "has no pilot" in empty.stderr) == (2, True)


def test_the_plan_knows_what_is_decided_and_how_many_seeds_a_difference_needs(tested, folder):
    found = inside("claims", "plan", *MINE, "--json", "--difference", 50, cwd=folder)
    steps = {step["id"]: step for step in json.loads(found.stdout)}
    assert steps["mine/replay-does-wonders"]["verdict"] == "contradicted"
    assert steps["mine/replay-does-wonders"]["chance"] == 0
    assert steps["mine/forgets-in-both-orders"]["seeds"] in (5, 10)
    assert steps["mine/forgets-in-both-orders"]["seconds"] == 0
