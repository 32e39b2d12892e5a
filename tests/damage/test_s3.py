"""Two drivers on an S3 server, one of which is killed: see s3.py."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from damage.s3 import SAME
from processes import environment


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_other_driver_makes_the_same_runs():
    """Needs a package index that pip can reach."""
    command = [sys.executable, Path(__file__).with_name("s3.py"), "--kills", "3", "--elsewhere", "1"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["ended"] for each in found] == [SAME] * 4
