"""Forward, loss and backward of a batch as one CUDA graph: Python's work between kernels is done only once.

A small model's step keeps a fast GPU busy for less time than Python needs to launch it. A graph launches all of it at
once. Its inputs are copied to the addresses it reads from, and its gradients from the addresses it writes to. The
kernels are those of a single pass, in the same order and with the same random numbers, so the results are the same too;
each graph is compared with a single pass before it is used.
"""

from __future__ import annotations

import gc
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from holdfast.algorithms.base import Algorithm
from holdfast.engine.compiled import OFTEN
from holdfast.engine.stepper import Call, How, Stepper, declares
from holdfast.models.base import Network
from holdfast.types import Batch, Part

if TYPE_CHECKING:
    from holdfast.engine.learner import Learner

Found = TypeVar("Found")
_MOST = 8
"""The maximum number of recorded shapes: each keeps a set of gradients, and all share the activations of one."""
_LEFTOVER = "The AccumulateGrad node's stream does not match"
"""The beginning of torch's warning that a gradient leaves the stream being recorded."""
_PROOF, _CAPTURE = 1, 2
"""Seeds: a graph that baked in a random number while being recorded would draw a different one when verified."""


@dataclass(frozen=True)
class _Recorded:
    """A pass that can be replayed: where it reads its inputs, and where it writes the loss and the gradients."""

    part: Part
    adding: tuple[Algorithm, ...]
    forward: int
    """The number of examples that go through a model, including a teacher."""
    flops: int
    loss: Tensor
    gradients: tuple[Tensor, ...]
    learned: tuple[nn.Parameter, ...]
    places: tuple[int, ...]
    """The parameters' addresses in memory: if they move, the graph no longer finds them."""
    replay: Callable[[], None]


class RecordedStepper(Stepper):
    """Replays recorded passes for batches of one task; other batches, and rare shapes, go to the inner stepper.

    Recording requires an encoder and algorithms that declare themselves `recordable`: their computation depends only on
    the tensors of the batch and on values that are fixed until the fit ends; of the ids they use only the number; and
    they never wait for the device. If recording fails, or a graph's results differ from those of a single pass,
    recording stops for good with a single warning.
    """

    def __init__(self, learner: Learner, inner: Stepper) -> None:
        self._learner, self.inner, self.call = learner, inner, inner.call
        self.model, self._device = learner.model, learner.device
        precision = learner.autocast or next(learner.model.parameters()).dtype
        self._tolerance = min(torch.finfo(precision).eps ** 0.5, 0.01)
        self._stream: torch.cuda.Stream | None = None
        """The stream for trials and recordings, so that nothing autograd keeps of a trial is on another stream."""
        if self._device.type == "cuda":
            self._stream = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
        self._generators = [self._device.index or 0] if self._device.type == "cuda" else []
        self._pool: Any = None
        """One memory pool for all graphs: they run one after another, and their results are copied immediately."""
        self._seen: Counter[tuple[object, ...]] = Counter()
        self._known: dict[tuple[object, ...], _Recorded] = {}
        self._parameters: tuple[nn.Parameter, ...] = ()
        self._norms: tuple[_BatchNorm, ...] = ()
        self._works = self._watched = True
        self._soon = False
        """Whether the last batch was not recorded only because its shape is not frequent yet."""

    def other(self, model: Network) -> Call:
        """Another model, as the inner stepper calls it."""
        return self.inner.other(model)

    def calling(self, how: How) -> AbstractContextManager[None]:
        """Call models in one way within a block."""
        return self.inner.calling(how)

    def step_done(self) -> None:
        """Notify the inner stepper."""
        self.inner.step_done()

    def gradients(self, batch: Batch, algorithms: Sequence[Algorithm]) -> Tensor:
        """Replay the pass of this batch, or compute a single one."""
        self._soon = False
        if len(batch.parts) == 1 and not self.inner.learns and all(map(declares, algorithms)):
            found = self._replayed(batch, tuple(algorithms))
            if found is not None:
                loss, known = found
                self._learner.examples_forward += known.forward
                self._learner.counter.add(known.flops)
                self._learner.examples_backward += len(batch.ids)
                return loss
        with self.calling("as it is" if self._soon else "graphs"):
            return self._learner.single_pass(batch, algorithms)

    def _compute(self, batch: Batch, algorithms: Sequence[Algorithm]) -> tuple[Tensor, int]:
        """The loss of a batch of one task, as it is recorded, and how many examples go forward for it."""
        before = self._learner.examples_forward
        try:
            return self._learner.total_loss(batch, algorithms), self._learner.examples_forward - before
        finally:
            self._learner.examples_forward = before

    def model_changed(self, parameters: Iterable[nn.Parameter]) -> None:
        """Discard all recordings: other parameters are trainable, or the model's computation changed."""
        self._seen.clear()
        self._known.clear()
        self._pool = torch.cuda.graph_pool_handle() if self._device.type == "cuda" else None
        self._parameters = tuple(parameters)
        self._norms = tuple(module for module in self.model.modules() if isinstance(module, _BatchNorm))
        self._watched = any(
            module._forward_hooks or module._backward_hooks or module._backward_pre_hooks
            for module in self.model.modules()
        )

    def _replayed(self, batch: Batch, adding: Sequence[Algorithm]) -> tuple[Tensor, _Recorded] | None:
        """A batch's loss, with its gradients in place, and what was recorded; None if nothing was."""
        (part,) = batch.parts
        if self._watched or not self._works or not self.model.training:
            return None
        key = self._key(part, adding)
        self._seen[key] += 1
        known = self._known.get(key)
        if known is None or known.places != self._places():
            if len(self._known) >= _MOST:
                return None
            self._soon = self._seen[key] < OFTEN[True]
            known = None if self._soon else self._try(batch, part, adding)
            if known is None:
                return None
            self._known[key] = known
        for name, column in part.inputs.items():
            known.part.inputs[name].copy_(column)
        known.part.targets.copy_(part.targets)
        known.replay()
        for parameter in self._parameters:
            parameter.grad = None
        # Return copies of the gradients: the next replay overwrites the graph's, and the caller may keep these.
        for parameter, gradient in zip(known.learned, torch._foreach_mul(known.gradients, 1.0), strict=True):
            parameter.grad = gradient
        return known.loss.clone(), known

    def _key(self, part: Part, adding: Sequence[Algorithm]) -> tuple[object, ...]:
        """Everything a recording depends on other than the values in tensors."""
        columns = ((name, column.shape, column.dtype) for name, column in part.inputs.items())
        norms = ((norm.momentum, norm.training, norm.track_running_stats) for norm in self._norms)
        return part.task, self.model.active, *map(id, adding), part.targets.shape, part.targets.dtype, *columns, *norms

    def _places(self) -> tuple[int, ...]:
        return tuple(parameter.data_ptr() for parameter in self._parameters)

    def _try(self, batch: Batch, part: Part, adding: Sequence[Algorithm]) -> _Recorded | None:
        if part.weights is not None:
            return None
        inputs = {name: column.clone() for name, column in part.inputs.items()}
        still = replace(part, inputs=inputs, targets=part.targets.clone())
        learning = [parameter for parameter in self._parameters if parameter.requires_grad]
        used: tuple[nn.Parameter, ...] = ()
        forward = flops = 0

        def run() -> tuple[Tensor, ...]:
            nonlocal used, forward, flops
            with self._learner.counter.aside() as counted:
                loss, forward = self._compute(Batch(batch.ids, (still,)), adding)
                found = torch.autograd.grad(loss, learning, allow_unused=True)
            flops = counted()
            pairs = [(p, gradient) for p, gradient in zip(learning, found, strict=True) if gradient is not None]
            used = tuple(parameter for parameter, _ in pairs)
            return loss.detach(), *(_laid_out(gradient, parameter) for parameter, gradient in pairs)

        try:
            with self.calling("whole"):
                with _leftovers_refused():  # during recording, such a mistake would do more damage
                    self._aside(run)  # triggers whatever is compiled or looked up on first use
                    with _waiting_refused(self._device):
                        expected = self._aside(run)
                if not used or not torch.stack([tensor.isfinite().all() for tensor in expected]).all():
                    return None  # nothing to learn, or nothing to compare with
                found, replay = self._aside(lambda: recorded(run, self._pool, self._stream), _CAPTURE)
            for tensor in found:
                tensor.zero_()  # exposes a graph that does nothing
            self._aside(replay)
            self._prove(found, expected)
        except Exception as error:
            warnings.warn(f"continuing step by step: {type(error).__name__}: {error}"[:500], stacklevel=2)
            self._works = False
            self._known.clear()
            return None
        return _Recorded(still, tuple(adding), forward, flops, found[0], found[1:], used, self._places(), replay)

    def _aside(self, run: Callable[[], Found], seed: int = _PROOF) -> Found:
        """The result of a pass without side effects; with the same seed it draws the same random numbers."""
        buffers = [(buffer, buffer.clone()) for buffer in self.model.buffers()]
        try:
            with torch.random.fork_rng(self._generators), _on(self._stream):
                torch.default_generator.manual_seed(seed)
                for index in self._generators:
                    torch.cuda.default_generators[index].manual_seed(seed)
                return run()
        finally:
            with torch.no_grad():
                for buffer, before in buffers:
                    buffer.copy_(before)

    def _prove(self, found: Sequence[Tensor], expected: Sequence[Tensor]) -> None:
        """Raise an error if a graph's loss or any gradient differs from that of a single pass."""
        lengths = torch.stack([other.double().norm() for other in expected])
        apart = torch.stack(
            [(one.double() - other.double()).norm() for one, other in zip(found, expected, strict=True)]
        )
        whole = lengths[1:].norm() * (torch.arange(len(lengths), device=lengths.device) > 0)
        if not (apart <= self._tolerance * (lengths + whole / 1000)).all():  # a gradient near zero is all rounding
            raise RuntimeError("the loss or gradients of a recorded pass differ from those of a single pass")


def recorded(
    run: Callable[[], tuple[Tensor, ...]], pool: Any, stream: Any
) -> tuple[tuple[Tensor, ...], Callable[[], None]]:
    """Record a function's GPU work without running it: return where its results will be, and how to run it."""
    graph, collects = torch.cuda.CUDAGraph(), gc.isenabled()
    torch._C._cuda_clearCublasWorkspaces()  # a graph has its own workspace: a shared one might be freed before it
    gc.disable()  # freeing an old graph now would corrupt this one
    try:
        # Other threads may keep working meanwhile.
        with torch.cuda.graph(graph, pool=pool, stream=stream, capture_error_mode="thread_local"):
            found = run()
    finally:
        if collects:
            gc.enable()
        torch._C._cuda_clearCublasWorkspaces()
    return found, graph.replay


@contextmanager
def _on(stream: torch.cuda.Stream | None) -> Iterator[None]:
    """Run on a stream of the GPU, and its device, after all earlier work and before all later work."""
    if stream is None:
        yield
        return
    with torch.cuda.device(stream.device):
        before = torch.cuda.current_stream()
        stream.wait_stream(before)
        try:
            with torch.cuda.stream(stream):
                yield
        finally:
            before.wait_stream(stream)


@contextmanager
def _waiting_refused(device: torch.device) -> Iterator[None]:
    """Raise an error for anything within the block that waits for the GPU."""
    if device.type != "cuda":
        yield
        return
    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that it does not detect everything
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)


@contextmanager
def _leftovers_refused() -> Iterator[None]:
    """Raise an error within the block if an earlier pass, whose outputs are still kept, used the same gradients."""
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)  # by default, torch reports only the first one
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message=_LEFTOVER)
            yield
    except UserWarning as warning:
        if not str(warning).startswith(_LEFTOVER):
            raise
        raise RuntimeError("an output or a loss of an earlier step is kept with its graph: detach it") from warning
    finally:
        torch.set_warn_always(before)


def _laid_out(gradient: Tensor, parameter: Tensor) -> Tensor:
    """A gradient with the memory layout of its parameter, as optimisers require."""
    if gradient.stride() == parameter.stride():
        return gradient
    return torch.empty_like(parameter, requires_grad=False).copy_(gradient)
