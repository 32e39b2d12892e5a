"""The columns passed to an external module, by the names of its `forward`'s parameters, and what its output means."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from holdfast.errors import UserError
from holdfast.models.transformer import lengths_to_present
from holdfast.types import Inputs

ONE = {
    "image": 4,
    "image_size": 2,
    "text": 2,
    "text_length": 1,
    "text_second": 1,
    "regions": 3,
    "boxes": 3,
    "region_count": 1,
    "grid": 4,
    "masked": 2,
    "image_number": 1,
}
"""The dimensions of a column if an example has one image and one text; with several, there is one more."""
ALIASES = {
    "images": "image",
    "pixels": "image",
    "pixel_values": "image",
    "input_ids": "text",
    "attention_mask": "text_length",
    "token_type_ids": "text_second",
    "pixel_mask": "image_size",
    "box_mask": "region_count",
}
"""Other libraries' names for a column; masks are computed from sizes and lengths."""
OUTPUTS = ("pooler_output", "image_embeds", "text_embeds", "last_hidden_state", "logits")
"""The keys of an output dictionary in order of preference; without any of them, the first tensor is used."""


def trial(inputs: Inputs, rows: int = 2) -> dict[str, Tensor]:
    """A small batch with the columns, shapes and types of a benchmark's examples."""
    draw = torch.Generator().manual_seed(0)
    columns: dict[str, Tensor] = {}
    if inputs.image is not None:
        columns["image"] = torch.randint(0, 256, (rows, *inputs.image), dtype=torch.uint8, generator=draw)
        if inputs.padded:
            columns["image_size"] = torch.tensor(inputs.image[1:], dtype=torch.int32).expand(rows, 2).clone()
    if inputs.grid is not None:
        columns["grid"] = torch.randn(rows, *inputs.grid, generator=draw)
    if inputs.regions is not None:
        columns["regions"] = torch.randn(rows, *inputs.regions, generator=draw)
        columns["boxes"] = torch.tensor([0.0, 0.0, 1.0, 1.0]).expand(rows, inputs.regions[0], 4).clone()
        columns["region_count"] = torch.full((rows,), inputs.regions[0])
    if inputs.text:
        shape, most = (rows, inputs.text), max(inputs.vocabulary, 1)
        columns["text"] = torch.randint(0, most, shape, dtype=torch.int32, generator=draw)
        columns["text_length"] = torch.full((rows,), inputs.text, dtype=torch.int32)
        if inputs.pairs:
            columns["text_second"] = torch.full((rows,), inputs.text // 2, dtype=torch.int32)
    return columns


class Signature:
    """The columns that a module's `forward` asks for, and in which form."""

    def __init__(self, module: nn.Module, has: Mapping[str, Tensor], method: str = "forward") -> None:
        self.names: dict[str, str] = {}
        """The column for each parameter that gets one."""
        self.everything = False
        """Whether it takes all columns, under our names."""
        self.first = ""
        """The column passed as the only argument, if its name is unknown."""
        self.where = f"{type(module).__name__}.{method}"
        given = inspect.signature(getattr(module, method)).parameters.values()
        unknown = []
        for each in given:
            column = ALIASES.get(each.name, each.name)
            needed = each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
            if column in ONE:
                if column in has or (each.name in ("pixel_mask", "image_number") and "image" in has):
                    self.names[each.name] = column
                elif needed:
                    raise UserError(
                        f"{self.where} asks for {each.name!r}, but this benchmark has {_listed(has)}: give "
                        f"{each.name} a default, or choose another benchmark"
                    )
            elif needed or each.kind is each.VAR_POSITIONAL:
                unknown.append(each.name)
            self.everything |= each.kind is each.VAR_KEYWORD
        self.everything &= not self.names and not unknown
        if len(unknown) > 1 or (unknown and self.names):
            raise UserError(
                f"{self.where} asks for {' and '.join(map(repr, unknown))}, which are not columns: this benchmark "
                f"has {_listed(has)}. Rename these parameters, or give them defaults"
            )
        if unknown:
            self.first = next(iter(has), "")
        if not (self.names or self.everything or self.first):
            raise UserError(
                f"{self.where} takes no column of this benchmark, which has {_listed(has)}: name a parameter like one"
            )

    def call(self, function: Callable[..., Any], columns: Mapping[str, Tensor], like: torch.dtype) -> Any:
        """Call a method of the module with the columns that it asks for."""
        if self.first:
            return function(_as_asked(self.first, self.first, columns, like))
        names = {name: name for name in columns} if self.everything else self.names
        given = {name: _as_asked(name, column, columns, like) for name, column in names.items()}
        return function(**{name: value for name, value in given.items() if value is not None})


def _listed(has: Mapping[str, Tensor]) -> str:
    return ", ".join(has) or "no columns"


def _as_asked(name: str, column: str, columns: Mapping[str, Tensor], like: torch.dtype) -> Tensor | None:
    """A column as a module expects it: pixels in [0, 1], ids of word pieces as int64, masks of ones and zeros."""
    if name == "attention_mask":
        return lengths_to_present(columns["text_length"], columns["text"].shape[-1]).long()
    if name == "token_type_ids":
        return (~lengths_to_present(columns["text_second"], columns["text"].shape[-1])).long()
    if name == "pixel_mask":
        return _pixel_mask(columns["image"], columns.get("image_size"))
    if name == "box_mask":
        return lengths_to_present(columns["region_count"], columns["regions"].shape[-2]).long()
    if (value := columns.get(column)) is None:
        return None
    if column == "image":
        return value.to(like).div(255)
    return value.to(like) if value.is_floating_point() else value.long()


def _pixel_mask(image: Tensor, size: Tensor | None) -> Tensor:
    high, wide = image.shape[-2:]
    if size is None:
        return torch.ones(len(image), high, wide, dtype=torch.long, device=image.device)
    rows, columns = lengths_to_present(size[:, 0], high), lengths_to_present(size[:, 1], wide)
    return (rows.unsqueeze(2) & columns.unsqueeze(1)).long()


def flat(inputs: Mapping[str, Tensor]) -> tuple[Mapping[str, Tensor], int]:
    """The columns with a row for each image or choice, and how many of these an example has; 0 if there is only one."""
    several = {name for name, column in inputs.items() if column.ndim > ONE.get(name, column.ndim)}
    if not several:
        return inputs, 0
    counts = {inputs[name].shape[1] for name in several}
    assert len(counts) == 1, "several images with several choices"
    count = counts.pop()
    found = {
        name: column.flatten(0, 1) if name in several else column.repeat_interleave(count, 0)
        for name, column in inputs.items()
    }
    if "image" in several:
        image = found["image"]
        found["image_number"] = torch.arange(count, device=image.device).repeat(len(image) // count)
    return found, count


def features(output: Any, columns: Mapping[str, Tensor], where: str) -> Tensor:
    """One vector for each row, from the output of a module.

    From a tuple or list the first tensor is taken, from a dictionary the first of `OUTPUTS`. Tokens (rows, tokens,
    width) are averaged, without padding if they are those of the text; so are maps (rows, channels, height, width).
    """
    if isinstance(output, Mapping):
        known = [output[name] for name in (*OUTPUTS, *output) if isinstance(output.get(name), Tensor)]
        output = known[0] if known else output
    if isinstance(output, tuple | list):
        output = next((value for value in output if isinstance(value, Tensor)), output)
    rows = len(next(iter(columns.values())))
    if not isinstance(output, Tensor) or not output.is_floating_point():
        what = f"a tensor of {output.dtype}" if isinstance(output, Tensor) else f"an object of {type(output).__name__}"
        raise UserError(
            f"{where} returns {what}: return a tensor of real numbers, (rows, width) or (rows, tokens, width)"
        )
    if output.ndim not in (2, 3, 4) or len(output) != rows:
        raise UserError(
            f"{where} returns {tuple(output.shape)} for {rows} rows: return (rows, width), (rows, tokens, width) or "
            "(rows, channels, height, width)"
        )
    if output.ndim == 4:
        return output.mean((2, 3))
    if output.ndim == 2:
        return output
    if "text_length" in columns and output.shape[1] == columns["text"].shape[1]:
        present = lengths_to_present(columns["text_length"], output.shape[1]).unsqueeze(-1).to(output)
        return (output * present).sum(1) / present.sum(1).clamp(min=1)
    return output.mean(1)
