"""The divergence of a model's answers from its teacher's, which tasks use for distillation.

Equation: KL(p || q) of each row, with p the answers of the teacher and q those of the model, both at temperature T:
softmax(logits / T), or sigmoid(logits / T) of each answer if answers are independent.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def softmax_divergence(taught: Tensor, output: Tensor, temperature: float) -> Tensor:
    """The divergence for one answer among several, reduced over the last dimension.

    >>> softmax_divergence(torch.tensor([[0.0, 0.0]]), torch.tensor([[5.0, 5.0]]), temperature=2.0)
    tensor([0.])
    """
    taught, output = _softened(taught, output, temperature)
    ours, theirs = output.log_softmax(-1), taught.log_softmax(-1)
    return functional.kl_div(ours, theirs, reduction="none", log_target=True).sum(-1)


def sigmoid_divergence(taught: Tensor, output: Tensor, temperature: float) -> Tensor:
    """The divergence for each of several independent answers.

    >>> sigmoid_divergence(torch.tensor([[0.0, 3.0]]), torch.tensor([[0.0, 3.0]]), temperature=2.0)
    tensor([[0., 0.]])
    """
    taught, output = _softened(taught, output, temperature)
    chances, cross_entropy = taught.sigmoid(), functional.binary_cross_entropy_with_logits
    return cross_entropy(output, chances, reduction="none") - cross_entropy(taught, chances, reduction="none")


def _softened(taught: Tensor, output: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    kind = torch.promote_types(output.dtype, torch.float32)
    return taught.to(kind) / temperature, output.to(kind) / temperature
