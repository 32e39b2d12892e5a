"""The alignment of an image tower and a text tower on captions: `holdfast pretrain dual`.

The captions are those of a dataset whose examples have them as choices (Flickr8k), or of the synthetic world: scenes
with captions, and single things with their names. The outputs of frozen towers are computed once, and kept beside the
checkpoints or wherever the caller chooses.
"""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch

from holdfast import registry
from holdfast.data.order import mix
from holdfast.data.prepared import prepare
from holdfast.data.table import Data, Table
from holdfast.data.text import Tokenizer
from holdfast.data.text import train as train_pieces
from holdfast.datasets.formats.captions import as_choices
from holdfast.engine.checkpoint import Checkpoints
from holdfast.engine.files import write_json
from holdfast.engine.learner import Learner
from holdfast.engine.loop import train
from holdfast.engine.once import Keep
from holdfast.engine.watch import Watch
from holdfast.errors import UserError
from holdfast.models import dual
from holdfast.models.dual import Dual, DualEncoder
from holdfast.pretraining.encoders import KeptScores, claim, generator_hash, on_all_cores
from holdfast.tasks import Retrieve
from holdfast.tasks.pairs import details
from holdfast.types import Array, Between, EvaluationSet, Example, Inputs, Protocol, Stage, Stream, Training
from holdfast.version import __version__
from holdfast.world.pairs import captioned

SEED = 0xD0A1
"""The seed of the pictures, which no dataset uses."""
HELD_OUT = 0.1
"""The share of synthetic pictures that is held out, in equal parts for validation and for tests."""
EACH = 5
"""The captions of a synthetic picture."""
LONGEST = 64
"""The maximum length of a caption in word pieces, for towers that read longer ones."""
TEST, VALIDATION = "test", "validation"


@dataclass(frozen=True)
class Alignment:
    """The settings of an alignment: the towers, the captions, and the length of training."""

    image: str = "vit-tiny"
    """The image tower, as in the model `dual`: efficientnet-lite0:package, hf:FOLDER."""
    text: str = "bert-tiny"
    """The text tower, as in the model `dual`: bert:FOLDER, hf:FOLDER."""
    data: str = ""
    """The folder of a dataset with captions; empty: the synthetic world."""
    dataset: str = "flickr8k"
    """The reader of the folder."""
    train_towers: bool = False
    """Whether the towers learn; if not, the projections and the temperature alone do."""
    pictures: Annotated[int, Between(100)] = 4000
    """The number of synthetic pictures, of which a tenth is held out."""
    width: Annotated[int, Between(0)] = 64
    """The width of the shared space."""
    pairing: Literal["softmax", "sigmoid"] = "softmax"
    """The loss: CLIP's (softmax) or SigLIP's (sigmoid)."""
    temperature: Annotated[float, Between(1e-3)] = 0.07
    """The initial temperature, by which cosines are divided."""
    bias: float = 0.0
    """The initial bias, which is added to each comparison: -10 for SigLIP's loss."""
    epochs: Annotated[int, Between(1)] = 10
    """How often the captions are seen."""
    batch_size: Annotated[int, Between(2)] = 256
    """The batch size: the pictures that are compared with each other's captions."""
    learning_rate: Annotated[float, Between(0)] = 1e-3
    """The highest learning rate."""
    weight_decay: Annotated[float, Between(0)] = 0.01
    """The weight decay."""
    gallery: Annotated[int, Between(0)] = 0
    """Also test on only the first N pictures of the test split, as a smaller gallery; 0: only on all of them."""
    seed: Annotated[int, Between(0)] = 0
    """The seed."""

    def command(self) -> str:
        """The command that starts this alignment.

        >>> Alignment(width=8, train_towers=True).command()
        'holdfast pretrain dual --out FOLDER --train-towers --width 8'
        """
        words = ["holdfast", "pretrain", "dual", "--out", "FOLDER"]
        for name, value in asdict(self).items():
            if value != getattr(Alignment, name):
                words += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
        return shlex.join(words)


def align(
    settings: Alignment,
    out: Path,
    device: str = "cpu",
    watch: Watch | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    tables: Path | None = None,
    keeping: Callable[[Dual], Keep | None] | None = None,
) -> dict[str, float]:
    """Align two towers, save the model, and return its held-out retrieval.

    An interrupted call continues from its last checkpoint in `out`. Prepared captions are kept in `tables`, and outputs
    of frozen towers where `keeping` says; by default both are in `out`, and are removed at the end.
    """
    claim(out, settings)
    watch = watch or Watch()
    recipe = Dual(settings.image, settings.text, settings.width, settings.temperature, settings.bias)
    if not settings.train_towers and not all(published(word) for word in (settings.image, settings.text)):
        raise UserError(
            f"frozen towers need weights, and {settings.image} or {settings.text} has none: name them, as in "
            "efficientnet-lite0:package and hf:FOLDER, or train the towers (--train-towers)"
        )
    data, pieces, inputs = _read(settings, recipe, tables or out / "tables", watch, progress)
    task = Retrieve("captions", "compare", 0, 0.0, pairing=settings.pairing)
    training = Training(
        epochs=settings.epochs,
        batch_size=settings.batch_size,
        learning_rate=settings.learning_rate,
        weight_decay=settings.weight_decay,
        schedule="cosine",
        warmup=0.05,
    )
    scored = {VALIDATION: data.ids(1), TEST: data.ids(2)}
    if settings.gallery:
        scored[f"{TEST}, first {settings.gallery}"] = data.ids(2)[: settings.gallery]
    sets = tuple(EvaluationSet(name, task.name, "test", ids, details(name)) for name, ids in scored.items())
    torch.default_generator.manual_seed(mix(settings.seed, 0x1417))
    model = recipe.build(inputs, {task.head: task.reads})
    encoder, place = model.encoder, torch.device(device)
    assert isinstance(encoder, DualEncoder)
    own = Keep("", lambda name, title, size: out / "frozen" / name) if keeping is None else keeping(recipe)
    keep = None if settings.train_towers else own
    learner = Learner(model, data, {task.name: task}, seed=settings.seed, device=place, keep=keep)
    algorithms = [] if settings.train_towers else [registry.ALGORITHMS["frozen-towers"].load()()]
    log, checkpoints = KeptScores(), Checkpoints(out / "checkpoints")
    stream = Stream((Stage("alignment", data.ids(0), training),))
    train(learner, stream, algorithms, Protocol(sets), log=log, checkpoints=checkpoints, watch=watch)
    found = {score.name: score.score for score in log.found}
    holds = [name for name in dual.TOWERS if settings.train_towers or not published(getattr(settings, name))]
    dual.save(encoder, out, (settings.image, settings.text), inputs, holds)
    if "text" in holds:
        _save_pieces(pieces, out)
    made = {"command": settings.command(), "settings": asdict(settings), "held_out": found, "holdfast": __version__}
    write_json(out / "made.json", made | ({} if settings.data else {"generator": generator_hash()}))
    checkpoints.clear()
    for folder in ("frozen", "tables"):
        shutil.rmtree(out / folder, ignore_errors=True)
    (out / "begun.json").unlink()
    return found


def published(word: str) -> bool:
    """Whether a tower's name includes the location of its weights."""
    return ":" in word


def _read(
    settings: Alignment, recipe: Dual, folder: Path, watch: Watch, progress: Callable[[int, int], None]
) -> tuple[Data, Tokenizer, Inputs]:
    """Captions with their pictures, for training, validation and tests, as the towers see them."""
    parts = _of_dataset(settings) if settings.data else _of_world(settings, watch, progress)
    wants = recipe.wants()
    side = wants.side or 32
    texts = [text for part in parts for each in part for text in each.choices]
    pieces = Tokenizer.load(wants.vocabulary) if wants.vocabulary else train_pieces(texts, 3000)
    length = min(wants.length or LONGEST, LONGEST, int(pieces.encode(texts, LONGEST)[1].max()))
    tables: list[Table] = []
    for name, part in zip(("train", VALIDATION, TEST), parts, strict=True):
        found = prepare(
            "captions",
            part,
            folder / name,
            target=_nothing,
            image_size=side,
            tokenizer=pieces,
            length=length,
            progress=progress,
        )
        tables.append(found.table)
    return Data(tables), pieces, Inputs((3, side, side), text=length, vocabulary=len(pieces.vocabulary))


def _nothing(examples: Sequence[Example]) -> Array:
    return np.zeros(len(examples), np.int64)


def _of_dataset(settings: Alignment) -> list[list[Example]]:
    dataset = as_choices(registry.find(settings.dataset, "dataset").load())
    parts = []
    for names in (("train",), ("dev", "val", "validation"), ("test",)):
        split = next((name for name in names if name in dataset.splits), None)
        if split is None:
            raise UserError(f"{settings.dataset} has no split {' or '.join(names)}: captions need one")
        parts.append(list(dataset.examples(Path(settings.data), split)))
    return parts


def _of_world(settings: Alignment, watch: Watch, progress: Callable[[int, int], None]) -> list[list[Example]]:
    make = partial(captioned, SEED, side=64, captions_each=EACH)
    found = list(on_all_cores(make, settings.pictures, watch, progress))
    rows = [Example(str(number), None, (each.image,), choices=each.captions) for number, each in enumerate(found)]
    held = max(int(HELD_OUT * len(rows)) // 2, 1)
    return [rows[2 * held :], rows[:held], rows[held : 2 * held]]


def _save_pieces(pieces: Tokenizer, out: Path) -> None:
    if pieces.rules:
        (out / "tokenizer.json").write_text(json.dumps(json.loads(pieces.rules)), encoding="utf-8")
    else:
        pieces.save(out / "vocab.txt")


def shown(found: Mapping[str, float]) -> list[tuple[str, Any]]:
    """The rows of a table of held-out retrieval, in percent."""
    return [(name.replace("/", ", "), f"{100 * value:.1f}") for name, value in found.items()]
