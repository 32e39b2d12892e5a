"""Values that differ between papers, and rows that stand for two sets of data: found, and not imagined."""

import dataclasses
import json

from cli.inside import inside
from holdfast.papers import table, tables
from holdfast.papers.across import copies, disagreements


def changed(published, column, value, **keys):
    place = published.columns.index(published.column(column))
    (row,) = published.select(**keys).rows
    other = (*row[:place], value, *row[place + 1 :])
    return dataclasses.replace(published, rows=tuple(other if each == row else each for each in published.rows))


def test_a_cell_that_one_paper_changes_is_found_and_no_other():
    papers = tables("l2p") + tables("nsp2")
    assert disagreements(papers) == []
    keys = {"method": "l2p", "data": "cifar100"}
    broken = [changed(each, "forgetting", 7.65, **keys) if each == table("l2p", 1) else each for each in papers]
    (found,) = disagreements(broken)
    assert (found.column, [each.value for each in found.values]) == ("forgetting", [7.65, 7.63])


def test_what_rounding_explains_is_no_difference():
    first = table("l2p", 1)
    coarse = [dataclasses.replace(each, decimals=1) if each.kind == "value" else each for each in first.columns]
    other = dataclasses.replace(changed(first, "accuracy", 83.8, method="l2p", data="cifar100"), paper="other")
    assert [each.column for each in disagreements([first, other])] == ["accuracy"]
    assert disagreements([first, dataclasses.replace(other, columns=tuple(coarse))]) == []


def test_two_editions_of_one_paper_are_compared_cell_by_cell():
    editions = tables("climb-v1") + tables("climb")
    before = disagreements(editions)
    broken = [
        changed(each, "score", 12.3, algorithm="er", task="vcr") if each == table("climb", 3) else each
        for each in editions
    ]
    found = [each for each in disagreements(broken) if each not in before]
    assert [(each.keys, each.column, [value.paper for value in each.values]) for each in found] == [
        (("climb", "table 3", "er", "vcr"), "score", ["climb-v1", "climb"])
    ]


def test_a_row_that_stands_for_two_sets_of_data():
    assert {(each.paper, each.method) for each in copies()} == {
        ("vq-prompt", "dualprompt"),
        ("vq-prompt", "coda-prompt"),
    }
    assert copies(tables("nsp2")) == []


def test_the_command(tmp_path):
    done = inside("papers", "audit", "--across", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "rows that a paper prints for different data" in done.stdout
    found = json.loads(inside("papers", "audit", "esn", "--across", "--json", cwd=tmp_path).stdout)
    assert found["copied"] == []
    assert {each["column"] for each in found["different"]} >= {"accuracy", "forgetting"}
