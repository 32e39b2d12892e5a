"""How to reach a practical goal: two ways, one of which works.

A goal consists of an aim (which decides the way), an object, and surrounding words that change nothing. So there are
many goals, but few facts about them to be learnt.
"""

from __future__ import annotations

import numpy as np

Aims = list[tuple[str, list[str]]]
"""Aims, each with the fillers of its gap."""


def _aim(line: str) -> tuple[str, list[str]]:
    """An aim and the fillers of its gap, as in `slice {}: a loaf of bread, a cucumber`."""
    aim, _, gap = line.strip().partition(": ")
    return aim, gap.split(", ")


def _table(text: str) -> dict[str, Aims]:
    """Ways, each with the aims that are indented below it."""
    found: dict[str, Aims] = {}
    served: Aims = []
    for line in filter(str.strip, text.splitlines()):
        if line.startswith(" " * 8):
            served.append(_aim(line))
        else:
            served = found[line.strip()] = []
    return found


# The aims that each tool serves; no aim is served by two tools.
TOOLS = _table(
    """
    a knife
        slice {}: a loaf of bread, a cucumber, a lemon, a sausage, a melon, a radish
        peel {}: an apple, a potato, a pear, a carrot, a kiwi, a turnip
        halve {}: a sandwich, a bread roll, a peach, a pie, an avocado, a grapefruit
    a hammer
        drive {} into a board: a nail, a tack, a peg, a steel pin, a wedge, a dowel
        crack {}: a coconut, a walnut, a hazelnut, an almond, a lobster claw, a pecan
        break up {}: a paving stone, an old brick, a lump of coal, a clay pot, a floor tile, a block of ice
    a towel
        dry {}: wet hair, your hands, a wet dog, your feet, washed plates, a baby after a bath
        wipe drops off {}: a mirror, a window, a shower door, a bench, a saddle, a car roof
        soak up {}: spilled milk, spilled juice, a puddle, bath water, rain on the floor, spilled soup
    a needle and thread
        sew on {}: a button, a patch, a name tag, a ribbon, a bead, a badge
        mend {}: a torn sleeve, a ripped pocket, a holey sock, a split seam, a torn flag, a burst pillow
        shorten {}: a curtain, a skirt, a dress, a coat, a pair of trousers, a tablecloth
    a shovel
        dig {}: a hole, a ditch, a trench, a pond, a grave for a hamster, a fire pit
        clear {} of snow: a path, a driveway, a yard, a pavement, a station platform, a parking space
        move {}: a heap of sand, a pile of gravel, a load of earth, a mound of compost, a heap of coal, a ton of grit
    a magnet
        find {} in the grass: a lost pin, a dropped screw, a steel key, a paper clip, a nail, a fish hook
        pick up {}: spilled iron filings, scattered nails, loose tacks, steel needles, bottle caps, iron dust
        tell {} from steel: brass, copper, silver, gold, tin foil, lead
    a sieve
        get lumps out of {}: flour, cocoa, icing sugar, baking powder, starch, semolina
        drain {}: cooked noodles, boiled peas, wet spinach, boiled potatoes, macaroni, cooked beans
        wash {} under the tap: rice, lentils, berries, cherries, quinoa, barley
    a ladder
        reach {}: a high roof, an attic hatch, a gutter, a tall shelf, a bird box, a chimney
        pick {} from a tall tree: pears, cherries, plums, figs, apricots, quinces
        change {} in a high ceiling: a bulb, a smoke alarm, a fuse, a fan blade, a lamp shade, a broken tile
    a pump
        fill {} with air: a flat tyre, a football, a balloon, a bicycle tube, a basketball, a swim ring
        blow up {}: an air mattress, a rubber boat, a paddling pool, a beach ball, an air bed, a bouncy castle
        empty {} of water: a flooded cellar, a garden pond, a swimming pool, a barge, a full ditch, a mine
    a match
        light {}: a candle, a gas stove, an oil lamp, a pipe, a fuse, a lantern
        start {}: a camp fire, a bonfire, a barbecue, a fire in the hearth, a brush fire, a furnace
        set fire to {}: dry leaves, old paper, a pile of straw, kindling, a sparkler, dead branches
    a corkscrew
        open {}: a bottle of wine, a bottle of port, a corked cider, a bottle of sherry, a magnum, an old claret
        pull {}: a tight cork, a dry cork, a long cork, a crumbly cork, a broken cork, a stubborn cork
        get {} out of a bottle neck: a cork, half a cork, a wax seal and cork, the cork, a wet cork, a plastic cork
    a rolling pin
        flatten {}: dough, marzipan, fondant, clay, pasta dough, gingerbread
        crush {} to crumbs: biscuits, crackers, dry toast, cornflakes, rusks, pretzels
        make {} thin: pastry, a pizza base, a pie crust, a tortilla, strudel dough, a flat bread
    an eraser
        remove {}: a pencil line, a pencil smudge, a stray pencil dot, a pencil mark, a pencilled note, a grey doodle
        correct {}: a pencil sketch, a pencil drawing, a pencilled sum, a pencil map, a pencil plan, a pencilled score
        take out {}: a wrong pencilled word, a pencilled date, a pencilled name, an arrow, a guide line, a shadow
    an umbrella
        stay dry in {}: the rain, a shower, a storm, a drizzle, a downpour, the sleet
        shade {} from the sun: a baby, a picnic, an old dog, a sleeping child, an easel, an ice cream
        keep {} off your hat: snow, rain, hail, drops, wet blossom, sleet
    a whisk
        beat {} stiff: egg whites, meringue, a mousse, a souffle mix, an egg foam, a nougat
        whip {}: cream, butter icing, a milk shake, a dessert topping, a sponge mix, custard
        stir lumps out of {}: a sauce, gravy, pancake batter, a soup, porridge, a pudding
    a screwdriver
        tighten {}: a loose hinge, a wobbly handle, a door plate, a chair leg, a saucepan lid, a shelf bracket
        open the back of {}: a radio, a clock, a toy car, a doorbell, a remote, a metronome
        fix {} to a wall: a hook, a rack, a mirror, a bracket, a socket, a coat rail
    a pair of scissors
        trim {}: a fringe, a beard, a moustache, a lampwick, a pony's mane, a doll's hair
        snip {}: a loose thread, a ribbon, a stem, a price tag, a plastic tie, a bandage
        clip {} from a magazine: a coupon, a picture, a recipe, a photograph, an advert, a poem
    a paintbrush
        paint {}: a fence, a shutter, a garden chair, a model ship, a birdhouse, a door frame
        varnish {}: a table, a violin, a wooden floor, a rowing boat, a toy train, a picture frame
        put lacquer on {}: a box, a tray, a bench, a cabinet, a stool, a bowl
    a rake
        gather {}: fallen leaves, cut grass, pine needles, hay, dead moss, fallen twigs
        loosen {}: a seed bed, hard soil, a flower border, a sand pit, a vegetable bed, trodden earth
        smooth {}: a gravel path, a long jump pit, a bed of earth, a bunker, a drive of pebbles, a patch of sand
    a thermometer
        check {} for a fever: a child, a patient, a grandfather, a sick dog, a newborn, a guest
        find out how hot {} is: bath water, a greenhouse, a sauna, a classroom, an oven, a spring
        watch the heat of {}: a sugar syrup, a jam, frying oil, a cheese vat, melted wax, a brew
    a tape measure
        find the length of {}: a sofa, a room, a fence, a snake, a carpet, a garden
        check whether {} fits: a wardrobe, a new bed, a fridge, a bookcase, a blind, a desk
        mark out {}: a flower bed, a tennis court, a parking place, a patio, a hem, a shed
    a tube of glue
        stick {} together: two cards, torn pages, broken tiles, paper chains, two shells, wooden blocks
        repair {}: a broken cup, a cracked vase, a snapped pencil case, a toy plane, a chipped plate, a loose shoe sole
        join {}: two strips of paper, two sticks, parts of a kite, two bits of felt, halves of a mask, two corks
    a funnel
        pour {} into a narrow bottle: oil, vinegar, syrup, shampoo, ink, perfume
        refill {}: a pepper mill, a salt cellar, an oil lamp, a hip flask, a spice jar, a soap bottle
        top up {} without spilling: a flask, a car's oil, a radiator, a fuel can, a hot water bottle, a fountain pen
    a bucket
        carry {}: water from a well, feed to the pigs, milk from the barn, wet sand, coal upstairs, picked apples
        bail out {}: a leaking boat, a canoe, a flooded tent, a dinghy, a raft, a full cellar step
        catch {}: drips from the roof, drops from a pipe, rain from the gutter, a leak, water from a tap, melting ice
    """
)
PLACES = _table(
    """
    in the freezer
        turn {} into ice cubes: water, apple juice, lemonade, cold tea, broth, coconut milk
        keep {} hard: ice cream, sorbet, ice lollies, frozen yogurt, an ice cake, a cold pack
        store {} for months: peas, minced meat, fish fingers, bread rolls, raspberries, stock
    in a hot oven
        bake {}: a cake, a loaf, a pie, muffins, biscuits, a quiche
        roast {}: a chicken, a joint of beef, a duck, potatoes, parsnips, a leg of lamb
        brown {}: a gratin, a lasagne, a meringue, a bread crust, a crumble, a cheese topping
    in the sun
        dry {}: a wet shirt, a swimsuit, a washed sheet, a beach towel, wet sandals, a rain coat
        ripen {}: green tomatoes, hard peaches, unripe mangoes, green chillies, figs, a hard melon
        warm {}: a cold stone, a lizard, a chilly cat, a hot water tank, a clay tile, stiff clay
    in cold water
        cool {}: a boiled egg, a burnt finger, a hot pan, blanched beans, a beer can, a scalded hand
        stop {} from browning: cut apples, peeled potatoes, sliced pears, cut artichokes, peeled celeriac, quinces
        keep {} fresh: picked flowers, a bunch of parsley, cut roses, celery, lettuce, tulips
    in a dark cupboard
        keep {} from sprouting: potatoes, onions, garlic, yams, beetroots, shallots
        store {} for a year: spices, dried herbs, saffron, paprika, tea leaves, vanilla pods
        protect {} from fading: a photograph, a watercolour, a silk scarf, a stamp, an old letter, a poster
    under a heavy book
        press {} flat: a flower, a four-leaf clover, a fern, a maple leaf, a pansy, a blade of grass
        straighten {}: a curled card, a bent photograph, a creased note, a rolled poster, a print, a folded ticket
        hold {} down: glued paper, a drying stamp, a paper model, a glued label, a decal, a glued bookmark
    over a pan of steam
        loosen {}: a stamp, an envelope flap, wallpaper scraps, a price label, a stuck sticker, an old wine label
        melt {} gently: chocolate, white chocolate, honey, cocoa butter, nougat cream, fudge
        soften {}: a stiff felt hat, a hard loaf, dried leather, stale rolls, a stiff brim, a crushed velvet bow
    behind a locked door
        keep {} from children: a medicine, cleaning acid, fireworks, sharp tools, rat poison, matches
        hide {} from a curious guest: a present, a diary, a birthday cake, a secret, a letter, a surprise
        guard {}: your savings, a gold ring, a rare coin, a will, a painting, a passport
    """
)
# An aim with the fillers of its gap, what must come first, and what can only come after it.
ORDERS: tuple[tuple[str, str, str], ...] = (
    ("paint {}: a window frame, an old gate, a bench, a shed", "sand the old paint off", "brush the new paint on"),
    ("wash {}: your hair, a poodle, a toddler's hair, a wig", "wet it well", "rub the shampoo in"),
    ("send {}: a letter, a card, an invitation, a cheque", "put it into the envelope", "seal the flap"),
    (
        "boil {}: an egg, a potato, an ear of corn, a beetroot",
        "bring the water to the boil",
        "lift it out with a spoon",
    ),
    ("hang {}: a picture, a mirror, a calendar, a clock", "drive a nail into the wall", "hook it over the nail"),
    ("put on {}: shoes, boots, trainers, skates", "pull the socks up", "tie the laces"),
    ("plant {}: a bulb, a bean, a sunflower seed, an acorn", "dig a small hole", "cover it with earth"),
    ("toast {}: bread, a bun, a bagel, a crumpet", "cut it into slices", "spread butter on the hot slice"),
    ("light {}: a stove, a fireplace, a wood oven, a sauna", "stack the wood inside", "hold a flame to the kindling"),
    ("fry {}: an onion, a shallot, garlic, a leek", "peel off the dry skin", "stir the pieces in hot oil"),
    ("iron {}: a shirt, a skirt, a blouse, a napkin", "plug the iron in", "move the hot plate over the cloth"),
    ("cross {}: a street, a road, a railway, a cycle lane", "look both ways", "walk to the other side"),
    ("glue {}: a cup, a plate, a figurine, a saucer", "clean both broken edges", "press the edges together"),
    ("change a wheel of {}: a car, a van, a taxi, a trailer", "jack it up", "pull the wheel off"),
    ("polish {}: your nails, your toenails, a friend's nails, her nails", "shake the bottle", "let the lacquer dry"),
    ("bake {}: biscuits, scones, shortbread, tartlets", "mix flour with butter", "take the tray out of the oven"),
    ("take {}: a photograph, a portrait, a snapshot, a group photo", "remove the lens cap", "press the shutter"),
    ("cook {}: spaghetti, macaroni, noodles, ravioli", "fill a pot with water", "drain it in a colander"),
    ("brush {}: your teeth, a child's teeth, a dog's teeth, false teeth", "squeeze paste onto the bristles", "rinse"),
    ("wrap {}: a present, a vase, a book, a toy", "lay it on the paper", "tie a bow around it"),
    ("pitch {}: a tent, a marquee, a shelter, a gazebo", "clear stones off the ground", "crawl inside to sleep"),
    ("eat {}: a banana, an orange, a boiled egg, a lychee", "take the peel or shell off", "chew and swallow"),
    ("post {}: a video, an article, a review, a blog entry", "make it on your computer", "read the comments below it"),
    ("catch {}: a trout, a perch, a carp, a pike", "bait the hook", "reel in the line"),
)
_OPENINGS = (
    *(
        "To {},",
        "How do you {}?",
        "When you want to {},",
        "how to {}",
        "What is a good way to {}?",
        "If you need to {},",
    ),
    *("Someone asks you to {}.", "I have to {}.", "Here is how to {}:", "Tips to {}"),
)
_ASIDES = (
    *("", " at home", " before supper", " on a rainy day", " while a friend watches", " without help", " in a hurry"),
    *(" for a neighbour", " on a Sunday", " at a friend's house", " early in the morning", " for the first time"),
    *(" late in the evening", " with little time", " on holiday", " for your aunt", " as quietly as you can"),
    *(" after work", " the simple way", " in winter", " in summer", " with one free hand", " twice a week", " today"),
)
_TOOL_FORMS = ("use {}.", "take {}.", "use {} for it.", "take {} and go slowly.", "use {}, nothing else.")
_PLACE_FORMS = ("put it {}.", "leave it {}.", "put it {} for a while.", "put it {} and wait.", "leave it {}, no more.")
_ORDER_FORMS = (
    *("{} first, and after that {}.", "{}, then {}.", "start with this: {}; finish with this: {}."),
    *("first {}; second, {}.", "begin thus: {}. End thus: {}."),
)


def goals() -> int:
    """The number of different goals: far more than PIQA's 21,035 questions need.

    >>> goals() > 100_000
    True
    """
    aims = [aim for table in (TOOLS, PLACES) for served in table.values() for aim in served]
    aims += [_aim(line) for line, _, _ in ORDERS]
    return sum(len(gap) for _, gap in aims) * len(_ASIDES) * len(_OPENINGS)


def physical_question(random: np.random.Generator) -> tuple[str, list[str], int]:
    """A practical goal, two solutions, and the index of the one that works.

    A wrong element (a tool, a place, an order) is always right for some other goal.

    >>> goal, solutions, label = physical_question(np.random.default_rng(0))
    >>> len(set(solutions)), label in (0, 1)
    (2, True)
    """
    kind = random.random()
    if kind < 0.25:
        line, first, then = ORDERS[random.integers(len(ORDERS))]
        aims = [_aim(line)]
        form = _ORDER_FORMS[random.integers(len(_ORDER_FORMS))]
        right, wrong = form.format(first, then), form.format(then, first)
    else:
        table, forms = (PLACES, _PLACE_FORMS) if kind < 0.5 else (TOOLS, _TOOL_FORMS)
        works, fails = (str(name) for name in random.permutation(list(table))[:2])
        aims, form = table[works], forms[random.integers(len(forms))]
        right, wrong = form.format(works), form.format(fails)
    aim, gap = aims[random.integers(len(aims))]
    aside = _ASIDES[random.integers(len(_ASIDES))]
    wanted = aim.format(gap[random.integers(len(gap))]) + aside
    label = int(random.integers(2))
    goal = _OPENINGS[random.integers(len(_OPENINGS))].format(wanted)
    return goal, [right, wrong] if label == 0 else [wrong, right], label
