"""The vocabulary of the synthetic world: its things, their looks, what they do, and where they are found."""

from __future__ import annotations

from dataclasses import dataclass

COLOURS: dict[str, tuple[int, int, int]] = {
    "black": (34, 34, 38),
    "white": (244, 244, 240),
    "gray": (140, 143, 148),
    "red": (212, 38, 36),
    "orange": (242, 134, 26),
    "yellow": (246, 214, 48),
    "green": (52, 156, 62),
    "blue": (44, 92, 208),
    "brown": (128, 80, 42),
    "purple": (136, 62, 170),
    "pink": (244, 150, 184),
    "cyan": (50, 198, 208),
}

SIZES = ("small", "large")
MATERIALS = (
    *("fur", "feathers", "skin", "fabric", "leather", "metal", "wood", "plastic", "glass", "rubber", "paper"),
    *("stone", "food", "leaf"),
)
PATTERNS = ("plain", "striped", "spotted", "checked")
PLACES = ("field", "street", "room", "kitchen", "bathroom", "office", "beach", "sea", "snow", "forest")

# The forms of each verb: the third person, the participle with -ing, and the past.
VERBS: dict[str, tuple[str, str, str]] = {
    "stand": ("stands", "standing", "stood"),
    "lie": ("lies", "lying", "lay"),
    "sit": ("sits", "sitting", "sat"),
    "walk": ("walks", "walking", "walked"),
    "eat": ("eats", "eating", "ate"),
    "hold": ("holds", "holding", "held"),
    "ride": ("rides", "riding", "rode"),
    "fly": ("flies", "flying", "flew"),
}


@dataclass(frozen=True)
class Kind:
    """The common properties of all things of one noun; `large` is the usual size from 0 (a fork) to 1 (a building)."""

    supercategory: str
    parts: tuple[str, ...]
    colours: tuple[str, ...]
    materials: tuple[str, ...]
    verbs: tuple[str, ...]
    large: float
    places: tuple[str, ...]
    patterns: tuple[str, ...] = PATTERNS


_COATS = "black white brown gray"
_PAINT = "red blue white black yellow green"
_DYES = "red blue green white black yellow purple pink orange"
_OUT = "field street forest beach snow"
_IN = "room kitchen bathroom office"
_ALL = "field street room kitchen office beach snow forest"

# noun: supercategory | parts | colours | materials | verbs | large | places | patterns (all, if omitted);
# an indented line continues the previous one.
# The first eighty are the categories of COCO, in COCO's order.
_COCO = f"""
person: person | head body arm leg | {_DYES} | fabric | stand lie sit walk eat hold ride | .62 | {_ALL} bathroom
bicycle: vehicle | wheel body seat head | {_PAINT} | metal | | .5 | street field forest | plain
car: vehicle | body wheel mirror | {_PAINT} gray | metal | | .6 | street | plain striped checked
motorcycle: vehicle | wheel body seat head | {_PAINT} | metal | | .52 | street field | plain
airplane: vehicle | head body engine wing tail | white blue red gray yellow | metal | fly stand | .75
    | field street | plain striped
bus: vehicle | body wheel window | {_PAINT} | metal | | .85 | street | plain striped
train: vehicle | body wheel window | {_PAINT} | metal | | .85 | field street | plain striped
truck: vehicle | body wheel cabin | {_PAINT} | metal | | .8 | street field | plain striped
boat: vehicle | body sail | {_PAINT} brown | wood plastic | | .65 | sea beach | plain striped checked
traffic light: outdoor | body pole | black yellow green gray | metal | | .5 | street | plain
fire hydrant: outdoor | head body | red yellow blue white | metal | | .4 | street | plain
stop sign: outdoor | head pole | red orange | metal | | .5 | street | plain
parking meter: outdoor | head pole | gray blue black green | metal | | .48 | street | plain
bench: outdoor | seat back leg | brown green white blue red | wood metal stone | | .5 | street field beach forest
    | plain striped
bird: animal | head body wing foot tail | {_COATS} blue red yellow | feathers | stand fly eat | .24 | {_OUT} sea
    | plain striped spotted
cat: animal | head body leg tail | {_COATS} orange | fur | stand lie sit walk eat | .3 | {_IN} street field
    | plain striped spotted
dog: animal | head body leg tail | {_COATS} yellow | fur | stand lie sit walk eat | .38 | {_ALL} | plain spotted
horse: animal | head body leg tail | {_COATS} | fur | stand lie walk eat | .64 | field forest beach snow
    | plain spotted
sheep: animal | head body leg | white black gray brown | fur | stand lie walk eat | .42 | field snow | plain
cow: animal | head body leg tail | {_COATS} | fur | stand lie walk eat | .6 | field | plain spotted
elephant: animal | head body leg tail trunk | gray brown black | skin | stand lie walk eat | .82 | field forest
    | plain
bear: animal | head body leg | brown black white | fur | stand lie walk eat | .6 | forest snow field | plain
zebra: animal | head body leg tail | white | fur | stand lie walk eat | .6 | field | striped
giraffe: animal | head body leg tail neck | yellow orange brown | fur | stand lie walk eat | .85 | field forest
    | spotted checked
backpack: accessory | body strap | {_DYES} | fabric | | .32 | {_ALL}
umbrella: accessory | head handle | {_DYES} | fabric | | .42 | street beach field
handbag: accessory | body handle | {_DYES} brown | leather fabric | | .28 | {_IN} street
tie: accessory | head body | {_DYES} | fabric | | .26 | room office
suitcase: accessory | body handle wheel | {_DYES} brown | leather plastic | | .34 | room street
frisbee: sports | body | {_PAINT} orange pink | plastic | | .2 | field beach | plain
skis: sports | body | {_PAINT} | plastic wood | stand lie | .4 | snow | plain
snowboard: sports | body | {_PAINT} orange | plastic wood | | .34 | snow | plain striped checked
sports ball: sports | body | white red blue yellow orange | rubber leather | | .2 | field beach street
kite: sports | body tail | {_DYES} | paper plastic | fly | .32 | field beach
baseball bat: sports | body handle | brown black yellow red | wood metal | | .36 | field | plain
baseball glove: sports | body | brown black yellow red | leather | | .24 | field | plain
skateboard: sports | body wheel | {_PAINT} pink | wood | | .28 | street | plain striped checked
surfboard: sports | body | {_DYES} | plastic | stand lie | .5 | beach sea | plain striped
tennis racket: sports | head handle | {_PAINT} | metal | | .38 | field street | plain
bottle: kitchen | mouth body | green brown blue white red | glass plastic | | .28 | kitchen room office beach
    | plain striped
wine glass: kitchen | head stem foot | red white yellow pink | glass | | .26 | kitchen room | plain
cup: kitchen | body handle | {_DYES} | plastic paper | | .2 | kitchen room office
fork: kitchen | head handle | gray black white yellow | metal plastic | | .26 | kitchen | plain
knife: kitchen | blade handle | black brown red blue white | metal plastic | | .26 | kitchen | plain
spoon: kitchen | head handle | gray brown white yellow | metal wood | | .26 | kitchen | plain
bowl: kitchen | body | {_DYES} brown | wood plastic glass | | .26 | kitchen room
banana: food | body | yellow green | food | | .22 | kitchen | plain spotted
apple: food | body stem leaf | red green yellow | food | | .18 | kitchen field | plain
sandwich: food | body | brown white yellow | food | | .22 | kitchen office | plain
orange: food | body leaf | orange | food | | .18 | kitchen | plain
broccoli: food | head stem | green | food | | .22 | kitchen | plain
carrot: food | body leaf | orange purple yellow | food | | .24 | kitchen field | plain
hot dog: food | body | brown yellow white | food | | .24 | kitchen street | plain
pizza: food | body | yellow orange brown | food | | .26 | kitchen room | plain
donut: food | body | pink brown white yellow | food | | .2 | kitchen office | plain striped spotted
cake: food | body | pink white brown yellow | food | | .26 | kitchen room | plain striped spotted
chair: furniture | seat back leg | {_PAINT} brown | wood plastic metal | | .44 | {_IN} field
couch: furniture | seat back arm | {_DYES} brown gray | fabric leather | | .6 | room office
potted plant: furniture | head pot | brown red white blue orange | stone plastic | | .4 | {_IN}
bed: furniture | head body leg | {_DYES} | fabric | | .64 | room
dining table: furniture | top leg | brown white black red blue | wood glass | | .52 | kitchen room | plain checked
toilet: furniture | body seat tank | white pink blue gray | stone | | .42 | bathroom | plain
tv: electronic | screen foot | black gray white red | plastic | | .42 | room office | plain
laptop: electronic | screen body | gray black white blue red | metal plastic | | .34 | office room | plain
mouse: electronic | body | black white gray red blue | plastic | | .18 | office | plain
remote: electronic | body | black gray white blue | plastic | | .22 | room | plain
keyboard: electronic | body | black white gray blue | plastic | | .3 | office | plain
cell phone: electronic | body screen | black white red blue pink gray | plastic metal | | .24
    | office room street | plain
microwave: appliance | body screen | white black gray red | metal | | .36 | kitchen | plain
oven: appliance | body screen | white black gray red | metal | | .5 | kitchen | plain
toaster: appliance | body | red gray white black blue | metal | | .28 | kitchen | plain
sink: appliance | body tap | white gray blue pink | stone metal | | .4 | kitchen bathroom | plain
refrigerator: appliance | body handle | white gray black red blue | metal | | .68 | kitchen | plain
book: indoor | body | {_DYES} brown | paper | | .26 | room office
clock: indoor | body hand | white red blue black brown green | plastic wood | | .28 | room kitchen office street
    | plain
vase: indoor | mouth body | {_DYES} | glass stone | | .3 | room office
scissors: indoor | blade handle | red blue black orange green | metal | | .24 | office | plain
teddy bear: indoor | head body arm leg | brown white pink yellow blue purple | fabric | sit lie | .34 | room
    | plain spotted striped
hair drier: indoor | body handle | pink black red white blue purple | plastic | | .26 | bathroom room | plain
toothbrush: indoor | head handle | blue red green pink white yellow | plastic | | .26 | bathroom | plain striped
"""

# The concepts of CGQA that are not in COCO (bench, car and chair are listed above).
_CGQA = f"""
plate: kitchen | body | white blue red green yellow black | stone plastic | | .26 | kitchen room
shirt: clothing | body sleeve | {_DYES} | fabric | | .34 | room
building: structure | body door window roof | white red brown gray yellow blue | stone | | .9 | street field | plain
sign: outdoor | head pole | white yellow green blue orange | metal | | .44 | street field | plain
grass: plant | body | green brown yellow | leaf | | .36 | field forest beach | plain
table: furniture | top leg | brown white black gray green red | wood | | .5 | room kitchen office
jacket: clothing | body sleeve | {_DYES} brown | leather fabric | | .36 | room
shoe: clothing | body sole | {_DYES} brown | leather fabric | | .24 | room street
flower: plant | head stem leaf | red yellow pink purple white orange blue | leaf | | .3 | field forest room | plain
pants: clothing | body leg | {_DYES} brown gray | fabric | | .38 | room
helmet: clothing | body strap | {_DYES} | plastic | | .26 | street room
pole: outdoor | body | gray brown white black red | metal wood | | .64 | street field | plain striped
leaves: plant | leaf | green yellow orange brown red | leaf | | .36 | forest field | plain
wall: structure | body | red brown gray white yellow | stone | | .5 | street field | plain
door: structure | body handle | brown white red blue green | wood | | .6 | room street office
fence: structure | body pole | brown white gray green black | wood metal | | .44 | field street | plain
hat: clothing | body brim | {_DYES} brown | fabric | | .26 | room street beach
shorts: clothing | body leg | {_DYES} brown | fabric | | .3 | room beach
"""

# What Objects365, COBJ, PartImageNet and CIFAR name in addition.
_MORE = f"""
fish: animal | head body fin tail | orange yellow blue red gray green purple | skin | | .42 | sea
    | plain striped spotted
shark: animal | head body fin tail | gray blue black brown | skin | | .66 | sea | plain
snake: animal | head body | green brown yellow red black gray orange | skin | | .56 | field forest beach
    | plain
lizard: animal | head body leg tail | green brown yellow gray blue orange | skin | | .44 | field forest beach
    | plain striped spotted
turtle: animal | head body leg tail | green brown yellow gray orange | skin | | .4 | beach sea field | plain spotted
monkey: animal | head body arm leg tail | brown black gray orange | fur | | .46 | forest field | plain
boot: clothing | body sole | {_DYES} brown | leather | | .3 | room street snow
lamp: furniture | head pole foot | {_DYES} | fabric | | .38 | room office
glasses: accessory | lens arm | {_DYES} brown | plastic metal | | .26 | room office | plain
street light: outdoor | head pole | black gray green blue brown | metal | | .66 | street | plain
bracelet: accessory | body | {_DYES} | metal plastic | | .22 | room | plain
basketball: sports | body | orange brown red yellow | rubber | | .24 | field street | plain
jeep: vehicle | body wheel mirror | {_PAINT} gray | metal | | .66 | street field | plain
guitar: indoor | head neck body | brown red blue black white yellow orange | wood | | .52 | room street | plain
microphone: electronic | head body | black gray red blue white | metal plastic | | .28 | room office | plain
necklace: accessory | body | {_DYES} | metal | | .28 | room | plain
rowboat: vehicle | body oar | {_PAINT} brown | wood | | .52 | sea beach | plain striped
desk: furniture | top drawer leg | brown white black gray red blue | wood | | .52 | office room | plain
basket: kitchen | body handle | brown yellow orange white | wood | | .32 | kitchen room field | plain
paddle: sports | head handle | red blue black green | wood | | .28 | room field | plain
cigarette: indoor | body | white brown yellow | paper | | .22 | room street | plain
racing car: vehicle | body wing wheel | {_PAINT} orange | metal | | .6 | street | plain
"""

# The three solids of CLEVR: not in THINGS, but known to scenes and pictures.
_SOLIDS = """
cube: solid | body | gray red blue green brown purple cyan yellow | rubber metal | | .28 | room | plain
sphere: solid | body | gray red blue green brown purple cyan yellow | rubber metal | | .28 | room | plain
cylinder: solid | body | gray red blue green brown purple cyan yellow | rubber metal | | .28 | room | plain
"""


def _kinds(table: str) -> dict[str, Kind]:
    kinds = {}
    for line in table.strip().replace("\n    ", " ").splitlines():
        noun, rest = line.split(":")
        supercategory, parts, colours, materials, verbs, large, places, *patterns = (
            cell.split() for cell in rest.split("|")
        )
        kinds[noun] = Kind(
            supercategory=supercategory[0],
            parts=tuple(parts),
            colours=tuple(colours),
            materials=tuple(materials),
            verbs=tuple(verbs),
            large=float(large[0]),
            places=tuple(places),
            patterns=tuple(patterns[0]) if patterns else PATTERNS,
        )
    return kinds


COCO_NOUNS: tuple[str, ...] = tuple(_kinds(_COCO))
CGQA_NOUNS: tuple[str, ...] = (
    *("plate", "shirt", "building", "sign", "grass", "car", "table", "chair", "jacket", "shoe", "flower"),
    *("pants", "helmet", "bench", "pole", "leaves", "wall", "door", "fence", "hat", "shorts"),
)
MORE_NOUNS: tuple[str, ...] = tuple(_kinds(_MORE))
THINGS: dict[str, Kind] = _kinds(_COCO) | _kinds(_CGQA) | _kinds(_MORE)
SOLIDS: dict[str, Kind] = _kinds(_SOLIDS)
SUPERCATEGORIES: tuple[str, ...] = tuple(dict.fromkeys(kind.supercategory for kind in THINGS.values()))

# Which things a person can ride, and which fit in a hand.
MOUNTS = ("bicycle", "motorcycle", "horse", "elephant", "skateboard", "surfboard", "skis", "snowboard")
FOODS = tuple(noun for noun, kind in THINGS.items() if kind.supercategory == "food")
HANDHELD = (
    *("umbrella", "handbag", "frisbee", "sports ball", "kite", "baseball bat", "tennis racket", "bottle", "wine glass"),
    *("cup", "remote", "cell phone", "book", "teddy bear", "toothbrush", "cat", "banana", "donut"),
)


def person_word(size: str, pattern: str) -> str:
    """What a person of this size and pattern is called, in agreement with the drawing.

    Small persons are children; of the others, those in spots or checks wear a dress and have long hair.

    >>> person_word("large", "plain"), person_word("large", "spotted"), person_word("small", "plain")
    ('man', 'woman', 'child')
    """
    if size == "small":
        return "child"
    return "man" if pattern in ("plain", "striped") else "woman"
