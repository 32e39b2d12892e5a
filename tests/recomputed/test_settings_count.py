"""Every setting counts: another value gives a run another id, and another result where it acts."""

import dataclasses
from dataclasses import replace
from functools import cache

import pytest
import torch

from holdfast import registry
from holdfast.benchmarks.synthetic import world
from holdfast.experiments.config import resolve
from holdfast.experiments.parts import versions
from holdfast.experiments.request import Request
from holdfast.settings import build, fields
from holdfast.types import Training
from recomputed.other import other
from smallest import make_learner, prepare, prepared, request, trained


def settings_of(table):
    return [pytest.param(n, field, id=f"{n}.{field}") for n, entry in table.items() for field in fields(entry.load())]


def identity(benchmark="patterns", algorithm="finetune", model=None, settings=None, **request):
    """The id of a run, as far as it follows from what was asked: of the data and the weights it has their hashes."""
    config = resolve(Request(benchmark, algorithm, model, settings=settings or {}, **request))
    training = dataclasses.asdict(build(Training, config.train, "train"))
    return dataclasses.replace(config, training=(training,), data="data", weights="weights").id


@pytest.mark.parametrize(("name", "field"), settings_of(registry.ALGORITHMS))
def test_the_id_follows_each_setting_of_an_algorithm(name, field):
    base, changed = alternatives(name, field)
    assert identity(algorithm=name, settings=base) != identity(algorithm=name, settings=changed)


@pytest.mark.parametrize(("name", "field"), settings_of(registry.MODELS))
def test_the_id_follows_each_setting_of_a_model(name, field):
    """But for the places of its weights, for which stands their hash; a tower is a part, whose version counts."""
    kind, base = registry.MODELS[name].load(), BESIDE.get(f"{name}.{field}", {})
    changed = base | {f"model.{field}": other(name, kind, field)}
    same = identity(model=name, settings=base) == identity(model=name, settings=changed)
    same_parts = parts_of(name, base) == parts_of(name, changed)
    assert same == (field in kind.places and same_parts)


def parts_of(name, settings):
    """The parts that a model uses, with their versions."""
    own = {key.removeprefix("model."): value for key, value in settings.items()}
    return versions(*build(registry.MODELS[name].load(), own, name).uses())


@pytest.mark.parametrize(("name", "field"), settings_of(registry.BENCHMARKS))
def test_the_id_follows_each_setting_of_a_benchmark(name, field):
    """But for the places of its data, for which stands the data's hash, and for what only asks for further runs.

    Features from files are read by a reader of their own, whose version counts.
    """
    kind = registry.BENCHMARKS[name].load()
    value, base = other(name, kind, field), {"reader": "cifar100"} if name == "dataset" else {}
    if (name, field) == ("dataset", "data"):
        value = str(world("cifar100", "tiny"))
    settings = {f"benchmark.{key}": each for key, each in base.items()}
    one = identity(name, settings=settings)
    changed = {"seed": 1} if field == "seed" else {"settings": settings | {f"benchmark.{field}": value}}
    another = identity(name, **({"settings": settings} | changed))
    same_readers = build(kind, base | {field: value}, name).reads() == build(kind, base, name).reads()
    assert (one == another) == (field in kind.places and same_readers)


@pytest.mark.parametrize("field", fields(Training))
def test_the_id_follows_each_setting_of_training(field):
    value = other("train", Training, field)
    one, another = (identity(settings={"train.epochs": 1, **changed}) for changed in ({}, {f"train.{field}": value}))
    assert one != another


@pytest.mark.parametrize(
    "changed",
    [{"seed": 1}, {"precision": "float64"}, {"predictions": True}, {"start": "0123456789ab@1"}, {"threads": 2}],
    ids=lambda changed: next(iter(changed)),
)
def test_the_id_follows_the_words_of_a_request(changed):
    assert identity() != identity(**changed)


def alternatives(name, field):
    """The settings of two runs that differ in one setting of an algorithm."""
    key = f"{name}.{field}"
    base = BASE.get(key, {})
    return base, base | {key: VALUES.get(key, other(name, registry.ALGORITHMS[name].load(), field))}


# Results

BASE: dict[str, dict] = {
    "replay.share": {"replay.memory": "per-task"},
    "replay.fidelity": {"replay.mode": "separate"},
    "replay.source": {"replay.mode": "separate", "benchmark.stages": 3},
    "replay.memory": {"replay.capacity": 40},
    "replay.by": {"replay.memory": "class-balanced", "replay.capacity": 40},
    "ewc.past": {"benchmark.stages": 3},
    "ewc.decay": {"ewc.past": "online", "benchmark.stages": 3},
    "ewc.fidelity": {"ewc.fisher": "batched"},
    "rpsnet.growth": {"benchmark.stages": 4},
    "inflora.last_share": {"benchmark.stages": 3, "inflora.share": 0.9999},
    "mntdp.neighbours": {"benchmark.stages": 5, "benchmark.setting": "task"},
    **{f"{name}.capacity": {f"{name}.size": 4} for name in ("replay", "derpp", "er-ace", "agem", "mir")},
    "gdumb.capacity": {"train.batch_size": 8},
    **{f"{name}.capacity": {f"{name}.capacity": 24} for name in ("icarl", "wa")},
    "ranpac.ridge": {"ranpac.dimensions": 48},
    "zscl.every": {"zscl.every": 1},
    "zscl.size": {"zscl.reference": "patterns"},
    "momentum": {"train.optimiser": "sgd"},
    "lowest_rate": {"train.schedule": "linear"},
    "patience": {"train.epochs": 6},
}
"""Where a setting is allowed, or acts, only beside others: these."""
VALUES = {
    **{f"{name}.capacity": 16 for name in ("replay", "derpp", "er-ace", "agem", "mir", "gdumb")},
    **{f"{name}.capacity": 16 for name in ("icarl", "wa")},
    "ranpac.ridge": 10.0,
    "ranpac.dimensions": 32,
    "replay.share": 0.1,
    "replay.memory": "class-balanced",
    "rpsnet.capacity": 40,
    "rehearsal.count": 8,
    "ewc.most": 40,
    "mas.most": 40,
    "mir.candidates": 100,
    "frozen-bottom.k": 2,
    "adapters.reduction": 4,
    "adapter-library.reduction": 4,
    "adapter-library.count": 8,
    "l2p.layers": 1,
    "coda-prompt.layers": 1,
    "inflora.count": 8,
    "ease.reduction": 4,
    "gem.strength": 5.0,
    "mntdp.neighbours": 1,
    "zscl.every": 2,
    "zscl.reference": "patterns",
    "epochs": 3,
    "optimiser": "sgd",
}
"""Values at which a setting acts on eighty examples a stage and a model sixteen wide."""
NOT_HERE: dict[str, str] = {
    "mir.by": "acts on phrases, of which these tasks have none",
}
"""Settings that change nothing here, and why."""


@cache
def weights(name, settings):
    return outcome(*trained(prepared(name, **{key.replace(".", "__"): value for key, value in settings})))


def outcome(learner, log):
    return learner.model.state_dict(), [score.score for score in log.scores]


@pytest.mark.parametrize(("name", "field"), settings_of(registry.ALGORITHMS))
def test_the_result_follows_each_setting_of_an_algorithm(name, field):
    base, changed = alternatives(name, field)
    first, second = (weights(name, tuple(sorted(each.items()))) for each in (base, changed))
    assert differ(first, second) == (f"{name}.{field}" not in NOT_HERE), (base, changed)


@pytest.mark.parametrize("field", fields(Training))
def test_the_result_follows_each_setting_of_training(field):
    base = BASE.get(field, {})
    changed = base | {f"train.{field}": VALUES.get(field, other("train", Training, field))}
    first, second = (weights("finetune", tuple(sorted(each.items()))) for each in (base, changed))
    assert differ(first, second) == (field != "accumulate"), "pieces of a batch are the same step"


@pytest.mark.parametrize("field", fields(registry.BENCHMARKS["patterns"].load()))
def test_the_result_follows_each_setting_of_patterns(field):
    kind = registry.BENCHMARKS["patterns"].load()
    if field == "seed":
        ready = [prepare(replace(request(), seed=seed)) for seed in (0, 1)]
        first, second = (outcome(*trained(each)) for each in ready)
    elif field == "scale":
        ready = [prepare(replace(request(), scale=scale)) for scale in ("tiny", "small")]
        first, second = (len(each.setup.data.targets(each.setup.stream.stages[0].train)) for each in ready)
        assert first < second
        return
    else:
        name = "agem" if field == "boundaries" else "finetune"  # it keeps other examples without
        first, second = (
            weights(name, each) for each in ((), ((f"benchmark.{field}", other("patterns", kind, field)),))
        )
    assert differ(first, second)


def differ(first, second):
    """Whether two runs ended with other weights, or with other scores."""
    (one, scores), (two, others) = first, second
    if one.keys() != two.keys() or scores != others:
        return True
    alike = (one[key].shape == two[key].shape and torch.allclose(one[key], two[key], rtol=0, atol=1e-9) for key in one)
    return not all(alike)


# The other models and benchmarks: slow, since their data has to be read


MODELS = {name: registry.MODELS[name] for name in registry.MODELS if f"{name}-tiny" not in registry.MODELS}
"""The small ones; a large one has the same settings as its small one."""
ON_DATA = {
    "vlbert": "viscoll:coco",
    "lxmert": "viscoll:coco",
    "san": "clvqa",
    "resnet18": "cfst:cgqa",
    "vit": "cfst:cgqa",
    "modular": "patterns",
    "perceptron": "patterns",
    "dual": "mtil",
    "uniter": "climb",
}
"""The benchmark on which a model is tried, by the beginning of its name; climb:lowshot if there is none."""
SIZES = {"heads": 2, "patch": 4, "side": 32, "positions": 80, "text_positions": 60}
"""Where doubling is no good: heads must divide the width, patches the picture, and a text must find places."""
BESIDE = {
    "dual-tiny": {"model.weights": ""},
    "vilt-tiny": {"model.weights": ""},
    "vault-tiny": {"model.weights": ""},
    "san-tiny.channels": {"model.trunk": "learned"},
    "san-tiny.cells": {"model.trunk": "learned"},
    "vlbert-tiny.whole": {"model.visual_scale": 0.5},  # by default pictures count for nothing at first
}
"""A model that begins with weights has their sizes; the trunk that is trained on the world has its own."""
OTHERWISE = {"modular-vit": "cfst:cgqa"}
UNSEEN = {
    "weights": "the tests have no other weights",
    "bert": "the tests have no other BERT",
    "dual-tiny.text": "the other towers for text are large",
    "dual-tiny.learn_temperature": "acts in training: tests/models/test_dual.py",
    "modular-vit.parts": "acts when a second module is added: see mntdp and rpsnet",
}


def tried_on(name):
    usual = next((on for start, on in ON_DATA.items() if name.partition("-")[0] == start), "climb:lowshot")
    return OTHERWISE.get(name, usual)


@cache
def first_outputs(benchmark, name, settings):
    """The size of a fresh model, and what it gives for one batch in training, so that dropout counts too."""
    ready = prepare(Request(benchmark, model=name, scale="tiny", precision="float64", settings=dict(settings)))
    learner, found = make_learner(ready), []
    learner.model.encoder.register_forward_hook(lambda encoder, inputs, output: found.append(output))
    torch.manual_seed(0)
    learner.train_mode()
    (output, *_) = learner.forward(learner.data.fetch(ready.setup.stream.stages[0].train[:8], learner.device))
    parts = [output, *(each for each in found if isinstance(each, torch.Tensor))]
    return sum(p.numel() for p in learner.model.parameters()), [part.detach() for part in parts]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "field"), settings_of(MODELS))
def test_the_outputs_follow_each_setting_of_a_model(name, field):
    if why := UNSEEN.get(field) or UNSEEN.get(f"{name}.{field}"):
        pytest.skip(why)
    base = {**BESIDE.get(name, {}), **BESIDE.get(f"{name}.{field}", {})}
    changed = base | {f"model.{field}": SIZES.get(field, other(name, registry.MODELS[name].load(), field))}
    (size, one), (other_size, two) = (
        first_outputs(tried_on(name), name, tuple(sorted(each.items()))) for each in (base, changed)
    )
    alike = all(a.shape == b.shape and torch.allclose(a, b, rtol=0, atol=1e-9) for a, b in zip(one, two, strict=True))
    assert size != other_size or not alike


@cache
def laid_out(name, settings, seed):
    """What a benchmark makes of its settings: data, stages, evaluations, and what is scored at the end."""
    setup = prepare(Request(name, scale="tiny", seed=seed, settings=dict(settings))).setup
    stages = [(stage.name, stage.train.tolist(), str(stage.training)) for stage in setup.stream.stages]
    sets = [(each.name, each.split, each.ids.tolist()) for each in setup.protocol.evaluations]
    finish = setup.finish if dataclasses.is_dataclass(setup.finish) else None
    last = finish and [
        (f.name, str(getattr(finish, f.name))) for f in dataclasses.fields(finish) if f.name not in ("tests", "phrases")
    ]
    ways = [test.way for test in getattr(finish, "tests", ())]
    return setup.data.fingerprint(), stages, sets, setup.protocol.every, last, ways, dict(setup.chance)


WORDS = {
    "tagger": "the tests have one tagger",
    "stream": "released phrases need a copy of their repository: tests/benchmarks/viscoll/test_released.py has some",
    "scale": "tiny is the smallest, and the others take long",
    "script": "acts on RPSnet at the paper's scale: tests/benchmarks/cfst/test_benchmark.py",
}
BENCHMARK_VALUES = {
    ("climb:lowshot", "image"): "zero",
    ("mtil", "shots"): 2,
    ("mtil", "most"): 2,
    ("mtil", "most_tested"): 1,
    ("text:cl", "length"): 32,
    **{(name, "length"): 9 for name in ("instructions:coin", "instructions:ucit")},
    **{(name, "most"): 4 for name in ("captions", "instructions:coin", "instructions:ucit")},
    **{(name, "most_tested"): 2 for name in ("captions", "instructions:coin", "instructions:ucit")},
    ("text:cl", "most_tested"): 4,
    ("climb", "train"): 24,
    ("climb", "scored"): 24,
    ("climb:lowshot", "validation"): 8,
    ("climb:lowshot", "test"): 8,
    **{(f"cfst:{name}", "tasks"): 5 for name in ("cgqa", "cobj", "cpin", "cifar100")},
    **{(f"cfst:{name}", "per_class"): 3 for name in ("cgqa", "cobj", "cpin", "cifar100")},
    **{(f"cfst:{name}", "way"): 3 for name in ("cgqa", "cobj", "cpin")},
    **{(f"cfst:{name}", "schedule"): "cosine" for name in ("cgqa", "cobj", "cpin")},
    **{(f"viscoll:{name}", "every"): 7 for name in ("coco", "flickr", "flickr8k")},
    **{(f"viscoll:{name}", "boxes"): 2 for name in ("coco", "flickr", "flickr8k")},
}
ON_TASK = {"image": "imdb", "reallocate": "imdb"}
"""Settings of climb:lowshot that act on texts alone."""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "field"), settings_of(registry.BENCHMARKS))
def test_what_is_learned_and_scored_follows_each_setting_of_a_benchmark(name, field):
    kind = registry.BENCHMARKS[name].load()
    if name in ("folder", "table", "dataset"):
        pytest.skip("they bring no data: tests/benchmarks/test_folder.py changes their settings")
    if field in WORDS or field in kind.places or name == "patterns":
        pytest.skip(WORDS.get(field, "counted above"))
    base = (("benchmark.task", ON_TASK[field]),) if name == "climb:lowshot" and field in ON_TASK else ()
    value = BENCHMARK_VALUES.get((name, field), other(name, kind, field))
    changed = (*base, (f"benchmark.{field}", value))
    if field == "seed" and name == "mtil":  # its model is given, and the seed draws the few examples
        few = (("benchmark.shots", 2),)
        assert laid_out(name, few, 0) != laid_out(name, few, 1)
    elif field == "seed":
        assert ready_seed(name, 0) != ready_seed(name, 1)
    else:
        assert laid_out(name, base, 0) != laid_out(name, changed, 0)


def ready_seed(name, seed):
    ready = prepare(Request(name, scale="tiny", seed=seed))
    return [value.sum().item() for value in make_learner(ready).model.state_dict().values()]
