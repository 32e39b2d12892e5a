"""The pages of the site, as MkDocs reads them: those of `docs`, those of the root, and those made from code."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from latex2mathml.converter import convert

from website import notebooks, reference

ROOT = Path(__file__).parents[1]
ELSEWHERE = {
    "CHANGELOG.md": "changelog.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
    "CONTRIBUTING.md": "contributing.md",
    "README.md": "index.md",
    "SECURITY.md": "security.md",
    "examples/plugin": "plugin.md",
    "docs/tutorials/your_algorithm.py": "tutorials/your_algorithm.md",
    "docs/tutorials/your_model.py": "tutorials/your_model.md",
}
"""Where a file outside `docs`, or a script in it, is found on the site."""
FENCE = re.compile(r"^(```|~~~).*?^\1[ ]*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<=\]\()(?!https?:|#|mailto:)([^)#\s]+)")
DISPLAY = re.compile(r"^\$\$\n(.*?)\n\$\$$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"\$`([^`]+)`\$")


def write(out: Path) -> None:
    """Write all pages to a folder, which is emptied first."""
    shutil.rmtree(out, ignore_errors=True)
    texts = reference.pages()
    for path in sorted((ROOT / "docs").rglob("*.md")):
        texts[str(path.relative_to(ROOT / "docs"))] = page(path.read_text(encoding="utf-8"), path.relative_to(ROOT))
    for name, place in ELSEWHERE.items():
        if name.endswith(".md") and place not in texts:
            texts[place] = page((ROOT / name).read_text(encoding="utf-8"), Path(name))
    for script in sorted((ROOT / "docs/tutorials").glob("*.py")):
        place = f"tutorials/{script.stem}"
        offer = f"\nThis page is a script, executed for this site: [download it as a notebook]({script.stem}.ipynb).\n"
        title, _, rest = page(notebooks.executed(script), script.relative_to(ROOT)).partition("\n")
        texts[f"{place}.md"] = f"{title}\n{offer}{rest}"
        texts[f"{place}.ipynb"] = notebooks.notebook(script.read_text(encoding="utf-8"))
    texts["plugin.md"] = plugin()
    for name, text in texts.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text(text, encoding="utf-8")
    shutil.copytree(ROOT / "docs/pictures", out / "pictures")
    for name in ("extra.css", "iframe-worker.js"):
        shutil.copy(ROOT / "website" / name, out / name)


def page(text: str, path: Path) -> str:
    """A page as MkDocs reads it: links lead to pages of the site, and formulas are MathML.

    >>> page("[a](../SECURITY.md#x), [b](plans.md) and $`x`$\\n```\\n[a](b)\\n```", Path("docs/a.md"))[:35]
    '[a](security.md#x), [b](plans.md) a'
    """
    parts, end = [], 0
    for fence in FENCE.finditer(text):
        parts += [_prose(text[end : fence.start()], path), fence[0].replace("\n\n```", "\n```")]
        end = fence.end()
    return "".join([*parts, _prose(text[end:], path)])


def _prose(text: str, path: Path) -> str:
    text = DISPLAY.sub(lambda found: f'<div class="equation">{_math(found[1], "block")}</div>', text)
    text = INLINE.sub(lambda found: _math(found[1], "inline"), text)
    return LINK.sub(lambda found: _link(found[1], path), text)


def _math(latex: str, display: str) -> str:
    return " ".join(convert(latex.replace("\n", " "), display=display).split())


def _link(link: str, path: Path) -> str:
    here = ELSEWHERE.get(str(path), str(path.relative_to("docs")) if path.is_relative_to("docs") else str(path))
    there = os.path.normpath(path.parent / link)
    place = ELSEWHERE.get(there, there.removeprefix("docs/") if there.startswith("docs/") else there)
    return os.path.relpath(place, Path(here).parent)


def plugin() -> str:
    """The example package, file by file."""
    folder = ROOT / "examples/plugin"
    text = [page((folder / "README.md").read_text(encoding="utf-8"), Path("examples/plugin/README.md"))]
    for path in [folder / "pyproject.toml", *sorted(folder.glob("src/*/*.py"))]:
        if source := path.read_text(encoding="utf-8").strip():
            text += [f"## `{path.name}`", f"```{path.suffix[1:].replace('py', 'python')}\n{source}\n```"]
    return "\n\n".join(text).replace("```pythonproject", "```python")
