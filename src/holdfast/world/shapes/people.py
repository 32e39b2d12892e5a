"""People, facing right, with the ground at 100; and the format of all silhouettes.

Each line is `part fill primitive numbers`, the rearmost first; "-" is a detail without a part name. The fills main,
dark and light follow the thing's own colour; skin and hair vary with the person.
"""

_FORMS = {  # the head's width, half the shoulders, half the hips, the body's end, the ground, a limb's width
    "man": (22, 20, 15, 58, 118, 10),
    "woman": (21, 16, 13, 54, 112, 8),
    "child": (30, 16, 15, 58, 96, 9),
}


def _legs(form: str, pose: str) -> list[str]:
    _, _, hip, low, ground, limb = _FORMS[form]
    fill = "skin" if form == "woman" else "denim"
    lines = []
    for side in (-1, 1):
        x = 50 + side * hip / 2
        if pose in ("sit", "ride"):  # the thighs go forward, the shins down
            lines.append(f"leg {fill} line {x - 4} {low - 2} {x + 24} {low + 6} {limb + 1}")
            lines.append(f"leg {fill} line {x + 20} {low + 4} {x + 18} {ground - 16} {limb}")
            lines.append(f"- black line {x + 14} {ground - 14} {x + 30} {ground - 14} 6")
        else:
            foot = x + side * (12 if pose == "walk" else 2)
            lines.append(f"leg {fill} line {x} {low - 4} {foot} {ground - 2} {limb}")
            lines.append(f"- black line {foot - 5} {ground} {foot + 8} {ground} 6")
    return lines


def _arms(form: str, pose: str) -> list[str]:
    head, shoulder, _, _, _, limb = _FORMS[form]
    top, chin, width = head + 9, head + 4, limb - 2
    left, right = 50 - shoulder + 2, 50 + shoulder - 2
    lines = [f"arm dark line {left} {top} {left - 7} {top + 27} {width}"]
    lines.append(f"- skin oval {left - 11} {top + 25} {left - 3} {top + 33}")
    if pose == "eat":
        hand = (58, chin - 2)
        lines.append(f"arm dark line {right} {top} {right + 12} {top + 11} {width}")
        lines.append(f"- dark line {right + 12} {top + 13} {hand[0] + 4} {hand[1]} {width}")
        lines.append(f"- yellow oval {hand[0] - 2} {hand[1] - 12} {hand[0] + 12} {hand[1]}")
    else:
        reach = {"hold": (20, 7), "ride": (18, 17)}.get(pose, (7, 27))
        hand = (right + reach[0], top + reach[1])
        lines.append(f"arm dark line {right} {top} {hand[0]} {hand[1]} {width}")
    return [*lines, f"- skin oval {hand[0] - 4} {hand[1] - 4} {hand[0] + 4} {hand[1] + 4}"]


def person(form: str, pose: str) -> str:
    """The silhouette of a man, a woman or a child, as lines in this format.

    >>> "hair" in person("woman", "stand")
    True
    """
    head, shoulder, hip, low, _, _ = _FORMS[form]
    chin, middle = head + 4, head / 2 + 2
    left, right = 50 - head / 2, 50 + head / 2
    top = chin + 2
    lines = []
    if form == "woman":
        lines.append(f"- hair poly {left - 3} 10 {right + 3} 10 {right + 5} {chin + 16} {left - 5} {chin + 16}")
    lines += _legs(form, pose)
    waist = f"{50 + hip} {low} {50 - hip} {low}"
    if form == "woman":  # a dress
        hem = low + (8 if pose in ("sit", "ride") else 22)
        waist = f"{50 + hip - 3} {low - 8} {60 + hip} {hem} {40 - hip} {hem} {50 - hip + 3} {low - 8}"
    lines += [
        f"body main poly {50 - shoulder} {top} {50 + shoulder} {top} {waist}",
        f"- skin box 46 {chin - 4} 54 {top + 1}",
        f"head skin oval {left} 2 {right} {chin}",
        f"- hair poly {left} {middle} {left + 1} 4 44 0 56 0 {right - 1} 4 {right} 11 50 8 {left + 4} 11",
        f"- black oval 51 {middle} 54 {middle + 3}",
        f"- black oval 56 {middle} 59 {middle + 3}",
        f"- red line 52 {chin - 5} 57 {chin - 5} 1.6",
    ]
    return "\n".join(lines + _arms(form, pose))
