"""The measures of `viscoll` from the score log, and its scores from the losses and words that runs predicted."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from cli.inside import inside
from recomputed.raw import check_row, check_summary, markdown_tables, mean_and_interval, runs, same

MEASURES = {
    "log PPL": ("log_perplexity", 1, 3),
    "BLEU-1": ("bleu_1", 100, 2),
    "BLEU-2": ("bleu_2", 100, 2),
    "forgetting": ("forgetting", 1, 3),
    "verbs, seen": ("verb_seen", 1, 3),
    "verbs, novel": ("verb_novel", 1, 3),
    "adjectives, seen": ("adjective_seen", 1, 3),
    "adjectives, novel": ("adjective_novel", 1, 3),
    "verbs, seen, two words": ("verb_seen_words", 1, 3),
    "verbs, novel, two words": ("verb_novel_words", 1, 3),
    "adjectives, seen, two words": ("adjective_seen_words", 1, 3),
    "adjectives, novel, two words": ("adjective_novel_words", 1, 3),
    "forgetting, by example": ("forgetting_by_example", 1, 3),
    "tasks never trained": ("untrained_tasks", 1, 0),
}
SEEN = 0.98
"""Of a task's data, (almost) all has been seen: the share of the paper's code."""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    out = tmp_path_factory.mktemp("viscoll")
    asked = ("-a", "finetune,er", "--seeds", 2, "--scale", "tiny", "--predictions", "-j", 1, "--out", out)
    done = inside("run", "viscoll:coco", *asked, cwd=out)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def phrases():
    """What was asked, as plain lists: the hidden pieces of each set's phrases, what each is about, and the stream."""
    from holdfast.benchmarks.viscoll.build import build
    from holdfast.benchmarks.viscoll.phrases import load_phrases
    from holdfast.experiments.request import Request
    from smallest import prepare

    ready = prepare(Request("viscoll:coco", scale="tiny"))
    every = load_phrases(build("coco", data="", scale="tiny", tagger="gruut", skip_bad=0).file)
    assert len(every) == len(ready.setup.data.tables[0]), "at tiny no phrase is left out"
    (stage,) = ready.setup.stream.stages
    pieces = ready.setup.data.targets
    sets = {
        (each.name, each.split): [
            ([int(piece) for piece in row if piece >= 0], every[number])
            for number, row in zip(each.ids, pieces(each.ids).numpy(), strict=True)
        ]
        for each in ready.setup.protocol.evaluations
    }
    return {"sets": sets, "stream": [every[number].task for number in stage.train]}


def bleu(said, right, n):
    """Sentence-level BLEU (Papineni et al., 2002) of a phrase as long as the right one: no brevity, no smoothing."""
    product = 1.0
    for order in range(1, n + 1):
        guesses = [tuple(said[at : at + order]) for at in range(len(said) - order + 1)]
        truths = [tuple(right[at : at + order]) for at in range(len(right) - order + 1)]
        if not guesses:
            return 0.0
        product *= sum(min(guesses.count(gram), truths.count(gram)) for gram in set(guesses)) / len(guesses)
    return product ** (1 / n)


def at_the_end(run):
    found = {}
    for line in run.log:
        if line["split"] == "test" and line["step"] >= found.get(line["name"], line)["step"]:
            found[line["name"]] = line
    return {name: line["score"] for name, line in found.items()}


def measured(run):
    last = at_the_end(run)
    found = {"log_perplexity": -last["regular"], "bleu_1": last["bleu/1"], "bleu_2": last["bleu/2"]}
    # Forgetting: the rise since the first checkpoint at which (almost) all data of a task had been seen.
    rises, counts, untrained = [], [], 0
    for name in sorted(name for name in last if name.startswith("task/")):
        if (learned := last.get(name.replace("task/", "learned/"))) is None:
            untrained += 1
            continue
        counts.append(next(x["count"] for x in run.log if (x["name"], x["split"]) == (name, "test")))
        curve = sorted((x["step"], -x["score"]) for x in run.log if (x["name"], x["split"]) == (name, "test"))
        since = next((value for step, value in curve if step >= learned), curve[-1][1])
        rises.append(curve[-1][1] - since)
    found["forgetting"] = sum(rises) / len(rises)
    found["forgetting_by_example"] = sum(r * n for r, n in zip(rises, counts, strict=True)) / sum(counts)
    if untrained:
        found["untrained_tasks"] = untrained
    for kind in ("verb", "adjective"):
        for group in ("seen", "novel"):
            # First over the phrases of a composition, which is what the log has; then over compositions.
            means = [-score for name, score in last.items() if name.startswith(f"{kind} {group}/")]
            found[f"{kind}_{group}"] = sum(means) / len(means)
            # The two words alone: over all occurrences.
            words = {x["name"]: x for x in run.log if x["split"] == "test" and x["name"] in last}
            alone = [x for name, x in words.items() if name.startswith(f"{kind} {group} words/")]
            total = sum(x["count"] for x in alone)
            found[f"{kind}_{group}_words"] = sum(-last[x["name"]] * x["count"] for x in alone) / total
    return found


def test_each_score_from_the_losses_and_words(store, phrases):
    import holdfast

    lists = json.loads((Path(holdfast.__file__).parent / "benchmarks/viscoll/lists/compositions.json").read_text())
    seen = 0
    for run in runs(store):
        logged = {(x["step"], x["stage"], x["split"], x["name"]): x for x in run.log}
        for line, predictions in run.predictions():
            asked = phrases["sets"][line["name"], line["split"]]
            places = predictions.shape[1] // 2
            losses, words = predictions[:, :places].astype(float), predictions[:, places:]
            values = [row[: len(right)].sum() / len(right) for row, (right, _) in zip(losses, asked, strict=True)]
            assert all(not row[len(right) :].any() for row, (right, _) in zip(losses, asked, strict=True))
            expected = {line["name"]: (len(values), -float(np.mean(values)))}
            groups = {}
            for value, (_, phrase) in zip(values, asked, strict=True):
                if line["name"] == "regular":
                    groups.setdefault(f"task/{phrase.task}", []).append(value)
                else:
                    kind = "verb" if phrase.pair.split()[0] in lists["verbs"] else "adjective"
                    groups.setdefault(f"{kind} novel/{phrase.pair}", []).append(value)
            expected |= {name: (len(each), -float(np.mean(each))) for name, each in groups.items()}
            if line["name"] == "regular":
                for n in (1, 2):
                    pairs = zip(words.astype(int).tolist(), asked, strict=True)
                    scores = [bleu(said[: len(right)], right, n) for said, (right, _) in pairs]
                    expected[f"bleu/{n}"] = len(scores), sum(scores) / len(scores)
            for name, (count, score) in expected.items():
                found = logged[line["step"], line["stage"], line["split"], name]
                assert found["count"] == count, name
                assert math.isclose(found["score"], score, rel_tol=1e-6, abs_tol=1e-9), (name, found, score)
                seen += 1
    assert seen > 1000


def test_when_each_task_had_been_seen(store, phrases):
    """The step by which 98 % of the phrases of a task had been seen; and how likely each was over the stream."""
    stream = phrases["stream"]
    for run in runs(store):
        (batch,) = {stage["batch_size"] for stage in run.config["training"]}
        last = max(line["step"] for line in run.log)
        assert last == math.ceil(len(stream) / batch)
        learned = {x["name"]: x for x in run.log if x["name"].startswith("learned/") and x["split"] == "test"}
        assert set(learned) == {f"learned/{task}" for task in stream}
        for name, line in learned.items():
            places = [at for at, task in enumerate(stream) if task == name.removeprefix("learned/")]
            enough = next(n for n in range(1, len(places) + 1) if n / len(places) >= SEEN - 1e-12)
            assert line["count"] == len(places)
            assert line["score"] == math.ceil((places[enough - 1] + 1) / batch)
        shares = [x for x in run.log if x["name"].startswith("density/")]
        bins = len({x["step"] for x in shares})
        for line in shares:
            number = sorted({x["step"] for x in shares}).index(line["step"])
            within = [task for at, task in enumerate(stream) if at * bins // len(stream) == number]
            assert same(line["score"], within.count(line["name"].removeprefix("density/")) / len(within))


def test_the_measures_of_each_record(store):
    found = runs(store)
    assert len(found) == 4
    for run in found:
        check_summary(run, measured(run))


def test_the_tables(store):
    tables = json.loads(inside("compare", store, "--json", cwd=store).stdout)
    printed = markdown_tables(inside("compare", store, "--format", "markdown", cwd=store).stdout)
    own, paper = tables
    assert "table 2" in paper["title"]
    for algorithm, title in (("finetune", "finetune (vanilla)"), ("replay", "replay · 64")):
        group = [measured(run) for run in runs(store) if run.algorithm == algorithm]
        assert len(group) == 2
        expected = {
            head: mean_and_interval([factor * each[name] for each in group])
            for head, (name, factor, _) in MEASURES.items()
        }
        decimals = {head: places for head, (_, _, places) in MEASURES.items()}
        check_row(own, algorithm, expected, printed[own["title"]], decimals)
        four = {
            head: expected[head] for head in ("log PPL", "BLEU-1", "BLEU-2", "forgetting", "forgetting, by example")
        }
        check_row(paper, title, four, printed[paper["title"]], decimals)


def test_curves_and_bars(store):
    """Figures 6 and 9: seen beside novel compositions, and the perplexity of all phrases over time."""
    every = runs(store)
    ids = [run.path.name for run in every]
    found = json.loads(inside("viscoll", "compositions", *ids, "--out", store, "--json", cwd=store).stdout)
    for algorithm in ("finetune", "replay"):
        group = [measured(run) for run in every if run.algorithm == algorithm]
        for kind in ("verb", "adjective"):
            for which in ("seen", "novel"):
                mean = sum(each[f"{kind}_{which}"] for each in group) / 2
                assert same(found[algorithm][f"{kind} {which}"], mean)
    found = json.loads(inside("viscoll", "time", *ids, "--out", store, "--json", cwd=store).stdout)
    for algorithm, curve in found["regular"].items():
        group = [run for run in every if run.algorithm == algorithm]
        for step, value in zip(curve["steps"], curve["values"], strict=True):
            scores = [
                x["score"]
                for run in group
                for x in run.log
                if (x["name"], x["split"], x["step"]) == ("regular", "test", step)
            ]
            assert same(value, -sum(scores) / 2)
