"""Commands on hostile data and models of the user's own kind: see test_corpus.py."""

import pytest

from hostile.own_data import CASES
from hostile.test_corpus import check_harmless, try_all

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def tried(tmp_path_factory):
    """What each command did, by the name of its case."""
    return try_all(CASES, tmp_path_factory.mktemp("hostile-own"))


@pytest.mark.parametrize("name", CASES)
def test_hostile_data_is_harmless(tried, name):
    check_harmless(*tried, name)


def test_what_is_said_names_the_trap(tried):
    _, found = tried
    told = {name: "\n".join(one["printed"] for one in each) for name, each in found.items()}
    for name in ("folder_with_a_linked_class", "csv_that_is_a_link", "table_with_linked_pictures", "hub_linked_words"):
        assert "HOLDFAST_LINKS=" in told[name], name
    for name in ("hub_piped_words", "features_pipe_for_regions.id.npy", "folder_with_a_pipe"):
        assert "it is a pipe, a socket or a device, not a regular file" in told[name], name
    assert "unpacks to more than 536.9 MB of text" in told["parquet_that_unpacks_to_gigabytes"]
    assert "more than 50,000 weight tensors" in told["hub_ten_million_layers"]
    assert "contains custom code which must be executed" in told["hub_code_of_an_unknown_model"]


def test_sound_files_beside_a_bad_one_are_learned(tried):
    """A bad picture is skipped where that is asked for: the commands do reach what they are tried on."""
    _, found = tried
    for name in ("folder_with_an_eps", "folder_with_a_link", "csv_with_picture_called_dots", "parquet_with_a_bomb"):
        assert 0 in {one["status"] for one in found[name]}, found[name]
