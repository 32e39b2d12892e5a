"""Compare algorithms with public code, on the same weights and batches, for those who have that code.

`python tests/beside/public_code.py REPOSITORY PATH`, where PATH is a clone of one of these:

    pilot    sun-hailong/LAMDA-PILOT     SimpleCIL, RanPAC, EASE
    coda     GT-RIPL/CODA-Prompt         CODA-Prompt
    inflora  liangyanshuo/InfLoRA        InfLoRA

Only the methods that hold an equation run; packages that they import and do not need are replaced by empty ones. The
output is a row for each quantity: the largest difference relative to the largest value. docs/fidelity.md explains the
differences.
"""

import importlib
import importlib.abc
import importlib.machinery
import math
import sys
import types
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from holdfast.algorithms.analytic import Sums
from holdfast.algorithms.coda_prompt import Opened
from holdfast.algorithms.ease import completed
from holdfast.algorithms.inflora import beside, singular
from holdfast.algorithms.ranpac import RIDGES, RandomProjection, RanPAC
from holdfast.algorithms.simplecil import SimpleCil
from holdfast.models.prefixes import Prefix

WIDTH, CLASSES, EACH, STAGES = 32, 12, 40, 3


UNUSED = ("timm", "tqdm", "ipdb", "sklearn", "scipy", "torchvision", "easydict", "cv2", "pandas", "huggingface_hub")
"""Packages that the code imports, and that these methods do not use."""


class Empty(types.ModuleType):
    """Stands for a module that is not installed: any name in it is an empty class."""

    __path__: ClassVar[list[str]] = []

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__init__": lambda self, *args, **named: None})


class Missing(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds what is not used."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.partition(".")[0] in UNUSED else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Empty:
        return Empty(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """There is nothing in it."""


def row(what: str, ours: Any, theirs: Any) -> None:
    one, other = (torch.as_tensor(each, dtype=torch.float64).detach() for each in (ours, theirs))
    print(f"{what:60} {float((one - other).abs().max() / other.abs().max()):.1e}")


def examples() -> Iterator[tuple[Tensor, Tensor]]:
    """Features and classes, stage by stage."""
    draw = torch.Generator().manual_seed(0)
    centres = torch.randn(CLASSES, WIDTH, generator=draw)
    for classes in torch.arange(CLASSES).chunk(STAGES):
        y = classes.repeat_interleave(EACH)[torch.randperm(len(classes) * EACH, generator=draw)]
        yield centres[y] + torch.randn(len(y), WIDTH, generator=draw), y


def stub(**named: Any) -> Any:
    return SimpleNamespace(_device=torch.device("cpu"), **named)


def simplecil() -> None:
    theirs = importlib.import_module("models.simplecil").Learner
    own, sums = SimpleCil(), Sums.zeros(CLASSES, WIDTH, False, torch.device("cpu"))
    fc = nn.Linear(WIDTH, CLASSES, bias=False)
    network = SimpleNamespace(eval=lambda: network, backbone=lambda x: x, fc=fc)
    for x, y in examples():
        sums.add(x.double(), functional.one_hot(y, CLASSES).double())
        theirs.replace_fc(
            stub(_network=network, train_dataset=SimpleNamespace(labels=y.numpy())), [(0, x, y)], network, 0
        )
    row("SimpleCIL: class means, of length 1", own.solve(sums)[0], functional.normalize(fc.weight.data, dim=-1))


def solved(own: RanPAC, sums: Sums, ridge: float) -> Tensor:
    own.chosen = ridge
    return own.solve(sums)[0]


def ranpac() -> None:
    theirs = importlib.import_module("models.ranpac").Learner
    size, own = 64, RanPAC(dimensions=64)
    lift, sums = RandomProjection(WIDTH, size, 7), Sums.zeros(CLASSES, size, True, torch.device("cpu"))
    network = SimpleNamespace(eval=lambda: network, extract_vector=lambda x: x, fc=nn.Linear(size, CLASSES, bias=False))
    code = stub(_network=network, W_rand=lift.weight.T, Q=torch.zeros(size, CLASSES), G=torch.zeros(size, size))
    code.args, ridges = {"nb_classes": CLASSES}, list[float]()
    code.optimise_ridge_parameter = lambda h, y: (
        ridges.append(theirs.optimise_ridge_parameter(code, h, y)) or ridges[-1]
    )
    for number, (x, y) in enumerate(examples(), 1):
        before, answers = sums.merge(sums, -1).merge(sums), functional.one_hot(y, CLASSES).double()
        lifted = lift(x).double()
        sums.add(lifted, answers)
        theirs.replace_fc(code, [(0, x, y)], network, 0)
        weights = solved(own, sums, ridges[-1])
        row(f"RanPAC: weights after stage {number}, ridge {ridges[-1]:.0e} for both", weights, network.fc.weight)
        kept = len(x) * 4 // 5
        before.add(lifted[:kept], answers[:kept])
        errors = [(lifted[kept:] @ solved(own, before, r).T - answers[kept:]).square().sum() for r in RIDGES]
        print(f"  the ridge by our rule, from all stages so far: {RIDGES[int(torch.stack(errors).argmin())]:.0e}")


def ease() -> None:
    theirs = importlib.import_module("models.ease").Learner
    draw, each = torch.Generator().manual_seed(0), CLASSES // STAGES
    means = torch.randn(STAGES, CLASSES, WIDTH, generator=draw)
    of = torch.arange(CLASSES) // each
    means *= (torch.arange(STAGES)[:, None] <= of)[..., None]  # a class has means for the stages up to its own
    fc = nn.Linear(WIDTH * STAGES, CLASSES, bias=False)
    with torch.no_grad():
        fc.weight.copy_(means.transpose(0, 1).flatten(1))
    network = SimpleNamespace(fc=fc, out_dim=WIDTH)
    code = stub(_network=network, _cur_task=STAGES - 1, init_cls=each, inc=each, moni_adam=False, use_init_ptm=False)
    code._total_classes, code.get_cls_range = CLASSES, lambda task_id: theirs.get_cls_range(code, task_id)
    theirs.solve_sim_reset(code)
    row("EASE: completed means", completed(means, of), fc.weight.data.unflatten(1, (STAGES, WIDTH)).transpose(0, 1))


def coda() -> None:
    Tensor.cuda = lambda self: self  # type: ignore[assignment, method-assign]  # the code asks for it by name
    code = importlib.import_module("models.zoo").CodaPrompt(WIDTH, STAGES, [12, 8, 1.0], key_dim=WIDTH)
    code.task_count = 1
    queries, share = torch.randn(5, WIDTH), 12 // STAGES
    (keys, values), *_ = code(queries, 0, None, train=True)
    own, prefix = Opened(share, 2 * share), Prefix((WIDTH, WIDTH), 4, 12)
    k, a, p = (getattr(code, f"e_{name}_0").data for name in "kap")
    asked = queries[:, None] * own.of(a)
    prefix.choice = functional.pad(functional.cosine_similarity(asked, own.of(k), dim=-1), (0, 12 - own.last))
    with torch.no_grad():
        prefix.key.copy_(p[:, :4])
        prefix.value.copy_(p[:, 4:])
    for name, found, expected in zip(("keys", "values"), prefix(5), (keys, values), strict=True):
        row(f"CODA-Prompt: {name} of the prompt, second stage", found, expected)
    random = torch.randn(12, WIDTH)
    module = importlib.import_module("models.zoo")
    past = (random[:share] @ random[:share].T - torch.eye(share)).square().sum()  # constant, and left out of ours
    row("CODA-Prompt: the mean of squares x their number, and our sum", own.distance(random) + past,
        module.ortho_penalty(random[: own.last]) * own.last**2)  # fmt: skip


def inflora() -> None:
    theirs = importlib.import_module("methods.inflora").InfLoRA
    code = stub(feature_list=[], project_type=[], lamb=0.9, lame=1.0, total_sessions=STAGES, _cur_task=0)
    past, draw = None, torch.Generator().manual_seed(0)
    for number in range(STAGES):
        rows = torch.randn(200, WIDTH, generator=draw) @ torch.diag(torch.logspace(0, -2, WIDTH)).roll(5 * number, 1)
        inputs, code._cur_task = rows.T.double() @ rows.double() / len(rows), number
        left = beside(inputs, past)
        if number:
            basis = torch.from_numpy(code.feature_list[0]).double()
            other = basis @ (basis.T @ inputs)
            other = inputs - other if code.project_type[0] == "remove" else other
            down = torch.linalg.svd(other)[0][:, :4].T / math.sqrt(3)
            ours = singular(left, inputs)[0][:, :4].T / math.sqrt(3)
            row(f"InfLoRA: directions of stage {number + 1}, as projections", ours.T @ ours, down.T @ down)
        theirs.update_DualGPM(code, [inputs.numpy()])
        vectors, squares = singular(left, inputs)
        total, share = inputs.square().sum(), 0.9 + 0.1 * number / STAGES
        reached = (total - left.square().sum() + torch.cat([squares.new_zeros(1), squares.cumsum(0)])) / total
        count = int((reached < share).sum())
        if number == 0:  # theirs keeps one direction fewer of the first stage than its criterion asks for
            print(f"  InfLoRA: directions kept of the first stage: {count}, theirs {code.feature_list[0].shape[1]}")
            count -= 1
        past = vectors[:, :count] if past is None else torch.cat([past, vectors[:, :count]], 1)
        basis = torch.from_numpy(code.feature_list[0]).double()
        kept = basis @ basis.T
        kept = kept if code.project_type[0] == "remove" else torch.eye(WIDTH) - kept
        row(f"InfLoRA: what later stages keep away from, after stage {number + 1}", past @ past.T, kept)


COMPARED: dict[str, tuple[Callable[[], None], ...]] = {
    "pilot": (simplecil, ranpac, ease),
    "coda": (coda,),
    "inflora": (inflora,),
}

if __name__ == "__main__":
    name, path = sys.argv[1:]
    sys.path.insert(0, path)
    sys.meta_path.insert(0, Missing())
    torch.manual_seed(0)
    for compare in COMPARED[name]:
        compare()
