"""Everyday activities described step by step, with four continuations, one of which is the next step."""

from __future__ import annotations

import numpy as np

# Each activity: its name, the fillers of its gap, and six steps in order. Any step after the second may be asked for.
SCRIPTS: tuple[tuple[str, str, str], ...] = (
    (
        "Making tea",
        "mint tea,black tea,green tea,ginger tea",
        "fills the kettle with water|sets the kettle on the stove|waits until the water boils"
        "|pours the water over the {}|lets the {} stand for some minutes|drinks the {} slowly",
    ),
    (
        "Washing the car",
        "van,car,truck,jeep",
        "parks the {} beside the house|fetches a bucket and a sponge|wets the {} with the hose"
        "|rubs soap over the {}|rinses the foam off the {}|dries the {} with a soft cloth",
    ),
    (
        "Baking",
        "bread,cake,pie,muffins",
        "puts on an apron|weighs the flour for the {}|kneads the dough for the {}|heats the oven"
        "|slides the {} into the oven|takes the hot {} out of the oven",
    ),
    (
        "Painting a room",
        "wall,door,ceiling,fence",
        "covers the floor with paper|opens a pot of paint|dips the brush into the pot|paints the {} from the top down"
        "|waits for the {} to dry|puts a second coat on the {}",
    ),
    (
        "Walking the dog",
        "poodle,terrier,spaniel,beagle",
        "calls the {} to the door|clips the lead to the {}|walks with the {} to the park|throws a stick for the {}"
        "|takes the stick from the {}|leads the tired {} home",
    ),
    (
        "Planting a tree",
        "pear tree,oak tree,plum tree,lime tree",
        "chooses a sunny spot in the garden|digs a deep hole|lowers the {} into the hole"
        "|shovels earth around the {}|waters the {} well|ties the {} to a post",
    ),
    (
        "Fixing a bicycle",
        "front tyre,back tyre,old tyre,flat tyre",
        "turns the bicycle upside down|takes the wheel out of its fork|pulls the {} off the wheel"
        "|glues a patch onto the {}|fits the {} back on the wheel|pumps air into the {}",
    ),
    (
        "Doing laundry",
        "shirts,towels,socks,sheets",
        "sorts the dirty {} by colour|loads the {} into the machine|adds soap powder to the drum|starts the machine"
        "|hangs the wet {} on the line|folds the dry {} into a pile",
    ),
    (
        "Posting a letter",
        "letter,card,parcel,invitation",
        "sits down at a desk|writes a few lines for the {}|signs the {}|seals the {} in its cover"
        "|sticks a stamp on the {}|drops the {} into the post box",
    ),
    (
        "Fishing",
        "trout,perch,salmon,carp",
        "carries a rod to the river|sits down on the bank|puts a worm on the hook|casts the line into the water"
        "|feels a {} pull on the line|reels the {} in",
    ),
    (
        "Making a salad",
        "tomatoes,carrots,radishes,cucumbers",
        "buys {} at the market|sets the {} on the table|washes the {} under the tap|cuts the {} into slices"
        "|tosses the {} in a bowl|pours oil over the {}",
    ),
    (
        "Cutting hair",
        "curls,fringe,long hair,short hair",
        "asks the guest to sit down|ties a cape around the guest|combs the {}|snips at the {} with scissors"
        "|brushes loose bits off the {}|holds up a mirror to show the {}",
    ),
    (
        "Camping",
        "tent,hammock,shelter,canopy",
        "walks into the woods with a pack|finds a flat place|unrolls the {} on the ground"
        "|puts up the {} between two trees|lights a fire near the {}|falls asleep in the {}",
    ),
    (
        "Taking a photograph",
        "bridge,tower,harbour,castle",
        "takes a camera out of a bag|screws a lens onto the camera|points the camera at the {}|focuses on the {}"
        "|presses the button to catch the {}|looks at the picture of the {}",
    ),
    (
        "Playing a record",
        "jazz record,folk record,dance record,opera record",
        "goes to the shelf|looks through the sleeves|pulls the {} out of its sleeve|lays the {} on the turntable"
        "|lowers the needle onto the {}|dances to the {}",
    ),
    (
        "Going to the cinema",
        "comedy,western,thriller,cartoon",
        "reads the programme in the paper|cycles to the cinema|buys a ticket for the {}"
        "|finds a seat before the {} begins|watches the {} in the dark|talks about the {} on the way out",
    ),
    (
        "Building a shelf",
        "pine boards,oak boards,birch boards,cedar boards",
        "draws a plan of the shelf|brings {} from the shop|measures the {}|saws the {} to length"
        "|screws the {} together|puts books on the {}",
    ),
    (
        "Ironing",
        "blouse,skirt,jacket,trousers",
        "unfolds the ironing board|plugs in the iron|spreads the {} over the board|runs the hot iron over the {}"
        "|turns the {} to do the other side|hangs the smooth {} in the wardrobe",
    ),
    (
        "Making a fire",
        "birch logs,beech logs,pine logs,ash logs",
        "carries {} in from the shed|kneels down at the hearth|crumples some newspaper|stacks the {} over the paper"
        "|strikes a match beneath the {}|warms both hands over the burning {}",
    ),
    (
        "Sailing",
        "dinghy,sloop,yacht,catamaran",
        "walks down to the jetty|steps aboard the {}|unties the {} from the jetty|hoists the sail of the {}"
        "|steers the {} out to sea|brings the {} back to harbour",
    ),
)
_PEOPLE = (
    *("man", "woman", "boy", "girl", "student", "neighbour", "teacher", "grandmother", "grandfather", "cook", "nurse"),
    *(
        "painter",
        "farmer",
        "baker",
        "sailor",
        "doctor",
        "tourist",
        "gardener",
        "musician",
        "postman",
        "waiter",
        "pupil",
    ),
    *("shopkeeper", "librarian", "cousin", "builder", "tailor", "dancer", "singer", "judge", "soldier", "shepherd"),
)
_MANNERS = (
    *("tall", "young", "tired", "cheerful", "quiet", "patient", "busy", "clever", "friendly", "nervous", "proud"),
    *("lonely", "smiling", "red-haired", "hungry", "gentle", "shy", "lively", "sleepy", "thoughtful", "brave", "kind"),
    *("merry", "modest", "polite", "strong", "slim", "sturdy", "curly-haired", "bald"),
)
SUBJECTS = (*_PEOPLE, *(f"{manner} {person}" for person in _PEOPLE for manner in _MANNERS))


def contexts() -> int:
    """The number of different contexts: far more than HellaSwag's 59,950.

    >>> contexts() > 250_000
    True
    """
    total = 0
    for number in range(len(SCRIPTS)):
        _, gap, steps = _script(number)
        for right in range(2, len(steps)):
            for seen in range(2, min(right, 3) + 1):
                total += len(gap) if any("{}" in step for step in steps[right - seen : right]) else 1
    return total * len(SUBJECTS)


def story_ending(random: np.random.Generator) -> tuple[str, list[str], int, str]:
    """The start of an activity, four endings, the index of the right one, and the activity's name.

    The context ends with the subject of the endings, as in "A man fills the kettle with water. ... the man".

    >>> context, endings, label, activity = story_ending(np.random.default_rng(1))
    >>> len(set(endings)), label in range(4), context.rpartition(". ")[2].split()[0]
    (4, True, 'the')
    """
    number = int(random.integers(len(SCRIPTS)))
    activity, gap, steps = _script(number)
    filling = int(random.integers(len(gap)))
    right = int(random.integers(2, len(steps)))
    seen = int(random.integers(2, min(right, 3) + 1))
    subject = SUBJECTS[random.integers(len(SUBJECTS))]
    told = [step.format(gap[filling]) for step in steps[right - seen : right]]
    context = " ".join([f"A {subject} {told[0]}.", *(f"The {subject} {step}." for step in told[1:]), f"the {subject}"])

    # Each wrong ending is right elsewhere, as often as any other: an ending alone gives nothing away.
    wrong = [
        steps[i].format(gap[filling]) for i in random.permutation(np.arange(2, len(steps))).tolist() if i != right
    ][:2]
    while len(wrong) < 3:
        other = int(random.integers(len(SCRIPTS)))
        if other != number:
            _, other_gap, other_steps = _script(other)
            wrong.append(other_steps[random.integers(2, len(other_steps))].format(random.choice(other_gap)))
    endings = [f"{ending}." for ending in (steps[right].format(gap[filling]), *wrong)]
    order = random.permutation(4)
    return context, [endings[i] for i in order], int(np.argmin(order)), activity


def _script(number: int) -> tuple[str, list[str], list[str]]:
    activity, gap, steps = SCRIPTS[number]
    return activity, gap.split(","), steps.split("|")
