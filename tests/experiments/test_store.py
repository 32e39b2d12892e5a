"""Records and configurations that are not as they should be: a sentence that names the file, never a traceback."""

import copy
import json

import pytest

from holdfast.errors import UserError
from holdfast.experiments.cost import expected
from holdfast.experiments.plan import graph
from holdfast.experiments.store import SCHEMA, Record, RunFolder, Store
from holdfast.reports.tables import comparison, matrix
from smallest import prepared, request, run

OTHERS = [None, [], {}, "x", -1, True, [[]], {"a": 1}, 10**400, KeyError]
"""What a value is replaced by; the last takes it away."""


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> RunFolder:
    store = Store(tmp_path_factory.mktemp("store"))
    return store.folder(run(prepared(train__epochs=1), store).id)


def places(value, at=()):
    """Every place in a tree of JSON, of a list the first."""
    if at:
        yield at
    inside = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, below in inside:
        yield from places(below, (*at, key))


def changed(value, at, new):
    value = copy.deepcopy(value)
    below = value
    for key in at[:-1]:
        below = below[key]
    if new is KeyError:
        del below[at[-1]]
    else:
        below[at[-1]] = new
    return value


def test_a_record_with_any_value_changed_is_shown_or_refused_in_a_sentence(done):
    good = json.loads((done.path / "record.json").read_text())
    assert list(Record.from_json(good, "here").to_json()["scores"]) == good["scores"]
    refused: list[str] = []
    for document in [*(changed(good, at, new) for at in places(good) for new in OTHERS), *OTHERS[:-1], [good], "{}"]:
        try:
            record = Record.from_json(document, "here/record.json")
        except UserError as error:
            refused.append(str(error))
        else:
            comparison([record])
            matrix(record)
    assert len(refused) > 300
    assert all(sentence.startswith("here/record.json ") for sentence in refused)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("cost", {"steps": 3}, "(cost)"),
        ("summary", {"forgetting": "much"}, "(summary)"),
        ("scores", [{"stage": 1}], "(scores)"),
        ("surprise", 1, "unexpected keyword argument 'surprise'"),
        ("schema", SCHEMA + 1, "newer holdfast"),
    ],
)
def test_a_record_that_is_refused_says_which_part_is_wrong(done, name, value, told):
    good = json.loads((done.path / "record.json").read_text())
    with pytest.raises(UserError) as caught:
        Record.from_json(good | {name: value}, "here/record.json")
    assert told in str(caught.value)


BROKEN = [b"", b'{"id"', b"\xff{", b"[" * 100_000, b"3", b"null", b"[{}]", b"9" * 5000]


@pytest.mark.parametrize("text", BROKEN, ids=range(len(BROKEN)))
def test_files_that_are_cut_or_foreign_are_refused_by_name(done, text, tmp_path):
    folder = RunFolder(tmp_path / done.id)
    folder.path.mkdir()
    for name, read in (("record", folder.record), ("config", folder.config), ("environment", folder.command)):
        (folder.path / f"{name}.json").write_bytes(text)
        with pytest.raises(UserError, match=rf"^{folder.path / name}.json .*folder"):
            read()


def test_a_plan_tells_a_broken_record_and_what_is_known_of_costs_passes_it_over(done):
    plan, store = graph([request(train__epochs=1)]), Store(done.path.parent)
    file = done.path / "record.json"
    good = file.read_text()
    assert plan.done(store) == {done.id}
    assert len(expected(store)) == 1
    try:
        for text in ("[" * 100_000, "{}", good[:500], good.replace('"seconds":', '"seconds": "long", "other":')):
            file.write_text(text)
            assert expected(store) == {}
            with pytest.raises(UserError, match=r"record.json .*: delete its folder and run again"):
                plan.done(store)
    finally:
        file.write_text(good)


def test_a_run_that_is_not_there_is_answered_with_few_ids_or_with_the_command_that_lists_them(tmp_path):
    store = Store(tmp_path / "my runs")
    ids = [f"{number:012x}" for number in range(0x10, 0x10 + 190)]

    def make(names):
        for name in names:
            store.folder(name).path.mkdir(parents=True)
            (store.folder(name).path / "config.json").write_text("{}")

    make(ids[:3])
    with pytest.raises(UserError, match=f"unknown run 'zz' in .*: there are {', '.join(ids[:3])}$"):
        store.find("zz")
    make(ids[3:])
    told = f"`holdfast list runs --out '{store.path}'` lists all$"
    with pytest.raises(UserError, match=f"unknown run 'zz' in .*: {told}"):
        store.find("zz")
    with pytest.raises(UserError, match=f"'00' matches 190 runs of .*: {told}"):
        store.find("00")
    with pytest.raises(UserError, match=f"did you mean {ids[5]}"):
        store.find(f"{ids[5]}z")
    assert store.find(ids[5]).id == ids[5]
