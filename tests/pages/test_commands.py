"""Every command that a page shows is one that Holdfast accepts, and is run here unless its block is marked."""

import re
import shlex
from unittest import mock

import pytest
from typer import Exit
from typer._click.exceptions import NoArgsIsHelpError, UsageError
from typer.core import TyperGroup

from cli.inside import inside
from holdfast.cli import command_line
from holdfast.errors import UserError
from holdfast.experiments.plan import graph
from pages.shown import PAGES, ROOT, blocks, inline

BLOCKS = blocks()
OWN = {f"docs/add-{a}.md" for a in ("a-benchmark", "a-dataset", "a-task", "an-algorithm")} | {
    "docs/bring-your-data.md",
    "docs/generate.md",
    "examples/plugin/README.md",
}
"""Pages whose commands have data and code of their own, and tests of their own."""
NEEDS = re.compile(r"--data (?!data\b)|--device cuda|--scale paper(?!.*--dry-run)|--engine ray|s3:|hf:|[A-Z]{4,}_?\b")
"""What the tests do not have: official data, weights, a GPU, a cluster."""
FOLDER = re.compile(r"--set [\w.]+=[A-Z_]{4,}(?= |$)")
"""A setting whose value stands for a folder of the reader's, such as weights."""
PLACES = {"NAME", "KIND"}
"""What stands for the name of a command or of a part."""


def accepted(words):
    """Read a command as the command line does, and stop before it does anything; an option like --help may exit."""
    command, words = command_line(), list(words)
    while isinstance(command, TyperGroup) and words and not words[0].startswith("-"):
        command = command.commands[words.pop(0)]
    try:
        return command.make_context("holdfast", words)
    except Exit:
        return True


@pytest.mark.parametrize("block", [each for each in BLOCKS if each.commands()], ids=lambda b: b.page)
def test_every_command_is_accepted(block):
    for words in block.commands():
        assert accepted(words), words


def in_a_sentence(found):
    """Check commands that may lack arguments."""
    for page, words in found:
        if PLACES & set(words):
            continue
        try:
            accepted(words)
        except KeyError as error:
            pytest.fail(f"{page}: holdfast {' '.join(words)}: there is no command {error}")
        except UsageError as error:
            if not isinstance(error, NoArgsIsHelpError) and not re.search("Missing|requires an argument", str(error)):
                pytest.fail(f"{page}: holdfast {' '.join(words)}: {error}")


def test_every_command_in_a_sentence_is_accepted():
    """A sentence may also name a command without its arguments."""
    found = inline()
    assert len(found) > 100
    in_a_sentence(found)


def test_the_settings_of_every_run_exist():
    """Names, settings and their values are checked, without data."""
    seen = set()

    def resolved(requests, out, options, ranks, jobs, needs, as_json):
        requests = [request for request in requests if not request.start]
        seen.update(graph(requests, needs=False, read=False).configs)

    with mock.patch("holdfast.cli.run._run_all", resolved):
        commands = [(block.page, words) for block in BLOCKS for words in block.commands()] + inline()
        for page, words in commands:
            if words[0] == "run" and page not in OWN and not {"folder", "table", "dataset"} & set(words):
                if any(".py:" in word or "hf:" in word for word in words):
                    continue
                try:
                    context = accepted(shlex.split(FOLDER.sub("", shlex.join(words))))
                    context.command.invoke(context)
                except UserError as error:
                    pytest.fail(f"{page}: holdfast {' '.join(words)}: {error}")
    assert len(seen) > 50


def test_what_needs_data_or_a_gpu_is_marked():
    """A block without a title runs anywhere; its title says what another one needs."""
    for block in BLOCKS:
        assert block.language, f"{block.page}: say the language of the block, such as sh or text:\n{block.text}"
        if block.page in OWN:
            continue
        if block.language == "sh":
            needing = [line for line in block.text.splitlines() if NEEDS.search(line.partition(" #")[0])]
            assert block.title or not needing, f"{block.page}: mark the block by ```sh title=...: {needing}"
        if block.language == "python" and not block.title and not block.text.startswith(">>>"):
            assert block.page in OWN | {"docs/from-python.md", "README.md"}, (
                f"{block.page}: not tested, not marked:\n{block.text}"
            )


def test_no_block_escapes():
    """Every line that opens or closes a block belongs to one that is read here, and commands are in none but `sh`."""
    for path in PAGES:
        fences = re.findall(r"^\s*(?:```|~~~).*$", path.read_text("utf-8"), re.MULTILINE)
        own = [block for block in BLOCKS if block.page == str(path.relative_to(ROOT))]
        assert len(fences) == 2 * len(own), f"{path}: {fences}"
        for block in own:
            assert block.language in ("sh", "python", "toml", "text", "json"), (path, block.language)
            assert block.language == "sh" or not re.search(r"^holdfast [a-z]", block.text, re.MULTILINE), block.text


def test_every_command_in_a_docstring_or_a_plan_is_accepted():
    """The site has the docstrings, too."""
    source = ROOT / "src/holdfast"
    found = [
        (path, shlex.split(command)[1:])
        for pattern, command_in in (("*.py", r"`(holdfast [^`{]+)`"), ("plan.toml", r"^# +(holdfast [^(\n]+)"))
        for path in source.rglob(pattern)
        for command in re.findall(command_in, path.read_text("utf-8"), re.MULTILINE)
        if "..." not in command
    ]
    assert len(found) > 80
    in_a_sentence(found)


def pages_that_run():
    return sorted({block.page for block in BLOCKS if block.commands() and not block.title} - OWN)


WAITS = "watch"
"""A command that waits for somebody."""
FINDS = [("plan", "--scale", "paper"), ("papers", "audit")]
"""Commands whose status 1 says that they found something: missing files, cells that do not follow."""


def small(words):
    """The same command at its smallest size."""
    if words[0] in ("run", "tune"):
        return [*words, "--scale", "tiny", "--seeds", "1", "--set", "train.epochs=1"]
    if words[0] == "plan" and "--dry-run" not in words:
        return [*words, "--scale", "tiny", "--seeds", "1"]
    return words


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("page", pages_that_run())
def test_every_command_without_a_mark_runs(page, tmp_path, tiny_cache, monkeypatch):
    """In the order of the page, in one folder, at the smallest size; RUN is the run made last."""
    shown = [block for block in BLOCKS if block.page == page and not block.title]
    cleans = any("--clean" in words for block in shown for words in block.commands())
    monkeypatch.setenv("HOLDFAST_CACHE", str(tmp_path / "cache" if cleans else tiny_cache))
    for block in shown:
        if name := re.match(r"# ([\w-]+\.(?:toml|py))\n", block.text):
            (tmp_path / name[1]).write_text(block.text, encoding="utf-8")
        for words in block.commands():
            if words[0] == WAITS:
                continue
            runs = sorted((tmp_path / "runs").glob("[0-9a-f]*"), key=lambda path: path.stat().st_mtime)
            newest = runs[-1].name if runs else "RUN"
            done = inside(*(re.sub(r"\bRUN\b", newest, word) for word in small(words)), cwd=tmp_path)
            finds = any(set(each) <= set(words) for each in FINDS)
            assert done.returncode in ((0, 1) if finds else (0,)), (words, done.stdout[-2000:], done.stderr[-2000:])
