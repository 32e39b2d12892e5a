"""Few examples of a task: which they are, which runs low-shot transfer takes, and what follows from their scores."""

import csv
import json
import shutil
from collections import Counter

import pytest
import torch
from safetensors.torch import load_file

from holdfast.benchmarks.climb import paper, transfer, unimodal
from holdfast.benchmarks.climb.benchmark import Climb
from holdfast.benchmarks.climb.lowshot import LowShot
from holdfast.benchmarks.climb.tasks import Place, listing
from holdfast.benchmarks.climb.transfer import LowShotRun
from holdfast.benchmarks.source import open_source
from holdfast.benchmarks.synthetic import world
from holdfast.errors import UserError
from holdfast.experiments.config import resolve
from holdfast.experiments.plan import graph
from holdfast.experiments.rebuilt import recipe_of
from holdfast.experiments.request import Request
from holdfast.experiments.store import Store
from holdfast.experiments.tune import on_validation
from holdfast.models.vilt import TinyVilt, tiled
from holdfast.models.weights import locate
from holdfast.papers import table
from holdfast.types import Score, Wants
from smallest import prepare, run

WANTS = Wants(side=32, vocabulary=TinyVilt().wants().vocabulary)
ORDER = paper.ORDERS[0].split(">")


def log(score, chance):
    """The scores of a low-shot run."""
    return [
        Score(1, 5, "t", "validation", 9, 0.9),
        Score(1, 5, "t", "test", 900, score),
        Score(1, 5, transfer.GUESSING, "test", 900, chance),
    ]


def chosen(task, **settings):
    """The ids of the parts of a task of the smallest world."""
    own = LowShot(task, scale="tiny", **settings)
    kind = {"sst-2": ("sst2", "train", "dev"), "places365": ("places365", "train", "val")}[task]
    source = open_source(kind[0], scale="tiny")
    return own._parts(source, *kind[1:])()


def test_the_few_are_so_many_of_each_class():
    with (world("sst2", "tiny") / "SST-2/train.tsv").open() as file:
        labels = [row["label"] for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]
    parts = chosen("sst-2", shots="16")
    few = Counter(labels[int(name.removeprefix("train-"))] for name in parts["train"])
    assert few == {"0": 16, "1": 16}
    assert parts["train"].isdisjoint(parts["validation"])
    assert all(name.startswith("dev-") for name in parts["test"])


def test_more_shots_hold_the_fewer_and_another_sample_is_another():
    few, more, other = (chosen("sst-2", shots=n, sample=s)["train"] for n, s in (("8", 0), ("16", 0), ("8", 1)))
    assert few < more
    assert few != other
    assert len(few) == len(other) == 16


def test_validation_is_30_percent_of_train_and_no_other_sample_touches_it():
    parts = [chosen("sst-2", sample=s, validation=1000, shots="109") for s in range(2)]
    assert parts[0]["validation"] == parts[1]["validation"]
    assert len(parts[0]["validation"]) == 90  # of 300
    assert len(parts[0]["train"]) == 210, "a class with fewer gives all that it has"


def test_of_the_held_out_examples_at_most_so_many_are_scored():
    for count in (6, 9):
        setup = LowShot("sst-2", scale="tiny", shots="4", validation=count).setup(WANTS)
        (held,) = [each for each in setup.protocol.evaluations if each.split == "validation"]
        assert len(held.ids) == count


def test_a_vision_task_holds_out_a_tenth_of_each_class():
    parts = chosen("places365", validation=1000, shots="100%")
    classes = Counter(name.rpartition("/")[0] for name in parts["train"] | parts["validation"])
    held = Counter(name.rpartition("/")[0] for name in parts["validation"])
    assert held == {name: round(0.1 * count) for name, count in classes.items() if round(0.1 * count)}


def test_the_same_weights_elsewhere_are_the_same_run(tmp_path):
    shipped = locate("holdfast/vilt-tiny", "weights")
    first, moved, other = (shutil.copytree(shipped, tmp_path / name) for name in ("first", "moved", "other"))
    config = other / "config.json"
    config.write_text(config.read_text().replace('"layer_norm_eps": 1e-12', '"layer_norm_eps": 1e-5'))
    base = {"benchmark.task": "sst-2", "benchmark.shots": "4"}
    requests = [
        Request("climb:lowshot", scale="tiny", settings=base | {"model.weights": str(folder)} if folder else base)
        for folder in ("", first, moved, other)
    ]
    ready = [prepare(request) for request in requests]
    ids = [each.config.id for each in ready]
    assert ids[0] == ids[1] == ids[2] != ids[3]
    commands = [request.command() for request in requests]
    assert [str(moved) in command for command in commands] == [False, False, True, False]
    assert len({resolve(request).id for request in requests}) == 4, "unread, they may be anything"
    record = run(prepare(Request.from_command(commands[3])), Store(tmp_path / "runs"))
    assert recipe_of(record) == ready[3].recipe


def test_more_shots_than_there_are_is_refused_and_a_rare_class_gives_what_it_has():
    names, labels = ["a", "b", "c", "d"], [0, 0, 0, 1]
    assert LowShot("sst-2", "3", scale="tiny")._sampled(names, labels).tolist() == [0, 1, 2, 3]
    with pytest.raises(UserError) as refusal:
        LowShot("sst-2", "4", scale="tiny")._sampled(names, labels)
    assert str(refusal.value) == (
        "benchmark.shots is 4, but sst-2 has only 3 examples per class to learn from: use at most 3"
    )
    assert len(LowShot("piqa", "4", scale="tiny")._sampled(names, labels)) == 4
    with pytest.raises(UserError, match="piqa has only 4 examples to learn from: use at most 4"):
        LowShot("piqa", "5", scale="tiny")._sampled(names, labels)
    with pytest.raises(UserError, match="snli-ve has only 180 examples per class"):
        LowShot("snli-ve", "100000", scale="tiny").setup(WANTS)


@pytest.mark.parametrize("task", [task for names in transfer.MODALITIES.values() for task in names])
def test_the_smallest_world_has_the_shots_that_low_shot_runs_take_there(task):
    (level,) = transfer.levels(task, "tiny")
    own = LowShot(task, level, scale="tiny")
    if task in paper.TASKS:
        found = listing(task, "train", Place("", "tiny", 0))
        places = own._sampled(found.ids, found.labels)
    else:
        source, splits = unimodal.open_unimodal(
            (unimodal.LANGUAGE | unimodal.VISION)[task], data="", scale="tiny", skip_bad=0
        )
        places = own._parts(source, *splits)()["train"]
    assert len(places) > 1


@pytest.mark.parametrize("task", ["hellaswag", "nlvr2"])
def test_a_task_is_laid_out_in_one_stage(task):
    setup = LowShot(task, scale="tiny", shots="8").setup(WANTS)
    (stage,) = setup.stream.stages
    (only,) = setup.tasks.values()
    assert len(stage.train) == (8 if task == "hellaswag" else 16)
    assert [(e.name, e.split) for e in setup.protocol.evaluations] == [(task, "validation"), (task, "test")]
    assert setup.chance == {"score": only.chance}
    assert only.chance == (0.25 if task == "hellaswag" else 0.5)
    assert setup.inputs.images == (1 if task == "hellaswag" else 2)


def test_mistakes_are_told_before_any_data_is_read():
    for settings, said in [
        ({"task": "sst3"}, "sst-2"),
        ({"shots": "few"}, "a count such as 16"),
        ({"shots": "0%"}, "5%"),
    ]:
        with pytest.raises(UserError, match=said):
            LowShot(**settings)
    with pytest.raises(UserError, match="uses pictures"):
        LowShot().setup(Wants(sees="regions"))


def test_the_papers_shots():
    for number in (11, 12):
        printed: dict[str, set[str]] = {}
        for row in table("climb", number):
            printed.setdefault(row["task"], set()).add(row["shots"])
        assert printed == {task: set(transfer.levels(task, "paper")) for task in printed}
    four = {row["task"]: (row["low_shot_per_class"], row["low_shot_share"]) for row in table("climb", 4)}
    for task, (count, share) in four.items():
        assert transfer.levels(task, "paper") == ((f"{count}",) if count else (f"{share}%",))


def test_a_whole_paper_needs_so_many_low_shot_runs():
    needs = transfer.needs(ORDER, "paper", "finetune")
    after = [need for need in needs.values() if need.after is not None]
    assert len(after) == (3 + 2 + 1) + 4 * (5 * 2 * 3) + 4 * (4 * 2)
    assert len(needs) - len(after) == 3 + 30 + 8
    assert {need.change["algorithm"] for need in needs.values()} == {"finetune"}
    later = {LowShotRun.parse(name).task for name, need in needs.items() if need.after == 2}
    assert later & set(ORDER) == {"snli-ve", "vcr"}


def test_low_shot_runs_of_stages_that_are_not_learned_are_not_needed():
    for title in ("ewc", "adapters"):
        asked = Request("climb", title, scale="tiny", settings={"benchmark.downstream": True}, stages=2)
        plan = graph([asked], read=False)
        few = [found for name in plan.needs[plan.wanted[0]] if (found := LowShotRun.parse(name))]
        assert {each.stage for each in few} == {0, 1, 2}
        later = {each.task for each in few if each.stage == 2} & set(ORDER)
        assert later == {"snli-ve", "vcr"}, "what is still to come in the order, learned or not"
        assert {each.task for each in few if each.stage == 0} == {each.task for each in few if each.stage}


def test_an_untouched_encoder_needs_no_runs_of_its_own():
    for title in ("adapters", "frozen-encoder", "lora"):
        needs = transfer.needs(ORDER, "small", title)
        assert all(need.after is None for need in needs.values())
        names = {json.dumps(need.change, sort_keys=True) for need in needs.values()}
        direct = [name for name in needs if LowShotRun.parse(name).stage == 0]
        assert len(names) == len(direct)


def test_single_task_rows_follow_the_direct_runs_where_asked():
    assert Climb(order="vcr", downstream=True).needs("finetune") == {}
    assert Climb(order="vcr", single_task=True).needs("finetune") == {}
    needs = Climb(order="vcr", downstream=True, single_task=True, scale="small").needs("finetune")
    assert {need.after for name, need in needs.items() if LowShotRun.parse(name).stage} == {1}
    assert len(needs) == 2 * (5 * 3 + 4), "each also from the pre-trained encoder"


def test_transfer_by_hand():
    others = {
        "direct/vcr": [Score(1, 1, "vcr", "test", 9, 0.6)],
        **{f"lowshot/0/sst-2/16/{n}": log(score, 0.5) for n, score in enumerate((0.6, 0.7, 0.8))},
        **{f"lowshot/1/sst-2/16/{n}": log(score, 0.5) for n, score in enumerate((0.6, 0.6, 0.6))},
        **{f"lowshot/2/sst-2/16/{n}": log(score, 0.5) for n, score in enumerate((0.8, 0.8, 0.8))},
        "lowshot/0/piqa/16/0": log(0.6, 0.5),
        "lowshot/1/piqa/16/0": log(0.7, 0.5),
        "lowshot/0/coco/5%/0": log(0.4, 0.0),
        "lowshot/1/coco/5%/0": log(0.5, 0.0),
    }
    found = transfer.measures(others)
    # SST-2 loses 0.1 of 0.2 and gains 0.1 of 0.2, PIQA gains 0.1 of 0.1: 0.1 of 0.5 in all
    assert found["low_shot_language"] == pytest.approx(20.0)
    assert found["low_shot_vision"] == pytest.approx(25.0)
    assert "are missing" in found["low_shot_multimodal"].reason
    assert transfer.measures({"direct/vcr": []}) == {}
    near = transfer.measures({f"lowshot/{n}/piqa/16/0": log(score, 0.5) for n, score in enumerate((0.52, 0.7))})
    told = "piqa 16: the baseline (0.52 ±0.03) is not clearly above chance (0.50)"
    assert near["low_shot_language"].reason == f"no task counts: {told}"


def test_nothing_is_transferred_where_the_encoder_is_the_same():
    needs = transfer.needs(ORDER, "small", "adapters")
    found = transfer.measures({name: log(0.7, 0.5) for name in needs})
    assert set(found.values()) == {0.0}
    one = {name: log(0.7, 0.5) for name in needs if not name.startswith("lowshot/0/coco")}
    assert "coco" in transfer.measures(one)["low_shot_vision"].reason


def test_a_run_begins_with_the_weights_of_an_upstream_stage(tmp_path):
    store, quick = Store(tmp_path), {"train.epochs": 1}
    upstream = prepare(Request("climb", scale="tiny", order="nlvr2", settings=quick))
    run(upstream, store)
    still = {"benchmark.task": "imdb", "benchmark.shots": "2", "train.learning_rate": 0, "train.weight_decay": 0}
    start = f"{upstream.config.id}@1"
    begun = prepare(Request("climb:lowshot", scale="tiny", start=start, settings=quick | still))
    alone = prepare(Request("climb:lowshot", scale="tiny", settings=quick | still))
    assert begun.config.id != alone.config.id
    record = run(begun, store)
    before = load_file(store.folder(upstream.config.id).weights)
    after = load_file(store.folder(begun.config.id).weights)
    shared = [name for name in after if name.startswith("encoder.")]
    assert shared
    for name in shared:
        value = before[name]
        if name.endswith("text.positions.weight"):
            assert len(after[name]) > len(value), "IMDb's texts are longer"
            value = tiled(value, len(after[name]))
        assert torch.equal(after[name], value), name
    assert set(record.summary) == {"score"}
    validated = on_validation(record.scores)  # what settings are chosen by
    assert transfer.guessing(record.scores) == transfer.guessing(validated) == 0.5
    assert 0 <= transfer.final(validated) <= 1
