"""Counted operations against PyTorch's own counter, for every registered algorithm and model."""

import copy
import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from conformance.cases import or_slow
from conformance.test_generating import FIRST, OTHERS
from generating import llava
from generating import request as request_to_write
from golden import others
from holdfast import registry
from holdfast.engine.counting import Counter
from holdfast.engine.loop import train
from holdfast.engine.operations import EXTRA
from holdfast.types import Head, Protocol
from smallest import Scores, make_learner, prepare, prepared

TWO_HEADS = {"benchmark__setting": "task", "train__batch_size": 39, "train__epochs": 1}
ALGORITHMS = sorted([*registry.PLAIN, *registry.ALGORITHMS, *registry.TRANSFORMS])
CASES = [(name, TWO_HEADS if number % 2 else {}) for number, name in enumerate(ALGORITHMS)]
CASES += [
    pytest.param(name, {} if number % 2 else TWO_HEADS, marks=pytest.mark.slow)
    for number, name in enumerate(ALGORITHMS)
]


def extra(formula):
    def found(*args, out_val=None, **named):
        return formula(args, out_val)

    found._get_raw = True
    return found


def watched():
    return FlopCounterMode(display=False, custom_mapping={name: extra(each) for name, each in EXTRA.items()})


def counted(ready):
    """A run's own count, and that of a counter which watches every operation of the same run."""
    learner, setup = make_learner(ready), ready.setup
    learner.once = None  # whose proofs and tables are not part of the training
    with watched() as every:
        train(learner, setup.stream, ready.algorithms, Protocol(()), log=Scores())
    return learner.counter.total, every.get_total_flops()


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_operations_of_every_algorithm(name, settings):
    found, expected = counted(prepared(name, **settings))
    assert found == pytest.approx(expected, rel=0.01)


@pytest.fixture(scope="module")
def writer(tmp_path_factory):
    return llava(tmp_path_factory.mktemp("counting") / "llava")


@pytest.mark.parametrize(
    "name", or_slow(["finetune", "o-lora", "replay"], sorted({*FIRST, *OTHERS} - {"finetune", "o-lora", "replay"}))
)
def test_operations_of_every_algorithm_that_can_learn_to_write(name, writer):
    found, expected = counted(prepare(request_to_write(name, writer)))
    assert found == pytest.approx(expected, rel=0.01)


FORMS = [(name, *form) for name, forms in others.MODELS.items() for form in forms]


def network(name, inputs, given):
    torch.manual_seed(1)
    model = others.small(name, given).build(inputs, {"head": Head("classify", 3)})
    model.counter = Counter()
    return model


def passed(model, inputs, passes=2):
    """What the counter adds for some passes, forward and backward, and what a counter of all operations adds."""
    columns = others.columns(inputs)
    with watched() as every:
        for _ in range(passes):
            model(columns, "head").sum().backward()
    return model.counter.total, every.get_total_flops()


@pytest.mark.parametrize(("name", "form", "inputs", "given"), FORMS, ids=[f"{name}-{form}" for name, form, *_ in FORMS])
def test_operations_of_every_model(name, form, inputs, given):
    model = network(name, inputs, given).float()
    found, expected = passed(model, inputs)
    assert found == pytest.approx(expected, rel=0.01)
    if name == "vilt":  # frozen layers take no backward pass
        model.counter.forget()
        model.encoder.layers()[0].requires_grad_(False)
        before = model.counter.total
        found, expected = passed(model, inputs)
        assert found - before == pytest.approx(expected, rel=0.01)


def test_every_registered_model_is_among_them_or_extends_one():
    covered = [registry.MODELS[name].load() for name in others.MODELS]
    missing = [name for name, entry in registry.MODELS.items() if not issubclass(entry.load(), tuple(covered))]
    assert missing in ([], ["vault"])  # whose size alone differs from vault-tiny's


def test_an_lstm_takes_what_its_equations_say():
    """Four gates: at each place, the input and the state are multiplied by a matrix each."""
    model, counter = nn.LSTM(5, 7, num_layers=2), Counter()
    x = torch.randn(3, 2, 5)
    forward = 2 * (3 * 2) * 4 * 7 * ((5 + 7) + (7 + 7))
    with torch.no_grad():
        counter.call("no gradients", lambda: model(x)[0])
    assert counter.total == forward
    counter.call("gradients", lambda: model(x)[0]).sum().backward()
    assert counter.total == forward + 3 * forward
    double = Counter()  # computed by products of matrices, which PyTorch counts; there is no gradient of the input
    model.double()
    double.call("gradients", lambda: model(x.double())[0]).sum().backward()
    assert double.total == pytest.approx(3 * forward, rel=0.25)


def test_what_the_output_does_not_depend_on_has_no_backward_pass():
    """As in LLaVA, which computes the last layer of its image encoder and takes the last but one."""
    first, last, x, counter = nn.Linear(4, 8), nn.Linear(8, 8), torch.randn(3, 4), Counter()

    def taken():
        found = first(x)
        last(found)
        return found

    counter.call("one of two", taken).sum().backward()
    assert counter.total == 2 * 3 * (4 * 8 + 8 * 8) + 2 * 3 * 4 * 8


def test_groups_of_a_convolution_take_what_they_compute():
    """PyTorch counts the gradient of the weights as if there were no groups: too much by their number."""
    weight, x = torch.randn(8, 1, 3, 3, requires_grad=True), torch.randn(2, 8, 6, 6, requires_grad=True)
    counter = Counter()
    counter.call("depthwise", lambda: functional.conv2d(x, weight, groups=8)).sum().backward()
    forward = 2 * 2 * 8 * 4 * 4 * 9
    assert counter.total == 3 * forward
    with FlopCounterMode(display=False) as theirs:
        functional.conv2d(x, weight, groups=8).sum().backward()
    assert theirs.get_total_flops() == 2 * forward + 8 * forward


def test_attention_takes_two_products_forward_and_five_backward():
    query = torch.randn(2, 3, 10, 4, requires_grad=True)
    counter = Counter()
    found = counter.call("attention", lambda: functional.scaled_dot_product_attention(query, query, query))
    product = 2 * (2 * 3) * 10 * 10 * 4
    assert counter.total == 2 * product
    found.sum().backward()
    assert counter.total == 7 * product


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (lambda a, b: torch.linalg.cholesky(a), 6**3 // 3),
        (lambda a, b: torch.linalg.inv(a), 2 * 6**3),
        (lambda a, b: torch.linalg.solve(a, b), int(2 / 3 * 6**3) + 2 * 6 * 6 * 2),
        (lambda a, b: torch.linalg.eigh(a)[0], 9 * 6**3),
        (lambda a, b: torch.linalg.svd(a)[1], 21 * 6**3),
        (lambda a, b: torch.cholesky_solve(b, torch.linalg.cholesky(a)), 6**3 // 3 + 2 * 6 * 6 * 2),
    ],
)
def test_factorisations_take_what_textbooks_say(run, expected):
    a = torch.randn(6, 6)
    counter = Counter()
    counter.call("matrix", lambda: run(a @ a.T + torch.eye(6), torch.randn(6, 2)))
    assert counter.total == pytest.approx(expected + 2 * 6**3, abs=1)


def test_nothing_is_counted_twice_or_while_it_is_paused():
    layer, x = nn.Linear(4, 4), torch.randn(3, 4)
    once = 2 * 3 * 4 * 4
    counter = Counter()
    assert copy.deepcopy(counter) is counter, "a teacher counts where the model counts"
    with counter.hook("step", 3):
        layer(x)  # the hook's own, with a gradient of the weights
        counter.call("inner", lambda: layer(x))
    assert counter.total == 2 * once + once
    with counter.hook("step", 3):
        counter.call("inner", lambda: counter.call("nested", lambda: layer(x)))
    assert counter.total == 2 * (2 * once + once)
    with counter.paused(), counter.hook("step", 3):
        counter.call("inner", lambda: layer(x)).sum().backward()
    assert counter.total == 6 * once
    with counter.aside() as found:
        counter.call("inner", lambda: layer(x)).sum().backward()
    assert (found(), counter.total) == (2 * once, 6 * once)
    with counter.whole():
        layer(x).sum().backward()
    assert counter.total == 8 * once


def test_a_checkpoint_has_what_was_counted():
    layer, x = nn.Linear(4, 4), torch.randn(3, 4)
    counter, again = Counter(), Counter()
    with counter.hook("step", 3):
        layer(x)
    again.load_state_dict(counter.state_dict())
    assert again.total == counter.total
    with again.hook("step", 3):
        pass  # it is known what this takes
    assert again.total == 2 * counter.total


def test_counting_does_not_import_the_compiler():
    code = (
        "import sys, holdfast; words = {'benchmark.stages': 1, 'train.epochs': 1}\n"
        "found = holdfast.train(None, 'patterns', scale='tiny', settings=words)\n"
        "assert found.counter.total > 0; assert 'torch._dynamo' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_meter_leaves_what_is_compiled_later_alone():
    counter, model = Counter(), nn.Linear(3, 2)
    compiled = torch.compile(model, backend="eager")
    expected = counter.measured(lambda: model(torch.zeros(5, 3)))
    assert counter.measured(lambda: compiled(torch.zeros(5, 3))) == expected == 2 * 5 * 3 * 2


DEEP = """
import torch
from holdfast.engine.counting import Counter

weight, counter = torch.ones(1, 1, requires_grad=True), Counter()

def deep():
    output = torch.ones(1, 1) @ weight
    for _ in range(100_000):
        output = output * 1.0
    return output

for _ in range(2):
    output = counter.call("deep", deep)
    output.sum().backward()
    del output
print(counter.total)
"""


def test_a_graph_of_100_000_steps_is_counted_and_can_be_freed():
    """PyTorch frees by recursion what Python has visited, and for so much there is too little stack."""
    done = subprocess.run([sys.executable, "-c", DEEP], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-500:]
    assert int(done.stdout) == 2 * (2 + 2), "a product forward, and one for the gradient of the weight"
