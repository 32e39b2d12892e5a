"""The order of the classes."""

from __future__ import annotations

from holdfast.errors import UserError


def stage_order(order: str, stages: int) -> list[int]:
    """The stages in learning order: forward, reverse, or their numbers separated by `>`.

    >>> stage_order("reverse", 3), stage_order("2>1>3", 3)
    ([2, 1, 0], [1, 0, 2])
    """
    if order == "forward":
        return list(range(stages))
    if order == "reverse":
        return list(range(stages))[::-1]
    numbers = [int(word) - 1 if word.strip().isdigit() else -1 for word in order.split(">")]
    if sorted(numbers) != list(range(stages)):
        raise UserError(
            f"order is {order!r}: use forward, reverse, or the numbers 1 to {stages} separated by '>', "
            f"as in {'>'.join(str(n) for n in range(stages, 0, -1))}"
        )
    return numbers
