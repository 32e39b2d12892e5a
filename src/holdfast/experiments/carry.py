"""Carrying a plan out in this process: what the command line and `holdfast.run` have in common."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from holdfast.engine.loop import Watch
from holdfast.engine.ranks import Ranks
from holdfast.errors import RunError, UserError
from holdfast.experiments.config import Config
from holdfast.experiments.local import Here, Options
from holdfast.experiments.plan import Plan, graph
from holdfast.experiments.request import Request
from holdfast.experiments.runner import Asked, Interrupt, find_device, interruptible
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
    """Carry a plan out, one run after another; each is tried once. Asked to stop, save and return what was done.

    `watch` gives what sees a run go by, and must pass the interrupt on to it.
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


def run_one(request: Request, store: Store, options: Options, *, needs: bool = True) -> Record:
    """Carry out one run, and those that its measures need; return its record with all its measures.

    What goes wrong is a UserError, or a RunError that names the run; the record of a run that is done is in the store
    all the same. Ctrl-C saves, and is raised once that is done; the same call goes on.
    """
    find_device(options.device)
    setups = Setups()
    plan = graph([request], needs, setups)
    errors: dict[str, Exception | None] = {}

    def told(config: Config, outcome: Outcome, again: bool) -> None:
        errors[config.id] = outcome.error

    with interruptible() as interrupt:
        result = carry_here(plan, store, options, setups, interrupt, told=told)
    if result.stopped:
        raise KeyboardInterrupt(f"stopped and saved in {store.path}: the same call goes on")
    for outcome in result.failed():
        kind = UserError if outcome.status == "refused" else RunError
        named = "" if outcome.id in plan.wanted else f"{plan.labels[outcome.id]}: "
        raise kind(f"{named}{outcome.reason}") from errors.get(outcome.id)
    (run,) = plan.wanted
    record = finish(plan, run, store)
    assert record is not None, "nothing failed, and nothing was stopped"
    return record


def make(store: Store) -> None:
    """Make the folder of the store, or refuse it before any run begins."""
    try:
        store.path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"the store {store.path} cannot be made: {(error.strerror or '').lower()}") from None
