"""The benchmarks of CFST on the world's archives: which classes come when, what a head may answer, what is tested."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

from holdfast import registry
from holdfast.algorithms.replay import Replay
from holdfast.benchmarks.cfst import benchmark as cfst
from holdfast.benchmarks.cfst import fewshot, protocol, tasks
from holdfast.benchmarks.cfst.combinations import drawn_order, in_drawn_order, listed
from holdfast.benchmarks.synthetic import world
from holdfast.engine.loop import train
from holdfast.engine.watch import NoLog
from holdfast.errors import Stopped, UserError
from holdfast.experiments.config import resolve
from holdfast.experiments.request import Request
from holdfast.experiments.store import Store
from holdfast.types import Example, Wants
from smallest import StopAt, make_learner, prepare, run

SIDE = 16
WANTS = Wants(side=SIDE)
QUICK = {"benchmark.side": SIDE, "benchmark.tests": 8, "model.channels": 2, "train.epochs": 1}
KINDS = {"cgqa": cfst.Cgqa, "cobj": cfst.Cobj, "cpin": cfst.Cpin, "cifar100": cfst.Cifar100}


@pytest.fixture(autouse=True)
def _one_process(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 1)  # for so few pictures, a process takes longer to start than to draw


def archive(part, folder="continual"):
    """The records of the world's CGQA, as they stand in its file."""
    name = part if folder == "continual" else f"{part}_fewshot"
    return json.loads((world("cgqa", "tiny") / f"CGQA/GQA_100/{folder}/{part}/{name}.json").read_text())


def asked(name, setting="class", algorithm="finetune", **settings):
    return prepare(Request(f"cfst:{name}", algorithm, scale="tiny", setting=setting, settings=QUICK | settings))


def test_the_commands_of_old_records_remain_valid():
    """Version 0.1 called the start of a ResNet after this benchmark."""
    old = "holdfast run cfst:cgqa --set model.start=cfst --set model.channels=4"
    found, now = (resolve(Request.from_command(each)) for each in (old, old.replace("=cfst", "=medium")))
    assert (found.recipe, found.id) == (now.recipe, now.id)
    with pytest.raises(UserError, match=r"model\.start is 'cfst'"):
        resolve(Request("patterns", model="resnet18-tiny", settings={"model.start": "cfst"}))


def test_classes_come_in_the_order_of_the_paper():
    setup = cfst.Cgqa(scale="tiny").setup(WANTS)
    trained = listed("cgqa").trained[:10]
    assert [stage.classes for stage in setup.stream.stages] == [tuple(range(5)), tuple(range(5, 10))]
    records = archive("train")
    for number, stage in enumerate(setup.stream.stages):
        targets = setup.data.targets(stage.train).tolist()
        shown = [tuple(sorted(r["comb"])) for r in records]
        assert sorted(trained[t] for t in targets) == sorted(
            c for c in shown if c in trained[5 * number : 5 * number + 5]
        )


def test_an_example_has_its_own_picture():
    setup = cfst.Cgqa(scale="tiny", side=48).setup(WANTS)  # the size that they are stored at
    record = archive("test")[7]
    with Image.open(world("cgqa", "tiny") / f"CGQA/GQA_100/{record['newImageName']}.jpg") as picture:
        pixels = torch.from_numpy(np.asarray(picture.convert("RGB")).transpose(2, 0, 1).copy())
    sets = [each for each in setup.protocol.evaluations if each.split == "test"]
    found = [
        int(target)
        for each in sets
        for target, image in zip(
            setup.data.targets(each.ids), setup.data.fetch(each.ids, "cpu").parts[0].inputs["image"], strict=True
        )
        if torch.equal(image, pixels)
    ]
    assert [listed("cgqa").trained[target] for target in found] == [tuple(sorted(record["comb"]))]


def test_no_class_of_a_later_stage_has_probability_before_it_comes():
    ready = asked("cgqa")
    learner = make_learner(ready)
    first = replace(ready.setup.stream, stages=ready.setup.stream.stages[:1])
    head = learner.model.heads[tasks.NAME]
    train(learner, first, [], replace(ready.setup.protocol, evaluations=()), log=NoLog())
    batch = learner.data.fetch(ready.setup.protocol.evaluations[-1].ids, learner.device)
    learner.model.eval()
    with torch.no_grad():
        before = head(learner.model.encoder, batch.parts[0].inputs).softmax(-1)
    assert (before[:, 5:] == 0).all()
    assert torch.allclose(before[:, :5].sum(1), torch.ones(len(before)))
    learner.model.open_classes(ready.setup.stream.stages[1].classes)
    with torch.no_grad():
        after = head(learner.model.encoder, batch.parts[0].inputs).softmax(-1)
    assert (after[:, 5:] > 0).all()


def test_a_head_for_each_stage_sees_the_same_examples():
    together, apart = (cfst.Cgqa(scale="tiny", setting=setting).setup(WANTS) for setting in ("class", "task"))
    assert [(kind.head, kind.outputs, kind.growing) for kind in together.tasks.values()] == [("classes", 10, True)]
    assert [(kind.head, kind.outputs) for kind in apart.tasks.values()] == [("task-1", 5), ("task-2", 5)]
    for one, other in zip(together.stream.stages, apart.stream.stages, strict=True):
        assert np.array_equal(one.train, other.train)
        shift = one.classes[0]
        assert torch.equal(together.data.targets(one.train) - shift, apart.data.targets(other.train))
        ids = one.train[[0, 40, 79]]
        images = [setup.data.fetch(ids, "cpu").parts[0] for setup in (together, apart)]
        assert torch.equal(*(part.inputs["image"] for part in images))
        assert images[1].task == other.name
    assert all(each.task == each.name for each in apart.protocol.evaluations)


def test_stages_of_other_sizes_are_the_same_order_cut_elsewhere():
    setup = cfst.Cobj(scale="tiny", tasks=5).setup(WANTS)
    assert [stage.classes for stage in setup.stream.stages] == [(2 * n, 2 * n + 1) for n in range(5)]
    whole = cfst.Cobj(scale="tiny", tasks=1).setup(WANTS).stream.stages[0].train
    assert np.array_equal(np.concatenate([stage.train for stage in setup.stream.stages]), whole)
    with pytest.raises(UserError, match=r"among 3 stages: set benchmark\.tasks to 1, 2, 5 or 10"):
        cfst.Cobj(scale="tiny", tasks=3).setup(WANTS)


def test_fewer_images_of_each_class():
    whole = cfst.Cgqa(scale="tiny").setup(WANTS)
    few = cfst.Cgqa(scale="tiny", per_class=3).setup(WANTS)
    other = cfst.Cgqa(scale="tiny", per_class=3, seed=1).setup(WANTS)
    for stage, all_of_it, drawn in zip(few.stream.stages, whole.stream.stages, other.stream.stages, strict=True):
        assert np.bincount(few.data.targets(stage.train))[list(stage.classes)].tolist() == [3] * 5
        assert set(stage.train) < set(all_of_it.train)
        assert set(stage.train) != set(drawn.train)
    assert len(whole.protocol.evaluations[0].ids) == len(few.protocol.evaluations[0].ids), "validation is whole"


def test_the_tests_have_their_own_examples_which_no_stage_learns():
    setup = cfst.Cgqa(scale="tiny").setup(WANTS)
    tests, head = setup.finish.tests, setup.finish.head
    used = {int(i) for stage in setup.stream.stages for i in stage.train}
    used |= {int(i) for each in setup.protocol.evaluations for i in each.ids}
    names = [test.name for test in tests]
    assert [name for name in names if "(" not in name] == ["sys", "pro", "sub", "non", "noc"]
    assert head == tasks.NAME
    for test in tests:
        assert used.isdisjoint(test.mode.tolist())
        assert np.array_equal(setup.data.targets(test.mode[test.rows]).numpy(), test.labels)
    by_name = {test.name: test for test in tests}
    combs = [tuple(sorted(record["comb"])) for record in archive("pro", "fewshot")]
    assert sorted(np.bincount(by_name["pro"].labels)) == sorted(combs.count(each) for each in set(combs))
    assert by_name["sys"].way == 10
    assert "sub" not in [test.name for test in cfst.Cobj(scale="tiny").setup(WANTS).finish.tests]


def test_every_class_of_a_test_has_a_title():
    benchmark = cfst.Cgqa(scale="tiny")
    for test in benchmark.setup(WANTS).finish.tests:
        mode = test.name.partition("(")[0]
        titles = benchmark.titles(mode)
        assert titles.keys() >= set(test.labels.tolist())
        folder = {"non": "non_novel", "noc": "non_comp"}.get(mode, mode)
        combs = {", ".join(sorted(record["comb"])) for record in archive(folder, "fewshot")}
        assert set(titles.values()) == combs


def test_fresh_and_old_concepts_are_the_papers():
    cgqa = listed("cgqa")

    def bits(combinations):
        return tasks.concept_bits(cgqa.concepts)([Example("", extra={"comb": c}) for c in combinations])

    fresh = np.bitwise_or.reduce(bits(cgqa.tasks[-1]))
    assert int(fresh).bit_count() == 14, "the other seven are old"
    for mode, counts in {"non": (43, 10), "sys": (42, 11)}.items():
        found = bits(cgqa.of(mode))
        assert (int((found & ~fresh == 0).sum()), int((found & fresh == 0).sum())) == counts, "as E.4 lists them"


@pytest.mark.parametrize("setting", ["class", "task"])
def test_a_run_that_is_stopped_ends_as_one_that_is_not(tmp_path, setting):
    ready = asked("cgqa", setting, "er", **{"replay.capacity": 40})
    whole = run(ready, Store(tmp_path / "whole"))
    store = Store(tmp_path / "stopped")
    with pytest.raises(Stopped):
        run(asked("cgqa", setting, "er", **{"replay.capacity": 40}), store, watch=StopAt(4))
    resumed = run(asked("cgqa", setting, "er", **{"replay.capacity": 40}), store)
    assert resumed.scores == whole.scores
    assert resumed.summary == whole.summary
    weights = [load_file(each.folder(whole.id).weights) for each in (Store(tmp_path / "whole"), store)]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    last = {score.name for score in whole.scores if score.stage == 2 and score.split == "test"}
    assert {"task-1", "task-2", "sys", "sys interval", "noc"} <= last
    assert all(whole.summary[name] is not None for name in ("Acon", "Asys", "Hn", "Hr", "Ha"))


def test_a_run_that_is_stopped_within_the_tests_takes_them_again(tmp_path, monkeypatch):
    whole = run(asked("cobj"), Store(tmp_path / "whole"))
    store = Store(tmp_path / "stopped")
    given = protocol.scored

    def stop(name, *others):
        if name == "non":
            raise KeyboardInterrupt
        return given(name, *others)

    monkeypatch.setattr(protocol, "scored", stop)
    with pytest.raises(KeyboardInterrupt):
        run(asked("cobj"), store)
    monkeypatch.setattr(protocol, "scored", given)
    resumed = run(asked("cobj"), store)
    assert resumed.scores == whole.scores
    assert len({(s.stage, s.split, s.name) for s in resumed.scores}) == len(resumed.scores)


def test_the_tests_end_every_kind_of_run(tmp_path, monkeypatch):
    joint = run(asked("cobj", algorithm="joint"), Store(tmp_path))
    assert "Asub" not in joint.summary
    assert joint.summary["Ha"] > 0
    again = run(asked("cobj", algorithm="joint", **{"benchmark.way": 3}), Store(tmp_path))
    assert again.chance["sys"] == pytest.approx(1 / 3)
    monkeypatch.setattr(fewshot, "EPOCHS", 1)
    learned = run(
        asked("cobj", **{"benchmark.frozen": False, "benchmark.tests": 2, "benchmark.way": 2}), Store(tmp_path)
    )
    assert learned.summary["Asys"] is not None


def test_cpins_archive_is_read_as_the_authors_lay_it_out():
    folder = world("cpin", "tiny")
    setup = cfst.Cpin(scale="tiny", data=str(folder)).setup(WANTS)
    records = json.loads((folder / "PIN/PIN/continual.json").read_text())
    known = sorted({tuple(sorted(record["label"])) for record in records})
    shuffled = np.arange(len(known))
    np.random.RandomState(1234).shuffle(shuffled)
    order = [known[number] for number in shuffled]
    assert [len(stage.train) for stage in setup.stream.stages] == [8 * 3, 8 * 3]
    learned = np.concatenate([stage.train for stage in setup.stream.stages])
    own = cfst.Cpin(scale="tiny", data=str(folder), side=48).setup(WANTS)
    shown = own.data.fetch(learned[[0]], "cpu").parts[0].inputs["image"][0].numpy()
    target = int(own.data.targets(learned[[0]])[0])
    labels = []
    for record in records:
        with Image.open(folder / "PIN/PIN" / record["newFileName"]) as picture:
            if np.array_equal(np.asarray(picture.convert("RGB")).transpose(2, 0, 1), shown):
                labels.append(tuple(sorted(record["label"])))
    assert labels == [order[target]]
    tests = {test.name: test.way for test in setup.finish.tests if "(" not in test.name}
    assert tests == {"sys": 6, "pro": 6, "non": 6, "noc": 6}


@pytest.mark.slow
def test_cpin_is_built_of_the_worlds_pictures(monkeypatch):
    monkeypatch.setattr(cfst, "BUILT", {"tiny": (2, 1, 20)})
    setup = cfst.Cpin(scale="tiny").setup(WANTS)
    assert [len(stage.train) for stage in setup.stream.stages] == [20] * 10
    tests = {test.name: test for test in setup.finish.tests}
    assert {"sys", "pro", "non", "noc"} <= tests.keys()
    assert "sub" not in tests
    assert {test.way for name, test in tests.items() if "(" not in name} == {10}


def test_cifar_is_cut_from_its_training_data(tmp_path):
    order = drawn_order(100)
    setup = cfst.Cifar100(scale="tiny", setting="task").setup(Wants(side=128))
    assert setup.inputs.image == (3, 32, 32)
    assert len(setup.stream.stages) == 10
    train, test = (setup.data.offsets[at] for at in (10, 20))
    parts = {"train": [s.train for s in setup.stream.stages]}
    for split in ("validation", "test"):
        parts[split] = [each.ids for each in setup.protocol.evaluations if each.split == split]
    ids = {split: set(np.concatenate(found).tolist()) for split, found in parts.items()}
    assert ids["test"] == set(range(train, test))
    assert ids["train"] | ids["validation"] == set(range(train))
    assert ids["train"].isdisjoint(ids["validation"])
    assert len(ids["validation"]) == 100, "a tenth of eight images is one of each class"
    official = [e.target for e in registry.DATASETS["cifar100"].load().examples(world("cifar100", "tiny"), "test")]
    local = setup.data.targets(parts["test"][3]).tolist()
    assert sorted(order[30 + number] for number in local) == sorted(t for t in official if t in order[30:40])
    combined = sorted(listed("cgqa").trained)
    assert [combined[number] for number in order] == list(listed("cgqa").trained), "drawn as the paper's order was"


def test_cifar_is_scored_by_acon_alone(tmp_path):
    settings = {"benchmark.tasks": 2, "benchmark.per_class": 2, "train.batch_size": 100} | QUICK
    del settings["benchmark.tests"]
    record = run(prepare(Request("cfst:cifar100", scale="tiny", settings=settings)), Store(tmp_path))
    assert list(record.summary) == ["Acon"]


def test_a_run_of_the_first_stages_is_measured_by_these_and_by_all_tests(tmp_path):
    settings = {"benchmark.tasks": 2, "benchmark.per_class": 2, "train.batch_size": 100} | QUICK
    record = run(prepare(Request("cfst:cgqa", scale="tiny", settings=settings, stages=1)), Store(tmp_path))
    scores = {score.name: score.score for score in record.scores if score.split == "test"}
    assert scores["task-1"] > 0
    assert scores["task-2"] == 0, "its classes were never learned"
    assert record.summary["Acon"] == scores["task-1"]
    assert record.summary["Asys"] == scores["sys"]
    assert record.summary["Asys_interval"] == scores["sys interval"]


def test_training_is_the_papers_at_its_scale():
    resnet = cfst.Cgqa(scale="paper")._training()
    assert (resnet.epochs, resnet.batch_size, resnet.patience, resnet.optimiser) == (100, 100, 5, "adam")
    assert (resnet.augment, resnet.schedule) == ("flip", "constant")
    vit = resolve(Request("cfst:cgqa", "ewc", "vit", scale="paper", setting="task"))
    assert vit.train == {
        "learning_rate": 1e-4,
        "schedule": "cosine",
        "augment": "randaugment",
        "epochs": 200,
        "batch_size": 32,
    }
    assert vit.algorithms[0].strength == 2.0
    assert cfst.Cgqa(scale="paper").model() == "resnet18"


def rpsnet(**settings):
    return resolve(Request("cfst:cifar100", "rpsnet", scale="paper", setting="class", settings=settings))


def test_both_scripts_for_rpsnet_have_a_preset():
    run, backup = rpsnet(), rpsnet(**{"benchmark.script": "backup"})
    alike = {"learning_rate": 1e-3, "epochs": 100, "schedule": "halving"}
    assert run.train == alike | {"patience": 30}
    assert backup.train == alike | {"patience": 100, "batch_size": 128, "augment": "crop"}
    assert (run.algorithms[0].capacity, backup.algorithms[0].capacity) == (1000, 2000)
    assert (run.algorithms[0].growth, backup.algorithms[0].growth) == (2.5, 2.5)
    training = run.benchmark._training()
    assert (training.batch_size, training.augment) == (100, "flip")


@pytest.mark.parametrize(
    ("benchmark", "model", "count"), [("cgqa", None, 4), ("cgqa", "modular-vit", 3), ("cobj", None, 8)]
)
def test_rpsnet_tries_as_many_paths_as_the_paper_says_or_the_authors_shell_files_do(benchmark, model, count):
    request = Request(f"cfst:{benchmark}", "rpsnet", model, scale="paper")
    released = resolve(replace(request, settings={"benchmark.fidelity": "released"}))
    assert (resolve(request).algorithms[0].candidates, released.algorithms[0].candidates) == (8, count)


def test_mntdps_preset_on_cifar_is_that_of_its_script():
    found = resolve(Request("cfst:cifar100", "mntdp", scale="paper", setting="task"))
    assert found.train == {"learning_rate": 1e-3, "weight_decay": 1e-3, "patience": 20, "epochs": 100}


@pytest.mark.parametrize(
    ("benchmark", "algorithm", "setting", "size"),
    [
        ("cgqa", "er", "class", 32),
        ("cobj", "lwf", "task", 32),
        ("cgqa", "joint", "class", None),
        ("cgqa", "rpsnet", "class", 20),
        ("cobj", "rpsnet", "class", 50),
        ("cgqa", "mntdp", "task", None),
    ],
)
def test_batches_with_vit_are_those_of_the_authors_sweeps(benchmark, algorithm, setting, size):
    model = "modular-vit" if algorithm in ("rpsnet", "mntdp") else "vit"
    found = resolve(Request(f"cfst:{benchmark}", algorithm, model, scale="paper", setting=setting))
    assert found.train.get("batch_size") == size


def test_a_preset_depends_on_the_network_not_on_its_name():
    for name in ("hf-vit", "my-resnet", "vit-of-mine", "modular-perceptron"):
        assert cfst.Cgqa(scale="paper").preset(name, "finetune") == {"train.epochs": 100}
        assert cfst.Cgqa().preset(name, "mntdp") == {}


def test_the_order_of_classes_depends_on_the_seed_in_the_authors_protocol():
    number = np.arange(100)
    np.random.RandomState(7).shuffle(number)
    assert drawn_order(100, 7) == number.tolist(), "as their code draws it"
    setup = cfst.Cgqa(scale="tiny", side=48, fidelity="released", seed=7).setup(WANTS)
    records = archive("train")
    shown = {tuple(sorted(r["comb"])) for r in records}
    drawn = [each for each in in_drawn_order(listed("cgqa").trained, 7) if each in shown]
    assert drawn != [each for each in listed("cgqa").trained if each in shown]
    ids = setup.stream.stages[1].train
    image, target = setup.data.fetch(ids[:1], "cpu").parts[0].inputs["image"][0], int(setup.data.targets(ids[:1])[0])
    found = []
    for record in records:
        with Image.open(world("cgqa", "tiny") / f"CGQA/GQA_100/{record['newImageName']}.jpg") as picture:
            if np.array_equal(np.asarray(picture.convert("RGB")).transpose(2, 0, 1), image.numpy()):
                found.append(tuple(sorted(record["comb"])))
    assert found == [drawn[target]]


def test_nothing_of_cifar_is_held_out_in_the_authors_protocol():
    setup = cfst.Cifar100(scale="tiny", fidelity="released", seed=3).setup(Wants(side=32))
    learned = np.concatenate([stage.train for stage in setup.stream.stages])
    assert np.array_equal(np.sort(learned), np.arange(setup.data.offsets[1]))
    for stage in setup.stream.stages:
        (judge,) = stage.validation
        assert np.array_equal(judge.ids, stage.train), "training accuracy stops it early"
    assert {each.split for each in setup.protocol.evaluations} == {"test"}, "it is no score"
    tested = np.concatenate([each.ids for each in setup.protocol.evaluations])
    assert not np.isin(tested, learned).any()


def test_the_authors_protocol_flips_support_pictures_and_ends_cosines_at_a_millionth():
    finish = cfst.Cgqa(scale="tiny", fidelity="released").setup(WANTS).finish
    assert (finish.flips, finish.schedule) == (True, None)
    finish = cfst.Cgqa(scale="tiny", fidelity="released", flips=False, schedule="constant").setup(WANTS).finish
    assert (finish.flips, finish.schedule) == (False, "constant")
    finish = cfst.Cgqa(scale="tiny").setup(WANTS).finish
    assert (finish.flips, finish.schedule) == (False, "constant")
    vit = Request("cfst:cgqa", "er", "vit", scale="paper", settings={"benchmark.fidelity": "released"})
    assert resolve(vit).train["lowest_rate"] == 1e-6
    resnet = Request("cfst:cgqa", "er", scale="paper", settings={"benchmark.fidelity": "released"})
    assert "lowest_rate" not in resolve(resnet).train


def test_a_preset_gives_way_to_what_the_user_sets():
    own = resolve(Request("cfst:cobj", "er", scale="paper", settings={"replay.capacity": 7}))
    assert (own.train, own.algorithms[0].capacity) == ({"learning_rate": 1e-2, "epochs": 100}, 7)
    assert own.algorithms[0].memory == "experience-balanced"
    elsewhere = resolve(Request("cfst:cobj", "er"))
    assert (elsewhere.train, elsewhere.algorithms[0].capacity) == ({}, Replay().capacity)


@pytest.mark.parametrize(("algorithm", "parts"), [("rpsnet", "branches"), ("mntdp", "stages")])
def test_a_method_of_modules_gets_a_network_of_modules(algorithm, parts):
    small, whole = (resolve(Request("cfst:cifar100", algorithm, scale=scale)) for scale in ("tiny", "paper"))
    assert (small.names["model"], small.recipe.parts, small.recipe.channels) == ("modular-resnet18", parts, 16)
    assert (whole.names["model"], whole.recipe.parts, whole.recipe.channels) == ("modular-resnet18", parts, 64)


def test_lwf_keeps_old_heads_where_each_stage_has_one():
    kept = [resolve(Request("cfst:cobj", "lwf", setting=setting)).algorithms[0].on for setting in ("class", "task")]
    assert kept == ["seen", "old-heads"]


def test_refusals(tmp_path):
    with pytest.raises(UserError, match="contains no cpin"):
        cfst.Cpin(data=str(tmp_path)).setup(WANTS)
    with pytest.raises(UserError, match=r"a 11-way test .* but there are 10: set benchmark.way"):
        cfst.Cgqa(scale="tiny", way=11).setup(WANTS)
    assert fewshot.WAY == 10


@pytest.mark.slow
def test_the_world_at_small_shows_what_the_paper_shows(tmp_path):
    found = {name: run(prepare(Request("cfst:cgqa", name)), Store(tmp_path)).summary for name in ("finetune", "er")}
    for scores in found.values():
        assert scores["Anon"] > max(scores["Asys"], scores["Apro"])
        assert min(scores["Asys"], scores["Apro"]) > scores["Asub"] > scores["Anoc"]
    assert found["er"]["Acon"] > found["finetune"]["Acon"]
