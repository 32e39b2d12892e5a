"""What writers write, readers read and benchmarks prepare is what it was when a VERSION was last raised."""

import os
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import holdfast
from golden.cached import TOLERANCE, Golden, Seen, measured, read, verdict, verdicts
from holdfast import registry
from holdfast.benchmarks import cache


@pytest.fixture(scope="module")
def now(tiny_cache, tmp_path_factory):
    """Everything, measured now; the world's datasets may be there from other tests."""
    with mock.patch.dict(os.environ), mock.patch("os.cpu_count", return_value=1):
        return measured(tiny_cache, tmp_path_factory.mktemp("tables"))


def test_what_is_kept_is_as_it_was_recorded(now):
    then = read()
    told = verdicts(then, now)
    assert not told, "\n".join(told.values())
    assert then.keys() <= now.keys(), "run `make goldens`: some are of what is gone"


def test_every_version_has_a_golden(now):
    covered = {module for golden in now.values() for module in golden.versions}
    expected = {entry.module for table in (registry.WRITERS, registry.DATASETS) for entry in table.values()}
    root = Path(holdfast.__file__).parent
    for path in (root / "benchmarks").rglob("*.py"):
        if "\nVERSION = " in path.read_text(encoding="utf-8"):
            expected.add(".".join(["holdfast", *path.relative_to(root).with_suffix("").parts]))
    expected.remove("holdfast.benchmarks.patterns.tasks")  # it keeps nothing: its pictures are drawn in memory
    assert expected | {f"holdfast.data.{name}" for name in ("prepared", "decoding", "regions", "text")} == covered
    assert all(cache.version_of(module) >= 1 for module in covered)


def test_a_change_names_the_version_to_raise():
    then = Golden({"holdfast.datasets.clevr": 1}, "abc", [1.0, 2.0])
    assert verdict("reader: clevr", then, replace(then, sums=[1.0 + TOLERANCE / 2, 2.0])) == ""
    told = verdict("reader: clevr", then, replace(then, words="abd"))
    assert told == (
        "reader: clevr: its words or whole numbers changed: raise VERSION in src/holdfast/datasets/clevr.py, "
        "then run `make goldens`"
    )
    assert "pixels or fractions" in verdict("reader: clevr", then, replace(then, sums=[1.0, 3.0]))
    raised = replace(then, words="abd", versions={"holdfast.datasets.clevr": 2})
    assert "of other versions of holdfast.datasets.clevr: run `make goldens`" in verdict("reader: clevr", then, raised)
    assert "no golden yet" in verdict("reader: clevr", None, then)


def test_a_change_is_told_where_it_comes_from():
    then = {
        "world: sst2": Golden({"w": 1}, "a"),
        "reader: sst2": Golden({"r": 1}, "a"),
        "sst2: words": Golden({"r": 1, "t": 1}, "a"),
        "imdb: words": Golden({"t": 1}, "a"),
    }
    now = {title: replace(golden, words="b") for title, golden in then.items()}
    assert list(verdicts(then, now)) == ["world: sst2", "imdb: words"]
    raised = now | {"world: sst2": Golden({"w": 2}, "b")}
    assert [title for title, told in verdicts(then, raised).items() if "raise" not in told] == [
        "world: sst2",
        "reader: sst2",
        "sst2: words",
    ]
    assert (
        "raise VERSION in src/r.py or src/t.py"
        in verdicts(then, now | {t: then[t] for t in list(then)[:2]})["sst2: words"]
    )


def seen(pictures, text=""):
    found = Seen()
    found.text(text)
    for picture in pictures:
        found.array(picture)
    return found.golden({})


def test_another_machines_rounding_is_let_pass_and_a_small_thing_in_one_picture_is_not():
    random = np.random.default_rng(0)
    pictures = list(random.integers(0, 256, (100, 48, 48, 3), np.uint8))
    before = seen(pictures)
    rounded = [np.where(random.random(p.shape) < 0.01, p ^ 1, p) for p in pictures]
    assert verdict("world", before, seen(rounded)) == ""
    pictures[37] = pictures[37].copy()
    pictures[37][10:22, 10:22] = 255
    assert "pixels" in verdict("world", before, seen(pictures))
    assert seen([], "at 0.30000000000000004").words == seen([], "at 0.3000000000000001").words
    assert seen([], "at 0.3").words != seen([], "at 0.4").words
