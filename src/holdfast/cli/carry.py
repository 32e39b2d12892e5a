"""How `run`, `tune` and `plan` execute their runs: what is shown meanwhile, and what is printed at the end."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn

from holdfast.cli import INTERRUPTED
from holdfast.cli.bar import ProgressBar
from holdfast.data.threads import own_process
from holdfast.engine.ranks import Ranks
from holdfast.engine.stopping import Interrupt, interruptible, saves
from holdfast.errors import RunError, UserError
from holdfast.experiments.carry import carry_here, make
from holdfast.experiments.following import read_progress
from holdfast.experiments.local import Options, Workers, devices
from holdfast.experiments.remote import LAST, LIGHT, Remote
from holdfast.experiments.schedule import TRIES, Engine, Outcome, PlanResult, carry_out

if TYPE_CHECKING:
    from holdfast.experiments.config import Config
    from holdfast.experiments.plan import Plan
    from holdfast.experiments.setups import Setups
    from holdfast.experiments.store import Store

FOR_TABLES = "scipy.special"
"""What the intervals of the final table need, and what takes most of a second to import."""


def carry(
    plan: Plan, store: Store, options: Options, setups: Setups, ranks: Ranks | None = None, jobs: int = 0
) -> PlanResult:
    """Execute a plan, `jobs` runs at once (0: as many as there are cores or GPUs), one of them in this process.

    If asked to stop, save, print how to resume, and exit.
    """
    ranks = ranks or Ranks()
    make(store)
    own_process()
    jobs = 1 if ranks.size > 1 else min(jobs or len(devices(options.device, threads=plan.threads)), len(plan.configs))
    if jobs > 1:
        with Workers(store, options, jobs) as workers:
            Thread(target=import_module, args=[FOR_TABLES], daemon=True).start()  # while the workers work
            return follow(plan, store, workers)
    console = Console(stderr=True, quiet=not ranks.first, highlight=False, soft_wrap=True)
    with interruptible() as interrupt:
        shown = _Shown(plan, store, console, interrupt, ranks)
        result = carry_here(
            plan,
            store,
            options,
            setups,
            interrupt,
            ranks=ranks,
            watch=shown.bar,
            waiting=lambda holder: console.print(f"this run is being worked on by {holder}: waiting"),
            told=shown.told,
        )
    if result.stopped:
        if not any(outcome.status == "stopped" for outcome in result.outcomes.values()):
            console.print("stopped between two runs: run the same command to resume")
        sys.exit(INTERRUPTED)
    return result


def follow(plan: Plan, store: Store, engine: Engine, tries: int = TRIES, remote: Remote | None = None) -> PlanResult:
    """Execute a plan in other processes, with one progress bar for all its runs.

    If the store is remote, its records are downloaded, and uploaded again once they are complete.
    """
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    if remote is not None:
        there = remote.done()
        for run in there & set(plan.configs):
            remote.down(run, store, LIGHT)
        for run in plan.done(store) - there:  # an earlier call did not upload it, or it was deleted there
            remote.up(run, store)
    done = plan.done(store)
    lines = _Lines(plan, store, console, len(done))

    def told(config: Config, outcome: Outcome, again: bool) -> None:
        if outcome.status == "done" and remote is not None:
            remote.down(config.id, store, LIGHT)
        if outcome.status in ("done", "stopped"):
            lines.ended()
            return
        what = "tried again" if again else "failed"
        console.print(f"{what}: {plan.labels[config.id]}: {outcome.reason}", markup=False)

    with interruptible() as interrupt, saves(), lines.progress:

        def stopping() -> bool:
            lines.show(engine.runs())
            return interrupt.asked

        result = carry_out(plan, store, engine, done=done, tries=tries, stopping=stopping, told=told)
    if remote is not None:
        for run, needs in plan.needs.items():
            if needs and store.folder(run).status() == "done":
                remote.up(run, store, [LAST])
    if result.stopped:
        console.print(f"stopped and saved in {store.path}: run the same command to resume", markup=False)
        sys.exit(INTERRUPTED)
    return result


class _Lines:
    """A bar for the whole plan, and one for each active run, from what it writes into its folder."""

    def __init__(self, plan: Plan, store: Store, console: Console, done: int) -> None:
        self.plan, self.store = plan, store
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TextColumn("{task.fields[note]}"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self.whole = self.progress.add_task("all runs", total=len(plan.configs), completed=done, note="")
        self.tasks: dict[str, TaskID] = {}
        self.next = 0.0

    def ended(self) -> None:
        """A run ended."""
        self.progress.advance(self.whole)

    def show(self, runs: Sequence[str]) -> None:
        """Redraw the bars of active runs; a few times a second is enough."""
        if self.progress.disable or time.monotonic() < self.next:
            return
        self.next = time.monotonic() + 0.5
        for run in [run for run in self.tasks if run not in runs]:
            self.progress.remove_task(self.tasks.pop(run))
        for run in runs:
            if "stage" not in (told := read_progress(self.store.folder(run).path)):
                continue
            if run not in self.tasks:
                self.tasks[run] = self.progress.add_task(self.plan.labels[run], total=1.0, note="")
            share = (told["index"] + told["step"] / max(told["steps"], 1)) / told["stages"]
            self.progress.update(self.tasks[run], completed=share, note=f"{told['stage']} {told['evaluating']}".strip())
        count = f"{int(self.progress.tasks[0].completed)} of {len(self.plan.configs)}"
        self.progress.update(self.whole, note=count)


class _Shown:
    """One bar for each run, and an error message for each failure."""

    def __init__(self, plan: Plan, store: Store, console: Console, interrupt: Interrupt, ranks: Ranks) -> None:
        self.store, self.console, self.interrupt, self.ranks = store, console, interrupt, ranks
        self.labels = plan.labels
        self.numbers = {name: number for number, name in enumerate(plan.configs, 1)}

    def bar(self, config: Config) -> ProgressBar:
        many = rf"\[{self.numbers[config.id]}/{len(self.numbers)}] " if len(self.numbers) > 1 else ""
        return ProgressBar(many + self.labels[config.id], self.console, lambda: self.interrupt.asked)

    def told(self, config: Config, outcome: Outcome, again: bool) -> None:
        if outcome.status == "stopped":
            folder = self.store.folder(config.id).path
            self.console.print(f"stopped and saved in {folder}: run the same command to resume", markup=False)
        elif outcome.status != "done":
            self.console.print(f"failed: {self.labels[config.id]}: {outcome.reason}", markup=False)
            if self.ranks.size > 1:  # the other ranks are still training
                sys.exit(2 if outcome.status == "refused" else 1)


def end(result: PlanResult) -> None:
    """If runs failed, exit with a message and a status: 2 for a mistake in the call, else 1."""
    failed = result.failed()
    if not failed:
        return
    if refused := [outcome for outcome in failed if outcome.status == "refused"]:
        raise UserError(refused[0].reason)
    many = f"{len(failed)} of {len(result.plan.configs)} runs failed"
    raise RunError(f"{many}; run the same command to try them again")
