"""The pages on what you can add: every file, script and command in them is made, executed and run."""

import re
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import pytest
from PIL import Image

import holdfast
from cli.inside import inside
from pages.shown import blocks
from processes import environment

PAGES = Path(__file__).parents[2] / "docs"
SMALL = ["--set", "train.epochs=1"]
"""Commands are run as they stand on the page, with fewer epochs."""


@pytest.mark.parametrize("page", ["add-a-benchmark", "add-a-dataset", "add-a-task", "add-an-algorithm", "generate"])
def test_every_block_of_a_page_works(page, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    commands = 0
    for block in blocks():
        if block.page != f"docs/{page}.md" or block.title:
            continue
        if block.language == "python" and (name := re.match(r"# (\w+\.py)\n", block.text)):
            (tmp_path / name[1]).write_text(block.text, encoding="utf-8")
        elif block.language == "python" and not block.text.startswith(">>>"):  # those are doctests
            with chdir(tmp_path):
                exec(compile(block.text, f"{page}.md", "exec"), {"__name__": page})
        for words in block.commands():
            done = inside(*words, *(SMALL if words[0] in ("run", "tune") else []), cwd=tmp_path)
            assert done.returncode == 0, (words, done.stderr)
            commands += 1
    assert commands


def test_the_script_of_the_page_on_python_works(tmp_path):
    (text,) = [block.text for block in blocks() if block.page == "docs/from-python.md" and "# compare.py" in block.text]
    assert len(text.splitlines()) <= 25
    (tmp_path / "compare.py").write_text(text, encoding="utf-8")
    words = [sys.executable, "compare.py"]
    done = subprocess.run(words, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(holdfast.load(tmp_path / "runs")) == 9
    assert (tmp_path / "report/index.html").is_file()


def test_the_script_of_the_readme_works(tmp_path):
    (text,) = [block.text for block in blocks() if block.page == "README.md" and "# compare.py" in block.text]
    for kind, level in (("cat", 40), ("dog", 90), ("cow", 140), ("hen", 200)):
        (tmp_path / "photos" / kind).mkdir(parents=True)
        for number in range(12):
            Image.new("RGB", (24, 20), (level + number,) * 3).save(tmp_path / "photos" / kind / f"{number}.jpg")
    short = text.replace("seeds=3, jobs=2", "seeds=1, settings={'train.epochs': 1}")
    (tmp_path / "compare.py").write_text(short, encoding="utf-8")
    with chdir(tmp_path):
        exec(compile(short, "compare.py", "exec"), {"__name__": "readme"})
    assert len(holdfast.load(tmp_path / "runs")) == 3
    assert (tmp_path / "report/index.html").is_file()


def test_pages_and_examples_import_nothing_private():
    """Of Holdfast, they import `holdfast` alone, or a name that it exports."""
    root = PAGES.parent
    paths = [root / "README.md", *PAGES.glob("*.md"), *(root / "examples").rglob("*.py")]
    lines = [line.removeprefix(">>> ").strip() for path in paths for line in path.read_text("utf-8").splitlines()]
    found = {line for line in lines if re.match("(import|from) holdfast", line)}
    private = re.compile(r"(import|from) holdfast\.")
    assert not [line for line in found if private.match(line)]
    assert "import holdfast as hf" in found
