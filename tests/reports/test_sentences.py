"""The sentence at the top of a report: what it says, and how often it claims a difference that is chance."""

import re

import pytest

from holdfast.experiments.store import Record
from holdfast.reports.groups import baselines, experiments
from holdfast.reports.sentences import conclude, conclusions
from holdfast.reports.tables import listed
from reports import simulation
from reports.stores import record


def made(algorithm, seed, accuracy, forgetting, benchmark="patterns", chance=None, **settings):
    summary = {"final_accuracy": accuracy, "forgetting": forgetting}
    value = record(benchmark, algorithm, seed, summary=summary, **settings)
    return Record.from_json({**value, "chance": chance or {}}, "")


def rows(**values):
    """Runs by algorithm, from (accuracy, forgetting) for each seed."""
    return [
        made(name.replace("_", "-"), seed, a / 100, f / 100)
        for name, v in values.items()
        for seed, (a, f) in enumerate(v)
    ]


def said(records):
    ((_, found),) = conclusions(records)
    return found


PLAIN = [(50, 40), (52, 38), (48, 43), (51, 41), (49, 38)]
BETTER = [(71, 10), (74, 11), (70, 12), (75, 9), (70, 13)]


def test_differences_are_claimed_with_their_interval_and_the_rest_is_not_distinguishable():
    found = said(rows(finetune=PLAIN, replay=BETTER, ewc=[(51, 39), (50, 41), (49, 42), (50, 40), (51, 39)]))
    assert found.text == (
        "Compared with finetune: replay forgets 29 points less (95 % interval 25 to 33, 5 seeds) and is 22 points "
        "higher in final acc. (20 to 24); ewc is not distinguishable."
    )
    assert [(c.test.first, c.test.second, c.measure, c.better) for c in found.claims] == [
        ("replay", "finetune", "forgetting", True), ("replay", "finetune", "final_accuracy", True)
    ]  # fmt: skip
    assert found.basis == "Student's paired t over 5 seeds, Holm's correction for 4 tests."


def test_relative_forgetting_is_named():
    lost = {"finetune": (60.0, 61.0, 62.0), "replay": (30.0, 31.1, 32.0)}
    runs = [
        record("climb", name, seed, summary={"final_accuracy": 0.5, "forgetting_transfer": value})
        for name, values in lost.items()
        for seed, value in enumerate(values)
    ]
    text = said([Record.from_json(each, "") for each in runs]).text
    assert text.startswith("Compared with finetune, replay forgets 30.0 points less in T_F (95 % interval")


def test_the_zero_shot_transfer_of_mtil_is_compared_beside_its_last_accuracy():
    def values(name, seed):
        high = 0.2 * (name == "zscl") + 0.001 * seed
        return {"transfer": 0.3 + high + 0.002 * seed * (name == "zscl"), "average": 0.4, "last": 0.5 - high}

    made = [
        record("mtil", name, seed, summary=values(name, seed)) for name in ("finetune", "zscl") for seed in range(3)
    ]
    found = said([Record.from_json(each, "") for each in made])
    assert [(claim.measure, claim.better) for claim in found.claims] == [("transfer", True), ("last", False)]


def test_rows_that_forget_nothing_and_rows_that_are_worse_are_named_as_such():
    adapters = [(a + 30, 0) for a, _ in PLAIN]
    worse = [(a - 20 + n, f + 11 + n % 2) for n, (a, f) in enumerate(PLAIN)]
    found = said(rows(finetune=PLAIN, adapters=adapters, si=worse))
    assert found.text == (
        "Compared with finetune: adapters forget nothing, 40 points less (95 % interval 37 to 43, 5 seeds), and are 30 "
        "points higher in final acc. (in each of 5 seeds); si forgets 11.4 points more (10.7 to 12.1) and is 18 points "
        "lower in final acc. (16 to 20)."
    )
    assert [claim.better for claim in found.claims] == [True, False, True, False]


def test_rows_that_forget_nothing_are_not_merged_with_rows_that_forget_less():
    kept = [(a + 10 - n % 2, 0) for n, (a, _) in enumerate(PLAIN)]
    found = said(rows(finetune=PLAIN, replay=BETTER, adapters=kept))
    assert re.fullmatch(
        r".*: replay forgets \d+ points less .*; adapters forget nothing, 40 points less .*", found.text
    )


def test_many_rows_are_one_clause_with_the_largest_difference():
    names = ("replay", "derpp", "gem", "mas", "si", "lwf")
    several = {name: [(a - n, f + n) for a, f in BETTER] for n, name in enumerate(names)}
    found = said(rows(finetune=PLAIN, **several))
    assert found.text.startswith(
        "Compared with finetune: replay, derpp, gem and 3 more forget less, replay by 29 points (95 % interval 25 to 33"
    )
    assert len(found.claims) == 12


def test_what_differs_in_one_measure_alone_is_not_said_to_differ_in_the_other():
    scores = [(51, 10), (50, 11), (49, 12), (50, 9), (51, 13)]
    text = said(rows(finetune=PLAIN, replay=scores)).text
    assert text.startswith("Compared with finetune, replay forgets 29 points less (95 % interval 25 to 33, 5 seeds)")
    assert text.endswith(", but is not distinguishable in final acc.")


def test_without_fine_tuning_the_best_mean_is_the_reference_and_every_pair_counts():
    found = said(rows(replay=BETTER, ewc=PLAIN, si=PLAIN[::-1]))
    assert found.text.startswith("Compared with replay, which has the best mean final acc., si and ewc forget more")
    assert found.basis.endswith("for 6 tests.")
    close = [(a + 0.4 * (n % 3) - 0.1, f) for n, (a, f) in enumerate(BETTER)]
    assert not said(rows(replay=BETTER, ewc=close)).claims


def test_a_row_that_learned_nothing_is_not_praised_for_forgetting_nothing():
    chance = {"final_accuracy": 0.1}
    runs = [made("finetune", s, 0.5 + 0.01 * s, 0.4 - 0.01 * s, chance=chance) for s in range(3)]
    runs += [made("si", s, 0.1 + 0.001 * (s - 1), 0.0, chance=chance) for s in range(3)]
    found = said(runs)
    assert "si scored no better than chance" in found.text
    assert not any(claim.better for claim in found.claims)


@pytest.mark.parametrize(
    ("runs", "text"),
    [
        (rows(replay=BETTER[:1]), "One run of replay: final acc. 71.0 %, forgetting 10.0 %. Run another algorithm"),
        (
            rows(replay=BETTER[:2]),
            "2 runs of replay: final acc. 72.5 % (95 % interval 53.4 to 91.6), forgetting 10.5 %",
        ),
        (
            rows(finetune=PLAIN[:2], replay=BETTER[:2]),
            "Final acc.: replay 72.5 % and finetune 51.0 %. 2 seeds cannot show whether they differ: run at least 3",
        ),
        (rows(finetune=PLAIN[:1], replay=BETTER[:1]), "Final acc.: replay 71.0 % and finetune 50.0 %. One seed cannot"),
        (
            rows(finetune=PLAIN[:3], replay=BETTER[:2]),
            "Final acc.: replay 72.5 % and finetune 50.0 %. Fewer than 3 seeds in common cannot show whether they",
        ),
    ],
)
def test_what_cannot_be_compared_is_described_without_a_claim(runs, text):
    assert said(runs).text.startswith(text)
    assert said(runs).claims == ()


def test_a_bound_is_never_compared():
    found = said(rows(finetune=PLAIN, replay=BETTER, joint=[(90, 0)] * 5))
    assert "joint" not in found.text


def test_runs_that_others_compare_with_are_no_experiment_of_their_own():
    own = [made("finetune", seed, 0.5, 0.1, order="a>b") for seed in range(2)]
    direct = [made("finetune", seed, 0.5, 0.1, order="a") for seed in range(2)]
    own = [Record(**{**vars(r), "others": {"direct a": d.id}}) for r, d in zip(own, direct, strict=True)]
    found = experiments([*own, *direct])
    assert [each.benchmark for each in baselines(found)] == ["patterns"]
    assert [len(each.records) for each, _ in conclusions([*own, *direct])] == [2]
    asked = [made("replay", 0, 0.6, 0.1, order="a")]  # someone wanted this one for itself
    assert len(conclusions([*own, *direct, *asked])) == 2


def test_no_score_no_sentence():
    assert conclude({}).text == "No run has a score."
    assert listed(list("abcd")) == "a, b, c and d"


@pytest.mark.parametrize("plain", [True, False])
def test_equal_algorithms_are_rarely_said_to_differ(plain):
    assert simulation.sentences("normal", 3, 3, 400, plain) <= 7  # 4 %, and three standard errors of 400 stores


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plain", "rows", "seeds"),
    [(True, *each) for each in [(2, 3), (2, 5), (3, 3), (3, 5), (5, 5), (8, 5)]]
    + [(False, *each) for each in [(3, 3), (3, 5), (5, 5)]],
)
def test_at_most_one_sentence_in_twenty_claims_a_difference_that_is_chance(plain, rows, seeds, capsys):
    """Two thousand stores of each kind of noise; the rates are printed."""
    kinds = simulation.KINDS[: 4 + (rows > 2)]
    rates = [simulation.sentences(kind, rows, seeds, simulation.STORES, plain) for kind in kinds]
    with capsys.disabled():
        print(
            f"\n{'with' if plain else 'without'} fine-tuning | {rows} | {seeds} |", *(f"{rate:.1f} |" for rate in rates)
        )
    assert sum(rates) / len(rates) <= 5
    assert max(rates) <= 5 + 3 * (5 * 95 / simulation.STORES) ** 0.5  # each rate is drawn
