import pytest

from holdfast.bench.start import first_step, folder, trivial
from holdfast.bench.stores import reading


@pytest.mark.slow
def test_a_second_run_trains_within_two_seconds_of_process_time():
    found = first_step("climb", repeats=3)
    assert 0.1 < min(found.seconds) <= found.limit_s


@pytest.mark.slow
def test_a_folder_of_pictures_is_decoded_once():
    found = folder(2000)
    assert 0.5 < found.later_s < found.first_s < found.first_limit_s


@pytest.mark.slow
def test_trivial_runs_train_for_some_of_the_time():
    found = trivial(4)
    assert 0 < found.training_s < found.wall_s


@pytest.mark.slow
def test_a_store_is_read_faster_with_its_index():
    for found in reading(records=600, seeds=10):
        assert 0 < found.again_s < found.first_s, found.command
