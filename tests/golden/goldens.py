"""Goldens: what each built-in part gave when its version was last raised. `make goldens` measures anew.

Run as a program, this records the cases that are new and those whose versions were raised. With --force it records all.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from golden.cases import CASES
from golden.small import Outcome, Values
from holdfast import registry
from holdfast.experiments.parts import KINDS

FOLDER = Path(__file__).parent / "parts"
TOLERANCE = 1e-6
"""Relative: rounding differs between CPUs by far less."""
SUMS = ("projections", "outputs")
"""Numbers that are sums of larger ones, and so are right relative to the largest of them."""
DIGITS = 10
ROOT = Path(__file__).parents[2]
FILES = {"engine": "engine/__init__.py", "optimiser": "engine/optimiser.py", "augment": "data/augment.py"}
FILES |= {"transform": "data/streams.py", "tokenizer": "data/text.py", "decoding": "data/decoding.py"}
FILES |= {"reader": "datasets/{}.py"}


@dataclass(frozen=True)
class Golden:
    """What a case gave, and with which versions of which parts."""

    parts: Mapping[str, int]
    values: Values


def read() -> dict[str, Golden]:
    """All goldens by their cases."""
    found: dict[str, Golden] = {}
    for path in sorted(FOLDER.glob("*.json")):
        for case, golden in json.loads(path.read_text(encoding="utf-8")).items():
            found[case] = Golden(golden["parts"], golden["values"])
    return found


def write(goldens: Mapping[str, Golden]) -> None:
    """Write them, in a file for each kind of part, with a line for each list of numbers."""
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.json"):
        path.unlink()
    kinds: dict[str, list[str]] = {}
    for case, golden in sorted(goldens.items()):
        values = ",\n".join(f"   {json.dumps(name)}: {json.dumps(each)}" for name, each in golden.values.items())
        parts = json.dumps(dict(sorted(golden.parts.items())))
        text = f' {json.dumps(case)}: {{\n  "parts": {parts},\n  "values": {{\n{values}\n  }}\n }}'
        kinds.setdefault(part_of(case).partition(" ")[0], []).append(text)
    for kind, texts in kinds.items():
        (FOLDER / f"{kind}.json").write_text("{\n" + ",\n".join(texts) + "\n}\n", encoding="utf-8")


def measured(case: str) -> Golden:
    """Measure a case now."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        outcome: Outcome = CASES[case]()
    finally:
        torch.set_num_threads(threads)
    rounded = {name: [float(f"{each:.{DIGITS}g}") for each in values] for name, values in outcome.values.items()}
    return Golden(dict(outcome.parts), rounded)


def part_of(case: str) -> str:
    """The part that a case is about."""
    return case.partition(":")[0]


def verdict(case: str, then: Golden | None, now: Golden) -> str:
    """What to do about a case; empty if it has not changed."""
    part = part_of(case)
    if then is None:
        return f"{case} has no golden yet: run `make goldens`"
    if then.parts != now.parts:
        names = sorted(then.parts.keys() | now.parts.keys())
        changed = [f"{n} {then.parts.get(n, '-')} to {now.parts.get(n, '-')}" for n in names]
        changed = [each for each, n in zip(changed, names, strict=True) if then.parts.get(n) != now.parts.get(n)]
        return f"the golden of {case} is of other versions ({', '.join(changed)}): run `make goldens`"
    different = [name for name in {**then.values, **now.values} if not _equal(then, now, name)]
    if not different:
        return ""
    others = ", ".join(sorted(then.parts.keys() - {part}))
    beside = f" (or that of {others}, where its own golden differs as well)" if others else ""
    return (
        f"the behaviour of {part} changed ({case.partition(': ')[2]}: {', '.join(different)}): "
        f"raise `{_word(part)}` in {file_of(part)}{beside}, then run `make goldens`"
    )


def _equal(then: Golden, now: Golden, name: str) -> bool:
    before, after = np.array(then.values.get(name, [])), np.array(now.values.get(name, []))
    if before.shape != after.shape:
        return False
    scale = np.abs(before).max(initial=0.0) if name in SUMS else np.abs(before)
    return bool((np.abs(before - after) <= TOLERANCE * scale + 1e-12).all())


def _word(part: str) -> str:
    return "VERSION" if part.partition(" ")[0] in FILES else "version"


def file_of(part: str) -> str:
    """The file in which a part's version stands.

    >>> file_of("memory TargetBalanced"), file_of("reader vcr")
    ('src/holdfast/memory/balanced.py', 'src/holdfast/datasets/vcr.py')
    """
    kind, _, name = part.partition(" ")
    if kind in FILES:
        return f"src/holdfast/{FILES[kind].format(name)}"
    rooms = [room for room, known in KINDS.items() if known == kind]
    entries = (*registry.ALGORITHMS.values(), *registry.MODELS.values(), *registry.BENCHMARKS.values())
    rooms += [*(entry.module for entry in entries), "holdfast.models.module"]
    for room in rooms:
        if (found := getattr(importlib.import_module(room), name, None)) is not None:
            own = next(each for each in found.__mro__ if "version" in vars(each))
            return str(Path(inspect.getfile(own)).relative_to(ROOT))
    raise LookupError(part)


def main() -> int:
    """Record what is new or was raised; refuse what changed without."""
    parser = argparse.ArgumentParser(description="record the goldens of what is new, or of a raised version")
    parser.add_argument("--force", action="store_true", help="record all cases, whatever their versions")
    force = parser.parse_args().force
    goldens, refused = read(), 0
    kept = {case: golden for case, golden in goldens.items() if case in CASES}
    for case in CASES:
        then, now = goldens.get(case), measured(case)
        told = verdict(case, then, now)
        if told and not force and then is not None and then.parts == now.parts:
            print(told, file=sys.stderr)
            refused += 1
        elif told or force:
            kept[case] = now
            print(f"recorded {case}")
    write(kept)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
