"""`holdfast list KIND NAME`: every setting explains itself, in the width of the terminal."""

import importlib
import json
import re
from collections import Counter
from unittest import mock

import pytest

from cli.inside import inside
from holdfast import registry
from holdfast.settings import convert, fields, settings_of, written
from holdfast.types import Training

KINDS = {"algorithms": registry.ALGORITHMS, "models": registry.MODELS, "benchmarks": registry.BENCHMARKS}
THINGS = [(kind, name) for kind, table in KINDS.items() for name in table]


def explained(*words, tmp_path, wide=80):
    with mock.patch("holdfast.cli.explain.width", return_value=wide):
        done = inside("list", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(("kind", "name"), [*THINGS, ("", "training")])
def test_every_setting_has_a_meaning(kind, name):
    for setting in settings_of(KINDS[kind][name].load() if kind else Training):
        assert re.fullmatch(r"[A-Za-z].{12,}\.", setting.meaning), f"write below {setting.name} what it is for"
        assert not re.search(r"\bNone\b|so many|the world's", setting.meaning), setting


@pytest.mark.parametrize(("kind", "name"), THINGS)
def test_what_is_said_of_a_setting_is_what_is_checked(kind, name):
    """The default is read back as itself, each choice is taken, and each limit is one."""
    kind = KINDS[kind][name].load()
    for setting in settings_of(kind):
        hint = fields(kind)[setting.name]
        assert setting.default == kind.__dataclass_fields__[setting.name].default
        assert setting.default == "" or convert(written(setting.default), hint, "x") == setting.default
        for choice in setting.choices:
            assert convert(choice, hint, "x") == choice
        for limit, beyond in ((setting.low, -1), (setting.high, 1)):
            if limit is not None and not isinstance(setting.default, tuple):
                convert(f"{limit:g}", hint, "x")
                with pytest.raises(ValueError, match="it must be"):
                    convert(f"{limit + beyond:g}", hint, "x")


@pytest.mark.parametrize("wide", [60, 80])
@pytest.mark.parametrize(("kind", "name"), [*THINGS, *(("datasets", name) for name in registry.DATASETS)])
def test_a_page_fits_the_terminal_and_breaks_no_word(kind, name, wide, tmp_path):
    page = explained(kind, name, tmp_path=tmp_path, wide=wide)
    assert max(map(len, page.splitlines())) <= wide
    found = Counter(re.findall(r"\S+", re.sub(r"[|;]", " ", page)))
    about = json.loads(explained(kind, name, "--json", tmp_path=tmp_path))["about"]
    assert not Counter(re.findall(r"\S+", re.sub(r"\|[-|]+\||[|;]", " ", about))) - found


def test_a_setting_is_shown_with_type_default_choices_range_and_meaning(tmp_path):
    page = explained("algorithms", "ewc", tmp_path=tmp_path)
    assert "--set ewc.NAME=VALUE" in page
    assert re.search(r"strength +number, at least 0 \(default 100\)\n +The weight of the penalty \(lambda\)\.\n", page)
    assert re.search(r"fisher +exact, sampled, empirical, batched \(default sampled\)\n +exact: over all", page)
    assert re.search(r"share +number from 0 to 1, or none \(default none\)\n", page)
    told = json.loads(explained("models", "vilt-tiny", "--json", tmp_path=tmp_path))["settings"]
    assert told["width"] | {"meaning": ""} == {
        "name": "width", "kind": "whole number", "default": 64, "required": False, "choices": [], "low": 1,
        "high": None, "optional": False, "meaning": "",
    }  # fmt: skip
    assert told["width"]["meaning"] == "The width of the hidden states."  # from the class that it extends


def test_a_row_of_a_paper_says_what_differs(tmp_path):
    page = explained("algorithms", "mir-max", tmp_path=tmp_path)
    assert page.startswith("mir-max is mir with by=max.\n")
    assert "mean, max (default mean; mir-max has max)" in page
    assert "frozen-bottom-9 is frozen-bottom with k=9." in explained("algorithms", "frozen-bottom-9", tmp_path=tmp_path)
    assert json.loads(explained("algorithms", "er-mir-max", "--json", tmp_path=tmp_path))["row"] == {"mir.by": "max"}
    assert "has max" not in explained("algorithms", "er-mir", tmp_path=tmp_path)


def test_the_settings_of_training(tmp_path):
    page = explained("training", tmp_path=tmp_path)
    assert "--set train.NAME=VALUE" in page
    assert "2 comma-separated values, each a number from 0 to 1 (default" in page
    assert json.loads(explained("training", "--json", tmp_path=tmp_path))["settings"]["warmup"]["high"] == 1
    assert "`list training` takes no name" in inside("list", "training", "sgd", cwd=tmp_path).stderr


MINE = '''"""A file with two methods."""
from dataclasses import dataclass
from typing import Annotated, Literal
from holdfast.algorithms.base import Algorithm
from holdfast.types import Between

@dataclass
class Mine(Algorithm):
    """Weights that stay."""

    where: str
    """Which weights."""
    pull: Annotated[float, Between(0)] | None = 0.5
    """How hard they
    are pulled."""
    mode: Literal["soft", "hard"] = "soft"
'''


def test_what_is_not_built_in_explains_itself_too(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    page = explained("algorithms", "mine.py:Mine", tmp_path=tmp_path)
    assert page.startswith(
        "Mine, from mine.py\n\nWeights that stay.\n\nA file with two methods.\n\nSettings (--set Mine."
    )
    assert re.search(r"where +text \(no default: set it\)\n +Which weights\.\n", page)
    assert re.search(r"pull +number, at least 0, or none \(default 0.5\)\n +How hard they are pulled\.\n", page)
    assert re.search(r"mode +soft, hard \(default soft\)\n\n", page)
    told = json.loads(explained("algorithms", "mine.py:Mine", "--json", tmp_path=tmp_path))
    assert told["settings"]["where"]["required"]
    assert told["origin"] == "mine.py"
    assert "did you mean Mine?" in inside("list", "algorithms", "mine.py:Min", cwd=tmp_path).stderr


def test_a_list_says_what_packages_bring_and_where_it_comes_from(tmp_path, monkeypatch):
    for name, code in (("listed_pack", MINE), ("failing_pack", "import nowhere_to_be_found")):
        (tmp_path / f"{name}.py").write_text(code)
        info = tmp_path / f"{name}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
        (info / "entry_points.txt").write_text(f"[holdfast.algorithms]\nfrom-{name} = {name}:Mine\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    registry._announced.cache_clear()
    try:
        page = inside("list", "algorithms", cwd=tmp_path).stdout
        assert re.search(r"from-listed_pack +from package listed_pack 1\.2\b", page)
        told = json.loads(inside("list", "algorithms", "--json", cwd=tmp_path).stdout)["algorithms"]
        found = {each["name"]: each for each in told}
        assert found["from-listed_pack"]["settings"]["pull"] == 0.5
        assert "No module named 'nowhere_to_be_found'" in found["from-failing_pack"]["problem"]
        assert found["ewc"]["origin"] == "built-in"
    finally:
        registry._announced.cache_clear()
