import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence

from holdfast.errors import UserError
from holdfast.models.san import CellAttention, QuestionEncoder, San, TinySan, WordAttention
from holdfast.types import Head, Inputs

PIXELS = Inputs((3, 24, 24), text=6, vocabulary=20)
GRID = Inputs(text=6, vocabulary=20, grid=(5, 3, 4))


def batch(rows=4, **more):
    generator = torch.Generator().manual_seed(2)
    text = torch.randint(20, (rows, 6), generator=generator)
    return {"text": text, "text_length": torch.tensor([6, 1, 3, 4])[:rows], **more}


def pixels(*shape):
    return torch.randint(256, (*shape, 3, 24, 24), dtype=torch.uint8, generator=torch.Generator().manual_seed(3))


def test_a_question_is_its_last_state_as_packing_finds_it():
    torch.manual_seed(0)
    question = QuestionEncoder(20, 7, 9, 2).double()
    inputs = batch()
    packed = pack_padded_sequence(
        question.words(inputs["text"]), inputs["text_length"], batch_first=True, enforce_sorted=False
    )
    _, (last, _) = question.recurrent(packed)
    torch.testing.assert_close(question(inputs["text"], inputs["text_length"]), last[-1])


def test_a_look_is_the_sum_over_cells():
    torch.manual_seed(0)
    look = CellAttention(6, 6, 5).double()
    query, cells = torch.randn(6, dtype=torch.float64), torch.randn(8, 6, dtype=torch.float64)
    scores = torch.stack(
        [
            look.score.weight[0] @ torch.tanh(look.cells.weight @ c + look.cells.bias + look.query.weight @ query)
            for c in cells
        ]
    )
    shares = scores.exp() / scores.exp().sum()
    expected = sum(share * cell for share, cell in zip(shares, cells, strict=True))
    torch.testing.assert_close(look(query, cells), expected)


def test_a_reading_is_a_mean_of_the_words_that_are_there():
    torch.manual_seed(0)
    read, states = WordAttention(3, slope=-2.0).double(), torch.randn(2, 4, 3, dtype=torch.float64)
    words = torch.randn(2, 4, 5, dtype=torch.float64)
    found = read(words, states, torch.tensor([4, 2]))
    for row, length in enumerate([4, 2]):
        places = torch.arange(length) / length
        shares = (states[row, :length] @ read.score.weight[0] - 2 * places).exp()
        torch.testing.assert_close(found[row], (shares / shares.sum()) @ words[row, :length])


@pytest.mark.parametrize("size", [{"channels": 64}, {"cells": 4}])
def test_sizes_of_a_trunk_that_learns_are_refused_beside_one_that_does_not(size):
    ((name, value),) = size.items()
    with pytest.raises(UserError, match=rf"model\.{name} is {value}, .* set model\.trunk=learned"):
        TinySan(**size)
    learned = TinySan(trunk="learned", **size).encoder(PIXELS)
    assert sum(p.numel() for p in learned.parameters()) != sum(
        p.numel() for p in TinySan(trunk="learned").encoder(PIXELS).parameters()
    ), "they act on the other"


def test_looks_apart_are_compared_by_their_product():
    torch.manual_seed(0)
    encoder = TinySan(hidden=4).encoder(GRID).double()
    inputs = batch(grid=torch.randn(4, 5, 3, 4, dtype=torch.float64))
    words = encoder.question.words(inputs["text"])
    states = encoder.question.states(words)
    cells = inputs["grid"].flatten(2).transpose(1, 2)
    one, two = (encoder.look(read(words, states, inputs["text_length"]), cells) for read in encoder.reads)
    last = encoder.question(inputs["text"], inputs["text_length"])
    together = encoder.sights(torch.cat([one, two, one * two], 1))
    torch.testing.assert_close(encoder(inputs), (encoder.choice(last) * together + encoder.asked(last)).relu())


def test_what_is_frozen_stays_so_and_counts_in_the_run():
    encoder = TinySan().encoder(PIXELS)
    learning = {name for name, p in encoder.named_parameters() if p.requires_grad}
    assert learning
    assert not any(name.startswith("trunk.") for name in learning)
    assert TinySan().source()
    assert not San().source()


@pytest.mark.parametrize("inputs", [PIXELS, GRID])
def test_padding_says_nothing_and_rows_stand_alone(inputs):
    torch.manual_seed(0)
    encoder = TinySan().encoder(inputs).eval()
    seen = {"image": pixels(4)} if inputs.grid is None else {"grid": torch.randn(4, 5, 3, 4).half()}
    found = encoder(batch(**seen))
    assert found.shape == (4, 128)
    other = batch(**seen)
    other["text"] = other["text"].clone()
    other["text"][1, 1:] = 7  # beyond the first text's one piece
    torch.testing.assert_close(encoder(other), found)
    alone = {name: value[2:3] for name, value in batch(**seen).items()}
    torch.testing.assert_close(encoder(alone)[0], found[2])


def test_choices_and_pairs_are_seen_as_if_alone():
    torch.manual_seed(0)
    encoder = TinySan().encoder(PIXELS).eval()
    inputs = batch(image=pixels(4))
    choices = {
        "text": torch.stack([inputs["text"], inputs["text"].flip(0)], 1),
        "text_length": torch.stack([inputs["text_length"], inputs["text_length"].flip(0)], 1),
        "image": inputs["image"],
    }
    found = encoder(choices)
    assert found.shape == (4, 2, 128)
    torch.testing.assert_close(found[:, 0], encoder(inputs))
    torch.testing.assert_close(found[0, 1], encoder({**inputs, "image": inputs["image"].flip(0)})[3])
    pairs = pixels(4, 2)
    found = encoder({**inputs, "image": pairs})
    assert found.shape == (4, 2, 128)
    torch.testing.assert_close(found[:, 1], encoder({**inputs, "image": pairs[:, 1]}))


def test_the_papers_size():
    encoder = San().encoder(Inputs(text=45, vocabulary=93, grid=(1024, 14, 14)))
    cell = 4 * 1024
    recurrent = cell * (300 + 1024 + 2) + cell * (1024 + 1024 + 2)
    look = 2 * 1024 * 512 + 512 + 512
    seen = 1024 * 1024 + 1024
    count = 93 * 300 + recurrent + seen + 2 * look + 1024 * 1024 + 1024
    assert sum(p.numel() for p in encoder.parameters()) == count
    assert encoder.width == 1024
    assert San().wants().sees == "grid"
    assert [len(encoder.stem()), len(encoder.layers())] == [1, 5]
    assert len(TinySan().encoder(PIXELS).stem()) == 2


def test_learns_to_find_what_is_asked_for():
    """Two squares of different colours on each picture: is the one of this colour on the left?"""
    torch.manual_seed(0)
    rows = 128
    image = torch.zeros(rows, 3, 24, 24, dtype=torch.uint8)
    first, second = torch.randint(3, (2, rows))
    second = torch.where(second == first, (second + 1) % 3, second)
    for row in range(rows):
        image[row, first[row], 8:14, 4:10] = 230
        image[row, second[row], 8:14, 14:20] = 230
    right = torch.randint(2, (rows,))
    text = torch.zeros(rows, 6, dtype=torch.long)
    text[:, 0] = 5
    text[:, 1] = 1 + torch.where(right == 1, second, first)
    inputs = {"image": image, "text": text, "text_length": torch.full((rows,), 2)}
    model = TinySan(trunk="learned", apart=False).build(PIXELS, {"side": Head("classify", 2)})
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(70):
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs, "side"), right)
        loss.backward()
        optimiser.step()
    assert loss < 0.1


def test_refuses_what_it_cannot_see_or_read():
    with pytest.raises(UserError, match="needs questions"):
        San().encoder(Inputs((3, 64, 64)))
    with pytest.raises(UserError, match="a SAN needs images"):
        San().encoder(Inputs(text=5, vocabulary=9))
    with pytest.raises(UserError, match="at least 4 x 4 pixels, but these have 2 x 9"):
        San().encoder(Inputs((3, 2, 9), text=5, vocabulary=9))
