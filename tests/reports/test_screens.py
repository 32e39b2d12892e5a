"""What the first screen of a report shows on a phone, a tablet and a laptop; the pictures are for people to look at."""

import pytest

from reports import screens

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(screens.CHROMIUM is None, reason="no Chromium here: apt install chromium"),
]


@pytest.mark.parametrize("name", screens.STORES)
def test_the_first_screen_of_each_kind_of_store_can_be_pictured(name, tmp_path):
    """`python tests/reports/screens.py FOLDER` leaves the same pictures in a folder."""
    screens.STORES[name](tmp_path / name)
    pictures = screens.shoot(tmp_path, {name: tmp_path / name})
    assert len(pictures) == len(screens.WIDTHS) + 1
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)
    assert all(path.stat().st_size > 10_000 for path in pictures), "an empty page"
