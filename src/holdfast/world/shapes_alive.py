"""The silhouettes of persons and animals, looking to the right, the ground at 100.

Each line is `part fill primitive numbers`, the rearmost first; "-" is a detail without a part's name.
The fills main, dark and light follow the thing's own colour; skin and hair vary with the person.
"""

ALIVE: dict[str, str] = {
    "bird": """
        tail dark poly 22 52 0 44 4 60 24 62
        foot orange line 46 70 44 98 4; foot orange line 56 70 58 98 4
        - orange line 42 98 54 98 4; - orange line 56 98 68 98 4
        body main oval 18 38 74 78; head main oval 58 18 88 48
        - orange poly 86 27 104 34 86 40; wing dark poly 26 46 60 50 54 66 38 70 14 62; - black oval 72 26 79 33""",
    "bird fly": """
        tail dark poly 24 52 0 46 0 60 24 62
        wing dark poly 52 56 70 52 84 4 60 14; body main oval 20 44 76 70; head main oval 66 34 92 58
        - orange poly 90 42 106 47 90 52; wing dark poly 34 54 58 52 40 0 14 8; - black oval 78 40 84 46""",
    "cat": """
        tail main line 24 58 6 48 6; tail main line 7 50 4 16 6
        leg main line 30 62 30 99 8; leg main line 40 62 40 98 8; leg main line 62 62 62 99 8
        leg main line 71 62 71 98 8
        body main oval 20 44 78 76; - main poly 64 36 66 14 78 28; - main poly 84 28 95 14 97 36
        - pink poly 68 30 68 20 74 27; - pink poly 88 27 94 20 94 30
        head main oval 63 24 98 56; - yellow oval 70 34 77 42; - yellow oval 85 34 92 42
        - black oval 72 35 75 42; - black oval 87 35 90 42; - pink poly 78 44 84 44 81 48
        - gray line 60 46 76 47 1.5; - gray line 86 47 102 46 1.5""",
    "cat sit": """
        tail main line 34 92 8 88 6; tail main line 9 90 2 66 6; body main oval 26 46 72 98; leg main oval 24 70 54 99
        leg main line 60 58 62 99 8; leg main line 68 58 71 98 8
        - main poly 48 24 50 2 62 16; - main poly 68 16 79 2 81 24; - pink poly 52 18 52 8 58 15
        - pink poly 72 15 78 8 78 18; head main oval 47 12 82 44; - yellow oval 54 22 61 30; - yellow oval 69 22 76 30
        - black oval 56 23 59 30; - black oval 71 23 74 30; - pink poly 62 32 68 32 65 36; - dark line 50 88 38 97 2
        - gray line 44 34 60 35 1.5; - gray line 70 35 86 34 1.5""",
    "dog": """
        tail main line 20 50 2 24 7
        leg main line 26 60 26 99 9; leg main line 38 60 38 98 9; leg main line 62 60 62 99 9
        leg main line 73 60 73 98 9
        body main oval 14 38 82 72; - main poly 60 46 72 26 86 40 80 62
        head main oval 66 12 96 44; - main oval 82 24 112 44; - black oval 104 24 114 32
        - dark oval 62 14 76 46; - white oval 84 18 91 25; - black oval 86 19 91 25
        - red poly 92 43 100 43 98 52 93 52""",
    "dog sit": """
        tail main line 28 90 4 74 7; body main poly 22 92 26 70 48 44 62 34 76 44 74 80 64 98 30 99
        leg main oval 18 68 54 100; leg main line 64 60 66 99 9; leg main line 72 56 76 98 9; head main oval 50 4 82 38
        - main oval 68 18 98 38; - black oval 90 18 100 26; - dark oval 46 8 60 42; - white oval 70 11 77 18
        - black oval 72 12 77 18; - red poly 78 37 86 37 84 46 79 46; - dark line 50 86 40 97 2""",
    "horse": """
        tail dark poly 12 34 0 42 2 74 8 74 10 48 18 42
        leg main line 22 50 20 99 8; leg main line 32 50 33 98 8; leg main line 62 50 62 99 8
        leg main line 72 50 73 98 8
        body main oval 12 30 80 62; - main poly 58 44 78 4 92 10 80 52
        - dark poly 54 36 74 0 82 4 64 42; head main poly 76 2 90 2 112 24 106 32 84 22
        - main poly 78 6 80 -6 86 3
        - black oval 88 8 92 12; - black oval 105 23 108 26""",
    "sheep": """
        leg black line 30 70 30 99 7; leg black line 40 70 40 98 7; leg black line 62 70 62 99 7
        leg black line 71 70 71 98 7
        - main oval 8 40 36 72; - main oval 16 30 44 56; - main oval 36 26 62 52; - main oval 54 30 82 56
        - main oval 58 44 86 74; - main oval 22 54 50 80; - main oval 44 54 72 80; body main oval 14 34 80 76
        head dark oval 78 30 100 62; - dark poly 80 38 66 44 80 46; - main oval 74 24 94 40
        - white oval 86 40 92 46; - black oval 88 41 92 46""",
    "cow": """
        tail main line 14 38 4 62 3; - dark oval 0 60 8 74
        leg main line 22 60 22 99 9; leg main line 34 60 34 98 9; leg main line 64 60 64 99 9
        leg main line 75 60 75 98 9
        - pink oval 38 64 56 80; body main poly 12 34 18 30 80 30 84 36 82 66 76 70 20 70 12 62
        - white poly 28 32 46 32 48 46 36 52 26 44; - white oval 54 44 72 62
        - light line 86 22 80 8 4; - light line 100 22 106 8 4
        head main poly 80 20 106 20 108 36 104 52 88 52 80 38; - pink oval 86 42 108 58
        - black oval 86 27 91 32; - black oval 98 27 103 32; - black oval 91 48 94 52; - black oval 100 48 103 52
        - dark poly 82 24 70 26 78 34""",
    "elephant": """
        tail dark line 6 40 0 66 3
        leg dark line 22 60 22 99 15; leg main line 36 60 36 99 15; leg dark line 58 60 58 99 15
        leg main line 72 60 72 99 15
        body main oval 4 20 86 80; head main oval 66 10 104 58
        trunk main poly 90 30 106 34 112 60 110 92 102 92 102 64 88 54; - white poly 92 54 100 54 114 66 112 70
        - dark oval 58 12 84 58; - black oval 90 26 95 31""",
    "bear": """
        leg dark line 22 66 20 99 16; leg main line 38 66 38 99 16; leg dark line 62 66 62 99 16
        leg main line 76 66 76 99 16
        body main oval 6 30 88 82; - main oval 70 18 82 32; - main oval 92 18 104 32
        head main oval 68 22 106 60; - light oval 88 38 114 58; - black oval 106 38 115 46
        - black oval 86 32 91 37""",
    "zebra": """
        tail main line 14 38 4 64 4; - black oval 0 60 8 76
        leg main line 22 52 21 99 8; leg main line 32 52 33 98 8; leg main line 60 52 60 99 8
        leg main line 70 52 71 98 8
        body main oval 12 32 78 64; - black poly 60 34 76 2 84 6 70 40; - main poly 60 46 76 8 88 12 78 54
        head main poly 72 4 86 4 104 22 100 32 80 24; - black poly 96 22 104 22 101 32 95 30
        - main oval 72 -4 80 10; - black oval 83 9 87 13""",
    "giraffe": """
        tail main line 14 62 6 80 3
        leg main line 22 70 20 119 5; leg main line 30 70 30 119 5; leg main line 50 70 50 119 5
        leg main line 58 70 59 119 5
        body main poly 12 60 50 50 64 52 62 74 20 78; neck main poly 48 58 66 2 76 4 64 62
        head main poly 64 -8 76 -8 94 4 90 12 68 6; - brown line 68 -8 66 -18 3; - brown line 74 -8 74 -18 3
        - main poly 64 -4 54 -8 64 -10; - black oval 76 -5 80 -1""",
}

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
    """The silhouette of a man, a woman or a child, as lines of the table above.

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
