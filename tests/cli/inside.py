"""A command in this process: what it prints and how it ends, without the seconds that a new process takes."""

import io
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from unittest import mock

from holdfast.cli import main


def inside(*words, cwd):
    out, errors, status = io.StringIO(), io.StringIO(), 0
    patched = (
        mock.patch.object(sys, "argv", ["holdfast", *map(str, words)]),
        mock.patch.dict("os.environ", COLUMNS="100"),
    )
    with chdir(cwd), patched[0], patched[1], redirect_stdout(out), redirect_stderr(errors):
        try:
            main()
        except SystemExit as end:
            status = end.code or 0
    return subprocess.CompletedProcess(list(words), status, out.getvalue(), errors.getvalue())
