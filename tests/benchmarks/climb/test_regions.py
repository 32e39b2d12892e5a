"""UNITER on a detector's features: what reaches it is what stands in the files."""

import base64
import csv
import json
import sys
from itertools import pairwise

import h5py
import numpy as np
import pytest
import torch
from PIL import Image

from holdfast.benchmarks.climb import transfer
from holdfast.benchmarks.climb.benchmark import Climb
from holdfast.benchmarks.climb.lowshot import LowShot
from holdfast.benchmarks.climb.regions import region_inputs, with_regions
from holdfast.benchmarks.climb.stream import PARTS
from holdfast.benchmarks.climb.tasks import Place, read, vocabulary_file
from holdfast.benchmarks.splits import PreparedSplit
from holdfast.benchmarks.synthetic import world
from holdfast.data.table import Data, Shared, Table
from holdfast.errors import UserError
from holdfast.experiments.config import needed, resolve
from holdfast.experiments.request import Request
from holdfast.types import Inputs, Wants
from smallest import prepare, trained

ORDER = "vqav2>nlvr2>snli-ve"
WANTS = Wants(sees="regions")
COLUMNS = {"text", "text_length", "regions", "boxes", "region_count"}
LXMERT = ("id", "height", "width", "objects", "sure", "attributes", "certain", "count", "boxes", "features")
FEW = {"benchmark.train": 24, "benchmark.scored": 16, "train.epochs": 1, "train.patience": 1, "train.batch_size": 8}


@pytest.fixture
def features():
    return world("region_features", "tiny")


@pytest.fixture
def place():
    return Place(scale="tiny")


def learned(name, place, features):
    words = vocabulary_file(Wants(), place)
    splits = [read(name, part, place, vocabulary=words, fit={"pictures": False}) for part in PARTS]
    return with_regions(name, splits, place, str(features))


def lxmert(*files):
    """The rows of LXMERT's files, read by hand: boxes as shares of the sides, and features."""
    csv.field_size_limit(sys.maxsize)
    found = {}
    for path in files:
        with path.open(newline="") as file:
            for line in csv.DictReader(file, LXMERT, delimiter="\t"):
                count, sides = int(line["count"]), [float(line["width"]), float(line["height"])] * 2
                boxes, values = (np.frombuffer(base64.b64decode(line[key]), "<f4") for key in ("boxes", "features"))
                found[line["id"]] = boxes.reshape(count, 4) / sides, values.reshape(count, 2048)
    return found


def assert_shown(part, place, expected):
    """The regions of a row of a batch, or of one of its pictures, are those of a file."""
    boxes, values = expected
    count = len(boxes)
    assert part.inputs["region_count"][place] == count
    assert np.array_equal(part.inputs["regions"][place][:count].numpy(), values.astype(np.float16))
    assert part.inputs["boxes"][place][:count].numpy() == pytest.approx(boxes, abs=1e-6)
    assert not part.inputs["regions"][place][count:].any()


def batch(split):
    """Some rows of a split, from its first to its last, as a model gets them, and their ids."""
    rows = np.linspace(0, len(split.ids) - 1, 9).astype(np.int64)
    (part,) = Data([split.table]).fetch(rows, torch.device("cpu")).parts
    return part, split.ids[rows].tolist()


def test_two_pictures_of_nlvr2_have_the_rows_of_both(place, features):
    rows = lxmert(*(features / "nlvr2_imgfeat").iterdir())
    for split in learned("nlvr2", place, features):
        part, ids = batch(split)
        assert set(part.inputs) == COLUMNS, "no pictures"
        assert part.inputs["regions"].shape[:2] == (len(ids), 2)
        for row, name in enumerate(ids):
            for side in (0, 1):
                assert_shown(part, (row, side), rows[f"{name.rpartition('-')[0]}-img{side}"])


def test_a_question_of_vqav2_has_the_row_of_its_picture(place, features):
    rows = lxmert(*(features / "mscoco_imgfeat").iterdir())
    for split, official in zip(learned("vqav2", place, features), ("train2014", "train2014", "val2014"), strict=True):
        part, ids = batch(split)
        assert set(part.inputs) == COLUMNS
        for row, name in enumerate(ids):  # the world's questions are numbered a thousand to a picture
            assert_shown(part, row, rows[f"COCO_{official}_{int(name) // 1000:012d}"])


def test_a_hypothesis_of_snli_ve_has_the_row_that_the_map_names(place, features):
    rows = {}
    for name in ("train", "val", "test"):
        index = json.loads((features / f"flickr_{name}_map.json").read_text())
        rows |= {image: (features / f"faster_rcnn_flickr_{name}.h5", int(row)) for row, image in index.items()}
    for split in learned("snli-ve", place, features):
        part, ids = batch(split)
        for row, name in enumerate(ids):
            picture = name.partition(".jpg")[0]
            with Image.open(world("snli_ve", "tiny") / "flickr30k_images" / f"{picture}.jpg") as image:
                width, height = image.size
            path, place_there = rows[picture]
            with h5py.File(path) as file:
                count = min(int(file["num_boxes"][place_there]), 36)
                boxes, values = (file[key][place_there, :count] for key in ("bboxes", "bbox_features"))
            assert_shown(part, row, (boxes / [width, height, width, height], values))


def test_a_part_maps_its_own_pictures_alone(place, features):
    splits = learned("vqav2", place, features)
    for split in splits:
        column = split.table.inputs["regions"]
        assert len(column.values) == len({int(name) // 1000 for name in split.ids})
        assert column.index is split.table.inputs["boxes"].index
    each = [split.table.inputs["regions"].values for split in splits]
    for one, next_one in pairwise(each):
        assert one.data_ptr() + one.nbytes == next_one.data_ptr(), "one after the other in one file"


def test_a_whole_run_learns_three_tasks_from_features(features):
    tiny = {"model.width": 16, "model.heads": 2, "model.hidden": 16, "benchmark.features": str(features)}
    asked = Request("climb", "er", "uniter-tiny", scale="tiny", order=ORDER, settings=FEW | tiny | {"replay.every": 1})
    ready = prepare(asked)
    assert ready.setup.inputs.image is None
    assert ready.setup.inputs.images == 2
    boxes = [int(table.inputs["region_count"].values.max()) for table in ready.setup.data.tables]
    assert ready.setup.inputs.regions == (max(boxes), 2048)
    assert "features" not in ready.config.content["benchmark"], "where they lie makes no other run; what they are does"
    learner, log = trained(ready)
    assert len(log.scores) == (3 + 1) * 2 * 3
    assert all(torch.isfinite(value).all() for value in learner.model.state_dict().values())


def test_the_papers_scale_takes_features(features, tmp_path):
    for name in ("vqav2", "nlvr2", "snli_ve"):
        (tmp_path / name).symlink_to(world(name, "tiny"))
    words = vocabulary_file(Wants(), Place(scale="tiny"))
    own = Climb(scale="paper", order=ORDER, data=str(tmp_path), features=str(features), train=16, scored=8)
    setup = own.setup(Wants(sees="regions", vocabulary=words))
    assert [stage.training.epochs for stage in setup.stream.stages] == [10, 10, 5]
    assert all(set(table.inputs) == COLUMNS for table in setup.data.tables)
    assert not setup.data.reads_ahead, "no picture is decoded"
    with pytest.raises(UserError, match=r"region features \(--set benchmark.features=DIR, or"):
        Climb(scale="paper", order=ORDER, data=str(tmp_path)).setup(WANTS)


def test_what_has_no_features_is_refused_in_a_sentence(features, tmp_path):
    with pytest.raises(UserError, match="no features of the images of vcr: add img_db/vcr_train, img_db/vcr_val"):
        Climb(scale="tiny", features=str(features)).setup(WANTS)
    with pytest.raises(UserError, match="for models that take regions"):
        Climb(scale="tiny", order=ORDER, features=str(features)).setup(Wants(side=32))
    with pytest.raises(UserError, match="contains no region_features"):
        Climb(scale="tiny", order=ORDER, features=str(tmp_path)).setup(WANTS)
    with pytest.raises(UserError, match="uses pictures"):
        LowShot("imdb", scale="tiny", features=str(features)).setup(WANTS)


def test_a_missing_file_and_a_missing_picture_are_named(features, place, tmp_path):
    (tmp_path / "mscoco_imgfeat").symlink_to(features / "mscoco_imgfeat")
    with pytest.raises(UserError, match=r"images of nlvr2: add nlvr2_imgfeat/train_obj36.tsv"):
        learned("nlvr2", place, tmp_path)
    folder = tmp_path / "nlvr2_imgfeat"
    folder.mkdir()
    (folder / "train_obj36.tsv").symlink_to(features / "nlvr2_imgfeat" / "train_obj36.tsv")
    with pytest.raises(UserError, match=r"nlvr2_imgfeat/valid_obj36.tsv: no such file"):
        learned("nlvr2", place, tmp_path)
    (folder / "valid_obj36.tsv").symlink_to(features / "nlvr2_imgfeat" / "valid_obj36.tsv")
    lines = (features / "nlvr2_imgfeat" / "test_obj36.tsv").read_bytes().splitlines(keepends=True)
    (folder / "test_obj36.tsv").write_bytes(b"".join(lines[:5] + lines[6:]))
    with pytest.raises(UserError, match=f"no features for the image '{lines[5].partition(bytes([9]))[0].decode()}'"):
        learned("nlvr2", place, tmp_path)


def test_features_of_two_widths_are_refused():
    def split(task, width):
        column = Shared(torch.zeros(1, 2, width), torch.zeros(1, dtype=torch.int64))
        return PreparedSplit(Table(task, {"regions": column}, torch.zeros(1)), np.array(["a"]), {}, ())

    assert region_inputs(Inputs(), [split("vqav2", 5), split("nlvr2", 5)]).regions == (2, 5)
    with pytest.raises(UserError, match="features of vqav2 are 5 wide, those of snli-ve 7"):
        region_inputs(Inputs(), [split("vqav2", 5), split("vqav2", 5), split("snli-ve", 7)])


def test_few_examples_are_learned_from_features_or_from_a_grid(features):
    own = LowShot("nlvr2", scale="tiny", shots="8", features=str(features)).setup(WANTS)
    assert own.data.tables[0].inputs["regions"].index.shape == (16, 2)
    assert own.inputs.regions[1] == 2048
    assert LowShot("snli-ve", scale="tiny", shots="8").setup(WANTS).inputs.regions == (16, 192)


def test_runs_that_are_needed_are_given_the_features():
    settings = {"benchmark.features": "somewhere", "benchmark.downstream": True}
    asked = resolve(Request("climb", "ewc", "uniter-tiny", scale="tiny", order=ORDER, settings=settings))
    needs = asked.benchmark.needs("ewc")
    few = {name: transfer.LowShotRun.parse(name) for name in needs if transfer.LowShotRun.parse(name)}
    assert {(each.stage, each.task) for each in few.values()} == {
        (0, "nlvr2"),
        (0, "snli-ve"),
        (1, "nlvr2"),
        (1, "snli-ve"),
        (2, "snli-ve"),
    }, "there are no features for language and vision tasks"
    assert set(needs) - set(few) == {f"direct/{name}" for name in ORDER.split(">")}
    for need in needs.values():
        assert resolve(needed(asked, need, "5296284bc28b")).benchmark.features == "somewhere"
