"""`holdfast figures`: every figure with the caption that a paper needs."""

import pytest

import holdfast as hf
from holdfast.errors import UserError
from holdfast.reports import figures
from reports.commands import holdfast
from reports.stores import ALGORITHMS, put, record


@pytest.fixture
def undrawn(monkeypatch):
    """Figures that are not drawn: their captions are of interest."""
    monkeypatch.setattr(figures, "draw", lambda block, path, columns: [])


def store_of(folder, seeds, algorithms=("finetune", "replay"), **rest):
    for algorithm in algorithms:
        for seed in seeds:
            put(folder, record(algorithm=algorithm, seed=seed, stages=3, **rest))
    return folder


def captions(store, out, undrawn=None):
    written = figures.write(hf.load(store), out, "holdfast figures store")
    return {path.name: path.with_name(f"{path.name}.txt").read_text() for path in written}


def test_the_command_writes_both_widths_in_both_formats_with_captions_and_a_table(tmp_path):
    store = store_of(tmp_path / "store", [0], ["finetune"])
    said = holdfast("figures", store, "--out", tmp_path / "out").output
    folder = tmp_path / "out" / "patterns-tiny-class-forward-perceptron"
    names = {path.name for path in folder.iterdir()}
    heat = "scores-after-each-stage-finetune"
    for name in ("mean-score-on-the-tasks-learned-so-far", heat):
        assert name in said
        ends = [f"-{columns}.{kind}" for columns in ("single", "double") for kind in ("pdf", "svg")]
        assert {f"{name}{end}" for end in (*ends, ".txt", ".tex")} <= names
    text = (folder / f"{heat}.tex").read_text()
    assert text.startswith(f"% holdfast figures {store} --out {tmp_path / 'out'}\n")
    assert rf"\includegraphics[width=\linewidth]{{{folder.name}/{heat}-single.pdf}}" in text
    assert rf"\label{{fig:{folder.name}-{heat}}}" in text
    assert r"\toprule" in (folder / "measures.tex").read_text()


@pytest.mark.parametrize(
    ("seeds", "told"),
    [
        ([4], "One seed, so without intervals."),
        ([0, 1], "Means over 2 seeds (0 to 1). Intervals need 3 seeds."),
        ([0, 2, 7], "Means over 3 seeds (0, 2, 7). Bands are 95 % t-intervals over the seeds."),
    ],
)
def test_a_caption_says_seeds_and_intervals(seeds, told, tmp_path, undrawn):
    found = captions(store_of(tmp_path / "store", seeds), tmp_path / "out")
    assert told in found["mean-score-on-the-tasks-learned-so-far"]
    assert "Made by: holdfast figures store" in found["mean-score-on-the-tasks-learned-so-far"]


def test_a_caption_names_what_is_drawn_when_there_are_many_lines(tmp_path, undrawn):
    found = captions(store_of(tmp_path / "store", range(3), ALGORITHMS[:6]), tmp_path / "out")
    assert "Lines through points are 95 %" in found["mean-score-on-the-tasks-learned-so-far"]
    assert "Points are seeds; the means have their 95 %" in found["final-acc"]


def test_a_caption_says_whether_data_is_synthetic(tmp_path, undrawn):
    climb = {"benchmark": "climb", "model": "vilt-tiny", "order": "vqav2>nlvr2>vcr"}
    synthetic = captions(store_of(tmp_path / "a", [0], **climb), tmp_path / "one")
    assert all("does not reproduce" in text for text in synthetic.values())
    real = captions(store_of(tmp_path / "b", [0], given=" --data photos", **climb), tmp_path / "two")
    assert all("given with --data (fingerprint 318f6439)" in text for text in real.values())


def test_hostile_names_stay_inside_the_folder_and_apart(tmp_path, undrawn):
    for name in ("../../evil", "a" * 400, "A" * 400, "%$"):
        put(tmp_path / "store", record(algorithm=name, seed=0, stages=3))
    found = captions(tmp_path / "store", tmp_path / "out")
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert len(files) == 2 * len(found) + 1
    assert {path.parent.parent for path in files} == {tmp_path / "out"}


def test_a_store_without_figures_says_so(tmp_path, undrawn):
    put(tmp_path / "store", record(stages=1))
    with pytest.raises(UserError, match="no finished run with a figure"):
        figures.write(hf.load(tmp_path / "store"), tmp_path / "out", "")
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="is a file"):
        figures.write(hf.load(tmp_path / "store"), tmp_path / "file", "")
