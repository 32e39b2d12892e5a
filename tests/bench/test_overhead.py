"""The rows of `bench overhead`: each compares one and the same network in two loops."""

import torch

from holdfast.bench.overhead import CLASSES, MODULE_LIMIT_MS, SHAPE, Bare, _module, overhead
from holdfast.models.module import of
from holdfast.types import Head, Inputs


def test_a_module_is_timed_against_itself():
    torch.manual_seed(0)
    bare = Bare()
    ours = of(_module).build(Inputs(SHAPE), {"speed": Head("classify", CLASSES)})
    ours.encoder.module.load_state_dict(bare.module.state_dict())
    ours.heads["speed"].classifier.load_state_dict(bare.head.state_dict())
    images = {"image": torch.randint(256, (4, *SHAPE), dtype=torch.uint8)}
    assert torch.equal(ours(images, "speed"), bare(images, "speed"))


def test_each_row_has_its_limit():
    found = {each.case: each for each in overhead(steps=2, repeats=1)}
    assert found.keys() == {"finetune", "replay", "module"}
    assert found["module"].limit_ms == MODULE_LIMIT_MS == 0.2
    assert all(each.bare_ms > 0 and each.ours_ms > 0 for each in found.values())
