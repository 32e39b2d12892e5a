"""Two drivers of one plan on an S3 server, one of which is killed.

`PYTHONPATH=tests python tests/damage/s3.py --kills 8` prints the counts of docs/reliability.md. The server is moto's,
on this machine, over HTTP; drivers reach it as they would reach S3, by s3fs. Both packages are installed into a
temporary folder, unless `--packages` names one that has them: s3fs pins libraries that the tests' own environment has
in newer versions.

Each time, two drivers with caches of their own share an empty bucket; at a random moment, one of them dies with all of
its processes. The other must end well, and the bucket must then hold what one machine alone would have made, bit for
bit, and no lock. A driver that begins again afterwards must find nothing to do. With `--elsewhere`, the one that dies
has another host name, so that its locks are only given up after two minutes of silence.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any
from urllib.request import urlopen

from processes import environment

PLAN = """
[[experiment]]
benchmark = "patterns"
algorithms = ["finetune", "er"]
seeds = 3
scale = "tiny"

[experiment.set]
"benchmark.stages" = 3
"train.epochs" = 40
"""
SOURCE = Path(__file__).parents[2] / "src"
SAME = "the same"
WAIT = 400
ELSEWHERE = ("unshare", "--uts", "sh", "-c", 'hostname elsewhere && exec "$@"', "sh")


def packages(folder: Path) -> Path:
    """A folder with the server and the client."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--target", folder]
    subprocess.run([*pip, "moto[server]", "s3fs"], check=True, capture_output=True)
    return folder


class Bucket:
    """A server, and the environment of whoever talks to it."""

    def __init__(self, installed: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self.environment = environment(
            PATH=os.environ["PATH"],
            PYTHONPATH=os.pathsep.join([str(SOURCE), str(installed)]),
            AWS_ENDPOINT_URL=self.url,
            AWS_ACCESS_KEY_ID="nobody",
            AWS_SECRET_ACCESS_KEY="nothing",
            AWS_DEFAULT_REGION="us-east-1",
        )
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        self.server = subprocess.Popen(
            command, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for _ in range(600):
            with contextlib.suppress(OSError):
                urlopen(self.url, timeout=5).close()
                return
            time.sleep(0.1)
        raise RuntimeError("the server does not answer")

    def ask(self, code: str) -> Any:
        """What some lines of Python print as JSON, with `files`, the bucket as a client of its own sees it."""
        lines = f"import json, s3fs\nfiles = s3fs.S3FileSystem()\n{code}"
        done = subprocess.run(
            [sys.executable, "-c", lines], env=self.environment, capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout or "null")

    def objects(self) -> dict[str, str]:
        """All objects by name, with hashes of their contents."""
        code = "import hashlib\nfound = {p: hashlib.sha256(files.cat_file(p)).hexdigest() for p in files.find('runs')}"
        return dict(self.ask(f"{code}\nprint(json.dumps(found))"))

    def records(self) -> dict[str, Any]:
        """The scores and summaries by run."""
        code = "found = {p.split('/')[-2]: json.loads(files.cat_file(p)) for p in files.glob('runs/**/record.json')}"
        found = self.ask(f"{code}\nprint(json.dumps(found))")
        return {run: [record["scores"], record["summary"]] for run, record in found.items()}

    @contextlib.contextmanager
    def empty(self) -> Iterator[None]:
        """An empty bucket for a while."""
        self.ask("files.mkdir('runs')")
        yield
        self.ask("files.rm('runs', recursive=True)")


def begin(folder: Path, environment: Mapping[str, str], out: str, before: tuple[str, ...] = ()) -> Any:
    """A driver, in a process group of its own."""
    folder.mkdir(exist_ok=True)
    (folder / "plan.toml").write_text(PLAN)
    return subprocess.Popen(
        [*before, sys.executable, "-m", "holdfast", "plan", "plan.toml", "--out", out, "--jobs", "1"],
        cwd=folder,
        env={**environment, "HOLDFAST_CACHE": str(folder / "cache")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def ended(driver: Any) -> str:
    """What a driver printed; it must end well."""
    try:
        printed, _ = driver.communicate(timeout=WAIT)
    except subprocess.TimeoutExpired:
        os.killpg(driver.pid, signal.SIGKILL)
        return f"it hangs: {driver.communicate()[0][-1000:]}"
    return "" if driver.returncode == 0 and "Traceback" not in printed else f"{driver.returncode}: {printed[-2000:]}"


class Trials:
    """What one machine makes alone, and what two make together."""

    def __init__(self, scratch: Path, bucket: Bucket) -> None:
        self.scratch, self.bucket = scratch, bucket
        began = time.monotonic()
        assert not (told := ended(begin(scratch / "alone", bucket.environment, "store"))), told
        self.seconds = time.monotonic() - began
        self.expected, self.weights = {}, {}
        for path in (scratch / "alone" / "store").glob("*/record.json"):
            record = json.loads(path.read_text())
            self.expected[record["id"]] = [record["scores"], record["summary"]]
            weights = path.with_name("model.safetensors").read_bytes()
            self.weights[record["id"]] = hashlib.sha256(weights).hexdigest()

    def kill_one(self, number: int, moment: float, before: tuple[str, ...] = ()) -> str:
        """Two drivers, one of which dies after some seconds: how it ended."""
        with self.bucket.empty():
            folders = [self.scratch / f"{number}-{name}" for name in ("dies", "lives")]
            dies = begin(folders[0], self.bucket.environment, "s3://runs/here", before)
            lives = begin(folders[1], self.bucket.environment, "s3://runs/here")
            time.sleep(moment)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(dies.pid, signal.SIGKILL)
            dies.communicate()
            if told := ended(lives):
                return f"the other: {told}"
            if told := self.judged():
                return told
            whole = self.bucket.objects()
            if told := ended(begin(folders[0], self.bucket.environment, "s3://runs/here")):
                return f"afterwards: {told}"
            return self.judged() or (SAME if self.bucket.objects() == whole else "IT WAS MADE TWICE")

    def judged(self) -> str:
        """What is wrong in the bucket."""
        objects = self.bucket.objects()
        if left := [name for name in objects if name.endswith("/lock") or "/checkpoints/" in name]:
            return f"LEFT BEHIND: {left}"
        weights = {name.split("/")[-2]: found for name, found in objects.items() if name.endswith("model.safetensors")}
        right = self.bucket.records() == self.expected and weights == self.weights
        return "" if right else "OTHER RECORDS OR WEIGHTS"


def main() -> None:
    """Print how each trial ended, as JSON lines."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=8)
    parser.add_argument("--elsewhere", type=int, default=0, help="further trials, between different host names")
    parser.add_argument("--packages", type=Path)
    given = parser.parse_args()
    random = Random(0)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        bucket = Bucket(given.packages or packages(scratch / "packages"))
        try:
            trials = Trials(scratch, bucket)
            for number in range(given.kills + given.elsewhere):
                moment = random.uniform(1, 2 * trials.seconds)
                before = ELSEWHERE if number >= given.kills else ()
                how = trials.kill_one(number, moment, before)
                row = {"trial": number, "killed after, s": round(moment, 1), "elsewhere": bool(before), "ended": how}
                print(json.dumps(row), flush=True)
        finally:
            bucket.server.kill()
            bucket.server.wait()


if __name__ == "__main__":
    main()
