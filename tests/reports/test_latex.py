"""Tables as LaTeX fit their page: in one and in two columns, whatever the rows are called."""

import re
import shutil
import subprocess

import pytest

import holdfast
from holdfast.experiments.store import Record
from holdfast.reports.blocks import Cell, TableBlock
from holdfast.reports.compare import tables
from holdfast.reports.figures import write
from holdfast.reports.formats import latex
from holdfast.reports.runs import Run, Runs
from reports.stores import put, record

HOSTILE = r"\input{/etc/passwd} $x^2$ %&#_{}~ a--b – ± ≥ <i> \end{table} " + "longword" * 12


def made(columns, name="er", text="", best=False):
    heads = ("algorithm", *(f"measure {n} ↑" for n in range(columns)))
    cells = (Cell(name), *(Cell(number=-12.34, interval=5.67, best=best) for _ in range(columns)))
    rows = (cells, (Cell(text or "lwf"), *cells[1:]))
    return TableBlock(f"of {columns}", heads, rows, ("A note.",), "Synthetic.", "best" if best else "")


def test_a_narrow_table_takes_a_column_and_a_wide_one_the_page():
    assert r"\begin{table}" in latex(made(1))
    assert r"\begin{table*}" in latex(made(4))
    assert latex(made(4)).count(r"\begin{tabular}") == 1


def test_a_table_wider_than_the_page_is_cut_into_blocks_with_every_column_once():
    text = latex(made(13))
    blocks = re.findall(r"\\toprule\n(.+) \\\\\n", text)
    assert len(blocks) > 1
    names = [block.strip().split(" & ") for block in blocks]
    assert {block[0] for block in names} == {"algorithm"}
    assert [name for block in names for name in block[1:]] == [f"measure {n} $\\uparrow$" for n in range(13)]
    assert min(map(len, names)) > 2  # no column alone


def test_a_table_has_a_label_and_the_command_that_made_it():
    lines = latex(made(2), "holdfast compare runs\n--format latex").splitlines()
    assert lines[0] == "% holdfast compare runs --format latex"
    assert r"  \label{tab:of-2}" in lines
    assert not latex(made(2)).startswith("%")


def test_two_hyphens_are_not_a_dash_and_a_dash_is():
    text = latex(TableBlock("t", ("a",), (), ("run it with --needs – or not.",)))
    assert "-{}-needs -- or not" in text


# With a real LaTeX

CLASSES = {
    "one column": r"\documentclass[10pt]{article}",
    "one column, large": r"\documentclass[12pt]{article}",
    "two columns": r"\documentclass[10pt,twocolumn]{article}",
    "two columns, narrow": r"\documentclass[11pt,twocolumn]{article}\textwidth=16cm\columnsep=6mm\hsize=\textwidth",
}


def compiled(folder, preamble, body):
    """The log of pdflatex."""
    text = "\n".join([preamble, r"\usepackage{booktabs,graphicx}", r"\begin{document}", body, r"\end{document}"])
    (folder / "paper.tex").write_text(text, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    return subprocess.run(command, cwd=folder, capture_output=True, timeout=300).stdout.decode(errors="replace")


def of_all_benchmarks():
    """The tables of a store with runs of each benchmark that has a paper."""
    values = [
        record(benchmark, algorithm, seed=seed, stages=3, model=model, **settings)
        for benchmark, model, settings in (
            ("patterns", "perceptron", {}),
            ("climb", "vilt-tiny", {"order": "vqav2>nlvr2>snli-ve>vcr"}),
            ("viscoll:coco", "vlbert-tiny", {}),
            ("clvqa", "san", {}),
            ("cfst:cgqa", "resnet18-tiny", {}),
        )
        for algorithm in ("finetune", "replay", "ewc")
        for seed in range(3)
    ]
    records = [Record.from_json(value, "test") for value in values]
    runs = [Run(each.id, None, "done", each.config, each) for each in records]
    return tables(Runs(runs, None))


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("pdflatex"), reason="no LaTeX here: apt install texlive-latex-recommended")
@pytest.mark.parametrize("kind", CLASSES)
def test_tables_and_figures_compile_without_overfull_boxes(kind, tmp_path):
    for number in range(2):
        for seed in range(3):
            put(tmp_path / "store", record(algorithm=("finetune", "replay")[number], seed=seed))
    figures = write(holdfast.load(tmp_path / "store"), tmp_path / "figures", "holdfast figures store")
    bodies = [path.with_name(f"{path.name}.tex").read_text() for path in figures]
    found = of_all_benchmarks()
    assert len(found) >= 7
    found += [made(columns, best=True) for columns in range(1, 16)]
    found += [made(6, HOSTILE, "snli-ve>vqav2>nlvr2>vcr with replay (capacity=200, strength=0.5)")]
    words = TableBlock(HOSTILE, ("a", "b", "why"), ((Cell("x"), Cell(HOSTILE), Cell(HOSTILE)),), (HOSTILE,))
    bodies += [latex(table, "holdfast compare store --format latex") for table in (*found, words)]
    cleared = [body + ("\n\\clearpage" if place % 5 == 4 else "") for place, body in enumerate(bodies)]
    log = compiled(tmp_path, CLASSES[kind], "\n".join([r"\graphicspath{{figures/}}", *cleared]))
    assert "Output written on paper.pdf" in log, log[-3000:]
    assert re.findall(r"Overfull .*\n.*", log) == []
    assert "multiply defined" not in log
