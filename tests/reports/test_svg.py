"""Drawings are well-formed, and their marks stand where the numbers say."""

import xml.etree.ElementTree as ET

import pytest

from holdfast.reports import svg
from holdfast.reports.blocks import Bars, Curves, Point, Scatter, Series


def marks(drawing, of):
    return [each for each in ET.fromstring(drawing).iter() if of in each.get("class", "").split()]


def test_marks_of_a_curve_are_in_proportion():
    series = (Series("a", (0.0, 1.0, 3.0), (10.0, 20.0, 40.0), (1.0, 2.0, 3.0)), Series("b", (0.0,), (None,)))
    drawing = svg.curves(Curves("t", "step", "score", series))
    found = [(float(m.get("cx")), float(m.get("cy"))) for m in marks(drawing, "mark")]
    assert len(found) == 3
    (x0, y0), (x1, y1), (x3, y3) = found
    assert (x3 - x0) == pytest.approx(3 * (x1 - x0), abs=0.2)
    assert (y0 - y3) == pytest.approx(3 * (y0 - y1), abs=0.2)
    assert [m.get("data-tip") for m in marks(drawing, "mark")][1] == "a, step 1: 20 ±2"
    assert len(marks(drawing, "band")) == 1


def test_bars_stand_on_zero_and_reach_their_value():
    drawing = svg.bars(Bars("t", "x", ("g", "h"), (Series("a", (), (10.0, -5.0), (1.0, None)),)))
    up, down = marks(drawing, "bar")
    assert float(up.get("height")) == pytest.approx(2 * float(down.get("height")), abs=0.2)
    assert float(up.get("y")) + float(up.get("height")) == pytest.approx(float(down.get("y")), abs=0.2)
    assert len(marks(drawing, "whisker")) == 1


def test_equal_ratios_are_equal_steps_on_a_logarithmic_axis():
    points = tuple(Point(str(x), x, 1.0) for x in (10.0, 100.0, 1000.0))
    drawing = svg.scatter(Scatter("t", "x", "y", points, logarithmic=True))
    xs = [float(m.get("cx") or 0) or float(m.get("x") or 0) + 5.5 for m in marks(drawing, "mark")[:2]]
    third = float(marks(drawing, "mark")[2].get("d")[1:].split()[0])
    assert third - xs[1] == pytest.approx(xs[1] - xs[0], abs=0.2)


def test_intervals_wider_than_the_picture_are_told_apart():
    def told(width):
        series = Series("a", (0.0, 1.0), (10.0, 20.0), (width, width))
        points = (Point("a", 1.0, 10.0, y_width=width), Point("b", 2.0, 20.0, y_width=width))
        return [svg.is_cut(Curves("t", "x", "y", (series,))), svg.is_cut(Scatter("t", "x", "y", points))]

    assert told(1.0) == [False, False]
    assert told(500.0) == [True, True]
    assert told(None) == [False, False]
    assert not svg.is_cut(Bars("t", "x", ("g",), (Series("a", (), (1.0,), (500.0,)),)))


@pytest.mark.parametrize("values", [(), (None,), (0.0,), (5.0, 5.0), (1e9, -1e9), (1e-12, 2e-12)])
def test_any_numbers_are_drawn_within_the_frame(values):
    series = (Series("<&\"'", tuple(map(float, range(len(values)))), values),)
    for drawing in (
        svg.curves(Curves("<t>", "<x>", "&", series)),
        svg.bars(Bars("<t>", "&", tuple(map(str, values)), series)),
    ):
        for mark in marks(drawing, "mark"):
            assert 0 <= float(mark.get("cx")) <= svg.WIDTH
            assert 0 <= float(mark.get("cy")) <= svg.HEIGHT
    ET.fromstring(svg.legend(["<a>", *(f"s{n}" for n in range(20))]))


def test_every_series_looks_different():
    looks = [
        marks(
            svg.curves(Curves("t", "x", "y", tuple(Series(str(n), (0.0, 1.0), (0.0, 1.0)) for n in range(24)))), "line"
        )
    ]
    assert len({each.get("class") for each in looks[0]}) == 24
