"""Language models that write, against `transformers` with the same weights."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional
from transformers import AutoModelForCausalLM, AutoModelForImageTextToText

from generating import PLACE, gpt2, llama, llava, smolvlm
from holdfast.errors import UserError
from holdfast.experiments import size
from holdfast.experiments.request import Request
from holdfast.experiments.size import parameters_outside
from holdfast.models import library
from holdfast.models.decoding import left_padded
from holdfast.models.huggingface import HuggingFace
from holdfast.models.perceptron import Perceptron
from holdfast.types import Head, Inputs
from smallest import make_learner, prepare, trained

HEADS = {"text": Head("generate", 304)}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    base = tmp_path_factory.mktemp("generative")
    return {"llama": llama(base / "llama"), "gpt2": gpt2(base / "gpt2"), "llava": llava(base / "llava")} | {
        "smolvlm": smolvlm(base / "smolvlm")
    }


def ready(model, algorithm="finetune", **settings):
    given = {name.replace("__", "."): value for name, value in settings.items()}
    return prepare(Request(PLACE, algorithm, model, precision="float64", settings=given))


def batch(learner, rows=range(0, 16, 3)):
    return learner.fetch(np.array(list(rows)))


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_loss_and_logits_are_those_of_transformers(name, folders):
    learner = make_learner(ready(f"hf:{folders[name]}"))
    model = AutoModelForCausalLM.from_pretrained(folders[name]).double()
    given = batch(learner)
    part, (output,) = given.parts[0], learner.outputs(given)
    losses = learner.losses(given, (output,))
    for row in range(len(losses)):  # without any padding
        text = part.inputs["text"][row, : part.inputs["text_length"][row]].long()
        answer = part.inputs["answer"][row][part.inputs["answer"][row] >= 0].long()
        labels = torch.cat([torch.full_like(text, -100), answer])[None]
        theirs = model(input_ids=torch.cat([text, answer])[None], labels=labels)
        torch.testing.assert_close(theirs.logits[0, len(text) - 1 : -1], output[row, : len(answer)], rtol=0, atol=1e-6)
        torch.testing.assert_close(theirs.loss.double(), losses[row], rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["llama", "llava", "smolvlm"])
def test_padding_changes_no_logits(name, folders):
    learner = make_learner(ready(f"hf:{folders[name]}", benchmark__images=name != "llama"))
    learner.model.eval()
    lengths = learner.data.tables[0].inputs["text_length"]
    shorter, found = np.flatnonzero(np.asarray(lengths) < int(lengths.max())), []
    for trim in (True, False):
        given = learner.data.fetch(shorter, learner.device, trim=trim)
        found.append((given.parts[0].inputs["text"].shape[1], learner.outputs(given)[0]))
    (short, one), (long, other) = found
    assert short < long
    torch.testing.assert_close(one, other[:, : one.shape[1]], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ["llava", "smolvlm"])
def test_images_count_as_in_transformers(name, folders):
    """The library's model gets the prompt that our template gives, and pixels that its processor would make."""
    learner = make_learner(ready(f"hf:{folders[name]}", benchmark__images=True))
    model = AutoModelForImageTextToText.from_pretrained(folders[name]).double()
    given = batch(learner)
    part, (output,) = given.parts[0], learner.outputs(given)
    losses = learner.losses(given, (output,))
    mean, deviation = (torch.tensor(each).view(3, 1, 1) for each in ([0.5, 0.4, 0.3], [0.2, 0.3, 0.4]))
    pixels = ((part.inputs["image"] / 255 - mean) / deviation).double()
    for row in range(len(losses)):
        text = part.inputs["text"][row, : part.inputs["text_length"][row]].long()
        assert (text == 3).sum() == (16 if name == "llava" else 4)
        answer = part.inputs["answer"][row][part.inputs["answer"][row] >= 0].long()
        labels = torch.cat([torch.full_like(text, -100), answer])[None]
        shown = pixels[row : row + 1] if name == "llava" else pixels[row : row + 1, None]
        theirs = model(input_ids=torch.cat([text, answer])[None], pixel_values=shown, labels=labels)
        torch.testing.assert_close(theirs.logits[0, len(text) - 1 : -1], output[row, : len(answer)], rtol=0, atol=1e-6)
        torch.testing.assert_close(theirs.loss.double(), losses[row], rtol=0, atol=1e-6)


@pytest.fixture(scope="module")
def learned(folders):
    """Models that have learned a little, so that answers differ and some end."""
    return {
        name: trained(ready(f"hf:{folders[name]}", **{"train__epochs": 12, "train__learning_rate": 1e-2, **images}))[0]
        for name, images in {"llama": {}, "gpt2": {}, "llava": {"benchmark__images": True, "train__epochs": 30}}.items()
    }


@pytest.mark.parametrize("name", ["llama", "gpt2", "llava"])
@pytest.mark.parametrize("beams", [1, 2, 4])
def test_writes_what_transformers_generates(name, beams, learned):
    learner = learned[name]
    given = batch(learner, range(16))
    learner.model.eval()
    encoder = learner.model.encoder
    model = encoder.model if name == "llava" else encoder.language.model
    inputs = dict(given.parts[0].inputs)
    shown = {"pixel_values": encoder.pixels(inputs["image"].double() / 255)} if name == "llava" else {}
    inputs["write"] = torch.tensor([[8, beams]])
    del inputs["answer"]
    with torch.inference_mode():
        ours = learner.model(inputs, "text").long()
        tokens, present = left_padded(inputs["text"], inputs["text_length"], 1)
        options = {"max_new_tokens": 8, "num_beams": beams, "do_sample": False}
        theirs = model.generate(tokens, attention_mask=present.long(), **options, **shown)
    theirs = theirs[:, tokens.shape[1] :]
    theirs = functional.pad(theirs, (0, 8 - theirs.shape[1]), value=2)
    ended = (theirs == 1).cumsum(1) > 0
    assert ours.tolist() == theirs.masked_fill(ended, -1).tolist()
    assert ended.any(), "some answers end"
    assert len({tuple(row) for row in ours.tolist()}) > 1, "and not all are the same"


def test_the_likeliest_choice_is_that_of_whole_passes(folders):
    learner = make_learner(ready(f"hf:{folders['gpt2']}", benchmark__choices=True))
    given = batch(learner)
    part = given.parts[0]
    with torch.inference_mode():
        (found,) = learner.answers(given)
        choices = part.inputs["choices"].long()
        for row in range(len(found)):
            sums = []
            for choice in choices[row]:
                inputs = {name: column[row : row + 1] for name, column in part.inputs.items()}
                logits = learner.model({**inputs, "answer": choice[None]}, "text")[0].log_softmax(-1)
                own = choice[choice >= 0]
                sums.append(logits[torch.arange(len(own)), own].sum())
            best = choices[row][int(torch.stack(sums).argmax())]
            right = best[(best >= 0) & (best != 1)].tolist()
            assert [token for token in found[row].tolist() if token >= 0] == right


def test_checkpointing_changes_memory_alone(folders):
    slopes = []
    for checkpointing in (False, True):
        model = HuggingFace(str(folders["llama"]), checkpointing=checkpointing)
        network = model.build(Inputs(text=9, vocabulary=304, answer=5, end=1), HEADS).double()
        given = {"text": torch.full((2, 9), 7), "text_length": torch.tensor([9, 4]), "answer": torch.full((2, 5), 8)}
        network(given, "text").square().mean().backward()
        slopes.append([parameter.grad for parameter in network.parameters()])
    for one, two in zip(*slopes, strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=1e-12)


def test_says_that_it_writes_and_by_which_template(folders):
    wants = HuggingFace(str(folders["llama"]), template="Q: {} A: ").wants()
    assert (wants.speaks, wants.template, wants.length) == (folders["llama"], "Q: {} A: ", 64)


def test_reports_folders_that_write_nothing(folders, tmp_path):
    config = json.loads((folders["llama"] / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "architectures": ["BertModel"], "model_type": "bert"}))
    assert HuggingFace(str(tmp_path)).wants().speaks is None
    with pytest.raises(UserError, match="holds BertModel, which writes no text: give a folder"):
        HuggingFace(str(tmp_path)).build(Inputs(text=9, vocabulary=304, answer=5), HEADS)
    with pytest.raises(
        UserError, match="PerceptronEncoder writes no text: choose a language model, such as prefix-lm-"
    ):
        Perceptron().build(Inputs((1, 4, 4)), HEADS)


def test_reports_an_answer_that_is_longer_than_the_context(folders):
    with pytest.raises(
        UserError, match="the model reads 64 tokens, but a sequence needs 70: 60 of the prompt and 10 of"
    ):
        HuggingFace(str(folders["llama"])).build(Inputs(text=60, vocabulary=304, answer=10), HEADS)
    with pytest.raises(
        UserError, match=r"the answer 'cold' takes \d tokens with its end, and at most 1 are written: set"
    ):
        ready(f"hf:{folders['llama']}", benchmark__longest=1)


def test_reports_a_tokenizer_of_another_model(folders):
    with pytest.raises(UserError, match="knows 304 tokens, but the tokenizer has 400"):
        HuggingFace(str(folders["llama"])).build(Inputs(text=9, vocabulary=400, answer=5), HEADS)


@pytest.mark.parametrize("name", ["llama", "gpt2", "llava"])
def test_a_model_that_does_not_fit_is_refused_before_its_weights_are_read(name, folders, monkeypatch):
    found = ready(f"hf:{folders[name]}", benchmark__images=name == "llava")
    whole = sum(each.numel() for each in make_learner(found).model.parameters())
    assert parameters_outside(found.config, found.setup) == whole
    monkeypatch.setattr(size, "free_memory", lambda: 1000)
    monkeypatch.setattr(library, "loaded", lambda *given: pytest.fail("the weights are read"))
    with pytest.raises(UserError, match=r"parameters.*make it smaller"):
        make_learner(found)


def test_half_precision_learns_the_same_to_its_own_precision(folders):
    found = ready(f"hf:{folders['llama']}")
    exact = make_learner(found)
    half = make_learner(
        replace(found, config=replace(found.config, request=replace(found.config.request, precision="bfloat16")))
    )
    (one,), (other,) = exact.outputs(batch(exact)), half.outputs(batch(half))
    assert other.dtype == torch.float32
    torch.testing.assert_close(one.float(), other, rtol=0, atol=0.05)
    assert not torch.equal(one.float(), other)
