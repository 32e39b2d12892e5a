"""GQA: scene graphs of train and val, and the balanced questions of train, val, testdev and test.

Kept from the original: every id is a string, images of testdev have an id with an `n`, `location` and `weather` are
often missing, the questions of test have only three keys, and a few pictures are greyscale (none is CMYK).
No picture is shared with COCO or between splits. Every second one is a close-up of two things, large enough for CGQA:
some with the attribute that CGQA reserves for a test, or of things that it never trains on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.world.draw import drawing, save_scene
from holdfast.world.scene import Box, Scene, Thing, make_scene, relations
from holdfast.world.vocabulary import CGQA_NOUNS, COCO_NOUNS, COLOURS, THINGS, VERBS
from holdfast.world.writers.json_files import write_json
from holdfast.world.writers.scales import Amount, at_scale

VERSION = 1
COUNTS: dict[str, dict[str, int]] = {
    "tiny": {"train": 60, "val": 20, "testdev": 8, "test": 8},
    "small": {"train": 1_500, "val": 300, "testdev": 60, "test": 100},
    "large": {"train": 20_000, "val": 4_000, "testdev": 400, "test": 1_000},
    "paper": {"train": 74_942, "val": 10_696, "testdev": 398, "test": 2_987},
}
WIDTH, HEIGHT = 128, 96
_SCENE_NUMBERS = 50_000_000  # so that no picture is shared with COCO, whatever its ids
_FIRST = {"train": 2_300_000, "val": 2_400_000, "testdev": 10_000, "test": 500_000}
_MATERIAL_WORDS = {"wood": "wooden", "fur": "furry", "feathers": "feathered", "glass": "glass", "metal": "metal"}
_INDOORS = ("room", "kitchen", "bathroom", "office")
LEAST = 32
"""The minimum number of pixels for each side of a thing in a close-up; CGQA accepts none below 30."""
_KEPT = {
    **{"grass": "brown", "shirt": "green", "plate": "blue", "pants": "white", "leaves": "brown", "fence": "black"},
    **{"helmet": "white", "shoe": "black", "jacket": "blue", "car": "red", "table": "white", "chair": "black"},
    **{"flower": "yellow", "pole": "wood", "building": "brown", "hat": "blue", "bench": "metal", "wall": "brick"},
    **{"door": "glass", "sign": "round", "shorts": "white"},
}
_KEPT_SHARE = 0.25
_SPECIAL = {("pole", "wood"): "wood", ("wall", "red"): "brick", ("stop sign", "metal"): "round"}
# CGQA's pairs of things that are never trained on, as far as the synthetic world can draw them.
_UNSEEN = (
    "book+pizza carrot+zebra bowl+cake bed+sheep motorcycle+sheep elephant+laptop boot+broccoli banana+fork "
    "necklace+street_light tie+truck backpack+train cow+glasses bowl+desk"
)
_RELATION_WORDS = {"left of": "to the left of", "right of": "to the right of", "above": "above", "below": "below"}


def scene_number(number: int) -> int:
    """The number of the scene on the image with this number.

    >>> scene_number(2_300_000)
    52300000
    """
    return _SCENE_NUMBERS + number


def amount(scale: str) -> Amount:
    """The amount of data written at a scale.

    >>> amount("tiny")
    Amount(records=384, pictures=96, pixels=12288, values=0)
    """
    pictures = sum(at_scale(COUNTS, scale).values())
    return Amount(4 * pictures, pictures, WIDTH * HEIGHT)  # a scene and about three questions each


def write(folder: Path, scale: str, seed: int) -> None:
    """Write `images`, `{train,val}_sceneGraphs.json` and `{train,val,testdev,test}_balanced_questions.json`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Path(folder), "tiny", seed=0)
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['images', 'test_balanced_questions.json', 'testdev_balanced_questions.json', ..., 'val_sceneGraphs.json']
    """
    with drawing() as draw:
        for split, count in at_scale(COUNTS, scale).items():
            graphs: dict[str, Any] = {}
            asked: dict[str, Any] = {}
            tally: Counter[str] = Counter()
            for number in range(_FIRST[split], _FIRST[split] + count):
                image_id = f"n{number}" if split == "testdev" else str(number)
                random = np.random.default_rng([seed, 17, number])
                scene = _close_up(seed, number, random) if number % 2 else make_scene(seed, scene_number(number))
                kind = "grey-jpeg" if number % 61 == 0 else "jpeg"
                draw(save_scene, folder / "images" / f"{image_id}.jpg", scene, (WIDTH, HEIGHT), kind)
                graphs[image_id] = graph = _graph(scene, number, random)
                for record in _questions(graph, image_id, random, tally):
                    question_id = f"{number:07d}{len(asked) % 100:02d}"
                    asked[question_id] = _finish(record, question_id, split)
            if split in ("train", "val"):
                write_json(folder / f"{split}_sceneGraphs.json", graphs)
            write_json(folder / f"{split}_balanced_questions.json", asked)


def enlarged(scene: Scene, width: int, height: int, least: int = LEAST) -> Scene:
    """The scene with every thing at least `least` pixels wide and high, in a picture of this size.

    >>> scene = enlarged(make_scene(0, 3, nouns=["pole", "hat"]), 128, 96)
    >>> min(min(thing.box.width * 128, thing.box.height * 96) for thing in scene.things) >= 32
    True
    """

    def grown(box: Box) -> Box:
        wide, high = max(box.width, least / width), max(box.height, least / height)
        across, down = box.centre
        left, top = (min(max(at - size / 2, 0.0), 1 - size) for at, size in ((across, wide), (down, high)))
        return Box(left, top, wide, high)

    return replace(scene, things=tuple(replace(thing, box=grown(thing.box)) for thing in scene.things))


def _close_up(seed: int, number: int, random: np.random.Generator) -> Scene:
    if random.random() < 0.25:
        pairs = _UNSEEN.split()
        nouns = pairs[int(random.integers(len(pairs)))].replace("_", " ").split("+")
    else:
        nouns = [str(noun) for noun in random.choice(CGQA_NOUNS, 2, replace=False)]
    scene = make_scene(seed, scene_number(number), nouns=nouns)
    things = tuple(_like_or_unlike(thing, random) if thing.noun in _KEPT else thing for thing in scene.things)
    return enlarged(replace(scene, things=things), WIDTH, HEIGHT)


def _like_or_unlike(thing: Thing, random: np.random.Generator) -> Thing:
    """The thing with the attribute that CGQA reserves for a test, or certainly without it."""
    kept, kind, chosen = _KEPT[thing.noun], THINGS[thing.noun], random.random() < _KEPT_SHARE

    def one(options: Sequence[str], this: str) -> str:
        others = [each for each in options if each != this]
        return this if chosen else others[int(random.integers(len(others)))]

    if kept == "round":  # as the world draws a stop sign
        return replace(thing, noun="stop sign" if chosen else "sign")
    if kept in COLOURS or kept == "brick":
        return replace(thing, colour=one(kind.colours, "red" if kept == "brick" else kept))
    return replace(thing, material=one(kind.materials, kept))


def _graph(scene: Scene, number: int, random: np.random.Generator) -> dict[str, Any]:
    ids = [str(number * 16 + index) for index in range(len(scene.things))]
    outgoing: dict[int, list[dict[str, str]]] = {index: [] for index in range(len(ids))}
    for one, relation, other in relations(scene):
        outgoing[one].append({"name": _RELATION_WORDS[relation], "object": ids[other]})
    for index, thing in enumerate(scene.things):
        if thing.other is not None:
            outgoing[index].append({"name": VERBS[thing.verb][1], "object": ids[thing.other]})
    graph: dict[str, Any] = {"width": WIDTH, "height": HEIGHT}
    if random.random() < 0.6:
        graph |= {"location": scene.place} if scene.place in _INDOORS else {"weather": "sunny"}
    graph["objects"] = {
        ids[index]: {
            "name": "sign" if number % 2 and thing.noun == "stop sign" else thing.noun,
            **_pixels(thing),
            "attributes": _attributes(thing),
            "relations": outgoing[index],
        }
        for index, thing in enumerate(scene.things)
    }
    return graph


def _pixels(thing: Thing) -> dict[str, int]:
    x, y = round(thing.box.left * WIDTH), round(thing.box.top * HEIGHT)
    return {"x": x, "y": y, "w": max(1, round(thing.box.width * WIDTH)), "h": max(1, round(thing.box.height * HEIGHT))}


def _attributes(thing: Thing) -> list[str]:
    words = [thing.colour, _MATERIAL_WORDS.get(thing.material, ""), thing.size]
    words += [_SPECIAL.get((thing.noun, quality), "") for quality in (thing.colour, thing.material)]
    return [*(word for word in words if word), *([thing.pattern] if thing.pattern != "plain" else [])]


def _questions(
    graph: dict[str, Any], image_id: str, random: np.random.Generator, tally: Counter[str]
) -> list[dict[str, Any]]:
    """Questions of three kinds (colour, presence, neighbours), asked only if the picture has exactly one answer."""
    objects: dict[str, Any] = graph["objects"]
    named = Counter(thing["name"] for thing in objects.values())
    single = [key for key, thing in objects.items() if named[thing["name"]] == 1]
    records = []
    if single:
        key = single[int(random.integers(len(single)))]
        name, colour = objects[key]["name"], objects[key]["attributes"][0]
        steps = [("select", [], f"{name} ({key})"), ("query", [0], "color")]
        text, full = f"What color is the {name}?", f"The {name} is {colour}."
        records.append(_record(steps, text, image_id, colour, full, "attr", f"{name}_color", {"4": key}))
        beside = [each for each in objects[key]["relations"] if each["name"].startswith("to the")]
        names = Counter(each["name"] for each in beside)
        for each in beside:
            if names[each["name"]] == 1:
                other, relation = objects[each["object"]]["name"], each["name"]
                # This thing is left of the other one, so the other one is to the right of this one.
                turned = relation.replace("left", "?").replace("right", "left").replace("?", "right")
                back = [r for k, o in objects.items() for r in o["relations"] if r == {"name": turned, "object": key}]
                if len(back) != 1:
                    continue
                steps = [("select", [], f"{name} ({key})"), ("relate", [0], f"_,{turned},s ({each['object']})")]
                steps.append(("query", [1], "name"))
                text, full = f"What is {turned} the {name}?", f"The {other} is {turned} the {name}."
                records.append(_record(steps, text, image_id, other, full, "rel", f"{name}_{turned},s", {"7": key}))
                break
    # Each noun is asked about equally often in pictures with it and without it.
    present = sorted(noun for noun in named if tally[noun] <= 0)
    absent = [noun for noun in (*COCO_NOUNS, *CGQA_NOUNS) if noun not in named and tally[noun] > 0]
    for nouns, answer in ((present, "yes"), (absent, "no")):
        if not nouns:
            continue
        noun = nouns[int(random.integers(len(nouns)))]
        tally[noun] += 1 if answer == "yes" else -1
        found = next((key for key, thing in objects.items() if thing["name"] == noun), "-")
        steps = [("select", [], f"{noun} ({found})"), ("exist", [0], "?")]
        text, full = f"Is there any {noun} in the picture?", f"{answer.capitalize()}."
        words = {} if found == "-" else {"3": found}
        records.append(_record(steps, text, image_id, answer, full, "obj", THINGS[noun].supercategory, words))
    return records


def _record(
    steps: list[tuple[str, list[int], str]],
    question: str,
    image_id: str,
    answer: str,
    full: str,
    semantic: str,
    group: str,
    words: dict[str, str],
) -> dict[str, Any]:
    structural = "verify" if answer in ("yes", "no") else "query"
    parts = [f"{name}: {value}" + (f" {inputs}" if inputs else "") for name, inputs, value in steps]
    return {
        "semantic": [{"operation": name, "dependencies": inputs, "argument": value} for name, inputs, value in steps],
        "entailed": [],
        "equivalent": [],
        "question": question,
        "imageId": image_id,
        "isBalanced": True,
        "groups": {"global": None if structural == "verify" else group.split("_")[0], "local": group},
        "answer": answer,
        "semanticStr": "->".join(parts),
        "annotations": {"answer": {}, "question": words, "fullAnswer": {}},
        "types": {"detailed": f"{semantic}{structural.capitalize()}", "semantic": semantic, "structural": structural},
        "fullAnswer": full,
    }


def _finish(record: dict[str, Any], question_id: str, split: str) -> dict[str, Any]:
    if split == "test":
        return {key: record[key] for key in ("imageId", "question", "isBalanced")}
    return record | {"equivalent": [question_id]}
