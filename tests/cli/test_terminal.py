"""Every command in a pseudo-terminal of 80 columns: lines fit, and no number is broken."""

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from unicodedata import east_asian_width

import pytest

from cli.inside import inside
from holdfast.cli import command_line
from holdfast.cli.watch import watch
from processes import environment
from reports.stores import ALGORITHMS, put, record

COMMANDS = """
from holdfast.cli import main
import sys
for line in open("commands").read().splitlines():
    print("###", line, flush=True)
    sys.argv = ["holdfast", *line.split()]
    try:
        main()
    except SystemExit:
        pass
    sys.stdout.flush()
"""
TABLES = [
    "compare runs", "list", "list runs --out runs", "list algorithms", "list models", "list benchmarks",
    "list datasets", "list training", "list algorithms ewc", "list models vilt", "list benchmarks table",
    "show RUN --out runs", "show WIDE --out runs", "watch runs --once", "verify runs", "cache", "cache --store runs",
    "papers list", "papers table climb 3", "papers audit climb", "papers table cfst 1", "cfst table runs",
    "run patterns --scale tiny --set train.epochs=1 --set benchmark.stages=2 --out made -j 1",
    "run patterns --scale tiny --dry-run", "plan clvqa --dry-run --scale tiny",
    "tune patterns -a er --grid replay.capacity=40,41 --by final_accuracy --scale tiny --set train.epochs=1 --out made",
    "report runs --out page", "data make sst2 --out data", "data check data", "data prepare sst2 data/sst2 --out t",
    "claims --paper clvqa", "claims verdicts runs --only clvqa/yn-is-harder", "leaderboard runs --out board",
    "export runs --out results.json", "merge results.json --out merged", "import climb nowhere",
    "list algorithms --facts", "papers audit-matrix scores.csv", "papers audit --across", "climb tables runs",
]  # fmt: skip


def named(group, path=""):
    """The name of each command below a group."""
    yield path.strip()
    for name, inner in getattr(group, "commands", {}).items():
        yield from named(inner, f"{path} {name}")


HELP = [f"{name} --help".strip() for name in named(command_line())]
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,.]*\d(?![\w.])")


def in_terminal(words, cwd, seconds=200):
    """What a process prints in a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 80, 0, 0))
    variables = environment(TERM="xterm", HOLDFAST_CACHE=str(cwd / "cache"))
    variables.pop("COLUMNS", None)
    process = subprocess.Popen(words, cwd=cwd, stdin=theirs, stdout=theirs, stderr=theirs, env=variables)
    os.close(theirs)
    read, end = b"", time.monotonic() + seconds
    with contextlib.suppress(OSError):  # Linux raises at the end
        while time.monotonic() < end and (more := os.read(ours, 65536)):
            read += more
    os.close(ours)
    process.wait(20)
    return read.decode()


def lines(text):
    """Lines as they stand on the screen at last: without colours, and without bars that were drawn over."""
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r\n", "\n")
    return [line.rpartition("\r")[2].rstrip() for line in plain.split("\n")]


def cells(line):
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in line)


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("terminal")
    store = folder / "runs"
    wide = {f"a measure with name {number}": 1234.5 + number / 7 for number in range(14)}
    for seed in (0, 1, 2):
        for algorithm in ALGORITHMS[:3]:
            put(store, record(algorithm=algorithm, seed=seed))
    put(store, record(benchmark="mine", algorithm="ewc+replay+with-a-long-name", summary=wide, run="b" * 12))
    put(store, record(algorithm="lwf", stages=20, run="c" * 12))
    (folder / "scores.csv").write_text("80.2,0,0\n60.1,90.3,0\n70.0,50.5,60.9\n")
    asked = [line.replace("RUN", "c" * 12).replace("WIDE", "b" * 12) for line in (*TABLES, *HELP)]
    (folder / "commands").write_text("\n".join(asked))
    found, last = {}, ""
    for line in lines(in_terminal([sys.executable, "-c", COMMANDS], folder)):
        if line.startswith("### "):
            last = line[4:]
            found[last] = []
        elif last:
            found[last].append(line)
    assert list(found) == asked
    return folder, found


@pytest.mark.parametrize("place", range(len(TABLES) + len(HELP)))
def test_every_line_fits(printed, place):
    command, text = list(printed[1].items())[place]
    assert text, command
    assert "Traceback" not in "\n".join(text), text
    whole = "holdfast: ", "again: "  # messages and commands: a terminal wraps them, and copies them whole
    assert not [line for line in text if cells(line) > 80 and not line.startswith(whole)], command


@pytest.mark.parametrize("command", ["compare runs", "show b", "show c", "papers table climb 3", "papers table cfst 1"])
def test_no_number_is_broken(printed, command):
    folder, found = printed
    (narrow,) = ("\n".join(text) for name, text in found.items() if name.startswith(command))
    (name,) = (name for name in found if name.startswith(command))
    wide = inside(*name.split(), cwd=folder).stdout
    numbers = set(NUMBER.findall(wide))
    assert len(numbers) > 5
    assert numbers <= set(NUMBER.findall(narrow))


def test_watch_waits_for_a_store_that_does_not_exist_yet(tmp_path, monkeypatch):
    slept = []

    def sleep(seconds):
        slept.append(seconds)
        if len(slept) == 2:
            put(tmp_path / "runs", record())
        if len(slept) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr("holdfast.cli.watch.time.sleep", sleep)
    monkeypatch.setattr("rich.console.Console.is_terminal", True)
    watch(tmp_path / "runs", every=0.5)
    assert slept == [0.5] * 4
