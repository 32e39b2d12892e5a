"""A plain script, without the guard that processes usually ask for, prepares with workers and runs once."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.thorough  # starts processes

SCRIPT = """
import numpy as np, pathlib, tempfile
from holdfast.data import decoding
from holdfast.data.prepared import prepare
from holdfast.types import Example
decoding.SPAWN = 0.0
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


DAEMON = """
import multiprocessing, numpy as np, pathlib, tempfile
from PIL import Image
from holdfast.data import decoding
from holdfast.data.prepared import prepare
from holdfast.types import Example
decoding.SPAWN = 0.0

def work(folder):
    decoding.SPAWN = 0.0
    rows = [Example(str(n), n % 3, (folder / f"{n}.png",)) for n in range(70)]
    table = prepare("colours", rows, folder / "decoded", image_size=4, workers=2).table
    files = prepare("colours", rows, folder / "files", image_size=4, decode=False, workers=2).table.inputs["image"]
    files.prefetch(np.arange(8))
    assert (files.rows(np.arange(70)) == table.inputs["image"].numpy()).all()

if __name__ == "__main__":
    folder = pathlib.Path(tempfile.mkdtemp())
    for n in range(70):
        Image.new("RGB", (6, 6), (n, 2 * n, 0)).save(folder / f"{n}.png")
    process = multiprocessing.get_context("spawn").Process(target=work, args=(folder,), daemon=True)
    process.start()
    process.join()
    print(process.exitcode)
"""


def test_a_process_that_is_a_worker_itself_decodes_alone(tmp_path):
    script = tmp_path / "daemon.py"
    script.write_text(DAEMON)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout.split() == ["0"], done.stderr


BUSY = """
import time
from holdfast.processes import working

try:
    with working(2, "died") as pool:
        futures = [pool.submit(time.sleep, 600) for _ in range(5)]
        print(*pool._processes, flush=True)
        raise KeyboardInterrupt
except KeyboardInterrupt:
    print("stopped")
"""


def test_whatever_stops_the_work_ends_the_workers(tmp_path):
    script = tmp_path / "busy.py"
    script.write_text(BUSY)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, timeout=120)
    *workers, last = done.stdout.split()
    assert (len(workers), last, done.returncode, done.stderr) == (2, "stopped", 0, "")
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)
