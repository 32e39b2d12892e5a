"""Records of 0.1 stay readable, and no two versions of a part share a row or a table."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from safetensors.torch import load_file

from holdfast.benchmarks.climb.runs import RunsAtScale
from holdfast.experiments.request import Request
from holdfast.experiments.store import Record, Store
from holdfast.reports.blocks import TableBlock
from holdfast.reports.groups import experiments, rows_of
from holdfast.reports.sections import section
from reports import stores
from reports.commands import holdfast
from smallest import prepare, prepared, run

OLD = Path(__file__).parents[1] / "golden/store-0.1"


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(shutil.copytree(OLD, tmp_path / "runs"))


def record_of(store: Store, number: int = 0) -> Record:
    record = store.runs()[number].record()
    assert record is not None
    return record


def test_a_record_of_holdfast_0_1_is_read(store):
    record = record_of(store)
    assert (record.config["version"], "parts" in record.config) == (3, False)
    assert record.algorithm == "replay"
    assert load_file(store.folder(record.id).weights)
    assert list(rows_of([record_of(store), record_of(store, 1)])) == ["replay"]


@pytest.mark.parametrize("words", [["list", "runs"], ["show", "2500"], ["compare"], ["report"]])
def test_commands_read_a_store_of_holdfast_0_1(store, words, tmp_path):
    where = ["--out", str(store.path)] if words[0] in ("list", "show") else [str(store.path)]
    where += ["--out", str(tmp_path / "report")] if words == ["report"] else []
    holdfast(*words, *where)


def test_what_holdfast_0_1_ran_is_run_again_and_stands_in_a_table_of_its_own(store):
    old = record_of(store)
    ready = prepare(Request.from_command(old.environment["command"]))
    assert ready.config.id != old.id
    new = run(ready, store)
    found = experiments([old, new])
    assert [each.title for each in found] == [
        "patterns · tiny · class · forward · perceptron · by holdfast 0.1",
        "patterns · tiny · class · forward · perceptron",
    ]
    assert [len(each.records) for each in found] == [1, 1]


def with_parts(record: Record, name: str, **versions: int) -> Record:
    raised = {part.replace("_", " "): version for part, version in versions.items()}
    return replace(record, id=name, config={**record.config, "parts": {**record.config["parts"], **raised}})


def test_rows_of_other_versions_of_an_algorithm_are_told_apart_by_the_part(tmp_path):
    record = run(prepared("replay", train__epochs=1), Store(tmp_path))
    other = with_parts(record, "raised", algorithm_Replay=2)
    assert list(rows_of([record, other])) == ["replay (algorithm Replay=1)", "replay (algorithm Replay=2)"]
    assert len(experiments([record, other])) == 1


def test_runs_of_other_versions_of_what_all_rows_share_stand_in_other_tables(tmp_path):
    record = run(prepared("replay", train__epochs=1), Store(tmp_path))
    engine = json.loads((tmp_path / record.id / "config.json").read_text())["parts"]["engine"]
    found = experiments([record, with_parts(record, "raised", engine=engine + 1)])
    assert sorted(each.title.rpartition("(")[2] for each in found) == [f"engine={engine})", f"engine={engine + 1})"]


MIXED = "Made with different versions, which may be why they differ: engine 1 (ewc); engine 2 (finetune)."


@pytest.mark.parametrize(
    ("benchmark", "own", "summary"),
    [
        ("clvqa", {"setting": "two", "order": "", "model": "san-tiny"}, {"wh": 0.1, "yn": 0.6}),
        ("viscoll:coco", {"order": "random", "setting": "standard", "model": "vlbert-tiny"}, {"log_perplexity": 3.0}),
        ("cfst:cgqa", {"model": "resnet18"}, {"Acon": 0.2}),
    ],
)
def test_a_paper_s_table_tells_which_rows_other_versions_made(benchmark, own, summary):
    def noted(*versions):
        runs = []
        for algorithm, version in zip(("ewc", "finetune"), versions, strict=True):
            value = stores.record(benchmark, algorithm, summary=summary, **own)
            value["config"]["parts"] = {"engine": version, f"algorithm {algorithm}": version}
            runs.append(Record.from_json(value, "test"))
        tables = [block for block in section(benchmark.partition(":")[0], runs) if isinstance(block, TableBlock)]
        assert tables
        return [MIXED in table.notes for table in tables if len(table.rows) > 1]

    assert all(noted(1, 2))
    assert not any(noted(1, 1))


def test_climb_s_tables_tell_it_too():
    runs = []
    for algorithm, version in (("ewc", 1), ("finetune", 2)):
        value = stores.record("climb", algorithm, order="vqav2>nlvr2>snli-ve>vcr", model="vilt", stages=1)
        value["config"]["parts"] = {"engine": version}
        runs.append(Record.from_json(value, "test"))
    assert MIXED.replace("finetune", "seqft") in RunsAtScale(runs).notes
    del runs[0].config["parts"]
    assert any("by holdfast 0.1 (ewc); engine 2 (seqft)" in note for note in RunsAtScale(runs).notes)
