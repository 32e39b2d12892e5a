"""Which runs stand in one of the paper's tables."""

import pytest

from holdfast.benchmarks.cfst import report as cfst
from holdfast.experiments.store import Record
from holdfast.reports.blocks import TableBlock
from reports.stores import record
from reports.test_sections import TESTS, rows


def of_networks(*networks):
    """The tables of a run of each network, by its name and size."""
    runs = []
    for number, (name, size) in enumerate(networks):
        value = record("cfst:cgqa", "mntdp" if "modular" in name else "er", summary=TESTS, run=f"run{number}")
        value["config"]["model"] = {"name": name, **size, **({"parts": "stages"} if "modular" in name else {})}
        runs.append(Record.from_json(value, "test"))
    return [block for block in cfst.section(runs) if isinstance(block, TableBlock)]


def test_the_two_kinds_of_interval_are_told_row_by_row():
    runs = [
        Record.from_json(record("cfst:cgqa", name, seed=seed, model="resnet18", summary=TESTS), "test")
        for name, seed in (("replay", 0), ("ewc", 0), ("ewc", 1), ("ewc", 2))
    ]
    (table,) = [block for block in cfst.section(runs) if isinstance(block, TableBlock)]
    assert rows(table)["er · class"]["Asys ↑"].interval == pytest.approx(1.0)
    told = (
        "The 95 % interval of our runs is over the few-shot tasks of its only seed, and so not about other "
        "seeds: er · class; Student's t over seeds: ewc · class."
    )
    assert told in table.notes
    (table,) = [block for block in cfst.section(runs[1:]) if isinstance(block, TableBlock)]
    assert "The 95 % interval of our runs is Student's t over seeds: ewc · class." in table.notes


@pytest.mark.parametrize(
    ("plain", "own", "size"),
    [
        ("resnet18", "modular-resnet18", {"channels": 64}),
        ("resnet18-tiny", "modular-resnet18", {"channels": 16}),
        ("vit", "modular-vit", {"width": 384, "depth": 9}),
        ("vit-tiny", "modular-vit", {"width": 64, "depth": 3}),
    ],
)
def test_a_network_of_modules_stands_in_the_table_of_the_network_that_they_make_up(plain, own, size):
    for networks in ([(own, size), (plain, size)], [(plain, size), (own, size)]):
        (table,) = of_networks(*networks)
        found = rows(table)
        assert found["er · class"]["Acon ↑"].number == found["mntdp · class"]["Acon ↑"].number == pytest.approx(20.0)
        assert not any("size" in note for note in table.notes)


def test_a_network_of_modules_of_another_size_stands_there_too_and_the_sizes_are_told():
    wide, slim = {"width": 384}, {"width": 64}
    (table,) = of_networks(("modular-vit", wide), ("vit-tiny", slim))
    assert table.notes[-1] == "The networks differ in size: vit-tiny (width=64); modular-vit (width=384)."
    tables = of_networks(("vit-tiny", slim), ("vit", wide), ("modular-vit", wide), ("resnet18", {"channels": 64}))
    assert ["mntdp · class" in rows(each) for each in tables] == [False, True, False]
