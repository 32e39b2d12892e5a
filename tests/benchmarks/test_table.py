"""Your own tables: how cells become examples, which rows belong together, and what is said of a table that is wrong."""

import csv
import io
import json

import numpy as np
import pytest

from benchmarks.pictures import COLOURS, draw
from holdfast import run
from holdfast.benchmarks.table.benchmark import TableData
from holdfast.benchmarks.table.files import find_tables, read_rows
from holdfast.datasets.base import Reading
from holdfast.errors import UserError
from holdfast.experiments.config import resolve
from holdfast.experiments.request import Request
from holdfast.experiments.setups import Setups
from holdfast.types import Wants

FIELDS = ["path", "question", "answer", "topic"]
QA = {"image": "path", "text": "question", "target": "answer", "by": "topic"}
QUICK = {"benchmark.side": 32, "train.epochs": 2, "model.weights": "", "model.width": 16, "model.depth": 1}
QUICK |= {"model.heads": 2, "model.hidden": 16}


def qa(folder, count=10):
    """Two questions about each picture: its name, and whether it is one of these."""
    rows = []
    for topic, names in {"land": ("ant", "bee", "cow"), "water": ("eel", "dog")}.items():
        for name in names:
            for number in range(count):
                picture = f"{name}-{number}.png"
                draw(folder / "pictures" / picture, COLOURS[name], 3)
                rows.append((f"pictures/{picture}", "What is this?", name, topic))
                rows.append((f"pictures/{picture}", f"Is this a, well, {names[number % 2]}?", "yes", topic))
    return [dict(zip(FIELDS, row, strict=True)) for row in rows]


def write_csv(path, rows, **options):
    with path.open("w", newline="", encoding=options.pop("encoding", "utf-8")) as file:
        writer = csv.DictWriter(file, list(rows[0]), **options)
        writer.writeheader()
        writer.writerows(rows)
    return path


def write_jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n\n" for row in rows))
    return path


def write_json(path, rows):
    path.write_text(json.dumps(rows, indent=1))
    return path


def write_parquet(path, rows):
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.Table.from_pylist(rows), path, row_group_size=7)
    return path


def write_arrow(path, rows):
    """As `datasets` writes it: a stream."""
    import pyarrow

    table = pyarrow.Table.from_pylist(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    with pyarrow.OSFile(str(path), "wb") as sink, pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=5)
    return path


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("qa")
    return folder, qa(folder)


def laid_out(data, **settings):
    benchmark = TableData(data=str(data), **{**QA, **settings})
    setup = benchmark.setup(Wants(side=8))
    known = benchmark._layout()[0]
    return setup, known


def examples(data, **settings):
    """What each row became, whatever the order of rows."""
    listing = TableData(data=str(data), **{**QA, **settings}).listing()
    return sorted(zip(listing.ids, listing.targets, listing.texts, listing.values, listing.groups, strict=True))


# Files


def test_every_kind_of_file_gives_the_same_examples(rows):
    folder, given = rows
    expected = examples(write_csv(folder / "qa.csv", given))
    assert len(expected) == 100
    shuffled = [given[n] for n in np.random.default_rng(2).permutation(len(given))]
    others = [
        write_csv(folder / "semicolons.csv", shuffled, delimiter=";", quoting=csv.QUOTE_ALL),
        write_csv(folder / "excel.csv", given, encoding="utf-8-sig", lineterminator="\r\n"),
        write_csv(folder / "qa.tsv", given, delimiter="\t"),
        write_jsonl(folder / "qa.jsonl", shuffled),
        write_json(folder / "qa.json", given),
        write_parquet(folder / "qa.parquet", shuffled),
        write_arrow(folder / "qa.arrow", given),
        write_csv(folder / "windows.csv", [{**r, "path": r["path"].replace("/", "\\")} for r in given]),
        write_csv(folder / "absolute.csv", [{**r, "path": str((folder / r["path"]).absolute())} for r in given]),
    ]
    for other in others:
        assert examples(other) == expected, other.name


def test_quotes_newlines_and_long_fields(tmp_path):
    odd = ['He said "no", twice', "two\nlines; and,commas", "x" * 300_000, "naïve café — ☕"]
    table = write_csv(tmp_path / "odd.csv", [{"text": odd[n % 4] + f" {n}", "label": "ab"[n % 2]} for n in range(40)])
    listing = TableData(data=str(table), text="text", target="label").listing()
    assert sorted(listing.texts) == sorted(odd[n % 4] + f" {n}" for n in range(40))
    (row, _), *_ = read_rows(table, {"text": "text"}, Reading())
    assert row == "row 1 (line 2)"
    assert [where for where, _ in read_rows(table, {}, Reading())][2] == "row 3 (line 5)", "a field of two lines"


def test_a_dataset_of_hugging_face_as_it_is_saved_and_as_it_is_cached(tmp_path):
    picture = io.BytesIO()
    given = []
    for number in range(40):
        picture = io.BytesIO()
        draw(tmp_path / "p.png", COLOURS["ant" if number % 2 else "bee"], number)
        picture.write((tmp_path / "p.png").read_bytes())
        given.append({"image": {"bytes": picture.getvalue(), "path": None}, "label": number % 2})
    saved = tmp_path / "saved"
    write_arrow(saved / "train/data-00000-of-00002.arrow", given[:15])
    write_arrow(saved / "train/data-00001-of-00002.arrow", given[15:30])
    write_arrow(saved / "test/data-00000-of-00001.arrow", given[30:])
    (saved / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    (saved / "train/state.json").write_text("{}")
    cached = tmp_path / "pets/default/0.0.0/0123456789abcdef0123456789abcdef01234567"
    write_arrow(cached / "pets-train.arrow", given[:30])
    write_arrow(cached / "pets-test.arrow", given[30:])
    write_arrow(cached / "cache-0123456789abcdef.arrow", given[:3])
    whole = tmp_path / "whole"
    write_arrow(whole / "data-00000-of-00001.arrow", given)
    for folder in (saved, tmp_path / "pets"):
        setup = TableData(data=str(folder), image="image", target="label", stages=1).setup(Wants(side=8))
        assert {e.split: len(e.ids) for e in setup.protocol.evaluations}["test"] == 10
        assert len(setup.data) == 40
        means = setup.data.tables[0].inputs["image"].float().mean((2, 3)).numpy()
        nearest = [int(np.abs(row - COLOURS["ant"]).sum() < np.abs(row - COLOURS["bee"]).sum()) for row in means]
        assert nearest == setup.data.tables[0].targets.tolist()
    assert len(TableData(data=str(whole), image="image", target="label", stages=1).listing()) == 40
    (saved / "train/data-00001-of-00002.arrow").unlink()
    with pytest.raises(UserError, match="data-00001-of-00002"):
        TableData(data=str(saved), image="image", target="label").listing()


def test_files_for_each_split(rows):
    folder, given = rows
    apart = folder / "apart"
    apart.mkdir()
    for name, part in {"qa_train.csv": given[:80], "qa-dev.csv": given[80:90], "test.csv": given[90:]}.items():
        write_csv(apart / name, part)
    assert {table.split for table in find_tables(apart)} == {"train", "validation", "test"}
    listing = TableData(data=str(apart), images=str(folder), **QA).listing()
    assert [listing.splits.count(split) for split in ("train", "validation", "test")] == [80, 10, 10]
    write_csv(apart / "other.csv", given)
    assert len(find_tables(apart)) == 3
    for name in ("qa_train.csv", "qa-dev.csv", "test.csv"):
        (apart / name).rename(apart / f"{name.partition('.')[0][:2]}.csv")
    with pytest.raises(UserError, match=r"several tables.*give one of them"):
        find_tables(apart)


# Examples


def test_no_picture_is_in_two_splits(rows):
    folder, given = rows
    setup, layout = laid_out(write_csv(folder / "qa.csv", given))
    seen = {}
    for group, split in zip(layout.listing.groups, layout.split.tolist(), strict=True):
        assert seen.setdefault(group, split) == split
    assert len(seen) == 50
    assert set(seen.values()) == {"train", "validation", "test"}
    assert [stage.name for stage in setup.stream.stages] == ["land", "water"]
    assert setup.inputs.image == (3, 8, 8)
    assert setup.inputs.text > 4


def test_groups_of_a_column(rows):
    folder, given = rows
    table = write_csv(folder / "people.csv", [{**row, "person": n // 9} for n, row in enumerate(given)])
    layout, _ = TableData(data=str(table), image="path", target="answer", group="person", stages=1)._layout()
    seen = {}
    for group, split in zip(layout.listing.groups, layout.split.tolist(), strict=True):
        assert seen.setdefault(group, split) == split
    assert set(seen) == {str(n) for n in range(12)}


def test_a_column_of_splits_and_a_column_of_times(rows):
    folder, given = rows
    words = ["Train", "train", "val", "TEST", "train"]
    dated = [{**row, "split": words[n % 5], "year": 1990 + n % 12} for n, row in enumerate(given)]
    setup, layout = laid_out(write_csv(folder / "dated.csv", dated), split="split", by="year", stages=3)
    assert [stage.name for stage in setup.stream.stages] == ["1990 to 1993", "1994 to 1997", "1998 to 2001"]
    assert sorted(set(layout.split.tolist())) == ["test", "train", "validation"]
    assert (layout.split == "test").sum() == 20


def test_rows_that_come_twice_are_both_there_and_in_one_split(rows):
    folder, given = rows
    _, layout = laid_out(write_csv(folder / "twice.csv", given + given), by="class", stages=1)
    splits = dict(zip(layout.listing.ids, layout.split.tolist(), strict=True))
    assert len(splits) == 200
    assert all(splits[f"{id}-2"] == split for id, split in splits.items() if not id.endswith("-2"))


def test_text_alone_and_a_picture_alone(rows):
    folder, given = rows
    table = write_csv(folder / "qa.csv", given)
    reads = TableData(data=str(table), text="question", target="topic", stages=1)
    assert (reads.model(), reads.setup(Wants()).inputs.image) == ("bert-tiny", None)
    sees = TableData(data=str(table), image="path", target="topic", stages=1)
    assert (sees.model(), sees.setup(Wants(side=8)).inputs.text) == ("resnet18-tiny", 0)
    assert TableData(data=str(table), **QA).model() == "vilt-tiny"


def test_long_texts_lose_their_ends(tmp_path):
    given = [{"text": " ".join(f"word{n}" for _ in range(50)), "label": n % 2} for n in range(40)]
    table = write_jsonl(tmp_path / "long.jsonl", given)
    assert TableData(data=str(table), text="text", target="label", length=12).setup(Wants()).inputs.text == 12


def test_numbers_and_words_as_answers(tmp_path):
    given = [{"text": f"t{n}", "label": [True, 1, 1.0, "1", " 1 ", "true"][n % 6]} for n in range(60)]
    listing = TableData(data=str(write_jsonl(tmp_path / "t.jsonl", given)), text="text", target="label").listing()
    assert sorted(set(listing.targets)) == ["1", "true"]


def test_a_run_learns_and_its_id_follows_the_content(rows, tmp_path):
    folder, given = rows
    table = write_csv(folder / "run.csv", given)
    settings = {f"benchmark.{name}": column for name, column in QA.items()}
    record = run("table", "er", data=str(table), out=tmp_path, settings={**settings, **QUICK})
    assert record.config["model"]["name"] == "vilt-tiny"
    assert set(record.chance) == {"land", "water"}
    assert record.summary["final_accuracy"] is not None

    def identity(rows):
        request = Request("table", data=str(write_csv(table, rows)), settings=settings)
        return Setups().settle(resolve(request)).id

    first = identity(given)
    changed = [{**given[0], "answer": "cow"}, *given[1:]]
    assert identity(changed) != first
    assert identity([{**given[0], "topic": "water"}, *given[1:]]) != first
    assert identity(given) == first


# What is wrong


def broken(**changes):
    """A table of fifty good rows, in which row 3 is wrong."""

    def make(folder, rows):
        rows = [dict(row) for row in rows[:50]]
        rows[2] |= changes
        return write_csv(folder / "wrong.csv", rows)

    return make


def text_of(text, name="wrong.csv"):
    def make(folder, rows):
        path = folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return make


GOOD = "question,answer\n" + "".join(f"q{n},{'yes' if n % 2 else 'no'}\n" for n in range(40))
TEXT = {"image": "", "by": "class", "stages": 1}
WRONG = {
    "no answer": (broken(answer=" "), {}, r"wrong.csv, row 3 \(line 4\): its 'answer' is empty: fill it in.*bad 1"),
    "no picture": (broken(path="pictures/lost.png"), {}, r"row 3 .*lost.png is not in .*set benchmark.images"),
    "outside": (broken(path="../../x.png"), {}, "row 3 .*nothing outside that folder is read"),
    "absolute": (broken(path="/etc/x.png"), {}, "row 3 .*nothing outside that folder is read"),
    "a drive": (broken(path="C:\\photos\\x.png"), {}, "row 3 .*without the drive"),
    "a wrong column": (broken(), {"target": "anwser"}, r"no column 'anwser' \(benchmark.target\): did you mean answer"),
    "no target": (broken(), {"target": ""}, "set benchmark.target to .*: the columns of .* path, question, answer"),
    "nothing to see": (broken(), {"text": "", "image": ""}, "set benchmark.image or benchmark.text"),
    "no images": (broken(), {"images": "/nowhere"}, "benchmark.images is '/nowhere': no such folder"),
    "no split": (broken(topic="maybe"), {"split": "topic"}, r"row 1 .*its 'topic' is 'land', not a split"),
    "too short": (text_of(GOOD + "alone\n"), TEXT, r"row 41 \(line 42\): it has 1 fields, and the header has 2: put"),
    "open quote": (text_of(GOOD + '"never closed,yes\nq,no\n'), TEXT, r"row 41 \(line 42\): a quote is opened and not"),
    "twice": (text_of("question,answer,answer\na,b,c\n"), TEXT, "line 1: two columns are called 'answer'"),
    "empty": (text_of(""), TEXT, "line 1: it has no header"),
    "no rows": (text_of("question,answer\n"), TEXT, "wrong.csv has no rows"),
    "utf-16": (text_of(GOOD.encode("utf-16")), TEXT, "it is not UTF-8 text: save it as CSV in UTF-8"),
    "no table": (text_of("x", "wrong.xlsx"), TEXT, r"wrong.xlsx is not a table: give a file that ends with .parquet"),
    "json": (text_of('[{"question": "a"', "wrong.json"), TEXT, "it is not valid JSON"),
    "several answers": (
        text_of("".join(json.dumps({"question": f"q{n}", "answer": ["a", "b"]}) + "\n" for n in range(3)), "w.jsonl"),
        TEXT,
        r"w.jsonl, row 1 \(line 1\): its 'answer' has several values: keep one.*; 2 more like it: .*--skip-bad 3",
    ),
    "quantities": (
        text_of("question,answer\n" + "".join(f"q{n},{n / 7}\n" for n in range(80))),
        TEXT,
        "80 different numbers.*classes are learned here, not quantities",
    ),
    "all different": (
        text_of("question,answer\n" + "".join(f"q{n},a{n}\n" for n in range(80))),
        TEXT,
        "another answer in each row: is it the right column",
    ),
    "many stages": (
        text_of("question,answer,time\n" + "".join(f"q{n},a{n % 2},{n}\n" for n in range(200))),
        {"image": "", "by": "time"},
        "200 different values, and each would be a stage: set benchmark.stages",
    ),
    "lost": (lambda folder, rows: folder / "lost.csv", {}, "no such file or folder"),
}


@pytest.mark.parametrize("case", WRONG)
def test_each_mistake_has_one_clear_message(case, rows):
    make, settings, message = WRONG[case]
    data = make(*rows)
    with pytest.raises(UserError, match=message):
        TableData(data=str(data), **{**QA, **settings}).setup(Wants(side=8))


def test_bad_rows_are_skipped_and_counted(rows):
    folder, given = rows
    data = write_csv(
        folder / "skip.csv", [{**row, "answer": ""} if n in (3, 9) else row for n, row in enumerate(given)]
    )
    with pytest.raises(UserError, match=r"row 4 .*1 more like it: skip them all with --skip-bad 2"):
        laid_out(data, skip_bad=1)
    setup, _ = laid_out(data, skip_bad=2)
    assert len(setup.problems) == 2
    assert "row 10 (line 11)" in setup.problems[1]
    assert len(setup.data) == 98


def test_a_picture_that_cannot_be_decoded_loses_all_its_rows(rows):
    folder, given = rows
    (folder / "pictures/broken.png").write_bytes(b"no picture")
    wrong = [{**row, "path": "pictures/broken.png"} if n < 2 else row for n, row in enumerate(given)]
    data = write_csv(folder / "broken.csv", wrong)
    with pytest.raises(UserError, match=r"broken\.png cannot be decoded .*one of 2 such examples.*--skip-bad 2"):
        laid_out(data)
    setup, _ = laid_out(data, skip_bad=2)
    assert len(setup.data) == 98
    used = [s.train for s in setup.stream.stages] + [e.ids for e in setup.protocol.evaluations]
    assert sorted(np.concatenate(used).tolist()) == list(range(98))
