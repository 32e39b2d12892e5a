"""The measures of `cfst` from the score log, and its scores from the predictions and CGQA's own files alone."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from cli.inside import inside
from recomputed.raw import check_row, check_summary, markdown_tables, mean_and_interval, page_tables, runs, same

FILES = {"sys": "sys", "pro": "pro", "sub": "sub", "non": "non_novel", "noc": "non_comp"}
MEASURES = ("Acon", "Asys", "Apro", "Asub", "Hn", "Anon", "Anoc", "Hr", "Ha")
TESTS, EACH = 12, 5
"""Few-shot tasks of a test, and classes of a stage: at tiny ten combinations come in two stages."""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    out = tmp_path_factory.mktemp("cfst")
    always = ("--set", f"benchmark.tests={TESTS}", "--scale", "tiny", "--predictions", "-j", 1, "--out", out)
    for words in (("-a", "finetune,er", "--seeds", 2), ("-a", "finetune", "--setting", "task")):
        done = inside("run", "cfst:cgqa", *words, *always, cwd=out)
        assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def archive():
    """CGQA's files: the combination of each picture of each part."""
    from holdfast.benchmarks.synthetic import world

    root = world("cgqa", "tiny") / "CGQA" / "GQA_100"
    parts = {part: root / "continual" / part / f"{part}.json" for part in ("train", "val", "test")}
    parts |= {mode: root / "fewshot" / name / f"{name}_fewshot.json" for mode, name in FILES.items()}
    return {part: [tuple(sorted(e["comb"])) for e in json.loads(p.read_text())] for part, p in parts.items()}


@pytest.fixture(scope="module")
def trained(archive):
    """The combinations in the order of the paper's list, as many as the archive has."""
    import holdfast

    listed = json.loads((Path(holdfast.__file__).parent / "benchmarks/cfst/lists/cgqa.json").read_text())
    order = [tuple(sorted(name.split(", "))) for task in listed["tasks"] for name in task]
    return [combination for combination in order if combination in archive["train"]]


def harmonic(*values):
    return 0.0 if min(values) == 0 else len(values) / sum(1 / value for value in values)


def measured(run):
    """The row of a run in the paper's tables, its intervals and its related scores, as fractions."""
    last = max(line["stage"] for line in run.log)
    stages = [name for name in run.names() if name.startswith("task-")]
    found = {"Acon": sum(run.score(last, name) for name in stages) / len(stages)}
    a = {name: run.score(last, name) for name in run.names() if not name.startswith("task-")}
    tests = [name for name in a if not name.endswith(" interval")]
    found |= {f"A{name}": a[name] for name in tests}
    found |= {f"A{name}_interval": a[f"{name} interval"] for name in tests}
    found["Hn"] = harmonic(a["sys"], a["pro"], a["sub"])
    found["Hr"] = harmonic(a["non"], a["noc"])
    found["Ha"] = harmonic(*(a[mode] for mode in FILES))
    found |= {f"S({mode})": (a[mode] - a["non"]) / a["non"] for mode in FILES if mode != "non"}
    for group in ("f", "o"):
        non, sys = a.get(f"non({group})"), a.get(f"sys({group})")
        found |= {f"Anon({group})": non, f"Asys({group})": sys}
        found[f"S({group})"] = None if non is None or sys is None else (sys - non) / non
    return found


def of_row(store, algorithm, setting="class"):
    found = [run for run in runs(store) if run.algorithm == algorithm]
    found = [run for run in found if run.config["benchmark"]["setting"] == setting]
    return sorted(found, key=lambda run: run.seed)


def test_the_accuracies_on_the_continual_tasks(store, archive, trained):
    """A set has the pictures of its stage's combinations, one combination after another."""
    assert len(trained) == 10
    seen = 0
    for run in runs(store):
        alone = run.config["benchmark"]["setting"] == "task"
        for line, predictions in run.predictions():
            if not line["name"].startswith("task-"):
                continue
            stage = int(line["name"].removeprefix("task-")) - 1
            part = archive["test" if line["split"] == "test" else "val"]
            classes = range(stage * EACH, (stage + 1) * EACH)
            right = [c - (stage * EACH if alone else 0) for c in classes for _ in range(part.count(trained[c]))]
            assert line["count"] == len(right)
            assert same(line["score"], np.mean(predictions == np.array(right)))
            seen += 1
    assert seen == 5 * 2 * 2 * 2


def test_the_few_shot_tests(store, archive, trained):
    """The mean over the tasks of a test, and 1.96 sample deviations of it over the root of their number."""
    fresh = {concept for combination in trained[EACH:] for concept in combination}
    for run in runs(store):
        found = {line["name"]: (line, values) for line, values in run.predictions()}
        tests = [name for name in found if not name.startswith("task-") and not name.endswith(" interval")]
        assert {*FILES} <= {*tests}
        for name in tests:
            line, values = found[name]
            assert len(values) == TESTS
            mean = sum(values) / TESTS
            deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (TESTS - 1))
            assert same(line["score"], mean)
            assert same(run.score(line["stage"], f"{name} interval"), 1.96 * deviation / math.sqrt(TESTS))
            way = 2 if "(" in name else 10
            assert line["count"] == TESTS * way * 10, "ten queries of each class"
            # Each task asks ten of each class, so that its accuracy is a whole number of these.
            assert np.allclose(np.round(np.array(values) * way * 10), np.array(values) * way * 10)
            assert same(run.record["chance"][name], 1 / way)
        # A test on fresh, or old, concepts is there where two combinations are of these alone.
        for mode in ("non", "sys"):
            combinations = set(archive[mode])
            among = {
                "f": [c for c in combinations if {*c} <= fresh],
                "o": [c for c in combinations if not {*c} & fresh],
            }
            for group, those in among.items():
                assert (f"{mode}({group})" in tests) == (len(those) >= 2)


def test_the_measures_of_each_record(store):
    found = runs(store)
    assert len(found) == 5
    for run in found:
        check_summary(run, measured(run))


def test_the_tables(store):
    tables = json.loads(inside("compare", store, "--json", cwd=store).stdout)
    printed = markdown_tables(inside("compare", store, "--format", "markdown", cwd=store).stdout)
    beside = json.loads(inside("cfst", "table", store, "--json", cwd=store).stdout)
    assert beside == tables
    (paper,) = [table for table in tables if "table 1" in table["title"]]
    (concepts,) = [table for table in tables if "figure 7" in table["title"]]
    rows = {("finetune", "class"): "finetune", ("replay", "class"): "replay (er)", ("finetune", "task"): "finetune"}
    page = inside("report", store, "--out", store / "report", cwd=store)
    assert page.returncode == 0, page.stderr
    pages = page_tables((store / "report" / "index.html").read_text())
    bars = next(table for table in pages if table[0] == ["", *FILES])
    for (algorithm, setting), theirs in rows.items():
        group = [measured(run) for run in of_row(store, algorithm, setting)]
        assert len(group) == (1 if setting == "task" else 2)
        expected = {name: mean_and_interval([100 * each[name] for each in group]) for name in MEASURES}
        (own,) = [t for t in tables if t["title"].startswith("cfst:cgqa") and f" {setting} " in t["title"]]
        check_row(own, algorithm, expected, printed[own["title"]])

        # Beside the paper's, a run of one seed has the interval of its own few-shot tasks.
        tested = {f"A{mode}" for mode in FILES}
        if len(group) == 1:
            widths = {name: 100 * group[0][f"{name}_interval"] if name in tested else None for name in MEASURES}
            expected = {name: (mean, widths[name]) for name, (mean, _) in expected.items()}
        check_row(paper, f"{theirs} · {setting}", expected, printed[paper["title"]], decimals=2)

        those = ("Anon(f)", "Anon(o)", "Asys(f)", "Asys(o)", "S(f)", "S(o)")
        values = {name: [each[name] for each in group] for name in those}
        missing = (None, None)
        expected = {n: missing if None in v else mean_and_interval([100 * x for x in v]) for n, v in values.items()}
        check_row(concepts, f"{theirs} · {setting}", expected, printed[concepts["title"]], decimals=2)

        (row,) = [row for row in bars if row[0] == f"{algorithm}, {setting}"]
        for mode, text in zip(FILES, row[1:], strict=True):
            # A drawing's numbers have four digits; the interval of two seeds is not drawn.
            mean, _ = mean_and_interval([100 * each[f"A{mode}"] for each in group])
            shown, _, width = text.partition(" ±")
            assert math.isclose(float(shown), mean, rel_tol=1e-3)
            assert bool(width) == (len(group) == 1)
            assert not width or math.isclose(float(width), 100 * group[0][f"A{mode}_interval"], rel_tol=0.05)


def test_a_series_over_a_setting(store):
    found = json.loads(inside("cfst", "series", store, "--over", "way", "--measure", "Ha", "--json", cwd=store).stdout)
    assert len(found["rows"]) == 3
    for title, row in found["rows"].items():
        name, _, _ = title.partition(",")
        group = of_row(store, name.rstrip("*"), "task" if name.endswith("*") else "class")
        assert same(row["default"], 100 * sum(measured(run)["Ha"] for run in group) / len(group))
