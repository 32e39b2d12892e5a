"""The vocabulary of the library as types: examples, batches, tasks, stages, streams. Frozen, without logic."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import UserError

if TYPE_CHECKING:  # readers, writers and reports use these types without torch
    from torch import Tensor

Ids: TypeAlias = NDArray[np.int64]
"""Numbers of examples within a run's data: the currency of batches and memories, the same on every rank."""

Array: TypeAlias = NDArray[Any]


@dataclass(frozen=True)
class Between:
    """The range of a setting, as in `rate: Annotated[float, Between(0, 1)]`; None leaves a side open."""

    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Example:
    """One record as yielded by a reader: the input, the question, the right answer.

    An image is a file, not yet decoded, or an array (height, width, channels) if the dataset stores arrays. The target
    is a class number, a word, a tuple of class numbers (several labels), or None if the split has no labels. Fields
    that only one dataset has (ten annotators' answers, a program, boxes) are in `extra`, under the official names.
    """

    id: str
    target: int | str | tuple[int, ...] | None = None
    images: tuple[Path | NDArray[np.uint8], ...] = ()
    text: str = ""
    choices: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Inputs:
    """The form in which a model receives a benchmark's examples: the columns that they have.

    `image`: pixels in [0, 255], (rows, 3, height, width), or (rows, images, 3, height, width) if `images` is more than
    one; if `padded`, with `image_size` (rows, [images,] 2), the height and width without padding. `text`: word pieces
    (rows, [choices,] length), with `text_length`, the length without padding, and if there are `pairs`, with
    `text_second`, where the second text of a pair begins. `regions`: features of boxes (rows,
    boxes, width), with `boxes` (rows, boxes, 4), corners as shares of the image's sides, and `region_count`. `grid`: a
    feature map (rows, channels, height, width). `masked`: the positions in the text that are asked for, padded with -1.
    `answer` (rows, length): the tokens that follow the text, padded with -1. `choices` (rows, choices, length): the
    answers among which the likeliest is taken, padded with -1.
    """

    image: tuple[int, int, int] | None = None
    images: int = 1
    padded: bool = False
    text: int = 0
    """The maximum length of a text in word pieces; 0: no text."""
    vocabulary: int = 0
    """The number of word pieces."""
    pairs: bool = False
    """Whether texts are pairs, the second of which is a segment of its own."""
    regions: tuple[int, int] | None = None
    """The maximum number of boxes, and the width of a feature."""
    grid: tuple[int, int, int] | None = None
    answer: int = 0
    """The maximum length of an answer that is written, in tokens; 0: answers are not written."""
    end: int = 0
    """The token that ends an answer."""


@dataclass(frozen=True)
class Wants:
    """A model's preferences for its inputs, for benchmarks that can choose; None leaves the choice to the benchmark."""

    sees: Literal["image", "regions", "grid"] = "image"
    side: int | None = None
    """The side of the images that it was made for."""
    vocabulary: Path | None = None
    """The file of its word pieces, one per line, or its tokenizer.json."""
    length: int | None = None
    """The maximum length of a text that it reads, in word pieces."""
    speaks: Path | None = None
    """The folder with its tokenizer and chat template, if it writes text."""
    template: str = ""
    """How a prompt is written, with {} for the text; empty: by its chat template."""
    image_text: str = ""
    """The text that stands for an image within a prompt; empty if there is none."""


@dataclass(frozen=True)
class Head:
    """What a task needs from a model.

    It is to `classify` the example, `choose` one of its texts, fill in a `phrase`, `compare` images with texts, or
    `generate` text. Only the last has no weights: the model's own output layer is the head.

    A `growing` head knows only the classes that have appeared in some stage so far.
    """

    kind: Literal["classify", "choose", "phrase", "compare", "generate"]
    outputs: int
    images: int = 1
    growing: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """The rows of one task in a batch, as tensors on the learner's device: this rank's share of them.

    `weights` is None if every row counts once; a padding row has weight 0.
    """

    task: str
    inputs: Mapping[str, Tensor]
    targets: Tensor
    weights: Tensor | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """Examples that one step learns from: their ids on all ranks and, once fetched, this rank's tensors."""

    ids: Ids
    parts: tuple[Part, ...] = ()


class Task(ABC):
    """A learning problem. It owns forward, loss, distillation and score; the loop knows none of them.

    Higher scores are better, and lie in [0, 1] if possible; `chance` is the score of guessing. `head` names the model's
    output that the task reads: tasks that share a head share their answers.
    """

    whole_batch: ClassVar[bool] = False
    """Whether the loss of a row depends on the other rows of its batch, as in contrastive training."""

    name: str
    head: str
    outputs: int
    chance: float

    @property
    def reads(self) -> Head:
        """The kind of head that it needs."""
        return Head("classify", self.outputs)

    @abstractmethod
    def forward(self, model: Callable[[Mapping[str, Tensor], str], Tensor], part: Part) -> Tensor:
        """The model's output for the rows of a part: `model(inputs, head)`."""

    def answers(self, model: Callable[[Mapping[str, Tensor], str], Tensor], part: Part) -> Tensor:
        """The output from which predictions are made, in evaluation; override it if it is not that of `forward`."""
        return self.forward(model, part)

    @abstractmethod
    def losses(self, output: Tensor, part: Part) -> Tensor:
        """One loss for each row."""

    def loss(self, output: Tensor, part: Part) -> Tensor:
        """The mean of the losses; override it if the loss has a faster, fused mean."""
        return self.losses(output, part).mean()

    def divergence(self, taught: Tensor, output: Tensor, part: Part, temperature: float, units: Tensor) -> Tensor:
        """The divergence of each row's answer from the one in a teacher's output, `taught`: for distillation.

        `units` are the numbers of the outputs that past stages have taught; the others are not meaningful yet.
        """
        raise cannot_distil(self)

    def units(self, targets: Tensor) -> Tensor | None:
        """The numbers of the outputs that examples with these targets teach, in any order; None: all of them."""
        return None

    @abstractmethod
    def predictions(self, output: Tensor, part: Part) -> Tensor:
        """One prediction for each row, in the form that is scored and stored."""

    @abstractmethod
    def score(self, predictions: Array, targets: Array) -> float:
        """The score of many predictions."""


def cannot_distil(task: Task) -> UserError:
    """The error for a task that does not define how to distil its answers."""
    kind = type(task).__name__
    return UserError(
        f"task {task.name!r} cannot be distilled: {kind} does not define divergence(taught, output, part, temperature, "
        f"units), one number for each row. Add it to {kind}, or choose an algorithm without a teacher"
    )


@dataclass(frozen=True)
class Training:
    """How a stage is trained. The optimiser is new in each stage, for the parameters that are then trainable."""

    epochs: Annotated[int, Between(1)] = 1
    """How often a stage's examples are seen."""
    batch_size: Annotated[int, Between(1)] = 32
    """How many examples a step learns from, over all ranks."""
    accumulate: Annotated[int, Between(1)] = 1
    """In how many pieces a batch is computed, one after another: the same step with less memory."""
    optimiser: Literal["adamw", "adam", "sgd"] = "adamw"
    """The optimiser; it starts afresh in each stage."""
    learning_rate: Annotated[float, Between(0)] = 1e-3
    """The highest learning rate: after the warm-up, and before the schedule lowers it."""
    rates: tuple[str, ...] = ()
    """Learning rates for some of the parameters, as PATTERN=RATE: `encoder.*=1e-5`. The first pattern that matches a
    parameter's name counts; the others have `learning_rate`."""
    weight_decay: Annotated[float, Between(0)] = 0.0
    """The weight decay; biases and normalisation weights do not decay."""
    momentum: Annotated[float, Between(0, 1)] = 0.0
    """The momentum of sgd."""
    betas: tuple[Annotated[float, Between(0, 1)], Annotated[float, Between(0, 1)]] = (0.9, 0.999)
    """The two decay rates of adam and adamw."""
    epsilon: Annotated[float, Between(0)] = 1e-8
    """What adam and adamw add to the denominator."""
    schedule: Literal["constant", "linear", "cosine", "halving"] = "constant"
    """How the learning rate changes over a stage: not at all; down to `lowest_rate`, linearly or along a cosine; or
    halved after each fifth of the stage (halving)."""
    lowest_rate: Annotated[float, Between(0)] = 0.0
    """The learning rate at which a linear or cosine schedule ends."""
    warmup: Annotated[float, Between(0, 1)] = 0.0
    """The share of a stage's steps in which the learning rate rises from 0."""
    shuffle: bool = True
    """Whether each epoch has an order of its own; if not, examples come in the order of the data."""
    augment: Literal["none", "flip", "shift", "crop", "randaugment"] = "none"
    """How training images are changed: mirrored (flip), moved by up to an eighth (shift), both (crop), or RandAugment
    with random erasing (randaugment)."""
    patience: Annotated[int, Between(1)] | None = None
    """Stop a stage after N epochs without a better validation score, and continue from its best weights; none: train
    for all epochs."""


@dataclass(frozen=True)
class Budget:
    """The resources that the training of a run may use, not counting evaluations; None: as much as it needs."""

    flops: Annotated[float, Between(1)] | None = None
    """Floating-point operations."""
    passes: Annotated[float, Between(1)] | None = None
    """Examples passed forward plus examples passed backward."""
    bytes: Annotated[float, Between(1)] | None = None
    """Bytes kept beside the initial weights: examples, statistics, copies of weights, and added weights."""


@dataclass(frozen=True)
class Stage:
    """One stretch of training data, with the validation data that may select among its weights."""

    name: str
    train: Ids
    training: Training
    validation: tuple[EvaluationSet, ...] = ()
    classes: tuple[int, ...] | None = None
    """The classes in its data, for a head that grows; None: all."""


@dataclass(frozen=True)
class EvaluationSet:
    """Examples of one task that are scored together."""

    name: str
    task: str
    split: Literal["validation", "test"]
    ids: Ids
    details: Callable[[Array, Array], Mapping[str, tuple[int, float]]] | None = None
    """Further scores from the same predictions and targets: number of examples and score, by a name with `/`."""


@dataclass(frozen=True)
class Stream:
    """The stages in order, and whether the learner is shown where one ends and the next begins."""

    stages: tuple[Stage, ...]
    boundaries: bool = True


@dataclass(frozen=True)
class Score:
    """One line of a run's score log: a score on an evaluation set after `stage` stages and `step` steps."""

    stage: int
    step: int
    name: str
    split: Literal["validation", "test"]
    count: int
    score: float


@dataclass(frozen=True)
class Protocol:
    """What is evaluated, and when: after each stage, before the first if `initial`, and every `every` steps if set."""

    evaluations: tuple[EvaluationSet, ...]
    initial: bool = False
    every: int | None = None
