"""Encoders in Hugging Face's format, tiny and random, against the library itself and against our own."""

import copy
import json
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertModel,
    CLIPConfig,
    CLIPModel,
    ConvNextConfig,
    ConvNextModel,
    Dinov2Config,
    Dinov2Model,
    ResNetConfig,
    ResNetModel,
    SiglipConfig,
    SiglipModel,
    T5Config,
    T5Model,
    ViltConfig,
    ViltModel,
    ViTConfig,
    ViTForImageClassification,
    ViTModel,
)

from cli.inside import inside
from holdfast import registry
from holdfast.benchmarks.vocabulary import at_most
from holdfast.data.text import Tokenizer
from holdfast.errors import UserError
from holdfast.experiments.request import Request
from holdfast.models.huggingface import HuggingFace
from holdfast.models.weights import SHIPPED, locate
from holdfast.types import Head, Inputs, Wants
from processes import environment
from smallest import make_learner, prepare

SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 20}
SEEN = {"image_size": 16, "patch_size": 8}
WORDS = ["the red cup is on the left of a dog", "is there no man with two cups?", "Yes. A plan: how many are there"]
BOTH = Inputs((3, 16, 16), text=9, vocabulary=60)


def tokenizer(folder, pad="<|endoftext|>"):
    """A byte-pair tokenizer as CLIP has it, saved beside a model."""
    own = Backend(models.BPE(unk_token=pad))
    own.normalizer, own.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.ByteLevel(add_prefix_space=False)
    own.decoder = decoders.ByteLevel()
    start, alphabet = "<|startoftext|>", pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=[start, pad], initial_alphabet=alphabet, show_progress=False
    )
    own.train_from_iterator(WORDS, trainer)
    ends = [(each, own.token_to_id(each)) for each in (pad, start)]
    own.post_processor = processors.RobertaProcessing(*ends, trim_offsets=False, add_prefix_space=False)
    folder.mkdir(exist_ok=True)
    own.save(str(folder / "tokenizer.json"))
    kept = {"pad_token": pad, "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 12}
    (folder / "tokenizer_config.json").write_text(json.dumps(kept))
    return own


def scrambled(model):
    torch.manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
    return model.eval()


TEXT = {**SIZES, "vocab_size": 60, "max_position_embeddings": 12, "pad_token_id": 1, "bos_token_id": 0}
MODELS = {
    "vit": lambda: ViTModel(ViTConfig(**SIZES, **SEEN)),
    "dinov2": lambda: Dinov2Model(Dinov2Config(**SIZES, **SEEN)),
    "convnext": lambda: ConvNextModel(ConvNextConfig(hidden_sizes=[8, 16], depths=[1, 3], num_stages=2)),
    "resnet": lambda: ResNetModel(ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 4])),
    "bert": lambda: BertModel(BertConfig(**TEXT)),
    "t5": lambda: T5Model(T5Config(vocab_size=60, d_model=16, d_kv=8, d_ff=20, num_layers=2, num_heads=2)),
    "clip": lambda: CLIPModel(
        CLIPConfig(text_config={**TEXT, "eos_token_id": 2}, vision_config={**SIZES, **SEEN}, projection_dim=6)
    ),
    "siglip": lambda: SiglipModel(SiglipConfig(text_config=TEXT, vision_config={**SIZES, **SEEN})),
    "vilt": lambda: ViltModel(ViltConfig(**{**TEXT, **SEEN})),
}


def saved(name, folder, **processor):
    """A model in a folder, and its processor's settings if any."""
    torch.manual_seed(0)
    model = scrambled(MODELS[name]())
    model.save_pretrained(folder)
    if processor:
        (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    return model


def columns(rows=4, inputs=BOTH):
    draw = torch.Generator().manual_seed(1)
    return {
        "image": torch.randint(0, 256, (rows, *inputs.image), dtype=torch.uint8, generator=draw),
        "text": torch.randint(3, 60, (rows, inputs.text), dtype=torch.int32, generator=draw),
        "text_length": torch.tensor([9, 1, 4, 6][:rows], dtype=torch.int32),
    }


def theirs(given):
    present = (torch.arange(given["text"].shape[1]) < given["text_length"][:, None]).long()
    text = given["text"].long().where(present.bool(), torch.tensor(1))
    return given["image"] / 127.5 - 1, {"input_ids": text, "attention_mask": present}


def _mean(states, mask):
    mask = mask.unsqueeze(-1)
    return (states * mask).sum(1) / mask.sum(1)


def _siglip(model, image, text):
    ids = torch.nn.functional.pad(text["input_ids"], (0, 3), value=1)
    found = model(input_ids=ids, pixel_values=image)
    return torch.cat([found.vision_model_output.pooler_output, found.text_model_output.pooler_output], 1)


def _clip(model, image, text):
    parts = model.vision_model(image).pooler_output, model.text_model(**text).pooler_output
    return torch.cat([model.visual_projection(parts[0]), model.text_projection(parts[1])], 1)


EXPECTED = {
    "vit": lambda model, image, text: model(image).pooler_output,
    "dinov2": lambda model, image, text: model(image).last_hidden_state[:, 0],
    "convnext": lambda model, image, text: model(image).pooler_output,
    "resnet": lambda model, image, text: model(image).last_hidden_state.mean((2, 3)),
    "bert": lambda model, image, text: model(**text).pooler_output,
    "t5": lambda model, image, text: _mean(model.encoder(**text).last_hidden_state, text["attention_mask"]),
    "clip": _clip,
    "siglip": _siglip,
    "vilt": lambda model, image, text: model(**text, pixel_values=image).pooler_output,
}


@pytest.mark.parametrize("name", MODELS)
def test_the_vector_is_what_the_library_gives(name, tmp_path):
    reference = saved(name, tmp_path)
    side = {} if name not in ("convnext", "resnet") else {"size": {"shortest_edge": 16}, "do_resize": True}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(side))
    torch.manual_seed(0)
    model = HuggingFace(weights=str(tmp_path)).build(BOTH, {"h": Head("classify", 3)})
    encoder, given = model.encoder.eval(), columns()
    with torch.no_grad():
        expected = EXPECTED[name](reference, *theirs(given))
    torch.testing.assert_close(encoder(given), expected, rtol=0, atol=2e-5)
    assert encoder.width == expected.shape[1]
    assert len(encoder.layers()) == {"clip": 4, "siglip": 4, "convnext": 4, "resnet": 5}.get(name, 2)
    assert len(encoder.blocks()) == len(encoder.layers())
    # As after a frozen bottom: what is above learns, what is below does not, and adapters leave no trace.
    plain = model(given, "h")
    model.add("h", [block.adapters(4) for block in encoder.blocks()])
    assert not torch.equal(model(given, "h"), plain)
    model.remove("h")
    assert torch.equal(model(given, "h"), plain)


@pytest.mark.parametrize("name", ["vit", "dinov2", "convnext", "resnet", "clip", "siglip"])
def test_a_map_has_the_last_states_in_their_places(name, tmp_path):
    reference, given = saved(name, tmp_path), columns()
    side = {} if name not in ("convnext", "resnet") else {"size": {"shortest_edge": 64}}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(side))
    if side:
        given["image"] = torch.randint(0, 256, (4, 3, 64, 64), dtype=torch.uint8)
    image, _ = theirs(given)
    with torch.no_grad():
        states = getattr(reference, "vision_model", reference)(image).last_hidden_state
    if states.ndim == 3:
        patches = states[:, name != "siglip" :]  # a class token stands before them
        down, across = (side // SEEN["patch_size"] for side in image.shape[-2:])
        states = torch.stack([patches[:, n] for n in range(down * across)], 2).view(4, -1, down, across)
    encoder = HuggingFace(weights=str(tmp_path)).encoder(Inputs(tuple(given["image"].shape[1:]))).eval()
    torch.testing.assert_close(encoder.grid(given["image"]), states, rtol=0, atol=2e-5)


def test_a_text_model_has_no_map(tmp_path):
    saved("bert", tmp_path)
    with pytest.raises(UserError, match=r"asks for 'text', but this benchmark has image"):
        HuggingFace(weights=str(tmp_path)).encoder(BOTH).grid(columns()["image"])


def test_a_pooler_without_weights_is_left_out(tmp_path):
    config = ViTConfig(**SIZES, **SEEN)
    reference = scrambled(ViTForImageClassification(config))
    reference.save_pretrained(tmp_path)
    encoder = HuggingFace(weights=str(tmp_path)).encoder(BOTH).eval()
    image, _ = theirs(columns())
    torch.testing.assert_close(encoder(columns()), reference.vit(image).last_hidden_state[:, 0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("mode", ["pooling_mode_mean_tokens", "pooling_mode_cls_token"])
def test_a_sentence_encoder_says_how_it_pools(tmp_path, mode):
    reference = saved("bert", tmp_path)
    before = HuggingFace(weights=str(tmp_path)).source()
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps({mode: True, "pooling_mode_max_tokens": False}))
    assert HuggingFace(weights=str(tmp_path)).source() != before
    encoder = HuggingFace(weights=str(tmp_path)).encoder(Inputs(text=9, vocabulary=60)).eval()
    given = columns()
    many = {name: torch.cat([given[name]] * 40) for name in ("text", "text_length")}
    _, text = theirs(given)
    states, present = reference(**text).last_hidden_state, text["attention_mask"].unsqueeze(-1)
    mean = (states * present).sum(1) / present.sum(1)
    expected = mean if mode == "pooling_mode_mean_tokens" else states[:, 0]
    with torch.no_grad():  # texts of similar length go together
        torch.testing.assert_close(encoder(many), torch.cat([expected] * 40), rtol=0, atol=1e-5)


def test_the_processors_size_and_normalisation_count(tmp_path):
    own = {"image_mean": [0.1, 0.2, 0.3], "image_std": [0.4, 0.5, 0.6], "rescale_factor": 1 / 127.5}
    reference = saved("vit", tmp_path, **own)
    assert HuggingFace(weights=str(tmp_path)).wants() == Wants(side=16)
    encoder = HuggingFace(weights=str(tmp_path)).encoder(BOTH).eval()
    mean, deviation = (torch.tensor(own[name]).view(3, 1, 1) for name in ("image_mean", "image_std"))
    given = columns()
    expected = reference((given["image"] / 127.5 - mean) / deviation).pooler_output
    torch.testing.assert_close(encoder(given), expected, rtol=0, atol=2e-5)
    grey = {"image": given["image"][:, :1]}
    alike = {"image": given["image"][:, :1].expand(-1, 3, -1, -1)}
    small = HuggingFace(weights=str(tmp_path)).encoder(Inputs((1, 8, 8))).eval()
    torch.testing.assert_close(small(grey), encoder(alike))
    flat = {"image": torch.full((2, 1, 8, 8), 77, dtype=torch.uint8)}
    whole = {"image": torch.full((2, 1, 16, 16), 77, dtype=torch.uint8)}
    torch.testing.assert_close(small(flat), small(whole), msg="brought to the side that it was made for")
    saved("convnext", tmp_path / "other", size={"shortest_edge": 20}, crop_size={"height": 12, "width": 12})
    assert HuggingFace(weights=str(tmp_path / "other")).wants().side == 12


@pytest.mark.parametrize("name", ["bert", "vilt"])
def test_segments_are_given_to_models_that_know_them(tmp_path, name):
    model, given = saved(name, tmp_path), columns(2)
    given["image"] = given["image"] if name == "vilt" else given["image"][:0]
    inputs = replace(BOTH, pairs=True, image=BOTH.image if name == "vilt" else None)
    second = torch.tensor([4, 1], dtype=torch.int32)
    pixels, text = theirs(given)
    text["token_type_ids"] = (torch.arange(9) >= second[:, None]).long()
    with torch.random.fork_rng():
        expected = model(**text, **({"pixel_values": pixels} if name == "vilt" else {})).pooler_output
    given = {column: value for column, value in given.items() if len(value)} | {"text_second": second}
    found = HuggingFace(weights=str(tmp_path)).encoder(inputs).eval()(given)
    torch.testing.assert_close(found, expected, rtol=0, atol=2e-5)
    assert not torch.allclose(HuggingFace(weights=str(tmp_path)).encoder(BOTH).eval()(columns(2)), expected, atol=1e-3)


def test_the_models_own_tokenizer_cuts_the_texts(tmp_path):
    own = tokenizer(tmp_path)
    loaded = Tokenizer.load(tmp_path / "tokenizer.json")
    reference = AutoTokenizer.from_pretrained(tmp_path)
    texts = ["The red CUP", "nothing known: Ünïcödé", ""]
    pairs = ["on a dog", "x", "yes"]
    for given, found in [((texts,), loaded.encode(texts, 8)), ((texts, pairs), loaded.encode_joined(texts, pairs, 8))]:
        expected = reference(*given, padding="max_length", truncation=True, max_length=8)
        numbers, lengths = found
        assert numbers.tolist() == expected["input_ids"]
        assert lengths.tolist() == [sum(mask) for mask in expected["attention_mask"]]
    assert loaded.pad == own.token_to_id("<|endoftext|>")
    assert len(loaded.vocabulary) == own.get_vocab_size()
    assert loaded.decode(loaded.encode(texts, 8)[0][0]).split() == ["the", "red", "cup"]
    assert loaded.fingerprint != Tokenizer(loaded.vocabulary, loaded.rules.replace("Lowercase", "NFC")).fingerprint
    assert copy.deepcopy(loaded).encode(texts, 8)[0].tolist() == loaded.encode(texts, 8)[0].tolist()
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(UserError, match=r"tokenizer.json is not a tokenizer"):
        Tokenizer.load(tmp_path / "tokenizer.json")


def test_what_a_model_wants_follows_from_its_folder(tmp_path):
    saved("bert", tmp_path)
    assert HuggingFace(weights=str(tmp_path)).wants() == Wants(length=12)
    tokenizer(tmp_path)
    assert HuggingFace(weights=str(tmp_path)).wants() == Wants(vocabulary=tmp_path / "tokenizer.json", length=12)
    config = json.loads((tmp_path / "config.json").read_text()) | {"model_type": "roberta"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert HuggingFace(weights=str(tmp_path)).wants().length == 10, "two positions stand before the first word"
    assert at_most(40, HuggingFace(weights=str(tmp_path)).wants()) == 10
    (tmp_path / "tokenizer.json").rename(tmp_path / "spiece.model")
    with pytest.raises(UserError, match=r"has its tokenizer as spiece.model: save it as tokenizer.json"):
        HuggingFace(weights=str(tmp_path)).wants()


def test_the_hash_covers_every_file_that_is_read(tmp_path):
    saved("vit", tmp_path, image_mean=[0.5] * 3)
    tokenizer(tmp_path)
    found = {HuggingFace(weights=str(tmp_path)).source()}
    read = [path for path in tmp_path.iterdir() if path.name != "README.md"]
    for path in read:
        content = path.read_bytes()
        path.write_bytes(content + b" ")
        found.add(HuggingFace(weights=str(tmp_path)).source())
        path.write_bytes(content)
    assert len(found) == 1 + len(read) == 6
    (tmp_path / "README.md").write_text("other words")
    moved = shutil.copytree(tmp_path, tmp_path.with_name("moved"))
    assert HuggingFace(weights=str(moved)).source() in found


def test_words_are_the_last_states_of_the_text(tmp_path):
    for name in ("bert", "vilt"):
        reference = saved(name, tmp_path / name)
        encoder = HuggingFace(weights=str(tmp_path / name)).encoder(BOTH).eval()
        image, text = theirs(given := columns())
        more = {"pixel_values": image} if name == "vilt" else {}
        expected = reference(**text, **more).last_hidden_state[:, :9]
        present = text["attention_mask"].bool()
        torch.testing.assert_close(encoder.words(given)[present], expected[present], rtol=0, atol=2e-5)
        assert encoder.word_embedding().num_embeddings == 60


def test_a_model_of_text_and_images_reads_a_text_where_there_is_none(tmp_path):
    reference = saved("vilt", tmp_path)
    encoder = HuggingFace(weights=str(tmp_path)).encoder(Inputs((3, 16, 16))).eval()
    given = columns()
    image, _ = theirs(given)
    expected = reference(input_ids=torch.zeros(4, 1, dtype=torch.long), pixel_values=image).pooler_output
    torch.testing.assert_close(encoder({"image": given["image"]}), expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize(
    ("name", "inputs", "message"),
    [
        ("vit", Inputs(text=9, vocabulary=60), "a ViTModel, which needs images, but this benchmark has none"),
        ("bert", Inputs((3, 16, 16)), "a BertModel, which needs text, but this benchmark has none"),
        ("clip", Inputs(regions=(2, 3)), "a CLIPModel, which needs images or text"),
        ("bert", replace(BOTH, vocabulary=61), "knows 60 word pieces, but the texts have 61: add its tokenizer.json"),
    ],
)
def test_what_a_model_cannot_read_is_said(name, inputs, message, tmp_path):
    saved(name, tmp_path)
    with pytest.raises(UserError, match=message):
        HuggingFace(weights=str(tmp_path)).encoder(inputs)


def test_a_folder_that_is_no_whole_model_is_refused(tmp_path, monkeypatch):
    with pytest.raises(UserError, match="needs a folder, or a name in the local cache: write hf:FOLDER or hf:NAME"):
        HuggingFace().wants()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UserError, match="'no/such', which is neither a folder here nor in the hub's cache: download"):
        HuggingFace(weights="no/such").wants()
    model = saved("vit", tmp_path)
    state = model.state_dict()
    state.pop("layernorm.bias")
    model.save_pretrained(tmp_path, state_dict=state)
    with pytest.raises(UserError, match=r"lacks layernorm.bias: give the weights of a whole ViTModel"):
        HuggingFace(weights=str(tmp_path)).encoder(BOTH)
    (tmp_path / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(UserError, match="cannot be loaded"):
        HuggingFace(weights=str(tmp_path)).encoder(BOTH)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(UserError, match="has no weights: it needs"):
        HuggingFace(weights=str(tmp_path)).encoder(BOTH)
    saved("vit", tmp_path)
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(UserError, match=r"hf: needs the library transformers: pip install .holdfast\[hf\]."):
        HuggingFace(weights=str(tmp_path)).encoder(BOTH)


def test_the_word_has_the_folder_and_the_id_has_not(tmp_path):
    saved("vit", tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    saved("dinov2", tmp_path / "three")
    entry = registry.find(f"hf:{tmp_path}", "model")
    assert (entry.name, entry.given) == ("hf", {"weights": str(tmp_path)})
    ids = [
        prepare(Request("patterns", model=f"hf:{tmp_path / name}", scale="tiny")).config.id
        for name in ("one", "two", "three")
    ]
    assert ids[0] == ids[1] != ids[2]


def vilt(folder):
    """A ViLT with the word pieces of the one that ships."""
    pieces = locate(f"{SHIPPED}vilt-tiny", "") / "vocab.txt"
    sizes = {**SIZES, "vocab_size": len(pieces.read_text(encoding="utf-8").splitlines()), "image_size": 32}
    scrambled(ViltModel(ViltConfig(**sizes, patch_size=8, max_position_embeddings=16))).save_pretrained(folder)
    shutil.copy(pieces, folder)
    return folder


def test_two_images_and_choices_are_as_in_our_vilt(tmp_path):
    folder = vilt(tmp_path / "vilt")
    found = []
    for model, settings in ((f"hf:{folder}", {}), ("vilt", {"model.weights": str(folder)})):
        request = Request("climb", model=model, scale="tiny", precision="float64", order="nlvr2>vcr", settings=settings)
        ready = prepare(request)
        learner = make_learner(ready)
        answers = []
        for stage in ready.setup.stream.stages:
            learner.draw_at(1)
            batch = learner.fetch(stage.train[:8])
            answers.append(learner.forward(batch)[0])
            learner.gradients(stage.train[:8])
            answers.append([p.grad for p in learner.model.heads.parameters() if p.grad is not None])
        found.append(answers)
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=1e-9)


@pytest.mark.slow
def test_our_vilt_and_theirs_give_the_same_scores_over_climb(tmp_path):
    folder = vilt(tmp_path / "vilt")
    records = []
    for words in (["--model", f"hf:{folder}"], ["--model", "vilt", "--set", f"model.weights={folder}"]):
        words = ["run", "climb", *words, "--scale", "tiny", "--no-needs", "--json", "--out", str(tmp_path / "runs")]
        records += json.loads(inside(*words, cwd=tmp_path).stdout)
    pairs = list(zip(records[0]["scores"], records[1]["scores"], strict=True))
    assert len(pairs) == 40
    assert max(abs(one["score"] - other["score"]) for one, other in pairs) < 1e-6
    assert len({one["score"] for one, _ in pairs}) > 5


@pytest.mark.slow
@pytest.mark.parametrize("name", ["vit", "clip", "vilt"])
@pytest.mark.parametrize("benchmark", ["cfst:cgqa", "climb"])
def test_runs_with_two_workers(name, benchmark, tmp_path):
    folder = tmp_path / name
    if name == "vilt":
        vilt(folder)
    else:
        saved(name, folder)
    if name == "clip":
        size = tokenizer(folder).get_vocab_size()
        text = {**TEXT, "vocab_size": size, "eos_token_id": 1}
        config = CLIPConfig(text_config=text, vision_config={**SIZES, **SEEN}, projection_dim=6)
        CLIPModel(config).save_pretrained(folder)
    words = ["run", benchmark, "--model", f"hf:{folder}", "-a", "finetune,er", "-j", "2", "--scale", "tiny"]
    done = inside(*words, "--no-needs", "--json", "--out", str(tmp_path / "runs"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    records = json.loads(done.stdout)
    assert len(records) == 2
    assert all(record["scores"] for record in records)


def test_the_library_is_imported_where_it_is_needed():
    code = "import sys, holdfast.models.huggingface; sys.exit('transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=environment(), check=False).returncode == 0


ATTENDS = {
    "vit": ("q_proj", "k_proj", "v_proj", "o_proj"),
    "bert": ("query", "key", "value", None),
    "clip": ("q_proj", "k_proj", "v_proj", "out_proj"),
    "siglip": ("q_proj", "k_proj", "v_proj", "out_proj"),
    "vilt": ("query", "key", "value", None),
}


def attention_by_hand(layers, x, own, hidden):
    """Softmax over the keys of the prefix and of the sequence, for each head; nothing hides the prefix."""
    query, key, value = (layer(x) for layer in layers[:3])
    key, value = torch.cat([own[0], key], 1), torch.cat([own[1], value], 1)
    heads = [y.unflatten(-1, (2, 8)).transpose(1, 2) for y in (query, key, value)]
    scores = heads[0] @ heads[1].transpose(-1, -2) / 8**0.5
    scores[..., own[0].shape[1] :].masked_fill_(hidden, -torch.inf)
    found = (scores.exp() / scores.exp().sum(-1, keepdim=True) @ heads[2]).transpose(1, 2).flatten(2)
    return found if layers[3] is None else layers[3](found)


@pytest.mark.parametrize("name", ATTENDS)
def test_a_prefix_stands_in_every_attention(name, tmp_path):
    saved(name, tmp_path)
    kind = {"bert": Inputs(text=9, vocabulary=60), "vit": Inputs((3, 16, 16))}.get(name, BOTH)
    model = HuggingFace(str(tmp_path)).build(kind, {"one": Head("classify", 3)}).double().eval()
    given, lengths = columns(), torch.tensor([9, 1, 4, 6])
    with torch.no_grad():
        plain = model(given, "one")
        model.add("one", [block.prefixes(3, pool=4).double() for block in model.encoder.blocks()])
        model.choose = lambda inputs, head: torch.tensor([[0, 3], [1, 2], [2, 2], [3, 0]])
        captured = {}
        for block in model.encoder.blocks():
            for place, prefix in block.added["one"].items():
                for number, parameter in enumerate(prefix.parameters()):
                    parameter.copy_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(number)))
                module = block.attention[place].module
                module.register_forward_pre_hook(
                    lambda own, args, named: captured.update({(own, "in"): (*args, *named.values())[0]}),
                    with_kwargs=True,
                    prepend=True,
                )
                module.register_forward_hook(lambda own, args, output: captured.update({(own, "out"): output[0]}))
        model(given, "one")
        seen = 0
        for block in model.encoder.blocks():
            for place, prefix in block.added["one"].items():
                module = block.attention[place].module
                x, found = (captured[module, end] for end in ("in", "out"))
                own = [
                    torch.stack([torch.cat([p[a], p[b]]) for a, b in [(0, 3), (1, 2), (2, 2), (3, 0)]])
                    for p in (prefix.key, prefix.value)
                ]
                hidden = torch.zeros(4, 1, 1, x.shape[1], dtype=torch.bool)
                if name in ("bert", "vilt") or (name == "clip" and x.shape[1] == 9):
                    hidden[..., :9] = (torch.arange(9) >= lengths[:, None])[:, None, None]
                if name == "clip" and x.shape[1] == 9:
                    hidden = hidden | torch.ones(9, 9, dtype=torch.bool).triu(1)
                layers = [each and getattr(module, each) for each in ATTENDS[name]]
                torch.testing.assert_close(found, attention_by_hand(layers, x, own, hidden))
                seen += 1
        assert seen == {"clip": 4, "siglip": 4}.get(name, 2)
        model.choose = None
        model.remove("one")
        assert torch.equal(model(given, "one"), plain)
