"""Bars for a notebook: what each run writes is followed, wherever it is carried out."""

import sys
from types import SimpleNamespace

import pytest

import holdfast
from holdfast import progress
from holdfast.experiments import following


class Notebook:
    """What a notebook's IPython has, and what it was asked to show."""

    def __init__(self):
        self.shown = []
        self.display = SimpleNamespace(display=self._display)

    def get_ipython(self):
        return SimpleNamespace(kernel=self)

    def _display(self, what, display_id):
        self.shown.append(what)
        return SimpleNamespace(update=self.shown.append)


@pytest.fixture
def notebook(monkeypatch):
    found = Notebook()
    monkeypatch.setitem(sys.modules, "IPython", found)
    monkeypatch.setattr(progress, "SECONDS", 0)
    return found


def test_runs_in_this_process_and_in_others_have_bars(notebook, tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(following, "SECONDS", 0.01)
    small = {"benchmark.stages": 2, "train.epochs": 60}
    for jobs in (1, 2):
        runs = holdfast.run(
            "patterns", "finetune", seeds=2, scale="tiny", settings=small, out=tmp_path / str(jobs), jobs=jobs
        )
        assert len(runs) == 2
        texts = [str(each) for each in notebook.shown]
        assert any(
            text.startswith(("all runs  0 %  0 of 2\nfinetune", "all runs  50 %  1 of 2\nfinetune")) for text in texts
        )
        assert any("stage-1" in text for text in texts)
        assert texts[-1] == "", "the bars vanish"
        notebook.shown.clear()
    assert capfd.readouterr() == ("", "")


def test_other_work_has_a_bar_too(notebook):
    with progress.progress_bar("reading <b>") as show:
        show(1, 4)
    assert [str(each) for each in notebook.shown] == ["", "reading <b>", "reading <b>  25 %  1 of 4", ""]
    assert notebook.shown[2]._repr_html_() == (
        "<div><progress value=0.250></progress> reading &lt;b&gt; <small>1 of 4</small></div>"
    )


def test_a_terminal_is_no_notebook(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace()))
    assert not progress.in_notebook()
    monkeypatch.delitem(sys.modules, "IPython")
    assert not progress.in_notebook()
