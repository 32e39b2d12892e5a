"""What a run exports, and that its measures follow from it by the rules of the released metric scripts.

The rules are written anew here, in plain loops. When this was written, the scripts themselves gave the same numbers.
"""

import json

import numpy as np
import pytest

from holdfast.benchmarks.viscoll import protocol
from holdfast.benchmarks.viscoll.benchmark import CocoShift
from holdfast.benchmarks.viscoll.predictions import export
from holdfast.errors import UserError
from holdfast.metrics import bleu
from holdfast.types import Score

STEPS = (10, 20, 53)


@pytest.fixture(scope="module")
def ran(phrases, pieces, regions, tmp_path_factory):
    """Predictions at three evaluations, drawn at random, the log of their scores, and the exported files."""
    setup, random = CocoShift(scale="tiny").laid_out(phrases, pieces, regions), np.random.default_rng(0)
    folder, log = tmp_path_factory.mktemp("predictions"), []
    for step in STEPS:
        for each in setup.protocol.evaluations:
            targets = np.asarray(setup.data.targets(each.ids))
            losses = np.where(targets >= 0, random.gamma(2.0, 1.0, targets.shape), 0)
            said = np.where(random.random(targets.shape) < 0.4, targets, random.integers(5, 12, targets.shape))
            found = np.concatenate([losses, said], axis=1).astype(np.float32)
            name = each.name
            np.save(folder / f"{int(step == STEPS[-1]):03d}-{step:010d}-{each.split}-{name}.npy", found)
            task = setup.tasks[each.task]
            scores = {name: (len(targets), task.score(found, targets))} | each.details(found, targets)
            log += [Score(0, step, n, each.split, count, value) for n, (count, value) in scores.items()]
    log += [score for score, _ in setup.finish(None, setup.stream, STEPS[-1])]
    out = tmp_path_factory.mktemp("exported")
    written = {path.name: json.loads(path.read_text())["records"] for path in export(setup, folder, out)}
    return written, protocol.summary(log), log


def means(records):
    return [sum(record["ppl_list"]) / len(record["ppl_list"]) for record in records]


def test_a_file_for_each_set_and_evaluation_under_the_released_names(ran, phrases):
    written, _, _ = ran
    names = {f"results_verbose_model_0{n}{s}.json" for n in ("_10", "_20", "0") for s in ("", "_novel_comps")}
    assert set(written) == names
    tests = [p for p in phrases if p.split == "test"]
    for record, phrase in zip(written["results_verbose_model_00.json"], tests, strict=True):
        assert (tuple(record["gt_word_list"]), record["task"]) == (phrase.words, phrase.task)
        assert len(record["pred_word_list"]) == len(record["ppl_list"]) == 3


def test_perplexity_and_bleu_follow_from_the_file(ran):
    written, found, _ = ran
    records = written["results_verbose_model_00.json"]
    assert found["log_perplexity"] == pytest.approx(np.mean(means(records)), rel=1e-6)
    said, right = ([" ".join(record[name]) for record in records] for name in ("pred_word_list", "gt_word_list"))
    for n in (1, 2):
        assert 100 * found[f"bleu_{n}"] == pytest.approx(bleu(said, right, n, effective_order=False), abs=1e-6)


def test_both_forms_of_forgetting_follow_from_the_files(ran):
    written, found, log = ran
    learned = {s.name.removeprefix("learned/"): s.score for s in log if s.name.startswith("learned/")}
    files = dict(zip(STEPS, ("_10", "_20", "0"), strict=True))
    rises, examples = [], []
    for task, step in learned.items():
        after = next(each for each in STEPS if each >= step)
        before, last = (
            [m for r, m in zip(records, means(records), strict=True) if r["task"] == task]
            for records in (written[f"results_verbose_model_0{files[each]}.json"] for each in (after, STEPS[-1]))
        )
        rises.append(np.mean(last) - np.mean(before))
        examples.append(len(last))
    assert len(set(examples)) > 3
    assert found["forgetting"] == pytest.approx(np.mean(rises), rel=1e-5)
    assert found["forgetting_by_example"] == pytest.approx(np.dot(rises, examples) / sum(examples), rel=1e-5)
    assert abs(found["forgetting"] - found["forgetting_by_example"]) > 1e-3


def test_the_two_words_of_pairs_follow_from_the_files(ran):
    written, found, _ = ran
    for group, suffix, pairs in (
        (
            "seen",
            "",
            [
                ("black", "dog"),
                ("white", "dog"),
                ("white", "cat"),
                ("white", "bus"),
                ("brown", "horse"),
                ("blue", "boat"),
            ],
        ),
        ("novel", "_novel_comps", [("black", "cat")]),
    ):
        values = []
        for record in written[f"results_verbose_model_00{suffix}.json"]:
            words = record["gt_word_list"]
            for pair in pairs:
                if set(pair) <= set(words):
                    values += [record["ppl_list"][words.index(word)] for word in pair]
        assert found[f"adjective_{group}_words"] == pytest.approx(np.mean(values), rel=1e-5)


def test_a_run_without_predictions_says_how_to_keep_them(phrases, pieces, regions, tmp_path):
    with pytest.raises(UserError, match="repeat the run with --predictions"):
        export(CocoShift(scale="tiny").laid_out(phrases, pieces, regions), tmp_path, tmp_path)
