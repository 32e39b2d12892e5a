"""Orders, caps and the numbering of the tasks' tables."""

import pytest

from holdfast.benchmarks.climb.benchmark import Climb
from holdfast.benchmarks.climb.stream import chosen, layouts, task_order
from holdfast.benchmarks.climb.tasks import Place, listing
from holdfast.errors import UserError
from holdfast.papers import table


def test_the_three_orders_are_the_papers():
    orders = {row["order"] for row in table("climb", "9a")} - {"direct"}
    assert {">".join(task_order(number)) for number in "123"} == orders
    assert task_order("") == ("vqav2", "nlvr2", "snli-ve", "vcr")
    assert task_order("3") == ("nlvr2", "vqav2", "vcr", "snli-ve")


def test_one_order_is_one_setting_however_it_is_written():
    assert Climb(order="2").order == Climb(order="snli_ve > vcr>vqav2 >nlvr2").order == "snli-ve>vcr>vqav2>nlvr2"
    assert Climb().order == Climb(order="1").order


@pytest.mark.parametrize(
    ("order", "sentence"),
    [
        ("vqa", "unknown task 'vqa': did you mean vqav2"),
        ("vcr>vcr", "each task may occur only once"),
        ("4", "unknown task '4'"),
    ],
)
def test_mistakes_in_an_order(order, sentence):
    with pytest.raises(UserError, match=sentence):
        Climb(order=order)


def test_a_cap_draws_the_same_examples_and_a_larger_one_holds_the_smaller():
    place = Place(scale="tiny")
    few, more = (chosen("snli-ve", "train", place, count) for count in (20, 50))
    everything = listing("snli-ve", "train", place).ids
    assert (len(few), len(more)) == (20, 50)
    assert set(few) < set(more) < set(everything)
    assert chosen("snli-ve", "train", Place(scale="tiny"), 20) == few
    assert chosen("snli-ve", "train", place, None) == chosen("snli-ve", "train", place, 10**6) == everything


def test_tables_are_numbered_one_after_another():
    found = layouts(["a", "b"], [(3, 2, 4), (5, 1, 2)])
    rows = [number for each in found for part in ("train", "validation", "test") for number in each.rows(part)]
    assert rows == list(range(17))
    assert found[1].evaluation("test").ids.tolist() == [15, 16]
