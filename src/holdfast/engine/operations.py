"""The floating-point operations of an operator, forward and backward: PyTorch's formulas, and those it lacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import prod
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.utils import flop_counter

aten = torch.ops.aten
PYTORCH: Any = flop_counter
"""PyTorch's module, whose functions have no type annotations."""
Formula: TypeAlias = Callable[[Sequence[Any], Any], int]
"""Maps the arguments and the output of a call to its number of operations."""

PRODUCTS = {"mm": (0, 1), "bmm": (0, 1), "addmm": (1, 2), "baddbmm": (1, 2)}
"""The positions of the factors of a product. The gradient of each takes as many operations as the product itself."""
CONVOLUTIONS = ("convolution", "_convolution", "cudnn_convolution", "convolution_overrideable", "_slow_conv2d_forward")
ATTENTIONS = (
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_cudnn_attention",
)


def _attention(args: Sequence[Any], output: Any) -> int:
    return int(PYTORCH.sdpa_flop_count(args[0].shape, args[1].shape, args[2].shape))


def _attention_backward(args: Sequence[Any], output: Any) -> int:
    return int(PYTORCH.sdpa_backward_flop_count(args[0].shape, args[1].shape, args[2].shape, args[3].shape))


def _convolution_backward(args: Sequence[Any], output: Any) -> int:
    """Each of the two gradients takes as long as the convolution. (PyTorch counts groups as if there was one.)"""
    slope, inputs, weight, transposed, mask = args[0], args[1], args[2], args[7], args[10]
    return _convolved(inputs, weight, slope, transposed) * (bool(mask[0]) + bool(mask[1]))


def _convolved(inputs: Tensor, weight: Tensor, output: Tensor, transposed: bool) -> int:
    places = (inputs if transposed else output).shape[2:]
    return 2 * inputs.shape[0] * prod(places) * weight.numel()


def _recurrent(args: Sequence[Any], output: Any) -> int:
    """One layer and direction on a CPU: two matrices are applied at each place."""
    inputs, along_input, along_state = args[0], args[1], args[2]
    return int(2 * (inputs.numel() // inputs.shape[-1]) * (along_input.numel() + along_state.numel()))


def _recurrent_backward(args: Sequence[Any], output: Any) -> int:
    return 2 * _recurrent(args, output)


def _recurrent_cudnn(args: Sequence[Any], output: Any) -> int:
    """All layers and directions on a GPU."""
    inputs, weights = args[0], args[1]
    return int(2 * (inputs.numel() // inputs.shape[-1]) * sum(each.numel() for each in weights if each.dim() > 1))


def _multi_head(args: Sequence[Any], output: Any) -> int:
    """The fused attention of `nn.MultiheadAttention` in evaluation mode."""
    rows, places, width = args[0].shape
    return int(2 * rows * places * (args[5].numel() + args[7].numel()) + 4 * rows * places * places * width)


def _of_matrices(factor: float) -> Formula:
    """`factor` n^3 for each n x n matrix."""
    return lambda args, output: int(factor * args[0].numel() * args[0].shape[-1])


def _solved(args: Sequence[Any], output: Any) -> int:
    """A factorisation, and two triangular systems for each right-hand side."""
    matrix, right = args[0], args[1]
    size = matrix.shape[-1]
    return int(2 / 3 * matrix.numel() * size + 2 * right.numel() * size)


def _substituted(factor: int) -> Formula:
    """Triangular systems that are solved for each right-hand side."""
    return lambda args, output: factor * args[0].numel() * args[0].shape[-2]


def _singular(args: Sequence[Any], output: Any) -> int:
    """Golub and Van Loan's estimate, with both sets of vectors."""
    low, high = sorted(args[0].shape[-2:])
    return int(prod(args[0].shape[:-2])) * int(4 * high * high * low + 8 * high * low * low + 9 * low**3)


def _least_squares(args: Sequence[Any], output: Any) -> int:
    *_, rows, columns = args[0].shape
    return int(prod(args[0].shape[:-2]) * 2 * rows * columns * (columns + args[1].shape[-1]))


EXTRA: dict[Any, Formula] = {
    aten.convolution_backward: _convolution_backward,
    aten._scaled_dot_product_flash_attention_for_cpu: _attention,
    aten._scaled_dot_product_flash_attention_for_cpu_backward: _attention_backward,
    aten.mkldnn_rnn_layer: _recurrent,
    aten.mkldnn_rnn_layer_backward: _recurrent_backward,
    aten._cudnn_rnn: _recurrent_cudnn,
    aten._cudnn_rnn_backward: lambda args, output: 2 * _recurrent_cudnn(args, output),
    aten._native_multi_head_attention: _multi_head,
    aten.linalg_cholesky_ex: _of_matrices(1 / 3),
    aten.linalg_inv_ex: _of_matrices(2),
    aten._linalg_eigh: _of_matrices(9),
    aten._linalg_solve_ex: _solved,
    aten.cholesky_solve: _substituted(2),
    aten.linalg_solve_triangular: lambda args, output: args[1].numel() * args[0].shape[-1],
    aten._linalg_svd: _singular,
    aten.linalg_lstsq: _least_squares,
}
"""Operators for which PyTorch has no formula, or one that does not fit."""


@cache
def forward_of(func: Any) -> Formula | None:
    """The formula of an operator; None if it is not counted."""
    packet = getattr(func, "_overloadpacket", func)
    if packet in EXTRA:
        return EXTRA[packet]
    if packet not in PYTORCH.flop_registry:
        return None
    formula = PYTORCH.flop_registry[packet]
    return lambda args, output: int(formula(*args, out_val=output))


def backward_of(func: Any, args: Sequence[Any], output: Any, count: int) -> int:
    """The operations of an operator's backward pass, which computes the gradients that its arguments require."""
    name = func._overloadpacket.__name__
    if name in PRODUCTS:
        return count * sum(bool(args[place].requires_grad) for place in PRODUCTS[name])
    if name in CONVOLUTIONS:
        return count * sum(bool(each.requires_grad) for each in args[:2])
    if name in ATTENTIONS and any(each.requires_grad for each in args[:3]):
        shapes = [each.shape for each in args[:3]]
        return int(PYTORCH.sdpa_backward_flop_count(output[0].shape, *shapes))
    flat = [each for arg in args for each in (arg if isinstance(arg, list | tuple) else (arg,))]
    learns = any(isinstance(each, Tensor) and each.requires_grad for each in flat)
    return 2 * count if learns and name not in ATTENTIONS else 0
