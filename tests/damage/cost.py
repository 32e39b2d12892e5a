"""What checksums cost: the share of a run's processor time that goes into computing and verifying them.

`PYTHONPATH=tests python tests/damage/cost.py` prints the figures of docs/reliability.md.
"""

from __future__ import annotations

import functools
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from cli.inside import inside
from holdfast import checksums

RUNS: Sequence[Sequence[str]] = (
    ("patterns", "-a", "er", "--scale", "small"),
    ("clvqa", "-a", "ewc", "--scale", "tiny"),
    ("climb", "-a", "er", "--scale", "tiny", "--no-needs"),
)


class Clock:
    """The processor time within some functions, where one calls another only once."""

    def __init__(self) -> None:
        self.seconds, self._inside = 0.0, False

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def timed(*given: Any, **named: Any) -> Any:
            if self._inside:
                return function(*given, **named)
            self._inside, began = True, time.process_time()
            try:
                return function(*given, **named)
            finally:
                self._inside, self.seconds = False, self.seconds + time.process_time() - began

        return timed


def main() -> None:
    """Each run twice: the first one also imports, writes data and prepares tables."""
    torch.set_num_threads(1)
    clock = Clock()
    for name in ("of_file", "of_value", "of_bytes"):
        setattr(checksums, name, clock.around(getattr(checksums, name)))
    for words in RUNS:
        for number in (1, 2):
            with tempfile.TemporaryDirectory() as folder:
                clock.seconds, began = 0.0, time.process_time()
                done = inside("run", *words, "-j", "1", "--out", "store", cwd=Path(folder))
                assert done.returncode == 0, done.stderr
                whole = time.process_time() - began
                row = {"run": " ".join(words), "time": number, "seconds": round(whole, 2)}
                print(json.dumps(row | {"checksums, %": round(100 * clock.seconds / whole, 2)}), flush=True)


if __name__ == "__main__":
    main()
