"""The asymmetric cross-entropy against its definition."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from holdfast.algorithms.er_ace import AsymmetricReplay
from holdfast.data.table import Data, Table
from holdfast.errors import UserError
from smallest import make_learner, prepared, trained


def gradients(learner, algorithm, ids):
    batch = learner.fetch(ids)
    outputs = learner.outputs(batch)
    learner.backward(learner.loss(batch, outputs) + algorithm.loss(learner, batch, outputs), batch)
    return {name: p.grad.clone() for name, p in learner.trainable().items()}


def test_new_examples_compete_with_their_own_classes_and_kept_ones_with_all():
    ready = prepared()
    learner = make_learner(ready)
    old, new = (stage.train for stage in ready.setup.stream.stages)
    ace = AsymmetricReplay(capacity=30, size=12)
    ace.setup(learner)
    ace.memory.add(old)
    reference = AsymmetricReplay(capacity=30, size=12)
    reference.setup(learner)
    reference.memory.add(old)
    found = gradients(learner, ace, new)

    table, rows, kept = learner.data.tables[0], torch.from_numpy(new), torch.from_numpy(reference.memory.sample(12))
    output = learner.model({"image": table.inputs["image"][rows]}, "patterns")
    assert set(table.targets[rows].tolist()) == {2, 3}
    loss = functional.cross_entropy(output[:, 2:], table.targets[rows] - 2)
    output = learner.model({"image": table.inputs["image"][kept]}, "patterns")
    loss = loss + functional.cross_entropy(output, table.targets[kept])
    names, parameters = zip(*learner.trainable().items(), strict=True)
    for name, grad in zip(names, torch.autograd.grad(loss, parameters), strict=True):
        assert torch.allclose(found[name], grad, rtol=0, atol=1e-13), name
    assert learner.examples_backward == learner.examples_forward == 80 + 12


def test_new_examples_alone_do_not_touch_the_units_of_other_classes():
    ready = prepared()
    learner = make_learner(ready)
    ace = AsymmetricReplay()
    ace.setup(learner)
    grad = gradients(learner, ace, ready.setup.stream.stages[1].train)["heads.patterns.classifier.weight"]
    assert grad[:2].abs().max() < 1e-16
    assert grad[2:].abs().max() > 1e-3


def test_tasks_without_one_class_for_each_example_are_refused():
    learner = make_learner(prepared())
    learner.data = Data([Table(t.task, t.inputs, torch.zeros(len(t), 4)) for t in learner.data.tables])
    with pytest.raises(UserError, match="er-ace needs one class for each example, but task 'patterns' has none"):
        AsymmetricReplay().setup(learner)


def test_each_example_is_offered_in_each_epoch_and_a_small_memory_is_refused():
    ace = AsymmetricReplay(capacity=1000)
    trained(prepared(), [ace])
    assert np.bincount(ace.memory.ids).tolist() == [2] * 160
    with pytest.raises(UserError, match=r"er-ace\.capacity is 31"):
        trained(prepared(), [AsymmetricReplay(capacity=31)])
