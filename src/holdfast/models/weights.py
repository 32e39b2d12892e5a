"""Published weights: find them in a folder or on the hub, rename them, check them, and write them back."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pickle
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from holdfast.errors import UserError
from holdfast.files import FileError, bounds, open_regular, read_bytes, within

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    R = TypeVar("R", bound=DataclassInstance)
else:
    R = TypeVar("R")

VOCABULARY = "vocab.txt"
_WHOLE, _INDEX, _OLD = "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"
TOKENIZER, PROCESSOR = "tokenizer.json", "preprocessor_config.json"
_KEPT = ["config.json", VOCABULARY]
_BESIDE = [TOKENIZER, PROCESSOR]
_OFFLINE: ContextVar[bool] = ContextVar("offline", default=False)
_HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")


@dataclass(frozen=True)
class Names:
    """Maps our modules and parameters to their names in a published format, with `{}` for a layer's number.

    Several of theirs are stacked in one of ours: queries, keys and values. A checkpoint of a whole model
    has a `prefix` before the encoder's names; anything else is a head, which is not read. `optional` modules
    may be missing on either side.

    >>> names = Names("bert.", {"stack.{}.attention.output": ("encoder.layer.{}.attention.output.dense",)})
    >>> names.theirs("stack.3.attention.output.bias")
    ('encoder.layer.3.attention.output.dense.bias',)
    """

    prefix: str
    rules: Mapping[str, tuple[str, ...]]
    optional: tuple[str, ...] = ()

    def theirs(self, ours: str) -> tuple[str, ...]:
        """The published names of one of our weights; empty if there are none."""
        number = re.search(r"\.(\d+)\.", ours)
        place = ours if number is None else f"{ours[: number.start()]}.{{}}.{ours[number.end() :]}"
        layer = "" if number is None else number.group(1)
        if place in self.rules:
            return tuple(name.format(layer) for name in self.rules[place])
        module, _, leaf = place.rpartition(".")
        return tuple(f"{name.format(layer)}.{leaf}" for name in self.rules.get(module, ()))


SHIPPED = "holdfast/"
"""The prefix of weights that ship with the package, as in holdfast/vilt-tiny."""


def locate(name: str, setting: str, download: bool = True) -> Path:
    """The folder of some weights: a local one, one that ships with the package, or one of the hub.

    `setting` is the setting that error messages name. With `download=False`, nothing is
    downloaded from the hub.

    >>> locate("holdfast/vilt-tiny", "weights").name
    'vilt-tiny'
    """
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder
    if (
        name.startswith(SHIPPED)
        and (shipped := Path(__file__).parent / "shipped" / name.removeprefix(SHIPPED)).is_dir()
    ):
        return shipped
    if not _HUB_NAME.fullmatch(name):
        raise UserError(f"{setting} is {name!r}, which does not exist: give a folder with config.json and {_WHOLE}")
    return _from_hub(name, setting, download)


@contextmanager
def from_cache_alone() -> Iterator[None]:
    """Fetch no weights from the hub within the block."""
    token = _OFFLINE.set(True)
    try:
        yield
    finally:
        _OFFLINE.reset(token)


def _from_hub(name: str, setting: str, download: bool) -> Path:
    download = download and not _OFFLINE.get()
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise UserError(
            f"{setting} is {name!r}, which is not a folder, and huggingface_hub is not installed to find it: "
            f"install it, or give a folder with config.json and {_WHOLE}"
        ) from None
    # The cache first, which needs no network; the old format only if there is no new one.
    new = "model*.safetensors*"
    for cached, pattern in [(True, new), (False, new), (True, _OLD), (False, _OLD)]:
        if not (cached or download):
            continue
        try:
            folder = Path(snapshot_download(name, local_files_only=cached, allow_patterns=[*_KEPT, *_BESIDE, pattern]))
        except (OSError, ValueError):  # the hub's errors without a network, for an unknown name, and for an empty cache
            continue
        if (folder / "config.json").is_file() and weight_files(folder):
            return folder
    also = ", and cannot be downloaded" if download else ""
    raise UserError(
        f"{setting} is {name!r}, which is neither a folder here nor in the hub's cache{also}: "
        f"download config.json, {VOCABULARY} and {_WHOLE} of https://huggingface.co/{name} to a folder and give that"
    )


def weight_files(folder: Path) -> tuple[Path, ...]:
    """The files of a folder's weights, safetensors in preference to torch's own format; empty if there are none."""
    files, limits = _weight_files(folder), bounds(folder)
    for path in files:
        limits.check(path)
    return files


def _weight_files(folder: Path) -> tuple[Path, ...]:
    if (folder / _WHOLE).is_file():
        return (folder / _WHOLE,)
    if (folder / _INDEX).is_file():
        shards = read_json(folder / _INDEX).get("weight_map", {})
        if not isinstance(shards, dict) or not all(isinstance(shard, str) for shard in shards.values()):
            raise UserError(f"{folder / _INDEX} does not say which file holds each weight: download it again")
        return tuple(folder / shard for shard in sorted(set(shards.values())))
    return (folder / _OLD,) if (folder / _OLD).is_file() else ()


def read_state(folder: Path) -> dict[str, Tensor]:
    """Every weight in a folder, under its name there."""
    files = weight_files(folder)
    if not files:
        raise UserError(f"{folder} has no weights: it needs {_WHOLE}, {_INDEX} with its files, or {_OLD}")
    state: dict[str, Tensor] = {}
    for path in files:
        state |= read_weights(path)
    return state


def read_weights(path: Path, torchs_own: bool | None = None) -> dict[str, Tensor]:
    """Every weight in a file, under its name there; nothing in the file is executed.

    `torchs_own` says whether it is in torch's own format; by default, its name does.
    """
    try:
        open_regular(path).close()
        if path.name == _OLD if torchs_own is None else torchs_own:
            state = torch.load(path, map_location="meta" if measured() else "cpu", weights_only=True)
        else:
            state = _load(path)
    except FileNotFoundError:
        raise UserError(f"{path} is missing, and {_INDEX} names it: download it again") from None
    except FileError:
        raise
    except (SafetensorError, RuntimeError, EOFError, ValueError, TypeError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"{path} cannot be read ({first}): download it again") from None
    except pickle.UnpicklingError:  # such a file could run code
        raise UserError(f"{path} is damaged or holds more than weights: give {_WHOLE} instead") from None
    if not isinstance(state, dict) or not all(isinstance(weight, Tensor) for weight in state.values()):
        raise UserError(f"{path} holds more than weights by name: give {_WHOLE} instead")
    return state


def measured() -> bool:
    """Whether models are built on the meta device, which has no values: see `experiments/size.py`."""
    return torch.get_default_device().type == "meta"


def _load(path: Path) -> dict[str, Tensor]:
    """The weights of a file, or only their shapes if the model is built on the meta device."""
    if not measured():
        return load_file(path)
    with safe_open(path, framework="pt") as file:
        return {name: torch.empty(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118


def read_config(folder: Path, kind: str) -> dict[str, Any]:
    """The published configuration in a folder; raises a UserError unless it is for the given kind of model."""
    config = read_json(folder / "config.json")
    if config.get("model_type", kind) != kind:
        raise UserError(f"{folder} holds a model of type {config['model_type']!r}, not {kind!r}: give another folder")
    if config.get("hidden_act", "gelu") != "gelu":
        raise UserError(f"{folder} asks for the activation {config['hidden_act']!r}, but ours is 'gelu': give another")
    for key, numbers in {"layer_norm_eps": int | float, "vocab_size": int}.items():
        if not isinstance(config.get(key, 1), numbers):
            raise UserError(f"{folder} has {key} {config[key]!r}, which is not a valid number: give another folder")
    return config


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file."""
    try:
        with within(bounds(path.parent)):
            found = json.loads(read_bytes(path))
    except FileNotFoundError:
        raise UserError(f"{path} is missing: give the whole folder, with its config.json") from None
    except (UnicodeDecodeError, json.JSONDecodeError):
        raise UserError(f"{path} is not JSON: download it again") from None
    if not isinstance(found, dict):
        raise UserError(f"{path} is not a JSON object: download it again")
    return found


def agreed(recipe: R, config: Mapping[str, Any], sizes: Mapping[str, tuple[str, int]], where: Path) -> R:
    """A `Model` with the sizes of a configuration; raises a UserError for a setting that contradicts it.

    `sizes` has, for each of our settings, its name in the configuration and its value if that is missing.
    """
    changes = {}
    for field in dataclasses.fields(recipe):
        if field.name not in sizes:
            continue
        key, default = sizes[field.name]
        theirs, ours = config.get(key, default), getattr(recipe, field.name)
        if not isinstance(theirs, int):
            raise UserError(f"{where} has {key} {theirs!r}, but ours takes one whole number: give another folder")
        if ours not in (field.default, theirs):
            raise UserError(
                f"{field.name} is {ours}, but {where} has {key} {theirs}: leave out {field.name}, or set "
                "model.weights to nothing to start from scratch"
            )
        changes[field.name] = theirs
    return dataclasses.replace(recipe, **changes)


def encoder_state(state: Mapping[str, Tensor], names: Names) -> dict[str, Tensor]:
    """The weights of the encoder alone, without the prefix, heads and tables of position ids.

    >>> list(encoder_state({"bert.norm.gamma": torch.ones(2), "cls.bias": torch.ones(1)}, Names("bert.", {})))
    ['norm.weight']
    """
    if any(name.startswith(names.prefix) for name in state):
        state = {name.removeprefix(names.prefix): w for name, w in state.items() if name.startswith(names.prefix)}
    old = {"gamma": "weight", "beta": "bias"}  # names of a layer norm in BERT's first files
    renamed = {}
    for name, weight in state.items():
        module, _, leaf = name.rpartition(".")
        if leaf not in ("position_ids", "token_type_ids"):
            renamed[f"{module}.{old.get(leaf, leaf)}" if module else leaf] = weight
    return renamed


def load(module: nn.Module, state: Mapping[str, Tensor], names: Names, where: object) -> None:
    """Load an encoder's state into a module; raise a UserError for missing, unexpected or misshapen weights."""
    if measured():  # shapes are checked when the model is built for a run
        return
    loaded: dict[str, Tensor] = {}
    used: set[str] = set()
    for ours, own in module.state_dict().items():
        theirs = names.theirs(ours)
        assert theirs, f"no published name for {ours}"
        used.update(theirs)
        missing = [name for name in theirs if name not in state]
        if missing:
            if ours.startswith(names.optional):
                loaded[ours] = own
                continue
            raise UserError(f"{where} has no weight {missing[0]}, which needs the shape {_part(own, len(theirs))}")
        for name in theirs:
            if tuple(state[name].shape) != _part(own, len(theirs)):
                found, needed = tuple(state[name].shape), _part(own, len(theirs))
                raise UserError(f"{where}: {name} has the shape {found}, but this model needs {needed}")
            if not state[name].isfinite().all():
                raise UserError(f"{where}: {name} has values that are not finite: give intact weights")
        parts = [state[name].to(own.dtype) for name in theirs]
        loaded[ours] = parts[0] if len(parts) == 1 else torch.cat(parts)
    optional = tuple(name for ours in names.optional for name in names.rules[ours])
    unexpected = [name for name in state if name not in used and not (optional and name.startswith(optional))]
    if unexpected:
        shape = tuple(state[unexpected[0]].shape)
        raise UserError(f"{where} has a weight {unexpected[0]} of shape {shape}, which this model does not have")
    module.load_state_dict(loaded)


def _part(own: Tensor, parts: int) -> tuple[int, ...]:
    return (own.shape[0] // parts, *own.shape[1:]) if parts > 1 else tuple(own.shape)


def save(
    folder: Path, module: nn.Module, names: Names, config: Mapping[str, Any], vocabulary: Path | None = None
) -> None:
    """Write a module in the published format, as config.json and safetensors."""
    state = {}
    for ours, weight in module.state_dict().items():
        theirs = names.theirs(ours)
        if not theirs:
            shape = tuple(weight.shape)
            raise UserError(f"{folder}: the published format has no name for {ours} of shape {shape}: remove it first")
        for name, part in zip(theirs, weight.detach().cpu().chunk(len(theirs)), strict=True):
            # The parts of one projection share memory, and on a GPU may not be contiguous: safetensors refuses both.
            state[name] = part.clone(memory_format=torch.contiguous_format)
    write(folder, state, config)
    if vocabulary is not None and vocabulary != folder / VOCABULARY:
        shutil.copyfile(vocabulary, folder / VOCABULARY)


def write(folder: Path, state: dict[str, Tensor], config: Mapping[str, Any]) -> None:
    """Write tensors and their configuration into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f"{_WHOLE}.partial"
    save_file(state, partial, metadata={"format": "pt"})
    partial.replace(folder / _WHOLE)
    (folder / "config.json").write_text(json.dumps(dict(config), indent=2, sort_keys=True) + "\n", encoding="utf-8")


def vocabulary_file(folder: Path) -> Path | None:
    """The file of a folder's word pieces or tokenizer, if there is one."""
    limits = bounds(folder)
    for path in (folder / VOCABULARY, folder / TOKENIZER):
        limits.check(path)
        if path.is_file():
            return path
    return None


def source(name: str, setting: str) -> str:
    """A hash of the weights that a setting names; empty if it names none."""
    return digest(locate(name, setting)) if name else ""


def digest(folder: Path, *more: str) -> str:
    """A hash of everything that is read from a folder of weights: of the files' content, not their location.

    Besides the usual ones, the files named in `more` are read.
    """
    whole = hashlib.sha256()
    tokenizer = vocabulary_file(folder)
    names = dict.fromkeys([*_KEPT, *([] if tokenizer is None else [tokenizer.name]), *more])
    beside = [path for path in (folder / name for name in names) if path.is_file()]
    limits = bounds(folder)
    for path in (*beside, *weight_files(folder)):
        limits.check(path)
        status = path.stat()
        whole.update(path.name.encode("utf-8", "surrogateescape"))
        whole.update(_file_digest(path, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    return whole.hexdigest()[:16]


@lru_cache(maxsize=16)
def _file_digest(path: Path, size: int, *changed: int) -> bytes:
    with path.open("rb") as file:  # the size and times of change make a changed file be read again
        return hashlib.file_digest(file, "sha256").digest()
