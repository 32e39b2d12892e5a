"""Families of animals: which of ImageNet's classes PartImageNet's parts belong to."""

import pytest

from holdfast.benchmarks.cfst.sources import part_name

FAMILIES = {
    "Testudines": (1664065, 1669191, 1644900, 1675722),
    "Lacertilia": (1675722, 1695060, 1669191, 1697457),
    "Felidae": (2123045, 2130308, 2120505, 2132136),
    "Ursidae": (2132136, 2134418, 2130308, 2137549),
    "Bovidae": (2403003, 2423022, 2398521, 2437312),
    "Mustelidae": (2441942, 2447366, 2437616, 2454379),
    "Primates": (2480495, 2500267, 2457408, 2504013),
}
"""The first and last class of a family in the published list of ImageNet's 1,000 classes, and their neighbours there:
a tree frog or a box turtle before the first, a gecko or a crocodile after the last, and so on."""
GROUPS = {"Testudines": "Reptile", "Lacertilia": "Reptile", "Primates": "Biped"}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_holds_exactly_its_classes_of_imagenets_published_list(family):
    first, last, before, after = FAMILIES[family]
    group = GROUPS.get(family, "Quadruped")
    found = [part_name(f"{group} Head", f"n{number:08d}") for number in (before, first, last, after)]
    assert found[1:3] == [f"{family} Head"] * 2
    assert f"{family} Head" not in (found[0], found[3])


def test_dogs_wolves_and_foxes_are_canids_and_hyenas_between_them_are_not():
    dogs, hyena, foxes = (2085620, 2113978, 2114367, 2116738), 2117135, (2119022, 2120505)
    assert {part_name("Quadruped Foot", f"n{number:08d}") for number in (*dogs, *foxes)} == {"Canidae Foot"}
    for number in (2077923, hyena, 2123045):  # a sea lion before the first dog, and a cat after the last fox
        assert part_name("Quadruped Foot", f"n{number:08d}") != "Canidae Foot"
    assert part_name("Quadruped Head", "n02510455") == "Quadruped Head", "WordNet has no panda among the bears"
