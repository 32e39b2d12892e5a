"""`holdfast report` from the command line."""

import json

import pytest

from holdfast.errors import UserError
from reports.commands import holdfast
from reports.stores import put, record


def test_report_writes_the_pages_and_says_where(tmp_path):
    put(tmp_path / "runs", record(run="aaaaaaaaaaaa"))
    (put(tmp_path / "runs", record(run="bbbbbbbbbbbb")) / "record.json").write_text("{")
    done = holdfast("report", tmp_path / "runs", "--out", tmp_path / "out", "--title", "A study")
    assert done.stdout.startswith("2 runs in 3 pages, ")
    assert done.stdout.endswith(f"MB: open {tmp_path}/out/index.html\n")
    assert "bbbbbbbbbbbb is broken, and is shown as broken" in done.stderr
    assert "<h1>A study</h1>" in (tmp_path / "out" / "index.html").read_text()
    told = json.loads(holdfast("report", tmp_path / "runs", "--out", tmp_path / "out", "--json").stdout)
    assert told["pages"] == 3
    assert told["bytes"] == sum(path.stat().st_size for path in (tmp_path / "out").rglob("*.*") if path.is_file())


def test_a_store_that_is_not_there_is_told(tmp_path):
    with pytest.raises(UserError, match="no store exists at"):
        holdfast("report", tmp_path / "nowhere")
