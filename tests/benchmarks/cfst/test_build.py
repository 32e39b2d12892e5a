"""Building CGQA, COBJ and CPIN, on pictures of the world and on flat colours; checked on the files alone."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter, defaultdict

import numpy as np
import pytest
import typer
from PIL import Image
from typer.testing import CliRunner

from holdfast.benchmarks.cfst.build import MARKS, build, verify
from holdfast.benchmarks.cfst.building import register_build
from holdfast.benchmarks.cfst.combinations import listed, of_folder
from holdfast.benchmarks.cfst.plan import SHARES, make_plan, spread
from holdfast.benchmarks.cfst.sources import part_name
from holdfast.benchmarks.synthetic import world
from holdfast.datasets import cgqa, cobj
from holdfast.datasets.base import DataError
from holdfast.errors import RunError, UserError
from holdfast.world.draw import render, save_image
from holdfast.world.scene import make_scene
from holdfast.world.writers import gqa as gqa_writer

KNOWN = ["hat", "helmet", "pole", "shirt", "shoe", "shorts"]
NOUNS = [*KNOWN, "bowl", "cake"]  # (bowl, cake) is a combination of noc
WIDTH, HEIGHT = 200, 150
PER = (6, 1, 2)
FILES = {
    "train": "continual/train/train.json",
    "val": "continual/val/val.json",
    "test": "continual/test/test.json",
    "sys": "fewshot/sys/sys_fewshot.json",
    "pro": "fewshot/pro/pro_fewshot.json",
    "sub": "fewshot/sub/sub_fewshot.json",
    "non": "fewshot/non_novel/non_novel_fewshot.json",
    "noc": "fewshot/non_comp/non_comp_fewshot.json",
}


@pytest.fixture(scope="module")
def gqa(tmp_path_factory):
    """GQA's scene graphs and pictures with the things of CGQA, some of them in the colours of `sub`."""
    folder = tmp_path_factory.mktemp("gqa")
    graphs = {}
    for number in range(90):
        random = np.random.default_rng([5, number])
        scene = make_scene(5, number, nouns=[str(noun) for noun in random.choice(NOUNS, 3, replace=False)])
        save_image(folder / "images" / f"{number}.jpg", render(scene, WIDTH, HEIGHT), "jpeg")
        objects = {}
        for index, thing in enumerate(scene.things):
            box = {"x": thing.box.left * WIDTH, "y": thing.box.top * HEIGHT}
            box |= {"w": max(1, thing.box.width * WIDTH), "h": max(1, thing.box.height * HEIGHT)}
            kept = [listed("cgqa").attributes.get(thing.noun, "small")] if random.random() < 0.25 else ["plain"]
            objects[f"{number}{index}"] = {
                "name": thing.noun,
                **{side: round(value) for side, value in box.items()},
                "attributes": kept,
                "relations": [],
            }
        graphs[str(number)] = {"width": WIDTH, "height": HEIGHT, "objects": objects}
    (folder / "train_sceneGraphs.json").write_text(json.dumps(graphs))
    return folder


@pytest.fixture(scope="module")
def built(gqa, tmp_path_factory):
    """CGQA from these pictures, and what was said about it."""
    out = tmp_path_factory.mktemp("built") / "cgqa"
    return out, build("cgqa", gqa, out, per_combination=PER, seed=3, workers=1)


def records(out, split):
    path = out / "CGQA" / "GQA_100" / FILES[split]
    return json.loads(path.read_text()) if path.exists() else []


def digest(folder):
    """A hash of all files, names and bytes."""
    found = hashlib.sha256()
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        found.update(f"{path.relative_to(folder)};".encode() + path.read_bytes())
    return found.hexdigest()


def instances(found):
    return {(o["imageName"], o["objName"], tuple(o["boundingBox"])) for each in found for o in each["objects"]}


def test_the_reader_of_the_published_archive_reads_it(built):
    out, report = built
    trained = [each for each in listed("cgqa").trained if set(each) <= set(KNOWN)]
    assert len(trained) > 5
    for split, count in (("train", 6), ("val", 1), ("test", 2), ("non", 2)):
        found = Counter(example.extra["comb"] for example in cgqa.DATASET.examples(out, split))
        assert found.keys() == set(trained)
        assert set(found.values()) == {count}
    for split, wanted in (("sys", listed("cgqa").sys), ("pro", listed("cgqa").pro), ("sub", listed("cgqa").sys)):
        found = {example.extra["comb"] for example in cgqa.DATASET.examples(out, split)}
        assert found == {each for each in wanted if set(each) <= set(KNOWN)}
    assert {example.extra["comb"] for example in cgqa.DATASET.examples(out, "noc")} == {("bowl", "cake")}
    assert list(of_folder(out, "cgqa").trained) == trained
    assert [row.split for row in report.rows] == list(FILES)
    assert not (out / MARKS).exists()


def test_no_instance_is_in_two_sets_and_no_source_picture_in_two_of_four(built):
    out, _ = built
    fewshot = [each for split in ("sys", "pro", "non", "noc") for each in records(out, split)]
    sets = {split: instances(records(out, split)) for split in ("train", "val", "test", "sub")}
    sets["fewshot"] = instances(fewshot)
    assert all(sets.values())
    for one in sets:
        for other in sets:
            if one < other:
                assert not sets[one] & sets[other]
                if "sub" not in (one, other):
                    assert not {each[0] for each in sets[one]} & {each[0] for each in sets[other]}


def test_only_large_things_are_used_and_the_kept_attribute_only_in_sub(built):
    out, _ = built
    kept = listed("cgqa").attributes
    for split in FILES:
        assert records(out, split)
        for each in records(out, split):
            assert [thing["objName"] for thing in each["objects"]] == each["comb"]
            for thing in each["objects"]:
                assert min(thing["boundingBox"][2:]) >= 30
                assert (kept.get(thing["objName"]) in thing["attributes"]) == (split == "sub")


def test_each_thing_fills_its_cell_and_the_rest_is_black(built, gqa):
    out, _ = built
    seen = set()
    for each in [*records(out, "train")[::7], *records(out, "pro")]:
        picture = np.asarray(Image.open(out / "CGQA" / "GQA_100" / f"{each['newImageName']}.jpg"), np.float64)
        assert picture.shape == (224, 224, 3)
        for position in range(1, 5):
            top, left = 112 * ((position - 1) // 2), 112 * ((position - 1) % 2)
            cell = picture[top : top + 112, left : left + 112]
            if position not in each["position"]:
                assert cell[16:-16, 16:-16].max() < 8  # away from the neighbours' JPEG blocks
                continue
            thing = each["objects"][each["position"].index(position)]
            x, y, width, height = thing["boundingBox"]
            with Image.open(gqa / "images" / f"{thing['imageName']}.jpg") as source:
                right = source.convert("RGB").crop((x, y, min(x + width, WIDTH), min(y + height, HEIGHT)))
            assert np.abs(cell - np.asarray(right.resize((112, 112), Image.Resampling.BICUBIC), np.float64)).mean() < 6
            seen.add(position)
    assert seen == {1, 2, 3, 4}


def test_two_pictures_of_a_combination_show_other_things(built):
    out, _ = built
    for split in FILES:
        shown = Counter(str([each["comb"], each["objects"]]) for each in records(out, split))
        assert max(shown.values()) == 1


def test_what_is_missing_is_told_with_the_reason(built):
    _, report = built
    rows = {row.split: row for row in report.rows}
    assert rows["train"].listed == 100
    assert rows["train"].pictures == 6 * rows["train"].present
    assert rows["train"].reasons["fence, flower"].startswith("no fence in train; no flower in train; no fence in val")
    assert rows["noc"].reasons["bowl, candle"] == "no candle in fewshot"
    assert len(rows["noc"].reasons) == 99
    assert "hat, helmet" not in rows["sys"].reasons


def test_fewer_things_give_fewer_pictures_and_it_is_said(gqa, tmp_path):
    report = build("cgqa", gqa, tmp_path / "out", per_combination=(4, 40, 2), seed=3, workers=1)
    row = {each.split: each for each in report.rows}["val"]
    short = {each: why for each, why in row.reasons.items() if why.startswith("val has only")}
    assert short
    for each, why in short.items():
        sizes = [int(word.split(" x ")[0]) for word in why.removeprefix("val has only ").split(", ")]
        there = sum(", ".join(found["comb"]) == each for found in records(tmp_path / "out", "val"))
        assert there == np.prod(sizes) < 40


def test_the_same_bytes_whatever_the_number_of_processes(built, gqa, tmp_path):
    out, report = built
    again = build("cgqa", gqa, tmp_path / "two", per_combination=PER, seed=3, workers=2)
    assert digest(out) == digest(tmp_path / "two")
    assert again.rows == report.rows
    build("cgqa", gqa, tmp_path / "other", per_combination=(1, 1, 1), seed=4, workers=1)
    assert records(tmp_path / "other", "train")[0]["objects"] != records(out, "train")[0]["objects"]


def test_a_killed_build_goes_on(built, gqa, tmp_path):
    out, _ = built
    lines = [
        "import os, signal, sys",
        "from pathlib import Path",
        "from holdfast.benchmarks.cfst.build import build",
        "stop = lambda done, total: os.kill(os.getpid(), signal.SIGKILL) if done > 40 else None",
        f"build('cgqa', Path(sys.argv[1]), Path(sys.argv[2]), per_combination={PER}, seed=3, workers=1, progress=stop)",
    ]
    call = [sys.executable, "-c", "\n".join(lines), str(gqa), str(tmp_path / "out")]
    assert subprocess.run(call, check=False).returncode == -signal.SIGKILL
    assert not (tmp_path / "out").exists()
    part = tmp_path / ".out.part"
    drawn = sorted(part.rglob("*.jpg"))
    assert len(drawn) == 42  # seven combinations of six: the first count above forty
    torn = part / "CGQA" / "GQA_100" / "continual" / "train" / "42.jpg"
    torn.write_bytes(b"half a pic")
    os.utime(drawn[0], (1, 1))
    steps = []
    build(
        "cgqa",
        gqa,
        tmp_path / "out",
        per_combination=PER,
        seed=3,
        workers=1,
        progress=lambda done, total: steps.append(done),
    )
    assert steps[0] == 42
    assert digest(tmp_path / "out") == digest(out)
    assert (tmp_path / "out" / drawn[0].relative_to(part)).stat().st_mtime == 1
    assert not part.exists()


def test_what_another_plan_left_is_not_used(built, gqa, tmp_path):
    out, _ = built
    left = tmp_path / ".out.part" / MARKS
    left.mkdir(parents=True)
    (left / "plan").write_text("another")
    (left / "train-0").touch()
    build("cgqa", gqa, tmp_path / "out", per_combination=PER, seed=3, workers=1)
    assert digest(tmp_path / "out") == digest(out)


def test_a_finished_build_is_told_again_and_another_one_refused(built, gqa):
    out, report = built

    def never(done, total):
        raise AssertionError("nothing is left to draw")

    again = build("cgqa", gqa, out, per_combination=PER, seed=3, workers=1, progress=never)
    assert again == report
    with pytest.raises(UserError, match="does not hold this build"):
        build("cgqa", gqa, out, per_combination=PER, seed=4, workers=1)


@pytest.fixture
def copy(built, tmp_path):
    shutil.copytree(built[0], tmp_path / "copy")
    return tmp_path / "copy"


def test_a_broken_picture_is_found(copy):
    path = copy / "CGQA" / "GQA_100" / "fewshot" / "sys" / "1.jpg"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(RunError, match=r"1\.jpg is incomplete"):
        verify("cgqa", copy)


def test_an_instance_in_two_sets_is_found(copy):
    path = copy / "CGQA" / "GQA_100" / FILES["test"]
    found = json.loads(path.read_text())
    found[0]["objects"][0] = records(copy, "train")[0]["objects"][0]
    path.write_text(json.dumps(found))
    with pytest.raises(RunError, match="is in test and train"):
        verify("cgqa", copy)


def test_a_source_picture_in_two_sets_is_found(copy):
    path = copy / "CGQA" / "GQA_100" / FILES["noc"]
    found = json.loads(path.read_text())
    found[0]["objects"][0]["imageName"] = records(copy, "val")[0]["objects"][0]["imageName"]
    path.write_text(json.dumps(found))
    with pytest.raises(RunError, match=r"the picture .* is in fewshot and val"):
        verify("cgqa", copy)


def test_a_combination_that_is_not_listed_is_found(copy):
    path = copy / "CGQA" / "GQA_100" / FILES["sys"]
    found = json.loads(path.read_text())
    found[0]["comb"] = ["door", "wall"]
    path.write_text(json.dumps(found))
    with pytest.raises(RunError, match="door, wall is not listed for sys"):
        verify("cgqa", copy)


def test_pictures_are_spread_by_the_shares_for_each_concept():
    random = np.random.default_rng(0)
    shown = {}
    for number in range(2000):
        concepts = random.choice(list("abcdefgh"), int(random.integers(1, 4)), replace=False, p=np.arange(1, 9) / 36)
        shown[str(number)] = {str(each): int(random.integers(1, 4)) for each in concepts}
    shown |= {f"rare{number}": {"rare": 1, "h": 1} for number in range(4)}
    owners = spread(shown, seed=1)
    assert owners == spread(dict(reversed(shown.items())), seed=1) != spread(shown, seed=2)
    sums = defaultdict(Counter)
    for picture, concepts in shown.items():
        for concept, count in concepts.items():
            sums[concept][owners[picture]] += count
    assert set(sums.pop("rare").values()) == {1}
    for counts in sums.values():
        for name, share in SHARES.items():
            assert abs(counts[name] / counts.total() - share) < 0.06


# --- COBJ ---

COLOURS = {
    "Person": (220, 40, 40),
    "Hat": (40, 200, 40),
    "Glasses": (40, 40, 220),
    "Car": (220, 200, 40),
    "Cup": (200, 40, 200),
    "Plate": (40, 200, 200),
}
SHOWN = {
    ("Hat", "Person"): 9,
    ("Glasses", "Person"): 6,
    ("Car", "Person"): 4,
    ("Glasses", "Hat"): 3,
    ("Car", "Glasses", "Hat", "Person"): 2,
    ("Cup", "Plate"): 3,
    ("Person",): 2,
}


@pytest.fixture(scope="module")
def objects365(tmp_path_factory):
    """Pictures of coloured squares; each has a small hat too where none is in its combination, and people."""
    folder = tmp_path_factory.mktemp("objects365")
    names = [*COLOURS, "Bakset"]
    images, annotations = [], []
    for combination, count in SHOWN.items():
        for _ in range(count):
            number = len(images)
            picture = Image.new("RGB", (300, 200), (128, 128, 128))
            for place, concept in enumerate(combination):
                box = [20 + 60 * place, 30 + number, 40, 32]
                picture.paste(COLOURS[concept], (box[0], box[1], box[0] + box[2], box[1] + box[3]))
                annotations.append({"image_id": number, "category_id": 1 + names.index(concept), "bbox": box})
            if "Person" in combination and "Hat" not in combination:
                annotations.append({"image_id": number, "category_id": 2, "bbox": [250, 150, 29, 40]})
            name = f"objects365_v1_{number:08d}.jpg"
            (folder / "patch0").mkdir(exist_ok=True)
            picture.save(folder / "patch0" / name, quality=95)
            images.append({"id": number, "file_name": f"images/v1/patch0/{name}"})
    annotations = [{"id": number, **each} for number, each in enumerate(annotations)]
    categories = [{"id": number, "name": f"{name} "} for number, name in enumerate(names, 1)]
    content = {"images": images, "annotations": annotations, "categories": categories}
    (folder / "zhiyuan_objv2_train.json").write_text(json.dumps(content))
    return folder


def test_cobj_is_cut_from_the_pictures_that_show_just_its_combinations(objects365, tmp_path):
    out = tmp_path / "cobj"
    report = build("cobj", objects365, out, per_combination=(10, 2, 2), workers=1)
    found = {split: list(cobj.DATASET.examples(out, split)) for split in ("train", "val", "test", "sys", "pro", "non")}
    found["noc"] = list(cobj.DATASET.examples(out, "noc"))
    counts = {split: Counter(example.extra["label"] for example in examples) for split, examples in found.items()}
    hat, glasses, car = (tuple(sorted((name, "Person"))) for name in ("Hat", "Glasses", "Car"))
    # Of nine pictures, as ten to two to two to two would have them; each set has at least one.
    assert counts["train"] == {hat: 6, glasses: 3, car: 1}
    assert counts["val"] == counts["test"] == counts["non"] == {hat: 1, glasses: 1, car: 1}
    assert counts["sys"] == {("Glasses", "Hat"): 2}
    assert counts["pro"] == {("Car", "Glasses", "Hat", "Person"): 2}
    assert counts["noc"] == {("Cup", "Plate"): 2}
    everything = [example.id for examples in found.values() for example in examples]
    assert len(set(everything)) == len(everything)
    assert of_folder(out, "cobj").trained == (car, glasses, hat)  # in the paper's order
    rows = {row.split: row for row in report.rows}
    assert rows["train"].reasons["Hat, Person"] == "the source has 9 pictures of it"
    assert rows["train"].reasons["Chair, Desk"] == "the source has 0 pictures of it"
    for example in (*found["train"], *found["noc"]):
        picture = np.asarray(Image.open(example.images[0]).convert("RGB"), np.int64)
        assert picture.shape == (32, 100, 3)
        for place, concept in enumerate(example.extra["label"]):
            middle = picture[16, 20 + 60 * place]
            assert np.abs(middle - COLOURS[concept]).max() < 12


# --- CPIN ---


def test_cpin_is_built_from_the_worlds_partimagenet_on_a_grid_of_nine(tmp_path):
    out = tmp_path / "cpin"
    build("cpin", world("partimagenet", "tiny"), out, per_combination=(1, 1, 1), smallest=14, workers=1)
    used = Counter()
    for split in ("train", "val", "test", "sys", "pro", "non", "noc"):
        for example in cgqa.DATASET.examples(out, split):
            size = {len(example.extra["comb"]), len(example.extra["position"]), len(set(example.extra["position"]))}
            assert size == {5} or (split == "pro" and len(size) == 1 and min(size) in {6, 7, 8, 9})
            used.update(example.extra["position"])
    assert used.keys() == set(range(1, 10))
    assert set(of_folder(out, "cpin").unseen).isdisjoint(of_folder(out, "cpin").concepts)


def test_cpin_is_drawn_from_concepts_that_each_set_has():
    """Pictures show several concepts: four of a rare one may lie in fewer than four sets."""
    combinations = make_plan("cpin", world("partimagenet", "tiny"), (1, 1, 1), 0, 1, 0).combinations
    assert [len(task) for task in combinations.tasks] == [10] * 10
    assert len(combinations.sys) == len(combinations.pro) == 100


@pytest.mark.parametrize(
    ("name", "wnid", "family"),
    [
        ("Quadruped Foot", "n02085620", "Canidae Foot"),  # Chihuahua
        ("Quadruped Foot", "n02117135", "Quadruped Foot"),  # hyena
        ("Quadruped Head", "n02119022", "Canidae Head"),  # red fox
        ("Quadruped Head", "n02129165", "Felidae Head"),  # lion
        ("Quadruped Body", "n02132136", "Ursidae Body"),  # brown bear
        ("Quadruped Body", "n02412080", "Bovidae Body"),  # ram
        ("Quadruped Body", "n02437312", "Quadruped Body"),  # Arabian camel
        ("Quadruped Foot", "n02444819", "Mustelidae Foot"),  # otter
        ("Biped Hand", "n02481823", "Primates Hand"),  # chimpanzee
        ("Reptile Head", "n01664065", "Testudines Head"),  # loggerhead
        ("Reptile Foot", "n01695060", "Lacertilia Foot"),  # Komodo dragon
        ("Reptile Tail", "n01697457", "Reptile Tail"),  # African crocodile
        ("Snake Head", "n01728572", "Snake Head"),
        ("Car Tier", "n02123045", "Car Tier"),
    ],
)
def test_animals_are_told_by_family(name, wnid, family):
    assert part_name(name, wnid) == family


# --- the call ---


def test_what_cannot_be_built_is_told(gqa, tmp_path):
    with pytest.raises(UserError, match="did you mean cgqa"):
        build("cqga", gqa, tmp_path / "out")
    with pytest.raises(UserError, match="at least 1"):
        build("cgqa", gqa, tmp_path / "out", per_combination=(5, 0, 5))
    with pytest.raises(UserError, match="contains no partimagenet"):
        build("cpin", gqa, tmp_path / "out")
    with pytest.raises(UserError, match="too few things of 500 pixels or more"):
        build("cgqa", gqa, tmp_path / "out", smallest=500)
    assert not (tmp_path / "out").exists()


def test_a_bad_record_stops_it_unless_it_may_be_left_out(objects365, tmp_path):
    folder = shutil.copytree(objects365, tmp_path / "source")
    (folder / "patch0" / "objects365_v1_00000000.jpg").unlink()
    with pytest.raises(DataError, match="is missing"):
        build("cobj", folder, tmp_path / "out", per_combination=(2, 1, 1), workers=1)
    build("cobj", folder, tmp_path / "out", per_combination=(2, 1, 1), workers=1, skip_bad=1)


def test_the_command_tells_what_it_built(gqa, tmp_path):
    app = typer.Typer()
    register_build(app)
    call = ["cgqa", "--from", str(gqa), "--out", str(tmp_path / "out"), "--per-combination", "2,1,1", "--workers", "1"]
    shown = CliRunner().invoke(app, call)
    assert shown.exit_code == 0, shown.output
    assert "noc: (floor, vehicle): no floor in fewshot; no vehicle in fewshot" in shown.stdout
    found = json.loads(CliRunner().invoke(app, [*call, "--json"]).stdout)
    assert [row["split"] for row in found["rows"]] == list(FILES)
    assert found["rows"][0]["pictures"] == 2 * found["rows"][0]["present"]
    wrong = CliRunner().invoke(app, [*call[:-4], "--per-combination", "2,1"])
    assert isinstance(wrong.exception, UserError)
    assert "use three whole numbers" in str(wrong.exception)


# --- from the world's own files ---


def test_the_worlds_gqa_has_what_cgqa_is_made_of(tmp_path, monkeypatch):
    monkeypatch.setattr(gqa_writer, "COUNTS", {"tiny": {"train": 330, "val": 20, "testdev": 1, "test": 1}})
    gqa_writer.write(tmp_path / "gqa", "tiny", 3)
    plan = make_plan("cgqa", tmp_path, (2, 1, 1), seed=0, smallest=30, skip_bad=0)
    parts = {part.split: part for part in plan.parts}
    for split in ("train", "val", "test", "sys", "pro", "non"):
        assert set(parts[split].pictures) == set(parts[split].listed), split
    assert len(parts["sub"].pictures) > 80
    assert len(parts["noc"].pictures) >= 10, "of what the world can draw"


@pytest.mark.slow
def test_cgqa_and_cobj_are_built_of_the_worlds_files(tmp_path):
    for name, source, skip in (("cgqa", "gqa", 0), ("cobj", "objects365", 1)):
        out = tmp_path / name
        build(name, world(source, "small"), out, per_combination=(6, 1, 4), workers=1, skip_bad=skip)
        counts = verify(name, out)
        assert set(counts["train"]) == set(counts["val"]) == set(counts["test"]) == set(listed(name).trained)
        assert set(counts["train"].values()) == {6}
        assert len(counts["noc"]) >= 10
