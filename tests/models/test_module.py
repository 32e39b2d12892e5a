"""Modules that are not ours: what they are given, what is read from them, and that runs with them resume and repeat."""

import copy
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from cli.inside import inside
from holdfast import api
from holdfast.engine.checkpoint import Checkpoints
from holdfast.errors import Stopped, UserError
from holdfast.experiments.config import resolve
from holdfast.experiments.request import Request
from holdfast.experiments.store import Store
from holdfast.foreign import identity
from holdfast.models.module import WrappedEncoder, kind_of, of
from holdfast.models.normalise import SharesBatch
from holdfast.models.places import Loose
from holdfast.settings import build
from holdfast.types import Head, Inputs, Wants
from models import foreign, ranks_worker
from processes import environment
from smallest import StopAt, make_learner, prepare, prepared, run, trained

GREY = Inputs(image=(1, 12, 12))
SMALL = {"benchmark.stages": 2, "train.epochs": 1}
SEEN = Inputs(image=(3, 8, 8), padded=True, text=5, vocabulary=20, regions=(4, 6))


class Gives(nn.Module):
    """Gives whatever a test asks for, from one weight."""

    def __init__(self, give):
        super().__init__()
        self.weight, self.give = nn.Parameter(torch.ones(3)), give

    def forward(self, x):
        return self.give(x.flatten(1)[:, :3] * self.weight)


def asking(signature, body="{}"):
    """A module whose `forward` has these parameters and notes what it is given."""
    found = {}
    exec(f"def forward(self, {signature}):\n    return self.take({body})", found)

    def take(self, given):
        self.given = given
        return self.weight.expand(len(next(iter(given.values()))), 3)

    def start(self):
        nn.Module.__init__(self)
        self.weight = nn.Parameter(torch.ones(3))

    return type("Net", (nn.Module,), {"__init__": start, "forward": found["forward"], "take": take})


def columns(rows=2):
    draw = torch.Generator().manual_seed(1)
    return {
        "image": torch.randint(0, 256, (rows, 3, 8, 8), dtype=torch.uint8, generator=draw),
        "image_size": torch.tensor([[8, 8], [4, 6]] * (rows // 2), dtype=torch.int32),
        "text": torch.randint(0, 20, (rows, 5), dtype=torch.int32, generator=draw),
        "text_length": torch.tensor([5, 2] * (rows // 2), dtype=torch.int32),
        "regions": torch.randn(rows, 4, 6, generator=draw),
        "boxes": torch.rand(rows, 4, 4, generator=draw),
        "region_count": torch.tensor([4, 1] * (rows // 2)),
    }


@pytest.mark.parametrize(
    ("signature", "names"),
    [
        ("x", ["x"]),
        ("image", ["image"]),
        ("*, pixel_values, labels=None", ["pixel_values"]),
        ("input_ids, attention_mask=None, token_type_ids=None", ["input_ids", "attention_mask"]),
        ("text, text_length, image", ["text", "text_length", "image"]),
        ("pixel_values=None, pixel_mask=None, grid=None", ["pixel_values", "pixel_mask"]),
        ("regions, boxes, box_mask", ["regions", "boxes", "box_mask"]),
    ],
)
def test_a_module_is_given_the_columns_that_it_names(signature, names):
    encoder = WrappedEncoder(asking(signature, f"dict({', '.join(f'{n}={n}' for n in names)})")(), SEEN)
    given = columns()
    encoder(given)
    found = encoder.module.given
    assert list(found) == names
    expected = {
        "x": given["image"] / 255,
        "image": given["image"] / 255,
        "pixel_values": given["image"] / 255,
        "input_ids": given["text"].long(),
        "text": given["text"].long(),
        "text_length": given["text_length"].long(),
        "attention_mask": torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]]),
        "pixel_mask": torch.stack([torch.ones(8, 8), torch.zeros(8, 8)]).long(),
        "regions": given["regions"],
        "boxes": given["boxes"],
        "box_mask": torch.tensor([[1, 1, 1, 1], [1, 0, 0, 0]]),
    }
    expected["pixel_mask"][1, :4, :6] = 1
    for name, value in found.items():
        assert value.dtype == expected[name].dtype
        torch.testing.assert_close(value, expected[name], rtol=0, atol=1e-7)


def test_a_module_that_takes_anything_is_given_everything_by_our_names():
    encoder = WrappedEncoder(asking("**given", "given")(), SEEN)
    encoder(columns())
    assert encoder.module.given.keys() == columns().keys()


def test_numbers_come_in_the_type_of_the_weights():
    encoder = WrappedEncoder(asking("image, regions", "dict(image=image, regions=regions)")(), SEEN).double()
    encoder(columns())
    assert {value.dtype for value in encoder.module.given.values()} == {torch.float64}


@pytest.mark.parametrize(
    ("give", "expected"),
    [
        (lambda x: x, lambda x: x),
        (lambda x: (x, x + 1), lambda x: x),
        (lambda x: {"states": x + 1, "logits": x}, lambda x: x),
        (lambda x: {"last_hidden_state": x.unsqueeze(1), "pooler_output": 2 * x}, lambda x: 2 * x),
        (lambda x: {"mine": x}, lambda x: x),
        (lambda x: torch.stack([x, x + 1, x + 5], 1), lambda x: x + 2),
        (lambda x: x[:, :, None, None] + torch.tensor([[0.0, 2.0], [4.0, 6.0]]), lambda x: x + 3),
    ],
)
def test_one_vector_a_row_is_read_from_whatever_it_gives(give, expected):
    encoder = WrappedEncoder(Gives(give), GREY)
    image = torch.randint(0, 256, (4, 1, 12, 12), dtype=torch.uint8)
    assert encoder.width == 3
    torch.testing.assert_close(encoder({"image": image}), expected(image.flatten(1)[:, :3] / 255))


def test_tokens_of_a_text_are_averaged_without_padding():
    class Words(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(20, 4)

        def forward(self, input_ids):
            return self.table(input_ids)

    encoder, given = WrappedEncoder(Words(), SEEN), columns()
    table = encoder.module.table.weight
    first, second = table[given["text"][0].long()].mean(0), table[given["text"][1, :2].long()].mean(0)
    torch.testing.assert_close(encoder(given), torch.stack([first, second]))


def test_several_images_or_choices_are_as_many_passes():
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.pixels, self.words = nn.Linear(192, 4), nn.Embedding(20, 4)

        def forward(self, image, input_ids, attention_mask):
            return self.pixels(image.flatten(1)) + (self.words(input_ids) * attention_mask.unsqueeze(-1)).sum(1)

    encoder, first, second = WrappedEncoder(Both(), SEEN), columns(), columns()
    second = {name: column.flip(0) for name, column in second.items()}
    for names in (("image", "image_size"), ("text", "text_length")):
        both = {name: torch.stack([first[name], second[name]], 1) if name in names else first[name] for name in first}
        alone = [{name: given[name] if name in names else first[name] for name in first} for given in (first, second)]
        torch.testing.assert_close(encoder(both), torch.stack([encoder(each) for each in alone], 1))


class OfSideEight(nn.Linear):
    def __init__(self):
        super().__init__(64, 4)

    def wants(self):
        return {"side": 8}

    def forward(self, image):
        return super().forward(image.flatten(1))


@pytest.mark.parametrize(
    ("module", "inputs", "message"),
    [
        (asking("grid, text", "{}"), GREY, "asks for 'grid', but this benchmark has image: give grid a default"),
        (asking("a, b", "{}"), GREY, "asks for 'a' and 'b', which are not columns: .* has image. Rename"),
        (asking("", "{}"), GREY, "takes no column of this benchmark, which has image"),
        (lambda: Gives(lambda x: "no"), GREY, "Gives returns an object of str: return a tensor"),
        (lambda: Gives(lambda x: x.long()), GREY, "returns a tensor of torch.int64: return a tensor of real numbers"),
        (lambda: Gives(lambda x: x[:, 0]), GREY, r"returns \(2,\) for 2 rows: return \(rows, width\)"),
        (lambda: Gives(lambda x: x[:1]), GREY, r"returns \(1, 3\) for 2 rows"),
        (lambda: Gives(lambda x: x.detach()), GREY, "no gradient flows through the output of Gives: leave out no_grad"),
        (lambda: nn.Conv2d(3, 4, 3), GREY, r"Conv2d cannot take a batch of image \(2, 1, 12, 12\): RuntimeError"),
        (OfSideEight, GREY, "does not follow wants.. in the size of images: try --set benchmark.side=8"),
        (lambda: SimpleNamespace(), GREY, "builds an object of SimpleNamespace, not an nn.Module"),
    ],
)
def test_what_a_module_cannot_do_is_said_before_training(module, inputs, message):
    with pytest.raises(UserError, match=message):
        of(module).build(inputs, {})


def test_another_width_in_training_is_refused_at_once():
    class Two(Gives):
        def forward(self, x):
            return super().forward(x).repeat(1, 2 if self.training else 1)

    with pytest.raises(UserError, match="Two returns 6 numbers per row in training, and returned 3 in the trial"):
        WrappedEncoder(Two(lambda x: x), GREY)


def test_layers_are_the_repeated_blocks_and_the_stem_what_comes_before():
    encoder = WrappedEncoder(foreign.Blocks(), GREY)
    own = encoder.module
    assert list(encoder.layers()) == list(own.layers)
    *called, loose = encoder.stem()
    assert called == [own.patches, own.drop]
    assert isinstance(loose, Loose)
    assert len(loose.loose) == 1
    assert loose.loose[0] is own.token, "the scale at the end is none of the stem's"


def test_blocks_of_several_stages_count_together_and_children_where_nothing_repeats():
    stages = nn.Sequential(
        nn.Linear(144, 8), nn.Sequential(*map(foreign.Block, [8] * 2)), nn.Sequential(*map(foreign.Block, [8] * 3))
    )
    found = WrappedEncoder(nn.Sequential(nn.Flatten(), stages), GREY)
    assert list(found.layers()) == [*stages[1], *stages[2]]
    assert list(found.stem())[:-1] == [found.module[0], stages[0]]
    plain = nn.Sequential(nn.Flatten(), nn.Linear(144, 8), nn.ReLU(), nn.LayerNorm(8))
    assert list(WrappedEncoder(plain, GREY).layers()) == [plain[1], plain[3]]


def test_a_module_says_more_by_methods():
    class Telling(foreign.Blocks):
        def wants(self):
            return {"side": 20}

        def layers(self):
            return [self.norm]

        def words(self, text):
            return nn.functional.one_hot(text, 20).float()

        def word_embedding(self):
            return self.table

        def __init__(self):
            super().__init__()
            self.blocks, self.table = self._modules.pop("layers"), nn.Embedding(20, 8)

        def forward(self, image):
            return self.norm(self.patches(image).mean((2, 3)))

    state = torch.get_rng_state()
    assert of(Telling).wants() == Wants(side=20)
    assert torch.equal(torch.get_rng_state(), state)
    model = of(Telling()).build(replace(SEEN, image=(1, 8, 8)), {"h": Head("phrase", 20)})
    assert list(model.encoder.layers()) == [model.encoder.module.norm]
    given = columns() | {"image": columns()["image"][:, :1], "masked": torch.tensor([[1], [0]])}
    assert torch.equal(model.encoder.words(given), nn.functional.one_hot(given["text"].long(), 20).float())
    assert model.encoder.word_embedding() is model.encoder.module.table
    with pytest.raises(UserError, match="Blocks has no embedding of word pieces: define word_embedding"):
        WrappedEncoder(foreign.Blocks(), GREY).word_embedding()


def test_a_class_has_its_arguments_as_settings_and_is_built_under_the_seed():
    kind = kind_of(foreign.Blocks)
    assert kind() == of(foreign.Blocks)
    assert build(kind, {"width": "4", "drop": "0.5"}, "model") == kind(width=4, drop=0.5)
    assert of(kind(width=4)).build(GREY, {}).encoder.width == 4
    found = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        found.append(kind().build(GREY, {}).state_dict()["encoder.module.norm.weight"])
        found.append(kind().module().patches.weight)
    assert torch.equal(found[1], found[3])
    assert not torch.equal(found[1], found[5])
    with pytest.raises(UserError, match="Linear takes in_features, out_features, and a model is built without"):
        of(nn.Linear)
    with pytest.raises(UserError, match="model is 3: give"):
        of(3)


def test_an_instance_is_copied_and_known_by_all_that_it_holds():
    torch.manual_seed(0)
    module = foreign.Blocks()
    before = copy.deepcopy(module.state_dict())
    model = of(module)
    assert model.source() == of(module).source() == of(copy.deepcopy(module)).source()
    with torch.no_grad():
        module.scale += 1
    before["scale"] += 1
    assert model.build(GREY, {}).state_dict()["encoder.module.scale"].eq(1).all(), "as it was when it was given"
    learner, _ = trained(replace(prepared(), recipe=model))
    assert not torch.equal(
        learner.model.state_dict()["encoder.module.patches.weight"].float(), before["patches.weight"]
    )
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    other = copy.deepcopy(module)
    other.drop.p = 0.2
    moved = copy.deepcopy(module)
    with torch.no_grad():
        moved.token += 1e-6
    assert len({of(each).source() for each in (module, other, moved, nn.Sequential(module))}) == 4


def test_ids_cover_the_code_and_the_weights():
    ready = prepared()
    torch.manual_seed(0)
    models = [
        of(foreign.Blocks),
        of(foreign.Normalised),
        of(foreign.Blocks()),
        of(foreign.Blocks()),
        of(foreign.convolutional),
    ]
    names = [{**ready.config.names, "code": {"benchmark": {}, "model": identity(type(model))}} for model in models]
    assert all(each["code"]["model"]["code"] for each in names)
    configs = [
        replace(ready.config, recipe=model, weights=model.source(), names=each)
        for model, each in zip(models, names, strict=True)
    ]
    assert len({config.id for config in configs}) == len(models)
    assert identity(type(of(nn.Flatten))) == {}, "what is installed counts by its name"


@pytest.mark.parametrize("kind", [foreign.Normalised, foreign.Counting, foreign.Blocks, foreign.Attending])
@pytest.mark.parametrize("stop", [2, 5])
def test_runs_resume_exactly(kind, stop, tmp_path):
    ready = replace(prepared(train__batch_size=30), recipe=of(kind))
    whole, log = trained(ready)
    with pytest.raises(Stopped):
        trained(ready, checkpoints=Checkpoints(tmp_path), watch=StopAt(stop))
    again, later = trained(ready, checkpoints=Checkpoints(tmp_path))
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, again.model.state_dict()[name]), name
    assert log.scores[-1] == later.scores[-1]
    assert any(score.score > 0.3 for score in log.scores), "one class in four is right by chance"


def test_random_numbers_in_evaluation_are_the_same_each_time():
    learner = make_learner(replace(prepared(), recipe=of(foreign.Counting)))
    assert learner.model.encoder.draws
    learner.model.eval()
    image = torch.randint(0, 256, (4, 1, 12, 12), dtype=torch.uint8)
    state = torch.get_rng_state()
    first = learner.model({"image": image}, "patterns")
    assert torch.equal(torch.get_rng_state(), state)
    torch.rand(5)
    assert torch.equal(learner.model({"image": image}, "patterns"), first)


def test_the_trial_leaves_no_trace():
    torch.manual_seed(0)
    module = foreign.Counting()
    state, before = torch.get_rng_state(), copy.deepcopy(module.state_dict())
    encoder = WrappedEncoder(module, GREY)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert not any(each._forward_hooks or each._forward_pre_hooks for each in encoder.modules())
    norms = WrappedEncoder(foreign.Normalised(), GREY).module
    assert torch.equal(norms.rows.running_mean, torch.zeros(6))
    assert norms.rows.num_batches_tracked == 0


def test_what_ranks_cannot_share_is_refused():
    assert WrappedEncoder(foreign.Normalised(), GREY).alone() == ""
    assert WrappedEncoder(foreign.Counting(), GREY).alone() == "Counting updates rows from the rows of one rank"

    class Own(nn.BatchNorm2d):
        pass

    encoder = WrappedEncoder(nn.Sequential(nn.Conv2d(1, 4, 3), Own(4)), GREY)
    assert encoder.alone() == "Sequential has 1, a Own, which normalises over the rows of one rank"
    ranks = SimpleNamespace(size=2, rank=0)
    with pytest.raises(UserError, match="several ranks cannot train this model: Counting updates rows"):
        make_learner(replace(prepared(), recipe=of(foreign.Counting)), None, ranks)


def test_batch_normalisation_alone_computes_what_it_did():
    torch.manual_seed(0)
    plain = foreign.Normalised()
    encoder = WrappedEncoder(copy.deepcopy(plain), GREY)
    assert all(isinstance(norm, SharesBatch) for norm in (encoder.module.body[1], encoder.module.rows))
    image = torch.randint(0, 256, (6, 1, 12, 12), dtype=torch.uint8)
    assert torch.equal(encoder.train()({"image": image}), plain(image / 255))
    assert all(torch.equal(value, encoder.module.state_dict()[name]) for name, value in plain.state_dict().items())


@pytest.mark.thorough
def test_two_ranks_give_the_weights_and_scores_of_one(tmp_path):
    worker = Path(ranks_worker.__file__)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run([*launcher, worker, tmp_path], env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    torch.manual_seed(0)
    for kind in ranks_worker.KINDS:
        ready = ranks_worker.ready(kind)
        alone = tmp_path / f"{kind.__name__} alone"
        record = run(ready, Store(alone))
        both = Store(tmp_path / kind.__name__).folder(record.id)
        one, two = load_file(alone / record.id / "model.safetensors"), load_file(both.weights)
        for name, value in one.items():
            assert torch.allclose(value.double(), two[name].double(), rtol=0, atol=1e-10), name
        assert both.record().scores == record.scores
        assert both.record().environment["ranks"] == 2


NET = """
from torch import nn

class Net(nn.Module):
    def __init__(self, width: int = 16):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, width, 3, 2), nn.BatchNorm2d(width), nn.ReLU())

    def forward(self, image):
        return self.body(image).mean((2, 3))

def small():
    return Net(8)
"""
"""Eleven lines of a user's file, blank ones among them."""


def test_a_file_names_a_module_or_a_function(tmp_path):
    (tmp_path / "net.py").write_text(NET)
    net, small = (prepare(Request("patterns", model=f"{tmp_path}/net.py:{name}")).config for name in ("Net", "small"))
    assert net.recipe.width == 16
    assert net.id != small.id
    wide = resolve(Request("patterns", model=f"{tmp_path}/net.py:Net", settings={"model.width": "32"}))
    assert wide.recipe.width == 32
    (tmp_path / "net.py").write_text(NET.replace("width, 3, 2", "width, 3, 1"))
    assert prepare(Request("patterns", model=f"{tmp_path}/net.py:Net")).config.id != net.id
    with pytest.raises(UserError, match=r"model.depth is not a setting: did you mean width|there are width"):
        resolve(Request("patterns", model=f"{tmp_path}/net.py:Net", settings={"model.depth": 2}))


@pytest.mark.slow
def test_a_file_with_a_module_runs_with_two_workers(tmp_path):
    (tmp_path / "net.py").write_text(NET)
    words = ["run", "cfst:cgqa", "--model", "net.py:Net", "-a", "finetune,er", "-j", "2", "--scale", "tiny", "--json"]
    done = inside(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [bool(record["scores"]) for record in json.loads(done.stdout)] == [True, True]


def test_an_instance_and_a_function_go_to_workers(tmp_path):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(144, 8))
    found = [
        api.run("patterns", ["finetune", "er"], model=model, scale="tiny", out=tmp_path, jobs=2, settings=SMALL)
        for model in (net, foreign.convolutional)
    ]
    assert len({record.id for runs in found for record in runs}) == 4
    again = api.run("patterns", "er", model=net, scale="tiny", out=tmp_path, settings=SMALL)
    assert again.id in {record.id for record in found[0]}
