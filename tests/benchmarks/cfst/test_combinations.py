"""The lists of CFST against what else is known of them: the world's, the public code's order, the paper's counts."""

from collections import Counter
from itertools import combinations, pairwise

import numpy as np
import pytest

from holdfast.benchmarks.cfst.combinations import UNSEEN_GROUPS, drawn, listed, most_frequent, of_folder
from holdfast.errors import UserError
from holdfast.world.writers import cgqa as world_cgqa
from holdfast.world.writers import cobj as world_cobj

# C.1.5 names the concepts of each task, apart from the list of combinations.
CONCEPTS_OF_TASKS = """
chair door fence flower grass hat helmet leaves shirt shoe shorts table wall
bench chair grass hat helmet leaves pants plate pole shirt shoe shorts sign wall
bench chair fence flower hat helmet jacket pants pole shoe shorts wall
bench door grass hat helmet jacket leaves pants plate pole shirt sign wall
bench building car fence grass helmet jacket leaves pants plate shirt
bench car chair fence grass helmet jacket leaves plate shirt shoe shorts sign
bench building chair fence flower grass hat leaves plate pole shirt shoe shorts sign wall
bench building car door fence flower hat plate pole shirt sign table wall
chair fence flower grass hat helmet leaves pants plate pole shirt shoe sign wall
building car door fence flower hat helmet leaves pants pole shirt shorts sign wall
"""


@pytest.mark.parametrize(("name", "world"), [("cgqa", world_cgqa.TRAINED), ("cobj", world_cobj.TRAINED)])
def test_the_training_combinations_are_those_that_the_archives_writer_knows(name, world):
    assert list(listed(name).trained) == world


@pytest.mark.parametrize(("name", "count"), [("cgqa", 100), ("cobj", 30)])
def test_the_order_is_that_of_the_public_code(name, count):
    """It sorts the classes and permutes them with the seed 1234, which tells each one's place without any list."""
    trained = listed(name).trained
    by_name = sorted(trained)
    assert len(set(trained)) == count
    assert [by_name[number] for number in np.random.RandomState(1234).permutation(count)] == list(trained)


def test_each_task_of_cgqa_has_the_concepts_that_the_paper_counts():
    found = [sorted({concept for each in task for concept in each}) for task in listed("cgqa").tasks]
    assert found == [line.split() for line in CONCEPTS_OF_TASKS.split("\n") if line]
    assert {len(task) for task in listed("cgqa").tasks} == {10}


def test_cgqa_has_all_that_the_paper_says():
    cgqa = listed("cgqa")
    pairs = set(combinations(cgqa.concepts, 2))
    assert len(cgqa.concepts) == 21
    assert len(pairs) == 210
    assert len(set(cgqa.sys)) == 100
    assert set(cgqa.sys) <= pairs - set(cgqa.trained)
    assert Counter(map(len, set(cgqa.pro))) == {3: 50, 4: 50}
    assert {concept for each in cgqa.pro for concept in each} <= set(cgqa.concepts)
    assert len(set(cgqa.noc)) == 100
    assert len(set(cgqa.unseen)) == 200
    assert {concept for each in cgqa.noc for concept in each} <= set(cgqa.unseen)
    assert not set(cgqa.unseen) & set(cgqa.concepts)
    assert cgqa.attributes.keys() == set(cgqa.concepts)
    assert cgqa.of("sub") == cgqa.sys
    assert cgqa.of("non") == cgqa.trained


def test_cobj_has_all_that_the_paper_says():
    cobj = listed("cobj")
    assert len(cobj.concepts) == 20
    assert {concept for each in cobj.trained for concept in each} == set(cobj.concepts)
    assert [len(set(task)) for task in cobj.tasks] == [10] * 3
    assert {len(each) for each in cobj.trained} == {2, 3}


def test_what_there_is_not_is_told():
    with pytest.raises(UserError, match="has no few-shot test 'sub'"):
        listed("cobj").of("sub")
    with pytest.raises(UserError, match="did you mean cgqa"):
        listed("cgq")


def test_cobj_takes_the_most_frequent_of_each_kind():
    seen = Counter(
        {
            ("Hat", "Person"): 99,  # trained
            ("Bench", "Hat"): 5,
            ("Car", "Hat"): 5,
            ("Boat", "Hat", "Lamp"): 7,
            ("Bracelet", "Hat", "Person"): 1,  # the paper's own example
            ("Person",): 80,  # no combination
            ("Bench", "Boat", "Car", "Hat"): 2,
        }
    )
    unseen = Counter({("Cup", "Plate"): 2, ("Lion",): 9, ("Cup", "Lion"): 4})
    found = most_frequent(seen, unseen, ["Plate", "Cup", "Lion"])
    assert found.trained == listed("cobj").trained
    assert found.sys == (("Bracelet", "Hat", "Person"), ("Boat", "Hat", "Lamp"), ("Bench", "Hat"), ("Car", "Hat"))
    assert found.pro == (("Bench", "Boat", "Car", "Hat"),)
    assert found.noc == (("Cup", "Plate"), ("Cup", "Lion"))
    assert found.unseen == ("Cup", "Lion", "Plate")
    many = Counter(dict.fromkeys(combinations(listed("cobj").concepts, 2), 1))
    assert len(most_frequent(many, Counter(), ()).sys) == 30


def test_cpin_is_drawn_evenly_after_the_papers_examples():
    paper = listed("cpin")
    assert len(paper.concepts) == 37, "as in the authors' code"
    assert {concept for each in paper.trained for concept in each} <= set(paper.concepts)
    parts = dict.fromkeys([*paper.concepts, *(concept for each in paper.noc for concept in each)], 50)
    others = {"Fish Tail": 90, "Quadruped Tail": 1000}
    others |= {f"{thing} {part}": 99 for thing in UNSEEN_GROUPS for part in ("A", "B")}
    cpin = drawn(parts | others)
    assert cpin == drawn(dict(reversed((parts | others).items())))
    assert cpin.concepts == paper.concepts, "no other part, however frequent"
    few = drawn({name: count for name, count in (parts | others).items() if not name.startswith("Ursidae")})
    assert set(few.concepts) >= {"Fish Tail", "Quadruped Tail"}, "in the place of parts that are not there"
    assert [len(task) for task in cpin.tasks] == [10] * 10
    for found, sizes in ((cpin.trained, {5}), (cpin.sys, {5}), (cpin.noc, {5}), (cpin.pro, {6, 7, 8, 9})):
        assert len(set(found)) == len(found) == 100
        assert {len(each) for each in found} == sizes
        assert all(list(each) == sorted(set(each)) for each in found)
        used = Counter(concept for each in found for concept in each).values()
        assert max(used) - min(used) <= 6
    assert not set(cpin.trained) & set(cpin.sys)
    assert set(cpin.concepts).isdisjoint(cpin.unseen)
    assert {concept for each in cpin.noc for concept in each} <= set(cpin.unseen)
    assert set(paper.trained) <= set(cpin.trained)
    assert set(paper.sys) <= set(cpin.sys)
    assert set(paper.pro) <= set(cpin.pro)
    assert set(paper.noc) <= set(cpin.noc)
    assert cpin.modes == ("sys", "pro", "non", "noc")


def test_of_few_parts_cpin_draws_all_there_is_and_half_is_for_training():
    cpin = drawn({f"Bird {letter}": 3 for letter in "ABCDEF"})
    assert (len(cpin.trained), len(cpin.sys), len(cpin.pro), len(cpin.noc)) == (3, 3, 1, 0)
    assert not set(cpin.trained) & set(cpin.sys)


def test_a_list_is_written_and_read_again(tmp_path):
    cgqa = listed("cgqa")
    assert of_folder(tmp_path, "cgqa") is None
    cgqa.write(tmp_path)
    assert of_folder(tmp_path, "cgqa") == cgqa


def test_combinations_are_sorted_as_the_readers_sort_them():
    for name in ("cgqa", "cobj", "cpin"):
        found = listed(name)
        for each in (*found.trained, *found.sys, *found.pro, *found.noc):
            assert all(first < second for first, second in pairwise(each))
