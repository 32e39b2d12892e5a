"""How a language model writes: token by token, with the keys and values of earlier tokens cached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from holdfast.models.decoder import Decoder

PAD = -1
"""The padding after the end of an answer."""


def left_padded(text: Tensor, length: Tensor, fill: int) -> tuple[Tensor, Tensor]:
    """Texts padded on the left, and which positions are not padding.

    >>> text, present = left_padded(torch.tensor([[7, 8, 0], [9, 8, 7]]), torch.tensor([2, 3]), fill=1)
    >>> text.tolist(), present.tolist()
    ([[1, 7, 8], [9, 8, 7]], [[False, True, True], [True, True, True]])
    """
    places = torch.arange(text.shape[1], device=text.device) - (text.shape[1] - length.long().unsqueeze(1))
    return text.long().gather(1, places.clamp(min=0)).masked_fill(places < 0, fill), places >= 0


def written(model: Decoder, inputs: Mapping[str, Tensor], longest: int, beams: int = 1) -> Tensor:
    """The tokens that follow each text, up to and without the end token, padded with -1; NaN where logits are not
    finite. With several beams, the finished sequence with the largest mean log-probability.
    """
    if beams > 1:
        return _searched(model, inputs, longest, beams)
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
        logits = past.following(token.where(~done, model.end).unsqueeze(1))[:, -1]
        broken |= ~logits.isfinite().all(-1)
    return marked(found, broken)


LOW = -1e9
"""The score of a continuation that cannot be chosen."""


def _searched(model: Decoder, inputs: Mapping[str, Tensor], longest: int, beams: int) -> Tensor:
    """Beam search as `transformers` does it, with its defaults: a row ends when no running sequence can overtake.

    Each step considers the 2 x beams best continuations of a row's sequences. Those in the first half that end are
    finished, and compete by their log-probability divided by their length; the best of the others continue.
    """
    logits, past = model.opened(inputs, longest)
    rows, device = len(logits), logits.device
    first = torch.arange(rows, device=device).unsqueeze(1) * beams
    past.select(torch.arange(rows, device=device).repeat_interleave(beams))
    broken = ~logits.isfinite().all(-1)
    logits = logits.unsqueeze(1).expand(-1, beams, -1)
    running = torch.full((rows, beams, longest), PAD, device=device)
    best, scores = running.clone(), torch.full((rows, beams), LOW, device=device)
    scores[:, 0] = 0.0
    best_scores, ended = torch.full_like(scores, LOW), torch.zeros_like(scores, dtype=torch.bool)
    open_rows = torch.ones(rows, 1, dtype=torch.bool, device=device)
    for place in range(longest):
        chances = logits.nan_to_num().float().log_softmax(-1) + scores.unsqueeze(-1)
        found, index = chances.flatten(1).topk(2 * beams)
        source, token = index // logits.shape[-1], index % logits.shape[-1]
        sequences = _of_beams(running, source)
        sequences[:, :, place] = token
        ends = (token == model.end) | (place + 1 == longest)
        finishes = ends & (torch.arange(2 * beams, device=device) < beams)
        own = (found / (place + 1)).where(finishes & open_rows, LOW)
        best_scores, chosen = torch.cat([best_scores, own], 1).topk(beams)
        best = _of_beams(torch.cat([best, sequences], 1), chosen)
        ended = torch.cat([ended, finishes], 1).gather(1, chosen)
        scores, chosen = (found + ends * LOW).topk(beams)
        worst = best_scores.amin(1, keepdim=True).where(ended, LOW)
        open_rows = open_rows & (scores[:, :1] / (place + 1) > worst).any(1, keepdim=True)
        if place + 1 == longest or not bool(open_rows.any()) or bool(ends.all()):
            break
        running = _of_beams(sequences, chosen)
        past.select((first + source.gather(1, chosen)).flatten())
        logits = past.following(running[:, :, place].reshape(-1, 1))[:, -1].view(rows, beams, -1)
        broken |= ~logits.isfinite().all(-1).all(-1)
    tokens = best[:, 0]
    return marked(tokens.masked_fill((tokens == model.end).cumsum(1) > 0, PAD), broken)


def _of_beams(values: Tensor, chosen: Tensor) -> Tensor:
    """Some beams (rows, chosen) of values (rows, beams, length)."""
    return values.gather(1, chosen.unsqueeze(-1).expand(-1, -1, values.shape[-1]))


def likeliest(model: Decoder, inputs: Mapping[str, Tensor], longest: int) -> Tensor:
    """The tokens of the likeliest choice, in the form of `written`: the one with the largest sum of log-probabilities
    of its tokens, including the end token; of several equal ones, the first.
    """
    choices = inputs["choices"].long()
    rows, several, length = choices.shape
    flat = choices.flatten(0, 1)
    logits, past = model.opened(inputs, length)
    first = logits.repeat_interleave(several, 0).unsqueeze(1)
    past.select(torch.arange(rows, device=flat.device).repeat_interleave(several))
    rest = [past.following(flat[:, :-1].where(flat[:, :-1] >= 0, model.end))] if length > 1 else []
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
