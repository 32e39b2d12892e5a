import numpy as np
from PIL import ImageFont

from holdfast.data.sheet import CELL, GAP, LINE, LINES, card, sheet, wrapped
from holdfast.types import Example


def green(page: np.ndarray) -> np.ndarray:
    """Where something is written in the colour of what is right; letters are smooth, so a tinge is enough."""
    return page[..., 1].astype(int) - page[..., 0] > 40


def test_a_sheet_shows_each_picture_in_its_cell_and_long_text_is_cut():
    red, blue = (np.full((30, 40, 3), colour, np.uint8) for colour in ((250, 0, 0), (0, 0, 250)))
    pair = Example("7", 1, (red, blue), text="word " * 900, choices=("this", "that"))
    page = np.asarray(sheet([card(pair), card(Example("8", None, (blue,), text="short"))], columns=2))
    top = page[GAP + 5, GAP : GAP + CELL]
    assert top[10].tolist() == [250, 0, 0], "the first picture of the pair is on the left"
    assert top[CELL // 2 + 10].tolist() == [0, 0, 250], "the second beside it"
    assert page[GAP + 5, 2 * GAP + CELL + 10].tolist() == [0, 0, 250], "the second example in the next cell"
    assert page[-GAP // 2].min() == 255, "nothing runs over the edge"
    assert len(page) < 3 * GAP + CELL + (LINES + 4) * LINE, "a text of hundreds of lines is cut, its choices are not"


def test_a_sheet_of_texts_needs_no_pictures():
    page = np.asarray(sheet([card(Example("1", 0, text="a film to forget"))]))
    assert page.min() < 100


def test_the_right_choice_is_marked_and_whole_however_long_the_choices_are():
    long = tuple(f"choice {number} " + "of very many words " * 6 for number in range(4))
    ink = [green(np.asarray(sheet([card(Example("1", right, text="Which?", choices=long))]))) for right in (0, 3, None)]
    first, last, none = (np.flatnonzero(each.any(1)) for each in ink)
    font = ImageFont.load_default()
    marked = len(wrapped(f"> d) {long[3]}", font)) * LINE
    assert marked - LINE < last.max() - last.min() < marked, "all lines of the choice and no others"
    assert first.max() < last.min(), "the first choice stands above the last"
    assert not none.size, "where nothing is known to be right, nothing is marked"


def test_targets_are_told_by_name_wherever_a_reader_put_it():
    def target(value: object, names: dict[int, str] | None = None, **extra: object) -> str:
        return card(Example("1", value, extra=extra), names).target

    assert target(2, gold_label="neutral") == "neutral"
    assert target(3, fine_label_name="bear") == "bear"
    assert target(7, comb=("leaves", "shirt")) == "leaves + shirt"
    assert target((0, 32), labels=("person", "sports ball", "sports ball")) == "person, sports ball"
    assert target((1, 4), {1: "Bird Wing", 4: "Bird Tail"}, labels=(1, 4)) == "Bird Wing, Bird Tail"
    assert target(1, {0: "false", 1: "true"}) == "true"
    assert target(None, labels=("motorcycle", "person")) == "motorcycle, person"
    assert target("red") == "red"
    assert target(5) == "class 5", "without a name, the number says that it is one"


def test_the_caption_of_a_picture_is_its_text_where_there_is_no_other():
    assert card(Example("1", (0,), extra={"captions": ("A dog.", "An animal.")})).text == "A dog."
