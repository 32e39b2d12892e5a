"""Every registered algorithm, with nothing written for any one of them: a new one is tested by being registered."""

import json
import subprocess
import sys
from dataclasses import is_dataclass
from functools import cache
from inspect import isabstract
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import holdfast
from conformance.cases import CASES, NAMES, OTHER_CASES, OTHER_PAIRS, PAIRS, or_slow
from holdfast import registry
from holdfast.algorithms.base import KEEPS, Algorithm
from holdfast.engine.checkpoint import Checkpoints
from holdfast.errors import Stopped, UserError
from holdfast.experiments.store import Store
from holdfast.settings import build
from processes import environment
from smallest import StopAt, prepared, run, trained

ENOUGH = {"benchmark__noise": 0.1, "train__epochs": 8, "model__width": 64}


@pytest.mark.parametrize("name", NAMES)
def test_learns_above_chance(name):
    ready = prepared(name, **ENOUGH)
    _, log = trained(ready)
    last = [s.score for s in log.scores if s.split == "test" and s.stage == len(ready.setup.stream.stages)]
    # With 80 test examples a task and one in four right by chance, 0.25 + 4.5 standard deviations is 0.47.
    assert max(last) > 0.47, "the newest task at least is learned"


@cache
def unbroken(name, **settings):
    """The weights, the last score and the number of steps of a run that nothing stops."""
    count = StopAt(10**6)
    learner, log = trained(prepared(name, **settings), watch=count)
    return learner.model.state_dict(), log.scores[-1], 10**6 - count.left


@pytest.mark.thorough
@pytest.mark.parametrize("name", or_slow([*NAMES, *PAIRS], OTHER_PAIRS))
@pytest.mark.parametrize("stop", [2, 4])
def test_resumes_exactly_in_the_middle_of_a_task(name, stop, tmp_path):
    settings = {"train__batch_size": 30}
    weights, score, _ = unbroken(name, **settings)
    with pytest.raises(Stopped):
        trained(prepared(name, **settings), checkpoints=Checkpoints(tmp_path), watch=StopAt(stop))
    ready = prepared(name, **settings)
    again, log = trained(ready, checkpoints=Checkpoints(tmp_path))
    for key, value in weights.items():
        assert torch.equal(value, again.model.state_dict()[key]), key
    assert log.scores[-1] == score


class Killed(Exception):  # noqa: N818
    pass


class KillAt(StopAt):
    """Ends the run in the middle of a step, with nothing saved."""

    def observing(self):
        self.left -= 1
        if self.left <= 0:
            raise Killed


AT = [(None, 1), (None, 8), (1, 1), (1, 5), (4, 7)]
"""Checkpoints every N steps, and the step of the kill; pairs of algorithms are killed at the second and fourth."""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "every", "stop"),
    or_slow(
        [(name, *at) for name in NAMES for at in AT] + [(pair, *at) for pair in PAIRS for at in AT[1::2]],
        [(pair, *at) for pair in OTHER_PAIRS for at in AT[1::2]],
    ),
)
def test_resumes_exactly_from_whichever_checkpoint_a_kill_leaves(name, every, stop, tmp_path):
    """From the one before the first step, the one between two stages, and those within."""
    weights, score, steps = unbroken(name)
    stop = min(stop, steps - 1)
    with pytest.raises(Killed):
        trained(prepared(name), checkpoints=Checkpoints(tmp_path, every_steps=every), watch=KillAt(stop))
    again, log = trained(prepared(name), checkpoints=Checkpoints(tmp_path, every_steps=every))
    for key, value in weights.items():
        assert torch.equal(value, again.model.state_dict()[key]), key
    assert log.scores[-1] == score


@pytest.fixture(scope="module")
def two_ranks(request, tmp_path_factory) -> Path:
    """The store of all cases that were asked for, each trained by two processes over gloo."""
    cases, out = tmp_path_factory.mktemp("two-ranks") / "cases.json", tmp_path_factory.mktemp("two-ranks")
    asked = [each.callspec.params for each in request.session.items if "two_ranks" in getattr(each, "fixturenames", ())]
    cases.write_text(json.dumps([(each["name"], each["settings"]) for each in asked if "settings" in each]))
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    words = [*launcher, Path(__file__).with_name("worker.py"), cases, out]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert (out / "holdfast").read_text() == holdfast.__file__, "the ranks test this tree"
    return out


def case_id(value):
    if isinstance(value, str):
        return value.rpartition("/")[2]
    return ",".join(f"{name.rpartition('__')[2]}={each}" for name, each in value.items()) or "plain"


SOLVED = {"ranpac": 1e-8}
"""Sums in another order differ in the last digit, which the solution of a poorly conditioned system magnifies."""


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "settings"), or_slow(CASES, OTHER_CASES), ids=case_id)
def test_two_ranks_give_the_weights_and_scores_of_one(name, settings, two_ranks, tmp_path):
    ready = prepared(name, **settings)
    record = run(ready, Store(tmp_path))
    both = Store(two_ranks).folder(ready.config.id)
    one, two = load_file(tmp_path / record.id / "model.safetensors"), load_file(both.weights)
    assert one.keys() == two.keys()
    for key, value in one.items():
        assert value.dtype == torch.float64 or not value.is_floating_point()
        assert value.dtype == two[key].dtype
        assert torch.allclose(value.double(), two[key].double(), rtol=0, atol=SOLVED.get(name, 1e-10)), key
    other = both.record()
    assert other.environment["ranks"] == 2
    assert other.scores == record.scores
    apart = ("seconds", "flops")
    assert {k: v for k, v in other.cost.items() if k not in apart} == {
        k: v for k, v in record.cost.items() if k not in apart
    }
    # Both ranks compute rows that fill up a batch, and what is no share of a batch, such as products of gradients.
    assert 0.999 * record.cost["flops"] <= other.cost["flops"] <= 2 * record.cost["flops"]


@pytest.mark.parametrize("name", sorted(registry.ALGORITHMS))
def test_refuses_a_stream_without_boundaries_where_it_needs_them(name):
    kind = registry.ALGORITHMS[name].load()
    ready = prepared(name, benchmark__boundaries=False)
    if "boundaries" in kind.needs:
        with pytest.raises(UserError, match="needs to know where one stage ends"):
            trained(ready)
    else:
        trained(ready)


@pytest.mark.parametrize("name", sorted(registry.ALGORITHMS))
def test_reports_its_memory_in_bytes(name):
    """At least what its state holds in arrays and tensors, plus the stored size of each example that it keeps."""
    ready = prepared(name)
    learner, _ = trained(ready)
    (algorithm,) = ready.algorithms

    def examples(value) -> int:
        if isinstance(value, list | tuple):
            return sum(map(examples, value))
        if not isinstance(value, dict):
            return 0
        return (len(value["ids"]) if "ids" in value else 0) + sum(map(examples, value.values()))

    def size(value) -> int:
        if isinstance(value, dict):
            kept = len(value["ids"]) * learner.data.tables[0].row_bytes if "ids" in value else 0
            return kept + sum(map(size, value.values()))
        if isinstance(value, list | tuple):
            return sum(map(size, value))
        return value.nbytes if hasattr(value, "nbytes") else 0

    state = algorithm.state_dict()
    assert algorithm.memory_bytes(learner) == size(state)
    assert algorithm.keeps <= KEEPS.keys()
    assert ("examples" in algorithm.keeps) == (examples(state) > 0), "it declares whether it keeps examples"
    others = size(state) - examples(state) * (learner.data.tables[0].row_bytes + 8)
    bookkeeping = sum(p.nbytes for p in learner.model.parameters()) / 10
    assert others > 0 if algorithm.keeps - {"examples"} else others < bookkeeping, "and whether it keeps anything else"


@pytest.mark.parametrize("name", sorted(registry.ALGORITHMS))
def test_is_a_documented_dataclass_with_defaults(name):
    entry = registry.ALGORITHMS[name]
    kind = entry.load()
    assert is_dataclass(kind)
    assert all(base is Algorithm or isabstract(base) for base in kind.__bases__), "final: no subclass of a concrete one"
    module = sys.modules[kind.__module__].__doc__ or ""
    for word in ("Paper", "Cost:", "Memory:"):
        assert word in module, f"{kind.__module__} does not say {word}"
    build(kind, {}, name)
    assert entry.summary


def test_every_algorithm_of_the_package_is_registered():
    registered = {entry.place for entry in registry.ALGORITHMS.values()}
    here = Path(registry.__file__).parent / "algorithms"
    for path in here.glob("*.py"):
        if path.stem in ("__init__", "base", "finetune"):  # the last is what a run is without an algorithm
            continue
        module = __import__(f"holdfast.algorithms.{path.stem}", fromlist=["*"])
        for name, kind in vars(module).items():
            own = isinstance(kind, type) and issubclass(kind, Algorithm) and kind.__module__ == module.__name__
            if own and not isabstract(kind):
                assert f"{module.__name__}:{name}" in registered
