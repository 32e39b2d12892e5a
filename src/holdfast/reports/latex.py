"""Tables as LaTeX, with booktabs alone: narrow ones in a column, wide ones over the page, wider ones in blocks.

Widths are estimated from Computer Modern, whose letters are wider than those of Times. A table that fits the narrowest
column in use is a `table`; any other is a `table*`, which spans both columns of a page or, in a class with one column,
is the same as a `table`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from holdfast.reports.blocks import Cell, TableBlock
from holdfast.reports.terminal import in_blocks

SIZES = {r"\small": (21.5, 34.5), r"\footnotesize": (24.0, 38.0)}
"""The widths of a column and of a page in em: the least among article (10 to 12 points, one or two columns) and the
classes of conferences."""
SPACE = 0.9
"""Between two columns."""
PROSE = 16.0
"""A column of text that is wider than this is a paragraph of this width."""
SHORT, LONG = 12, 20
"""Words with more letters than the first may be broken after signs, and any run of letters after the second."""
_LETTERS = {
    "ijl.,:;!'|·": 0.3, "fjrst()[]- /": 0.42, "0123456789": 0.53, "mw%&#@→≥≤×": 0.87, "MW": 1.06, "±−+=<>–": 0.82
}  # fmt: skip
_WIDTHS = {letter: width for letters, width in _LETTERS.items() for letter in letters}
_DASH = "\ue000"
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "→": r"$\rightarrow$",
    "−": r"$-$",
    "×": r"$\times$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "·": r"$\cdot$",
    "–": _DASH,
    ">": r"$>$",
    "<": r"$<$",
    "|": r"\textbar{}",
    '"': "''",
}
_BREAKS = frozenset("_>-/=,:;.(+@|")


def latex_table(table: TableBlock, notes: Sequence[str], command: str = "") -> str:
    """The table as LaTeX, under a comment with the command that made it.

    Its arrows and signs are commands; other letters beyond ASCII need an engine that reads UTF-8, as all do today.
    """
    widths = [max(map(_width, cells)) for cells in zip(table.columns, *table.rows, strict=True)]
    texts = [all(row[place].number is None for row in table.rows) for place in range(len(widths))]
    wraps = [text and width > PROSE for text, width in zip(texts, widths, strict=True)]
    widths = [PROSE if wrap else width for wrap, width in zip(wraps, widths, strict=True)]
    kind, size, room = _room(sum(widths) + SPACE * (len(widths) - 1))
    lines = [f"% {' '.join(command.split())}"] if command else []
    lines += [f"\\begin{{{kind}}}", rf"  \centering{size}\setlength{{\tabcolsep}}{{{SPACE / 2}em}}\sloppy"]
    for number, block in enumerate(_balanced([width + SPACE for width in widths], room + SPACE)):
        lines += [r"", r"  \medskip"] if number else []
        lines += _tabular(table, block, wraps)
    lines.append(f"  \\caption{{{escape_latex(' '.join([table.title + '.', *notes]))}}}")
    return "\n".join([*lines, f"  \\label{{tab:{slug(table.title)}}}", f"\\end{{{kind}}}", ""])


def _room(width: float) -> tuple[str, str, float]:
    """The environment, the size of letters and the room for a table of this width: a column rather than a page."""
    for place, kind in enumerate(("table", "table*")):
        for size, rooms in SIZES.items():
            if width <= rooms[place]:
                return kind, size, rooms[place]
    return "table*", size, rooms[1]


def _balanced(widths: Sequence[float], room: float) -> list[list[int]]:
    """The columns in as few blocks as fit, about equally wide.

    >>> _balanced([4, 3, 3, 3, 3, 3], 16)
    [[0, 1, 2, 3], [0, 4, 5]]
    """
    blocks = in_blocks(widths, 1, room)
    while len(blocks) > 1 and len(found := in_blocks(widths, 1, room := room - 1)) == len(blocks):
        blocks = found
    return blocks


def _tabular(table: TableBlock, block: Sequence[int], wraps: Sequence[bool]) -> list[str]:
    kinds = "".join(f"p{{{PROSE}em}}" if wraps[place] else "r" if place else "l" for place in block)
    end = r"\tabularnewline" if any(wraps[place] for place in block) else r"\\"
    ragged = [r"\raggedright " if wraps[place] else "" for place in block]

    def row(words: Sequence[str]) -> str:
        return f"    {' & '.join(before + word for before, word in zip(ragged, words, strict=True))} {end}"

    lines = [f"  \\begin{{tabular}}{{@{{}}{kinds}@{{}}}}", r"    \toprule"]
    lines += [row([escape_latex(table.columns[place]) for place in block]), r"    \midrule"]
    lines += [row([_cell(each[place]) for place in block]) for each in table.rows]
    return [*lines, r"    \bottomrule", r"  \end{tabular}"]


def escape_latex(text: str) -> str:
    """Text that LaTeX prints as it is, and may break within long words.

    >>> escape_latex("50 % of a_b")
    '50 \\\\% of a\\\\_b'
    >>> escape_latex("first>second>third")
    'first$>$\\\\allowbreak{}second$>$\\\\allowbreak{}third'
    """
    return "".join(_word(word) for word in re.split(r"(\s+)", text)).replace("--", "-{}-").replace(_DASH, "--")


def _word(word: str) -> str:
    if len(word) <= SHORT:
        return "".join(_SPECIAL.get(letter, letter) for letter in word)
    found, since = [], 0
    for letter in word:
        found.append(_SPECIAL.get(letter, letter))
        since = 0 if letter in _BREAKS else since + 1
        if letter in _BREAKS or since == LONG:
            found.append(r"\allowbreak{}")
            since = 0
    return "".join(found).removesuffix(r"\allowbreak{}")


def slug(text: str) -> str:
    """A name for labels and files.

    >>> slug("small · T_F ↓")
    'small-t-f'
    """
    return "-".join(re.findall("[a-z0-9]+", text.lower()))


def _cell(cell: Cell) -> str:
    word = escape_latex(cell.plain.replace("-", "−") if cell.number is not None else cell.plain)
    word = f"\\textbf{{{word}}}" if cell.best else word
    return f"{word} ({escape_latex(cell.published)})" if cell.published else word


def _width(shown: Cell | str) -> float:
    """The width of a cell or a column's head, in em."""
    if isinstance(shown, str):
        return _em(shown)
    own = _em(shown.plain) * (1.16 if shown.best else 1.0)
    return own + (_em(f" ({shown.published})") if shown.published else 0.0)


def _em(text: str) -> float:
    return sum(_WIDTHS.get(letter, 0.8 if letter.isupper() else 0.57) for letter in text)
