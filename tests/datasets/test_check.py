"""What a folder is said to hold, and that it counts as the preparation does."""

import shutil

import numpy as np
import pytest
from PIL import Image

from holdfast import registry
from holdfast.cli import data as cli
from holdfast.datasets import coco, snli_ve
from holdfast.datasets.base import Dataset
from holdfast.datasets.check import check
from holdfast.datasets.whole import prepare_all
from holdfast.errors import UserError
from holdfast.types import Example


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("written") / "coco"
    registry.WRITERS["coco"].load()(folder, "tiny", 0)
    (folder / "annotations" / "instances_val2014.json").unlink()  # with the flat box, which is bad
    return folder


@pytest.fixture
def questions(tmp_path):
    """Five questions about pairs of pictures, of which two are broken; one question shows both."""
    paths = [tmp_path / f"{number}.png" for number in range(4)]
    for number, path in enumerate(paths):
        Image.fromarray(np.full((8, 8, 3), 60 * number, np.uint8)).save(path)
    for path in paths[:2]:
        path.write_bytes(path.read_bytes()[:20])
    pairs = [(0, 1), (0, 2), (2, 3), (3, 0), (3, 2)]
    examples = [Example(f"q{row}", 0, (paths[a], paths[b]), "what?") for row, (a, b) in enumerate(pairs)]
    return Dataset("pairs", ("train",), lambda *_: iter(examples), lambda folder: True, {})


def test_a_broken_picture_is_as_many_bad_records_as_show_it_for_check_and_preparation(questions, tmp_path):
    (finding,) = check(tmp_path, {"pairs": questions}, every_image=True)
    assert [problem.record for problem in finding.problems] == ["example q0", "example q1", "example q3"]
    for problem in finding.problems:
        assert str(problem).startswith(f"{tmp_path}/0.png, {problem.record}: cannot be decoded (")
        assert str(problem).count("0.png") == 1
    allowed = len(finding.problems)
    with pytest.raises(UserError, match=r"example q3: .*\(one of 3 such examples; 2 may be left out\)"):
        prepare_all(questions, tmp_path, tmp_path / "out", size=8, skip_bad=allowed - 1)
    (split,) = prepare_all(questions, tmp_path, tmp_path / "out", size=8, skip_bad=allowed)
    assert (split.examples, len(split.dropped)) == (2, allowed)


def test_a_record_that_is_not_of_the_task_is_counted_and_is_no_bad_one(tmp_path, capsys):
    registry.WRITERS["snli_ve"].load()(tmp_path / "snli_ve", "tiny", 0)
    file = next((tmp_path / "snli_ve").rglob("snli_ve_dev.jsonl"))
    lines = file.read_text().splitlines()
    lines[:2] = [line.replace('"gold_label": "', '"gold_label": "-", "was": "') for line in lines[:2]]
    file.write_text("\n".join(lines) + "\n")
    dev = {finding.split: finding for finding in check(tmp_path, {"snli_ve": snli_ve.DATASET})}["dev"]
    assert (dev.verdict, dev.examples, dev.aside) == ("part", len(lines) - 2, {"without a gold label": 2})
    told = "Not used in snli_ve, dev: 2 without a gold label."
    cli.check(tmp_path)
    assert told in capsys.readouterr().out
    cli.prepare("snli_ve", tmp_path / "snli_ve", out=tmp_path / "out", size=8)
    assert "Not used in dev: 2 without a gold label." in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["captions", "instances"])
def test_a_coco_without_one_of_its_annotation_files_is_no_failure_but_told(kind, written, tmp_path, capsys):
    """With the folder, for there may be a second one."""
    shutil.copytree(written, tmp_path / "coco")
    shutil.copytree(written, tmp_path / "second")
    (tmp_path / "second" / "annotations" / f"{kind}_val2017.json").unlink()
    found = {(f.folder, f.split): f for f in check(tmp_path, {"coco": coco.DATASET})}
    second = found[str(tmp_path / "second"), "val2017"]
    assert (second.verdict, second.lacks) == ("part", (f"annotations/{kind}_val2017.json",))
    assert found[str(tmp_path / "coco"), "val2017"].lacks == ()
    assert found[str(tmp_path / "second"), "val2017"].examples == found[str(tmp_path / "coco"), "val2017"].examples
    cli.check(tmp_path)
    shown = " ".join(capsys.readouterr().out.split())
    first, others = (f"coco in {tmp_path / name}: annotations/instances_val2014.json" for name in ("coco", "second"))
    assert f"Not here: {first}; {others}, annotations/{kind}_val2017.json." in shown


@pytest.mark.parametrize("name", ["coco", "flickr30k_entities"])
def test_captions_without_any_picture_are_enough(name, tmp_path, capsys):
    """A benchmark on captions and features needs no pictures; where some are there, a missing one is a bad record."""
    folder, dataset = tmp_path / "data", registry.DATASETS[name].load()
    registry.WRITERS[name].load()(folder, "tiny", 0, images=False)
    for path in folder.rglob("instances_*"):
        path.unlink()
    found = [finding for finding in check(folder, {name: dataset}) if not finding.absent]
    assert found
    assert all(finding.examples and not finding.problems for finding in found)
    assert all("the pictures" in finding.lacks for finding in found)
    cli.check(folder)
    assert "the pictures" in capsys.readouterr().out
    place = folder / ("val2014" if name == "coco" else "flickr30k-images")
    place.mkdir(exist_ok=True)
    (place / "another.jpg").touch()
    assert {finding.verdict for finding in check(folder, {name: dataset}) if not finding.absent} == {"bad"}


def test_what_is_absent_is_told_with_its_folder(written, tmp_path, capsys):
    for name, year in (("old", 2017), ("new", 2014)):
        shutil.copytree(written, tmp_path / name)
        for file in (tmp_path / name / "annotations").glob(f"*{year}.json"):
            file.unlink()
    cli.check(tmp_path)
    shown, lost = " ".join(capsys.readouterr().out.split()), "annotations/instances_val2014.json"
    new, old = tmp_path / "new", tmp_path / "old"
    assert f"Not here: coco in {new}: train2014, val2014; coco in {old}: {lost}, train2017, val2017." in shown


def test_a_dataset_of_numbers_is_not_shown(tmp_path):
    registry.WRITERS["region_features"].load()(tmp_path, "tiny", 0)
    with pytest.raises(UserError, match="region_features has neither pictures nor text"):
        cli.show("region_features", tmp_path, out=tmp_path / "sheet.png")
    assert not (tmp_path / "sheet.png").exists()
