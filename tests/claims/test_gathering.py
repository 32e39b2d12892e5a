"""From records to the values of a claim: which records count, what is never mixed, and what has no value."""

from pathlib import Path

import pytest

from holdfast.claims.definition import parsed
from holdfast.claims.evidence import from_json, to_json
from holdfast.claims.gathering import gathered
from holdfast.errors import UserError
from holdfast.experiments.config import resolve
from holdfast.experiments.request import Request
from holdfast.experiments.store import Record
from holdfast.types import Score

RUNS = {
    "er": {"benchmark": "climb", "algorithm": "er"},
    "seqft": {"benchmark": "climb", "algorithm": "seqft"},
    "orders": {"benchmark": "climb", "algorithm": "seqft", "orders": ["nlvr2>vcr", "vcr>nlvr2"]},
}


def paper(of, statistic="difference", margin=1, **rest):
    table = {"id": "c", "says": "C.", "where": "Table 1", "statistic": statistic, "of": of, "margin": margin, **rest}
    return parsed({"runs": RUNS, "claim": [table]}, "mine", Path("mine.toml"))


def record(algorithm="er", seed=0, scale="tiny", order=None, summary=None, shares=None, scores=(), parts=None):
    request = Request("climb", algorithm, scale=scale, order=order, seed=seed)
    content = resolve(request).content
    config = {**content, "parts": {**content["parts"], **(parts or {})}}
    given = {"final_accuracy": 0.5, **(summary or {})}
    summary = {name: value if isinstance(value, float) else None for name, value in given.items()}
    reasons = {name: value for name, value in given.items() if isinstance(value, str)}
    plain = {t: {"change": c, "base": b, "doubt": d} for t, (c, b, d) in (shares or {}).items()}
    shares = {"forgetting_transfer": plain} if plain else {}
    environment = {"command": request.command()}
    run = f"{algorithm}{seed}{order}{scale}".encode().hex()[:24]
    return Record(run, config, environment, summary, reasons, tuple(scores), {"seconds": 1.0}, shares=shares)


def evidence(found, *records, synthetic=True):
    return gathered([found], found.claims, [(each, synthetic) for each in records])


def test_values_are_differences_of_the_same_seed_in_printed_units():
    found = paper(["er/final_accuracy", "seqft/final_accuracy"])
    records = [record("er", 0, summary={"final_accuracy": 0.75}), record("seqft", 0), record("er", 1)]
    (each,) = evidence(found, *records)
    assert each.values == ({0: 25.0},)
    assert len(each.runs) == 2
    assert evidence(found, record("er", 0), record("seqft", 1)) == []


def test_records_on_synthetic_and_real_data_and_of_other_scales_are_apart():
    found = paper(["er/final_accuracy", 0])
    small, tiny = record(scale="small", summary={"final_accuracy": 0.25}), record()
    pairs = [(small, True), (tiny, True), (tiny, False)]
    kinds = {each.data: each.values for each in gathered([found], found.claims, pairs)}
    assert kinds == {"synthetic, small": ({0: 25.0},), "synthetic, tiny": ({0: 50.0},), "real, tiny": ({0: 50.0},)}


def test_one_seed_on_two_kinds_of_data_is_refused():
    found = paper(["er/final_accuracy", 0])
    with pytest.raises(UserError, match="a verdict must not mix data"):
        evidence(found, record(), record(scores=[Score(1, 1, "vcr", "test", 9, 0.25)]))
    assert len(evidence(found, record(), record())) == 1


def test_records_of_changed_code_do_not_count():
    found = paper(["er/final_accuracy", 0])
    content = resolve(Request("climb", "er", scale="tiny")).content["parts"]
    part = next(name for name in content if name.startswith("benchmark"))
    assert evidence(found, record(parts={part: -1})) == []


def test_the_value_of_several_orders_is_their_mean():
    found = paper(["orders/final_accuracy", 0])
    one = record("seqft", order="nlvr2>vcr", summary={"final_accuracy": 0.25})
    other = record("seqft", order="vcr>nlvr2", summary={"final_accuracy": 0.75})
    (each,) = evidence(found, one, other)
    assert (each.values, each.orders) == (({0: 50.0},), 2)
    assert evidence(found, one) == []


def test_a_pooled_measure_compares_the_same_tasks():
    found = paper(["seqft/forgetting_transfer", "er/forgetting_transfer"])
    clear = {"vqav2": (0.25, 0.5, ""), "vcr": (0.25, 0.25, "")}
    doubtful = {"vqav2": (0.125, 0.5, ""), "vcr": (0.5, 0.0, "not above chance")}
    summary = {"forgetting_transfer": 0.0}
    records = record("seqft", shares=clear, summary=summary), record("er", shares=doubtful, summary=summary)
    (each,) = evidence(found, *records)
    assert each.values == ({0: 50.0 - 25.0},)  # vqav2 alone
    found = paper(["seqft/forgetting_transfer[vcr]", 0])
    (each,) = evidence(found, records[0])
    assert each.values == ({0: 100.0},)


def test_an_undefined_value_leaves_the_claim_undecided_and_an_unmade_one_is_waited_for():
    found = paper(["er/knowledge_transfer", 0])
    values = [record(seed=seed, summary={"knowledge_transfer": 0.9}) for seed in range(5)]
    undefined = record(seed=5, summary={"knowledge_transfer": "no task counts"})
    (each,) = evidence(found, *values, undefined)
    assert each.gaps[0].startswith("undefined for 1 of 6 seeds")
    assert "no task counts" in each.gaps[0]
    assert each.verdict.outcome == "undecided"
    (each,) = evidence(found, *values, record(seed=5))
    assert (each.gaps, len(each.values[0])) == ((), 5)


def test_a_score_after_a_stage_comes_from_the_log():
    log = [Score(stage, stage, name, "test", 9, stage / 4) for stage in (1, 2) for name in ("vqav2", "vcr")]
    found = paper(["er@2/vqav2", "er@1/vcr"])
    (each,) = evidence(found, record(scores=log))
    assert each.values == ({0: 25.0},)
    (each,) = evidence(paper(["er@3/vqav2", 0]), record(scores=log))
    assert "er@3/vqav2 was not scored" in each.gaps[0]


def test_evidence_survives_json_and_claims_about_other_values_are_left_out():
    found = paper(["er/final_accuracy", "seqft/final_accuracy"])
    (each,) = evidence(found, record("er"), record("seqft"))
    value = to_json(each)
    assert from_json(value, {"mine/c": found.claims[0]}, "here").values == each.values
    assert from_json(value, {}, "here").claim.says == "C."  # its own file is not at hand
    other = paper(["er/final_accuracy", 0])
    assert from_json(value, {"mine/c": other.claims[0]}, "here") is None
    with pytest.raises(UserError, match="is not the evidence of claims"):
        from_json({"claim": "mine/c"}, {"mine/c": other.claims[0]}, "here")
