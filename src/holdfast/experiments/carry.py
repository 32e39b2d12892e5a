"""Executing a plan in this process: what the command line and `holdfast.run` share."""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

import torch

from holdfast.engine.ranks import Ranks, join
from holdfast.engine.stopping import Interrupt, interruptible, saves
from holdfast.engine.watch import Watch
from holdfast.errors import RunError, UserError
from holdfast.experiments.carried import pack
from holdfast.experiments.config import Config
from holdfast.experiments.following import followed
from holdfast.experiments.launch import launch
from holdfast.experiments.local import Here, Options, Workers, devices
from holdfast.experiments.plan import Plan
from holdfast.experiments.runner import Asked, find_device
from holdfast.experiments.schedule import Outcome, PlanResult, carry_out, finish
from holdfast.experiments.setups import Setups
from holdfast.experiments.store import Record, Store


def carry_here(
    plan: Plan,
    store: Store,
    options: Options,
    setups: Setups,
    interrupt: Interrupt,
    *,
    ranks: Ranks | None = None,
    watch: Callable[[Config], AbstractContextManager[Watch]] | None = None,
    waiting: Callable[[str], None] = lambda holder: None,
    told: Callable[[Config, Outcome, bool], None] = lambda config, outcome, again: None,
) -> PlanResult:
    """Execute a plan, one run after another; each is tried once. If asked to stop, save and return what is done.

    `watch` returns the object that follows a run, and must pass the interrupt on to it.
    """
    ranks = ranks or Ranks()
    make(store)
    watch = watch or (lambda config: nullcontext(Asked(interrupt)))
    engine = Here(store, options, setups, watch=watch, waiting=waiting, ranks=ranks)
    return carry_out(
        plan,
        store,
        engine,
        done=set((ranks.agree(" ".join(plan.done(store))) or "").split()),
        completing=ranks.first,
        tries=1,
        stopping=lambda: interrupt.asked,
        told=told,
    )


def carry(
    plan: Plan, store: Store, options: Options, setups: Setups, *, needs: bool = True, jobs: int = 1, ranks: int = 1
) -> list[Record]:
    """Execute a plan for a program, in this process, in `jobs` workers, or on `ranks`; return its records.

    Nothing is printed; in a notebook, progress bars are shown.

    Failures raise a UserError, or a RunError that names the run, after every other run has been tried. What is
    done is in the store in any case. Ctrl-C saves before it is raised; repeat the same call to resume.
    """
    find_device(options.device)
    errors: dict[str, Exception | None] = {}

    def told(config: Config, outcome: Outcome, again: bool) -> None:
        errors[config.id] = outcome.error

    with followed(plan, store):
        if "RANK" in os.environ:  # torchrun started the program, once for each rank
            result = carry_on(plan, store, options, setups, told)
        elif ranks > 1:
            result = _on_ranks(plan, store, options, needs, ranks)
        elif jobs != 1 and len(plan.configs) > 1:
            make(store)
            places = min(jobs or len(devices(options.device, threads=plan.threads)), len(plan.configs))
            with interruptible() as interrupt, saves(), Workers(store, options, places) as workers:
                result = carry_out(plan, store, workers, stopping=lambda: interrupt.asked, told=told)
        else:
            with interruptible() as interrupt:
                result = carry_here(plan, store, options, setups, interrupt, told=told)
    if result.stopped and not result.failed():
        raise KeyboardInterrupt(f"stopped and saved in {store.path}: repeat the same call to resume")
    if failed := sorted(result.failed(), key=lambda each: each.status == "left"):
        first, more = failed[0], len(failed) - 1
        alone = first.id in plan.wanted and len(plan.wanted) == 1
        named = "" if alone else f"{plan.labels[first.id]}: "
        others = f" ({more} more of {len(plan.configs)} runs failed)" if more else ""
        kind = UserError if first.status == "refused" else RunError
        raise kind(f"{named}{first.reason}{others}") from errors.get(first.id)
    records = [finish(plan, run, store) for run in plan.wanted]
    assert all(record is not None for record in records), "nothing failed, and nothing was stopped"
    return [record for record in records if record is not None]


def carry_on(
    plan: Plan, store: Store, options: Options, setups: Setups, told: Callable[[Config, Outcome, bool], None]
) -> PlanResult:
    """Execute a plan as one of several ranks, all of which call this."""
    group = join()
    if options.device in ("auto", "cuda") and torch.cuda.is_available():
        options = replace(options, device=f"cuda:{os.environ.get('LOCAL_RANK', '0')}")
    with interruptible() as interrupt:
        result = carry_here(plan, store, options, setups, interrupt, ranks=group, told=told)
    group.wait()  # the first completes the records
    return result


def _on_ranks(plan: Plan, store: Store, options: Options, needs: bool, ranks: int) -> PlanResult:
    """Execute a plan in new processes, which train each run together."""
    make(store)
    with tempfile.TemporaryDirectory() as folder:
        asked, told = Path(folder, "asked"), Path(folder, "told")
        asked.write_bytes(pack((list(plan.configs), plan.requests, needs, store.path.absolute(), options, Path.cwd())))
        launch(ranks, ["-m", "holdfast.experiments.rank", str(asked), str(told)])
        outcomes: list[Outcome] = pickle.loads(told.read_bytes()) if told.exists() else []
    found = {outcome.id: outcome for outcome in outcomes}
    lost = Outcome(next(iter(plan.configs)), "died", "one of its ranks was lost: repeat the same call to resume")
    return PlanResult(plan, found or {lost.id: lost})


def make(store: Store) -> None:
    """Create the folder of the store, or raise an error before any run starts."""
    try:
        store.path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"the store {store.path} cannot be created: {(error.strerror or '').lower()}") from None
