"""What is kept in the cache, at `tiny`, as it was when the versions of its makers were last raised.

Run as a program (`make goldens`), this records what is new and what was made by a raised version. With --force it
records all.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from holdfast import registry
from holdfast.benchmarks import cache as kept
from holdfast.benchmarks.synthetic import world
from holdfast.data.images import decode
from holdfast.datasets.base import Reading
from holdfast.errors import UserError
from holdfast.types import Wants

FILE = Path(__file__).parent / "cached.json"
TOLERANCE = 0.1
"""Of a sum of pixels (see `Seen`): a fraction of what one small thing in one of the pictures makes, and more than
another library's rounding."""
SUMS = 8
OF_BYTES = ("fingerprint", "files", "checksum")
"""What an index says about the bytes of files, which are seen by themselves."""
PICTURES = (".jpg", ".jpeg", ".png")
NO_TEXT, LONG = (".h5", ".mat"), 1000
"""Region features as TSV have such long lines: their numbers are in base64."""
LOOKED_AT = 100
"""The number of pictures of a dataset whose pixels are compared: all come from the same code."""
DAMAGED = 10
"""The number of bad records a reader may find: the synthetic datasets contain a few on purpose."""


@dataclass
class Golden:
    """What something holds, in a hash of its words and whole numbers and in sums of the others, and who made it."""

    versions: Mapping[str, int]
    words: str = ""
    sums: list[float] = field(default_factory=list)


class Seen:
    """What something holds, whatever machine made it.

    Words and whole numbers are hashed. Pixels and fractions may differ in the last digit: they are summed with fixed
    signs and weights, in parts, and compared with a tolerance.
    """

    def __init__(self, without: Iterable[str] = ()) -> None:
        self.without = sorted(without, key=len, reverse=True)
        self.digest, self.count = hashlib.blake2b(digest_size=12), 0
        self.sums, self.sizes, self.total = np.zeros(SUMS), np.zeros(SUMS), 0.0

    def text(self, value: str) -> None:
        """Add words; their fractions to six digits, and without the folders in which this test works."""
        for folder in self.without:
            value = value.replace(folder, "")
        value = re.sub(r"-?\d+\.\d{6,}(e-?\d+)?", lambda found: f"{float(found[0]):.6g}", value)
        self.digest.update(f"{len(value)};{value}".encode("utf-8", "surrogatepass"))

    def array(self, values: NDArray[Any]) -> None:
        """Add an array."""
        self.text(f"{values.dtype} {values.shape}")
        if values.dtype.kind in "US":
            self.text("\n".join(map(str, values.ravel().tolist())))
        elif values.dtype.kind in "bi" or (values.dtype == np.uint8 and values.ndim < 3):
            self.digest.update(np.ascontiguousarray(values).tobytes())
        else:
            flat = values.ravel().astype(np.float64)
            part, sign = self.count % SUMS, 1 - 2 * ((self.count // SUMS) % 2)
            self.sums[part] += sign * float(flat @ _weights(1 << max(len(flat) - 1, 0).bit_length())[: len(flat)])
            self.sizes[part] += len(flat)
            self.total += float(np.abs(flat).sum())
            self.count += 1

    def value(self, value: object) -> None:
        """Add what a reader gives."""
        if isinstance(value, np.ndarray):
            self.array(value)
        elif isinstance(value, Mapping):
            for name, each in value.items():
                self.text(str(name))
                self.value(each)
        elif isinstance(value, list | tuple):
            self.text(f"{len(value)} values")
            for each in value:
                self.value(each)
        else:
            self.text(repr(value) if isinstance(value, float) else str(value))

    def file(self, path: Path) -> bool:
        """Add a file; whether it could be: bytes that depend on a library are read by readers alone."""
        data, suffix = path.read_bytes(), path.suffix.lower()
        if suffix in PICTURES:
            self.array(decode(path, None))
        elif suffix == ".npy":
            self.array(np.load(path))
        elif suffix == ".npz":
            with np.load(BytesIO(data)) as arrays:
                self.value({name: arrays[name] for name in sorted(arrays)})
        elif suffix in NO_TEXT or (suffix == ".tsv" and len(data.partition(b"\n")[0]) > LONG):
            return False
        else:
            try:
                self.text(data.decode())
            except UnicodeDecodeError:
                return False
        return True

    def golden(self, versions: Mapping[str, int]) -> Golden:
        """All of it."""
        scale = 100 / max(self.total / max(self.sizes.sum(), 1), 1e-9)
        sums = self.sums / np.sqrt(np.maximum(self.sizes, 1)) * scale
        return Golden(
            dict(sorted(versions.items())), self.digest.hexdigest(), [round(each, 3) for each in sums.tolist()]
        )


@cache
def _weights(count: int) -> NDArray[np.float64]:
    """Fixed numbers between -0.5 and 0.5, as good as random; fewer of them are the beginning of more."""
    numbers = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(2654435761) % np.uint64(2**32)
    return numbers / 2**32 - 0.5


def measured(worlds: Path, tables: Path) -> dict[str, Golden]:
    """What the writers write, the readers read, and the benchmarks prepare, at `tiny`, each under its title.

    `worlds` is a cache in which the world's datasets are or will be, and `tables` an empty one.
    """
    os.environ["HOLDFAST_CACHE"] = str(worlds)
    folders = {name: world(name, "tiny") for name in sorted(registry.WRITERS)}
    found = {f"world: {name}": _written(name, folder) for name, folder in folders.items()}
    found |= {
        f"reader: {name}": _read(name, folder).golden(_version("datasets", name)) for name, folder in folders.items()
    }
    os.environ["HOLDFAST_CACHE"] = str(tables)
    (tables / "world").mkdir()
    for folder in folders.values():
        (tables / "world" / folder.name).symlink_to(folder)
    _prepare(folders)
    without = [str(each) for folder in (tables, worlds) for each in (folder, folder.resolve())]
    for entry in kept.entries():
        if any(path.name == folder.name for path in entry.paths for folder in folders.values()):
            continue
        about = next(path for path in entry.paths if path.name.endswith(".about.json"))
        seen = Seen([*without, *(path.name for path in entry.paths)])
        for path in sorted(path for path in entry.paths if path != about):
            for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
                if file.is_file() and file.suffix != ".checksum" and file.name != "files.json":
                    seen.text(file.name if path.is_dir() else file.suffix)
                    if file.name == "index.json":
                        seen.value({n: v for n, v in json.loads(file.read_text()).items() if n not in OF_BYTES})
                    else:
                        seen.file(file)
        golden = seen.golden(json.loads(about.read_text())["versions"])
        same = [title for title in found if title.partition(" #")[0] == entry.title]
        found[f"{entry.title} #{len(same) + 1}" if same else entry.title] = golden
    return _numbered(found)


def _numbered(found: Mapping[str, Golden]) -> dict[str, Golden]:
    """Those of one title in an order of their own: their names in the cache change with the time of their files."""
    groups: dict[str, list[Golden]] = {}
    for title, golden in found.items():
        groups.setdefault(title.partition(" #")[0], []).append(golden)
    return {
        f"{title} #{number}" if number else title: golden
        for title, goldens in groups.items()
        for number, golden in enumerate(sorted(goldens, key=lambda each: each.words))
    }


def _written(name: str, folder: Path) -> Golden:
    """The files of a dataset; where some can only be read by its reader, also what that finds."""
    seen, whole = Seen(), True
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    pictures = [path for path in paths if path.suffix.lower() in PICTURES]
    looked_at = set(pictures[:: 1 + len(pictures) // LOOKED_AT])
    for path in paths:
        seen.text(path.relative_to(folder).as_posix())
        if path in looked_at or path.suffix.lower() not in PICTURES:
            whole = seen.file(path) and whole
    if not whole:
        seen.text(_read(name, folder, seen).digest.hexdigest())
    return seen.golden(_version("world.writers", name))


def _read(name: str, folder: Path, seen: Seen | None = None) -> Seen:
    """What a reader finds in all splits."""
    dataset = registry.DATASETS[name].load()
    seen = seen or Seen([str(folder)])
    seen.without = [str(folder)]
    for split in dataset.splits:
        reading = Reading(skip=DAMAGED)
        examples = dataset.examples(folder, split, reading)
        try:
            first = next(examples, None)
        except UserError:  # a split that the world leaves out
            continue
        seen.text(split)
        for each in chain(filter(None, [first]), examples):
            seen.value([each.id, each.text, each.choices, each.target, each.extra, each.images])
        seen.value([str(problem) for problem in reading.problems])
    return seen


def _prepare(folders: Mapping[str, Path]) -> None:
    """Have everything prepared that a benchmark keeps in the cache."""
    from holdfast.benchmarks.captions.benchmark import Captions
    from holdfast.benchmarks.cfst.benchmark import BUILT, Cgqa, Cifar100, Cpin
    from holdfast.benchmarks.climb.benchmark import Climb
    from holdfast.benchmarks.climb.lowshot import LowShot
    from holdfast.benchmarks.clvqa.benchmark import Clvqa
    from holdfast.benchmarks.instructions.benchmark import Coin
    from holdfast.benchmarks.mtil.benchmark import Mtil
    from holdfast.benchmarks.viscoll.benchmark import CocoShift, FlickrShift
    from holdfast.benchmarks.viscoll.features import read_regions
    from holdfast.benchmarks.viscoll.released import build_released
    from holdfast.data.text import SPECIAL, Tokenizer

    seen, features = Wants(), str(folders["region_features"])
    for each in (Clvqa, Climb, Cgqa, Cifar100):  # Cobj and Cpin are what Cgqa is
        each(scale="tiny").setup(seen)
    Mtil(scale="tiny", order="mnist>dtd").setup(seen)
    Captions(scale="tiny", order="flickr8k>coco:food").setup(seen)
    Coin(scale="tiny", order="GQA>VizWiz").setup(seen)
    with mock.patch.dict(BUILT, tiny=(1, 1, 1)):
        Cpin(scale="tiny")._built()
    for task in ("imdb", "commonsenseqa", "places365", "coco"):
        LowShot(task, scale="tiny").setup(seen)
    regions = Wants(sees="regions")
    Climb(scale="tiny", order="nlvr2>snli-ve", features=features).setup(regions)
    for dataset in (CocoShift, FlickrShift):
        dataset(scale="tiny").setup(regions)
    read_regions("coco", scale="tiny", features=features)
    build_released("flickr", data=str(folders["phrase_streams"]), tokenizer=Tokenizer(SPECIAL))


def _version(room: str, name: str) -> dict[str, int]:
    module = f"holdfast.{room}.{name}"
    return {module: kept.version_of(module)}


def read() -> dict[str, Golden]:
    """The goldens by their titles."""
    found = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    return {title: Golden(**golden) for title, golden in found.items()}


def verdicts(then: Mapping[str, Golden], now: Mapping[str, Golden]) -> dict[str, str]:
    """What to do about all that is kept, by title, where something is to be done.

    What a reader finds follows from what a writer wrote, and tables from both: a change is reported at its origin.
    """
    changed: dict[str, str] = {}
    found = {}
    for title, golden in now.items():
        before, kind = then.get(title), title.partition(": ")[0]
        names = {title.partition(": ")[2]} if kind in ("world", "reader") else set(re.findall(r"\w+", kind))
        from_where = next((changed[name] for name in sorted(names) if name in changed), "")
        if before is None or before.versions != golden.versions or not from_where:
            told = verdict(title, before, golden)
        else:
            raised = now[from_where].versions != then[from_where].versions
            told = f"{title} follows from {from_where}: run `make goldens`" if raised else ""
            told = told if differs(before, golden) else ""
        if told:
            found[title] = told
        if kind in ("world", "reader") and before is not None and differs(before, golden):
            changed.setdefault(*names, title)
    return found


def verdict(title: str, then: Golden | None, now: Golden) -> str:
    """What to do about one cached thing; empty if it has not changed."""
    if then is None:
        return f"{title} has no golden yet: run `make goldens`"
    if then.versions != now.versions:
        names = sorted({**then.versions, **now.versions})
        changed = [name for name in names if then.versions.get(name) != now.versions.get(name)]
        return f"the golden of {title} is of other versions of {', '.join(changed)}: run `make goldens`"
    if not (what := differs(then, now)):
        return ""
    makers = " or ".join(f"src/{name.replace('.', '/')}.py" for name in now.versions)
    which = ", whichever it comes from" if len(now.versions) > 1 else ""
    return f"{title}: its {what} changed: raise VERSION in {makers}{which}, then run `make goldens`"


def differs(then: Golden, now: Golden) -> str:
    """In what two differ; empty where they do not."""
    if then.words != now.words:
        return "words or whole numbers"
    return "" if np.allclose(then.sums, now.sums, rtol=0, atol=TOLERANCE) else "pixels or fractions"


def main() -> int:
    """Record what is new or was raised; refuse what changed without."""
    parser = argparse.ArgumentParser(description="record the goldens of what is new, or of a raised version")
    parser.add_argument("--force", action="store_true", help="record all, whatever the versions")
    force, then, refused = parser.parse_args().force, read(), 0
    with tempfile.TemporaryDirectory() as folder:
        worlds, tables = Path(folder, "worlds"), Path(folder, "tables")
        tables.mkdir()
        now = measured(worlds, tables)
    recorded = {title: golden for title, golden in then.items() if title in now}
    told = verdicts(then, now)
    for title, golden in now.items():
        if title in told and "raise VERSION" in told[title] and not force:
            print(told[title], file=sys.stderr)
            refused += 1
        elif title in told or force:
            recorded[title] = golden
            print(f"recorded {title}")
    lines = [f" {json.dumps(title)}: {json.dumps(asdict(golden))}" for title, golden in sorted(recorded.items())]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
