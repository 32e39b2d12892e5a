"""The two kinds of error that a user can meet; anything else is a bug in Holdfast."""

import difflib
import unicodedata
from collections.abc import Iterable

_TURNING = ("RLE", "LRE", "RLO", "LRO", "PDF", "RLI", "LRI", "FSI", "PDI")


def printable(text: str) -> str:
    """Untrusted text, made safe for a terminal: control characters and bidirectional overrides are escaped.

    >>> print(printable("one\x1b[2Jtwo \u202ethree"))
    one\\x1b[2Jtwo \\u202ethree
    """
    if text.isprintable():
        return text
    return "".join(letter if _is_shown(letter) else ascii(letter)[1:-1] for letter in text)


def _is_shown(letter: str) -> bool:
    if letter.isprintable() or letter in "\n\t":
        return True
    return unicodedata.category(letter) not in ("Cc", "Cs") and unicodedata.bidirectional(letter) not in _TURNING


class UserError(ValueError):
    """The call or the data was wrong: the message says what, where, and what to do (exit status 2)."""

    def __str__(self) -> str:
        return printable(super().__str__())


class Stopped(Exception):  # noqa: N818 (not an error: a stop was requested)
    """The run stopped because it was asked to; its progress is saved (exit status 130)."""


class RunError(RuntimeError):
    """A run could not continue, through no fault of the call: its progress is kept (exit status 1)."""

    def __str__(self) -> str:
        return printable(super().__str__())


def in_bytes(number: float) -> str:
    """A number of bytes in a suitable unit.

    >>> in_bytes(999), in_bytes(12_300), in_bytes(3.2e9)
    ('999 bytes', '12.3 kB', '3.2 GB')
    """
    for size, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if number >= size:
            return f"{number / size:,.1f} {unit}"
    return f"{number:.0f} bytes"


def missing_extra(need: str, extra: str) -> UserError:
    """The error for an optional package that is not installed; it names the extra that includes the package.

    >>> missing_extra("the picture needs matplotlib", "pictures")
    UserError('the picture needs matplotlib: pip install "holdfast[pictures]"')
    """
    return UserError(f'{need}: pip install "holdfast[{extra}]"')


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: the most similar known ones, or all of them.

    >>> nearest("replya", ["replay", "joint"])
    'did you mean replay?'
    >>> nearest("zzz", ["replay", "joint"])
    'there are replay, joint'
    """
    names = list(known)
    lower = {known.lower(): known for known in names}
    close = [lower[match] for match in difflib.get_close_matches(name.lower(), lower, n=3)]
    return f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(names) or 'none'}"
