"""The measures of `climb` from the score logs, and its scores from the predictions and the datasets' own files alone.

Low-shot transfer is asked of two tasks beside the upstream ones, not of nine, so that the whole of CLiMB takes seconds.
"""

import json
import math
import re

import numpy as np
import pytest

from cli.inside import inside
from recomputed.raw import cell_shows, check_row, markdown_tables, mean_and_interval, runs, same

ORDER = ("vqav2", "nlvr2", "snli-ve", "vcr")
CHANCE = {"vqav2": 0, "nlvr2": 1 / 2, "snli-ve": 1 / 3, "vcr": 1 / 4}
KINDS = {"low_shot_multimodal": ORDER, "low_shot_language": ("imdb",), "low_shot_vision": ("coco",)}
MEASURES = {
    **{name: (name, 100, 1) for name in ORDER},
    "T_UK": ("knowledge_transfer", 1, 1),
    "T_F": ("forgetting_transfer", 1, 1),
    "ACC": ("final_accuracy", 100, 1),
    "BWT": ("backward_transfer", 100, 1),
    "FWT": ("forward_transfer", 100, 1),
    "T_LS multimodal": ("low_shot_multimodal", 1, 1),
    "T_LS language": ("low_shot_language", 1, 1),
    "T_LS vision": ("low_shot_vision", 1, 1),
}
POOLED = {"knowledge_transfer", "forgetting_transfer", *KINDS}
NUMBERS = {"zero": "0", "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7"}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    from holdfast.benchmarks.climb import transfer

    out = tmp_path_factory.mktemp("climb")
    always = ("--scale", "tiny", "--predictions", "-j", 1, "--out", out, "--set", "benchmark.train=48")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(transfer.MODALITIES, "language", KINDS["low_shot_language"])
        patch.setitem(transfer.MODALITIES, "vision", KINDS["low_shot_vision"])
        for words in (("-a", "finetune", "--downstream"), ("-a", "finetune,ewc", "--seeds", 2)):
            done = inside("run", "climb", *words, *always, cwd=out)
            assert done.returncode == 0, done.stderr
        yield out


@pytest.fixture(scope="module")
def everyone(store):
    return {run.path.name: run for run in runs(store)}


def of(everyone, algorithm="finetune", order=ORDER):
    """The upstream runs of an algorithm, by seed; an order of one task is direct fine-tuning."""
    found = [run for run in everyone.values() if run.config["benchmark"].get("order") == ">".join(order)]
    return sorted((run for run in found if run.algorithm == algorithm), key=lambda run: run.seed)


def few(everyone, task, start=""):
    """The low-shot runs of a task, from the pre-trained encoder or from RUN@STAGE."""
    own = [run for run in everyone.values() if run.config["benchmark"]["name"] == "climb:lowshot"]
    return [r for r in own if r.config["benchmark"]["task"] == task and r.config.get("start", "") == start]


def clear(score, count, chance):
    """Whether a score over `count` examples is clearly above chance: by more than 1.96 standard errors."""
    return score > chance + 1.96 * math.sqrt(score * (1 - score) / count)


def low_shot(everyone, run, stage, task):
    """The mean score after an upstream stage, that of the pre-trained encoder, that of guessing, and of how many."""
    after, before = few(everyone, task, f"{run.path.name}@{stage}"), few(everyone, task)
    score, base = (sum(each.score(1, task) for each in group) / len(group) for group in (after, before))
    return score, base, before[0].score(1, "guessing"), before[0].count(task)


def measured(run, everyone):
    """The measures that are not pooled: scores at the end, ACC, BWT and FWT (Lopez-Paz and Ranzato, 2017)."""
    names = run.config["benchmark"]["order"].split(">")
    count = len(names)
    r = [[run.score(stage, name) for name in names] for stage in range(1, count + 1)]
    untrained = [run.score(0, name) for name in names]
    found = dict(zip(names, r[-1], strict=True)) | {"final_accuracy": sum(r[-1]) / count}
    one = count == 1
    later = range(1, count)
    found["backward_transfer"] = None if one else sum(r[-1][j] - r[j][j] for j in range(count - 1)) / (count - 1)
    found["forward_transfer"] = None if one else sum(r[j - 1][j] - untrained[j] for j in later) / (count - 1)
    return found


def shares(run, everyone):
    """What each task adds to each pooled measure (CLiMB, Table 2): its change, what there was to change, and whether
    that was learned at all: clearly above chance.
    """
    names = run.config["benchmark"]["order"].split(">")
    if len(names) == 1:
        return {}
    found = {"forgetting_transfer": {}, "knowledge_transfer": {}}
    for stage, name in enumerate(names, 1):
        learned, chance, count = run.score(stage, name), CHANCE[name], run.count(name)
        if name != names[-1]:
            lost = learned - run.score(len(names), name)
            found["forgetting_transfer"][name] = lost, learned - chance, clear(learned, count, chance)
        (direct,) = [other.score(1, name) for other in of(everyone, order=[name]) if other.seed == run.seed]
        found["knowledge_transfer"][name] = learned - direct, direct - chance, clear(direct, count, chance)
    for kind, tasks in KINDS.items():
        own = {}
        for task in tasks:
            stages = [s for s in range(1, len(names) + 1) if few(everyone, task, f"{run.path.name}@{s}")]
            each = [low_shot(everyone, run, stage, task) for stage in stages]
            if each:
                change, base = sum(score - b for score, b, _, _ in each), sum(b - chance for _, b, chance, _ in each)
                own[task] = change, base, clear(each[0][1], each[0][3], each[0][2])
        if own:
            found[kind] = own
    return found


def pooled(own, tasks):
    """The share in percent over these tasks; None if there is none."""
    changes, bases = [own[task][0] for task in tasks], [own[task][1] for task in tasks]
    return 100 * sum(changes) / sum(bases) if tasks else None


def test_each_score_from_the_datasets_own_files(everyone):
    from holdfast.benchmarks.climb.stream import chosen
    from holdfast.benchmarks.climb.tasks import Place
    from holdfast.benchmarks.synthetic import world

    def lines(name, file):
        return [json.loads(line) for line in (world(name, "tiny") / file).read_text().splitlines()]

    val, train = (
        json.loads((world("vqav2", "tiny") / f"v2_mscoco_{split}2014_annotations.json").read_text())["annotations"]
        for split in ("val", "train")
    )
    people = {str(each["question_id"]): [normal(a["answer"]) for a in each["answers"]] for each in val}
    counts = {}
    for each in (*train, *val):
        answer = normal(each["multiple_choice_answer"])
        counts[answer] = counts.get(answer, 0) + 1
    answers = sorted((a for a, n in counts.items() if n >= 9), key=lambda a: (-counts[a], a))
    labels = ("entailment", "contradiction", "neutral")
    right = {
        "nlvr2": {x["identifier"]: x["label"] == "True" for x in lines("nlvr2", "data/test1.json")},
        "snli-ve": {
            x["pairID"]: labels.index(x["gold_label"])
            for x in lines("snli_ve", "snli_ve_test.jsonl")
            if x["gold_label"] in labels
        },
        "vcr": {x["annot_id"]: x["answer_label"] for x in lines("vcr", "val.jsonl")},
    }
    place, seen = Place("", "tiny", 0), 0
    for run in (*of(everyone), *of(everyone, "ewc"), *of(everyone, order=["vqav2"])):
        for line, predictions in run.predictions():
            if line["split"] != "test":
                continue
            names = chosen(line["name"], "test", place, line["count"])
            if line["name"] == "vqav2":
                # The score of an answer, by how many of ten people gave it: 0, 0.3, 0.6, 0.9, and 1 from four on.
                given = [people[name].count(answers[said]) for name, said in zip(names, predictions, strict=True)]
                expected = sum((0, 0.3, 0.6, 0.9, 1)[min(count, 4)] for count in given) / len(given)
            else:
                pairs = zip(names, predictions, strict=True)
                expected = np.mean([right[line["name"]][name] == said for name, said in pairs])
            assert math.isclose(line["score"], expected, rel_tol=1e-6, abs_tol=1e-9), (line, expected)
            seen += 1
    assert seen == 4 * 5 * 4 + 2 * 2


def normal(answer):
    words = re.sub(r"[^\w\s']", " ", answer.lower()).split()
    return " ".join(NUMBERS.get(word, word) for word in words if word not in ("a", "an", "the"))


def test_the_scores_of_low_shot_runs(everyone):
    """Micro-averaged F1 for COCO's classes, and accuracy for a text."""
    from holdfast.experiments.request import Request
    from smallest import prepare

    for task, start in (("coco", ""), ("coco", f"{of(everyone)[0].path.name}@2"), ("imdb", "")):
        run = few(everyone, task, start)[0]
        ready = prepare(Request("climb:lowshot", scale="tiny", settings={"benchmark.task": task}))
        (test,) = [each for each in ready.setup.protocol.evaluations if each.split == "test"]
        right = ready.setup.data.targets(test.ids).numpy()
        (said,) = [p for line, p in run.predictions() if (line["split"], line["stage"]) == ("test", 1)]
        if task == "coco":
            hits, wrong, missed = (
                (a & b).sum() for a, b in ((said, right > 0), (said, right == 0), (~said, right > 0))
            )
            expected = 2 * hits / (2 * hits + wrong + missed)
        else:
            expected = np.mean(said == right)
        assert same(run.score(1, task), float(expected))
        assert same(run.summary["score"], float(expected))


def test_the_measures_of_each_record(everyone):
    upstream = [run for run in everyone.values() if run.config["benchmark"]["name"] == "climb"]
    assert len(upstream) == 2 * 2 + 4 * 2
    for run in upstream:
        expected = measured(run, everyone)
        assert set(expected) == set(run.summary) - POOLED
        for name, value in expected.items():
            assert same(run.summary[name], value), (run.algorithm, name)


def check_cell(cell, scores, changes=None):
    """A cell of a paper's table: the means of scores in percent and of changes, where all have one; their intervals."""
    if not scores:
        assert all(cell[name] is None for name in ("score", "spread", "change", "change_spread"))
        return
    mean, half = mean_and_interval([100 * score for score in scores])
    assert same(cell["score"], mean)
    assert same(cell["spread"], half)
    undefined = changes is not None and None in changes
    assert cell["doubtful"] == undefined
    change, width = (None, None) if changes is None or undefined else mean_and_interval(changes)
    assert same(cell["change"], change)
    assert same(cell["change_spread"], width)


def test_the_papers_tables(store, everyone):
    sheets = {s["number"]: s for s in json.loads(inside("climb", "tables", store, "--json", cwd=store).stdout)}
    assert set(sheets) == {"3", "5", "6", "7", "8", "9a", "9b", "10", "11", "12"}
    cells = {
        (number, row["title"], column): cell
        for number, sheet in sheets.items()
        for row in sheet["rows"]
        for column, cell in zip(sheet["columns"], row["ours"], strict=True)
    }
    left = {key for key, cell in cells.items() if cell["score"] is not None}

    def check(number, title, column, scores, changes=None):
        left.discard((number, title, column))
        check_cell(cells[number, title, column], scores, changes)

    groups = {"seqft": of(everyone), "ewc": of(everyone, "ewc")}
    direct = {task: [run.score(1, task) for run in of(everyone, order=[task])] for task in ORDER}
    for task in ORDER:
        for number, title in (("3", "direct"), ("6", "vilt"), ("9a", "direct")):
            check(number, title, task, direct[task])
        if task != ORDER[0]:
            check("10", "direct, all data", task, direct[task])
    for title, group in {"direct": of(everyone, order=[ORDER[0]]), **groups}.items():
        trained = [run.record["cost"]["trained"] / run.record["cost"]["parameters"] for run in group]
        left.discard(("3", title, "trained"))
        assert same(cells["3", title, "trained"]["score"], 100 * sum(trained) / len(trained))
    standard = ">".join(ORDER)
    for title, group in groups.items():
        for stage, task in enumerate(ORDER, 1):
            learned = [run.score(stage, task) for run in group]
            transfer = [
                100 * (s - d) / (d - CHANCE[task]) if clear(d, group[0].count(task), CHANCE[task]) else None
                for s, d in zip(learned, direct[task], strict=True)
            ]
            check("3", title, task, learned, transfer)
            places = [("8", title)] if task != ORDER[-1] else []
            if title == "seqft":
                check("9a", standard, task, learned, transfer)
                places.append(("9b", standard))
            for number, name in places:
                check(number, f"{name}: after that task", task, learned)
                for later in range(stage + 1, len(ORDER) + 1):
                    scores = [run.score(later, task) for run in group]
                    lost = [
                        100 * (s - now) / (s - CHANCE[task]) if clear(s, run.count(task), CHANCE[task]) else None
                        for s, now, run in zip(learned, scores, group, strict=True)
                    ]
                    check(number, f"{name}: after {ORDER[later - 1]}", task, scores, lost)

    first = of(everyone)[0]  # the one that low-shot runs start from
    for task in (*ORDER[1:], "imdb", "coco"):
        level = few(everyone, task)[0].config["benchmark"]["shots"]
        heads = {n: [c for c in s["columns"] if c in (task, f"{task} {level}") or c.startswith(f"{task} {level} (")]
                 for n, s in sheets.items()}  # fmt: skip
        before = [run.score(1, task) for run in few(everyone, task)]
        assert len(before) == (3 if task in KINDS["low_shot_language"] else 1)
        rows = {"10": ["direct, low-shot"], "11": ["direct"], "12": ["direct"], "7": ["vilt"]}
        rows["5"] = ["160 word pieces, average image"]
        for number, titles in rows.items():
            for head in heads[number]:
                for title in titles:
                    check(number, title, head, before)
        for stage, after in enumerate(ORDER, 1):
            scores = [run.score(1, task) for run in few(everyone, task, f"{first.path.name}@{stage}")]
            if not scores:
                continue
            score, base, chance, count = low_shot(everyone, first, stage, task)
            share = 100 * (score - base) / (base - chance) if clear(base, count, chance) else None
            for number in ("10", "11", "12"):
                for head in heads[number]:
                    check(number, f"seqft: after {after}", head, scores, [share] if number == "10" else None)
    assert not left, "every cell of ours is recomputed"

    # As they are printed: a change with one decimal and its interval, and the score with its own in brackets.
    text = inside("climb", "tables", store, "--table", "3", cwd=store).stdout
    (line,) = [line for line in text.splitlines() if line.strip().startswith("seqft")]
    for shown, column in zip(re.findall(r"(?:[-\d.]+(?: ±[\d.]+)?|–\*) \[[^\]]+\]", line), ORDER, strict=True):
        cell = cells["3", "seqft", column]
        change, _, score = shown.rstrip("]").partition(" [")
        assert cell_shows(score, cell["score"], cell["spread"], 1)
        assert change == "–*" if cell["doubtful"] else cell_shows(change, cell["change"], cell["change_spread"], 1)


def compared(store, everyone, only):
    """The comparison of each order, with what is expected of it: of all measures, or of these."""
    tables = json.loads(inside("compare", store, "--json", cwd=store).stdout)
    printed = markdown_tables(inside("compare", store, "--format", "markdown", cwd=store).stdout)
    for order in (ORDER, *([task] for task in ORDER)):
        (table,) = [
            table for table in tables if table["title"].startswith(f"climb · tiny · heads · {'>'.join(order)} ·")
        ]
        groups = {a: group for a in ("finetune", "ewc") if (group := of(everyone, a, order))}
        own = {run.path.name: shares(run, everyone) for group in groups.values() for run in group}
        for algorithm, group in groups.items():
            expected = {}
            for head, (name, factor, _) in MEASURES.items():
                if name in POOLED:
                    # Over the tasks that every run of the table learned.
                    there = [each[name] for each in own.values() if name in each]
                    tasks = [task for task in there[0] if all(each[task][2] for each in there)] if there else []
                    values = [
                        pooled(own[r.path.name][name], tasks) if name in own[r.path.name] else None for r in group
                    ]
                else:
                    values = [measured(run, everyone).get(name) for run in group]
                missing = None in values
                expected[head] = (None, None) if missing else mean_and_interval([factor * v for v in values])
            (row,) = [row for row in table["rows"] if row["algorithm"] == algorithm]
            expected = {head: value for head, value in expected.items() if head in row}
            assert set(expected) == set(row) - {"algorithm"}
            yield table, algorithm, {h: v for h, v in expected.items() if only(MEASURES[h][0])}, printed[table["title"]]


def narrowed(table, printed, columns):
    rows = [{n: cell for n, cell in row.items() if n in ("algorithm", *columns)} for row in table["rows"]]
    texts = [{n: cell for n, cell in row.items() if n in ("algorithm", *columns)} for row in printed]
    return {**table, "rows": rows}, texts


def test_the_comparisons(store, everyone):
    seen = 0
    for table, algorithm, expected, printed in compared(store, everyone, lambda name: name not in POOLED):
        own, texts = narrowed(table, printed, expected)
        check_row(own, algorithm, expected, texts)
        seen += 1
        guessing = [row for row in own["rows"] if row["algorithm"] == "guessing"]
        for task, cell in guessing[0].items():
            if task in CHANCE:
                assert same(cell["value"], 100 * CHANCE[task])
    assert seen == 2 + 4


def test_the_pooled_measures_of_each_record(everyone):
    """Over the tasks that the run learned, or where a baseline is another run's, over those that this learned."""
    for run in (*of(everyone), *of(everyone, "ewc")):
        for name, own in shares(run, everyone).items():
            expected = pooled(own, [task for task, (_, _, learned) in own.items() if learned])
            assert same(run.summary[name], expected), (run.algorithm, run.seed, name)


def test_pooled_measures_beside_each_other(store, everyone):
    """Over the tasks that every compared run learned; the notes name those that are left out."""
    for table, algorithm, expected, printed in compared(store, everyone, lambda name: name in POOLED):
        own, texts = narrowed(table, printed, expected)
        check_row(own, algorithm, expected, texts)
        group = [shares(run, everyone) for a in ("finetune", "ewc") for run in of(everyone, a)]
        for head in expected:
            each = [own[MEASURES[head][0]] for own in group if MEASURES[head][0] in own]
            for task in {task for own in each for task, (_, _, learned) in own.items() if not learned}:
                if f"{'>'.join(ORDER)} " in table["title"]:
                    assert any(head in note and task in note for note in table["notes"]), (head, task)
