"""Where adapters, low-rank updates and prefixes attach to an external module: at its layers, by hooks.

A layer is a repeated block: a child of a list of modules of one class, such as a transformer's blocks. An adapter
attaches to its output, a low-rank update to each of its linear layers that is called, and a prefix to each attention
within it (see `prefixes`). Hooks exist only as long as a set does, so once all sets are removed, the module's outputs
are the same as before, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from holdfast.models import prefixes
from holdfast.models.adapters import Attachable, LowRankAddition

SEVERAL = (nn.ModuleList, nn.Sequential)
OUTPUT = "output"


def repeated(module: nn.Module) -> list[nn.Module]:
    """The repeated blocks of a module from the bottom up; its children if nothing is repeated.

    The longest list of modules of one class determines the class; all lists of that class count.

    >>> block = lambda: nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    >>> len(repeated(nn.Sequential(nn.Linear(3, 2), nn.Sequential(block(), block()))))
    2
    """
    lists: list[tuple[type, list[nn.Module]]] = []
    for each in module.modules():
        inner = list(each.children())
        kinds = {type(child) for child in inner}
        if isinstance(each, SEVERAL) and len(kinds) == 1 and all(_learns(child) for child in inner):
            lists.append((kinds.pop(), inner))
    longest = max(lists, key=lambda found: len(found[1]), default=(type(module), []))
    if len(longest[1]) > 1:
        return [layer for kind, inner in lists if kind is longest[0] for layer in inner]
    children = [child for child in module.children() if _learns(child)]
    while len(children) == 1 and any(map(_learns, children[0].children())):
        children = [child for child in children[0].children() if _learns(child)]
    return children


def _learns(module: nn.Module) -> bool:
    return next(module.parameters(), None) is not None


@dataclass
class Calls:
    """The calls in one pass: the modules in the order of their first calls, and the outputs of the layers."""

    order: dict[nn.Module, None] = field(default_factory=dict)
    given: dict[nn.Module, Tensor] = field(default_factory=dict)
    """The first floating-point tensor passed to each."""
    outputs: dict[nn.Module, Tensor | None] = field(default_factory=dict)
    """The output of each layer; None if it is neither a tensor nor a tuple or list that begins with one."""
    attending: Mapping[nn.Module, prefixes.Widths] = field(default_factory=dict)
    """The modules that called PyTorch's attention themselves."""

    def attention(self, layer: nn.Module) -> Iterator[tuple[str, prefixes.CallPlace | prefixes.LinearPlace]]:
        """The attention within a layer, by the names of the attending modules."""
        for name, each in layer.named_modules():
            linear = prefixes.separate(each)
            if each in self.attending and not any(inner in self.attending for inner in list(each.modules())[1:]):
                yield name, prefixes.CallPlace(each, self.attending[each])
            elif linear is not None and self._of_one_input(each, linear):
                yield name, prefixes.LinearPlace(each, *linear[1:])

    def _of_one_input(self, module: nn.Module, layers: Sequence[nn.Module]) -> bool:
        """Whether layers within a module got the same sequence, as long as the module's own input."""
        if not all(each in self.given for each in (module, *layers)):
            return False
        x, own = self.given[module], [self.given[each] for each in layers]
        return x.ndim == 3 and all(each is own[0] for each in own) and own[0].shape[:2] == x.shape[:2]


@contextmanager
def watching(module: nn.Module, layers: Sequence[nn.Module]) -> Iterator[Calls]:
    """Record which modules are called within the context, with the inputs and outputs of the layers."""
    seen, running = Calls(), list[nn.Module]()

    def called(each: nn.Module, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        running.append(each)
        seen.order.setdefault(each)
        floats = (value for value in (*args, *named.values()) if isinstance(value, Tensor))
        seen.given.setdefault(each, next((value for value in floats if value.is_floating_point()), torch.empty(0)))

    def gave(each: nn.Module, args: Any, output: Any) -> None:
        running.pop()
        if each in layers:
            seen.outputs.setdefault(each, first_tensor(output))

    hooks = [each.register_forward_pre_hook(called, with_kwargs=True) for each in module.modules()]
    hooks += [each.register_forward_hook(gave) for each in module.modules()]
    try:
        with prefixes.AttentionCalls(running) as calls:
            yield seen
        seen.attending = calls.found
    finally:
        for hook in hooks:
            hook.remove()


def first_tensor(output: Any) -> Tensor | None:
    """A tensor, or the first element of a tuple or list if it is a tensor."""
    if isinstance(output, tuple | list):
        output = output[0] if output else None
    return output if isinstance(output, Tensor) else None


class Loose(nn.Module):
    """Represents parameters in a stem that are in none of its modules, such as a class token: they freeze with it."""

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        super().__init__()
        self.loose = tuple(parameters)  # not registered again: they have a name already

    def requires_grad_(self, requires_grad: bool = True) -> Loose:
        """Freeze or unfreeze them."""
        for parameter in self.loose:
            parameter.requires_grad_(requires_grad)
        return self


def before(module: nn.Module, layers: Sequence[nn.Module], seen: Calls) -> tuple[list[nn.Module], list[nn.Parameter]]:
    """Everything before the first layer: the modules called until then, and parameters outside of these."""
    first = next((each for each in seen.order if each in layers), None)
    if first is None:
        return [], []
    inside = {each for layer in layers for each in layer.modules()}
    around = {each for each in module.modules() if any(child in layers for child in each.modules())} - inside
    called = list(seen.order)
    stem: list[nn.Module] = []
    for each in called[: called.index(first)]:
        if each not in around and not any(each in whole.modules() for whole in stem):
            stem.append(each)
    loose = [parameter for each in around for parameter in each.parameters(recurse=False)]
    start = seen.given.get(first)
    if not loose or start is None or not start.requires_grad:
        return stem, []
    reached = torch.autograd.grad(start.sum(), loose, allow_unused=True, retain_graph=True)
    return stem, [parameter for parameter, slope in zip(loose, reached, strict=True) if slope is not None]


class LowRankProduct(LowRankAddition):
    """A low-rank addition to the output of a linear layer: Hu et al. 2021. It starts at zero."""

    def __init__(self, width: int, outputs: int, rank: int, scale: float) -> None:
        super().__init__()
        self.down = nn.Linear(width, rank, bias=False)
        self.up = nn.Linear(rank, outputs, bias=False)
        self.rank, self.scale = rank, scale
        nn.init.zeros_(self.up.weight)

    def forward(self, x: Tensor) -> Tensor:
        """The addition for these vectors."""
        out: Tensor = self.up(self.down(x)) * self.scale
        return out

    def ups(self) -> tuple[Tensor, ...]:
        """The only matrix."""
        return (self.up.weight,)

    def product(self) -> Tensor:
        """The addition to the layer's weight."""
        return self.up.weight @ self.down.weight * self.scale


class HookedLayer(Attachable):
    """A layer of an external module, with its additions."""

    layer: nn.Module
    linear: Mapping[str, nn.Linear]
    attention: Mapping[str, prefixes.CallPlace | prefixes.LinearPlace]
    _hooks: dict[str, list[RemovableHandle]]

    def __init__(self, layer: nn.Module, seen: Calls) -> None:
        super().__init__()
        self.added, self.active = nn.ModuleDict(), ""
        linear = {name: each for name, each in layer.named_modules() if isinstance(each, nn.Linear)}
        named = {f"linear/{name.replace('.', '/')}": each for name, each in linear.items() if each in seen.order}
        attention = {f"prefix/{name.replace('.', '/')}": each for name, each in seen.attention(layer)}
        # Not registered as submodules: the layer already has a place and a name in its module.
        vars(self).update(layer=layer, linear=named, attention=attention, _hooks={})
        output = seen.outputs[layer]
        assert output is not None
        convolves = any(isinstance(each, nn.modules.conv._ConvNd) for each in layer.modules())
        self.axis = 1 if output.ndim > 3 and convolves else -1
        """The axis of the channels: second for maps of convolutions, otherwise last."""
        self.width = output.shape[self.axis]

    def adapted(self) -> Mapping[str, int]:
        """The layer's output."""
        return {OUTPUT: self.width}

    def low_rank(self, rank: int = 8, scale: float = 1.0) -> nn.ModuleDict:
        """An update of each linear layer."""
        sizes = {name: (each.in_features, each.out_features) for name, each in self.linear.items()}
        return nn.ModuleDict({name: LowRankProduct(*size, rank, scale) for name, size in sizes.items()})

    def updated(self) -> Mapping[str, nn.Linear]:
        """Each linear layer that is called."""
        return self.linear

    def attends(self) -> Mapping[str, prefixes.Widths]:
        """Each attention within the layer."""
        return {name: each.widths for name, each in self.attention.items()}

    def weight(self) -> Tensor:
        """The layer's first weight."""
        return next(self.layer.parameters())

    def add(self, name: str, modules: nn.ModuleDict) -> None:
        """Add a set, with hooks at places where it is the first."""
        super().add(name, modules)
        for place in modules:
            self._hooks[place] = self._hooks.get(place) or self._attach(place)

    def remove(self, name: str) -> None:
        """Remove a set, with the hooks at places where it was the last."""
        super().remove(name)
        kept = {place for each in self.added.values() if isinstance(each, nn.ModuleDict) for place in each}
        for place in self._hooks.keys() - kept:
            for hook in self._hooks.pop(place):
                hook.remove()

    def _attach(self, place: str) -> list[RemovableHandle]:
        if place in self.attention:
            return self.attention[place].attach(partial(self._on, place))
        if place in self.linear:
            return [self.linear[place].register_forward_hook(partial(self._update, place), with_kwargs=True)]
        return [self.layer.register_forward_hook(self._adapt)] if place == OUTPUT else []

    def _on(self, place: str) -> Callable[[Tensor], Tensor] | None:
        """The active module at a place."""
        if self.active not in self.added:
            return None
        found = self.added[self.active]
        assert isinstance(found, nn.ModuleDict)
        return found[place] if place in found else None  # noqa: SIM401 - no `get` in torch 2.6

    def _adapt(self, layer: nn.Module, args: Any, output: Any) -> Any:
        if (adapter := self._on(OUTPUT)) is None:
            return output
        x = first_tensor(output)
        assert x is not None
        x = adapter(x) if self.axis == -1 else adapter(x.movedim(1, -1)).movedim(-1, 1)
        rest = () if isinstance(output, Tensor) else output[1:]
        return x if isinstance(output, Tensor) else [x, *rest] if isinstance(output, list) else (x, *rest)

    def _update(self, place: str, layer: nn.Module, args: Any, named: Mapping[str, Any], output: Tensor) -> Tensor:
        if (update := self._on(place)) is None:
            return output
        return output + update(args[0] if args else named["input"])
