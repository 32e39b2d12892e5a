"""Mutation testing of the algorithms and memories: `make mutants`, or `python tests/mutants.py --only mir`.

Each mutant changes one constant, comparison, operator or function such as `min` within `src/holdfast/algorithms` or
`src/holdfast/memory`. It is applied to a temporary copy of the package, never to the tree, and the tests of that part
run against the copy, the golden tests first. A mutant that no test notices survives: it is a number that could change
under a published id. Kill it with a test, or explain in `tests/mutants.json` why nothing can notice it.

Test commands run in forks of a process that has imported PyTorch. With `--resume FILE`, an interrupted call continues,
as does one after a test was added: delete the lines of the mutants to be tried again.

The choice of mutants is fixed: each file gives those of its sites whose names hash lowest, so that a change of one
function leaves the choice in the others alone. Defaults of settings are left out, because a run's id covers them, and
so is what only words an error message.
"""

from __future__ import annotations

import argparse
import ast
import copy
import difflib
import functools
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "holdfast"
ROOMS = ("algorithms", "memory")
EXPLAINED = Path(__file__).with_suffix(".json")
LEAST, PER_LINES = 3, 30
"""Each file has at least three mutants, and one for each PER_LINES lines."""
SECONDS, WAIT = 120, 1200
"""A test command that computes for longer, or that takes longer on a busy machine, has noticed the mutant."""

OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
_TWINS = "min max, argmin argmax, any all, sum mean, ceil floor, zeros ones, minimum maximum, exp log, sqrt square"
NAMES = {a: b for pair in _TWINS.split(", ") for a, b in (pair.split(), pair.split()[::-1])}


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    key: str
    """The file, the function, what is changed into what, and which of several such places it is."""
    file: str
    start: int
    end: int
    text: str

    @property
    def part(self) -> str:
        return Path(self.file).stem

    def applied(self, source: str) -> str:
        data = source.encode()
        return (data[: self.start] + self.text.encode() + data[self.end :]).decode()

    def diff(self) -> str:
        source = (PACKAGE / self.file).read_text()
        lines = difflib.unified_diff(
            source.splitlines(), self.applied(source).splitlines(), self.file, self.file, lineterm="", n=0
        )
        return "\n".join(list(lines)[2:])


def mutants(file: str) -> list[Mutant]:
    """All mutants of a file, by its path within the package."""
    source = (PACKAGE / file).read_text()
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found: list[Mutant] = []
    counts: dict[str, int] = {}
    for where, node, changed in _sites(ast.parse(source), ""):
        before, after = ast.unparse(node), ast.unparse(changed)
        key = f"{file} {where}: {before} -> {after}"
        counts[key] = number = counts.get(key, 0) + 1
        start, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
        text = f"({after})" if isinstance(node, ast.Compare | ast.BinOp | ast.BoolOp) else after
        found.append(Mutant(key if number == 1 else f"{key} #{number}", file, start, end, text))
    return found


def chosen(file: str) -> list[Mutant]:
    """The mutants of a file that are tried: those whose keys hash lowest."""
    count = max(LEAST, len((PACKAGE / file).read_text().splitlines()) // PER_LINES)
    found = sorted(mutants(file), key=lambda mutant: hashlib.blake2b(mutant.key.encode()).hexdigest())
    return sorted(found[:count], key=lambda mutant: mutant.start)


def files() -> list[str]:
    """The files that are mutated."""
    paths = [path for room in ROOMS for path in sorted((PACKAGE / room).glob("*.py"))]
    return [f"{path.parent.name}/{path.name}" for path in paths if path.stem != "__init__"]  # which only export


def _sites(node: ast.AST, where: str, inside: bool = False) -> Iterator[tuple[str, ast.expr, ast.expr]]:
    """Each expression that can be changed, with what it becomes: (function, before, after)."""
    if isinstance(node, ast.keyword) and node.arg == "strict":  # it only tells of our own mistakes
        return
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom | ast.Assert):
        return
    if isinstance(node, ast.If) and _type_checking(node):
        return
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        where, inside = f"{where}.{node.name}".lstrip("."), isinstance(node, ast.FunctionDef)
        children: list[ast.AST] = list(node.body)
        if isinstance(node, ast.FunctionDef):
            children += [d for d in (*node.args.defaults, *node.args.kw_defaults) if d is not None]
    elif isinstance(node, ast.AnnAssign):
        # In a class, this is a setting, whose value a run's id covers.
        children = [node.value] if node.value is not None and (inside or not where) else []
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    else:
        children = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.expr):
        for changed in _changes(node):
            yield where or "module", node, changed
    for child in children:
        yield from _sites(child, where, inside)


def _changes(node: ast.expr) -> Iterator[ast.expr]:
    changed = copy.deepcopy(node)
    if isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, bool):
            yield ast.Constant(not value)
        elif isinstance(value, int):
            yield ast.Constant(value + 1)
        elif isinstance(value, float):
            yield ast.Constant(value * 2 if value else 1.0)
    elif isinstance(changed, ast.Compare) and len(changed.ops) == 1 and type(changed.ops[0]) in OPERATORS:
        changed.ops = [OPERATORS[type(changed.ops[0])]()]  # type: ignore[list-item]
        yield changed
    elif isinstance(changed, ast.BinOp) and type(changed.op) in OPERATORS:
        if not any(isinstance(side, ast.List | ast.Tuple | ast.JoinedStr) or _is_text(side) for side in _sides(node)):
            changed.op = OPERATORS[type(changed.op)]()  # type: ignore[assignment]
            yield changed
    elif isinstance(changed, ast.BoolOp):
        changed.op = OPERATORS[type(changed.op)]()  # type: ignore[assignment]
        yield changed
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        yield node.operand
    elif isinstance(node, ast.Name) and node.id in NAMES:
        yield ast.Name(NAMES[node.id])
    elif isinstance(changed, ast.Attribute) and changed.attr in NAMES:
        changed.attr = NAMES[changed.attr]
        yield changed
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(node.test, node.orelse, node.body)


def _sides(node: ast.expr) -> tuple[ast.expr, ...]:
    return (node.left, node.right) if isinstance(node, ast.BinOp) else ()


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _type_checking(node: ast.If) -> bool:
    return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


# Tests


@functools.cache
def users(part: str) -> tuple[str, ...]:
    """The algorithms whose modules import a part of the rooms, directly or by others; the part itself first."""
    found, new = [part], [part]
    while new:
        new = [name for name, below in uses().items() if name not in found and below & set(new)]
        found += new
    return tuple(found)


@functools.cache
def uses() -> dict[str, set[str]]:
    """The modules that each algorithm's module imports, and the rooms beside theirs."""
    return {
        path.stem: set(re.findall(r"^from holdfast\.(?:algorithms\.)?(\w+)", path.read_text(), re.MULTILINE))
        for path in sorted((PACKAGE / "algorithms").glob("*.py"))
    }


def tests_of(part: str) -> list[Path]:
    """The tests that are named for a part and for those that use it; if there are none, those that mention it."""
    own = ROOT / "tests" / "algorithms"
    found = [own / f"test_{name}.py" for name in users(part)]
    found = [path for path in found if path.exists()]
    return found or [
        path for path in sorted(own.glob("test_*.py")) if re.search(rf"\b{_named(part)}\b", path.read_text())
    ]


def _named(part: str) -> str:
    return part.replace("_", "[-_]")


def classes(part: str) -> list[str]:
    """The names of the classes of an algorithm's module."""
    path = PACKAGE / "algorithms" / f"{part}.py"
    tree = ast.parse(path.read_text()) if path.exists() else ast.Module([])
    return [node.name for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]


def commands(file: str, deep: bool) -> list[list[str]]:
    """What is run against a mutant of a file until one of them fails: the most likely to notice it first."""
    part = Path(file).stem
    names = users("memory" if file.startswith("memory") else part)
    here = ROOT / "tests"
    # Not of this tree, as the tests otherwise are, but of the copy that PYTHONPATH names.
    python = [sys.executable, "-m", "pytest", "-o", "pythonpath=tests", "-n0", "-x", "-q", "--no-header"]
    python += ["-p", "no:cacheprovider"]
    tests = tests_of("memory" if file.startswith("memory") else part)
    tests.append(here / "algorithms" / "test_traits.py")
    if file.startswith("memory"):
        tests[:0] = sorted(here.glob("test_memory*.py"))
    module = f"holdfast.{file.removesuffix('.py').replace('/', '.')}".removesuffix(".__init__")
    doctest = f"import doctest, {module} as m; raise SystemExit(doctest.testmod(m, optionflags=12).failed > 0)"
    found = []
    # Goldens go by the names of classes, and those of memories begin so.
    words = [each for name in names for each in classes(name)] + ["memory"] * file.startswith("memory")
    if (goldens := sorted((here / "golden").glob("test_*.py"))) and words:
        found.append([*python, *map(str, goldens), "-k", f"behaves and ({' or '.join(words)})"])
    found.append([*python, *(str(path) for path in tests if path.exists())])
    found.append([sys.executable, "-c", doctest])
    # Resuming, and the bytes of memory: of each algorithm alone, or with all that is asked of them.
    own = " or ".join(name.replace("_", "-") for name in names)
    which = "not two_ranks" if deep else "(bytes or (middle and 2-))"
    alone = "" if deep else " and not +"
    found.append([*python, str(here / "conformance"), "-k", f"({own}) and {which}{alone}"])
    return found


class Bench:
    """A temporary copy of the package, on which mutants are tried one after another."""

    def __init__(self, folder: Path, deep: bool) -> None:
        self.package, self.deep, self.baseline = folder / "src" / "holdfast", deep, dict[str, int]()
        shutil.copytree(PACKAGE, self.package, ignore=shutil.ignore_patterns("__pycache__"))
        threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self.environment = {
            **os.environ, **threads, "PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"
        }  # fmt: skip
        where = [sys.executable, "-c", "import holdfast; print(holdfast.__file__)"]
        found = subprocess.run(where, env=self.environment, capture_output=True, text=True, check=True).stdout
        assert found.startswith(str(folder)), f"the tests would run {found}, not the copy"
        words = [sys.executable, Path(__file__), "--serve"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.server = subprocess.Popen(words, cwd=ROOT, env=self.environment, text=True, **pipes)

    def verdict(self, mutant: Mutant) -> str:
        """Which test noticed a mutant: its name, or `survived`."""
        path = self.package / mutant.file
        source = (PACKAGE / mutant.file).read_text()
        assert path.read_text() == source
        path.write_text(mutant.applied(source))
        try:
            for command in commands(mutant.file, self.deep):
                noticed = self._noticed(command)
                if noticed:
                    path.write_text(source)
                    self._check_baseline(command)
                    return noticed
            return "survived"
        finally:
            path.write_text(source)

    def _noticed(self, command: list[str]) -> str:
        """The first failure of a test command; empty where all pass, or where there are no such tests."""
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        self.server.stdin.write(json.dumps(command) + "\n")
        self.server.stdin.flush()
        ended, printed = json.loads(self.server.stdout.readline())
        if ended is None:
            return f"took over {WAIT} s"
        if ended in (-signal.SIGXCPU, -signal.SIGKILL):
            return f"computed for over {SECONDS} s"
        if ended in (0, 5):  # 5: no test was chosen
            return ""
        lines = [line for line in printed.splitlines() if line.startswith(("FAILED", "ERROR"))]
        return (lines or [" ".join(command[1:3])])[0].split(" - ")[0][:150]

    def _check_baseline(self, command: list[str]) -> None:
        """A command that fails without any mutant would notice everything."""
        key = " ".join(command)
        if key not in self.baseline:
            self.baseline[key] = 1
            if failed := self._noticed(command):
                raise SystemExit(f"{failed} fails without any mutant: mend it first\n{key}")


def serve() -> None:
    """Run the commands on standard input, each in a fork: none has to import PyTorch. Say how it ended, and its output.

    Nothing of the package is imported before a fork, so each sees the mutant of its time.
    """
    import numpy as np  # noqa: F401
    import safetensors.torch  # noqa: F401

    assert not any(name.partition(".")[0] == "holdfast" for name in sys.modules)
    for line in sys.stdin:
        command = json.loads(line)
        with tempfile.TemporaryFile("w+") as output:
            if (child := os.fork()) == 0:
                resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
                for number in (1, 2):
                    os.dup2(output.fileno(), number)
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                os._exit(_carried_out(command))
            ended = _ended(child)
            output.seek(0)
            print(json.dumps([ended, output.read()]), flush=True)


def _carried_out(command: list[str]) -> int:
    """The exit status of a command that starts with Python, in this process."""
    _, kind, what, *rest = command
    sys.path[0] = str(ROOT)  # as with -m and -c, and not the folder of this file
    try:
        if kind == "-c":
            exec(what, {"__name__": "__main__"})
            return 0
        return int(pytest.main(rest))
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _ended(child: int) -> int | None:
    """The exit status of a child, negative for a signal; None if it takes too long."""
    began = time.monotonic()
    while time.monotonic() - began < WAIT:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def recorded(path: Path | None) -> dict[str, str]:
    """The verdicts of an earlier call, which `--resume` continues."""
    if path is None or not path.exists():
        return {}
    return dict(json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", default="", metavar="NAME", help="only mutants whose key has this word")
    parser.add_argument("--all", action="store_true", help="every mutant, not the fixed choice")
    parser.add_argument("--deep", action="store_true", help="ask all of the conformance suite, which takes long")
    parser.add_argument("--list", action="store_true", help="list the mutants, and run nothing")
    parser.add_argument("--jobs", type=int, default=1, help="number of parallel jobs")
    parser.add_argument("--resume", type=Path, metavar="FILE", help="append verdicts to FILE; skip those it has")
    parser.add_argument("--json", action="store_true", help="as JSON on standard output")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    every = [m for file in files() for m in (mutants(file) if options.all else chosen(file)) if options.only in m.key]
    if options.list:
        print("\n".join(mutant.key for mutant in every))
        return
    reasons: dict[str, str] = json.loads(EXPLAINED.read_text())
    for key in reasons.keys() - {mutant.key for file in files() for mutant in mutants(file)}:
        print(f"{EXPLAINED.name} explains what is no mutant any more: {key}", file=sys.stderr)
    tried = [mutant for mutant in every if mutant.key not in reasons]
    began, verdicts = time.monotonic(), recorded(options.resume)
    left = [mutant for mutant in tried if mutant.key not in verdicts]

    def work(job: int) -> None:
        with tempfile.TemporaryDirectory(prefix="mutants-") as folder, ExitStack() as stack:
            bench = Bench(Path(folder), options.deep)
            stack.callback(bench.server.kill)
            for mutant in left[job :: options.jobs]:
                verdicts[mutant.key] = bench.verdict(mutant)
                if options.resume:
                    with options.resume.open("a", encoding="utf-8") as file:
                        print(json.dumps([mutant.key, verdicts[mutant.key]]), file=file)
                print(f"{time.monotonic() - began:5.0f} s  {mutant.key}  {verdicts[mutant.key]}", file=sys.stderr)

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(work, range(options.jobs)))
    survivors = [mutant for mutant in tried if verdicts[mutant.key] == "survived"]
    if options.json:
        explained = {mutant.key: reasons[mutant.key] for mutant in every if mutant.key in reasons}
        print(json.dumps({"mutants": len(every), "verdicts": verdicts, "explained": explained}, indent=1))
    else:
        for mutant in survivors:
            print(f"survived: {mutant.key}\n{mutant.diff()}\n")
        print(f"{len(every)} mutants: {len(tried) - len(survivors)} noticed, {len(every) - len(tried)} explained, "
              f"{len(survivors)} survived")  # fmt: skip
    raise SystemExit(bool(survivors))


if __name__ == "__main__":
    main()
