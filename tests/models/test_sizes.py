"""What the settings of models do that no comparison with a reference varies: shapes in closed form, and dropout."""

import pytest
import torch

from holdfast.models.lxmert import TinyLxmert
from holdfast.models.modular import ModularVit
from holdfast.models.san import San, TinySan
from holdfast.models.vault import TinyVault
from holdfast.models.vilt import TinyVilt
from holdfast.models.vit import TinyVit
from holdfast.models.vlbert import TinyVLBert
from holdfast.types import Head, Inputs

PICTURE = Inputs((3, 32, 32), text=7, vocabulary=30)
REGIONS = Inputs(text=7, vocabulary=30, regions=(4, 6))
GRID = Inputs(text=6, vocabulary=20, grid=(5, 3, 4))
TEXT = {"text": torch.randint(1, 20, (4, 7)), "text_length": torch.tensor([7, 3, 5, 2])}


SMALL = {"width": 16, "depth": 2, "heads": 2, "head_width": 8, "hidden": 16}


def shown(inputs):
    """Four rows of these inputs."""
    rows = {"image": torch.randint(256, (4, 3, 32, 32), dtype=torch.uint8)}
    if inputs.regions:
        rows = {"regions": torch.randn(4, 4, 6), "boxes": torch.rand(4, 4, 2, 2).sort(2).values.flatten(2)}
        rows["region_count"] = torch.tensor([4, 1, 2, 3])
    return rows | (TEXT if inputs.text else {})


@pytest.mark.parametrize(
    ("make", "inputs"),
    [
        (lambda share: TinyVilt(weights="", side=32, dropout=share), PICTURE),
        (lambda share: TinyVault(weights="", bert="", side=32, dropout=share), PICTURE),
        (lambda share: TinyVLBert(dropout=share, visual_scale=1.0), REGIONS),
        (lambda share: TinyLxmert(dropout=share), REGIONS),
        (lambda share: TinyVit(dropout=share), Inputs((3, 32, 32))),
        (lambda share: ModularVit(**SMALL, dropout=share), Inputs((3, 32, 32))),
    ],
    ids=["vilt", "vault", "vlbert", "lxmert", "vit", "modular-vit"],
)  # fmt: skip
def test_dropout_acts_in_training_alone(make, inputs):
    columns, outputs = shown(inputs), {}
    for share in (0.0, 0.4):
        torch.manual_seed(0)
        encoder = make(share).build(inputs, {"h": Head("classify", 2)}).encoder
        outputs[share] = [encoder.train(mode)(columns).detach() for mode in (True, True, False)]
    (first, second, still), (dropped, again, kept) = outputs[0.0], outputs[0.4]
    frozen = isinstance(make(0.4), TinyVault)  # whose BERT has dropout of its own, and stays in evaluation
    torch.testing.assert_close(kept, still)
    assert not torch.allclose(dropped, again)
    assert torch.allclose(first, second) or frozen
    assert not torch.allclose(dropped, kept)


def test_patches_and_positions_of_a_vilt():
    """(32 / 8)^2 patches and the class token; as many places for words as there are positions."""
    encoder = TinyVilt(weights="", side=32, patch=8).encoder(PICTURE)
    assert encoder.image.patches.weight.shape[-2:] == (8, 8)
    assert encoder.image.positions.shape[1] == 17
    assert TinyVilt(weights="", positions=11).encoder(PICTURE).text.positions.num_embeddings == 11


SIZES = {"embedding": 9, "recurrent_layers": 3, "looks": 4}


@pytest.mark.parametrize(
    "recipe", [San(recurrent=6, attention=5, hidden=8, **SIZES), TinySan(**SIZES)], ids=["san", "san-tiny"]
)
def test_the_parts_of_a_san(recipe):
    encoder = recipe.encoder(GRID)
    assert encoder.question.words.weight.shape == (20, 9)
    assert encoder.question.recurrent.num_layers == 3
    looks = encoder.reads if recipe.apart else encoder.looks
    assert len(looks) == 4
    seen = []
    for look in looks:
        look.register_forward_hook(lambda *_: seen.append(1))
    encoder(
        {
            "text": TEXT["text"][:, :6],
            "text_length": TEXT["text_length"].clamp(max=6),
            "grid": torch.randn(4, *GRID.grid),
        }
    )
    assert len(seen) == 4, "each look once"
