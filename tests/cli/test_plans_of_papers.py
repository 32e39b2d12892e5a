"""`holdfast plan NAME --scale paper --dry-run` on stub data in the official layouts: each run can be made or says why.

The stubs are the world's smallest datasets, without the mark by which Holdfast knows its own.
"""

import json
import re
import shutil
import sys
import types

import numpy as np
import pytest
from transformers import BertConfig, BertModel

from cli.inside import inside
from holdfast.benchmarks.synthetic import world
from holdfast.world.whole import MARK

NEEDED = {
    "climb": "vqav2 nlvr2 snli_ve vcr imdb sst2 hellaswag commonsenseqa piqa imagenet inaturalist2019 places365 coco",
    "viscoll": "coco flickr30k_entities",
    "clvqa": "clevr",
    "cfst": "cgqa cobj cpin cifar100",
}
DATABASES = ("coco_train2014", "coco_val2014", "flickr30k", "nlvr2_train", "nlvr2_dev", "nlvr2_test", "vcr_train")


@pytest.fixture(scope="module")
def official(tmp_path_factory, tiny_cache):
    """A folder of each paper's datasets, with region features."""
    folder = tmp_path_factory.mktemp("official")
    for paper, names in NEEDED.items():
        for name in names.split():
            shutil.copytree(world(name, "tiny"), folder / paper / name, ignore=shutil.ignore_patterns(MARK))
    for name in (*DATABASES, "vcr_val"):
        own = folder / "climb" / "features" / "img_db" / name
        own.mkdir(parents=True)
        np.savez(own / f"{name}_0.npz", features=np.zeros((1, 4), np.float16))
    features = world("region_features", "tiny")
    (folder / "viscoll" / "region_features").mkdir()
    for path in features.glob("*flickr*"):
        shutil.copy(path, folder / "viscoll" / "region_features")
    shutil.copytree(features / "mscoco_imgfeat", folder / "viscoll" / "region_features" / "mscoco_imgfeat")
    return folder


@pytest.fixture
def bert(tmp_path, monkeypatch):
    """A small BERT in place of the published one."""
    kind = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, vocab_size=30)
    BertModel(kind).save_pretrained(tmp_path / "bert")
    (tmp_path / "bert" / "vocab.txt").write_text("[PAD]\n")
    hub = types.ModuleType("huggingface_hub")
    hub.snapshot_download = lambda name, **_: str(tmp_path / {"bert-base-uncased": "bert"}[name])
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)


def planned(paper, data, cwd):
    ended = inside("plan", paper, "--scale", "paper", "--data", data, "--dry-run", "--json", cwd=cwd)
    plan = json.loads(ended.stdout)
    return ended, {node["refused"] for node in plan["nodes"]}, plan["runs"]


@pytest.mark.parametrize("paper", NEEDED)
def test_every_run_of_a_paper_can_be_made(paper, official, bert, tmp_path):
    ended, refused, runs = planned(paper, official / paper, tmp_path)
    assert refused == {None}, refused
    assert ended.returncode == 0, ended.stderr
    assert runs > 20


def test_what_cannot_be_run_is_listed_with_its_reason(official, bert, tmp_path):
    data = tmp_path / "data"
    shutil.copytree(official / "climb", data)
    (data / "nlvr2" / "data" / "train.json").unlink()
    shutil.rmtree(data / "features" / "img_db" / "vcr_val")
    shutil.rmtree(data / "places365")
    ended, refused, _ = planned("climb", data, tmp_path)
    assert ended.returncode == 1
    told = "\n".join(sorted(filter(None, refused)))
    assert re.search(r"train.json: no such file", told)
    assert re.search(r"no features of the images of vcr: add img_db/vcr_train, img_db/vcr_val", told)
    assert re.search(r"contains no places365", told)
    assert len(refused) == 4, "and nothing else is refused"
