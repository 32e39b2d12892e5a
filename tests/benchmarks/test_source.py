"""Where data comes from: written once, prepared once, moved freely; skipped records are reported."""

import json
import shutil
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from holdfast.benchmarks import synthetic
from holdfast.benchmarks.cache import cache_folder
from holdfast.benchmarks.clvqa import tasks
from holdfast.benchmarks.source import Source, open_source
from holdfast.benchmarks.splits import prepare_split
from holdfast.benchmarks.synthetic import world
from holdfast.benchmarks.vocabulary import word_pieces
from holdfast.datasets.clevr import DATASET
from holdfast.errors import UserError


def split_of(where: Source, name: str = "val"):
    words, longest = word_pieces(where, lambda: (e.text for e in where.examples(name)))
    return prepare_split(
        where,
        "clevr",
        name,
        target=tasks.answer_numbers,
        notes={"function": tasks.function_numbers},
        module=tasks.__name__,
        pictures=False,
        tokenizer=words,
        length=longest,
    )


@pytest.fixture
def folder(tiny_clevr, tmp_path):
    """A copy that a test may break."""
    return shutil.copytree(tiny_clevr, tmp_path / "clevr")


def test_the_cache_is_where_the_user_says(monkeypatch, tmp_path):
    monkeypatch.setenv("HOLDFAST_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"
    monkeypatch.delenv("HOLDFAST_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "holdfast"


def test_two_processes_write_the_world_once(monkeypatch, tmp_path):
    monkeypatch.setenv("HOLDFAST_CACHE", str(tmp_path))
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        (place,) = set(pool.map(world, ["sst2"] * 2, ["tiny"] * 2))
    assert [p.name for p in (tmp_path / "world").iterdir() if not p.name.startswith(".")] == [place.name]


def test_another_version_of_a_writer_is_another_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("HOLDFAST_CACHE", str(tmp_path))
    before = world("sst2", "tiny")
    monkeypatch.setattr("holdfast.world.writers.sst2.VERSION", 99)
    assert world("sst2", "tiny") != before


@pytest.mark.parametrize(
    "module",
    ["holdfast.datasets.clevr", "holdfast.data.prepared", "holdfast.data.decoding", "holdfast.benchmarks.clvqa.tasks"],
)
def test_a_table_of_another_version_of_any_of_its_makers_is_prepared_anew(module, monkeypatch, folder):
    split_of(Source(DATASET, folder))
    monkeypatch.setattr(f"{module}.VERSION", 99)
    unreadable = Source(DATASET.__class__(**{**vars(DATASET), "read": None}), folder)
    with pytest.raises(TypeError):
        split_of(unreadable)


def test_official_files_are_found_by_their_names(folder, tmp_path):
    assert open_source("clevr", data=str(folder)).folder == folder
    assert open_source("clevr", data=str(tmp_path)).folder == folder, "one folder that holds several datasets"
    with pytest.raises(UserError, match="contains no clevr: `holdfast data check"):
        open_source("clevr", data=str(folder / "CLEVR_v1.0" / "images"))


def test_a_table_is_prepared_once_and_opened_without_reading(folder):
    first = split_of(Source(DATASET, folder))
    unreadable = Source(DATASET.__class__(**{**vars(DATASET), "read": None}), folder)
    again = split_of(unreadable)
    assert again.table.inputs["text"].tolist() == first.table.inputs["text"].tolist()
    assert "function" not in again.table.inputs, "the model is not told what a question asks"
    assert again.notes["function"].tolist() == first.notes["function"].tolist()


def test_a_changed_file_is_read_anew(folder):
    before = split_of(Source(DATASET, folder))
    path = folder / "CLEVR_v1.0/questions/CLEVR_val_questions.json"
    content = json.loads(path.read_text())
    del content["questions"][3:]
    path.write_text(json.dumps(content))
    assert (len(before.ids), len(split_of(Source(DATASET, folder)).ids)) == (199, 3)


def test_bad_records_are_dropped_up_to_a_number_and_told(folder):
    path = folder / "CLEVR_v1.0/questions/CLEVR_val_questions.json"
    content = json.loads(path.read_text())
    content["questions"][5]["answer"] = "mauve"
    content["questions"][7]["program"] = []
    path.write_text(json.dumps(content))
    with pytest.raises(UserError, match="question 5: its answer 'mauve' is not one of CLEVR's"):
        split_of(Source(DATASET, folder))
    found = split_of(Source(DATASET, folder, skip_bad=2))
    assert len(found.ids) == 197
    assert [line.split(": ")[1] for line in found.problems] == [
        "its answer 'mauve' is not one of CLEVR's",
        "its program is empty",
    ]
    assert split_of(Source(DATASET, folder, skip_bad=5)).problems == found.problems, "also from the cache"
    with pytest.raises(UserError, match="question 7: its program is empty"):
        split_of(Source(DATASET, folder, skip_bad=1))


def test_several_worlds_are_written_at_once_and_none_twice(monkeypatch, tmp_path):
    monkeypatch.setenv("HOLDFAST_CACHE", str(tmp_path))
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    kept = world("sst2", "tiny")
    before = kept.stat().st_mtime_ns
    synthetic.worlds(["sst2", "piqa", "commonsenseqa"], "tiny")
    assert kept.stat().st_mtime_ns == before
    names = sorted(path.name.split("-")[0] for path in (tmp_path / "world").iterdir() if path.name[0] != ".")
    assert names == ["commonsenseqa", "piqa", "sst2"]
    monkeypatch.setattr(synthetic, "working", None)
    synthetic.worlds(["piqa", "sst2"], "tiny")  # all there: no process is started
