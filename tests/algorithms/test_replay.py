"""Replay against loops written out by hand, and its forms by what they replay and when."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch
from torch.nn import functional

from holdfast.algorithms.base import Algorithm
from holdfast.algorithms.replay import Replay
from holdfast.algorithms.rows import grouping, phrasing
from holdfast.data.order import mix, shuffled
from holdfast.data.table import Data, Table
from holdfast.engine.checkpoint import Checkpoints
from holdfast.errors import Stopped, UserError
from holdfast.memory import PerTask, Reservoir
from holdfast.settings import build
from smallest import StopAt, make_learner, prepared, trained

CLIMB = {"memory": "per-task", "share": 0.1, "every": 2, "mode": "separate", "source": "one"}
CFST = {"memory": "experience-balanced", "capacity": 40, "size": 32}
FORMS = [
    {"mode": "separate", "every": 2},
    {"source": "one"},
    {"memory": "class-balanced", "capacity": 40},
    {"memory": "balanced-sqrt", "capacity": 40, "by": "task"},
    {"memory": "balanced-forget", "capacity": 40},
    {"memory": "balanced-forget", "capacity": 40, "mode": "separate"},
    CLIMB,
    CLIMB | {"fidelity": "released"},
    CFST,
]


def weights(learner):
    return learner.model.state_dict()


def same(a, b, tolerance=0.0):
    return all(torch.allclose(a[name], b[name], rtol=0, atol=tolerance) for name in a)


@dataclass
class Seen(Algorithm):
    """Notes the ids of each batch, as it comes out of the algorithms before this one, and the new ones among them."""

    batches: list = field(default_factory=list)
    new: list = field(default_factory=list)

    def batch(self, learner, batch):
        self.batches.append(batch.ids)
        return batch

    def after(self, learner, batch):
        self.new.append(batch.ids)

    def replayed(self):
        return [ids[len(new) :] for ids, new in zip(self.batches, self.new, strict=True)]


def cross_entropy_step(model, data, ids, optimiser):
    rows = torch.from_numpy(ids)
    optimiser.zero_grad()
    output = model({"image": data.inputs["image"][rows]}, "patterns")
    functional.cross_entropy(output, data.targets[rows]).backward()
    optimiser.step()


def adamw(model, rate):
    return torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.0)


def test_a_separate_step_is_taken_by_the_same_optimiser_at_the_rate_of_the_schedule():
    """Two steps, stream then memory, every second time, with a linear schedule over the stream's steps alone."""
    ready = prepared(train__epochs=1, train__batch_size=20, train__schedule="linear")
    learner, _ = trained(ready, [Replay(capacity=30, mode="separate", every=2, size=10)])
    other = make_learner(ready)
    model, data = other.model, other.data.tables[0]
    memory, steps = Reservoir(30, mix(0, 0x5EED)), 0
    for index, stage in enumerate(ready.setup.stream.stages):
        optimiser = adamw(model, 3e-3)
        ids = shuffled(stage.train, seed=0, stage=index, epoch=0)
        for step in range(4):
            optimiser.param_groups[0]["lr"] = 3e-3 * (1 - step / 4)
            new = ids[20 * step : 20 * step + 20]
            cross_entropy_step(model, data, new, optimiser)
            steps += 1
            if steps % 2 == 0:
                cross_entropy_step(model, data, memory.sample(10), optimiser)
            memory.add(new)
    assert same(weights(learner), model.state_dict(), 1e-12)
    assert learner.examples_backward == learner.examples_forward == 160 + 4 * 10


@pytest.mark.parametrize("fidelity", ["paper", "released"])
def test_climbs_replay_step_and_the_fresh_optimiser_of_its_code(fidelity):
    """In the second stage, every second step, examples of the first, at the first one's batch size."""
    ready = prepared(train__epochs=1, train__batch_size=20, train__schedule="linear", train__warmup=0.5)
    learner, _ = trained(ready, [Replay(**CLIMB, fidelity=fidelity)])
    other = make_learner(ready)
    model, data = other.model, other.data.tables[0]
    memory, steps = PerTask(mix(0, 0x5EED), share=0.1), 0
    for index, stage in enumerate(ready.setup.stream.stages):
        optimiser = adamw(model, 3e-3)
        ids = shuffled(stage.train, seed=0, stage=index, epoch=0)
        for step in range(4):
            optimiser.param_groups[0]["lr"] = 3e-3 * [0, 1 / 2, 1, 1 / 2][step]
            cross_entropy_step(model, data, ids[20 * step : 20 * step + 20], optimiser)
            steps += 1
            if index == 1 and steps % 2 == 0:
                assert memory.draw_group(but=1) == 0
                kept = memory.sample_group(0, 20)
                assert len(kept) == 8, "a tenth of 80"
                cross_entropy_step(model, data, kept, optimiser if fidelity == "paper" else adamw(model, 3e-3))
        memory.add(stage.train)
    assert same(weights(learner), model.state_dict(), 1e-12)


def test_the_released_form_differs_from_the_papers():
    ready = prepared(train__epochs=1)
    paper, released = (trained(ready, [Replay(**CLIMB, fidelity=f)])[0] for f in ("paper", "released"))
    assert not same(weights(paper), weights(released), 1e-6)


def test_one_past_stage_is_drawn_uniformly_and_replayed_at_its_own_batch_size():
    ready = prepared(benchmark__stages=3, train__epochs=12)
    stages = tuple(
        replace(stage, training=replace(stage.training, batch_size=size))
        for stage, size in zip(ready.setup.stream.stages, (10, 16, 8), strict=True)
    )
    ready = replace(ready, setup=replace(ready.setup, stream=replace(ready.setup.stream, stages=stages)))
    seen, own = Seen(), [set(stage.train.tolist()) for stage in stages]
    trained(ready, [Replay(source="one", capacity=10_000), seen])
    counts = np.zeros(2)
    for new, old in zip(seen.new, seen.replayed(), strict=True):
        (now,) = (i for i in range(3) if set(new.tolist()) <= own[i])
        if now == 0:
            assert len(old) == 0, "there is no past stage"
            continue
        (stage,) = (i for i in range(3) if set(old.tolist()) <= own[i])
        assert stage < now
        assert len(old) == (10, 16)[stage]
        if now == 2:
            counts[stage] += 1
    assert counts.sum() == 12 * 10
    assert abs(counts[0] - 60) < 4.5 * np.sqrt(120 / 4)


def test_per_task_and_experience_balanced_memories_hold_finished_stages_only():
    for form, kept_of_each in (({"memory": "per-task", "capacity": 32}, [32, 32, 32]), (CFST, [13, 13, 14])):
        seen, replay = Seen(), Replay(**form)
        ready = prepared(benchmark__stages=3, train__epochs=1)
        trained(ready, [replay, seen])
        stages = [set(stage.train.tolist()) for stage in ready.setup.stream.stages]
        for index, old in enumerate(seen.replayed()):
            past = set().union(*stages[: index // 3])  # three steps a stage
            assert set(old.tolist()) <= past
            assert bool(len(old)) == (index >= 3)
        assert [len(stage & set(replay.kept.ids.tolist())) for stage in stages] == kept_of_each


@pytest.mark.parametrize("names", ["replay", "rehearsal+replay", "cumulative+replay", "mntdp+replay"])
def test_a_reservoir_counts_an_example_each_time_that_it_is_learned(names):
    """In another epoch, in another stage, or in another fit of the same stage; here nothing has to leave."""
    ready, learned = prepared(names, replay__capacity=5000), []

    class Spy(Algorithm):
        def after(self, learner, batch):
            learned.extend(batch.ids.tolist())

    trained(ready, [*ready.algorithms, Spy()])
    replay = ready.algorithms[-1]
    assert replay.kept.ids.tolist() == learned
    assert replay.kept.seen == len(learned) >= 320


@pytest.mark.parametrize("memory", ["class-balanced", "balanced-sqrt", "balanced-forget"])
def test_a_memory_that_balances_counts_an_example_once(memory):
    """Copies of a rare group's examples would balance nothing."""
    replay = Replay(memory=memory, capacity=1000)
    trained(prepared("cumulative+replay", train__epochs=3), [replay])
    assert len(set(replay.kept.ids.tolist())) == len(replay.kept) == 160


def test_every_nth_batch_is_joined():
    seen = Seen()
    trained(prepared(train__epochs=1), [Replay(every=2, size=5), seen])
    assert [len(old) for old in seen.replayed()] == [0, 5, 0, 5, 0, 5]


def test_balanced_forget_takes_the_losses_of_training():
    """After one step, a class's loss is the mean cross-entropy of its new examples under the first weights."""
    ready = prepared(benchmark__stages=1, train__epochs=1, train__batch_size=80)
    replay = Replay(memory="balanced-forget")
    trained(ready, [replay])
    first = make_learner(ready)
    batch = first.fetch(ready.setup.stream.stages[0].train)
    losses = first.losses(batch, first.outputs(batch))
    targets = batch.parts[0].targets
    expected = [losses[targets == name].mean().item() for name in replay.kept.words]
    assert replay.kept.loss == pytest.approx(expected, abs=1e-6)


def test_class_balanced_replay_counts_classes_of_different_heads_apart():
    ready = prepared(benchmark__setting="task", train__epochs=1)
    replay = Replay(memory="class-balanced", capacity=40)
    learner, _ = trained(ready, [replay])
    assert sorted(np.unique(replay.kept.groups, return_counts=True)[1]) == [10, 10, 10, 10]
    assert set(replay.kept.groups.tolist()) == {0, 1, 2, 3}
    by_task = grouping(learner, "task", "replay")
    assert [by_task(stage.train).tolist() for stage in ready.setup.stream.stages] == [[0] * 80, [1] * 80]


OWN = """
import holdfast as hf


class Plain(hf.Memory):
    def __init__(self, capacity, seed):
        super().__init__(seed)

    def add(self, ids):
        pass


class Grouped(Plain):
    def __init__(self, capacity, seed, group):
        super().__init__(capacity, seed)
        self.group = group


class Asks(Plain):
    def __init__(self, capacity, seed, group, labels):
        super().__init__(capacity, seed)
"""


def test_a_memory_of_your_own_gets_groups_if_it_takes_them(tmp_path):
    path = tmp_path / "own.py"
    path.write_text(OWN)
    ready = prepared()
    learner, ids = make_learner(ready), ready.setup.stream.stages[0].train
    for name in ("Plain", "Grouped"):
        replay = Replay(memory=f"{path}:{name}", by="class")
        replay.setup(learner)
        assert type(replay.kept).__name__ == name
    assert replay.kept.group(ids).tolist() == grouping(learner, "class", "replay")(ids).tolist()
    with pytest.raises(UserError, match=r"as Asks\(capacity=..., seed=..., group=...\): missing .* 'labels'"):
        Replay(memory=f"{path}:Asks")


def phrase_learner(targets):
    """A learner whose examples are phrases of these words."""
    from holdfast.engine.learner import Learner
    from holdfast.models.vlbert import TinyVLBert
    from holdfast.tasks import MaskedPhrase
    from holdfast.types import Inputs

    torch.manual_seed(0)
    rows, places = targets.shape
    columns = {
        "text": torch.full((rows, places + 2), 4, dtype=torch.int32),
        "text_length": torch.full((rows,), places + 2),
        "regions": torch.randn(rows, 1, 3),
        "boxes": torch.zeros(rows, 1, 4),
        "region_count": torch.ones(rows, dtype=torch.int64),
        "masked": torch.where(targets >= 0, torch.arange(places) + 1, -1),
    }
    task = MaskedPhrase("phrases", "phrases", 40, 0.0)
    inputs = Inputs(text=places + 2, vocabulary=40, regions=(1, 3))
    model = TinyVLBert(width=8, heads=1, hidden=8, depth=1).build(inputs, {"phrases": task.reads}).double()
    return Learner(model, Data([Table("phrases", columns, targets)]), {"phrases": task})


TARGETS = torch.tensor([[7, 9, -100], [9, 7, -100], [7, 7, 9], [5, -100, -100]])


def test_phrases_of_the_same_words_are_one_group():
    group, words = phrasing(phrase_learner(TARGETS), "replay")
    numbers = group(np.arange(4))
    assert numbers[0] == numbers[1]
    assert len(set(numbers.tolist())) == 3
    assert [[w for w in words[n] if w >= 0] for n in numbers[[0, 2, 3]]] == [[7, 9], [7, 7, 9], [5]]
    with pytest.raises(UserError, match="this data has no phrases"):
        phrasing(make_learner(prepared()), "replay")


def test_balanced_forget_by_words_follows_the_loss_of_each_word():
    learner, replay = phrase_learner(TARGETS), Replay(memory="balanced-forget", by="word", capacity=4)
    replay.setup(learner)
    batch = learner.fetch(np.arange(4))
    outputs = learner.outputs(batch)
    replay.loss(learner, batch, outputs)
    logs = outputs[0].log_softmax(-1).detach()
    expected = {}
    for row, place in np.argwhere(TARGETS.numpy() >= 0):
        word = int(TARGETS[row, place])
        expected.setdefault(word, []).append(-float(logs[row, place, word]))
    found = dict(zip(replay.kept.words.tolist(), replay.kept.loss.tolist(), strict=True))
    assert found == pytest.approx({word: np.mean(values) for word, values in expected.items()}, abs=1e-6)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_every_form_resumes_exactly(form, tmp_path):
    whole, expected = trained(prepared(), [Replay(**form)])
    with pytest.raises(Stopped):
        trained(prepared(), [Replay(**form)], Checkpoints(tmp_path), StopAt(9))
    again, log = trained(prepared(), [Replay(**form)], Checkpoints(tmp_path))
    assert same(weights(whole), weights(again))
    assert whole.examples_forward == again.examples_forward
    assert log.scores[-1] == expected.scores[-1]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"share": 0.1}, "share is for memory=per-task"),
        ({"source": "one", "memory": "class-balanced"}, "does not know stages"),
        ({"fidelity": "released"}, "applies to separate steps"),
        ({"by": "word", "memory": "class-balanced"}, "an example has many words"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings, words):
    with pytest.raises(UserError, match=words):
        Replay(**settings)


def test_what_a_stream_cannot_give_is_refused_before_training():
    with pytest.raises(UserError, match=r"replay\.capacity is 20, less than the 32"):
        trained(prepared(), [Replay(capacity=20)])
    with pytest.raises(UserError, match=r"keeps 2 examples of the smallest stage, less than replay\.size, which is 32"):
        trained(prepared(), [Replay(memory="per-task", share=0.02, size=32)])
    with pytest.raises(UserError, match=r"replay\.share"):
        build(Replay, {"memory": "per-task", "share": 0.0}, "replay")
    for form in (CLIMB, CFST, {"source": "one"}):
        with pytest.raises(UserError, match="needs to know where one stage ends"):
            trained(prepared(benchmark__boundaries=False), [Replay(**form)])
