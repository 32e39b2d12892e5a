"""`make demo` shows what it promises, with every seed and example that it takes."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast.reports.sentences import conclusions

ROOT = Path(__file__).parents[3]


def commands(store):
    """The commands of `make demo`, with this store in place of its own."""
    (recipe,) = re.findall(r"^demo:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    words = [shlex.split(line) for line in recipe.replace("\\\n", "").splitlines()]
    assert {each[0] for each in words} == {"$(BIN)/holdfast"}
    return [[re.sub(r"^demo(?=/|$)", str(store), word) for word in each[1:]] for each in words]


@pytest.mark.slow
def test_replay_forgets_less_than_fine_tuning_and_adapters_forget_nothing(tmp_path):
    store = tmp_path / "demo"
    run, *rest = (
        subprocess.run([sys.executable, "-m", "holdfast", *words], capture_output=True, text=True, check=True).stdout
        for words in commands(store)
    )
    records = holdfast.load(store).records
    ((experiment, said),) = conclusions(records)
    forgetting = {each.test.first: each.test for each in said.claims if each.measure == "forgetting_transfer"}
    assert forgetting["replay"].second == "finetune"
    assert forgetting["replay"].difference + forgetting["replay"].half_width < 0
    assert {record.summary["forgetting_transfer"] for record in experiment.rows["adapters"]} == {0.0}
    for task, chance in (("snli-ve", 1 / 3), ("vqav2", 0.0)):
        assert all(record.summary[task] > chance + 0.1 for record in experiment.rows["replay"])
    assert said.text.split()[0] in run
    assert "does not reproduce" in run.replace("\n", " ")
    assert "index.html" in rest[-1]
    assert list((store / "figures").rglob("t-f-single.pdf"))
