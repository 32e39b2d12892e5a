"""The measures of a user's own data (`folder`, `table`, `dataset`), from the files, predictions and the score log."""

import csv
import json

import numpy as np
import pytest

from benchmarks.pictures import photos
from cli.inside import inside
from recomputed.raw import check_row, check_summary, markdown_tables, mean_and_interval, runs, same

CLASSES = ("ant", "bee", "cow", "dog")
TOPICS, ANSWERS = ("book", "film", "game"), ("bad", "good")
SMALL = ("benchmark.side=8", "model.channels=4", "train.batch_size=16")
TITLES = {
    "final acc.": "final_accuracy",
    "average acc.": "average_accuracy",
    "learning acc.": "learning_accuracy",
    "forgetting": "forgetting",
    "BWT": "backward_transfer",
}


def made(tmp_path_factory, benchmark, write, *settings):
    """A store with two runs of a benchmark on files, and the files."""
    folder = tmp_path_factory.mktemp(benchmark)
    data = write(folder)
    words = [word for setting in settings for word in ("--set", setting)]
    given = ["--data", data] if data else []
    asked = ["-a", "finetune,er", "--seeds", 2, "--predictions", "-j", 1, *words]
    done = inside("run", benchmark, *given, *asked, "--out", folder / "runs", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "runs", data


def pictures(folder):
    photos(folder / "photos" / "train", count=12)
    return photos(folder / "photos" / "test", count=6).parent


def rows(folder):
    """Reviews of three topics, a quarter for tests; one word says which answer is right."""
    path = folder / "reviews.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("text", "answer", "topic", "split"))
        for number in range(120):
            answer = ANSWERS[number % 2]
            word = ("poor", "fine")[number % 2]
            split = "test" if number % 20 < 5 else "train"
            writer.writerow((f"a {word} one, number {number}", answer, TOPICS[number % 3], split))
    return path


@pytest.fixture(scope="module")
def classes(tmp_path_factory):
    return made(tmp_path_factory, "folder", pictures, "benchmark.stages=2", "train.epochs=4", *SMALL)


@pytest.fixture(scope="module")
def shifting(tmp_path_factory):
    return made(tmp_path_factory, "folder", pictures, "benchmark.stages=2", "benchmark.stream=shift", *SMALL)


@pytest.fixture(scope="module")
def topics(tmp_path_factory):
    columns = [f"benchmark.{name}={name}" for name in ("text", "split")]
    columns += ["benchmark.target=answer", "benchmark.by=topic", "train.epochs=3"]
    return made(tmp_path_factory, "table", rows, *columns)


@pytest.fixture(scope="module")
def shades(tmp_path_factory):
    """The world's small data of a reader: reviews in two classes, in two stages."""
    settings = ("benchmark.reader=sst2", "benchmark.stages=2", "train.epochs=1")
    return made(tmp_path_factory, "dataset", lambda folder: None, *settings)


def matrix(run):
    """R[i][j], the score on the tests of stage j after stage i (both from 0)."""
    names, stages = run.names(), max(line["stage"] for line in run.log)
    return [[run.score(stage, name) for name in names] for stage in range(1, stages + 1)]


def measured(run):
    """The measures by their definitions; None where there is not one stage for each evaluation set."""
    r = matrix(run)
    final, count = sum(r[-1]) / len(r[-1]), len(r)
    if count != len(r[0]):
        times = sorted({line["step"] for line in run.log if line["step"]})
        means = [
            np.mean([line["score"] for line in run.log if (line["step"], line["split"]) == (time, "test")])
            for time in times
        ]
        return {"final_accuracy": final, "average_accuracy": np.mean(means), **dict.fromkeys(list(TITLES.values())[2:])}
    earlier = range(count - 1)
    return {
        "final_accuracy": final,
        # Over time: after each stage, the mean over the stages so far.
        "average_accuracy": sum(sum(row[: i + 1]) / (i + 1) for i, row in enumerate(r)) / count,
        "learning_accuracy": sum(r[j][j] for j in range(count)) / count,
        "forgetting": sum(max(r[i][j] for i in earlier) - r[-1][j] for j in earlier) / (count - 1),
        "backward_transfer": sum(r[-1][j] - r[j][j] for j in earlier) / (count - 1),
    }


def check_measures(store):
    found = {}
    for run in runs(store):
        check_summary(run, measured(run))
        found.setdefault(run.algorithm, []).append(run)
    assert {name: len(group) for name, group in found.items()} == {"finetune": 2, "replay": 2}
    (table,) = json.loads(inside("compare", store, "--json", cwd=store).stdout)
    (printed,) = markdown_tables(inside("compare", store, "--format", "markdown", cwd=store).stdout).values()
    for name, group in found.items():
        values = {title: [measured(run)[key] for run in group] for title, key in TITLES.items()}
        expected = {
            title: (None, None) if None in each else mean_and_interval([100 * value for value in each])
            for title, each in values.items()
        }
        check_row(table, name, expected, printed)


@pytest.mark.parametrize("name", ["classes", "shifting", "topics", "shades"])
def test_the_measures_of_each_record_and_table(name, request):
    check_measures(request.getfixturevalue(name)[0])


@pytest.mark.parametrize("name", ["classes", "shifting"])
def test_each_score_is_the_share_of_right_pictures(name, request):
    """Two classes a stage in the order of their names; a folder's test pictures are its tests."""
    store, data = request.getfixturevalue(name)
    for run in runs(store):
        tests = [(line, predictions) for line, predictions in run.predictions() if line["split"] == "test"]
        assert len(tests) == len([line for line in run.log if line["split"] == "test"])
        for line, predictions in tests:
            first = 2 * (int(line["name"].removeprefix("stage-")) - 1)
            sizes = [len(list((data / "test" / CLASSES[first + each]).iterdir())) for each in (0, 1)]
            right = np.repeat([first, first + 1], sizes)
            assert line["count"] == len(right) == len(predictions)
            assert same(line["score"], np.count_nonzero(predictions == right) / len(right))


def test_each_score_is_the_share_of_right_rows(topics):
    store, data = topics
    with data.open(encoding="utf-8") as file:
        table = [row for row in csv.DictReader(file) if row["split"] == "test"]
    for run in runs(store):
        assert run.names() == list(TOPICS)
        for line, predictions in run.predictions():
            if line["split"] == "test":
                right = [ANSWERS.index(row["answer"]) for row in table if row["topic"] == line["name"]]
                assert line["count"] == len(right) == len(predictions)
                assert same(line["score"], np.mean(np.array(predictions) == right))
