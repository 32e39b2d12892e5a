"""The names of everything that can be run, built in or external. Looking up a name imports only the thing itself.

`find(word, kind)` is the only place where a word is resolved. A word is

| word                  | for example                    | what it names                                       |
|-----------------------|--------------------------------|-----------------------------------------------------|
| a name                | `replay`, `er`, `viscoll:coco` | something built in, or announced by a package       |
| `path/to/file.py:Name`| `mine.py:StayNear`             | a class (of datasets: an object) in a file          |
| `package.module:Name` | `photos.readers:PHOTOS`        | the same in a module that Python can import         |
| `hf:FOLDER`, `hf:NAME`| `hf:openai/clip-vit-base-patch32` | a model in Hugging Face's format                 |

A package announces its parts by entry points of the groups in `SLOTS`. A built-in name always means the built-in part,
and a name that two packages announce means neither: such parts are listed, and found, as `package.module:Name`.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from holdfast.errors import UserError, nearest
from holdfast.usercode import load

BUILT_IN = "built-in"


@dataclass(frozen=True)
class Entry:
    """The place of a named part, its purpose, and its other names in papers."""

    place: str
    """`package.module:Name` or `path/to/file.py:Name`; empty for plain fine-tuning, which needs no code."""
    summary: str
    aliases: tuple[str, ...] = ()
    rows: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Rows of the papers' tables: this part with one setting. A K in a name and its value is any whole number."""
    within: bool = False
    """Whether runs of this benchmark are only shown in its family's section, never as an experiment."""
    name: str = ""
    """Its name in settings, tables and records: the registered name, or the name of its class."""
    kind: str = ""
    """Its kind: a key of `SLOTS`. It is checked for external parts."""
    origin: str = BUILT_IN
    """Its origin: built-in, `package NAME VERSION`, or the path of its file."""
    given: Mapping[str, str] = field(default_factory=dict)
    """The settings that the word implies: for a model, the location of its weights."""

    @property
    def module(self) -> str:
        """The module that defines it."""
        return self.place.partition(":")[0]

    @property
    def package(self) -> str:
        """The package that contains it."""
        return self.module.rpartition(".")[0]

    def load(self) -> Any:
        """The part itself; None for plain fine-tuning."""
        if not self.place:
            return None
        name = self.place.rpartition(":")[2]
        if self.origin == BUILT_IN:
            return getattr(self.imported(), name)
        found = vars(self.imported()).get(name)
        if self.kind == "model" and (wrapped := importlib.import_module("holdfast.models.module").wrapped(found)):
            return wrapped
        return _checked(self.imported(), name, self)

    def imported(self) -> ModuleType:
        """The module that defines it, imported or, from a file, executed."""
        place = self.place.rpartition(":")[0]
        if place.endswith(".py"):
            return load(Path(place)).module
        try:
            return importlib.import_module(place)
        except Exception as error:
            if self.origin == BUILT_IN:
                raise
            raise UserError(
                f"the {self.kind} {self.name!r} of {self.origin} cannot be imported: {type(error).__name__}: {error}"
            ) from error


BENCHMARKS: dict[str, Entry] = {
    "patterns": Entry(
        "holdfast.benchmarks.patterns.benchmark:Patterns", "ten procedural classes: no download, seconds to run"
    ),
    "folder": Entry("holdfast.benchmarks.folder.benchmark:FolderData", "your own pictures, in a folder for each class"),
    "dataset": Entry("holdfast.benchmarks.dataset.benchmark:ReadData", "the classes of any dataset that has a reader"),
    "table": Entry("holdfast.benchmarks.table.benchmark:TableData", "your own rows of pictures, texts or both"),
    "cfst:cgqa": Entry(
        "holdfast.benchmarks.cfst.benchmark:Cgqa", "pairs of GQA's concepts in stages, then tests of composition"
    ),
    "cfst:cobj": Entry(
        "holdfast.benchmarks.cfst.benchmark:Cobj", "pairs of Objects365's things in stages, then tests of composition"
    ),
    "cfst:cpin": Entry(
        "holdfast.benchmarks.cfst.benchmark:Cpin",
        "groups of animals' parts in stages, then few-shot tests of composition",
    ),
    "cfst:cifar100": Entry("holdfast.benchmarks.cfst.benchmark:Cifar100", "CIFAR-100 in ten stages of ten classes"),
    "climb": Entry(
        "holdfast.benchmarks.climb.benchmark:Climb",
        "VQAv2, NLVR2, SNLI-VE and VCR one after another, then low-shot transfer",
    ),
    "viscoll:coco": Entry(
        "holdfast.benchmarks.viscoll.benchmark:CocoShift",
        "phrases of COCO's captions from a shifting stream without boundaries",
        ("viscoll", "coco-shift"),
    ),
    "viscoll:flickr": Entry(
        "holdfast.benchmarks.viscoll.benchmark:FlickrShift",
        "phrases of Flickr30k's captions from a shifting stream, with up to a thousand nouns",
        ("flickr-shift",),
    ),
    "viscoll:flickr8k": Entry(
        "holdfast.benchmarks.viscoll.benchmark:Flickr8kShift", "phrases of Flickr8k's photographs from such a stream"
    ),
    "clvqa": Entry(
        "holdfast.benchmarks.clvqa.benchmark:Clvqa",
        "Wh- and yes/no-questions on CLEVR in either order, with one output layer",
        ("greco",),
    ),
    "climb:lowshot": Entry(
        "holdfast.benchmarks.climb.lowshot:LowShot",
        "one task of CLiMB, with pictures, text or both, learned from few examples",
        within=True,
    ),
}

_DATASETS = {
    "vqav2": "questions about pictures, each with ten people's answers",
    "nlvr2": "statements that are true or false of two pictures",
    "snli_ve": "hypotheses that a picture entails, leaves open or contradicts",
    "vcr": "questions about people in a scene, with four answers and four reasons",
    "imdb": "film reviews, good or bad",
    "sst2": "sentences from reviews, good or bad",
    "hellaswag": "how a text continues: one of four endings",
    "commonsenseqa": "questions of common sense, with five answers",
    "piqa": "how to reach a goal: one of two solutions",
    "imagenet": "pictures of a thousand classes",
    "inaturalist2019": "pictures of 1,010 species",
    "places365": "pictures of 365 kinds of place",
    "coco": "pictures with objects and captions, under the names of 2014 and 2017",
    "flickr8k": "photographs with five captions each",
    "flickr30k_entities": "captions whose phrases are tied to boxes",
    "nikolaus": "COCO without 24 pairs of words, for compositional tests",
    "clevr": "questions about blocks, with the programs that answer them",
    "gqa": "scene graphs of pictures, and questions",
    "objects365": "pictures with objects of 365 classes",
    "partimagenet": "animals and vehicles with their parts",
    "cifar100": "small pictures of a hundred classes",
    "region_features": "features of boxes, as HDF5 and as TSV",
    "cgqa": "CFST's published pairs of concepts, from GQA",
    "cobj": "CFST's published pairs of objects, from Objects365",
    "cpin": "CFST's parts of things, from PartImageNet, as its authors lay them out",
}

DATASETS: dict[str, Entry] = {n: Entry(f"holdfast.datasets.{n}:DATASET", told) for n, told in _DATASETS.items()}

WRITERS: dict[str, Entry] = {n: Entry(f"holdfast.world.writers.{n}:write", told) for n, told in _DATASETS.items()}

MODELS: dict[str, Entry] = {
    "perceptron": Entry("holdfast.models.perceptron:Perceptron", "fully connected layers over pixels"),
    "vilt": Entry("holdfast.models.vilt:Vilt", "text and image patches in one sequence, 12 x 768"),
    "vilt-tiny": Entry("holdfast.models.vilt:TinyVilt", "the same for two CPU cores, 3 x 64"),
    "bert": Entry("holdfast.models.bert:Bert", "text alone, 12 x 768"),
    "bert-tiny": Entry("holdfast.models.bert:TinyBert", "the same for two CPU cores"),
    "vault": Entry("holdfast.models.vault:Vault", "ViLT whose words come from a frozen BERT"),
    "vault-tiny": Entry("holdfast.models.vault:TinyVault", "the same for two CPU cores"),
    "uniter": Entry("holdfast.models.uniter:Uniter", "text and region features in one sequence, 12 x 768"),
    "uniter-tiny": Entry("holdfast.models.uniter:TinyUniter", "the same for two CPU cores"),
    "vlbert": Entry("holdfast.models.vlbert:VLBert", "VisCOLL's VL-BERT over region features, 6 x 384"),
    "vlbert-tiny": Entry("holdfast.models.vlbert:TinyVLBert", "the same for two CPU cores"),
    "lxmert": Entry("holdfast.models.lxmert:Lxmert", "text and regions that attend to each other, 9/5/5 x 384"),
    "lxmert-tiny": Entry("holdfast.models.lxmert:TinyLxmert", "the same for two CPU cores"),
    "san": Entry("holdfast.models.san:San", "LSTM, feature map and two stacked attentions"),
    "san-tiny": Entry("holdfast.models.san:TinySan", "the same over small pictures, for two CPU cores"),
    "resnet18": Entry("holdfast.models.resnet:ResNet18", "CFST's ResNet-18 and its CIFAR variant"),
    "resnet18-tiny": Entry("holdfast.models.resnet:TinyResNet18", "a slim one for two CPU cores"),
    "efficientnet-lite0": Entry("holdfast.models.efficientnet:EfficientNetLite0", "for photographs, 1280 wide"),
    "vit": Entry("holdfast.models.vit:Vit", "CFST's ViT, 9 x 384"),
    "modular-resnet18": Entry("holdfast.models.modular:ModularResNet18", "ResNet-18 of modules, for rpsnet and mntdp"),
    "modular-vit": Entry("holdfast.models.modular:ModularVit", "ViT of modules, for rpsnet and mntdp"),
    "modular-perceptron": Entry(
        "holdfast.models.modular:ModularPerceptron", "a perceptron of modules, the smallest modular network"
    ),
    "vit-tiny": Entry("holdfast.models.vit:TinyVit", "the same for two CPU cores"),
    "dual": Entry("holdfast.models.dual:Dual", "an image tower and a text tower in one space, as in CLIP"),
    "dual-tiny": Entry("holdfast.models.dual:TinyDual", "the same for two CPU cores"),
    "hf": Entry("holdfast.models.huggingface:HuggingFace", "any encoder in Hugging Face's format: hf:FOLDER, hf:NAME"),
}

ALGORITHMS: dict[str, Entry] = {
    "frozen-encoder": Entry("holdfast.algorithms.frozen:FrozenEncoder", "only the heads learn"),
    "frozen-bottom": Entry(
        "holdfast.algorithms.frozen:FrozenBottom",
        "the embeddings and the lowest k layers are frozen",
        rows={"frozen-bottom-K": ("k", "K")},
    ),
    "adapters": Entry(
        "holdfast.algorithms.adapters:Adapters", "small bottlenecks for each head; the encoder is frozen"
    ),
    "lora": Entry("holdfast.algorithms.lora:LowRank", "low-rank additions for each head; the encoder is frozen"),
    "adapter-library": Entry(
        "holdfast.algorithms.adapter_library:AdapterLibrary", "adapters for each stage, chosen for each example"
    ),
    "replay": Entry(
        "holdfast.algorithms.replay:Replay",
        "kept examples join each batch, or get their own step",
        ("er",),
        {"balanced-sqrt": ("memory", "balanced-sqrt"), "balanced-forget": ("memory", "balanced-forget")},
    ),
    "rehearsal": Entry(
        "holdfast.algorithms.rehearsal:Rehearsal", "examples of earlier stages are mixed into the next stage's data"
    ),
    "derpp": Entry(
        "holdfast.algorithms.derpp:DarkReplay", "kept examples are learned again, by target and by old logits"
    ),
    "er-ace": Entry(
        "holdfast.algorithms.er_ace:AsymmetricReplay", "replay; new examples compete with their own classes"
    ),
    "gdumb": Entry("holdfast.algorithms.gdumb:GDumb", "trains from scratch on a balanced memory at each stage"),
    "ewc": Entry("holdfast.algorithms.ewc:EWC", "anchors weights by their Fisher information on past stages"),
    "si": Entry("holdfast.algorithms.si:SI", "anchors weights whose movement lowered past losses"),
    "mas": Entry("holdfast.algorithms.mas:MAS", "anchors weights to which the outputs are sensitive"),
    "lwf": Entry("holdfast.algorithms.lwf:LwF", "the last stage's model teaches the new one on the new data"),
    "agem": Entry(
        "holdfast.algorithms.agem:AGem", "steps that would raise the loss of kept examples are projected", ("a-gem",)
    ),
    "gem": Entry("holdfast.algorithms.gem:Gem", "steps are projected so that no past stage's loss rises"),
    "mir": Entry(
        "holdfast.algorithms.mir:Mir",
        "replays the kept examples that a step would harm most",
        ("er-mir",),
        {"mir-max": ("by", "max"), "er-mir-max": ("by", "max")},
    ),
    "rpsnet": Entry("holdfast.algorithms.rpsnet:RpsNet", "the best of several random paths of modules, with replay"),
    "mntdp": Entry(
        "holdfast.algorithms.mntdp:Mntdp", "a path of frozen modules for each task, grown from the top down"
    ),
}

PLAIN: dict[str, Entry] = {
    "finetune": Entry("", "plain fine-tuning: no algorithm at all", ("seqft", "naive", "vanilla")),
}

TRANSFORMS: dict[str, Entry] = {
    "joint": Entry(
        "holdfast.data.streams:joint",
        "all stages at once, in random order: the usual upper bound",
        ("multitask", "offline-one-pass", "iid-online"),
    ),
    "offline": Entry("holdfast.data.streams:offline", "joint training for ten times as many epochs"),
    "cumulative": Entry("holdfast.data.streams:cumulative", "each stage with the data of all earlier ones"),
}


MEMORIES: dict[str, Entry] = {
    "reservoir": Entry("holdfast.memory:Reservoir", "a uniform sample of all examples seen"),
    "per-task": Entry("holdfast.memory:PerTask", "a number, or a share, of each finished stage's examples"),
    "experience-balanced": Entry("holdfast.memory:ExperienceBalanced", "an equal share for each finished stage"),
    "class-balanced": Entry("holdfast.memory:ClassBalanced", "as equal a number of each class or task as possible"),
    "balanced-sqrt": Entry("holdfast.memory:TargetBalanced", "groups by the square root of their frequency"),
    "balanced-forget": Entry("holdfast.memory:TargetBalanced", "groups by how much of them was forgotten"),
}
"""The memories that `replay.memory` names."""


@dataclass(frozen=True)
class Slot:
    """A slot of a run that takes a name: the tables of built-in parts, and the requirements for external ones."""

    tables: tuple[Mapping[str, Entry], ...]
    base: str
    """The class that it must extend or, for datasets, be an instance of."""
    group: str
    """The group of entry points for packages."""
    settings: bool = True
    """Whether it has settings, as the fields of a dataclass."""


SLOTS: dict[str, Slot] = {
    "benchmark": Slot((BENCHMARKS,), "holdfast.benchmarks.base:Benchmark", "holdfast.benchmarks"),
    "algorithm": Slot((PLAIN, ALGORITHMS, TRANSFORMS), "holdfast.algorithms.base:Algorithm", "holdfast.algorithms"),
    "model": Slot((MODELS,), "holdfast.models.base:Model", "holdfast.models"),
    "dataset": Slot((DATASETS,), "holdfast.datasets.base:Dataset", "holdfast.datasets", settings=False),
    "memory": Slot((MEMORIES,), "holdfast.memory.base:Memory", "holdfast.memories", settings=False),
    "task": Slot((), "holdfast.types:Task", "holdfast.tasks", settings=False),
}


def find(word: str, kind: str) -> Entry:
    """The entry for a word; see the table above. Only `Entry.load` imports it.

    >>> find("er", "algorithm").name, find("er", "algorithm").origin
    ('replay', 'built-in')
    >>> find("reply", "algorithm")
    Traceback (most recent call last):
    holdfast.errors.UserError: there is no algorithm 'reply': did you mean replay?
    """
    word = word.strip()
    if kind == "model" and word.startswith("hf:"):
        return replace(MODELS["hf"], name="hf", kind=kind, given={"weights": word.removeprefix("hf:")})
    place, colon, name = word.rpartition(":")
    if word.endswith(".py"):
        raise UserError(f"{word!r} names no {kind}: write it as {word}:Name")
    if place.endswith(".py"):
        if not Path(place).is_file():
            raise UserError(f"there is no file {place!r} with the {kind} {name!r}")
        return _outside(word, kind, place)
    for main, entry in _built_in(kind):
        if _plain(word) in map(_plain, (main, *entry.aliases)):
            return replace(entry, name=main, kind=kind)
    announced = (
        [] if _is_taken(word, kind) else [each for each in _announced(kind) if _plain(each.name) == _plain(word)]
    )
    if len(announced) == 1:
        return announced[0]
    if announced:
        packages = " and ".join(f"{entry.origin} (as {entry.place})" for entry in announced)
        raise UserError(f"the {kind} {word!r} is announced by {packages}: say which one, as {announced[0].place}")
    if colon and _is_module(place):
        return _outside(word, kind, _origin(place))
    rows = [row for _, entry in _built_in(kind) for row in entry.rows]
    known = [each for main, entry in entries(kind).items() for each in (main, *entry.aliases)]
    told = f"there is no module {place!r}, and no {kind} {word!r}" if "." in place else f"there is no {kind} {word!r}"
    raise UserError(f"{told}: {nearest(word, [*known, *rows]) if known else f'write it as file.py:{name or word}'}")


def entries(kind: str) -> dict[str, Entry]:
    """All named parts of a kind, by the word that finds them: built-in ones, then those that packages announce.

    >>> list(entries("dataset"))[:2]
    ['vqav2', 'nlvr2']
    """
    found = {main: replace(entry, name=main, kind=kind) for main, entry in _built_in(kind)}
    names = [_plain(entry.name) for entry in _announced(kind)]
    for entry in _announced(kind):
        alone = names.count(_plain(entry.name)) == 1 and not _is_taken(entry.name, kind)
        found[entry.name if alone else entry.place] = entry
    return found


def _is_taken(name: str, kind: str) -> bool:
    """Whether a name is built in, as a part, a row of a paper's table, or a family of benchmarks."""
    plain = _plain(name)
    of_family = kind == "benchmark" and plain.partition(":")[0] in families()
    of_row = kind == "algorithm" and row(plain) != (plain, {})
    return of_family or of_row or any(plain in map(_plain, (main, *e.aliases)) for main, e in _built_in(kind))


def _outside(word: str, kind: str, origin: str) -> Entry:
    """The entry for a class in a file or module, under the name of the class."""
    name = word.rpartition(":")[2]
    if _is_taken(name, kind) and name == _plain(name):
        raise UserError(
            f"{word} has the name of a built-in {kind}, and records could not distinguish the two: rename it"
        )
    return Entry(word, "", name=name, kind=kind, origin=origin)


def _built_in(kind: str) -> Iterator[tuple[str, Entry]]:
    for table in SLOTS[kind].tables:
        yield from table.items()


@cache
def _announced(kind: str) -> tuple[Entry, ...]:
    """The parts that installed packages announce, from their metadata alone: nothing is imported."""
    found = sorted(importlib.metadata.entry_points(group=SLOTS[kind].group), key=lambda each: (each.name, each.value))
    places = [(point.value.partition("[")[0].strip(), point.name, _package(point.dist)) for point in found]
    return tuple(Entry(place, f"from {of}", name=name, kind=kind, origin=of) for place, name, of in places)


def _package(found: importlib.metadata.Distribution | None) -> str:
    return f"package {found.name} {found.version}" if found is not None else "a package"


def _is_module(name: str) -> bool:
    """Whether Python could import it, as far as is known without executing anything."""
    try:
        return importlib.util.find_spec(name.partition(".")[0]) is not None
    except (ImportError, ValueError):  # a name with an empty part; a module without a spec
        return False


def _origin(module: str) -> str:
    """The package of a module; its file if it belongs to none."""
    packages = importlib.metadata.packages_distributions().get(module.partition(".")[0], ())
    if packages:
        return _package(importlib.metadata.distribution(packages[0]))
    spec = importlib.util.find_spec(module.partition(".")[0])
    return spec.origin if spec is not None and spec.origin else module


def _checked(module: ModuleType, name: str, entry: Entry) -> Any:
    """The part of this name in a module, checked against the requirements of its kind."""
    kind, where = SLOTS[entry.kind], entry.place.rpartition(":")[0]
    holder, _, base_name = kind.base.partition(":")
    base = getattr(importlib.import_module(holder), base_name)
    own = {n: thing for n, thing in vars(module).items() if _is_a(thing, base, entry.kind)}
    if module.__name__ != where:  # a file: what it imports is not its own
        own = {n: t for n, t in own.items() if not isinstance(t, type) or t.__module__.split(".")[0] == module.__name__}
    if name not in own:
        wrong = f"has no {entry.kind} {name!r}"
        if name in vars(module) and module.__name__ == where:
            wrong = f"has {name!r}, which does not extend holdfast.{base_name}"
        raise UserError(f"{where} {wrong}: {nearest(name, own)}")
    thing = own[name]
    if isinstance(thing, type):
        if missing := sorted(getattr(thing, "__abstractmethods__", ())):
            raise UserError(f"{where}: {name} does not define {' and '.join(missing)}")
        options = vars(thing).get("__dataclass_params__")
        # Set-ups are cached under the benchmark itself, so it must not change.
        if kind.settings and (options is None or (entry.kind == "benchmark" and not options.frozen)):
            decorator = "@dataclass(frozen=True)" if entry.kind == "benchmark" else "@dataclass"
            raise UserError(f"{where}: {name} must be a dataclass: write {decorator} above it")
    return thing


def _is_a(thing: Any, base: type, kind: str) -> bool:
    if kind == "dataset":
        return isinstance(thing, base)
    return isinstance(thing, type) and issubclass(thing, base) and thing is not base


def families() -> dict[str, str]:
    """The package of each family of benchmarks, which contains everything that belongs to it.

    >>> families()["patterns"]
    'holdfast.benchmarks.patterns'
    """
    return {entry.package.rpartition(".")[2]: entry.package for entry in BENCHMARKS.values()}


def part(benchmark: str, name: str) -> ModuleType | None:
    """A module of a benchmark's folder, by the benchmark's name or its family's; None if there is no such module.

    | module | what the rest of the library uses |
    |---|---|
    | `protocol` | `MEASURES` and `COSTS`: titles, directions, units |
    | `report` | `section(records)`: blocks for reports, in the paper's layout |
    | `commands` | `register(app)`: its own commands; `register_bench(group)`: its speed benchmarks |
    | `building` | `register_build(group)`: `holdfast data build NAME` |
    | `speed` | `CALIBRATION`: runs that calibrate its synthetic data |

    >>> part("patterns", "protocol").MEASURES["final_accuracy"].title
    'final acc.'
    >>> part("patterns", "commands") is None
    True
    """
    entry = BENCHMARKS.get(benchmark)
    package = entry.package if entry else families().get(benchmark)
    if package is None or importlib.util.find_spec(f"{package}.{name}") is None:
        return None
    return importlib.import_module(f"{package}.{name}")


def resolve(name: str, kind: str, *tables: Mapping[str, Entry]) -> str:
    """The registered name behind a name or alias; raises a UserError with the nearest known names.

    >>> resolve("multitask", "algorithm", ALGORITHMS, PLAIN, TRANSFORMS)
    'joint'
    """
    names = {alias: main for table in tables for main, entry in table.items() for alias in (main, *entry.aliases)}
    plain = {alias.replace("_", "-"): main for alias, main in names.items()}
    if (found := plain.get(_plain(name))) is None:
        rows = [row for table in tables for entry in table.values() for row in entry.rows]
        raise UserError(f"there is no {kind} {name!r}: {nearest(name, [*names, *rows])}")
    return found


def row(name: str) -> tuple[str, dict[str, str]]:
    """The algorithm and setting behind a row of a paper's table; other names are returned unchanged.

    >>> row("ER-MIR-max"), row("frozen_bottom_9"), row("ewc")
    (('mir', {'mir.by': 'max'}), ('frozen-bottom', {'frozen-bottom.k': '9'}), ('ewc', {}))
    """
    for main, entry in ALGORITHMS.items():
        for pattern, (setting, value) in entry.rows.items():
            if found := re.fullmatch(pattern.replace("K", r"(\d+)"), _plain(name)):
                return main, {f"{main}.{setting}": found[1] if found.groups() else value}
    return name, {}


def _plain(name: str) -> str:
    return name.strip().lower().replace("_", "-")
