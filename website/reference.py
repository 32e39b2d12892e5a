"""The reference: every public name, command and setting, as pages made from the code."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any

from numpy.typing import ArrayLike
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

import holdfast
from holdfast import registry
from holdfast.cli import command_line
from holdfast.cli.explain import settings_in
from holdfast.settings import Setting, settings_of, written
from website.prose import markdown, table

ROOMS = ("algorithms", "models", "streams", "tasks", "memory", "metrics", "papers")
KINDS = {
    "algorithms": "What acts against forgetting. `--set NAME.SETTING=VALUE` changes a setting of an algorithm.",
    "models": "`--set model.SETTING=VALUE` changes a setting of the model.",
    "benchmarks": "What is learned, and in which order. `--set benchmark.SETTING=VALUE` changes a setting of it.",
}


def pages() -> dict[str, str]:
    """All pages: name to text."""
    found = {"reference/python.md": python(), "reference/commands.md": commands(), "reference/training.md": training()}
    found |= {f"reference/{kind}.md": kinds(kind, text) for kind, text in KINDS.items()}
    found |= {f"reference/{room}-module.md": module(room) for room in ROOMS}
    return found | {"reference/datasets.md": datasets()}


# Python


def python() -> str:
    """The names of `import holdfast` itself."""
    names = [name for name in holdfast.__all__ if name not in ROOMS and name != "__version__"]
    functions = [name for name in names if not isinstance(getattr(holdfast, name), type)]
    classes = [name for name in names if name not in functions]
    text = ["# Python: `import holdfast`", markdown(holdfast.__doc__ or "")]
    text += ["## Functions", *(_thing("holdfast", name, getattr(holdfast, name)) for name in functions)]
    text += ["## Classes", *(_thing("holdfast", name, getattr(holdfast, name)) for name in classes)]
    return "\n\n".join(text)


def module(room: str) -> str:
    """The public names of a module such as `holdfast.metrics`."""
    found = getattr(holdfast, room)
    title = f"holdfast.{room}"
    things = [_thing(title, name, getattr(found, name)) for name in dir(found)]
    return "\n\n".join([f"# Python: `{title}`", markdown(found.__doc__ or ""), *things])


def _thing(room: str, name: str, thing: Any) -> str:
    text = [f"### `{name}` {{ #{room}.{name} }}"]
    if isinstance(thing, types.ModuleType):
        return "\n\n".join([*text, markdown(thing.__doc__ or "")])
    if not callable(thing):
        value = sorted(thing) if isinstance(thing, Mapping | set | frozenset) else thing
        return "\n\n".join([*text, f"```python\n{name}: {value!r}\n```" if len(repr(value)) < 500 else ""])
    text += [_signature(f"{room}.{name}", thing), markdown(_own_doc(thing))]
    if isinstance(thing, type):
        if dataclasses.is_dataclass(thing) and (known := _fields(thing)):
            text.append(known)
        text += [_method(name, each, member) for each, member in _methods(thing)]
    return "\n\n".join(filter(None, text))


def _own_doc(thing: Any) -> str:
    text = thing.__doc__ or ""
    return "" if isinstance(thing, type) and text.startswith(f"{thing.__name__}(") else text


def _fields(thing: type) -> str:
    """A table of the fields that explain themselves; of other classes, the signature says as much."""
    try:
        found = settings_of(thing)
    except Exception:  # fields that are not settings, such as tensors
        return ""
    if any(re.search(r"[\[<]", each.values) for each in found):  # records and the like; the signature has the types
        rows = [[f"`{each.name}`", each.meaning] for each in found if each.meaning]
        return table(["field", "meaning"], rows) if rows else ""
    return settings(found) if any(each.meaning for each in found) else ""


def _methods(thing: type) -> Iterator[tuple[str, Any]]:
    """Its own public methods and properties, in the order of the source, where they have a docstring."""
    for name, member in vars(thing).items():
        inner = getattr(member, "__func__", member)
        if not name.startswith("_") and (inspect.isfunction(inner) or isinstance(member, property)) and inner.__doc__:
            yield name, member


def _method(owner: str, name: str, member: Any) -> str:
    inner = getattr(member, "__func__", member)
    call = f"```python\n{owner}.{name}\n```" if isinstance(member, property) else _signature(f"{owner}.{name}", inner)
    return f"{call}\n\n{_indented(markdown(inner.__doc__))}"


def _indented(text: str) -> str:
    return f'<div class="method" markdown>\n\n{text}\n\n</div>'


class _Raw:
    """An annotation as it stands in the source, without the range of a setting, which its table has."""

    def __init__(self, annotation: Any) -> None:
        text = annotation if isinstance(annotation, str) else _type(annotation)
        self.text = re.sub(r"Annotated\[([^,\[\]]+), Between\([^)]*\)\]", r"\1", text)

    def __repr__(self) -> str:
        return self.text


def _type(annotation: Any) -> str:
    """A type as its source names it, where only the type itself is left."""
    if annotation == ArrayLike:
        return "ArrayLike"
    if isinstance(annotation, type) and not typing.get_args(annotation):
        return annotation.__name__
    text = str(annotation).replace(str(ArrayLike), "ArrayLike")
    text = re.sub(r"numpy\.ndarray\[.*?, numpy\.dtype\[(.*?)\]\]", r"NDArray[\1]", text)
    return re.sub(r"\b(?:typing|collections\.abc|numpy|holdfast(?:\.\w+)*)\.", "", text)


def _signature(name: str, thing: Any) -> str:
    try:
        found = inspect.signature(thing)
    except ValueError:
        return ""
    raw = [
        each if each.annotation is inspect.Parameter.empty else each.replace(annotation=_Raw(each.annotation))
        for each in found.parameters.values()
        if each.name != "self"
    ]
    end = (
        ""
        if isinstance(thing, type) or found.return_annotation is inspect.Signature.empty
        else (f" -> {_Raw(found.return_annotation)}")
    )
    kinds = {each.kind for each in raw}
    line = f"{name}{inspect.Signature(raw)}{end}"
    if len(line) > 88 and raw:
        star = inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds
        words = []
        for each in raw:
            if star and each.kind is inspect.Parameter.KEYWORD_ONLY:
                words.append("*")
                star = False
            words.append(str(each))
        line = f"{name}(\n" + "".join(f"    {word},\n" for word in words) + f"){end}"
    return f"```python\n{line}\n```"


# Settings


def settings(found: tuple[Setting, ...]) -> str:
    """A table of settings."""
    rows = [[f"`{each.name}`", f"{each.meaning} *{each.values}; {_default(each)}*".strip()] for each in found]
    return table(["setting", "meaning"], rows) if rows else ""


def _default(setting: Setting) -> str:
    return "no default: set it" if setting.required else f"default `{written(setting.default) or 'empty'}`"


def training() -> str:
    """The settings of training."""
    from holdfast.types import Training

    about = "`--set train.SETTING=VALUE` changes a setting of training. A benchmark may train with other defaults."
    return "\n\n".join(["# Training", about, markdown(Training.__doc__ or ""), settings(settings_of(Training))])


def kinds(kind: str, about: str) -> str:
    """Every built-in part of a kind, with its docstring and settings."""
    text = [f"# {kind.capitalize()}", f"{about} `holdfast list {kind} NAME` prints the same in a terminal."]
    for name, entry in registry.entries(kind.removesuffix("s")).items():
        if entry.origin != registry.BUILT_IN:
            continue
        text += [f"## {name}", "" if kind == "benchmarks" else f"{entry.summary[:1].upper()}{entry.summary[1:]}."]
        if also := [*entry.aliases, *entry.rows]:
            text.append(f"Also called {', '.join(f'`{each}`' for each in also)}.")
        text += [markdown(_source(entry)), settings(settings_in(entry))]
    return "\n\n".join(filter(None, text))


def _source(entry: registry.Entry) -> str:
    """The docstring of a benchmark, or of the file of another part."""
    thing = entry.load()
    if entry.kind == "benchmark" or thing is None:
        return getattr(thing, "__doc__", "") or ""
    return sys.modules[thing.__module__ if isinstance(thing, type) else entry.module].__doc__ or ""


def datasets() -> str:
    """Every dataset that has a reader."""
    rows = [[f"`{name}`", entry.summary] for name, entry in registry.entries("dataset").items()]
    about = "Each has a reader of the official files and a writer of small synthetic ones: see [Data](../data.md)."
    return "\n\n".join(["# Datasets", about, table(["name", "what"], rows)])


# Commands


def commands() -> str:
    """Every command with its arguments and options."""
    about = (
        "Every command has `--help`. Exit status: 0 done, 1 a run failed, 2 the call or the data was wrong, 130 "
        "interrupted and saved."
    )
    return "\n\n".join(["# Commands", about, *_commands("holdfast", command_line(), 2)])


def _commands(path: str, group: TyperGroup, depth: int) -> Iterator[str]:
    for name, each in group.commands.items():
        yield f"{'#' * depth} {path} {name}"
        if isinstance(each, TyperGroup):
            yield markdown(each.help or "")
            yield from _commands(f"{path} {name}", each, depth + 1)
        elif isinstance(each, TyperCommand):
            yield _command(f"{path} {name}", each)


def _command(path: str, command: TyperCommand) -> str:
    context = command.make_context(path, [], resilient_parsing=True)
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    rows = [
        [_option(each), f"{each.help or ''}{_default_of(each)}"]
        for each in command.params
        if isinstance(each, TyperOption | TyperArgument) and each.name != "help"
    ]
    options = table(["option", "meaning"], rows) if rows else ""
    return "\n\n".join(filter(None, [f"```text\n{usage}\n```", markdown(command.help or ""), options]))


def _option(option: TyperOption | TyperArgument) -> str:
    if isinstance(option, TyperArgument):
        return f"`{option.metavar or (option.name or '').upper()}`"
    value = f" {option.metavar}" if option.metavar else ""
    return ", ".join(f"`{word}{value}`" for word in [*option.opts, *option.secondary_opts])


def _default_of(option: TyperOption | TyperArgument) -> str:
    """The default of an option, if it has one that is not empty."""
    value = option.default
    return "" if isinstance(value, bool) or value in (None, "", (), []) else f" *Default `{written(value)}`*"
