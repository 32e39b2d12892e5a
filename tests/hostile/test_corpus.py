"""Commands on hostile files: none reads or writes outside, starts a program, hangs, or ends in a traceback."""

import csv
import json
import os
import re
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest

from hostile.corpus import CANARY, CASES, fill_outside

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(900)]
MEMORY = 1_500_000_000
"""With torch, a command takes about 400 MB."""


def states(folder: Path) -> dict[str, tuple[bytes, float]]:
    """The content of each file, and when it was last read."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    times = {path: path.stat().st_atime for path in files}
    return {path.relative_to(folder).as_posix(): (path.read_bytes(), times[path]) for path in files}


@pytest.fixture(scope="module")
def tried(tmp_path_factory):
    """What each command did, by the name of its case."""
    return try_all(CASES, tmp_path_factory.mktemp("hostile"))


def try_all(made, root):
    """A folder with all cases, and what their commands did."""
    outside, cases = root / "outside", {}
    fill_outside(outside)
    for name, make in made.items():
        folder = root / name
        folder.mkdir()
        cases[str(folder)] = make(folder, outside)
    before = states(outside)
    for path in outside.rglob("*"):
        os.utime(path, (1, time.time()))  # a file that was read after it was changed says when, on most disks
    (root / "cases.json").write_text(json.dumps(cases))
    environment = {name: value for name, value in os.environ.items() if name != "HOLDFAST_LINKS"}
    environment |= {"HOLDFAST_CACHE": str(root / "cache"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, Path(__file__).with_name("watched.py"), root / "cases.json", outside]
    yes = "y\n" * 1000  # what a trusting user answers, should a library ask whether to execute code
    done = subprocess.run(command, env=environment, input=yes, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, list] = {name: [] for name in made}
    for line in done.stdout.splitlines():
        one = json.loads(line)
        found[one["case"]].append(one)
    read = {name for name, (_, at) in states(outside).items() if at != 1}
    assert read == set(), "nothing below Python read it either"
    assert {name: content for name, (content, _) in states(outside).items()} == {
        name: content for name, (content, _) in before.items()
    }
    return root, found


def test_there_are_at_least_sixty_cases():
    assert len(CASES) >= 60


@pytest.mark.parametrize("name", CASES)
def test_a_hostile_file_is_harmless(tried, name):
    check_harmless(*tried, name)


def check_harmless(root, found, name):
    assert found[name]
    for one in found[name]:
        words = " ".join(one["words"])
        assert one["seen"] == [], words
        assert one["status"] in (0, 1, 2), f"{words}: {one['status']}"
        assert "Traceback" not in one["printed"], words
        assert one["seconds"] < 20, words  # of CPU
        assert one["memory"] < MEMORY, words
        assert CANARY not in one["printed"], words
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", one["printed"]), words
    assert not list((root / name).rglob("owned"))
    for page in (root / name).rglob("*.html"):
        check_page(page.read_text(encoding="utf-8"))


class Elements(HTMLParser):
    """The elements of a page with their attributes."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def check_page(text):
    assert CANARY not in text
    found = Elements(text).found
    policy = next(a["content"] for tag, a in found if a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy
    scripts = [attributes for tag, attributes in found if tag == "script"]
    assert scripts in ([{}], [{"src": "../report.js"}])
    for tag, attributes in found:
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
        for name in ("src", "href"):
            target = attributes.get(name, "#")
            assert re.match(r"#|data:|\.\./|runs/|[\w.-]+\.html$", target), (tag, attributes)


def test_what_is_said_names_the_trap(tried):
    _, found = tried
    told = {name: "\n".join(one["printed"] for one in each) for name, each in found.items()}
    for name in ("link_for_picture", "link_for_records", "class_folder_that_is_a_link", "split_that_is_a_link"):
        assert "HOLDFAST_LINKS=" in told[name], name
    for kind in ("pipe", "socket"):
        assert "it is a pipe, a socket or a device, not a regular file" in told[f"{kind}_for_picture"]
    assert "decompression bomb" in told["picture_bits_of_a_gigapixel"]
    assert "cannot be decoded (it is not an image)" in told["picture_eps"]
    for name in ("h5_external_storage", "h5_virtual", "h5_external_link", "h5_soft_link"):
        assert "it has no array 'bbox_features' of its own" in told[name]
    assert r"\x1b[2J" in told["store_texts_for_the_screen"]
    assert "again: holdfast run patterns ';' touch 'owned;' '$(touch' 'owned)' " in told["store_texts_as_command"]
    for word in next(csv.reader(told["store_texts_as_formula"].splitlines())):
        assert not word.startswith(("=", "+", "-", "@"))
