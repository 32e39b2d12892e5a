"""`holdfast import climb`: the layout of the authors' code, written here with weights of our own ViLT."""

import json
import os
import pickle
from collections import OrderedDict

import pytest
import torch

from cli.inside import inside
from holdfast.benchmarks.climb import imports
from holdfast.benchmarks.climb.runs import RunsAtScale
from holdfast.benchmarks.climb.tables import ScoreCell, sheet
from holdfast.data.text import SPECIAL, Tokenizer
from holdfast.errors import UserError
from holdfast.models.vilt import NAMES, Vilt
from holdfast.reports.groups import experiments, rows_of
from holdfast.reports.runs import load
from holdfast.types import Inputs

PIECES = 40
RECIPE = Vilt(width=64, depth=2, heads=1, hidden=96, patch=16, side=32, positions=12)
INPUTS = Inputs(image=(3, 32, 32), text=12, vocabulary=PIECES)
LONG, ALONE = "vilt-sequential_ft-task0_vqa-task1_nlvr2-task2_snli-ve", "vilt-singletask_ft-task0_{}"
BEST = {"vqa": 68.0, "nlvr2": 72.0, "snli-ve": 74.0}
LATER = {("vqa", "nlvr2"): 40.0, ("vqa", "snli-ve"): 30.0, ("nlvr2", "snli-ve"): 60.0}
DIRECT = {"vqa": 67.0, "nlvr2": 73.0, "snli-ve": 76.0}


def encoder(seed, kinds=3):
    """An encoder of ours with random weights, of which as many types of modality as in the file are used."""
    torch.manual_seed(seed)
    made = RECIPE.encoder(INPUTS).eval()
    with torch.no_grad():
        for weight in made.parameters():
            weight.normal_(std=0.1)
        if kinds == 2:
            made.modality.weight[2] = made.modality.weight[1]
    return made


def state(made, kinds=3):
    """Its state as the authors' wrapper saves it: names of `transformers` after `vilt.`, and the positions' buffer."""
    found = OrderedDict()
    for ours, weight in made.state_dict().items():
        theirs = NAMES.theirs(ours)
        for name, part in zip(theirs, weight.chunk(len(theirs)), strict=True):
            found[f"vilt.{name}"] = part.clone()
    found["vilt.embeddings.token_type_embeddings.weight"] = made.modality.weight.detach()[:kinds].clone()
    found["vilt.embeddings.text_embeddings.position_ids"] = torch.arange(12).expand(1, -1)
    return found


def write(folder, name, best, later=None, direct=None, encoders=()):
    own = folder / name
    own.mkdir(parents=True)
    rows = [
        {"task_num": number, "task_key": key, "best_score": score, "best_epoch": 3}
        for number, (key, score) in enumerate(best.items())
    ]
    (own / "results.json").write_text(json.dumps(rows))
    if later is not None:
        lost = {}
        for (task, after), score in later.items():
            entry = {"prev_task": task, "current_task": after, "absolute_transfer_score": score}
            lost.setdefault(after, {})[task] = entry | {"forgetting": 0.0, "original_prev_task_score": best[task]}
        gained = {
            task: {"relative_gain": 0.0, "cl_task_score": best[task], "singletask_score": score}
            for task, score in direct.items()
        }
        content = {"upstream_knowledge_transfer": gained, "forgetting": lost}
        (own / "eval_results.json").write_text(json.dumps(content))
    for number, (key, weights) in enumerate(encoders):
        place = own / "checkpoints" / f"task{number}_{key}"
        place.mkdir(parents=True)
        torch.save(weights, place / "encoder")
    return own


@pytest.fixture
def words(tmp_path):
    path = tmp_path / "vocab.txt"
    Tokenizer((*SPECIAL, *(f"word{number}" for number in range(PIECES - len(SPECIAL))))).save(path)
    return path


def climb(folder, store, *more):
    return inside("import", "climb", folder, "--out", store, *more, cwd=folder)


def test_scores_of_their_files_become_marked_runs_with_the_measures_by_hand(tmp_path):
    results = tmp_path / "output"
    write(results, LONG, BEST, LATER, DIRECT)
    for task, score in DIRECT.items():
        write(results, ALONE.format(task), {task: score})
    done = climb(results, tmp_path / "store")
    assert done.returncode == 0, done.stderr
    runs = load(tmp_path / "store")
    assert sorted(run.status for run in runs) == ["done"] * 4, "the direct runs are those that the results name"
    (own,) = (run.record for run in runs if ">" in run.config["benchmark"]["order"])
    assert own.config["benchmark"]["order"] == "vqav2>nlvr2>snli-ve"
    assert set(own.others) == {"direct/vqav2", "direct/nlvr2", "direct/snli-ve"}
    assert own.summary["forgetting_transfer"] == pytest.approx(100 * (38 + 12) / (68 + 22))
    gained = (68 - 67) + (72 - 73) + (74 - 76)
    assert own.summary["knowledge_transfer"] == pytest.approx(100 * gained / (67 + 23 + 76 - 100 / 3))
    assert own.summary["final_accuracy"] == pytest.approx((0.30 + 0.60 + 0.74) / 3)
    assert own.summary["backward_transfer"] == pytest.approx((-0.38 - 0.12) / 2)
    assert own.summary["forward_transfer"] is None, "they score no task before it is learned"
    assert {score.name: score.count for score in own.scores} == {"vqav2": 214_354, "nlvr2": 6_982, "snli-ve": 17_858}
    assert {record.config["seed"] for record in runs.records} == {42}, "their default"
    again = climb(results, tmp_path / "store")
    assert again.stdout == done.stdout, "the same results are the same runs"
    assert len(load(tmp_path / "store")) == 4


def test_direct_runs_may_come_from_the_evaluation_alone(tmp_path):
    own = write(tmp_path, LONG, BEST, LATER, DIRECT)
    assert climb(own, tmp_path / "store").returncode == 0
    assert len(load(tmp_path / "store")) == 4
    assert climb(own, tmp_path / "store", "--seed", 3).returncode == 0
    assert sorted(run.seed for run in load(tmp_path / "store")) == [3] * 4 + [42] * 4
    bare = write(tmp_path / "bare", LONG, BEST)
    assert climb(bare, tmp_path / "other").returncode == 0
    (run,) = load(tmp_path / "other")
    assert run.summary["snli-ve"] == pytest.approx(0.74)
    assert run.summary["vqav2"] is None, "it was not scored at the end"
    assert run.summary["forgetting_transfer"] is None


def test_tables_name_imported_runs_and_never_mix_them_with_ours(tmp_path):
    best, direct = BEST | {"vcr": 50.0}, DIRECT | {"vcr": 60.0}
    later = LATER | {(task, "vcr"): 55.0 for task in BEST}
    own = write(tmp_path, f"{LONG}-task3_vcr", best, later, direct)
    assert climb(own, tmp_path / "store").returncode == 0
    records = load(tmp_path / "store").records
    (theirs,) = (record for record in records if record.others)
    assert list(rows_of([theirs])) == ["sequential_ft (CLiMB's code)"]
    assert all("CLiMB's code, imported" in each.title for each in experiments(records))
    assert theirs.environment["imported"] == f"GLAMOR-USC/CLiMB: {LONG}-task3_vcr"
    assert theirs.environment["command"].startswith("holdfast import climb ")
    runs = RunsAtScale(records)
    assert not runs.world
    assert not runs.alone("vilt", "vqav2"), "no row of ours takes their direct runs for its own"
    rows = {row.title: row for row in sheet("8", runs).rows}
    lost = [cell.change for cell in rows["sequential_ft (CLiMB's code): after vcr"].ours]
    assert lost == pytest.approx([100 * 13 / 68, 100 * 17 / 22, 100 * (74 - 55) / (74 - 100 / 3)])
    assert all(cell == ScoreCell() for cell in rows["seqft: after vcr"].ours), "our row stays empty"
    own = ("compare", "store"), ("list", "runs", "--out", "store"), ("show", theirs.id, "--out", "store")
    for command in (*own, ("climb", "tables", "store")):
        done = inside(*command, cwd=tmp_path)
        assert done.returncode == 0, (command, done.stderr)
        assert "CLiMB" in done.stdout, command


def test_an_encoder_comes_back_with_the_same_outputs(tmp_path, words):
    """One with three types of modality, as where NLVR2 is in the order, and one with two."""
    made = [encoder(1), encoder(2, kinds=2)]
    own = write(
        tmp_path,
        "vilt-ewc-task0_nlvr2-task1_vqa",
        {"nlvr2": 70.0, "vqa": 60.0},
        encoders=[("nlvr2", state(made[0])), ("vqa", state(made[1], kinds=2))],
    )
    done = climb(own, tmp_path / "store", "--vocabulary", words)
    assert done.returncode == 0, done.stderr
    folders = [line.partition("model.weights=")[2] for line in done.stdout.splitlines() if "model.weights" in line]
    assert [folder.rpartition("/")[2] for folder in folders] == ["task0_nlvr2", "task1_vqa"]
    torch.manual_seed(0)
    inputs = {
        "image": torch.randint(0, 256, (3, 2, 3, 32, 32), dtype=torch.uint8),
        "text": torch.randint(5, PIECES, (3, 12)),
        "text_length": torch.tensor([12, 7, 3]),
    }
    with torch.no_grad():
        for folder, expected in zip(folders, made, strict=True):
            recipe = Vilt(weights=folder)
            found = recipe.encoder(INPUTS).eval()
            assert torch.allclose(found(inputs), expected(inputs), rtol=0, atol=1e-6)
            assert recipe.wants().vocabulary.read_bytes() == words.read_bytes()
    assert len(load(tmp_path / "store")) == 1, "folders of weights are no runs"


def test_encoders_of_other_kinds_are_left_out(tmp_path, words):
    """Those with adapters, and of VAuLT, which is `viltbert` there: their results are still imported."""
    for name in (
        "vilt-adapter_vanilla_houlsbyconfig-task0_vqa-task1_vcr",
        "viltbert-sequential_ft-task0_vqa-task1_vcr",
    ):
        write(tmp_path / "out", name, {"vqa": 60.0, "vcr": 50.0}, encoders=[("vqa", {"a": torch.zeros(1)})])
    assert climb(tmp_path / "out", tmp_path / "store", "--vocabulary", words).returncode == 0
    assert sorted(run.model for run in load(tmp_path / "store")) == ["vault", "vilt"]


class Harmful:
    def __reduce__(self):
        return os.mkdir, (os.environ["HARM"],)


def test_a_hostile_or_damaged_encoder_is_refused_and_runs_nothing(tmp_path, words, monkeypatch):
    monkeypatch.setenv("HARM", str(tmp_path / "harmed"))
    good = state(encoder(1))
    wrong = {**good, "vilt.pooler.dense.weight": torch.zeros(3, 3)}
    extra = {**good, "vilt.encoder.layer.0.adapters.down.weight": torch.zeros(3)}
    few = {name: weight for name, weight in good.items() if "pooler" not in name}
    cases = [
        (wrong, "has the shape"),
        (extra, "does not have"),
        (few, "has no weight"),
        ({"a": 3}, "more than weights"),
    ]
    for number, (content, match) in enumerate([*cases, ({"vilt.a": Harmful()}, "more than weights")]):
        own = write(tmp_path / str(number), "vilt-ewc-task0_vqa", {"vqa": 60.0}, encoders=[("vqa", content)])
        with pytest.raises(UserError, match=match):
            imports.import_encoders(imports.read_experiment(own), tmp_path / "out", words)
        assert not (tmp_path / "out" / "task0_vqa").exists()
    plain = write(tmp_path / "plain", "vilt-ewc-task0_vqa", {"vqa": 60.0}, encoders=[("vqa", {})])
    (plain / "checkpoints" / "task0_vqa" / "encoder").write_bytes(pickle.dumps(Harmful(), protocol=2))
    with pytest.raises(UserError):
        imports.import_encoders(imports.read_experiment(plain), tmp_path / "out", words)
    assert not (tmp_path / "harmed").exists(), "nothing in the file was executed"
    pickle.loads(pickle.dumps(Harmful(), protocol=2))
    assert (tmp_path / "harmed").exists(), "it would have been"
    outside = write(tmp_path / "link", "vilt-ewc-task0_vqa", {"vqa": 60.0})
    (outside / "checkpoints" / "task0_vqa").mkdir(parents=True)
    (outside / "checkpoints" / "task0_vqa" / "encoder").symlink_to(words)
    with pytest.raises(UserError):
        imports.import_encoders(imports.read_experiment(outside), tmp_path / "out", words)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("[", "is not JSON"),
        ("{}", "is not a list"),
        ('[{"task_key": "vqa"}]', "no 'best_score'"),
        ('[{"task_key": "gqa", "best_score": 3}]', "unknown task 'gqa'"),
        ('[{"task_key": "vqa", "best_score": 300}]', "not a percentage"),
        ('[{"task_key": "vqa", "best_score": NaN}]', "not a percentage"),
        ('[{"task_key": "vqa", "best_score": 3}, {"task_key": "vqa", "best_score": 3}]', "a task twice"),
    ],
)
def test_wrong_results_are_named(tmp_path, content, match):
    own = write(tmp_path, LONG, BEST)
    (own / "results.json").write_text(content)
    with pytest.raises(UserError, match=match):
        imports.experiments(own)


def test_what_is_not_their_output_is_told(tmp_path):
    with pytest.raises(UserError, match=r"has no results\.json"):
        imports.experiments(tmp_path)
    own = write(tmp_path, "mine", BEST)
    with pytest.raises(UserError, match="does not say what was run"):
        imports.experiments(own)
    wide = write(tmp_path / "a", "vilt-ewc-task0_vqa", {"vqa": 60.0}, encoders=[("vqa", state(encoder(1)))])
    file = tmp_path / "few.txt"
    Tokenizer(SPECIAL).save(file)
    with pytest.raises(UserError, match=r"40 word pieces, and .* has 5"):
        imports.import_encoders(imports.read_experiment(wide), tmp_path / "out", file)
