"""The learner: the model with its optimiser and data, on its device and ranks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from holdfast.algorithms.base import Algorithm
from holdfast.data.augment import augmented
from holdfast.data.order import mix
from holdfast.data.table import Around, Data
from holdfast.engine.counting import Counter
from holdfast.engine.once import Keep, Once
from holdfast.engine.optimiser import Optimiser
from holdfast.engine.ranks import Averaging, Ranks
from holdfast.engine.stepper import Call, choose
from holdfast.errors import UserError
from holdfast.models.base import Model, Network, shapes
from holdfast.models.normalise import SharesBatch, shared_batch
from holdfast.models.transformer import drops
from holdfast.types import Batch, Ids, Part, Task, Training


class Learner:
    """The model with its optimiser. Every change of the weights in a step goes through this class."""

    def __init__(
        self,
        model: Network,
        data: Data,
        tasks: Mapping[str, Task],
        *,
        seed: int = 0,
        device: str | torch.device = "cpu",
        ranks: Ranks | None = None,
        autocast: torch.dtype | None = None,
        compiled: bool = False,
        settings: Model | None = None,
        keep: Keep | None = None,
    ) -> None:
        self.settings = settings
        """The `Model` from which its network was built."""
        self.device = torch.device(device)
        self.model = model.to(self.device)
        if self.device.type == "cuda":  # the memory layout for which convolutions on feature maps are optimised
            self.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.data = data
        self.tasks = dict(tasks)
        self.seed = seed
        self.ranks = ranks or Ranks()
        if self.ranks.size > 1 and (why := model.encoder.alone()):
            raise UserError(f"several ranks cannot train this model: {why}. Train it on one")
        self.autocast = autocast
        self.stepper = choose(self, compiled)
        self._any_shape = self.device.type == "cpu" and not compiled
        self.once = Once(self, keep) if keep is not None and not compiled else None
        """The outputs of frozen modules, computed once and kept."""
        self.around: Mapping[int, Around] = {}
        """By the number of a table: what currently supplies recorded outputs in place of a batch's inputs."""
        self.route: Call | None = None
        """In evaluation mode, the function that answers in place of the model: see `Algorithm.route`."""
        self.stage = self.epoch = 0
        self.examples_forward = 0
        self.examples_backward = 0
        self.counter = model.counter = Counter()
        self.initial = {name: parameter.numel() for name, parameter in model.named_parameters()}
        """The sizes of the parameters before any algorithm added some."""
        self.moved: dict[str, int] = {}
        """The sizes of the parameters that some fit has trained."""
        self.optimiser: Optimiser
        self._frozen: list[nn.Module] = []
        self._dropouts: list[nn.Module] | None = None
        self.parameters: dict[str, nn.Parameter] = {}
        """The parameters that the optimiser moves, by name: those trainable when the fit began, looked up only then."""
        self._averaging = Averaging(self.ranks, ())
        self.restart(Training(), 1)

    # What is trained

    def trainable(self) -> dict[str, nn.Parameter]:
        """The parameters that are currently trainable, by name."""
        return {name: p for name, p in self.model.named_parameters() if p.requires_grad}

    def added(self) -> dict[str, nn.Parameter]:
        """The parameters that algorithms added to the model, or enlarged, by name."""
        return {n: p for n, p in self.model.named_parameters() if p.numel() > self.initial.get(n, 0)}

    def added_bytes(self) -> int:
        """The size of the weights that algorithms added."""
        return sum((p.numel() - self.initial.get(n, 0)) * p.element_size() for n, p in self.added().items())

    def freeze(self, *modules: nn.Module) -> None:
        """Stop modules from learning; their dropout and running statistics stop as well."""
        for module in modules:
            module.requires_grad_(False)
            self._frozen.append(module)
        self.train_mode()
        self.model_changed()

    def train_mode(self) -> None:
        """Put the model in training mode, and its frozen modules in evaluation mode."""
        self.model.train()
        for module in self._frozen:
            module.eval()

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Switch to evaluation mode for a moment, faster than with `eval` and `train_mode`: for use within a step."""
        training = [module for module in self._modules if module.training]
        for module in training:
            vars(module)["training"] = False  # the effect of `module.training = False`, without its overhead
        try:
            yield
        finally:
            for module in training:
                vars(module)["training"] = True

    def restart(self, training: Training, steps: int) -> None:
        """Start a new optimiser for everything that is trainable now, with a schedule over `steps` steps."""
        self.parameters = self.trainable()
        if not self.parameters:
            raise UserError(
                "nothing of this model learns: all of it is frozen, and its outputs have no weights of their own"
            )
        self._factors, self._rate = _Schedule(training, steps), training.learning_rate
        self._augment, self._accumulate = training.augment, training.accumulate
        self._modules = tuple(self.model.modules())
        self._dropouts = None
        self._norms = [module for module in self._modules if isinstance(module, SharesBatch)]
        self.optimiser = Optimiser(training, self.parameters)
        self._averaging.close()
        self._averaging = Averaging(self.ranks, self.parameters.values())
        self.model_changed()

    def model_changed(self) -> None:
        """Report that the model's computation changed: call it after any change within a fit but to tensor values."""
        self.counter.forget()
        self.stepper.model_changed(self.parameters.values())

    # One step

    def draw_at(self, *where: int) -> None:
        """Seed the generators by the position in the run, so that a resumed run draws the same numbers."""
        seed = mix(self.seed, *where)
        torch.default_generator.manual_seed(seed)
        if self.device.type == "cuda":
            torch.cuda.default_generators[self.device.index or 0].manual_seed(seed)

    def fetch(self, ids: Ids, augment: bool = True) -> Batch:
        """The batch of these examples, with this rank's tensors; images are augmented as the stage's training says."""
        batch = self.data.fetch(ids, self.device, self.ranks.rank, self.ranks.size, self.around, self.trims)
        if augment and self._augment != "none":
            batch = augmented(batch, self._augment)
        return batch

    @property
    def trims(self) -> bool:
        """Whether the padding that all texts of a batch share is left out: on the CPU, if no result depends on it.

        Dropout draws a number for each place, so texts keep their length while an encoder drops out. On a GPU, and
        where passes are compiled, varying shapes cost more than the padding.
        """
        if not self._any_shape or not self.model.encoder.masks_text:
            return False
        if self._dropouts is None:
            self._dropouts = [module for module in self.model.encoder.modules() if drops(module)]
        return not any(module.training for module in self._dropouts)

    def prefetch(self, ids: Ids) -> None:
        """Start to decode the images of these examples, which the next step will fetch."""
        self.data.prefetch(ids, self.ranks.rank, self.ranks.size, self.known)

    @property
    def known(self) -> list[int]:
        """The numbers of the tables whose inputs are not needed now, because the whole encoder's output is recorded."""
        return [index for index, around in self.around.items() if getattr(around, "whole", False)]

    def lending(
        self, asked: Sequence[tuple[Ids, int]], check: Callable[[], None], augment: str = "none"
    ) -> AbstractContextManager[None]:
        """Within a block, compute frozen modules once for each example, if `asked` shows that this pays.

        `asked` lists examples, and how often each will be passed through the model: see `Once`.
        """
        return nullcontext() if self.once is None else self.once.lending(asked, augment, check)

    def outputs(self, batch: Batch) -> tuple[Tensor, ...]:
        """The model's output for each part of a batch, counted as a pass of training."""
        self.examples_forward += len(batch.ids)
        return self.forward(batch)

    def forward(self, batch: Batch) -> tuple[Tensor, ...]:
        """The model's output for each part of a batch."""
        return self._precisely(batch, answers=False)

    def answers(self, batch: Batch) -> tuple[Tensor, ...]:
        """The output for each part of a batch from which predictions are made."""
        return self._precisely(batch, answers=True)

    def _precisely(self, batch: Batch, answers: bool) -> tuple[Tensor, ...]:
        if self.autocast is not None:
            with torch.autocast(self.device.type, self.autocast):
                outputs = self._forward(batch, answers)
            return tuple(output.float() for output in outputs)
        return self._forward(batch, answers)

    def _forward(self, batch: Batch, answers: bool) -> tuple[Tensor, ...]:
        call: Call = self.stepper.call if self.route is None or self.model.training else self.route
        if len(batch.parts) > 1 and self.model.training:
            with self._shared(batch.parts):
                call = self.model.together([part.inputs for part in batch.parts]) or call
        outputs = []
        for part in batch.parts:
            task = self.tasks[part.task]
            with self._shared((part,)):
                outputs.append(task.answers(call, part) if answers else task.forward(call, part))
        return tuple(outputs)

    def _shared(self, parts: Sequence[Part]) -> AbstractContextManager[None]:
        """Normalise a batch as a whole across ranks; padding rows do not count."""
        if self.ranks.size == 1 or not self.model.training:
            return nullcontext()
        ones = (torch.ones(len(part.targets), device=self.device) for part in parts)
        weights = [one if part.weights is None else part.weights for one, part in zip(ones, parts, strict=True)]
        return shared_batch(self._norms, self.ranks.total, torch.cat(weights))

    def asking(self, model: Network) -> Call:
        """A callable for another model, which does not learn, that is as fast as calling this learner's own."""
        return self.stepper.other(model)

    def losses(self, batch: Batch, outputs: tuple[Tensor, ...]) -> Tensor:
        """The loss of each of this rank's rows, part after part; 0 for a padding row."""
        rows = []
        for part, output in zip(batch.parts, outputs, strict=True):
            losses = self.tasks[part.task].losses(output, part)
            rows.append(losses if part.weights is None else losses * part.weights.to(losses.dtype))
        return rows[0] if len(rows) == 1 else torch.cat(rows)

    def share(self, losses: Tensor, count: int) -> Tensor:
        """Share of this rank in a mean over `count` examples: the mean of the shares is the mean over all ranks."""
        return losses.sum() * (self.ranks.size / count)

    def loss(self, batch: Batch, outputs: tuple[Tensor, ...]) -> Tensor:
        """Share of this rank in the mean loss of a batch."""
        if self.ranks.size == 1 and len(outputs) == 1:
            return self.tasks[batch.parts[0].task].loss(outputs[0], batch.parts[0])
        return self.share(self.losses(batch, outputs), len(batch.ids))

    def gradients(
        self, ids: Ids, algorithms: Sequence[Algorithm] = (), following: Ids | None = None, augment: bool = True
    ) -> Tensor:
        """Compute gradients of the mean loss, plus what algorithms add, averaged over the ranks; return the loss.

        With `accumulate`, the examples are processed in that many pieces, one after another, each weighted by its
        share: the gradients are the same, but only one piece's activations are kept at a time. `following` is the next
        batch.
        """
        pieces, total = self._pieces(ids), None
        for number, piece in enumerate(pieces):
            batch = self.fetch(piece, augment)
            if self.data.reads_ahead:
                rest = pieces[number + 1 :] or ([] if following is None else self._pieces(following))
                for ahead in rest[:1]:
                    self.prefetch(ahead)
            if len(pieces) == 1:
                return self.stepper.gradients(batch, algorithms)
            loss = self.total_loss(batch, algorithms) * (len(piece) / len(ids))
            self.backward(loss, batch, first=total is None, last=number + 1 == len(pieces))
            total = loss.detach() if total is None else total + loss.detach()
        assert total is not None, "a batch has examples"
        return total

    def single_pass(self, batch: Batch, algorithms: Sequence[Algorithm]) -> Tensor:
        """Run one forward and one backward pass; return the loss, including what algorithms add to it."""
        loss = self.total_loss(batch, algorithms)
        self.backward(loss, batch)
        return loss.detach()

    def total_loss(self, batch: Batch, algorithms: Sequence[Algorithm]) -> Tensor:
        """The loss of a batch, including what algorithms add to it."""
        kind = tuple([(part.task, shapes(part.inputs), part.targets.shape) for part in batch.parts])
        with self.counter.hook("loss", kind):
            outputs = self.outputs(batch)
            loss = self.loss(batch, outputs)
        for number, algorithm in enumerate(algorithms):
            with self.counter.hook("added", self.stage, number, str(algorithm), kind):
                added = algorithm.loss(self, batch, outputs)
            loss = loss if added is None else loss + added
        return loss

    def _pieces(self, ids: Ids) -> list[Ids]:
        """The groups of examples that are computed together, as equal in size as possible."""
        return [ids] if self._accumulate == 1 else np.array_split(ids, max(min(self._accumulate, len(ids)), 1))

    def backward(self, loss: Tensor, batch: Batch, first: bool = True, last: bool = True) -> None:
        """Compute gradients of a loss, or of the sum of several; averaged over the ranks after the last."""
        self.examples_backward += len(batch.ids)
        if first:
            for parameter in self.parameters.values():  # like zero_grad, at a tenth of its cost
                parameter.grad = None
        if last:
            self._averaging.begin()
        loss.backward()  # type: ignore[no-untyped-call]
        if last:
            self._averaging.end()

    def refuse_pieces(self, learned: Sequence[Ids]) -> None:
        """Raise a UserError, before training, if batches would be split although their rows affect each other."""
        names = {self.data.tables[index].task for ids in learned for index in self.data.by_table(ids)}
        if alone := sorted(name for name in names if self.tasks[name].whole_batch):
            raise UserError(
                f"train.accumulate splits a batch into pieces, and the task {alone[0]!r} compares each example "
                "with all others of its batch: set train.accumulate=1, and train.batch_size lower if memory is short"
            )
        for name, module in self.model.named_modules():
            if isinstance(module, _BatchNorm) and any(p.requires_grad for p in module.parameters()):
                raise UserError(
                    f"train.accumulate splits a batch into pieces, and this model's {name} normalises over the whole "
                    "of it: set train.accumulate=1, or choose a model without batch normalisation"
                )

    def step(self, step: int) -> None:
        """Move the weights. `step` counts from the last `restart` and determines the learning rate."""
        self.set_rate(step)
        self.optimiser.step()
        self.stepper.step_done()

    def set_rate(self, step: int) -> None:
        """Set the optimiser's learning rate for a step."""
        if self._factors.varies:
            self.optimiser.rate = self._rate * self._factors(step)

    def _train_only(self, names: list[str]) -> None:
        chosen = set(names)
        for name, parameter in self.model.named_parameters():
            parameter.requires_grad_(name in chosen)

    # What a checkpoint contains

    def state_dict(self) -> dict[str, Any]:
        """Weights, what is trainable, the optimiser's moments by parameter name, and the count of passes."""
        modules = {id(module): name for name, module in self.model.named_modules()}
        moments = {name: self.optimiser.state(parameter) for name, parameter in self.parameters.items()}
        return {
            "model": self.model.state_dict(),
            "trainable": list(self.trainable()),
            "optimised": list(self.parameters),
            "frozen": [modules[id(module)] for module in self._frozen],
            "optimiser": {name: found for name, found in moments.items() if found is not None},
            "passes": [self.examples_forward, self.examples_backward],
            "counted": self.counter.state_dict(),
            "moved": self.moved,
            "charged": {} if self.once is None else self.once.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any], training: Training, steps: int) -> None:
        """Restore a saved state, in a stage with this training and this number of steps."""
        self._train_only(state["optimised"])  # the optimiser holds the parameters that were trainable when it was made
        self.restart(training, steps)
        self._train_only(state["trainable"])
        self._frozen = [self.model.get_submodule(name) for name in state["frozen"]]
        self.train_mode()
        self.model.load_state_dict(state["model"])
        for name, moments in state["optimiser"].items():
            self.optimiser.load(self.parameters[name], moments)
        self.examples_forward, self.examples_backward = state["passes"]
        self.counter.load_state_dict(state.get("counted", {"flops": 0, "steps": {}}))  # new in holdfast 0.2
        self.moved = dict(state.get("moved", {}))
        if self.once is not None:
            self.once.load_state_dict(state.get("charged", {}))


HALVINGS = 5
"""In how many equal parts of a stage the rate of the schedule `halving` is constant."""


class _Schedule:
    """The factor on the learning rate: warm-up from 0, then constant, a linear or cosine decay, or halvings."""

    def __init__(self, training: Training, steps: int) -> None:
        self.kind, self.steps = training.schedule, max(steps, 1)
        self.warmup = round(training.warmup * self.steps)
        self.varies = self.kind != "constant" or self.warmup > 0
        self.lowest = min(training.lowest_rate / training.learning_rate, 1.0) if training.lowest_rate else 0.0

    def __call__(self, step: int) -> float:
        if step < self.warmup:
            return step / self.warmup
        along = (step - self.warmup) / max(self.steps - self.warmup, 1)
        if self.kind == "halving":
            return 0.5 ** min(int(HALVINGS * along), HALVINGS - 1)
        if self.kind == "linear":
            factor = max(1 - along, 0.0)
        elif self.kind == "cosine":
            factor = 0.5 * (1 + math.cos(math.pi * min(along, 1.0)))
        else:
            return 1.0
        return self.lowest + (1 - self.lowest) * factor if self.lowest else factor
