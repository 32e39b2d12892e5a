"""Choosing an algorithm by what sets them apart, and the page that lists it."""

import json
from pathlib import Path

import pytest

from cli.inside import inside
from holdfast import registry
from holdfast.cli.chooser import measured, page

PAGE = Path(__file__).parents[2] / "docs/algorithms.md"


def test_algorithms_are_filtered_by_facts(tmp_path):
    found = json.loads(
        inside("list", "algorithms", "--with", "pretrained", "--without", "gradients", "--json", cwd=tmp_path).stdout
    )
    assert found.keys() == {"simplecil", "slda", "ranpac"}
    assert found["slda"] == ["pretrained", "statistics"]
    found = json.loads(inside("list", "algorithms", "--without", "boundaries,examples", "--json", cwd=tmp_path).stdout)
    assert {"finetune", "lora"} <= found.keys()
    assert not found.keys() & {"replay", "ewc"}


def test_the_facts_are_explained(tmp_path):
    text = inside("list", "algorithms", "--facts", cwd=tmp_path).stdout
    assert "needs to know where a stage ends" in text
    assert all(name in text for name in registry.ALGORITHMS)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["algorithms", "--with", "examplse"], "did you mean examples"),
        (["models", "--with", "examples"], "only algorithms are listed by facts"),
    ],
)
def test_other_words_are_refused(words, why, tmp_path):
    done = inside("list", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert why in " ".join(done.stderr.split())


def test_the_page_lists_every_algorithm_as_declared():
    assert page() in PAGE.read_text(encoding="utf-8"), "paste what holdfast.cli.chooser.page() returns into the page"


def test_the_page_says_where_algorithms_were_run_with_which_result(tmp_path):
    path = tmp_path / "measured.json"
    rows = [("replay", [40.0, 50.0, 60.0]), ("frozen-encoder+ewc", [7.25]), ("lora", [1.0, 1.0])]
    named = [{"algorithm": name, "where": "here", "measure": "accuracy", "values": values} for name, values in rows]
    path.write_text(json.dumps(named))
    assert measured(path).splitlines()[2:] == [
        "| `lora` | here | accuracy | 1.0 ±0.0 | 2 |",
        "| `replay` | here | accuracy | 50.0 ±24.8 | 3 |",
        "| `frozen-encoder+ewc` | here | accuracy | 7.2 | 1 |",
    ]
    kept = PAGE.with_name("measured.json")
    assert measured(kept) in PAGE.read_text(encoding="utf-8"), f"paste what measured({kept}) returns into the page"
