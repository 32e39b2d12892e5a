"""An encoder that declares `masks_text` gives the same whether the texts of a batch are padded or cut."""

from inspect import isabstract

import numpy as np
import pytest
import torch

from golden.others import columns, small
from holdfast import registry
from holdfast.data.table import Data, Table
from holdfast.engine.learner import Learner
from holdfast.models.base import Encoder
from holdfast.models.image_text import ImageTextDecoder
from holdfast.models.module import of
from holdfast.settings import fields
from holdfast.tasks import Choose, Classify, MaskedPhrase
from holdfast.types import Inputs, Training

TEXT = {"text": 9, "vocabulary": 30}
BOTH, REGIONS = Inputs(image=(3, 16, 16), **TEXT), Inputs(regions=(5, 7), **TEXT)
CLASSIFY, PHRASE = Classify("asked", "asked", 3, 1 / 3), MaskedPhrase("asked", "asked", 30, 0.0)
CHOOSE = Choose("asked", "asked", 2, 1 / 2)
CASES = {
    "vilt": (BOTH, CLASSIFY, {}),
    "vilt of choices": (BOTH, CHOOSE, {}),
    "vault-tiny": (BOTH, CLASSIFY, {"bert": "", "weights": ""}),
    "bert": (Inputs(**TEXT), PHRASE, {}),
    "vlbert": (REGIONS, PHRASE, {}),
    "lxmert": (REGIONS, PHRASE, {}),
    "uniter": (REGIONS, CLASSIFY, {}),
    "uniter of choices": (REGIONS, CHOOSE, {}),
    "prefix-lm": (BOTH, CLASSIFY, {}),
    "prefix-lm of texts": (Inputs(**TEXT), CLASSIFY, {}),
    "san": (BOTH, CLASSIFY, {}),
    "san apart": (BOTH, CLASSIFY, {"apart": True}),
}


def learner(case: str, dropout: float = 0.0) -> Learner:
    """A learner of one table; what lies after a text is noise, and no text is as long as it may be."""
    inputs, task, settings = CASES[case]
    kind = registry.MODELS[case.split()[0]].load()
    noise = {"dropout": dropout} if "dropout" in fields(kind) else {}
    recipe = small(case.split()[0], settings | noise)
    torch.manual_seed(0)
    model = recipe.build(inputs, {"asked": task.reads}).double()
    seen = columns(inputs)
    seen["text_length"] = torch.tensor([5, 3, 4, 2])
    targets = torch.tensor([0, 1, 1, 0])
    if task is CHOOSE:
        seen["text"] = torch.stack([seen["text"], seen["text"].flip(1)], 1)
        seen["text_length"] = torch.tensor([[5, 1], [3, 4], [2, 2], [1, 6]])
    if task is PHRASE:
        seen["masked"] = torch.tensor([[1, 2], [2, -1], [0, 3], [1, -1]])
        targets = torch.tensor([[4, 5], [6, -100], [7, 8], [9, -100]])
    return Learner(model, Data([Table("asked", seen, targets)]), {"asked": task})


def passed(learner: Learner, trim: bool) -> tuple[torch.Tensor, list[torch.Tensor | None]]:
    learner.model.zero_grad()
    batch = learner.data.fetch(np.arange(4), learner.device, trim=trim)
    assert batch.parts[0].inputs["text"].shape[-1] == (batch.parts[0].inputs["text_length"].max() if trim else 9)
    learner.draw_at(0)
    output = learner.forward(batch)[0]
    learner.loss(batch, (output,)).backward()
    return output.detach(), [weight.grad for weight in learner.model.parameters()]


@pytest.mark.parametrize("case", CASES)
def test_padding_changes_neither_outputs_nor_gradients(case):
    ready = learner(case)
    assert ready.trims
    (output, gradients), (expected, others) = passed(ready, trim=True), passed(ready, trim=False)
    torch.testing.assert_close(output, expected, rtol=1e-12, atol=1e-12)
    for one, other in zip(gradients, others, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)


def test_every_declaration_is_tested():
    def below(kind):
        return [each for child in kind.__subclasses__() for each in (child, *below(child))]

    ours = [kind for kind in below(Encoder) if kind.__module__.startswith("holdfast.") and not isabstract(kind)]
    declared = {kind for kind in ours if kind.masks_text}
    elsewhere = {ImageTextDecoder}  # tests/models/test_generative.py
    assert declared == {type(learner(case).model.encoder) for case in CASES} | elsewhere


def test_texts_keep_their_length_while_an_encoder_drops_out():
    """Dropout draws a number for each place: other lengths would be other draws, and so another result."""
    ready = learner("vilt", dropout=0.1)
    assert not ready.trims
    assert ready.fetch(np.arange(4)).parts[0].inputs["text"].shape[-1] == 9
    with ready.evaluating():
        assert ready.trims
    ready.freeze(ready.model.encoder)
    ready.restart(Training(), 1)
    assert ready.trims


def test_a_learner_trims_what_it_fetches():
    found = learner("vilt").fetch(np.array([1, 3])).parts[0].inputs
    assert found["text"].shape == (2, 3)


def test_a_module_of_yours_gets_texts_of_one_length():
    class Bag(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.out = torch.nn.Embedding(30, 4), torch.nn.Linear(4 * 9, 8)

        def forward(self, input_ids, attention_mask):
            return self.out(self.words(input_ids).flatten(1))

    inputs = Inputs(**TEXT)
    seen = {**columns(inputs), "text_length": torch.tensor([5, 3, 4, 2])}
    model = of(Bag).build(inputs, {"asked": CLASSIFY.reads})
    ready = Learner(model, Data([Table("asked", seen, torch.tensor([0, 1, 2, 0]))]), {"asked": CLASSIFY})
    assert ready.fetch(np.arange(4)).parts[0].inputs["text"].shape == (4, 9)
