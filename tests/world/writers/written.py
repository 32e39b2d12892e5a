"""What tests of writers share: the bytes of a folder, and JSON lines read without our readers."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from PIL import Image


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def look(path: Path) -> tuple[str | None, str]:
    """An image's format and mode, by its content."""
    with Image.open(path) as image:
        return image.format, image.mode


def lines(path: Path) -> list[dict[str, Any]]:
    text = path.read_bytes().decode()
    assert text.endswith("\n")
    assert "\r" not in text
    return [json.loads(line) for line in text.split("\n")[:-1]]
