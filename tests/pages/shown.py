"""Every block of code and every command that a page shows."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted((ROOT / "docs").rglob("*.md")),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "examples/plugin/README.md")),
]
FENCE = re.compile(r"^```(\w*)(?: title=\"([^\"]*)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(holdfast [^`]+)`")


@dataclass(frozen=True)
class Block:
    """A block of code: its language, and its title, which marks what it needs."""

    page: str
    language: str
    title: str
    text: str

    def commands(self) -> list[list[str]]:
        """The words of its `holdfast` commands, with the first value of each shell variable."""
        if self.language != "sh":
            return []
        text = re.sub(r"\\\n\s*", " ", self.text)
        values = {name: value.strip('"') for name, value in re.findall(r'for (\w+) in ("[^"]*"|[\w.-]+)', text)}
        found = []
        for line in text.splitlines():
            for name in sorted(values, key=len, reverse=True):
                line = re.sub(rf"\$\{{{name}/([^/}}]*)/\}}", lambda hit, n=name: values[n].replace(hit[1], ""), line)
                line = line.replace(f"${name}", values[name])
            if given := re.fullmatch(r'(\w+)="(.*)"', line):
                values[given[1]] = given[2]
            words = shlex.split(line, comments=True)
            if ">" in words:
                words = words[: words.index(">")]
            if words[:1] == ["holdfast"]:
                found.append(words[1:])
        return found


def blocks() -> list[Block]:
    """All blocks of all pages."""
    return [
        Block(str(path.relative_to(ROOT)), *found)
        for path in PAGES
        for found in FENCE.findall(path.read_text(encoding="utf-8"))
    ]


def inline() -> list[tuple[str, list[str]]]:
    """The commands in the text of all pages, with their page; what is abbreviated by dots is none."""
    return [
        (str(path.relative_to(ROOT)), shlex.split(command)[1:])
        for path in PAGES
        for command in INLINE.findall(FENCE.sub("", path.read_text(encoding="utf-8")).replace("\n", " "))
        if "..." not in command
    ]
