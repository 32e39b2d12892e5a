"""Dual encoders: as in transformers on the same weights; what is kept of them; what is refused."""

import copy

import pytest
import torch

from holdfast.engine.optimiser import Optimiser
from holdfast.errors import UserError
from holdfast.models import dual
from holdfast.models.bert import TinyBert
from holdfast.models.dual import Dual
from holdfast.models.frozen_part import PROBE, Lent, UnsuitableError, find
from holdfast.types import Head, Inputs, Training

INPUTS = Inputs(image=(3, 32, 32), text=6, vocabulary=30)
TINY = {"image": "vit-tiny", "text": "bert-tiny", "width": 8}
HEAD = {"head": Head("compare", 3)}
NONE = {"prompts": torch.zeros(0, 1, 1, dtype=torch.int32)}


def built(**settings):
    torch.manual_seed(0)
    return Dual(**{**TINY, **settings}).build(INPUTS, HEAD)


def rows(count=4, texts=None):
    draw = torch.Generator().manual_seed(1)
    shape = (count,) if texts is None else (count, texts)
    return {
        "image": torch.randint(0, 256, (count, 3, 32, 32), dtype=torch.uint8, generator=draw),
        "text": torch.randint(5, 30, (*shape, 6), generator=draw),
        "text_length": torch.randint(2, 7, shape, generator=draw),
    }


def prompts(classes=3, templates=2):
    found = rows(classes, templates)
    return {"prompts": found["text"], "prompts_length": found["text_length"]}


def published(kind, folder):
    import transformers

    torch.manual_seed(3)
    text = {"vocab_size": 30, "hidden_size": 16, "intermediate_size": 20, "num_hidden_layers": 2}
    text |= {"num_attention_heads": 2, "max_position_embeddings": 6, "eos_token_id": 29, "bos_token_id": 28}
    text |= {"pad_token_id": 1}
    vision = {"hidden_size": 24, "intermediate_size": 20, "num_hidden_layers": 2, "num_attention_heads": 2}
    vision |= {"image_size": 32, "patch_size": 8}
    if kind == "clip":
        config = transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=12)
        model = transformers.CLIPModel(config)
    else:
        text["hidden_size"] = 24
        model = transformers.SiglipModel(transformers.SiglipConfig(text_config=text, vision_config=vision))
    with torch.no_grad():
        model.logit_scale.fill_(1.3)
        if kind == "siglip":
            model.logit_bias.fill_(-3.0)
    model.save_pretrained(folder)
    return model.eval()


@pytest.mark.parametrize("kind", ["clip", "siglip"])
@pytest.mark.filterwarnings("ignore")
def test_a_published_dual_encoder_gives_what_transformers_does(kind, tmp_path, caplog):
    theirs, seen = published(kind, tmp_path), rows()
    ours = Dual(weights=str(tmp_path)).build(INPUTS, HEAD).eval()
    assert "has no tokenizer.json" in caplog.text
    present = torch.arange(6) < seen["text_length"][:, None]
    seen["text"] = seen["text"].clamp(max=27)
    seen["text"][torch.arange(4), seen["text_length"] - 1] = 29  # the end of a text, at which CLIP looks
    given = {"input_ids": seen["text"].where(present, 1)} | (
        {"attention_mask": present.long()} if kind == "clip" else {}
    )
    with torch.no_grad():
        pixels = ours.encoder.image.module.seen(seen["image"] / 255)
        expected = theirs(pixel_values=pixels, **given).logits_per_image
        by_prompts = {"prompts": seen["text"][:, None], "prompts_length": seen["text_length"][:, None]}
        logits = ours({"image": seen["image"], **by_prompts}, "head")
        pairs = ours(seen | NONE, "head")
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(pairs[:, 0] @ pairs[:, 1].T, expected, rtol=0, atol=1e-6)


def test_a_class_is_the_mean_of_its_prompts(capsys):
    model, given = built().eval(), prompts()
    tower, projected = model.encoder.text, model.encoder.text_projection
    each = [
        tower({"text": t, "text_length": n}) for t, n in zip(given["prompts"], given["prompts_length"], strict=True)
    ]
    each = [torch.nn.functional.normalize(projected(one), dim=-1).mean(0) for one in each]
    expected = torch.stack([one / one.norm() for one in each])
    found = model.encoder.classes(given["prompts"], given["prompts_length"])
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_prompts_are_read_once_as_long_as_the_tower_stays(monkeypatch):
    model, given, passes = built().eval(), prompts(), []
    seen = rows() | given
    forward = type(model.encoder.text).forward
    monkeypatch.setattr(type(model.encoder.text), "forward", lambda *a: passes.append(1) or forward(*a))
    with torch.inference_mode():
        first = model(seen, "head")
        torch.testing.assert_close(model(seen, "head"), first, rtol=0, atol=0)
    assert len(passes) == 1
    optimiser = Optimiser(Training(learning_rate=0.1), dict(model.named_parameters()))
    model.train()
    model(seen, "head").sum().backward()
    optimiser.step()
    model.eval()
    assert len(passes) == 2
    with torch.no_grad():
        changed = model(seen, "head")
        fresh = copy.deepcopy(model)(seen, "head")
    assert len(passes) == 4, "the optimiser's step changed the tower"
    torch.testing.assert_close(changed, fresh)
    assert (changed - first).abs().max() > 1e-3


def test_frozen_towers_are_recorded_and_a_copy_uses_the_records():
    model = built().eval()
    for tower in model.encoder.towers():
        tower.requires_grad_(False)
    given = prompts()
    for beside, texts, calls in ((given, None, ["image"]), (NONE, 2, ["image", "text"])):
        seen = rows(PROBE, texts)

        def run(inputs, beside=beside):
            return model(inputs | beside, "head")

        part = find(model.encoder, run, seen, [model.eval])
        names = {id(module): name for name, module in model.encoder.named_modules()}
        assert [names[id(call.module)] for call in part.calls] == calls
        with torch.no_grad():
            columns = part.columns(lambda run=run, seen=seen: run(seen), PROBE)
            other = copy.deepcopy(model).requires_grad_(False)
            other.encoder.image_projection.weight.add_(0.3)

            def unread():
                raise AssertionError("nobody reads the inputs")

            lent = Lent(part, columns, unread) | beside
            torch.testing.assert_close(model(lent, "head"), run(seen))
            torch.testing.assert_close(other(lent, "head"), other(seen | beside, "head"))
            other.encoder.image.norm.weight.mul_(2)
            lent = Lent(part, columns, lambda seen=seen: seen) | beside
            torch.testing.assert_close(other(lent, "head"), other(seen | beside, "head"))


def test_what_learns_is_not_recorded():
    model = built().eval()
    with pytest.raises(UnsuitableError):
        find(model.encoder, lambda inputs: model(inputs | NONE, "head"), rows(PROBE), [model.eval])


@pytest.mark.parametrize("holds", [("image", "text"), ()])
def test_what_is_saved_is_read_again(holds, tmp_path):
    model, words = built(), ["vit-tiny", "bert-tiny"]
    dual.save(model.encoder, tmp_path, words, INPUTS, holds)
    recipe = Dual(weights=str(tmp_path))
    torch.manual_seed(0 if not holds else 5)
    again = recipe.encoder(INPUTS)
    for name, value in model.encoder.state_dict().items():
        torch.testing.assert_close(again.state_dict()[name], value, rtol=0, atol=0)
    assert recipe.source() != Dual(**TINY).source()
    assert not again.scale.requires_grad
    torch.manual_seed(0)
    assert Dual(weights=str(tmp_path), learn_temperature=True).encoder(INPUTS).scale.requires_grad


def test_projections_belong_to_their_towers(tmp_path):
    dual.save(built().encoder, tmp_path, ["vit-tiny", "bert-tiny"], INPUTS, ["text"])
    torch.manual_seed(9)
    with pytest.raises(UserError, match=r"belong to another image tower, vit-tiny: set model\.image"):
        Dual(weights=str(tmp_path)).encoder(INPUTS)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"image": "resnet18", "width": 0}, "the towers give 512 and 64 numbers"),
        ({"image": "vit-tinny"}, "model.image is 'vit-tinny', which names no tower: did you mean vit-tiny"),
        ({"weights": "holdfast/bert-tiny"}, "holds a model of type 'bert': give a CLIP"),
    ],
)
def test_what_does_not_fit_is_refused(settings, message):
    with pytest.raises(UserError, match=message):
        Dual(**{**TINY, **settings}).encoder(INPUTS)


def test_word_pieces_of_another_tokenizer_are_refused(tmp_path):
    dual.save(built().encoder, tmp_path, ["vit-tiny", "bert-tiny"], INPUTS, dual.TOWERS)
    with pytest.raises(UserError, match=r"31 word pieces.*has 30"):
        Dual(weights=str(tmp_path)).encoder(Inputs(image=(3, 32, 32), text=6, vocabulary=31))


def test_other_encoders_compare_nothing():
    with pytest.raises(UserError, match="compares no images with texts: choose a dual encoder"):
        TinyBert().build(Inputs(text=6, vocabulary=30), HEAD)


def test_classes_that_have_not_appeared_are_closed():
    model = Dual(**TINY).build(INPUTS, {"head": Head("compare", 3, growing=True)})
    model.open_classes([0, 2])
    with torch.no_grad():
        assert (model(rows() | prompts(), "head").softmax(-1) > 0).tolist() == [[True, False, True]] * 4
