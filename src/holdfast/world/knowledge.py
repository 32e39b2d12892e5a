"""Common knowledge about things: where they are, what they are for, what they are made of, what they have.

There are many wordings of questions and few facts behind them, so that no question needs to recur to be learnt.
"""

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
            "Where would {name} most likely find {}?",
            "If {name} were looking for {}, where would {name} go?",
            "{name} took a picture of {}. Where was {name}?",
            "{name} wants to see {}. Where should {name} go?",
            "{name} has just passed {}. Where is {name}?",
            "{name} dreamt of {} last night. Where did the dream take place?",
            "Where did {name} come across {}?",
            "{name} is writing a story with {} in it. Where may it be set?",
        ),
        _WHERE,
    ),
    (
        (
            "{name} owns {}. What is it used for?",
            "{name} picked {} from a catalogue. What did {name} have in mind?",
            "What could nobody on the island do before {name} arrived with {}?",
            "{name} has bought {}. What is {name} going to need it for?",
            "{name} asked for {} as a present. What does {name} like?",
            "Why would {name} want {}?",
            "{name} borrowed {} from a neighbour. For what purpose?",
            "What does {name} do with the help of {}?",
        ),
        _USE,
    ),
    (
        (
            "{name} looks at {}. What is it made of?",
            "What does {name} need most of to make {}?",
            "The museum shows {name} {} that is very old. What has it been made from?",
            "{name} would like to make {}. What must {name} get?",
            "{name} touched {} in the dark. What did it feel like?",
            "What was used for {} that {name} saw?",
            "{name} drew {} and wrote its material below. What did {name} write?",
            "Without which stuff could {name} not have {}?",
        ),
        _MADE,
    ),
    (
        (
            "{name} has a picture of {}. What does it have?",
            "What would {name} draw to show {}?",
            "What will {name} see on looking closely at {}?",
            "{name} took a photograph of {}. What can be seen in it?",
            "{name} described {} to a friend. What did {name} mention?",
            "By what did {name} recognise {}?",
            "{name} forgot a part of {} in a drawing. Which one?",
            "What did {name} point at when {} came into view?",
        ),
        _HAS,
    ),
)

_NAMES = (
    *(
        "Anna",
        "Ben",
        "Clara",
        "David",
        "Emma",
        "Felix",
        "Greta",
        "Henry",
        "Ida",
        "Jonas",
        "Karen",
        "Leo",
        "Mia",
        "Nils",
    ),
    *("Olga", "Paul", "Quentin", "Rosa", "Simon", "Tilda", "Ursula", "Victor", "Wanda", "Xaver", "Yara", "Zeno"),
    *(
        "Amir",
        "Bela",
        "Carlos",
        "Dina",
        "Elif",
        "Farid",
        "Hana",
        "Ivan",
        "Jun",
        "Kofi",
        "Lena",
        "Mateo",
        "Noor",
        "Omar",
    ),
)


def stems() -> int:
    """The number of different questions: far more than CommonsenseQA's 12,102.

    >>> stems() > 50_000
    True
    """
    return sum(
        sum(len(concepts.split(",")) for concepts in table.values()) * len(templates) * len(_NAMES)
        for templates, table in TABLES
    )


def commonsense_question(random: np.random.Generator) -> tuple[str, str, list[str], int]:
    """A concept, a question about it, five choices, and the index of the right one.

    The wrong choices answer the same question for other concepts, so that the choices alone give nothing away.

    >>> concept, question, choices, label = commonsense_question(np.random.default_rng(2))
    >>> concept in question, len(set(choices)), label in range(5)
    (True, 5, True)
    """
    templates, table = TABLES[random.integers(len(TABLES))]
    answers = [str(answer) for answer in random.permutation(list(table))[:5]]
    label = int(random.integers(5))
    concepts = table[answers[label]].split(",")
    concept = concepts[random.integers(len(concepts))]
    template, name = templates[random.integers(len(templates))], _NAMES[random.integers(len(_NAMES))]
    return concept, template.format(article(concept), name=name), answers, label
