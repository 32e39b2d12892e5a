"""The alignment of two towers: resumed bit for bit, read by the model `dual`, and refused where it cannot work."""

import json

import pytest
import torch
from safetensors.torch import load_file

from holdfast import metrics
from holdfast.data.prepared import prepare
from holdfast.data.text import Tokenizer
from holdfast.engine.watch import Watch
from holdfast.errors import Stopped, UserError
from holdfast.models import weights
from holdfast.models.dual import Dual, TinyDual
from holdfast.pretraining import dual
from holdfast.pretraining.dual import Alignment
from holdfast.types import Example, Inputs
from holdfast.world.pairs import captioned

pytestmark = pytest.mark.thorough  # trains towers

SMALL = Alignment(pictures=100, epochs=2, batch_size=30, width=8, train_towers=True)


class StopAfter(Watch):
    def __init__(self, steps):
        self.left = steps

    def step(self, stage_step, loss):
        self.left -= 1
        self.stopping = self.left <= 0


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(dual, "on_all_cores", lambda make, count, watch, progress=None: map(make, range(count)))


def test_a_stopped_alignment_goes_on_and_the_model_reads_it(tmp_path):
    whole = dual.align(SMALL, tmp_path / "whole")
    with pytest.raises(Stopped):
        dual.align(SMALL, tmp_path / "parts", watch=StopAfter(3))
    assert dual.align(SMALL, tmp_path / "parts") == whole
    written = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "parts")]
    assert written[0] == written[1]
    assert {"validation", "test", "test/text R@1", "test/image R@10"} <= whole.keys()
    made = json.loads((tmp_path / "whole" / "made.json").read_text())
    assert made["held_out"] == whole
    assert not {"frozen", "tables", "checkpoints", "begun.json"} & {
        path.name for path in (tmp_path / "whole").iterdir()
    }

    recipe = Dual(weights=str(tmp_path / "whole"))
    wants = recipe.wants()
    assert wants.vocabulary == tmp_path / "whole" / "vocab.txt"
    pieces = len(wants.vocabulary.read_text().splitlines())
    encoder = recipe.encoder(Inputs((3, wants.side, wants.side), text=8, vocabulary=pieces))
    assert not encoder.scale.requires_grad
    with pytest.raises(UserError, match="already holds a model"):
        dual.align(SMALL, tmp_path / "whole")


def test_frozen_towers_keep_their_weights_and_only_maps_are_saved(tmp_path, monkeypatch):
    monkeypatch.setattr(dual, "published", lambda word: True)
    settings = Alignment(pictures=100, epochs=2, batch_size=30, width=8)
    found = dual.align(settings, tmp_path / "maps")
    config = json.loads((tmp_path / "maps" / "config.json").read_text())
    assert config["holds"] == []
    assert config["sources"].keys() == {"image", "text"}
    assert found["test/image R@10"] > 0
    state = load_file(tmp_path / "maps/model.safetensors")
    assert state.keys() == {"image_projection.weight", "text_projection.weight", "scale", "bias"}


def test_frozen_towers_without_weights_are_refused(tmp_path):
    with pytest.raises(UserError, match="frozen towers need weights, and vit-tiny or bert-tiny has none"):
        dual.align(Alignment(), tmp_path)


def test_a_dataset_without_captions_is_refused(tmp_path):
    settings = Alignment(data=str(tmp_path), dataset="eurosat", train_towers=True)
    with pytest.raises(UserError, match="eurosat has no split train: captions need one"):
        dual.align(settings, tmp_path / "out")


def test_synthetic_pictures_have_captions():
    scene, thing = captioned(3, 2, side=32), captioned(3, 3, side=32)
    assert len(scene.captions) == len(thing.captions) == 5
    assert thing.captions[0].startswith("a photo of a ")


def test_the_shipped_model_retrieves_as_its_note_says(tmp_path):
    folder = weights.locate("holdfast/dual-tiny", "weights")
    made = json.loads((folder / "made.json").read_text())
    pieces = Tokenizer.load(folder / "vocab.txt")
    held = int(dual.HELD_OUT * made["settings"]["pictures"]) // 2
    shown = [captioned(dual.SEED, number, side=64, captions_each=dual.EACH) for number in range(held, 2 * held)]
    rows = [Example(str(number), 0, (each.image,), choices=each.captions) for number, each in enumerate(shown)]
    table = prepare("captions", rows, tmp_path / "test", image_size=32, tokenizer=pieces, length=64).table
    encoder = TinyDual().encoder(Inputs((3, 32, 32), text=64, vocabulary=len(pieces.vocabulary))).eval()
    with torch.no_grad():
        inputs = {name: column[:] for name, column in table.inputs.items()}
        found = metrics.recalls(encoder.images(inputs).numpy(), encoder.texts(inputs).numpy())
    assert {f"test/{way}": value for way, value in found.items()} == pytest.approx(
        {name: value for name, value in made["held_out"].items() if name.startswith("test/")}, abs=0.02
    )
    assert found["text R@10"] > 3 * 10 / held
