"""The published tables: the format of every file, the loader, and values read from the papers by eye."""

import importlib.resources
import json
import re

import pytest

from holdfast.errors import UserError
from holdfast.papers import PublishedTable, papers, table, tables
from holdfast.papers.published import parse

FILES = [
    file
    for paper in papers()
    for file in sorted((importlib.resources.files("holdfast.papers") / paper).iterdir(), key=lambda file: file.name)
    if file.name.endswith(".json")
]


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.name}")
def test_every_file_keeps_the_format(file):
    text = file.read_text(encoding="utf-8")
    raw = json.loads(text)
    assert list(raw) == ["paper", "number", "title", "measures", "where", "columns", "rows", "notes"]
    assert raw["paper"] == file.parent.name
    digits = re.match(r"\d*", raw["number"])[0]
    assert file.name == f"table_{digits.zfill(2) if digits else ''}{raw['number'][len(digits) :]}.json"
    assert all(isinstance(raw[name], str) and raw[name] for name in ("title", "measures", "where"))
    assert all(isinstance(note, str) and note for note in raw["notes"])

    for column in raw["columns"]:
        assert set(column) <= {"name", "kind", "unit", "decimals", "means"}
        assert re.fullmatch(r"[a-z][a-z0-9_]*", column["name"])
        assert column["kind"] in ("key", "value", "text")
        assert ("decimals" in column) == (column["kind"] == "value"), column
    kinds = [column["kind"] for column in raw["columns"]]
    names = [column["name"] for column in raw["columns"]]
    assert len(set(names)) == len(names)
    assert kinds == sorted(kinds, key=lambda kind: kind != "key"), "the keys come first"

    assert raw["rows"]
    for row in raw["rows"]:
        assert len(row) == len(names)
        for cell, column in zip(row, raw["columns"], strict=True):
            if cell is None:
                continue
            if column["kind"] == "value":
                assert type(cell) in (int, float), (row, column)
            else:
                assert isinstance(cell, str), (row, column)
                assert cell == cell.strip() != "", (row, column)
    keys = [tuple(row[: kinds.count("key")]) for row in raw["rows"]]
    assert len(set(keys)) == len(keys), "two rows have the same keys"
    # One row on each line, so that a change reads well.
    assert text.count("\n  [") == len(raw["rows"])


@pytest.mark.parametrize("each", tables(), ids=lambda each: f"{each.paper}-{each.number}")
def test_no_value_has_more_decimals_than_its_column_says(each):
    # Settings that a paper prints with unequal decimals are named here, and in the notes of their tables.
    uneven = {("climb", "4", "chance"), ("climb-v1", "4", "chance")}
    for column in each.columns:
        if column.kind != "value" or column.decimals is None or (each.paper, each.number, column.name) in uneven:
            continue
        for row in each:
            cell = row[column.name]
            assert cell is None or round(cell, column.decimals) == cell, (column.name, row)


def test_all_tables_of_both_climb_versions_are_there():
    numbers = ["1", "2", "3", "4", "5", "6", "7", "8", "9a", "9b", "10", "11", "12", "13"]
    assert [each.number for each in tables("climb")] == numbers
    assert [each.number for each in tables("climb-v1")] == numbers[:-1]


def test_the_two_climb_versions_print_the_same_numbers():
    # They were read from two different texts, so this guards the reading of both.
    for earlier in tables("climb-v1"):
        final = table("climb", earlier.number)
        assert final.columns == earlier.columns
        if earlier.number == "2":  # one index of one formula was changed
            assert [a == b for a, b in zip(final.rows, earlier.rows, strict=True)] == [True, True, False]
        else:
            assert final.rows == earlier.rows


@pytest.mark.parametrize(
    ("number", "rows"),
    # algorithms x tasks; for table 8 six algorithms with 3 + 1 + 2 + 3 scores; for table 10 2 x 3 and 4 x 6
    [
        (1, 13),
        (3, 7 * 4),
        (4, 4),
        (5, 4 * 3),
        (6, 2 * 4),
        (7, 2 * 10),
        (8, 6 * 9),
        ("9a", 4 * 4),
        ("9b", 3 * 9),
        (10, 6 + 24),
        (11, 18 * 8),
        (12, 19 * 10),
        (13, 6 * 4),
    ],
)
def test_climb_tables_have_every_cell(number, rows):
    assert len(table("climb", number)) == rows


@pytest.mark.parametrize(
    ("paper", "number", "column", "keys", "value"),
    [
        ("climb", 3, "transfer", {"algorithm": "frozen-encoder", "task": "vcr"}, -53.47),
        ("climb", 3, "trained", {"algorithm": "adapters", "task": "vqav2"}, 13.02),
        ("climb", 4, "low_shot_share", {"task": "snli-ve"}, 1.16),
        ("climb", 4, "learning_rate", {"task": "snli-ve"}, 5e-5),
        ("climb", 5, "deviation", {"tokens": 160, "image": "average", "shots": 16}, 2.1),
        ("climb", 6, "score", {"model": "vault", "task": "nlvr2"}, 65.57),
        ("climb", 7, "accuracy", {"model": "vault", "task": "commonsenseqa", "shots": 4096}, 43.4),
        ("climb", 8, "score", {"algorithm": "adapters", "task": "snli-ve", "after": "vcr"}, 75.70),
        ("climb", "9a", "transfer", {"order": "snli-ve>vcr>vqav2>nlvr2", "task": "nlvr2"}, -21.35),
        ("climb", "9b", "score", {"order": "nlvr2>vqav2>vcr>snli-ve", "task": "vcr", "after": "snli-ve"}, 47.51),
        ("climb", 10, "score", {"algorithm": "direct", "task": "vcr", "data": "low-shot"}, 43.23),
        ("climb", 11, "score", {"algorithm": "er", "after": "vcr", "task": "coco", "shots": "10%"}, 65.9),
        ("climb", 12, "score", {"algorithm": "ewc", "after": "snli-ve", "task": "commonsenseqa", "shots": 1024}, 20.6),
        ("climb", 12, "score", {"algorithm": "random", "task": "piqa", "shots": 4096}, 50.0),
        ("climb", 13, "score", {"algorithm": "ewc", "task": "vcr"}, 64.39),
        ("climb-v1", 8, "forgetting", {"algorithm": "er", "task": "nlvr2", "after": "snli-ve"}, 17.10),
        ("climb-v1", 11, "score", {"algorithm": "seqft", "after": "nlvr2", "task": "imagenet", "shots": 32}, 50.8),
        ("viscoll", 5, "log_perplexity", {"order": "random", "method": "vanilla"}, 5.04),
        ("greco", 10, "count", {"question_type": "equal_size", "predicted": "query_material"}, 1674),
        ("cfst", 1, "hn", {"method": "multitask", "setting": "class"}, 80.35),
    ],
)
def test_values_as_the_papers_print_them(paper, number, column, keys, value):
    assert table(paper, number).value(column, **keys) == value


def small() -> PublishedTable:
    columns = [{"name": "task", "kind": "key"}, {"name": "shots", "kind": "key"}]
    columns += [{"name": "score", "kind": "value", "decimals": 1}, {"name": "why", "kind": "text"}]
    rows = [["vcr", "16", 1.5, "a"], ["vcr", "32", 2.5, None], ["imdb", None, None, "b"]]
    raw = {"paper": "climb", "number": "1", "title": "t", "measures": "m", "where": "w"}
    return parse(json.dumps({**raw, "columns": columns, "rows": rows, "notes": ["n"]}))


def test_a_table_iterates_as_dictionaries_and_selects_by_value():
    each = small()
    assert len(each) == 3
    assert list(each)[1] == {"task": "vcr", "shots": "32", "score": 2.5, "why": None}
    assert each.keys == ("task", "shots")
    assert each.select(task="vcr", shots=32).rows == (("vcr", "32", 2.5, None),)
    assert each.select(shots=None).rows == (("imdb", None, None, "b"),)
    assert each.select(task="none").rows == ()
    assert each.select().rows == each.rows
    assert each.value("score", shots=16) == 1.5
    assert each.value("score", task="imdb") is None
    assert each.notes == ("n",)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: table("clim", 3), r"no paper is called 'clim': did you mean climb or climb-v1\?"),
        (lambda: table("zzz", 3), "no paper is called 'zzz': there are climb, climb-v1"),
        (lambda: tables("grecco"), "did you mean greco"),
        (lambda: table("climb", 14), "the paper climb has no table 14: did you mean"),
        (lambda: table("climb", 9), "no table 9: did you mean 9[ab] or 9[ab]"),
        (lambda: small().column("scores"), "table 1 of climb has no column 'scores': did you mean score"),
        (lambda: small().select(tasks="vcr"), "no column 'tasks': did you mean task"),
        (lambda: small().value("score", task="vrc"), "has no task 'vrc': did you mean vcr"),
        (lambda: small().value("score", task="vcr"), "has 2 rows for task='vcr': specify shots too"),
        (lambda: small().value("score", task="imdb", shots=16), "prints nothing for task='imdb', shots=16"),
    ],
)
def test_what_is_not_there_is_refused_with_the_nearest_that_is(call, sentence):
    with pytest.raises(UserError, match=sentence):
        call()


def test_papers_and_numbers_are_understood_in_several_spellings():
    assert table(" CLiMB ", "03") is table("climb", 3)
    assert table("climb", "9A") is table("climb", "9a")
    assert table("Greco", 1) is table("clvqa", 1)
    assert {each.paper for each in tables()} == set(papers())


def test_a_row_of_the_wrong_width_is_our_mistake():
    with pytest.raises(AssertionError, match="wrong width"):
        PublishedTable("climb", "1", "t", "m", "w", small().columns, (("vcr",),))
