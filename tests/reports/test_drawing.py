"""Figures for papers: readable at the width of a column, with embedded fonts, the same for colour-blind readers."""

import re
import sys
from itertools import combinations

import numpy as np
import pytest

from holdfast.errors import UserError
from holdfast.reports.blocks import Bars, Curves, Distribution, Heatmap, Point, Scatter, Series
from holdfast.reports.drawing import COLOURS, WIDTHS, draw

ODD = "_a$b$ & <i>%{\\"
LINES = tuple(Series(name, (0, 1, 2), (50.0, 40.0 - n, None), (5.0, None, None)) for n, name in enumerate((ODD, "er")))
BLOCKS = {
    "curves": Curves("t", "after stage", "mean score, %", LINES, ("1", "2", "3")),
    "many": Curves("t", "step", "score", LINES * 5, ("1", "2", "3"), from_zero=True),
    "steps": Curves("t", "step", "score", (Series("er", (1.0, 10.0), (0.5, 0.5)),), logarithmic=True),
    "bars": Bars("t", "%", ("sys", ODD, "pro"), LINES),
    "scatter": Scatter(
        "t", "seconds", "ACC", (Point("er", 1.0, 2.0, "", 0.1, 0.2), Point(ODD, 50.0, 3.0)), True, (), (0, 1)
    ),
    "seeds": Distribution("t", "ACC", ("er", ODD), ({0: 1.0, 1: 2.0}, {0: 3.0}), (0.5, None)),
    "heatmap": Heatmap("t", ("after 1", ODD), ("a", "b"), ((90.0, None), (20.0, 80.0)), corner="stage"),
}


@pytest.mark.parametrize("kind", BLOCKS)
def test_a_figure_has_its_width_its_fonts_and_always_the_same_bytes(kind, tmp_path):
    pdf, svg = draw(BLOCKS[kind], tmp_path / "figure", "single")
    content = pdf.read_bytes()
    assert b"/Type3" not in content
    assert b"/FontFile2" in content  # an embedded TrueType font
    (box,) = re.findall(rb"/MediaBox \[ 0 0 ([0-9.]+) ", content)
    assert float(box) / 72 == pytest.approx(WIDTHS["single"])
    picture = svg.read_text()
    assert "<text" not in picture  # outlines, which look the same everywhere
    assert "<dc:date>" not in picture
    if kind == "curves":
        again, _ = draw(BLOCKS[kind], tmp_path / "again", "single")
        assert again.read_bytes() == content


def test_without_matplotlib_a_message_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UserError, match=r"pip install .holdfast\[pictures\]"):
        draw(BLOCKS["curves"], tmp_path / "figure", "single")


def test_every_name_is_in_the_legend(tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    seen = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *rest, **more: seen.append(figure))
    for kind in ("curves", "many", "bars", "scatter"):
        draw(BLOCKS[kind], tmp_path / "figure", "double")
        names = [each.name for each in getattr(BLOCKS[kind], "series", ()) or BLOCKS[kind].points]
        assert [text.get_text() for text in seen[-1].legends[0].get_texts()] == names
        box, page = seen[-1].legends[0].get_window_extent(), seen[-1].bbox
        assert box.x0 >= 0
        assert box.x1 <= page.x1


# What people without one kind of cones see (Machado, Oliveira and Fernandes, 2009, severity 1), on linear RGB.
BLIND = {
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def lab(linear):
    x, y, z = np.cbrt(XYZ @ linear / (XYZ @ np.ones(3)))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("kind", [None, *BLIND])
def test_colours_differ_for_colour_blind_readers(kind):
    values = [np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]) for colour in COLOURS]
    linear = [np.where(v <= 0.04045, v / 12.92, ((v + 0.055) / 1.055) ** 2.4) for v in values]
    seen = [lab(np.clip(np.array(BLIND[kind]) @ v, 0, 1) if kind else v) for v in linear]
    apart = {pair: float(np.linalg.norm(seen[pair[0]] - seen[pair[1]])) for pair in combinations(range(len(seen)), 2)}
    print(kind, min(apart.values()), min(apart, key=apart.get))
    assert min(apart.values()) > 10  # well above 2.3, a difference that is just noticed
