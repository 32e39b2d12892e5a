"""The measures of `clvqa` from the score log, and its scores from the predictions and CLEVR's own files alone."""

import json

import numpy as np
import pytest

from cli.inside import inside
from recomputed.raw import check_row, check_summary, markdown_tables, mean_and_interval, runs, same

COLORS = ("blue", "brown", "cyan", "gray", "green", "purple", "red", "yellow")
OF_COLUMN = {
    "query_color": COLORS,
    "query_shape": ("cube", "cylinder", "sphere"),
    "query_size": ("large", "small"),
    "query_material": ("metal", "rubber"),
    "yes_no": ("no", "yes"),
    "count": tuple(map(str, range(11))),
}
"""The output layer has the answers by what they are about, each by the alphabet."""
ANSWERS = [answer for group in OF_COLUMN.values() for answer in group]
ASKED = {
    "wh": [f"query_{what}" for what in ("color", "shape", "size", "material")],
    "yn": [f"equal_{what}" for what in ("color", "shape", "size", "material")],
}
MEASURES = {
    "Wh": "wh",
    "Y/N": "yn",
    "Mean acc": "mean_accuracy",
    "BWT": "backward_transfer",
    "Rem": "remembering",
    "Int": "intransigence",
    "CL score": "cl_score",
}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    out = tmp_path_factory.mktemp("clvqa")
    always = ("--scale", "tiny", "--predictions", "-j", 1, "--out", out)
    for words in (("-a", "finetune,rehearsal", "--seeds", 2), ("-a", "finetune", "--order", "yn>wh")):
        done = inside("run", "clvqa", *words, *always, cwd=out)
        assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def questions():
    """The questions of the official val split as its file has them, by part: each half has half of the pictures."""
    from holdfast.benchmarks.clvqa.stream import halves
    from holdfast.benchmarks.synthetic import world

    def read(split):
        path = world("clevr", "tiny") / "CLEVR_v1.0" / "questions" / f"CLEVR_{split}_questions.json"
        both = [*ASKED["wh"], *ASKED["yn"]]
        return [q for q in json.loads(path.read_text())["questions"] if function(q) in both]

    asked = read("val")
    pictures = np.array([question["image_index"] for question in asked])
    parts = dict(zip(("validation", "test"), halves(pictures), strict=True))
    assert not set(pictures[parts["validation"]]) & set(pictures[parts["test"]])
    return {"train": read("train"), **{part: [asked[row] for row in rows] for part, rows in parts.items()}}


def function(question):
    return question["program"][-1]["function"]


def of_task(questions, task):
    return [question for question in questions if function(question) in ASKED[task]]


def order_of(run):
    return run.config["benchmark"]["order"].split(">")


def measured(run, everyone):
    """The measures of Greco et al. (2019) from R[i][j], the accuracy on task j after learning task i."""
    first, second = order_of(run)
    r11, r21, r22 = run.score(1, first), run.score(2, first), run.score(2, second)
    (together,) = [
        other
        for other in everyone
        if (other.algorithm, other.seed, order_of(other)) == ("cumulative", run.seed, order_of(run))
    ]
    mean, backward = (r11 + r21 + r22) / 3, r21 - r11
    remembering, intransigence = 1 - abs(min(backward, 0)), together.score(2, second) - r22
    return {
        first: r21,
        second: r22,
        "mean_accuracy": mean,
        "backward_transfer": backward,
        "remembering": remembering,
        "intransigence": intransigence,
        "cl_score": (mean + remembering + 1 - (intransigence + 1) / 2) / 3,
    }


def test_each_score_is_the_share_of_right_answers(store, questions):
    seen = 0
    for run in runs(store):
        for line, predictions in run.predictions():
            right = [ANSWERS.index(q["answer"]) for q in of_task(questions[line["split"]], line["name"])]
            assert line["count"] == len(right)
            assert same(line["score"], np.mean(predictions == np.array(right)))
            seen += 1
    assert seen >= 8 * 2 * 3


def test_the_measures_of_each_record(store):
    everyone = runs(store)
    assert len(everyone) == 8
    asked = [run for run in everyone if run.algorithm != "cumulative"]
    assert len(asked) == 5
    for run in asked:
        check_summary(run, measured(run, everyone))


def test_guessing(store, questions):
    """An answer is drawn as often as training gives it, where both tasks have as many questions."""
    for run in runs(store):
        shares = {
            task: {a: np.mean([q["answer"] == a for q in of_task(questions["train"], task)]) for a in ANSWERS}
            for task in ASKED
        }
        for task in ASKED:
            answers = [q["answer"] for q in of_task(questions["test"], task)]
            guessed = np.mean([0.5 * (shares["wh"][a] + shares["yn"][a]) for a in answers])
            # Of the larger task a sample is trained on, so that its answers' shares are only nearly these.
            assert abs(run.record["chance"][task] - guessed) < 0.02


def test_the_tables(store):
    tables = json.loads(inside("compare", store, "--json", cwd=store).stdout)
    printed = markdown_tables(inside("compare", store, "--format", "markdown", cwd=store).stdout)
    everyone, seen = runs(store), 0
    (main,) = [table for table in tables if "main table" in table["title"]]
    for order in ("wh>yn", "yn>wh"):
        own = [run for run in everyone if order_of(run) == order.split(">")]
        (table,) = [table for table in tables if order in table["title"]]
        for name in ("finetune", "rehearsal", "cumulative"):
            group = [run for run in own if run.algorithm == name]
            if not group:
                continue
            values = {t: [100 * measured(run, everyone)[key] for run in group] for t, key in MEASURES.items()}
            expected = {title: mean_and_interval(each) for title, each in values.items()}
            check_row(table, name, expected, printed[table["title"]])
            seen += 1
    assert seen == 5

    titles = {"wh": "Wh", "yn": "Y/N"}
    rows = {"finetune": "finetune (naive)", "rehearsal": "rehearsal", "cumulative": "cumulative", "ewc": "ewc"}
    for name, title in rows.items():
        expected = {}
        for order in (["wh", "yn"], ["yn", "wh"]):
            group = [run for run in everyone if run.algorithm == name and order_of(run) == order]
            for task in order:
                head = f"{' → '.join(titles[t] for t in order)}: {titles[task]}"
                values = [100 * run.score(2, task) for run in group]
                expected[head] = mean_and_interval(values) if values else (None, None)
        check_row(main, title, expected, printed[main["title"]], decimals=0)


def test_the_confusion_of_a_run(store, questions):
    (run,) = [r for r in runs(store) if (r.algorithm, r.seed) == ("finetune", 0) and order_of(r) == ["wh", "yn"]]
    found = json.loads(inside("clvqa", "confusion", run.path.name, "--out", store, "--json", cwd=store).stdout)["ours"]
    column = {answer: name for name, answers in OF_COLUMN.items() for answer in answers}
    expected = {row: dict.fromkeys(next(iter(found.values())), 0) for task in ASKED for row in ASKED[task]}
    last = {
        line["name"]: answers for line, answers in run.predictions() if (line["stage"], line["split"]) == (2, "test")
    }
    for task, answers in last.items():
        for question, answer in zip(of_task(questions["test"], task), answers, strict=True):
            expected[function(question)][column[ANSWERS[answer]]] += 1
    assert found == expected
