"""What everyone knows about things and how to handle them: five-way commonsense and two-way physical questions."""

from __future__ import annotations

import numpy as np

from holdfast.world.grammar import article

# Answer -> the concepts for which it is right. A concept that would fit several answers of one table is left out of it.
_WHERE = {
    "kitchen": "oven,toaster,saucepan,kettle,frying pan",
    "bathroom": "bathtub,toothbrush,shower,bath towel,washbasin",
    "library": "bookshelf,reading room,librarian,encyclopedia,card catalogue",
    "ocean": "whale,coral reef,shark,octopus,jellyfish",
    "forest": "woodpecker,fox den,fern,mossy log,wild boar",
    "desert": "cactus,camel,sand dune,oasis,scorpion",
    "hospital": "surgeon,operating table,stretcher,nurse,sick bed",
    "airport": "runway,control tower,pilot,jet,departure gate",
    "farm": "tractor,haystack,barn,cow shed,plough",
    "school": "blackboard,pupil,classroom,headmaster,satchel",
    "theatre": "stage,red curtain,actor,prompter,orchestra pit",
    "stadium": "goalkeeper,referee,running track,cheering crowd,scoreboard",
    "bank": "vault,cashier,safe,gold bar,money clerk",
    "bakery": "loaf,bread oven,pastry,baker,croissant",
    "mountain": "glacier,steep cliff,snowy peak,climber,ski lift",
    "zoo": "giraffe house,lion cage,penguin pool,monkey house,zookeeper",
    "church": "altar,pulpit,choir,pew,bell tower",
    "harbour": "lighthouse,fishing boat,pier,sailor,anchor",
}
_USE = {
    "cutting": "knife,pair of scissors,saw,razor,axe",
    "writing": "pen,pencil,piece of chalk,typewriter,crayon",
    "cleaning": "broom,mop,sponge,vacuum cleaner,bar of soap",
    "giving light": "lamp,candle,torch,lantern,light bulb",
    "travelling": "train,bus,ferry,bicycle,tram",
    "measuring": "ruler,pair of scales,thermometer,tape measure,protractor",
    "sleeping": "bed,hammock,mattress,sleeping bag,cradle",
    "making music": "violin,trumpet,piano,drum,flute",
    "keeping warm": "scarf,blanket,woollen coat,radiator,pair of gloves",
    "telling the time": "clock,wristwatch,sundial,hourglass,alarm clock",
    "carrying things": "suitcase,basket,backpack,wheelbarrow,shopping bag",
    "locking a door": "key,bolt,padlock,door chain,latch",
    "seeing far away": "telescope,pair of binoculars,spyglass,lookout tower,field glass",
    "catching fish": "fishing rod,fish net,hook,harpoon,lobster pot",
    "sitting": "chair,stool,bench,armchair,sofa",
    "cooling food": "fridge,ice box,freezer,cold cellar,ice cube",
}
_MADE = {
    "wood": "log cabin,canoe paddle,barrel,matchstick,picket fence",
    "glass": "window pane,jar,magnifying lens,test tube,marble",
    "iron": "horseshoe,anvil,nail,railway rail,crowbar",
    "paper": "newspaper,envelope,notebook,paper bag,origami crane",
    "wool": "winter jumper,mitten,knitted hat,tweed jacket,ball of yarn",
    "clay": "brick,flower pot,roof tile,pitcher,vase",
    "leather": "saddle,riding boot,belt,wallet,football",
    "stone": "pyramid,statue,castle wall,gravestone,cobbled street",
    "rubber": "car tyre,eraser,hot water bottle,elastic band,wellington boot",
    "wax": "candle,crayon,seal on a letter,honeycomb,taper",
    "milk": "cheese,butter,yogurt,cream,custard",
    "flour": "bread,pancake,noodle,biscuit,dumpling",
    "ice": "iceberg,igloo,icicle,glacier,skating rink",
}
_HAS = {
    "wheels": "wagon,scooter,bicycle,pram,roller skate",
    "wings": "eagle,butterfly,bat,aeroplane,bee",
    "leaves": "oak,maple,cabbage,ivy,hedge",
    "pages": "novel,diary,dictionary,passport,magazine",
    "strings": "guitar,harp,violin,tennis racket,puppet",
    "a shell": "snail,turtle,walnut,oyster,crab",
    "a trunk and tusks": "elephant,mammoth,young elephant,circus elephant,war elephant",
    "a mane": "lion,horse,pony,zebra,unicorn",
    "fins": "shark,goldfish,dolphin,tuna,salmon",
    "thorns": "rose,cactus,bramble,hawthorn,gooseberry bush",
    "steps": "ladder,staircase,escalator,stepladder,front porch",
    "a sail": "windmill,yacht,schooner,windsurfer,pirate ship",
    "a screen": "television,laptop,cinema,smartphone,tablet",
    "antlers": "deer,moose,reindeer,elk,stag",
}
TABLES: tuple[tuple[tuple[str, ...], dict[str, str]], ...] = (
    (
        (
            "Where would you most likely find {}?",
            "If you were looking for {}, where would you go?",
            "A traveller took a picture of {}. Where was the traveller?",
        ),
        _WHERE,
    ),
    (
        (
            "What is {} used for?",
            "She picked {} from a catalogue. What did she have in mind?",
            "What could nobody on the island do before {} arrived?",
        ),
        _USE,
    ),
    (
        (
            "What is {} made of?",
            "What does one need most of to make {}?",
            "The museum keeps {} that is very old. What has it been made from?",
        ),
        _MADE,
    ),
    (
        ("What does {} have?", "What would a child draw to show {}?", "What will you see if you look closely at {}?"),
        _HAS,
    ),
)

# Tool -> the goals that it serves; no goal is served by two tools of the table.
_TOOLS = {
    "a knife": "slice a loaf of bread,peel an apple,cut a rope in two",
    "a hammer": "drive a nail into a board,crack a coconut,break up a paving stone",
    "a towel": "dry wet hair,wipe drops off a mirror,dry your hands",
    "a needle and thread": "sew on a button,mend a torn sleeve,shorten a curtain",
    "a shovel": "dig a hole in the garden,clear snow from a path,move a heap of sand",
    "a magnet": "find a lost pin in the grass,pick up spilled iron filings,tell brass from steel",
    "a sieve": "get lumps out of flour,drain cooked noodles,wash rice under the tap",
    "a ladder": "reach a high roof,pick pears from a tall tree,change a bulb in a high ceiling",
    "a pump": "fill a flat tyre,blow up an air mattress,empty a flooded cellar",
    "a match": "light a candle,start a camp fire,set fire to dry leaves",
    "a corkscrew": "open a bottle of wine,pull a tight cork,get a cork out in one piece",
    "a rolling pin": "flatten dough,crush biscuits to crumbs,make pastry thin",
    "a rubber": "remove a pencil line,correct a pencil sketch,take out a wrong pencilled word",
    "an umbrella": "stay dry in the rain,shade a baby from the sun,keep snow off your hat",
    "a whisk": "beat egg whites stiff,whip cream,stir lumps out of a sauce",
    "a screwdriver": "tighten a loose hinge,open the back of a radio,fix a screw in a wall",
}
_PLACES = {
    "in the freezer": "turn water into ice cubes,keep ice cream hard,store peas for months",
    "in a hot oven": "bake a cake,roast a chicken,brown a gratin",
    "in the sun": "dry a wet shirt,ripen green tomatoes,warm a cold stone",
    "in cold water": "cool a boiled egg,stop cut apples from browning,keep picked flowers fresh",
    "in a dark cupboard": "keep potatoes from sprouting,store spices for a year,protect a photograph from fading",
    "under a heavy book": "press a flower flat,straighten a curled card,hold glued paper down",
    "over a pan of steam": "loosen a stamp from an envelope,melt chocolate gently,soften a stiff felt hat",
    "behind a locked door": "keep a medicine from children,hide a present from a curious guest,guard your savings",
}
# What must come first, and what can only come after it.
_ORDERS = (
    ("paint a window frame", "sand the old paint off", "brush the new paint on"),
    ("wash your hair", "wet your hair", "rub the shampoo in"),
    ("send a letter", "put the sheet into the envelope", "seal the flap"),
    ("boil an egg", "bring the water to the boil", "take the egg out with a spoon"),
    ("hang a picture", "drive a nail into the wall", "hook the frame over it"),
    ("put on shoes", "pull the socks up", "tie the laces"),
    ("plant a bulb", "dig a small hole", "cover it with earth"),
    ("make toast", "slice the loaf", "spread butter on the hot slice"),
    ("light a stove", "stack the wood inside", "hold a flame to the kindling"),
    ("fry an onion", "peel off the dry skin", "stir the pieces in hot oil"),
    ("iron a shirt", "plug the iron in", "move the hot plate over the cloth"),
    ("cross a street", "look both ways", "walk to the other side"),
    ("glue a cup", "clean both broken edges", "press the edges together"),
    ("change a tyre", "jack the car up", "pull the wheel off"),
    ("paint your nails", "shake the bottle", "let the polish dry"),
    ("bake biscuits", "mix flour with butter", "take the tray out of the oven"),
)
_OPENINGS = ("To {},", "How do you {}?", "When you want to {},", "how to {}")


def commonsense_question(random: np.random.Generator) -> tuple[str, str, list[str], int]:
    """A concept, a question about it, five choices, and the number of the right one.

    The wrong choices answer the same question for other concepts, so that the choices alone tell nothing.

    >>> concept, question, choices, label = commonsense_question(np.random.default_rng(2))
    >>> concept in question, len(set(choices)), label in range(5)
    (True, 5, True)
    """
    templates, table = TABLES[random.integers(len(TABLES))]
    answers = [str(answer) for answer in random.permutation(list(table))[:5]]
    label = int(random.integers(5))
    concepts = table[answers[label]].split(",")
    concept = concepts[random.integers(len(concepts))]
    return concept, templates[random.integers(len(templates))].format(article(concept)), answers, label


def physical_question(random: np.random.Generator) -> tuple[str, list[str], int]:
    """A practical goal, two solutions, and the number of the one that works.

    What is wrong for one goal (a tool, a place, an order) is right for another.

    >>> goal, solutions, label = physical_question(np.random.default_rng(0))
    >>> len(set(solutions)), label in (0, 1)
    (2, True)
    """
    kind = random.integers(3)
    if kind == 2:
        aim, first, then = _ORDERS[random.integers(len(_ORDERS))]
        orders = ("{} first, and after that {}.", "{}, then {}.", "start with this: {}; finish with this: {}.")
        form = orders[random.integers(len(orders))]
        right, wrong = form.format(first, then), form.format(then, first)
    else:
        table, forms = (_TOOLS, ("use {}.", "take {}.")) if kind == 0 else (_PLACES, ("put it {}.", "leave it {}."))
        works, fails = (str(name) for name in random.permutation(list(table))[:2])
        aims = table[works].split(",")
        aim = aims[random.integers(len(aims))]
        form = forms[random.integers(len(forms))]
        right, wrong = form.format(works), form.format(fails)
    label = int(random.integers(2))
    goal = _OPENINGS[random.integers(len(_OPENINGS))].format(aim)
    return goal, [right, wrong] if label == 0 else [wrong, right], label
