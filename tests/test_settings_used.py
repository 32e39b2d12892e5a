"""Every setting is there for something: a test, a recipe, a preset or a page of the documentation uses it.

`recomputed/test_settings_count.py` changes every setting there is, and says only that it counts. This asks that
somebody sets it who knows what it is for: by its name (`ewc.decay`, `ewc__decay`), as an option (`--skip-bad`), or as
an argument of its class.
"""

import ast
import inspect
import re
from functools import cache
from pathlib import Path

import pytest

from holdfast import registry
from holdfast.experiments.request import Request
from holdfast.settings import fields

ROOT = Path(__file__).parents[1]
MECHANICAL = {"recomputed/test_settings_count.py", "recomputed/other.py", Path(__file__).name}
KINDS = {"": registry.ALGORITHMS, "model": registry.MODELS, "benchmark": registry.BENCHMARKS}
"""Algorithms' settings have their own names before them, and others that of their kind."""
SETTINGS = [
    (kind, name, field) for kind, table in KINDS.items() for name in table for field in fields(table[name].load())
]


@cache
def sources() -> dict[Path, str]:
    """What may use a setting, as text."""
    tests = [
        path for path in (ROOT / "tests").rglob("*.py") if path.relative_to(ROOT / "tests").as_posix() not in MECHANICAL
    ]
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    benchmarks = ROOT / "src/holdfast/benchmarks"
    recipes = [*benchmarks.rglob("plan.toml"), *benchmarks.rglob("paper.py"), *benchmarks.rglob("speed.py")]
    return {path: path.read_text(encoding="utf-8") for path in (*tests, *pages, *recipes)}


@cache
def arguments() -> set[tuple[str, str]]:
    """The class and the argument of all calls with named arguments."""
    found = set()
    for path, text in sources().items():
        for node in ast.walk(ast.parse(text)) if path.suffix == ".py" else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                called = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
                found |= {(called, each.arg) for each in node.keywords if each.arg}
    return found


def used(kind: str, name: str, field: str) -> bool:
    entry = KINDS[kind][name]
    having = [each for each in inspect.getmro(entry.load()) if field in getattr(each, "__dataclass_fields__", ())]
    alike = [other.load() for other in KINDS[kind].values()]  # what a Vilt does with a setting, a TinyVilt does, too
    called = {each.__name__ for each in (*having, *alike) if having and issubclass(each, having[-1])}
    called |= {"Request"} if kind == "benchmark" and field in fields(Request) else set()
    keyword = re.compile(rf"[\"']{field}[\"']: ")  # of a dictionary, in a file that makes one of these
    called.add(name.replace("-", "_"))  # a helper of its tests
    making = re.compile(rf"\b({'|'.join(called)})\(")
    if any((each, field) in arguments() for each in called):
        return True
    if any(keyword.search(text) and making.search(text) for text in sources().values()):
        return True
    if kind == "benchmark" and any(f"--{field.replace('_', '-')} " in text for text in sources().values()):
        return True
    names = [kind] if kind else [name, *entry.aliases]
    word = re.compile(rf"\b({'|'.join(map(re.escape, names))})(\.|__){field}\b")
    # "model.width" is said of many models: of this one, where its family is named beside it.
    family = re.compile(re.escape(re.split("[-:]", name)[0]) if kind else "")
    return any(word.search(text) and family.search(text) for text in sources().values())


@pytest.mark.parametrize("kind", KINDS)
def test_every_setting_is_used_by_a_test_a_recipe_or_a_page(kind):
    unused = [f"{name}.{field}" for own, name, field in SETTINGS if own == kind and not used(kind, name, field)]
    assert unused == [], "write a test of what it does, or remove it"


def test_what_nobody_uses_is_found():
    assert used("", "replay", "capacity")
    assert not used("", "replay", "of_no_use")
