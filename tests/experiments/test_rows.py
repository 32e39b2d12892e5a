"""Rows of the papers' tables as names of algorithms: an algorithm with a setting."""

import json

import pytest

from cli.inside import inside
from holdfast import registry
from holdfast.errors import UserError
from holdfast.experiments.config import resolve
from holdfast.experiments.request import Request, settings_for
from holdfast.experiments.store import Store
from holdfast.reports.groups import rows_of
from smallest import SETTINGS, prepare, run


def only(words, benchmark="patterns", **settings):
    (algorithm,) = resolve(Request(benchmark, words, scale="tiny", settings=settings)).algorithms
    return algorithm


def test_a_row_is_its_algorithm_with_a_setting():
    assert only("mir-max").by == only("er-mir-max").by == only("ER_MIR_max").by == "max"
    assert only("balanced-sqrt").memory == "balanced-sqrt"
    assert only("balanced-forget@40").memory == "balanced-forget"
    assert only("mir-max@40").capacity == 40
    assert only("frozen-bottom-9").k == 9
    assert only("frozen-bottom-12", "climb").k == 12, "before the benchmark's own"
    assert only("balanced-sqrt", "viscoll:coco").by == "word", "beside the benchmark's own"
    frozen, mir = resolve(Request(algorithm="frozen-bottom-2+mir-max")).algorithms
    assert (frozen.k, mir.by) == (2, "max")


def test_it_is_the_run_that_the_setting_makes():
    plain = prepare(Request(algorithm="mir", scale="tiny", settings={"mir.by": "max"}))
    row = prepare(Request(algorithm="mir-max", scale="tiny"))
    assert row.config.id == plain.config.id
    assert Request.from_command(row.config.request.command()).algorithm == "mir-max"


def test_what_contradicts_the_name_is_refused(tmp_path):
    assert only("mir-max", **{"mir.by": "max", "mir.size": 4}).size == 4
    with pytest.raises(UserError, match=r"'mir-max' says mir\.by=max, and --set says mean: give one of the two"):
        only("mir-max", **{"er-mir.by": "mean"})
    with pytest.raises(UserError, match=r"'er@100' says replay\.capacity=100, and --set says 50"):
        only("er@100", **{"replay.capacity": 50})
    assert only("er@100", **{"replay.capacity": "100"}).capacity == 100
    with pytest.raises(UserError, match="names one algorithm twice"):
        only("mir+mir-max")
    with pytest.raises(UserError, match=r"unknown algorithm 'mir-mx': did you mean mir-max"):
        only("mir-mx")
    with pytest.raises(UserError, match=r"frozen-bottom\.k is 9, but this encoder has 2 layers"):
        run(prepare(Request(algorithm="frozen-bottom-9", scale="tiny")), Store(tmp_path))


def test_a_setting_reaches_the_rows_of_its_algorithm():
    found = settings_for(["mir-max", "ewc"], {"mir.size": 8})
    assert found == {"mir-max": {"mir.size": 8}, "ewc": {}}


def test_rows_stay_apart_in_tables(tmp_path):
    records = [
        run(prepare(Request(algorithm=words, scale="tiny", settings={**SETTINGS, "train.epochs": 1})), Store(tmp_path))
        for words in ("mir", "mir-max")
    ]
    assert sorted(rows_of(records)) == ["mir (by=max)", "mir (by=mean)"]


def test_the_list_shows_them(tmp_path):
    listed = json.loads(inside("list", "algorithms", "--json", cwd=tmp_path).stdout)["algorithms"]
    rows = {each["name"]: each["rows"] for each in listed}
    assert rows["mir"] == {"mir-max": {"by": "max"}, "er-mir-max": {"by": "max"}}
    assert rows["frozen-bottom"] == {"frozen-bottom-K": {"k": "K"}}
    about = json.loads(inside("list", "algorithms", "frozen-bottom-9", "--json", cwd=tmp_path).stdout)
    assert about["summary"] == registry.ALGORITHMS["frozen-bottom"].summary
