import numpy as np

from holdfast.data.sheet import CELL, GAP, card, sheet
from holdfast.types import Example


def test_a_sheet_shows_each_picture_in_its_cell_and_long_text_is_cut():
    red, blue = (np.full((30, 40, 3), colour, np.uint8) for colour in ((250, 0, 0), (0, 0, 250)))
    pair = Example("7", 1, (red, blue), text="word " * 200, choices=("this", "that"))
    page = np.asarray(sheet([card(pair), card(Example("8", None, (blue,), text="short"))], columns=2))
    top = page[GAP + 5, GAP : GAP + CELL]
    assert top[10].tolist() == [250, 0, 0], "the first picture of the pair is on the left"
    assert top[CELL // 2 + 10].tolist() == [0, 0, 250], "the second beside it"
    assert page[GAP + 5, 2 * GAP + CELL + 10].tolist() == [0, 0, 250], "the second example in the next cell"
    assert page[-GAP // 2].min() == 255, "nothing runs over the edge"


def test_a_sheet_of_texts_needs_no_pictures():
    page = np.asarray(sheet([card(Example("1", 0, text="a film to forget"))]))
    assert page.min() < 100
