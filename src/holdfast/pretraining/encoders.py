"""Pre-training of encoders on the synthetic world: masked words, and which of two sentences matches a picture.

It gives offline users an encoder that has seen pictures and read text before the first task. The two sentences differ
in one attribute, so that neither the words nor the picture alone give the answer away.
"""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import numpy as np
import torch
from torch import Tensor

import holdfast.world
from holdfast import checksums, registry
from holdfast.data.order import mix
from holdfast.data.table import Data, Shared, Table
from holdfast.data.text import NEUTRAL_NAMES, Tokenizer
from holdfast.data.text import train as train_pieces
from holdfast.engine.checkpoint import Checkpoints, write
from holdfast.engine.files import write_json
from holdfast.engine.learner import Learner
from holdfast.engine.loop import train
from holdfast.engine.watch import Watch
from holdfast.errors import Stopped, UserError
from holdfast.processes import working
from holdfast.tasks import Choose, MaskedPhrase
from holdfast.types import (
    Array,
    Between,
    EvaluationSet,
    Head,
    Inputs,
    Part,
    Protocol,
    Score,
    Stage,
    Stream,
    Task,
    Training,
)
from holdfast.version import __version__
from holdfast.world.pairs import Lesson, lesson, texts

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")

SEED = 0x9E7
"""The seed of the scenes, which no dataset uses."""
PLACES = 4
"""The maximum number of masked words in a sentence."""
SHARE = 0.15
"""The share of a sentence's words that are masked; at least one word is."""
HELD_OUT = 20
"""One of every 20 scenes is held out."""
MATCHING = "matching.safetensors"
"""The file of the head that judges which of two sentences is true, beside the encoder's own files."""
READ = 2000
"""The number of scenes whose text determines the word pieces, whichever model learns from them."""


@dataclass(frozen=True)
class Pretraining:
    """The settings of a pre-training: data, model and length. A text encoder learns masked words only."""

    model: Literal["vilt-tiny", "bert-tiny"] = "vilt-tiny"
    scenes: Annotated[int, Between(40)] = 2000
    """The number of pictures; a twentieth more is held out."""
    epochs: Annotated[int, Between(1)] = 10
    batch_size: Annotated[int, Between(1)] = 256
    learning_rate: Annotated[float, Between(0)] = 1e-3
    length: Annotated[int, Between(8)] = 24
    """The maximum length of a sentence, in word pieces."""
    pieces: Annotated[int, Between(64)] = 3000
    """The maximum number of word pieces."""
    seed: Annotated[int, Between(0)] = 0

    def command(self) -> str:
        """The command that starts this pre-training.

        >>> Pretraining(scenes=500).command()
        'holdfast pretrain vilt-tiny --out FOLDER --scenes 500'
        """
        words = ["holdfast", "pretrain", self.model, "--out", "FOLDER"]
        for name, value in asdict(self).items():
            if name != "model" and value != getattr(Pretraining, name):
                words += [f"--{name.replace('_', '-')}", str(value)]
        return shlex.join(words)


@dataclass(frozen=True)
class Lessons(Task):
    """Complete a sentence, and distinguish a true sentence from a near miss, for the same picture."""

    words: MaskedPhrase
    matching: Choose
    name: str = "lessons"
    head: str = "words"
    outputs: int = 0
    chance: float = 0.0

    @property
    def reads(self) -> Head:
        """The head for words; the matching task has its own."""
        return self.words.reads

    def forward(self, model: Callable[[Mapping[str, Tensor], str], Tensor], part: Part) -> Tensor:
        """The words' logits and the two sentences' scores, concatenated."""
        given = part.inputs
        judged = {"image": given["image"], "text": given["pair_text"], "text_length": given["pair_text_length"]}
        read = {name: column for name, column in given.items() if not name.startswith("pair_")}
        return torch.cat([model(read, "words").flatten(1), model(judged, "matching")], dim=1)

    def losses(self, output: Tensor, part: Part) -> Tensor:
        """The sum of both losses."""
        words, scores = output[:, :-2].reshape(len(output), PLACES, -1), output[:, -2:]
        first = torch.zeros(len(scores), dtype=torch.int64, device=scores.device)
        judged = Part("matching", {}, first)
        return self.words.losses(words, part) + self.matching.losses(scores, judged)

    def predictions(self, output: Tensor, part: Part) -> Tensor:
        """Not evaluated: its two halves are."""
        raise AssertionError

    def score(self, predictions: Array, targets: Array) -> float:
        """Not evaluated: its two halves are."""
        raise AssertionError


class KeptScores:
    """The scores of one run, kept in memory."""

    def __init__(self) -> None:
        self.found: list[Score] = []

    def add(self, scores: Sequence[tuple[Score, Array]]) -> None:
        """Keep scores."""
        self.found += [score for score, _ in scores]

    def size(self) -> int:
        """The number of scores."""
        return len(self.found)

    def cut(self, size: int) -> None:
        """Discard all but the first `size` scores."""
        del self.found[size:]

    def damage(self, size: int) -> str:
        """Always empty."""
        return ""


def pretrain(
    settings: Pretraining,
    out: Path,
    device: str = "cpu",
    watch: Watch | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, float]:
    """Pre-train a model, save it in the format of the published ones, and return its scores on held-out scenes.

    An interrupted call continues from its last checkpoint in `out`.
    """
    claim(out, settings)
    watch = watch or Watch()
    recipe = registry.MODELS[settings.model].load()(weights="")
    pieces = world_pieces(settings.pieces, watch)
    count, side = len(pieces.vocabulary), recipe.wants().side
    words = MaskedPhrase("words", "words", count, 0.0)
    held = settings.scenes // HELD_OUT
    if settings.model == "bert-tiny":
        read = list(on_all_cores(partial(texts, SEED), settings.scenes + held, watch, progress))
        parts = [[text for scene in part for text in scene] for part in (read[held:], read[:held])]
        learned, held_out = [[_words(part, None, pieces, settings)] for part in parts]
        tasks: dict[str, Task] = {"words": words}
        inputs = Inputs(text=settings.length, vocabulary=count)
    else:
        lessons = list(on_all_cores(partial(lesson, SEED, side=side), settings.scenes + held, watch, progress))
        lessons += [each.mirrored() for each in lessons[held:]]
        learned = [_together(*_from_lessons(lessons[held:], pieces, settings))]
        held_out = [*_from_lessons(lessons[:held], pieces, settings)]
        matching = Choose("matching", "matching", 2, 0.5)
        tasks = {"lessons": Lessons(words, matching), "matching": matching, "words": words}
        inputs = Inputs(image=(3, side, side), text=settings.length, vocabulary=count)
    data, place = Data([*learned, *held_out]), torch.device(device)
    stage = Stage("pretraining", np.concatenate([data.ids(i) for i in range(len(learned))]), _training(settings))
    sets = tuple(EvaluationSet(t.task, t.task, "test", data.ids(i)) for i, t in enumerate(held_out, start=len(learned)))
    torch.default_generator.manual_seed(mix(settings.seed, 0x1417))
    model = recipe.build(inputs, {task.head: task.reads for task in tasks.values()})
    data = data.to(place) if place.type == "cuda" else data
    if place.type == "cuda":
        torch.set_float32_matmul_precision("high")
    compiled = place.type == "cuda"
    learner, log = Learner(model, data, tasks, seed=settings.seed, device=place, compiled=compiled), KeptScores()
    checkpoints = Checkpoints(out / "checkpoints")
    train(learner, Stream((stage,)), [], Protocol(sets), log=log, checkpoints=checkpoints, watch=watch)
    found = {score.name: score.score for score in log.found}
    pieces.save(out / "vocab.txt")
    model.encoder.save(out)
    if "matching" in model.heads:  # so that anyone can verify its accuracy
        write(out / MATCHING, model.heads["matching"].state_dict())
    made = {"command": settings.command(), "settings": asdict(settings), "held_out": found}
    write_json(out / "made.json", made | {"holdfast": __version__, "generator": generator_hash()})
    checkpoints.clear()
    (out / "begun.json").unlink()
    return found


def claim(out: Path, settings: DataclassInstance) -> None:
    """Claim a folder for this pre-training; raise a UserError if it holds anything else."""
    if (out / "model.safetensors").exists():
        raise UserError(f"{out} already holds a model: choose another folder")
    mine, note = {**asdict(settings), "generator": generator_hash()}, out / "begun.json"
    if not note.exists():
        out.mkdir(parents=True, exist_ok=True)
        write_json(note, mine)
    elif (begun := checksums.read_json(note)) != mine:
        differs = next(name for name in mine if begun.get(name) != mine[name])
        raise UserError(
            f"{out} holds a pre-training that was started with {differs}={begun.get(differs)}, not {mine[differs]}: "
            "use the same settings to continue it, or choose another folder"
        )


def generator_hash() -> str:
    """A hash of the source of the synthetic world, which generated the pictures and the text."""
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(Path(holdfast.world.__path__[0]).rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _training(settings: Pretraining) -> Training:
    return Training(
        epochs=settings.epochs,
        batch_size=settings.batch_size,
        learning_rate=settings.learning_rate,
        weight_decay=0.01,
        schedule="cosine",
        warmup=0.05,
        augment="shift" if settings.model == "vilt-tiny" else "none",  # no flip: captions say left and right
    )


def world_pieces(size: int, watch: Watch | None = None) -> Tokenizer:
    """The word pieces of the synthetic world's language."""
    read = [text for scene in on_all_cores(partial(texts, SEED), READ, watch or Watch()) for text in scene]
    return train_pieces([*read, " ".join(NEUTRAL_NAMES), "the gray"], size)


def on_all_cores(
    make: Callable[[int], T],
    count: int,
    watch: Watch,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Iterator[T]:
    """Apply a function to each number, in order, on all cores; stop early if asked to."""
    with working(os.cpu_count() or 1, "a process that generates the lessons died: run the command again") as pool:
        numbers = [range(start, min(start + 64, count)) for start in range(0, count, 64)]
        for some, future in [(some, pool.submit(_made, make, some)) for some in numbers]:
            yield from future.result()
            if watch.stopping:
                raise Stopped
            progress(some.stop, count)


def _made(make: Callable[[int], T], numbers: range) -> list[T]:
    return [make(number) for number in numbers]


def _from_lessons(lessons: Sequence[Lesson], pieces: Tokenizer, settings: Pretraining) -> tuple[Table, Table]:
    """Two tables over the same pictures: sentences to complete, and pairs of sentences, the first of which is true."""
    pixels = torch.from_numpy(np.stack([each.image.transpose(2, 0, 1) for each in lessons]))
    sentences = [
        (number, text, pair)
        for number, each in enumerate(lessons)
        for text, pair in zip((*each.captions, *(m.true for m in each.matches)), cycle(each.matches), strict=False)
    ]
    image = Shared(pixels, torch.tensor([number for number, _, _ in sentences]))
    numbers, lengths = _encode([text for _, _, pair in sentences for text in (pair.true, pair.false)], pieces, settings)
    pairs = _text(numbers.reshape(len(sentences), 2, -1), lengths.reshape(len(sentences), 2))
    matching = Table("matching", {"image": image, **pairs}, torch.zeros(len(sentences), dtype=torch.int64))
    return _words([text for _, text, _ in sentences], image, pieces, settings), matching


def _together(words: Table, matching: Table) -> Table:
    """Both as one table, so that every step has both, in the same shapes."""
    pair = {f"pair_{name}": column for name, column in matching.inputs.items() if name != "image"}
    return Table("lessons", {**words.inputs, **pair}, words.targets)


def _words(sentences: Sequence[str], image: Shared | None, pieces: Tokenizer, settings: Pretraining) -> Table:
    """Sentences with some words hidden: all equally likely, at least one word and at most a few."""
    numbers, lengths = _encode(sentences, pieces, settings)
    random = np.random.default_rng([settings.seed, len(sentences)])
    order = random.random(numbers.shape)
    places = np.arange(settings.length)
    order[(places == 0) | (places >= lengths[:, None] - 1)] = 2.0  # the marks at both ends, and padding
    wanted = np.clip(np.rint(SHARE * (lengths - 2) + random.random(len(lengths)) - 0.5), 1, PLACES)
    masked = np.argsort(order, axis=1)[:, :PLACES].astype(np.int64)
    hidden = np.arange(PLACES) < wanted[:, None]
    targets = np.where(hidden, np.take_along_axis(numbers, masked, 1), -100)
    masked = np.where(hidden, masked, -1)
    rows, columns = np.nonzero(hidden)
    numbers[rows, masked[rows, columns]] = pieces.vocabulary.index("[MASK]")
    inputs = {**_text(numbers, lengths), "masked": torch.from_numpy(masked)}
    return Table("words", inputs if image is None else {"image": image, **inputs}, torch.from_numpy(targets))


def _encode(sentences: Sequence[str], pieces: Tokenizer, settings: Pretraining) -> tuple[Array, Array]:
    """The word pieces of many sentences, computed once for each distinct one: short sentences recur often."""
    kinds = {text: number for number, text in enumerate(dict.fromkeys(sentences))}
    numbers, lengths = pieces.encode(list(kinds), settings.length)
    rows = np.fromiter((kinds[text] for text in sentences), np.int64, len(sentences))
    return numbers[rows], lengths[rows]


def _text(numbers: Array, lengths: Array) -> dict[str, Tensor]:
    return {"text": torch.from_numpy(numbers), "text_length": torch.from_numpy(lengths)}
