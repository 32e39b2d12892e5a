"""A plain script, without the guard that processes usually ask for, prepares with workers and runs once."""

import subprocess
import sys

SCRIPT = """
import numpy as np, pathlib, tempfile
from holdfast.data.prepared import prepare
from holdfast.types import Example
print("begins")
rows = [Example(str(n), n % 3, (np.full((6, 6, 3), n, np.uint8),)) for n in range(100)]
found = prepare("colours", rows, pathlib.Path(tempfile.mkdtemp()) / "train", image_size=4, workers=2)
print(len(found.table), int(found.table.inputs["image"][99].max()))
"""


def test_a_script_without_a_guard_prepares_with_workers(tmp_path):
    script = tmp_path / "plain.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["begins", "100", "99"], "each line once: no worker ran the script"
