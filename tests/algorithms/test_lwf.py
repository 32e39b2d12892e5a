"""LwF: its gradient in closed form, against whole copies of the model, and what it leaves alone."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from holdfast.algorithms.lwf import LwF
from holdfast.algorithms.old_heads import OldHeads, _same
from holdfast.engine import compiled
from holdfast.engine.checkpoint import Checkpoints
from holdfast.engine.loop import train
from holdfast.engine.watch import NoLog
from holdfast.errors import Stopped, UserError
from holdfast.models.transformer import TransformerBlock
from holdfast.tasks import Choose, Classify, MaskedPhrase, MultiLabel, SoftLabel
from holdfast.types import Part
from smallest import StopAt, make_learner, prepared, trained

CLASSIFY = Classify("t", "h", 5, 0.2)
ALL = torch.arange(5)


def drawn(*shape):
    generator = torch.Generator().manual_seed(3)
    return [torch.randn(*shape, dtype=torch.float64, generator=generator) for _ in range(2)]


def gradient(task, taught, output, temperature, units=ALL, targets=None):
    leaf, teacher = output.clone().requires_grad_(), taught.clone().requires_grad_()
    part = Part("t", {}, torch.zeros(len(output)) if targets is None else targets)
    (found,) = torch.autograd.grad(task.divergence(teacher.detach(), leaf, part, temperature, units).sum(), leaf)
    return found


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_gradients_in_closed_form(temperature):
    """Of KL at temperature T: the difference of the softened answers over T."""
    taught, output = drawn(4, 5)
    soft, hard = (output / temperature).softmax(-1), (taught / temperature).softmax(-1)
    for task in (CLASSIFY, Choose("t", "h", 5, 0.2)):
        torch.testing.assert_close(gradient(task, taught, output, temperature), (soft - hard) / temperature)
    soft, hard = (output / temperature).sigmoid(), (taught / temperature).sigmoid()
    several = (soft - hard) / temperature
    torch.testing.assert_close(gradient(SoftLabel("t", "h", 5, 0.1), taught, output, temperature), several)
    torch.testing.assert_close(gradient(MultiLabel("t", "h", 5, 0.1), taught, output, temperature), several / 5)


def test_a_phrase_is_the_mean_over_its_hidden_words():
    taught, output = drawn(2, 3, 5)
    targets = torch.tensor([[1, 4, 0], [2, -100, -100]])
    found = gradient(MaskedPhrase("t", "h", 5, 0.1), taught, output, 1.0, targets=targets)
    each = output.softmax(-1) - taught.softmax(-1)
    expected = torch.stack([each[0] / 3, torch.cat([each[1, :1], torch.zeros(2, 5)])])
    torch.testing.assert_close(found, expected)


def test_times_the_square_of_the_temperature_the_gradient_keeps_its_size():
    """As T grows it tends to the gap of the centred outputs over their number, not to nothing (Hinton et al. 2015)."""
    taught, output = drawn(4, 5)
    gap = output - taught
    limit = (gap - gap.mean(-1, keepdim=True)) / 5
    torch.testing.assert_close(1e8 * gradient(CLASSIFY, taught, output, 1e4), limit, rtol=1e-3, atol=1e-5)


def test_it_is_nothing_where_model_and_teacher_agree():
    taught, _ = drawn(4, 5)
    for task in (CLASSIFY, SoftLabel("t", "h", 5, 0.1)):
        assert gradient(task, taught, taught, 2.0).abs().max() < 1e-15
        assert task.divergence(taught, taught, Part("t", {}, torch.zeros(4)), 2.0, ALL).abs().max() < 1e-15


def test_units_that_were_not_seen_are_left_alone():
    taught, output = drawn(4, 5)
    units = torch.tensor([0, 2, 3])
    found = gradient(CLASSIFY, taught, output, 1.0, units)
    assert found[:, [1, 4]].abs().max() == 0
    torch.testing.assert_close(found[:, units], output[:, units].softmax(-1) - taught[:, units].softmax(-1))


# In training


def test_the_first_stage_is_fine_tuning_and_the_second_is_not():
    for settings in ({"benchmark__stages": 1}, {"benchmark__stages": 2}):
        plain, _ = trained(prepared(**settings), [])
        taught, _ = trained(prepared(**settings), [LwF()])
        pairs = zip(plain.model.parameters(), taught.model.parameters(), strict=True)
        assert all(torch.equal(a, b) for a, b in pairs) == (settings["benchmark__stages"] == 1)


def two_stages(on: str, setting: str = "task", strength: float = 0.7, **settings):
    """A learner after the second of two stages, the algorithm with its teacher, a copy of that, and a batch."""
    ready = prepared(benchmark__setting=setting, **settings)
    algorithm, kept, take = LwF(on=on, temperature=1.5, strength=strength), [], LwF.end

    def end(learner, stage):
        if not kept:  # the teacher of the second stage stays
            take(algorithm, learner, stage)
            kept.append(copy.deepcopy(learner.model).eval())

    algorithm.end = end
    ready = replace(
        ready, setup=replace(ready.setup, stream=replace(ready.setup.stream, stages=ready.setup.stream.stages[:2]))
    )
    learner, _ = trained(ready, [algorithm])
    return learner, algorithm, kept[0], learner.fetch(ready.setup.stream.stages[1].train[:9])


@pytest.mark.parametrize(("on", "setting"), [("seen", "class"), ("old-heads", "task")])
def test_the_model_stays_nearer_to_its_teacher_than_without(on, setting):
    """On the old stage's data, which it does not see any more."""
    found = []
    for strength in (0.0, 3.0):
        learner, _, before, _ = two_stages(on, setting, strength=strength, train__epochs=20)
        old = learner.fetch(prepared(benchmark__setting=setting).setup.stream.stages[0].train)
        (part,), task = old.parts, learner.tasks[old.parts[0].task]
        with torch.no_grad():
            now, then = (task.forward(model, part)[:, :2] for model in (learner.model.eval(), before))
        found.append(task.divergence(then, now, part, 1.0, torch.arange(2)).mean().item())
    assert found[1] < 0.5 * found[0]


def test_the_teacher_stays_as_it_was_and_gets_no_gradient():
    learner, algorithm, before, _ = two_stages("old-heads")
    assert not algorithm.teacher.model.training
    for (name, now), then in zip(algorithm.teacher.model.named_parameters(), before.parameters(), strict=True):
        assert torch.equal(now, then), name
        assert not now.requires_grad
        assert now.grad is None
    assert any(not torch.equal(a, b) for a, b in zip(learner.model.parameters(), before.parameters(), strict=True))


class Counted:
    """How often an encoder is asked."""

    def __init__(self, encoder: nn.Module) -> None:
        self.count = 0
        self.handle = encoder.register_forward_hook(self._add)

    def _add(self, encoder, inputs, output):
        self.count += 1


def test_old_heads_are_asked_about_one_pass_and_as_whole_models_would_answer():
    learner, algorithm, before, batch = two_stages("old-heads", benchmark__stages=4)
    (part,) = batch.parts
    learner.model.eval()
    ours, theirs = Counted(learner.model.encoder), Counted(algorithm.teacher.model.encoder)
    algorithm.teacher.seen = {f"stage-{n}": torch.arange(2) for n in (1, 3, 4)}  # three old heads
    if algorithm._old_heads:
        algorithm._old_heads.forget()
    loss = algorithm.loss(learner, batch, learner.outputs(batch))
    assert (ours.count, theirs.count) == (1, 1)
    parameters = list(learner.trainable().values())
    found = torch.autograd.grad(loss, parameters, allow_unused=True)
    expected_loss = 0.0
    for head in algorithm.teacher.seen:
        with torch.no_grad():
            taught = (before(part.inputs, head) / 1.5).softmax(-1)
        said = (learner.model(part.inputs, head) / 1.5).log_softmax(-1)
        expected_loss = expected_loss + 0.7 * (taught * (taught.log() - said)).sum() / 9
    torch.testing.assert_close(loss, expected_loss)
    expected = torch.autograd.grad(expected_loss, parameters, allow_unused=True)
    assert [grad is None for grad in found] == [grad is None for grad in expected]
    for one, other in zip(found, expected, strict=True):
        if one is not None:
            torch.testing.assert_close(one, other)


def test_old_heads_are_asked_as_their_tasks_ask_them():
    """A task may change what its head gives: SoftLabel takes a prior off."""
    learner, algorithm, before, batch = two_stages("old-heads")
    (part,) = batch.parts
    algorithm.teacher.seen = {"stage-1": torch.arange(4)}
    old = SoftLabel("stage-1", "stage-1", learner.tasks["stage-1"].outputs, 0.1, prior=3.0)
    learner.tasks["stage-1"] = old
    algorithm._old_heads.forget()
    learner.model.eval()
    found = algorithm.loss(learner, batch, learner.outputs(batch))
    with torch.no_grad():
        output, taught = (old.forward(model, part) for model in (learner.model, before))
    expected = 0.7 * old.divergence(taught, output, part, 1.5, torch.arange(4)).mean()
    torch.testing.assert_close(found.detach(), expected)
    assert expected > 0


def test_a_head_that_is_new_is_not_distilled():
    learner, algorithm, _, batch = two_stages("seen")
    forward = learner.examples_forward
    outputs = learner.forward(batch)
    assert algorithm.loss(learner, batch, outputs).item() == 0
    assert learner.examples_forward == forward, "and the teacher is not asked"


def test_the_classes_of_past_stages_are_the_units_that_were_seen():
    ready, algorithm = prepared(benchmark__stages=3), LwF()
    learner, _ = trained(ready, [algorithm])
    assert algorithm.teacher.seen["patterns"].tolist() == [0, 1, 2, 3, 4, 5]
    algorithm.setup(learner)
    algorithm.end(learner, ready.setup.stream.stages[1])
    assert algorithm.teacher.seen["patterns"].tolist() == [2, 3]


def test_on_all_classes_so_far_where_the_head_grows():
    """By hand: the teacher's logits, 1 or 0 for the new classes, and nothing for those that no stage has brought."""
    ready = prepared(benchmark__stages=3)
    task = replace(ready.setup.tasks["patterns"], growing=True)
    ready = replace(ready, setup=replace(ready.setup, tasks={"patterns": task}))
    learner, algorithm = make_learner(ready, torch.device("cpu")), LwF(on="all", temperature=2.0, strength=0.7)
    algorithm.setup(learner)
    first, second = ready.setup.stream.stages[:2]
    learner.model.open_classes([0, 1])
    algorithm.end(learner, first)
    learner.model.open_classes([2, 3])
    with torch.no_grad():
        for parameter in learner.model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    batch = learner.fetch(np.concatenate([first.train[:3], second.train[:4]]))
    outputs = learner.outputs(batch)
    found = algorithm.loss(learner, batch, outputs)
    (part,), (output,) = batch.parts, outputs
    told = algorithm.teacher.model(part.inputs, "patterns")
    expected = 0.0
    for row in range(7):
        logits = [told[row, 0], told[row, 1], *(torch.tensor(float(part.targets[row] == c)) for c in (2, 3))]
        p = (torch.stack([logit.double() for logit in logits]) / 2).softmax(0)
        q = (output[row, :4].detach().double() / 2).softmax(0)
        expected += float((p * (p / q).log()).sum())
    assert found.item() == pytest.approx(0.7 * expected / 7, rel=1e-9)
    assert found.item() > 0


@pytest.mark.parametrize("on", ["seen", "old-heads"])
def test_a_resumed_run_has_the_same_teacher(on):
    learner, algorithm, _, batch = two_stages(on)
    if on == "seen":
        algorithm.teacher.seen["stage-2"] = torch.arange(2)
    again = LwF(on=on, temperature=1.5, strength=0.7)
    again.setup(learner)
    again.load_state_dict(learner, copy.deepcopy(algorithm.state_dict()))
    learner.model.eval()
    if algorithm._old_heads:
        algorithm._old_heads.forget()
    outputs = learner.outputs(batch)
    loss = algorithm.loss(learner, batch, outputs)
    assert loss.item() > 0
    assert torch.equal(again.loss(learner, batch, outputs), loss)


def test_refusals_come_before_training_in_one_sentence():
    learner, _ = trained(prepared(), [])
    (task,) = learner.tasks.values()
    learner.tasks = {"a": task, "b": replace(task, images=2)}
    with pytest.raises(UserError, match=r"all heads must be of one kind.*classify with 1 image\(s\), classify with 2"):
        LwF(on="old-heads").setup(learner)
    LwF(on="seen").setup(learner)
    learner.tasks = {"a": MaskedPhrase("a", "a", 9, 0.0)}
    with pytest.raises(UserError, match=r"set lwf\.on=seen"):
        LwF(on="old-heads").setup(learner)


@pytest.mark.parametrize(
    ("setting", "on", "warned"), [("task", "seen", 1), ("task", "old-heads", 0), ("class", "seen", 0)]
)
def test_a_warning_says_where_nothing_is_kept(setting, on, warned, caplog):
    """With a head for each stage, the units of a new stage's own head were never taught: bit for bit fine-tuning."""
    learner, _ = trained(prepared("lwf", benchmark__setting=setting, lwf__on=on))
    assert len(caplog.records) == warned
    plain, _ = trained(prepared("finetune", benchmark__setting=setting))
    states = plain.model.state_dict(), learner.model.state_dict()
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0]) == bool(warned)
    if warned:
        assert "head of stage 'stage-2' is new" in caplog.text


def test_old_heads_refuse_an_encoder_with_parts_for_each_head():
    ready, block = prepared(benchmark__setting="task"), TransformerBlock(4, heads=1, hidden=4)
    learner, _ = trained(ready, [])
    learner.model.encoder.blocks = lambda: [block]
    lwf = LwF(on="old-heads")
    lwf.setup(learner)
    lwf.begin(learner, ready.setup.stream.stages[0])
    block.added["stage-1"] = nn.ModuleDict()
    with pytest.raises(UserError, match=r"parts of this encoder belong to single heads: set lwf\.on=seen"):
        lwf.begin(learner, ready.setup.stream.stages[0])
    plain = LwF(on="seen")
    plain.setup(learner)
    plain.begin(learner, ready.setup.stream.stages[0])


# Beside algorithms that change the model as stages come


@pytest.mark.parametrize("pair", ["lwf+mntdp", "mntdp+lwf"])
def test_a_run_resumes_exactly_where_the_model_grows(pair, tmp_path):
    """The teacher has the modules and the path of the stage that it was taught in, not those of the learner."""
    settings = {"benchmark__stages": 4, "train__epochs": 1}
    whole, _ = trained(prepared(pair, **settings))
    for stop in (7, 19, 25):  # 3 steps in the first stage, then at most three fits of 3 steps: in the next three
        folder = tmp_path / str(stop)
        with pytest.raises(Stopped):
            trained(prepared(pair, **settings), checkpoints=Checkpoints(folder), watch=StopAt(stop))
        again, _ = trained(prepared(pair, **settings), checkpoints=Checkpoints(folder))
        assert whole.model.state_dict().keys() == again.model.state_dict().keys()
        for key, value in whole.model.state_dict().items():
            assert torch.equal(value, again.model.state_dict()[key]), (stop, key)


@pytest.mark.parametrize("grown", [1, 4])
def test_a_saved_teacher_keeps_its_modules_and_paths(grown):
    """Whether the model that it is copied from has fewer modules by then, or more."""
    ready = prepared("mntdp+lwf", benchmark__stages=3, train__epochs=1)
    learner, _ = trained(ready)
    algorithm = ready.algorithms[1]
    batch = learner.fetch(ready.setup.stream.stages[1].train[:9])
    outputs = learner.outputs(batch)
    expected, state = algorithm.loss(learner, batch, outputs), copy.deepcopy(algorithm.state_dict())
    assert expected.item() == 0, "the teacher is the model itself"
    encoder = learner.model.encoder
    encoder.rebuild({"modules": [grown] * 2, "path": [[0], [grown - 1]], "paths": {}})
    again = LwF()
    again.setup(learner)
    again.load_state_dict(learner, state)
    assert again.teacher.model.encoder.structure() == algorithm.teacher.model.encoder.structure() == state["structure"]
    assert again.teacher.model.encoder.structure() != encoder.structure()
    assert again.loss(learner, batch, outputs).item() == 0
    assert not any(p.requires_grad for p in again.teacher.model.parameters())
    assert not any(module.training for module in again.teacher.model.modules())


@pytest.mark.parametrize("pair", ["lwf+adapter-library", "adapter-library+lwf"])
def test_an_adapter_library_is_refused(pair):
    with pytest.raises(
        UserError, match=r"adapter-library keeps an encoder, or parts of one, for each stage: leave one of the two out$"
    ):
        trained(prepared(pair))


def test_old_heads_refuse_an_encoder_with_a_path_for_each_head():
    with pytest.raises(UserError, match=r"mntdp gives each head .*: set lwf\.on=seen, or leave"):
        trained(prepared("lwf+mntdp", lwf__on="old-heads"))


def test_old_heads_take_one_pass_of_a_compiled_encoder_too(monkeypatch):
    """With the `eager` backend, which traces as any other does."""
    real = torch.compile
    monkeypatch.setattr(compiled.torch, "compile", lambda f, **_: real(f, backend="eager", dynamic=False))
    monkeypatch.setattr(compiled.Compiled, "step_done", staticmethod(lambda: None))  # there are no CUDA graphs
    ready = prepared("lwf", lwf__on="old-heads", benchmark__setting="task", train__epochs=4)
    learners = [make_learner(ready), make_learner(ready)]
    learners[1].stepper = compiled.CompiledStepper(learners[1])
    passes, again = [], OldHeads.divergence

    def watched(self, part, temperature):
        counted = Counted(self._learner.model.encoder)
        losses = again(self, part, temperature)
        counted.handle.remove()  # or every step would be compiled anew
        passes.append(counted.count)
        return losses

    monkeypatch.setattr(OldHeads, "divergence", watched)
    setup = ready.setup
    for learner in learners:
        train(learner, setup.stream, ready.algorithms, setup.protocol, log=NoLog())
    assert passes == [0] * 2 * 4 * 3, "two runs of four epochs of three steps"
    for one, other in zip(learners[0].model.parameters(), learners[1].model.parameters(), strict=True):
        torch.testing.assert_close(one, other)


def test_noted_features_are_those_of_the_very_same_columns():
    image = torch.zeros(2, 3)
    assert _same({"image": image}, {"image": image})
    assert not _same({"image": image}, {"image": image.clone()})
    assert not _same({"image": image}, {"image": image, "text": image})
    assert not _same({"image": image, "text": image}, {"image": image, "text": image.clone()})
