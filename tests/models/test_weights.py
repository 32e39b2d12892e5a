"""Reading published weights: every format, and one sentence for everything that can be wrong with them."""

import json
import sys
import types
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertModel

from holdfast.errors import UserError
from holdfast.models import weights
from holdfast.models.bert import NAMES, Bert
from holdfast.types import Inputs

INPUTS = Inputs(text=7, vocabulary=30)


@pytest.fixture
def folder(tmp_path):
    torch.manual_seed(0)
    config = BertConfig(hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12, vocab_size=30)
    BertModel(config).save_pretrained(tmp_path / "bert")
    return tmp_path / "bert"


def change(folder, **changes):
    """Write a folder's weights anew, with some of them changed, added or (None) left out."""
    state = load_file(folder / "model.safetensors") | changes
    save_file({name: weight for name, weight in state.items() if weight is not None}, folder / "model.safetensors")


def encoder(folder):
    return Bert(weights=str(folder)).encoder(INPUTS)


def test_sharded_and_old_files_hold_the_same_weights(folder, tmp_path):
    whole = weights.read_state(folder)
    BertModel.from_pretrained(folder).save_pretrained(tmp_path / "sharded", max_shard_size="2KB")
    assert len(weights.weight_files(tmp_path / "sharded")) > 2
    (tmp_path / "old").mkdir()
    torch.save(whole, tmp_path / "old" / "pytorch_model.bin")
    for other in ("sharded", "old"):
        found = weights.read_state(tmp_path / other)
        assert found.keys() == whole.keys()
        assert all(torch.equal(found[name], whole[name]) for name in whole)


def test_queries_keys_and_values_are_stacked_and_taken_apart(folder, tmp_path):
    theirs, ours = weights.read_state(folder), encoder(folder)
    parts = [theirs[f"encoder.layer.1.attention.self.{part}.bias"] for part in ("query", "key", "value")]
    assert torch.equal(ours.stack[1].attention.projection.bias, torch.cat(parts))
    ours.save(tmp_path / "again")
    again = weights.read_state(tmp_path / "again")
    assert again.keys() == theirs.keys()
    assert all(torch.equal(again[name], theirs[name]) for name in theirs)


def test_our_names_are_stable():
    """Checkpoints hold these names: a change of one makes old runs unreadable."""
    names = set(Bert(width=8, depth=1, heads=2, hidden=12).encoder(INPUTS).state_dict())
    block = ["attention.projection", "attention.output", "attention_norm"]
    block += ["feed_forward.inner", "feed_forward.output", "feed_forward_norm"]
    expected = {f"text.{table}.weight" for table in ("words", "positions", "segments")}
    modules = ["text.norm", "pooler", *(f"stack.0.{part}" for part in block)]
    assert names == expected | {f"{module}.{leaf}" for module in modules for leaf in ("weight", "bias")}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"encoder.layer.1.attention.self.key.weight": None},
            r"has no weight encoder.layer.1.attention.self.key.weight, which needs the shape \(8, 8\)",
        ),
        (
            {"encoder.layer.0.attention.self.value.bias": torch.zeros(9)},
            r"encoder.layer.0.attention.self.value.bias has the shape \(9,\), but this model needs \(8,\)",
        ),
        (
            {"encoder.layer.2.output.dense.bias": torch.zeros(8)},
            r"has a weight encoder.layer.2.output.dense.bias of shape \(8,\), which this model does not have",
        ),
        (
            {"embeddings.word_embeddings.weight": torch.zeros(29, 8)},
            r"embeddings.word_embeddings.weight has the shape \(29, 8\), but this model needs \(30, 8\)",
        ),
        (
            {"encoder.layer.0.output.dense.bias": torch.tensor([0.0] * 7 + [torch.nan])},
            r"encoder.layer.0.output.dense.bias has values that are not finite",
        ),
    ],
)
def test_says_which_weight_is_wrong_and_both_shapes(folder, changes, sentence):
    change(folder, **changes)
    with pytest.raises(UserError, match=sentence):
        encoder(folder)


def test_heads_outside_the_prefix_are_not_read_but_what_is_inside_must_fit(folder):
    inside = {f"bert.{name}": weight for name, weight in load_file(folder / "model.safetensors").items()}
    save_file(inside | {"cls.bias": torch.zeros(3)}, folder / "model.safetensors")
    encoder(folder)
    save_file(inside | {"bert.more": torch.zeros(3)}, folder / "model.safetensors")
    with pytest.raises(UserError, match=r"a weight more of shape \(3,\)"):
        encoder(folder)


def test_half_precision_weights_become_those_of_the_model(folder):
    half = {name: weight.half() for name, weight in load_file(folder / "model.safetensors").items()}
    save_file(half, folder / "model.safetensors")
    assert encoder(folder).pooler.weight.dtype == torch.float32


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda folder: (folder / "model.safetensors").write_bytes(b"short"), "model.safetensors cannot be read"),
        (lambda folder: (folder / "model.safetensors").unlink(), "has no weights: it needs model.safetensors"),
        (lambda folder: (folder / "config.json").unlink(), "config.json is missing"),
        (lambda folder: (folder / "config.json").write_text("{"), "config.json is not JSON"),
        (lambda folder: (folder / "config.json").write_text("[]"), "config.json is not a JSON object"),
        (lambda folder: edit(folder, model_type="vilt"), "holds a model of type 'vilt', not 'bert'"),
        (lambda folder: edit(folder, hidden_act="relu"), "the activation 'relu', but ours is 'gelu'"),
        (lambda folder: edit(folder, hidden_size=[8]), r"has hidden_size \[8\], but ours takes one whole number"),
        (
            lambda folder: edit(folder, layer_norm_eps="small"),
            "has layer_norm_eps 'small', which is not a valid number",
        ),
        (lambda folder: index(folder, ["a"]), "does not say which file holds each weight"),
    ],
)
def test_says_what_is_wrong_with_a_folder(folder, damage, sentence):
    damage(folder)
    with pytest.raises(UserError, match=sentence):
        encoder(folder)


def index(folder, shards):
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))


def edit(folder, **changes):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))


def test_missing_shard_is_named(folder, tmp_path):
    BertModel.from_pretrained(folder).save_pretrained(tmp_path / "sharded", max_shard_size="2KB")
    lost = weights.weight_files(tmp_path / "sharded")[1]
    lost.unlink()
    with pytest.raises(UserError, match=f"{lost.name} is missing, and model.safetensors.index.json names it"):
        encoder(tmp_path / "sharded")


class Payload:
    def __reduce__(self):
        return Path.touch, (Path("payload-was-run"),)


def test_an_old_file_that_runs_code_is_refused(folder, monkeypatch):
    (folder / "model.safetensors").unlink()
    torch.save({"pooler.dense.bias": Payload()}, folder / "pytorch_model.bin")
    monkeypatch.chdir(folder)
    with pytest.raises(UserError, match=r"pytorch_model.bin is damaged or holds more than weights"):
        encoder(folder)
    assert not Path("payload-was-run").exists()
    torch.save({"state_dict": {"pooler.dense.bias": torch.zeros(8)}}, folder / "pytorch_model.bin")
    with pytest.raises(UserError, match=r"pytorch_model.bin holds more than weights by name"):
        encoder(folder)


def test_digest_is_of_the_weights_alone(folder, tmp_path):
    before = weights.digest(folder)
    folder.rename(tmp_path / "moved")
    assert weights.digest(tmp_path / "moved") == before
    change(tmp_path / "moved", **{"pooler.dense.bias": torch.ones(8)})
    assert weights.digest(tmp_path / "moved") != before


def hub(monkeypatch, download):
    fake = types.ModuleType("huggingface_hub")
    fake.snapshot_download = download
    monkeypatch.setitem(sys.modules, "huggingface_hub", fake)


def test_a_name_of_the_hub_is_found_in_its_cache_without_the_network(folder, monkeypatch):
    calls = []

    def download(name, local_files_only, allow_patterns):
        calls.append((name, local_files_only))
        return str(folder)

    hub(monkeypatch, download)
    assert weights.locate("someone/bert", "weights") == folder
    assert calls == [("someone/bert", True)]


def test_a_name_of_the_hub_is_downloaded_where_the_cache_has_no_weights(folder, tmp_path, monkeypatch):
    (tmp_path / "partial").mkdir()
    hub(monkeypatch, lambda name, local_files_only, **_: str(tmp_path / "partial" if local_files_only else folder))
    assert weights.locate("bert-base-uncased", "weights") == folder


def test_without_the_network_it_says_what_to_download_to_where(monkeypatch):
    def fail(*_, **__):
        raise ConnectionError("no route")

    hub(monkeypatch, fail)
    sentence = (
        r"weights is 'a/b'.*download config.json, vocab.txt and model.safetensors of https://huggingface.co/a/b to"
    )
    with pytest.raises(UserError, match=sentence):
        weights.locate("a/b", "weights")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(UserError, match="huggingface_hub is not installed to find it"):
        weights.locate("a/b", "weights")
    with pytest.raises(UserError, match="weights is '/no/such/folder', which does not exist"):
        weights.locate("/no/such/folder", "weights")


def test_every_rule_is_used():
    """A rule that no weight of ours has is a mistake in the table."""
    names = Bert(width=8, depth=1, heads=2, hidden=12).encoder(INPUTS).state_dict()
    used = {theirs.rpartition(".")[0].replace(".0.", ".{}.") for name in names for theirs in NAMES.theirs(name)}
    assert used == {theirs for rule in NAMES.rules.values() for theirs in rule}
