"""Every measure of a score matrix by hand, printed values that follow and do not, and files of all kinds."""

import json
import os

import numpy as np
import pytest

from cli.inside import inside
from holdfast.checksums import sealed
from holdfast.errors import UserError
from holdfast.papers.matrix import MEASURES, ScoreMatrix, audit_matrix, find, measures
from holdfast.papers.matrix_files import read_matrix

TABLE = np.array([[80.0, 10.0, 20.0], [60.0, 90.0, 40.0], [70.0, 50.0, 60.0]])
BEFORE = np.array([5.0, 6.0, 7.0])
BY_HAND = {
    "final_accuracy": (70 + 50 + 60) / 3,
    "average_incremental_accuracy": (80 + (60 + 90) / 2 + (70 + 50 + 60) / 3) / 3,
    "mean_accuracy": (80 + 60 + 90 + 70 + 50 + 60) / 6,
    "learning_accuracy": (80 + 90 + 60) / 3,
    "forgetting": ((80 - 70) + (90 - 50)) / 2,
    "drop_from_best": ((80 - 70) + (90 - 50)) / 2,
    "backward_transfer": ((70 - 80) + (50 - 90)) / 2,
    "backward_transfer_all": ((60 - 80) + (70 - 80) + (50 - 90)) / 3,
    "remembering": 100 - ((80 - 60) + (80 - 70) + (90 - 50)) / 3,
    "forward_transfer": ((10 - 6) + (40 - 7)) / 2,
    "forward_transfer_all": (10 + 20 + 40) / 3,
    "zero_shot_transfer": (10 + (20 + 40) / 2) / 2,
    "average_over_stages": (80 + 10 + 20 + 60 + 90 + 40 + 70 + 50 + 60) / 9,
}


def values(matrix):
    return {each.name: each for each in measures(matrix)}


def test_every_measure_by_hand():
    found = values(ScoreMatrix(TABLE, before=BEFORE))
    assert BY_HAND.keys() == found.keys() == MEASURES.keys()
    for name, expected in BY_HAND.items():
        assert found[name].value == pytest.approx(expected), name
        assert found[name].low == found[name].high == pytest.approx(expected), name


def test_a_task_that_improves_tells_two_kinds_of_forgetting_apart():
    found = values(ScoreMatrix(np.array([[0.5, np.nan], [0.75, 1.0]])))
    assert (found["forgetting"].value, found["drop_from_best"].value) == (-0.25, 0)


def test_bounds_hold_for_all_matrices_that_round_to_this_one():
    """Brute force: draws within the rounding, which also come close to the bounds of a small matrix."""
    table, draw = TABLE[:2, :2], np.random.default_rng(0)
    found = values(ScoreMatrix(table, decimals=0))
    inside = [values(ScoreMatrix(table + draw.uniform(-0.5, 0.5, (2, 2)))) for _ in range(800)]
    for name, each in found.items():
        if not each.reason:
            drawn = [other[name].value for other in inside]
            assert each.low <= min(drawn) <= max(drawn) <= each.high, name
            assert max(drawn) - min(drawn) > 0.6 * (each.high - each.low), name


def test_a_printed_value_follows_or_another_measure_has_it():
    matrix = ScoreMatrix(TABLE, decimals=0)
    checks = {
        check.name: check for check in audit_matrix(matrix, {"ACC": (60.4, 1), "BWT": (-23.3, 1), "F": (26.0, 0)})
    }
    assert checks["final_accuracy"].follows, "60 of three scores that may be half a point higher"
    assert not checks["backward_transfer"].follows
    assert checks["backward_transfer"].others == ("backward_transfer_all",)
    assert checks["forgetting"].follows, "25 can be 26 if each score is rounded"
    assert not audit_matrix(matrix, {"forgetting": (26.6, 1)})[0].follows


def test_names_of_measures():
    assert find("average anytime accuracy") == "average_incremental_accuracy"
    with pytest.raises(UserError, match="does not follow from a matrix alone"):
        find("intransigence")
    with pytest.raises(UserError, match=r"unknown measure 'frogetting'.*forgetting"):
        find("frogetting")


def written(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


AVALANCHE = """eval_exp,training_exp,eval_accuracy,eval_loss,forgetting
0,0,0.8000,0.5,0
1,0,0.1000,2.5,0
0,1,0.6000,0.5,0.2
1,1,0.9000,0.5,0
"""
AVALANCHE_TEXT = """-- >> Start of training phase << --
-- >> Start of eval phase << --
\tTop1_Acc_Exp/eval_phase/test_stream/Task000/Exp000 = 0.8000
\tTop1_Acc_Exp/eval_phase/test_stream/Task000/Exp001 = 0.1000
-- >> End of eval phase << --
-- >> Start of training phase << --
-- >> Start of eval phase << --
\tTop1_Acc_Exp/eval_phase/test_stream/Task000/Exp000 = 0.6000
\tTop1_Acc_Exp/eval_phase/test_stream/Task000/Exp001 = 0.9000
"""
AVALANCHE_JSON = {
    "Top1_Acc_Exp/eval_phase/test_stream/Task000/Exp000": [[0, 1], [0.8, 0.6]],
    "Top1_Acc_Exp/eval_phase/test_stream/Task000/Exp001": [[0, 1], [0.1, 0.9]],
    "Loss_Exp/eval_phase/test_stream/Task000/Exp000": [[0, 1], [2.0, 1.0]],
}
PILOT = """2024-05-01 10:00:00,000 [trainer.py] => CNN: {'total': 80.0, '00-09': 80.0, 'old': 0, 'new': 80.0}
2024-05-01 10:00:00,000 [trainer.py] => CNN top1 curve: [80.0]
2024-05-01 11:00:00,000 [trainer.py] => CNN: {'total': 75.0, '00-09': 60.0, '10-19': np.float64(90.0), 'new': 90.0}
2024-05-01 11:00:00,000 [trainer.py] => CNN top1 curve: [80.0, 75.0]
"""
RECORD = {
    "config": {},
    "scores": [
        {"stage": stage, "step": 1, "name": name, "split": "test", "count": 9, "score": score}
        for stage, name, score in [
            (0, "a", 0.5),
            (0, "b", 0.5),
            (1, "a", 0.8),
            (1, "b", 0.1),
            (2, "a", 0.6),
            (2, "b", 0.9),
        ]
    ],
}
FILES = {
    "plain.csv": "0.8,0.1\n0.6,0.9\n",
    "named.csv": "stage;one;two\n1;80 %;10 %\n2;60 %;90 %\n",
    "spaces.txt": "80 10\n60 90\n",
    "before.csv": "0.5,0.5\n0.8,0.1\n0.6,0.9\n",
    "rows.json": "[[0.8, 0.1], [0.6, 0.9]]",
    "scores.json": '{"scores": [[80.0, 10.0], [60.0, 90.0]], "before": [5, 5]}',
    "eval_results.csv": AVALANCHE,
    "avalanche.log": AVALANCHE_TEXT,
    "metrics.json": json.dumps(AVALANCHE_JSON),
    "record.json": json.dumps(RECORD),
}


@pytest.mark.parametrize("name", FILES)
def test_one_matrix_in_all_formats(tmp_path, name):
    found = read_matrix(written(tmp_path, name, FILES[name]))
    assert np.allclose(found.scores / found.unit, [[0.8, 0.1], [0.6, 0.9]])
    assert (found.before is not None) == (name in ("before.csv", "scores.json", "record.json"))


def test_decimals_are_those_that_are_printed(tmp_path):
    assert read_matrix(written(tmp_path, "a.csv", FILES["plain.csv"])).decimals == 1
    assert read_matrix(written(tmp_path, "b.csv", AVALANCHE)).decimals == 4
    assert read_matrix(written(tmp_path, "c.json", "[[0.81234567, 0.1], [0.6, 0.9]]")).decimals is None
    assert read_matrix(written(tmp_path, "d.csv", FILES["plain.csv"]), decimals=3).decimals == 3


def test_a_log_of_pilot_has_the_learned_tasks_and_a_curve(tmp_path):
    found = read_matrix(written(tmp_path, "run.log", PILOT + PILOT))
    assert np.array_equal(found.scores, [[80, np.nan], [60, 90]], equal_nan=True)
    assert (found.decimals, found.curve) == (2, (80.0, 75.0))
    assert values(found)["zero_shot_transfer"].reason


def test_numbers_of_an_array(tmp_path):
    np.save(tmp_path / "scores.npy", TABLE.T)
    found = read_matrix(tmp_path / "scores.npy", transpose=True)
    assert np.array_equal(found.scores, TABLE)
    assert found.decimals is None


def test_zeros_above_the_diagonal_were_not_measured(tmp_path):
    found = read_matrix(written(tmp_path, "a.csv", "80,0\n60,90\n"))
    assert np.isnan(found.scores[0, 1])
    turned = read_matrix(written(tmp_path, "b.csv", "80,60\n0,90\n"))
    assert "give --transpose" in turned.notes[-1]


HOSTILE = {
    "empty.csv": "",
    "words.csv": "1,2\n3,four\n",
    "huge.json": "[[1e400]]",
    "deep.json": "[" * 100_000,
    "objects.json": '[[{"a": 1}]]',
    "flat.json": "[1, 2]",
    "bad.log": "x => CNN: {'00-09': __import__('os')}",
    "nested.log": "x => CNN: " + "{" * 5000 + "}",
    "wide.csv": ",".join(["1"] * 2000) + "\n",
    "eval_results.csv": "eval_exp,training_exp,eval_accuracy\n999999999,0,0.5\n",
    "metrics.json": '{"Top1_Acc_Exp/eval_phase/test_stream/Task000/Exp000": 3}',
    "record.json": '{"config": {}, "scores": [{"split": "test", "name": "a", "stage": -5, "score": 1}]}',
    "rectangle.csv": "1,2,3\n4,5,6\n",
    "field.csv": f"1,2\n3,{'4' * 200_000}\n",
    "quoted.csv": '1,"2\n3,4\n' + "x" * 300_000,
    "rows.csv": "1,2\n" * 100_000,
    "columns.json": f"[[{'1,' * 100_000}1]]",
    "underscores.csv": "9_0,1\n2,3\n",
    "repeated.log": "=> CNN: {" * 200_000,
    "open.log": "=> CNN: {" + "} " * 200_000 + "x",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_broken_and_hostile_files_are_refused_with_a_reason(tmp_path, name):
    with pytest.raises(UserError, match=r"has no score matrix|rows and .* columns"):
        measures(read_matrix(written(tmp_path, name, HOSTILE[name])))


def test_an_array_that_is_larger_than_any_matrix_is_refused_before_it_is_read(tmp_path):
    with (tmp_path / "sparse.npy").open("wb") as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": (100_000, 100_000)}
        np.lib.format.write_array_header_1_0(file, header)
        file.truncate(file.tell() + 8 * 10**10)
    with pytest.raises(UserError, match="larger than 32 MiB"):
        read_matrix(tmp_path / "sparse.npy")


def test_a_record_that_was_changed_by_hand_is_refused_and_its_names_are_escaped(tmp_path):
    scores = [
        {"split": "test", "stage": stage, "name": name, "score": 0.5}
        for stage in (1, 2)
        for name in ("[red]b\x1b[2J", "[bold]c")
    ]
    content = sealed({"config": {}, "scores": scores})
    path = written(tmp_path, "record.json", json.dumps(content))
    done = inside("papers", "audit-matrix", path, cwd=tmp_path)
    assert "the tasks are [red]b\\x1b[2J, [bold]c." in done.stdout.replace("\n", " ")
    content["scores"][0]["score"] = 0.9
    written(tmp_path, "record.json", json.dumps(content))
    with pytest.raises(UserError, match="its checksum is wrong"):
        read_matrix(path)


def test_pickles_and_pipes_are_refused(tmp_path):
    np.save(tmp_path / "objects.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    os.mkfifo(tmp_path / "pipe.csv")
    for name, why in (("objects.npy", "objects"), ("pipe.csv", "pipe"), ("missing.csv", "cannot be read")):
        with pytest.raises(UserError, match=why):
            read_matrix(tmp_path / name)


def test_the_command(tmp_path):
    path = written(tmp_path, "scores.csv", "80,10,20\n60,90,40\n70,50,60\n")
    done = inside("papers", "audit-matrix", str(path), "--printed", "acc=60.0", "--printed", "bwt=-23.3", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 of 2 printed values do not follow from the matrix." in done.stdout
    assert "backward transfer, all stages is." in done.stdout
    assert all(measure.title in done.stdout for measure in MEASURES.values())
    found = json.loads(inside("papers", "audit-matrix", str(path), "--printed", "F=25", "--json", cwd=tmp_path).stdout)
    assert found["printed"][0]["follows"] is True
    wrong = inside("papers", "audit-matrix", str(path), "--printed", "bwt", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "write it as NAME=VALUE" in wrong.stderr
