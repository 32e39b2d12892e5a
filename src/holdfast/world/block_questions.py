"""Questions about blocks, each with the program that answers it, in the words and functions of CLEVR.

A question is made from its program: the answer is the result of running the program on the scene. For each form of
yes/no question both answers are given equally often, so that the words alone do not reveal the answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from holdfast.errors import UserError
from holdfast.world.blocks import COLOURS, MATERIALS, RELATIONS, SHAPES, SIZES, Block, Blocks

VALUES: dict[str, tuple[str, ...]] = {
    "size": tuple(SIZES),
    "color": tuple(COLOURS),
    "material": MATERIALS,
    "shape": SHAPES,
}
ATTRIBUTES = tuple(VALUES)
# A number for each template, 0 to 89: the official files of templates one after another, by name. The numbering used in
# the release is not documented.
FIRST_FAMILY = {"compare_integer": 0, "comparison": 9, "same_relate": 31, "single_and": 59, "single_or": 64}
FIRST_HOP_FAMILY = (84, 25, 78, 72)
QUERIES = ("count", "exist", *(f"query_{attribute}" for attribute in ATTRIBUTES))

_WORDS = {
    "small": ("small", "tiny"),
    "large": ("large", "big"),
    "metal": ("metal", "shiny", "metallic"),
    "rubber": ("rubber", "matte"),
    "cube": ("cube", "block"),
    "sphere": ("sphere", "ball"),
    "cylinder": ("cylinder",),
}
_RELATION_WORDS = {
    "left": ("left of", "to the left of", "on the left side of"),
    "right": ("right of", "to the right of", "on the right side of"),
    "behind": ("behind",),
    "front": ("in front of",),
}
_COMPARISONS = {
    "equal_integer": "Are there the same number of {} and {}?",
    "less_than": "Are there fewer {} than {}?",
    "greater_than": "Are there more {} than {}?",
}


@dataclass(frozen=True)
class BlockQuestion:
    """A question, its answer as written in the files (always a string), its program and its family."""

    text: str
    answer: str
    program: list[dict[str, Any]]
    family: int


@dataclass
class Balance:
    """How often each form of question was answered with yes and with no, and which answer is due next."""

    answers: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    owed: dict[tuple[Any, ...], str] = field(default_factory=dict)

    def wanted(self, form: tuple[Any, ...], random: np.random.Generator) -> str:
        """The answer that has been given less often. One that was drawn but not found stays due."""
        if form not in self.owed:
            yes, no = self.answers[*form, "yes"], self.answers[*form, "no"]
            self.owed[form] = _some(random, ("yes", "no")) if yes == no else ("yes" if yes < no else "no")
        return self.owed[form]

    def given(self, form: tuple[Any, ...], answer: str) -> None:
        """Count an answer."""
        self.answers[*form, answer] += 1
        self.owed.pop(form, None)


@dataclass
class _Draft:
    """A program under construction: adding a step returns the number of its node."""

    nodes: list[dict[str, Any]] = field(default_factory=list)

    def add(self, function: str, *inputs: int, value: str | None = None) -> int:
        values = [] if value is None else [value]
        self.nodes.append({"inputs": list(inputs), "function": function, "value_inputs": values})
        return len(self.nodes) - 1

    def filters(self, start: int, wanted: dict[str, str]) -> int:
        for attribute in ATTRIBUTES:
            if attribute in wanted:
                start = self.add(f"filter_{attribute}", start, value=wanted[attribute])
        return start

    def unique(self, wanted: dict[str, str]) -> int:
        return self.add("unique", self.filters(self.add("scene"), wanted))


def value_of(block: Block, attribute: str) -> str:
    """An attribute of a block by its official name.

    >>> value_of(Block("cube", "red", "metal", "small", (0.0, 0.0), 0.0), "color")
    'red'
    """
    found: str = getattr(block, "colour" if attribute == "color" else attribute)
    return found


def run_program(program: Sequence[dict[str, Any]], scene: Blocks) -> str | None:
    """A program's answer about a scene; None if it asks for "the" block and there is none, or several.

    >>> scene = Blocks(0, (Block("cube", "red", "metal", "small", (0.0, 0.0), 0.0),))
    >>> look = {"inputs": [], "function": "scene", "value_inputs": []}
    >>> run_program([look, {"inputs": [0], "function": "count", "value_inputs": []}], scene)
    '1'
    """
    results: list[Any] = []
    for node in program:
        given = [results[index] for index in node["inputs"]]
        result = _step(node["function"], given, node["value_inputs"], scene)
        if result is None:
            return None
        results.append(result)
    last = results[-1]
    return ("yes" if last else "no") if isinstance(last, bool) else str(last)


def ask(scene: Blocks, random: np.random.Generator, kind: str, balance: Balance, hops: int = 3) -> BlockQuestion | None:
    """One question whose program ends in a function of the given kind, or None if a few attempts found none.

    At most `hops` relations ("left of ...") lead to the block in question.

    >>> from holdfast.world.blocks import make_blocks
    >>> question = ask(make_blocks(0, 3), np.random.default_rng(0), "equal_size", Balance())
    >>> question.answer in ("yes", "no"), question.program[-1]["function"]
    (True, 'equal_size')
    """
    if kind not in KINDS:
        raise UserError(f"unknown kind of question {kind!r}: there are {', '.join(KINDS)}")
    draw, make = KINDS[kind]
    form = (kind, *draw(random, hops))
    yes_or_no = kind.startswith(("equal", "exist", "less", "greater"))
    wanted = balance.wanted(form, random) if yes_or_no else None
    for _ in range(60):
        question = make(scene, random, form)
        answer = run_program(question.program, scene) if question else None
        if question and answer is not None and wanted in (None, answer):
            balance.given(form, answer)
            return replace(question, answer=answer)
    return None


def _step(function: str, given: list[Any], values: list[str], scene: Blocks) -> Any:
    if function == "scene":
        return list(range(len(scene.things)))
    if function == "unique":
        return given[0][0] if len(given[0]) == 1 else None
    name, _, attribute = function.partition("_")
    if name == "filter":
        known, wanted = scene.values[attribute], values[0]
        return [index for index in given[0] if known[index] == wanted]
    if name == "query":
        return scene.values[attribute][given[0]]
    if name == "same":
        known = scene.values[attribute]
        return [index for index, value in enumerate(known) if index != given[0] and value == known[given[0]]]
    if name == "equal":
        return bool(given[0] == given[1])
    if function == "relate":
        return scene.related[values[0]][given[0]]
    return _SIMPLE[function](*given)


_SIMPLE: dict[str, Callable[..., Any]] = {
    "count": len,
    "exist": bool,
    "intersect": lambda one, two: sorted(set(one) & set(two)),
    "union": lambda one, two: sorted(set(one) | set(two)),
    "less_than": lambda one, two: one < two,
    "greater_than": lambda one, two: one > two,
}


def _some(random: np.random.Generator, options: Sequence[str]) -> str:
    return options[int(random.integers(len(options)))]


def _subset(random: np.random.Generator, names: Sequence[str], least: int = 1) -> tuple[str, ...]:
    count = int(random.integers(least, len(names) + 1))
    return tuple(names[index] for index in sorted(random.permutation(len(names))[:count]))


def _describe(scene: Blocks, random: np.random.Generator, names: Sequence[str]) -> dict[str, str]:
    """The named attributes of some block of the scene."""
    block = scene.things[int(random.integers(len(scene.things)))]
    return {name: value_of(block, name) for name in names}


def _pointer(scene: Blocks, random: np.random.Generator, without: str = "") -> dict[str, str]:
    """Attributes that may single out one block of the scene, never including the one that is asked for."""
    return _describe(scene, random, _subset(random, [name for name in ATTRIBUTES if name != without]))


def _guess(scene: Blocks, random: np.random.Generator, names: Sequence[str]) -> dict[str, str]:
    """A description that may fit or not: that of a block, with one value redrawn half of the time."""
    wanted = _describe(scene, random, names)
    if random.random() < 0.5:
        name = _some(random, list(wanted))
        wanted[name] = _some(random, VALUES[name])
    return wanted


def _phrase(random: np.random.Generator, wanted: dict[str, str], plural: bool = False) -> str:
    """A description in words: "tiny red metal ball"."""
    noun = _some(random, _WORDS[wanted["shape"]]) if "shape" in wanted else _some(random, ("thing", "object"))
    words = [_some(random, _WORDS.get(wanted[name], (wanted[name],))) for name in ATTRIBUTES[:-1] if name in wanted]
    return " ".join([*words, noun + "s" if plural else noun])


def _relation(random: np.random.Generator, relation: str, wanted: dict[str, str]) -> str:
    return f"{_some(random, _RELATION_WORDS[relation])} the {_phrase(random, wanted)}"


_Form = tuple[Any, ...]


def _hops_form(random: np.random.Generator, hops: int) -> _Form:
    """How many relations lead to the block, and what describes it: always a colour, so that "no" can be true."""
    drawn = min(hops, int(random.choice(4, p=[0.4, 0.3, 0.2, 0.1])))
    return drawn, ("color", *_subset(random, ("size", "material", "shape")))


def _related_form(random: np.random.Generator, hops: int) -> _Form:
    """Whether a relation leads to the second of two blocks."""
    return (bool(random.random() < 0.3) and hops > 0,)


def _hops(scene: Blocks, random: np.random.Generator, form: _Form) -> BlockQuestion:
    """Count, exist or query at the end of a chain of up to three relations."""
    last, hops, names = form
    asked = last.removeprefix("query_") if last.startswith("query_") else ""
    draft = _Draft()
    place = ""
    node = draft.add("scene")
    for hop in range(hops):
        pointed = _pointer(scene, random)
        relation = _some(random, RELATIONS)
        node = draft.add("relate", draft.add("unique", draft.filters(node, pointed)), value=relation)
        place = f" {_relation(random, relation, pointed)}" + (f" that is{place}" if hop else "")
    wanted = _pointer(scene, random, asked) if asked else _guess(scene, random, names)
    node = draft.filters(node, wanted)
    family = FIRST_HOP_FAMILY[hops] + QUERIES.index(last)
    draft.add(last, draft.add("unique", node) if asked else node)
    if asked:
        start = f"What {asked} is" if asked != "material" and random.random() < 0.5 else f"What is the {asked} of"
        that = f" that is{place}" if place else ""
        return BlockQuestion(f"{start} the {_phrase(random, wanted)}{that}?", "", draft.nodes, family)
    things = _phrase(random, wanted, plural=True)
    if last == "exist":
        return BlockQuestion(f"Are there any {things}{place}?", "", draft.nodes, family)
    return BlockQuestion(f"How many {things} are{place or ' there'}?", "", draft.nodes, family)


def _comparison(scene: Blocks, random: np.random.Generator, form: _Form) -> BlockQuestion | None:
    """Do two blocks have the same size, colour, material or shape?"""
    kind, related = form
    attribute = kind.removeprefix("equal_")
    one, two = _pointer(scene, random, attribute), _pointer(scene, random, attribute)
    draft = _Draft()
    first = draft.unique(one)
    if related:
        other, relation = _pointer(scene, random), _some(random, RELATIONS)
        node = draft.add("relate", draft.unique(other), value=relation)
        second = draft.add("unique", draft.filters(node, two))
        that = f" that is {_relation(random, relation, other)}"
    else:
        second, that = draft.unique(two), ""
    draft.add(kind, draft.add(f"query_{attribute}", first), draft.add(f"query_{attribute}", second))
    left, right = _phrase(random, one), _phrase(random, two)
    text = f"Does the {left} have the same {attribute} as the {right}{that}?"
    if attribute == "material":
        text = f"Is the {left} made of the same material as the {right}{that}?"
    elif random.random() < 0.5:
        text = f"Is the {attribute} of the {left} the same as the {right}{that}?"
    # Comparing a block with itself makes no question.
    if one == two or _same_block(scene, draft.nodes, first, second):
        return None
    family = FIRST_FAMILY["comparison"] + ATTRIBUTES.index(attribute) + 4 * related
    return BlockQuestion(text, "", draft.nodes, family)


def _same_block(scene: Blocks, program: list[dict[str, Any]], first: int, second: int) -> bool:
    return run_program(program[: first + 1], scene) == run_program(program[: second + 1], scene)


def _compare_integer(scene: Blocks, random: np.random.Generator, form: _Form) -> BlockQuestion | None:
    kind, names = form
    one, two = _guess(scene, random, names), _guess(scene, random, names)
    draft = _Draft()
    first = draft.add("count", draft.filters(draft.add("scene"), one))
    second = draft.add("count", draft.filters(draft.add("scene"), two))
    draft.add(kind, first, second)
    text = _COMPARISONS[kind].format(_phrase(random, one, True), _phrase(random, two, True))
    family = FIRST_FAMILY["compare_integer"] + list(_COMPARISONS).index(kind)
    return None if one == two else BlockQuestion(text, "", draft.nodes, family)


def _same_relate(scene: Blocks, random: np.random.Generator, form: _Form) -> BlockQuestion:
    """Are there other blocks with the same attribute as this one, and how many?"""
    kind, attribute = form
    last = kind.removesuffix("_same")
    wanted = _pointer(scene, random, attribute)
    draft = _Draft()
    draft.add(last, draft.add(f"same_{attribute}", draft.unique(wanted)))
    start = "Is there any other thing that has" if last == "exist" else "How many other things have"
    family = FIRST_FAMILY["same_relate"] + 7 * ATTRIBUTES.index(attribute) + ("exist", "count").index(last)
    return BlockQuestion(f"{start} the same {attribute} as the {_phrase(random, wanted)}?", "", draft.nodes, family)


def _both(scene: Blocks, random: np.random.Generator, form: _Form) -> BlockQuestion | None:
    one, two = _pointer(scene, random), _pointer(scene, random)
    relation, other = _some(random, RELATIONS), _some(random, RELATIONS)
    draft = _Draft()
    first = draft.add("relate", draft.unique(one), value=relation)
    second = draft.add("relate", draft.unique(two), value=other)
    draft.add("count", draft.add("intersect", first, second))
    text = f"How many objects are both {_relation(random, relation, one)} and {_relation(random, other, two)}?"
    return None if one == two else BlockQuestion(text, "", draft.nodes, FIRST_FAMILY["single_and"])


def _either(scene: Blocks, random: np.random.Generator, form: _Form) -> BlockQuestion | None:
    one, two = _pointer(scene, random), _pointer(scene, random)
    draft = _Draft()
    first, second = draft.filters(draft.add("scene"), one), draft.filters(draft.add("scene"), two)
    draft.add("count", draft.add("union", first, second))
    text = f"How many objects are either {_phrase(random, one, True)} or {_phrase(random, two, True)}?"
    return None if one == two else BlockQuestion(text, "", draft.nodes, FIRST_FAMILY["single_or"])


_Draw = Callable[[np.random.Generator, int], _Form]
_Make = Callable[[Blocks, np.random.Generator, _Form], BlockQuestion | None]
KINDS: dict[str, tuple[_Draw, _Make]] = {
    **{f"query_{attribute}": (_hops_form, _hops) for attribute in ATTRIBUTES},
    **{f"equal_{attribute}": (_related_form, _comparison) for attribute in ATTRIBUTES},
    "exist": (_hops_form, _hops),
    "count": (_hops_form, _hops),
    **{kind: (lambda random, hops: (_subset(random, ATTRIBUTES),), _compare_integer) for kind in _COMPARISONS},
    "exist_same": (lambda random, hops: (_some(random, ATTRIBUTES),), _same_relate),
    "count_same": (lambda random, hops: (_some(random, ATTRIBUTES),), _same_relate),
    "count_both": (lambda random, hops: (), _both),
    "count_either": (lambda random, hops: (), _either),
}
