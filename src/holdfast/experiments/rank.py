"""One of the processes that train runs together for a program: `python -m holdfast.experiments.rank ASKED TOLD`."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from holdfast.data.threads import own_process
from holdfast.engine.ranks import leave
from holdfast.errors import UserError
from holdfast.experiments.carried import unpack
from holdfast.experiments.carry import carry_on
from holdfast.experiments.config import Config
from holdfast.experiments.plan import graph
from holdfast.experiments.schedule import Outcome
from holdfast.experiments.setups import Setups
from holdfast.experiments.store import Store


def work(asked: Path, told: Path) -> None:
    """Execute the plan that a file describes, and write the outcomes of its runs to another file."""
    own_process()
    ids, requests, needs, store, options, folder = unpack(asked.read_bytes())
    os.chdir(folder)
    setups = Setups()
    plan = graph(requests, needs, setups)
    if list(plan.configs) != ids:
        raise UserError("the code of these runs changed after they were planned: run again")

    def tell(outcomes: Iterable[Outcome]) -> None:
        with suppress(FileExistsError), told.open("xb") as file:  # the first to fail reports why
            pickle.dump(list(outcomes), file)

    def ended(config: Config, outcome: Outcome, again: bool) -> None:
        if outcome.status not in ("done", "stopped"):
            tell([outcome])
            os._exit(1)  # the other ranks are still training

    result = carry_on(plan, Store(store), options, setups, ended)
    tell(result.outcomes.values())
    leave()


if __name__ == "__main__":
    work(Path(sys.argv[1]), Path(sys.argv[2]))
