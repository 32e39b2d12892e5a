"""Prefixes: learned keys and values that each query attends to, in addition to those of its own sequence.

Equation: softmax(q [P_k; K]' / sqrt(d)) [P_v; V], for each head (Li and Liang 2021, "Prefix-Tuning").

An external module takes a prefix in one of two ways, depending on a trial pass:

- It calls PyTorch's attention: `scaled_dot_product_attention` or `nn.MultiheadAttention`. The call gets longer keys,
  values and masks.
- It has three linear layers of the same input, whose names differ as query, key and value do, or q, k and v. It gets
  a longer sequence and longer masks (numbers to add, or True for visible positions); the outputs of its layers for the
  first positions are replaced by the prefix, and its own output for them is cut off.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils.hooks import RemovableHandle

CALL, MODULE = functional.scaled_dot_product_attention, functional.multi_head_attention_forward
ARGUMENTS = {
    CALL: ("query", "key", "value", "attn_mask", "dropout_p", "is_causal"),
    MODULE: tuple(inspect.signature(MODULE).parameters),
}
NAMES = (("query", "key", "value"), ("q", "k", "v"))
Widths: TypeAlias = tuple[int, int]
"""The widths of the keys and of the values, all heads together."""


class Prefix(nn.Module):
    """A pool of prefixes, each of `length` keys and values.

    `choice` selects them for each example of a batch: indices (examples, n), whose prefixes are concatenated; or
    weights (examples, pool), which mix all of them into one. With None, each example gets all of them. A network sets
    it for one pass (`Network.choose`). The first `fixed` prefixes of the pool do not learn.
    """

    choice: Tensor | None
    fixed: int

    def __init__(self, widths: Widths, length: int, pool: int = 1) -> None:
        super().__init__()
        self.key, self.value = (nn.Parameter(torch.randn(pool, length, width) * 0.02) for width in widths)
        self.choice, self.fixed = None, 0

    def forward(self, rows: int) -> tuple[Tensor, Tensor]:
        """Keys and values, (rows, length, all heads' widths). An example with several images has several rows."""
        return self._chosen(self.key, rows), self._chosen(self.value, rows)

    def _chosen(self, pool: Tensor, rows: int) -> Tensor:
        if self.fixed:
            pool = torch.cat([pool[: self.fixed].detach(), pool[self.fixed :]])
        if self.choice is None:
            return pool.flatten(0, 1).expand(rows, -1, -1)
        if self.choice.is_floating_point():
            found = torch.einsum("ep,plw->elw", self.choice.to(pool), pool)
        else:
            found = pool[self.choice].flatten(1, 2)
        assert rows % len(found) == 0, "each example has as many rows"
        return found if len(found) == rows else found.repeat_interleave(rows // len(found), 0)

    def before(self, key: Tensor, value: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
        """Keys and values (rows, heads, length, width), and the mask of attention, with the prefix before them.

        Heads that share keys (grouped queries) share those of the prefix.
        """
        more = [
            (found if x.ndim == 3 else _in_heads(found, x)).to(x)
            for found, x in zip(self(len(key)), (key, value), strict=True)
        ]
        if mask is not None:
            mask = mask.expand(*mask.shape[:-1], key.shape[-2])
            mask = functional.pad(mask, (more[0].shape[-2], 0), value=float(mask.dtype == torch.bool))
        return torch.cat([more[0], key], -2), torch.cat([more[1], value], -2), mask


def _in_heads(found: Tensor, like: Tensor) -> Tensor:
    """Vectors (rows, length, all heads' widths) as (rows, heads, length, width)."""
    heads = found.view(*found.shape[:2], -1, like.shape[-1]).transpose(1, 2)
    return heads if heads.shape[1] == like.shape[1] else heads.repeat_interleave(like.shape[1] // heads.shape[1], 1)


Active: TypeAlias = Callable[[], Any]
"""Returns the active module at a place, if any."""


def _given(func: Any, args: Sequence[Any], named: Mapping[str, Any] | None) -> dict[str, Any]:
    return dict(zip(ARGUMENTS[func], args, strict=False)) | dict(named or {})


class AttentionCalls(TorchFunctionMode):
    """Records which modules call PyTorch's attention, and the widths of keys and values."""

    def __init__(self, running: Sequence[nn.Module]) -> None:
        super().__init__()
        self.running = running
        """The modules whose forward pass is running, the innermost last."""
        self.found: dict[nn.Module, Widths] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call the function."""
        if func is CALL:
            given = _given(func, args, kwargs)
            widths = [x.shape[-1] * (x.shape[1] if x.ndim > 3 else 1) for x in (given["key"], given["value"])]
            self.found[self.running[-1]] = widths[0], widths[1]
        elif func is MODULE and (given := _given(func, args, kwargs))["bias_k"] is None:
            self.found[self.running[-1]] = given["embed_dim_to_check"], given["embed_dim_to_check"]
        return func(*args, **(kwargs or {}))


class LongerCalls(TorchFunctionMode):
    """Adds a prefix to PyTorch's attention, wherever it is called."""

    def __init__(self, prefix: Prefix) -> None:
        super().__init__()
        self.prefix = prefix

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call the function; if it is attention, with longer keys and values."""
        if func is CALL:
            return func(**self._longer(**_given(func, args, kwargs)))
        if func is not MODULE:
            return func(*args, **(kwargs or {}))
        given = _given(func, args, kwargs)
        before = len(given["key"])
        output, weights = func(**self._longer_module(given))
        return output, None if weights is None else weights[..., -before:]

    def _longer(
        self, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, is_causal: bool = False, **rest: Any
    ) -> dict[str, Any]:
        if is_causal:
            attn_mask = key.new_ones(rest["query"].shape[-2], key.shape[-2], dtype=torch.bool).tril()
        key, value, attn_mask = self.prefix.before(key, value, attn_mask)
        return {**rest, "key": key, "value": value, "attn_mask": attn_mask}

    def _longer_module(self, given: dict[str, Any]) -> dict[str, Any]:
        """Its projections for the added positions are ignored: it takes `static_k` and `static_v` instead."""
        heads, rows = given["num_heads"], given["key"].shape[1]
        biases = (None,) * 3 if given["in_proj_bias"] is None else given["in_proj_bias"].chunk(3)
        weights = None if given.get("use_separate_proj_weight") else given["in_proj_weight"].chunk(3)
        longer: dict[str, Any] = {"is_causal": False}
        for place, name, own in zip((1, 2), ("key", "value"), self.prefix(rows), strict=True):
            weight = given[f"{name[0]}_proj_weight"] if weights is None else weights[place]
            projected = functional.linear(given[name], weight, biases[place])
            whole = torch.cat([own.transpose(0, 1).to(projected), projected])
            longer[f"static_{name[0]}"] = whole.reshape(len(whole), rows * heads, -1).transpose(0, 1)
            longer[name] = functional.pad(given[name], (0, 0, 0, 0, own.shape[1], 0))
            for mask in ("key_padding_mask", "attn_mask"):  # True or a number hides; the prefix is visible
                if given.get(mask) is not None and name == "key":
                    longer[mask] = functional.pad(given[mask], (own.shape[1], 0))
        return {**given, **longer}


class CallPlace:
    """A module that calls PyTorch's attention."""

    def __init__(self, module: nn.Module, widths: Widths) -> None:
        self.module, self.widths = module, widths

    def attach(self, active: Active) -> list[RemovableHandle]:
        """Extend attention calls while it runs."""
        modes: list[Any] = []
        return [
            self.module.register_forward_pre_hook(partial(_enter, modes, active)),
            self.module.register_forward_hook(partial(_leave, modes), always_call=True),
        ]


def _enter(modes: list[Any], active: Active, *_: Any) -> None:
    prefix = active()
    mode: Any = nullcontext() if prefix is None else LongerCalls(prefix)
    mode.__enter__()
    modes.append(mode)


def _leave(modes: list[Any], *_: Any) -> None:
    if modes:
        modes.pop().__exit__(None, None, None)


class LinearPlace:
    """A module with a linear layer each for queries, keys and values."""

    def __init__(self, module: nn.Module, key: nn.Linear, value: nn.Linear) -> None:
        self.module, self.key, self.value = module, key, value
        self.widths = key.out_features, value.out_features

    def attach(self, active: Active) -> list[RemovableHandle]:
        """Lengthen the sequence by the prefix."""
        own: dict[str, Tensor] = {}
        return [
            self.module.register_forward_pre_hook(partial(_lengthen, own, active), with_kwargs=True),
            self.key.register_forward_hook(partial(_replace, own, "key")),
            self.value.register_forward_hook(partial(_replace, own, "value")),
            self.module.register_forward_hook(partial(_shorten, own)),
        ]


def _lengthen(own: dict[str, Tensor], active: Active, module: nn.Module, args: Any, named: Any) -> Any:
    """The sequence with positions before it, and lengthened masks: tensors with its length in their last two axes."""
    own.clear()
    if (prefix := active()) is None:
        return None
    x = sequence((*args, *named.values()))
    assert x is not None, "the trial found one"
    own["key"], own["value"] = prefix(len(x))
    more, length = own["key"].shape[1], x.shape[1]

    def longer(each: Any) -> Any:
        if each is x:
            return functional.pad(x, (0, 0, more, 0))
        if not isinstance(each, Tensor) or each.ndim < 2 or each.shape[-1] != length:
            return each
        square = (more, 0) if each.ndim > 2 and each.shape[-2] == length else ()
        return functional.pad(each, (more, 0, *square), value=0.0 if each.is_floating_point() else 1)

    return tuple(map(longer, args)), {name: longer(each) for name, each in named.items()}


def sequence(given: Sequence[Any]) -> Tensor | None:
    """The first tensor that can be a sequence of vectors (rows, length, width)."""
    floats = (each for each in given if isinstance(each, Tensor) and each.is_floating_point())
    return next((each for each in floats if each.ndim == 3), None)


def _replace(own: Mapping[str, Tensor], name: str, layer: nn.Module, args: Any, output: Tensor) -> Tensor:
    return torch.cat([own[name].to(output), output[:, own[name].shape[1] :]], 1) if name in own else output


def _shorten(own: dict[str, Tensor], module: nn.Module, args: Any, output: Any) -> Any:
    if "key" not in own:
        return output
    more = own["key"].shape[1]
    own.clear()
    return output[:, more:] if isinstance(output, Tensor) else type(output)((output[0][:, more:], *output[1:]))


def separate(module: nn.Module) -> tuple[nn.Linear, nn.Linear, nn.Linear] | None:
    """The linear layers of queries, keys and values, found by name.

    >>> attention = nn.ModuleDict({name: nn.Linear(2, 2) for name in ("to_q", "to_k", "to_v", "to_out")})
    >>> [layer is attention[name] for layer, name in zip(separate(attention), ("to_q", "to_k", "to_v"))]
    [True, True, True]
    """
    linear = {name: each for name, each in module.named_children() if isinstance(each, nn.Linear)}
    for query, key, value in NAMES:
        for name in linear:
            names = [name.replace(key, word, 1) for word in (query, key, value)]
            if key in name and all(each in linear for each in names):
                return linear[names[0]], linear[names[1]], linear[names[2]]
    return None
