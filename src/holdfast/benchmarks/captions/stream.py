"""The domains: a dataset of captions, or the pictures of COCO that show mainly one group of things."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from holdfast.errors import UserError, nearest
from holdfast.types import Example

VERSION = 1
SPLITS = {"coco": (("train2014", "val2014"), ("train2017", "val2017")), "flickr8k": (("train", "test"),)}
"""The official splits for training and test, of which the first that exist are used."""
_THINGS = {
    "vehicle": "bicycle, car, motorcycle, airplane, bus, train, truck, boat",
    "outdoor": "traffic light, fire hydrant, stop sign, parking meter, bench",
    "animal": "bird, cat, dog, horse, sheep, cow, elephant, bear, zebra, giraffe",
    "accessory": "backpack, umbrella, handbag, tie, suitcase",
    "sports": "frisbee, skis, snowboard, sports ball, kite, baseball bat, baseball glove, skateboard, surfboard, "
    "tennis racket",
    "kitchen": "bottle, wine glass, cup, fork, knife, spoon, bowl",
    "food": "banana, apple, sandwich, orange, broccoli, carrot, hot dog, pizza, donut, cake",
    "furniture": "chair, couch, potted plant, bed, dining table, toilet",
    "electronic": "tv, laptop, mouse, remote, keyboard, cell phone",
    "appliance": "microwave, oven, toaster, sink, refrigerator",
    "indoor": "book, clock, vase, scissors, teddy bear, hair drier, toothbrush",
}
GROUP = {name: group for group, names in _THINGS.items() for name in names.split(", ")}
"""COCO's groups of things; people belong to none, since they are in all kinds of pictures."""
DOMAINS = (*(f"coco:{group}" for group in _THINGS), *SPLITS)


def domains_of(order: str) -> tuple[str, ...]:
    """The domains of an order: names with `>` between them.

    >>> domains_of("coco:animal > flickr8k")
    ('coco:animal', 'flickr8k')
    """
    names = tuple(name.strip() for name in order.split(">"))
    for name in names:
        if name not in DOMAINS:
            raise UserError(f"benchmark.order is {order!r}, with the unknown domain {name!r}: {nearest(name, DOMAINS)}")
        if names.count(name) > 1 or (name.startswith("coco:") and "coco" in names):
            raise UserError(f"benchmark.order is {order!r}, with {name} twice: name each domain once")
    return names


def main_group(labels: Sequence[str]) -> str:
    """The group of which a picture shows the most things; in a tie, the first by name; empty if it only shows people.

    >>> main_group(["person", "dog", "dog", "car"]), main_group(["person"])
    ('animal', '')
    """
    counts = Counter(GROUP[label] for label in labels if label in GROUP)
    return min(counts, key=lambda group: (-counts[group], group), default="")


def belongs(example: Example, domain: str) -> bool:
    """Whether an example of the domain's dataset belongs to the domain."""
    _, _, group = domain.partition(":")
    return bool(example.extra["captions"]) and (not group or main_group(example.extra["labels"]) == group)
