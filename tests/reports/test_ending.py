"""How a comparison ends: the picture shows what the table says, and the sentence what it supports."""

from holdfast.experiments.store import Record
from holdfast.reports.ending import ending, intervals
from reports.stores import record


def made(values):
    return [
        Record.from_json(record(algorithm=name, seed=seed, summary={"final_accuracy": value}), "test")
        for name, row in values.items()
        for seed, value in enumerate(row)
    ]


APART = {"finetune": [0.30, 0.31, 0.29, 0.32, 0.30], "replay": [0.70, 0.72, 0.69, 0.71, 0.70]}


def test_a_supported_difference_is_drawn_and_said():
    text = ending(made(APART))
    lines = text.splitlines()
    rows = {line.split()[0]: line for line in lines if "●" in line}
    assert set(rows) == {"finetune", "replay"}
    assert rows["finetune"].index("●") < rows["replay"].index("├")
    assert "replay" in text.rpartition("\n\n")[2]
    assert "final acc." in lines[0]
    assert max(map(len, lines)) <= 80


def test_one_seed_claims_and_draws_nothing():
    text = ending(made({name: row[:1] for name, row in APART.items()}))
    assert "●" not in text
    assert "--seeds 3" in text.replace("\n", " ")


def test_one_algorithm_has_no_ending():
    assert ending(made({"replay": APART["replay"]})) == ""
    assert ending([]) == ""


def test_synthetic_data_of_a_paper_is_never_left_unsaid():
    values = [
        record("climb", name, seed=seed, summary={"final_accuracy": value, "vqav2": value}, model="vilt-tiny")
        for name, row in APART.items()
        for seed, value in enumerate(row)
    ]
    assert "does not reproduce" in ending([Record.from_json(v, "test") for v in values]).replace("\n", " ")


def test_names_cannot_break_the_picture():
    lines = intervals({"\x1b[31m" + "a" * 99: (1.0, 0.5), "b": (1.0, None)}, 78)
    assert not any("\x1b" in line for line in lines)
    assert max(map(len, lines)) <= 78


def test_an_interval_of_few_seeds_does_not_flatten_the_rest():
    lines = intervals({"a": (1.0, 50.0), "b": (2.0, None)}, 78)
    assert abs(lines[0].index("●") - lines[1].index("●")) > 15
    assert "├" not in lines[0]  # its ends lie beyond the picture


def test_equal_means_are_drawn():
    assert all("●" in line for line in intervals({"a": (0.0, None), "b": (0.0, 0.0)}, 40)[:2])
