"""Give commands in this process under an audit hook, and print as JSON what each did: see test_corpus.py."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import signal
import sys
import time
from pathlib import Path
from unittest import mock

SECONDS = 120
"""After which a command hangs, however busy the machine is."""
STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "socket.connect")
LISTS = ("os.listdir", "os.scandir")
seen: list[str] = []
OUTSIDE = os.path.realpath(sys.argv[2]) if len(sys.argv) > 2 else os.devnull


def watch(event: str, given: tuple) -> None:
    """Note whatever no hostile file may bring about."""
    if event in STARTS:
        seen.append(f"{event} {given!r:.200}")
    elif event == "open" or event in LISTS:
        path, denied = given[0], event == "open" and given[2] and given[2] & os.O_NOFOLLOW
        if denied and os.path.islink(path):  # noqa: PTH114
            return
        if isinstance(path, str | bytes) and os.path.realpath(os.fsdecode(path)).startswith(OUTSIDE):
            seen.append(f"{event} {os.fsdecode(path)}")


class HangError(BaseException):
    """A command took too long."""


def hang(number, frame):
    raise HangError


def link(words, folder):
    """Make a run, take away its record, and put a link in place of one of its files."""
    _, name, target = words
    store = folder / "runs"
    give(["run", "patterns", "--scale", "tiny", "--set", "train.epochs=1", "--out", "runs"])
    (run,) = store.iterdir()
    (run / "record.json").unlink()
    path = run / name
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def weights():
    """What a model asks of a folder of weights."""
    from holdfast.errors import UserError
    from holdfast.models import weights

    told = []
    for read in (lambda w: weights.read_config(w, "vilt"), weights.digest, weights.read_state, weights.vocabulary_file):
        try:
            told.append(f"{type(read(Path('w')))}")
        except UserError as error:
            told.append(str(error))
        except HangError:
            return "hang", ""
        except BaseException as error:
            return f"{type(error).__name__}: {error}", ""
    return 2, "\n".join(told)


def give(words):
    """A command: its exit status and what it printed."""
    from holdfast.cli import main

    if words[0] == "HOSTILE-WEIGHTS":
        return weights()
    out, errors, status = io.StringIO(), io.StringIO(), 0
    patched = mock.patch.object(sys, "argv", ["holdfast", *words]), mock.patch.dict("os.environ", COLUMNS="100")
    with patched[0], patched[1], contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            main()
        except SystemExit as end:
            status = end.code or 0
        except HangError:
            status = "hang"
        except BaseException as error:
            status = f"{type(error).__name__}: {error}"
    return status, out.getvalue() + errors.getvalue()


def most_memory():
    """The most memory that this process has had, in bytes."""
    return 1024 * int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1])


def main_loop(cases):
    """All commands of all cases."""
    signal.signal(signal.SIGALRM, hang)
    for name, commands in cases.items():
        folder = Path(name)
        os.chdir(folder)
        for words in commands:
            if words[0] == "HOSTILE-LINK":
                link(words, folder)
                continue
            seen.clear()
            began = time.process_time()
            signal.alarm(SECONDS)
            status, printed = give(words)
            signal.alarm(0)
            found = {
                "case": folder.name,
                "words": words,
                "status": status,
                "printed": printed,
                "seen": list(seen),
                "seconds": time.process_time() - began,
                "memory": most_memory(),
            }
            sys.__stdout__.write(json.dumps(found) + "\n")
            sys.__stdout__.flush()


if __name__ == "__main__":
    import platform

    import torch
    import transformers  # noqa: F401  what is imported later would be seen as opened

    import holdfast.cli.run
    import holdfast.experiments.carry  # noqa: F401

    assert platform.uname().processor is not None  # asked of a program, once
    torch.set_num_threads(1)
    sys.addaudithook(watch)
    main_loop(json.loads(Path(sys.argv[1]).read_text()))
