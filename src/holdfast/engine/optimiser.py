"""SGD, Adam and AdamW: the fused kernels of torch, without the overhead of `torch.optim`.

`torch.optim` sorts the parameters anew in each step, which takes 0.4 ms for a hundred of them: a tenth of a small
transformer's whole step on a fast GPU. Also, creating its first optimiser takes a second of imports.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase

import torch
from torch import Tensor, nn

from holdfast.errors import UserError
from holdfast.types import Training

VERSION = 1


class ParameterGroup:
    """Parameters of one precision, weight decay and learning rate, with the state of each that has had a gradient.

    `share` is its learning rate as a multiple of the run's.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], decay: float, share: float) -> None:
        self.parameters, self.decay, self.share = tuple(parameters), decay, share
        self.moments: list[tuple[Tensor, ...] | None] = [None] * len(self.parameters)
        self._columns: tuple[tuple[Tensor, ...], ...] = ()

    def used(
        self, names: tuple[str, ...]
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...], tuple[tuple[Tensor, ...], ...]]:
        """The parameters that have a gradient, their gradients, and a tuple for each kind of moment."""
        gradients = tuple(parameter.grad for parameter in self.parameters)
        places = [index for index, gradient in enumerate(gradients) if gradient is not None]
        if len(places) == len(gradients) and self._columns:  # fast path for the usual case
            return self.parameters, gradients, self._columns  # type: ignore[return-value]
        for index in places:
            if self.moments[index] is None:
                self.moments[index] = _zeros(self.parameters[index], names)
        columns = tuple(zip(*(self.moments[index] or () for index in places), strict=True))
        if len(places) == len(gradients):
            self._columns = columns
        return tuple(self.parameters[i] for i in places), tuple(gradients[i] for i in places), columns  # type: ignore[misc]

    def set(self, index: int, moments: tuple[Tensor, ...] | None) -> None:
        """Replace the moments, or remove them."""
        self.moments[index], self._columns = moments, ()


class Optimiser:
    """Moves parameters along their gradients. Without a gradient, neither a parameter nor its moments change.

    >>> weight = nn.Parameter(torch.ones(2, 1))
    >>> weight.grad = torch.full((2, 1), 0.5)
    >>> Optimiser(Training(optimiser="sgd", learning_rate=0.1), {"weight": weight}).step()
    >>> weight.flatten().tolist()
    [0.949999988079071, 0.949999988079071]
    """

    def __init__(self, training: Training, parameters: Mapping[str, nn.Parameter]) -> None:
        self.training, self.rate, self.names = training, training.learning_rate, _kept(training)
        self._named, kinds = dict(parameters), dict[tuple[torch.dtype, float, float], list[nn.Parameter]]()
        shares = _shares(training)
        for name, parameter in parameters.items():  # biases and normalisation weights (one-dimensional) do not decay
            decay = training.weight_decay if parameter.ndim > 1 else 0.0
            share = next((share for pattern, share in shares if fnmatchcase(name, pattern)), 1.0)
            kinds.setdefault((parameter.dtype, decay, share), []).append(parameter)
        self.groups = tuple(ParameterGroup(found, decay, share) for (_, decay, share), found in kinds.items())
        self._places = {p: (group, index) for group in self.groups for index, p in enumerate(group.parameters)}
        self._spare: dict[Tensor, tuple[Tensor, ...]] = {}
        """For each parameter, memory for its weights and moments: see `virtual_step`."""

    def anew(self, training: Training) -> Optimiser:
        """A new optimiser for the same parameters, which has not moved them yet."""
        return Optimiser(training, self._named)

    @torch.no_grad()
    def step(self) -> None:
        """Move every parameter that has a gradient."""
        for group in self.groups:
            self._move(group, *group.used(self.names))

    def _move(
        self,
        group: ParameterGroup,
        used: tuple[Tensor, ...],
        gradients: tuple[Tensor, ...],
        moments: tuple[tuple[Tensor, ...], ...],
    ) -> None:
        how = self.training
        if not used:
            return
        if how.optimiser == "sgd":
            torch._fused_sgd_(
                used,
                gradients,
                moments[0] if moments else [],
                weight_decay=group.decay,
                momentum=how.momentum,
                lr=self.rate * group.share,
                dampening=0.0,
                nesterov=False,
                maximize=False,
                is_first_step=False,
            )
            return
        steps, means, squares = moments
        torch._foreach_add_(steps, 1)
        kernel = torch._fused_adamw_ if how.optimiser == "adamw" else torch._fused_adam_
        kernel(
            used,
            gradients,
            means,
            squares,
            [],
            steps,
            lr=self.rate * group.share,
            beta1=how.betas[0],
            beta2=how.betas[1],
            weight_decay=group.decay,
            eps=how.epsilon,
            amsgrad=False,
            maximize=False,
        )

    @contextmanager
    def virtual_step(self) -> Iterator[None]:
        """Set the weights to what a step would make them; restore them afterwards, bit for bit. The moments never move.

        Weights are moved in place, because other code may hold their addresses; moments are moved in a copy, whose
        memory is kept for the next call: allocating memory for hundreds of tensors takes longer than filling it.
        """
        absent = [(g, index) for g in self.groups for index, found in enumerate(g.moments) if found is None]
        own: list[Tensor] = []
        room: list[Tensor] = []
        weights: list[Tensor] = []
        copies: list[Tensor] = []
        moves = []
        for group in self.groups:
            used, gradients, moments = group.used(self.names)
            if not used:
                continue
            kept, *moved = zip(*map(self._room, used), strict=True)
            own += [*used, *(tensor for column in moments for tensor in column)]
            room += [*kept, *(tensor for column in moved for tensor in column)]
            weights += used
            copies += kept
            moves.append((group, used, gradients, tuple(moved)))
        with torch.no_grad():
            if own:
                torch._foreach_copy_(room, own)
            for move in moves:
                self._move(*move)
        try:
            yield
        finally:
            with torch.no_grad():
                if weights:
                    torch._foreach_copy_(weights, copies)
            for group, index in absent:
                group.set(index, None)

    def _room(self, parameter: Tensor) -> tuple[Tensor, ...]:
        """Memory for a parameter's weights and moments."""
        found = self._spare.get(parameter)
        if found is None:
            found = torch.empty_like(parameter, requires_grad=False), *_zeros(parameter, self.names)
            self._spare[parameter] = found
        return found

    def state(self, parameter: nn.Parameter) -> dict[str, Tensor] | None:
        """The state of a parameter, by name; None if it has had no gradient."""
        group, index = self._places[parameter]
        found = group.moments[index]
        return None if found is None else dict(zip(self.names, found, strict=True))

    def load(self, parameter: nn.Parameter, state: dict[str, Tensor]) -> None:
        """Restore the state of a parameter, on its device and, as the kernels require, in its memory layout."""
        group, index = self._places[parameter]
        like = _zeros(parameter, self.names)
        group.set(index, tuple(found.copy_(state[name]) for name, found in zip(self.names, like, strict=True)))


def _shares(training: Training) -> list[tuple[str, float]]:
    """The patterns of `train.rates`, each with its rate as a multiple of the learning rate.

    >>> _shares(Training(learning_rate=0.5, rates=("encoder.*=0.1",)))
    [('encoder.*', 0.2)]
    """
    shares = []
    for word in training.rates:
        pattern, _, text = word.rpartition("=")
        try:
            rate = float(text)
        except ValueError:
            rate = -1.0
        if not pattern or not 0 <= rate < float("inf"):
            raise UserError(f"train.rates has {word!r}: write PATTERN=RATE, such as encoder.*=1e-5")
        if not training.learning_rate:
            raise UserError("train.rates are scheduled with the learning rate, and train.learning_rate is 0: raise it")
        shares.append((pattern, rate / training.learning_rate))
    return shares


def refuse_unmatched(training: Training, names: Sequence[str]) -> None:
    """Raise a UserError, before training, for a pattern of `train.rates` that matches no parameter."""
    for word in training.rates:
        pattern = word.rpartition("=")[0]
        if not any(fnmatchcase(name, pattern) for name in names):
            known = ", ".join(dict.fromkeys(".".join(name.split(".")[:2]) + ".*" for name in names))
            raise UserError(f"train.rates has {pattern!r}, which matches no parameter: there are {known:.300}")


def _zeros(parameter: Tensor, names: tuple[str, ...]) -> tuple[Tensor, ...]:
    """Initial moments for a parameter that has not moved."""
    return tuple(
        torch.zeros((), dtype=torch.float32, device=parameter.device)
        if name == "step"
        else torch.zeros_like(parameter, requires_grad=False)
        for name in names
    )


def _kept(training: Training) -> tuple[str, ...]:
    """The names of the moments of each parameter, as in `torch.optim`."""
    if training.optimiser == "sgd":
        return ("momentum_buffer",) if training.momentum else ()
    return ("step", "exp_avg", "exp_avg_sq")
