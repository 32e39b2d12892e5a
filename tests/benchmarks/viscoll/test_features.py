import h5py
import numpy as np
import pytest
import torch
from PIL import Image

from holdfast.benchmarks.source import open_source
from holdfast.benchmarks.synthetic import world
from holdfast.benchmarks.viscoll import features
from holdfast.benchmarks.viscoll.features import read_regions
from holdfast.benchmarks.viscoll.phrases import read_phrases
from holdfast.data.regions import BOXES
from holdfast.datasets import coco, flickr30k_entities
from holdfast.errors import UserError
from holdfast.models.region_network import MARGIN, SIDE, WIDTH, crops, trained_region_network
from holdfast.pretraining.region_network import accuracies, draw


@pytest.fixture
def regions():
    return read_regions("coco", scale="tiny")


def pictures():
    return {
        example.id: example
        for split in ("train2017", "val2017")
        for example in coco.DATASET.examples(world("coco", "tiny"), split)
    }


def test_every_image_that_a_phrase_is_about_has_regions(regions):
    for dataset in ("coco", "flickr"):
        found = read_regions(dataset, scale="tiny")
        assert found.has([phrase.image for phrase in read_phrases(dataset, scale="tiny")]).all()
        assert found.shape[1] == WIDTH


def test_the_whole_image_comes_first_and_then_the_annotated_boxes(regions):
    examples = pictures()
    assert set(regions.ids.tolist()) == set(examples)
    assert regions.shape[0] == int(regions.counts.max()) <= BOXES
    for row, name in enumerate(regions.ids.tolist()):
        extra, count = examples[name].extra, int(regions.counts[row])
        assert regions.boxes[row, 0].tolist() == [0, 0, 1, 1]
        assert count == 1 + len(extra["boxes"])
        for (x, y, w, h), corners in zip(extra["boxes"], regions.boxes[row, 1:count].tolist(), strict=True):
            sides = extra["width"], extra["height"], extra["width"], extra["height"]
            expected = np.array([x, y, x + w, y + h]) / sides
            assert corners == pytest.approx(expected.clip(0, 1).tolist(), abs=1e-5)
        assert not regions.values[row, count:].any()
        assert not regions.boxes[row, count:].any()


def test_a_feature_is_what_the_network_sees_in_the_box(regions):
    """The same picture, cut and shrunk by other means."""
    examples = pictures()
    row = int(np.flatnonzero(regions.counts.numpy() > 2)[0])
    example, box = examples[str(regions.ids[row])], regions.boxes[row, 1].numpy()
    picture = Image.open(example.images[0]).convert("RGB")
    margin = np.tile(box[2:] - box[:2], 2) * MARGIN * [-1, -1, 1, 1]
    corners = (box + margin).clip(0, 1) * np.array(picture.size * 2)
    turned = picture.transform((SIDE, SIDE), Image.Transform.EXTENT, tuple(corners), Image.Resampling.BILINEAR)
    crop = torch.from_numpy(np.asarray(turned).transpose(2, 0, 1).copy())[None]
    seen = trained_region_network()(crop, torch.from_numpy(box)[None])[0]
    ours = regions.values[row, 1].float()
    alike = torch.nn.functional.cosine_similarity(seen, regions.values.float().flatten(0, 1)[:, :], dim=1)
    assert float(torch.nn.functional.cosine_similarity(seen, ours, dim=0)) > 0.8
    assert int(alike.argmax()) == row * regions.shape[0] + 1, "no other box of the world looks more like it"


def test_crops_are_of_what_lies_in_the_box():
    pixels = np.zeros((60, 80, 3), np.uint8)
    pixels[30:, 40:] = (250, 10, 20)
    found = crops(Image.fromarray(pixels), np.array([[0.6, 0.6, 0.9, 0.9], [0, 0, 0.4, 0.4]], np.float32))
    assert found.shape == (2, 3, SIDE, SIDE)
    assert found[0].mean((1, 2)).tolist() == [250, 10, 20]
    assert not found[1].any()


def test_the_network_names_what_it_has_never_seen():
    found = accuracies(trained_region_network(), draw(range(2_000_000, 2_000_060)))
    assert found["name"] > 0.85
    assert found["colour"] > 0.8
    assert found["verb"] > 0.7
    assert found["place"] > 0.9


def test_columns_share_the_features_of_an_image(regions):
    names = [str(regions.ids[3]), str(regions.ids[0]), str(regions.ids[3])]
    columns = regions.columns(names)
    assert set(columns) == {"regions", "boxes", "region_count"}
    for name, whole in (("regions", regions.values), ("boxes", regions.boxes), ("region_count", regions.counts)):
        assert columns[name].values.data_ptr() == whole.data_ptr()
    rows = columns["regions"].rows(torch.tensor([0, 2]))
    assert torch.equal(rows[0], rows[1])
    assert torch.equal(rows[0], regions.values[3])
    with pytest.raises(UserError, match="no features for the image 'nine'"):
        regions.columns(["nine"])
    assert regions.has(["nine", names[0]]).tolist() == [False, True]


def test_features_are_computed_once(regions, monkeypatch):
    monkeypatch.setattr(features, "trained_region_network", None)
    again = read_regions("coco", scale="tiny")
    assert torch.equal(again.values, regions.values)
    with pytest.raises(TypeError):
        read_regions("coco", scale="tiny", boxes=3)


def test_fewer_boxes_keep_the_first_ones(regions):
    fewer = read_regions("coco", scale="tiny", boxes=2)
    assert fewer.shape[0] == 2
    assert torch.equal(fewer.values, regions.values[:, :2])
    assert torch.equal(fewer.counts, regions.counts.clamp(max=2))


def test_boxes_of_all_captions_of_a_flickr_image():
    folder, found = world("flickr30k_entities", "tiny"), read_regions("flickr", scale="tiny")
    boxes: dict[str, set] = {}
    for example in flickr30k_entities.DATASET.examples(folder, "val"):
        own = boxes.setdefault(example.extra["image_id"], set())
        own |= {box for phrase in example.extra["phrases"] for box in phrase["boxes"]}
    rows = {name: row for row, name in enumerate(found.ids.tolist())}
    assert all(int(found.counts[rows[name]]) == 1 + len(own) for name, own in boxes.items())


@pytest.mark.parametrize("dataset", ["coco", "flickr"])
def test_official_files_are_read_as_they_are(dataset):
    folder = world("region_features", "tiny")
    found = read_regions(dataset, scale="tiny", features=str(folder))
    split = {"coco": "coco_val", "flickr": "flickr_val"}[dataset]
    names = [example.id for example in open_source("region_features", data=str(folder)).examples(split)]
    rows = [found.ids.tolist().index(name) for name in names]
    with h5py.File(folder / f"faster_rcnn_{split}.h5") as file:
        counts = np.minimum(file["num_boxes"][:], BOXES)
        assert found.counts[rows].tolist() == counts.tolist()
        for row, count, values, boxes in zip(rows, counts, file["bbox_features"], file["bboxes"], strict=True):
            assert np.array_equal(found.values[row, :count].numpy(), values[:count].astype(np.float16))
            # Pictures stand upright or lie: their sides are 72 and 96 either way.
            shares = found.boxes[row, :count].numpy()
            assert any(np.allclose(shares * sides, boxes[:count], atol=1e-3) for sides in ([96, 72] * 2, [72, 96] * 2))


def test_official_files_may_lack_images():
    found = read_regions("coco", scale="tiny", features=str(world("region_features", "tiny")))
    assert 0 < found.has(list(pictures())).mean() < 1


@pytest.mark.parametrize(
    ("dataset", "source", "needed"),
    [
        ("coco", "coco", ["captions_train2017.json", "captions_val2017.json"]),
        ("flickr", "flickr30k_entities", ["Sentences", "Annotations", "train.txt", "val.txt", "test.txt"]),
    ],
)
def test_captions_and_features_do_without_pictures(dataset, source, needed, tmp_path, unmarked):
    """COCO needs no boxes either. What is built is the same as with all files."""
    whole, folder = unmarked(source, tmp_path / "whole"), str(world("region_features", "tiny"))
    few = tmp_path / "few"
    few.mkdir()
    for name in needed:
        (found,) = world(source, "tiny").rglob(name)
        (few / name).symlink_to(found)
    assert read_phrases(dataset, data=str(few)) == read_phrases(dataset, data=str(whole))
    alone, beside = (read_regions(dataset, data=str(data), features=folder) for data in (few, whole))
    assert alone.ids.tolist() == beside.ids.tolist()
    assert torch.equal(alone.values, beside.values)
    assert torch.equal(alone.boxes, beside.boxes)


def test_tsv_files_do_as_well(tmp_path):
    """Bottom-up files name their images by number, LXMERT's by the names of files."""
    folder = world("region_features", "tiny")
    (tmp_path / "trainval_36").symlink_to(folder / "trainval_36")
    found = read_regions("coco", scale="tiny", features=str(tmp_path))
    assert found.shape == (BOXES, 2048)
    example = next(open_source("region_features", data=str(folder)).examples("trainval_36"))
    row = found.ids.tolist().index(example.id)
    assert np.array_equal(found.values[row].numpy(), example.extra["features"].astype(np.float16))
    width, height = example.extra["image_w"], example.extra["image_h"]
    assert found.boxes[row].numpy() == pytest.approx(example.extra["boxes"] / [width, height, width, height], abs=1e-5)
    with pytest.raises(UserError, match="no features of the images of flickr"):
        read_regions("flickr", scale="tiny", features=str(tmp_path))


@pytest.mark.parametrize(("dataset", "name"), [("coco", "coco"), ("flickr", "flickr30k_entities")])
def test_the_worlds_pictures_are_known_wherever_they_lie(dataset, name):
    found, given = read_regions(dataset, scale="tiny"), read_regions(dataset, data=str(world(name, "tiny")))
    assert given.ids.tolist() == found.ids.tolist()
    assert torch.equal(given.values, found.values)


def test_photographs_need_features_of_their_own(tmp_path, unmarked):
    with pytest.raises(UserError, match="knows only synthetic pictures"):
        read_regions("coco", data=str(unmarked("coco", tmp_path / "photographs")))
    with pytest.raises(UserError, match="contains no region_features"):
        read_regions("coco", scale="tiny", features=str(tmp_path))
