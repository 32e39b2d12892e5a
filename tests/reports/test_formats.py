"""The same table in each format: read back, it has the same numbers, and it never loses its warning."""

import csv
import io
import re

import pytest

from holdfast.reports.blocks import Cell, TableBlock
from holdfast.reports.formats import FORMATS, as_json_values, grid

WARNING = "Ours is on the world's data: no reproduction."
TABLE = TableBlock(
    "a_b & 50 %",
    ("method", "Acon ↑", "note"),
    (
        (Cell("er_1"), Cell(number=-12.345, interval=0.5, paper=19.78, paper_interval=0.3, best=True), Cell("a|b")),
        (Cell("<lwf>"), Cell(paper=9.11), Cell("c")),
    ),
    ("It is so.",),
    WARNING,
    "best, or not distinguishable from it",
)


def test_csv_reads_back_with_interval_paper_and_warning():
    rows = list(csv.DictReader(io.StringIO(FORMATS["csv"](TABLE))))
    assert rows[0] == {
        "table": "a_b & 50 %", "method": "er_1", "Acon": "-12.345", "Acon interval": "0.5", "Acon best": "true",
        "Acon paper": "19.78", "note": "a|b", "warning": WARNING,
    }  # fmt: skip
    assert (rows[1]["Acon"], rows[1]["Acon best"], rows[1]["Acon paper"]) == ("", "", "9.11")


def test_markdown_has_as_many_cells_in_each_row_and_the_best_in_bold():
    lines = FORMATS["markdown"](TABLE).splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {4}
    assert rows[2] == r"| er\_1 | **-12.3 ±0.5** (19.8 ±0.3) | a\|b |"
    assert f"**{WARNING}**" in lines
    assert r"\<lwf\>" in rows[3]
    assert "Bold: best, or not distinguishable from it." in lines[-1]


def test_latex_is_booktabs_with_everything_escaped():
    text = FORMATS["latex"](TABLE)
    assert all(rule in text for rule in (r"\toprule", r"\midrule", r"\bottomrule"))
    assert r"er\_1 & \textbf{$-$12.3 $\pm$0.5} (19.8 $\pm$0.3) & a\textbar{}b \\" in text
    assert r"$<$lwf$>$ & -- (9.1) & c \\" in text
    assert r"a\_b \& 50 \%" in text
    assert "the world's data" in text
    assert "Bold: best, or not distinguishable from it." in text
    assert text.count("{") == text.count("}")
    assert not re.search(r"(?<!\\)[%#]", text)


def test_text_has_the_papers_value_in_brackets():
    found = grid(TABLE)
    assert found.rows == (("er_1", "-12.3 ±0.5* [19.8 ±0.3]", "a|b"), ("<lwf>", "– [9.1]", "c"))
    assert found.notes[0] == WARNING
    assert found.notes[-1] == "*: best, or not distinguishable from it."


def test_json_has_numbers():
    found = as_json_values(TABLE)
    assert found["warning"] == WARNING
    assert found["rows"][0]["Acon"] == {"value": -12.345, "interval": 0.5, "paper": 19.78, "best": True}
    assert found["marks"] == "best, or not distinguishable from it"


@pytest.mark.parametrize("name", FORMATS)
def test_an_empty_table_is_written_too(name):
    assert "empty" in FORMATS[name](TableBlock("empty", ("a", "b"), ())) or name == "csv"
