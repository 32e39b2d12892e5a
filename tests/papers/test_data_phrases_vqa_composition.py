"""The transcribed tables of VisCOLL, Greco et al. and CFST, as plain JSON: shape, values typed by hand, and sums.

Nothing here uses the loader, so that a slip in one is not hidden by the same slip in the other.
"""

import json
from importlib.resources import files
from statistics import harmonic_mean
from typing import Any

import pytest

# Rows of each table; the whole folder is listed, so a table too many fails as well as one too few.
ROWS: dict[str, dict[str, int]] = {
    "viscoll": {"01": 2, "02": 48, "03": 40, "04": 24, "05": 9},
    "clvqa": {**{f"{number:02d}": 40 for number in range(1, 11)}, "main": 24},
    "cfst": {"01": 14, "02": 14, "03": 14, "04": 14, "05": 14, "06": 14, "07": 11, "08": 14, "fig7": 12},
}
TABLES = [(paper, number) for paper, tables in ROWS.items() for number in tables]

# Test questions of each type; they sum to the published 26,774 Wh-questions and 13,681 yes/no-questions.
QUESTIONS = {
    "query_color": 6753,
    "query_shape": 6702,
    "query_size": 6666,
    "query_material": 6653,
    "equal_color": 3309,
    "equal_shape": 3410,
    "equal_size": 3430,
    "equal_material": 3532,
}
# Rows of the confusion matrices that, as printed, do not sum to the number of their test questions.
ODD_SUMS = {
    ("01", "query_color"): 6752,
    ("05", "query_size"): 6657,
    ("06", "query_shape"): 6753,
    ("10", "equal_size"): 2288,
}


def table(paper: str, number: str) -> dict[str, Any]:
    path = files("holdfast") / "papers" / paper / f"table_{number}.json"
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def records(paper: str, number: str) -> list[dict[str, Any]]:
    """One dictionary a row, by column name."""
    read = table(paper, number)
    names = [column["name"] for column in read["columns"]]
    return [dict(zip(names, row, strict=True)) for row in read["rows"]]


def cell(paper: str, number: str, keys: tuple[str | None, ...]) -> list[float | str | None]:
    """What stands beside the keys of one row."""
    found = [row[len(keys) :] for row in table(paper, number)["rows"] if tuple(row[: len(keys)]) == keys]
    assert len(found) == 1, (paper, number, keys, found)
    return list(found[0])


@pytest.mark.parametrize("paper", ROWS)
def test_every_table_of_the_paper_is_there(paper: str) -> None:
    folder = files("holdfast") / "papers" / paper
    assert sorted(entry.name for entry in folder.iterdir()) == sorted(f"table_{number}.json" for number in ROWS[paper])


@pytest.mark.parametrize(("paper", "number"), TABLES)
def test_shape(paper: str, number: str) -> None:
    read = table(paper, number)
    assert list(read) == ["paper", "number", "title", "measures", "where", "columns", "rows", "notes"]
    assert (read["paper"], read["number"]) == (paper, number.lstrip("0"))
    assert len(read["rows"]) == ROWS[paper][number]
    kinds = [column["kind"] for column in read["columns"]]
    # Keys first, so that a row's prefix names it; and they name it alone.
    assert kinds == sorted(kinds, key=["key", "text", "value"].index)
    keys = kinds.count("key")
    assert len({tuple(row[:keys]) for row in read["rows"]}) == len(read["rows"])
    for row in read["rows"]:
        for column, entry in zip(read["columns"], row, strict=True):
            if column["kind"] == "value" and entry is not None:
                assert isinstance(entry, int | float)
                assert round(entry, column["decimals"]) == entry
                assert column["unit"]
            else:
                assert entry is None or isinstance(entry, str)


@pytest.mark.parametrize(("paper", "number"), TABLES)
def test_the_file_has_one_row_a_line_with_the_printed_digits(paper: str, number: str) -> None:
    lines = (files("holdfast") / "papers" / paper / f"table_{number}.json").read_text(encoding="utf-8").splitlines()
    first = lines.index(' "rows": [') + 1
    decimals = [column.get("decimals") for column in table(paper, number)["columns"]]
    for line in lines[first : first + ROWS[paper][number]]:
        as_text = json.loads(line.strip().rstrip(","), parse_float=str, parse_int=str)
        for entry, places in zip(as_text, decimals, strict=True):
            if places is not None and entry is not None:
                assert len(entry.partition(".")[2]) == places, line


# Typed by hand from the papers' texts, the last row of each table among them.
SPOT: list[tuple[str, str, tuple[str | None, ...], list[float | str | None]]] = [
    ("viscoll", "01", ("coco-shift",), [639592, 27918, 28720, 4426, 26288, 7727, 2.497, 80]),
    ("viscoll", "01", ("flickr-shift",), [456299, 15406, 15286, None, 487, 137, 3.380, 1000]),
    ("viscoll", "02", ("vanilla", "vlbert", "coco-shift", None), [5.040, 25.96, 1.29, 0.540]),
    ("viscoll", "02", ("er", "lxmert", "coco-shift", "1000"), [3.154, 49.52, 24.56, -0.069]),
    ("viscoll", "02", ("er-mir-max", "vlbert", "coco-shift", "10000"), [2.473, 58.14, 32.48, -0.153]),
    ("viscoll", "02", ("er-text-only", "lxmert", "coco-shift", "10000"), [3.106, 48.07, 22.57, -0.112]),
    ("viscoll", "02", ("agem", "vlbert", "flickr-shift", "10000"), [4.393, 28.97, 7.35, -0.056]),
    ("viscoll", "02", ("er-mir", "lxmert", "flickr-shift", "1000"), [4.949, 31.64, 9.80, 0.188]),
    ("viscoll", "02", ("offline", "lxmert", "flickr-shift", None), [2.025, 57.10, 32.25, None]),
    ("viscoll", "03", ("iid-online", "lxmert", "coco-shift", None), [2, 6]),
    ("viscoll", "03", ("agem", "vlbert", "coco-shift", "1000"), [2, 57]),
    ("viscoll", "03", ("er-mir", "vlbert", "flickr-shift", "10000"), [2, 42]),
    ("viscoll", "03", ("er-mir-max", "lxmert", "flickr-shift", "10000"), [5, 8]),
    ("viscoll", "04", ("black cat",), ["black", "cat", "adjective"]),
    ("viscoll", "04", ("ride woman",), ["ride", "woman", "verb"]),
    ("viscoll", "04", ("eat horse",), ["eat", "horse", "verb"]),
    ("viscoll", "05", ("ascending-frequency", "vanilla", None), [4.31]),
    ("viscoll", "05", ("descending-frequency", "er", "1000"), [3.58]),
    ("viscoll", "05", ("random", "er", "10000"), [2.31]),
    ("clvqa", "01", ("independent", "wh", "equal_color", "query_size"), [2088]),
    ("clvqa", "01", ("independent", "wh", "equal_size", "query_size"), [3430]),
    ("clvqa", "01", ("independent", "wh", "equal_material", "query_material"), [2037]),
    ("clvqa", "02", ("naive", "wh-yn", "query_color", "yes_no"), [6738]),
    ("clvqa", "02", ("naive", "wh-yn", "query_material", "query_material"), [148]),
    ("clvqa", "02", ("naive", "wh-yn", "equal_material", "yes_no"), [3532]),
    ("clvqa", "03", ("cumulative", "wh-yn", "query_color", "query_material"), [1]),
    ("clvqa", "03", ("cumulative", "wh-yn", "query_size", "query_size"), [6665]),
    ("clvqa", "03", ("cumulative", "wh-yn", "equal_material", "yes_no"), [3532]),
    ("clvqa", "04", ("rehearsal", "wh-yn", "query_color", "query_size"), [8]),
    ("clvqa", "04", ("rehearsal", "wh-yn", "query_size", "yes_no"), [2]),
    ("clvqa", "04", ("rehearsal", "wh-yn", "equal_material", "yes_no"), [3532]),
    ("clvqa", "05", ("ewc", "wh-yn", "query_shape", "yes_no"), [1223]),
    ("clvqa", "05", ("ewc", "wh-yn", "query_material", "query_material"), [1337]),
    ("clvqa", "05", ("ewc", "wh-yn", "equal_size", "yes_no"), [3429]),
    ("clvqa", "05", ("ewc", "wh-yn", "equal_material", "yes_no"), [3532]),
    ("clvqa", "06", ("independent", "yn", "query_shape", "yes_no"), [6753]),
    ("clvqa", "06", ("independent", "yn", "query_size", "yes_no"), [6666]),
    ("clvqa", "06", ("independent", "yn", "equal_material", "yes_no"), [3532]),
    ("clvqa", "07", ("naive", "yn-wh", "equal_color", "query_color"), [2732]),
    ("clvqa", "07", ("naive", "yn-wh", "equal_shape", "query_material"), [603]),
    ("clvqa", "07", ("naive", "yn-wh", "equal_material", "query_material"), [2205]),
    ("clvqa", "08", ("cumulative", "yn-wh", "query_color", "query_color"), [6753]),
    ("clvqa", "08", ("cumulative", "yn-wh", "query_shape", "query_color"), [1]),
    ("clvqa", "08", ("cumulative", "yn-wh", "equal_material", "yes_no"), [3532]),
    ("clvqa", "09", ("rehearsal", "yn-wh", "query_color", "query_size"), [1]),
    ("clvqa", "09", ("rehearsal", "yn-wh", "equal_size", "yes_no"), [3429]),
    ("clvqa", "09", ("rehearsal", "yn-wh", "equal_material", "yes_no"), [3532]),
    ("clvqa", "10", ("ewc", "yn-wh", "equal_shape", "query_material"), [1326]),
    ("clvqa", "10", ("ewc", "yn-wh", "equal_size", "query_material"), [1674]),
    ("clvqa", "10", ("ewc", "yn-wh", "equal_material", "query_material"), [3065]),
    ("clvqa", "main", ("random", "wh", "wh"), [0.09]),
    ("clvqa", "main", ("random", "yn", "yn"), [0.50]),
    ("clvqa", "main", ("independent", "wh", "wh"), [0.81]),
    ("clvqa", "main", ("independent", "yn", "yn"), [0.52]),
    ("clvqa", "main", ("random", "wh-yn", "wh"), [0.04]),
    ("clvqa", "main", ("ewc", "yn-wh", "wh"), [0.83]),
    ("clvqa", "main", ("rehearsal", "wh-yn", "wh"), [0.75]),
    ("clvqa", "main", ("cumulative", "yn-wh", "wh"), [0.81]),
    (
        *("cfst", "01", ("lwf", "class")),
        [9.11, 71.22, 0.74, 73.28, 0.61, 68.74, 0.66, 71.03, 76.56, 0.66, 48.69, 0.77, 59.52, 65.93],
    ),
    (
        *("cfst", "01", ("gem", "task")),
        [21.60, 69.44, 0.75, 73.14, 0.67, 66.61, 0.66, 69.63, 73.31, 0.71, 45.97, 0.74, 56.51, 63.71],
    ),
    (
        *("cfst", "01", ("mntdp", "task")),
        [68.98, 47.27, 0.91, 47.41, 0.86, 47.50, 0.85, 47.39, 52.28, 0.81, 32.29, 0.83, 39.93, 44.09],
    ),
    (
        *("cfst", "02", ("multitask", "class")),
        [39.73, 72.70, 1.55, 67.11, 1.86, 69.79, 83.38, 1.36, 57.52, 1.81, 68.08, 68.93],
    ),
    (
        *("cfst", "02", ("rpsnet", "class")),
        [21.93, 73.26, 1.24, 67.89, 1.44, 70.47, 78.82, 1.27, 68.22, 1.24, 73.14, 71.78],
    ),
    (
        *("cfst", "02", ("mntdp", "task")),
        [71.80, 51.89, 1.41, 49.16, 1.56, 50.49, 57.20, 1.59, 48.52, 1.36, 52.50, 51.48],
    ),
    (
        *("cfst", "03", ("er", "class")),
        [12.67, 35.51, 1.18, 35.04, 1.25, 35.27, 51.45, 1.39, 31.12, 1.03, 38.78, 36.95],
    ),
    (
        *("cfst", "03", ("lwf", "task")),
        [54.53, 47.96, 1.18, 45.26, 1.35, 46.57, 55.98, 1.30, 40.53, 1.20, 47.02, 46.79],
    ),
    (
        *("cfst", "03", ("mntdp", "task")),
        [55.93, 40.06, 0.98, 37.48, 1.20, 38.73, 46.52, 1.06, 34.28, 1.01, 39.47, 39.10],
    ),
    (
        *("cfst", "04", ("multitask", "class")),
        [37.47, 47.42, 0.93, 41.64, 0.96, 44.34, 84.99, 0.69, 30.56, 0.90, 44.96, 44.65],
    ),
    (
        *("cfst", "04", ("ewc", "task")),
        [46.00, 32.83, 0.96, 29.49, 0.92, 31.07, 38.07, 0.95, 24.94, 0.86, 30.14, 30.60],
    ),
    (
        *("cfst", "04", ("mntdp", "task")),
        [49.43, 30.98, 0.70, 28.27, 0.74, 29.56, 42.28, 0.89, 24.34, 0.68, 30.90, 30.22],
    ),
    (
        *("cfst", "05", ("rpsnet", "class")),
        [12.47, 56.82, 1.25, 58.91, 1.11, 60.44, 1.14, 58.69, 62.75, 1.11, 44.53, 1.22, 52.09, 55.86],
    ),
    (
        *("cfst", "05", ("gem", "task")),
        [29.85, 14.09, 0.47, 16.67, 0.48, 15.32, 0.53, 15.29, 15.31, 0.49, 16.42, 0.52, 15.85, 15.51],
    ),
    (
        *("cfst", "05", ("mntdp", "task")),
        [56.25, 23.69, 1.00, 21.97, 0.87, 24.27, 0.93, 23.27, 26.31, 0.94, 18.31, 0.71, 21.59, 22.57],
    ),
    (
        *("cfst", "06", ("rpsnet", "class")),
        [23.83, 44.72, 1.05, 41.37, 1.26, 42.98, 59.33, 1.42, 33.49, 1.12, 42.81, 42.90],
    ),
    (
        *("cfst", "06", ("gem", "task")),
        [26.70, 36.36, 0.62, 33.00, 0.71, 34.60, 39.34, 0.69, 32.18, 0.61, 35.40, 35.00],
    ),
    (
        *("cfst", "06", ("mntdp", "task")),
        [45.50, 22.74, 0.70, 21.68, 0.75, 22.20, 31.52, 0.82, 20.37, 0.63, 24.75, 23.41],
    ),
    (
        *("cfst", "07", ("finetune", "class")),
        [9.22, 48.97, 0.88, 42.06, 0.91, 45.25, 52.33, 0.96, 15.56, 0.43, 23.99, 31.35],
    ),
    (
        *("cfst", "07", ("rpsnet", "class")),
        [45.88, 55.33, 0.81, 48.21, 0.63, 51.53, 58.21, 0.95, 26.32, 0.33, 36.25, 42.56],
    ),
    (
        *("cfst", "07", ("ewc", "task")),
        [76.15, 57.83, 0.65, 53.11, 0.69, 55.37, 59.00, 0.77, 18.01, 0.53, 27.60, 36.83],
    ),
    ("cfst", "08", ("multitask", "class"), [53.42, 0.30]),
    ("cfst", "fig7", ("finetune", "class"), [87.10, 70.25, 87.63, 67.65, 0.61, -3.70]),
    ("cfst", "fig7", ("gem", "class"), [85.62, 71.52, 84.15, 67.70, -1.71, -5.34]),
    ("cfst", "fig7", ("er", "task"), [87.23, 80.73, 86.70, 74.77, -0.61, -7.39]),
    ("cfst", "fig7", ("ewc", "task"), [88.42, 77.90, 86.88, 72.80, -1.73, -6.55]),
    ("cfst", "08", ("rpsnet", "class"), [37.07, 1.07]),
    ("cfst", "08", ("finetune", "task"), [46.77, 1.29]),
    ("cfst", "08", ("mntdp", "task"), [66.94, 0.79]),
]


@pytest.mark.parametrize(("paper", "number", "keys", "values"), SPOT)
def test_value_typed_by_hand(
    paper: str, number: str, keys: tuple[str | None, ...], values: list[float | str | None]
) -> None:
    assert cell(paper, number, keys) == values


@pytest.mark.parametrize(("paper", "number"), TABLES)
def test_the_last_row_is_among_the_values_typed_by_hand(paper: str, number: str) -> None:
    last = table(paper, number)["rows"][-1]
    typed = [[*keys, *values] for spot_paper, spot, keys, values in SPOT if (spot_paper, spot) == (paper, number)]
    # A confusion matrix ends in a zero that says little: its last non-zero cell stands for it.
    rows = [row for row in table(paper, number)["rows"] if row[-1] != 0]
    assert last in typed or rows[-1] in typed
    assert len(typed) >= min(3, len(rows))


# The sum of all numbers of a printed table, taken from the paper's text and not from these files: it guards the cells
# that no relation ties to others, intervals above all.
TOTALS = {
    ("viscoll", "01"): 1223371.877,
    ("viscoll", "02"): 3190.245,
    ("viscoll", "03"): 1170,
    ("viscoll", "05"): 31.74,
    ("cfst", "01"): 7754.47,
    ("cfst", "02"): 5715.77,
    ("cfst", "03"): 4663.27,
    ("cfst", "04"): 4267.81,
    ("cfst", "05"): 6133.11,
    ("cfst", "06"): 4050.67,
    ("cfst", "07"): 3772.22,
    ("cfst", "08"): 578.95,
}


@pytest.mark.parametrize(("paper", "number"), TOTALS)
def test_sum_of_all_numbers(paper: str, number: str) -> None:
    numbers = [entry for row in table(paper, number)["rows"] for entry in row if isinstance(entry, int | float)]
    assert sum(numbers) == pytest.approx(TOTALS[paper, number], rel=0, abs=1e-6)


class TestPhrases:
    def test_the_mean_of_instances_agrees_with_the_splits_on_flickr_alone(self) -> None:
        coco, flickr = records("viscoll", "01")

        def mean(row: dict[str, Any]) -> float:
            splits = ("training", "validation", "regular_test", "compositional_test")
            return sum(row[f"{split}_instances"] or 0 for split in splits) / float(row["tasks"])

        assert abs(mean(flickr) - flickr["mean_instances_per_task"]) <= 0.5
        # The printed 26,288 is three times too high, as the table's note says.
        assert round(coco["mean_instances_per_task"] / mean(coco), 1) == 3.0

    def test_the_random_order_of_table_5_is_table_2_rounded(self) -> None:
        main = {
            (row["method"], row["memory"]): row["log_perplexity"]
            for row in records("viscoll", "02")
            if (row["model"], row["dataset"]) == ("vlbert", "coco-shift")
        }
        random = [row for row in records("viscoll", "05") if row["order"] == "random"]
        assert len(random) == 3
        for row in random:
            assert abs(main[row["method"], row["memory"]] - row["log_perplexity"]) <= 0.005

    def test_each_method_has_both_memory_sizes_or_none(self) -> None:
        for number in ("02", "03"):
            sizes: dict[tuple[str, str, str], set[str | None]] = {}
            for row in records("viscoll", number):
                sizes.setdefault((row["method"], row["model"], row["dataset"]), set()).add(row["memory"])
            for (method, _, _), found in sizes.items():
                if method == "er-text-only":
                    assert found == {"10000"}
                elif method in ("vanilla", "offline", "offline-one-pass", "iid-online"):
                    assert found == {None}
                else:
                    assert found == {"1000", "10000"}

    def test_what_the_text_says_of_table_2(self) -> None:
        rows = {(r["method"], r["model"], r["dataset"], r["memory"]): r for r in records("viscoll", "02")}
        for model in ("vlbert", "lxmert"):
            for dataset in ("coco-shift", "flickr-shift"):
                replay = rows["er", model, dataset, "10000"]
                blind = rows["er-text-only", model, dataset, "10000"]
                assert replay["log_perplexity"] < blind["log_perplexity"]
                assert replay["bleu_1"] > blind["bleu_1"] + 4.8
                one_pass = rows["offline-one-pass", model, dataset, None]
                gap = one_pass["bleu_1"] - rows["vanilla", model, dataset, None]["bleu_1"]
                assert 20 < gap < 40
        assert all(row["bleu_2"] < row["bleu_1"] for row in rows.values())

    def test_replay_takes_longer_than_fine_tuning_and_interference_longest(self) -> None:
        minutes = {
            (row["method"], row["model"], row["dataset"], row["memory"]): 60 * row["hours"] + row["minutes"]
            for row in records("viscoll", "03")
        }
        assert all(0 <= row["minutes"] < 60 for row in records("viscoll", "03"))
        for (method, model, dataset, memory), replay in minutes.items():
            if method == "er":
                assert minutes["vanilla", model, dataset, None] < replay
                assert replay < minutes["agem", model, dataset, memory] < minutes["er-mir", model, dataset, memory]

    def test_the_held_out_pairs_are_sixteen_with_an_adjective_and_eight_with_a_verb(self) -> None:
        pairs = records("viscoll", "04")
        assert all(pair["composition"] == f"{pair['word']} {pair['noun']}" for pair in pairs)
        verbs = {pair["word"] for pair in pairs if pair["word_class"] == "verb"}
        adjectives = {pair["word"] for pair in pairs if pair["word_class"] == "adjective"}
        assert verbs == {"eat", "lie", "ride", "fly", "hold", "stand"}
        assert adjectives == {"black", "big", "red", "small", "white", "brown", "blue"}
        assert sum(pair["word_class"] == "verb" for pair in pairs) == 8


class TestQuestions:
    def test_the_question_types_sum_to_the_test_sets(self) -> None:
        assert sum(count for name, count in QUESTIONS.items() if name.startswith("query")) == 26774
        assert sum(count for name, count in QUESTIONS.items() if name.startswith("equal")) == 13681

    def test_each_row_sums_to_its_questions_except_the_four_that_the_paper_misprints(self) -> None:
        odd = {}
        for number in range(1, 11):
            sums: dict[str, int] = {}
            for row in records("clvqa", f"{number:02d}"):
                sums[row["question_type"]] = sums.get(row["question_type"], 0) + row["count"]
            assert list(sums) == list(QUESTIONS)
            odd.update({(f"{number:02d}", name): sums[name] for name in sums if sums[name] != QUESTIONS[name]})
        assert odd == ODD_SUMS

    def test_each_odd_sum_has_a_note(self) -> None:
        for (number, question_type), total in ODD_SUMS.items():
            notes = [note for note in table("clvqa", number)["notes"] if question_type in note]
            assert any(f"{total:,}" in note for note in notes)

    def test_an_accuracy_of_the_main_paper_is_no_higher_than_answers_of_the_right_kind(self) -> None:
        main = {(row["method"], row["setup"], row["task"]): row["accuracy"] for row in records("clvqa", "main")}
        compared = 0
        for number in range(1, 11):
            matrix = records("clvqa", f"{number:02d}")
            method, setup = matrix[0]["method"], matrix[0]["setup"]
            if method == "independent":
                continue
            right = {"wh": 0, "yn": 0}
            for row in matrix:
                if row["predicted"] == row["question_type"]:
                    right["wh"] += row["count"]
                elif row["question_type"].startswith("equal") and row["predicted"] == "yes_no":
                    right["yn"] += row["count"]
            assert main[method, setup, "wh"] <= right["wh"] / 26774 + 0.005
            assert main[method, setup, "yn"] <= right["yn"] / 13681 + 0.005
            compared += 1
        assert compared == 8

    def test_cumulative_training_does_not_depend_on_the_order(self) -> None:
        for task in ("wh", "yn"):
            both = [cell("clvqa", "main", ("cumulative", setup, task)) for setup in ("wh-yn", "yn-wh")]
            assert both[0] == both[1]


FEW_SHOT = [f"{number:02d}" for number in range(1, 8)]


def novel(row: dict[str, Any]) -> list[float]:
    return [row[name] for name in ("sys", "pro", "sub") if name in row]


class TestComposition:
    @pytest.mark.parametrize("number", FEW_SHOT)
    def test_columns(self, number: str) -> None:
        names = [column["name"] for column in table("cfst", number)["columns"]]
        scores = ["acon", "sys", "sys_ci", "pro", "pro_ci", "sub", "sub_ci", "hn", "non", "non_ci", "noc", "noc_ci"]
        full = ["method", "setting", *scores, "hr", "ha"]
        # Only CGQA has attributes to substitute.
        assert names == (full if number in ("01", "05") else [name for name in full if not name.startswith("sub")])

    @pytest.mark.parametrize("number", FEW_SHOT)
    def test_the_harmonic_means_are_those_of_the_printed_parts(self, number: str) -> None:
        # Every part is rounded to 0.01, and so is the mean; no cell of the seven tables is an exception.
        for row in records("cfst", number):
            rest = [row["non"], row["noc"]]
            for name, parts in (("hn", novel(row)), ("hr", rest), ("ha", novel(row) + rest)):
                lowest = harmonic_mean([part - 0.005 for part in parts]) - 0.005
                highest = harmonic_mean([part + 0.005 for part in parts]) + 0.005
                assert lowest <= row[name] <= highest, (row, name)

    @pytest.mark.parametrize("number", ["02", "03", "04", "06"])
    def test_continual_accuracy_on_cobj_is_a_count_of_three_thousand(self, number: str) -> None:
        # 30 combinations of 100 test images each: a percentage is a multiple of 1/30.
        for row in records("cfst", number):
            assert row["acon"] == round(round(row["acon"] * 30) / 30, 2), row

    def test_the_differences_that_the_text_repeats_from_table_1(self) -> None:
        joint, plain = records("cfst", "01")[:2]
        assert (joint["method"], plain["method"]) == ("multitask", "finetune")
        printed = {"sys": 23.41, "pro": 20.51, "sub": 8.41, "non": 23.01, "noc": -0.28}
        assert {name: round(joint[name] - plain[name], 2) for name in printed} == printed

    def test_what_the_text_says_of_the_order_of_the_tests(self) -> None:
        worse = {(row["method"], row["setting"]) for row in records("cfst", "01") if row["pro"] <= row["sys"]}
        assert worse == {("multitask", "class"), ("er", "class")}
        for row in records("cfst", "07"):
            assert row["non"] > row["sys"] > row["pro"]
            assert (row["noc"] < 20) == (row["method"] != "rpsnet")

    def test_the_best_of_each_setting_are_those_that_the_paper_names(self) -> None:
        def best(number: str, setting: str, column: str) -> str:
            rows = [r for r in records("cfst", number) if r["setting"] == setting and r["method"] != "multitask"]
            return str(max(rows, key=lambda row: float(row[column]))["method"])

        assert best("01", "class", "acon") == "rpsnet"
        assert best("01", "class", "hn") == "lwf"
        assert [best(number, "class", "ha") for number in ("02", "03", "04", "06", "07")] == ["rpsnet"] * 5
        assert [best(number, "task", "acon") for number in ("02", "03")] == ["mntdp"] * 2
        assert [best("08", setting, "accuracy") for setting in ("class", "task")] == ["rpsnet", "lwf"]

    @pytest.mark.parametrize("number", sorted(ROWS["cfst"]))
    def test_rpsnet_is_class_incremental_and_mntdp_task_incremental(self, number: str) -> None:
        settings: dict[str, set[str]] = {}
        for row in records("cfst", number):
            settings.setdefault(row["method"], set()).add(row["setting"])
        for method, found in settings.items():
            assert found == {"rpsnet": {"class"}, "mntdp": {"task"}}.get(method, {"class", "task"})
