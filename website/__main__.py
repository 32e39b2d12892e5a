"""Build the website: `python -m website FOLDER` writes the pages, and MkDocs makes the site of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from website import pages


def build(out: Path) -> None:
    """Write the site to a folder. A broken link, an unknown anchor or a page that no menu lists is an error."""
    source = pages.ROOT / "build/pages"
    pages.write(source)
    words = ["mkdocs", "build", "--strict", "--config-file", "mkdocs.yml", "--site-dir", str(out.resolve())]
    quiet = {"NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"}
    subprocess.run([sys.executable, "-m", *words], cwd=pages.ROOT, env=os.environ | quiet, check=True)


if __name__ == "__main__":
    build(Path(sys.argv[1] if len(sys.argv) > 1 else "build/site"))
