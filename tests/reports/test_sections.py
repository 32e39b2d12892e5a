"""The papers' tables with ours in them: the right cell of the paper beside the right run, and the right warning."""

from dataclasses import replace

import pytest

from holdfast import metrics, papers
from holdfast.benchmarks.cfst import report as cfst
from holdfast.benchmarks.climb import report as climb
from holdfast.experiments.store import Record
from holdfast.reports import sections
from holdfast.reports.blocks import Bars, Note, TableBlock
from reports.stores import record

TESTS = {"Acon": 0.2, "Asys": 0.7, "Asys_interval": 0.01, "Apro": 0.6, "Asub": 0.5, "Anon": 0.8, "Anoc": 0.4,
         "Hn": 0.59, "Hr": 0.53, "Ha": 0.57}  # fmt: skip


def made(benchmark, algorithm="finetune", **rest):
    return Record.from_json(record(benchmark, algorithm, **rest), "test")


def rows(table):
    return {row[0].text: dict(zip(table.columns, row, strict=True)) for row in table.rows}


def test_cfst_puts_a_run_into_the_papers_row_and_leaves_the_others():
    runs = [made("cfst:cgqa", "replay", model="resnet18-tiny", summary=TESTS)]
    table = sections.section("cfst", runs)[0]
    found = rows(table)
    assert len(found) == len(papers.table("cfst", 1))
    assert next(iter(found)) == "joint (multitask) · class"
    assert "joint · task" in found, "the paper's name is given once"
    ours = found["replay (er) · class"]
    assert (ours["Acon ↑"].number, ours["Acon ↑"].paper) == (pytest.approx(20.0), 19.78)
    assert (ours["Asys ↑"].interval, ours["Asys ↑"].paper_interval) == (pytest.approx(1.0), 0.75)
    assert ours["Hr ↑"].paper == papers.table("cfst", 1).value("hr", method="er", setting="class")
    assert found["replay · task"]["Acon ↑"].number is None
    assert found["replay · task"]["Acon ↑"].paper == 76.05
    assert "not reproduce" in table.warning


def test_a_network_of_modules_stands_in_the_table_of_the_network_that_they_make_up():
    runs = []
    for algorithm, model in (("mntdp", {"name": "modular-resnet18", "parts": "stages"}), ("er", {"name": "resnet18"})):
        value = record("cfst:cgqa", algorithm, summary=TESTS, run=algorithm)
        value["config"]["model"] = {**model, "channels": 64}
        runs.append(Record.from_json(value, "test"))
    tables = [block for block in cfst.section(runs) if isinstance(block, TableBlock)]
    found = rows(tables[0])
    assert len(tables) == 1
    assert found["er · class"]["Acon ↑"].number == found["mntdp · class"]["Acon ↑"].number == pytest.approx(20.0)


def test_a_method_that_the_paper_has_not_stands_below_and_two_rows_share_one_of_the_papers():
    runs = [made("cfst:cgqa", "derpp", model="resnet18", summary=TESTS, run="a")]
    for capacity in (5, 9):
        value = record("cfst:cgqa", "replay", model="resnet18", summary=TESTS, run=f"r{capacity}")
        value["config"]["algorithms"] = [{"name": "replay", "capacity": capacity}]
        runs.append(Record.from_json(value, "test"))
    found = rows(cfst.section(runs)[0])
    assert list(found)[-1] == "derpp · class"
    assert found["derpp · class"]["Acon ↑"].paper is None
    assert (
        found["er · class · (capacity=5)"]["Acon ↑"].paper
        == found["er · class · (capacity=9)"]["Acon ↑"].paper
        == 19.78
    )


@pytest.mark.parametrize(
    ("benchmark", "model", "tasks", "number"),
    [
        ("cgqa", "resnet18", None, "1"), ("cobj", "resnet18", 10, "2"), ("cobj", "resnet18-tiny", 5, "3"),
        ("cobj", "resnet18", None, "4"), ("cgqa", "vit-tiny", None, "5"), ("cobj", "vit", 3, "6"),
        ("cpin", "resnet18", None, "7"), ("cifar100", "resnet18", None, "8"), ("cpin", "vit", None, ""),
        ("cobj", "vit", 5, ""), ("cgqa", "perceptron", None, ""),
    ],
)  # fmt: skip
def test_each_experiment_has_its_own_table(benchmark, model, tasks, number):
    run = made(f"cfst:{benchmark}", model=model, tasks=tasks)
    assert cfst.table_number(run) == number
    if number:
        title = papers.table("cfst", number).title
        assert {"cgqa": "CGQA", "cobj": "COBJ", "cpin": "CPIN", "cifar100": "CIFAR"}[benchmark] in title
        assert ("ViT" in title) == ("vit" in model)


def test_cifar_has_accuracy_alone_and_bars_come_with_few_shot_tests():
    blocks = cfst.section([made("cfst:cifar100", "ewc", model="resnet18", summary={"Acon": 0.08})])
    (table,) = blocks
    assert rows(table)["ewc · class"]["Acon ↑"].paper == 7.41
    assert any(isinstance(block, Bars) for block in cfst.section([made("cfst:cgqa", model="resnet18", summary=TESTS)]))


def test_fresh_and_old_concepts_stand_beside_the_papers_figure_where_it_has_them():
    summary = TESTS | {"Anon(f)": 0.9, "Anon(o)": 0.8, "Asys(f)": 0.88, "Asys(o)": 0.7, "S(f)": -0.022, "S(o)": -0.125}
    for benchmark, published in (("cfst:cgqa", -3.70), ("cfst:cpin", None)):
        table = cfst.section([made(benchmark, model="resnet18", summary=summary)])[-1]
        found = rows(table)["finetune · class" if published else "finetune"]
        cell = found["S(o) ↑" if published else "S(o)"]
        assert (cell.number, cell.paper) == (pytest.approx(-12.5), published)
        assert any("only concepts of the last stage" in note for note in table.notes)


def test_real_data_is_compared_at_the_papers_scale_alone():
    for given, scale, warned in (
        ("", "paper", "not reproduce"), (" --data d", "small", "not comparable"), (" --data d", "paper", ""),
    ):  # fmt: skip
        run = made("cfst:cgqa", model="resnet18", summary=TESTS, given=given, scale=scale)
        warning = cfst.section([run])[0].warning
        assert (warned in warning) if warned else warning == ""


def test_clvqa_has_both_orders_beside_each_other():
    cases = [
        ("finetune", "two", "", {"wh": 0.1, "yn": 0.6}),
        ("finetune", "two", "yn>wh", {"wh": 0.8, "yn": 0.2}),
        ("cumulative", "two", "", {"wh": 0.9, "yn": 0.7}),
        ("mas", "two", "", {"wh": 0.3, "yn": 0.5}),
        ("mas", "types", "", {"wh": 0.4, "yn": 0.5}),
        ("finetune", "two", "wh", {"wh": 0.7, "yn": 0.0}),
    ]
    runs = [
        made("clvqa", algorithm, seed=seed, model="san-tiny", setting=setting, order=order, summary=summary)
        for algorithm, setting, order, summary in cases
        for seed in range(3)
    ]
    table, bars = sections.section("clvqa", runs)
    assert isinstance(table, TableBlock)
    assert isinstance(bars, Bars)
    found = rows(table)
    naive = found["finetune (naive)"]
    first, second = "Wh → Y/N: {} ↑", "Y/N → Wh: {} ↑"
    assert [naive[first.format(t)].number for t in ("Wh", "Y/N")] == pytest.approx([10, 60])
    assert [naive[first.format(t)].paper for t in ("Wh", "Y/N")] == [0, 61]
    assert [naive[second.format(t)].number for t in ("Wh", "Y/N")] == pytest.approx([80, 20])
    assert [naive[second.format(t)].paper for t in ("Wh", "Y/N")] == pytest.approx([81, 0])
    assert not found["cumulative"][first.format("Wh")].best  # it sees all data
    assert found["mas"][first.format("Wh")].best
    alone, guessed = found["independent (one task alone)"], found["guessing, one task alone"]
    for order in (first, second):
        assert alone[order.format("Wh")].number == pytest.approx(70)
        assert alone[order.format("Y/N")].number is None, "was not run"
        assert [alone[order.format(t)].paper for t in ("Wh", "Y/N")] == [81, 52]
        assert [guessed[order.format(t)].paper for t in ("Wh", "Y/N")] == [9, 50]
    assert "not reproduce" in table.warning


def test_a_section_that_fails_says_so_and_stops_nothing():
    value = record("cfst:cgqa", model="resnet18")
    del value["config"]["benchmark"]["setting"]
    (note,) = sections.section("cfst", [Record.from_json(value, "test")])
    assert isinstance(note, Note)
    assert note.problem
    assert "cfst could not be made: KeyError" in note.text


def phrases(algorithm, capacity=None, order="random", seed=0, value=3.0, **rest):
    """A made-up run of viscoll, scored twice."""
    measures = {"log_perplexity": value, "bleu_1": 0.25, "bleu_2": 0.02, "forgetting": 0.5, "verb_seen": 2.0,
                "verb_novel": 3.0, "adjective_seen": 2.5, "adjective_novel": 3.5}  # fmt: skip
    found = record("viscoll:coco", algorithm, seed, model="vlbert-tiny", setting="images", order=order,
                   summary=measures, run=f"{algorithm}{capacity}{order}{seed}", **rest)  # fmt: skip
    if capacity:
        found["config"]["algorithms"] = [{"name": algorithm, "capacity": capacity, "memory": "reservoir"}]
    found["scores"] = [
        {
            "stage": int(step == 20),
            "step": step,
            "name": name,
            "split": "test",
            "count": count,
            "score": -value - 1 / step,
        }
        for step in (10, 20)
        for name, count in (("regular", 90), ("task/dog", 60), ("task/cat", 30))
    ]
    found["scores"].append({**found["scores"][-1], "name": "learned/dog", "score": 14.0})
    return Record.from_json(found, "test")


def test_viscoll_has_table_2_curves_over_time_and_compositions():
    runs = [
        phrases(name, size, seed=seed, value=value * (1, 0.99, 1.01)[seed])
        for name, size, value in (("finetune", None, 5.0), ("replay", 1000, 3.0), ("replay", 77, 4.0))
        for seed in range(3)
    ]
    blocks = sections.section("viscoll", runs)
    found = rows(blocks[0])
    assert found["finetune (vanilla)"]["log PPL ↓"].paper == 5.04
    assert found["finetune (vanilla)"]["log PPL ↓"].number == pytest.approx(5.0)
    assert found["replay (er) · 1000"]["BLEU-1 ↑"].paper == papers.table("viscoll", 2).value(
        "bleu_1", method="er", model="vlbert", dataset="coco-shift", memory="1000"
    )
    assert found["replay (er) · 1000"]["log PPL ↓"].best
    assert found["replay · 77"]["log PPL ↓"].paper is None  # a memory of another size is not the paper's
    assert "not reproduce" in blocks[0].warning
    blocks = [block for block in blocks if not isinstance(block, Note)]
    titles = [block.title for block in blocks[1:]]
    assert titles[0].startswith("Log-perplexity of all")
    assert "“dog”" in titles[1]
    assert "“cat”" in titles[2]
    dog = blocks[2].series[0]
    assert dog.x == (10.0, 20.0)
    assert "by step 14." in blocks[2].notes[0]
    assert blocks[3].notes == ()
    assert dog.y == pytest.approx((5.1, 5.05))
    assert isinstance(blocks[-1], Bars)
    assert blocks[-1].series[0].y == pytest.approx((2.0, 3.0, 2.5, 3.5))
    assert not found["replay · 77"]["log PPL ↓"].best
    assert "No mark in BLEU-1, BLEU-2, forgetting: all values are equal." in blocks[0].notes


def test_viscoll_draws_the_density_that_a_run_tells():
    run = phrases("finetune")
    told = [replace(run.scores[0], name="density/dog", step=step, score=share) for step, share in ((10, 0.8), (5, 0.2))]
    shown = sections.section("viscoll", [replace(run, scores=(*run.scores, *told))])
    found = [block for block in shown if not isinstance(block, Note) and "Probability" in block.title]
    assert [(series.name, series.x, series.y) for series in found[0].series] == [("dog", (5.0, 10.0), (0.2, 0.8))]


def test_viscoll_has_table_5_where_tasks_were_ordered():
    runs = [*(phrases("finetune", order=order) for order in ("random", "ascending")), phrases("replay", 77)]
    tables = [block for block in sections.section("viscoll", runs) if isinstance(block, TableBlock)]
    assert rows(tables[1])["ascending-frequency · finetune (vanilla)"]["log PPL ↓"].paper == 4.31
    assert rows(tables[1])["random · finetune"]["log PPL ↓"].number == 3.0
    assert "replay · 77" in rows(tables[0])
    assert {"mir-max (er-mir-max) · 1000", "replay-text-only (er-text-only) · 10000"} <= rows(tables[0]).keys()
    assert "random · replay · 77" not in rows(tables[1]), "it was run in no other order"


ORDER = ("vqav2", "nlvr2", "snli-ve", "vcr")


def upstream(matrix, tasks=ORDER, algorithm="finetune", **rest):
    """A made-up run of climb with this score matrix."""
    found = record("climb", algorithm, stages=len(tasks), order=">".join(tasks), model="vilt-tiny", **rest)
    found["scores"] = [
        {"stage": i + 1, "step": 10 * (i + 1), "name": task, "split": "test", "count": 500, "score": score}
        for i, row in enumerate(matrix)
        for task, score in zip(tasks, row, strict=True)
    ]
    return Record.from_json(found, "test")


def low_shot(score, shots="16", sample=0, start=""):
    found = record("climb:lowshot", model="vilt-tiny", task="imdb", shots=shots, sample=sample, image="mean",
                   reallocate=True, run=f"{shots}{sample}{start}")  # fmt: skip
    found["config"] |= {"start": start} if start else {}
    found["chance"] = {"score": 0.5}
    found["scores"] = [
        {**found["scores"][-1], "name": name, "score": s} for name, s in (("imdb", score), ("guessing", 0.5))
    ]
    return Record.from_json(found, "test")


def climb_runs():
    matrix = [[0.6, 0.5, 0.3, 0.2], [0.3, 0.7, 0.3, 0.2], [0.2, 0.6, 0.8, 0.3], [0.1, 0.55, 0.5, 0.6]]
    direct = {"vqav2": 0.5, "nlvr2": 0.75, "snli-ve": 0.7, "vcr": 0.5}
    runs = [upstream(matrix, run="up"), *(upstream([[score]], (task,)) for task, score in direct.items())]
    for sample, score in enumerate((0.6, 0.7, 0.8)):
        runs += [
            low_shot(score, sample=sample),
            low_shot(score + 0.1, "32", sample),
            low_shot(0.55, "16", sample, "up@4"),
        ]
    return runs


def doubtful_runs():
    """The same, where direct fine-tuning is not clearly above chance on NLVR2."""
    return [
        *(run for run in climb_runs() if run.config["benchmark"].get("order") != "nlvr2"),
        upstream([[0.52]], ("nlvr2",)),
    ]


def test_climb_leaves_runs_of_the_first_stages_out():
    (whole, *rest), short = climb_runs(), upstream([[0.1] * 4] * 2, run="short")
    short.config["stages"] = 2
    assert sections.section("climb", [short, whole, *rest]) == sections.section("climb", [whole, *rest])
    assert sections.section("climb", [short]) == []


def test_climb_has_transfer_forgetting_and_low_shot_scores():
    blocks = sections.section("climb", climb_runs())
    tables = {block.title.split(":")[0]: rows(block) for block in blocks if isinstance(block, TableBlock)}
    third = tables["climb, table 3"]
    gained = third["finetune (seqft)"]["nlvr2"]
    assert gained.number == pytest.approx(100 * (0.7 - 0.75) / (0.75 - 0.5))  # chance is a half
    assert gained.plain == "-20.0 [70.0]"
    assert gained.paper == papers.table("climb", 3).value("transfer", algorithm="seqft", task="nlvr2")
    assert third["direct"]["vcr"].number == pytest.approx(50)
    assert third["direct"]["vcr"].paper == 61.31
    (small,) = [b for b in sections.section("climb", doubtful_runs()) if b.title.startswith("climb, table 3")]
    assert rows(small)["finetune (seqft)"]["nlvr2"].plain == "–* [70.0]"
    assert any("–*" in note for note in small.notes)
    lost = tables["climb, table 8"]["finetune: after vcr"]["vqav2"]
    assert lost.number == pytest.approx(100 * (0.6 - 0.1) / 0.6)  # chance is nought
    assert tables["climb, table 12"]["direct"]["imdb 16"].paper == 55.9
    assert tables["climb, table 12"]["direct"]["imdb 16"].number == pytest.approx(70)
    assert all("not a reproduction" in block.warning for block in blocks if isinstance(block, TableBlock))
    (curve,) = [block for block in blocks if getattr(block, "logarithmic", False)]
    assert curve.series[0].x == (16.0, 32.0)
    assert curve.series[0].y == pytest.approx((70, 80))
    assert curve.series[0].band == pytest.approx([metrics.t_interval([60, 70, 80])] * 2)
    bars = next(block for block in blocks if isinstance(block, Bars))
    assert {series.name: series.y[0] for series in bars.series} == pytest.approx(
        {"pre-trained": 70, "after finetune": 55}
    )


def test_climb_marks_transfer_over_seeds_where_the_score_is_above_chance():
    found = {"finetune": (0.3, 0.48), "replay": (0.6, 0.51), "ewc": (0.31, 0.5)}
    direct, runs = dict(zip(ORDER, (0.6, 0.8, 0.7, 0.6), strict=True)), []
    for seed, noise in enumerate((0, 0.02, -0.03)):
        runs += [upstream([[s]], (task,), seed=seed, run=f"{task}{seed}") for task, s in direct.items()]
        for number, (algorithm, (first, second)) in enumerate(found.items()):
            learned = [first + noise * (number + 1) / 5, second + noise, 0.5, 0.4]
            runs.append(upstream([learned] * 4, algorithm=algorithm, seed=seed, run=f"{algorithm}{seed}"))
    table = next(b for b in climb.section(runs) if b.title.startswith("climb, table 3"))
    marked = {name: [task for task in ORDER if row[task].best] for name, row in rows(table).items()}
    assert marked.pop("er") == ["vqav2"]
    assert not any(marked.values())
    assert "No mark in nlvr2: no score is above chance." in table.notes
    assert "No mark in snli-ve, vcr: all values are equal." in table.notes


def test_low_shot_runs_are_no_experiment_of_their_own(tmp_path):
    import holdfast
    from holdfast.reports.compare import tables
    from reports.stores import put

    for each in climb_runs():
        put(tmp_path, each.to_json())
    titles = [table.title for table in tables(holdfast.load(tmp_path))]
    assert not any("lowshot" in title for title in titles)
    assert titles[0] == "climb · tiny · class · vqav2>nlvr2>snli-ve>vcr · vilt-tiny"
