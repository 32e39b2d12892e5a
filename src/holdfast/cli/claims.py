"""`holdfast claims`: what the papers assert, and whether runs support it."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.options import Data, Device, Jobs, Json, Sources
from holdfast.errors import RunError

if TYPE_CHECKING:
    from holdfast.claims.definition import Claims, PaperClaim
    from holdfast.claims.evidence import Evidence
    from holdfast.claims.planning import ClaimStep, ClaimTest
    from holdfast.claims.published import Untested
    from holdfast.experiments.store import Store

Paper = Annotated[
    str | None, typer.Option("--paper", metavar="NAME", help="One paper's claims, or a .toml file of your own.")
]
Only = Annotated[
    list[str] | None, typer.Option("--only", metavar="ID", help="Only this claim; repeat the option for several.")
]
Scale = Annotated[str, typer.Option(metavar="SCALE", help="How much data: tiny, small, large or paper.")]
Seeds = Annotated[int, typer.Option(metavar="N", min=1, help="Stop at N seeds: 5 for one look, 10, 20 or 40 for more.")]
Out = Annotated[Path, typer.Option("--out", metavar="STORE", help="The store: the folder that holds all runs.")]
Difference = Annotated[
    float | None,
    typer.Option(metavar="D", min=0, help="Seeds to find a distance of D from a claim's bounds. Default: its margin."),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(invoke_without_command=True, help="Test what the papers assert.")
    group.callback()(claims)
    group.command()(plan)
    group.command()(run)
    group.command()(verdicts)
    group.command()(page)
    app.add_typer(group, name="claims")


def claims(context: typer.Context, paper: Paper = None, only: Only = None, as_json: Json = False) -> None:
    """List what the papers assert; subcommands plan the runs that test it, make them, and show the verdicts."""
    if context.invoked_subcommand is not None:
        return
    from holdfast.claims.definition import chosen, read_claims
    from holdfast.claims.shown import WIDTH, asserted
    from holdfast.cli.screen import print_json

    papers = read_claims(paper)
    found = chosen(papers, only or ())
    if as_json:
        fields = ("says", "where", "statistic", "margin")
        print_json([{"id": c.name, **{n: getattr(c, n) for n in fields}, "asserts": asserted(c)} for c in found])
        return
    for each in papers:
        own = [claim for claim in found if claim.paper == each.name]
        if own:
            typer.echo(f"{each.title}: {len(own)} claim{'s' * (len(own) != 1)}\n")
        for claim in own:
            typer.echo(claim.name)
            for text in (claim.says, f"[{claim.where}]", asserted(claim)):
                typer.echo(textwrap.fill(text, WIDTH, initial_indent="    ", subsequent_indent="    "))
        if own:
            typer.echo()
    typer.echo("Plan the runs that test them: holdfast claims plan [--only ID]")


def plan(
    paper: Paper = None,
    only: Only = None,
    scale: Scale = "small",
    seeds: Seeds = 5,
    data: Data = None,
    out: Out = Path("runs"),
    difference: Difference = None,
    as_json: Json = False,
) -> None:
    """List the runs that claims need, and their cost.

    Also estimates how many seeds a difference needs, from the spread over the seeds in the store. Claims are listed in
    the order of testing: those most likely to give a verdict for the time of their runs come first. Nothing is run, and
    no data is made.
    """
    from holdfast.claims.definition import chosen, read_claims
    from holdfast.claims.planning import ClaimTest
    from holdfast.experiments.store import Store as Folder

    papers = read_claims(paper)
    found, store = chosen(papers, only or ()), Folder(out)
    asked = ClaimTest(scale, seeds, data)
    known = _known(papers, found, store, asked)
    steps, refusals = _steps(papers, found, store, asked, known)
    _print_steps(steps, refusals, known, store, asked, difference, as_json)


def run(
    paper: Paper = None,
    only: Only = None,
    scale: Scale = "small",
    seeds: Seeds = 5,
    data: Data = None,
    out: Out = Path("runs"),
    jobs: Jobs = 0,
    device: Device = "auto",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list the runs and what they cost.")] = False,
    as_json: Json = False,
) -> None:
    """Make the runs that claims need; print verdicts.

    A claim is tested with five seeds and, while it is undecided, with 10, 20 and 40, up to --seeds. Finished runs are
    not repeated. If the command is stopped, repeat it to continue; `holdfast claims verdicts` shows the verdicts so
    far.
    """
    if dry_run:
        plan(paper, only, scale, seeds, data, out, None, as_json)
        return
    from holdfast.claims.definition import chosen, read_claims
    from holdfast.claims.planning import ClaimTest, open_claims, rounds
    from holdfast.experiments.store import Store as Folder

    papers = read_claims(paper)
    found, store = chosen(papers, only or ()), Folder(out)
    failed, refusals = dict[str, str](), dict[str, str]()
    for count in rounds(seeds):
        asked = ClaimTest(scale, count, data)
        for each in _in_order(papers, found, store, asked, refusals):
            known = _known([each], found, store, asked)
            own = [claim for claim in found if claim.paper == each.name]
            left = open_claims(own, known, count == rounds(seeds)[0])
            left = [claim for claim in left if claim.name not in refusals]
            failed |= _carry_out(each, left, store, asked, known, jobs, device)
    known = _known(papers, found, store, asked)
    _keep(known.values(), store)
    _print_verdicts(papers, found, list(known.values()), str(out), bool(only), as_json)
    for text in _by_reason(refusals):
        typer.echo(f"not tested: {text}", err=True)
    for name, reason in failed.items():
        typer.echo(f"failed: {name}: {reason}", err=True)
    if failed:
        raise RunError(f"{len(failed)} runs failed; run the same command to try them again")


def verdicts(
    sources: Sources = [Path("runs")],  # noqa: B006
    paper: Paper = None,
    only: Only = None,
    as_json: Json = False,
) -> None:
    """Print the verdicts that finished runs give.

    Nothing is run. With --only, prints everything about these claims: the value of each seed, and the command that
    repeats the verdict.
    """
    from holdfast.claims.definition import chosen, read_claims

    papers = read_claims(paper)
    found = chosen(papers, only or ())
    there = [source for source in sources if source.exists()]
    evidence = _evidence(papers, found, there)
    _print_verdicts(papers, found, evidence, str(sources[0]), bool(only), as_json)


def page(
    sources: Sources,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The Markdown file to write.")] = Path("claims.md"),
    paper: Paper = None,
) -> None:
    """Write the verdicts as a page in Markdown.

    The values behind them are in a .json file beside it. Give that file as a source, too, to keep verdicts whose runs
    are elsewhere: newer runs replace its values. Claims with fewer seeds than the first look needs count as untested.
    """
    from holdfast.claims.definition import chosen, read_claims
    from holdfast.claims.published import write

    papers = read_claims(paper)
    known = _evidence(papers, chosen(papers), sources)
    found = [each for each in known if each.verdict.decisive.looked or each.gaps]
    write(papers, found, out, _untested(papers, found, sources))
    typer.echo(f"{len(found)} verdicts in {out}, and the values behind them in {out.with_suffix('.json')}")


def _untested(papers: Sequence[Claims], found: Sequence[Evidence], sources: Sequence[Path]) -> list[Untested]:
    """What the claims without runs need, according to the first store among the sources; without a store, to a file.

    The file also counts for a paper without similar runs in the store.
    """
    from holdfast.claims.planning import ClaimTest
    from holdfast.claims.published import Untested, is_evidence, read_left
    from holdfast.experiments.store import Store as Folder

    stores = [Folder(source) for source in sources if source.is_dir()]
    kept = [each for source in sources if is_evidence(source) for each in read_left(source)]
    if not stores:
        return kept
    before = {each.paper: each for each in kept}
    tested, left = {each.claim for each in found}, []
    for paper in papers:
        own = [claim for claim in paper.claims if claim not in tested]
        steps, _ = _steps([paper], own, stores[0], ClaimTest("small", 5), {})
        runs = sum(len(step.missing) for step in steps)
        known = [(step.seconds, len(step.missing)) for step in steps if step.seconds is not None and step.missing]
        each = sum(seconds for seconds, _ in known) / sum(count for _, count in known) if known else None
        seconds = (
            None if each is None else sum(s.seconds if s.seconds is not None else each * len(s.missing) for s in steps)
        )
        if own:
            now, earlier = Untested(paper.name, len(own), runs, seconds), before.get(paper.name)
            left.append(earlier if earlier and seconds is None and earlier.claims == len(own) else now)
    return left


def _evidence(papers: Sequence[Claims], found: Sequence[PaperClaim], sources: Sequence[Path]) -> list[Evidence]:
    """The evidence from stores, exported files and files of evidence: for each claim, the one with the most seeds."""
    from holdfast.claims.gathering import gathered
    from holdfast.claims.published import is_evidence, read
    from holdfast.reports.exchange import load_all
    from holdfast.reports.runs import on_world

    every = {claim.name: claim for paper in papers for claim in paper.claims}
    kept = [each for source in sources if is_evidence(source) for each in read(source, every)]
    stores = [source for source in sources if not is_evidence(source)]
    records = load_all(stores).records if stores else []
    fresh = gathered(papers, found, [(record, on_world(record.environment)) for record in records])
    best: dict[tuple[str, str], Evidence] = {}
    for each in [*kept, *fresh]:
        before = best.get((each.claim.name, each.data))
        if each.claim in found and (before is None or before.verdict.seeds <= each.verdict.seeds):
            best[each.claim.name, each.data] = each
    return sorted(best.values(), key=lambda each: (found.index(each.claim), each.data))


def _known(
    papers: Sequence[Claims], found: Sequence[PaperClaim], store: Store, asked: ClaimTest
) -> dict[PaperClaim, Evidence]:
    """The evidence of a store about claims, on the requested data."""
    from holdfast.world.whole import holds_world

    if not store.path.is_dir():
        return {}
    synthetic = asked.data is None or holds_world(Path(asked.data))
    own = [claim for claim in found if any(claim.paper == paper.name for paper in papers)]
    evidence = _evidence(papers, own, [store.path])
    return {e.claim: e for e in evidence if e.scale == asked.scale and e.synthetic == synthetic}


def _steps(
    papers: Sequence[Claims],
    found: Sequence[PaperClaim],
    store: Store,
    asked: ClaimTest,
    known: Mapping[PaperClaim, Evidence],
) -> tuple[list[ClaimStep], dict[str, str]]:
    """The claims in the order of testing, and those that this data cannot test, with the reason."""
    from rich.console import Console

    from holdfast.claims.planning import costs, joined, ordered
    from holdfast.experiments.plan import graph, refused

    by_name = {paper.name: paper for paper in papers}
    with Console(stderr=True, highlight=False).status("planning"):
        # One plan for each claim: in a common one, a run has the needs of all claims that it serves.
        plans = {claim: graph(asked.requests(by_name[claim.paper], claim), read=False) for claim in found}
        whole = joined(plans.values())
        reasons = refused(whole)
    runs = {claim: frozenset(own.configs) for claim, own in plans.items()}
    refusals = {c.name: next(reasons[r] for r in own if r in reasons) for c, own in runs.items() if own & {*reasons}}
    able = {claim: own for claim, own in runs.items() if claim.name not in refusals}
    return ordered(able, whole.done(store), costs(whole, store), known, asked.seeds), refusals


def _in_order(
    papers: Sequence[Claims], found: Sequence[PaperClaim], store: Store, asked: ClaimTest, refusals: dict[str, str]
) -> list[Claims]:
    """The papers, those with the likeliest verdicts for their cost first; notes which claims the data cannot test."""
    from holdfast.claims.planning import worth_testing

    known = _known(papers, found, store, asked)
    steps, refused = _steps(papers, found, store, asked, known)
    refusals |= refused
    names = dict.fromkeys(step.claim.paper for step in worth_testing(steps, known))
    return [paper for name in names for paper in papers if paper.name == name]


def _carry_out(
    paper: Claims,
    found: Sequence[PaperClaim],
    store: Store,
    asked: ClaimTest,
    known: Mapping[PaperClaim, Evidence],
    jobs: int,
    device: str,
) -> dict[str, str]:
    """Make the runs of some claims of one paper, and return the reasons for those that failed."""
    from rich.console import Console

    from holdfast.cli.carry import follow
    from holdfast.data.threads import own_process
    from holdfast.experiments.carry import make
    from holdfast.experiments.local import Options, Workers, devices
    from holdfast.experiments.plan import graph

    steps, _ = _steps([paper], found, store, asked, known)
    requests = [request for step in steps for request in asked.requests(paper, step.claim)]
    if not requests:
        return {}
    make(store)
    own_process()
    with Console(stderr=True, highlight=False).status(f"{paper.title}: planning {len(requests)} runs"):
        whole = graph(requests)
    places = min(jobs or len(devices(device, threads=whole.threads)), len(whole.configs))
    with Workers(store, Options(device), places) as workers:
        result = follow(whole, store, workers)
    return {f"{whole.labels[each.id]} ({each.id})": each.reason for each in result.failed()}


def _keep(found: Iterable[Evidence], store: Store) -> None:
    """Keep the values behind verdicts in the store, where its report finds them."""
    from holdfast.claims.published import STORED, dump

    own = list(found)
    if own:
        dump(own, store.path / STORED)


def _print_steps(
    steps: Sequence[ClaimStep],
    refusals: Mapping[str, str],
    known: Mapping[PaperClaim, Evidence],
    store: Store,
    asked: ClaimTest,
    difference: float | None,
    as_json: bool,
) -> None:
    from holdfast.claims.planning import seeds_for
    from holdfast.cli.plan import duration
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.reports.tables import Grid

    wanted = {step.claim: seeds_for(known.get(step.claim), difference) for step in steps}
    if as_json:
        print_json(
            [
                {
                    "id": step.claim.name,
                    "runs": len(step.runs),
                    "missing": len(step.missing),
                    "seconds": step.seconds,
                    "chance": step.chance,
                    "seeds": None if math.isnan(wanted[step.claim]) else wanted[step.claim],
                    "verdict": known[step.claim].verdict.outcome if step.claim in known else None,
                }
                for step in steps
            ]
        )
        return
    rows, total = [], 0.0
    alone = len({step.claim.paper for step in steps}) == 1  # names without that of the paper fit in 80 columns
    for step in steps:
        total += step.seconds or 0.0
        seeds = wanted[step.claim]
        rows.append(
            (
                step.claim.id if alone else step.claim.name,
                str(len(step.runs)),
                str(len(step.missing)),
                "unknown" if step.seconds is None else duration(step.seconds) if step.missing else "–",
                f"{step.chance:.0%}" if step.chance else "–",
                f"{seeds:.0f}"
                if not math.isnan(seeds)
                else "> 40"
                if "more than" in getattr(seeds, "reason", "")
                else "–",
            )
        )
    missing = sum(len(step.missing) for step in steps)
    unknown = sum(step.seconds is None for step in steps)
    claims, costly = (f"{number} claim{'s' * (number != 1)}" for number in (len(steps), unknown))
    size = "its margin" if difference is None else f"{difference:g}"
    notes = [
        "In the order of testing. Left, cost: runs that no claim above needs, on one core. Chance: of a verdict "
        f"with {asked.seeds} seeds. Needs: the seeds that find a distance of {size} from a claim's bounds with a "
        "probability of 80 %, from the spread in this store.",
        f"{len(frozenset().union(*(step.runs for step in steps)))} runs for {claims}; {missing} are left"
        + (f", and take one process about {duration(total)}" if missing and unknown < len(steps) else "")
        + (f"; the cost of {costly} is unknown: {store.path} has no similar runs" if unknown else "")
        + ".",
        *(f"Cannot be tested: {text}" for text in _by_reason(refusals)),
    ]
    columns = ("claim", "runs", "left", "cost", "chance", "needs")
    data = asked.data or "synthetic data"
    of = f" of {steps[0].claim.paper}" if alone else ""
    print_grid(Grid(f"testing claims{of} at {asked.scale} on {data}", columns, tuple(rows), tuple(notes)))


def _by_reason(refusals: Mapping[str, str]) -> list[str]:
    """Each reason once, with the claims that it keeps from being tested."""
    reasons: dict[str, list[str]] = {}
    for name, reason in refusals.items():
        reasons.setdefault(reason, []).append(name)
    return [
        f"{names[0] if len(names) == 1 else f'{len(names)} claims, such as {names[0]}'}: {reason.rstrip('.')}."
        for reason, names in reasons.items()
    ]


def _print_verdicts(
    papers: Sequence[Claims],
    found: Sequence[PaperClaim],
    evidence: Sequence[Evidence],
    out: str,
    fully: bool,
    as_json: bool,
) -> None:
    from holdfast.claims.evidence import to_json
    from holdfast.claims.shown import METHOD, SYNTHETIC, WIDTH, by_paper, counted, details, interval, repeated
    from holdfast.cli.screen import print_grid, print_json
    from holdfast.reports.tables import Grid

    store = "runs" if Path(out).is_file() else out
    if as_json:
        print_json(
            [
                {**to_json(e), "verdict": e.verdict.outcome, "why": e.verdict.why, "command": e.command(store)}
                for e in evidence
            ]
        )
        return
    if not evidence:
        typer.echo(f"{out} has no runs of {'this claim' if len(found) == 1 else f'these {len(found)} claims'}.\n")
        typer.echo("A verdict needs the runs that a claim names, with five seeds or more:")
        typer.echo("  holdfast claims                 what the papers assert")
        typer.echo("  holdfast claims plan            which runs test it, and what they cost")
        only = f" --only {found[0].name}" if len(found) == 1 else ""
        typer.echo(f"  holdfast claims run{only} --out {out}")
        return
    if fully:
        for e in evidence:
            typer.echo("\n".join(details(e, store)))
        return
    titles = {paper.name: paper.title for paper in papers}
    for (paper, data), own in by_paper(evidence).items():
        rows = tuple((e.claim.id, e.verdict.outcome, interval(e.verdict.decisive), repeated(e)) for e in own)
        columns = ("claim", "verdict", "effect, 95 %", "seeds")
        print_grid(Grid(f"{titles[paper]}, on {data} data: {counted(own)}", columns, rows))
    notes = [METHOD, "Effect: the contrast that decides. Seeds: 5 x 3 is five seeds of three orders."]
    if any(e.synthetic for e in evidence):
        notes.append(SYNTHETIC)
    notes.append(f"Everything about one: holdfast claims verdicts {out} --only ID")
    for note in notes:
        typer.echo(textwrap.fill(note, WIDTH))
