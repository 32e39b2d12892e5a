"""The website is built whole: no broken link, nothing from the network, the same outline for each benchmark."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = ("patterns", "own-data", "climb", "viscoll", "clvqa", "cfst", "mtil", "text", "captions", "instructions")
OUTLINE = ["Question", "Data", "Protocol", "Measures", "Commands", "Results"]
LOADED = re.compile(
    r"<(?:script|img|iframe|source|video|audio|embed)\b[^>]*\bsrc=[\"']?(?:https?:)?//"
    r"|<link\b(?![^>]*\brel=[\"']?(?:canonical|next|prev))[^>]*\bhref=[\"']?(?:https?:)?//"
    r"|url\([\"']?(?:https?:)?//|@import\s+[\"'](?:https?:)?//"
)
"""What a browser would load from elsewhere, in pages and style sheets."""
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built strictly: MkDocs fails for a broken link, an unknown anchor, or a page that no menu has."""
    out = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "website", str(out)]
    done = subprocess.run(words, cwd=ROOT, env=os.environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def test_nothing_is_loaded_from_the_network(site):
    loaded = {
        str(path.relative_to(site)): LOADED.findall(path.read_text(encoding="utf-8"))
        for path in [*site.rglob("*.html"), *site.rglob("*.css")]
    }
    assert len(loaded) > 60
    assert not {path: found for path, found in loaded.items() if found}
    assert not [path for path in site.rglob("*.html") if 'class="mermaid"' in path.read_text("utf-8")], "needs a CDN"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ('<script src="https://a.b/c.js">', 1),
        ("<link rel=stylesheet href=//a.b/c.css>", 1),
        ("src: url(https://a.b/font.woff2)", 1),
        ('<link rel="canonical" href="https://a.b">', 0),
        ('<a href="https://a.b">text</a>', 0),
    ],
)
def test_what_counts_as_loaded(text, number):
    assert len(LOADED.findall(text)) == number


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: apt install chromium")
def test_a_browser_asks_for_nothing_and_fits_a_phone(site):
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 800})
        asked, said = [], []
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: said.append(message.text))
        for name in ("index.html", "climb.html", "step.html", "reference/commands.html", "tutorials/your_model.html"):
            page.goto(f"file://{site}/{name}")
            assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), name
        page.set_viewport_size({"width": 1280, "height": 800})
        page.fill("input.md-search__input", "forgetting")
        page.wait_for_selector(".md-search-result__item")  # from the file system, too
        assert asked
        assert not [url for url in asked if not url.startswith(("file:", "data:", "blob:"))]
        assert not said
        browser.close()


def test_formulas_and_drawings_are_part_of_the_page(site):
    climb = (site / "climb.html").read_text("utf-8")
    assert climb.count("<math") >= 3
    assert not re.search(r"\$`|\$\$|\\frac", re.sub(r"(?s)<(pre|code).*?</\1>", "", climb))
    assert "<svg" in (site / "step.html").read_text("utf-8").partition("<h1")[2]


def test_tutorials_are_executed_and_offered_as_notebooks(site):
    for name in ("your_algorithm", "your_model"):
        html = (site / f"tutorials/{name}.html").read_text("utf-8")
        assert html.count("Output") >= 3
        assert f'href="{name}.ipynb"' in html
        assert (site / f"tutorials/{name}.ipynb").is_file()


def test_the_reference_has_every_public_name_and_command(site):
    import holdfast
    from holdfast.cli import command_line

    python = (site / "reference/python.html").read_text("utf-8")
    rooms = {"algorithms", "memory", "metrics", "models", "papers", "streams", "tasks"}
    for name in set(holdfast.__all__) - rooms - {"__version__"}:
        assert f'id="holdfast.{name}"' in python
    assert "&lt;class" not in python, "types are told as their source writes them"
    for room in rooms:
        html = (site / f"reference/{room}-module.html").read_text("utf-8")
        assert all(f'id="holdfast.{room}.{name}"' in html for name in dir(getattr(holdfast, room)))
    commands = (site / "reference/commands.html").read_text("utf-8")
    assert all(f">holdfast {name}<" in commands for name in command_line().commands)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_has_the_same_outline(name):
    text = (ROOT / f"docs/{name}.md").read_text("utf-8")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == OUTLINE
    assert "$`" in text or "$$" in text, "measures have equations"


def test_the_version_is_the_same_everywhere():
    import holdfast

    assert f"version: {holdfast.__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    heads = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert heads[:2] == ["Unreleased", holdfast.__version__]


def test_examples_are_blocks_of_code():
    """Without a fence, Markdown shows `>>>` as a quotation in a quotation in a quotation."""
    for path in [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]:
        bare = re.sub(r"(?ms)^```.*?^```$", "", path.read_text("utf-8"))
        assert not re.search(r"^>>>", bare, re.MULTILINE), path
