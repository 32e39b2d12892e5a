"""`climb` and `clvqa` with answers in words: one output for all tasks, and scores of texts."""

import numpy as np
import pytest
import torch

from generating import llava
from holdfast.errors import UserError
from holdfast.experiments.request import Request
from smallest import make_learner, prepare


@pytest.fixture(scope="module", autouse=True)
def _cache(tiny_cache):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOLDFAST_CACHE", str(tiny_cache))
        yield


def ready(benchmark, order="", model=None, **settings):
    given = {name.replace("__", "."): value for name, value in settings.items()}
    return prepare(Request(benchmark, "finetune", model, scale="tiny", order=order, setting="text", settings=given))


def said(learner, row):
    """The prompt and the answer of an example, as texts."""
    (part,) = learner.fetch(np.array([row])).parts
    task = learner.tasks[part.task]
    prompt = part.inputs["text"][0, : part.inputs["text_length"][0]].tolist()
    return task.language.text(prompt), task.texts(part.inputs["answer"].numpy())[0]


def perfect(learner, evaluation):
    """The score of answers that are the learned ones, and of no answers."""
    task = learner.tasks[evaluation.task]
    part = learner.fetch(evaluation.ids).parts[0]
    answers = part.inputs["answer"].masked_fill(part.inputs["answer"] == task.language.end, -1).numpy()
    targets = learner.data.targets(evaluation.ids).numpy()
    return task.score(answers, targets), task.score(np.full_like(answers, -1), targets)


def test_clvqa_asks_for_words_and_shares_one_output():
    found = ready("clvqa")
    learner = make_learner(found)
    assert [name for name, _ in learner.model.named_parameters() if "head" in name] == []
    question, answer = said(learner, 0)
    assert question.endswith("?")
    assert answer in {"cube", "sphere", "cylinder", "large", "small", "metal", "rubber", "yes", "no"} | {
        "blue", "brown", "cyan", "gray", "green", "purple", "red", "yellow"
    }  # fmt: skip
    for evaluation in found.setup.protocol.evaluations:
        assert perfect(learner, evaluation) == (1.0, 0.0)
    assert found.setup.chance == prepare(Request("clvqa", scale="tiny")).setup.chance


def test_climb_asks_for_words_and_shares_one_output():
    found = ready("climb")
    learner = make_learner(found)
    assert [name for name, _ in learner.model.named_parameters() if "head" in name] == []
    assert {task.head for task in found.setup.tasks.values()} == {"text"}
    firsts = {stage.name: said(learner, int(stage.train[0])) for stage in found.setup.stream.stages}
    assert firsts["nlvr2"][1] in ("true", "false")
    assert firsts["snli-ve"][1] in ("yes", "no", "maybe")
    for evaluation in found.setup.protocol.evaluations:
        score, nothing = perfect(learner, evaluation)
        least = 0.9 if evaluation.name == "vqav2" else 1.0  # ten people may disagree
        assert score >= least, evaluation.name
        assert nothing < 0.02
    choices = learner.fetch(found.setup.stream.stages[3].train[:2]).parts[0].inputs["choices"]
    assert choices.shape[:2] == (2, 4)


def test_two_pictures_stand_before_a_prompt():
    found = ready("climb", "nlvr2")
    learner = make_learner(found)
    batch = learner.fetch(found.setup.stream.stages[0].train[:3])
    learner.model.eval()
    with torch.inference_mode():
        (whole,) = learner.forward(batch)
        inputs = dict(batch.parts[0].inputs)
        first, past = learner.model.encoder.opened(inputs, 3)
        second = past.following(inputs["answer"][:, :1].long())[:, 0]
    torch.testing.assert_close(first, whole[:, 0])
    torch.testing.assert_close(second, whole[:, 1])


def test_says_what_does_not_go_together(tmp_path):
    with pytest.raises(UserError, match="low-shot runs have an output layer for each task: leave out downstream"):
        ready("climb", benchmark__downstream=True)
    found = ready("climb", "nlvr2", f"hf:{llava(tmp_path / 'llava')}")
    with pytest.raises(UserError, match="gets one image in each prompt, but this benchmark has 2: choose prefix-lm"):
        make_learner(found)
