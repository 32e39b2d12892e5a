"""The pages of a report as files: whole, escaped, self-contained, small and quick."""

import base64
import json
import re
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest

import holdfast
from holdfast.errors import UserError
from holdfast.reports import report
from holdfast.reports.report import write
from reports.stores import many, put, record

VOID = {"meta", "link", "img", "input", "br", "path", "circle", "rect"}


class Page(HTMLParser):
    """Elements that end where they should, links, and text."""

    def __init__(self, path):
        super().__init__()
        self.open, self.links, self.ids, self.text, self.tags = [], [], set(), "", []
        self.feed(path.read_text(encoding="utf-8"))
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.tags.append((tag, values))
        self.links += [values[name] for name in ("href", "src") if values.get(name)]
        self.ids |= {values["id"]} if "id" in values else set()
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] not in ("script", "style"):
            self.text += data


def build(store, out, **words):
    written = write(holdfast.load(store), out, **words)
    pages = {path: Page(path) for path in out.rglob("*.html")}
    assert written.pages == len(pages)
    assert written.bytes == sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    for path, page in pages.items():
        for link in page.links:
            if link.startswith("#"):
                assert link[1:] in page.ids, (path, link)
            else:
                assert link.startswith("data:") or (path.parent / link).is_file(), (path, link)
    return pages


def test_a_real_store_has_an_index_and_a_page_for_each_run(real_store, tmp_path):
    pages = build(real_store, tmp_path)
    index = pages[tmp_path / "index.html"]
    for run in holdfast.load(real_store):
        assert f"runs/{run.id}.html" in index.links
        page = pages[tmp_path / "runs" / f"{run.id}.html"]
        assert run.command in page.text
        assert "capacity" in page.text or run.algorithm == "finetune"
        assert f"{100 * run.summary['final_accuracy']:.1f}" in page.text
    assert "Not done" not in index.text
    assert index.text.count("finetune") >= 3


def test_the_index_holds_its_style_and_script_and_names_no_other_machine(real_store, tmp_path):
    build(real_store, tmp_path)
    index = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert '<link rel="stylesheet"' not in index
    assert "<script src" not in index
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert not re.search(r"https?://|@import|url\(", path.read_text(encoding="utf-8")), path


def test_a_store_with_one_run_and_one_with_none(real_store, tmp_path):
    run = holdfast.load(real_store)[0]
    pages = build(run.path, tmp_path / "one", title="A single run")
    assert "A single run" in pages[tmp_path / "one" / "index.html"].text
    (tmp_path / "empty").mkdir()
    pages = build(tmp_path / "empty", tmp_path / "none")
    assert "No run is done yet" in pages[tmp_path / "none" / "index.html"].text
    with pytest.raises(UserError, match="is a file"):
        write(holdfast.load(real_store), run.path / "record.json")


def test_failed_and_broken_runs_are_shown_and_stop_nothing(tmp_path):
    store = tmp_path / "store"
    put(store, record(run="aaaaaaaaaaaa"))
    failed = put(store, record(run="bbbbbbbbbbbb", algorithm="ewc"))
    (failed / "record.json").unlink()
    (failed / "failure.txt").write_text(
        "Traceback (most recent call last):\n  ...\nRuntimeError: <b>out of memory</b>\n"
    )
    (put(store, record(run="cccccccccccc")) / "record.json").write_text('{"id": "ccc')
    foreign = put(store, record(run="other tool #1"))
    (foreign / "record.json").write_text('{"name": "another tool", "schema": 1}')
    pages = build(store, tmp_path / "out")
    index = pages[tmp_path / "out" / "index.html"]
    assert "Not done" in index.text
    assert "RuntimeError: <b>out of memory</b>" in index.text
    assert "is broken" in index.text
    assert "is not a record of a run" in index.text
    assert "Traceback" in pages[tmp_path / "out" / "runs" / "bbbbbbbbbbbb.html"].text
    assert "final acc." in index.text  # the finished one is still compared


def test_hostile_names_stay_text(tmp_path):
    bad = "<script>alert(1)</script>\"'&"
    value = record(benchmark=f"patterns{bad}", algorithm=bad, run="aaaaaaaaaaaa", order=bad, summary={bad: 0.5})
    value["scores"][0]["name"] = bad
    value["environment"]["command"] = bad
    value["reasons"] = {bad: bad}
    put(tmp_path / "store", value)
    pages = build(tmp_path / "store", tmp_path / "out", title=bad)
    for path, page in pages.items():
        assert bad in page.text
        scripts = [values for tag, values in page.tags if tag == "script"]
        assert len(scripts) == 1, path


def test_what_other_commands_left_in_a_runs_folder_is_on_its_page(tmp_path):
    folder = put(tmp_path / "store", record(run="aaaaaaaaaaaa"))
    (folder / "pictures").mkdir()
    picture = b"\x89PNG\r\n\x1a\nrest"
    (folder / "pictures" / "tsne.png").write_bytes(picture)
    (folder / "pictures" / "huge.png").write_bytes(b"0" * 600_000)
    (folder / "tables").mkdir()
    table = {"title": "confusion", "columns": ["asked", "yes"], "rows": [["what size", 6666]], "notes": ["of table 3"]}
    (folder / "tables" / "confusion.json").write_text(json.dumps(table))
    (folder / "tables" / "bad.json").write_text(json.dumps({**table, "rows": [["short"]]}))
    counts = {"ours": {"equal size": {"yes": 41}}, "paper": {"equal size": {"yes": 4141}}}
    (folder / "tables" / "counts.json").write_text(json.dumps(counts))
    page = build(tmp_path / "store", tmp_path / "out")[tmp_path / "out" / "runs" / "aaaaaaaaaaaa.html"]
    assert "counts, paper" in page.text
    assert "4141" in page.text
    assert page.text.count("not reproduce") == 2  # both of them say so
    assert f"data:image/png;base64,{base64.b64encode(picture).decode()}" in page.links
    assert "is not shown: it has more than 0.5 MB" in page.text
    assert "6666" in page.text
    assert "tables/bad.json is not a table" in page.text


def test_five_hundred_runs_take_less_than_five_seconds_and_five_megabytes(tmp_path):
    many(tmp_path / "store", 500)
    began = time.process_time()
    written = write(holdfast.load(tmp_path / "store"), tmp_path / "out")
    assert time.process_time() - began < 5
    assert written.bytes < 5_000_000
    assert written.pages == 501


def test_a_large_store_has_its_list_of_runs_on_a_page_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "MANY", 30)
    many(tmp_path / "store", 40)
    pages = build(tmp_path / "store", tmp_path / "out")
    assert "all-runs.html" in pages[tmp_path / "out" / "index.html"].links
    listed = [link for link in pages[tmp_path / "out" / "all-runs.html"].links if link.startswith("runs/")]
    assert len(listed) == 40


def test_seeds_without_links_are_counted_and_intervals_explained(tmp_path):
    for seed in range(12):
        put(tmp_path, record(seed=seed))
    page = report.write(holdfast.load(tmp_path), tmp_path / "out").index.read_text()
    assert re.search(r">9</a> and 2 more</small>", page)
    assert "Bands are 95 % t-intervals over the seeds" in page


def test_a_runs_own_page_has_units_and_warns_of_synthetic_data(tmp_path):
    put(tmp_path, record("climb", run="aaaaaaaaaaaa", summary={"final_accuracy": 0.5, "forgetting_transfer": 20.0}))
    put(tmp_path, record(run="bbbbbbbbbbbb"))
    report.write(holdfast.load(tmp_path), tmp_path / "out")
    climb, patterns = ((tmp_path / "out" / "runs" / f"{name * 12}.html").read_text() for name in "ab")
    assert "In percent." in climb
    assert "On small synthetic data: this does not reproduce" in climb
    assert "In percent." in patterns
    assert "not reproduce" not in patterns


def test_of_very_many_seeds_the_first_are_drawn(tmp_path):
    for algorithm in ("finetune", "replay"):
        for seed in range(52):
            put(tmp_path, record(algorithm=algorithm, seed=seed, stages=1))
    page = report.write(holdfast.load(tmp_path), tmp_path / "out").index.read_text()
    assert "The first 50 seeds of each row are drawn; all count in the means." in page
    assert "replay, seed 49: " in page
    assert "replay, seed 50: " not in page
    assert "replay, mean of 52: " in page
    assert '<th scope="col">seed 50</th>' not in page


def test_if_only_failed_runs_are_there_the_page_says_how_to_repeat_the_first(tmp_path):
    failed = put(tmp_path, record(algorithm="ewc", seed=3))
    (failed / "record.json").unlink()
    (failed / "failure.txt").write_text("RuntimeError: out of memory")
    page = report.write(holdfast.load(tmp_path), tmp_path / "out").index.read_text()
    assert "<pre>holdfast run patterns --algorithm ewc --scale tiny --seed 3</pre>" in page


def test_the_table_at_the_top_has_the_best_rows_of_many(tmp_path):
    for rate in range(15):
        value = record(algorithm="replay", run=f"{rate:012x}", summary={"final_accuracy": 0.5 + rate / 100})
        value["config"]["algorithms"][0]["capacity"] = rate
        put(tmp_path, value)
    page = report.write(holdfast.load(tmp_path), tmp_path / "out").index.read_text()
    lead, rest = page.split('<div class="lead">')[1].split('<details class="more">', 1)
    assert lead.count('<th scope="row"') == report.LEAD + 15, "the picture has the numbers of all rows"
    assert "The 12 best means of final acc. among 15 rows" in lead
    assert "All measures" in rest
    assert "15 settings of 1 algorithm" in page


def test_the_first_thing_said_follows_from_the_tests_and_what_failed_is_beside_it(tmp_path):
    for algorithm, lost in (("finetune", 0.17), ("replay", 0.05)):
        for seed in range(5):
            put(tmp_path, record(algorithm=algorithm, seed=seed, lost=lost))
    failed = put(tmp_path, record(run="bbbbbbbbbbbb", algorithm="ewc"))
    (failed / "record.json").unlink()
    (failed / "failure.txt").write_text("RuntimeError: out of memory")
    page = report.write(holdfast.load(tmp_path), tmp_path / "out").index.read_text()
    main = page[page.index('<main id="main">') :]
    places = [main.index(text) for text in ("1 run failed.", "Compared with finetune, replay forgets", "<svg", "Bold")]
    assert places == sorted(places)
    assert main.index("RuntimeError: out of memory") < places[1]


def test_reports_and_load_need_no_torch(real_store, tmp_path):
    code = (
        "import sys, pathlib, holdfast; from holdfast.reports import compare, report\n"
        f"runs = holdfast.load({str(real_store)!r}); report.write(runs, pathlib.Path({str(tmp_path)!r}))\n"
        "compare.tables(runs)\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert (Path(tmp_path) / "index.html").exists()
