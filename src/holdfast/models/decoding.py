"""How a language model writes: token after token, with the keys and values of what was read before kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from holdfast.models.decoder import Decoder

PAD = -1
"""What follows the end of an answer."""


def left_padded(text: Tensor, length: Tensor) -> tuple[Tensor, Tensor]:
    """Texts that end in the last column, and which positions are not padding.

    >>> text, present = left_padded(torch.tensor([[7, 8, 0], [9, 8, 7]]), torch.tensor([2, 3]))
    >>> text.tolist(), present.tolist()
    ([[7, 7, 8], [9, 8, 7]], [[False, True, True], [True, True, True]])
    """
    places = torch.arange(text.shape[1], device=text.device) - (text.shape[1] - length.long().unsqueeze(1))
    return text.long().gather(1, places.clamp(min=0)), places >= 0


def written(model: Decoder, inputs: Mapping[str, Tensor], longest: int, beams: int = 1) -> Tensor:
    """The tokens that follow each text, up to and without the end token, padded with -1; NaN where logits are not
    finite.
    """
    logits, past = model.opened(inputs, longest)
    broken = ~logits.isfinite().all(-1)
    found = logits.new_full((len(logits), longest), PAD, dtype=torch.long)
    done = broken.clone()
    for place in range(longest):
        token = logits.argmax(-1)
        done |= token == model.end
        found[:, place] = token.where(~done, PAD)
        if place + 1 == longest or bool(done.all()):
            break
        logits = past.following(token.where(~done, 0).unsqueeze(1))[:, -1]
        broken |= ~logits.isfinite().all(-1)
    return marked(found, broken)


def likeliest(model: Decoder, inputs: Mapping[str, Tensor], longest: int) -> Tensor:
    """The tokens of the likeliest of the choices, as `written` gives them: the sum of its tokens' log-probabilities,
    the end token's included, is the largest; the first of several equal ones.
    """
    choices = inputs["choices"].long()
    rows, several, length = choices.shape
    flat = choices.flatten(0, 1)
    logits, past = model.opened(inputs, length)
    first = logits.repeat_interleave(several, 0).unsqueeze(1)
    past.select(torch.arange(rows, device=flat.device).repeat_interleave(several))
    rest = [past.following(flat[:, :-1].clamp(min=0))] if length > 1 else []
    chances = torch.cat([first, *rest], 1).float().log_softmax(-1)
    each = chances.gather(-1, flat.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    total = each.masked_fill(flat < 0, 0).sum(1).masked_fill((flat < 0).all(1), -torch.inf).view(rows, several)
    best = choices[torch.arange(rows, device=flat.device), total.argmax(1)]
    best = best.masked_fill(best == model.end, PAD)
    best = torch.nn.functional.pad(best, (0, max(longest - length, 0)), value=PAD)[:, :longest]
    return marked(best, total.isnan().any(1))


def marked(tokens: Tensor, broken: Tensor) -> Tensor:
    """Tokens as numbers, which NaN replaces in broken rows."""
    return tokens.to(torch.float32).masked_fill(broken.unsqueeze(1), torch.nan)
