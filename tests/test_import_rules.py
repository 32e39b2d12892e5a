"""Who may import whom, as docs/design.md says: by statement or by name in a string.

Imports for type checking alone do not count.
"""

import ast
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

import holdfast
from holdfast.registry import families

ROOT = Path(holdfast.__file__).parent
FREE = {"checksums", "errors", "files", "processes", "seldom", "types", "version"}
ALLOWED = {
    "types": set(),
    "errors": set(),
    "version": set(),
    "files": {"errors"},
    "checksums": {"files"},
    "processes": {"errors"},
    "seldom": set(),
    "settings": {"types", "errors"},
    "usercode": {"errors"},
    "foreign": {"usercode"},
    "builtin": set(),
    "registry": {"builtin", "errors", "usercode"},
    "metrics": set(),
    "papers": {"metrics"},
    "progress": set(),
    "data": set(),
    "datasets": {"data"},
    "world": set(),
    "tasks": {"metrics"},
    "benchmarks": {"data", "datasets", "tasks", "metrics", "papers", "registry", "world", "progress"},
    "benchmarks/report": {"benchmarks", "metrics", "papers", "experiments", "reports"},
    "streams": {"benchmarks", "data", "datasets", "settings"},
    "models": {"settings"},
    "memory": set(),
    "algorithms": {"data", "memory", "models", "registry", "tasks"},
    "engine": {"algorithms", "data", "memory", "models", "metrics", "tasks"},
    "pretraining": {"registry", "data", "datasets", "engine", "models", "tasks", "world"},
    "experiments/drawn": {"reports"},  # a record draws itself when it is looked at
    "experiments": {
        "registry",
        "progress",
        "foreign",
        "settings",
        "usercode",
        "algorithms",
        "benchmarks",
        "data",
        "engine",
        "memory",
        "metrics",
        "models",
        "tasks",
        "world",
    },
    "claims": {"metrics", "registry", "benchmarks", "experiments"},
    "reports": {"metrics", "papers", "registry", "benchmarks", "experiments", "claims"},
    "bench": {
        "registry",
        "settings",
        "algorithms",
        "benchmarks",
        "data",
        "datasets",
        "engine",
        "experiments",
        "models",
        "tasks",
        "world",
    },
    "cli": {
        "algorithms",
        "claims",
        "registry",
        "settings",
        "metrics",
        "papers",
        "benchmarks",
        "data",
        "datasets",
        "engine",
        "experiments",
        "models",
        "pretraining",
        "progress",
        "reports",
        "bench",
        "world",
    },
    "__init__": set(),
    "api": {"experiments", "reports", "usercode"},
    "__main__": {"cli"},
}
TORCH_FREE = [
    "holdfast",
    "holdfast.algorithms",
    "holdfast.models",
    "holdfast.api",
    "holdfast.types",
    "holdfast.settings",
    "holdfast.registry",
    "holdfast.metrics",
]
TORCH_FREE += ["holdfast.papers.audit", "holdfast.experiments.store", "holdfast.reports.tables", "holdfast.cli"]
TORCH_FREE += ["holdfast.claims.published", "holdfast.claims.shown"]
TORCH_FREE += ["holdfast.reports.report", "holdfast.reports.compare", "holdfast.cli.screen"]


ALLOWED |= {
    f"benchmarks/{name}": ALLOWED["cli"] | ALLOWED["bench"] | {"cli", "bench"}
    for name in ("commands", "building", "imports", "speed")
}
"""Modules of a benchmark's folder that the rest of the library asks for: see `registry.part`."""
ALLOWED["benchmarks/features"] = ALLOWED["benchmarks"] | {"benchmarks", "models"}
"""A benchmark computes features with a frozen network."""
NAMING = {
    "builtin": "it lists everything that is built in, and imports nothing",
    "registry": "it finds everything that has a name, and imports a thing only when it is asked for",
    "foreign": "it knows user code by what it takes from these rooms, and imports none of them",
    "__init__": "`holdfast.metrics` and the like are imported when they are first used",
}
"""Rooms whose strings may name any module, and why."""
MODULE = re.compile(r"(holdfast(?:\.\w+)+)(?::\w+)?")
"""A module's name as a string, or a thing in it."""


def own_room(path: Path) -> str:
    """The room that a file belongs to, as the table names it."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    outward = f"{parts[0]}/{parts[-1]}"
    return outward if outward in ALLOWED else parts[0]


def room(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def imports(tree: ast.AST, strings: bool = True) -> set[str]:
    """The modules that a file imports when it runs, or may import by a name that it has as a string.

    What stands under `if TYPE_CHECKING:` and in docstrings does not count. Of an f-string, what stands before its
    first field counts.
    """
    found: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if strings and isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
            beginning, dot, _ = node.values[0].value.rpartition(".")
            if dot and (beginning == "holdfast" or MODULE.fullmatch(beginning)):
                found.add(f"{beginning}.*")
        if strings and isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= {named[1] for named in [MODULE.fullmatch(node.value)] if named}
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("holdfast"):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("holdfast")}
        found |= imports(node, strings)
    return found


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_only_what_the_design_allows(path):
    own = own_room(path)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    used = {room(module) for module in imports(tree, strings=own not in NAMING)}
    assert used - FREE - {own} <= ALLOWED[own]


def test_the_rules_see_an_import_and_pass_over_one_for_type_checking():
    source = "from holdfast.engine import loop\nif TYPE_CHECKING:\n    from holdfast.cli import main\n"
    assert {room(module) for module in imports(ast.parse(source))} == {"engine"}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('importlib.import_module("holdfast.engine.loop")', {"engine"}),
        ('Entry("holdfast.models.san:San", "a model")', {"models"}),
        ('context.set_forkserver_preload(["holdfast.cli"])', {"cli"}),
        ('import_module(f"holdfast.world.writers.{name}")', {"world"}),
        ('import_module(f"holdfast.{name}")', {"*"}),
        ('raise UserError("run python -m holdfast.cli again")', set()),
        ('def some():\n    """holdfast.cli"""', set()),
    ],
)
def test_the_rules_see_an_import_by_name(source, expected):
    assert {room(module) for module in imports(ast.parse(source))} == expected


def test_each_room_that_may_name_any_module_needs_it():
    for own in NAMING:
        tree = ast.parse((ROOT / f"{own}.py").read_text(encoding="utf-8"))
        assert {room(module) for module in imports(tree)} - FREE - {own} - ALLOWED[own], f"take {own} out of NAMING"


def test_engine_knows_no_concrete_algorithm():
    for path in (ROOT / "engine").glob("*.py"):
        used = {m for m in imports(ast.parse(path.read_text(encoding="utf-8"))) if room(m) == "algorithms"}
        assert all(module.startswith("holdfast.algorithms.base") for module in used), path


def test_no_file_is_too_long_and_none_is_a_drawer():
    for path in ROOT.rglob("*.py"):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 500, path
        assert path.name not in {"utils.py", "helpers.py", "misc.py", "common.py"}


def test_no_class_name_is_defined_twice():
    """A leading underscore makes no other name of it."""
    found = defaultdict(list)
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found[node.name.lstrip("_")].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert {name: places for name, places in found.items() if len(places) > 1} == {}


SPEED = re.compile(
    r"torch\.compile|_dynamo\.|cuda graph|recordable|recorded pass|be recorded|recording|\bcompil(e|es|er|ing)\b", re.I
)
"""What the machinery behind `engine/stepper.py` is called."""
DECLARED = re.compile(
    r"^ +(recordable|compiles)(: ClassVar\[bool\])? = (True|False)$|\"--compile\"|\bre\.compile\b|def recordable"
)
"""A declaration of one line, or the option of the command line."""


def test_speed_has_one_door():
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        lines = path.read_text(encoding="utf-8").splitlines()
        if any(SPEED.search(line) and not DECLARED.search(line) for line in lines):
            found.append(path.relative_to(ROOT).as_posix())
    assert len(found) <= 6, found
    assert "engine/stepper.py" in found


ORDINARY = {"patterns", "folder", "table", "dataset", "text", "captions", "instructions"}
"""Benchmarks whose names are words of the language, too."""


@pytest.mark.parametrize("name", [name for name in families() if name not in ORDINARY])
def test_a_benchmark_is_named_in_its_own_folder_alone(name):
    """And in the table of what is built in, in the published tables, and in the data of claims."""
    word = re.compile(rf"\b{name}\b")
    naming = [path.relative_to(ROOT) for path in ROOT.rglob("*.py") if word.search(path.read_text(encoding="utf-8"))]
    allowed = ("builtin.py", "papers", f"benchmarks/{name}")
    assert [path for path in naming if not path.as_posix().startswith(allowed)] == []


def test_words_reports_and_help_need_no_torch():
    code = f"import {', '.join(TORCH_FREE)}, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
