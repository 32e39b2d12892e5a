"""The common part of EWC, SI and MAS: the importance of each weight, and a penalty that anchors important weights."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from holdfast.types import Ids, Part, Stage, Task

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner

logger = logging.getLogger("holdfast")

Named: TypeAlias = dict[str, Tensor]
"""One tensor for each parameter, by the parameter's name."""

Slopes: TypeAlias = Callable[[Task, Part, Tensor, Ids], Iterable[Tensor]]
"""Maps the outputs of some rows to vectors of the same shape, each of which is backpropagated to the weights."""

ROWS = 64
"""How many examples are fetched together, over all ranks."""
NUMBERS = 2**28
"""How many numbers the gradients of single examples may take at once: 1 GiB as float32."""


class Penalty:
    """The sum of weight (parameter - anchor)^2, stored by parameter name and applied as a gradient, without autograd.

    >>> model = nn.Linear(1, 1, bias=False)
    >>> model.weight.grad = torch.zeros(1, 1)
    >>> penalty = Penalty({"weight": torch.full((1, 1), 3.0)}, {"weight": model.weight.detach() - 0.5})
    >>> penalty.add_gradient(model, strength=1.0)
    >>> round(model.weight.grad.item(), 5)
    3.0
    """

    def __init__(self, weights: Named, anchors: Named) -> None:
        assert weights.keys() == anchors.keys()
        self.weights, self.anchors = weights, anchors
        self._pulled: list[tuple[nn.Parameter, Tensor, Tensor]] | None = None

    def plus(self, weights: Named, anchors: Named) -> Penalty:
        """The sum of this penalty and another, as a single one: complete the square, and drop a constant.

        w (p - a)^2 + v (p - b)^2 = (w + v) (p - c)^2 + constant, where c is the mean of a and b by weight.
        """
        total, centre = dict(self.weights), dict(self.anchors)
        for name, added in weights.items():
            if name not in total:
                total[name], centre[name] = added, anchors[name]
                continue
            total[name] = total[name] + added
            share = torch.where(total[name] > 0, added / total[name], 0.0)
            centre[name] = torch.lerp(centre[name], anchors[name], share)
        return Penalty(total, centre)

    @torch.no_grad()
    def add_gradient(self, model: nn.Module, strength: float) -> None:
        """Add strength times the gradient, in two passes over the weights whatever the number of past stages.

        A parameter that the batch did not use has no gradient, gets none, and so does not move.
        """
        if self._pulled is None:
            parameters = dict(model.named_parameters())
            self._pulled = [(parameters[name], weight, self.anchors[name]) for name, weight in self.weights.items()]
        used = [(p, p.grad, w, a) for p, w, a in self._pulled if p.grad is not None]
        if used:
            parameters_, gradients, weights, anchors = zip(*used, strict=True)
            torch._foreach_addcmul_(gradients, torch._foreach_sub(parameters_, anchors), weights, 2 * strength)

    @property
    def nbytes(self) -> int:
        """The bytes of weights and anchors."""
        return sum(value.nbytes for value in (*self.weights.values(), *self.anchors.values()))

    def state_dict(self) -> dict[str, Named]:
        """The weights and the anchors, by name."""
        return {"weights": self.weights, "anchors": self.anchors}

    @staticmethod
    def from_state(state: Mapping[str, Any], device: torch.device) -> Penalty:
        """Restore a saved penalty, on a device."""
        return Penalty(on_device(state["weights"], device), on_device(state["anchors"], device))


def on_device(tensors: Mapping[str, Tensor], device: torch.device) -> Named:
    """Saved tensors, moved to the model's device."""
    return {name: value.to(device) for name, value in tensors.items()}


def copies(tensors: Mapping[str, Tensor]) -> Named:
    """Copies of the current values of parameters, or of a whole model's state."""
    return {name: value.detach().clone() for name, value in tensors.items()}


@contextmanager
def as_trained(learner: Learner) -> Iterator[None]:
    """Evaluation mode, but with the routing of training: the set being trained answers, not a choice among sets."""
    route, learner.route = learner.route, None
    learner.model.eval()
    try:
        yield
    finally:
        learner.route = route
        learner.train_mode()


def some_of(stage: Stage, share: float | None, most: int, seed: int) -> Ids:
    """A random part of a stage's examples: a share of them (at least one), or at most `most`."""
    count = min(most, len(stage.train)) if share is None else max(round(share * len(stage.train)), 1)
    some: Ids = np.random.default_rng(seed).permutation(stage.train)[:count]
    return some


def importance(
    learner: Learner, ids: Ids, parameters: Mapping[str, nn.Parameter], slopes: Slopes, size: Callable[[Tensor], Tensor]
) -> Named:
    """The mean over examples of `size` of each vector that `slopes` returns, backpropagated to the weights.

    Each example's own gradient counts, in evaluation mode, for images as they are stored. Every rank computes a share
    of the examples, and all get the sum.
    """
    model, ranks = learner.model, learner.ranks
    totals = {name: torch.zeros_like(parameter) for name, parameter in parameters.items()}
    passes = torch.zeros(2, dtype=torch.float64, device=learner.device)
    carry = _Carry(model, parameters)
    ids = ids.copy()
    ids.sort()  # so that the parts of a batch, one after another, are in the order of the ids
    with as_trained(learner), learner.counter.whole():
        for start in range(0, len(ids), ROWS):
            own = ids[start : start + ROWS][ranks.rank :: ranks.size]
            if len(own) == 0:
                continue
            first = 0
            for part in learner.data.fetch(own, learner.device).parts:
                rows = own[first : first + len(part.targets)]
                first += len(rows)
                with torch.no_grad():
                    output = learner.tasks[part.task].forward(model, part)
                passes[0] += len(rows)
                for vectors in slopes(learner.tasks[part.task], part, output, rows):
                    carry.add(totals, learner.tasks[part.task], part, vectors, size)
                    passes += len(rows)
    ranks.sum([*totals.values(), passes])
    learner.examples_forward += round(passes[0].item())
    learner.examples_backward += round(passes[1].item())
    return {name: total / len(ids) for name, total in totals.items()}


class _Carry:
    """Backpropagates vectors from single examples' outputs to the weights, many examples at once if possible.

    It is not possible if the model's forward pass inspects values (`.item()`, an `if` on a tensor), changes a tensor in
    place or has an LSTM. Examples are then processed one by one, and a log message says so.
    """

    def __init__(self, model: nn.Module, parameters: Mapping[str, nn.Parameter]) -> None:
        self.model, self.at_once = model, True
        self.weights = {f"model.{name}": parameter.detach() for name, parameter in parameters.items()}
        self.chunk = max(1, NUMBERS // max(sum(p.numel() for p in parameters.values()), 1))

    @torch.no_grad()
    def add(self, totals: Named, task: Task, part: Part, vectors: Tensor, size: Callable[[Tensor], Tensor]) -> None:
        """Add the contribution of these rows to the totals."""
        asked = _OneExample(self.model, task)

        def along(weights: Named, inputs: Named, targets: Tensor, vector: Tensor) -> Tensor:
            output: Tensor = functional_call(asked, weights, (inputs, targets))
            return (output * vector).sum()

        one = grad(along)
        for start in range(0, len(vectors), self.chunk):
            inside = slice(start, start + self.chunk)
            inputs = {name: column[inside] for name, column in part.inputs.items()}
            found = None
            # Both contexts support batched operations. A layer that does not is only slower, and a user cannot help it.
            with sdpa_kernel(SDPBackend.MATH), plain_recurrence(self.model), warnings.catch_warnings():
                warnings.filterwarnings("ignore", "There is a performance drop")
                if self.at_once:
                    try:
                        found = vmap(one, in_dims=(None, 0, 0, 0))(
                            self.weights, inputs, part.targets[inside], vectors[inside]
                        )
                    except torch.OutOfMemoryError:
                        raise
                    except RuntimeError as error:
                        logger.info(
                            "gradients of single examples are computed one by one: %s", str(error).split("\n")[0]
                        )
                        self.at_once = False
                if found is not None:
                    for name, total in totals.items():
                        total += size(found[f"model.{name}"]).sum(0)
                    continue
                for row in range(start, min(start + self.chunk, len(vectors))):
                    inputs = {name: column[row] for name, column in part.inputs.items()}
                    gradient = one(self.weights, inputs, part.targets[row], vectors[row])
                    for name, total in totals.items():
                        total += size(gradient[f"model.{name}"])


class _OneExample(nn.Module):
    """A model called by one task on one example, in the form that `functional_call` needs."""

    def __init__(self, model: nn.Module, task: Task) -> None:
        super().__init__()
        self.model, self.task = model, task

    def forward(self, inputs: Mapping[str, Tensor], target: Tensor) -> Tensor:
        """The output for the example, without a dimension for rows."""
        rows = {name: column.unsqueeze(0) for name, column in inputs.items()}
        return self.task.forward(self.model, Part(self.task.name, rows, target.unsqueeze(0))).squeeze(0)


@contextmanager
def plain_recurrence(model: nn.Module) -> Iterator[None]:
    """Run recurrent layers with plain operations: cuDNN's have no backward pass in evaluation mode."""
    if not any(isinstance(module, nn.RNNBase) for module in model.modules()):
        yield
        return
    set_flags: Callable[[bool], tuple[bool, ...]] = torch.backends.mkldnn.set_flags  # its context manager would warn
    before = set_flags(False)[0]
    try:
        with torch.backends.cudnn.flags(enabled=False):
            yield
    finally:
        set_flags(before)
