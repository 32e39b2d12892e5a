"""The audit: its arithmetic by hand and by brute force, its counts for each table, and that it sees a broken cell."""

import dataclasses
import random

import pytest

from holdfast.papers import PublishedTable, table, tables
from holdfast.papers.audit import RULES, audit, summary
from holdfast.papers.rounding import between, exactly, printed, recompute

ALL = audit()


def count(paper: str, rule: str) -> dict[str, tuple[int, int]]:
    found = [tally for tally in summary(ALL) if tally.paper == paper and tally.rule == rule]
    return {tally.table: (tally.checked, tally.inconsistent) for tally in found}


def changed(published: PublishedTable, column: str, value: float, **keys: str) -> PublishedTable:
    """The table with one cell changed."""
    place = published.columns.index(published.column(column))
    (row,) = published.select(**keys).rows
    broken = (*row[:place], value, *row[place + 1 :])
    return dataclasses.replace(published, rows=tuple(broken if each == row else each for each in published.rows))


def failures(paper: str, *replaced: PublishedTable) -> set[tuple[str, tuple[str, ...], str, str]]:
    checks = audit(paper, replaced)
    return {
        (check.table, tuple(str(value) for _, value in check.keys), check.column, check.rule)
        for check in checks
        if not check.consistent
    }


def test_a_printed_number_stands_for_its_rounding_interval():
    assert printed(-1.8, 2).low == pytest.approx(-1.805)
    assert printed(-1.8, 2).high == pytest.approx(-1.795)
    assert printed(40, 0).high == 40.5
    assert printed(1e-4, None) == exactly(1e-4)
    assert printed(0.1, 1).meets(exactly(0.15))  # a half may be rounded either way
    assert not printed(0.1, 1).meets(exactly(0.1501))
    assert between(33.33, 100 / 3).low == between(100 / 3, 33.33).low == 33.33


@pytest.mark.parametrize("score", [72.66, 73.07, 73.5, 49.998])
def test_the_corners_bound_a_transfer_over_the_whole_box(score):
    # Brute force over the box, also where the score is at the direct score or at chance and the slopes turn.
    def transfer(score, direct, chance):
        return 100 * (score - direct) / (direct - chance)

    inputs = printed(score, 2), printed(73.07, 2), between(50.0, 50.02)
    found = recompute(transfer, *inputs)
    draw = random.Random(0)
    inside = [transfer(*(draw.uniform(each.low, each.high) for each in inputs)) for _ in range(20_000)]
    assert found.low <= min(inside) <= found.value <= max(inside) <= found.high
    # Not only bounds but the least ones: the samples come close to both ends.
    assert max(inside) - min(inside) > 0.9 * (found.high - found.low)


def test_a_consistent_cell_by_hand():
    # Table 3, SeqFT on NLVR2: 100 (72.66 - 73.07) / (73.07 - 50) = -1.7772, and -1.80 lies within the rounding:
    # at most 100 (72.655 - 73.075) / (73.075 - 50) = -1.8202.
    (check,) = [each for each in ALL if each.paper == "climb" and each.table == "3" and each.printed == -1.8]
    assert check.keys == (("algorithm", "seqft"), ("task", "nlvr2"))
    assert check.mid == pytest.approx(-1.7772, abs=1e-4)
    assert check.low == pytest.approx(-1.8202, abs=1e-4)
    assert check.difference == pytest.approx(-0.0228, abs=1e-4)
    assert check.consistent


def test_an_inconsistent_cell_by_hand():
    # Table 8, SeqFT on NLVR2 after VCR: 100 (72.66 - 51.24) / (72.66 - 50) = 94.528; printed 93.74.
    (check,) = [
        each
        for each in ALL
        if (each.paper, each.table, each.printed, each.rule) == ("climb", "8", 93.74, "forgetting-transfer")
    ]
    assert check.keys == (("algorithm", "seqft"), ("task", "nlvr2"), ("after", "vcr"))
    assert check.mid == pytest.approx(94.528, abs=1e-3)
    assert check.low < check.mid < check.high < 95
    assert not check.consistent


def test_counts_of_climb():
    knowledge = {"3": (24, 4), "9a": (12, 5), "13": (20, 1)}
    assert count("climb", "knowledge-transfer") == knowledge
    assert count("climb", "forgetting-transfer") == {"8": (36, 4), "9b": (18, 7)}
    assert count("climb", "low-shot-transfer") == {"10": (24, 1)}
    assert count("climb", "chance") == {"4": (4, 0), "12": (10, 0)}
    repeated = {"6": (4, 0), "7": (4, 0), "8": (18, 0), "9a": (12, 0), "9b": (21, 0), "10": (3, 0), "12": (10, 0)}
    assert count("climb", "repeated") == repeated


def test_the_earlier_climb_has_the_same_inconsistencies_but_those_of_uniter():
    assert failures("climb-v1") == {place for place in failures("climb") if place[0] != "13"}


def test_counts_of_the_other_papers():
    assert count("viscoll", "mean-per-task") == {"1": (2, 1)}
    assert count("viscoll", "released-length") == {"1": (2, 1)}, "3.380 words in Flickr-shift"
    assert count("viscoll", "repeated") == {"5": (3, 0)}
    wrong = {"1", "5", "6", "10"}
    assert count("clvqa", "row-total") == {str(n): (8, int(str(n) in wrong)) for n in range(1, 11)}
    harmonic = {str(n): (42, 0) for n in range(1, 7)} | {"7": (33, 0)}
    assert count("cfst", "harmonic-mean") == harmonic
    assert count("cfst", "related-score") == {"fig7": (24, 0)}


def test_every_rule_is_explained_and_used():
    assert {check.rule for check in ALL} == set(RULES)


STANDARD, THIRD = "vqav2>nlvr2>snli-ve>vcr", "nlvr2>vqav2>vcr>snli-ve"


@pytest.mark.parametrize(
    ("corrections", "cured"),
    [
        ([("3", "score", 76.32, {"algorithm": "direct", "task": "snli-ve"})], 3),
        (
            [
                ("3", "score", 72.43, {"algorithm": "ewc", "task": "nlvr2"}),
                ("8", "score", 72.43, {"algorithm": "ewc", "task": "nlvr2", "after": "nlvr2"}),
            ],
            2,
        ),
        (
            [
                ("8", "score", 51.42, {"algorithm": "seqft", "task": "nlvr2", "after": "vcr"}),
                ("9b", "score", 51.42, {"order": STANDARD, "task": "nlvr2", "after": "vcr"}),
            ],
            2,
        ),
        (
            [
                (number, "score", score, {"order": THIRD, "task": task} | ({"after": task} if number == "9b" else {}))
                for task, score in (("nlvr2", 73.08), ("vqav2", 66.67), ("vcr", 59.12))
                for number in ("9a", "9b")
            ],
            9,
        ),
        ([("10", "score", 38.38, {"algorithm": "seqft", "after": "nlvr2", "task": "vcr"})], 1),
        ([("13", "score", 68.68, {"algorithm": "frozen-bottom-9", "task": "vqav2"})], 1),
    ],
)
def test_the_corrections_that_the_notes_propose_cure_the_cells(corrections, cured):
    replaced: dict[str, PublishedTable] = {}
    for number, column, value, keys in corrections:
        replaced[number] = changed(replaced.get(number, table("climb", number)), column, value, **keys)

    def transfers(*tables: PublishedTable) -> set[tuple[str, tuple[str, ...], str, str]]:
        return {place for place in failures("climb", *tables) if place[-1] != "repeated"}

    before, after = transfers(), transfers(*replaced.values())
    assert after < before
    assert len(before - after) == cured


@pytest.mark.parametrize(
    ("paper", "number", "column", "value", "keys", "rule"),
    [
        ("climb", 3, "transfer", -1.83, {"algorithm": "seqft", "task": "nlvr2"}, "knowledge-transfer"),
        (
            "climb",
            8,
            "forgetting",
            41.01,
            {"algorithm": "seqft", "task": "vqav2", "after": "nlvr2"},
            "forgetting-transfer",
        ),
        ("climb", 10, "transfer", 22.87, {"algorithm": "ewc", "after": "snli-ve"}, "low-shot-transfer"),
        ("climb", 4, "chance", 33.33, {"task": "nlvr2"}, "chance"),
        ("climb", 6, "score", 67.71, {"model": "vilt", "task": "vqav2"}, "repeated"),
        ("viscoll", 5, "log_perplexity", 2.30, {"order": "random", "memory": 10000}, "repeated"),
        ("viscoll", 1, "mean_instances_per_task", 456, {"dataset": "flickr-shift"}, "mean-per-task"),
        ("clvqa", 2, "count", 14, {"question_type": "query_color", "predicted": "query_color"}, "row-total"),
        ("cfst", 4, "ha", 44.67, {"method": "multitask", "setting": "class"}, "harmonic-mean"),
    ],
)
def test_a_broken_cell_is_found(paper, number, column, value, keys, rule):
    broken = changed(table(paper, number), column, value, **keys)
    new = failures(paper, broken) - failures(paper)
    assert rule in {place[-1] for place in new}


def test_two_units_of_the_last_digit_are_found_in_each_table_of_cfst():
    for published in tables("cfst")[:7]:
        keys = {"method": "er", "setting": "class"}
        for column in ("hn", "hr", "ha"):
            value = published.value(column, **keys)
            assert isinstance(value, float)
            new = failures("cfst", changed(published, column, value + 0.02, **keys))
            assert new == {(published.number, ("er", "class"), column, "harmonic-mean")}
